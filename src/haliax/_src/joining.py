"""Larger arrays from named arrays: joined along an axis, new or not, and repeated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from haliax._src.array_base import A, NamedArrayBase, as_places, is_scalar, require_named, wrap
from haliax._src.axis import Axis, AxisSelector
from haliax._src.broadcasting import alignment, as_named
from haliax._src.errors import bad_value, duplicate_axes, format_shape, size_mismatch, wrong_dtype, wrong_type
from haliax._src.explicit_axes import laid_out_by_name
from haliax._src.named_array import NamedArray
from haliax._src.reshape import one_name


def stack(axis: AxisSelector, arrays: Iterable[NamedArrayBase | ArrayLike]) -> NamedArray:
    """Join arrays along a new axis.

    Args:
        axis: The new axis: its name, or an Axis whose size is the number of arrays.
        arrays: Arrays with the same axes in any order, or scalars.

    Returns:
        An array with the new axis, then the axes of the first array; only the new axis if there are no arrays.

    Raises:
        ValueError: If the axes of the arrays differ, or they have the new one, or a given size is not their number.

    Source:
        `jax.numpy.stack`
    """
    one_name("stack", axis)
    return _stack(axis, [as_named("stack", a) for a in _several("stack", arrays)])


@laid_out_by_name("stack")
def _stack(axis: AxisSelector, parts: Sequence[NamedArray]) -> NamedArray:
    name = one_name("stack", axis)
    if isinstance(axis, Axis) and axis.size != len(parts):
        raise size_mismatch("stack", name, axis.size, len(parts), "There must be one array for each index.")
    if not parts:
        return wrap(jnp.zeros((0,)), (name,))
    first = parts[0]
    if name in first.axis_names:
        remedy = "Use concatenate to join arrays along an axis that they have."
        raise duplicate_axes("stack", (name, *first.axis_names), remedy)
    raw = [_in_order_of("stack", first, part) for part in parts]
    return first.like(jnp.stack(raw), (name, *first.axis_names))


def concatenate(axis: AxisSelector, arrays: Iterable[A]) -> A:
    """Join arrays along an axis that all of them have.

    Args:
        axis: The axis: its name, or an Axis of the size of the result.
        arrays: Arrays with the same axes in any order; their sizes may differ along `axis`.

    Returns:
        An array with the axes of the first; only an empty axis if there are no arrays.

    Raises:
        ValueError: If the axis is missing, other axes differ, or the sizes do not add up to a given one.

    Source:
        `jax.numpy.concatenate`
    """
    one_name("concatenate", axis)
    return _concatenate(axis, [require_named("concatenate", a) for a in _several("concatenate", arrays)])


@laid_out_by_name("concatenate")
def _concatenate(axis: AxisSelector, parts: Sequence[A]) -> A:
    name = one_name("concatenate", axis)
    total = sum(part._sizes()[part.require_axis("concatenate", name)] for part in parts)
    if isinstance(axis, Axis) and axis.size != total:
        raise size_mismatch("concatenate", name, axis.size, total, "The sizes of the arrays must add up to it.")
    if not parts:
        return wrap(jnp.zeros((0,)), (name,))
    first = parts[0]
    raw = [_in_order_of("concatenate", first, part, but=name) for part in parts]
    return first.like(jnp.concatenate(raw, first.axis_names.index(name)), first.axis_names)


def _in_order_of(op: str, first: NamedArrayBase, other: NamedArrayBase, but: str | None = None) -> Any:
    """The data of `other` with its axes in the order of `first`, which must be the same but for one's size."""
    wanted, given = first.shape, other.shape
    if wanted.keys() != given.keys() or any(given[name] != wanted[name] for name in wanted if name != but):
        raise bad_value(
            op,
            f"one array has {format_shape(wanted)} and another {format_shape(given)}",
            "expected the same axes" if but is None else f"expected the same axes but for the size of {but!r}",
        )
    return alignment(other.axis_names, first.axis_names)(other.array)


@laid_out_by_name("repeat")
def repeat(
    a: A,
    repeats: int | ArrayLike | NamedArrayBase,
    axis: AxisSelector,
    total_repeat_length: int | None = None,
) -> A:
    """Repeat each element along an axis.

    Args:
        a: A named array with any axes.
        repeats: How often: a number, or one number for each index of `axis`, as a named array with that axis or a raw
            array of rank 1.
        axis: The axis to repeat along.
        total_repeat_length: The size of the axis of the result, needed if `repeats` is traced.

    Returns:
        An array with the same axes, of which `axis` has another size.

    Raises:
        ValueError: If the axis is missing, or `repeats` has other axes.

    Source:
        `jax.numpy.repeat`
    """
    dim = require_named("repeat", a).require_axis("repeat", axis)
    counts = _counts("repeat", repeats, a.axis_names[dim], a._sizes()[dim])
    if total_repeat_length is None and isinstance(counts, Tracer):
        remedy = "The size of the axis of the result must be known in advance: it is a part of the shape."
        raise bad_value("repeat", "the counts are traced", "expected total_repeat_length with them", remedy)
    return a.like(jnp.repeat(a.array, as_places(counts), dim, total_repeat_length=total_repeat_length), a.axis_names)


def _counts(op: str, repeats: Any, name: str, size: int) -> Any:
    """How often to repeat each index of an axis: a number, or a raw array of them that is known to fit."""
    if isinstance(repeats, NamedArrayBase):
        if repeats.shape not in ({}, {name: size}):
            raise bad_value(op, f"the counts have {format_shape(repeats.shape)}", f"expected {name}={size}, or no axes")
        repeats = repeats.array
    expected = f"an integer, or an integer for each index of {name!r}"
    if not (is_scalar(repeats) or hasattr(repeats, "shape")):
        raise wrong_type(op, "the count", repeats, expected)
    if not jnp.issubdtype(jnp.result_type(repeats), jnp.integer):
        raise wrong_dtype(op, "the count", jnp.result_type(repeats), expected)
    if jnp.shape(repeats) not in ((), (1,), (size,)):
        raise bad_value(op, f"the counts have shape {jnp.shape(repeats)}", f"expected {name}={size}")
    if isinstance(repeats, int) and repeats < 0:
        raise bad_value(op, f"the count is {repeats}", "expected 0 or more")
    return repeats


@laid_out_by_name("tile")
def tile(a: A, reps: Mapping[AxisSelector, int]) -> A:
    """Repeat an array as a whole along axes.

    Args:
        a: A named array with any axes.
        reps: How often, for each axis; an axis that `a` lacks is added in front.

    Returns:
        An array with the new axes, then those of `a`, each as many times as large.

    Raises:
        ValueError: If an Axis has another size than that of `a`.

    Source:
        `jax.numpy.tile`
    """
    require_named("tile", a)
    if not isinstance(reps, Mapping):
        raise wrong_type("tile", "reps", reps, "a mapping from axes to numbers")
    counts: dict[str, int] = {}
    for axis, count in reps.items():
        name = one_name("tile", axis)
        if name in a.axis_names:
            a.require_axis("tile", axis)
        if not isinstance(count, int | np.integer):
            raise wrong_type("tile", f"the number for axis {name!r}", count, "an integer")
        if count < 0:
            raise bad_value("tile", f"axis {name!r} is to be repeated {count} times", "expected 0 or more")
        counts[name] = count
    new = tuple(name for name in counts if name not in a.axis_names)
    names = (*new, *a.axis_names)
    return a.like(jnp.tile(a.array, tuple(counts.get(name, 1) for name in names)), names)


def _several(op: str, arrays: Any) -> Iterable[Any]:
    """Some arrays to be joined, once they are sure to be several."""
    if isinstance(arrays, NamedArrayBase | str) or not isinstance(arrays, Iterable):
        raise wrong_type(op, "the arrays", arrays, "a sequence of NamedArrays")
    return arrays
