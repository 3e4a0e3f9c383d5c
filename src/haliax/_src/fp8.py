"""Contractions in 8 bits: both operands are scaled to the range of a format, rounded to it, and contracted there.

The scale of a step is *delayed*: it comes from the largest magnitudes of the steps before, the history, so that an
operand is read once. The state of the next step leaves through differentiation: the derivative with respect to a scale
or a history is defined as its next value, which is to replace the old one (`haliax.quantization.apply_updates`).

What is multiplied has 8 bits, what is added up has 32.

Source:
    Micikevicius et al., FP8 Formats for Deep Learning (2022), https://arxiv.org/abs/2209.05433; delayed scaling as in
    NVIDIA's Transformer Engine.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from haliax._src.dot_general import DimensionNumbers
from haliax.types import DTypeLike, PrecisionLike

_ACCUMULATE = jnp.float32


def get_fp8_max(fp8_dtype: DTypeLike, out_dtype: DTypeLike) -> jax.Array:
    """The largest number of a format.

    Args:
        fp8_dtype: The format.
        out_dtype: The dtype of the result.

    Returns:
        A scalar.
    """
    return jnp.finfo(fp8_dtype).max.astype(out_dtype)


def quantize(x: jax.Array, q_dtype: DTypeLike, scale: jax.Array, compute_dtype: DTypeLike) -> jax.Array:
    """Divide by a scale and round to a format; what lies beyond its range becomes its largest number.

    Args:
        x: Any array.
        q_dtype: The format.
        scale: The scale, of shape () or (1,).
        compute_dtype: The dtype in which to divide.

    Returns:
        An array of the format, of the shape of `x`.
    """
    largest = get_fp8_max(q_dtype, compute_dtype)
    scaled = x.astype(compute_dtype) / _scalar(scale).astype(compute_dtype)
    return jnp.clip(scaled, -largest, largest).astype(q_dtype)


def dequantize(x: jax.Array, dq_dtype: DTypeLike, scale: jax.Array) -> jax.Array:
    """Undo `quantize`, but for what was rounded.

    Args:
        x: An array of a format, or a contraction of such.
        dq_dtype: The dtype of the result.
        scale: The scale, of shape () or (1,); for a contraction, the product of both.

    Returns:
        An array of the shape of `x`.
    """
    return x.astype(dq_dtype) * _scalar(scale).astype(dq_dtype)


def compute_scale(amax: jax.Array, scale: jax.Array, fp8_max: jax.Array, margin: int = 0) -> jax.Array:
    """The scale that brings a magnitude to the largest number of a format.

    Args:
        amax: The largest magnitude to expect.
        scale: The scale so far, which stays if `amax` is 0 or not finite.
        fp8_max: The largest number of the format.
        margin: How many powers of two to leave free.

    Returns:
        The scale, of the shape of `scale`.
    """
    is_usable = (amax > 0) & jnp.isfinite(amax)
    return jnp.where(is_usable, jnp.where(is_usable, amax, 1) * 2**margin / fp8_max, scale)


def compute_amax_history(x: jax.Array, amax_history: jax.Array) -> jax.Array:
    """The history with the largest magnitude of an array in front; the second entry goes to the end.

    Args:
        x: Any array.
        amax_history: Magnitudes of the steps before, of shape (steps,).

    Returns:
        The history of the next step.
    """
    amax = jnp.max(jnp.abs(x), initial=0).astype(amax_history.dtype)
    return jnp.roll(amax_history, -1).at[0].set(amax)


def update_fp8_meta(
    x: jax.Array, q_dtype: DTypeLike, scale: jax.Array, amax_history: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The scale for this step, from the steps before, and the history for the next one.

    Args:
        x: The array to quantize.
        q_dtype: The format.
        scale: The scale of the step before, of shape (1,).
        amax_history: Magnitudes of the steps before, of shape (steps,).

    Returns:
        The new scale and the new history.
    """
    largest = get_fp8_max(q_dtype, scale.dtype)
    expected = jnp.max(amax_history).astype(scale.dtype)
    return compute_scale(expected, scale, largest), compute_amax_history(x, amax_history)


# differentiation ------------------------------------------------------------------------------------------------------


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def in_q(
    compute_dtype: DTypeLike, q_dtype: DTypeLike, inp: jax.Array, scale: jax.Array, amax_history: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Quantize an operand.

    No derivative flows to the operand, which gets its own from `quantized_dot`, as if nothing were rounded.

    Args:
        compute_dtype: The dtype in which to divide.
        q_dtype: The format.
        inp: The operand.
        scale: The scale of the step before, of shape (1,); its derivative is its new value.
        amax_history: Magnitudes of the steps before, of shape (steps,); its derivative is its new value.

    Returns:
        The quantized operand, and its scale.
    """
    return in_q_fwd(compute_dtype, q_dtype, inp, scale, amax_history)[0]


def in_q_fwd(
    compute_dtype: DTypeLike, q_dtype: DTypeLike, inp: jax.Array, scale: jax.Array, amax_history: jax.Array
) -> tuple[Any, Any]:
    """`in_q`, and what `in_q_bwd` needs."""
    new_scale, new_history = update_fp8_meta(inp, q_dtype, scale, amax_history)
    return (quantize(inp, q_dtype, new_scale, compute_dtype), new_scale), (new_scale, new_history)


def in_q_bwd(compute_dtype: DTypeLike, q_dtype: DTypeLike, res: Any, _: Any) -> tuple[Any, ...]:
    """The derivatives of `in_q`: none, the new scale, and the new history."""
    new_scale, new_history = res
    return None, new_scale, new_history


in_q.defvjp(in_q_fwd, in_q_bwd)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def out_dq(dq_type: DTypeLike, lhs_scale: jax.Array, rhs_scale: jax.Array, out: jax.Array) -> jax.Array:
    """Give a contraction of quantized operands its size back.

    Args:
        dq_type: The dtype of the result.
        lhs_scale: The scale of one operand.
        rhs_scale: The scale of the other.
        out: The contraction. Its derivative is that of the result, which `quantized_dot` expects.

    Returns:
        An array of the shape of `out`.
    """
    return out_dq_fwd(dq_type, lhs_scale, rhs_scale, out)[0]


def out_dq_fwd(
    dq_type: DTypeLike, lhs_scale: jax.Array, rhs_scale: jax.Array, out: jax.Array
) -> tuple[jax.Array, None]:
    """`out_dq`, and what `out_dq_bwd` needs."""
    return dequantize(out, _ACCUMULATE, lhs_scale * rhs_scale).astype(dq_type), None


def out_dq_bwd(dq_type: DTypeLike, _: None, g: jax.Array) -> tuple[Any, ...]:
    """The derivatives of `out_dq`: none for the scales, and that of the result as it is."""
    return None, None, g.astype(_ACCUMULATE)


out_dq.defvjp(out_dq_fwd, out_dq_bwd)


@functools.partial(jax.custom_vjp, nondiff_argnums=(8, 9, 10))
def quantized_dot(
    lhs: jax.Array,
    q_lhs: jax.Array,
    lhs_scale: jax.Array,
    rhs: jax.Array,
    q_rhs: jax.Array,
    rhs_scale: jax.Array,
    out_grad_scale: jax.Array,
    out_grad_amax_history: jax.Array,
    dimension_numbers: DimensionNumbers,
    preferred_element_type: DTypeLike | None = None,
    rev_dtype: DTypeLike = jnp.float8_e5m2,
) -> jax.Array:
    """Contract quantized operands; `out_dq` gives the result its size back.

    The derivatives of `lhs` and `rhs` are contractions in 8 bits too, of the derivative of what `out_dq` gives.

    Args:
        lhs: The operand that `q_lhs` was made from; gets its derivative.
        q_lhs: It, quantized.
        lhs_scale: Its scale, of shape (1,).
        rhs: The other operand; gets its derivative.
        q_rhs: It, quantized.
        rhs_scale: Its scale, of shape (1,).
        out_grad_scale: The scale of the derivative of the result; its derivative is its new value.
        out_grad_amax_history: Magnitudes of that derivative in the steps before; its derivative is its new value.
        dimension_numbers: What is contracted, as in `jax.lax.dot_general`.
        preferred_element_type: The dtype of the result; float32 if None.
        rev_dtype: The format of the derivative of the result.

    Returns:
        The contraction of `q_lhs` and `q_rhs`.

    Source:
        `jax.lax.dot_general`
    """
    operands = lhs, q_lhs, lhs_scale, rhs, q_rhs, rhs_scale, out_grad_scale, out_grad_amax_history
    return quantized_dot_fwd(*operands, dimension_numbers, preferred_element_type, rev_dtype)[0]


def quantized_dot_fwd(
    lhs: jax.Array,
    q_lhs: jax.Array,
    lhs_scale: jax.Array,
    rhs: jax.Array,
    q_rhs: jax.Array,
    rhs_scale: jax.Array,
    out_grad_scale: jax.Array,
    out_grad_amax_history: jax.Array,
    dimension_numbers: DimensionNumbers,
    preferred_element_type: DTypeLike | None,
    rev_dtype: DTypeLike,
) -> tuple[jax.Array, Any]:
    """`quantized_dot`, and what `quantized_dot_bwd` needs: of the operands themselves, only their dtypes."""
    dtype = preferred_element_type or _ACCUMULATE
    out = jax.lax.dot_general(q_lhs, q_rhs, dimension_numbers, preferred_element_type=dtype)
    dtypes = jnp.zeros(0, lhs.dtype), jnp.zeros(0, rhs.dtype)
    return out, (dtypes, q_lhs, lhs_scale, q_rhs, rhs_scale, out_grad_scale, out_grad_amax_history)


def quantized_dot_bwd(
    dimension_numbers: DimensionNumbers,
    preferred_element_type: DTypeLike | None,
    rev_dtype: DTypeLike,
    res: Any,
    g: Any,
) -> tuple[Any, ...]:
    """The derivatives of `quantized_dot`: those of both operands, and the new state of that of the result."""
    (lhs, rhs), q_lhs, lhs_scale, q_rhs, rhs_scale, scale, history = res
    new_scale, new_history = update_fp8_meta(g, rev_dtype, scale, history)
    q_g = quantize(g, rev_dtype, new_scale, _ACCUMULATE)
    options: dict[str, Any] = {
        "dimension_numbers": dimension_numbers,
        "precision": None,
        "preferred_element_type": _ACCUMULATE,
    }
    of_lhs = dot_general_transpose_lhs(q_g, q_lhs, q_rhs, **options)
    of_rhs = dot_general_transpose_rhs(q_g, q_lhs, q_rhs, **options)
    of_lhs = dequantize(of_lhs, _ACCUMULATE, new_scale * rhs_scale).astype(lhs.dtype)
    of_rhs = dequantize(of_rhs, _ACCUMULATE, new_scale * lhs_scale).astype(rhs.dtype)
    return of_lhs, None, None, of_rhs, None, None, new_scale, new_history


quantized_dot.defvjp(quantized_dot_fwd, quantized_dot_bwd)


# contractions --------------------------------------------------------------------------------------------------------


def fp8_scaled_dot_general(
    lhs: jax.Array,
    rhs: jax.Array,
    dimension_numbers: DimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    lhs_scale: jax.Array,
    rhs_scale: jax.Array,
    grad_scale: jax.Array,
    lhs_amax_history: jax.Array,
    rhs_amax_history: jax.Array,
    grad_amax_history: jax.Array,
    quantize_compute_type: DTypeLike = jnp.float32,
    fwd_dtype: DTypeLike = jnp.float8_e4m3fn,
    rev_dtype: DTypeLike = jnp.float8_e5m2,
) -> jax.Array:
    """`jax.lax.dot_general` in 8 bits.

    The derivatives with respect to the scales and the histories are their values for the next step.

    Args:
        lhs: An array.
        rhs: An array.
        dimension_numbers: What is contracted, as in `jax.lax.dot_general`.
        precision: Not used: 8 bits have one precision.
        preferred_element_type: The dtype of the result; `quantize_compute_type` if None.
        lhs_scale: The scale of `lhs` in the step before, of shape (1,).
        rhs_scale: The scale of `rhs` in the step before, of shape (1,).
        grad_scale: The scale of the derivative of the result in the step before, of shape (1,).
        lhs_amax_history: The largest magnitudes of `lhs` in the steps before, of shape (steps,).
        rhs_amax_history: The same of `rhs`.
        grad_amax_history: The same of the derivative of the result.
        quantize_compute_type: The dtype in which to divide by the scales.
        fwd_dtype: The format of `lhs` and `rhs`.
        rev_dtype: The format of the derivative of the result.

    Returns:
        The contraction, with the dimensions of `jax.lax.dot_general`.

    Source:
        `jax.lax.dot_general`; https://arxiv.org/abs/2209.05433
    """
    of_lhs: Any = in_q(quantize_compute_type, fwd_dtype, lhs, lhs_scale, lhs_amax_history)
    of_rhs: Any = in_q(quantize_compute_type, fwd_dtype, rhs, rhs_scale, rhs_amax_history)
    (q_lhs, new_lhs_scale), (q_rhs, new_rhs_scale) = of_lhs, of_rhs
    out = quantized_dot(
        lhs,
        q_lhs,
        new_lhs_scale,
        rhs,
        q_rhs,
        new_rhs_scale,
        grad_scale,
        grad_amax_history,
        _hashable(dimension_numbers),
        _ACCUMULATE,
        rev_dtype,
    )
    return out_dq(preferred_element_type or quantize_compute_type, new_lhs_scale, new_rhs_scale, out)


def dot_general_transpose_lhs(
    g: jax.Array,
    x: jax.Array,
    y: jax.Array,
    *,
    dimension_numbers: DimensionNumbers,
    precision: PrecisionLike,
    preferred_element_type: DTypeLike | None,
    swap_ans: bool = False,
) -> jax.Array:
    """The derivative of `dot_general(x, y)` with respect to `x`: a contraction of `g` and `y`.

    Args:
        g: The derivative with respect to the result.
        x: The left operand, for its number of dimensions and its layout.
        y: The right operand.
        dimension_numbers: What `x` and `y` contract, as in `jax.lax.dot_general`.
        precision: As in `jax.lax.dot_general`.
        preferred_element_type: As in `jax.lax.dot_general`.
        swap_ans: Whether `g` has the dimensions of `y` in front of those of `x`.

    Returns:
        An array of the shape of `x`.

    Source:
        `jax.lax.dot_general`
    """
    (x_contracted, y_contracted), (x_batch, y_batch) = dimension_numbers
    x_kept = _others(x.ndim, x_contracted, x_batch)
    y_kept = _others(y.ndim, y_contracted, y_batch)
    # g has the batch dimensions, then those that x keeps, then those that y keeps
    begin = len(x_batch) if swap_ans else len(x_batch) + len(x_kept)
    g_of_y = tuple(range(begin, begin + len(y_kept)))
    dims = (g_of_y, y_kept), (tuple(range(len(x_batch))), tuple(y_batch))
    # the dimensions of x that the contraction has: what is left of y are its contracted dimensions in their order
    of_y = np.argsort(np.asarray(y_contracted, int)).tolist()
    order = [*x_batch, *x_kept, *(x_contracted[i] for i in of_y)]
    layout = _layout_over_explicit_axes(x, order)
    out = jax.lax.dot_general(g, y, dims, precision, preferred_element_type, out_sharding=layout)
    return jax.lax.transpose(out, np.argsort(order).tolist())


def dot_general_transpose_rhs(
    g: jax.Array,
    x: jax.Array,
    y: jax.Array,
    *,
    dimension_numbers: DimensionNumbers,
    precision: PrecisionLike,
    preferred_element_type: DTypeLike | None,
) -> jax.Array:
    """The derivative of `dot_general(x, y)` with respect to `y`: a contraction of `g` and `x`.

    Args:
        g: The derivative with respect to the result.
        x: The left operand.
        y: The right operand, for its number of dimensions and its layout.
        dimension_numbers: What `x` and `y` contract, as in `jax.lax.dot_general`.
        precision: As in `jax.lax.dot_general`.
        preferred_element_type: As in `jax.lax.dot_general`.

    Returns:
        An array of the shape of `y`.

    Source:
        `jax.lax.dot_general`
    """
    (x_contracted, y_contracted), (x_batch, y_batch) = dimension_numbers
    return dot_general_transpose_lhs(
        g,
        y,
        x,
        dimension_numbers=((y_contracted, x_contracted), (y_batch, x_batch)),
        precision=precision,
        preferred_element_type=preferred_element_type,
        swap_ans=True,
    )


def _others(ndim: int, *groups: Sequence[int]) -> tuple[int, ...]:
    """The dimensions that are in no group."""
    taken = {dim for group in groups for dim in group}
    return tuple(dim for dim in range(ndim) if dim not in taken)


def _layout_over_explicit_axes(x: jax.Array, order: Sequence[int]) -> NamedSharding | None:
    """The layout of `x`, which its derivative is to have, with the dimensions in an order; None for JAX to find it."""
    sharding = jax.typeof(x).sharding
    if AxisType.Explicit not in sharding.mesh.axis_types:
        return None
    return NamedSharding(sharding.mesh, PartitionSpec(*(sharding.spec[dim] for dim in order)))


def _scalar(scale: jax.Array) -> jax.Array:
    """A scale as a scalar, which goes with any shape."""
    return scale.reshape(())


def _hashable(dimension_numbers: DimensionNumbers) -> DimensionNumbers:
    (lhs, rhs), (lhs_batch, rhs_batch) = dimension_numbers  # lists from some callers
    return (tuple(lhs), tuple(rhs)), (tuple(lhs_batch), tuple(rhs_batch))
