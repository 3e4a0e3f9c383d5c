"""Layouts of whole pytrees: `shard`, the PartitionSpecs a mapping gives, and arrays that live on another mesh."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax.core import Tracer
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from haliax._src import jax_compat
from haliax._src.array_base import NamedArrayBase, selectors
from haliax._src.axis import Axis, AxisSelection, AxisSelector, axis_name
from haliax._src.declared_axes import checked_names
from haliax._src.errors import not_an_axis, problem, wrong_type
from haliax._src.layouts import has_layout, in_memory_of, layout_for, place
from haliax._src.resources import (
    MeshLike,
    PhysicalAxisSpec,
    ResourceMapping,
    check_mesh,
    current_mapping,
    freeze,
    mesh_axes,
    pspec_for_names,
    require_mesh,
    resolve_mesh,
    split_factor,
    unknown_mesh_axis,
)
from haliax._src.transfers import check_transfer
from haliax._src.util import StringHolderEnum

T = TypeVar("T")


class ResourceAxis(metaclass=StringHolderEnum):
    """The customary names of mesh axes."""

    MODEL = "model"
    DATA = "data"
    REPLICA = "replica"
    REPLICA_DCN = "replica_dcn"
    CONTEXT = "context"


def set_mesh(mesh: Mesh) -> contextlib.AbstractContextManager[Mesh | None]:
    """Make `mesh` the mesh in force, for a `with` block or from here on.

    Args:
        mesh: The mesh.

    Returns:
        A context manager that restores the previous mesh.

    Source:
        `jax.set_mesh`
    """
    if not isinstance(mesh, Mesh):
        raise wrong_type("set_mesh", "mesh", mesh, "a jax.sharding.Mesh")
    return jax.set_mesh(mesh)


def mesh_context(mesh: MeshLike) -> contextlib.AbstractContextManager[Any]:
    """A context in which `mesh`, concrete or abstract, is the mesh; it may be entered inside a trace.

    Args:
        mesh: The mesh.

    Returns:
        A context manager that restores the previous mesh.

    Source:
        `jax.sharding.use_abstract_mesh`, `jax.set_mesh`
    """
    return jax_compat.mesh_scope(mesh)


# what a mapping says ------------------------------------------------------------------------------------------------


def pspec_for_axis(axis: AxisSelection, mapping: ResourceMapping | None = None) -> PartitionSpec:
    """The PartitionSpec of an array with these axes.

    Args:
        axis: One axis or several, in order.
        mapping: Mesh axes by axis name; the mapping in force if None.

    Returns:
        A PartitionSpec with one entry for each axis.

    Source:
        `jax.sharding.PartitionSpec`
    """
    names = [axis_name(ax) for ax in selectors("pspec_for_axis", axis)]
    return pspec_for_names(names, freeze(mapping) if mapping is not None else current_mapping())


def physical_axis_name(axis: AxisSelector, mapping: ResourceMapping | None = None) -> PhysicalAxisSpec | None:
    """The mesh axis, or axes, that a named axis is split over; None if it is not split.

    Args:
        axis: The axis, or its name.
        mapping: Mesh axes by axis name; the mapping in force if None.

    Returns:
        The name of a mesh axis, a sequence of names, or None.

    Source:
        `jax.sharding.PartitionSpec`
    """
    return _mesh_axes_of("physical_axis_name", axis, mapping)


def _mesh_axes_of(op: str, axis: AxisSelector, mapping: ResourceMapping | None) -> PhysicalAxisSpec | None:
    """The entry of a mapping for an axis."""
    if not isinstance(axis, str | Axis):
        raise not_an_axis(op, axis)
    mapping = freeze(mapping) if mapping is not None else current_mapping()
    return (mapping or {}).get(axis_name(axis))


def physical_axis_size(
    axis: AxisSelector, mapping: ResourceMapping | None = None, mesh: MeshLike | None = None
) -> int | None:
    """Into how many parts a named axis is split; None if it is not split.

    Args:
        axis: The axis, or its name.
        mapping: Mesh axes by axis name; the mapping in force if None.
        mesh: The mesh; the one in force if None.

    Returns:
        The product of the sizes of these mesh axes, or None.

    Raises:
        ValueError: If there is no mesh, or it lacks the mesh axis.

    Source:
        `jax.sharding.Mesh.shape`
    """
    return _parts("physical_axis_size", axis, mapping, mesh)


def _parts(op: str, axis: AxisSelector, mapping: ResourceMapping | None, mesh: MeshLike | None) -> int | None:
    """Into how many parts a named axis is split."""
    target = require_mesh(op, mesh)
    spec = _mesh_axes_of(op, axis, mapping)
    for part in mesh_axes(spec):
        if part not in target.axis_names:
            raise unknown_mesh_axis(op, axis_name(axis), part, target)
    return None if spec is None else split_factor(target, spec)


def round_axis_for_partitioning(
    axis: Axis, mapping: ResourceMapping | None = None, mesh: MeshLike | None = None
) -> Axis:
    """The axis with its size rounded up to what can be split evenly over its mesh axes.

    Args:
        axis: The axis.
        mapping: Mesh axes by axis name; the mapping in force if None.
        mesh: The mesh; the one in force if None.

    Returns:
        An Axis of the same name, at least as long.

    Raises:
        ValueError: If there is no mesh, or it lacks the mesh axis.

    Source:
        `jax.sharding.NamedSharding.shard_shape`
    """
    op = "round_axis_for_partitioning"
    if not isinstance(axis, Axis):
        raise wrong_type(op, "the axis", axis, "an Axis")
    factor = _parts(op, axis, mapping, mesh)
    return axis if factor is None else axis.resize(-(-axis.size // factor) * factor)


def sharding_for_axis(
    axis: AxisSelection, mapping: ResourceMapping | None = None, mesh: MeshLike | None = None
) -> NamedSharding:
    """The sharding of an array with these axes.

    Args:
        axis: One axis or several, in order.
        mapping: Mesh axes by axis name; the mapping in force if None.
        mesh: The mesh; the one in force if None.

    Returns:
        A NamedSharding with one entry for each axis.

    Raises:
        ValueError: If there is no mesh.

    Source:
        `jax.sharding.NamedSharding`
    """
    mesh = require_mesh("sharding_for_axis", mesh)
    return NamedSharding(mesh, pspec_for_axis(axis, mapping))  # pyright: ignore[reportArgumentType]


def pspec_for(tree: Any, resource_mapping: ResourceMapping | None = None) -> Any:
    """The PartitionSpec of each array of a pytree.

    Args:
        tree: A pytree of named arrays and other leaves.
        resource_mapping: Mesh axes by axis name; the mapping in force if None.

    Returns:
        The pytree with a PartitionSpec in place of each array: that of the mapping for a named one, and for a raw one
        in a field of a module that was declared with `haliax.field(axis_names=...)`; that of its type for another raw
        one, which is split over explicit mesh axes alone; an unsplit one for a number; None for any other leaf.

    Raises:
        ValueError: If there is no mapping, or a field has a name too few or too many.

    Source:
        `jax.sharding.PartitionSpec`
    """
    mapping = freeze(resource_mapping) if resource_mapping is not None else current_mapping()
    if mapping is None:
        raise ValueError(
            problem(
                "pspec_for", "there is no axis mapping", remedy="Pass one, or call it under `with axis_mapping(...)`."
            )
        )

    def leaf_spec(path: Any, leaf: Any) -> PartitionSpec | None:
        if isinstance(leaf, NamedArrayBase):
            return pspec_for_names(leaf.axis_names, mapping)
        if isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct):
            names = checked_names("pspec_for", tree, path, leaf.ndim)
            if names is not None:
                return pspec_for_names(names, mapping)
            if isinstance(leaf, jax.Array):
                return jax.typeof(leaf).sharding.spec
            return PartitionSpec(*(None,) * leaf.ndim)
        return PartitionSpec() if isinstance(leaf, bool | int | float | complex | np.generic) else None

    return jax.tree_util.tree_map_with_path(leaf_spec, tree, is_leaf=is_named)


def infer_resource_partitions(
    tree: Any, resource_mapping: ResourceMapping | None = None, mesh: MeshLike | None = None
) -> Any:
    """The NamedSharding of each array of a pytree; see `pspec_for`.

    Args:
        tree: A pytree of named arrays and other leaves.
        resource_mapping: Mesh axes by axis name; the mapping in force if None.
        mesh: The mesh; the one in force if None.

    Returns:
        The pytree with a NamedSharding in place of each array.

    Raises:
        ValueError: If there is no mapping or no mesh.

    Source:
        `jax.sharding.NamedSharding`
    """
    specs = pspec_for(tree, resource_mapping)
    mesh = require_mesh("infer_resource_partitions", mesh)
    is_spec = lambda x: isinstance(x, PartitionSpec)  # noqa: E731
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs, is_leaf=is_spec)  # pyright: ignore


def is_named(x: Any) -> bool:
    """Whether `x` is a named array; the usual `is_leaf`."""
    return isinstance(x, NamedArrayBase)


# laying out arrays --------------------------------------------------------------------------------------------------


def shard(x: T, mapping: ResourceMapping | None = None, mesh: MeshLike | None = None) -> T:
    """Lay out the named arrays of a pytree as a mapping says: by a transfer, or inside a trace by a constraint.

    Args:
        x: A pytree. Its raw arrays stay as they are, but for one case: with `mesh=` given outside a trace, an array
            that lives on another mesh is moved to this one.
        mapping: Mesh axes by axis name; the mapping in force if None.
        mesh: The mesh; the one in force if None.

    Returns:
        The pytree with each array in its layout. Without a mapping and a mesh argument, `x` itself; without a mesh,
        `x` itself and a warning.

    Raises:
        ValueError: If an axis does not divide, a mesh axis is unknown, or an array can not be moved between processes.
            Nothing has moved then.

    Source:
        `jax.device_put`, `jax.lax.with_sharding_constraint`, `jax.sharding.reshard`
    """
    check_mesh("shard", mesh)
    target_mesh = resolve_mesh(mesh)
    mapping = freeze(mapping) if mapping is not None else current_mapping()
    if mapping is None and mesh is None:
        return x
    if target_mesh is None:
        warnings.warn("shard: there is no mesh, so nothing is sharded. Pass mesh=...", stacklevel=2)
        return x
    flat, treedef = jax.tree_util.tree_flatten_with_path(x, is_leaf=is_named)
    arrays = [leaf.array if is_named(leaf) else leaf for _, leaf in flat]
    layouts = {}
    for i, (path, leaf) in enumerate(flat):
        layout = _layout(path, leaf, mapping, target_mesh, relocate=mesh is not None)
        # an array that has its layout is returned itself: another one would share its memory
        if layout is not None and not has_layout(arrays[i], layout):
            check_transfer("shard", "x" + jax.tree_util.keystr(path), arrays[i], layout)
            layouts[i] = layout
    placed = place(arrays, layouts)
    return treedef.unflatten(
        leaf.like(array, leaf.axis_names) if is_named(leaf) else array
        for (_, leaf), array in zip(flat, placed, strict=True)
    )


def shard_with_axis_mapping(x: T, mapping: ResourceMapping | None = None, mesh: MeshLike | None = None) -> T:
    """The former name of `shard`.

    Args:
        x: A pytree.
        mapping: Mesh axes by axis name; the mapping in force if None.
        mesh: The mesh; the one in force if None.

    Returns:
        The pytree with each array in its layout.

    Source:
        `jax.device_put`, `jax.lax.with_sharding_constraint`
    """
    return shard(x, mapping, mesh)


def auto_sharded(x: T, mesh: MeshLike | None = None) -> T:
    """Lay out named arrays by the mapping and on the mesh in force, if there are both; see `shard`.

    Args:
        x: A pytree.
        mesh: The mesh; the one in force if None.

    Returns:
        The pytree with each array in its layout; `x` itself if there is no mapping or no mesh.

    Source:
        `jax.device_put`, `jax.lax.with_sharding_constraint`
    """
    return x if current_mapping() is None or resolve_mesh(mesh) is None else shard(x, mesh=mesh)


def _layout(
    path: Any, leaf: Any, mapping: ResourceMapping | None, mesh: MeshLike, relocate: bool
) -> NamedSharding | None:
    """Where one leaf goes, or None if it stays."""
    if is_named(leaf) and mapping is not None and hasattr(leaf.array, "shape"):
        where = "x" + jax.tree_util.keystr(path)
        layout = layout_for("shard", where, leaf.axis_names, leaf._sizes(), mapping, mesh)
        return in_memory_of(leaf.array, layout)
    raw = leaf.array if is_named(leaf) else leaf
    if relocate and isinstance(mesh, Mesh) and lives_elsewhere(raw, mesh):
        return layout_on(mesh, raw, None, None)
    return None


def all_mesh_axes_explicit(mesh: MeshLike, pspec: PartitionSpec) -> bool:
    """Whether every mesh axis that a PartitionSpec names is explicit.

    Source:
        `jax.sharding.AxisType`
    """
    types = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    return all(types[axis] == AxisType.Explicit for entry in pspec for axis in mesh_axes(entry))


def get_pspec_for_manual_mesh(
    axis: AxisSelection, mapping: ResourceMapping | None = None, *, mesh: MeshLike | None = None
) -> PartitionSpec | None:
    """The PartitionSpec of these axes if every mesh axis in it is explicit, else None.

    Args:
        axis: One axis or several, in order.
        mapping: Mesh axes by axis name; the mapping in force if None.
        mesh: The mesh; the one in force if None.

    Returns:
        A PartitionSpec with one entry for each axis, or None.

    Source:
        `jax.sharding.PartitionSpec`
    """
    mesh = resolve_mesh(mesh)
    if mesh is None:
        return None
    spec = pspec_for_axis(axis, mapping)
    named = [entry for entry in spec if entry is not None]
    return spec if named and all_mesh_axes_explicit(mesh, spec) else None


# arrays on another mesh ---------------------------------------------------------------------------------------------


OTHER_SHAPE = "on a mesh of another shape"


def lives_elsewhere(array: Any, mesh: MeshLike) -> str | None:
    """Why JAX may refuse this array in a computation on `mesh`; None if it does not.

    Args:
        array: Any leaf; only a committed `jax.Array` can be refused.
        mesh: The mesh of the computation.

    Returns:
        The reason in a few words, or None.
    """
    if not isinstance(array, jax.Array) or isinstance(array, Tracer) or not array.committed:
        return None
    sharding = array.sharding
    have = jax_compat.device_order(sharding)
    if isinstance(mesh, AbstractMesh):
        like = isinstance(sharding, NamedSharding) and sharding.mesh.shape_tuple == mesh.shape_tuple
        return None if like and not has_other_axis_types(array, mesh) else "on another mesh"
    want = tuple(mesh.devices.flat)
    if have != want:
        if len(have) == 1:
            return "on one device"
        if set(have) == set(want):
            return "in another device order"
        return "on some of the devices" if set(have) < set(want) else "on other devices"
    if has_other_axis_types(array, mesh):
        return "on a mesh with other axis types"
    # JAX accepts these until it names the layout of a result after the wrong one of the two meshes
    # (IndivisibleError from `_gspmd_to_named_sharding_via_mesh`; seen on jax 0.9.2 to 0.12)
    if isinstance(sharding, NamedSharding) and sharding.mesh.shape_tuple != mesh.shape_tuple:
        return OTHER_SHAPE
    return None


def has_other_axis_types(array: jax.Array, mesh: MeshLike) -> bool:
    """Whether the type of this array names another mesh: JAX refuses it while tracing, inside the function."""
    sharding = array.sharding
    return isinstance(sharding, NamedSharding) and _explicit_axes(sharding.mesh) != _explicit_axes(mesh)


def _explicit_axes(mesh: MeshLike) -> tuple[tuple[str, int], ...]:
    """What of a mesh shows in the types of arrays: its explicit axes, with their sizes."""
    return tuple(
        (name, mesh.shape[name])
        for name, axis_type in zip(mesh.axis_names, mesh.axis_types, strict=True)
        if axis_type == AxisType.Explicit
    )


def layout_on(
    mesh: MeshLike, array: Any, names: Sequence[str] | None, mapping: ResourceMapping | None
) -> NamedSharding:
    """The layout that an array from elsewhere gets on `mesh`.

    It is that of its own PartitionSpec if `mesh` has those axes and they divide; else that of the mapping, for a named
    array; else replicated. The memory kind stays.
    """
    sharding = array.sharding
    candidates = [PartitionSpec()]
    if names is not None and mapping is not None:
        candidates.insert(0, pspec_for_names(names, mapping))
    if isinstance(sharding, NamedSharding):
        candidates.insert(0, sharding.spec)
    spec = next(spec for spec in candidates if _fits(spec, array.shape, mesh))
    return NamedSharding(mesh, spec, memory_kind=sharding.memory_kind)


def _fits(spec: PartitionSpec, shape: Sequence[int], mesh: MeshLike) -> bool:
    axes = [axis for entry in spec for axis in mesh_axes(entry)]
    if len(set(axes)) != len(axes) or not set(axes) <= set(mesh.axis_names):
        return False
    return all(size % split_factor(mesh, entry) == 0 for size, entry in zip(shape, spec, strict=False))
