"""Polynomials: values against numpy, gradients and programs against `jax.numpy`, names and errors."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import haliax as hax
from haliax import Axis
from strategies import assert_same

poly = importlib.import_module("haliax.poly")  # `haliax.poly` is the function

P1 = hax.NamedArray(jnp.array([1.0, 2, 3, 4]), ("p",))
P2 = hax.NamedArray(jnp.array([1.0, 2, 5]), ("q",))
SQUARE = hax.NamedArray(jnp.array([[2.0, 1], [1, 3]]), ("row", "column"))
GRID = hax.NamedArray(jnp.linspace(-1, 1, 6).reshape(2, 3), ("b", "t"))
PLACES = hax.NamedArray(jnp.arange(6.0), ("x",))
VALUES = PLACES**2 - 2 * PLACES
BOTH = hax.stack(Axis("k", 2), [VALUES, PLACES])
ARITHMETIC = ["polyadd", "polysub", "polymul", "polydiv"]

coefficients = st.lists(st.integers(-3, 3), max_size=5)


def named(values, name="p") -> hax.NamedArray:
    return hax.NamedArray(jnp.asarray(values, jnp.float32), (name,))


def close(actual: hax.NamedArray, expected, names) -> None:
    assert actual.axis_names == names and actual.array.shape == np.shape(expected)
    np.testing.assert_allclose(actual.array, expected, rtol=1e-3, atol=1e-3)


@settings(max_examples=10)
@given(st.sampled_from(["polyadd", "polysub", "polymul"]), coefficients, coefficients)
def test_arithmetic_against_numpy(name, a, b):
    actual = getattr(hax, name)(named(a), named(b, "q"))
    assert actual.axis_names == ("p",)
    expected = getattr(np, name)(np.asarray(a or [0.0]), np.asarray(b or [0.0]))
    assert np.array_equal(np.trim_zeros(np.asarray(actual.array), "f"), np.trim_zeros(expected, "f"))


@settings(max_examples=10)
@given(coefficients, coefficients.filter(lambda b: b and b[0]))
def test_a_quotient_and_its_remainder_give_the_dividend(a, b):
    quotient, remainder = hax.polydiv(named(a), named(b, "q"))
    again = hax.polyadd(hax.polymul(quotient, named(b, "q")), remainder)
    expected = np.asarray(a or [0.0])
    assert again.axis_names == quotient.axis_names == remainder.axis_names == ("p",)
    np.testing.assert_allclose(again.array[-len(expected) :], expected, atol=1e-3)


@settings(max_examples=10)
@given(coefficients, st.integers(0, 3))
def test_derivatives_and_integrals_against_numpy(a, m):
    p, expected = named(a), np.asarray(a or [0.0])
    close(hax.polyder(p, m), np.polyder(expected, m), ("p",))
    close(hax.polyint(p, m), np.polyint(expected, m), ("p",))


@pytest.mark.parametrize("k", [2.0, [2.0, 3.0], np.array([2.0, 3.0]), hax.NamedArray(jnp.array([2.0, 3.0]), ("k",))])
def test_constants_of_integration(k):
    raw = np.asarray(k.array) if isinstance(k, hax.NamedArray) else k
    close(hax.polyint(P1, 2, k), np.polyint(np.asarray(P1.array), 2, raw), ("p",))


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize(
    ("a", "b", "axis"),
    [
        (P1, P2, "p"),
        (P2, P1, "q"),
        (P1, P2.array, "p"),
        (P1.array, P2, "q"),
        (P1.array, P2.array, "degree"),
        (P1, 2.0, "p"),
        (2.0, P2, "q"),
    ],
)
def test_the_first_named_argument_names_the_axis(name, a, b, axis):
    results = getattr(hax, name)(a, b)
    assert [r.axis_names for r in (results if isinstance(results, tuple) else (results,))].count((axis,)) >= 1


@pytest.mark.parametrize("x", [GRID, PLACES, GRID["b", 0, "t", 0]])
def test_polyval_has_the_axes_of_the_places(x):
    assert_same(hax.polyval(P1, x).array, jnp.polyval(P1.array, x.array))
    assert hax.polyval(P1.array, x).axes == x.axes


def test_polyval_at_unnamed_places():
    assert_same(hax.polyval(P1, 2.0), jnp.polyval(P1.array, 2.0))
    assert_same(hax.polyval(P1, PLACES.array), jnp.polyval(P1.array, PLACES.array))


def test_gradients_and_programs_are_those_of_jnp():
    def plain(p, x):
        return jnp.polyval(p, x)

    def with_names(p, x):
        return hax.polyval(hax.NamedArray(p, ("p",)), hax.NamedArray(x, ("b", "t"))).array

    args = (P1.array, GRID.array)
    assert str(jax.make_jaxpr(with_names)(*args)) == str(jax.make_jaxpr(plain)(*args))
    for argument in (0, 1):
        actual, expected = (jax.grad(lambda *a, f=f: f(*a).sum(), argument)(*args) for f in (with_names, plain))
        assert_same(actual, expected)


@pytest.mark.parametrize("values", [[1, 2, 3, 4], [0, 0, 1, 2, 0], [5], [], [0, 0]])
def test_roots(values):
    actual = hax.roots(named(values))
    assert actual.axis_names == ("p",)
    np.testing.assert_allclose(np.sort(np.asarray(actual.array)), np.sort(np.roots(values)), rtol=1e-4, atol=1e-4)


def test_roots_of_a_traced_polynomial():
    assert jax.jit(hax.roots)(P1).axes == (Axis("p", 3),)


@pytest.mark.parametrize("values", [[1, 2, 3], [2], []])
def test_poly_of_roots(values):
    close(hax.poly(named(values)), np.atleast_1d(np.poly(np.asarray(values, np.float32))), ("p",))


def test_poly_of_a_matrix():
    close(hax.poly(SQUARE), np.poly(np.asarray(SQUARE.array)), ("degree",))
    close(hax.poly(SQUARE.array), np.poly(np.asarray(SQUARE.array)), ("degree",))


@pytest.mark.parametrize("trim", ["fb", "f", "b"])
@pytest.mark.parametrize("values", [[0, 0, 1, 2, 0], [1, 2], [0, 0], []])
def test_trim_zeros(values, trim):
    close(hax.trim_zeros(named(values), trim), np.trim_zeros(np.asarray(values, np.float32), trim), ("p",))


@pytest.mark.parametrize(("degree", "size"), [("d", 4), (Axis("d", 3), 3), (Axis("d", 1), 1), (Axis("d", 0), 0)])
def test_vander(degree, size):
    close(hax.vander(P1, degree), np.vander(np.asarray(P1.array), size), ("p", "d"))


@pytest.mark.parametrize("w", [None, PLACES + 1])
def test_polyfit(w):
    raw = None if w is None else np.asarray(w.array)
    x, y = np.asarray(PLACES.array), np.asarray(VALUES.array)
    close(hax.polyfit(PLACES, VALUES, 2, w=w), np.polyfit(x, y, 2, w=raw), ("x",))
    coefficients, *rest = hax.polyfit(PLACES, VALUES, 2, w=w, full=True)
    close(coefficients, np.polyfit(x, y, 2, w=raw), ("x",))
    assert len(rest) == 4 and all(isinstance(r, jax.Array) for r in rest)
    coefficients, covariance = hax.polyfit(PLACES, VALUES + PLACES**3, 1, w=w, cov=True)
    close(covariance, np.polyfit(x, y + x**3, 1, w=raw, cov=True)[1], ("x", "x_cov"))


@pytest.mark.parametrize("y", [BOTH, BOTH.rearrange(("x", "k"))])
def test_polyfit_at_each_index_of_another_axis(y):
    expected = np.polyfit(np.asarray(PLACES.array), np.asarray(BOTH.array).T, 2)
    close(hax.polyfit(PLACES, y, 2), expected, ("x", "k"))
    assert hax.polyfit(PLACES, y, 2, cov=True)[1].axis_names == ("x", "x_cov", "k")


@pytest.mark.parametrize(
    ("x", "y", "names"),
    [
        (PLACES, VALUES.array, ("x",)),
        (PLACES, VALUES.rename({"x": "y"}), ("x",)),
        (PLACES.array, VALUES, ("x",)),
        (PLACES.array, VALUES.array, ("degree",)),
        (PLACES, BOTH.array.T, ("x", "other")),
    ],
)
def test_names_of_a_fit(x, y, names):
    assert hax.polyfit(x, y, 2).axis_names == names


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: hax.polyadd(GRID, P1),
            ValueError,
            "polyadd: p1 has b=2, t=3; expected one axis, that of the coefficients.",
        ),
        (
            lambda: hax.polymul(P1, GRID.array),
            ValueError,
            "polymul: p2 has shape (2, 3); expected one axis, that of the coefficients.",
        ),
        (lambda: hax.polydiv(P1, [1.0]), TypeError, "polydiv: p2 is a list; expected an array with one axis."),
        (
            lambda: hax.polyval(GRID, P1),
            ValueError,
            "polyval: p has b=2, t=3; expected one axis, that of the coefficients.",
        ),
        (lambda: hax.poly(GRID), ValueError, "poly: the array has b=2, t=3; expected one axis, or a square matrix."),
        (
            lambda: hax.poly([1.0]),
            TypeError,
            "poly: the argument is a list; expected an array of roots, or a square matrix.",
        ),
        (
            lambda: jax.jit(hax.trim_zeros)(P1),
            TypeError,
            "trim_zeros: the array is traced, and the size of the result"
            " depends on its elements; expected an array with values. Call it outside of jit.",
        ),
        (lambda: hax.trim_zeros(P1, "x"), ValueError, "trim_zeros: trim is 'x'; expected 'f', 'b' or 'fb'."),
        (
            lambda: hax.vander(P1, "p"),
            ValueError,
            "vander: axis 'p' occurs more than once in (p, p). Give the powers another axis.",
        ),
        (lambda: hax.vander(P1, 3), TypeError, "vander: degree is an int; expected an Axis, or a name."),
        (
            lambda: hax.vander(2.0, "d"),
            TypeError,
            "vander: the array is a float; expected a NamedArray. Name its axes with haliax.named(array, axes).",
        ),
        (
            lambda: hax.polyfit(PLACES, VALUES["x", :3], 2),
            ValueError,
            "polyfit: axis 'x' has size 3; expected 6. y must have as many points as x.",
        ),
        (
            lambda: hax.polyfit(PLACES, VALUES, 2, w=P1),
            ValueError,
            "polyfit: axis 'x' has size 4; expected 6. w must have as many points as x.",
        ),
        (
            lambda: hax.polyfit(PLACES, BOTH.rename({"x": "z"}), 2),
            ValueError,
            "polyfit: no axis 'x'; the array has k=2, z=6.",
        ),
        (lambda: hax.polyfit(PLACES, [1.0], 2), TypeError, "polyfit: y is a list; expected an array."),
        (lambda: hax.polyder(P1, -1), ValueError, "polyder: m is -1; expected at least 0."),
        (lambda: hax.polyfit(PLACES, VALUES, 1.5), TypeError, "polyfit: deg is a float; expected an int."),
        (
            lambda: hax.polyint(P1, 2, [1.0, 2.0, 3.0]),
            ValueError,
            "polyint: k has shape (3,); expected one constant, or one for each of 2 times.",
        ),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message
