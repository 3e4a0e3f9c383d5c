"""Mutable named arrays: `jax.Ref` by name.

A `NamedRef` is a place in memory. `ref[...]` reads it and `ref[...] = value` writes to it, with the index of `x[...]`
and `x.at[...]`; `ref.slice(...)` is a view of a part of it. What JAX can choose in memory, by integers and slices, is
all that is read and written; any other index works on the array that has been read so far.

An integer or a slice in Python must lie inside. What is traced may not: it reads the nearest element, and writes none.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import jax.ref
from jax.sharding import AxisType
from jax.tree_util import GetAttrKey, SequenceKey

from haliax._src.array_base import NamedArrayBase, is_scalar, require_named, wrap
from haliax._src.at import At
from haliax._src.axis import Axis, AxisSelection
from haliax._src.broadcasting import alignment, not_a_scalar
from haliax._src.dslice import dslice
from haliax._src.errors import bad_value, format_shape, problem, size_mismatch, wrong_dtype, wrong_type
from haliax._src.index_items import Index, parse_index
from haliax._src.indexing import getitem
from haliax._src.named_array import NamedArray
from haliax._src.rearrange import permute
from haliax._src.ref_parts import Part, Spot, Window, as_index, as_item, narrowed, size_of, stays, unwindowed

_OP = "NamedRef"


@dataclasses.dataclass(frozen=True, eq=False)
class NamedRef:
    """A place in memory for a named array, or a view of a part of one; made by `new_ref`.

    Args:
        _ref: The place of the whole array.
        _axes: The axes of the whole array.
        _prefix: For each of them, what the view has of it.
    """

    _ref: Any
    _axes: tuple[Axis, ...]
    _prefix: tuple[Part, ...]

    # what it is

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the view."""
        return tuple(
            Axis(axis.name, size_of(part)) for axis, part in zip(self._axes, self._prefix, strict=True) if stays(part)
        )

    @property
    def shape(self) -> Mapping[str, int]:
        """The sizes by axis name."""
        return {axis.name: axis.size for axis in self.axes}

    @property
    def named_shape(self) -> Mapping[str, int]:
        """The sizes by axis name."""
        return self.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._ref.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.axes)

    def resolve_axis(self, axis: AxisSelection) -> Any:
        """The axes of the view that a selection names; see `NamedArray.resolve_axis`."""
        return self._like().resolve_axis(axis)

    def unsafe_buffer_pointer(self) -> int:
        """The address of the whole array in memory."""
        return self._ref.unsafe_buffer_pointer()

    def __repr__(self) -> str:
        return f"NamedRef({self.dtype.name}[{format_shape(self.shape)}])"

    def __reduce__(self) -> NoReturn:
        given = "a place in memory can not be copied or pickled"
        raise TypeError(problem(_OP, given, remedy="Take its value: ref.value()."))

    # what is in it

    def value(self) -> NamedArray:
        """The array that is there now."""
        return self[...]

    def __getitem__(self, index: Index) -> NamedArray:
        """The elements that an index chooses; the index is that of `x[...]`."""
        view, rest = self._choose(index)
        chosen = getitem(view._read(), rest) if rest else view._read()
        return _in_order(self._promised(index, chosen.axis_names), chosen)

    def __setitem__(self, index: Index, value: Any) -> None:
        """Write a named array to the elements that an index chooses, broadcast by name, or a scalar."""
        view, rest = self._choose(index)
        if rest:
            self._swap(index, value)
        else:  # what was there need not be read
            place = view._like()
            view._write(_fitting(place, self._promised(index, place.axis_names), value))

    def __iter__(self) -> NoReturn:
        raise TypeError(problem(_OP, "it can not be iterated over", remedy="Take its value: ref.value()."))

    # views

    def slice(self, selector: Index) -> NamedRef:
        """A view of a part: reads and writes go to this place.

        Args:
            selector: For each of some axes an integer, a slice with a positive step, or a `dslice`. Integers and starts
                may be traced.

        Returns:
            A ref without the axes that have an integer.

        Raises:
            ValueError: If an axis is missing, or part of it can not be a view.
            IndexError: If an integer is out of bounds.
        """
        view, rest = self._choose(selector)
        parts = list(view._prefix)
        for name, item in rest.items():
            dim = view._dim(name)
            part, window = parts[dim], isinstance(item, dslice) and not isinstance(item.start, NamedArrayBase)
            if not window or not isinstance(part, range):
                given = f"the part of axis {name!r} is no view"
                expected = (
                    "expected an integer, a slice with a positive step or one dslice, of an axis without a dslice"
                )
                raise bad_value(f"{_OP}.slice", given, expected, "Index the ref instead: ref[...].")
            parts[dim] = Window(part, item)
        return dataclasses.replace(view, _prefix=tuple(parts))

    def unsliced(self) -> NamedRef:
        """The ref of the whole array."""
        return dataclasses.replace(self, _prefix=tuple(range(axis.size) for axis in self._axes))

    # parts

    def _like(self) -> NamedArray:
        """An array with the axes and the dtype of the view, without elements."""
        axes = self.axes
        struct = jax.ShapeDtypeStruct(tuple(axis.size for axis in axes), self.dtype)
        return wrap(struct, tuple(axis.name for axis in axes))

    def _dim(self, name: str) -> int:
        return next(dim for dim, axis in enumerate(self._axes) if axis.name == name)

    def _choose(self, index: Index) -> tuple[NamedRef, dict[str, Any]]:
        """The view of what JAX can choose in memory, and the rest of the index, which is for the array there."""
        like = self._like()
        items = parse_index(_OP, like, index)
        rest = {like.axis_names[dim]: item for dim, item in items.items()}
        if any(isinstance(getattr(item, "start", item), NamedArrayBase) for item in rest.values()):
            return self, rest  # where the axes of index arrays go depends on the whole index
        parts = list(self._prefix)
        for name, item in list(rest.items()):
            part = narrowed(_OP, name, parts[self._dim(name)], item)
            if part is not None:
                parts[self._dim(name)] = part
                del rest[name]
        return dataclasses.replace(self, _prefix=tuple(parts)), rest

    def _promised(self, index: Index, names: tuple[str, ...]) -> tuple[str, ...]:
        """The axes of the elements that an index chooses, in the order of `x[index]`."""
        items = parse_index(_OP, self._like(), index).values()
        # a dslice and another item are in one block; otherwise the axes that are left are in the order they had
        if sum(not isinstance(item, slice) for item in items) < 2 or not any(isinstance(i, dslice) for i in items):
            return names
        return jax.eval_shape(lambda x: getitem(x, index), self._like()).axis_names

    # memory

    def _place(self) -> tuple[Any, tuple[int, ...]]:
        """What the view has of the whole array, as an index of `jax.Ref`, and the dimensions that it leaves over."""
        sizes = tuple(axis.size for axis in self._axes)
        if self._ref.shape != sizes:
            given = f"a ref with {format_shape({axis.name: axis.size for axis in self._axes})} holds {self._ref.shape}"
            remedy = "A transformation has changed it: let the function use the ref, rather than be given it."
            raise bad_value(_OP, given, "expected one dimension for each axis", remedy)
        return (..., ()) if self._is_whole() else as_index(self._prefix)

    def _is_whole(self) -> bool:
        return self._prefix == tuple(range(axis.size) for axis in self._axes)

    def _windows(self) -> dict[str, dslice]:
        return {
            axis.name: part.window
            for axis, part in zip(self._axes, self._prefix, strict=True)
            if isinstance(part, Window)
        }

    def _read(self) -> NamedArray:
        """The array in the view."""
        windows, whole = self._windows(), self._whole()
        return getitem(whole, windows) if windows else whole

    def _whole(self) -> NamedArray:
        """The array in the view, before windows are taken of it."""
        if self._is_split():
            return getitem(self._everything(), self._items())
        place, ones = self._place()
        kept = {
            axis.name: len(part)
            for axis, part in zip(self._axes, map(unwindowed, self._prefix), strict=True)
            if isinstance(part, range)
        }
        # jax 0.12 refuses an empty slice of a ref, but not of an array
        raw = self._ref[...][place] if 0 in kept.values() else self._ref[place]
        return wrap(jnp.squeeze(raw, ones) if ones else raw, tuple(kept))

    def _write(self, new: NamedArray) -> None:
        """Replace the array in the view."""
        windows = self._windows()
        if windows:
            new = At(self._whole())[windows].set(new)
        if self._is_split():
            self._ref[...] = At(self._everything())[self._items(writing=True)].set(new).array
            return
        if 0 in new.array.shape:  # as above
            return
        raw = new.array
        inside = [part.inside for part in self._prefix if isinstance(part, Spot)]
        if inside:
            raw = jnp.where(functools.reduce(jnp.logical_and, inside), raw, self._whole().array)
        place, ones = self._place()
        self._ref[place] = jnp.expand_dims(raw, ones) if ones else raw

    # JAX can not choose a part of a ref that is split over explicit mesh axes

    def _is_split(self) -> bool:
        sharding = jax.typeof(self._ref).sharding
        return AxisType.Explicit in sharding.mesh.axis_types and not self._is_whole()

    def _everything(self) -> NamedArray:
        return wrap(self._ref[...], tuple(axis.name for axis in self._axes))

    def _items(self, *, writing: bool = False) -> dict[str, Any]:
        """What the view has of the whole array, as an index of that; a place that was not inside is not written to."""
        return {
            axis.name: part.or_outside(axis.size) if writing and isinstance(part, Spot) else as_item(part)
            for axis, part in zip(self._axes, self._prefix, strict=True)
        }

    def _swap(self, index: Index, value: Any) -> NamedArray:
        """Write to the elements that an index chooses; what was there."""
        view, rest = self._choose(index)
        old = view._read()
        chosen = getitem(old, rest) if rest else old
        names = self._promised(index, chosen.axis_names)
        update = _fitting(chosen, names, value)
        view._write(At(old)[rest].set(update) if rest else update)
        return _in_order(names, chosen)


# --- Functions ---


def new_ref(value: NamedArray) -> NamedRef:
    """Make a place in memory that holds a named array.

    Args:
        value: The array, which is copied.

    Returns:
        A ref with the same axes.

    Source:
        `jax.new_ref`
    """
    require_named("new_ref", value)
    return NamedRef(jax.new_ref(value.array), value.axes, tuple(map(range, value._sizes())))


def get(ref: Any, idx: Index = ...) -> Any:
    """Read from a ref: `ref[idx]`.

    Args:
        ref: A `NamedRef`, or a `jax.Ref`.
        idx: What to read of it; all if `...`.

    Returns:
        A named array; a raw one for a `jax.Ref`.

    Source:
        `jax.ref.get`
    """
    return ref[idx] if isinstance(ref, NamedRef) else jax.ref.get(_raw("get", ref), idx)


def swap(ref: Any, idx: Index, value: Any) -> Any:
    """Write to a ref, and read what was there before.

    Args:
        ref: A `NamedRef`, or a `jax.Ref`.
        idx: Where to write.
        value: What to write: a named array, broadcast by name, or a scalar.

    Returns:
        A named array; a raw one for a `jax.Ref`.

    Source:
        `jax.ref.swap`
    """
    return ref._swap(idx, value) if isinstance(ref, NamedRef) else jax.ref.swap(_raw("swap", ref), idx, value)


def freeze(ref: Any) -> Any:
    """Take the array out of a ref, which must not be used any more.

    Args:
        ref: A `NamedRef`, or a `jax.Ref`.

    Returns:
        A named array, of a view its part; a raw one for a `jax.Ref`.

    Source:
        `jax.freeze`
    """
    if not isinstance(ref, NamedRef):
        return jax.freeze(_raw("freeze", ref))
    part = None if ref._is_whole() else ref.value()
    whole = jax.freeze(ref._ref)
    return wrap(whole, tuple(axis.name for axis in ref._axes)) if part is None else part


def _raw(op: str, ref: Any) -> Any:
    if not isinstance(ref, jax.Ref):
        raise wrong_type(op, "ref", ref, "a NamedRef or a jax.Ref", "Make one with haliax.new_ref(array).")
    return ref


# --- Values ---


def _in_order(names: tuple[str, ...], array: NamedArray) -> NamedArray:
    return array if names == array.axis_names else permute(array, tuple(map(array.axis_names.index, names)))


def _fitting(place: NamedArray, names: tuple[str, ...], value: Any) -> NamedArray:
    """A value with the axes and the dtype of the place where it goes.

    Args:
        place: An array with those axes and that dtype.
        names: The same axes in the order that a user sees, which is that of an unnamed value.
        value: A named array, a scalar, or an unnamed array of the very shape.
    """
    shape, dtype = place.shape, place.array.dtype
    if not isinstance(value, NamedArrayBase):
        if not is_scalar(value) and jnp.shape(value) != tuple(shape[name] for name in names):
            raise not_a_scalar(_OP, value)
        value = wrap(value, () if is_scalar(value) else names)
    for name, size in value.shape.items() if value.axis_names else ():
        if name not in shape:
            given = f"the value has {format_shape(value.shape)}"
            raise bad_value(_OP, given, f"expected axes among those of the place: {format_shape(shape)}")
        if size != shape[name]:
            raise size_mismatch(_OP, name, size, shape[name], "The value must have the size that the place has.")
    raw = value.array
    if getattr(raw, "dtype", None) != dtype and jnp.result_type(dtype, raw) != dtype:
        raise wrong_dtype(_OP, "the value", jnp.result_type(raw), f"what {dtype} can hold", "Use value.astype(...).")
    raw = alignment(value.axis_names, place.axis_names)(jnp.asarray(raw, dtype))
    return wrap(jnp.broadcast_to(raw, place.array.shape), place.axis_names)


# --- As a pytree ---


def _flatten(ref: NamedRef) -> tuple[tuple[tuple[Any, Any], ...], Any]:
    """The ref and the traced places are children; the axes, and places that are known, are static."""
    leaves, treedef = jax.tree.flatten(ref._prefix)
    traced = [(SequenceKey(i), leaf) for i, leaf in enumerate(leaves) if not isinstance(leaf, int | range)]
    static = tuple(leaf if isinstance(leaf, int | range) else None for leaf in leaves)
    return ((GetAttrKey("_ref"), ref._ref), *traced), (ref._axes, treedef, static)


def _unflatten(aux: Any, children: Any) -> NamedRef:
    axes, treedef, static = aux
    ref, *traced = children
    places = iter(traced)
    return NamedRef(ref, axes, treedef.unflatten([next(places) if leaf is None else leaf for leaf in static]))


jax.tree_util.register_pytree_with_keys(NamedRef, _flatten, _unflatten)
