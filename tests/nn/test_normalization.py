"""Softmax and normalising layers against `jax.nn` and their formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import Axis, NamedArray

A, B, C = Axis("a", 2), Axis("b", 3), Axis("c", 4)
VALUES = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
X = NamedArray(jnp.asarray(VALUES), ("a", "b", "c"))
MASK = NamedArray(jnp.asarray([[True, False, True, True], [False] * 4, [True] * 4]), ("b", "c"))

SOFTMAXES = [hax.nn.softmax, hax.nn.log_softmax, hax.nn.logsumexp]
AXES = [("a", 0), (C, 2), (("a", "c"), (0, 2)), (("c", B), (1, 2)), (None, None)]


def raw_axis(dims):
    return tuple(range(3)) if dims is None else dims


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize(("axis", "dims"), AXES)
@pytest.mark.parametrize("op", SOFTMAXES, ids=lambda f: f.__name__)
def test_softmax_follows_jax(op, axis, dims, dtype):
    x = X.astype(dtype)
    result = op(x, axis)
    expected = getattr(jax.nn, op.__name__)(x.array, raw_axis(dims))
    assert jax.typeof(result.array) == jax.typeof(expected)
    # the steps of one are compiled together, those of the other one by one
    np.testing.assert_array_max_ulp(np.float32(result.array), np.float32(expected), 2)


@pytest.mark.parametrize("op", SOFTMAXES, ids=lambda f: f.__name__)
def test_softmax_under_a_mask(op):
    result = op(X, "c", where=MASK)
    expected = getattr(jax.nn, op.__name__)(X.array, 2, where=MASK.array[None])
    np.testing.assert_array_equal(result.array, expected)
    np.testing.assert_array_equal(op(X.array, 2, where=MASK.array[None]), expected)


def test_softmax_of_nothing_is_zero_and_has_gradient_zero():
    np.testing.assert_array_equal(hax.nn.softmax(X, "c", where=MASK)["b", 1].array, 0)
    gradient = jax.grad(lambda x: (hax.nn.softmax(x, "c", where=MASK) * X).sum().scalar())(X)
    assert jnp.isfinite(gradient.array).all()
    np.testing.assert_array_equal(gradient["b", 1].array, 0)


@pytest.mark.parametrize("op", SOFTMAXES, ids=lambda f: f.__name__)
def test_softmax_is_stable(op):
    large = X + 1e4
    assert jnp.isfinite(op(large, "c").array).all()


@pytest.mark.parametrize("op", SOFTMAXES, ids=lambda f: f.__name__)
def test_softmax_lowers_to_the_operations_of_jax(op):
    plain = getattr(jax.nn, op.__name__)
    ours = jax.make_jaxpr(lambda x: op(x, "c").array)(X)
    theirs = jax.make_jaxpr(lambda x: plain(x, (2,) if op is not hax.nn.logsumexp else 2))(X.array)
    assert [e.primitive for e in ours.eqns] == [e.primitive for e in theirs.eqns]


def test_softmax_of_trees_and_raw_arrays():
    tree = hax.nn.softmax({"x": X, "y": X["b", 0]}, "c")
    np.testing.assert_array_equal(tree["x"]["b", 0].array, tree["y"].array)
    np.testing.assert_array_equal(hax.nn.softmax(X.array, -1), hax.nn.softmax(X, "c").array)


def standardized(x, axis, where=None, eps=1e-5, mean=None, variance=None):
    mean = np.mean(x, axis, keepdims=True, where=True if where is None else where) if mean is None else mean
    if variance is None:
        variance = np.mean((x - mean) ** 2, axis, keepdims=True, where=True if where is None else where)
    return (x - mean) / np.sqrt(variance + eps)


@pytest.mark.parametrize(("axis", "dims"), AXES[:-1])
def test_standardize(axis, dims):
    np.testing.assert_allclose(hax.nn.standardize(X, axis).array, standardized(VALUES, dims), rtol=1e-5, atol=1e-6)


def test_standardize_under_a_mask():
    mask = NamedArray(jnp.asarray([[True, False, True, True]] * 2), ("a", "c"))
    result = hax.nn.standardize(X, "c", where=mask)
    expected = standardized(VALUES, 2, where=np.broadcast_to(np.asarray(mask.array)[:, None], VALUES.shape))
    np.testing.assert_allclose(result.array, expected, rtol=1e-5)


def test_standardize_with_given_moments():
    mean, variance = hax.named(jnp.array([1.0, 2.0, 3.0]), "b"), hax.named(jnp.array([4.0, 5.0]), "a")
    result = hax.nn.standardize(X, "c", mean=mean, variance=variance, epsilon=0.5)
    expected = (VALUES - np.array([1, 2, 3])[:, None]) / np.sqrt(np.array([4, 5])[:, None, None] + 0.5)
    np.testing.assert_allclose(result.array, expected, rtol=1e-5)
    about = standardized(VALUES, 2, mean=np.array([1, 2, 3])[:, None])
    np.testing.assert_allclose(hax.nn.standardize(X, "c", mean=mean).array, about, rtol=1e-5)


def test_standardize_does_not_cancel():
    offset = NamedArray(jnp.array([4096.0, 4097.0, 4098.0, 4099.0]), ("x",))
    np.testing.assert_allclose(hax.nn.standardize(offset, "x").array, standardized(np.arange(4.0), 0), rtol=1e-4)


LAYERS = [hax.nn.LayerNorm, hax.nn.RmsNorm]


def formula(layer, x):
    x = np.asarray(x, np.float32)
    mean = np.mean(x, (1, 2), keepdims=True) if isinstance(layer, hax.nn.LayerNorm) else 0.0
    return (x - mean) / np.sqrt(np.mean((x - mean) ** 2, (1, 2), keepdims=True) + layer.eps)


@pytest.mark.parametrize("eps", [1e-5, 0.1])
@pytest.mark.parametrize("cls", LAYERS)
def test_layers_follow_their_formula(cls, eps):
    layer = cls.init((B, C), eps, use_weight=False, use_bias=False)
    assert (layer.weight, layer.bias, layer.axis, layer.eps, layer.dtype) == (None, None, (B, C), eps, None)
    np.testing.assert_allclose(layer(X).array, formula(layer, VALUES), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("cls", LAYERS)
def test_layers_scale_and_shift(cls):
    layer = cls.init((C, B))
    np.testing.assert_array_equal(layer.weight.array, jnp.ones((4, 3)))
    np.testing.assert_array_equal(layer.bias.array, jnp.zeros((4, 3)))
    weight, bias = hax.random.normal(jax.random.key(1), (C, B)), hax.random.normal(jax.random.key(2), (C, B))
    result = cls((C, B), weight, bias)(X)
    assert result.axis_names == ("a", "b", "c")
    expected = formula(layer, VALUES) * np.asarray(weight.array).T + np.asarray(bias.array).T
    np.testing.assert_allclose(result.array, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cls", LAYERS)
@pytest.mark.parametrize(
    ("given", "compute", "result"),
    [
        (jnp.float32, None, jnp.float32),
        (jnp.bfloat16, None, jnp.bfloat16),
        (jnp.bfloat16, jnp.float32, jnp.bfloat16),
        (jnp.float32, jnp.bfloat16, jnp.float32),
        (jnp.int32, None, jnp.float32),
    ],
)
def test_dtypes_of_layers(cls, given, compute, result):
    layer = cls.init((B, C), dtype=compute)
    assert layer.weight.array.dtype == jnp.float32
    assert layer((X * 3).astype(given)).array.dtype == result


@pytest.mark.parametrize("cls", LAYERS)
def test_layers_normalise_bfloat16_in_float32(cls):
    layer, x = cls.init((B, C)), X.astype(jnp.bfloat16)
    np.testing.assert_array_equal(layer(x).array, layer(x.astype(jnp.float32)).array.astype(jnp.bfloat16))


@pytest.mark.parametrize("cls", LAYERS)
def test_layers_are_pytrees(cls):
    layer = cls.init({"b": 3})
    assert [leaf.shape for leaf in jax.tree.leaves(layer)] == [(3,), (3,)]
    assert jax.jit(lambda f, x: f(x))(layer, X).axis_names == ("a", "b", "c")
    hash(jax.tree.structure(layer))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: hax.nn.softmax(X, "d"),
            ValueError,
            "softmax: no axis 'd'; the array has a=2, b=3, c=4.",
        ),
        (
            lambda: hax.nn.softmax(X["a", 0], "c", where=X > 0),
            ValueError,
            "softmax: the mask `where` has a=2, b=3, c=4; expected axes among those of the array: b=3, c=4.",
        ),
        (
            lambda: hax.nn.LayerNorm.init(Axis("d", 2))(X),
            ValueError,
            "LayerNorm: no axis 'd'; the array has a=2, b=3, c=4.",
        ),
        (
            lambda: hax.nn.RmsNorm.init(Axis("c", 2))(X),
            ValueError,
            "RmsNorm: axis 'c' has size 4; expected 2. The layer was made with c=2.",
        ),
        (
            lambda: hax.nn.standardize(VALUES, "c"),
            TypeError,
            "standardize: the array is a numpy array of shape (2, 3, 4); expected a NamedArray."
            " Name its axes with haliax.named(array, axes).",
        ),
    ],
)
def test_messages(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message
