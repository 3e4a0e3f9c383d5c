"""Making axes longer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from haliax._src.array_base import A, is_scalar, raw_array_or_scalar, require_named
from haliax._src.axis import Axis, AxisSelector
from haliax._src.broadcasting import as_scalar
from haliax._src.errors import bad_value, check_choice, problem, wrong_type
from haliax._src.explicit_axes import laid_out_by_name
from haliax._src.reshape import check_distinct

_STAT = {"stat_length"}
_OPTIONS: dict[str, set[str]] = {
    "constant": {"constant_values"},
    "edge": set(),
    "empty": set(),
    "linear_ramp": {"end_values"},
    "maximum": _STAT,
    "mean": _STAT,
    "median": _STAT,
    "minimum": _STAT,
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    "wrap": set(),
}
"""The modes of `jax.numpy.pad`, each with its options."""


@laid_out_by_name("pad")
def pad(
    array: A,
    pad_width: Mapping[AxisSelector, int | tuple[int, int]],
    *,
    mode: str = "constant",
    constant_values: Any = 0,
    **kwargs: Any,
) -> A:
    """Add elements at the ends of axes.

    Args:
        array: A named array with any axes.
        pad_width: How many to add, for each axis: a number before and one after, or one number for both.
        mode: What to add, as in `jax.numpy.pad`.
        constant_values: The value to add if `mode` is `"constant"`, or one for before and one for after.
        **kwargs: Options of other modes.

    Returns:
        An array with the same axes, of which those padded are longer.

    Raises:
        ValueError: If an axis is missing or has another size, or a number is negative.
        TypeError: If `pad_width` is no mapping.

    Source:
        `jax.numpy.pad`
    """
    require_named("pad", array)
    if not isinstance(pad_width, Mapping):
        raise wrong_type("pad", "pad_width", pad_width, "a mapping from axes to numbers before and after")
    widths = [(0, 0)] * len(array.axis_names)
    for axis, width in pad_width.items():
        dim = array.require_axis("pad", axis)
        widths[dim] = _width(array.axis_names[dim], width)
    if isinstance(mode, str):
        check_choice("pad", "mode", mode, _OPTIONS)
        for name in kwargs.keys() - _OPTIONS[mode]:
            expected = f"expected {', '.join(sorted(_OPTIONS[mode])) or 'none'} in mode {mode!r}"
            raise TypeError(problem("pad", f"no option {name!r}", expected))
    if mode == "constant":
        values = constant_values if isinstance(constant_values, tuple | list) else [constant_values]
        for value in values:
            if not is_scalar(raw_array_or_scalar(value)):
                raise wrong_type("pad", "constant_values", value, "a number, or one for before and one for after")
        kwargs["constant_values"] = raw_array_or_scalar(constant_values)
    return array.like(jnp.pad(array.array, widths, mode, **kwargs), array.axis_names)


def _width(name: str, width: Any) -> tuple[int, int]:
    """How many elements to add to an axis, before and after."""
    pair = (width, width) if isinstance(width, int | np.integer) else width
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(n, int | np.integer) for n in pair):
        raise wrong_type("pad", f"the width of axis {name!r}", width, "an integer, or a pair of them: before and after")
    before, after = map(int, pair)
    if before < 0 or after < 0:
        given = f"axis {name!r} is to grow by ({before}, {after})"
        raise bad_value("pad", given, "expected no negative number", "Use slice to make an axis shorter.")
    return before, after


def pad_left(array: A, axis: AxisSelector, new_axis: Axis, value: ArrayLike = 0) -> A:
    """Add a value at the beginning of an axis until it has the size of another.

    Args:
        array: A named array with any axes.
        axis: The axis to pad.
        new_axis: The axis to put in its place, at least as long.
        value: The value to add.

    Returns:
        An array with `new_axis` in the place of `axis`.

    Raises:
        ValueError: If the axis is missing, or the new one is shorter, or its name is taken.

    Source:
        `jax.numpy.pad`
    """
    dim = require_named("pad_left", array).require_axis("pad_left", axis)
    if not isinstance(new_axis, Axis):
        raise wrong_type("pad_left", "new_axis", new_axis, "an Axis")
    names, size = array.axis_names, array.array.shape[dim]
    if new_axis.size < size:
        raise bad_value(
            "pad_left", f"the new axis has size {new_axis.size}", f"expected at least that of {names[dim]}={size}"
        )
    new_names = (*names[:dim], new_axis.name, *names[dim + 1 :])
    check_distinct("pad_left", new_names)
    value = as_scalar("pad_left", value, "the value")
    padded = pad(array, {names[dim]: (new_axis.size - size, 0)}, constant_values=value)
    return padded.like(padded.array, new_names)
