"""From axis names to mesh axes: the axis mapping in force, the mesh in force, and the layouts they give.

Everything here works on names and sizes, so that it sits below arrays.
"""

from __future__ import annotations

import contextlib
import difflib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn, TypeAlias

from jax.sharding import AbstractMesh, AxisType, Mesh, PartitionSpec

from haliax._src import jax_compat
from haliax._src.errors import bad_value, problem, wrong_type
from haliax._src.jax_compat import ambient_mesh as ambient_mesh
from haliax._src.util import renamed

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
        """Check the entries, and normalise sequences to tuples, so that equal mappings compare equal."""
        super().__init__({_checked_name(name): _checked_entry(name, spec) for name, spec in mapping.items()})
        self._hash = hash(frozenset(self.items()))

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("axis mapping: it can not be changed. Make another with {**mapping, ...}.")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse  # pyright: ignore


def _checked_name(name: Any) -> str:
    if not isinstance(name, str):
        raise wrong_type("axis mapping", "a key", name, "the name of an axis")
    return name


def _checked_entry(name: str, spec: Any) -> str | tuple[str, ...] | None:
    """The mesh axes of one entry in normal form."""
    if spec is None or isinstance(spec, str):
        return spec
    if not isinstance(spec, Sequence) or not all(isinstance(axis, str) for axis in spec):
        raise wrong_type("axis mapping", f"the entry of axis {name!r}", spec, "a mesh axis, several, or None")
    if len(set(spec)) != len(spec):
        given = f"axis {name!r} is mapped to ({', '.join(spec)})"
        raise bad_value("axis mapping", given, "expected distinct mesh axes")
    return tuple(spec)


def freeze(mapping: ResourceMapping | None) -> FrozenMapping | None:
    """The normal form of a mapping; None stays None.

    Raises:
        TypeError: If it is no mapping from names to mesh axes.
        ValueError: If an entry repeats a mesh axis.
    """
    if mapping is None or isinstance(mapping, FrozenMapping):
        return mapping
    if not isinstance(mapping, Mapping):
        raise wrong_type("axis mapping", "the mapping", mapping, "a mapping from axis names to mesh axes")
    return FrozenMapping(mapping)


_current_mapping: ContextVar[FrozenMapping | None] = ContextVar("haliax_axis_mapping", default=None)


def current_mapping() -> FrozenMapping | None:
    """The mapping of the innermost `axis_mapping` context of this thread, or None.

    Returns:
        Mesh axes by axis name, or None where no mapping is in force.

    Source:
        `flax.linen.get_logical_axis_rules`
    """
    return _current_mapping.get()


current_thread_local_mapping = renamed(current_mapping, "current_thread_local_mapping")


@contextlib.contextmanager
def axis_mapping(mapping: ResourceMapping, *, merge: bool = False, **kwargs: PhysicalAxisSpec) -> Iterator[None]:
    """A context in which `mapping` says how named axes are laid out over the mesh.

    Args:
        mapping: Mesh axes for each axis name.
        merge: Whether to extend the mapping already in force rather than replace it.
        **kwargs: Further entries, by axis name.

    Yields:
        Nothing; the mapping holds for this thread until the context ends.

    Source:
        `flax.linen.logical_axis_rules`
    """
    entries = freeze(mapping)
    if entries is None:
        raise wrong_type("axis_mapping", "mapping", mapping, "a mapping from axis names to mesh axes")
    if merge:
        entries = {**(current_mapping() or {}), **entries}
    token = _current_mapping.set(FrozenMapping({**entries, **kwargs}))
    try:
        yield
    finally:
        _current_mapping.reset(token)


def resolve_mesh(mesh: MeshLike | None = None) -> MeshLike | None:
    """The given mesh, else the one in force, else None."""
    return mesh if mesh is not None else ambient_mesh()


_get_mesh = resolve_mesh


def is_in_force(mesh: MeshLike) -> bool:
    """Whether `mesh` is the mesh here, for JAX too."""
    return mesh is ambient_mesh() and mesh is not jax_compat.legacy_mesh()


def manual_axes() -> frozenset[str]:
    """The mesh axes that `shard_map` has made manual at this point."""
    mesh = jax_compat.abstract_mesh()
    if mesh is None or AxisType.Manual not in mesh.axis_types:
        return frozenset()
    return frozenset(n for n, t in zip(mesh.axis_names, mesh.axis_types, strict=True) if t == AxisType.Manual)


def as_seen_here(mesh: MeshLike) -> MeshLike:
    """`mesh` itself; inside a `shard_map` over it, the mesh of the trace, which knows what is manual."""
    ambient = jax_compat.abstract_mesh()
    if ambient is None or AxisType.Manual not in ambient.axis_types or ambient.shape_tuple != mesh.shape_tuple:
        return mesh
    return ambient


def check_mesh(op: str, mesh: Any) -> None:
    """Raise a TypeError unless `mesh` is a mesh or None."""
    if mesh is not None and not isinstance(mesh, Mesh | AbstractMesh):
        raise wrong_type(op, "mesh", mesh, "a jax.sharding.Mesh or AbstractMesh")


def require_mesh(op: str, mesh: MeshLike | None = None) -> MeshLike:
    """The mesh of `resolve_mesh`, or an error that says how to give one."""
    check_mesh(op, mesh)
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
