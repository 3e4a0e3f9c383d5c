"""The engines under the names that libraries use to make named operations of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from haliax._src.array_base import NamedArrayBase
from haliax._src.axis import AxisSelection
from haliax._src.errors import problem
from haliax._src.families import apply_binary, axiswise, reduce_named

T = TypeVar("T")


class ReductionFunction(Protocol):
    """A reduction of raw arrays that takes a mask, such as `jnp.sum`."""

    def __call__(self, array: Any, axis: Any = None, where: Any = None, **kwargs: Any) -> Any:
        """Reduce `axis` of an array."""
        ...


class SimpleReductionFunction(Protocol):
    """A reduction of raw arrays that takes no mask, such as `jnp.argmax`."""

    def __call__(self, array: Any, axis: Any = None, **kwargs: Any) -> Any:
        """Reduce `axis` of an array."""
        ...


def wrap_elemwise_unary(f: Callable[..., Any], a: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply an elementwise function of raw arrays to a named array.

    Args:
        f: The function, which keeps shapes.
        a: An array with any axes, or a raw array.
        *args: Further arguments of `f`.
        **kwargs: Further arguments of `f`.

    Returns:
        An array with the same axes.
    """
    if isinstance(a, NamedArrayBase):
        return a.like(f(a.array, *args, **kwargs), a.axis_names)
    return f(a, *args, **kwargs)


def wrap_elemwise_binary(op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The named form of an elementwise function of two raw arrays.

    Args:
        op: The function, which broadcasts by position as `jnp.add` does.

    Returns:
        A function of two arrays that broadcasts by name.
    """
    name = _name(op)

    def binary_op(a: Any, b: Any) -> Any:
        return apply_binary(name, op, a, b)

    binary_op.__name__ = binary_op.__qualname__ = name
    binary_op.__doc__ = op.__doc__
    return binary_op


def wrap_axiswise_call(
    fn: Callable[..., Any], a: T, axis: AxisSelection | None, *, single_axis_only: bool, **kwargs: Any
) -> T:
    """Apply a function of raw arrays along axes that it keeps.

    Args:
        fn: The function, which takes `axis`.
        a: A named array, a raw array, or a pytree of them.
        axis: The axes to work along; if None, all of them, or the flat array if `single_axis_only`.
        single_axis_only: Whether `fn` takes one axis, not several.
        **kwargs: Options of `fn`.

    Returns:
        An array with the same axes.

    Raises:
        ValueError: If an axis is missing, or there are several and only one is possible.
    """
    return axiswise(fn, a, axis, single_axis_only=single_axis_only, name=_name(fn), **kwargs)


def wrap_reduction_call(
    fn: ReductionFunction | SimpleReductionFunction,
    a: T,
    axis: AxisSelection | None,
    where: NamedArrayBase | None = None,
    single_axis_only: bool = False,
    supports_where: bool = True,
    **kwargs: Any,
) -> T:
    """Apply a reduction of raw arrays over named axes.

    Args:
        fn: The reduction, which takes `axis`, and `where` if it supports that.
        a: A named array, a raw array, or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of the array; only elements where it is true count.
        single_axis_only: Whether `fn` takes one axis or all, not several.
        supports_where: Whether `fn` takes a mask.
        **kwargs: Options of `fn`.

    Returns:
        The array without the reduced axes.

    Raises:
        ValueError: If an axis is missing, there are several and only one is possible, or `fn` takes no mask.
        TypeError: If `where` has no names.
    """
    name = _name(fn)
    if where is not None and not supports_where:
        raise ValueError(problem(name, "`where` was given", "this reduction takes no mask"))
    return reduce_named(fn, a, axis, where=where, single_axis_only=single_axis_only, name=name, **kwargs)


def unwrap_namedarrays(*a: Any) -> tuple[Any, ...]:
    """The raw arrays of named ones; anything else as it is.

    Args:
        *a: Any values.

    Returns:
        A tuple with one entry for each value.
    """
    return tuple(x.array if isinstance(x, NamedArrayBase) else x for x in a)


def _name(fn: Callable[..., Any]) -> str:
    """A name for any callable; a partial has none."""
    return getattr(fn, "__name__", type(fn).__name__)
