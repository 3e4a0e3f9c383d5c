"""All layers, one line each, by all that a layer must be able to do.

A row makes a layer from a random key, and gives what to call it with; its inputs have an axis `batch`. Its result,
and its gradients, are the same in a program, over a batch of inputs, in a stack, and split over eight devices.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import Axis, nn
from haliax.nn import attention
from haliax.state_dict import (
    from_state_dict,
    from_torch_compatible_state_dict,
    to_state_dict,
    to_torch_compatible_state_dict,
)
from helpers import with_numbers

MAPPING = {"batch": "data", "embed": "model"}
B, E, T, M, H, V, K = hax.make_axes(batch=8, embed=4, time=5, mlp=6, heads=2, vocab=7, keys=3)
X = hax.random.normal(jax.random.key(1), (B, T, E))
IMAGE = hax.random.normal(jax.random.key(2), (B, E, Axis("h", 6), Axis("w", 5)))
IDS = hax.named(jnp.arange(40).reshape(8, 5) % 7, ("batch", "time"))
LOGITS = hax.random.normal(jax.random.key(3), (B, T, V))
QUERIES, KEYS, VALUES = (hax.random.normal(jax.random.key(i), (B, H, pos, E)) for i, pos in ((4, T), (5, K), (6, K)))
GROUPS = hax.broadcast_axis(hax.named(jnp.array([2, 3]), "experts"), B)


class Function(eqx.Module):
    """A function as a layer without parameters."""

    fn: Callable[..., Any] = eqx.field(static=True)

    def __call__(self, *args):
        return self.fn(*args)


class Row(NamedTuple):
    make: Callable[[jax.Array], Any]
    args: tuple[Any, ...]


def function(fn, *args):
    return Row(lambda key: Function(fn), args)


def dropped(x):
    return nn.Dropout(0.5, broadcast_axes="time")(x, key=jax.random.key(7))


def attend(query, key, value):
    mask, bias = attention.causal_mask(T, K, q_start=1), attention.alibi_attention_bias(H, K)
    return attention.dot_product_attention("keys", "embed", query, key, value, mask, bias)


LAYERS = {
    "Linear": Row(lambda key: nn.Linear.init(E, M, key=key), (X,)),
    "Linear, to its input axis": Row(lambda key: nn.Linear.init(E, E, key=key), (X,)),
    "Linear, several axes": Row(lambda key: nn.Linear.init((T, E), (H, M), key=key, out_first=False), (X,)),
    "MoELinear": Row(lambda key: nn.MoELinear.init(H.alias("experts"), E, M, key=key), (X, GROUPS)),
    "MLP": Row(lambda key: nn.MLP.init(E, V, M, 1, nn.gelu, key=key), (X,)),
    "Embedding": Row(lambda key: nn.Embedding.init(V, E, key=key), (IDS,)),
    "LayerNorm": Row(lambda key: nn.LayerNorm.init(E), (X,)),
    "LayerNorm, several axes": Row(lambda key: nn.LayerNorm.init((T, E)), (X,)),
    "RmsNorm": Row(lambda key: nn.RmsNorm.init(E, use_bias=False), (X,)),
    "Conv": Row(lambda key: nn.Conv.init(("h", "w"), E, M, 3, padding="SAME", key=key), (IMAGE,)),
    "ConvTranspose": Row(lambda key: nn.ConvTranspose.init(("h", "w"), E, M, 3, stride=2, key=key), (IMAGE,)),
    "max_pool": function(lambda x: nn.max_pool({"h": 2, "w": 2}, x, stride=2), IMAGE),
    "mean_pool": function(lambda x: nn.mean_pool({"h": 3, "w": 3}, x, padding="SAME"), IMAGE),
    "Dropout": function(dropped, X),
    "softmax": function(lambda x: nn.softmax(x, "embed"), X),
    "standardize": function(lambda x: nn.standardize(x, ("time", "embed")), X),
    "attention": function(attend, QUERIES, KEYS, VALUES),
    "cross entropy": function(lambda x, y: nn.cross_entropy_loss(x, "vocab", y, reduction=None), LOGITS, IDS),
    "binary cross entropy": function(lambda x: nn.binary_cross_entropy_loss(x, 0.3, reduction=None), X),
}
each_layer = pytest.mark.parametrize("name", LAYERS)
KEY = jax.random.key(0)


def call(layer, args):
    return layer(*args)


def step(layer, args):
    """A result and its gradients, for the parameters and for all inputs of floats."""

    def loss(both):
        y = call(*both)
        return hax.sum(hax.sin(y)).scalar(), y

    (_, y), gradients = eqx.filter_value_and_grad(loss, has_aux=True)((layer, args))
    return y, gradients


@functools.cache
def plain(name):
    """The layer of a row, its inputs, and what `step` gives in a program on one device."""
    row = LAYERS[name]
    layer = with_numbers(row.make, KEY)
    return layer, row.args, eqx.filter_jit(step)(layer, row.args)


def same(actual, expected, tolerance=1e-4):
    """Check that two trees have the same names, dtypes and, nearly, the same numbers."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
        assert a.dtype == b.dtype


@each_layer
def test_init(name):
    """A layer is a pytree of arrays that a program can make, and of which a key changes only the numbers."""
    layer, *_ = plain(name)
    traced = jax.eval_shape(LAYERS[name].make, KEY)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), layer) == jax.tree.map(lambda x: (x.shape, x.dtype), traced)


@each_layer
def test_numpy_arrays_of_64_bits(name):
    """They are arrays of 32 bits to JAX, and no layer asks it for more."""
    layer, args, (y, _) = plain(name)
    wide = {"f": np.float64, "i": np.int64}
    same(call(layer, jax.tree.map(lambda x: np.asarray(x, wide[x.dtype.kind]), args)), y)


@each_layer
def test_result_and_gradients(name):
    layer, args, (y, gradients) = plain(name)
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves((y, gradients)))
    assert y.axis_names[0] == "batch"
    # along one direction, against the difference of two results
    floats, rest = eqx.partition((layer, args), eqx.is_inexact_array)
    steps = [
        np.asarray(np.random.default_rng(i).normal(size=x.shape), x.dtype)
        for i, x in enumerate(jax.tree.leaves(floats))
    ]
    direction = jax.tree.unflatten(jax.tree.structure(floats), steps)

    @eqx.filter_jit
    def loss(size):
        moved = jax.tree.map(lambda x, d: x + size * d, floats, direction)
        return hax.sum(hax.sin(call(*eqx.combine(moved, rest)))).scalar()

    slope = sum(np.vdot(g, d) for g, d in zip(jax.tree.leaves(gradients), steps, strict=True))
    np.testing.assert_allclose((loss(jnp.float32(2e-3)) - loss(jnp.float32(-2e-3))) / 4e-3, slope, rtol=0.03, atol=0.1)


@each_layer
def test_outside_a_program(name):
    layer, args, (y, _) = plain(name)
    same(call(layer, args), y)


@each_layer
def test_batch_of_inputs(name):
    """`vmap` over the batch gives what the layer gives for the batch."""
    layer, args, (y, _) = plain(name)
    if name == "Dropout":  # each of a batch drops the same
        args = jax.tree.map(lambda x: x[:1], args)
        y = call(layer, args)
    result = hax.vmap(layer, Axis("batch", y.axis_size("batch")))(*args)
    assert set(result.axis_names) == set(y.axis_names)
    np.testing.assert_allclose(result.rearrange(y.axis_names).array, y.array, rtol=1e-4, atol=1e-4)


class Block(eqx.Module):
    layer: Any

    @staticmethod
    def init(layer):
        return Block(layer)

    def __call__(self, *args):
        return self.layer(*args)


@each_layer
def test_stack(name):
    layer, args, (y, _) = plain(name)
    Layers = Axis("layers", 2)
    layers = jax.tree.map(lambda x: hax.stack(Layers, (x, -x)), layer, is_leaf=lambda x: isinstance(x, hax.NamedArray))
    stack = nn.Stacked.init(Layers, Block)(layers)
    same(stack.unstacked()[0].layer, layer)
    same(eqx.filter_jit(stack.vmap)(*args)["layers", 0], y)


@each_layer
def test_low_precision(name):
    layer, args, (y, _) = plain(name)
    low = lambda tree: jax.tree.map(lambda x: x.astype(jnp.bfloat16) if eqx.is_inexact_array(x) else x, tree)  # noqa: E731
    result = eqx.filter_jit(call)(low(layer), low(args))
    assert result.array.dtype == jnp.bfloat16
    np.testing.assert_allclose(result.astype(jnp.float32).array, y.array, rtol=0.1, atol=0.1)


@each_layer
def test_split_over_devices(name, mesh):
    layer, args, expected = plain(name)
    run = hax.named_jit(step, MAPPING, in_axis_resources=MAPPING, mesh=mesh)
    result = run(layer, args)
    same(result, expected)
    spec = result[0].array.sharding.spec
    assert "data" in spec[0]


@each_layer
def test_split_over_explicit_axes(name, explicit_mesh):
    layer, args, expected = plain(name)
    with jax.set_mesh(explicit_mesh), hax.axis_mapping(MAPPING):
        result = eqx.filter_jit(step)(*hax.shard((layer, args)))
    same(result, expected)
    assert jax.typeof(result[0].array).sharding.spec[0] == "data"


@each_layer
def test_state_dict(name):
    layer, *_ = plain(name)
    other = jax.tree.map(jnp.zeros_like, layer)
    same(from_state_dict(other, to_state_dict(layer)), layer)
    same(from_torch_compatible_state_dict(other, to_torch_compatible_state_dict(layer)), layer)
