"""Layouts of raw arrays: what a mapping gives, whether an array has it, and how it gets it."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

import jax
from jax.core import Tracer
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from haliax._src import jax_compat
from haliax._src.errors import problem
from haliax._src.jax_helpers import is_in_jit
from haliax._src.resources import (
    MeshLike,
    PhysicalAxisSpec,
    ResourceMapping,
    as_seen_here,
    format_mesh,
    manual_axes,
    mesh_axes,
    pspec_for_names,
    split_factor,
    unknown_mesh_axis,
)
from haliax._src.transfers import transfer


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
    mesh, manual = as_seen_here(mesh), manual_axes()
    # what shard_map has made manual is split already
    rest: dict[str, Any] = {name: _without((mapping or {}).get(name), manual) for name in names}
    spec = checked_spec(op, path, names, rest, mesh)
    for name, size, entry in zip(names, sizes, spec, strict=True):
        if size % split_factor(mesh, entry):
            raise indivisible(op, path, name, size, mesh_axes(entry), mesh)
    return NamedSharding(mesh, spec)  # pyright: ignore[reportArgumentType]  (AbstractMesh is accepted)


def checked_spec(
    op: str, path: str, names: Sequence[str], mapping: ResourceMapping | None, mesh: MeshLike
) -> PartitionSpec:
    """The PartitionSpec that a mapping gives to one array, whatever its sizes.

    Args:
        op: The operation, for error messages.
        path: Where the array was found, for error messages.
        names: The axis names of the array.
        mapping: Mesh axes by axis name.
        mesh: The mesh.

    Raises:
        ValueError: If a mesh axis is unknown or used for two axes.
    """
    spec = pspec_for_names(names, mapping)
    taken: dict[str, str] = {}
    for name, entry in zip(names, spec, strict=True):
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
    return spec


def _without(entry: PhysicalAxisSpec | None, axes: frozenset[str]) -> PhysicalAxisSpec | None:
    """An entry of a PartitionSpec without some mesh axes."""
    if not axes or entry is None:
        return entry
    return tuple(axis for axis in mesh_axes(entry) if axis not in axes) or None


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
    """Constrain an array of a program to this layout; on explicit axes, `reshard` it.

    Args:
        array: An array of any shape.
        sharding: The layout, one entry for each dimension.

    Returns:
        The array in that layout.

    Raises:
        ValueError: If a mesh of mixed axis types can not express it.

    Source:
        `jax.lax.with_sharding_constraint`, `jax.sharding.reshard`
    """
    mesh = sharding.mesh
    kinds = set(mesh.axis_types) - {AxisType.Manual}  # what shard_map has made manual is fixed
    if not kinds:
        return array
    if kinds == {AxisType.Auto}:
        return jax.lax.with_sharding_constraint(array, sharding)
    if kinds == {AxisType.Explicit}:
        return jax.sharding.reshard(array, sharding)
    # a mixed mesh: each kind of axis has its own primitive, which refuses the axes of the other kind
    _check_mixed(sharding)
    array = jax.sharding.reshard(array, _restrict(sharding, AxisType.Explicit))
    return jax.lax.with_sharding_constraint(array, _restrict(sharding, AxisType.Auto))


def _check_mixed(sharding: NamedSharding) -> None:
    """Raise for what JAX does not express on a mesh of explicit and automatic axes."""
    types = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))
    entries = [mesh_axes(entry) for entry in sharding.spec]
    explicit = [tuple(axis for axis in axes if types[axis] == AxisType.Explicit) for axes in entries]
    for axes, first in zip(entries, explicit, strict=True):
        if first != axes[: len(first)]:
            given = f"one axis is split over mesh axes ({', '.join(axes)})"
            expected = f"expected the explicit ones ({', '.join(first)}) first"
            raise ValueError(problem("shard", given, expected, "Change their order in the axis mapping."))
    # the sharding of a result comes from its type, which has no room then for an automatic axis: JAX drops it silently
    if all(explicit) and entries != explicit:
        given = "every axis is split over explicit mesh axes, and one over an automatic one as well"
        expected = "expected an axis that is split over automatic mesh axes alone"
        raise ValueError(problem("shard", given, expected, "Give all axes of the mesh one type."))


def _restrict(sharding: NamedSharding, kind: AxisType) -> NamedSharding:
    """The part of a sharding that concerns the mesh axes of one kind."""
    mesh = sharding.mesh
    keep = {name for name, axis_type in zip(mesh.axis_names, mesh.axis_types, strict=True) if axis_type == kind}
    entries = [tuple(axis for axis in mesh_axes(entry) if axis in keep) or None for entry in sharding.spec]
    return NamedSharding(mesh, PartitionSpec(*entries))


def is_staged(array: Any) -> bool:
    """Whether an operation on this array becomes part of a program rather than being run now.

    In a function that `jit` traces this holds for arrays from outside too: a transfer of one would be no part of it.
    """
    return isinstance(array, Tracer) or (jax_compat.is_in_trace() and is_in_jit())


def place(
    arrays: Sequence[Any], layouts: Mapping[int, NamedSharding], donated: Container[int] = frozenset()
) -> list[Any]:
    """Give some arrays new layouts: by constraints in a program, else in one transfer.

    Args:
        arrays: Arrays of any shape; a ShapeDtypeStruct gets the layout as its sharding.
        layouts: The layouts, by position.
        donated: The positions of arrays whose memory will be given away, and so must not be the caller's.

    Returns:
        All arrays, in order.

    Raises:
        ValueError: If the mesh is abstract and an array is not.

    Source:
        `jax.device_put`, `jax.lax.with_sharding_constraint`, `jax.sharding.reshard`
    """
    out = list(arrays)
    transfers: dict[bool, list[int]] = {False: [], True: []}
    for i, layout in layouts.items():
        array = out[i]
        if isinstance(array, jax.ShapeDtypeStruct):
            out[i] = jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=layout, weak_type=array.weak_type)
        elif is_staged(array):
            out[i] = constrain(array, layout)
        elif isinstance(layout.mesh, AbstractMesh):
            raise ValueError(problem("shard", "the mesh is an AbstractMesh, which has no devices", "expected a Mesh"))
        else:
            transfers[i in donated].append(i)
    for copy, positions in transfers.items():
        may_alias = False if copy else None
        moved = transfer([out[i] for i in positions], [layouts[i] for i in positions], may_alias)
        for i, array in zip(positions, moved, strict=True):
            out[i] = array
    return out


def has_layout(array: Any, layout: NamedSharding | None) -> bool:
    """Whether an array is committed to this layout on this very mesh, so that there is nothing to do."""
    if layout is None or not isinstance(array, jax.Array) or is_staged(array):
        return False
    sharding = array.sharding
    if not isinstance(sharding, NamedSharding) or not array.committed:
        return False
    return sharding == layout or (sharding.mesh == layout.mesh and sharding.is_equivalent_to(layout, array.ndim))


def in_memory_of(array: Any, layout: NamedSharding) -> NamedSharding:
    """`layout`, in the kind of memory that an array is in: a change of layout keeps it."""
    kind = memory_kind(array)
    return layout if kind is None or isinstance(layout.mesh, AbstractMesh) else layout.with_memory_kind(kind)


def memory_kind(array: Any) -> str | None:
    """The kind of memory that an array is in; None if it is in none yet."""
    if not isinstance(array, jax.Array) or isinstance(array, Tracer):
        return None
    return array.sharding.memory_kind
