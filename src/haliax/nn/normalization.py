"""Normalisation of activations: softmax and its logarithm, and layers that normalise to unit scale."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from haliax._src import creation, elementwise, reductions
from haliax._src.array_base import A, NamedArrayBase, is_scalar, require_named
from haliax._src.axis import Axis, AxisSelection, AxisSpec, axis_spec_to_tuple
from haliax._src.broadcasting import not_a_scalar
from haliax._src.families import apply_binary, axiswise, reduce_named
from haliax._src.layers import hashable_axes, require_inputs
from haliax._src.named_array import NamedArray
from haliax._src.reshape import flatten_axes, unflatten_axis
from haliax._src.state_dict import ModuleWithStateDictSerialization
from haliax.types import DTypeLike

T = TypeVar("T")


def softmax(a: T, axis: AxisSelection | None = None, *, where: NamedArrayBase | None = None) -> T:
    """Exponentials that are scaled to sum to 1 over `axis`.

    Args:
        a: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to normalise over; all of them if None.
        where: A mask with axes among those of the array; elements where it is false count as minus infinity. The result
            is 0 there, even if nothing is left to normalise over.

    Returns:
        An array with the same axes.

    Source:
        `jax.nn.softmax`
    """
    return axiswise(jax.nn.softmax, a, axis, where=where, single_axis_only=False)


def log_softmax(a: T, axis: AxisSelection | None = None, *, where: NamedArrayBase | None = None) -> T:
    """Logarithm of the softmax over `axis`, computed without taking exponentials back.

    Args:
        a: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to normalise over; all of them if None.
        where: A mask with axes among those of the array; elements where it is false count as minus infinity, and the
            result is that there.

    Returns:
        An array with the same axes.

    Source:
        `jax.nn.log_softmax`
    """
    return axiswise(jax.nn.log_softmax, a, axis, where=where, single_axis_only=False)


def logsumexp(a: T, axis: AxisSelection | None = None, *, where: NamedArrayBase | None = None) -> T:
    """Logarithm of the sum of exponentials over `axis`.

    Args:
        a: A named array with any axes, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.

    Returns:
        The array without the reduced axes.

    Source:
        `jax.nn.logsumexp`
    """
    return reduce_named(jax.nn.logsumexp, a, axis, where=where)


def standardize(
    x: A,
    axis: AxisSelection,
    *,
    mean: NamedArrayBase | None = None,
    variance: NamedArrayBase | None = None,
    epsilon: float = 1e-5,
    where: NamedArrayBase | None = None,
) -> A:
    """Shift and scale an array to mean 0 and variance 1 over `axis`.

    Args:
        x: A named array.
        axis: The axes over which to take mean and variance.
        mean: What to take as the mean.
        variance: What to take as the variance; that about `mean` if None.
        epsilon: Is added to the variance, so that it is never 0.
        where: A mask with axes among those of `x`; only elements where it is true count for mean and variance.

    Returns:
        An array with the same axes.

    Source:
        `jax.nn.standardize`
    """
    op = "standardize"
    require_named(op, x).require_axes(op, axis)
    centre = _moment(op, "mean", mean, x, axis, where)
    centred: Any = apply_binary(op, jnp.subtract, x, centre, compiled=True)
    # not E[x^2] - E[x]^2, which cancels where the mean is large
    spread = _moment(op, "variance", variance, elementwise.square(centred), axis, where)
    return apply_binary(op, jnp.multiply, centred, elementwise.rsqrt(elementwise.add(spread, epsilon)), compiled=True)


def _moment(op: str, argument: str, given: Any, x: Any, axis: AxisSelection, where: Any) -> Any:
    """What is given for the mean or the variance, or the mean of `x`."""
    if given is None:
        return reduce_named(jnp.mean, x, axis, where=where, name=op)
    if not (isinstance(given, NamedArrayBase) or is_scalar(given)):
        raise not_a_scalar(op, given, argument)
    return given


class LayerNormBase(ModuleWithStateDictSerialization):
    """A layer that normalises over some axes, then scales and shifts each element.

    Args:
        axis: The axes to normalise over.
        weight: The scales, with axes `axis`; None for no scaling.
        bias: The shifts, with axes `axis`; None for no shift.
        eps: Is added to the variance, so that it is never 0.
        dtype: The dtype in which to normalise: at least float32 if None. The result has the dtype of the input.
    """

    axis: AxisSpec = eqx.field(static=True)
    weight: NamedArray | None
    bias: NamedArray | None
    eps: float = eqx.field(default=1e-5, static=True)
    dtype: DTypeLike | None = eqx.field(default=None, static=True)

    @classmethod
    def init(
        cls,
        axis: AxisSpec,
        eps: float = 1e-5,
        *,
        use_weight: bool = True,
        use_bias: bool = True,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """A layer that at first leaves the normalised array as it is.

        Args:
            axis: The axes to normalise over.
            eps: Is added to the variance.
            use_weight: Whether to scale.
            use_bias: Whether to shift.
            dtype: The dtype in which to normalise.

        Returns:
            The layer.
        """
        axis = hashable_axes(f"{cls.__name__}.init", axis)
        weight = creation.ones(axis) if use_weight else None
        bias = creation.zeros(axis) if use_bias else None
        return cls(axis, weight, bias, eps, dtype)

    @abstractmethod
    def __call__(self, x: A) -> A:
        """Normalise an array over the axes of the layer.

        Args:
            x: A named array with the layer's axes, and any others.

        Returns:
            An array with the same axes, and the same dtype if that is a float.

        Raises:
            ValueError: If an axis is missing or has another size.
        """

    def flatten_for_export(self) -> Self:
        """The layer with one axis, as torch's layer keeps its arrays: `__OUT` in the place of several."""
        axes = axis_spec_to_tuple(self.axis)
        if len(axes) == 1:
            return self
        flat = Axis("__OUT", math.prod(axis.size for axis in axes))
        return self._with_axis(flat, lambda array: flatten_axes(array, axes, flat))

    def unflatten_from_export(self, template: Self) -> Self:
        """The layer with the axes of `template`, from which `flatten_for_export` made that of this one."""
        axes = axis_spec_to_tuple(template.axis)
        if len(axes) == 1:
            return self
        return self._with_axis(template.axis, lambda array: unflatten_axis(array, "__OUT", axes))

    def _with_axis(self, axis: AxisSpec, change: Callable[[NamedArray], NamedArray]) -> Self:
        weight = None if self.weight is None else change(self.weight)
        bias = None if self.bias is None else change(self.bias)
        return dataclasses.replace(self, axis=axis, weight=weight, bias=bias)


class _Normalization(LayerNormBase):
    """A layer that normalises in float32 at least, then scales and shifts in the dtype of its input."""

    def __call__(self, x: A) -> A:
        require_inputs(type(self).__name__, x, self.axis)
        given = jnp.result_type(x.array)  # of numpy arrays, the one that JAX has for theirs
        dtype: Any = jnp.promote_types(given, jnp.float32) if self.dtype is None else self.dtype
        y: Any = self._normalize(elementwise.astype(x, dtype))
        if jnp.issubdtype(given, jnp.inexact):
            y = y.astype(given)
        if self.weight is not None:
            y = y * self.weight.astype(y.dtype)
        if self.bias is not None:
            y = y + self.bias.astype(y.dtype)
        return y

    @abstractmethod
    def _normalize(self, x: A) -> A:
        """The normalised array, in the dtype of `x`."""


class LayerNorm(_Normalization):
    """A layer that normalises to mean 0 and variance 1; see `LayerNormBase` for its arguments.

    Source:
        Ba et al., "Layer Normalization", 2016.
    """

    def _normalize(self, x: A) -> A:
        return standardize(x, self.axis, epsilon=self.eps)


class RmsNorm(_Normalization):
    """A layer that normalises to a mean square of 1; see `LayerNormBase` for its arguments.

    Source:
        Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
    """

    def _normalize(self, x: A) -> A:
        power = reductions.mean(elementwise.square(x), self.axis)
        return elementwise.multiply(x, elementwise.rsqrt(elementwise.add(power, self.eps)))
