"""Seeing how arrays are laid out over devices: a table for a tree of arrays, a grid of devices for one array.

Text is for a terminal, and goes to the standard output. A traced array is shown once its program has been compiled:
only then is its layout known, unless the mesh axes are explicit.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec, Sharding
from jax.tree_util import keystr, tree_flatten_with_path

from haliax._src.array_base import raw_array_or_scalar
from haliax._src.axis import AxisSpec, shape_dict
from haliax._src.errors import bad_value, format_shape, problem, wrong_type
from haliax._src.jax_compat import spec_entries
from haliax._src.layout_text import describe_devices, describe_mesh, describe_spec, table
from haliax._src.layouts import layout_for
from haliax._src.repr import describe_axes, describe_layout, dimension_names, dtype_and_shape, special_memory
from haliax._src.resources import MeshLike, check_mapping, manual_axes, resolve_mesh
from haliax._src.shard_grid import ShardGrid, check_fits, shard_grid, shard_sizes
from haliax._src.tree import is_named_array

_MAX_ROWS, _MAX_COLUMNS, _MAX_DEVICES = 16, 8, 4  # of a grid in a terminal, and in one of its cells
_GIVE_A_MESH = "Pass a NamedSharding, or call it under `with haliax.set_mesh(mesh):`."


def visualize_shardings(tree: Any) -> None:
    """Print how the arrays of a pytree are laid out: a table, or for a single array which device holds which part.

    Inside `jax.jit` or `named_jit` this prints when the program is compiled: before, JAX has not laid them out.

    Args:
        tree: A pytree of named or raw arrays, traced ones, or ShapeDtypeStructs with shardings; other leaves are left
            out.

    Source:
        `jax.debug.visualize_array_sharding`, `jax.debug.inspect_array_sharding`
    """
    leaves = placed_leaves(tree)
    alone = len(leaves) == 1 and not leaves[0].path
    waiting = {i for i, leaf in enumerate(leaves) if leaf.is_left_to_compiler}
    where = _inside_shard_map()
    if not waiting:
        print(_report(leaves, alone, where))
        return
    found: dict[int, Sharding] = {}

    def tell(i: int, sharding: Sharding) -> None:
        found[i] = sharding
        if found.keys() == waiting:
            known = [dataclasses.replace(leaf, sharding=found.get(i, leaf.sharding)) for i, leaf in enumerate(leaves)]
            found.clear()  # for the next time this program is compiled
            print(_report(known, alone, where))

    arrays = {i: leaves[i].array for i in waiting}
    leaves = list(map(_without_tracer, leaves))  # no tracer may outlive its trace
    for i, array in arrays.items():
        jax.debug.inspect_array_sharding(array, callback=functools.partial(tell, i))


def visualize_named_sharding(axes: AxisSpec, sharding: Sharding | PartitionSpec | Mapping[str, Any]) -> None:
    """Print which device holds which part of an array with these axes.

    Args:
        axes: The axes with their sizes.
        sharding: A sharding, on a mesh of devices or an abstract one; or, for the mesh in force, a PartitionSpec or a
            mapping from axis names to mesh axes.

    Raises:
        ValueError: If there is no mesh, or an axis does not divide over its mesh axes.

    Source:
        `jax.debug.visualize_sharding`
    """
    grid, layout = named_grid("visualize_named_sharding", axes, sharding)
    print("\n".join([layout, *grid_lines(grid)]))


def named_grid(op: str, axes: AxisSpec, sharding: Any) -> tuple[ShardGrid, str]:
    """The grid and the layout in words for the arguments of `visualize_named_sharding`."""
    shape = shape_dict(op, axes)
    if None in shape.values():
        given = f"the axes are {format_shape(shape)}"
        raise bad_value(op, given, "expected a size for each", "Pass Axis objects, or a mapping from names to sizes.")
    names, sizes = tuple(shape), tuple(size for size in shape.values() if size is not None)
    if isinstance(sharding, Mapping | PartitionSpec):
        mesh = resolve_mesh()
        if mesh is None:
            raise ValueError(problem(op, "there is no mesh", remedy=_GIVE_A_MESH))
        if isinstance(sharding, Mapping):
            sharding = layout_for(op, "the array", names, sizes, sharding, mesh)
        else:
            check_mapping(op, dict(zip(names, spec_entries(sharding), strict=False)), mesh)
            sharding = NamedSharding(mesh, sharding)  # pyright: ignore[reportArgumentType]  (AbstractMesh)
    if not isinstance(sharding, Sharding):
        raise wrong_type(op, "sharding", sharding, "a Sharding, a PartitionSpec or a mapping")
    check_fits(op, names, sizes, sharding)
    return shard_grid(names, sizes, sharding), describe_layout(sharding, names) or describe_devices(sharding)


# what is where


@dataclasses.dataclass(frozen=True)
class PlacedLeaf:
    """One array of a tree and its layout.

    Args:
        path: Where it is in the tree.
        array: The raw array.
        names: The names of its axes; `dim0`, `dim1`, ... if it has none that fit.
        type: Its dtype and axes in words.
        sharding: Its sharding, None if it has none or it is not known.
        note: Why there is no sharding; or what else there is to say, that it is deleted or JAX is free to move it.
    """

    path: str
    array: Any
    names: tuple[str, ...]
    type: str
    sharding: Sharding | None
    note: str

    @property
    def is_left_to_compiler(self) -> bool:
        """Whether the layout is known only when the program is compiled."""
        return isinstance(self.array, Tracer) and self.sharding is None and not self.note

    @property
    def bytes_per_device(self) -> int:
        """The size of one part; 0 if the layout is not known."""
        if self.sharding is None:
            return 0
        return math.prod(shard_sizes(self.array.shape, self.sharding)) * self.array.dtype.itemsize

    def where(self, meshes: Sequence[MeshLike]) -> str:
        """The PartitionSpec, with the number of the mesh if there are several, or the devices."""
        if self.sharding is None:
            return self.note
        if not isinstance(self.sharding, NamedSharding):
            return describe_devices(self.sharding) + self.note
        mesh = f" on mesh {meshes.index(self.sharding.mesh) + 1}" if len(meshes) > 1 else ""
        return describe_spec(self.sharding.spec) + mesh + self.note


def placed_leaves(tree: Any) -> list[PlacedLeaf]:
    """The arrays of a tree, named ones as leaves."""
    leaves, _ = tree_flatten_with_path(tree, is_leaf=is_named_array)
    return [
        _placed(keystr(path), leaf, raw_array_or_scalar(leaf))
        for path, leaf in leaves
        if dtype_and_shape(raw_array_or_scalar(leaf)) is not None
    ]


def _placed(path: str, leaf: Any, array: Any) -> PlacedLeaf:
    names = leaf.axis_names if is_named_array(leaf) else None
    fitting = names if names is not None and len(names) == len(array.shape) else dimension_names(array)
    sharding = _sharding(array)
    return PlacedLeaf(path, array, fitting, describe_axes(array, names), sharding, _note(array, sharding))


def _without_tracer(leaf: PlacedLeaf) -> PlacedLeaf:
    """The same with a stand-in for a tracer that has its shape and dtype."""
    if not isinstance(leaf.array, Tracer):
        return leaf
    return dataclasses.replace(leaf, array=jax.ShapeDtypeStruct(leaf.array.shape, leaf.array.dtype))


def _note(array: Any, sharding: Sharding | None) -> str:
    if isinstance(array, Tracer):
        return "mapped by vmap" if sharding is None and _is_mapped(array) else ""
    if sharding is None:
        return "on the host" if isinstance(array, np.ndarray | np.generic) else "not known"
    if not isinstance(array, jax.Array):
        return ""
    return " (deleted)" if array.is_deleted() else "" if array.committed else " (uncommitted)"


def _sharding(array: Any) -> Sharding | None:
    """The sharding of an array; of a traced one only if its type tells all of it."""
    if not isinstance(array, Tracer):
        sharding = getattr(array, "sharding", None)
        return sharding if isinstance(sharding, Sharding) else None
    sharding = getattr(jax.typeof(array), "sharding", None)
    known = isinstance(sharding, NamedSharding) and set(sharding.mesh.axis_types) == {AxisType.Explicit}
    return sharding if known else None


def _is_mapped(array: Any) -> bool:
    """Whether `jax.vmap` maps over a tracer: the layout that the compiler tells is then one of a bigger array."""
    while isinstance(array, Tracer):
        if hasattr(array, "batch_dim"):
            return True
        array = getattr(array, "primal", None)  # of a tracer of jax.grad
    return False


def _inside_shard_map() -> str:
    manual = sorted(manual_axes())
    return f"inside shard_map over {', '.join(manual)}: the parts of one device" if manual else ""


# as text


def _report(leaves: Sequence[PlacedLeaf], alone: bool, where: str) -> str:
    lines = _single(leaves[0]) if alone else _table(leaves)
    return "\n".join([where, *lines] if where else lines)


def _single(leaf: PlacedLeaf) -> list[str]:
    if leaf.sharding is None:
        return [f"{leaf.type}: {leaf.where(())}"]
    layout = describe_layout(leaf.sharding, leaf.names) or leaf.where(())
    each = " on each device" if len(_devices(leaf.sharding)) > 1 else ""
    memory = special_memory(leaf.sharding)
    heading = f"{leaf.type}: {layout}; {leaf.bytes_per_device:,} bytes{each}{memory and f' in {memory}'}"
    return [heading, *grid_lines(shard_grid(leaf.names, leaf.array.shape, leaf.sharding))]


def _table(leaves: Sequence[PlacedLeaf]) -> list[str]:
    if not leaves:
        return ["no arrays"]
    meshes = list(dict.fromkeys(leaf.sharding.mesh for leaf in leaves if isinstance(leaf.sharding, NamedSharding)))
    rows = [("array", "type", "sharding", "layout", "bytes/device", "memory")]
    rows += [_row(leaf, meshes) for leaf in leaves]
    rows.append(("total", "", "", "", f"{_most_held(leaves):,}", ""))
    if not any(row[-1] for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    numbers = [f" {i}" for i in range(1, len(meshes) + 1)] if len(meshes) > 1 else [""]
    return [*(f"mesh{i}: {describe_mesh(mesh)}" for i, mesh in zip(numbers, meshes, strict=False)), *table(rows)]


def _row(leaf: PlacedLeaf, meshes: Sequence[MeshLike]) -> tuple[str, ...]:
    if leaf.sharding is None:
        return (leaf.path, leaf.type, leaf.where(meshes), "-", "-", "")
    layout = describe_layout(leaf.sharding, leaf.names) or "-"
    return (
        leaf.path,
        leaf.type,
        leaf.where(meshes),
        layout,
        f"{leaf.bytes_per_device:,}",
        special_memory(leaf.sharding),
    )


def _most_held(leaves: Sequence[PlacedLeaf]) -> int:
    """The bytes on the device that holds most."""
    held: Counter[Any] = Counter()
    for leaf in leaves:
        for device in () if leaf.sharding is None else _devices(leaf.sharding):
            held[device] += leaf.bytes_per_device
    return max(held.values(), default=0)


def _devices(sharding: Sharding) -> Collection[Any]:
    """The devices of a sharding; the places of a mesh without devices."""
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh):
        return range(sharding.mesh.size)
    return sharding.device_set


def grid_lines(grid: ShardGrid) -> list[str]:
    """A grid as lines of text, with the middle left out where it is long."""
    rows, columns = _abridged(len(grid.rows), _MAX_ROWS), _abridged(len(grid.columns), _MAX_COLUMNS)
    cells = [
        [
            "..." if None in (i, j) else f"{grid.unit} {describe_ids(grid.cells[i][j])}"  # pyright: ignore
            for j in columns
        ]
        for i in rows
    ]
    left = ["..." if i is None else grid.rows[i] for i in rows]
    top = ["..." if j is None else grid.columns[j] for j in columns]
    lines = [[label, *line] for label, line in zip(left, cells, strict=True)]
    if any(top):
        lines.insert(0, ["", *top])
    return [f"  {line}" for line in table(lines if any(left) else [line[1:] for line in lines])]


def describe_ids(ids: Sequence[int]) -> str:
    """The numbers of a few devices, or the ends of many."""
    shown = list(map(str, ids))
    return ",".join(shown if len(shown) <= _MAX_DEVICES else [*shown[:2], "..", shown[-1]])


def _abridged(count: int, limit: int) -> list[int | None]:
    """Indices, with None in place of those in the middle if there are more than `limit`."""
    return list(range(count)) if count <= limit else [*range(limit - 2), None, count - 1]
