"""Dot-product attention, and the masks and biases that go with it.

A mask is a boolean array that is true where attention is allowed. It takes part as a condition, not as a large negative
number: what is masked has a weight of exactly 0, in any dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from haliax._src import creation, elementwise
from haliax._src.array_base import NamedArrayBase, require_named, wrap
from haliax._src.axis import Axis, AxisSelection, iter_axes
from haliax._src.broadcasting import as_named, as_scalar, broadcast_axis
from haliax._src.creation import names_and_sizes
from haliax._src.dot import dot
from haliax._src.errors import bad_value, format_shape
from haliax._src.families import apply_aligned, apply_binary, check_mask
from haliax._src.jax_helpers import as_key
from haliax._src.named_array import NamedArray
from haliax._src.rearrange import rearrange
from haliax._src.refused import check_dtype
from haliax.nn.normalization import softmax
from haliax.types import DTypeLike, PrecisionLike

Position = int | jax.Array | NamedArrayBase
"""Where a sequence begins: a number, or an array of numbers, such as one for each example."""


def dot_product_attention_weights(
    Key: AxisSelection,
    KPos: AxisSelection,
    query: NamedArray,
    key: NamedArray,
    mask: NamedArray | None = None,
    bias: NamedArray | None = None,
    attention_dtype: DTypeLike | None = None,
    precision: PrecisionLike = None,
    scaling_factor: float | None = None,
) -> NamedArray:
    """How much each query attends to each key: the softmax of their scaled products.

    Args:
        Key: The axes of a query and of a key, over which their product is taken.
        KPos: The axes of the keys, over which the weights sum to 1.
        query: An array with the axes `Key` and any others.
        key: An array with the axes `Key` and `KPos` and any others.
        mask: Where attention is allowed; a query that is allowed none has weights 0.
        bias: Is added to the scaled products.
        attention_dtype: The dtype in which to compute; that of the arguments if None.
        precision: As in `jax.lax.dot_general`.
        scaling_factor: The factor on the products; one over the square root of the size of `Key` if None.

    Returns:
        The weights, with the axes of `query` and `key` except `Key`, and the dtype of `query`.

    Raises:
        ValueError: If an axis is missing.

    Source:
        Vaswani et al., "Attention Is All You Need", 2017.
    """
    op = "dot_product_attention_weights"
    return _weights(op, Key, KPos, query, key, mask, bias, attention_dtype, precision, scaling_factor)


def _weights(
    op: str,
    Key: AxisSelection,
    KPos: AxisSelection,
    query: NamedArray,
    key: NamedArray,
    mask: NamedArray | None,
    bias: NamedArray | None,
    attention_dtype: DTypeLike | None,
    precision: PrecisionLike,
    scaling_factor: float | None,
) -> NamedArray:
    dims = require_named(op, query, "the query").require_axes(op, Key)
    names = [query.axis_names[dim] for dim in dims]
    require_named(op, key, "the key").require_axes(op, Key)
    key.require_axes(op, KPos)
    check_dtype(op, attention_dtype)
    if scaling_factor is None:
        scaling_factor = 1 / math.sqrt(math.prod(query.array.shape[d] for d in dims))

    dtype = jnp.result_type(query.array)
    if attention_dtype is not None:
        query, key = elementwise.astype(query, attention_dtype), elementwise.astype(key, attention_dtype)
    # the query has fewer elements than the products
    weights = dot(elementwise.multiply(query, scaling_factor), key, axis=names, precision=precision)
    if bias is not None:
        weights = apply_binary(op, jnp.add, weights, bias)
    if mask is not None:
        check_mask(op, require_named(op, mask, "the mask"), weights)
    return elementwise.astype(softmax(weights, KPos, where=mask), dtype)


def dot_product_attention(
    KPos: AxisSelection,
    Key: AxisSelection,
    query: NamedArray,
    key: NamedArray,
    value: NamedArray,
    mask: NamedArray | None = None,
    bias: NamedArray | None = None,
    attention_dtype: DTypeLike | None = None,
    precision: PrecisionLike = None,
) -> NamedArray:
    """The mean of values, weighted by how much each query attends to the key of each value.

    Args:
        KPos: The axes of the keys and values.
        Key: The axes of a query and of a key, over which their product is taken.
        query: An array with the axes `Key` and any others, but none of `KPos`.
        key: An array with the axes `Key` and `KPos` and any others.
        value: An array with the axes `KPos` and any others.
        mask: Where attention is allowed; a query that is allowed none gives 0.
        bias: Is added to the scaled products of queries and keys.
        attention_dtype: The dtype in which to compute the weights; that of the arguments if None.
        precision: As in `jax.lax.dot_general`.

    Returns:
        An array with the axes of `query`, `key` and `value` except `KPos`, and `Key` only if `value` has it.

    Raises:
        ValueError: If an axis is missing, or `query` has one of `KPos`.

    Source:
        Vaswani et al., "Attention Is All You Need" (2017); `jax.nn.dot_product_attention`
    """
    op = "dot_product_attention"
    names = [name for name, _ in iter_axes(op, KPos)]
    require_named(op, value, "the value").require_axes(op, KPos)
    shared = [name for name in names if name in require_named(op, query, "the query").axis_names]
    if shared:
        given = f"the query has {format_shape(query.shape)}"
        remedy = "Rename its axis of positions, as in query.rename({...})."
        raise bad_value(op, given, f"its axes and {shared[0]!r}, the axis of the keys, must be distinct", remedy)
    weights = _weights(op, Key, KPos, query, key, mask, bias, attention_dtype, precision, None)
    return dot(weights, value, axis=names, precision=precision)


# masks --------------------------------------------------------------------------------------------------------------


def causal_mask(QPos: Axis, KPos: Axis, q_start: Position = 0, k_start: Position = 0) -> NamedArray:
    """A mask that lets each position attend to itself and to those before.

    Args:
        QPos: The axis of the queries.
        KPos: The axis of the keys.
        q_start: The position of the first query.
        k_start: The position of the first key.

    Returns:
        A boolean array with the axes `QPos` and `KPos`, and in front of them those of the starts.

    Source:
        `jax.numpy.tril`
    """
    return _causal("causal_mask", QPos, KPos, q_start, k_start)


def _causal(op: str, QPos: Axis, KPos: Axis, q_start: Position, k_start: Position) -> NamedArray:
    names_and_sizes(op, (QPos, KPos))
    mask = _outer(jnp.greater_equal, _positions(op, QPos, q_start), _positions(op, KPos, k_start))
    return rearrange(mask, (..., QPos, KPos))


def prefix_lm_mask(
    QSeqLen: Axis, KSeqLen: Axis, prefix_len: Position, q_start: Position = 0, k_start: Position = 0
) -> NamedArray:
    """A causal mask that lets all positions attend to those of a prefix.

    Args:
        QSeqLen: The axis of the queries.
        KSeqLen: The axis of the keys.
        prefix_len: The position after the prefix.
        q_start: The position of the first query.
        k_start: The position of the first key.

    Returns:
        A boolean array with the axes `QSeqLen` and `KSeqLen`, and in front of them those of the other arguments.

    Source:
        Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", 2020.
    """
    op = "prefix_lm_mask"
    causal = _causal(op, QSeqLen, KSeqLen, q_start, k_start)
    in_prefix = _outer(jnp.greater, as_named(op, prefix_len), _positions(op, KSeqLen, k_start))
    return rearrange(_outer(jnp.logical_or, in_prefix, causal), (..., QSeqLen, KSeqLen))


def forgetful_causal_mask(
    KPos: Axis, mask_prob: float | jax.Array, sample_prob: bool = True, *, key: jax.Array
) -> NamedArray:
    """A mask that hides keys at random, never the first one.

    Args:
        KPos: The axis of the keys.
        mask_prob: The probability with which a key is hidden.
        sample_prob: Whether `mask_prob` is only the upper bound of a probability that is drawn at random.
        key: A random key.

    Returns:
        A boolean array with the axis `KPos`.

    Source:
        Liu et al., "Towards Better Few-Shot and Finetuning Performance with Forgetful Causal Language Models", 2022.
    """
    op = "forgetful_causal_mask"
    key = as_key(op, key)
    names_and_sizes(op, KPos)
    mask_prob = as_scalar(op, mask_prob, "mask_prob")
    if sample_prob:
        key, prob_key = jax.random.split(key)
        mask_prob = jax.random.uniform(prob_key, (), minval=0, maxval=mask_prob)
    seen = jax.random.bernoulli(key, 1 - mask_prob, (KPos.size,))
    return wrap(seen.at[0].set(True), (KPos.name,))


def combine_masks_and(mask1: NamedArray | None, mask2: NamedArray | None) -> NamedArray | None:
    """A mask that allows what both masks allow; None allows everything.

    Args:
        mask1: A mask with any axes.
        mask2: A mask with any axes.

    Returns:
        A boolean array with the axes of both, or None if both are.

    Source:
        `jax.numpy.logical_and`
    """
    return _combine("combine_masks_and", jnp.logical_and, mask1, mask2)


def combine_masks_or(mask1: NamedArray | None, mask2: NamedArray | None) -> NamedArray | None:
    """A mask that allows what at least one of two masks allows, or what one allows if the other is None.

    Args:
        mask1: A mask with any axes.
        mask2: A mask with any axes.

    Returns:
        A boolean array with the axes of both, or None if both are.

    Source:
        `jax.numpy.logical_or`
    """
    return _combine("combine_masks_or", jnp.logical_or, mask1, mask2)


def _combine(op: str, fn: Callable[..., jax.Array], mask1: Any, mask2: Any) -> Any:
    for i, mask in enumerate((mask1, mask2), 1):
        if mask is not None:
            require_named(op, mask, f"mask{i}")
    if mask1 is None or mask2 is None:
        return mask2 if mask1 is None else mask1
    return _outer(fn, mask1, mask2)


def _outer(fn: Callable[..., jax.Array], a: Any, b: Any) -> Any:
    """Apply an elementwise function to arrays of which none need have all axes of the other."""
    if not set(a.axis_names) >= set(b.axis_names):
        b = broadcast_axis(b, a.axes)
    return apply_aligned(fn.__name__, fn, a, b)


def _positions(op: str, Pos: Axis, start: Position) -> NamedArray:
    """The positions along an axis, with the axes of `start` in front."""
    if isinstance(start, int):
        return creation.arange(Pos, start=start)
    return _outer(jnp.add, as_named(op, start), creation.arange(Pos))


# biases -------------------------------------------------------------------------------------------------------------


def mask_to_bias(mask: NamedArray, mask_value: float = -1e9) -> NamedArray:
    """A bias that is 0 where a mask allows attention, and `mask_value` elsewhere.

    Args:
        mask: A boolean array with any axes.
        mask_value: What takes the place of minus infinity; it must be finite in the dtype of the attention.

    Returns:
        An array with the same axes.

    Source:
        `jax.numpy.where`
    """
    return apply_aligned("mask_to_bias", lambda m: jnp.where(m, 0, mask_value), require_named("mask_to_bias", mask))


def alibi_attention_bias(Heads: Axis, KPos: Axis, bias_max: float = 8, dtype: DTypeLike = jnp.float32) -> NamedArray:
    """A bias that grows with the position of the key, at a slope of its own for each head.

    Softmax knows no common shift, so that growing with the position is the same as falling with the distance.

    Args:
        Heads: The axis of the heads.
        KPos: The axis of the keys.
        bias_max: The slope of the last head is `2 ** -bias_max`, if the number of heads is a power of two.
        dtype: The dtype of the result.

    Returns:
        An array with the axes `Heads` and `KPos`.

    Source:
        Press et al., "Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation", 2022.
    """
    names_and_sizes("alibi_attention_bias", (Heads, KPos), dtype)
    slopes = wrap(jnp.asarray(_alibi_slopes(Heads.size, bias_max), dtype), (Heads.name,))
    return _outer(jnp.multiply, slopes, creation.arange(KPos, dtype=dtype))


def _alibi_slopes(heads: int, bias_max: float) -> list[float]:
    """A geometric sequence for a power of two; otherwise that of the next lower one, then every other of the next."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-bias_max * i / power) for i in range(1, power + 1)]
    return slopes if power == heads else slopes + _alibi_slopes(2 * power, bias_max)[::2][: heads - power]
