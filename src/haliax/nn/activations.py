"""Activations: each is the function of `jax.nn` of its name, on named arrays."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from haliax._src.array_base import A, N, is_scalar, require_named
from haliax._src.axis import AxisSelector
from haliax._src.errors import bad_value, wrong_type
from haliax._src.families import apply_aligned, unary
from haliax.types import Scalar

_activation = functools.partial(unary, module="haliax.nn")

hard_sigmoid = _activation(jax.nn.hard_sigmoid)
hard_silu = _activation(jax.nn.hard_silu)
hard_swish = _activation(jax.nn.hard_swish, name="hard_swish")
hard_tanh = _activation(jax.nn.hard_tanh)
log_sigmoid = _activation(jax.nn.log_sigmoid)
relu = _activation(jax.nn.relu)
relu6 = _activation(jax.nn.relu6)
selu = _activation(jax.nn.selu)
sigmoid = _activation(jax.nn.sigmoid)
silu = _activation(jax.nn.silu)
soft_sign = _activation(jax.nn.soft_sign)
softplus = _activation(jax.nn.softplus)
swish = _activation(jax.nn.swish, name="swish")


def celu(a: N, alpha: Scalar = 1.0) -> N:
    """Continuously differentiable exponential linear unit.

    Args:
        a: An array with any axes, or a raw array.
        alpha: Minus the limit for negative elements.

    Returns:
        An array with the same axes.

    Source:
        `jax.nn.celu`
    """
    return apply_aligned("celu", jax.nn.celu, a, **_option("celu", "alpha", alpha, 1.0))


def elu(a: N, alpha: Scalar = 1.0) -> N:
    """Exponential linear unit.

    Args:
        a: An array with any axes, or a raw array.
        alpha: Minus the limit for negative elements.

    Returns:
        An array with the same axes.

    Source:
        `jax.nn.elu`
    """
    return apply_aligned("elu", jax.nn.elu, a, **_option("elu", "alpha", alpha, 1.0))


def leaky_relu(a: N, negative_slope: Scalar = 0.01) -> N:
    """Rectified linear unit that lets a part of negative elements through.

    Args:
        a: An array with any axes, or a raw array.
        negative_slope: The factor on negative elements.

    Returns:
        An array with the same axes.

    Source:
        `jax.nn.leaky_relu`
    """
    return apply_aligned(
        "leaky_relu", jax.nn.leaky_relu, a, **_option("leaky_relu", "negative_slope", negative_slope, 0.01)
    )


def _option(op: str, name: str, value: Scalar, usual: float) -> dict[str, Any]:
    """An option, unless it has its usual value: as an argument of a function of JAX it would be one of the program."""
    if not is_scalar(value):
        raise wrong_type(op, name, value, "a number")
    return {} if isinstance(value, float) and value == usual else {name: value}


def gelu(a: N, approximate: bool = True) -> N:
    """Gaussian error linear unit.

    Args:
        a: An array with any axes, or a raw array.
        approximate: Whether to approximate the error function by a hyperbolic tangent, which is faster.

    Returns:
        An array with the same axes.

    Source:
        `jax.nn.gelu`
    """
    return apply_aligned("gelu", jax.nn.gelu, a, approximate=approximate)


def quick_gelu(x: N) -> N:
    """Gaussian error linear unit, approximated by `x * sigmoid(1.702 x)`.

    Args:
        x: An array with any axes, or a raw array.

    Returns:
        An array with the same axes.

    Source:
        Hendrycks and Gimpel, "Gaussian Error Linear Units (GELUs)", 2016.
    """
    return apply_aligned("quick_gelu", lambda raw: raw * jax.nn.sigmoid(1.702 * raw), x)


def relu_squared(x: N) -> N:
    """Square of the rectified linear unit.

    Args:
        x: An array with any axes, or a raw array.

    Returns:
        An array with the same axes.

    Source:
        So et al., "Primer: Searching for Efficient Transformers for Language Modeling", 2021.
    """
    return apply_aligned("relu_squared", lambda raw: jnp.square(jax.nn.relu(raw)), x)


def glu(x: A, axis: AxisSelector) -> A:
    """Gated linear unit: the first half of an axis times the sigmoid of its second half.

    Args:
        x: A named array.
        axis: The axis to halve, of even size.

    Returns:
        An array with the same axes, of which `axis` has half the size.

    Raises:
        ValueError: If the axis is missing, or its size is odd.

    Source:
        `jax.nn.glu`
    """
    dim = require_named("glu", x).require_axis("glu", axis)
    size: Any = x.array.shape[dim]
    if size % 2:
        raise bad_value("glu", f"axis {x.axis_names[dim]}={size}", "expected an even size")
    return x.like(jax.nn.glu(x.array, dim), x.axis_names)
