"""Axes: a name with a size, and the ways in which a user may name them.

Every way to name axes (an `Axis`, a name, a sequence of both, a mapping from names to sizes) has one normal form: an
ordered dict from names to sizes, where the size is None if only the name is known. Functions take their
arguments to that form, work on names and sizes, and give the result in the form of their first argument: a mapping if
that was one, otherwise a tuple.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from types import EllipsisType
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np

from . import errors


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

    def __str__(self) -> str:
        return f"{self.name}({self.size})"


AxisSelector: TypeAlias = Axis | str
"""One axis, by itself or by name."""

AxisSelection: TypeAlias = AxisSelector | Sequence[AxisSelector] | Mapping[str, int | None]
"""Any number of axes, of which a size may be unknown."""

AxisSpec: TypeAlias = Axis | Sequence[Axis] | Mapping[str, int]
"""Any number of axes, all of them with their sizes."""

PartialAxisSpec: TypeAlias = Sequence[EllipsisType | AxisSelector]
"""Axes in order, where `...` stands for any number of axes."""

ShapeDict: TypeAlias = Mapping[str, int]
"""Names with sizes, in order."""

PartialShapeDict: TypeAlias = Mapping[str, int | None]
"""Names with sizes, in order; None if the size is unknown."""

Axes = TypeVar("Axes", AxisSpec, AxisSelection)
"""Axes with their sizes, or axes of which some may lack one: a function of axes with sizes gives such."""

Ax = TypeVar("Ax", AxisSelector, Axis)
"""An axis, or what names one: ties the type of a result to the type of an argument."""


def make_axes(**kwargs: int) -> tuple[Axis, ...]:
    """One `Axis` for each keyword, in order.

    Args:
        **kwargs: The size of each axis, by name.

    Returns:
        The axes: `make_axes(batch=8, time=128)` is `(Axis("batch", 8), Axis("time", 128))`.
    """
    return tuple(Axis(name, size) for name, size in kwargs.items())


# --- The normal form ---


def iter_axes(op: str, axes: AxisSelection) -> Iterator[tuple[str, int | None]]:
    """The name and the size (None if unknown) of each axis in `axes`, in order.

    Args:
        op: The operation that a message names.
        axes: Any form that names axes.

    Yields:
        A pair of name and size for each axis, repetitions included.

    Raises:
        TypeError: `axes`, or one of its entries, does not name an axis.
    """
    if isinstance(axes, Axis):
        yield checked(op, axes)
    elif isinstance(axes, str):
        yield axes, None
    elif isinstance(axes, Mapping):
        for name, size in axes.items():
            if not isinstance(name, str):
                raise errors.wrong_type(op, "a key of the axes", name, "a name")
            if size is not None:
                check_is_size(op, name, size)
            yield name, size
    elif isinstance(axes, Sequence):
        for i, axis in enumerate(axes):
            if isinstance(axis, Axis):
                yield checked(op, axis)
            elif isinstance(axis, str):
                yield axis, None
            else:
                raise errors.not_an_axis(op, axis, f"entry {i} of the axes")
    else:
        raise errors.not_axes(op, axes)


def checked(op: str, axis: Axis) -> tuple[str, int]:
    """The name and the size of an Axis, once they are sure to be such."""
    if not isinstance(axis.name, str):
        raise errors.wrong_type(op, "the name of an Axis", axis.name, "a string")
    check_is_size(op, axis.name, axis.size)
    return axis.name, axis.size


def check_is_size(op: str, name: str, size: Any) -> None:
    """Raise unless `size` is a size: an integer that is not negative, traced or symbolic ones included."""
    if type(size) is int and size >= 0:
        return
    # symbolic sizes of `jax.export` are no integers, and become arrays
    if isinstance(size, bool) or not (hasattr(size, "__index__") or hasattr(size, "__jax_array__")):
        raise errors.wrong_type(op, f"the size of axis {name!r}", size, "an integer")
    if isinstance(size, int | np.integer) and size < 0:
        raise errors.bad_value(op, f"axis {name!r} has size {size}", "expected 0 or more")


def shape_dict(op: str, axes: AxisSelection) -> dict[str, int | None]:
    """The normal form of `axes`: names with sizes, each name once, in the order of first mention.

    Args:
        op: The operation that a message names.
        axes: Any form that names axes. A name may be repeated as long as its sizes agree.

    Returns:
        A new dict from each name to its size; None where no mention has a size.

    Raises:
        TypeError: `axes` does not name axes.
        ValueError: One name has two sizes.
    """
    shape: dict[str, int | None] = {}
    for name, size in iter_axes(op, axes):
        known = shape.get(name)
        if known is None:
            shape[name] = size
        else:
            check_size(op, name, size, known)
    return shape


def check_size(op: str, name: str, given: int | None, expected: int | None) -> None:
    """Raise ValueError if both sizes of the axis `name` are known and differ."""
    if given is not None and expected is not None and given != expected:
        raise errors.size_mismatch(op, name, given, expected)


def axis_selectors(shape: PartialShapeDict) -> tuple[AxisSelector, ...]:
    """The axes of a normal form: an `Axis` where the size is known, otherwise the name."""
    return tuple(name if size is None else Axis(name, size) for name, size in shape.items())


def in_form_of(axes: AxisSelection, shape: dict[str, int | None]) -> Any:
    """`shape` as a dict if `axes` is a mapping, otherwise as a tuple."""
    return shape if isinstance(axes, Mapping) else axis_selectors(shape)


def shape_with(op: str, axes: AxisSelection, selected: PartialShapeDict) -> dict[str, int | None]:
    """The normal form of `axes`, once it is known to hold all of `selected`, with sizes that agree."""
    shape = shape_dict(op, axes)
    for name, size in selected.items():
        if name not in shape:
            raise errors.axis_not_found(op, name, shape, owner="the axes are")
        check_size(op, name, size, shape[name])
    return shape


# --- From one form to another ---


@overload
def axis_name(ax: AxisSelector) -> str: ...
@overload
def axis_name(ax: Sequence[AxisSelector] | Mapping[str, Any]) -> tuple[str, ...]: ...
def axis_name(ax: AxisSelection) -> str | tuple[str, ...]:
    """The name of an axis; of several axes, the tuple of their names.

    Args:
        ax: One axis, or any form that names several.

    Returns:
        A name for an `Axis` or a name, otherwise a tuple of names.

    Raises:
        TypeError: `ax` does not name axes.
    """
    if isinstance(ax, str):
        return ax
    if isinstance(ax, Axis):
        return ax.name
    return tuple(name for name, _ in iter_axes("axis_name", ax))


def known_sizes(op: str, axes: AxisSelection) -> Iterator[int]:
    """The size of each axis in `axes`, in order; raises ValueError for an axis without one."""
    for name, size in iter_axes(op, axes):
        if size is None:
            raise errors.bad_value(op, f"axis {name!r} has no size", "expected an Axis, or a mapping from name to size")
        yield size


def axis_size(ax: AxisSpec) -> int:
    """The number of elements along an axis; along several axes, the product of their sizes.

    Args:
        ax: One or more axes, all of them with sizes.

    Returns:
        The number of elements; 1 for no axes.

    Raises:
        TypeError: `ax` does not name axes.
        ValueError: An axis has no size.
    """
    if isinstance(ax, Axis):
        return ax.size
    return math.prod(known_sizes("axis_size", ax))


@overload
def to_jax_shape(shape: Axis) -> int: ...
@overload
def to_jax_shape(shape: Sequence[Axis] | Mapping[str, int]) -> tuple[int, ...]: ...
def to_jax_shape(shape: AxisSpec) -> int | tuple[int, ...]:
    """The sizes of axes, as `jax.numpy` takes a shape.

    Args:
        shape: One or more axes, all of them with sizes.

    Returns:
        The size of a single `Axis`, otherwise a tuple of sizes.

    Raises:
        TypeError: `shape` does not name axes.
        ValueError: An axis has no size.
    """
    if isinstance(shape, Axis):
        return shape.size
    return tuple(known_sizes("to_jax_shape", shape))


@overload
def axis_spec_to_tuple(axis_spec: AxisSpec) -> tuple[Axis, ...]: ...
@overload
def axis_spec_to_tuple(axis_spec: AxisSelection) -> tuple[AxisSelector, ...]: ...
def axis_spec_to_tuple(axis_spec: AxisSelection) -> tuple[AxisSelector, ...]:
    """The axes as a tuple, repetitions included.

    Args:
        axis_spec: Any form that names axes.

    Returns:
        An `Axis` for each axis with a size, a name for each without.

    Raises:
        TypeError: `axis_spec` does not name axes.
    """
    pairs = iter_axes("axis_spec_to_tuple", axis_spec)
    return tuple(name if size is None else Axis(name, size) for name, size in pairs)


@overload
def axis_spec_to_shape_dict(axis_spec: AxisSpec) -> dict[str, int]: ...
@overload
def axis_spec_to_shape_dict(axis_spec: AxisSelection) -> Mapping[str, int | None]: ...
def axis_spec_to_shape_dict(axis_spec: AxisSelection) -> Mapping[str, int | None]:
    """The axes as a new dict from names to sizes, in the order of first mention.

    Args:
        axis_spec: Any form that names axes.

    Returns:
        The size of each axis by name; None if it is unknown.

    Raises:
        TypeError: `axis_spec` does not name axes.
        ValueError: One name has two sizes.
    """
    return shape_dict("axis_spec_to_shape_dict", axis_spec)
