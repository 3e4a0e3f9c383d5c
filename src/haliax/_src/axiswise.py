"""Functions along axes that keep them: cumulative sums, sorts, flips; each is the `jax.numpy` function of its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax.numpy as jnp

from haliax._src.axis import AxisSelection, AxisSelector
from haliax._src.describe import PARAMETERS, documented
from haliax._src.errors import check_integer, not_an_axis
from haliax._src.families import axiswise
from haliax.types import DTypeLike

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_SAME = "An array with the same axes."


def along_axis(fn: Callable[..., Any]) -> Callable[[F], F]:
    """Complete the docstring of an operation that works along one axis and keeps it."""
    axis = "The axis to work along; if None, the array is taken as flat, and the result has no names."
    return documented(fn, {**PARAMETERS, "axis": axis}, _SAME)


@along_axis(jnp.cumsum)
def cumsum(a: T, axis: AxisSelector | None, *, dtype: DTypeLike | None = None) -> T:
    """The sum of each element and all before it."""
    return axiswise(jnp.cumsum, a, axis, dtype=dtype)


@along_axis(jnp.cumprod)
def cumprod(a: T, axis: AxisSelector | None, dtype: DTypeLike | None = None) -> T:
    """The product of each element and all before it."""
    return axiswise(jnp.cumprod, a, axis, dtype=dtype)


@along_axis(jnp.nancumsum)
def nancumsum(a: T, axis: AxisSelector | None, *, dtype: DTypeLike | None = None) -> T:
    """The sum of each element and all before it, where NaN counts as zero."""
    return axiswise(jnp.nancumsum, a, axis, dtype=dtype)


@along_axis(jnp.nancumprod)
def nancumprod(a: T, axis: AxisSelector | None, dtype: DTypeLike | None = None) -> T:
    """The product of each element and all before it, where NaN counts as one."""
    return axiswise(jnp.nancumprod, a, axis, dtype=dtype)


@along_axis(jnp.sort)
def sort(a: T, axis: AxisSelector | None) -> T:
    """The elements in ascending order."""
    return axiswise(jnp.sort, a, axis)


@along_axis(jnp.argsort)
def argsort(a: T, axis: AxisSelector | None, *, stable: bool = False) -> T:
    """The positions of the elements in ascending order."""
    return axiswise(jnp.argsort, a, axis, stable=stable)


@documented(jnp.flip, {**PARAMETERS, "axis": "The axes to reverse; all of them if None."}, _SAME)
def flip(a: T, axis: AxisSelection | None = None) -> T:
    """The elements in reverse order."""
    return axiswise(jnp.flip, a, axis, single_axis_only=False)


@documented(
    jnp.diff, {**PARAMETERS, "axis": "The axis to work along."}, f"{_SAME[:-1]}, of which `axis` is `n` shorter."
)
def diff(a: T, axis: AxisSelector, *, n: int = 1) -> T:
    """The difference of each element and the one before it."""
    if axis is None:
        raise not_an_axis("diff", axis)
    check_integer("diff", "n", n, 0)
    return axiswise(jnp.diff, a, axis, n=n)
