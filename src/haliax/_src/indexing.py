"""Choosing elements along axes by position: parse -> plan -> apply.

An index says for each of some axes what to take of it: an integer (the axis goes), a slice or a window (the axis
stays), or an array of integers, whose axes come in its place. Index arrays are broadcast by name against each other,
and against the axes that the array keeps: an index along "time" with axis "batch" takes one time for each batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from haliax._src.array_base import A, NamedArrayBase, raw_array_or_scalar, wrap
from haliax._src.at_index import TAKE, Step, at_index, or_zero
from haliax._src.axis import AxisSelector, axis_name
from haliax._src.dslice import dslice
from haliax._src.index_items import Index, Items, parse_index
from haliax._src.index_plan import Plan
from haliax._src.index_program import carry_out
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
        An array with the axes of `index` in the place of `axis`. If some of them are axes that the array keeps, these
        stay where they are, and what is new comes first.

    Raises:
        ValueError: If the axis is missing, or sizes differ.
        TypeError: If `index` is no index.

    Source:
        `jax.numpy.take`
    """
    taken = read("take", array, parse_index("take", array, {axis: index}))
    kept = tuple(name for name in array.axis_names if name != axis_name(axis))
    if not isinstance(index, NamedArrayBase) or not any(name in kept for name in index.axis_names):
        return taken
    order = (*(name for name in taken.axis_names if name not in kept), *kept)
    return permute(taken, tuple(taken.axis_names.index(name) for name in order))


# apply --------------------------------------------------------------------------------------------------------------


def read(op: str, array: A, items: Items, step: Step = TAKE) -> A:
    """The elements that an index in normal form chooses.

    Args:
        op: The operation, for error messages.
        array: The array.
        items: What to take of each dimension.
        step: How to take it.
    """
    return carry_out(_read, op, array, items, step) if items else array


def _read(op: str, array: A, items: Items, plan: Plan, step: Step, update: None) -> A:
    spread = spread_windows(array, items, every=step.has_mode)
    if spread is not items and not step.has_mode:
        step, spread = or_zero(step), {**spread, **nearest(array, items)}
    windows, rest = split_windows(spread)
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
    """The items with an index array in place of each window that has many starts, or of every window.

    They are the items themselves if there is no such window.
    """
    windows = {dim: item for dim, item in items.items() if isinstance(item, dslice)}
    if not any(every or isinstance(item.start, NamedArrayBase) for item in windows.values()):
        return items
    spread = dict(items)
    for dim, item in windows.items():
        if every or isinstance(item.start, NamedArrayBase):
            start = item.start if isinstance(item.start, NamedArrayBase) else wrap(jnp.asarray(item.start), ())
            first = jnp.where(start.array < 0, start.array + array.array.shape[dim], start.array)
            steps = jax.lax.broadcasted_iota(first.dtype, (*first.shape, item.size), first.ndim)
            places = first[..., None] + steps
            # a place before the start would count from the end: one more turn backwards, and it stays outside
            places = jnp.where(places < 0, places - array.array.shape[dim], places)
            spread[dim] = wrap(places, (*start.axis_names, array.axis_names[dim]))
    return spread


def nearest(array: NamedArrayBase, items: Items) -> Items:
    """The integers and index arrays among the items, with those out of bounds moved to the nearest element."""
    moved: Items = {}
    for dim, item in items.items():
        last = array.array.shape[dim] - 1
        if isinstance(item, int):
            moved[dim] = min(max(item + last + 1 if item < 0 else item, 0), last)
        elif not isinstance(item, slice | dslice):
            raw = raw_array_or_scalar(item)
            raw = jnp.clip(jnp.where(raw < 0, raw + last + 1, raw), 0, last)
            moved[dim] = item.like(raw, item.axis_names) if isinstance(item, NamedArrayBase) else raw
    return moved
