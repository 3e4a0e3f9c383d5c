"""What a view of a `NamedRef` has of each axis, and what an index leaves of that.

Places that are known are Python's own `range`, which does the arithmetic: a slice of a range is a range, an element of
it a place in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from haliax._src.dslice import dslice
from haliax._src.errors import problem


class Spot(NamedTuple):
    """A traced place along an axis, brought into bounds, and whether it was there before."""

    place: Any
    inside: Any


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
    index = jnp.where(item < 0, item + size, item)
    return Spot(part.start + part.step * jnp.clip(index, 0, size - 1), (index >= 0) & (index < size))


def stays(part: Part) -> bool:
    """Whether a view has the axis of which this is the part."""
    return isinstance(part, range | Window)


def unwindowed(part: Part) -> Part:
    """The part from which a window is taken."""
    return part.part if isinstance(part, Window) else part


def size_of(part: Part) -> int:
    """The size of the axis of a part that stays."""
    return len(part) if isinstance(part, range) else part.window.size  # pyright: ignore[reportAttributeAccessIssue]


def as_index(parts: Sequence[Part]) -> tuple[Any, ...]:
    """The parts as an index of `jax.Ref`."""
    parts = tuple(map(unwindowed, parts))
    # jax 0.10 to 0.12 can not read by an int and a slice with steps in a program, but by an array
    stepped = any(isinstance(part, range) and part.step != 1 for part in parts)
    return tuple(_as_item(part, jnp.int32 if stepped else int) for part in parts)


def _as_item(part: Part, integer: Callable[[int], Any]) -> Any:
    if isinstance(part, range):
        return slice(part.start, part.stop, part.step)
    return part.place if isinstance(part, Spot) else integer(part)  # pyright: ignore[reportArgumentType]
