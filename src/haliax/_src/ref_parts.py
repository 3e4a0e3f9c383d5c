"""What a view of a `NamedRef` has of each axis, and what an index leaves of that.

Places that are known are Python's own `range`, which does the arithmetic: a slice of a range is a range, an element of
it a place in memory.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from haliax._src.dslice import dslice
from haliax._src.errors import problem


class Spot(NamedTuple):
    """A traced place along an axis, brought into bounds, and whether it was there before."""

    place: Any
    inside: Any

    def or_outside(self, size: int) -> Any:
        """The place, or one beyond an axis of this size if it was not inside."""
        return jnp.where(self.inside, self.place, size)


class Window(NamedTuple):
    """A window along a part of an axis whose start is traced."""

    part: range
    window: dslice


Part = range | int | Spot | Window
"""What a view has of an axis: some of it in order, or one place of it."""


def narrowed(op: str, name: str, part: Part, item: Any) -> Part | None:
    """The part of a part that an item of an index chooses; None if JAX can not choose it in memory."""
    if isinstance(item, slice) and item == slice(None):
        return part
    if not isinstance(part, range):
        return None
    size = len(part)
    if isinstance(item, np.ndarray | np.generic):
        item = int(item)
    if isinstance(item, int):
        if not -size <= item < size:
            expected = f"expected {-size} to {size - 1}" if size else "it is empty"
            raise IndexError(problem(op, f"index {item} of axis {name!r}", expected))
        return part[item]
    if isinstance(item, slice):
        return part[item] if (item.step or 1) > 0 else None
    if isinstance(item, dslice):
        inside = isinstance(item.start, int) and 0 <= item.start <= size - item.size
        return part[item.start : item.start + item.size] if inside else None
    if not size:
        raise IndexError(problem(op, f"an index of axis {name!r}", "it is empty"))
    return Spot(*_spot(item, part.start, part.step, size))


@functools.partial(jax.jit, inline=True)  # one step outside of a program, instead of eight
def _spot(index: Any, start: int, step: int, size: int) -> tuple[Any, Any]:
    """The place of a part of some size at an index, the nearest if there is none, and whether there is one."""
    index = jnp.where(index < 0, index + size, index)
    return start + step * jnp.clip(index, 0, size - 1), (index >= 0) & (index < size)


def stays(part: Part) -> bool:
    """Whether a view has the axis of which this is the part."""
    return isinstance(part, range | Window)


def unwindowed(part: Part) -> Part:
    """The part from which a window is taken."""
    return part.part if isinstance(part, Window) else part


def size_of(part: Part) -> int:
    """The size of the axis of a part that stays."""
    return len(part) if isinstance(part, range) else part.window.size  # pyright: ignore[reportAttributeAccessIssue]


def as_item(part: Part) -> Any:
    """A part as an item of an index of arrays."""
    part = unwindowed(part)
    if isinstance(part, Spot):
        return part.place
    return slice(part.start, part.stop, part.step) if isinstance(part, range) else part


def as_index(parts: Sequence[Part]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """The parts as an index of `jax.Ref`, and the dimensions of size 1 that it leaves of axes that are gone.

    An integer becomes a slice: jax 0.9.2 can not map a write to an integer, and jax 0.10 to 0.12 can not read by an
    integer and a slice with steps in a program.
    """
    index, ones, kept = [], [], 0
    for part in parts:
        if isinstance(part, int):
            ones.append(kept)
        index.append(as_item(range(part, part + 1) if isinstance(part, int) else part))
        kept += not isinstance(part, Spot)
    return tuple(index), tuple(ones)
