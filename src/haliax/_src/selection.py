"""Choosing elements: by a condition, by bounds, by size."""

from __future__ import annotations

from typing import Any, overload

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from haliax._src.array_base import A, NamedArrayBase, require_named
from haliax._src.axis import Axis, AxisSelector
from haliax._src.broadcasting import as_scalar
from haliax._src.errors import bad_value, check_integer, wrong_type
from haliax._src.explicit_axes import laid_out_by_name
from haliax._src.families import apply_aligned
from haliax._src.reshape import check_distinct, check_size, one_name


@overload
def where(condition: A, x: Any, y: Any) -> A: ...
@overload
def where(condition: A, *, fill_value: ArrayLike, new_axis: Axis) -> tuple[A, ...]: ...
@overload
def where(
    condition: Any, x: Any = None, y: Any = None, fill_value: ArrayLike | None = None, new_axis: Axis | None = None
) -> Any: ...
def where(
    condition: Any, x: Any = None, y: Any = None, fill_value: ArrayLike | None = None, new_axis: Axis | None = None
) -> Any:
    """Choose from `x` where a condition holds and from `y` elsewhere, or find where it holds.

    Args:
        condition: A named array of booleans, or a scalar.
        x: A named array or a scalar. One of the three arrays must have all axes of the others.
        y: A named array or a scalar.
        fill_value: Without `x` and `y`: the index to fill up with, once all places are found.
        new_axis: Without `x` and `y`: the axis of the places found, whose size is how many to look for.

    Returns:
        An array with the axes of the one that has the most of them; a raw one if neither `x` nor `y` is named and
        `condition` has no axes. Without `x` and `y`: for each axis of `condition`, an array of indices with axis
        `new_axis`.

    Raises:
        ValueError: If one of `x` and `y`, or of `fill_value` and `new_axis`, is missing, or no array has all axes.

    Source:
        `jax.numpy.where`
    """
    if (x is None) != (y is None):
        raise bad_value("where", f"only {'y' if x is None else 'x'} was given", "expected both x and y, or neither")
    if x is not None:
        if isinstance(condition, NamedArrayBase) and not condition.axis_names:
            condition = condition.array  # it chooses as any scalar does, and makes nothing named
        return apply_aligned("where", jnp.where, condition, x, y)
    if fill_value is None or new_axis is None:
        remedy = "The number of places must be known in advance: it is a part of the shape."
        raise bad_value("where", "only a condition was given", "expected x and y, or fill_value and new_axis", remedy)
    return _places("where", condition, new_axis, fill_value)


def nonzero(array: A, *, size: Axis, fill_value: ArrayLike = 0) -> tuple[A, ...]:
    """Find the elements that are not zero.

    Args:
        array: A named array with at least one axis.
        size: The axis of the places found, whose size is how many to look for.
        fill_value: The index to fill up with, once all places are found.

    Returns:
        For each axis of `array`, an array of indices with axis `size`.

    Source:
        `jax.numpy.nonzero`
    """
    return _places("nonzero", array, size, fill_value)


@laid_out_by_name("nonzero")
def _places(op: str, array: A, axis: Axis, fill_value: ArrayLike) -> tuple[A, ...]:
    require_named(op, array)
    if not isinstance(axis, Axis):
        raise wrong_type(op, "the new axis", axis, "an Axis", "Its size is the number of places to look for.")
    fill_value = as_scalar(op, fill_value, "fill_value")
    if not array.axis_names:
        raise bad_value(op, "the array has no axes", "expected at least one")
    if 0 in array._sizes():  # jax.numpy forgets what to fill up with
        places = (jnp.full(axis.size, fill_value, jnp.result_type(int)),) * len(array.axis_names)
    else:
        places = jnp.nonzero(array.array, size=axis.size, fill_value=fill_value)
    return tuple(array.like(place, (axis.name,)) for place in places)


@overload
def clip(array: A, a_min: Any = None, a_max: Any = None) -> A: ...
@overload
def clip(array: ArrayLike, a_min: Any = None, a_max: Any = None) -> Any: ...
def clip(array: Any, a_min: Any = None, a_max: Any = None) -> Any:
    """Limit the elements of an array to a range.

    Args:
        array: A named array, or a scalar.
        a_min: The least value, a named array or a scalar; no limit if None.
        a_max: The greatest value, a named array or a scalar; no limit if None.

    Returns:
        An array with the axes of the one that has the most of them.

    Raises:
        ValueError: If no array has all axes of the others.

    Source:
        `jax.numpy.clip`
    """
    return apply_aligned("clip", jnp.clip, array, a_min, a_max, none_allowed=True)


@laid_out_by_name("top_k")
def top_k(arr: A, axis: AxisSelector, k: int, new_axis: AxisSelector | None = None) -> tuple[A, A]:
    """Find the largest elements along an axis.

    Args:
        arr: A named array with any axes.
        axis: The axis to search.
        k: How many elements to find.
        new_axis: What to call the axis of the elements found, if not as before; an Axis must have size `k`.

    Returns:
        The elements, the largest first, and their indices along `axis`; both have the axes of `arr`, with the new one
        of size `k` in the place of `axis`.

    Raises:
        ValueError: If the axis is missing, smaller than `k`, or a given size is not `k`.

    Source:
        `jax.lax.top_k`
    """
    dim = require_named("top_k", arr).require_axis("top_k", axis)
    names, size = arr.axis_names, arr.array.shape[dim]
    check_integer("top_k", "k", k)
    if not 0 <= k <= size:
        raise bad_value("top_k", f"k is {k}", f"expected 0 to the size of the axis, {names[dim]}={size}")
    if isinstance(new_axis, Axis):
        check_size("top_k", new_axis, k, "Its size must be k.")
    if new_axis is not None:
        names = (*names[:dim], one_name("top_k", new_axis), *names[dim + 1 :])
        check_distinct("top_k", names)
    values, indices = jax.lax.top_k(arr.array, k, axis=dim)
    return arr.like(values, names), arr.like(indices, names)
