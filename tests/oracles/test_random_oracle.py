"""Samplers against `jax.random`: the same key gives the same numbers, whatever the axes of the parameters."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import jax.random as jrandom
import numpy as np
from hypothesis import strategies as st

import haliax as hax
from haliax import Axis
from oracles.bunches import Case, agrees, in_order
from strategies import named_arrays, sub_arrays

STANDARD = ["normal", "rademacher", "exponential", "cauchy", "gumbel", "laplace", "logistic", "uniform"]
PARAMETERS = {
    "uniform": ["minval", "maxval"],
    "randint": ["minval", "maxval"],
    "truncated_normal": ["lower", "upper"],
    "bernoulli": ["p"],
    "pareto": ["b"],
    "weibull_min": ["scale", "concentration"],
}

# programs of threefry, the usual implementation, take ten times as long to compile
fast = functools.partial(jrandom.key, impl="unsafe_rbg")
keys = st.builds(
    lambda make, seed: make(seed), st.sampled_from([fast] * 46 + [jrandom.key, jrandom.PRNGKey]), st.integers(0, 9)
)
shapes = named_arrays([np.float32], tame=True)
"""Arrays of which only the axes matter."""


def same_numbers(label, names, shape, named, plain):
    """A case in which two samples are drawn in one program, and compared there."""

    def run():
        sample, expected = named(), plain()
        assert sample.dtype == expected.dtype, label
        # a parameter that is folded before it is broadcast is rounded otherwise; bounds in the wrong order give NaN
        return sample.like(jnp.isclose(sample.array, expected, equal_nan=True), sample.axis_names)

    return Case(label, (), run, lambda: (names, np.ones(shape, bool)))


@st.composite
def standard(draw):
    name, x, key = draw(st.sampled_from(STANDARD)), draw(shapes), draw(keys)
    dtype = draw(st.sampled_from([float, jnp.float16, jnp.bfloat16]))
    named = lambda: getattr(hax.random, name)(key, x.axes, dtype)  # noqa: E731
    plain = lambda: getattr(jrandom, name)(key, x.array.shape, dtype)  # noqa: E731
    return same_numbers(f"{name}({x.axes}, {dtype})", x.axis_names, x.array.shape, named, plain)


@st.composite
def parametric(draw):
    name, x, key = draw(st.sampled_from(list(PARAMETERS))), draw(shapes), draw(keys)
    parameters, raw = {}, {}
    for i, parameter in enumerate(PARAMETERS[name]):
        y = draw(sub_arrays(x, [np.float32], tame=True))
        y = y.like(np.abs(np.asarray(y.array)) / (8 if name == "bernoulli" else 1) + 4 * i + 0.5, y.axis_names)
        if name == "randint":
            y = y.like(y.array.astype(np.int32), y.axis_names)
        scalar = draw(st.booleans())
        parameters[parameter] = i + 0.5 if scalar and name != "randint" else y
        full = parameters[parameter] if parameters[parameter] is not y else in_order(y, x.axis_names)
        raw[parameter] = np.broadcast_to(np.asarray(full, y.dtype), x.array.shape)
    named = lambda: getattr(hax.random, name)(key, x.axes, **parameters)  # noqa: E731
    plain = lambda: getattr(jrandom, name)(key, shape=x.array.shape, **raw)  # noqa: E731
    return same_numbers(f"{name}({x.axes}, {parameters})", x.axis_names, x.array.shape, named, plain)


@st.composite
def along_an_axis(draw):
    name = draw(st.sampled_from(["categorical", "choice", "permutation"]))
    x, key = (
        draw(named_arrays([np.float32], tame=True, min_axes=1).filter(lambda x: x.size)),
        fast(draw(st.integers(0, 9))),
    )
    dim, independent = draw(st.integers(0, x.ndim - 1)), draw(st.booleans())
    axis = draw(st.sampled_from([x.axis_names[dim], x.axes[dim]]))
    before, after = x.axis_names[:dim], x.axis_names[dim + 1 :]
    new = (Axis("n", 2), Axis("m", 3))[: draw(st.integers(0, 2))]
    sizes, new_names = tuple(ax.size for ax in new), tuple(ax.name for ax in new)
    names, named, plain = {
        "categorical": (
            before + after,
            lambda: hax.random.categorical(key, x, axis),
            lambda: jrandom.categorical(key, x.array, dim),
        ),
        "choice": (
            (*before, *new_names, *after),
            lambda: hax.random.choice(key, new, x, axis),
            lambda: jrandom.choice(key, x.array, sizes, axis=dim),
        ),
        "permutation": (
            x.axis_names,
            lambda: hax.random.permutation(key, x, axis, independent),
            lambda: jrandom.permutation(key, x.array, dim, independent),
        ),
    }[name]
    size_of = {**x.shape, **{ax.name: ax.size for ax in new}}
    shape = [size_of[n] for n in names]
    return same_numbers(f"{name}({x.axes}, {axis}, {new}, {independent})", names, shape, named, plain)


@agrees(standard(), parametric(), along_an_axis())
def test_samplers():
    """Axes take the place of a shape."""
