"""Broadcasting by name: which axes a result has, in which order, and how to bring an array to them.

A plan is computed from names and sizes alone and looked up in a bounded cache; applying it is one transpose and one
`expand_dims`, each only where needed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar, overload

import jax
import jax.numpy as jnp

from haliax._src.array_base import A, NamedArrayBase, is_scalar, wrap
from haliax._src.axis import Axis, AxisSelection, shape_dict
from haliax._src.errors import bad_value, format_shape, size_mismatch, wrong_type

T = TypeVar("T")

Names = tuple[str, ...]
Sizes = tuple[int, ...]


class Alignment(NamedTuple):
    """How to bring one array to the axes of a result: permute its dimensions, then insert dimensions of size 1."""

    permutation: tuple[int, ...] | None
    inserted: tuple[int, ...]

    def __call__(self, array: Any) -> Any:
        """Apply the plan to a raw array."""
        if self.permutation is not None:
            array = jax.lax.transpose(array, self.permutation)
        return jax.lax.expand_dims(array, self.inserted) if self.inserted else array


@functools.lru_cache(maxsize=4096)
def alignment(names: Names, target: Names) -> Alignment:
    """The plan that brings an array with axes `names` to rank and order of `target`, which contains them all."""
    order = tuple(names.index(name) for name in target if name in names)
    inserted = tuple(i for i, name in enumerate(target) if name not in names)
    return Alignment(None if order == tuple(range(len(order))) else order, inserted)


_AS_IT_IS = Alignment(None, ())


def operand_alignment(names: Names, target: Names) -> Alignment:
    """`alignment` for an operand of an elementwise operation, where an array without axes needs none."""
    return alignment(names, target) if names else _AS_IT_IS


@functools.lru_cache(maxsize=4096)
def binary_plan(op: str, a: Names, a_sizes: Sizes, b: Names, b_sizes: Sizes) -> tuple[Names, Alignment, Alignment]:
    """The result's axes and the alignment of both operands of an elementwise operation.

    The operand whose axes contain the other's gives the order; the first one if both do.

    Raises:
        ValueError: If neither contains the other, or an axis has two sizes.
    """
    sizes = dict(zip(a, a_sizes, strict=True))
    for name, size in zip(b, b_sizes, strict=True):
        if sizes.get(name, size) != size:
            raise size_mismatch(op, name, size, sizes[name], "Both operands must agree on the size of a shared axis.")
    if set(b) <= set(a):
        names = a
    elif set(a) <= set(b):
        names = b
    else:
        raise no_subset(op, sizes, dict(zip(b, b_sizes, strict=True)))
    return names, operand_alignment(a, names), operand_alignment(b, names)


Operand = tuple[Names, Sizes] | None
"""The axes of an operand and their sizes; None for one without names."""


@functools.lru_cache(maxsize=4096)
def aligned_plan(op: str, operands: tuple[Operand, ...]) -> tuple[Names, tuple[Alignment, ...] | None, int]:
    """The result's axes and the alignment of each operand of an elementwise operation.

    Args:
        op: The operation, for error messages.
        operands: What is known of the operands, of which one has names.

    Returns:
        The axes, which are those of the first operand that has all of them; the alignments, None if all operands stay
        as they are; the number of the first operand with names.

    Raises:
        ValueError: If no operand has all axes, or an axis has two sizes.
    """
    named = [wrap(jax.ShapeDtypeStruct(sizes, bool), names) for names, sizes in filter(None, operands)]
    names = tuple(axis.name for axis in common_axes(op, named))
    alignments = tuple(operand_alignment(operand[0], names) if operand else _AS_IT_IS for operand in operands)
    first = next(i for i, operand in enumerate(operands) if operand)
    return names, None if set(alignments) == {_AS_IT_IS} else alignments, first


def no_subset(op: str, a: dict[str, int], b: dict[str, int]) -> ValueError:
    """The error for two arrays of which neither has all axes of the other."""
    missing = ", ".join(repr(name) for name in b if name not in a)
    return bad_value(
        op,
        f"axes ({format_shape(a)}) and ({format_shape(b)})",
        "expected the axes of one to contain those of the other",
        f"Use broadcast_axis to give the first operand {missing} explicitly.",
    )


@overload
def broadcast_to(a: A, axes: AxisSelection, ensure_order: bool = True, enforce_no_extra_axes: bool = True) -> A: ...
@overload
def broadcast_to(a: Any, axes: AxisSelection, ensure_order: bool = True, enforce_no_extra_axes: bool = True) -> Any: ...
def broadcast_to(a: Any, axes: AxisSelection, ensure_order: bool = True, enforce_no_extra_axes: bool = True) -> Any:
    """Broadcast an array to the given axes.

    Args:
        a: A named array, or a scalar.
        axes: The axes of the result; those that `a` has may be given by name.
        ensure_order: Whether `axes` must come in this order. New axes go in front of those that `a` has; only if that
            is another order than `axes`, and this one must hold, `axes` come first and what else `a` has after them.
        enforce_no_extra_axes: Whether it is an error for `a` to have axes beyond `axes`.

    Returns:
        A named array with the axes `axes`, and the extra ones.

    Raises:
        ValueError: If a size differs, an axis that `a` lacks has no size, or there are extra axes.

    Source:
        `jax.numpy.broadcast_to`
    """
    return _broadcast_to("broadcast_to", as_named("broadcast_to", a), axes, ensure_order, enforce_no_extra_axes)


def broadcast_axis(a: A, axis: AxisSelection) -> A:
    """Broadcast an array so that it has the given axes, among others.

    Args:
        a: A named array.
        axis: The axes to have; those that `a` has may be given by name.

    Returns:
        A named array with the new axes in front of those of `a`; if that is another order than `axis`, then with `axis`
        in front of what else `a` has.

    Raises:
        ValueError: If a size differs, or an axis that `a` lacks has no size.

    Source:
        `jax.numpy.broadcast_to`
    """
    return _broadcast_to("broadcast_axis", as_named("broadcast_axis", a), axis, True, False)


def _broadcast_to(op: str, a: A, axes: AxisSelection, ensure_order: bool, enforce_no_extra_axes: bool) -> A:
    have, wanted = a.shape, _sizes_of(op, axes, a)
    extra = [name for name in have if name not in wanted]
    if extra and enforce_no_extra_axes:
        expected = f"expected no axes beyond ({', '.join(wanted)})"
        remedy = "Reduce the extra axes first, or pass enforce_no_extra_axes=False."
        raise bad_value(op, f"the array has {format_shape(have)}", expected, remedy)
    names = (*(name for name in wanted if name not in have), *have)
    if ensure_order and [name for name in names if name in wanted] != list(wanted):
        names = (*wanted, *extra)
    if names == a.axis_names:
        return a
    permutation, inserted = alignment(a.axis_names, names)
    array = a.array if permutation is None else jax.lax.transpose(a.array, permutation)
    if inserted:
        kept = tuple(i for i in range(len(names)) if i not in inserted)
        sizes = {**have, **wanted}
        array = jax.lax.broadcast_in_dim(array, tuple(sizes[name] for name in names), kept)
    return a.like(array, names)


def _sizes_of(op: str, axes: AxisSelection, a: NamedArrayBase) -> dict[str, int]:
    """The axes to broadcast to, each with its size, which is that of `a` where `a` has the axis."""
    sizes, have = {}, a.shape
    for name, size in shape_dict(op, axes).items():
        sizes[name] = have.get(name, size)
        if sizes[name] is None:
            raise bad_value(op, f"axis {name!r} has no size", f"expected an Axis; the array has {format_shape(have)}")
        if size not in (None, sizes[name]):
            raise size_mismatch(op, name, size, sizes[name], "An axis keeps its size.")
    return sizes


def broadcast_arrays(*arrays: T, require_subset: bool = True, ensure_order: bool = True) -> tuple[T, ...]:
    """Broadcast arrays against each other, by name.

    Args:
        *arrays: Named arrays; scalars and None are passed through.
        require_subset: Whether one of them must have all axes of the others.
        ensure_order: Whether all results must have their axes in the same order.

    Returns:
        A tuple with each array broadcast to all axes.

    Raises:
        ValueError: If a size differs, or no array has all axes and `require_subset` holds.

    Source:
        `jax.numpy.broadcast_arrays`
    """
    return broadcast_arrays_and_return_axes(*arrays, require_subset=require_subset, ensure_order=ensure_order)[0]


def broadcast_arrays_and_return_axes(
    *arrays: T, require_subset: bool = True, ensure_order: bool = True
) -> tuple[tuple[T, ...], tuple[Axis, ...]]:
    """`broadcast_arrays`, which also returns the common axes.

    Args:
        *arrays: Named arrays, scalars, or None.
        require_subset: Whether one of the arrays must have all the axes.
        ensure_order: Whether the results have the common axes in the same order.

    Returns:
        The arrays, and the axes that they have in common then.

    Source:
        `jax.numpy.broadcast_arrays`
    """
    named = [a for a in arrays if isinstance(a, NamedArrayBase)]
    if not named:
        return tuple(arrays), ()
    for a in arrays:
        if not isinstance(a, NamedArrayBase) and a is not None and not is_scalar(a):
            raise not_a_scalar("broadcast_arrays", a)
    axes = common_axes("broadcast_arrays", named, require_subset)
    full = tuple(
        broadcast_to(a, axes, ensure_order=ensure_order) if isinstance(a, NamedArrayBase) else a for a in arrays
    )
    return full, axes


def common_axes(op: str, arrays: Sequence[NamedArrayBase], require_subset: bool = True) -> tuple[Axis, ...]:
    """All axes of several arrays.

    Args:
        op: The operation, for error messages.
        arrays: At least one array.
        require_subset: Whether one of them must have all axes of the others.

    Returns:
        The axes in the order of the first array that has all of them. If none has: the axes of the array with the most
        elements, and before them what the next smaller ones add.

    Raises:
        ValueError: If an axis has two sizes, or no array has all axes and `require_subset` holds.
    """
    sizes: dict[str, int] = {}
    for a in arrays:
        for name, size in a.shape.items():
            if sizes.setdefault(name, size) != size:
                raise size_mismatch(op, name, size, sizes[name], "All arrays must agree on the size of a shared axis.")
    names = next((a.axis_names for a in arrays if len(a.axis_names) == len(sizes)), None)
    if names is None and require_subset:
        largest = max(arrays, key=lambda a: len(a.axis_names))
        other = next(a for a in arrays if not set(a.axis_names) <= set(largest.axis_names))
        raise no_subset(op, dict(largest.shape), dict(other.shape))
    return tuple(Axis(name, sizes[name]) for name in names or _union(arrays))


def _union(arrays: Sequence[NamedArrayBase]) -> Names:
    """The axes of all arrays: those of larger arrays come later, so that less data moves."""
    names: Names = ()
    for a in sorted(arrays, key=lambda a: math.prod(a._sizes()), reverse=True):
        names = (*(name for name in a.axis_names if name not in names), *names)
    return names


def as_named(op: str, a: Any) -> Any:
    """A named array as it is; a scalar as a named array without axes."""
    if isinstance(a, NamedArrayBase):
        return a
    if is_scalar(a):
        return wrap(jnp.asarray(a), ())
    raise not_a_scalar(op, a)


def as_scalar(op: str, x: Any, argument: str) -> Any:
    """A number, or an array of rank 0, without its names; an error if `x` is neither."""
    if isinstance(x, NamedArrayBase):
        if x.axis_names:
            raise bad_value(op, f"{argument} has {format_shape(x.shape)}", "expected a scalar")
        return x.array
    if not is_scalar(x):
        raise not_a_scalar(op, x, argument)
    return x


def not_a_scalar(op: str, value: Any, argument: str = "an operand") -> TypeError | ValueError:
    """The error for an operand without names that is no scalar: a ValueError for an array, a TypeError otherwise."""
    shape = getattr(value, "shape", None)
    if shape is None:
        return wrong_type(op, argument, value, "a NamedArray or a scalar")
    return bad_value(
        op,
        f"{argument} is an unnamed array of shape {tuple(shape)}",
        "expected a NamedArray or a scalar",
        "Name its axes with haliax.named(array, axes).",
    )
