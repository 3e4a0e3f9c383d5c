"""Distinct values, counts and places in a sorted array.

The sizes of these results depend on values; the caller gives an Axis for them, so that shapes stay static.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import jax.numpy as jnp
from jax.typing import ArrayLike

from haliax._src.array_base import A, NamedArrayBase, as_places, raw_array_or_scalar, require_named
from haliax._src.axis import Axis, AxisSelector
from haliax._src.broadcasting import as_named, as_scalar
from haliax._src.errors import bad_value, check_choice, check_integer, format_shape, wrong_dtype, wrong_type
from haliax._src.explicit_axes import laid_out_by_name
from haliax._src.reshape import check_distinct


def unique(
    array: A,
    Unique: Axis,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: AxisSelector | None = None,
    fill_value: ArrayLike | None = None,
) -> A | tuple[A, ...]:
    """Find the distinct elements, in order.

    Args:
        array: A named array with any axes.
        Unique: The axis of the elements found, whose size is how many to return.
        return_index: Whether to return where each of them comes first.
        return_inverse: Whether to return which of them each element of `array` is.
        return_counts: Whether to return how often each of them comes.
        axis: The axis along which to compare slices; if None, elements of the array as a whole are compared.
        fill_value: What to fill up with; the first element if None.

    Returns:
        The elements with axis `Unique`, or the slices with `Unique` in the place of `axis`. With any option, a tuple:
        the elements, then what was asked for: index (axis `Unique`), inverse (the axes of `array`, or `axis`), counts
        (axis `Unique`).

    Raises:
        ValueError: If the axis is missing, or the new name is taken.
        TypeError: If `Unique` is no Axis.

    Source:
        `jax.numpy.unique`
    """
    flags = {"return_index": return_index, "return_inverse": return_inverse, "return_counts": return_counts}
    return _unique("unique", array, Unique, axis, fill_value, flags)


def _unique(
    op: str,
    array: NamedArrayBase,
    Unique: Axis,
    axis: AxisSelector | None,
    fill_value: ArrayLike | None,
    flags: Mapping[str, bool],
) -> Any:
    """`unique` and its kin, each under its own name."""
    return laid_out_by_name(op)(_find_unique)(op, array, Unique, axis, fill_value, flags)


def _find_unique(
    op: str,
    array: NamedArrayBase,
    Unique: Axis,
    axis: AxisSelector | None,
    fill_value: ArrayLike | None,
    flags: Mapping[str, bool],
) -> Any:
    require_named(op, array)
    _require_axis_object(op, "Unique", Unique)
    dim = None if axis is None else array.require_axis(op, axis)
    if fill_value is not None:
        fill_value = as_scalar(op, fill_value, "fill_value")
    found, names = (Unique.name,), array.axis_names
    values_names = found if dim is None else (*names[:dim], *found, *names[dim + 1 :])
    check_distinct(op, values_names)
    results = jnp.unique(array.array, axis=dim, size=Unique.size, fill_value=fill_value, **flags)
    if not any(flags.values()):
        return array.like(results, values_names)
    inverse = names if dim is None else (names[dim],)
    extra = {"return_index": found, "return_inverse": inverse, "return_counts": found}
    result_names = [values_names, *(extra[flag] for flag, wanted in flags.items() if wanted)]
    return tuple(array.like(*result) for result in zip(results, result_names, strict=True))


def unique_values(
    array: A, Unique: Axis, *, axis: AxisSelector | None = None, fill_value: ArrayLike | None = None
) -> A:
    """The distinct elements, in order; see `unique`.

    Args:
        array: A named array with any axes.
        Unique: The axis of the results; what is left of it is filled up.
        axis: The axis along which to compare slices; all elements are compared if None.
        fill_value: What fills up the results; the smallest element if None.

    Returns:
        The distinct elements, with axis `Unique`.

    Source:
        `jax.numpy.unique_values`
    """
    return _unique("unique_values", array, Unique, axis, fill_value, {})


def unique_counts(
    array: A, Unique: Axis, *, axis: AxisSelector | None = None, fill_value: ArrayLike | None = None
) -> tuple[A, A]:
    """The distinct elements, and how often each comes; see `unique`.

    Args:
        array: A named array with any axes.
        Unique: The axis of the results; what is left of it is filled up.
        axis: The axis along which to compare slices; all elements are compared if None.
        fill_value: What fills up the results; the smallest element if None.

    Returns:
        The distinct elements and their counts, each with axis `Unique`.

    Source:
        `jax.numpy.unique_counts`
    """
    return _unique("unique_counts", array, Unique, axis, fill_value, {"return_counts": True})


def unique_inverse(
    array: A, Unique: Axis, *, axis: AxisSelector | None = None, fill_value: ArrayLike | None = None
) -> tuple[A, A]:
    """The distinct elements, and which of them each element is; see `unique`.

    Args:
        array: A named array with any axes.
        Unique: The axis of the results; what is left of it is filled up.
        axis: The axis along which to compare slices; all elements are compared if None.
        fill_value: What fills up the results; the smallest element if None.

    Returns:
        The distinct elements with axis `Unique`, and the positions among them with the axes of `array`, or with `axis`.

    Source:
        `jax.numpy.unique_inverse`
    """
    return _unique("unique_inverse", array, Unique, axis, fill_value, {"return_inverse": True})


def unique_all(
    array: A, Unique: Axis, *, axis: AxisSelector | None = None, fill_value: ArrayLike | None = None
) -> tuple[A, A, A, A]:
    """The distinct elements, where each comes first, which of them each element is, and the counts; see `unique`.

    Args:
        array: A named array with any axes.
        Unique: The axis of the results; what is left of it is filled up.
        axis: The axis along which to compare slices; all elements are compared if None.
        fill_value: What fills up the results; the smallest element if None.

    Returns:
        Four arrays: the distinct elements and their first places, with axis `Unique`; the position of each element
        among them; their counts, with axis `Unique`.

    Source:
        `jax.numpy.unique_all`
    """
    flags = {"return_index": True, "return_inverse": True, "return_counts": True}
    return _unique("unique_all", array, Unique, axis, fill_value, flags)


@laid_out_by_name("bincount")
def bincount(x: A, Counts: Axis, *, weights: A | ArrayLike | None = None, minlength: int = 0) -> A:
    """Count how often each number from 0 on comes.

    Args:
        x: A named array of integers with one axis.
        Counts: The axis of the counts: its size is the number of values to count.
        weights: What each element counts, with the axis of `x`; 1 if None.
        minlength: Accepted as in numpy, without effect: `Counts` gives the size.

    Returns:
        An array with axis `Counts`.

    Raises:
        ValueError: If `x` has not exactly one axis, or `weights` another one.
        TypeError: If `Counts` is no Axis.

    Source:
        `jax.numpy.bincount`
    """
    _require_one_axis("bincount", require_named("bincount", x))
    _require_axis_object("bincount", "Counts", Counts)
    if not jnp.issubdtype(x.array.dtype, jnp.integer):
        raise wrong_dtype("bincount", "the array", x.array.dtype, "integers")
    check_integer("bincount", "minlength", minlength, 0)
    raw_weights = _beside("bincount", "the weights", weights, x)
    counts = jnp.bincount(as_places(x.array), raw_weights, minlength=min(minlength, Counts.size), length=Counts.size)
    return x.like(counts, (Counts.name,))


@laid_out_by_name("searchsorted")
def searchsorted(
    a: A,
    v: A | ArrayLike,
    *,
    side: Literal["left", "right"] = "left",
    sorter: A | ArrayLike | None = None,
    method: Literal["scan", "scan_unrolled", "sort", "compare_all"] = "scan",
) -> A:
    """Find where values would go in a sorted array.

    Args:
        a: A named array with one axis, in ascending order, or in the order that `sorter` gives.
        v: The values: a named array with any axes, or a scalar.
        side: Whether a value goes before (`"left"`) or after equal elements.
        sorter: The indices that put `a` in order, with the axis of `a`.
        method: How to search; see `jax.numpy.searchsorted`.

    Returns:
        An array of indices with the axes of `v`.

    Raises:
        ValueError: If `a` has not exactly one axis, or `v` has no names.

    Source:
        `jax.numpy.searchsorted`
    """
    _require_one_axis("searchsorted", require_named("searchsorted", a))
    values = as_named("searchsorted", v)
    check_choice("searchsorted", "side", side, ("left", "right"))
    check_choice("searchsorted", "method", method, ("scan", "scan_unrolled", "sort", "compare_all"))
    order = _beside("searchsorted", "the sorter", sorter, a)
    if order is not None and not jnp.issubdtype(order.dtype, jnp.integer):
        raise wrong_dtype("searchsorted", "the sorter", order.dtype, "integers")
    return values.like(jnp.searchsorted(a.array, values.array, side, order, method=method), values.axis_names)


def _beside(op: str, argument: str, other: Any, array: NamedArrayBase) -> Any:
    """The data of an array that must have the one axis of another; None if there is none."""
    if other is None:
        return None
    raw = raw_array_or_scalar(other)
    if not hasattr(raw, "shape"):
        raise wrong_type(op, argument, raw, f"an array with {format_shape(array.shape)}")
    fits = other.shape == array.shape if isinstance(other, NamedArrayBase) else raw.shape == array.array.shape
    if not fits:
        have = format_shape(other.shape) if isinstance(other, NamedArrayBase) else f"shape {raw.shape}"
        verb = "have" if argument.endswith("s") else "has"
        raise bad_value(op, f"{argument} {verb} {have}", f"expected {format_shape(array.shape)}")
    return raw


def _require_axis_object(op: str, argument: str, axis: object) -> None:
    if not isinstance(axis, Axis):
        raise wrong_type(op, argument, axis, "an Axis", "Its size is a part of the shape of the result.")


def _require_one_axis(op: str, array: NamedArrayBase) -> None:
    if len(array.axis_names) != 1:
        raise bad_value(op, f"the array has {format_shape(array.shape)}", "expected one axis")
