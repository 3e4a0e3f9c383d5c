"""Plans of `einsum`: an equation gives each dimension of each operand a label, and `dot` contracts by labels.

There are three forms of equations:

    "batch time, time embed -> batch embed"    axes in order; the names are those of the equation alone
    "{time embed} -> embed"                    axes by name: `time` is summed over, all that is not mentioned is kept
    "-> batch embed"                           by name, and all that is not mentioned is summed over

The labels are the names of axes where an equation names these, otherwise made up of what stands for an axis.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import NamedTuple

from haliax._src import dot
from haliax._src.axis import Axis, axis_name
from haliax._src.axis_order import order_axes
from haliax._src.errors import axis_not_found, bad_value, duplicate_axes, size_mismatch
from haliax._src.parsing import (
    AliasTable,
    Bindings,
    Capture,
    Expression,
    by_position,
    check_all_used,
    not_on_the_left,
    parse_einsum,
    raise_parse_error,
)

Names = tuple[str, ...]
Sizes = tuple[int, ...]

OP = "einsum"


class Plan(NamedTuple):
    """How to contract arrays, and the axes of the result."""

    contraction: dot.Plan
    names: Names
    sizes: Sizes


class Labels(NamedTuple):
    """The labels of all dimensions: equal ones are multiplied along each other, and summed over unless in `out`."""

    operands: tuple[Names, ...]
    out: Names
    names: Names
    """The axis names of the result."""


@functools.lru_cache(maxsize=4096)
def plan_einsum(equation: str, operands: tuple[Names, ...], sizes: tuple[Sizes, ...], aliases: Bindings) -> Plan:
    """The plan for arrays with these names and sizes.

    Raises:
        ValueError: If the equation can not be read or does not fit the arrays.
    """
    left, right = parse_einsum(equation)
    check_all_used(OP, aliases, equation, (*left, right))
    if not operands:
        raise bad_value(OP, "no array was given", "expected at least one NamedArray")
    table = AliasTable(dict(aliases), OP)
    in_order = len(left) > 1 or (left[0].is_ordered and left[0].captures)
    if in_order:
        axes = [tuple(map(Axis, *operand)) for operand in zip(operands, sizes, strict=True)]
        labels = _by_position(equation, left, right, axes, table)
    else:
        out = _by_name(equation, left[0], right, dot.joint_shape(OP, operands, sizes), table)
        labels = Labels(operands, out, out)
    if len(set(labels.names)) < len(labels.names):
        raise duplicate_axes(OP, labels.names, "Rename one of them with haliax.rename.")
    shape = dot.joint_shape(OP, labels.operands, sizes)
    summed = tuple(label for label in shape if label not in labels.out)
    contraction = dot.plan_dot(labels.operands, sizes, summed, labels.out)
    return Plan(contraction, labels.names, tuple(shape[label] for label in labels.out))


# axes by name --------------------------------------------------------------------------------------------------------


def _by_name(equation: str, left: Expression, right: Expression, shape: Mapping[str, int], table: AliasTable) -> Names:
    """The axes of the result."""
    mentioned = {_existing(equation, capture, shape, table) for capture in left.named}
    # without braces the right side says it all
    everything = left.is_ordered or left.has_ellipsis
    named: list[str] = []
    for capture in right.named:
        name = _existing(equation, capture, shape, table)
        if name in named:
            raise_parse_error(f"{OP}: axis {name!r} occurs more than once.", equation, capture.place)
        if name not in mentioned and not everything and not right.has_ellipsis:
            message = f"{OP}: axis {name!r} is kept in front, as it is not in the braces. Name it there, too."
            raise_parse_error(message, equation, capture.place)
        named.append(name)
    if right.has_ellipsis:
        return axis_name(order_axes(OP, _with_ellipses(right, named), tuple(shape)))
    kept = () if everything else tuple(name for name in shape if name not in mentioned)
    return (*kept, *named)


def _existing(equation: str, capture: Capture, shape: Mapping[str, int], table: AliasTable) -> str:
    """The name of the axis that a capture stands for, once it is known to exist."""
    (alias,) = capture.parts
    name = table.name_of(alias)
    if name not in shape:
        error = axis_not_found(OP, name, shape, owner="the arrays have")
        raise_parse_error(str(error), equation, capture.place)
    table.bind_alias(alias, Axis(name, shape[name]), equation, capture.place)
    return name


def _with_ellipses(side: Expression, named: Sequence[str]) -> list[str | EllipsisType]:
    """The entries of a side, where each name is replaced by another one."""
    rest = iter(named)
    return [next(rest) if isinstance(capture, Capture) else ... for capture in side.captures]


# axes in order -------------------------------------------------------------------------------------------------------


def _by_position(
    equation: str,
    left: Sequence[Expression],
    right: Expression,
    operands: Sequence[tuple[Axis, ...]],
    table: AliasTable,
) -> Labels:
    """The label of an axis is `=` and its name in the equation, or `...` and its own name if `...` stands for it."""
    if len(left) != len(operands):
        message = f"{OP}: the number of arrays is {len(operands)}; expected {len(left)}."
        raise_parse_error(message, equation, None)
    labels: list[Names] = []
    names: dict[str, str] = {}
    rest: dict[str, int] = {}
    for i, (side, axes) in enumerate(zip(left, operands, strict=True)):
        captures = by_position(OP, equation, side, axes, f"operand {i}")
        for dim, capture in captures.items():
            table.bind_alias(capture.parts[0], axes[dim], equation, capture.place)
        own = [f"={captures[dim].parts[0]}" if dim in captures else f"...{ax.name}" for dim, ax in enumerate(axes)]
        for label, axis in zip(own, axes, strict=True):
            names[label] = axis.name
            if label[0] == "." and rest.setdefault(axis.name, axis.size) != axis.size:
                raise size_mismatch(OP, axis.name, axis.size, rest[axis.name], "Arrays must agree on it.")
        labels.append(tuple(own))

    named = [f"={capture.parts[0]}" for capture in right.named]
    for capture, label in zip(right.named, named, strict=True):
        if label not in names:
            known = [known[1:] for known in names if known[0] == "="]
            not_on_the_left(OP, equation, label[1:], known, capture.place)
    kept = tuple(label for label in names if label in named or label[0] == ".")
    out = axis_name(order_axes(OP, _with_ellipses(right, named), kept)) if right.has_ellipsis else tuple(named)
    return Labels(tuple(labels), out, tuple(names[label] for label in out))
