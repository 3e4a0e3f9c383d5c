"""Raw arrays with names: those in a field of a module that was declared with `haliax.field(axis_names=...)`."""

from __future__ import annotations

import dataclasses
from typing import Any

from jax.tree_util import DictKey, GetAttrKey, SequenceKey, keystr

from haliax._src.array_base import normalize_names
from haliax._src.errors import bad_value

Path = tuple[Any, ...]


def declared_names(op: str, tree: Any, path: Path) -> tuple[str, ...] | None:
    """The names of the axes of the raw array that is the value of a field.

    Args:
        op: The operation, for error messages.
        tree: A pytree.
        path: Where in it the array is.

    Returns:
        The names that its field declares; None if it is in no field, or in one that declares none.
    """
    owner = tree
    for key in path[:-1]:
        owner = _child(owner, key)
    fields = dataclasses.fields(owner) if path and dataclasses.is_dataclass(owner) else ()
    declared = next((f.metadata.get("axis_names") for f in fields if GetAttrKey(f.name) == path[-1]), None)
    return None if declared is None else normalize_names(op, declared)


def checked_names(op: str, tree: Any, path: Path, rank: int) -> tuple[str, ...] | None:
    """`declared_names` for an array of this rank.

    Raises:
        ValueError: If there are fewer or more names than dimensions.
    """
    names = declared_names(op, tree, path)
    if names is not None and len(names) != rank:
        given = f"{keystr(path)} has rank {rank}, and its field the axis names ({', '.join(names)})"
        raise bad_value(op, given, "expected one for each dimension")
    return names


def fitting_names(op: str, tree: Any, path: Path, rank: int) -> tuple[str, ...] | None:
    """`declared_names` for an array of this rank; None for another rank, such as that of a stack of modules."""
    names = declared_names(op, tree, path)
    return names if names is not None and len(names) == rank else None


def _child(node: Any, key: Any) -> Any:
    """What a key of a path leads to; None where a class of its own has numbered its children."""
    match key:
        case GetAttrKey(name=name):
            return getattr(node, name, None)
        case SequenceKey(idx=index):
            return node[index]
        case DictKey(key=name):
            return node[name]
    return None
