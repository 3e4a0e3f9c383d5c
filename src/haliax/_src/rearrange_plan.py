"""Plans of `rearrange` by a pattern: take dimensions apart, put the parts in order, merge them anew.

A plan is made from a pattern, names and sizes alone. Parts that stay together are never taken apart, so that it is the
shortest chain of reshape, transpose and reshape; any of them may be missing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import NamedTuple

from haliax._src.axis import Axis, axis_name
from haliax._src.axis_order import order_axes
from haliax._src.errors import axis_not_found, duplicate_axes, format_shape, problem
from haliax._src.parsing import (
    AliasTable,
    Bindings,
    Capture,
    Expression,
    by_position,
    check_all_used,
    not_on_the_left,
    parse_rearrangement,
    raise_parse_error,
)

Names = tuple[str, ...]
Sizes = tuple[int, ...]

OP = "rearrange"


class Plan(NamedTuple):
    """How to rearrange one array."""

    names: Names
    """The names of the result's axes."""
    permutation: tuple[int, ...] | None
    """Which part goes to each place; None if they stay in order."""
    splits: tuple[Sizes, ...] | None
    """The parts of each dimension; None if each is one part."""
    merges: tuple[Sizes, ...] | None
    """The parts that make each dimension of the result; None if each is one part."""


class Part(NamedTuple):
    """A dimension, or a part of one."""

    label: str | None
    """What the pattern calls it; None if `...` stands for it."""
    axis: Axis
    """Its name and size, should it become an axis of the result."""
    dim: int


@functools.lru_cache(maxsize=4096)
def plan_rearrange(pattern: str, names: Names, sizes: Sizes, bindings: Bindings) -> Plan:
    """The plan for an array with these names and sizes.

    Raises:
        ValueError: If the pattern can not be read or does not fit the array.
    """
    left, right = parse_rearrangement(pattern)
    check_all_used(OP, bindings, pattern, (left, right))
    axes = tuple(map(Axis, names, sizes))
    table = AliasTable(dict(bindings), OP)
    parts = _take_apart(pattern, left, axes, table)
    groups = _groups(pattern, left, right, parts, table)
    new_names = tuple(name for name, _ in groups)
    if len(set(new_names)) < len(new_names):
        raise duplicate_axes(OP, new_names, "Give a new axis another name: (name: ...) on the right, or a keyword.")
    return _shortest(new_names, [members for _, members in groups], parts)


def _shortest(names: Names, groups: Sequence[Sequence[int]], parts: Sequence[Part]) -> Plan:
    """The plan that makes each axis of a group of parts, where those that stay neighbours are one part."""
    runs: list[list[int]] = []
    ends = []  # how many runs there are after each group
    for group in groups:
        begin = len(runs)
        for i in group:
            together = len(runs) > begin and runs[-1][-1] == i - 1 and parts[i].dim == parts[i - 1].dim
            runs[-1].append(i) if together else runs.append([i])
        ends.append(len(runs))

    size = [math.prod(parts[i].axis.size for i in run) for run in runs]
    by_origin = sorted(range(len(runs)), key=runs.__getitem__)
    dims = range(1 + max((part.dim for part in parts), default=-1))
    splits = tuple(tuple(size[r] for r in by_origin if parts[runs[r][0]].dim == dim) for dim in dims)
    merges = tuple(tuple(size[b:e]) for b, e in zip([0, *ends], ends, strict=False))
    permutation = tuple(map(by_origin.index, range(len(runs))))
    return Plan(
        names,
        None if permutation == tuple(range(len(runs))) else permutation,
        None if all(len(split) == 1 for split in splits) else splits,
        None if all(len(merge) == 1 for merge in merges) else merges,
    )


# the left side -------------------------------------------------------------------------------------------------------


def _take_apart(pattern: str, left: Expression, axes: tuple[Axis, ...], table: AliasTable) -> list[Part]:
    """The parts of all axes in order, once the names on the left are bound to the axes."""
    captures = by_position(OP, pattern, left, axes) if left.is_ordered else _by_name(pattern, left, axes, table)
    shape = {axis.name: axis.size for axis in axes}
    parts = []
    for dim, axis in enumerate(axes):
        capture = captures.get(dim)
        if capture is None:
            parts.append(Part(None, axis, dim))
            continue
        if capture.name not in capture.parts:
            _check_size(pattern, capture, axis.size, table)
        if len(capture.parts) == 1:
            table.bind_alias(capture.parts[0], axis, pattern, capture.place)
            parts.append(Part(capture.parts[0], axis, dim))
        else:
            sizes = _part_sizes(pattern, capture, axis, shape, table)
            for label, size in zip(capture.parts, sizes, strict=True):
                parts.append(Part(label, Axis(table.name_of(label), size), dim))
    return parts


def _by_name(pattern: str, left: Expression, axes: tuple[Axis, ...], table: AliasTable) -> dict[int, Capture]:
    """The capture of each dimension that has one, where the left side is in braces; binds their names."""
    dims = {axis.name: dim for dim, axis in enumerate(axes)}
    captures: dict[int, Capture] = {}
    for capture in left.named:
        alias = capture.name or ""
        name = table.name_of(alias)
        if name not in dims:
            shape = {axis.name: axis.size for axis in axes}
            raise_parse_error(str(axis_not_found(OP, name, shape)), pattern, capture.place)
        if dims[name] in captures:
            raise_parse_error(f"{OP}: axis {name!r} occurs more than once.", pattern, capture.place)
        # the name of an axis that one of its parts takes over stands for that part
        if alias not in capture.parts or len(capture.parts) == 1:
            table.bind_alias(alias, axes[dims[name]], pattern, capture.place)
        captures[dims[name]] = capture
    return captures


def _part_sizes(
    pattern: str, capture: Capture, axis: Axis, shape: Mapping[str, int], table: AliasTable
) -> tuple[int, ...]:
    """The sizes of the parts of an axis, of which one may be unknown."""
    # a part may have the name of the axis itself, which is gone then
    sizes = {label: table.size_of(label, shape) for label in capture.parts}
    sizes |= {label: None for label in sizes if table.bindings.get(label) in (axis, axis.name)}
    known = {label: size for label, size in sizes.items() if size is not None}
    unknown = [label for label in sizes if label not in known]
    product = math.prod(known.values())
    whole = f"axis {format_shape({axis.name: axis.size})}"
    if len(unknown) > 1 or (unknown and product == axis.size == 0):
        given = f"{whole} can be split into ({' '.join(capture.parts)}) in many ways"
        remedy = "Give the sizes of all parts but one as keywords."
        raise_parse_error(problem(OP, given, remedy=remedy), pattern, capture.place)
    fits = axis.size % product == 0 if unknown and product else product == axis.size
    if not fits:
        given = f"{whole} can not be split into parts of sizes {format_shape(known)}"
        raise_parse_error(problem(OP, given), pattern, capture.place)
    return tuple(known[label] if label in known else axis.size // product for label in sizes)


def _check_size(pattern: str, capture: Capture, size: int, table: AliasTable) -> None:
    """Raise a ValueError if the name of a capture has another size."""
    expected = None if capture.name is None else table.size_of(capture.name)
    if expected not in (None, size):
        message = f"{OP}: {capture.name!r} has size {size} here; expected {expected}."
        raise_parse_error(message, pattern, capture.place)


# the right side ------------------------------------------------------------------------------------------------------


def _groups(
    pattern: str, left: Expression, right: Expression, parts: Sequence[Part], table: AliasTable
) -> list[tuple[str, list[int]]]:
    """The axes of the result: the name of each, and the numbers of the parts that make it."""
    known = {name for capture in left.named for name in (capture.name, *capture.parts)}
    groups: dict[int, tuple[str, list[int]]] = {}
    order: list[int | EllipsisType] = []
    for capture in right.captures:
        if not isinstance(capture, Capture):
            order.append(...)
            continue
        members = [_find(pattern, label, capture, parts, table) for label in capture.parts]
        if len({*members} - {*order}) < len(capture.parts):
            raise_parse_error(f"{OP}: {capture.name!r} stands for an axis used before.", pattern, capture.place)
        order += members
        if capture.parts == (capture.name,):
            name = parts[members[0]].axis.name
        else:
            name = table.name_of(capture.name or "")
            if capture.name not in known:
                _check_size(pattern, capture, math.prod(parts[i].axis.size for i in members), table)
        groups[members[0]] = name, members

    numbers = _in_order(pattern, right, order, parts)
    members = {i for _, group in groups.values() for i in group}
    return [groups.get(i) or (parts[i].axis.name, [i]) for i in numbers if i in groups or i not in members]


def _find(pattern: str, label: str, capture: Capture, parts: Sequence[Part], table: AliasTable) -> int:
    """The number of the part that a name on the right stands for."""
    labels = [part.label for part in parts]
    if label in labels:
        return labels.index(label)
    name = table.dealias_binding(label)
    for i, part in enumerate(parts):
        whole = sum(other.dim == part.dim for other in parts) == 1
        if whole and name is not None and part.axis.name == axis_name(name):
            return i
    not_on_the_left(OP, pattern, label, [known for known in labels if known], capture.place)


def _in_order(pattern: str, right: Expression, order: Sequence[int | EllipsisType], parts: Sequence[Part]) -> list[int]:
    """The numbers of all parts in the order of the right side."""
    left_over = {part.label or part.axis.name: part.axis.size for i, part in enumerate(parts) if i not in order}
    if left_over and not right.has_ellipsis:
        given = f"the right side has no place for {format_shape(left_over)}"
        remedy = "Name them, or put `...` where they go."
        raise_parse_error(problem(OP, given, remedy=remedy), pattern, right.place or len(pattern))
    partial = [entry if isinstance(entry, EllipsisType) else str(entry) for entry in order]
    return list(map(int, axis_name(order_axes(OP, partial, tuple(map(str, range(len(parts))))))))
