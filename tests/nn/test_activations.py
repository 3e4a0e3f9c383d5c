"""Activations against `jax.nn`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import NamedArray

UNARY = [
    "celu",
    "elu",
    "gelu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softplus",
    "swish",
]
# those that jax.nn lacks
FORMULAS = {
    "quick_gelu": lambda x: x / (1 + jnp.exp(-1.702 * x)),
    "relu_squared": lambda x: jnp.where(x > 0, x * x, 0),
}
VALUES = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("name", UNARY)
def test_follows_jax(name, dtype):
    values = jnp.asarray(VALUES, dtype)
    ours, expected = getattr(hax.nn, name), getattr(jax.nn, name)(values)
    for result in (ours(NamedArray(values, ("a", "b"))), ours(values)):
        raw = result.array if isinstance(result, NamedArray) else result
        assert raw.dtype == expected.dtype
        np.testing.assert_array_equal(raw, expected)
    assert ours(NamedArray(values, ("a", "b"))).axis_names == ("a", "b")


@pytest.mark.parametrize("name", FORMULAS)
def test_follows_its_formula(name):
    ours = getattr(hax.nn, name)
    result = ours(NamedArray(jnp.asarray(VALUES), ("a", "b")))
    assert result.axis_names == ("a", "b")
    np.testing.assert_allclose(result.array, FORMULAS[name](VALUES), rtol=1e-5)
    np.testing.assert_array_equal(ours(jnp.asarray(VALUES)), result.array)
    assert ours(NamedArray(jnp.asarray(VALUES, jnp.bfloat16), ("a", "b"))).array.dtype == jnp.bfloat16


@pytest.mark.parametrize("name", [*UNARY, *FORMULAS])
def test_names_and_documentation(name):
    op = getattr(hax.nn, name)
    assert op.__name__ == name
    assert op.__doc__ and "Returns:" in op.__doc__


@pytest.mark.parametrize("approximate", [True, False])
def test_gelu_approximation(approximate):
    result = hax.nn.gelu(NamedArray(jnp.asarray(VALUES), ("a", "b")), approximate=approximate)
    np.testing.assert_array_equal(result.array, jax.nn.gelu(VALUES, approximate=approximate))


@pytest.mark.parametrize("name", UNARY)
def test_gradients_and_compiled_operations_are_those_of_jax(name):
    ours, plain = getattr(hax.nn, name), getattr(jax.nn, name)
    x = NamedArray(jnp.asarray(VALUES), ("a", "b"))
    gradient = jax.grad(lambda x: ours(x).sum().scalar())(x)
    np.testing.assert_array_equal(gradient.array, jax.grad(lambda x: plain(x).sum())(x.array))
    assert jax.make_jaxpr(lambda x: ours(x).array)(x).pretty_print() == jax.make_jaxpr(plain)(x.array).pretty_print()


@pytest.mark.parametrize(("name", "option"), [("celu", "alpha"), ("elu", "alpha"), ("leaky_relu", "negative_slope")])
@pytest.mark.parametrize("value", [0.3, np.float32(0.3), 2])
def test_options(name, option, value):
    ours, plain = getattr(hax.nn, name), getattr(jax.nn, name)
    x, expected = NamedArray(jnp.asarray(VALUES), ("a", "b")), plain(VALUES, **{option: value})
    for result in (ours(x, value), ours(x, **{option: value}), jax.jit(ours)(x, value)):
        np.testing.assert_allclose(result.array, expected, rtol=1e-6)
    np.testing.assert_array_equal(ours(VALUES, value), expected)


@pytest.mark.parametrize("axis", [0, 1])
def test_glu_halves_an_axis(axis):
    values = jnp.asarray(np.arange(24.0).reshape(4, 6) - 12)
    result = hax.nn.glu(NamedArray(values, ("a", "b")), "ab"[axis])
    assert result.axis_names == ("a", "b")
    np.testing.assert_array_equal(result.array, jax.nn.glu(values, axis))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: hax.nn.glu(x, "a"), ValueError, "glu: axis a=3; expected an even size."),
        (lambda x: hax.nn.glu(x, "c"), ValueError, "glu: no axis 'c'; the array has a=3, b=4."),
        (
            lambda x: hax.nn.glu(x.array, "a"),
            TypeError,
            "glu: the array is a jax array of shape (3, 4); expected a NamedArray."
            " Name its axes with haliax.named(array, axes).",
        ),
    ],
)
def test_messages(call, error, message):
    with pytest.raises(error) as raised:
        call(NamedArray(jnp.asarray(VALUES), ("a", "b")))
    assert str(raised.value) == message
