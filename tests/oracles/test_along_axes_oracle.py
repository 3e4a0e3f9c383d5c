"""Functions along axes against numpy: searches, quantiles, cumulative sums, sorts, flips, the largest, softmax."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

import haliax as hax
from oracles.bunches import Case, agrees, dtype_of, in_order, wide
from oracles.test_reductions_oracle import ORDERED, axes_of, dims_of
from strategies import DTYPES, FLOATS, named_arrays, sub_arrays

# numpy warns where a result is NaN
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SEARCHES = ["argmax", "argmin", "nanargmax", "nanargmin"]
QUANTILES = ["quantile", "nanquantile", "percentile", "nanpercentile"]
CUMULATIVE = ["cumsum", "cumprod", "nancumsum", "nancumprod"]
INT = np.dtype(np.int32)


@st.composite
def one_axis(draw, x):
    """An axis of an array, by name or as an Axis, and its dimension."""
    dim = draw(st.integers(0, len(x.axis_names) - 1))
    return draw(st.sampled_from([x.axis_names[dim], x.axes[dim]])), dim


def without(names, dim):
    return names[:dim] + names[dim + 1 :]


@st.composite
def search_cases(draw):
    """The position of an extreme along one axis, or in the flat array."""
    name = draw(st.sampled_from(SEARCHES))
    x = draw(named_arrays(ORDERED, min_axes=1).filter(lambda x: x.size))
    axis, dim = draw(one_axis(x)) if draw(st.booleans()) else (None, None)
    names = () if dim is None else without(x.axis_names, dim)

    def expect(x):
        elements = wide(x.array)
        if name.startswith("nan") and elements.dtype.kind == "f":
            nothing = np.isnan(elements).all(dim)
            elements = np.where(np.isnan(elements), -np.inf if name == "nanargmax" else np.inf, elements)
            return names, np.where(nothing, -1, getattr(np, name[3:])(elements, dim)).astype(INT)
        return names, np.asarray(getattr(np, name.removeprefix("nan"))(elements, dim)).astype(INT)

    return Case(f"hax.{name}(x, {axis})", (x,), lambda x: getattr(hax, name)(x, axis), expect)


@st.composite
def quantile_cases(draw):
    """One quantile or several, which have an axis of their own."""
    name = draw(st.sampled_from(QUANTILES))
    x = draw(named_arrays([np.float32, np.int32], tame=not name.startswith("nan"), max_axes=2).filter(lambda x: x.size))
    x = x.like(np.nan_to_num(np.asarray(x.array), posinf=np.nan, neginf=np.nan).astype(x.dtype), x.axis_names)
    axes, method = draw(axes_of(x)), draw(st.sampled_from(["linear", "lower", "higher", "midpoint"]))
    dims, names = dims_of(x, axes)
    scale = 100 if "percentile" in name else 1
    several = draw(st.booleans())
    q = np.float32([0, 0.25, 0.75]) * scale if several else draw(st.sampled_from([0.0, 0.5, 1.0])) * scale

    def run(x):
        return getattr(hax, name)(x, hax.named(q, "q") if several else q, axes, method=method)

    def expect(x):
        elements = getattr(np, name)(np.asarray(x.array, np.float64), q, axis=dims, method=method)
        return ("q", *names) if several else names, np.asarray(elements).astype(np.float32)

    return Case(f"hax.{name}(x, {q}, {axes}, method={method!r})", (x,), run, expect)


@st.composite
def median_cases(draw):
    """The median over any axes."""
    name = draw(st.sampled_from(["median", "nanmedian"]))
    x = draw(named_arrays([np.float32, np.int32, np.float16], tame=True).filter(lambda x: x.size))
    axes = draw(axes_of(x))
    dims, names = dims_of(x, axes)
    dtype = dtype_of(getattr(jnp, name), np.dtype(x.dtype))

    def expect(x):
        return names, np.asarray(getattr(np, name)(wide(x.array), dims)).astype(dtype)

    return Case(f"hax.{name}(x, {axes})", (x,), lambda x: getattr(hax, name)(x, axes), expect)


@st.composite
def cumulative_cases(draw):
    """Sums and products so far, along one axis or in the flat array, which has no names."""
    name = draw(st.sampled_from(CUMULATIVE))
    x = draw(named_arrays(DTYPES, min_axes=1, tame=not name.startswith("nan")))
    x = x.like(np.where(np.isinf(x.array), 1, x.array).astype(x.dtype), x.axis_names)
    axis, dim = draw(one_axis(x)) if draw(st.booleans()) else (None, None)
    options = {"dtype": np.float32} if x.dtype.kind != "c" and draw(st.booleans()) else {}
    dtype = dtype_of(lambda a: getattr(jnp, name)(a, **options), np.dtype(x.dtype))

    def expect(x):
        elements = wide(x.array)
        elements = elements.astype(dtype) if dtype.kind in "iu" else elements
        return None if dim is None else x.axis_names, getattr(np, name)(elements, dim).astype(dtype)

    return Case(f"hax.{name}(x, {axis}, {options})", (x,), lambda x: getattr(hax, name)(x, axis, **options), expect)


@st.composite
def order_cases(draw):
    """Sorting, and reversing or rolling axes."""
    name = draw(st.sampled_from(["sort", "argsort", "flip", "roll", "roll several", "diff"]))
    x = draw(named_arrays(ORDERED if "sort" in name else DTYPES, min_axes=1, tame=name == "diff"))
    axis, dim = draw(one_axis(x))
    axes = tuple(draw(st.permutations(x.axis_names)))
    shifts = tuple(draw(st.lists(st.integers(-4, 4), min_size=len(axes), max_size=len(axes))))
    n, dims = draw(st.integers(0, 3)), tuple(map(x.axis_names.index, axes))
    if name == "diff" and x.dtype == bool:
        x = x.astype(np.int32)
    run, plain = {
        "sort": (lambda x: hax.sort(x, axis), lambda a: np.sort(wide(a), dim).astype(a.dtype)),
        "argsort": (
            lambda x: hax.argsort(x, axis, stable=True),
            lambda a: np.argsort(wide(a), dim, stable=True).astype(INT),
        ),
        "flip": (lambda x: hax.flip(x, axes[:n] or None), lambda a: np.flip(a, dims[:n] or None)),
        "roll": (lambda x: hax.roll(x, shifts[0], axis), lambda a: np.roll(a, shifts[0], dim)),
        "roll several": (lambda x: hax.roll(x, shifts, axes), lambda a: np.roll(a, shifts, dims)),
        "diff": (lambda x: hax.diff(x, axis, n=n), lambda a: np.diff(a, n, dim)),
    }[name]
    return Case(f"hax.{name}(x, {axis}; {axes}, {shifts}, {n})", (x,), run, lambda x: (x.axis_names, plain(x.array)))


@st.composite
def top_k_cases(draw):
    """The largest elements, in order, and where they are."""
    x = draw(named_arrays([np.int32, np.float32, np.int8], min_axes=1, tame=True))
    axis, dim = draw(one_axis(x))
    k = draw(st.integers(0, x.array.shape[dim]))
    new = draw(st.sampled_from([None, "k", hax.Axis("k", k), x.axis_names[dim]]))
    names = list(x.axis_names)
    names[dim] = names[dim] if new is None else hax.axis_name(new)

    def expect(x):
        # the first of equal elements comes first
        places = np.argsort(-np.asarray(x.array, np.float64), dim, stable=True).take(np.arange(k), dim)
        return [(names, np.take_along_axis(x.array, places, dim)), (names, places.astype(INT))]

    return Case(f"hax.top_k(x, {axis}, {k}, {new})", (x,), lambda x: hax.top_k(x, axis, k, new), expect)


@st.composite
def softmax_cases(draw):
    """Functions of `haliax.nn` that normalize along axes, perhaps under a mask."""
    name = draw(st.sampled_from(["softmax", "log_softmax", "logsumexp"]))
    x = draw(named_arrays(FLOATS, min_axes=1, tame=True).filter(lambda x: x.size))
    axes = draw(axes_of(x))
    mask = (draw(sub_arrays(x, [np.bool_])),) if draw(st.booleans()) else ()
    dims, names = dims_of(x, axes)

    def expect(x, *mask):
        elements = wide(x.array)
        counts = np.broadcast_to(in_order(mask[0], x.axis_names), elements.shape) if mask else np.True_
        with np.errstate(divide="ignore"):
            total = np.log(np.sum(np.exp(elements), dims, where=counts, keepdims=True))
        if name == "logsumexp":
            return names, np.squeeze(total, dims).astype(x.dtype)
        rest = np.where(counts, elements - total, -np.inf)
        return x.axis_names, (np.exp(rest) if name == "softmax" else rest).astype(x.dtype)

    op = getattr(hax.nn, name)
    label = f"hax.nn.{name}(x, {axes}{', where=mask' if mask else ''})"
    return Case(label, (x, *mask), lambda x, *mask: op(x, axes, **({"where": mask[0]} if mask else {})), expect)


@agrees(search_cases(), quantile_cases(), median_cases())
def test_positions_and_quantiles():
    """Where the extremes are, and what lies between."""


@agrees(cumulative_cases(), softmax_cases())
def test_cumulative():
    """What keeps the axes and depends on all elements along one."""


@agrees(order_cases(), top_k_cases())
def test_order():
    """What only moves elements."""
