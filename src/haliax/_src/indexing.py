"""Choosing elements along axes by position: parse -> plan -> apply.

An index says for each of some axes what to take of it: an integer (the axis goes), a slice or a window (the axis
stays), or an array of integers, whose axes come in its place. Index arrays are broadcast by name against each other,
and against the axes that the array keeps: an index along "time" with axis "batch" takes one time for each batch.

The plan is made of names; it says which names the result has and in which order. That is the order of numpy: the axes
of the index arrays are in the place of the axes indexed if those are neighbours, otherwise in front.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

import jax
import jax.numpy as jnp
import numpy as np

from haliax._src.array_base import A, NamedArrayBase, raw_array_or_scalar, require_named, wrap
from haliax._src.axis import Axis, AxisSelector
from haliax._src.broadcasting import alignment, common_axes
from haliax._src.dslice import dslice
from haliax._src.errors import bad_value, duplicate_axes, size_mismatch, wrong_dtype, wrong_type
from haliax._src.rearrange import permute
from haliax._src.reshape import check_distinct, one_name
from haliax._src.windows import read_windows

Names = tuple[str, ...]

builtin_slice = builtins.slice
"""The `slice` of Python, whose name a function of this module takes."""

ALL = builtin_slice(None)
"""All of a dimension."""

Index = Any
"""What `x[...]` takes: pairs of axis and item, a mapping, or `...`."""


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
    return read(array, parse_index("index", array, slices))


def getitem(array: A, index: Index) -> A:
    """`array["batch", 0, "time", 2:5]` or `array[{"batch": 0, "time": slice(2, 5)}]`; see `haliax.index`."""
    return read(array, parse_index("index", array, index))


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
    return read(array, parse_index("take", array, {axis: index}))


@overload
def slice(
    array: A, axis: AxisSelector, new_axis: AxisSelector | None = None, start: Any = 0, length: int | None = None
) -> A: ...
@overload
def slice(array: A, start: Mapping[AxisSelector, Any], length: Mapping[AxisSelector, int | Axis]) -> A: ...
def slice(array: Any, *args: Any, **kwargs: Any) -> Any:
    """Take consecutive elements along one axis, or along several.

    Args:
        array: A named array with any axes.
        *args: The axis, the axis to call it (an Axis gives the length too), the start (0) and the length. Or two
            mappings, from axes to starts and to lengths; an Axis as a length renames the axis.
        **kwargs: The same as `axis`, `new_axis`, `start`, `length`.

    Returns:
        An array in which the axes sliced have the given lengths. A start may be traced; a slice that would go beyond
        the end starts earlier instead.

    Raises:
        ValueError: If an axis is missing, or a length is missing or longer than the axis.

    Source:
        `jax.lax.dynamic_slice`
    """
    if isinstance(kwargs.get("start", args[0] if args else None), Mapping):
        return _slice_axes(array, *args, **kwargs)
    return _slice_axis(array, *args, **kwargs)


def _slice_axis(
    array: A, axis: AxisSelector, new_axis: AxisSelector | None = None, start: Any = 0, length: int | None = None
) -> A:
    if isinstance(new_axis, Axis) and length is None:
        length = new_axis.size
    if length is None:
        raise bad_value("slice", "no length was given", "expected length, or an Axis as new_axis")
    if isinstance(new_axis, Axis) and new_axis.size != length:
        raise size_mismatch("slice", new_axis.name, new_axis.size, length, "It must have the length of the slice.")
    name = axis if new_axis is None else new_axis
    return _slice_axes(array, {axis: start}, {axis: Axis(one_name("slice", name), length)})


def _slice_axes(array: A, start: Mapping[AxisSelector, Any], length: Mapping[AxisSelector, int | Axis]) -> A:
    require_named("slice", array)
    lengths = {one_name("slice", axis): size for axis, size in length.items()}
    starts: list[Any] = [0] * len(array.axis_names)
    sizes, names = list(array._sizes()), list(array.axis_names)
    for axis, first in start.items():
        dim = array.require_axis("slice", axis)
        if names[dim] not in lengths:
            raise bad_value("slice", f"axis {names[dim]!r} has a start and no length", "expected a length for each start")
        size = lengths.pop(names[dim])
        if isinstance(size, Axis):
            names[dim], size = size.name, size.size
        if not 0 <= size <= sizes[dim]:
            raise bad_value("slice", f"length {size}", f"expected 0 to the size of the axis, {names[dim]}={sizes[dim]}")
        starts[dim], sizes[dim] = raw_array_or_scalar(first), size
    if lengths:
        given = f"axis {next(iter(lengths))!r} has a length and no start"
        raise bad_value("slice", given, "expected a start for each length")
    check_distinct("slice", tuple(names))
    if all(isinstance(first, int) for first in starts):
        starts = [_fitting(*place) for place in zip(starts, sizes, array._sizes(), strict=True)]
        ends = [first + size for first, size in zip(starts, sizes, strict=True)]
        return array.like(jax.lax.slice(array.array, starts, ends), tuple(names))
    return array.like(jax.lax.dynamic_slice(array.array, starts, sizes), tuple(names))


def _fitting(start: int, length: int, size: int) -> int:
    """Where `jax.lax.dynamic_slice` starts a slice: not so late that it would go beyond the end."""
    return min(max(start + size if start < 0 else start, 0), size - length)


# parse --------------------------------------------------------------------------------------------------------------

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
    if isinstance(index, Mapping):
        yield from index.items()
    elif isinstance(index, tuple):
        if len(index) % 2:
            raise bad_value(op, f"{len(index)} items were given", "expected pairs of an axis and what to take of it")
        yield from zip(index[::2], index[1::2], strict=True)
    elif index is not ...:
        remedy = 'Write x["batch", 0] or x[{"batch": 0}].'
        raise wrong_type(op, "the index", index, "pairs of an axis and what to take of it, or a mapping", remedy)


def _item(op: str, name: str, item: Any) -> Any:
    """The normal form of what is to be taken of one axis."""
    if isinstance(item, builtin_slice):
        return builtin_slice(*(_bound(op, name, bound) for bound in (item.start, item.stop, item.step)))
    if isinstance(item, dslice):
        return dslice(_start(op, name, item.start), item.size)
    if isinstance(item, list):
        item = np.asarray(item, dtype=None if item else np.int32)
    if not hasattr(item, "dtype"):
        try:
            return _not_bool(op, name, item, operator.index(item))
        except TypeError:
            expected = "an integer, a slice, a dslice, a NamedArray of integers or an unnamed one of rank 1"
            raise wrong_type(op, f"the index of axis {name!r}", item, expected) from None
    return _array_item(op, name, item)


def _array_item(op: str, name: str, item: Any) -> Any:
    named = item if isinstance(item, NamedArrayBase) else None
    raw = raw_array_or_scalar(item)
    if not jnp.issubdtype(raw.dtype, jnp.integer):
        remedy = "For a mask use haliax.where, or haliax.nonzero for the places." if raw.dtype == bool else ""
        raise wrong_dtype(op, f"the index of axis {name!r}", raw.dtype, "integers", remedy)
    if raw.ndim == 0:
        return raw
    if named is None and raw.ndim > 1:
        given = f"the index of axis {name!r} is an unnamed array of shape {tuple(raw.shape)}"
        raise bad_value(op, given, "expected rank 0 or 1", "Name its axes with haliax.named(array, axes).")
    return wrap(raw, (name,)) if named is None else named


def _bound(op: str, name: str, bound: Any) -> int | None:
    try:
        return None if bound is None else operator.index(raw_array_or_scalar(bound))
    except (TypeError, jax.errors.JAXTypeError):
        remedy = "For a start that is traced use haliax.ds(start, size)."
        raise wrong_type(op, f"a bound of the slice of axis {name!r}", bound, "a static integer", remedy) from None


def _start(op: str, name: str, start: Any) -> Any:
    """The start of a `dslice`: an integer, a scalar array, or a named array whose elements start a slice each."""
    if isinstance(start, NamedArrayBase) and name in start.axis_names:
        raise duplicate_axes(op, (*start.axis_names, name), "The start of a dslice can not have the axis that it slices.")
    if not isinstance(start, NamedArrayBase) and getattr(start, "ndim", 0):
        given = f"the dslice of axis {name!r} starts at an unnamed array of shape {tuple(start.shape)}"
        raise bad_value(op, given, "expected rank 0", "Name its axes with haliax.named(array, axes).")
    return _item(op, name, start)


def _not_bool(op: str, name: str, item: Any, value: int) -> int:
    if isinstance(item, bool):
        raise wrong_dtype(op, f"the index of axis {name!r}", "bool", "integers")
    return value


# plan ---------------------------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """One indexed dimension, as the plan sees it: the axes of its index, and whether it keeps its own."""

    dim: int
    axes: Names
    kept: bool


class Plan(NamedTuple):
    """The names at each step of an indexing operation."""

    paired: Names
    """Axes that index arrays share with the array: batch axes of the operation on the rest."""
    block: Names
    """The other axes of index arrays, which replace the axes indexed."""
    inner: Names
    """The axes of the result but for the paired ones, in the order in which JAX leaves them."""
    result: Names
    """The axes of the result, in the order promised."""


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
    inner = _placed(block, rest, [rest.index(names[dim]) for dim in gone])
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
        if isinstance(item, builtin_slice):
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
        if isinstance(items.get(dim), builtin_slice):
            given = f"axis {name!r} is sliced, and an axis of an index array"
            raise bad_value(op, given, "expected one of both", "Slice the array first.")
        size = items[dim].size if dim in items else array._sizes()[dim]
        if sizes[name] != size:
            raise size_mismatch(op, name, sizes[name], size, "An index along another axis must have the size of this one.")
    return plan


# apply --------------------------------------------------------------------------------------------------------------


def read(array: A, items: Items, get: Callable[[Any, Any], Any] = operator.getitem) -> A:
    """The elements that an index in normal form chooses.

    Args:
        array: The array.
        items: What to take of each dimension.
        get: The function that takes elements of a raw array at an index of `jax.numpy`.
    """
    if not any(isinstance(item, dslice | NamedArrayBase) for item in items.values()):
        kept = (dim not in items or isinstance(items[dim], builtin_slice) for dim in range(len(array.axis_names)))
        names = tuple(itertools.compress(array.axis_names, kept))
        basic = tuple(items.get(dim, ALL) for dim in range(max(items, default=-1) + 1))
        return array.like(get(array.array, basic), names)
    spread = spread_windows(array, items)
    if spread is not items:
        get = _get_or_zero
    plan = plan_index("index", array, spread)
    windows, rest = split_windows(spread)
    raw = read_windows(array.array, windows) if windows else array.array
    names = array.axis_names
    if rest:
        straight = tuple(name for name in plan.result if name not in plan.paired) == plan.inner
        names = plan.result if straight else (*plan.paired, *plan.inner)
        raw = over_paired(lambda x, at, _: get(x, at), array.axis_names, rest, plan, names)(raw)
    return permute(array.like(raw, names), tuple(names.index(name) for name in plan.result))


def _get_or_zero(x: Any, at: Any) -> Any:
    """Elements, and zero out of bounds, as a window reads them."""
    return x.at[at].get(mode="fill", fill_value=0)


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
            steps = jnp.arange(item.size, dtype=first.dtype)
            spread[dim] = wrap(first[..., None] + steps, (*start.axis_names, array.axis_names[dim]))
    return items if spread == items else spread


def over_paired(
    fn: Callable[[Any, tuple[Any, ...], Any], Any], names: Names, items: Items, plan: Plan, out: Names
) -> Callable[..., Any]:
    """A function of raw arrays at an index of `jax.numpy`, mapped over the paired axes.

    Args:
        fn: A function of a raw array, an index of `jax.numpy`, and a raw update.
        names: The axes of the raw array.
        items: What to take of each dimension; no windows.
        plan: The plan for these items.
        out: The axes of what the mapped function returns.

    Returns:
        A function of a raw array and, if there is one, an update (a named array or a scalar).
    """
    indices = {dim: item for dim, item in items.items() if isinstance(item, NamedArrayBase)}
    dims = [dim for dim, name in enumerate(names) if name not in plan.paired]

    def at_index(x: Any, raw_indices: tuple[Any, ...], update: Any) -> Any:
        chosen = {**items, **dict(zip(indices, raw_indices, strict=True))}
        return fn(x, tuple(chosen.get(dim, ALL) for dim in dims), update)

    def call(x: Any, update: Any = None) -> Any:
        mapped = at_index
        for level in reversed(range(len(plan.paired))):
            name, outer = plan.paired[level], plan.paired[:level]
            places = [[n for n in of if n not in outer].index(name) for of in (names, out)]
            shared = tuple(0 if name in index.axis_names else None for index in indices.values())
            with_update = 0 if isinstance(update, NamedArrayBase) and name in update.axis_names else None
            mapped = jax.vmap(mapped, in_axes=(places[0], shared, with_update), out_axes=places[1])
        raw_indices = tuple(_batch_first(index, plan.paired, plan.block) for index in indices.values())
        if isinstance(update, NamedArrayBase):
            update = _batch_first(update, plan.paired, plan.inner)
        return mapped(x, raw_indices, update)

    return call


def _batch_first(array: NamedArrayBase, paired: Names, names: Names) -> Any:
    """The data of an array with the paired axes that it has in front, then all of `names`, of size 1 where it has none."""
    batch = tuple(name for name in paired if name in array.axis_names)
    return alignment(array.axis_names, (*batch, *names))(array.array)
