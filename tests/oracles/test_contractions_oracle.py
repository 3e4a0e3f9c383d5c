"""`dot` and `einsum` against `numpy.einsum`: any arrays, any axes, any order of the result."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

import haliax as hax
from oracles.bunches import Case, agrees, wide
from strategies import values

DTYPES = [np.float32, np.int32, np.int8, np.float16, np.complex64]


@st.composite
def operands(draw):
    """One to three arrays that share axes, and what they share."""
    sizes = {name: draw(st.integers(0, 3)) for name in "abcd"}
    arrays = []
    for _ in range(draw(st.integers(1, 3))):
        names = tuple(draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=3)))
        rng = np.random.default_rng(draw(st.integers(0, 2**16)))
        raw = values(rng, tuple(sizes[n] for n in names), draw(st.sampled_from(DTYPES)), tame=True)
        arrays.append(hax.named(jnp.asarray(np.round(raw)), names))
    return tuple(arrays)


def einsum(arrays, out):
    """The contraction in numpy, in the widest dtype."""
    flat = [item for a in arrays for item in (wide(a.array), [ord(n) - 97 for n in a.axis_names])]
    dtype = jnp.result_type(*(a.array for a in arrays))
    return np.asarray(np.einsum(*flat, [ord(n) - 97 for n in out])).astype(dtype)


@st.composite
def dots(draw):
    arrays = draw(operands())
    everything = list(dict.fromkeys(name for a in arrays for name in a.axis_names))
    axis = tuple(draw(st.permutations(everything))[: draw(st.integers(0, len(everything)))])
    kept = [name for name in everything if name not in axis]
    ordered = draw(st.booleans())
    out = tuple(draw(st.permutations(kept)))
    options = {"out_axes": out} if ordered else {}

    def run(*arrays):
        return hax.dot(*arrays, axis=axis or (), **options)

    def expect(*arrays):
        return (out, einsum(arrays, out)) if ordered else (frozenset(kept), lambda names: einsum(arrays, names))

    return Case(f"dot(axis={axis}, {options})", arrays, run, expect)


@st.composite
def equations(draw):
    """Axes in order for each array, or by name in braces for all of them at once."""
    arrays = draw(operands())
    everything = list(dict.fromkeys(name for a in arrays for name in a.axis_names))
    out = tuple(draw(st.permutations(everything))[: draw(st.integers(0, len(everything)))])
    in_order = ", ".join(" ".join(a.axis_names) for a in arrays)
    by_name = f"{{{' '.join(draw(st.permutations(everything)))}}}"
    equation = f"{draw(st.sampled_from([in_order, by_name]))} -> {' '.join(out)}"

    def run(*arrays):
        return hax.einsum(equation, *arrays)

    return Case(f"einsum({equation!r})", arrays, run, lambda *arrays: (out, einsum(arrays, out)))


@agrees(dots(), equations())
def test_contractions():
    """Axes that are named go, all others stay."""
