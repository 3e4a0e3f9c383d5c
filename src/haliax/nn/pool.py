"""Pooling: the largest, smallest or mean element of each window that slides along some axes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from haliax._src.array_base import A, NamedArrayBase, require_named
from haliax._src.axis import Axis, AxisSpec, axis_spec_to_tuple
from haliax._src.errors import bad_value, duplicate_axes, wrong_type
from haliax._src.explicit_axes import laid_out_by_name
from haliax._src.reductions import highest, lowest
from haliax._src.spatial import Padding, Pads, PerAxis, normal_padding, pads, per_axis

Sizes = tuple[int, ...]


def max_pool(
    Window: AxisSpec,
    inputs: A,
    stride: PerAxis | None = None,
    padding: Padding = "VALID",
    use_ceil: bool = False,
) -> A:
    """The largest element of each window.

    Args:
        Window: The axes to slide along, each with the size of the window.
        inputs: A named array with these axes, of any sizes, and any others.
        stride: How far the window moves; 1 if None. An integer for all axes, or one for each, in order or by name.
        padding: `VALID` for none, `SAME` for as much as makes the result `size / stride` long, an integer, or for each
            axis, in order or by name, an integer or a pair of them. What is added is never the largest.
        use_ceil: Whether the last window may stick out at the end of an axis, by less than `stride`.

    Returns:
        An array with the same axes, of which those of `Window` have an element for each window.

    Raises:
        ValueError: If an axis is missing, or an option does not fit.

    Source:
        `jax.lax.reduce_window`, `torch.nn.functional.max_pool2d`
    """
    init = lowest(require_named("max_pool", inputs).array.dtype)
    return _pool("max_pool", Window, inputs, init, jax.lax.max, stride, padding, use_ceil)


def min_pool(
    Window: AxisSpec,
    inputs: A,
    stride: PerAxis | None = None,
    padding: Padding = "VALID",
    use_ceil: bool = False,
) -> A:
    """The smallest element of each window.

    Args:
        Window: The axes to slide along, each with the size of the window.
        inputs: A named array with these axes, of any sizes, and any others.
        stride: How far the window moves; 1 if None. See `max_pool`.
        padding: What to add to the axes; see `max_pool`. It is never the smallest.
        use_ceil: Whether the last window may stick out at the end of an axis, by less than `stride`.

    Returns:
        An array with the same axes, of which those of `Window` have an element for each window.

    Source:
        `jax.lax.reduce_window`
    """
    init = highest(require_named("min_pool", inputs).array.dtype)
    return _pool("min_pool", Window, inputs, init, jax.lax.min, stride, padding, use_ceil)


def mean_pool(
    Window: AxisSpec,
    inputs: A,
    stride: PerAxis | None = None,
    padding: Padding = "VALID",
    *,
    use_ceil: bool = False,
    count_include_pad: bool = False,
) -> A:
    """The mean of the elements of each window.

    Args:
        Window: The axes to slide along, each with the size of the window.
        inputs: A named array with these axes, of any sizes, and any others.
        stride: How far the window moves; 1 if None. See `max_pool`.
        padding: What to add to the axes; see `max_pool`.
        use_ceil: Whether the last window may stick out at the end of an axis, by less than `stride`.
        count_include_pad: Whether padding counts as elements that are 0; where a window sticks out beyond the padding,
            nothing is there to count.

    Returns:
        An array with the same axes, of which those of `Window` have an element for each window, and the same dtype if
        that is a float. Where a window has no element the mean is nan.

    Raises:
        ValueError: If an axis is missing, or an option does not fit.

    Source:
        `jax.lax.reduce_window`, `torch.nn.functional.avg_pool2d`
    """
    dims, windows, strides, around = _windows("mean_pool", Window, inputs, stride, padding)
    return _mean(inputs, dims, windows, strides, around, use_ceil, count_include_pad)


def pool(
    Window: AxisSpec,
    inputs: A,
    init: Any,
    reduce_fn: Callable[..., Any],
    stride: PerAxis | None = None,
    padding: Padding = "VALID",
    use_ceil: bool = False,
) -> A:
    """Reduce each window by a function of two elements.

    Args:
        Window: The axes to slide along, each with the size of the window.
        inputs: A named array with these axes, of any sizes, and any others.
        init: The identity of `reduce_fn`, which padding consists of.
        reduce_fn: An associative function of two scalars. A gradient needs one that JAX knows: addition, or the larger
            or the smaller of two numbers, from `haliax`, `jax.numpy` or `jax.lax`.
        stride: How far the window moves; 1 if None. See `max_pool`.
        padding: What to add to the axes; see `max_pool`.
        use_ceil: Whether the last window may stick out at the end of an axis, by less than `stride`.

    Returns:
        An array with the same axes, of which those of `Window` have an element for each window.

    Raises:
        ValueError: If an axis is missing, or an option does not fit.

    Source:
        `jax.lax.reduce_window`
    """
    plain = getattr(reduce_fn, "__jax__", reduce_fn)
    return _pool("pool", Window, inputs, init, _PRIMITIVES.get(plain, reduce_fn), stride, padding, use_ceil)


# JAX differentiates a reduction by these, and by no other function
_PRIMITIVES: dict[Any, Callable[..., Any]] = {
    jnp.add: jax.lax.add,
    jnp.maximum: jax.lax.max,
    jnp.minimum: jax.lax.min,
    jnp.multiply: jax.lax.mul,
}


def _pool(
    op: str,
    Window: AxisSpec,
    inputs: A,
    init: Any,
    reduce_fn: Callable[..., Any],
    stride: PerAxis | None,
    padding: Padding,
    use_ceil: bool,
) -> A:
    dims, windows, strides, around = _windows(op, Window, inputs, stride, padding)
    return _reduce(
        inputs, init, reduce_fn, dims, windows, strides, _fitted(inputs, dims, windows, strides, around, use_ceil)
    )


def _windows(
    op: str, Window: AxisSpec, inputs: NamedArrayBase, stride: PerAxis | None, padding: Padding
) -> tuple[Sizes, Sizes, Sizes, Pads]:
    """The dimensions to slide along, and for each the size of the window, the stride and the padding."""
    require_named(op, inputs)
    axes = axis_spec_to_tuple(Window)
    for axis in axes:
        if not isinstance(axis, Axis):
            raise wrong_type(op, "Window", axis, "an Axis, or several, with the sizes of the window")
        if axis.size < 1:
            raise bad_value(op, f"the window has {axis.name}={axis.size}", "expected 1 or more")
    names, windows = tuple(axis.name for axis in axes), tuple(axis.size for axis in axes)
    if len(set(names)) != len(names):
        raise duplicate_axes(op, names)
    dims = tuple(inputs.require_axis(op, name) for name in names)
    strides = per_axis(op, "stride", 1 if stride is None else stride, names)
    sizes = [inputs.array.shape[dim] for dim in dims]
    return dims, windows, strides, pads(normal_padding(op, padding, names), sizes, windows, strides)


def _fitted(inputs: NamedArrayBase, dims: Sizes, windows: Sizes, strides: Sizes, around: Pads, use_ceil: bool) -> Pads:
    """The padding with which windows that may stick out at the end are whole ones."""
    if not use_ceil:
        return around
    fitted = []
    for dim, window, stride, (before, after) in zip(dims, windows, strides, around, strict=True):
        size = inputs.array.shape[dim]
        count = max(0, -(-(size + before + after - window) // stride) + 1)
        # a window begins before the end of the axis, or it would hold padding only
        count = min(count, -(-(size + before) // stride))
        fitted.append((before, max(0, (count - 1) * stride + window - size - before)))
    return tuple(fitted)


@laid_out_by_name("pool")
def _reduce(
    inputs: A, init: Any, reduce_fn: Callable[..., Any], dims: Sizes, windows: Sizes, strides: Sizes, around: Pads
) -> A:
    """Reduce the windows along some dimensions; along all others a window is 1 long."""
    ndim = inputs.array.ndim
    sizes, steps, full = [1] * ndim, [1] * ndim, [(0, 0)] * ndim
    for dim, window, stride, pad in zip(dims, windows, strides, around, strict=True):
        sizes[dim], steps[dim], full[dim] = window, stride, pad
    # JAX knows the identity of a reduction, which is what makes it differentiable, if it is not traced
    start = init if isinstance(init, Tracer) else np.asarray(init, inputs.array.dtype)
    return inputs.like(jax.lax.reduce_window(inputs.array, start, reduce_fn, sizes, steps, full), inputs.axis_names)


@laid_out_by_name("mean_pool")
def _mean(
    inputs: A, dims: Sizes, windows: Sizes, strides: Sizes, around: Pads, use_ceil: bool, count_include_pad: bool
) -> A:
    """The mean of each window, taken in float32 at least."""
    dtype = jnp.result_type(inputs.array if jnp.issubdtype(inputs.array.dtype, jnp.inexact) else float)
    exact = inputs.like(inputs.array.astype(jnp.promote_types(dtype, jnp.float32)), inputs.axis_names)
    fitted = _fitted(inputs, dims, windows, strides, around, use_ceil)
    total = _reduce(exact, 0, jax.lax.add, dims, windows, strides, fitted).array
    counts = []
    for dim, window, stride, (before, after) in zip(dims, windows, strides, around, strict=True):
        start = np.arange(total.shape[dim]) * stride - before
        low, high = (-before, after) if count_include_pad else (0, 0)
        inside = np.minimum(start + window, inputs.array.shape[dim] + high) - np.maximum(start, low)
        counts.append(_along(dim, np.maximum(inside, 0).astype(total.dtype), total.ndim))
    mean = total / functools.reduce(_product, sorted(counts, key=np.ndim)) if counts else total
    return inputs.like(mean.astype(dtype), inputs.axis_names)


def _product(a: Any, b: Any) -> Any:
    """The product of counts: in the program if it is larger than both, so that it is no constant of the program."""
    return jnp.multiply(a, b) if np.ndim(a) else a * b


def _along(dim: int, count: np.ndarray, ndim: int) -> Any:
    """Counts along one dimension as an array that broadcasts; one number if they are all the same."""
    if count.size and (count == count[0]).all():
        return count[0]
    return count.reshape([-1 if i == dim else 1 for i in range(ndim)])
