"""From axis names to mesh axes: the axis mapping in force, the mesh in force, and the layouts they give.

Everything here works on names and sizes, so that it sits below arrays.
"""

from __future__ import annotations

import contextlib
import difflib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeAlias

import jax
from jax.core import Tracer
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from haliax._src import jax_compat
from haliax._src.errors import problem

PhysicalAxisSpec: TypeAlias = str | Sequence[str]
"""A mesh axis, or several that share one array axis."""

ResourceMapping: TypeAlias = Mapping[str, PhysicalAxisSpec]
"""Which mesh axes each named axis is spread over."""

MeshLike: TypeAlias = Mesh | AbstractMesh

GIVE_A_MESH = "Pass mesh=..., or call it under `with haliax.set_mesh(mesh):`."
"""What to do where a mesh is needed and there is none."""


class FrozenMapping(dict[str, Any]):
    """A resource mapping in normal form: hashable, compared by content, not to be changed."""

    __slots__ = ("_hash",)

    def __init__(self, mapping: Mapping[str, Any]):
        """Normalise sequences to tuples, so that equal mappings compare equal."""
        super().__init__(
            {name: spec if isinstance(spec, str) or spec is None else tuple(spec) for name, spec in mapping.items()}
        )
        self._hash = hash(frozenset(self.items()))

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._hash


def freeze(mapping: ResourceMapping | None) -> FrozenMapping | None:
    """The normal form of a mapping; None stays None."""
    return mapping if mapping is None or isinstance(mapping, FrozenMapping) else FrozenMapping(mapping)


_current_mapping: ContextVar[FrozenMapping | None] = ContextVar("haliax_axis_mapping", default=None)


def current_mapping() -> FrozenMapping | None:
    """The mapping of the innermost `axis_mapping` context of this thread, or None."""
    return _current_mapping.get()


current_thread_local_mapping = current_mapping


@contextlib.contextmanager
def axis_mapping(mapping: ResourceMapping, *, merge: bool = False, **kwargs: PhysicalAxisSpec) -> Iterator[None]:
    """A context in which `mapping` says how named axes are laid out over the mesh.

    Args:
        mapping: Mesh axes for each axis name.
        merge: Whether to extend the mapping already in force rather than replace it.
        **kwargs: Further entries, by axis name.

    Yields:
        Nothing; the mapping holds for this thread until the context ends.
    """
    entries = dict(mapping)
    if merge:
        entries = {**(current_mapping() or {}), **entries}
    token = _current_mapping.set(FrozenMapping({**entries, **kwargs}))
    try:
        yield
    finally:
        _current_mapping.reset(token)


def ambient_mesh() -> MeshLike | None:
    """The mesh in force here: set with `jax.set_mesh`, that of the current trace, or entered with `with mesh:`."""
    abstract = jax_compat.abstract_mesh()
    if abstract is not None and AxisType.Manual in abstract.axis_types:
        return abstract  # inside shard_map only the mesh of the trace knows which axes are manual
    return jax_compat.concrete_mesh() or abstract or jax_compat.legacy_mesh()


def resolve_mesh(mesh: MeshLike | None = None) -> MeshLike | None:
    """The given mesh, else the one in force, else None."""
    return mesh if mesh is not None else ambient_mesh()


_get_mesh = resolve_mesh


def require_mesh(op: str, mesh: MeshLike | None = None) -> MeshLike:
    """The mesh of `resolve_mesh`, or an error that says how to give one."""
    resolved = resolve_mesh(mesh)
    if resolved is None:
        raise ValueError(problem(op, "there is no mesh", remedy=GIVE_A_MESH))
    return resolved


def mesh_axes(spec: PhysicalAxisSpec | None) -> tuple[str, ...]:
    """The mesh axes of one entry of a mapping or of a PartitionSpec, as a tuple."""
    if spec is None:
        return ()
    return (spec,) if isinstance(spec, str) else tuple(spec)


def pspec_for_names(names: Iterable[str], mapping: ResourceMapping | None) -> PartitionSpec:
    """The PartitionSpec that a mapping gives to an array with these axis names; unmapped axes are not split."""
    mapping = mapping or {}
    return PartitionSpec(*(_spec_entry(mapping.get(name)) for name in names))


def _spec_entry(spec: PhysicalAxisSpec | None) -> str | tuple[str, ...] | None:
    return spec if spec is None or isinstance(spec, str) else tuple(spec)


def check_mapping(op: str, mapping: ResourceMapping | None, mesh: MeshLike) -> None:
    """Raise a ValueError if a mapping names a mesh axis that the mesh does not have."""
    for name, spec in (mapping or {}).items():
        for axis in mesh_axes(spec):
            if axis not in mesh.axis_names:
                raise unknown_mesh_axis(op, name, axis, mesh)


def unknown_mesh_axis(op: str, name: str, axis: str, mesh: MeshLike) -> ValueError:
    """The error for a mapping entry that names no axis of the mesh."""
    close = difflib.get_close_matches(axis, mesh.axis_names, n=1)
    return ValueError(
        problem(
            op,
            f"axis {name!r} is mapped to mesh axis {axis!r}",
            f"the mesh has {format_mesh(mesh)}",
            f"Did you mean {close[0]!r}?" if close else "",
        )
    )


def format_mesh(mesh: MeshLike) -> str:
    """The axes of a mesh as `data=4, model=2`."""
    return ", ".join(f"{name}={size}" for name, size in mesh.shape.items())


def split_factor(mesh: MeshLike, spec: PhysicalAxisSpec | None) -> int:
    """Into how many parts an axis with this mapping entry is split."""
    return math.prod(mesh.shape[axis] for axis in mesh_axes(spec))


def layout_for(
    op: str, path: str, names: Sequence[str], sizes: Sequence[int], mapping: ResourceMapping | None, mesh: MeshLike
) -> NamedSharding:
    """The sharding that a mapping gives to one array, checked before anything is moved.

    Args:
        op: The operation, for error messages.
        path: Where the array was found, for error messages.
        names: The axis names of the array.
        sizes: The axis sizes.
        mapping: Mesh axes by axis name.
        mesh: The mesh to lay it out on.

    Returns:
        A NamedSharding with one entry for each axis.

    Raises:
        ValueError: If a mesh axis is unknown or used for two axes, or an axis does not divide. On automatic axes a
            constraint that does not divide would replicate silently.
    """
    spec = pspec_for_names(names, mapping)
    taken: dict[str, str] = {}
    for name, size, entry in zip(names, sizes, spec, strict=True):
        for axis in mesh_axes(entry):
            if axis not in mesh.axis_names:
                raise unknown_mesh_axis(op, name, axis, mesh)
            if axis in taken:
                raise ValueError(
                    problem(
                        op,
                        f"{path}: axes {taken[axis]!r} and {name!r} are both mapped to mesh axis {axis!r}",
                        "expected distinct mesh axes",
                        f"Map one of them to another mesh axis; the mesh has {format_mesh(mesh)}.",
                    )
                )
            taken[axis] = name
        factor = split_factor(mesh, entry)
        if size % factor:
            raise indivisible(op, path, name, size, mesh_axes(entry), mesh)
    return NamedSharding(mesh, spec)  # pyright: ignore[reportArgumentType]  (AbstractMesh is accepted)


def indivisible(op: str, path: str, name: str, size: int, axes: Sequence[str], mesh: MeshLike) -> ValueError:
    """The error for an axis that can not be split evenly over its mesh axes."""
    factor = math.prod(mesh.shape[axis] for axis in axes)
    below, above = size // factor * factor, -(-size // factor) * factor
    fitting = f"{below} or {above}" if below else f"{above} or {above + factor}"
    over = ", ".join(f"{axis}={mesh.shape[axis]}" for axis in axes)
    return ValueError(
        problem(
            op,
            f"{path}: axis {name}={size} can not be split over mesh axes ({over})",
            f"expected a multiple of {factor}",
            f"The nearest sizes that fit are {fitting}; see haliax.partitioning.round_axis_for_partitioning.",
        )
    )


def constrain(array: Any, sharding: NamedSharding) -> Any:
    """Give an array this layout: a transfer outside a trace, a constraint (`reshard` on explicit axes) inside one.

    Args:
        array: An array of any shape.
        sharding: The layout, one entry for each dimension.

    Returns:
        The array in that layout.

    Source:
        `jax.device_put`, `jax.lax.with_sharding_constraint`, `jax.sharding.reshard`
    """
    if not isinstance(array, Tracer):
        return jax.device_put(array, sharding)
    mesh = sharding.mesh
    kinds = set(mesh.axis_types) - {AxisType.Manual}  # what shard_map has made manual is fixed
    if not kinds:
        return array
    if kinds == {AxisType.Auto}:
        return jax.lax.with_sharding_constraint(array, sharding)
    if kinds == {AxisType.Explicit}:
        return jax.sharding.reshard(array, sharding)
    # a mixed mesh: each kind of axis has its own primitive, which refuses the axes of the other kind
    _check_explicit_first(sharding)
    array = jax.sharding.reshard(array, _restrict(sharding, AxisType.Explicit))
    return jax.lax.with_sharding_constraint(array, _restrict(sharding, AxisType.Auto))


def _check_explicit_first(sharding: NamedSharding) -> None:
    """Raise for what JAX can not express: an axis split over an automatic mesh axis and, within it, an explicit one."""
    types = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))
    for entry in sharding.spec:
        axes = mesh_axes(entry)
        explicit = [axis for axis in axes if types[axis] == AxisType.Explicit]
        if tuple(explicit) != axes[: len(explicit)]:
            raise ValueError(
                problem(
                    "shard",
                    f"one axis is split over mesh axes ({', '.join(axes)})",
                    f"expected the explicit ones ({', '.join(explicit)}) first",
                    "Change their order in the axis mapping.",
                )
            )


def _restrict(sharding: NamedSharding, kind: AxisType) -> NamedSharding:
    """The part of a sharding that concerns the mesh axes of one kind."""
    mesh = sharding.mesh
    keep = {name for name, axis_type in zip(mesh.axis_names, mesh.axis_types, strict=True) if axis_type == kind}
    entries = [tuple(axis for axis in mesh_axes(entry) if axis in keep) or None for entry in sharding.spec]
    return NamedSharding(mesh, PartitionSpec(*entries))
