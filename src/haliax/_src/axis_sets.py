"""Set algebra on axes, and lookups and replacements.

Each function takes its arguments to their normal form (see `haliax._src.axis`), works on names and sizes, and gives the
result in the form of its first argument: a mapping if that was one, otherwise a tuple.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import overload

from . import errors
from .axis import (
    Axes,
    Axis,
    AxisSelection,
    AxisSelector,
    AxisSpec,
    PartialShapeDict,
    axis_name,
    check_size,
    in_form_of,
    iter_axes,
    known_sizes,
    make_axes,
    shape_dict,
    shape_with,
)
from .util import renamed


def intersect_shapes(op: str, first: PartialShapeDict, second: PartialShapeDict) -> dict[str, int | None]:
    """The axes of both normal forms, in the order of `first`, with the sizes of `second`, which must agree."""
    common = {name: second[name] for name in first if name in second}
    for name, size in common.items():
        check_size(op, name, size, first[name])
    return common


def _minus(shape: PartialShapeDict, other: PartialShapeDict) -> dict[str, int | None]:
    """The axes of `shape` that `other` lacks."""
    return {name: size for name, size in shape.items() if name not in other}


def union_axes(a1: Axes, a2: Axes) -> Axes:
    """The axes of `a1`, then those of `a2` that are new.

    Args:
        a1: Axes; an axis of both is taken from here.
        a2: More axes.

    Returns:
        A dict if either argument is a mapping, otherwise a tuple.

    Raises:
        TypeError: An argument does not name axes.
        ValueError: An axis of both has two sizes.
    """
    first, second = shape_dict("union_axes", a1), shape_dict("union_axes", a2)
    intersect_shapes("union_axes", first, second)  # raises where they disagree
    return in_form_of(a2 if isinstance(a2, Mapping) else a1, first | _minus(second, first))


def intersect_axes(ax1: AxisSelection, ax2: Axes) -> Axes:
    """The axes of both, in the order of `ax1`, each as `ax2` has it.

    Args:
        ax1: Axes, which give the order.
        ax2: Axes, which give the sizes.

    Returns:
        A dict if `ax1` is a mapping, otherwise a tuple.

    Raises:
        TypeError: An argument does not name axes.
        ValueError: An axis of both has two sizes.
    """
    op = "intersect_axes"
    return in_form_of(ax1, intersect_shapes(op, shape_dict(op, ax1), shape_dict(op, ax2)))


def concat_axes(a1: Axes, a2: Axes) -> Axes:
    """The axes of `a1`, then those of `a2`; none may occur twice.

    Args:
        a1: The leading axes.
        a2: The trailing axes.

    Returns:
        A dict if `a1` is a mapping, otherwise a tuple.

    Raises:
        TypeError: An argument does not name axes.
        ValueError: An axis occurs twice.
    """
    pairs = [*iter_axes("concat_axes", a1), *iter_axes("concat_axes", a2)]
    shape = dict(pairs)
    if len(shape) < len(pairs):
        raise errors.duplicate_axes("concat_axes", (name for name, _ in pairs))
    return in_form_of(a1, shape)


concat_axis_specs = renamed(concat_axes, "concat_axis_specs")


def without_axes(axis_spec: Axes, to_remove: AxisSelection, allow_mismatched_sizes: bool = False) -> Axes:
    """The axes of `axis_spec` that are not in `to_remove`, which may name others too.

    Args:
        axis_spec: Axes.
        to_remove: The axes to leave out.
        allow_mismatched_sizes: Leave an axis out even if `to_remove` has another size for it.

    Returns:
        A dict if `axis_spec` is a mapping, otherwise a tuple.

    Raises:
        TypeError: An argument does not name axes.
        ValueError: An axis of both has two sizes, which is not allowed.
    """
    shape, removed = shape_dict("without_axes", axis_spec), shape_dict("without_axes", to_remove)
    if not allow_mismatched_sizes:
        intersect_shapes("without_axes", shape, removed)  # raises where they disagree
    return in_form_of(axis_spec, _minus(shape, removed))


def eliminate_axes(axis_spec: Axes, to_remove: AxisSelection) -> Axes:
    """The axes of `axis_spec` that are not in `to_remove`, all of which must be there.

    Args:
        axis_spec: Axes.
        to_remove: The axes to leave out.

    Returns:
        A dict if `axis_spec` is a mapping, otherwise a tuple.

    Raises:
        TypeError: An argument does not name axes.
        ValueError: An axis to remove is absent, or has another size.
    """
    removed = shape_dict("eliminate_axes", to_remove)
    return in_form_of(axis_spec, _minus(shape_with("eliminate_axes", axis_spec, removed), removed))


@overload
def resolve_axis(axis_spec: AxisSpec, axis_selection: AxisSelector) -> Axis: ...
@overload
def resolve_axis(axis_spec: AxisSpec, axis_selection: Mapping[str, int | None]) -> dict[str, int]: ...
@overload
def resolve_axis(axis_spec: AxisSpec, axis_selection: Sequence[AxisSelector]) -> tuple[Axis, ...]: ...
def resolve_axis(axis_spec: AxisSpec, axis_selection: AxisSelection) -> AxisSpec:
    """The selected axes, with their sizes.

    Args:
        axis_spec: Axes with sizes.
        axis_selection: The axes to look up, by name or as a whole.

    Returns:
        What was selected, with its sizes: an `Axis` for one axis, a dict for a mapping, otherwise a tuple.

    Raises:
        TypeError: An argument does not name axes.
        ValueError: A selected axis is absent, has another size, or has no size.
    """
    selected = shape_dict("resolve_axis", axis_selection)
    shape = shape_with("resolve_axis", axis_spec, selected)
    resolved = dict(zip(selected, known_sizes("resolve_axis", {name: shape[name] for name in selected}), strict=True))
    if isinstance(axis_selection, Mapping):
        return resolved
    axes = make_axes(**resolved)
    return axes[0] if isinstance(axis_selection, AxisSelector) else axes


def selects_axis(selector: AxisSelection, selected: AxisSelection) -> bool:
    """Whether `selector` has all the axes of `selected`, with sizes that agree.

    Args:
        selector: Axes to look in.
        selected: Axes to look for.

    Returns:
        True if every axis of `selected` is there; a size that is unknown on either side agrees with any.

    Raises:
        TypeError: An argument does not name axes.
        ValueError: Within one argument, a name has two sizes.
    """
    shape, wanted = shape_dict("selects_axis", selector), shape_dict("selects_axis", selected)
    return all(name in shape and (size is None or shape[name] in (None, size)) for name, size in wanted.items())


def is_axis_compatible(ax1: AxisSelector, ax2: AxisSelector) -> bool:
    """Whether both may be the same axis: one name, and one size where both have one.

    Args:
        ax1: An axis or a name.
        ax2: An axis or a name.

    Returns:
        True if the names are equal and no sizes differ.

    Raises:
        TypeError: An argument is neither an `Axis` nor a name.
    """
    for i, axis in enumerate((ax1, ax2), 1):
        if not isinstance(axis, AxisSelector):
            raise errors.not_an_axis("is_axis_compatible", axis, f"ax{i}")
    return selects_axis(ax1, ax2)


def replace_axis(axis_spec: Axes, old: AxisSelector, new: Axes) -> Axes:
    """The axes of `axis_spec` with those of `new` in the place of `old`.

    Args:
        axis_spec: Axes.
        old: The axis to replace.
        new: The axes to put there; none of them removes `old`.

    Returns:
        A dict if `axis_spec` is a mapping, otherwise a tuple.

    Raises:
        TypeError: An argument does not name axes, or `old` names several.
        ValueError: `old` is absent or has another size, or an axis of `new` is there already.
    """
    if not isinstance(old, AxisSelector):
        raise errors.not_an_axis("replace_axis", old, "old")
    shape = shape_with("replace_axis", axis_spec, shape_dict("replace_axis", old))
    inserted = shape_dict("replace_axis", new)
    replaced: list[tuple[str, int | None]] = []
    for name, size in shape.items():
        replaced += inserted.items() if name == axis_name(old) else [(name, size)]
    if len(dict(replaced)) < len(replaced):
        raise errors.duplicate_axes("replace_axis", (name for name, _ in replaced))
    return in_form_of(axis_spec, dict(replaced))


def unsize_axes(axis_spec: AxisSelection, to_unsize: AxisSelection | None = None) -> AxisSelection:
    """The axes of `axis_spec`, of which some (all if None) are by name only.

    Args:
        axis_spec: Axes.
        to_unsize: The axes to forget the size of.

    Returns:
        A dict (with None for the size) if `axis_spec` is a mapping. Otherwise a tuple; if `to_unsize` is None, a name
        for a single axis.

    Raises:
        TypeError: An argument does not name axes.
        ValueError: An axis to unsize is absent, or has another size.
    """
    if to_unsize is None:
        return dict.fromkeys(axis_spec) if isinstance(axis_spec, Mapping) else axis_name(axis_spec)
    unsized = shape_dict("unsize_axes", to_unsize)
    shape = shape_with("unsize_axes", axis_spec, unsized)
    return in_form_of(axis_spec, shape | dict.fromkeys(unsized))
