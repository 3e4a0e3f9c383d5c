"""Fourier transforms: the axes and sizes of the results, values against numpy, programs against `jax.numpy`."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax.sharding import PartitionSpec as P

import haliax as hax
from haliax import Axis
from strategies import assert_same

fft = importlib.import_module("haliax.fft")  # `haliax.fft` is the function

TRANSFORMS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
REAL = ["rfft", "ihfft"]
SEVERAL = ["fft", "ifft", "rfft", "irfft"]
NORMS = [None, "backward", "ortho", "forward"]
NAMES = ("b", "t")
VALUES = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
X = hax.NamedArray(jnp.asarray(VALUES), NAMES)

each = pytest.mark.parametrize("name", TRANSFORMS)


def check(actual: hax.NamedArray, expected: np.ndarray, names=NAMES) -> None:
    assert actual.axis_names == names and actual.array.shape == expected.shape
    assert actual.array.dtype == (np.complex64 if np.iscomplexobj(expected) else np.float32)
    np.testing.assert_allclose(actual.array, expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=10)
@given(st.sampled_from(TRANSFORMS), st.data())
def test_one_axis_against_numpy(name, data):
    axis = data.draw(st.sampled_from(NAMES))
    size = data.draw(st.integers(1, 10))
    norm = data.draw(st.sampled_from(NORMS))
    values = VALUES if name in REAL else VALUES + 1j * VALUES[::-1]
    x = hax.NamedArray(jnp.asarray(values), NAMES)
    actual = getattr(hax, name)(x, Axis(axis, size), norm)
    check(actual, getattr(np.fft, name)(values, size, NAMES.index(axis), norm))


@each
@pytest.mark.parametrize("axis", [None, "t", Axis("t", 8), ("t",), {"t": None}])
def test_forms_of_the_axis(name, axis):
    size = 8 if isinstance(axis, Axis) else None
    check(getattr(hax, name)(X, axis), getattr(np.fft, name)(VALUES, size))


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize(
    ("axis", "sizes"),
    [(("b", "t"), None), (("t", "b"), None), (("b", Axis("t", 5)), (3, 5)), ({"t": 9, "b": 2}, (9, 2))],
)
def test_several_axes(name, axis, sizes):
    dims = tuple(NAMES.index(ax.name if isinstance(ax, Axis) else ax) for ax in axis)
    if sizes is None:
        expected = getattr(np.fft, f"{name}n")(VALUES, axes=dims)
    else:
        expected = getattr(np.fft, f"{name}n")(VALUES, s=sizes, axes=dims)
    check(getattr(hax, name)(X, axis), expected)


@each
def test_the_program_is_that_of_jnp(name):
    named = jax.make_jaxpr(lambda x: getattr(hax, name)(hax.NamedArray(x, NAMES), "b").array)(VALUES)
    plain = jax.make_jaxpr(lambda x: getattr(jnp.fft, name)(x, axis=0))(VALUES)
    assert str(named) == str(plain)


@pytest.mark.parametrize("name", ["fft", "rfft", "irfft"])
def test_gradients(name):
    def total(x, fn):
        return jnp.sum(jnp.abs(fn(x)) ** 2)

    actual = jax.grad(total)(X.array, lambda x: getattr(hax, name)(hax.NamedArray(x, NAMES), "t").array)
    assert_same(actual, jax.grad(total)(X.array, getattr(jnp.fft, name)))


@each
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.int8])
def test_narrow_dtypes_compute_in_float32(name, dtype):
    x = X.astype(dtype)
    check(getattr(hax, name)(x), getattr(np.fft, name)(np.asarray(x.array.astype(jnp.float32))))


@each
def test_raw_arrays_and_trees(name):
    fn, expected = getattr(hax, name), getattr(jnp.fft, name)(X.array)
    both = fn({"x": X, "raw": X.array})
    assert_same(both["x"].array, expected)
    assert_same(both["raw"], expected)
    assert_same(fn(X.array, axis=0), getattr(jnp.fft, name)(X.array, axis=0))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "ihfft"])
def test_sizes_zero_and_one(name):
    assert getattr(hax, name)(X["b", :0], "t").array.shape[0] == 0
    check(getattr(hax, name)(X["t", :1], "t"), getattr(np.fft, name)(VALUES[:, :1]))


@pytest.mark.parametrize("size", [1, 7, 8])
@pytest.mark.parametrize("d", [1.0, 0.5, hax.NamedArray(jnp.float32(2), ())])
def test_frequencies(size, d):
    spacing = float(d)
    for name, axis in [("fftfreq", Axis("t", size)), ("rfftfreq", Axis("t", size))]:
        check(getattr(hax, name)(axis, d), getattr(np.fft, name)(size, spacing).astype(np.float32), ("t",))


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
@pytest.mark.parametrize(("axes", "dims"), [(None, None), ("t", 1), (("b", "t"), (0, 1)), (Axis("b", 3), 0), ((), ())])
def test_shifts(name, axes, dims):
    check(getattr(hax, name)(X, axes), getattr(np.fft, name)(VALUES, dims))
    assert_same(getattr(hax, name)(X.array), getattr(np.fft, name)(VALUES))


def test_axes_split_over_explicit_mesh_axes(explicit_mesh):
    with jax.set_mesh(explicit_mesh):
        x = hax.shard(hax.NamedArray(jnp.arange(64.0).reshape(8, 8), NAMES), {"b": "data", "t": "model"})
        for name, spec in [("fft", P("data", "model")), ("rfft", P("data", None)), ("fftshift", P("data", "model"))]:
            actual = getattr(hax, name)(x, "t")
            assert jax.typeof(actual.array).sharding.spec == spec
            np.testing.assert_allclose(
                actual.array,
                getattr(jnp.fft, name)(np.asarray(x.array), axes=1)
                if "shift" in name
                else getattr(np.fft, name)(np.asarray(x.array)),
                rtol=1e-4,
            )


def test_under_vmap_and_jit():
    expected = hax.fft(X, "t")
    for actual in (hax.vmap(hax.fft, "b")(X, "t"), jax.jit(hax.fft, static_argnums=1)(X, "t")):
        np.testing.assert_allclose(actual.array, expected.array, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: hax.fft(X, "tt"), ValueError, "fft: no axis 'tt'; the array has b=3, t=8. Did you mean 't'?"),
        (
            lambda: hax.fft(X, 1),
            TypeError,
            "fft: the axes are an int; expected an Axis, a name, a sequence of those, or a mapping from names to"
            " sizes.",
        ),
        (lambda: hax.fft(X, ()), ValueError, "fft: no axes were given; expected at least one to transform."),
        (lambda: hax.fft(X, ("t", "t")), ValueError, "fft: axis 't' occurs more than once in (t, t)."),
        (
            lambda: hax.ifft(X["b", 0, "t", 0]),
            ValueError,
            "ifft: the array has no axes; expected at least one to transform.",
        ),
        (
            lambda: hax.irfft(X["t", :1]),
            ValueError,
            "irfft: a transform of axis 't' would have no points; expected at"
            " least one. Give the number of points as Axis('t', size).",
        ),
        (
            lambda: hax.fft(X, Axis("t", 0)),
            ValueError,
            "fft: a transform of axis 't' would have no points; expected at"
            " least one. Give the number of points as Axis('t', size).",
        ),
        (lambda: hax.hfft(X, ("b", "t")), ValueError, "hfft: 2 axes were given; expected one axis."),
        (
            lambda: hax.rfft(X * 1j),
            TypeError,
            "rfft: the array has dtype complex64; expected booleans, integers or floats.",
        ),
        (
            lambda: hax.rfft(X, norm="orto"),
            ValueError,
            "rfft: norm is 'orto'; expected 'backward', 'ortho' or 'forward'.",
        ),
        (
            lambda: hax.fft(X.array, "t"),
            ValueError,
            "fft: an axis by name, and an unnamed array of 2 dimensions;"
            " expected a NamedArray. Name its axes with haliax.named(array, axes).",
        ),
        (
            lambda: hax.fft(object()),
            TypeError,
            "fft: an operand is an object; expected a NamedArray, an array, a number or a pytree of them.",
        ),
        (
            lambda: hax.fftfreq(8),
            TypeError,
            "fftfreq: axis is an int; expected an Axis. Its size is the number of points.",
        ),
        (lambda: hax.rfftfreq(Axis("t", 0)), ValueError, "rfftfreq: axis 't' has no points; expected at least one."),
        (
            lambda: hax.fftshift(X, Axis("t", 5)),
            ValueError,
            "fftshift: axis 't' has size 5; expected 8. An Axis must have the size that the array has.",
        ),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message
