"""Consecutive elements along axes: taken out, or replaced; a start may be traced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

import jax
import jax.numpy as jnp

from haliax._src.array_base import A, NamedArrayBase, as_places, is_scalar, raw_array_or_scalar, require_named
from haliax._src.axis import Axis, AxisSelector
from haliax._src.broadcasting import alignment
from haliax._src.errors import bad_value, duplicate_axes, size_mismatch, wrong_dtype, wrong_type
from haliax._src.explicit_axes import laid_out_by_name
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
    if all(isinstance(first, int) for first in starts):
        starts = [_fitting(*place) for place in zip(starts, sizes, array._sizes(), strict=True)]
        ends = [first + size for first, size in zip(starts, sizes, strict=True)]
        return array.like(jax.lax.slice(array.array, starts, ends), tuple(names))
    return array.like(jax.lax.dynamic_slice(array.array, of_one_dtype(starts), sizes), tuple(names))


def _one_start(name: str, start: Any) -> Any:
    if not is_scalar(raw_array_or_scalar(start)):
        remedy = "For a start at each index of another axis use array[axis, haliax.ds(start, size)]."
        raise bad_value("slice", f"axis {name!r} has several starts", "expected one", remedy)
    return as_places(raw_array_or_scalar(start))


def _fitting(start: int, length: int, size: int) -> int:
    """Where `jax.lax.dynamic_slice` starts a slice: not so late that it would go beyond the end."""
    return min(max(start + size if start < 0 else start, 0), size - length)


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
    return _update_at(op, array, array.like(raw, names), starts)


def _full_update(op: str, array: NamedArrayBase, update: NamedArrayBase) -> Any:
    """The data of an update with the axes and the dtype of the array, complete along axes that it lacks."""
    for name, size in update.shape.items():
        full = array._sizes()[array.require_axis(op, name)]
        if size > full:
            raise size_mismatch(op, name, size, full, "An update can not be longer than the array.")
    dtype = array.array.dtype
    if jnp.promote_types(dtype, update.array.dtype) != dtype:
        raise wrong_dtype(op, "the update", update.array.dtype, f"what {dtype} can hold", "Use update.astype(...).")
    sizes = {**array.shape, **update.shape}
    aligned = alignment(update.axis_names, array.axis_names)(update.array)
    return jnp.broadcast_to(aligned, tuple(sizes.values())).astype(dtype)


def _raw_start(op: str, array: NamedArrayBase, dim: int, first: Any) -> Any:
    """The data of a start, once its axes are known to be among the others of the array."""
    if not isinstance(first, NamedArrayBase):
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
    """`jax.lax.dynamic_update_slice`, mapped over the axes of starts that are named."""
    names = array.axis_names
    of_starts = [first.axis_names if isinstance(first, NamedArrayBase) else () for first in starts]
    batch = [name for name in names if any(name in axes for axes in of_starts)]
    inner = [dim for dim, name in enumerate(names) if name not in batch]

    def mapped(x: Any, value: Any, places: list[Any]) -> Any:
        return jax.lax.dynamic_update_slice(x, value, of_one_dtype([places[dim] for dim in inner]))

    fn = mapped
    for level, name in reversed(list(enumerate(batch))):
        dim = names.index(name) - level
        shared = [0 if name in axes else None for axes in of_starts]
        fn = jax.vmap(fn, in_axes=(dim, dim, shared), out_axes=dim)
    places = [_raw_start(op, array, dim, first) for dim, first in enumerate(starts)]
    return array.like(fn(array.array, update.array, places), names)
