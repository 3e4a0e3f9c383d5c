"""A transformer trained on explicit mesh axes, its parameters sharded over both: the losses of one device."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import haliax as hax
import haliax.nn as hnn
from haliax import Axis

Batch, Pos, Embed, Heads, HeadDim = Axis("batch", 8), Axis("pos", 4), Axis("embed", 8), Axis("heads", 2), Axis("hd", 4)
Mlp, Vocab, Layers = Axis("mlp", 16), Axis("vocab", 32), Axis("layers", 2)
PARAMETERS = {"embed": "data", "mlp": "model", "heads": "model", "vocab": "model"}
COMPUTE = {"batch": "data", "mlp": "model", "heads": "model", "vocab": "model"}


class Block(eqx.Module):
    """Attention and a layer of neurons, each added to what it gets."""

    norm: hnn.LayerNorm
    qkv: hnn.Linear
    out: hnn.Linear
    up: hnn.Linear
    down: hnn.Linear

    @staticmethod
    def init(key):
        """A random block."""
        keys = jax.random.split(key, 4)
        heads = (Heads, HeadDim)
        return Block(
            hnn.LayerNorm.init(Embed),
            hnn.Linear.init(Embed, (Axis("qkv", 3), *heads), key=keys[0]),
            hnn.Linear.init(heads, Embed, key=keys[1]),
            hnn.Linear.init(Embed, Mlp, key=keys[2]),
            hnn.Linear.init(Mlp, Embed, key=keys[3]),
        )

    def __call__(self, x):
        """The block's output."""
        q, k, v = self.qkv(self.norm(x)).unbind("qkv")
        k, v = k.rename({"pos": "kpos"}), v.rename({"pos": "kpos"})
        mask = hnn.attention.causal_mask(Pos, Pos.alias("kpos"))
        x = x + self.out(hnn.attention.dot_product_attention("kpos", "hd", q, k, v, mask=mask))
        return x + self.down(hnn.gelu(self.up(self.norm(x))))


class Transformer(eqx.Module):
    """A language model."""

    embedding: hnn.Embedding
    blocks: hnn.Stacked

    def __call__(self, tokens):
        """The logits of the next tokens."""
        return self.embedding.unembed(self.blocks.fold(hax.shard(self.embedding(tokens))))


def step(model, tokens):
    """A step of gradient descent, and the loss before it."""
    targets = hax.roll(tokens, -1, "pos")
    loss = lambda model: hnn.cross_entropy_loss(model(tokens), "vocab", targets).scalar()  # noqa: E731
    value, gradient = eqx.filter_value_and_grad(loss)(model)
    return jax.tree.map(lambda p, g: p - 0.1 * g, model, gradient), value


def losses(run, model, tokens):
    """The losses of a few steps, and the model after them."""
    values = []
    for _ in range(3):
        model, value = run(model, tokens)
        values.append(float(value))
    return values, model


def test_training(explicit_mesh):
    key = jax.random.key(0)
    blocks = hnn.Stacked.init(Layers, Block)(jax.random.split(key, Layers.size))
    model = Transformer(hnn.Embedding.init(Vocab, Embed, key=key), blocks)
    tokens = hax.named(jnp.arange(32).reshape(8, 4) * 7 % 32, (Batch, Pos))
    expected, _ = losses(eqx.filter_jit(step), model, tokens)

    sharded = hax.shard(model, PARAMETERS, mesh=explicit_mesh), hax.shard(tokens, COMPUTE, mesh=explicit_mesh)
    run = hax.named_jit(step, COMPUTE, out_axis_resources=PARAMETERS, mesh=explicit_mesh)
    got, trained = losses(run, *sharded)
    np.testing.assert_allclose(got, expected, 1e-4)
    assert str(jax.typeof(trained.blocks.stacked.up.weight.array)) == str(
        jax.typeof(sharded[0].blocks.stacked.up.weight.array)
    )
    assert str(jax.typeof(trained.embedding.weight.array)) == "float32[32@model,8@data]"
