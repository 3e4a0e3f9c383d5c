"""What layers share: axes that can be static, and checks of what a layer is called with."""

from __future__ import annotations

from haliax._src.array_base import NamedArrayBase, require_named, selectors
from haliax._src.axis import Axis, AxisSpec, axis_spec_to_tuple
from haliax._src.creation import names_and_sizes
from haliax._src.errors import size_mismatch, wrong_type


def hashable_axes(op: str, axes: AxisSpec) -> Axis | tuple[Axis, ...]:
    """Axes in a form that can be part of the structure of a pytree, once they are distinct and have sizes."""
    names_and_sizes(op, axes)
    return axes if isinstance(axes, Axis) else axis_spec_to_tuple(axes)


def require_single_axis(op: str, argument: str, value: object) -> Axis:
    """The value itself, if it is one Axis with a size."""
    if not isinstance(value, Axis):
        raise wrong_type(op, argument, value, "an Axis")
    return value


def require_inputs(op: str, inputs: NamedArrayBase, axes: AxisSpec) -> tuple[int, ...]:
    """The positions of the axes that a layer was made for among those of its input.

    Raises:
        TypeError: If the input is no named array.
        ValueError: If it lacks an axis, or has it with another size than the layer.
    """
    have = require_named(op, inputs).shape
    for axis in selectors(op, axes):
        if isinstance(axis, Axis) and have.get(axis.name, axis.size) != axis.size:
            raise size_mismatch(
                op, axis.name, have[axis.name], axis.size, f"The layer was made with {axis.name}={axis.size}."
            )
    return inputs.require_axes(op, axes)
