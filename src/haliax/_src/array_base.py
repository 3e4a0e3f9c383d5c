"""The data of a named array: an array, the names of its axes, and look-ups by name.

Operations are functions below this module in the order of imports and above `NamedArray`; they test for
`NamedArrayBase` and build their results with `like`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, TypeAlias, TypeVar, overload

import jax
import numpy as np

from haliax._src.axis import Axis, AxisSelection, AxisSelector, AxisSpec, axis_name, iter_axes
from haliax._src.errors import (
    axis_not_found,
    bad_value,
    duplicate_axes,
    format_shape,
    kind,
    not_an_axis,
    not_axes,
    size_mismatch,
    wrong_type,
)
from haliax.types import Scalar

A = TypeVar("A", bound="NamedArrayBase")
N = TypeVar("N", bound="NamedArrayBase | jax.Array")
"""A named array or a raw one."""

_shape_checks: ContextVar[bool] = ContextVar("haliax_shape_checks", default=True)


def are_shape_checks_enabled() -> bool:
    """Whether making a NamedArray checks the sizes of its axes (it does, unless switched off)."""
    return _shape_checks.get()


@contextmanager
def enable_shape_checks(enabled: bool):
    """A context in which making a NamedArray does, or does not, check its sizes.

    Args:
        enabled: Whether to check.

    Yields:
        The previous setting.
    """
    previous = _shape_checks.get()
    token = _shape_checks.set(enabled)
    try:
        yield previous
    finally:
        _shape_checks.reset(token)


@dataclasses.dataclass(frozen=True, eq=False, repr=False, init=False, slots=True, weakref_slot=True)
class NamedArrayBase:
    """An array whose axes have names.

    Args:
        array: The array, of any rank; a pytree transformation may put anything in its place.
        axis_names: One name, or Axis whose size must fit, for each axis.
    """

    array: jax.Array
    axis_names: tuple[str, ...]

    concrete: ClassVar[type[Any]]
    """The public class, for operations that make a named array where none was given; set once, by its module."""

    def __init__(self, array: Any, axis_names: AxisSpec | Sequence[AxisSelector] | str):
        """Check names and sizes against the array."""
        names = normalize_names("NamedArray", axis_names)
        if hasattr(array, "shape") and _shape_checks.get():
            check_axes("NamedArray", array.shape, names, axis_names)
        _set_array(self, array)
        _set_names(self, names)

    def like(self: A, array: Any, axis_names: tuple[str, ...]) -> A:
        """A NamedArray of the same class around another array, with nothing checked."""
        new = _new(type(self))
        _set_array(new, array)
        _set_names(new, axis_names)
        return new

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes, in the order of the array's dimensions."""
        return tuple(map(Axis, self.axis_names, self._sizes()))

    @property
    def shape(self) -> Mapping[str, int]:
        """The sizes by axis name, in the order of the array's dimensions."""
        return dict(zip(self.axis_names, self._sizes(), strict=True))

    def _sizes(self) -> tuple[int, ...]:
        """The array's shape, once it is sure to fit the names."""
        shape = getattr(self.array, "shape", None)
        if shape is None or len(shape) != len(self.axis_names):
            raise self._shape_error(shape)
        return shape

    def _shape_error(self, shape: tuple[int, ...] | None) -> ValueError:
        what = f"holds {kind(self.array)}" if shape is None else f"holds an array of shape {tuple(shape)}"
        return bad_value(
            "NamedArray",
            f"an array with axes ({', '.join(self.axis_names)}) {what}",
            "expected one dimension for each name",
            "A transformation of pytrees (jax.vmap, jax.lax.scan) may have changed its rank; haliax.vmap and"
            " haliax.scan keep names and dimensions together.",
        )

    @overload
    def resolve_axis(self, axes: AxisSelector) -> Axis: ...
    @overload
    def resolve_axis(self, axes: Sequence[AxisSelector] | Mapping[str, int | None]) -> tuple[Axis, ...]: ...
    def resolve_axis(self, axes: AxisSelection) -> Any:
        """The axes of this array that a selection names.

        Args:
            axes: A name, an Axis whose size must fit, or a sequence or mapping of them.

        Returns:
            An Axis for one name; a tuple of them for several.

        Raises:
            ValueError: If an axis is missing or has another size.
        """
        if isinstance(axes, str | Axis):
            index = self.require_axis("resolve_axis", axes)
            return Axis(self.axis_names[index], self.array.shape[index])
        return tuple(self.resolve_axis(axis) for axis in selectors("resolve_axis", axes))

    def has_axis(self, axis: AxisSelection) -> bool:
        """Whether every axis of a selection is an axis of this array."""
        if isinstance(axis, str):
            return axis in self.axis_names
        if isinstance(axis, Axis):
            return self.shape.get(axis.name) == axis.size
        return all(self.has_axis(ax) for ax in selectors("has_axis", axis))

    @overload
    def axis_size(self, axis: AxisSelector) -> int: ...
    @overload
    def axis_size(self, axis: Sequence[AxisSelector] | Mapping[str, int | None]) -> tuple[int, ...]: ...
    def axis_size(self, axis: AxisSelection) -> Any:
        """The size of an axis, or a tuple of sizes for several.

        Raises:
            ValueError: If an axis is missing or has another size.
        """
        if isinstance(axis, str | Axis):
            return self.array.shape[self.require_axis("axis_size", axis)]
        return tuple(self.axis_size(ax) for ax in selectors("axis_size", axis))

    @overload
    def axis_indices(self, axis: AxisSelector) -> int | None: ...
    @overload
    def axis_indices(self, axis: Sequence[AxisSelector] | Mapping[str, int | None]) -> tuple[int | None, ...]: ...
    def axis_indices(self, axis: AxisSelection) -> Any:
        """The position of an axis among the dimensions, None if it is missing; a tuple of positions for several."""
        if isinstance(axis, str | Axis):
            name = axis_name(axis)
            return self.axis_names.index(name) if name in self.axis_names else None
        return tuple(self.axis_indices(ax) for ax in selectors("axis_indices", axis))

    def require_axis(self, op: str, axis: AxisSelector) -> int:
        """The position of one axis.

        Args:
            op: The operation on whose behalf we look, for the error message.
            axis: A name, or an Axis whose size must fit.

        Raises:
            ValueError: If the array has no such axis, or one of another size.
            TypeError: If `axis` is neither a name nor an Axis.
        """
        sized = isinstance(axis, Axis)
        name = axis.name if sized else axis
        if name not in self.axis_names:
            if not isinstance(name, str):
                raise not_an_axis(op, name)
            raise axis_not_found(op, name, self.shape)
        index, sizes = self.axis_names.index(name), self._sizes()
        if sized and axis.size != sizes[index]:
            remedy = "An Axis must have the size that the array has."
            raise size_mismatch(op, name, axis.size, sizes[index], remedy)
        return index

    def require_axes(self, op: str, axes: AxisSelection) -> tuple[int, ...]:
        """The positions of the axes of a selection, which must be distinct; see `require_axis`."""
        if isinstance(axes, str | Axis):
            return (self.require_axis(op, axes),)
        found = tuple(self.require_axis(op, axis) for axis in selectors(op, axes))
        if len(set(found)) != len(found):
            raise duplicate_axes(op, [self.axis_names[i] for i in found])
        return found

    def scalar(self) -> jax.Array:
        """The array itself, if it has no axes.

        Raises:
            ValueError: If it has axes.
        """
        if self.axis_names:
            raise bad_value("scalar", f"the array has {format_shape(self.shape)}", "expected no axes")
        return self.array


_new = object.__new__
# the class is frozen: its own slots are the fast way in
_set_array = NamedArrayBase.array.__set__  # pyright: ignore[reportAttributeAccessIssue]
_set_names = NamedArrayBase.axis_names.__set__  # pyright: ignore[reportAttributeAccessIssue]


NamedOrNumeric: TypeAlias = NamedArrayBase | Scalar
"""A named array, or a number that stands for one with the same value everywhere."""


def wrap(array: Any, axis_names: tuple[str, ...]) -> Any:
    """A NamedArray around an array, with nothing checked, where there is no named array to be `like`."""
    new = _new(NamedArrayBase.concrete)
    _set_array(new, array)
    _set_names(new, axis_names)
    return new


def require_named(op: str, array: A, argument: str = "the array") -> A:
    """The array itself, if it is a named one; otherwise an error that says how to name its axes."""
    if not isinstance(array, NamedArrayBase):
        can_be_named = is_raw(array) or isinstance(array, list | tuple)
        remedy = "Name its axes with haliax.named(array, axes)." if can_be_named else ""
        raise wrong_type(op, argument, array, "a NamedArray", remedy)
    return array


def raw_array_or_scalar(x: Any) -> Any:
    """The array inside a named one; anything else as it is.

    Args:
        x: A named array, or anything else.

    Returns:
        The data of a named array; anything else as it is.
    """
    return x.array if isinstance(x, NamedArrayBase) else x


def selectors(op: str, axes: AxisSelection) -> tuple[AxisSelector, ...]:
    """A selection as a tuple of names and Axis objects; a mapping gives an Axis where it has a size."""
    if isinstance(axes, str | Axis):
        return (axes,)
    if isinstance(axes, Mapping):
        return tuple(name if size is None else Axis(name, size) for name, size in axes.items())
    if not isinstance(axes, Sequence):
        raise not_axes(op, axes)
    return tuple(axes)


def normalize_names(op: str, axis_names: Any) -> tuple[str, ...]:
    """The names of an axis specification; any of its items may be a name or an Axis."""
    if type(axis_names) is tuple and all(type(name) is str for name in axis_names):
        return axis_names
    return tuple(name for name, _ in iter_axes(op, axis_names))


def check_axes(op: str, shape: Sequence[int], names: tuple[str, ...], spec: Any) -> None:
    """Raise a ValueError unless `names` are distinct, one for each dimension, and sizes given in `spec` fit."""
    if len(set(names)) != len(names):
        raise duplicate_axes(op, names, "Rename one of them.")
    if len(names) != len(shape):
        given = f"an array of shape {tuple(shape)} and {len(names)} names ({', '.join(names)})"
        raise bad_value(op, given, "expected one name for each dimension")
    for axis, size in zip(selectors(op, spec), shape, strict=True):
        if isinstance(axis, Axis) and axis.size != size:
            raise size_mismatch(op, axis.name, axis.size, size, f"The array has shape {tuple(shape)}.")


def check_shape(jnp_shape: Sequence[int], hax_axes: AxisSelection) -> tuple[Axis, ...]:
    """The axes of an array with a given shape, once they are sure to fit.

    Args:
        jnp_shape: The size of each dimension.
        hax_axes: A name, or Axis whose size must fit, for each dimension.

    Returns:
        An Axis for each dimension.

    Raises:
        ValueError: If names repeat, or their number or a given size does not fit the shape.

    Source:
        `jax.numpy.shape`
    """
    names = normalize_names("check_shape", hax_axes)
    check_axes("check_shape", jnp_shape, names, hax_axes)
    return tuple(map(Axis, names, jnp_shape))


def is_scalar(x: Any) -> bool:
    """Whether `x` can meet a named array without having names: a number, or an array of rank 0."""
    return isinstance(x, bool | int | float | complex | np.generic) or getattr(x, "ndim", None) == 0


def is_raw(x: Any) -> bool:
    """Whether `x` is an unnamed array or a number."""
    return not isinstance(x, NamedArrayBase) and (is_scalar(x) or hasattr(x, "ndim"))


def as_places(x: Any) -> Any:
    """Integers as places along an axis: in 32 bits at least, since narrower ones end before an axis does."""
    dtype = getattr(x, "dtype", None)
    if dtype is None or dtype.itemsize >= 4 or not np.issubdtype(dtype, np.integer):
        return x
    return x.astype(np.int32)
