"""The parts of an index in normal form: which dimension, and what to take of it."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from haliax._src.array_base import NamedArrayBase, as_places, raw_array_or_scalar, require_named, wrap
from haliax._src.axis import AxisSelector
from haliax._src.dslice import dslice
from haliax._src.errors import bad_value, duplicate_axes, kind, problem, wrong_dtype, wrong_type

ALL = slice(None)
"""All of a dimension."""

NamedIndex: TypeAlias = Any
"""What stands for places along one axis: an int, a slice, a `dslice`, or an array of integers."""

SliceSpec: TypeAlias = tuple[Any, ...] | Mapping[AxisSelector, NamedIndex]
"""What `x[...]` takes: axes and items by turns, or a mapping."""

Index: TypeAlias = Any
"""The same, or `...` for all of it; mappings of names too, which to a type checker are none of selectors."""

Items = dict[int, Any]
"""What to take of each dimension: an int, a Python slice, a scalar array, a `dslice` of such, or a named array."""


def parse_index(op: str, array: NamedArrayBase, index: Index) -> Items:
    """The normal form of an index: for each dimension that is indexed, what to take of it.

    Args:
        op: The operation, for error messages.
        array: The array to be indexed.
        index: Pairs of axis and item, a mapping, or `...`.

    Returns:
        The items by dimension, in the order in which they were given.

    Raises:
        ValueError: If an axis is missing or given twice.
        TypeError: If an item is no index.
    """
    require_named(op, array)
    items: Items = {}
    for axis, item in _pairs(op, index):
        dim = array.require_axis(op, axis)
        if dim in items:
            raise duplicate_axes(op, [array.axis_names[d] for d in (*items, dim)])
        items[dim] = item if type(item) is int else _item(op, array.axis_names[dim], item)
    return items


def _pairs(op: str, index: Index) -> Iterator[tuple[AxisSelector, Any]]:
    if isinstance(index, tuple):
        if len(index) % 2:
            raise bad_value(op, f"{len(index)} items were given", "expected pairs of an axis and what to take of it")
        yield from zip(index[::2], index[1::2], strict=True)
    elif isinstance(index, Mapping):
        yield from index.items()
    elif index is not ...:
        remedy = 'Write x["batch", 0] or x[{"batch": 0}].'
        raise wrong_type(op, "the index", index, "pairs of an axis and what to take of it, or a mapping", remedy)


def _item(op: str, name: str, item: Any) -> Any:
    """The normal form of what is to be taken of one axis."""
    if isinstance(item, NamedArrayBase):
        return _array_item(op, name, item)
    if isinstance(item, slice):
        bounds = [_bound(op, name, bound) for bound in (item.start, item.stop, item.step)]
        if bounds[2] == 0:
            raise bad_value(op, f"the slice of axis {name!r} has step 0", "expected another step")
        return slice(*bounds)
    if isinstance(item, dslice):
        return dslice(_start(op, name, item.start), item.size)
    if isinstance(item, list):
        item = np.asarray(item, dtype=None if item else np.int32)
    if hasattr(item, "dtype"):
        return _array_item(op, name, item)
    if isinstance(item, bool) or not hasattr(item, "__index__"):
        expected = "an integer, a slice, a dslice, a NamedArray of integers or an unnamed one of rank 1"
        raise wrong_type(op, f"the index of axis {name!r}", item, expected)
    return operator.index(item)


def _array_item(op: str, name: str, item: Any) -> Any:
    named = isinstance(item, NamedArrayBase)
    raw = item.array if named else item
    if raw.dtype.kind not in "iu" and not jnp.issubdtype(raw.dtype, jnp.integer):  # the first is six times faster
        remedy = "For a mask use haliax.where, or haliax.nonzero for the places." if raw.dtype == bool else ""
        raise wrong_dtype(op, f"the index of axis {name!r}", raw.dtype, "integers", remedy)
    places = as_places(raw)
    if places.ndim == 0:
        return places
    if named:
        return item if places is raw else item.like(places, item.axis_names)
    if places.ndim > 1:
        given = f"the index of axis {name!r} is an unnamed array of shape {tuple(raw.shape)}"
        raise bad_value(op, given, "expected rank 0 or 1", "Name its axes with haliax.named(array, axes).")
    return wrap(places, (name,))


def _bound(op: str, name: str, bound: Any) -> int | None:
    raw = raw_array_or_scalar(bound)
    if raw is None or (hasattr(raw, "__index__") and not isinstance(raw, Tracer)):
        return None if raw is None else operator.index(raw)
    given = f"a bound of the slice of axis {name!r} is {kind(raw)}"
    raise TypeError(problem(op, given, "expected a static integer", "For a traced start use haliax.ds(start, size)."))


def _start(op: str, name: str, start: Any) -> Any:
    """The start of a `dslice`: an integer, a scalar array, or a named array whose elements start a slice each."""
    if isinstance(start, NamedArrayBase) and name in start.axis_names:
        raise duplicate_axes(
            op, (*start.axis_names, name), "The start of a dslice can not have the axis that it slices."
        )
    if not isinstance(start, NamedArrayBase) and getattr(start, "ndim", 0):
        given = f"the dslice of axis {name!r} starts at an unnamed array of shape {tuple(start.shape)}"
        raise bad_value(op, given, "expected rank 0", "Name its axes with haliax.named(array, axes).")
    return _item(op, name, start)
