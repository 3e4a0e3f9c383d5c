"""Dropout: which elements are dropped, the scale of the others, and when nothing is."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import Axis, NamedArray

KEY = jax.random.PRNGKey(0)
X = NamedArray(jnp.arange(1.0, 7.0).reshape(2, 3), ("b", "c"))


def drop(x=X, pdrop=0.5, axes=None, key=KEY):
    return hax.nn.dropout(x, pdrop, axes, inference=False, key=key)


@pytest.mark.parametrize("pdrop", [0.1, 0.5, 0.9])
def test_keeps_what_bernoulli_keeps(pdrop):
    mask = jax.random.bernoulli(KEY, 1 - pdrop, (2, 3))
    np.testing.assert_array_equal(drop(pdrop=pdrop).array, jnp.where(mask, X.array / (1 - pdrop), 0))


@pytest.mark.parametrize("axes", ["b", Axis("b", 2), ("b",), ["b", "missing"]])
def test_broadcast_axes_share_their_fate(axes):
    mask = jax.random.bernoulli(KEY, 0.5, (3,))
    np.testing.assert_array_equal(drop(axes=axes).array, jnp.where(mask[None], X.array * 2, 0))


def test_all_axes_may_share_their_fate():
    kept = [bool(drop(axes=("b", "c"), key=jax.random.key(i)).array.any()) for i in range(20)]
    assert True in kept and False in kept
    for i in range(20):
        assert bool((drop(axes=("b", "c"), key=jax.random.key(i)).array == X.array * 2 * kept[i]).all())


def test_expectation_stays():
    ones = hax.ones(Axis("x", 20_000))
    np.testing.assert_allclose(drop(ones, 0.3).mean().array, 1, rtol=0.03)


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("pdrop", [0, 0.0])
def test_probability_zero_needs_no_key(pdrop, key):
    assert drop(pdrop=pdrop, key=key) is X


@pytest.mark.parametrize("pdrop", [1, 1.0])
def test_probability_one_drops_all(pdrop):
    np.testing.assert_array_equal(drop(pdrop=pdrop).array, 0)


@pytest.mark.parametrize("pdrop", [0.0, 0.5, 1.0])
def test_the_probability_may_be_traced(pdrop):
    def total(p, x):
        return drop(x, p).sum().scalar()

    result, gradient = jax.jit(jax.value_and_grad(total, argnums=1))(pdrop, X)
    np.testing.assert_allclose(result, drop(pdrop=pdrop).sum().scalar(), rtol=1e-6)
    assert jnp.isfinite(gradient.array).all()


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32])
@pytest.mark.parametrize("pdrop", [0.3, jnp.float32(0.3), 1.0])
def test_dtype_stays(dtype, pdrop):
    assert drop(X.astype(dtype), pdrop).array.dtype == dtype


def test_inference_leaves_the_array():
    assert hax.nn.dropout(X, 0.5, inference=True) is X
    assert hax.nn.Dropout(0.5, inference=True)(X) is X
    assert hax.nn.Dropout(0.5)(X, inference=True) is X
    assert eqx.nn.inference_mode(hax.nn.Dropout(0.5))(X) is X


def test_layer():
    layer = hax.nn.Dropout(0.3, "c")
    np.testing.assert_array_equal(layer(X, key=KEY).array, drop(pdrop=0.3, axes="c").array)
    forced = hax.nn.Dropout(0.3, "c", inference=True)(X, inference=False, key=KEY)
    np.testing.assert_array_equal(forced.array, layer(X, key=KEY).array)
    assert [hax.nn.Dropout(p).is_active for p in (0.0, 0.5)] == [False, True]
    assert not hax.nn.Dropout(0.5, inference=True).is_active
    assert hax.nn.Dropout() == hax.nn.Dropout(0.5, None, False)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: drop(key=None), RuntimeError, "dropout: there is no key. Pass key=..., or inference=True."),
        (lambda: hax.nn.Dropout()(X), RuntimeError, "dropout: there is no key. Pass key=..., or inference=True."),
        (lambda: drop(pdrop=-0.1), ValueError, "dropout: pdrop is -0.1; expected a probability from 0 to 1."),
        (lambda: drop(pdrop=1.5), ValueError, "dropout: pdrop is 1.5; expected a probability from 0 to 1."),
        (
            lambda: drop(np.ones(3)),
            TypeError,
            "dropout: the array is a numpy array of shape (3,); expected a NamedArray."
            " Name its axes with haliax.named(array, axes).",
        ),
    ],
)
def test_messages(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message
