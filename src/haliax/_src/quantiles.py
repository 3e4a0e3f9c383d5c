"""Medians, quantiles and percentiles: each is the `jax.numpy` function of its name, over named axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax.numpy as jnp

from haliax._src.array_base import NamedArrayBase, is_scalar
from haliax._src.axis import AxisSelection
from haliax._src.broadcasting import not_a_scalar
from haliax._src.errors import bad_value, check_choice, duplicate_axes, format_shape
from haliax._src.families import is_raw, map_tree, reduce_named
from haliax._src.reductions import reduction

T = TypeVar("T")


@reduction(jnp.median)
def median(array: T, axis: AxisSelection | None = None) -> T:
    """The median of the elements."""
    return reduce_named(jnp.median, array, axis)


@reduction(jnp.nanmedian)
def nanmedian(array: T, axis: AxisSelection | None = None) -> T:
    """The median of the elements that are not NaN."""
    return reduce_named(jnp.nanmedian, array, axis)


@reduction(jnp.quantile)
def quantile(array: T, q: Any, axis: AxisSelection | None = None, *, method: str = "linear") -> T:
    """The value below which a part `q`, from 0 to 1, of the elements lies."""
    return _quantile(jnp.quantile, array, q, axis, method)


@reduction(jnp.nanquantile)
def nanquantile(array: T, q: Any, axis: AxisSelection | None = None, *, method: str = "linear") -> T:
    """The value below which a part `q`, from 0 to 1, of the elements that are not NaN lies."""
    return _quantile(jnp.nanquantile, array, q, axis, method)


@reduction(jnp.percentile)
def percentile(array: T, q: Any, axis: AxisSelection | None = None, *, method: str = "linear") -> T:
    """The value below which `q` percent of the elements lie."""
    return _quantile(jnp.percentile, array, q, axis, method)


@reduction(jnp.nanpercentile)
def nanpercentile(array: T, q: Any, axis: AxisSelection | None = None, *, method: str = "linear") -> T:
    """The value below which `q` percent of the elements that are not NaN lie."""
    return _quantile(jnp.nanpercentile, array, q, axis, method)


def _quantile(fn: Callable[..., Any], array: T, q: Any, axis: AxisSelection | None, method: str) -> T:
    """The quantiles of each array in a tree; the axis of `q` leads, as in `jax.numpy`."""
    op = fn.__name__
    check_choice(op, "method", method, ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"))
    _check_part(op, q, 100 if op.endswith("percentile") else 1)
    if is_raw(array):
        return reduce_named(fn, array, axis, q=q, method=method)
    if not isinstance(array, NamedArrayBase):
        return map_tree(op, lambda leaf: _quantile(fn, leaf, q, axis, method), array)
    leading, raw = (q.axis_names, q.array) if isinstance(q, NamedArrayBase) else ((), q)
    if len(leading) > 1:
        raise bad_value(op, f"q has {format_shape(q.shape)}", "expected at most one axis")
    if not leading and not is_scalar(raw):
        raise not_a_scalar(op, raw, "q")
    reduced = reduce_named(fn, array, axis, q=raw, method=method)
    names = leading + reduced.axis_names
    if len(set(names)) < len(names):
        raise duplicate_axes(op, names, "Rename the axis of q.")
    return reduced.like(reduced.array, names)


def _check_part(op: str, q: Any, whole: int) -> None:
    """Raise a ValueError if a number that Python knows is no part of the whole."""
    if isinstance(q, int | float) and not 0 <= q <= whole:
        raise bad_value(op, f"q is {q}", f"expected a number from 0 to {whole}")
