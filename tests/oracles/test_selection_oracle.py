"""Choosing, counting and finding elements against numpy, and pairs of results of elementwise operations."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

import haliax as hax
from haliax import Axis
from oracles.bunches import Case, agrees, in_order, wide
from strategies import FLOATS, INTEGERS, named_arrays, sub_arrays

# numpy warns where a result is NaN
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

INT = np.dtype(np.int32)
NUMBERS = [*INTEGERS, *FLOATS]
small = named_arrays([np.int32, np.int8, np.float32], tame=True, max_axes=2)


# three operands ------------------------------------------------------------------------------------------------------


@st.composite
def choices(draw):
    """`where` with a condition, two arrays or numbers; one of the three has all axes."""
    x = draw(named_arrays(NUMBERS, tame=True))
    y = draw(st.sampled_from([1, 2.5, True]) | sub_arrays(x, NUMBERS, tame=True))
    condition = draw(sub_arrays(x, [np.bool_]))
    operands = [condition, x] + ([y] if isinstance(y, hax.NamedArray) else [])
    dtype = np.dtype(jnp.result_type(x.array, getattr(y, "array", y)))
    names = next(a.axis_names for a in operands if a.ndim == x.ndim)

    def run(condition, x, *rest):
        return hax.where(condition, x, rest[0] if rest else y)

    def expect(condition, x, *rest):
        raw = in_order(rest[0], names) if rest else y
        full = np.where(in_order(condition, names), in_order(x, names).astype(dtype), np.asarray(raw).astype(dtype))
        return names, full

    return Case(f"where(c, x, {y if len(operands) == 2 else 'y'})", tuple(operands), run, expect)


@st.composite
def clips(draw):
    x = draw(named_arrays(NUMBERS, tame=True))
    low = draw(sub_arrays(x, [x.dtype], tame=True))
    high, both = draw(st.sampled_from([None, 1])), draw(st.booleans())
    names = x.axis_names

    def expect(x, low):
        bounded = np.maximum(wide(x.array), wide(in_order(low, names)))
        return names, (bounded if high is None else np.minimum(bounded, high)).astype(x.dtype)

    run = (lambda x, low: x.clip(low, high)) if both else (lambda x, low: hax.clip(x, a_min=low, a_max=high))
    return Case(f"clip(x, low, {high})", (x, low), run, expect)


@st.composite
def close(draw):
    x = draw(named_arrays(FLOATS))
    y = draw(sub_arrays(x, [x.dtype]))
    tolerance, equal_nan = draw(st.sampled_from([1e-5, 0.5])), draw(st.booleans())
    names = x.axis_names

    def expect(x, y):
        return names, np.isclose(wide(x.array), wide(in_order(y, names)), rtol=tolerance, equal_nan=equal_nan)

    run = lambda x, y: hax.isclose(x, y, rtol=tolerance, equal_nan=equal_nan)  # noqa: E731
    return Case(f"isclose(x, y, {tolerance}, equal_nan={equal_nan})", (x, y), run, expect)


# one operand, with options or two results ----------------------------------------------------------------------------


@st.composite
def pairs(draw):
    name = draw(st.sampled_from(["frexp", "modf", "divmod"]))
    x = draw(named_arrays([np.float32, np.float16] if name != "divmod" else [np.int32, np.float32], tame=True))
    y = (draw(sub_arrays(x, [x.dtype], tame=True)),) if name == "divmod" else ()
    y = tuple(b.like(np.where(np.asarray(b.array) == 0, 1, b.array).astype(x.dtype), b.axis_names) for b in y)

    def expect(x, *y):
        first, second = getattr(np, name)(np.asarray(x.array), *(in_order(b, x.axis_names) for b in y))
        return [(x.axis_names, first), (x.axis_names, second)]

    return Case(f"{name}(x)", (x, *y), getattr(hax, name), expect)


@st.composite
def conversions(draw):
    x = draw(named_arrays([np.float32, np.float16, np.int32, np.int8]))
    decimals = draw(st.integers(-1 if x.dtype.kind == "f" else 0, 2))
    number = draw(st.sampled_from([0, 1]))
    dtype = np.dtype(draw(st.sampled_from([np.float16, np.float32, np.complex64])))
    run, plain = draw(
        st.sampled_from(
            [
                (lambda x: hax.nan_to_num(x, nan=number), lambda a: np.nan_to_num(a, nan=number)),
                (lambda x: hax.nan_to_num(x, posinf=2, neginf=-2), lambda a: np.nan_to_num(a, posinf=2, neginf=-2)),
                (lambda x: hax.round(x, decimals), lambda a: np.round(wide(a), decimals).astype(a.dtype)),
                (lambda x: x.astype(dtype), lambda a: a.astype(dtype)),
                (lambda x: hax.zeros_like(x), np.zeros_like),
                (lambda x: hax.ones_like(x, dtype), lambda a: np.ones_like(a, dtype)),
                (lambda x: hax.full_like(x, number), lambda a: np.full_like(a, number)),
            ]
        )
    )
    label = f"nan_to_num, round, astype, _like: {number}, {decimals}, {dtype}"
    return Case(label, (x,), run, lambda x: (x.axis_names, plain(x.array)))


# sets ----------------------------------------------------------------------------------------------------------------


@st.composite
def uniques(draw):
    """Distinct elements: as many as the new axis has room for, filled up."""
    x = draw(small.filter(lambda x: x.size))
    size, fill = draw(st.integers(0, 4)), 7

    def expect(x):
        elements, index, inverse, counts = np.unique(x.array, True, True, True)
        found = [(elements, fill), (index, index[0]), (counts, 0)]
        raw = [np.concatenate([a, np.full(4, f)])[:size] for a, f in found]
        inverse = np.reshape(inverse, x.array.shape)
        return [("u", raw[0].astype(x.dtype)), (x.axis_names, inverse.astype(INT)), ("u", raw[2].astype(INT))]

    def run(x):
        return hax.unique(x, Axis("u", size), return_inverse=True, return_counts=True, fill_value=fill)

    return Case(f"unique({size})", (x,), run, expect)


@st.composite
def counts(draw):
    x = draw(named_arrays([np.int32, np.uint8], tame=True, min_axes=1, max_axes=1))
    x = x.like(np.abs(np.asarray(x.array)).astype(x.dtype), x.axis_names)
    size = draw(st.integers(1, 6))
    weights = (draw(sub_arrays(x, [np.float32], tame=True).filter(lambda w: w.ndim)),) if draw(st.booleans()) else ()

    def expect(x, *weights):
        raw = np.bincount(x.array, *(w.array for w in weights), minlength=8)[:size]
        return "n", raw.astype(np.float32 if weights else INT)

    def run(x, *weights):
        return hax.bincount(x, Axis("n", size), **({"weights": weights[0]} if weights else {}))

    return Case(f"bincount({size})", (x, *weights), run, expect)


@st.composite
def searches(draw):
    ordered = np.sort(draw(st.lists(st.integers(-3, 3), max_size=4))).astype(np.int32)
    x, side = draw(named_arrays([np.int32, np.float32], tame=True)), draw(st.sampled_from(["left", "right"]))

    def expect(x):
        return x.axis_names, np.asarray(np.searchsorted(ordered, x.array, side)).astype(INT)

    run = lambda x: hax.searchsorted(hax.named(ordered, "o"), x, side=side)  # noqa: E731
    return Case(f"searchsorted({ordered}, x, {side})", (x,), run, expect)


@st.composite
def finds(draw):
    x = draw(named_arrays([np.int32, np.float32, np.bool_], min_axes=1))
    size = draw(st.integers(0, 5))

    def expect(x):
        raw = [np.concatenate([a, np.full(5, -1)])[:size].astype(INT) for a in np.nonzero(x.array)]
        return [("n", a) for a in raw]

    if draw(st.booleans()):
        return Case(f"nonzero({size})", (x,), lambda x: hax.nonzero(x, size=Axis("n", size), fill_value=-1), expect)
    run = lambda x: hax.where(x != 0, fill_value=-1, new_axis=Axis("n", size))  # noqa: E731
    return Case(f"where({size})", (x,), run, expect)


@st.composite
def bits(draw):
    x = draw(named_arrays([np.bool_], min_axes=1))
    name, order = draw(st.sampled_from(x.axis_names)), draw(st.sampled_from(["big", "little"]))
    dim, count = x.axis_names.index(name), x.axis_size(name)

    def expect(x):
        packed = np.packbits(x.array, dim, order)
        return [(x.axis_names, packed), (x.axis_names, np.unpackbits(packed, dim, count, order))]

    def run(x):
        packed = hax.packbits(x, name, bitorder=order)
        return packed, hax.unpackbits(packed, name, count=count, bitorder=order)

    return Case(f"packbits({name}, {order})", (x,), run, expect)


@agrees(choices(), clips(), close(), pairs(), conversions())
def test_choices():
    """Operands are broadcast by name; several results have the same axes."""


@agrees(uniques(), counts(), searches(), finds(), bits())
def test_sets():
    """What depends on values has the size that the caller gives."""
