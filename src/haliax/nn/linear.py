"""A linear layer between any number of input axes and any number of output axes."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax

from haliax._src import creation, elementwise
from haliax._src.array_base import A, require_named
from haliax._src.axis import Axis, AxisSpec, axis_spec_to_tuple
from haliax._src.dot import dot
from haliax._src.dot_general import DefaultDotGeneralOp, DotGeneralOp, contraction
from haliax._src.named_array import NamedArray
from haliax._src.reshape import rename
from haliax._src.sharding import auto_sharded
from haliax.nn.mup import (
    AbstractLinearReparam,
    HiddenLinearMup,
    InputLinearMup,
    LinearStandardParam,
    OutputLinearMup,
    ReparamEnabled,
)
from haliax.nn.normalization import hashable_axes
from haliax.random import truncated_normal


class Linear(eqx.Module, ReparamEnabled):
    """A linear map, and a shift, from the axes `In` to the axes `Out`; all other axes are batch axes.

    Args:
        weight: The map, with the axes of `In` and `Out`. An axis of both is called `<name>_in` as an input.
        bias: The shift, with the axes `Out`; None for no shift.
        In: The axes that are contracted.
        Out: The axes that take their place.
        dot_general: What contracts input and weight, such as an operation that quantizes.
    """

    weight: NamedArray
    bias: NamedArray | None
    In: AxisSpec = eqx.field(static=True)
    Out: AxisSpec = eqx.field(static=True)
    dot_general: DotGeneralOp = eqx.field(default_factory=DefaultDotGeneralOp)
    _reparam_cls: type[AbstractLinearReparam] = eqx.field(static=True, default=LinearStandardParam)

    @staticmethod
    def init(
        In: AxisSpec,
        Out: AxisSpec,
        *,
        key: jax.Array,
        use_bias: bool = True,
        out_first: bool = True,
        dot_general: DotGeneralOp | None = None,
        init_scale: float = 1.0,
        reparam_cls: type[AbstractLinearReparam] = LinearStandardParam,
    ) -> Linear:
        """A layer with random weights: normal ones, cut at three standard deviations.

        Args:
            In: The input axes.
            Out: The output axes; one that is an input axis too replaces it.
            key: The random key.
            use_bias: Whether to shift; the shift is 0 at first.
            out_first: Whether the weight has the output axes first.
            dot_general: What contracts input and weight; `jax.lax.dot_general` if None.
            init_scale: A factor on the initial weights.
            reparam_cls: The parametrisation, which gives the standard deviation of the initial weights.

        Returns:
            The layer.
        """
        In, Out = hashable_axes(In), hashable_axes(Out)
        inner, outer = _inner_axes(In, Out), axis_spec_to_tuple(Out)
        weight: Any = truncated_normal(key, outer + inner if out_first else inner + outer, -3, 3)
        weight = weight * (init_scale * reparam_cls.init_scale(In, Out))
        bias = creation.zeros(Out) if use_bias else None
        return Linear(weight, bias, In, Out, dot_general or DefaultDotGeneralOp(), reparam_cls)

    def __call__(self, inputs: A, *, key: jax.Array | None = None) -> A:
        """Map an array.

        Args:
            inputs: An array with the axes `In`, and any others.
            key: Not used; layers take one.

        Returns:
            An array with the other axes of `inputs`, then `Out`.

        Raises:
            ValueError: If an axis is missing or has another size.
        """
        require_named("Linear", inputs).require_axes("Linear", self.In)
        axes, inner = axis_spec_to_tuple(self.In), _inner_axes(self.In, self.Out)
        if inner != axes:
            inputs = rename(inputs, {old: new for old, new in zip(axes, inner, strict=True) if old != new})
        y: Any = dot(inputs, self.weight, axis=inner, dot_general=contraction(self.dot_general))
        scale = self.reparam.active_scale
        if scale != 1:
            y = elementwise.multiply(y, scale)
        if self.bias is not None:
            y = elementwise.add(y, self.bias)
        return auto_sharded(y)

    @property
    def reparam(self) -> AbstractLinearReparam:
        """The parametrisation, for the axes of this layer."""
        return self._reparam_cls(self.In, self.Out)

    @staticmethod
    def input_reparam(use_mup: bool = True) -> type[AbstractLinearReparam]:
        """The parametrisation of a layer from an input to a hidden state: that of muP, or the standard one."""
        return InputLinearMup if use_mup else LinearStandardParam

    @staticmethod
    def hidden_reparam(use_mup: bool = True) -> type[AbstractLinearReparam]:
        """The parametrisation of a layer between hidden states: that of muP, or the standard one."""
        return HiddenLinearMup if use_mup else LinearStandardParam

    @staticmethod
    def output_reparam(use_mup: bool = True) -> type[AbstractLinearReparam]:
        """The parametrisation of a layer from a hidden state to an output: that of muP, or the standard one."""
        return OutputLinearMup if use_mup else LinearStandardParam


def _inner_axes(In: AxisSpec, Out: AxisSpec) -> tuple[Axis, ...]:
    """The input axes as the weight has them: one array can not have an axis twice."""
    outer = {axis.name for axis in axis_spec_to_tuple(Out)}
    return tuple(ax.alias(f"{ax.name}_in") if ax.name in outer else ax for ax in axis_spec_to_tuple(In))
