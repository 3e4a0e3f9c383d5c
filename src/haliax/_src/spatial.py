"""Options of convolutions and pools: one value for each spatial axis, in order or by name."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from haliax._src.errors import axis_not_found, bad_value, wrong_type

Names = tuple[str, ...]
PerAxis: TypeAlias = int | Sequence[int] | Mapping[str, int]
"""An integer for all spatial axes, or one for each, in order or by name."""

Pads: TypeAlias = tuple[tuple[int, int], ...]
"""The elements that are added in front of each axis and behind it."""

Padding: TypeAlias = str | int | Sequence[int | tuple[int, int]] | Mapping[str, int | tuple[int, int]]
"""`SAME`, `VALID`, or for all axes or each of them an integer or a pair of integers, for the two ends of the axis."""


def per_axis(op: str, option: str, value: PerAxis, names: Names, minimum: int = 1) -> tuple[int, ...]:
    """An integer for each spatial axis.

    Args:
        op: The operation, for error messages.
        option: The name of the option.
        value: One integer, or one for each axis.
        names: The spatial axes.
        minimum: The smallest integer that makes sense.

    Returns:
        A tuple of integers, in the order of `names`.

    Raises:
        ValueError: If there is not one integer for each axis, or one is too small.
        TypeError: If a value is no integer.
    """
    values = tuple(integer(op, option, item, EACH) for item in _spread(op, option, value, names))
    if values and min(values) < minimum:
        raise bad_value(op, f"{option} is {min(values)}", f"expected {minimum} or more")
    return values


def normal_padding(op: str, value: Padding, names: Names) -> str | Pads:
    """A padding in its normal form: `SAME`, `VALID`, or a pair of integers for each axis.

    Raises:
        ValueError: If it is another string, or there is not one value for each axis.
        TypeError: If a value is neither an integer nor a pair of them.
    """
    if isinstance(value, str):
        if value.upper() not in ("SAME", "VALID"):
            raise bad_value(
                op, f"padding is {value!r}", "expected 'SAME', 'VALID', an integer, or a pair for each axis"
            )
        return value.upper()
    return tuple(_pair(op, item) for item in _spread(op, "padding", value, names))


def pads(padding: str | Pads, sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int]) -> Pads:
    """What a padding in normal form adds to axes of some sizes."""
    if isinstance(padding, str):
        return tuple(map(tuple, jax.lax.padtype_to_pads(sizes, windows, strides, padding)))  # pyright: ignore
    return padding


def _spread(op: str, option: str, value: Any, names: Names) -> tuple[Any, ...]:
    """One value for each axis."""
    if isinstance(value, Mapping):
        for name in value:
            if name not in names:
                raise axis_not_found(op, name, dict.fromkeys(names), owner=f"{option} is for the axes")
        missing = [name for name in names if name not in value]
        if missing:
            raise bad_value(op, f"{option} has no entry for axis {missing[0]!r}", "expected one for each spatial axis")
        return tuple(value[name] for name in names)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) != len(names):
            given = f"{option} has length {len(value)}, and the spatial axes are ({', '.join(names)})"
            raise bad_value(op, given, "expected one value for all, or one for each")
        return tuple(value)
    return (value,) * len(names)


EACH = "an integer, or one for each spatial axis"


def integer(op: str, option: str, value: Any, expected: str = "an integer") -> int:
    """A value as an integer of Python."""
    try:
        return operator.index(value)
    except TypeError:
        raise wrong_type(op, option, value, expected) from None


def _pair(op: str, value: Any) -> tuple[int, int]:
    expected = "an integer or a pair of them, or one or the other for each spatial axis"
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2:
        return integer(op, "padding", value[0], expected), integer(op, "padding", value[1], expected)
    both = integer(op, "padding", value, expected)
    return both, both
