"""Making named arrays: from data, from a value and from a range."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from haliax._src.array_base import (
    NamedArrayBase,
    are_shape_checks_enabled,
    check_axes,
    normalize_names,
    wrap,
)
from haliax._src.axis import Axis, AxisSelection, AxisSelector, AxisSpec, iter_axes, known_sizes
from haliax._src.broadcasting import as_scalar, broadcast_to
from haliax._src.errors import bad_value, duplicate_axes, format_shape, wrong_type
from haliax._src.families import check_operand
from haliax._src.named_array import NamedArray
from haliax._src.refused import check_dtype
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

    Source:
        `jax.numpy.asarray`
    """
    if isinstance(a, NamedArrayBase):
        remedy = "Use rename for other names, or rearrange for another order."
        raise wrong_type("named", "the array", a, "an array without names", remedy)
    array = a if isinstance(a, jax.Array | jax.ShapeDtypeStruct) else _as_array(a)
    if isinstance(axis, str) and len(array.shape) != 1:
        axis = tuple(axis.split())
    names = normalize_names("named", axis)
    if are_shape_checks_enabled():
        check_axes("named", array.shape, names, axis)
    return wrap(array, names)


def _as_array(data: Any) -> jax.Array:
    """Numbers, lists of them and foreign arrays as an array of JAX."""
    try:
        return jnp.asarray(data)
    except jax.errors.JAXTypeError:
        raise
    except (TypeError, ValueError) as error:
        if isinstance(data, list | tuple):
            expected = "expected numbers, in lists of equal lengths"
            raise bad_value("named", f"the {type(data).__name__} is no array", expected) from error
        raise wrong_type("named", "the array", data, "an array, a number or nested lists of numbers") from error


# from a value -------------------------------------------------------------------------------------------------------


def zeros(shape: AxisSpec, dtype: DTypeLike | None = None) -> NamedArray:
    """An array of zeros.

    Args:
        shape: The axes.
        dtype: The dtype; float32 if None, or float64 where JAX is set to 64 bits.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.numpy.zeros`
    """
    names, sizes = names_and_sizes("zeros", shape, dtype)
    return wrap(jnp.zeros(sizes, dtype), names)


def ones(shape: AxisSpec, dtype: DTypeLike | None = None) -> NamedArray:
    """An array of ones.

    Args:
        shape: The axes.
        dtype: The dtype; float32 if None, or float64 where JAX is set to 64 bits.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.numpy.ones`
    """
    names, sizes = names_and_sizes("ones", shape, dtype)
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
    names, sizes = names_and_sizes("full", shape, dtype)
    if isinstance(fill_value, NamedArray):
        have = fill_value.shape
        if any(dict(zip(names, sizes, strict=True)).get(name) != size for name, size in have.items()):
            expected = f"expected axes among those of the result: {format_shape(dict(zip(names, sizes, strict=True)))}"
            raise bad_value("full", f"the fill value has {format_shape(have)}", expected)
        value = broadcast_to(fill_value, tuple(map(Axis, names, sizes)))
        return value if dtype is None else value.like(jnp.astype(value.array, dtype), names)
    return wrap(jnp.full(sizes, as_scalar("full", fill_value, "the fill value"), dtype), names)


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
    return _like(jnp.full_like, a, fill_value=as_scalar("full_like", fill_value, "the fill value"), dtype=dtype)


def _like(fn: Callable[..., Any], a: Any, **kwargs: Any) -> Any:
    check_dtype(fn.__name__, kwargs["dtype"])
    if isinstance(a, NamedArrayBase):
        return a.like(fn(a.array, **kwargs), a.axis_names)
    check_operand(fn.__name__, a)
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
    names, sizes = names_and_sizes("arange", axis, dtype)
    first, by = as_scalar("arange", start, "start"), as_scalar("arange", step, "step")
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
        dtype: The dtype; float32 if None, or float64 where JAX is set to 64 bits.

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
        dtype: The dtype; float32 if None, or float64 where JAX is set to 64 bits.

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
        dtype: The dtype; float32 if None, or float64 where JAX is set to 64 bits.

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
    check_dtype(op, kwargs["dtype"])
    if "base" in kwargs:
        kwargs["base"] = as_scalar(op, kwargs["base"], "base")
    array = fn(as_scalar(op, start, "start"), as_scalar(op, stop, "stop"), num=50 if size is None else size, **kwargs)
    return wrap(array, (name,))


# shared -------------------------------------------------------------------------------------------------------------


def names_and_sizes(
    op: str, shape: AxisSpec, dtype: DTypeLike | None = None
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The names, which must be distinct, and the sizes of the axes of a new array, whose dtype must be one."""
    check_dtype(op, dtype)
    names, sizes = tuple(name for name, _ in iter_axes(op, shape)), tuple(known_sizes(op, shape))
    if len(set(names)) != len(names):
        raise duplicate_axes(op, names)
    return names, sizes
