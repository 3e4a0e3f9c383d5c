"""Hypothesis strategies for named arrays, and their counterparts in numpy.

Axis names are single letters, so that `numpy.einsum` can serve as an oracle for transposition by name.
"""

from __future__ import annotations

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from hypothesis import strategies as st

import haliax as hax

FLOATS = [ml_dtypes.bfloat16, np.float16, np.float32]
INTEGERS = [np.int8, np.int32, np.uint8]
DTYPES = [np.bool_, *INTEGERS, *FLOATS, np.complex64]

_INTERESTING = np.array([-np.inf, -2.5, -1, -0.0, 0, 0.5, 1, 3, np.inf, np.nan])
_TAME = np.array([-2.5, -1, 0, 0.5, 1, 3])


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: type, tame: bool = False) -> np.ndarray:
    """Random elements of a dtype; for floats also infinities and NaN unless `tame`."""
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if np.issubdtype(kind, np.integer):
        return rng.integers(0 if kind.kind == "u" else -4, 5, shape).astype(dtype)
    choices = _TAME if tame else _INTERESTING
    if kind.kind == "c":
        return (rng.choice(_TAME, shape) + 1j * rng.choice(_TAME, shape)).astype(dtype)
    return rng.choice(choices, shape).astype(dtype)


@st.composite
def named_arrays(draw, dtypes=DTYPES, names="abc", max_size=3, min_axes=0, max_axes=3, tame=False):
    """Named arrays of 0 to 3 axes in any order, with sizes from 0 to 3."""
    order = draw(st.lists(st.sampled_from(names), unique=True, min_size=min_axes, max_size=max_axes))
    shape = tuple(draw(st.integers(0, max_size)) for _ in order)
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    return hax.NamedArray(jnp.asarray(values(rng, shape, draw(st.sampled_from(dtypes)), tame)), tuple(order))


@st.composite
def sub_arrays(draw, of: hax.NamedArray, dtypes=DTYPES, tame=False):
    """Named arrays with some of the axes of another, in any order."""
    order = draw(st.permutations(of.axis_names))[: draw(st.integers(0, len(of.axis_names)))]
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    shape = tuple(of.axis_size(name) for name in order)
    return hax.NamedArray(jnp.asarray(values(rng, shape, draw(st.sampled_from(dtypes)), tame)), tuple(order))


def spread(x: hax.NamedArray, names: tuple[str, ...]) -> np.ndarray:
    """The elements in numpy, with one dimension for each of `names`, of size 1 where the array lacks the axis."""
    here = [name for name in names if name in x.axis_names]
    array = np.einsum(np.asarray(x.array), [ord(n) - 97 for n in x.axis_names], [ord(n) - 97 for n in here])
    return array.reshape([x.axis_size(name) if name in here else 1 for name in names])


def assert_same(actual, expected) -> None:
    """Equal shapes, dtypes and elements, where NaN equals NaN (which numpy's own test denies for bfloat16)."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(actual.astype(np.complex128), expected.astype(np.complex128))
