"""An index in two parts: its form, which decides on the axes of the result, and its numbers.

The form is made of names and sizes, so that a plan can be looked up for it, and a compiled program serves all numbers.
The plan says which names the result has and in which order. That is the order of numpy: the axes of the index arrays
are in the place of the axes indexed if those are neighbours, otherwise in front.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from haliax._src.array_base import NamedArrayBase, wrap
from haliax._src.broadcasting import common_axes
from haliax._src.dslice import dslice
from haliax._src.errors import bad_value, size_mismatch
from haliax._src.index_items import Items
from haliax._src.windows import Inside

Names = tuple[str, ...]
Sizes = tuple[int, ...]


class Form(NamedTuple):
    """All of an item but its numbers."""

    dim: int
    kind: str
    """`place`, of an integer; `slice`, of neighbours; `steps`, of a slice with steps; `window`, of a `dslice`;
    `inside`, of one that lies inside the array; `array`, of places."""
    size: Any = None
    """How many elements a slice or a window has; the bounds of a slice with steps."""
    axes: Names = ()
    """The axes of an array of places, or of the starts of windows."""
    sizes: Sizes = ()
    """The sizes of those axes."""


class Plan(NamedTuple):
    """The names at each step of an indexing operation."""

    paired: Names
    """Axes that index arrays share with the array: batch axes of the operation on the rest."""
    block: Names
    """The other axes of index arrays, which replace the axes indexed."""
    inner: Names
    """The axes of the result but for the paired ones, in the order in which JAX leaves them."""
    result: Names
    """The axes of the result, in the order promised."""


# form and numbers ---------------------------------------------------------------------------------------------------


def take_apart(items: Items, sizes: Sizes) -> tuple[tuple[Form, ...], list[Any]]:
    """The form of an index, and for each item its number: a place, a start, an array of them, or None.

    Args:
        items: An index in normal form.
        sizes: The shape of the array to be indexed.
    """
    forms, numbers = [], []
    for dim, item in items.items():
        form, number = _parts(dim, item, sizes[dim])
        forms.append(form)
        numbers.append(number)
    return tuple(forms), numbers


def _parts(dim: int, item: Any, size: int) -> tuple[Form, Any]:
    if isinstance(item, int):
        return Form(dim, "place"), min(max(item, ~size), size)  # as far outside as it was, and in 32 bits
    if isinstance(item, NamedArrayBase):
        return Form(dim, "array", None, item.axis_names, item._sizes()), item
    if isinstance(item, slice):
        start, stop, step = item.indices(size)
        if step == 1:
            return Form(dim, "slice", max(stop - start, 0)), start
        return Form(dim, "steps", (item.start, item.stop, item.step)), None
    if isinstance(item, dslice):
        start = item.start
        if isinstance(start, NamedArrayBase):
            return Form(dim, "window", item.size, start.axis_names, start._sizes()), start
        if isinstance(item, Inside) or (isinstance(start, int) and 0 <= start <= size - item.size):
            return Form(dim, "inside", item.size), start
        return Form(dim, "window", item.size), start
    return Form(dim, "place"), item


def put_together(forms: Sequence[Form], numbers: Sequence[Any]) -> Items:
    """The items that `take_apart` has taken apart; arrays may have lost their names."""
    return {form.dim: _item(form, number) for form, number in zip(forms, numbers, strict=True)}


def _item(form: Form, number: Any) -> Any:
    if form.axes and not isinstance(number, NamedArrayBase):
        number = wrap(number, form.axes)
    match form.kind:
        case "slice":
            return slice(number, number + form.size)
        case "steps":
            return slice(*form.size)
        case "window":
            return dslice(number, form.size)
        case "inside":
            return Inside(number, form.size)
    return number


# plan ---------------------------------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    """One indexed dimension, as the plan sees it: the axes of its index, and whether it keeps its own."""

    dim: int
    axes: Names
    sizes: Sizes
    kept: bool


@functools.lru_cache(maxsize=4096)
def make_plan(op: str, names: Names, sizes: Sizes, forms: tuple[Form, ...], spread: bool = False) -> Plan:
    """The plan for an index of some form.

    Args:
        op: The operation, for error messages.
        names: The axes of the array.
        sizes: Their sizes.
        forms: The form of the index.
        spread: Whether each window is to be an array of places; those with many starts always are.

    Raises:
        ValueError: If sizes do not agree, or an axis is sliced and an axis of an index array.
    """
    entries = [_entry(form, names, spread) for form in forms if form.kind not in ("slice", "steps")]
    union = _common(op, entries)
    gone = [entry.dim for entry in entries if not entry.kept]
    kept = [name for dim, name in enumerate(names) if dim not in gone]
    of_arrays = {name for entry in entries if not entry.kept for name in entry.axes}
    paired = tuple(name for name in union if name in of_arrays and name in kept)
    block = tuple(name for name in union if name in of_arrays and name not in kept)
    _check_paired(op, paired, union, dict(zip(names, sizes, strict=True)), {names[form.dim]: form for form in forms})

    rest = tuple(name for name in names if name not in paired)
    inner = _placed(block, rest, sorted(rest.index(names[dim]) for dim in gone))
    advanced = {entry.dim for entry in entries} | {names.index(name) for name in paired}
    return Plan(paired, block, inner, _placed(tuple(union), names, sorted(advanced)))


def _entry(form: Form, names: Names, spread: bool) -> _Entry:
    if form.kind in ("window", "inside"):
        axes, sizes = (*form.axes, names[form.dim]), (*form.sizes, form.size)
        return _Entry(form.dim, axes, sizes, kept=not (spread or form.axes))
    return _Entry(form.dim, form.axes, form.sizes, kept=False)


def _common(op: str, entries: Sequence[_Entry]) -> dict[str, int]:
    """The axes of all index arrays and windows, in the order in which they go into the result."""
    arrays = [wrap(jax.ShapeDtypeStruct(entry.sizes, np.int32), entry.axes) for entry in entries if entry.axes]
    return {axis.name: axis.size for axis in common_axes(op, arrays, require_subset=False)} if arrays else {}


def _check_paired(op: str, paired: Names, union: dict[str, int], sizes: dict[str, int], forms: dict[str, Form]) -> None:
    """Raise unless an axis that an index array shares with the array has the size that this one has there."""
    for name in paired:
        form = forms.get(name)
        if form is not None and form.kind in ("slice", "steps"):
            given = f"axis {name!r} is sliced, and an axis of an index array"
            raise bad_value(op, given, "expected one of both", "Slice the array first.")
        size = sizes[name] if form is None else form.size
        if union[name] != size:
            remedy = "An index along another axis must have the size of this one."
            raise size_mismatch(op, name, union[name], size, remedy)


def _placed(block: Names, names: Names, dims: Sequence[int]) -> Names:
    """`names` with a block in the place of the dimensions `dims` if they are neighbours, otherwise in front."""
    rest = tuple(name for dim, name in enumerate(names) if dim not in dims)
    together = bool(dims) and list(dims) == list(range(dims[0], dims[0] + len(dims)))
    place = dims[0] if together else 0
    return (*rest[:place], *block, *rest[place:])
