"""Reductions: each is the `jax.numpy` function of its name, over named axes, on each array of a pytree.

Under a mask `where`, elements that are masked out do not count. A maximum or minimum has no value to give for them, so
it starts from the extreme of the dtype.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from haliax._src.array_base import NamedArrayBase
from haliax._src.axis import AxisSelection, AxisSelector
from haliax._src.describe import PARAMETERS, documented
from haliax._src.families import reduce_named
from haliax._src.util import renamed
from haliax.types import DTypeLike

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

Mask: TypeAlias = NamedArrayBase | ArrayLike | None
"""A mask for a named array; without names only for an array without names."""


def reduction(fn: Callable[..., Any]) -> Callable[[F], F]:
    """Complete the docstring of an operation that removes any number of axes."""
    axis = "The axes to reduce; all of them if None."
    return documented(fn, {**PARAMETERS, "axis": axis}, "The array without the reduced axes.")


def search(fn: Callable[..., Any]) -> Callable[[F], F]:
    """Complete the docstring of an operation that gives positions along one axis."""
    axis = "The axis to search; if None, the array is taken as flat."
    return documented(fn, {**PARAMETERS, "axis": axis}, "The positions, as integers, without the axis.")


def starting_at(extreme: Callable[[Any], Any], fn: Callable[..., Any]) -> Callable[..., Any]:
    """A maximum or minimum of raw arrays that takes a mask: no element counts as much as the extreme of the dtype."""

    @functools.wraps(fn)
    def masked(a: Any, axis: Any = None, where: Any = None) -> Any:
        if where is None:
            return fn(a, axis=axis)
        return fn(a, axis=axis, where=where, initial=extreme(jnp.result_type(a)))

    return masked


def lowest(dtype: Any) -> Any:
    """The identity of a maximum: the lowest value of a dtype, minus infinity if it has one."""
    return _extreme(dtype, "min", -np.inf)


def highest(dtype: Any) -> Any:
    """The identity of a minimum: the highest value of a dtype, infinity if it has one."""
    return _extreme(dtype, "max", np.inf)


def _extreme(dtype: Any, which: str, infinity: float) -> Any:
    if jnp.issubdtype(dtype, jnp.bool_):
        return np.bool_(which == "max")
    if jnp.issubdtype(dtype, jnp.integer):
        return np.asarray(getattr(jnp.iinfo(dtype), which), dtype)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        # ordered by the real part, then the imaginary one
        return np.asarray(complex(infinity, infinity), dtype)
    with np.errstate(all="ignore"):
        value = np.asarray(infinity, dtype)
    # some floats of 8 bits have no infinity
    return value if np.isinf(value) else np.asarray(getattr(jnp.finfo(dtype), which), dtype)


_max, _min = starting_at(lowest, jnp.max), starting_at(highest, jnp.min)
_nanmax, _nanmin = starting_at(lowest, jnp.nanmax), starting_at(highest, jnp.nanmin)


@functools.wraps(jnp.ptp)
def _ptp(a: Any, axis: Any = None, where: Any = None) -> Any:
    return jnp.ptp(a, axis=axis) if where is None else _max(a, axis, where) - _min(a, axis, where)


def _of_truth(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction of raw arrays to truth values: that of `jax.numpy` sees the real parts of complex numbers only."""

    @functools.wraps(fn)
    def test(a: Any, axis: Any = None, where: Any = None) -> Any:
        return fn(a != 0 if jnp.iscomplexobj(a) else a, axis=axis, where=where)

    return test


_all, _any = _of_truth(jnp.all), _of_truth(jnp.any)


# --- Reductions of any number of axes ---


@reduction(jnp.all)
def all(array: T, axis: AxisSelection | None = None, *, where: Mask = None) -> T:
    """Whether all elements are true."""
    return reduce_named(_all, array, axis, where=where)


@reduction(jnp.any)
def any(array: T, axis: AxisSelection | None = None, *, where: Mask = None) -> T:
    """Whether any element is true."""
    return reduce_named(_any, array, axis, where=where)


@reduction(jnp.count_nonzero)
def count_nonzero(array: T, axis: AxisSelection | None = None) -> T:
    """The number of elements that are not zero."""
    return reduce_named(jnp.count_nonzero, array, axis)


@reduction(jnp.max)
def max(array: T, axis: AxisSelection | None = None, *, where: Mask = None) -> T:
    """The largest element."""
    return reduce_named(_max, array, axis, where=where)


@reduction(jnp.min)
def min(array: T, axis: AxisSelection | None = None, *, where: Mask = None) -> T:
    """The smallest element."""
    return reduce_named(_min, array, axis, where=where)


@reduction(jnp.ptp)
def ptp(array: T, axis: AxisSelection | None = None, *, where: Mask = None) -> T:
    """The largest element less the smallest."""
    return reduce_named(_ptp, array, axis, where=where)


@reduction(jnp.sum)
def sum(array: T, axis: AxisSelection | None = None, *, where: Mask = None, dtype: DTypeLike | None = None) -> T:
    """The sum of the elements."""
    return reduce_named(jnp.sum, array, axis, where=where, dtype=dtype)


@reduction(jnp.prod)
def prod(array: T, axis: AxisSelection | None = None, *, where: Mask = None, dtype: DTypeLike | None = None) -> T:
    """The product of the elements."""
    return reduce_named(jnp.prod, array, axis, where=where, dtype=dtype)


@reduction(jnp.mean)
def mean(array: T, axis: AxisSelection | None = None, *, where: Mask = None, dtype: DTypeLike | None = None) -> T:
    """The mean of the elements."""
    return reduce_named(jnp.mean, array, axis, where=where, dtype=dtype)


@reduction(jnp.std)
def std(
    array: T, axis: AxisSelection | None = None, *, where: Mask = None, ddof: int = 0, dtype: DTypeLike | None = None
) -> T:
    """The standard deviation of the elements."""
    return reduce_named(jnp.std, array, axis, where=where, ddof=ddof, dtype=dtype)


@reduction(jnp.var)
def var(
    array: T, axis: AxisSelection | None = None, dtype: DTypeLike | None = None, ddof: int = 0, *, where: Mask = None
) -> T:
    """The variance of the elements."""
    return reduce_named(jnp.var, array, axis, where=where, ddof=ddof, dtype=dtype)


@reduction(jnp.nanmax)
def nanmax(array: T, axis: AxisSelection | None = None, *, where: Mask = None) -> T:
    """The largest element that is not NaN."""
    return reduce_named(_nanmax, array, axis, where=where)


@reduction(jnp.nanmin)
def nanmin(array: T, axis: AxisSelection | None = None, *, where: Mask = None) -> T:
    """The smallest element that is not NaN."""
    return reduce_named(_nanmin, array, axis, where=where)


@reduction(jnp.nansum)
def nansum(array: T, axis: AxisSelection | None = None, *, where: Mask = None, dtype: DTypeLike | None = None) -> T:
    """The sum of the elements that are not NaN."""
    return reduce_named(jnp.nansum, array, axis, where=where, dtype=dtype)


@reduction(jnp.nanprod)
def nanprod(array: T, axis: AxisSelection | None = None, *, where: Mask = None, dtype: DTypeLike | None = None) -> T:
    """The product of the elements that are not NaN."""
    return reduce_named(jnp.nanprod, array, axis, where=where, dtype=dtype)


@reduction(jnp.nanmean)
def nanmean(array: T, axis: AxisSelection | None = None, *, where: Mask = None, dtype: DTypeLike | None = None) -> T:
    """The mean of the elements that are not NaN."""
    return reduce_named(jnp.nanmean, array, axis, where=where, dtype=dtype)


@reduction(jnp.nanstd)
def nanstd(
    array: T, axis: AxisSelection | None = None, *, where: Mask = None, ddof: int = 0, dtype: DTypeLike | None = None
) -> T:
    """The standard deviation of the elements that are not NaN."""
    return reduce_named(jnp.nanstd, array, axis, where=where, ddof=ddof, dtype=dtype)


@reduction(jnp.nanvar)
def nanvar(
    array: T, axis: AxisSelection | None = None, *, where: Mask = None, ddof: int = 0, dtype: DTypeLike | None = None
) -> T:
    """The variance of the elements that are not NaN."""
    # jnp traces a ddof that is passed, even if it is the default
    options: dict[str, Any] = {"ddof": ddof} if ddof else {}
    return reduce_named(jnp.nanvar, array, axis, where=where, dtype=dtype, **options)


amax, amin, product = renamed(max, "amax"), renamed(min, "amin"), renamed(prod, "product")


# --- Positions along one axis ---


@search(jnp.argmax)
def argmax(array: T, axis: AxisSelector | None = None) -> T:
    """The position of the largest element."""
    return reduce_named(jnp.argmax, array, axis, single_axis_only=True)


@search(jnp.argmin)
def argmin(array: T, axis: AxisSelector | None = None) -> T:
    """The position of the smallest element."""
    return reduce_named(jnp.argmin, array, axis, single_axis_only=True)


@search(jnp.nanargmax)
def nanargmax(array: T, axis: AxisSelector | None = None) -> T:
    """The position of the largest element that is not NaN; -1 where all are NaN."""
    return reduce_named(jnp.nanargmax, array, axis, single_axis_only=True)


@search(jnp.nanargmin)
def nanargmin(array: T, axis: AxisSelector | None = None) -> T:
    """The position of the smallest element that is not NaN; -1 where all are NaN."""
    return reduce_named(jnp.nanargmin, array, axis, single_axis_only=True)
