"""The engines behind the functions that follow `jax.numpy`: elementwise, reductions, and functions along axes.

An operation on named arrays is an operation on raw arrays and a rule for the names. The rules are few, so each is
written once here and the operations are assignments (`exp = unary(jnp.exp)`) or short definitions. What a family makes
is a plain function, which therefore serves as a method too.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast, overload

import jax
from jax.typing import ArrayLike

from haliax._src.array_base import A, NamedArrayBase, is_raw as is_raw, is_scalar, raw_array_or_scalar
from haliax._src.axis import Axis, AxisSelection
from haliax._src.broadcasting import Alignment, aligned_plan, binary_plan, not_a_scalar, operand_alignment
from haliax._src.describe import documented
from haliax._src.errors import bad_value, format_shape, wrong_dtype, wrong_type
from haliax._src.explicit_axes import REFUSALS, by_name
from haliax._src.refused import explain

T = TypeVar("T")

_NAME_THE_AXES = "Name its axes with haliax.named(array, axes)."


# --- Elementwise ---


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


def unary(fn: Callable[..., Any], doc: str | None = None, *, name: str | None = None, module: str = "haliax") -> Unary:
    """The named form of an elementwise function of one array.

    Args:
        fn: The function on raw arrays, such as `jnp.exp`.
        doc: The first sentence of its docstring; that of `fn` if None.
        name: The name of the operation, if it is not that of `fn`.
        module: The public module that will hold the operation, which pickle looks it up in.

    Returns:
        A function that keeps the axes of a named array, and is `fn` on anything else.
    """
    op_name = name or fn.__name__

    def op(a: Any) -> Any:
        if isinstance(a, NamedArrayBase):
            try:
                return a.like(fn(a.array), a.axis_names)
            except (TypeError, ValueError) as refusal:
                explain(op_name, fn, refusal, [a.array])
                raise
        check_operand(op_name, a)
        return fn(a)

    _identify(op, fn, doc, name, module)
    parameters = {"a": "An array with any axes, or a raw array."}
    return cast(Unary, documented(fn, parameters, "An array with the same axes.")(op))


def binary(
    fn: Callable[..., Any], doc: str | None = None, *, name: str | None = None, module: str = "haliax"
) -> Binary:
    """The named form of an elementwise function of two arrays.

    Args:
        fn: The function on raw arrays, such as `jnp.add`.
        doc: The first sentence of its docstring; that of `fn` if None.
        name: The name of the operation, if it is not that of `fn`.
        module: The public module that will hold the operation, which pickle looks it up in.

    Returns:
        A function that broadcasts by name: the operand whose axes contain the other's gives the order of the result.
    """
    op_name = name or fn.__name__

    def op(a: Any, b: Any) -> Any:
        try:
            return apply_binary(op_name, fn, a, b, compiled=True)
        except (TypeError, ValueError) as refusal:
            if is_operand(a) and is_operand(b):
                explain(op_name, fn, refusal, [raw_array_or_scalar(a), raw_array_or_scalar(b)])
            raise

    _identify(op, fn, doc, name, module)
    parameters = {
        "a": "An array with any axes, or a scalar.",
        "b": "An array whose axes contain those of `a` or are among them, or a scalar.",
    }
    returns = "An array with the axes of the operand that has more of them."
    return cast(Binary, documented(fn, parameters, returns)(op))


def _identify(op: Callable[..., Any], fn: Callable[..., Any], doc: str | None, name: str | None, module: str) -> None:
    """Give an operation made by a family the name, the module and the first sentence that a `def` would have."""
    op.__name__ = op.__qualname__ = name or fn.__name__
    op.__module__ = module
    op.__doc__ = doc or (inspect.getdoc(fn) or f"Elementwise {op.__name__}.").split("\n")[0]


@functools.lru_cache(maxsize=4096)
def _aligned(fn: Callable[..., Any], *alignments: Alignment) -> Callable[..., Any]:
    """A function of raw arrays that aligns its operands first, as one compiled step.

    Outside a trace each step of an alignment would cost as much as the operation; inside one, `inline` leaves nothing.
    """

    def run(*operands: Any) -> Any:
        return fn(*(align(x) for align, x in zip(alignments, operands, strict=True)))

    return jax.jit(run, inline=True)


def apply_binary(name: str, fn: Callable[..., Any], a: Any, b: Any, *, compiled: bool = False) -> Any:
    """Apply an elementwise function of two raw arrays by name.

    Args:
        name: The operation, for error messages.
        fn: The function on raw arrays.
        a: A named array, or a scalar.
        b: A named array, or a scalar.
        compiled: Whether `fn` may be compiled together with the alignment of its operands, and kept.

    Returns:
        A named array; what `fn` returns if neither operand has names, or if one has no axes and the other is unnamed.

    Raises:
        ValueError: If neither operand has all axes of the other, sizes differ, or one is an unnamed array.
        TypeError: If an operand is no array.
    """
    if isinstance(a, NamedArrayBase):
        if isinstance(b, NamedArrayBase):
            x, y = a.array, b.array
            # the usual case costs two comparisons: equal axes in equal order go straight to jnp
            if a.axis_names == b.axis_names and x.shape == y.shape:
                try:
                    return a.like(fn(x, y), a.axis_names)
                except REFUSALS as refusal:
                    return by_name(name, refusal, functools.partial(_apply_aligned, fn, a.axis_names), a, b)
            names, align_x, align_y = binary_plan(name, a.axis_names, a._sizes(), b.axis_names, b._sizes())
            try:
                if compiled:
                    return a.like(_aligned(fn, align_x, align_y)(x, y), names)
                return a.like(fn(align_x(x), align_y(y)), names)
            except REFUSALS as refusal:
                return by_name(name, refusal, functools.partial(_apply_aligned, fn, names), a, b)
        if is_scalar(b):
            return a.like(fn(a.array, b), a.axis_names)
        if not a.axis_names and is_raw(b):
            return fn(a.array, b)
        raise not_a_scalar(name, b)
    if isinstance(b, NamedArrayBase):
        if is_scalar(a):
            return b.like(fn(a, b.array), b.axis_names)
        if not b.axis_names and is_raw(a):
            return fn(a, b.array)
        raise not_a_scalar(name, a)
    check_operand(name, a)
    check_operand(name, b)
    return fn(a, b)


def is_operand(x: Any) -> bool:
    """Whether an elementwise operation can use `x`: a named array, an unnamed one or a number."""
    return isinstance(x, NamedArrayBase) or is_raw(x) or hasattr(x, "__jax_array__")


def check_operand(op: str, x: Any) -> None:
    """Raise a TypeError unless an elementwise operation can use `x`."""
    if not is_operand(x):
        raise wrong_type(op, "an operand", x, "a NamedArray, an array or a number")


def apply_aligned(name: str, fn: Callable[..., Any], *operands: Any, none_allowed: bool = False, **options: Any) -> Any:
    """Apply an elementwise function of any number of raw arrays by name.

    Args:
        name: The operation, for error messages.
        fn: The function on raw arrays, which outlives the call: without options, it is compiled together with the
            alignment of its operands, and kept.
        *operands: Named arrays, of which one has all axes of the others; scalars; None for what is not given.
        none_allowed: Whether an operand after the first may be None.
        **options: Options of `fn`.

    Returns:
        A named array with the axes of the operand that has most of them; what `fn` returns if none has names.

    Raises:
        ValueError: If no operand has all axes of the others, sizes differ, or one is an unnamed array.
        TypeError: If an operand is no array.
    """
    known = tuple([(x.axis_names, x._sizes()) if isinstance(x, NamedArrayBase) else None for x in operands])
    if None in known:
        for i, (x, axes) in enumerate(zip(operands, known, strict=True)):
            if axes is not None or is_scalar(x) or (none_allowed and i and x is None):
                continue
            if any(known):
                raise not_a_scalar(name, x)
            check_operand(name, x)
    if not any(known):
        return fn(*operands, **options)
    names, alignments, first = aligned_plan(name, known)
    raw = [x.array if axes else x for x, axes in zip(operands, known, strict=True)]
    try:
        if alignments is None:
            result = fn(*raw, **options)
        elif options:
            result = fn(*(align(x) for align, x in zip(alignments, raw, strict=True)), **options)
        else:
            result = _aligned(fn, *alignments)(*raw)
    except REFUSALS as refusal:
        apply = functools.partial(_apply_aligned, functools.partial(fn, **options), names)
        return by_name(name, refusal, apply, *operands)
    return operands[first].like(result, names)


def _apply_aligned(fn: Callable[..., Any], names: tuple[str, ...], *operands: Any) -> Any:
    """Apply a function of raw arrays to operands whose axes are among `names`."""
    named = next(x for x in operands if isinstance(x, NamedArrayBase))
    raw = [operand_alignment(x.axis_names, names)(x.array) if isinstance(x, NamedArrayBase) else x for x in operands]
    return named.like(fn(*raw), names)


def separate(results: Any) -> Any:
    """A tuple of named arrays from one that holds a tuple, as a function with several results leaves it."""
    if isinstance(results, NamedArrayBase):
        return tuple(results.like(result, results.axis_names) for result in results.array)
    return results


# --- Along axes ---


def reduce_named(
    fn: Callable[..., Any],
    array: T,
    axis: AxisSelection | None = None,
    *,
    where: Any = None,
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
        **kwargs: Options of `fn`.

    Returns:
        What `array` is, with the axes gone.

    Raises:
        ValueError: If an axis is missing, or there are several and only one is possible.
        TypeError: If `where` has no names.
    """
    op = name or fn.__name__
    if isinstance(array, NamedArrayBase):
        if axis is None:
            position, names = None, ()
        else:
            dims, names = array.require_axes(op, axis), array.axis_names
            if single_axis_only or len(dims) == 1:  # jnp resolves one number faster than a tuple of one
                position = one_axis(op, dims)
                names = names[:position] + names[position + 1 :]
            else:
                position, names = dims, tuple([name for i, name in enumerate(names) if i not in dims])
        try:
            if where is None:
                return array.like(fn(array.array, axis=position, **kwargs), names)
            return _reduce(op, fn, position, names, kwargs, array, where)
        except (*REFUSALS, TypeError) as refusal:
            _explain_along(op, fn, refusal, array, position, kwargs)
            if not isinstance(refusal, REFUSALS):
                raise
            reduce = functools.partial(_reduce, op, fn, position, names, kwargs)
            return by_name(op, refusal, reduce, array, where)
    if is_raw(array):
        check_unnamed(op, array, axis, where)
        return fn(array, axis=axis, **kwargs) if where is None else fn(array, axis=axis, where=where, **kwargs)
    again = functools.partial(reduce_named, fn, where=where, single_axis_only=single_axis_only, name=name, **kwargs)
    return map_tree(op, lambda leaf: again(leaf, axis), array)


def _reduce(
    op: str,
    fn: Callable[..., Any],
    position: int | tuple[int, ...] | None,
    names: tuple[str, ...],
    options: dict[str, Any],
    array: A,
    where: Any,
) -> A:
    """Reduce some dimensions, of which `names` are left, where a mask holds or, if it is None, everywhere."""
    if where is not None:
        options = {**options, "where": align_mask(op, where, array)}
    return array.like(fn(array.array, axis=position, **options), names)


def axiswise(
    fn: Callable[..., Any],
    array: T,
    axis: AxisSelection | None,
    *,
    where: Any = None,
    single_axis_only: bool = True,
    name: str | None = None,
    **kwargs: Any,
) -> T:
    """Apply a function along axes that keeps them, such as a cumulative sum or a sort.

    Args:
        fn: The function on raw arrays, which takes `axis`.
        array: A named array, a raw array (then `axis` is a number), or a pytree of them.
        axis: The axes to work along. If None, a function that takes several takes all of them; one that takes a single
            axis takes the array as flat, and the result has no names.
        where: A mask whose axes are among those of the array, if the function takes one.
        single_axis_only: Whether the function takes one axis, not several.
        name: The name of the operation, if it is not that of `fn`.
        **kwargs: Options of `fn`.

    Returns:
        What `array` is, with the same axes.

    Raises:
        ValueError: If an axis is missing, or there are several and only one is possible.
    """
    op = name or fn.__name__
    if isinstance(array, NamedArrayBase):
        dims = None
        if axis is not None or not single_axis_only:
            dims = array.require_axes(op, array.axis_names if axis is None else axis)
            dims = one_axis(op, dims) if single_axis_only else dims

        def apply(array: NamedArrayBase, where: Any) -> Any:
            options = kwargs if where is None else {**kwargs, "where": align_mask(op, where, array)}
            result = fn(array.array, axis=dims, **options)
            return result if dims is None else array.like(result, array.axis_names)

        try:
            return apply(array, where)
        except (*REFUSALS, TypeError) as refusal:
            _explain_along(op, fn, refusal, array, dims, kwargs)
            if not isinstance(refusal, REFUSALS):
                raise
            return by_name(op, refusal, apply, array, where)
    if is_raw(array):
        check_unnamed(op, array, axis, where)
        return fn(array, axis=axis, **kwargs) if where is None else fn(array, axis=axis, where=where, **kwargs)
    again = functools.partial(axiswise, fn, where=where, single_axis_only=single_axis_only, name=name, **kwargs)
    return map_tree(op, lambda leaf: again(leaf, axis), array)


def _explain_along(
    op: str,
    fn: Callable[..., Any],
    refusal: Exception,
    array: NamedArrayBase,
    dims: int | tuple[int, ...] | None,
    options: dict[str, Any],
) -> None:
    """Raise an error that says why a function has refused an array, if that is known; see `explain`."""
    if type(refusal) not in (TypeError, ValueError):
        return
    explain(op, functools.partial(fn, axis=None), refusal, [array.array], options)
    sizes = array._sizes()
    reduced = range(len(sizes)) if dims is None else (dims,) if isinstance(dims, int) else dims
    for dim in reduced:
        if sizes[dim] == 0:
            given = f"there is no element along axis {array.axis_names[dim]!r}"
            raise bad_value(op, given, "expected at least one") from refusal


def one_axis(op: str, dims: tuple[int, ...]) -> int:
    """The position of the one axis that the operation can take."""
    if len(dims) != 1:
        raise bad_value(op, f"{len(dims)} axes were given", "expected one axis")
    return dims[0]


def align_mask(op: str, where: Any, array: NamedArrayBase) -> Any:
    """A `where` mask as a raw array that broadcasts against the array's dimensions."""
    check_mask(op, where, array)
    return operand_alignment(where.axis_names, array.axis_names)(where.array)


def check_mask(op: str, where: Any, array: NamedArrayBase) -> None:
    """Raise unless `where` is a named array of booleans, with axes among those of the array."""
    if not isinstance(where, NamedArrayBase):
        raise wrong_type(op, "where", where, "a NamedArray", "Name its axes with haliax.named(mask, axes).")
    sizes = array.shape
    if any(sizes.get(name) != size for name, size in where.shape.items()):
        given = f"the mask `where` has {format_shape(where.shape)}"
        raise bad_value(op, given, f"expected axes among those of the array: {format_shape(sizes)}")
    if where.array.dtype != bool:
        raise wrong_dtype(op, "the mask `where`", where.array.dtype, "booleans", "Compare it, as in `where != 0`.")


def check_unnamed(op: str, array: Any, axis: Any, where: Any = None) -> None:
    """Raise unless `axis` and `where` are such as go with an array without names."""
    if isinstance(axis, str | Axis):
        given = f"an axis by name, and an unnamed array of {jax.numpy.ndim(array)} dimensions"
        raise bad_value(op, given, "expected a NamedArray", _NAME_THE_AXES)
    if isinstance(where, NamedArrayBase):
        raise wrong_type(op, "where", where, "an unnamed mask, as the array has no names", _NAME_THE_AXES)


# --- Trees ---


def map_tree(op: str, fn: Callable[[Any], Any], tree: T) -> T:
    """Apply an operation to each array of a pytree.

    Raises:
        TypeError: If a leaf is neither an array nor a number.
    """

    def apply(leaf: Any) -> Any:
        if isinstance(leaf, NamedArrayBase) or is_raw(leaf):
            return fn(leaf)
        raise wrong_type(op, "an operand", leaf, "a NamedArray, an array, a number or a pytree of them")

    return jax.tree_util.tree_map(apply, tree, is_leaf=lambda x: isinstance(x, NamedArrayBase))
