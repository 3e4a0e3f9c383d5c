"""Broadcasting by name: which axes a result has, in which order, and how to bring an array to them.

A plan is computed from names and sizes alone and looked up in a bounded cache; applying it is one transpose and one
`expand_dims`, each only where needed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from haliax._src.array_base import A, NamedArrayBase, is_scalar, selectors, wrap
from haliax._src.axis import Axis, AxisSpec, axis_spec_to_tuple
from haliax._src.errors import bad_value, format_shape, size_mismatch, wrong_type

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


def no_subset(op: str, a: dict[str, int], b: dict[str, int]) -> ValueError:
    """The error for two arrays of which neither has all axes of the other."""
    missing = ", ".join(repr(name) for name in b if name not in a)
    return bad_value(
        op,
        f"axes ({format_shape(a)}) and ({format_shape(b)})",
        "expected the axes of one to contain those of the other",
        f"Use broadcast_axis to give the first operand {missing} explicitly.",
    )


def broadcast_to(a: Any, axes: AxisSpec, ensure_order: bool = True, enforce_no_extra_axes: bool = True) -> Any:
    """Broadcast an array to the given axes.

    Args:
        a: A named array, or a scalar.
        axes: The axes of the result.
        ensure_order: Whether axes that `a` already has must follow the order of `axes`; if not, an array that has them
            all is returned as it is.
        enforce_no_extra_axes: Whether it is an error for `a` to have axes beyond `axes`; if not, they follow after the
            given ones that `a` lacks.

    Returns:
        A named array with axes `axes` (and the extra ones).

    Raises:
        ValueError: If a size differs, or there are extra axes.

    Source:
        `jax.numpy.broadcast_to`
    """
    target = axis_spec_to_tuple(axes)
    a = as_named("broadcast_to", a)
    have = a.shape
    for axis in target:
        if have.get(axis.name, axis.size) != axis.size:
            raise size_mismatch("broadcast_to", axis.name, axis.size, have[axis.name], "An axis keeps its size.")
    wanted = {axis.name for axis in target}
    extra = tuple(axis for axis in a.axes if axis.name not in wanted)
    if extra and enforce_no_extra_axes:
        raise bad_value(
            "broadcast_to",
            f"the array has {format_shape(have)}",
            f"expected no axes beyond ({', '.join(ax.name for ax in target)})",
            "Reduce the extra axes first, or pass enforce_no_extra_axes=False.",
        )
    missing = tuple(axis for axis in target if axis.name not in have)
    if not ensure_order or extra:
        target = missing + a.axes
    return _broadcast(a, target)


def _broadcast(a: A, target: Sequence[Axis]) -> A:
    names = tuple(axis.name for axis in target)
    if names == a.axis_names:
        return a
    plan = alignment(a.axis_names, names)
    array = a.array if plan.permutation is None else jax.lax.transpose(a.array, plan.permutation)
    if plan.inserted:
        kept = tuple(i for i in range(len(names)) if i not in plan.inserted)
        array = jax.lax.broadcast_in_dim(array, tuple(axis.size for axis in target), kept)
    return a.like(array, names)


def broadcast_axis(a: A, axis: AxisSpec) -> A:
    """Add axes in front of those that an array has; axes that it already has stay in place.

    Args:
        a: A named array.
        axis: The axes to add.

    Returns:
        A named array with the missing ones of `axis`, then the axes of `a`.

    Raises:
        ValueError: If a size differs from the one the array has, or a new axis has no size.

    Source:
        `jax.numpy.broadcast_to`
    """
    target = []
    for ax in selectors(axis):
        if isinstance(ax, Axis):
            target.append(ax)
        elif ax not in a.axis_names:
            expected = f"expected an Axis; the array has {format_shape(a.shape)}"
            raise bad_value("broadcast_axis", f"axis {ax!r} has no size", expected)
    return broadcast_to(a, tuple(target), ensure_order=False, enforce_no_extra_axes=False)


def broadcast_arrays(*arrays: Any, require_subset: bool = True, ensure_order: bool = True) -> tuple[Any, ...]:
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
    *arrays: Any, require_subset: bool = True, ensure_order: bool = True
) -> tuple[tuple[Any, ...], tuple[Axis, ...]]:
    """`broadcast_arrays`, which also returns the common axes."""
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
    """All axes of several arrays, in the order of the first one that has the most of them.

    Raises:
        ValueError: If an axis has two sizes, or no array has all axes and `require_subset` holds.
    """
    largest = max(arrays, key=lambda a: len(a.axis_names))
    sizes = dict(largest.shape)
    extra: dict[str, int] = {}
    for a in arrays:
        for name, size in a.shape.items():
            known = sizes.get(name, extra.get(name, size))
            if known != size:
                raise size_mismatch(op, name, size, known, "All arrays must agree on the size of a shared axis.")
            if name not in sizes:
                extra[name] = size
        if extra and require_subset:
            raise no_subset(op, sizes, dict(a.shape))
    return tuple(Axis(name, size) for name, size in {**extra, **sizes}.items())


def as_named(op: str, a: Any) -> Any:
    """A named array as it is; a scalar as a named array without axes."""
    if isinstance(a, NamedArrayBase):
        return a
    if is_scalar(a):
        return wrap(jnp.asarray(a), ())
    raise not_a_scalar(op, a)


def not_a_scalar(op: str, value: Any) -> TypeError | ValueError:
    """The error for an operand without names that is no scalar: a ValueError for an array, a TypeError otherwise."""
    shape = getattr(value, "shape", None)
    if shape is None:
        return wrong_type(op, "an operand", value, "a NamedArray or a scalar")
    return bad_value(
        op,
        f"an operand is an unnamed array of shape {tuple(shape)}",
        "expected a NamedArray or a scalar",
        "Name its axes with haliax.named(array, axes).",
    )
