"""Embeddings: vectors and logits, initial numbers, parametrisations, other sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import Axis
from haliax.nn import mup

V, D, E, B, T = Axis("vocab", 6), Axis("d", 4), Axis("e", 2), Axis("batch", 2), Axis("time", 3)
KEY = jax.random.PRNGKey(0)
Embedding = hax.nn.Embedding
IDS = hax.named(jnp.array([[0, 1, 2], [5, 3, 1]]), ("batch", "time"))


@pytest.mark.parametrize(("Embed", "names"), [(D, "d"), ((D, E), "de"), ({"d": 4}, "d")])
def test_vectors(Embed, names):
    layer = Embedding.init(V, Embed, key=KEY)
    for result in (layer(IDS), layer.embed(IDS), layer(IDS, key=KEY)):
        assert result.axis_names == ("batch", "time", *names)
        np.testing.assert_array_equal(result.array, layer.weight.array[IDS.array])
    np.testing.assert_array_equal(layer(2).array, layer.weight.array[2])


def test_ids_outside_the_vocabulary_count_as_the_nearest():
    layer = Embedding.init(V, D, key=KEY)
    result = layer(hax.named(jnp.array([7, 100]), "x"))
    np.testing.assert_array_equal(result.array, layer.weight.array[jnp.array([5, 5])])


def test_logits():
    layer = Embedding.init(V, (D, E), key=KEY)
    x = hax.random.normal(jax.random.key(1), (D, B, E, T))
    result = layer.unembed(x)
    assert result.axis_names == ("batch", "time", "vocab")
    np.testing.assert_allclose(result.array, jnp.einsum("dbet,vde->btv", x.array, layer.weight.array), rtol=1e-5)


@pytest.mark.parametrize(
    ("reparam", "init_scale", "unembed_scale"),
    [(mup.EmbeddingStandardParam, 1 / 8, 1), (mup.EmbeddingMup, 1, 1 / 8)],
)
def test_parametrisations(reparam, init_scale, unembed_scale):
    layer = Embedding.init(V, (D, E), key=KEY, reparam_cls=reparam)
    assert reparam.init_scale(V, (D, E)) == init_scale
    assert layer.reparam == reparam((D, E), V)
    assert (layer.reparam.active_scale, layer.reparam.lr_scale) == (1, 1)
    assert layer.reparam.unembed_active_scale == unembed_scale
    plain = jax.random.truncated_normal(KEY, -3, 3, (6, 4, 2)) * init_scale
    np.testing.assert_allclose(layer.weight.array, plain, rtol=1e-6)
    np.testing.assert_allclose(layer.unembed(hax.ones((D, E))).array, plain.sum((1, 2)) * unembed_scale, atol=1e-5)


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("size", [3, 6, 9])
def test_other_sizes_keep_the_first_vectors(size, key):
    layer = Embedding.init(V, D, key=KEY)
    resized = layer.resize_embeddings(size, key)
    assert resized.Vocab == Axis("vocab", size)
    assert resized.weight.array.shape == (size, 4)
    kept = min(size, 6)
    np.testing.assert_array_equal(resized.weight.array[:kept], layer.weight.array[:kept])
    if key is None:
        mean = layer.weight.array.mean(0, keepdims=True)
        np.testing.assert_allclose(resized.weight.array[kept:], jnp.broadcast_to(mean, (size - kept, 4)), rtol=1e-5)


def test_gradient_reaches_only_the_vectors_used():
    layer = Embedding.init(V, D, key=KEY)
    gradient = jax.grad(lambda f: f(IDS).sum().scalar())(layer)
    counts = jnp.bincount(IDS.array.ravel(), length=6)
    np.testing.assert_array_equal(gradient.weight.array, jnp.repeat(counts[:, None], 4, 1))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda layer: layer.unembed(hax.ones((B, T))),
            ValueError,
            "Embedding.unembed: no axis 'd'; the array has batch=2, time=3.",
        ),
        (
            lambda layer: Embedding.init("vocab", D, key=KEY),
            TypeError,
            "Embedding.init: Vocab is a string; expected an Axis.",
        ),
    ],
)
def test_messages(call, error, message):
    with pytest.raises(error) as raised:
        call(Embedding.init(V, D, key=KEY))
    assert str(raised.value) == message
