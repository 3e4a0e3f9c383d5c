"""Names and shapes: rename axes, merge several into one, split one into several.

What can be done on the names alone leaves the array untouched; dimensions are transposed only if axes to be merged are
not already neighbours in the order wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from haliax._src.array_base import A, NamedArrayBase, is_raw, raw_array_or_scalar, require_named
from haliax._src.axis import (
    Axis,
    AxisSelection,
    AxisSelector,
    AxisSpec,
    PartialAxisSpec,
    iter_axes,
)
from haliax._src.axis_order import replace_missing_with_ellipsis
from haliax._src.errors import (
    bad_value,
    duplicate_axes,
    format_shape,
    not_an_axis,
    problem,
    size_mismatch,
    wrong_dtype,
    wrong_type,
)
from haliax._src.explicit_axes import laid_out_by_name, reshape
from haliax._src.rearrange import axis_spec_rearrange, permute
from haliax._src.util import renamed


def rename(array: A, renames: Mapping[AxisSelector, AxisSelector]) -> A:
    """Give axes other names.

    Args:
        array: A named array with any axes.
        renames: The new name of each axis to rename, by its old name; names that the array lacks are ignored. An Axis
            on either side must have the size of the axis.

    Returns:
        An array of the same data, with the new names.

    Raises:
        ValueError: If two axes would have one name, or a size does not fit.
    """
    require_named("rename", array)
    if not isinstance(renames, Mapping):
        remedy = 'Write rename({"old": "new"}).'
        raise wrong_type("rename", "the renaming", renames, "a mapping from old to new names", remedy)
    new_names: dict[str, str] = {}
    for old, new in renames.items():
        name = one_name("rename", old)
        new_names[name] = one_name("rename", new)
        for axis in (old, new):
            if isinstance(axis, Axis) and name in array.axis_names:
                check_size("rename", axis, array.shape[name])
    names = tuple(new_names.get(name, name) for name in array.axis_names)
    check_distinct("rename", names)
    return array.like(array.array, names)


def flatten(array: A, new_axis_name: AxisSelector) -> A:
    """Merge all axes into one, the last of them running fastest.

    Args:
        array: A named array with any axes.
        new_axis_name: The name of the new axis, or an Axis of its size.

    Returns:
        An array with the new axis only.

    Raises:
        ValueError: If a given size is not the number of elements.

    Source:
        `jax.numpy.ravel`
    """
    return _merge("flatten", array, tuple(range(len(require_named("flatten", array).axis_names))), new_axis_name)


ravel = renamed(flatten, "ravel")


def flatten_axes(array: A, old_axes: AxisSelection, new_axis: AxisSelector) -> A:
    """Merge axes into one, the last of them running fastest.

    Args:
        array: A named array with any axes.
        old_axes: The axes to merge, in the order in which to merge them; none gives a new axis of size 1 in front.
        new_axis: The name of the new axis, or an Axis of its size.

    Returns:
        An array with the new axis in the place of the first of the old ones.

    Raises:
        ValueError: If an axis is missing or a given size does not fit, or the new name is taken.

    Source:
        `jax.numpy.reshape`
    """
    op = "flatten_axes"
    return _merge(op, array, require_named(op, array).require_axes(op, old_axes), new_axis)


def flatten_all_axes_but(
    a: A, axis_name: str, axis: AxisSelection, reorder_to_front: bool = False
) -> tuple[A, Callable[[A], A]]:
    """Merge axes into one, and get a function that takes them apart again; all axes but these are kept.

    Args:
        a: A named array with any axes.
        axis_name: The name of the new axis, which has size 1 if there is nothing to merge.
        axis: The axes to merge, in the order in which to merge them.
        reorder_to_front: Whether the new axis comes first, rather than in the place of the first axis that it replaces.

    Returns:
        The array, and a function that restores the merged axes of an array with the new axis. It puts them, and the
        kept axes which that array still has, in their old order; axes that `a` did not have take the place of those
        that are gone.

    Raises:
        ValueError: If an axis is missing or the new name is taken.

    Source:
        `jax.numpy.reshape`
    """
    op = "flatten_all_axes_but"
    merged = require_named(op, a).require_axes(op, axis)
    flat = _merge(op, a, merged, axis_name)
    if reorder_to_front:
        flat = axis_spec_rearrange(flat, (axis_name, ...))

    def unflatten(array: A) -> A:
        return _in_order_of(unflatten_axis(array, axis_name, tuple(a.axes[dim] for dim in merged)), a.axis_names)

    return flat, unflatten


def _in_order_of(array: A, names: tuple[str, ...]) -> A:
    """The array with the axes that are in `names` in that order, and others where some of `names` are missing."""
    order: PartialAxisSpec = replace_missing_with_ellipsis(names, array.axis_names)
    return axis_spec_rearrange(array, order if ... in order else (*order, ...))


def _merge(op: str, array: A, dims: tuple[int, ...], new_axis: AxisSelector) -> A:
    """Merge the dimensions `dims`, in this order, into one at the place of the first of them."""
    sizes = array._sizes()
    size = math.prod(sizes[dim] for dim in dims)
    if isinstance(new_axis, Axis):
        check_size(op, new_axis, size, f"It merges {format_shape({array.axis_names[d]: sizes[d] for d in dims})}.")
    place = min(dims, default=0)
    rest = [dim for dim in range(len(sizes)) if dim not in dims]
    array = permute(array, (*rest[:place], *dims, *rest[place:]))

    names, sizes, end = array.axis_names, array._sizes(), place + len(dims)
    new_names = (*names[:place], one_name(op, new_axis), *names[end:])
    check_distinct(op, new_names)
    if len(dims) == 1:
        return array.like(array.array, new_names)
    return array.like(reshape(array.array, (*sizes[:place], size, *sizes[end:])), new_names)


def unflatten_axis(array: A, axis: AxisSelector, new_axes: AxisSelection) -> A:
    """Split an axis into several, the last of them running fastest.

    Args:
        array: A named array with any axes.
        axis: The axis to split.
        new_axes: The axes to put in its place; one of them may be a name without a size.

    Returns:
        An array with the new axes in the place of the old one.

    Raises:
        ValueError: If the axis is missing, the sizes do not fit, or a new name is taken.

    Source:
        `jax.numpy.reshape`
    """
    op = "unflatten_axis"
    place = require_named(op, array).require_axis(op, axis)
    names, sizes = array.axis_names, array._sizes()
    parts = _factors(op, names[place], sizes[place], new_axes)
    new_names = (*names[:place], *(name for name, _ in parts), *names[place + 1 :])
    check_distinct(op, new_names)
    if len(parts) == 1:
        return array.like(array.array, new_names)
    new_sizes = (*sizes[:place], *(size for _, size in parts), *sizes[place + 1 :])
    return array.like(reshape(array.array, new_sizes), new_names)


def _factors(op: str, name: str, size: int, new_axes: AxisSelection) -> list[tuple[str, int]]:
    """The axes that an axis is split into, with the one missing size worked out."""
    parts = list(iter_axes(op, new_axes))
    known = math.prod(part for _, part in parts if part is not None)
    unknown = [part for part, part_size in parts if part_size is None]
    if len(unknown) > 1:
        raise bad_value(op, f"axes {', '.join(map(repr, unknown))} have no size", "expected at most one without")
    if (unknown and (known == 0 or size % known)) or (not unknown and known != size):
        given = f"axis {name}={size} can not be split into ({format_shape(dict(parts))})"
        raise bad_value(op, given, f"the product of the sizes must be {size}")
    return [(part, size // known if part_size is None else part_size) for part, part_size in parts]


def split(a: A, axis: AxisSelector, new_axes: AxisSpec) -> Sequence[A]:
    """Cut an array into pieces along an axis.

    Args:
        a: A named array with any axes.
        axis: The axis to cut.
        new_axes: The axis of each piece; they may have the same name.

    Returns:
        A list with one array for each piece, in which its axis replaces the old one.

    Raises:
        ValueError: If the axis is missing, or the sizes do not add up to its size.

    Source:
        `jax.lax.split`
    """
    dim = require_named("split", a).require_axis("split", axis)
    names, size = a.axis_names, a._sizes()[dim]
    pieces = list(iter_axes("split", new_axes))
    sizes = [piece for _, piece in pieces if piece is not None]
    if len(sizes) < len(pieces) or sum(sizes) != size:
        given = f"axis {names[dim]}={size} can not be cut into ({_format_pieces(pieces)})"
        raise bad_value("split", given, f"the sizes must add up to {size}")
    new_names = [(*names[:dim], piece, *names[dim + 1 :]) for piece, _ in pieces]
    for piece_names in new_names:
        check_distinct("split", piece_names)
    cut = _cut(a, dim, sizes) if pieces else ()
    return [piece.like(piece.array, piece_names) for piece, piece_names in zip(cut, new_names, strict=True)]


@laid_out_by_name("split")
def _cut(a: A, dim: int, sizes: Sequence[int]) -> list[A]:
    """The pieces of an array, with its names: the axis cut is split over devices as before, where its size allows."""
    return [a.like(piece, a.axis_names) for piece in jax.lax.split(a.array, sizes, dim)]


def _format_pieces(pieces: Sequence[tuple[str, int | None]]) -> str:
    return ", ".join(name if size is None else f"{name}={size}" for name, size in pieces) or "no axes"


@laid_out_by_name("unbind")
def unbind(array: A, axis: AxisSelector) -> Sequence[A]:
    """Take an array apart along an axis.

    Args:
        array: A named array with any axes.
        axis: The axis to take apart.

    Returns:
        A list with one array, without the axis, for each index.

    Raises:
        ValueError: If the axis is missing or has another size.

    Source:
        `jax.lax.split`
    """
    dim = require_named("unbind", array).require_axis("unbind", axis)
    count, names = array._sizes()[dim], array.axis_names
    rest = names[:dim] + names[dim + 1 :]
    slices = jax.lax.split(array.array, (1,) * count, dim) if count else ()
    return [array.like(jax.lax.squeeze(piece, (dim,)), rest) for piece in slices]


@laid_out_by_name("roll")
def roll(array: A, shift: Any, axis: AxisSelection) -> A:
    """Shift elements along axes; those that leave at one end come back at the other.

    Args:
        array: A named array with any axes.
        shift: How far, as an integer or a named or raw array without axes; or a sequence with one for each axis.
        axis: The axes to shift along.

    Returns:
        An array with the same axes.

    Raises:
        ValueError: If an axis is missing or has another size.

    Source:
        `jax.numpy.roll`
    """
    dims = require_named("roll", array).require_axes("roll", axis)
    return array.like(jnp.roll(array.array, _shifts("roll", shift, len(dims)), dims), array.axis_names)


def _shifts(op: str, shift: Any, count: int) -> Any:
    """How far to shift along each of some axes: integers without their wrapping."""
    several = isinstance(shift, list | tuple)
    raw: Any = [raw_array_or_scalar(one) for one in shift] if several else raw_array_or_scalar(shift)
    if isinstance(shift, NamedArrayBase) and shift.axis_names:
        given = f"the shift has {format_shape(shift.shape)}"
        raise TypeError(problem(op, given, "expected an integer, or a sequence with one for each axis"))
    for one in raw if several else [raw]:
        if not is_raw(one):
            raise wrong_type(op, "the shift", one, "an integer, or a sequence with one for each axis")
        if not jnp.issubdtype(jnp.result_type(one), jnp.integer):
            raise wrong_dtype(op, "the shift", jnp.result_type(one), "integers")
    shape = (len(raw),) if several else jnp.shape(raw)
    if shape not in ((), (1,), (count,)):
        raise bad_value(op, f"the shift has shape {shape}", f"expected one integer, or {count}: one for each axis")
    return raw


def one_name(op: str, axis: AxisSelector) -> str:
    """The name of one axis, or an error if `axis` is anything but an Axis or a name."""
    if isinstance(axis, Axis):
        return axis.name
    if not isinstance(axis, str):
        raise not_an_axis(op, axis)
    return axis


def check_size(op: str, axis: Axis, size: int, remedy: str = "An Axis must have the size of what it names.") -> None:
    """Raise a ValueError unless an Axis has the size of the dimension that it is to name."""
    if axis.size != size:
        raise size_mismatch(op, axis.name, axis.size, size, remedy)


def check_distinct(op: str, names: tuple[str, ...]) -> None:
    """Raise a ValueError if a name occurs twice."""
    if len(set(names)) != len(names):
        raise duplicate_axes(op, names)
