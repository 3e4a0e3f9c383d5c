"""Gradients, `jit` and `vmap` of named operations against those of `jax.numpy`, in one program.

A case computes an operation and its gradients twice, by name and by position, and compares them there; half of the
bunches are mapped by `jax.vmap` as a whole.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

import haliax as hax
from oracles.bunches import Case, agrees, dtype_of
from oracles.test_along_axes_oracle import one_axis
from oracles.test_reductions_oracle import axes_of, dims_of, jax_function
from strategies import named_arrays, sub_arrays
from test_elementwise import BINARY, UNARY

FLOAT = np.dtype(np.float32)
REDUCTIONS = "sum prod mean std var max min ptp nansum nanprod nanmean nanstd nanvar nanmax nanmin median".split()
ALONG = ["cumsum", "cumprod", "nancumsum", "nancumprod", "sort", "flip"]

floats = named_arrays([np.float32], tame=True)
floats_with_axes = named_arrays([np.float32], tame=True, min_axes=1).filter(lambda x: x.size)


@functools.cache
def differentiable(names):
    """The operations that make floats of floats, and have a derivative."""
    arity = {UNARY: 1, BINARY: 2}[names]
    return [
        name
        for name in names
        if dtype_of(getattr(hax, name).__jax__, *[FLOAT] * arity) == FLOAT and name != "nextafter"
    ]


UNARY, BINARY = tuple(UNARY), tuple(BINARY)


def twins(label, arrays, names, named, plain):
    """A case in which a named function and a plain one, with their gradients, are compared in one program.

    Args:
        label: What to call it.
        arrays: Named arrays of float32.
        names: The axes of the result.
        named: A function of the named arrays.
        plain: The same of the raw arrays.
    """

    def run(*arrays):
        raw = [a.array for a in arrays]
        by_name, by_position = named(*arrays), plain(*raw)
        weights = jnp.cos(jnp.arange(by_position.size, dtype=FLOAT)).reshape(by_position.shape)
        gradients = jax.grad(lambda arrays: (named(*arrays).array * weights).sum())(arrays)
        plain_gradients = jax.grad(lambda raw: (plain(*raw) * weights).sum())(raw)
        for a, gradient in zip(arrays, gradients, strict=True):
            assert gradient.axes == a.axes, label
        pairs = [(by_name, by_position), *zip(gradients, plain_gradients, strict=True)]
        return [a.like(jnp.isclose(a.array, b, equal_nan=True), a.axis_names) for a, b in pairs]

    shapes = [names, *(a.axis_names for a in arrays)]
    size = {name: size for a in arrays for name, size in a.shape.items()}
    trues = [(n, np.ones([size[name] for name in n], bool)) for n in shapes]
    return Case(label, tuple(arrays), run, lambda *arrays: trues)


@st.composite
def unary(draw):
    x, name = draw(floats), draw(st.sampled_from(differentiable(UNARY)))
    op = getattr(hax, name)
    return twins(f"{name}(x)", [x], x.axis_names, op, op.__jax__)


@st.composite
def binary(draw):
    x, name = draw(floats), draw(st.sampled_from(differentiable(BINARY)))
    y, op = draw(sub_arrays(x, [np.float32], tame=True)), getattr(hax, name)

    def plain(a, b):
        return op.__jax__(a, aligned(b, y.axis_names, x.axis_names))

    return twins(f"{name}(x, y)", [x, y], x.axis_names, op, plain)


def aligned(raw, names, target):
    """A raw array with axes `names` that broadcasts against one with axes `target`, by `jax.numpy` alone."""
    here = [name for name in target if name in names]
    raw = jnp.transpose(raw, [names.index(name) for name in here])
    return jnp.expand_dims(raw, [i for i, name in enumerate(target) if name not in names])


@st.composite
def reductions(draw):
    x, name = draw(floats_with_axes), draw(st.sampled_from(REDUCTIONS))
    axes = draw(axes_of(x))
    dims, names = dims_of(x, axes)
    return twins(
        f"{name}(x, {axes})", [x], names, lambda x: getattr(hax, name)(x, axes), lambda a: jax_function(name)(a, dims)
    )


@st.composite
def along(draw):
    x, name = draw(floats_with_axes), draw(st.sampled_from(ALONG))
    axis, dim = draw(one_axis(x))
    return twins(
        f"{name}(x, {axis})",
        [x],
        x.axis_names,
        lambda x: getattr(hax, name)(x, axis),
        lambda a: getattr(jnp, name)(a, dim),
    )


@st.composite
def parts(draw):
    """Reading and updating at integers, index arrays and windows."""
    x = draw(floats_with_axes)
    axis, dim = draw(one_axis(x))
    name, size = x.axis_names[dim], x.array.shape[dim]
    places = hax.named(jnp.asarray(draw(st.lists(st.integers(0, size - 1), min_size=3, max_size=3))), "i")
    index = draw(st.sampled_from([size - 1, slice(None, None, -1), places, hax.ds(0, size), hax.ds(jnp.array(0), 1)]))
    raw_index = {hax.NamedArray: lambda: places.array, hax.dslice: lambda: slice(0, index.size)}
    at = (*[slice(None)] * dim, raw_index.get(type(index), lambda: index)())
    rest = x.axis_names[:dim], x.axis_names[dim + 1 :]
    kept = {hax.NamedArray: ("i",), int: ()}.get(type(index), (name,))
    how = draw(st.sampled_from(["get", "add", "multiply", "max"]))
    if how == "get":
        size_of = dict(x.shape)
        weights = (*rest[0], *kept, *rest[1])
        if kept == (name,) and isinstance(index, hax.dslice) and index.size != size_of[name]:
            index, at = hax.ds(0, size), (*[slice(None)] * dim, slice(None))
        if kept == ("i",):
            return twins(
                f"x[{name}, i] summed",
                [x],
                (*rest[0], *rest[1]),
                lambda x: x[axis, places].sum("i"),
                lambda a: a[at].sum(dim),
            )
        return twins(f"x[{name}, {index}]", [x], weights, lambda x: x[axis, index], lambda a: a[at])
    return twins(
        f"x.at[{name}, {index}].{how}(2)",
        [x],
        x.axis_names,
        lambda x: getattr(x.at[axis, index], how)(2.0),
        lambda a: getattr(a.at[at], how)(2.0),
    )


@st.composite
def contractions(draw):
    x = draw(floats_with_axes)
    y = draw(sub_arrays(x, [np.float32], tame=True))
    axes = tuple(draw(st.permutations(x.axis_names))[: draw(st.integers(0, x.ndim))])
    names = tuple(name for name in x.axis_names if name not in axes)
    spec = f"{''.join(x.axis_names)},{''.join(y.axis_names)}->{''.join(names)}"
    run = draw(
        st.sampled_from(
            [
                lambda x, y: hax.dot(x, y, axis=axes, out_axes=names),
                lambda x, y: (x * y).sum(axes),
                lambda x, y: hax.einsum(f"{{{' '.join(x.axis_names)}}} -> {' '.join(names)}", x, y),
            ]
        )
    )
    return twins(f"dot(x, y, {axes})", [x, y], names, run, lambda a, b: jnp.einsum(spec, a, b))


@st.composite
def choices(draw):
    x = draw(floats)
    y = draw(sub_arrays(x, [np.float32], tame=True))
    named, plain = draw(
        st.sampled_from(
            [
                (lambda x, y: hax.where(x > y, x, y), lambda a, b: jnp.where(a > b, a, b)),
                (lambda x, y: hax.clip(x, y, 2), lambda a, b: jnp.clip(a, b, 2)),
                (lambda x, y: y.broadcast_to(x.axes) * x, lambda a, b: jnp.broadcast_to(b, a.shape) * a),
                (lambda x, y: x - y + 2 / (y + 0.1), lambda a, b: a - b + 2 / (b + 0.1)),
            ]
        )
    )
    return twins(
        "where, clip, broadcast_to, -",
        [x, y],
        x.axis_names,
        named,
        lambda a, b: plain(a, aligned(b, y.axis_names, x.axis_names)),
    )


@agrees(unary(), binary(), reductions(), along(), parts(), contractions(), choices(), bunches=10)
def test_gradients():
    """The same numbers by name and by position, compiled, mapped and differentiated."""
