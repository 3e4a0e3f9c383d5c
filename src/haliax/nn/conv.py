"""Convolutions by name: the output axis takes the place of the input axis, and all other axes are batch axes.

Where the axes of an array stand is no matter: they become the dimension numbers of one `conv_general_dilated`, and
nothing is transposed. Only several batch axes that do not stand side by side have to be brought together.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from haliax._src import elementwise
from haliax._src.array_base import A, NamedArrayBase, selectors
from haliax._src.axis import Axis, AxisSelection, AxisSelector, axis_name
from haliax._src.axiswise import flip
from haliax._src.errors import bad_value, duplicate_axes
from haliax._src.explicit_axes import laid_out_by_name
from haliax._src.jax_helpers import as_key
from haliax._src.layers import require_inputs, require_single_axis
from haliax._src.named_array import NamedArray
from haliax._src.rearrange import axis_spec_rearrange
from haliax._src.reshape import flatten_axes, unflatten_axis
from haliax._src.sharding import auto_sharded
from haliax._src.spatial import Padding, Pads, PerAxis, integer, normal_padding, pads, per_axis
from haliax._src.state_dict import ModuleWithStateDictSerialization
from haliax.random import uniform

Names = tuple[str, ...]
Sizes = tuple[int, ...]


class Conv(eqx.Module):
    """A convolution along any number of spatial axes.

    Args:
        Spatial: The axes to slide along. An array may have them with any sizes.
        In: The axis that is contracted.
        Out: The axis that takes its place.
        weight: The kernel, with the axes `Out`, `In` (of a group; called `<name>_in` if it is the output axis too), and
            `Spatial` with the sizes of the kernel.
        bias: What is added, with the axis `Out`; None for nothing.
        kernel_size: The size of the kernel along each spatial axis.
        stride: How far the kernel moves.
        padding: `SAME`, `VALID`, or how many zeros are added in front of and behind each spatial axis.
        dilation: How far the elements of the kernel are apart.
        groups: How many parts `In` and `Out` have; each part of the output sees one of the input.
    """

    Spatial: tuple[AxisSelector, ...] = eqx.field(static=True)
    In: Axis = eqx.field(static=True)
    Out: Axis = eqx.field(static=True)
    weight: NamedArray
    bias: NamedArray | None
    kernel_size: Sizes = eqx.field(static=True)
    stride: Sizes = eqx.field(static=True)
    padding: str | Pads = eqx.field(static=True)
    dilation: Sizes = eqx.field(static=True)
    groups: int = eqx.field(static=True)

    @staticmethod
    def init(
        Spatial: AxisSelection,
        In: Axis,
        Out: Axis,
        kernel_size: PerAxis,
        *,
        stride: PerAxis = 1,
        padding: Padding = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
        use_bias: bool = True,
        key: jax.Array,
    ) -> Conv:
        """A layer with random weights, uniform between plus and minus `1 / sqrt(number of inputs)`.

        Args:
            Spatial: The axes to slide along; their sizes do not matter.
            In: The input axis.
            Out: The output axis; it may have the name of the input axis.
            kernel_size: The size of the kernel: an integer for all spatial axes, or one for each, in order or by name.
            stride: How far the kernel moves; likewise.
            padding: `VALID` for none, `SAME` for as much as makes the result `size / stride` long, an integer, or an
                integer or a pair of them for each axis, in order or by name.
            dilation: How far the elements of the kernel are apart.
            groups: How many parts `In` and `Out` have; each part of the output sees one of the input.
            use_bias: Whether there is a bias.
            key: The random key.

        Returns:
            The layer.

        Raises:
            ValueError: If an option does not fit the axes, or `groups` does not divide both `In` and `Out`.
            TypeError: If `In` or `Out` is not a single Axis.
        """
        op = "Conv.init"
        axes, names = _spatial(op, Spatial, In, Out)
        kernel = per_axis(op, "kernel_size", kernel_size, names)
        weight, bias = _weights(op, names, In, Out, kernel, groups, use_bias, key)
        strides, dilations = per_axis(op, "stride", stride, names), per_axis(op, "dilation", dilation, names)
        padding = normal_padding(op, padding, names)
        return Conv(axes, In, Out, weight, bias, kernel, strides, padding, dilations, groups)

    def __call__(self, inputs: A, *, key: jax.Array | None = None) -> A:
        """Convolve an array.

        Args:
            inputs: An array with the axes `Spatial` and `In`, and any others but `Out`.
            key: Not used; layers take one.

        Returns:
            An array with the axes of `inputs` in their order, of which `Out` stands in the place of `In`.

        Raises:
            ValueError: If an axis is missing, `In` has another size, or there is an axis `Out` beside it.

        Source:
            `jax.lax.conv_general_dilated`, `torch.nn.Conv2d`
        """
        sizes = _checked("Conv", self, inputs)
        around = pads(self.padding, sizes, _extent(self), self.stride)
        ones = (1,) * len(sizes)
        return _apply("Conv", self, inputs, _Window(self.stride, around, ones, self.dilation, self.groups))


class ConvTranspose(ModuleWithStateDictSerialization):
    """A transposed convolution along any number of spatial axes, which makes them longer.

    Each element of the input is spread over a window of the output. The kernel is not flipped: with the weights of
    another library that does flip it, flip its spatial axes, as `flatten_for_export` does for torch.

    Args:
        Spatial: The axes to slide along. An array may have them with any sizes.
        In: The axis that is contracted.
        Out: The axis that takes its place.
        weight: The kernel, with the axes `Out`, `In` (of a group; called `<name>_in` if it is the output axis too), and
            `Spatial` with the sizes of the kernel.
        bias: What is added, with the axis `Out`; None for nothing.
        kernel_size: The size of the kernel along each spatial axis.
        stride: How far the windows of neighbouring elements are apart.
        padding: `SAME`, `VALID`, or how many elements are cut off in front of and behind each spatial axis.
        output_padding: How many elements are added behind each spatial axis of the result.
        dilation: How far the elements of the kernel are apart.
        groups: How many parts `In` and `Out` have; each part of the output sees one of the input.
    """

    Spatial: tuple[AxisSelector, ...] = eqx.field(static=True)
    In: Axis = eqx.field(static=True)
    Out: Axis = eqx.field(static=True)
    weight: NamedArray
    bias: NamedArray | None
    kernel_size: Sizes = eqx.field(static=True)
    stride: Sizes = eqx.field(static=True)
    padding: str | Pads = eqx.field(static=True)
    output_padding: Sizes = eqx.field(static=True)
    dilation: Sizes = eqx.field(static=True)
    groups: int = eqx.field(static=True)

    @staticmethod
    def init(
        Spatial: AxisSelection,
        In: Axis,
        Out: Axis,
        kernel_size: PerAxis,
        *,
        stride: PerAxis = 1,
        padding: Padding = 0,
        output_padding: PerAxis = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
        use_bias: bool = True,
        key: jax.Array,
    ) -> ConvTranspose:
        """A layer with random weights, uniform between plus and minus `1 / sqrt(number of inputs)`.

        Args:
            Spatial: The axes to slide along; their sizes do not matter.
            In: The input axis.
            Out: The output axis; it may have the name of the input axis.
            kernel_size: The size of the kernel: an integer for all spatial axes, or one for each, in order or by name.
            stride: How far the windows of neighbouring elements are apart; likewise.
            padding: `VALID` for nothing, `SAME` for as much as makes the result `size * stride` long, an integer, or an
                integer or a pair of them for each axis, in order or by name.
            output_padding: How many elements are added behind each spatial axis: the size that a convolution has lost.
            dilation: How far the elements of the kernel are apart.
            groups: How many parts `In` and `Out` have; each part of the output sees one of the input.
            use_bias: Whether there is a bias.
            key: The random key.

        Returns:
            The layer.

        Raises:
            ValueError: If an option does not fit the axes, or `groups` does not divide both `In` and `Out`.
            TypeError: If `In` or `Out` is not a single Axis.
        """
        op = "ConvTranspose.init"
        axes, names = _spatial(op, Spatial, In, Out)
        kernel = per_axis(op, "kernel_size", kernel_size, names)
        weight, bias = _weights(op, names, In, Out, kernel, groups, use_bias, key)
        strides, dilations = per_axis(op, "stride", stride, names), per_axis(op, "dilation", dilation, names)
        padding = normal_padding(op, padding, names)
        added = per_axis(op, "output_padding", output_padding, names, minimum=0)
        return ConvTranspose(axes, In, Out, weight, bias, kernel, strides, padding, added, dilations, groups)

    def __call__(self, inputs: A, *, key: jax.Array | None = None) -> A:
        """Convolve an array, transposed: as the gradient of a convolution does.

        Args:
            inputs: An array with the axes `Spatial` and `In`, and any others but `Out`.
            key: Not used; layers take one.

        Returns:
            An array with the axes of `inputs` in their order, of which `Out` stands in the place of `In`.

        Raises:
            ValueError: If an axis is missing, `In` has another size, or there is an axis `Out` beside it.

        Source:
            `jax.lax.conv_transpose`, `torch.nn.ConvTranspose2d`
        """
        sizes = _checked("ConvTranspose", self, inputs)
        around = tuple(
            (extent - 1 - before, extent - 1 - after + added)
            for extent, (before, after), added in zip(_extent(self), self._cut(), self.output_padding, strict=True)
        )
        ones = (1,) * len(sizes)
        return _apply("ConvTranspose", self, inputs, _Window(ones, around, self.stride, self.dilation, self.groups))

    def flatten_for_export(self) -> ConvTranspose:
        """The layer with the kernel as torch has it: first `In`, then `Out` (of a group), and flipped in space."""
        part, out = _name_in(self.In.name, self.Out.name), self.Out.name
        return dataclasses.replace(self, weight=self._mirrored(out, part))

    def unflatten_from_export(self, template: ConvTranspose) -> ConvTranspose:
        """Undo `flatten_for_export`."""
        part, out = _name_in(self.In.name, self.Out.name), self.Out.name
        weight = axis_spec_rearrange(self._mirrored(part, out), template.weight.axis_names)
        return dataclasses.replace(self, weight=weight)

    def _mirrored(self, whole: str, part: str) -> NamedArray:
        """The kernel flipped in space, with the groups in the axis `part` in the place of `whole`."""
        space = tuple(map(axis_name, self.Spatial))
        kernel = unflatten_axis(flip(self.weight, space), whole, {"__GROUP__": self.groups, whole: None})
        return flatten_axes(axis_spec_rearrange(kernel, ("__GROUP__", part, whole, *space)), ("__GROUP__", part), part)

    def _cut(self) -> Pads:
        """How much of the full result is cut off at the two ends of each spatial axis."""
        if not isinstance(self.padding, str):
            return self.padding
        if self.padding == "VALID":
            return ((0, 0),) * len(self.stride)
        surplus = [extent - stride for extent, stride in zip(_extent(self), self.stride, strict=True)]
        return tuple((max(n, 0) // 2, n - max(n, 0) // 2) for n in surplus)


# weights ------------------------------------------------------------------------------------------------------------


def _spatial(op: str, Spatial: AxisSelection, In: Axis, Out: Axis) -> tuple[tuple[AxisSelector, ...], Names]:
    """The spatial axes and their names, once they are known to be others than those of input and output."""
    require_single_axis(op, "In", In)
    require_single_axis(op, "Out", Out)
    axes = selectors(op, Spatial)
    names = tuple(axis_name(axis) for axis in axes)
    for channels in (In, Out):
        if len({*names, channels.name}) != len(names) + 1:
            raise duplicate_axes(op, (*names, channels.name), "The spatial axes, In and Out must differ.")
    return axes, names


def _weights(
    op: str, names: Names, In: Axis, Out: Axis, kernel: Sizes, groups: int, use_bias: bool, key: jax.Array
) -> tuple[Any, Any]:
    """A random kernel, and a random bias or None."""
    groups = integer(op, "groups", groups)
    if groups < 1 or In.size % groups or Out.size % groups:
        given = f"groups is {groups}, and the axes are {In.name}={In.size}, {Out.name}={Out.size}"
        raise bad_value(op, given, "expected a divisor of both sizes")
    Part = Axis(_name_in(In.name, Out.name), In.size // groups)
    bound = 1 / math.sqrt(max(1, Part.size * math.prod(kernel)))
    weight_key, bias_key = jax.random.split(as_key(op, key))
    weight = uniform(weight_key, (Out, Part, *map(Axis, names, kernel)), minval=-bound, maxval=bound)
    return weight, uniform(bias_key, Out, minval=-bound, maxval=bound) if use_bias else None


def _name_in(In: str, Out: str) -> str:
    """The name of the input axis in a kernel, which can not have one name twice."""
    return f"{In}_in" if In == Out else In


def _extent(layer: Conv | ConvTranspose) -> Sizes:
    """How far the kernel reaches along each spatial axis."""
    return tuple((size - 1) * gap + 1 for size, gap in zip(layer.kernel_size, layer.dilation, strict=True))


# application --------------------------------------------------------------------------------------------------------


class _Window(NamedTuple):
    """The options of `conv_general_dilated` that are no dimension numbers."""

    strides: Sizes
    padding: Pads
    lhs_dilation: Sizes
    rhs_dilation: Sizes
    groups: int


class _Plan(NamedTuple):
    """How to bring an array to the form that a convolution takes, with exactly one batch dimension."""

    permutation: Sizes | None
    """Brings the batch dimensions together, if they are not."""
    first: int
    """Where the batch dimensions begin then."""
    batch: int
    """How many there are."""
    lhs: Sizes
    """The batch, the feature and the spatial dimensions of the array, once it has one batch dimension."""
    rhs: Sizes
    """The output, the input and the spatial dimensions of the kernel."""


@functools.lru_cache(maxsize=1024)
def _plan(names: Names, kernel: Names, spatial: Names, In: str, Out: str) -> _Plan:
    """The plan for an array with axes `names` and a kernel with axes `kernel`."""
    rhs = tuple(kernel.index(name) for name in (Out, _name_in(In, Out), *spatial))
    window = [names.index(name) for name in (In, *spatial)]
    batch = [dim for dim in range(len(names)) if dim not in window]
    first = batch[0] if batch else 0
    order = (*range(first), *batch, *(dim for dim in range(first, len(names)) if dim in window))
    merged = [*order[:first], -1, *order[first + len(batch) :]]
    lhs = tuple(map(merged.index, (-1, *window)))
    return _Plan(None if order == tuple(range(len(names))) else order, first, len(batch), lhs, rhs)


def _checked(op: str, layer: Conv | ConvTranspose, inputs: NamedArrayBase) -> list[int]:
    """The sizes of the spatial axes of an input, once it is known to have the axes that a layer needs."""
    require_inputs(op, inputs, layer.In)
    if layer.Out.name != layer.In.name and layer.Out.name in inputs.axis_names:
        raise duplicate_axes(op, (*inputs.axis_names, layer.Out.name), "Rename the axis that the output axis repeats.")
    return [inputs.array.shape[inputs.require_axis(op, axis_name(axis))] for axis in layer.Spatial]


def _apply(op: str, layer: Conv | ConvTranspose, inputs: A, window: _Window) -> A:
    spatial = tuple(axis_name(axis) for axis in layer.Spatial)
    y: Any = laid_out_by_name(op)(_convolve)(inputs, layer.weight, spatial, layer.In.name, layer.Out.name, window)
    return auto_sharded(y if layer.bias is None else elementwise.add(y, layer.bias))


def _convolve(inputs: A, weight: NamedArray, spatial: Names, In: str, Out: str, window: _Window) -> A:
    plan = _plan(inputs.axis_names, weight.axis_names, spatial, In, Out)
    names = tuple(Out if name == In else name for name in inputs.axis_names)
    return inputs.like(_run(plan, window, inputs.array, weight.array), names)


@functools.partial(jax.jit, static_argnums=(0, 1), inline=True)
def _run(plan: _Plan, window: _Window, x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Convolve raw arrays, as one compiled step outside a trace."""
    if plan.permutation is not None:
        x = jax.lax.transpose(x, plan.permutation)
    end = plan.first + plan.batch
    before, batch, after = x.shape[: plan.first], x.shape[plan.first : end], x.shape[end:]
    if plan.batch != 1:
        x = jnp.reshape(x, (*before, math.prod(batch), *after))

    dtype = jnp.promote_types(x.dtype, kernel.dtype)
    y = jax.lax.conv_general_dilated(
        x.astype(dtype),
        kernel.astype(dtype),
        window.strides,
        window.padding,
        window.lhs_dilation,
        window.rhs_dilation,
        jax.lax.ConvDimensionNumbers(plan.lhs, plan.rhs, plan.lhs),
        feature_group_count=window.groups,
    )

    if plan.batch != 1:
        y = jnp.reshape(y, (*y.shape[: plan.first], *batch, *y.shape[plan.first + 1 :]))
    return y if plan.permutation is None else jax.lax.transpose(y, tuple(map(plan.permutation.index, range(y.ndim))))
