"""A multilayer perceptron: linear layers with an activation after each but the last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

from haliax._src.array_base import A
from haliax._src.axis import Axis, AxisSpec
from haliax._src.dot_general import DotGeneralOp
from haliax._src.errors import check_callable, check_integer, wrong_type
from haliax._src.jax_helpers import as_key, maybe_rng_split
from haliax.nn.activations import relu
from haliax.nn.linear import Linear

DEFAULT_WIDTH_NAME = "mlp"
"""The name of the axis of hidden states, if only its size is given."""


class MLP(eqx.Module):
    """Linear layers with an activation after each but the last.

    Args:
        activation: An elementwise function of a named array.
        layers: The layers.
    """

    activation: Callable[..., Any] = eqx.field(static=True)
    layers: tuple[Linear, ...]

    @staticmethod
    def init(
        Input: AxisSpec,
        Output: AxisSpec,
        width: int | Axis,
        depth: int,
        activation: Callable[..., Any] = relu,
        *,
        out_first: bool = True,
        use_bias: bool = True,
        use_final_bias: bool = True,
        key: jax.Array,
        dot_general: DotGeneralOp | None = None,
        init_scale: float = 1.0,
    ) -> MLP:
        """A perceptron with random weights.

        Args:
            Input: The input axes.
            Output: The output axes.
            width: The axis of the hidden states, or its size; it is then called `mlp`.
            depth: The number of hidden states; there is one more linear layer.
            activation: The activation.
            out_first: Whether weights have the output axes first.
            use_bias: Whether layers before the last one shift.
            use_final_bias: Whether the last layer shifts.
            key: The random key.
            dot_general: What contracts inputs and weights; `jax.lax.dot_general` if None.
            init_scale: A factor on the initial weights.

        Returns:
            The perceptron. Hidden states have axis `width`, and by turns the same with a 2 after the name.

        Raises:
            ValueError: If `depth` is negative.
        """
        check_integer("MLP.init", "depth", depth, 0)
        check_callable("MLP.init", activation, "activation")
        Width = Axis(DEFAULT_WIDTH_NAME, width) if isinstance(width, int) else width
        if not isinstance(Width, Axis):
            raise wrong_type("MLP.init", "width", width, "an Axis or a size")
        key = as_key("MLP.init", key)
        hidden = (Width, Width.alias(f"{Width.name}2"))
        axes = [Input, *(hidden[i % 2] for i in range(depth)), Output]
        layers = tuple(
            Linear.init(
                axes[i],
                axes[i + 1],
                key=k,
                use_bias=use_bias if i < depth else use_final_bias,
                out_first=out_first,
                dot_general=dot_general,
                init_scale=init_scale,
            )
            for i, k in enumerate(jax.random.split(key, depth + 1))
        )
        return MLP(activation, layers)

    def __call__(self, x: A, *, key: jax.Array | None = None) -> A:
        """Map an array.

        Args:
            x: An array with the input axes, and any others.
            key: A random key for layers that use one.

        Returns:
            An array with the other axes of `x`, then the output axes.
        """
        *hidden, last = zip(self.layers, maybe_rng_split(key, len(self.layers)), strict=True)
        for layer, k in hidden:
            x = self.activation(layer(x, key=k))
        layer, k = last
        return layer(x, key=k)

    @property
    def In(self) -> AxisSpec:
        """The input axes."""
        return self.layers[0].In

    @property
    def Out(self) -> AxisSpec:
        """The output axes."""
        return self.layers[-1].Out
