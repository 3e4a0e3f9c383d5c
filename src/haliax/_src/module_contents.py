"""What a module holds: its leaves, the values of its static fields, and arrays where no pytree function finds them."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.tree_util import GetAttrKey, KeyPath, keystr, tree_flatten_with_path

from haliax._src.array_base import NamedArrayBase, raw_array_or_scalar

_DEPTH = 4  # of objects and functions inside each other, in the search for hidden arrays


@dataclasses.dataclass(frozen=True)
class Contents:
    """What was found in a tree, each with its path.

    Args:
        leaves: The leaves, of which each NamedArray is one.
        statics: The values of static fields.
    """

    leaves: list[tuple[str, Any]] = dataclasses.field(default_factory=list)
    statics: list[tuple[str, Any]] = dataclasses.field(default_factory=list)


def contents_of(tree: Any) -> Contents:
    """The leaves and static values of a pytree and of all modules in it."""
    found = Contents()
    _collect(tree, (), found)
    return found


def _collect(node: Any, path: KeyPath, found: Contents) -> None:
    children = [] if isinstance(node, NamedArrayBase) else _children(node)
    if children is None or isinstance(node, NamedArrayBase):
        found.leaves.append((keystr(path), node))
        return
    if dataclasses.is_dataclass(node):
        dynamic = {key[0].name for key, _ in children if isinstance(key[0], GetAttrKey)}
        for field in dataclasses.fields(node):
            if field.name not in dynamic and hasattr(node, field.name):
                found.statics.append((keystr((*path, GetAttrKey(field.name))), getattr(node, field.name)))
    for key, child in children:
        _collect(child, (*path, *key), found)


def _children(node: Any) -> list[tuple[KeyPath, Any]] | None:
    """The children of one node with their keys; None if it is a leaf."""
    children, _ = tree_flatten_with_path(node, is_leaf=lambda x: x is not node)
    return None if children and children[0][0] == () else children


def is_array(x: Any) -> bool:
    """Whether `x` is an array that holds values, or a traced one."""
    return isinstance(x, jax.Array | np.ndarray)


def arrays_in(value: Any) -> Iterator[tuple[str, Any]]:
    """The arrays in a value and the path of each: as leaves, or hidden in functions and objects."""
    for path, leaf in tree_flatten_with_path(value, is_leaf=lambda x: isinstance(x, NamedArrayBase))[0]:
        if is_array(raw_array_or_scalar(leaf)):
            yield keystr(path), leaf
        else:
            yield from ((keystr(path) + inner, array) for inner, array in hidden_arrays(leaf))


def hidden_arrays(leaf: Any) -> Iterator[tuple[str, Any]]:
    """The JAX arrays that a leaf holds and no pytree function finds: in closures, partials and other objects.

    Arrays of numpy in such places are most often data.
    """
    yield from _hidden(leaf, "", _DEPTH, set())


def _hidden(value: Any, path: str, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if depth == 0 or id(value) in seen or isinstance(value, type | ModuleType | Tracer | np.ndarray | jax.Array):
        return
    seen.add(id(value))
    for name, held in _held_by(value).items():
        for inner, leaf in tree_flatten_with_path(held, is_leaf=lambda x: isinstance(x, NamedArrayBase))[0]:
            where = path + name + keystr(inner)
            if isinstance(raw_array_or_scalar(leaf), jax.Array):
                yield where, leaf
            else:
                yield from _hidden(leaf, where, depth - 1, seen)


def _held_by(value: Any) -> Mapping[str, Any]:
    """What a function or an object holds, by a word for where."""
    if isinstance(value, functools.partial):
        return {"(function)": value.func, "(arguments)": value.args, "(keywords)": value.keywords}
    if inspect.ismethod(value):
        return {"(self)": value.__self__, "(function)": value.__func__}
    if inspect.isfunction(value):
        held = dict(zip(value.__code__.co_freevars, map(_cell, value.__closure__ or ()), strict=True))
        defaults = {"(defaults)": value.__defaults__, "(keyword defaults)": value.__kwdefaults__}
        return {f"({name})": inside for name, inside in held.items()} | defaults
    slots = {name: getattr(value, name, None) for name in getattr(type(value), "__slots__", ()) if name[:2] != "__"}
    held = {f".{name}": inside for name, inside in {**slots, **getattr(value, "__dict__", {})}.items()}
    wrapped = getattr(value, "__wrapped__", None)  # of jitted functions, which have no attributes to see
    return held if wrapped is None else {".__wrapped__": wrapped} | held


def _cell(cell: Any) -> Any:
    """What a variable of a closure holds; nothing if it has not been assigned yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
