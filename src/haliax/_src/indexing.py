"""Choosing elements along axes by position: parse -> plan -> apply.

An index says for each of some axes what to take of it: an integer (the axis goes), a slice or a window (the axis
stays), or an array of integers, whose axes come in its place. Index arrays are broadcast by name against each other,
and against the axes that the array keeps: an index along "time" with axis "batch" takes one time for each batch.

The plan is made of names; it says which names the result has and in which order. That is the order of numpy: the axes
of the index arrays are in the place of the axes indexed if those are neighbours, otherwise in front.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from haliax._src.array_base import A, NamedArrayBase, wrap
from haliax._src.at_index import TAKE, TAKE_OR_ZERO, Names, Plan, Step, at_index
from haliax._src.axis import AxisSelector
from haliax._src.broadcasting import common_axes
from haliax._src.dslice import dslice
from haliax._src.errors import bad_value, size_mismatch
from haliax._src.explicit_axes import REFUSALS, by_name
from haliax._src.index_items import ALL, Index, Items, parse_index, put_together, take_apart
from haliax._src.rearrange import permute
from haliax._src.windows import read_windows

# public functions ---------------------------------------------------------------------------------------------------


def index(array: A, slices: Mapping[AxisSelector, Any]) -> A:
    """Choose elements by their positions along axes; the function behind `array[...]`.

    Args:
        array: A named array with any axes.
        slices: What to take of each axis: an integer, a slice, a `dslice`, a named array of integers, or an unnamed
            one of rank 1, which replaces its axis. Out of bounds, integers take the nearest element, a `dslice` zero.

    Returns:
        An array without the axes indexed by integers. The axes of index arrays take the place of the axes indexed, if
        those are neighbours; otherwise they come first.

    Raises:
        ValueError: If an axis is missing or given twice, or sizes differ.
        TypeError: If an item is no index.

    Source:
        `jax.numpy.ndarray.__getitem__`
    """
    return read("index", array, parse_index("index", array, slices))


def getitem(array: A, index: Index) -> A:
    """`array["batch", 0, "time", 2:5]` or `array[{"batch": 0, "time": slice(2, 5)}]`; see `haliax.index`."""
    return read("index", array, parse_index("index", array, index))


def take(array: A, axis: AxisSelector, index: Any) -> A:
    """Choose elements by their positions along one axis.

    Args:
        array: A named array with any axes.
        axis: The axis to take from.
        index: An integer, a named array of integers, or an unnamed one of rank 1, which replaces the axis. Out of
            bounds it takes the nearest element.

    Returns:
        An array with the axes of `index` in the place of `axis`.

    Raises:
        ValueError: If the axis is missing, or sizes differ.
        TypeError: If `index` is no index.

    Source:
        `jax.numpy.take`
    """
    return read("take", array, parse_index("take", array, {axis: index}))


# plan ---------------------------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """One indexed dimension, as the plan sees it: the axes of its index, and whether it keeps its own."""

    dim: int
    axes: Names
    kept: bool


@functools.lru_cache(maxsize=4096)
def make_plan(names: Names, entries: tuple[Entry, ...], union: Names) -> Plan:
    """The plan for an array with axes `names`.

    Args:
        names: The axes of the array.
        entries: The dimensions indexed by anything but a Python slice.
        union: The axes of all index arrays and windows, in the order in which they go into the result.
    """
    gone = [entry.dim for entry in entries if not entry.kept]
    kept = [name for dim, name in enumerate(names) if dim not in gone]
    of_arrays = {name for entry in entries if not entry.kept for name in entry.axes}
    paired = tuple(name for name in union if name in of_arrays and name in kept)
    block = tuple(name for name in union if name in of_arrays and name not in kept)

    rest = tuple(name for name in names if name not in paired)
    inner = _placed(block, rest, sorted(rest.index(names[dim]) for dim in gone))
    advanced = {entry.dim for entry in entries} | {names.index(name) for name in paired}
    return Plan(paired, block, inner, _placed(union, names, sorted(advanced)))


def _placed(block: Names, names: Names, dims: Sequence[int]) -> Names:
    """`names` with a block in the place of the dimensions `dims` if they are neighbours, otherwise in front."""
    rest = tuple(name for dim, name in enumerate(names) if dim not in dims)
    together = bool(dims) and list(dims) == list(range(dims[0], dims[0] + len(dims)))
    place = dims[0] if together else 0
    return (*rest[:place], *block, *rest[place:])


def plan_index(op: str, array: NamedArrayBase, items: Items) -> Plan:
    """The plan for an index in normal form, once the sizes are known to agree."""
    entries: list[Entry] = []
    indices: list[NamedArrayBase] = []
    for dim, item in items.items():
        if isinstance(item, slice):
            continue
        if isinstance(item, dslice):
            item = wrap(jax.ShapeDtypeStruct((item.size,), np.int32), (array.axis_names[dim],))
        axes = item.axis_names if isinstance(item, NamedArrayBase) else ()
        if axes:
            indices.append(item)
        entries.append(Entry(dim, axes, isinstance(items[dim], dslice)))
    union = common_axes(op, indices, require_subset=False) if indices else ()
    plan = make_plan(array.axis_names, tuple(entries), tuple(axis.name for axis in union))
    sizes = {axis.name: axis.size for axis in union}
    for name in plan.paired:
        dim = array.axis_names.index(name)
        if isinstance(items.get(dim), slice):
            given = f"axis {name!r} is sliced, and an axis of an index array"
            raise bad_value(op, given, "expected one of both", "Slice the array first.")
        size = items[dim].size if dim in items else array._sizes()[dim]
        if sizes[name] != size:
            raise size_mismatch(
                op, name, sizes[name], size, "An index along another axis must have the size of this one."
            )
    return plan


# apply --------------------------------------------------------------------------------------------------------------


def read(op: str, array: A, items: Items, step: Step = TAKE) -> A:
    """The elements that an index in normal form chooses.

    Args:
        op: The operation, for error messages.
        array: The array.
        items: What to take of each dimension.
        step: How to take it.
    """
    try:
        return _read(op, array, items, step)
    except REFUSALS as refusal:
        return by_name(op, refusal, lambda x, parts: _read(op, x, put_together(parts), step), array, take_apart(items))


def _read(op: str, array: A, items: Items, step: Step) -> A:
    if not any(isinstance(item, dslice | NamedArrayBase) for item in items.values()):
        kept = (dim not in items or isinstance(items[dim], slice) for dim in range(len(array.axis_names)))
        names = tuple(itertools.compress(array.axis_names, kept))
        basic = tuple(items.get(dim, ALL) for dim in range(max(items, default=-1) + 1))
        return array.like(step(array.array, basic, None), names)
    if any(isinstance(item, dslice) and isinstance(item.start, NamedArrayBase) for item in items.values()):
        items, step = spread_windows(array, items), TAKE_OR_ZERO
    plan = plan_index(op, array, items)
    windows, rest = split_windows(items)
    raw = read_windows(array.array, windows) if windows else array.array
    names = array.axis_names
    if rest:
        straight = tuple(name for name in plan.result if name not in plan.paired) == plan.inner
        names = plan.result if straight else (*plan.paired, *plan.inner)
        raw = at_index(step, raw, array.axis_names, rest, plan, names)
    return permute(array.like(raw, names), tuple(names.index(name) for name in plan.result))


def split_windows(items: Items) -> tuple[dict[int, dslice], Items]:
    """The windows, and the other items."""
    windows = {dim: item for dim, item in items.items() if isinstance(item, dslice)}
    return windows, {dim: item for dim, item in items.items() if dim not in windows}


def spread_windows(array: NamedArrayBase, items: Items, *, every: bool = False) -> Items:
    """The items with an index array in place of each window that has many starts, or of every window."""
    spread = dict(items)
    for dim, item in items.items():
        if isinstance(item, dslice) and (every or isinstance(item.start, NamedArrayBase)):
            start = item.start if isinstance(item.start, NamedArrayBase) else wrap(jnp.asarray(item.start), ())
            first = jnp.where(start.array < 0, start.array + array.array.shape[dim], start.array)
            steps = jax.lax.broadcasted_iota(first.dtype, (*first.shape, item.size), first.ndim)
            spread[dim] = wrap(first[..., None] + steps, (*start.axis_names, array.axis_names[dim]))
    return spread
