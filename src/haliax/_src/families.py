"""The engines behind the functions that follow `jax.numpy`: elementwise, reductions, and functions along one axis.

An operation on named arrays is an operation on raw arrays and a rule for the names. The rules are few, so each is
written once here and the operations are assignments (`exp = unary(jnp.exp)`) or short definitions. What a family makes
is a plain function, which therefore serves as a method too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast, overload

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from haliax._src.array_base import A, NamedArrayBase, is_scalar, wrap
from haliax._src.axis import AxisSelection
from haliax._src.broadcasting import alignment, binary_plan, not_a_scalar
from haliax._src.errors import bad_value, format_shape, problem, wrong_type

T = TypeVar("T")


class Unary(Protocol):
    """An elementwise function of one array, which is also a method."""

    __name__: str
    __jax__: Callable[..., Any]

    @overload
    def __call__(self, a: A) -> A: ...
    @overload
    def __call__(self, a: ArrayLike) -> jax.Array: ...
    @overload
    def __get__(self, obj: None, owner: type) -> Unary: ...
    @overload
    def __get__(self, obj: A, owner: type) -> Callable[[], A]: ...


class Binary(Protocol):
    """An elementwise function of two arrays, broadcast by name, which is also a method."""

    __name__: str
    __jax__: Callable[..., Any]

    @overload
    def __call__(self, a: A, b: A | ArrayLike) -> A: ...
    @overload
    def __call__(self, a: ArrayLike, b: A) -> A: ...
    @overload
    def __call__(self, a: ArrayLike, b: ArrayLike) -> jax.Array: ...
    @overload
    def __get__(self, obj: None, owner: type) -> Binary: ...
    @overload
    def __get__(self, obj: A, owner: type) -> Callable[[A | ArrayLike], A]: ...


def unary(fn: Callable[..., Any], name: str | None = None, doc: str | None = None) -> Unary:
    """The named form of an elementwise function of one array.

    Args:
        fn: The function on raw arrays, such as `jnp.exp`.
        name: The name of the operation, if it is not that of `fn`.
        doc: The first sentence of its docstring, if it is not that of `fn`.

    Returns:
        A function that keeps the axes of a named array, and is `fn` on anything else.
    """

    def op(a: Any) -> Any:
        if isinstance(a, NamedArrayBase):
            return a.like(fn(a.array), a.axis_names)
        return fn(a)

    return cast(Unary, describe(op, fn, name, doc, "a: An array with any axes, or a raw array.", "An array with the same axes."))


def binary(fn: Callable[..., Any], name: str | None = None, doc: str | None = None) -> Binary:
    """The named form of an elementwise function of two arrays.

    Args:
        fn: The function on raw arrays, such as `jnp.add`.
        name: The name of the operation, if it is not that of `fn`.
        doc: The first sentence of its docstring, if it is not that of `fn`.

    Returns:
        A function that broadcasts by name: the operand whose axes contain the other's gives the order of the result.
    """
    op_name = name or fn.__name__

    def op(a: Any, b: Any) -> Any:
        return apply_binary(op_name, fn, a, b)

    return cast(
        Binary,
        describe(
            op,
            fn,
            name,
            doc,
            "a: An array with any axes, or a scalar.\n        b: An array whose axes contain those of `a` or are among them, or a scalar.",
            "An array with the axes of the operand that has more of them.",
        ),
    )


def apply_binary(name: str, fn: Callable[..., Any], a: Any, b: Any) -> Any:
    """Apply an elementwise function of two raw arrays by name."""
    if isinstance(a, NamedArrayBase):
        if isinstance(b, NamedArrayBase):
            x, y = a.array, b.array
            # the usual case costs two comparisons: equal axes in equal order go straight to jnp
            if a.axis_names == b.axis_names and x.shape == y.shape:
                return a.like(fn(x, y), a.axis_names)
            names, align_x, align_y = binary_plan(name, a.axis_names, a._sizes(), b.axis_names, b._sizes())
            return a.like(fn(align_x(x), align_y(y)), names)
        if is_scalar(b):
            return a.like(fn(a.array, b), a.axis_names)
        raise not_a_scalar(name, b)
    if isinstance(b, NamedArrayBase):
        if is_scalar(a):
            return b.like(fn(a, b.array), b.axis_names)
        raise not_a_scalar(name, a)
    return fn(a, b)


def reduce_named(
    fn: Callable[..., Any],
    array: T,
    axis: AxisSelection | None = None,
    *,
    where: NamedArrayBase | None = None,
    single_axis_only: bool = False,
    name: str | None = None,
    **kwargs: Any,
) -> T:
    """Reduce axes by name.

    Args:
        fn: The reduction on raw arrays, such as `jnp.sum`, which takes `axis` and perhaps `where`.
        array: A named array, a raw array (then `axis` is a number), or a pytree of them.
        axis: The axes to reduce; all of them if None.
        where: A mask whose axes are among those of the array.
        single_axis_only: Whether the reduction takes one axis or all, not several.
        name: The name of the operation, if it is not that of `fn`.
        **kwargs: Options of `fn`; those that are None are left to its default.

    Returns:
        What `array` is, with the axes gone.

    Raises:
        ValueError: If an axis is missing, or there are several and only one is possible.
        TypeError: If `where` is not a named array.
    """
    op = name or fn.__name__
    kwargs = {k: v for k, v in kwargs.items() if v is not None}
    if isinstance(array, NamedArrayBase):
        if where is not None:
            kwargs["where"] = align_mask(op, where, array)
        if axis is None:
            return cast(T, array.like(fn(array.array, axis=None, **kwargs), ()))
        dims = array.require_axes(op, axis)
        if single_axis_only:
            return cast(T, array.like(fn(array.array, axis=one_axis(op, dims), **kwargs), remaining(array, dims)))
        return cast(T, array.like(fn(array.array, axis=dims, **kwargs), remaining(array, dims)))
    if is_raw(array):
        if where is not None:
            kwargs["where"] = where
        return fn(array, axis=axis, **kwargs)

    def reduce_leaf(leaf: Any) -> Any:
        return reduce_named(
            fn, leaf, axis, where=where, single_axis_only=single_axis_only, name=name, **kwargs
        )

    return map_tree(op, reduce_leaf, array)


def remaining(array: NamedArrayBase, dims: tuple[int, ...]) -> tuple[str, ...]:
    """The names of an array's axes but for those at the given positions."""
    return tuple(name for i, name in enumerate(array.axis_names) if i not in dims)


def one_axis(op: str, dims: tuple[int, ...]) -> int:
    """The position of the one axis that the operation can take."""
    if len(dims) != 1:
        raise bad_value(op, f"{len(dims)} axes were given", "one axis")
    return dims[0]


def align_mask(op: str, where: Any, array: NamedArrayBase) -> Any:
    """A `where` mask as a raw array that broadcasts against the array's dimensions."""
    if not isinstance(where, NamedArrayBase):
        raise wrong_type(op, "where", where, "a NamedArray", "Name its axes with haliax.named(mask, axes).")
    sizes = array.shape
    for name, size in where.shape.items():
        if sizes.get(name) != size:
            raise bad_value(
                op, f"the mask `where` has {format_shape(where.shape)}", f"axes among those of the array: {format_shape(sizes)}"
            )
    return alignment(where.axis_names, array.axis_names)(where.array)


def axiswise(
    fn: Callable[..., Any], array: T, axis: AxisSelection | None, *, name: str | None = None, **kwargs: Any
) -> T:
    """Apply a function along one axis that keeps it, such as a cumulative sum or a sort.

    Args:
        fn: The function on raw arrays, which takes `axis`.
        array: A named array, a raw array (then `axis` is a number), or a pytree of them.
        axis: The axis to work along. For a named array without it, the array is taken as flat and the result is raw.
        name: The name of the operation, if it is not that of `fn`.
        **kwargs: Options of `fn`; those that are None are left to its default.

    Returns:
        What `array` is, with the same axes.

    Raises:
        ValueError: If the axis is missing, or there is not exactly one.
    """
    op = name or fn.__name__
    kwargs = {k: v for k, v in kwargs.items() if v is not None}
    if isinstance(array, NamedArrayBase):
        if axis is None:
            return fn(array.array, axis=None, **kwargs)
        dim = one_axis(op, array.require_axes(op, axis))
        return cast(T, array.like(fn(array.array, axis=dim, **kwargs), array.axis_names))
    if is_raw(array):
        return fn(array, axis=axis, **kwargs)
    return map_tree(op, lambda leaf: axiswise(fn, leaf, axis, name=name, **kwargs), array)


def is_raw(x: Any) -> bool:
    """Whether `x` is an array or a number rather than a pytree of them."""
    return is_scalar(x) or hasattr(x, "ndim")


def map_tree(op: str, fn: Callable[[Any], Any], tree: T) -> T:
    """Apply an operation to each array of a pytree; a pytree that is a single foreign leaf is an error."""
    is_leaf = lambda x: isinstance(x, NamedArrayBase)  # noqa: E731
    leaves, treedef = jax.tree_util.tree_flatten(tree, is_leaf=is_leaf)
    for leaf in leaves:
        if not is_leaf(leaf) and not is_raw(leaf):
            raise wrong_type(op, "an operand", leaf, "a NamedArray, an array, a number or a pytree of them")
    return treedef.unflatten([fn(leaf) for leaf in leaves])


def describe(
    op: T, fn: Callable[..., Any], name: str | None, doc: str | None, args: str, returns: str
) -> T:
    """Give an operation made by a family the name, the docstring and the link to JAX that a `def` would have."""
    name = name or fn.__name__
    made = cast(Any, op)
    made.__name__ = made.__qualname__ = name
    made.__module__ = "haliax"
    sentence = doc or (inspect.getdoc(fn) or f"Elementwise {name}.").split("\n")[0]
    made.__doc__ = (
        f"{sentence}\n\n    Args:\n        {args}\n\n    Returns:\n        {returns}\n\n"
        f"    Source:\n        `{_public_module(fn)}.{fn.__name__}`\n    "
    )
    made.__jax__ = fn
    return op


def _public_module(fn: Callable[..., Any]) -> str:
    """Where users find a JAX function, whose own `__module__` is often private."""
    for module in (jnp, jax.nn, jax.lax):
        if getattr(module, fn.__name__, None) is fn:
            return module.__name__
    return fn.__module__
