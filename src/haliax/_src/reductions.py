"""Reductions, cumulative operations and sorts: each is the `jax.numpy` function of its name, over named axes.

Under a mask `where`, elements that are masked out do not count. A maximum or minimum has no identity to give for them,
so it starts from the extreme value of the dtype.
"""

from __future__ import annotations

from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np

from haliax._src.array_base import NamedArrayBase
from haliax._src.axis import AxisSelection, AxisSelector
from haliax._src.families import axiswise, reduce_named
from haliax.types import DTypeLike

T = TypeVar("T")


def all(array: T, axis: AxisSelection | None = None, *, where: NamedArrayBase | None = None) -> T:
    """Whether all elements over `axis` are true.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.all`
    """
    return reduce_named(jnp.all, array, axis, where=where)


def any(array: T, axis: AxisSelection | None = None, *, where: NamedArrayBase | None = None) -> T:
    """Whether any element over `axis` is true.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.any`
    """
    return reduce_named(jnp.any, array, axis, where=where)


def max(array: T, axis: AxisSelection | None = None, *, where: NamedArrayBase | None = None) -> T:
    """Largest element over `axis`.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.max`
    """
    return reduce_named(jnp.max, array, axis, where=where, initial=_initial(lowest, array, where))


def min(array: T, axis: AxisSelection | None = None, *, where: NamedArrayBase | None = None) -> T:
    """Smallest element over `axis`.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.min`
    """
    return reduce_named(jnp.min, array, axis, where=where, initial=_initial(highest, array, where))


def nanmax(array: T, axis: AxisSelection | None = None, *, where: NamedArrayBase | None = None) -> T:
    """Largest element over `axis`, ignoring NaN.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.nanmax`
    """
    return reduce_named(jnp.nanmax, array, axis, where=where, initial=_initial(lowest, array, where))


def nanmin(array: T, axis: AxisSelection | None = None, *, where: NamedArrayBase | None = None) -> T:
    """Smallest element over `axis`, ignoring NaN.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.nanmin`
    """
    return reduce_named(jnp.nanmin, array, axis, where=where, initial=_initial(highest, array, where))


def mean(
    array: T,
    axis: AxisSelection | None = None,
    *,
    where: NamedArrayBase | None = None,
    dtype: DTypeLike | None = None,
) -> T:
    """Mean over `axis`.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.
        dtype: The dtype in which to compute, and of the result.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.mean`
    """
    return reduce_named(jnp.mean, array, axis, where=where, dtype=dtype)


def prod(
    array: T,
    axis: AxisSelection | None = None,
    *,
    where: NamedArrayBase | None = None,
    dtype: DTypeLike | None = None,
) -> T:
    """Product over `axis`.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.
        dtype: The dtype in which to compute, and of the result.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.prod`
    """
    return reduce_named(jnp.prod, array, axis, where=where, dtype=dtype)


def sum(
    array: T,
    axis: AxisSelection | None = None,
    *,
    where: NamedArrayBase | None = None,
    dtype: DTypeLike | None = None,
) -> T:
    """Sum over `axis`.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.
        dtype: The dtype in which to compute, and of the result.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.sum`
    """
    return reduce_named(jnp.sum, array, axis, where=where, dtype=dtype)


def nanmean(
    array: T,
    axis: AxisSelection | None = None,
    *,
    where: NamedArrayBase | None = None,
    dtype: DTypeLike | None = None,
) -> T:
    """Mean over `axis`, ignoring NaN.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.
        dtype: The dtype in which to compute, and of the result.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.nanmean`
    """
    return reduce_named(jnp.nanmean, array, axis, where=where, dtype=dtype)


def nanprod(
    array: T,
    axis: AxisSelection | None = None,
    *,
    where: NamedArrayBase | None = None,
    dtype: DTypeLike | None = None,
) -> T:
    """Product over `axis`, NaN counting as one.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.
        dtype: The dtype in which to compute, and of the result.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.nanprod`
    """
    return reduce_named(jnp.nanprod, array, axis, where=where, dtype=dtype)


def nansum(
    array: T,
    axis: AxisSelection | None = None,
    *,
    where: NamedArrayBase | None = None,
    dtype: DTypeLike | None = None,
) -> T:
    """Sum over `axis`, NaN counting as zero.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.
        dtype: The dtype in which to compute, and of the result.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.nansum`
    """
    return reduce_named(jnp.nansum, array, axis, where=where, dtype=dtype)


def std(
    array: T,
    axis: AxisSelection | None = None,
    *,
    where: NamedArrayBase | None = None,
    ddof: int = 0,
    dtype: DTypeLike | None = None,
) -> T:
    """Standard deviation over `axis`.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.
        ddof: The divisor is the number of elements less this.
        dtype: The dtype in which to compute, and of the result.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.std`
    """
    return reduce_named(jnp.std, array, axis, where=where, ddof=ddof, dtype=dtype)


def var(
    array: T,
    axis: AxisSelection | None = None,
    *,
    where: NamedArrayBase | None = None,
    ddof: int = 0,
    dtype: DTypeLike | None = None,
) -> T:
    """Variance over `axis`.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.
        ddof: The divisor is the number of elements less this.
        dtype: The dtype in which to compute, and of the result.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.var`
    """
    return reduce_named(jnp.var, array, axis, where=where, ddof=ddof, dtype=dtype)


def nanstd(
    array: T,
    axis: AxisSelection | None = None,
    *,
    where: NamedArrayBase | None = None,
    ddof: int = 0,
    dtype: DTypeLike | None = None,
) -> T:
    """Standard deviation over `axis`, ignoring NaN.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.
        ddof: The divisor is the number of elements less this.
        dtype: The dtype in which to compute, and of the result.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.nanstd`
    """
    return reduce_named(jnp.nanstd, array, axis, where=where, ddof=ddof, dtype=dtype)


def nanvar(
    array: T,
    axis: AxisSelection | None = None,
    *,
    where: NamedArrayBase | None = None,
    ddof: int = 0,
    dtype: DTypeLike | None = None,
) -> T:
    """Variance over `axis`, ignoring NaN.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.
        ddof: The divisor is the number of elements less this.
        dtype: The dtype in which to compute, and of the result.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.nanvar`
    """
    return reduce_named(jnp.nanvar, array, axis, where=where, ddof=ddof, dtype=dtype)


def ptp(array: T, axis: AxisSelection | None = None, *, where: NamedArrayBase | None = None) -> T:
    """Range (largest less smallest element) over `axis`.

    Args:
        array: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.numpy.ptp`
    """
    return max(array, axis, where=where) - min(array, axis, where=where)  # pyright: ignore[reportOperatorIssue]


amax, amin, product = max, min, prod
