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
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from haliax._src.array_base import A, NamedArrayBase, wrap
from haliax._src.axis import AxisSelector
from haliax._src.broadcasting import alignment, common_axes
from haliax._src.dslice import dslice
from haliax._src.errors import bad_value, size_mismatch
from haliax._src.index_items import ALL, Index, Items, parse_index
from haliax._src.rearrange import permute
from haliax._src.windows import read_windows

Names = tuple[str, ...]

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


def read(op: str, array: A, items: Items, get: Callable[[Any, Any], Any] = operator.getitem) -> A:
    """The elements that an index in normal form chooses.

    Args:
        op: The operation, for error messages.
        array: The array.
        items: What to take of each dimension.
        get: The function that takes elements of a raw array at an index of `jax.numpy`.
    """
    if not any(isinstance(item, dslice | NamedArrayBase) for item in items.values()):
        kept = (dim not in items or isinstance(items[dim], slice) for dim in range(len(array.axis_names)))
        names = tuple(itertools.compress(array.axis_names, kept))
        basic = tuple(items.get(dim, ALL) for dim in range(max(items, default=-1) + 1))
        return array.like(get(array.array, basic), names)
    spread = spread_windows(array, items)
    if spread is not items:
        get = _get_or_zero
    plan = plan_index(op, array, spread)
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
            steps = jax.lax.broadcasted_iota(first.dtype, (*first.shape, item.size), first.ndim)
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
    """The data of an array: the paired axes that it has, then all of `names`, with size 1 for those that it lacks."""
    batch = tuple(name for name in paired if name in array.axis_names)
    return alignment(array.axis_names, (*batch, *names))(array.array)
