"""One transformer, written twice: with named arrays, and with `jax.numpy` on arrays of the same axis orders.

Both are functions of the same pytree of weights, named or raw, and should be the same program once they are traced.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

import haliax as hax
import haliax.nn as hnn

BLOCKS = 24
Batch, Pos, Vocab = hax.Axis("batch", 2), hax.Axis("pos", 16), hax.Axis("vocab", 64)
Embed, Mlp, Qkv = hax.Axis("embed", 32), hax.Axis("mlp", 64), hax.Axis("qkv", 3)
Heads, HeadSize = hax.Axis("heads", 4), hax.Axis("head_size", 8)
KeyPos = Pos.alias("key_pos")
EPSILON = 1e-5


class Block(eqx.Module):
    """The weights of a block."""

    attention_norm: hnn.RmsNorm
    to_qkv: hnn.Linear
    from_heads: hnn.Linear
    mlp_norm: hnn.RmsNorm
    up: hnn.Linear
    down: hnn.Linear

    @staticmethod
    def init(key: jax.Array) -> Block:
        linear = partial(hnn.Linear.init, key=key, use_bias=False)
        norm = hnn.RmsNorm.init(Embed, use_bias=False)
        return Block(
            norm,
            linear(Embed, (Qkv, Heads, HeadSize)),
            linear((Heads, HeadSize), Embed),
            norm,
            linear(Embed, Mlp),
            linear(Mlp, Embed),
        )


class Transformer(eqx.Module):
    """The weights of all blocks, and of what comes before and after them."""

    embedding: hnn.Embedding
    blocks: list[Block]
    norm: hnn.RmsNorm
    head: hnn.Linear

    @staticmethod
    def init(blocks: int = BLOCKS) -> Transformer:
        key = jax.random.key(0)
        return Transformer(
            hnn.Embedding.init(Vocab, Embed, key=key),
            [Block.init(key) for _ in range(blocks)],
            hnn.RmsNorm.init(Embed, use_bias=False),
            hnn.Linear.init(Embed, Vocab, key=key, use_bias=False),
        )


def raw(tree: Any) -> Any:
    """The pytree with the array of each named array in its place."""
    return jax.tree.map(lambda x: x.array, tree, is_leaf=lambda x: isinstance(x, hax.NamedArray))


def named_tokens() -> hax.NamedArray:
    """A batch of tokens."""
    return hax.named(jnp.zeros((Batch.size, Pos.size), jnp.int32), (Batch, Pos))


# With names ----------------------------------------------------------------------------------------------------------


def named_logits(model: Transformer, tokens: hax.NamedArray) -> hax.NamedArray:
    """Axes batch, pos, vocab."""
    mask = hnn.attention.causal_mask(Pos, KeyPos)
    x = model.embedding(tokens)
    for block in model.blocks:
        x = x + _named_attention(block, block.attention_norm(x), mask)
        x = x + block.down(hnn.gelu(block.up(block.mlp_norm(x))))
    return model.head(model.norm(x))


def _named_attention(block: Block, x: hax.NamedArray, mask: hax.NamedArray) -> hax.NamedArray:
    query, key, value = block.to_qkv(x).unbind("qkv")
    key, value = key.rename({"pos": "key_pos"}), value.rename({"pos": "key_pos"})
    return block.from_heads(hnn.attention.dot_product_attention("key_pos", "head_size", query, key, value, mask=mask))


def named_loss(model: Transformer, tokens: hax.NamedArray) -> jax.Array:
    """A number to differentiate."""
    return hax.mean(hax.square(named_logits(model, tokens))).array


# Without names -------------------------------------------------------------------------------------------------------


def plain_logits(model: Any, tokens: jax.Array) -> jax.Array:
    """Axes batch, pos, vocab."""
    mask = jnp.arange(Pos.size)[:, None] >= jnp.broadcast_to(jnp.arange(KeyPos.size), (Pos.size, KeyPos.size))
    x = model.embedding.weight[tokens]
    for block in model.blocks:
        x = x + _plain_attention(block, _rms_norm(block.attention_norm, x), mask)
        hidden = jnp.einsum("bpe,me->bpm", _rms_norm(block.mlp_norm, x), block.up.weight)
        x = x + jnp.einsum("bpm,em->bpe", jax.nn.gelu(hidden), block.down.weight)
    return jnp.einsum("bpe,ve->bpv", _rms_norm(model.norm, x), model.head.weight)


def _plain_attention(block: Any, x: jax.Array, mask: jax.Array) -> jax.Array:
    qkv = jnp.einsum("bpe,nhse->bpnhs", x, block.to_qkv.weight)
    query, key, value = (jnp.squeeze(part, 2) for part in jnp.split(qkv, Qkv.size, axis=2))
    products = jnp.einsum("bphs,bkhs->bphk", query * HeadSize.size**-0.5, key)
    mixed = jnp.einsum("bphk,bkhs->bphs", jax.nn.softmax(products, where=mask[None, :, None, :]), value)
    return jnp.einsum("bphs,ehs->bpe", mixed, block.from_heads.weight)


def _rms_norm(norm: Any, x: jax.Array) -> jax.Array:
    scale = jax.lax.rsqrt(jnp.mean(jnp.square(x), axis=-1) + EPSILON)
    return x * scale[..., None] * norm.weight


def plain_loss(model: Any, tokens: jax.Array) -> jax.Array:
    """A number to differentiate."""
    return jnp.mean(jnp.square(plain_logits(model, tokens)))
