"""Making named arrays: from data, from a value, from a range, and from other named arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from haliax._src.array_base import (
    A,
    NamedArrayBase,
    are_shape_checks_enabled,
    as_places,
    check_axes,
    is_scalar,
    normalize_names,
    require_named,
    wrap,
)
from haliax._src.axis import Axis, AxisSelection, AxisSelector, AxisSpec, iter_axes, known_sizes
from haliax._src.broadcasting import alignment, as_named, broadcast_to, not_a_scalar
from haliax._src.errors import bad_value, duplicate_axes, format_shape, size_mismatch, wrong_type
from haliax._src.explicit_axes import laid_out_by_name
from haliax._src.named_array import NamedArray
from haliax._src.reshape import one_name
from haliax.types import DTypeLike

T = TypeVar("T")


# from data ----------------------------------------------------------------------------------------------------------


def named(a: Any, axis: AxisSelection) -> NamedArray:
    """Give names to the axes of an array.

    Args:
        a: An array, a nested list, a number, or a `jax.ShapeDtypeStruct`.
        axis: A name for each axis, or an Axis of its size: one, or a sequence or mapping of them. A string with several
            names between spaces stands for a sequence, unless the array has one axis.

    Returns:
        A named array around `a`.

    Raises:
        ValueError: If names repeat, or their number or a given size does not fit the array.
        TypeError: If `a` is a NamedArray already.
    """
    if isinstance(a, NamedArrayBase):
        remedy = "Use rename for other names, or rearrange for another order."
        raise wrong_type("named", "the array", a, "an array without names", remedy)
    array = a if isinstance(a, jax.Array | jax.ShapeDtypeStruct) else jnp.asarray(a)
    if isinstance(axis, str) and len(array.shape) != 1:
        axis = tuple(axis.split())
    names = normalize_names("named", axis)
    if are_shape_checks_enabled():
        check_axes("named", array.shape, names, axis)
    return wrap(array, names)


# from a value -------------------------------------------------------------------------------------------------------


def zeros(shape: AxisSpec, dtype: DTypeLike | None = None) -> NamedArray:
    """An array of zeros.

    Args:
        shape: The axes.
        dtype: The dtype, float32 if None.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.numpy.zeros`
    """
    names, sizes = names_and_sizes("zeros", shape)
    return wrap(jnp.zeros(sizes, dtype), names)


def ones(shape: AxisSpec, dtype: DTypeLike | None = None) -> NamedArray:
    """An array of ones.

    Args:
        shape: The axes.
        dtype: The dtype, float32 if None.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.numpy.ones`
    """
    names, sizes = names_and_sizes("ones", shape)
    return wrap(jnp.ones(sizes, dtype), names)


def full(shape: AxisSpec, fill_value: ArrayLike | NamedArray, dtype: DTypeLike | None = None) -> NamedArray:
    """An array that has one value everywhere, or a smaller array repeated along new axes.

    Args:
        shape: The axes.
        fill_value: A scalar, or a named array with axes among those of `shape`.
        dtype: The dtype, that of `fill_value` if None.

    Returns:
        An array with the axes of `shape`.

    Raises:
        ValueError: If `fill_value` has axes that are not in `shape`, or has no names.

    Source:
        `jax.numpy.full`
    """
    names, sizes = names_and_sizes("full", shape)
    if isinstance(fill_value, NamedArray):
        value = broadcast_to(fill_value, tuple(map(Axis, names, sizes)))
        return value if dtype is None else value.like(jnp.astype(value.array, dtype), names)
    if not is_scalar(fill_value):
        raise not_a_scalar("full", fill_value)
    return wrap(jnp.full(sizes, fill_value, dtype), names)


def zeros_like(a: T, dtype: DTypeLike | None = None) -> T:
    """An array of zeros with the axes of another array.

    Args:
        a: A named array with any axes, or a raw array.
        dtype: The dtype, that of `a` if None.

    Returns:
        An array like `a`.

    Source:
        `jax.numpy.zeros_like`
    """
    return _like(jnp.zeros_like, a, dtype=dtype)


def ones_like(a: T, dtype: DTypeLike | None = None) -> T:
    """An array of ones with the axes of another array.

    Args:
        a: A named array with any axes, or a raw array.
        dtype: The dtype, that of `a` if None.

    Returns:
        An array like `a`.

    Source:
        `jax.numpy.ones_like`
    """
    return _like(jnp.ones_like, a, dtype=dtype)


def full_like(a: T, fill_value: ArrayLike | NamedArrayBase, dtype: DTypeLike | None = None) -> T:
    """An array that has one value everywhere, with the axes of another array.

    Args:
        a: A named array with any axes, or a raw array.
        fill_value: A scalar.
        dtype: The dtype, that of `a` if None.

    Returns:
        An array like `a`.

    Source:
        `jax.numpy.full_like`
    """
    return _like(jnp.full_like, a, fill_value=_scalar("full_like", fill_value), dtype=dtype)


def _like(fn: Callable[..., Any], a: Any, **kwargs: Any) -> Any:
    if isinstance(a, NamedArrayBase):
        return a.like(fn(a.array, **kwargs), a.axis_names)
    return fn(a, **kwargs)


# from a range -------------------------------------------------------------------------------------------------------


def arange(
    axis: AxisSpec,
    *,
    start: ArrayLike | NamedArrayBase = 0,
    step: ArrayLike | NamedArrayBase = 1,
    dtype: DTypeLike | None = None,
) -> NamedArray:
    """Numbers in equal steps: `start`, `start + step`, ...

    Args:
        axis: The axis to number; of several axes, the last runs fastest.
        start: The first number; it may be traced.
        step: The difference of neighbours; it may be traced.
        dtype: The dtype; that of `start` and `step` together if None.

    Returns:
        An array with the axes of `axis`.

    Source:
        `jax.numpy.arange`
    """
    names, sizes = names_and_sizes("arange", axis)
    first, by = _scalar("arange", start), _scalar("arange", step)
    # counted in the common dtype of the steps, whatever that of the result: bfloat16 can not tell 256 from 257
    count = jnp.arange(math.prod(sizes), dtype=jnp.result_type(first, by))
    if not _is(by, 1):
        count = count * by
    if not _is(first, 0):
        count = count + first
    count = count if dtype is None else jnp.astype(count, dtype)
    return wrap(count if len(sizes) == 1 else jnp.reshape(count, sizes), names)


def _is(x: Any, number: int) -> bool:
    """Whether `x` is that very Python number, which needs no arithmetic."""
    return type(x) is int and x == number


def linspace(
    axis: AxisSelector | Mapping[str, int],
    *,
    start: ArrayLike | NamedArrayBase,
    stop: ArrayLike | NamedArrayBase,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
) -> NamedArray:
    """Numbers in equal steps from `start` to `stop`.

    Args:
        axis: The axis to fill; a name alone gives 50 numbers.
        start: The first number.
        stop: The last number, or where the next would be if `endpoint` is False.
        endpoint: Whether `stop` is the last number.
        dtype: The dtype, float32 if None.

    Returns:
        An array with the axis `axis`.

    Source:
        `jax.numpy.linspace`
    """
    return _spaced(jnp.linspace, axis, start, stop, endpoint=endpoint, dtype=dtype)


def logspace(
    axis: AxisSelector | Mapping[str, int],
    *,
    start: ArrayLike | NamedArrayBase,
    stop: ArrayLike | NamedArrayBase,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: DTypeLike | None = None,
) -> NamedArray:
    """Powers of `base` with exponents in equal steps from `start` to `stop`.

    Args:
        axis: The axis to fill; a name alone gives 50 numbers.
        start: The first exponent.
        stop: The last exponent, or where the next would be if `endpoint` is False.
        endpoint: Whether `stop` is the last exponent.
        base: The number to raise.
        dtype: The dtype, float32 if None.

    Returns:
        An array with the axis `axis`.

    Source:
        `jax.numpy.logspace`
    """
    return _spaced(jnp.logspace, axis, start, stop, endpoint=endpoint, base=base, dtype=dtype)


def geomspace(
    axis: AxisSelector | Mapping[str, int],
    *,
    start: ArrayLike | NamedArrayBase,
    stop: ArrayLike | NamedArrayBase,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
) -> NamedArray:
    """Numbers in equal ratios from `start` to `stop`.

    Args:
        axis: The axis to fill; a name alone gives 50 numbers.
        start: The first number.
        stop: The last number, or where the next would be if `endpoint` is False.
        endpoint: Whether `stop` is the last number.
        dtype: The dtype, float32 if None.

    Returns:
        An array with the axis `axis`.

    Source:
        `jax.numpy.geomspace`
    """
    return _spaced(jnp.geomspace, axis, start, stop, endpoint=endpoint, dtype=dtype)


def _spaced(fn: Callable[..., Any], axis: Any, start: Any, stop: Any, **kwargs: Any) -> NamedArray:
    """One of the functions that fill an axis between two numbers."""
    op = fn.__name__
    axes = list(iter_axes(op, axis))
    if len(axes) != 1:
        raise bad_value(op, f"{len(axes)} axes were given", "expected one axis")
    ((name, size),) = axes
    array = fn(_scalar(op, start), _scalar(op, stop), num=50 if size is None else size, **kwargs)
    return wrap(array, (name,))


# from named arrays --------------------------------------------------------------------------------------------------


def stack(axis: AxisSelector, arrays: Iterable[NamedArrayBase | ArrayLike]) -> NamedArray:
    """Join arrays along a new axis.

    Args:
        axis: The new axis: its name, or an Axis whose size is the number of arrays.
        arrays: Arrays with the same axes in any order, or scalars.

    Returns:
        An array with the new axis, then the axes of the first array; only the new axis if there are no arrays.

    Raises:
        ValueError: If the axes of the arrays differ, or they have the new one, or a given size is not their number.

    Source:
        `jax.numpy.stack`
    """
    return _stack(axis, [as_named("stack", a) for a in arrays])


@laid_out_by_name("stack")
def _stack(axis: AxisSelector, parts: Sequence[NamedArray]) -> NamedArray:
    name = one_name("stack", axis)
    if isinstance(axis, Axis) and axis.size != len(parts):
        raise size_mismatch("stack", name, axis.size, len(parts), "There must be one array for each index.")
    if not parts:
        return wrap(jnp.zeros((0,)), (name,))
    first = parts[0]
    if name in first.axis_names:
        remedy = "Use concatenate to join arrays along an axis that they have."
        raise duplicate_axes("stack", (name, *first.axis_names), remedy)
    raw = [_in_order_of("stack", first, part) for part in parts]
    return first.like(jnp.stack(raw), (name, *first.axis_names))


def concatenate(axis: AxisSelector, arrays: Iterable[A]) -> A:
    """Join arrays along an axis that all of them have.

    Args:
        axis: The axis: its name, or an Axis of the size of the result.
        arrays: Arrays with the same axes in any order; their sizes may differ along `axis`.

    Returns:
        An array with the axes of the first; only an empty axis if there are no arrays.

    Raises:
        ValueError: If the axis is missing, other axes differ, or the sizes do not add up to a given one.

    Source:
        `jax.numpy.concatenate`
    """
    return _concatenate(axis, [require_named("concatenate", a) for a in arrays])


@laid_out_by_name("concatenate")
def _concatenate(axis: AxisSelector, parts: Sequence[A]) -> A:
    name = one_name("concatenate", axis)
    total = sum(part._sizes()[part.require_axis("concatenate", name)] for part in parts)
    if isinstance(axis, Axis) and axis.size != total:
        raise size_mismatch("concatenate", name, axis.size, total, "The sizes of the arrays must add up to it.")
    if not parts:
        return wrap(jnp.zeros((0,)), (name,))
    first = parts[0]
    raw = [_in_order_of("concatenate", first, part, but=name) for part in parts]
    return first.like(jnp.concatenate(raw, first.axis_names.index(name)), first.axis_names)


def _in_order_of(op: str, first: NamedArrayBase, other: NamedArrayBase, but: str | None = None) -> Any:
    """The data of `other` with its axes in the order of `first`, which must be the same but for one's size."""
    wanted, given = first.shape, other.shape
    if wanted.keys() != given.keys() or any(given[name] != wanted[name] for name in wanted if name != but):
        raise bad_value(
            op,
            f"one array has {format_shape(wanted)} and another {format_shape(given)}",
            "expected the same axes" if but is None else f"expected the same axes but for the size of {but!r}",
        )
    return alignment(other.axis_names, first.axis_names)(other.array)


@laid_out_by_name("repeat")
def repeat(
    a: A,
    repeats: int | ArrayLike | NamedArrayBase,
    axis: AxisSelector,
    total_repeat_length: int | None = None,
) -> A:
    """Repeat each element along an axis.

    Args:
        a: A named array with any axes.
        repeats: How often: a number, or one number for each index of `axis`, as a named array with that axis or a raw
            array of rank 1.
        axis: The axis to repeat along.
        total_repeat_length: The size of the axis of the result, needed if `repeats` is traced.

    Returns:
        An array with the same axes, of which `axis` has another size.

    Raises:
        ValueError: If the axis is missing, or `repeats` has other axes.

    Source:
        `jax.numpy.repeat`
    """
    dim = require_named("repeat", a).require_axis("repeat", axis)
    counts: Any = repeats
    if isinstance(repeats, NamedArrayBase):
        name = a.axis_names[dim]
        if repeats.axis_names not in ((), (name,)):
            raise bad_value(
                "repeat", f"the repeats have {format_shape(repeats.shape)}", f"expected no axis but {name!r}"
            )
        counts = repeats.array
    return a.like(jnp.repeat(a.array, as_places(counts), dim, total_repeat_length=total_repeat_length), a.axis_names)


@laid_out_by_name("tile")
def tile(a: A, reps: Mapping[AxisSelector, int]) -> A:
    """Repeat an array as a whole along axes.

    Args:
        a: A named array with any axes.
        reps: How often, for each axis; an axis that `a` lacks is added in front.

    Returns:
        An array with the new axes, then those of `a`, each as many times as large.

    Raises:
        ValueError: If an Axis has another size than that of `a`.

    Source:
        `jax.numpy.tile`
    """
    require_named("tile", a)
    counts: dict[str, int] = {}
    for axis, count in reps.items():
        name = one_name("tile", axis)
        if name in a.axis_names:
            a.require_axis("tile", axis)
        counts[name] = count
    new = tuple(name for name in counts if name not in a.axis_names)
    names = (*new, *a.axis_names)
    return a.like(jnp.tile(a.array, tuple(counts.get(name, 1) for name in names)), names)


# shared -------------------------------------------------------------------------------------------------------------


def names_and_sizes(op: str, shape: AxisSpec) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The names, which must be distinct, and the sizes of the axes of a new array."""
    names, sizes = tuple(name for name, _ in iter_axes(op, shape)), tuple(known_sizes(op, shape))
    if len(set(names)) != len(names):
        raise duplicate_axes(op, names)
    return names, sizes


def _scalar(op: str, x: Any) -> Any:
    """A number, or an array of rank 0, without its wrapping."""
    if isinstance(x, NamedArrayBase):
        if x.axis_names:
            raise bad_value(op, f"an operand has {format_shape(x.shape)}", "expected a scalar")
        return x.array
    if not is_scalar(x):
        raise not_a_scalar(op, x)
    return x
