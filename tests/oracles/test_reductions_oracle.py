"""Reductions, searches, quantiles, and functions along axes against numpy, with all their options."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

import haliax as hax
from oracles.bunches import Case, agrees, dtype_of, in_order, wide
from strategies import DTYPES, FLOATS, INTEGERS, named_arrays, sub_arrays

# numpy warns of means of nothing, and where a result is NaN
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

ORDERED = [np.bool_, *INTEGERS, *FLOATS]
SUMS = ["sum", "prod", "product", "nansum", "nanprod"]
MEANS = ["mean", "nanmean"]
SPREADS = ["std", "var", "nanstd", "nanvar"]
EXTREMES = ["max", "min", "amax", "amin", "ptp", "nanmax", "nanmin"]
TRUTHS = ["all", "any", "count_nonzero"]
SEARCHES = ["argmax", "argmin", "nanargmax", "nanargmin"]
QUANTILES = ["median", "nanmedian", "quantile", "nanquantile", "percentile", "nanpercentile"]
CUMULATIVE = ["cumsum", "cumprod", "nancumsum", "nancumprod"]


def jax_function(name):
    return getattr(jnp, {"product": "prod"}.get(name, name))


def numpy_function(name):
    return getattr(np, {"product": "prod"}.get(name, name))


@st.composite
def axes_of(draw, x):
    """None, or some of the axes of an array in any order: by name, as an Axis, or both."""
    names = draw(st.permutations(x.axis_names))[: draw(st.integers(0, len(x.axis_names)))]
    axes = tuple(draw(st.sampled_from([name, x.resolve_axis(name)])) for name in names)
    return draw(st.sampled_from([None, axes, axes[0] if len(axes) == 1 else axes]))


def dims_of(x, axes):
    """The dimensions that `axes` names, and the names of the others."""
    axes = x.axis_names if axes is None else (axes,) if isinstance(axes, str | hax.Axis) else axes
    reduced = [hax.axis_name(axis) for axis in axes]
    return tuple(map(x.axis_names.index, reduced)), tuple(name for name in x.axis_names if name not in reduced)


def is_empty(x, dims):
    return any(x.array.shape[dim] == 0 for dim in dims)


@st.composite
def reduction_cases(draw):
    """Any reduction with a mask, a dtype, or degrees of freedom."""
    name = draw(st.sampled_from(SUMS + MEANS + SPREADS + EXTREMES + TRUTHS))
    op = getattr(hax, name)
    x = draw(named_arrays(ORDERED if name in EXTREMES else DTYPES, tame=name in SUMS + MEANS + SPREADS))
    if name == "ptp" and x.dtype == bool:
        x = x.astype(np.int8)
    axes = draw(axes_of(x))
    dims, names = dims_of(x, axes)
    options, mask = {}, ()
    if name in SPREADS and draw(st.booleans()):
        options["ddof"] = draw(st.sampled_from([0, 1]))
    if name in SUMS + MEANS + SPREADS and x.dtype.kind != "c" and draw(st.booleans()):
        options["dtype"] = np.float32
    starts = name in EXTREMES and is_empty(x, dims)
    if name not in TRUTHS[2:] and (starts or draw(st.booleans())):
        mask = (draw(sub_arrays(x, [np.bool_])),)
    dtype = dtype_of(lambda a: jax_function(name)(a, **options), np.dtype(x.dtype))

    def expect(x, *mask):
        return names, reduced(name, x, dims, dtype, options.get("ddof"), *mask)

    written = ", ".join(f"{k}={v}" for k, v in options.items())
    label = f"hax.{name}(x, {axes}, {written}{', where=mask' if mask else ''})"
    return Case(label, (x, *mask), lambda x, *mask: op(x, axes, **options, **where(*mask)), expect)


def where(*mask):
    return {"where": mask[0]} if mask else {}


def reduced(name, x, dims, dtype, ddof, *mask):
    """What numpy makes of an array over some dimensions, where the mask is true."""
    options = {"where": np.broadcast_to(in_order(mask[0], x.axis_names), x.array.shape)} if mask else {}
    if ddof:
        options["ddof"] = ddof
    if name in EXTREMES:
        return extreme(name, x, dims, dtype, options.get("where", True))
    elements = wide(x.array)
    if name in SUMS and dtype.kind in "iu":
        elements = elements.astype(dtype)
        return np.asarray(numpy_function(name)(elements, dims, dtype=dtype, **options))
    return np.asarray(numpy_function(name)(elements, dims, **options)).astype(dtype)


def extreme(name, x, dims, dtype, mask):
    """A largest or smallest element; of none, the extreme of the dtype."""
    lowest, highest = limits(np.dtype(x.dtype))
    elements = np.asarray(x.array)
    if name == "ptp":
        return extreme("max", x, dims, dtype, mask) - extreme("min", x, dims, dtype, mask)
    start, fn = (lowest, np.maximum) if name.endswith("max") else (highest, np.minimum)
    if name.startswith("nan") and elements.dtype.kind not in "biu":
        fn = np.fmax if name == "nanmax" else np.fmin
    chosen = np.where(mask, elements, start)
    result = fn.reduce(wide(chosen), dims, initial=None if mask is True else wide(start))
    return np.asarray(result).astype(dtype)


def limits(dtype):
    if dtype == np.bool_:
        return np.bool_(False), np.bool_(True)
    if dtype.kind in "iu":
        return np.asarray(np.iinfo(dtype).min, dtype), np.asarray(np.iinfo(dtype).max, dtype)
    return np.asarray(-np.inf, dtype), np.asarray(np.inf, dtype)


@agrees(reduction_cases())
def test_reductions():
    """Axes go; what stays keeps its order; a mask counts by name."""
