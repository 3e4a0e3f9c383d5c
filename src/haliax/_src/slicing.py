"""Consecutive elements along axes: taken out, or replaced; a start may be traced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, overload

import jax
import jax.numpy as jnp

from haliax._src.array_base import A, NamedArrayBase, as_places, is_raw, is_scalar, raw_array_or_scalar, require_named
from haliax._src.axis import Axis, AxisSelector
from haliax._src.broadcasting import alignment
from haliax._src.errors import bad_value, check_integer, duplicate_axes, size_mismatch, wrong_dtype, wrong_type
from haliax._src.explicit_axes import laid_out_by_name
from haliax._src.jax_compat import is_in_trace
from haliax._src.reshape import check_distinct, one_name
from haliax._src.windows import of_one_dtype


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
    if not isinstance(length, Mapping):
        raise wrong_type("slice", "the length", length, "a mapping, as the start is one")
    lengths = {one_name("slice", axis): size for axis, size in length.items()}
    starts: list[Any] = [0] * len(array.axis_names)
    sizes, names = list(array._sizes()), list(array.axis_names)
    for axis, first in start.items():
        dim = array.require_axis("slice", axis)
        if names[dim] not in lengths:
            raise bad_value(
                "slice", f"axis {names[dim]!r} has a start and no length", "expected a length for each start"
            )
        size = lengths.pop(names[dim])
        if isinstance(size, Axis):
            names[dim], size = size.name, size.size
        check_integer("slice", "the length", size)
        if not 0 <= size <= sizes[dim]:
            raise bad_value("slice", f"length {size}", f"expected 0 to the size of the axis, {names[dim]}={sizes[dim]}")
        starts[dim], sizes[dim] = _one_start(names[dim], first), size
    if lengths:
        given = f"axis {next(iter(lengths))!r} has a length and no start"
        raise bad_value("slice", given, "expected a start for each length")
    check_distinct("slice", tuple(names))
    return _sliced(array, starts, sizes, names)


@laid_out_by_name("slice")
def _sliced(array: A, starts: list[Any], sizes: list[int], names: list[str]) -> A:
    """The array with its dimensions sliced, and other names."""
    static = all(isinstance(first, int) for first in starts)
    if static:
        starts = [_fitting(*place) for place in zip(starts, sizes, array._sizes(), strict=True)]
    if static and is_in_trace():
        ends = [first + size for first, size in zip(starts, sizes, strict=True)]
        return array.like(jax.lax.slice(array.array, starts, ends), tuple(names))
    # inside a trace starts that are known stay so
    cut = _cut if is_in_trace() else _cut_compiled
    return array.like(cut(tuple(sizes), array.array, starts), tuple(names))


def _cut(sizes: tuple[int, ...], x: Any, starts: list[Any]) -> Any:
    """`jax.lax.dynamic_slice` as one step, which serves all starts."""
    return jax.lax.dynamic_slice(x, of_one_dtype(starts), sizes)


_cut_compiled = jax.jit(_cut, static_argnums=0)


# the names that Python gives in its own messages about arguments
_slice_axis.__qualname__ = _slice_axes.__qualname__ = "slice"


def _one_start(name: str, start: Any) -> Any:
    raw = raw_array_or_scalar(start)
    if is_raw(raw) and not is_scalar(raw):
        remedy = "For a start at each index of another axis use array[axis, haliax.ds(start, size)]."
        raise bad_value("slice", f"axis {name!r} has several starts", "expected one", remedy)
    return as_places(_integer("slice", name, raw))


def _integer(op: str, name: str, start: Any) -> Any:
    """A start, once it is sure to be an integer."""
    if not is_raw(start):
        raise wrong_type(op, f"the start of axis {name!r}", start, "an integer")
    if not jnp.issubdtype(jnp.result_type(start), jnp.integer):
        raise wrong_dtype(op, f"the start of axis {name!r}", jnp.result_type(start), "an integer")
    return start


def _fitting(start: int, length: int, size: int) -> int:
    """Where `jax.lax.dynamic_slice` starts a slice: not so late that it would go beyond the end."""
    return min(max(start + size if start < 0 else start, 0), size - length)


def updated_slice(array: A, start: Mapping[AxisSelector, Any], update: A) -> A:
    """Replace consecutive elements along some axes.

    Args:
        array: A named array with any axes.
        start: Where to start, for each axis: an integer, which may be traced, or a named array of integers, whose axes
            are among those of `array`, for a start of its own at each of its indices.
        update: The new elements, with axes among those of `array`: as many along each axis as it has. Along an axis
            that it lacks it replaces one element, if the start there has axes, otherwise all.

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
    lengths = _lengths(op, array, require_named(op, update, "the update"))
    if not isinstance(start, Mapping):
        raise wrong_type(op, "the start", start, "a mapping from axes to starts")
    sizes = array._sizes()
    starts: list[Any] = [0] * len(sizes)
    for axis, first in start.items():
        dim = array.require_axis(op, axis)
        starts[dim] = first
        if isinstance(first, int) and not 0 <= first + (sizes[dim] if first < 0 else 0) <= sizes[dim] - lengths[dim]:
            name = array.axis_names[dim]
            given = f"an update of {name}={lengths[dim]} starts at {first}"
            raise bad_value(op, given, f"expected it to end within {name}={sizes[dim]}")
    return _update_at(op, array, update, starts)


def _lengths(op: str, array: NamedArrayBase, update: NamedArrayBase) -> list[int]:
    """How much of each dimension an update replaces, once it is known to fit."""
    lengths = list(array._sizes())
    for name, size in update.shape.items():
        dim = array.require_axis(op, name)
        if size > lengths[dim]:
            raise size_mismatch(op, name, size, lengths[dim], "An update can not be longer than the array.")
        lengths[dim] = size
    dtype = array.array.dtype
    if jnp.promote_types(dtype, update.array.dtype) != dtype:
        raise wrong_dtype(op, "the update", update.array.dtype, f"what {dtype} can hold", "Use update.astype(...).")
    return lengths


def _raw_start(op: str, array: NamedArrayBase, dim: int, first: Any) -> Any:
    """The data of a start, once its axes are known to be among the others of the array."""
    _integer(op, array.axis_names[dim], raw_array_or_scalar(first))
    if not isinstance(first, NamedArrayBase):
        if not is_scalar(first):
            given = f"the start of axis {array.axis_names[dim]!r} is an unnamed array of shape {first.shape}"
            raise bad_value(op, given, "expected rank 0", "Name its axes with haliax.named(array, axes).")
        return as_places(first)
    for name, size in first.shape.items():
        other = array.require_axis(op, name)
        if other == dim:
            raise duplicate_axes(op, (*first.axis_names, name), "A start can not have the axis that it is for.")
        if size != array._sizes()[other]:
            raise size_mismatch(op, name, size, array._sizes()[other], "A start must have the sizes of the array.")
    return alignment(first.axis_names, tuple(n for n in array.axis_names if n in first.axis_names))(
        as_places(first.array)
    )


@laid_out_by_name("updated_slice")
def _update_at(op: str, array: A, update: A, starts: list[Any]) -> A:
    names = array.axis_names
    of_starts = tuple([first.axis_names if isinstance(first, NamedArrayBase) else () for first in starts])
    axes = _Axes(names, update.axis_names, of_starts)
    places = [_raw_start(op, array, dim, first) for dim, first in enumerate(starts)]
    update_at = _replaced if is_in_trace() else _replaced_compiled
    return array.like(update_at(axes, array.array, update.array, places), names)


class _Axes(NamedTuple):
    """The axes of the operands of `updated_slice`."""

    array: tuple[str, ...]
    update: tuple[str, ...]
    starts: tuple[tuple[str, ...], ...]


def _replaced(axes: _Axes, x: Any, update: Any, starts: list[Any]) -> Any:
    """`jax.lax.dynamic_update_slice`, mapped over the axes of starts that are named."""
    names = axes.array
    batch = [name for name in names if any(name in of_start for of_start in axes.starts)]
    inner = [dim for dim, name in enumerate(names) if name not in batch]

    def mapped(x: Any, value: Any, starts: list[Any]) -> Any:
        return jax.lax.dynamic_update_slice(x, value, of_one_dtype([starts[dim] for dim in inner]))

    fn = mapped
    for level, name in reversed(list(enumerate(batch))):
        dim = names.index(name) - level
        shared = [0 if name in of_start else None for of_start in axes.starts]
        fn = jax.vmap(fn, in_axes=(dim, dim, shared), out_axes=dim)
    sizes = {name: 1 if of_start else size for name, size, of_start in zip(names, x.shape, axes.starts, strict=True)}
    sizes |= dict(zip(axes.update, update.shape, strict=True))
    full = jnp.broadcast_to(alignment(axes.update, names)(update), tuple(sizes.values())).astype(x.dtype)
    return fn(x, full, starts)


_replaced_compiled = jax.jit(_replaced, static_argnums=0)
