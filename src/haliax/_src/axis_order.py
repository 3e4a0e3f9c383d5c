"""Partial orders of axes: some axes in order, with `...` for any number of others.

The named axes stand as they are written. Every other axis goes to an ellipsis, so that the original order is kept as
far as the partial order allows: it goes to the last ellipsis which comes directly after a group of named axes that has
one from before it in the original order, or to the first ellipsis if there is none. And an ellipsis is filled once:
after a named axis that stands before it, the next of the others goes to the next ellipsis, if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from . import errors
from .axis import (
    Ax,
    Axis,
    AxisSelection,
    AxisSelector,
    PartialAxisSpec,
    PartialShapeDict,
    axis_name,
    axis_selectors,
    axis_spec_to_tuple,
    check_size,
    shape_dict,
)
from .axis_sets import intersect_shapes


def rearrange_for_partial_order(partial_order: PartialAxisSpec, axes: Sequence[Ax]) -> tuple[Ax, ...]:
    """The axes in an order that agrees with a partial order.

    Args:
        partial_order: Axes in the order wanted; `...` takes the axes that are not named. Without `...`, all axes are
            named.
        axes: The axes to put in order.

    Returns:
        `axes` in the new order: `("c", ..., "a")` takes `("a", "b", "c", "d")` to `("c", "b", "d", "a")`.

    Raises:
        TypeError: `partial_order` is no sequence of axes and `...`.
        ValueError: A named axis is absent, repeated, or has another size; or an axis has no place.
    """
    return order_axes("rearrange_for_partial_order", partial_order, axes)


def order_axes(op: str, partial_order: PartialAxisSpec, axes: Sequence[Ax]) -> tuple[Ax, ...]:
    """`rearrange_for_partial_order` with the name of the operation that a message gives."""
    axes = axes if isinstance(axes, tuple) else cast("tuple[Ax, ...]", axis_spec_to_tuple(axes))
    shape = shape_dict(op, axes)
    if len(shape) < len(axes):
        raise errors.duplicate_axes(op, axis_name(axes))
    groups = _named_groups(op, partial_order, shape)

    position = {name: i for i, name in enumerate(shape)}
    group_of = {name: g for g, group in enumerate(groups) for name in group}
    firsts = [min((position[name] for name in group), default=len(position)) for group in groups[:-1]]
    fillings: list[list[str]] = [[] for _ in groups]  # after each group; after the last comes no ellipsis
    gap, filled = 0, False
    for name, i in position.items():
        if name in group_of:
            filled = filled or (bool(fillings[gap]) and group_of[name] <= gap)
        else:
            after = max((g for g, first in enumerate(firsts) if first < i), default=0)
            gap, filled = min(max(gap + filled, after), len(firsts) - 1), False
            fillings[gap].append(name)

    order = [name for group, filling in zip(groups, fillings, strict=True) for name in (*group, *filling)]
    return tuple(axes[position[name]] for name in order)


def _named_groups(op: str, partial_order: PartialAxisSpec, shape: PartialShapeDict) -> list[list[str]]:
    """The names between ellipses: one group more than there are ellipses, some of them empty."""
    if isinstance(partial_order, str) or not isinstance(partial_order, Sequence):
        raise errors.wrong_type(op, "the order", partial_order, "a sequence of axes, names and `...`")
    groups: list[list[str]] = [[]]
    for i, entry in enumerate(partial_order):
        if entry is ...:
            groups.append([])
        else:
            groups[-1].append(_known_name(op, i, entry, shape))

    names = [name for group in groups for name in group]
    if len(set(names)) < len(names):
        raise errors.duplicate_axes(op, names)
    left_over = {name: size for name, size in shape.items() if name not in names}
    if left_over and len(groups) == 1:
        given = f"the order ({', '.join(names)}) has no place for {errors.format_shape(left_over)}"
        raise errors.bad_value(op, given, "expected all axes to be named", "Name them, or put `...` where they go.")
    return groups


def _known_name(op: str, i: int, entry: AxisSelector, shape: PartialShapeDict) -> str:
    """The name of an entry of a partial order, once it is known to be one of the axes."""
    if not isinstance(entry, AxisSelector):
        raise errors.wrong_type(op, f"entry {i} of the order", entry, "an Axis, a name or `...`")
    name = axis_name(entry)
    if name not in shape:
        raise errors.axis_not_found(op, name, shape, owner="the axes are")
    if isinstance(entry, Axis):
        check_size(op, name, entry.size, shape[name])
    return name


def replace_missing_with_ellipsis(ax1: AxisSelection, ax2: AxisSelection) -> PartialAxisSpec:
    """The axes of `ax1` in order, each as `ax2` has it, or `...` if `ax2` lacks it.

    Args:
        ax1: Axes, which give the order.
        ax2: Axes, which give the sizes.

    Returns:
        A tuple with one entry for each axis of `ax1`.

    Raises:
        TypeError: An argument does not name axes.
        ValueError: An axis of both has two sizes.
    """
    op = "replace_missing_with_ellipsis"
    shape = shape_dict(op, ax1)
    common = intersect_shapes(op, shape, shape_dict(op, ax2))
    found = dict(zip(common, axis_selectors(common), strict=True))
    return tuple(found.get(name, ...) for name in shape)
