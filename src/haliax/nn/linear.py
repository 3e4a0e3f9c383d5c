"""Linear layers between any number of input axes and any number of output axes; one of them for each expert."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from haliax._src import creation, elementwise
from haliax._src.array_base import A, NamedArrayBase, require_named
from haliax._src.axis import Axis, AxisSpec, axis_name, axis_size, axis_spec_to_tuple
from haliax._src.dot import dot
from haliax._src.dot_general import DefaultDotGeneralOp, DotGeneralOp, contraction
from haliax._src.errors import bad_value, duplicate_axes, format_shape
from haliax._src.explicit_axes import REFUSALS, by_name
from haliax._src.jax_helpers import as_key
from haliax._src.layers import hashable_axes, require_inputs
from haliax._src.named_array import NamedArray
from haliax._src.rearrange import axis_spec_rearrange
from haliax._src.reshape import flatten_axes, rename, unflatten_axis
from haliax._src.sharding import auto_sharded
from haliax._src.state_dict import ModuleWithStateDictSerialization
from haliax.nn.mup import (
    AbstractLinearReparam,
    HiddenLinearMup,
    InputLinearMup,
    LinearStandardParam,
    OutputLinearMup,
    ReparamEnabled,
)
from haliax.nn.ragged_dot import ragged_dot
from haliax.random import truncated_normal


class Linear(ModuleWithStateDictSerialization, ReparamEnabled):
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
        op, key = "Linear.init", as_key("Linear.init", key)
        In, Out = hashable_axes(op, In), hashable_axes(op, Out)
        inner, outer = _inner_axes(In, Out), axis_spec_to_tuple(Out)
        weight: Any = truncated_normal(key, outer + inner if out_first else inner + outer, -3, 3)
        weight = weight * (init_scale * reparam_cls.init_scale(In, Out))
        bias = creation.zeros(Out) if use_bias else None
        return Linear(weight, bias, In, Out, dot_general or DefaultDotGeneralOp(), reparam_cls)

    def __call__(self, inputs: A, *, key: jax.Array | None = None) -> A:
        """Map an array.

        Args:
            inputs: An array with the axes `In`, and any others. An axis of `Out` among them is matched by name with
                that of the weight, as batch axes are: each of its indices has its own map.
            key: Not used; layers take one.

        Returns:
            An array with the other axes of `inputs`, then `Out`.

        Raises:
            ValueError: If an axis is missing or has another size.
        """
        require_inputs("Linear", inputs, self.In)
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

    def flatten_for_export(self) -> Linear:
        """The layer with one input and one output axis, as `torch.nn.Linear` has them.

        Returns:
            The layer itself if it has one of each; else one from `__IN__` to `__OUT__`. The weight has the output axis
            first, as torch has it, unless it had its input axes first.
        """
        outer, inner = axis_spec_to_tuple(self.Out), _inner_axes(self.In, self.Out)
        if len(outer) == len(inner) == 1:
            return self
        # axes that merge none come in front: the order of torch where there is nothing to keep
        weight = flatten_axes(flatten_axes(self.weight, inner, "__IN__"), outer, "__OUT__")
        if not inner:
            weight = axis_spec_rearrange(weight, (..., "__OUT__", "__IN__"))
        bias = None if self.bias is None else flatten_axes(self.bias, outer, "__OUT__")
        In, Out = weight.resolve_axis("__IN__"), weight.resolve_axis("__OUT__")
        return dataclasses.replace(self, weight=weight, bias=bias, In=In, Out=Out)

    def unflatten_from_export(self, template: Linear) -> Linear:
        """The layer with the axes of `template`, from which `flatten_for_export` made those of this one."""
        outer, inner = axis_spec_to_tuple(template.Out), _inner_axes(template.In, template.Out)
        if len(outer) == len(inner) == 1:
            return self
        weight = unflatten_axis(unflatten_axis(self.weight, "__OUT__", outer), "__IN__", inner)
        weight = axis_spec_rearrange(weight, template.weight.axis_names)
        bias = None if self.bias is None else unflatten_axis(self.bias, "__OUT__", outer)
        return dataclasses.replace(self, weight=weight, bias=bias, In=template.In, Out=template.Out)

    def _state_dict_scales(self) -> dict[str | None, float]:
        """The factor on the output is part of the weight there: other libraries have no such factor."""
        return {"weight": self.reparam.active_scale}

    @property
    def _out_first(self) -> bool:
        """Whether the weight has the input axes last: Levanter's optimizers ask for it by this name."""
        names = {axis.name for axis in _inner_axes(self.In, self.Out)}
        return bool(names) and self.weight.axis_names[-1] in names

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


class MoELinear(eqx.Module):
    """A linear map for each expert: each row of the input goes through the one of its expert.

    Args:
        weight: The maps, with the axes `Experts`, `In` and `Out`. An axis of `In` and `Out` is called `<name>_in` as an
            input.
        bias: The shift, with the axes `Out`; one for each expert if it has the axes `Experts` too; None for no shift.
        Experts: The axes of the experts.
        In: The axes that are contracted.
        Out: The axes that take their place.
        use_gmm: Whether to use a kernel of tokamax where there is one; see `haliax.nn.ragged_dot`.
    """

    weight: NamedArray
    bias: NamedArray | None
    Experts: AxisSpec = eqx.field(static=True)
    In: AxisSpec = eqx.field(static=True)
    Out: AxisSpec = eqx.field(static=True)
    use_gmm: bool = eqx.field(static=True)

    @staticmethod
    def init(
        Experts: AxisSpec,
        In: AxisSpec,
        Out: AxisSpec,
        *,
        key: jax.Array,
        use_bias: bool = True,
        out_first: bool = False,
        init_scale: float = 1.0,
        use_gmm: bool = False,
    ) -> MoELinear:
        """A layer with random weights: normal ones, cut at three standard deviations of one over the root of `In`.

        Args:
            Experts: The axes of the experts.
            In: The input axes.
            Out: The output axes; one that is an input axis too replaces it.
            key: The random key.
            use_bias: Whether to shift, all experts alike; the shift is 0 at first.
            out_first: Whether the weight has the output axes before the input axes.
            init_scale: A factor on the initial weights.
            use_gmm: Whether to use a kernel of tokamax where there is one.

        Returns:
            The layer.
        """
        op, key = "MoELinear.init", as_key("MoELinear.init", key)
        Experts, In, Out = hashable_axes(op, Experts), hashable_axes(op, In), hashable_axes(op, Out)
        experts, inner, outer = axis_spec_to_tuple(Experts), _inner_axes(In, Out), axis_spec_to_tuple(Out)
        maps = outer + inner if out_first else inner + outer
        weight: Any = truncated_normal(key, experts + maps, -3, 3)
        weight = weight * (init_scale / max(1, axis_size(In)) ** 0.5)
        bias = creation.zeros(Out) if use_bias else None
        return MoELinear(weight, bias, Experts, In, Out, use_gmm)

    def __call__(self, inputs: A, group_sizes: NamedArrayBase, *, key: jax.Array | None = None) -> A:
        """Map the rows of an array.

        Args:
            inputs: An array with the axes `In`, one axis of rows, and the batch axes of `group_sizes`. The rows of an
                expert are side by side, and the experts in order.
            group_sizes: How many rows each expert has: integers with the axes `Experts`, and any batch axes.
            key: Not used; layers take one.

        Returns:
            An array with the other axes of `inputs`, then `Out`. Rows that belong to no expert are 0, before they are
            shifted as all are.

        Raises:
            ValueError: If an axis is missing or has another size, or there is not one axis of rows.
        """
        require_inputs("MoELinear", inputs, self.In)
        require_inputs("MoELinear", require_named("MoELinear", group_sizes, "group_sizes"), self.Experts)
        names = _rows_last(inputs, group_sizes, axis_name(axis_spec_to_tuple(self.In)), self.Experts)
        outer = axis_name(axis_spec_to_tuple(self.Out))
        if not set(names).isdisjoint(outer):
            raise duplicate_axes("MoELinear", (*names, *outer), "Rename the axis that the output axis repeats.")
        experts = axis_name(axis_spec_to_tuple(self.Experts))
        shared = self.bias is not None and set(experts).isdisjoint(self.bias.axis_names)
        operands = (inputs, self.weight, None if shared else self.bias, group_sizes)
        try:
            y = self._apply(names, *operands)
        except (*REFUSALS, NotImplementedError) as refusal:  # JAX has no rule for explicit axes here
            y = by_name("MoELinear", refusal, lambda *operands: self._apply(names, *operands), *operands)
        return auto_sharded(elementwise.add(y, self.bias) if shared else y)

    def _apply(self, names: tuple[str, ...], inputs: A, weight: Any, bias: Any, group_sizes: NamedArrayBase) -> A:
        """The result for operands whose axes are known to fit; `names` are the batch axes and that of the rows."""
        experts, outer = axis_spec_to_tuple(self.Experts), axis_spec_to_tuple(self.Out)
        inner, outside = _inner_axes(self.In, self.Out), tuple(n for n in inputs.axis_names if n in names)
        batch = names[:-1]
        x = _merged(inputs, names, axis_spec_to_tuple(self.In))
        maps = _merged(weight, (), experts, inner, outer)
        shifts = None if bias is None else _merged(bias, (), experts, outer)
        sizes = _merged(group_sizes, batch, experts)

        def apply(x: jax.Array, sizes: jax.Array) -> jax.Array:
            y = ragged_dot(x, maps, sizes, implementation="auto" if self.use_gmm else "xla")
            return y if shifts is None else y + _of_expert(shifts, sizes, x.shape[0])

        for _ in batch:
            apply = jax.vmap(apply)
        y = apply(x, sizes)
        y = jnp.reshape(y, (*y.shape[:-1], *(axis.size for axis in outer)))
        result: Any = inputs.like(y, (*names, *axis_name(outer)))
        return axis_spec_rearrange(result, (*outside, *axis_name(outer)))

    @property
    def out_first(self) -> bool:
        """Whether the weight has the output axes before the input axes."""
        inner, outer = _inner_axes(self.In, self.Out), axis_spec_to_tuple(self.Out)
        where = self.weight.axis_names.index
        return bool(inner and outer) and where(outer[0].name) < where(inner[0].name)


def _rows_last(
    inputs: NamedArrayBase, group_sizes: NamedArrayBase, In: tuple[str, ...], Experts: AxisSpec
) -> tuple[str, ...]:
    """The batch axes of a mixture of experts, then its axis of rows."""
    experts = axis_name(axis_spec_to_tuple(Experts))
    batch = tuple(name for name in group_sizes.axis_names if name not in experts)
    require_inputs("MoELinear", inputs, [Axis(name, group_sizes.shape[name]) for name in batch])
    rows = tuple(name for name in inputs.axis_names if name not in In and name not in batch)
    if len(rows) != 1:
        given = (
            f"besides ({', '.join((*In, *batch))}) the inputs have {format_shape({n: inputs.shape[n] for n in rows})}"
        )
        remedy = "Merge several with flatten_axes, or give group_sizes the batch axes among them." if rows else ""
        raise bad_value("MoELinear", given, "expected one axis of rows", remedy)
    return (*batch, *rows)


def _merged(array: Any, kept: Any, *groups: tuple[Axis, ...]) -> jax.Array:
    """A raw array with the dimensions `kept`, then one for each group of axes."""
    groups_of_names = [axis_name(group) for group in groups]
    array = axis_spec_rearrange(array, (*kept, *(name for names in groups_of_names for name in names)))
    return jnp.reshape(array.array, (*array.array.shape[: len(kept)], *map(axis_size, groups)))


def _of_expert(shifts: jax.Array, sizes: jax.Array, rows: int) -> jax.Array:
    """The shift of each row: that of its expert, 0 if it has none."""
    expert = jnp.searchsorted(jnp.cumsum(sizes), jnp.arange(rows), side="right")
    return shifts.at[expert].get(mode="fill", fill_value=0)
