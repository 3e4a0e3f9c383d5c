"""Axes: a name with a size, and the ways in which a user may name them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """A named dimension of a given size.

    Args:
        name: The name of the axis.
        size: The number of elements along it.
    """

    name: str
    size: int

    def alias(self, new_name: str) -> Axis:
        """The same size under another name."""
        return Axis(new_name, self.size)

    def resize(self, size: int) -> Axis:
        """The same name with another size."""
        return Axis(self.name, size)


AxisSelector = Axis | str
AxisSelection = AxisSelector | Sequence[AxisSelector] | Mapping[str, int | None]
AxisSpec = Axis | Sequence[Axis] | Mapping[str, int]


def axis_name(ax):
    """The name of an axis; of several axes, the tuple of their names."""
    if isinstance(ax, str):
        return ax
    if isinstance(ax, Axis):
        return ax.name
    return tuple(axis_name(a) for a in ax)
