"""Updates of elements chosen by position, without mutation: `x.at["batch", 0].set(...)`.

The index is the one of `haliax._src.indexing`. Windows are read, updated as arrays of their own, and written back, so
that one inside the array costs a slice and an update in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypedDict, Unpack

import jax
import jax.numpy as jnp

from haliax._src.array_base import A, NamedArrayBase, is_scalar, require_named
from haliax._src.axis import AxisSelector
from haliax._src.broadcasting import alignment, not_a_scalar
from haliax._src.errors import bad_value, duplicate_axes, format_shape, size_mismatch, wrong_dtype
from haliax._src.indexing import (
    ALL,
    Index,
    Items,
    builtin_slice,
    over_paired,
    parse_index,
    plan_index,
    read,
    split_windows,
    spread_windows,
)
from haliax._src.windows import read_windows, write_windows


class Options(TypedDict, total=False):
    """What is known of the indices, and what happens out of bounds; see `jax.numpy.ndarray.at`."""

    indices_are_sorted: bool
    unique_indices: bool
    mode: Any


class GetOptions(Options, total=False):
    """`Options`, and what an element out of bounds reads as under `mode="fill"`."""

    fill_value: Any


class At(Generic[A]):
    """What `x.at` is: index it to choose the elements to update."""

    __slots__ = ("_array",)

    def __init__(self, array: A):
        """Remember the array."""
        self._array = array

    def __getitem__(self, index: Index) -> IndexedUpdate[A]:
        """The elements to update; the index is that of `x[...]`."""
        return IndexedUpdate(self._array, parse_index("at", self._array, index))


class IndexedUpdate(Generic[A]):
    """Chosen elements of an array, about to be read or updated.

    Each method that updates takes a scalar, or a named array whose axes are among those of the elements, and returns
    the whole array with the elements updated; the array itself stays as it is. Elements chosen more than once are
    updated more than once, `set` in no certain order. Updates out of bounds are dropped, unless `mode` says otherwise.

    The options are those of `jax.numpy.ndarray.at`.
    """

    __slots__ = ("_array", "_items")

    def __init__(self, array: A, items: Items):
        """Remember the array and the index in normal form."""
        self._array = array
        self._items = items

    def get(self, **options: Unpack[GetOptions]) -> A:
        """The elements themselves."""
        items = spread_windows(self._array, self._items, every=options.get("mode") is not None)
        return read(self._array, items, lambda x, index: x.at[index].get(**options))

    def set(self, update: Any, **options: Unpack[Options]) -> A:
        """Replace the elements."""
        return self._update("set", update, options)

    def add(self, update: Any, **options: Unpack[Options]) -> A:
        """Add to the elements."""
        return self._update("add", update, options)

    def subtract(self, update: Any, **options: Unpack[Options]) -> A:
        """Subtract from the elements."""
        return self._update("subtract", update, options)

    def multiply(self, update: Any, **options: Unpack[Options]) -> A:
        """Multiply the elements."""
        return self._update("multiply", update, options)

    mul = multiply

    def divide(self, update: Any, **options: Unpack[Options]) -> A:
        """Divide the elements."""
        return self._update("divide", update, options)

    def power(self, update: Any, **options: Unpack[Options]) -> A:
        """Raise the elements to a power."""
        return self._update("power", update, options)

    def min(self, update: Any, **options: Unpack[Options]) -> A:
        """Replace the elements that are larger."""
        return self._update("min", update, options)

    def max(self, update: Any, **options: Unpack[Options]) -> A:
        """Replace the elements that are smaller."""
        return self._update("max", update, options)

    def apply(self, func: Callable[[Any], Any], **options: Unpack[Options]) -> A:
        """Replace each element by what an elementwise function of raw arrays makes of it."""
        return write("at.apply", self._array, self._items, lambda x, at, _: x.at[at].apply(func, **options), 0, options)

    def _update(self, method: str, update: Any, options: Options) -> A:
        def on_raw(x: Any, at: Any, value: Any) -> Any:
            if method == "set" and all(item is ALL for item in at) and jnp.result_type(x, value) == x.dtype:
                return jnp.broadcast_to(value, x.shape).astype(x.dtype)  # no scatter to replace a window as a whole
            return getattr(x.at[at], method)(value, **options)

        return write(f"at.{method}", self._array, self._items, on_raw, update, options)


def write(
    op: str,
    array: A,
    items: Items,
    on_raw: Callable[[Any, tuple[Any, ...], Any], Any],
    update: Any,
    options: Options,
) -> A:
    """The array with the elements that an index chooses updated.

    Args:
        op: The operation, for error messages.
        array: The array.
        items: What to update of each dimension.
        on_raw: The update of a raw array at an index of `jax.numpy`.
        update: A scalar, or a named array with axes among those of the elements.
        options: The options of `on_raw`.
    """
    items = spread_windows(array, items, every=options.get("mode") is not None)
    plan = plan_index(op, array, items)
    update = _fitting_update(op, array, items, plan.result, update)
    windows, rest = split_windows(items)
    inside = read_windows(array.array, windows) if windows else array.array
    names = array.axis_names
    updated = over_paired(on_raw, names, rest, plan, names)(inside, update)
    return array.like(write_windows(array.array, windows, updated) if windows else updated, names)


def _fitting_update(op: str, array: NamedArrayBase, items: Items, result: tuple[str, ...], update: Any) -> Any:
    """An update that is known to fit: a named array, or a scalar without its wrapping."""
    if not isinstance(update, NamedArrayBase):
        if not is_scalar(update):
            raise not_a_scalar(op, update)
        return update
    if not update.axis_names:
        return update.array
    sizes = {name: _size_of(array, items, name) for name in result}
    for name, size in update.shape.items():
        if name not in sizes:
            given = f"the update has {format_shape(update.shape)}"
            raise bad_value(op, given, f"expected axes among those of the elements: {format_shape(sizes)}")
        if size != sizes[name]:
            raise size_mismatch(op, name, size, sizes[name], "The update must have the size that the elements have.")
    return update


def _size_of(array: NamedArrayBase, items: Items, name: str) -> int:
    """The size of one axis of the elements that an index chooses."""
    for item in items.values():
        if isinstance(item, NamedArrayBase) and name in item.axis_names:
            return item.shape[name]
    dim = array.axis_names.index(name)
    item, size = items.get(dim), array._sizes()[dim]
    if isinstance(item, builtin_slice):
        return len(range(*item.indices(size)))
    return size if item is None else item.size


def updated_slice(array: A, start: Mapping[AxisSelector, Any], update: A) -> A:
    """Replace consecutive elements along some axes.

    Args:
        array: A named array with any axes.
        start: Where to start, for each axis: an integer, which may be traced, or a named array of integers, whose axes
            are among those of `array`, for a start of its own at each of its indices.
        update: The new elements, with axes among those of `array`: as many along each axis as it has, all of an axis
            that it lacks.

    Returns:
        An array with the same axes. A traced start that leaves too little room is moved back, as in JAX.

    Raises:
        ValueError: If an axis is missing, or the update does not fit.
        TypeError: If the dtype of `array` can not hold that of the update.

    Source:
        `jax.lax.dynamic_update_slice`
    """
    op = "updated_slice"
    require_named(op, array)
    names, sizes = array.axis_names, array._sizes()
    raw = _full_update(op, array, require_named(op, update))
    starts: list[Any] = [0] * len(names)
    for axis, first in start.items():
        dim = array.require_axis(op, axis)
        starts[dim] = first
        if isinstance(first, int) and not 0 <= first + (sizes[dim] if first < 0 else 0) <= sizes[dim] - raw.shape[dim]:
            given = f"an update of {names[dim]}={raw.shape[dim]} starts at {first}"
            raise bad_value(op, given, f"expected it to end within {names[dim]}={sizes[dim]}")
    return array.like(_update_at(op, array, raw, starts), names)


def _full_update(op: str, array: NamedArrayBase, update: NamedArrayBase) -> Any:
    """The data of an update with the axes and the dtype of the array, complete along axes that it lacks."""
    for name, size in update.shape.items():
        full = array._sizes()[array.require_axis(op, name)]
        if size > full:
            raise size_mismatch(op, name, size, full, "An update can not be longer than the array.")
    dtype = array.array.dtype
    if jnp.promote_types(dtype, update.array.dtype) != dtype:
        raise wrong_dtype(op, "the update", update.array.dtype, f"what {dtype} can hold", "Use update.astype(...).")
    sizes = array.shape | update.shape
    aligned = alignment(update.axis_names, array.axis_names)(update.array)
    return jnp.broadcast_to(aligned, tuple(sizes.values())).astype(dtype)


def _raw_start(op: str, array: NamedArrayBase, dim: int, first: Any) -> Any:
    """The data of a start, once its axes are known to be among the others of the array."""
    if not isinstance(first, NamedArrayBase):
        return first
    for name, size in first.shape.items():
        other = array.require_axis(op, name)
        if other == dim:
            raise duplicate_axes(op, (*first.axis_names, name), "A start can not have the axis that it is for.")
        if size != array._sizes()[other]:
            raise size_mismatch(op, name, size, array._sizes()[other], "A start must have the sizes of the array.")
    return alignment(first.axis_names, tuple(n for n in array.axis_names if n in first.axis_names))(first.array)


def _update_at(op: str, array: NamedArrayBase, update: Any, starts: list[Any]) -> Any:
    """`jax.lax.dynamic_update_slice`, mapped over the axes of starts that are named."""
    names = array.axis_names
    of_starts = [first.axis_names if isinstance(first, NamedArrayBase) else () for first in starts]
    batch = [name for name in names if any(name in axes for axes in of_starts)]
    inner = [dim for dim, name in enumerate(names) if name not in batch]

    def mapped(x: Any, value: Any, places: list[Any]) -> Any:
        return jax.lax.dynamic_update_slice(x, value, [places[dim] for dim in inner])

    fn = mapped
    for level, name in reversed(list(enumerate(batch))):
        dim = names.index(name) - level
        shared = [0 if name in axes else None for axes in of_starts]
        fn = jax.vmap(fn, in_axes=(dim, dim, shared), out_axes=dim)
    return fn(array.array, update, [_raw_start(op, array, dim, first) for dim, first in enumerate(starts)])
