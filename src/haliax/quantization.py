"""Layers that contract in 8 bits: what contracts inside a `Linear`, and what its state needs in training.

`quantize_linear_layers` gives the linear layers of a model another `DotGeneralOp`. That of `fp8` has a state, which
consists of scales and what they come from; its next values are its "gradients". A training step takes them apart:

    grads = eqx.filter_grad(loss)(model, batch)
    overwrites, grads = partition_for_grad_overwrite(grads)
    updates, opt_state = optimizer.update(grads, opt_state)
    model = apply_updates(model, updates, overwrites)

Gradients of several batches are added up with `accumulate_gradients`.
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

from haliax._src.dot_general import (
    DefaultDotGeneralOp as DefaultDotGeneralOp,
    DimensionNumbers,
    DotGeneralOp as DotGeneralOp,
)
from haliax._src.errors import problem
from haliax._src.fp8 import fp8_scaled_dot_general
from haliax._src.state_dict import ModuleWithStateDictSerialization
from haliax.nn.linear import Linear
from haliax.nn.scan import Stacked
from haliax.types import DTypeLike, PrecisionLike

T = TypeVar("T")


class CustomGradientAccumulation(eqx.Module):
    """A part of a model whose gradients are its next values, and are combined in a way of its own."""

    def accumulate(self, other: Any) -> Self:
        """The gradient of two batches.

        Args:
            other: The gradient of the other batch.

        Returns:
            The gradient of both.
        """
        raise NotImplementedError(f"{type(self).__name__} must define accumulate.")


class Fp8DotGeneralOp(CustomGradientAccumulation):
    """`jax.lax.dot_general` in 8-bit floating point, with delayed scaling.

    Args:
        input_scale: The scale of the input, of shape (1,).
        output_grad_scale: The scale of the derivative of the output, of shape (1,).
        kernel_scale: The scale of the weight, of shape (1,).
        input_amax_history: The largest magnitudes of the input in the steps before, of shape (steps,).
        output_grad_amax_history: The same of the derivative of the output.
        kernel_amax_history: The same of the weight.
        compute_dtype: The dtype to which input and weight are converted, and that of the result; their own if None.
        fwd_dtype: The format of input and weight.
        rev_dtype: The format of the derivative of the output.

    Source:
        Micikevicius et al., FP8 Formats for Deep Learning (2022), https://arxiv.org/abs/2209.05433
    """

    input_scale: jax.Array
    output_grad_scale: jax.Array
    kernel_scale: jax.Array
    input_amax_history: jax.Array
    output_grad_amax_history: jax.Array
    kernel_amax_history: jax.Array
    compute_dtype: DTypeLike | None = eqx.field(static=True)
    fwd_dtype: DTypeLike = eqx.field(static=True)
    rev_dtype: DTypeLike = eqx.field(static=True)

    @classmethod
    def init(
        cls,
        amax_history_length: int = 1024,
        compute_dtype: DTypeLike | None = None,
        fwd_dtype: DTypeLike = jnp.float8_e4m3fn,
        rev_dtype: DTypeLike = jnp.float8_e5m2,
    ) -> Self:
        """An operation that has seen nothing: scales of 1, and an empty history.

        Args:
            amax_history_length: How many steps the scales look back.
            compute_dtype: The dtype to which input and weight are converted, and that of the result.
            fwd_dtype: The format of input and weight.
            rev_dtype: The format of the derivative of the output.

        Returns:
            The operation.

        Raises:
            ValueError: If the history has no steps.
        """
        if amax_history_length < 1:
            raise ValueError(
                problem("Fp8DotGeneralOp.init", f"amax_history_length is {amax_history_length}", "at least 1")
            )
        scale, history = jnp.ones(1, jnp.float32), jnp.zeros(amax_history_length, jnp.float32)
        return cls(scale, scale, scale, history, history, history, compute_dtype, fwd_dtype, rev_dtype)

    def __call__(
        self,
        lhs: jax.Array,
        rhs: jax.Array,
        dimension_numbers: DimensionNumbers,
        precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None,
        **kwargs: Any,
    ) -> jax.Array:
        """Contract an input and a weight; see `jax.lax.dot_general`.

        Args:
            lhs: The input.
            rhs: The weight.
            dimension_numbers: What is contracted.
            precision: Not used.
            preferred_element_type: The dtype of the result.
            **kwargs: Not used.

        Returns:
            The contraction.
        """
        dtype = jnp.result_type(lhs, rhs) if self.compute_dtype is None else self.compute_dtype
        return fp8_scaled_dot_general(
            lhs.astype(dtype),
            rhs.astype(dtype),
            dimension_numbers,
            preferred_element_type=preferred_element_type,
            lhs_scale=self.input_scale,
            rhs_scale=self.kernel_scale,
            grad_scale=self.output_grad_scale,
            lhs_amax_history=self.input_amax_history,
            rhs_amax_history=self.kernel_amax_history,
            grad_amax_history=self.output_grad_amax_history,
            quantize_compute_type=dtype,
            fwd_dtype=self.fwd_dtype,
            rev_dtype=self.rev_dtype,
        )

    def accumulate(self, other: Any) -> Self:
        """The state after two batches: scales and histories that hold for both, which are the larger ones.

        Args:
            other: The state after the other batch.

        Returns:
            The state after both.
        """
        return jax.tree.map(jnp.maximum, self, other)


class Int8DotGeneralOp(ModuleWithStateDictSerialization):
    """`jax.lax.dot_general` in 8-bit integers, of the forward pass and of the gradient of the input; by AQT.

    Args:
        cfg: The configuration of AQT.

    Source:
        https://github.com/google/aqt
    """

    cfg: Any

    @classmethod
    def init(cls) -> Self:
        """The operation; it has no state.

        Returns:
            The operation.

        Raises:
            ImportError: If AQT is not installed.
        """
        # 8 bits are too few for the gradient of the weight
        return cls(_aqt_config().config_v3(fwd_bits=8, dlhs_bits=8, drhs_bits=None))

    def __call__(
        self,
        lhs: jax.Array,
        rhs: jax.Array,
        dimension_numbers: DimensionNumbers,
        precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None,
        **kwargs: Any,
    ) -> jax.Array:
        """Contract an input and a weight; see `jax.lax.dot_general`.

        Args:
            lhs: The input.
            rhs: The weight.
            dimension_numbers: What is contracted.
            precision: Not used.
            preferred_element_type: The dtype of the result.
            **kwargs: Not used.

        Returns:
            The contraction.
        """
        # the gradient is rounded at random; a program that is compiled once draws the same numbers on each call
        contract = _aqt_config().set_context(self.cfg, jax.random.PRNGKey(42), train_step=None)
        out = contract(lhs, rhs, dimension_numbers, precision=None)
        return out if preferred_element_type is None else out.astype(preferred_element_type)

    def accumulate(self, other: Any) -> Self:
        """The operation itself: it has no state.

        Args:
            other: Another one.

        Returns:
            This one.
        """
        return self

    def to_state_dict(self, prefix: str | None = None) -> dict[str, Any]:
        """Nothing: the operation has no state.

        Args:
            prefix: Not used.

        Returns:
            An empty dictionary.
        """
        return {}

    def from_state_dict(self, state_dict: Any, prefix: str | None = None) -> Self:
        """The operation itself: it has no state.

        Args:
            state_dict: Not used.
            prefix: Not used.

        Returns:
            This one.
        """
        return self


def _aqt_config() -> Any:
    try:
        from aqt.jax.v2 import config  # noqa: PLC0415  (optional)
    except ImportError as error:
        remedy = "Install the extra: pip install 'haliax[quant]'."
        raise ImportError(problem("Int8DotGeneralOp", "the package aqtp is not installed", remedy=remedy)) from error
    return config


# gradients that are next values --------------------------------------------------------------------------------------


def _is_custom(x: Any) -> bool:
    return isinstance(x, CustomGradientAccumulation)


def _is_custom_or_none(x: Any) -> bool:
    return x is None or _is_custom(x)


def partition_for_grad_overwrite(grad: T) -> tuple[T, T]:
    """Take the gradients that are next values apart from those that an optimizer is to see.

    Args:
        grad: The gradient of a model.

    Returns:
        The parts that replace those of the model, and the gradients proper; each with None in place of the others.
    """
    overwrites = jax.tree.map(lambda x: x if _is_custom(x) else None, grad, is_leaf=_is_custom)
    gradients = jax.tree.map(lambda x: None if _is_custom(x) else x, grad, is_leaf=_is_custom)
    return overwrites, gradients


def apply_updates(tree: T, updates: Any, overwrites: Any) -> T:
    """Add updates to a model, and put next values in their places.

    Args:
        tree: The model.
        updates: What to add, or None for each part that stays.
        overwrites: The first result of `partition_for_grad_overwrite`.

    Returns:
        The next model.

    Source:
        `optax.apply_updates`
    """
    updated = eqx.apply_updates(tree, updates)
    return jax.tree.map(lambda new, old: old if new is None else new, overwrites, updated, is_leaf=_is_custom_or_none)


def accumulate_gradients(accumulated: T, gradient: T) -> T:
    """The gradient of some batches and of one more.

    Args:
        accumulated: The gradient of the batches so far; None if there are none.
        gradient: The gradient of one more.

    Returns:
        Their sum; a part that has a `accumulate` of its own combines itself.
    """

    def add(a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return a.accumulate(b) if _is_custom(a) else a + b

    return jax.tree.map(add, accumulated, gradient, is_leaf=_is_custom_or_none)


# choosing layers -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class QuantizationConfig:
    """How to quantize the linear layers of a model.

    Args:
        targets: Which of them: a regular expression that the beginning of a path must match, such as `"decoder.*mlp"`,
            or the last parts of paths; all if None. A path is that of an attribute, such as `layers.0.mlp`; in a
            `Stacked` it may begin there as well.
        amax_history_length: How many steps the scales of 8-bit floating point look back.
        compute_dtype: The dtype in which to compute scales, and of the result; that of the operands if None.
        fp8: Whether to use 8-bit floating point.
        int8: Whether to use 8-bit integers.

    Raises:
        ValueError: If both are wanted.
    """

    targets: Sequence[str] | str | None = None
    amax_history_length: int = 1024
    compute_dtype: Any = None
    fp8: bool = False
    int8: bool = False

    def __post_init__(self):
        """Check that at most one format is wanted."""
        if self.fp8 and self.int8:
            raise ValueError(problem("QuantizationConfig", "both fp8 and int8 are set", "at most one of them"))

    def selects(self, path: tuple[str, ...]) -> bool:
        """Whether `targets` names a path, given in its parts."""
        if self.targets is None:
            return True
        if isinstance(self.targets, str):
            return re.match(self.targets, ".".join(path)) is not None
        return path[-1:] != () and path[-1] in self.targets


def quantize_linear_layers(tree: T, config: QuantizationConfig) -> T:
    """Give linear layers of a model what contracts in 8 bits.

    Args:
        tree: The model.
        config: Which layers, and how.

    Returns:
        The model with other operations in its layers; in a `Stacked`, one state for each layer.

    Raises:
        ImportError: If `int8` is wanted, and AQT is not installed.
    """
    if config.fp8:
        op: Any = Fp8DotGeneralOp.init(config.amax_history_length, config.compute_dtype)
    elif config.int8:
        op = Int8DotGeneralOp.init()
    else:
        given = "neither fp8 nor int8 is set, so nothing is quantized"
        warnings.warn(problem("quantize_linear_layers", given), stacklevel=2)
        return tree
    seen: list[tuple[str, ...]] = []
    chosen: list[tuple[str, ...]] = []

    def replace(layer: Linear, path: tuple[str, ...], sizes: tuple[int, ...], inner: tuple[str, ...]) -> Linear:
        seen.append(path)
        if not (config.selects(path) or config.selects(inner)):
            return layer
        chosen.append(path)
        return dataclasses.replace(layer, dot_general=_stack(op, sizes))

    quantized = _map_linear(replace, tree)
    if not chosen:
        given = f"no linear layer is named by targets={config.targets!r}"
        known = ", ".join(map(".".join, seen)) or "none"
        warnings.warn(problem("quantize_linear_layers", given, f"the linear layers are: {known}"), stacklevel=2)
    return quantized


def _map_linear(
    replace: Callable[..., Linear],
    tree: Any,
    path: tuple[str, ...] = (),
    sizes: tuple[int, ...] = (),
    inner: tuple[str, ...] = (),
) -> Any:
    """Map over linear layers, with the path of each, the sizes of the stacks it is in, and the path in the last one."""

    def visit(keys: Any, node: Any) -> Any:
        names = tuple(map(_name, keys))
        if isinstance(node, Linear):
            return replace(node, path + names, sizes, inner + names)
        if isinstance(node, Stacked):
            here = (*path, *names, "stacked")
            stacked = _map_linear(replace, node.stacked, here, (*sizes, node.Block.size), ("stacked",))
            return dataclasses.replace(node, stacked=stacked)
        return node

    return jax.tree_util.tree_map_with_path(visit, tree, is_leaf=lambda x: isinstance(x, Linear | Stacked))


def _name(key: Any) -> str:
    match key:
        case GetAttrKey(name=name):
            return name
        case SequenceKey(idx=name) | DictKey(key=name) | FlattenedIndexKey(key=name):
            return str(name)
    return str(key)


def _stack(op: Any, sizes: tuple[int, ...]) -> Any:
    """The state of an operation for each of the layers of stacks."""
    if not sizes:
        return op
    return jax.tree.map(lambda x: jnp.broadcast_to(x, sizes + x.shape) if eqx.is_array(x) else x, op)
