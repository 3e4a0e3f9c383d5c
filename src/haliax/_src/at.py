"""Updates of elements chosen by position, without mutation: `x.at["batch", 0].set(...)`.

The index is the one of `haliax._src.indexing`. Windows are read, updated as arrays of their own, and written back, so
that one inside the array costs a slice and an update in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Never, TypedDict, Unpack

from haliax._src.array_base import A, NamedArrayBase, is_scalar
from haliax._src.at_index import Step, at_index, step
from haliax._src.broadcasting import as_scalar, not_a_scalar
from haliax._src.errors import bad_value, check_choice, format_shape, nearest, problem, size_mismatch, wrong_type
from haliax._src.index_items import Index, Items, parse_index
from haliax._src.index_plan import Plan
from haliax._src.index_program import carry_out
from haliax._src.indexing import read, split_windows, spread_windows
from haliax._src.windows import read_windows, write_windows


class Options(TypedDict, total=False):
    """What is known of the indices, and what happens out of bounds; see `jax.numpy.ndarray.at`."""

    indices_are_sorted: bool
    unique_indices: bool
    mode: Any


class GetOptions(Options, total=False):
    """`Options`, and what an element out of bounds reads as under `mode="fill"`."""

    fill_value: Any


class At(Generic[A]):
    """What `x.at` is: index it to choose the elements to update."""

    __slots__ = ("_array",)

    def __init__(self, array: A):
        """Remember the array."""
        self._array = array

    def __getitem__(self, index: Index) -> IndexedUpdate[A]:
        """The elements to update; the index is that of `x[...]`."""
        return IndexedUpdate(self._array, parse_index("at", self._array, index))

    def __getattr__(self, name: str) -> Never:
        """Without an index there is nothing here; a method of `IndexedUpdate` was meant, most likely."""
        if hasattr(IndexedUpdate, name) and not name.startswith("_"):
            given = f"no elements were chosen to {name}"
            raise AttributeError(problem("at", given, remedy=f'Write x.at["axis", index].{name}(...).'))
        raise AttributeError(problem("at", f"there is no {name!r}"))


class IndexedUpdate(Generic[A]):
    """Chosen elements of an array, about to be read or updated.

    Each method that updates takes a scalar, or a named array whose axes are among those of the elements, and returns
    the whole array with the elements updated; the array itself stays as it is. Elements chosen more than once are
    updated more than once, `set` in no certain order. Updates out of bounds are dropped, unless `mode` says otherwise.

    The options are those of `jax.numpy.ndarray.at`.
    """

    __slots__ = ("_array", "_items")

    def __init__(self, array: A, items: Items):
        """Remember the array and the index in normal form."""
        self._array = array
        self._items = items

    def get(self, **options: Unpack[GetOptions]) -> A:
        """The elements themselves."""
        _check_options("at.get", options, (*_OPTIONS, "fill_value"))
        fill_value = options.get("fill_value")
        if fill_value is not None:
            options["fill_value"] = as_scalar("at.get", fill_value, "fill_value")
        return read("at.get", self._array, self._items, step("get", options))

    def set(self, update: Any, **options: Unpack[Options]) -> A:
        """Replace the elements."""
        return self._update("set", update, options)

    def add(self, update: Any, **options: Unpack[Options]) -> A:
        """Add to the elements."""
        return self._update("add", update, options)

    def subtract(self, update: Any, **options: Unpack[Options]) -> A:
        """Subtract from the elements."""
        return self._update("subtract", update, options)

    def multiply(self, update: Any, **options: Unpack[Options]) -> A:
        """Multiply the elements."""
        return self._update("multiply", update, options)

    mul = multiply

    def divide(self, update: Any, **options: Unpack[Options]) -> A:
        """Divide the elements."""
        return self._update("divide", update, options)

    def power(self, update: Any, **options: Unpack[Options]) -> A:
        """Raise the elements to a power."""
        return self._update("power", update, options)

    def min(self, update: Any, **options: Unpack[Options]) -> A:
        """Replace the elements that are larger."""
        return self._update("min", update, options)

    def max(self, update: Any, **options: Unpack[Options]) -> A:
        """Replace the elements that are smaller."""
        return self._update("max", update, options)

    def apply(self, func: Callable[[Any], Any], **options: Unpack[Options]) -> A:
        """Replace each element by what an elementwise function of raw arrays makes of it."""
        _check_options("at.apply", options, _OPTIONS)
        if not callable(func):
            raise wrong_type("at.apply", "func", func, "a function of raw arrays")
        return self._update("apply", 0, {**options, "func": func})

    def _update(self, method: str, update: Any, options: Mapping[str, Any]) -> A:
        """The array with the elements updated by a step."""
        if method != "apply":
            _check_options(f"at.{method}", options, _OPTIONS)
        if not isinstance(update, NamedArrayBase) and not is_scalar(update):
            raise not_a_scalar(f"at.{method}", update, "the update")
        return carry_out(_write, f"at.{method}", self._array, self._items, step(method, options), update)


_OPTIONS = ("indices_are_sorted", "unique_indices", "mode")
_MODES = ("clip", "drop", "fill", "promise_in_bounds", "wrap")


def _check_options(op: str, options: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise unless all options are known, and the mode is one."""
    for name in options:
        if name not in known:
            raise TypeError(
                problem(op, f"no option {name!r}", f"the options are {', '.join(known)}", nearest(name, known))
            )
    if isinstance(options.get("mode"), str):
        check_choice(op, "mode", options["mode"], _MODES)


def _write(op: str, array: A, items: Items, plan: Plan, step: Step, update: Any) -> A:
    items = spread_windows(array, items, every=step.has_mode)
    update = _fitting_update(op, array, items, plan.result, update)
    windows, rest = split_windows(items)
    inside = read_windows(array.array, windows) if windows else array.array
    names = array.axis_names
    updated = at_index(step, inside, names, rest, plan, names, update)
    return array.like(write_windows(array.array, windows, updated) if windows else updated, names)


def _fitting_update(op: str, array: NamedArrayBase, items: Items, result: tuple[str, ...], update: Any) -> Any:
    """An update that is known to fit: a named array, or a scalar without its wrapping."""
    if not isinstance(update, NamedArrayBase):
        return update
    if not update.axis_names:
        return update.array
    sizes = {name: _size_of(array, items, name) for name in result}
    for name, size in update.shape.items():
        if name not in sizes:
            given = f"the update has {format_shape(update.shape)}"
            raise bad_value(op, given, f"expected axes among those of the elements: {format_shape(sizes)}")
        if size != sizes[name]:
            raise size_mismatch(op, name, size, sizes[name], "The update must have the size that the elements have.")
    return update


def _size_of(array: NamedArrayBase, items: Items, name: str) -> int:
    """The size of one axis of the elements that an index chooses."""
    for item in items.values():
        if isinstance(item, NamedArrayBase) and name in item.axis_names:
            return item.shape[name]
    dim = array.axis_names.index(name)
    item, size = items.get(dim), array._sizes()[dim]
    if isinstance(item, slice):
        return len(range(*item.indices(size)))
    return size if item is None else item.size
