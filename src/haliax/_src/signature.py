"""What a call looks like to `named_jit`: which leaves of its arguments are traced, and what the static ones are.

As in `equinox.filter_jit`, arrays are traced and everything else is static. Paths are worked out only when an error or
a report needs them.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import default_registry, keystr, tree_structure, treedef_tuple

from haliax._src.array_base import NamedArrayBase
from haliax._src.declared_axes import declared_names, fitting_names
from haliax._src.errors import problem

TRACED = (jax.Array, np.ndarray, np.generic, jax.Ref)
"""Leaves of these types are arrays, whose values are not part of the program."""

ABSTRACT = (*TRACED, jax.ShapeDtypeStruct)
"""The same, ahead of time."""

# what one wrapper may keep; a program has few kinds of calls
_MOST_PARTITIONS = 1024


_NO_KWARGS = tree_structure({})

flatten = default_registry.flatten
"""`jax.tree_util.tree_flatten`, without the Python function around it."""


def call_tree(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The arguments of a call as one pytree: the positional ones alone if there are no others, for that is quicker."""
    return [args, kwargs] if kwargs else args  # one is a list and one a tuple, which tells them apart


def call_structure(fn: Any, call: Any) -> Any:
    """The structure of `(fn, args, kwargs)`, from that of the function and that of the `call_tree`."""
    args, kwargs = call.children() if call.node_data()[0] is list else (call, _NO_KWARGS)
    return treedef_tuple([fn, args, kwargs])


class Partition:
    """Which leaves of a call are arrays and which are static, as the types of the leaves decide.

    Args:
        leaves: Leaves of these types, in order.
        traced: The types of arrays.
    """

    __slots__ = ("arrays_of", "keys_of", "kinds")

    kinds: tuple[tuple[int, type], ...]
    """The position and the type of each static leaf."""

    arrays_of: Callable[[Sequence[Any]], Sequence[Any]]
    """Picks the arrays."""

    keys_of: Callable[[Sequence[Any]], Any]
    """Picks the static leaves, as a key that together with `kinds` tells different programs apart."""

    def __init__(self, leaves: Sequence[Any], traced: tuple[type, ...] = TRACED):
        static = [i for i, leaf in enumerate(leaves) if not isinstance(leaf, traced)]
        self.kinds = tuple((i, type(leaves[i])) for i in static)
        self.arrays_of = picker(sorted({*range(len(leaves))}.difference(static)))
        # for most types equality is enough
        exact = any(issubclass(kind, float | complex) for _, kind in self.kinds)
        pick = operator.itemgetter(*static) if static and not exact else None
        self.keys_of = pick or (lambda leaves: tuple(static_key(leaves[i]) for i in static))


class Partitions(dict[tuple[type, ...], Partition]):
    """The partitions of the calls of one function by the types of leaves, so that no call looks at each of its leaves.

    Args:
        traced: The types of arrays.
    """

    def __init__(self, traced: tuple[type, ...]):
        super().__init__()
        self._traced = traced

    def add(self, types: tuple[type, ...], leaves: Sequence[Any]) -> Partition:
        """The partition of leaves of these types, from now on."""
        if len(self) >= _MOST_PARTITIONS:
            self.clear()
        partition = self[types] = Partition(leaves, self._traced)
        return partition

    def split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sequence[Any], tuple[Any, ...]]:
        """The arrays of a call; and its structure, the positions and types of static leaves, and a key for these."""
        leaves, treedef = flatten(call_tree(args, kwargs))
        types = tuple(map(type, leaves))
        partition = self.get(types) or self.add(types, leaves)
        return partition.arrays_of(leaves), (treedef, partition.kinds, partition.keys_of(leaves))


def picker(positions: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A function that picks the items at these positions, which are in order."""
    count = len(positions)
    if not count or positions[-1] - positions[0] == count - 1:  # a slice is quicker
        start = positions[0] if count else 0
        return operator.itemgetter(slice(start, start + count))
    return operator.itemgetter(*positions)


def static_key(leaf: Any) -> Any:
    """What two static leaves must share to run the same program.

    Equality is not enough: 1 == 1.0 == True and 0.0 == -0.0 are different programs, and nan != nan is the same one.
    """
    if isinstance(leaf, float):
        return type(leaf), leaf.hex()
    if isinstance(leaf, complex):
        return type(leaf), leaf.real.hex(), leaf.imag.hex()
    return type(leaf), leaf


def merge_leaves(arrays: Sequence[Any], statics: Sequence[tuple[int, Any]]) -> list[Any]:
    """The leaves of a call, from its arrays in order and its static leaves with their positions."""
    leaves = list(arrays)
    for position, leaf in statics:
        leaves.insert(position, leaf)
    return leaves


# names for people ---------------------------------------------------------------------------------------------------


def argument_names(fn: Callable[..., Any], count: int) -> list[str]:
    """The names of the first `count` positional parameters, as an error message calls them."""
    names: list[str] = []
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        parameters = ()
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}[{i}]" for i in range(count - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    return (names + [f"args[{i}]" for i in range(len(names), count)])[:count]


def axis_names_at(op: str, tree: Any, path: tuple[Any, ...], leaf: Any) -> tuple[str, ...] | None:
    """The axis names of a leaf of a pytree: of a named array, or of a raw one in a field that declares them."""
    if isinstance(leaf, NamedArrayBase):
        return leaf.axis_names
    return fitting_names(op, tree, path, len(leaf.shape)) if isinstance(leaf, ABSTRACT) else None


def named_paths(root: str, tree: Any) -> list[tuple[str, tuple[str, ...] | None]]:
    """For each leaf of a pytree, its path and the axis names of a named array, or those that a field declares.

    Args:
        root: What the paths start with.
        tree: Any pytree.

    Returns:
        One (path, names or None) for each leaf, in order.
    """
    found: list[tuple[str, tuple[str, ...] | None]] = []
    flat, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: isinstance(x, NamedArrayBase))
    for path, leaf in flat:
        names = axis_names_at("named_jit", tree, path, leaf)
        found += [(root + keystr(path), names)] * len(jax.tree_util.tree_leaves(leaf))
    return found


def declared_leaves(tree: Any) -> list[bool]:
    """For each leaf of a pytree, whether it is a raw array in a field that declares its axes."""
    found: list[bool] = []
    flat, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: isinstance(x, NamedArrayBase))
    for path, leaf in flat:
        declared = isinstance(leaf, ABSTRACT) and declared_names("named_jit", tree, path) is not None
        found += [declared] * len(jax.tree_util.tree_leaves(leaf))
    return found


def ranks_of(arrays: Sequence[Any], positions: Sequence[int]) -> tuple[int, ...]:
    """How many dimensions the arrays at these positions have."""
    return tuple(len(arrays[i].shape) for i in positions)


def call_paths(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[tuple[str, tuple[str, ...] | None]]:
    """`named_paths` for the leaves of `(args, kwargs)`, called by the names of the parameters."""
    found = []
    for name, value in [*zip(argument_names(fn, len(args)), args, strict=True), *sorted(kwargs.items())]:
        found += named_paths(name, value)
    return found


def unhashable_static(
    name: str, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], cause: TypeError
) -> TypeError:
    """The error for a call with an argument that is neither an array nor hashable.

    Args:
        name: The name of the function.
        fn: The function, for the names of its parameters.
        args: The positional arguments.
        kwargs: The keyword arguments.
        cause: What hashing them raised.
    """
    leaves = jax.tree_util.tree_leaves((args, kwargs))
    culprits = [
        (path, type(leaf).__name__)
        for (path, _), leaf in zip(call_paths(fn, args, kwargs), leaves, strict=True)
        if not isinstance(leaf, ABSTRACT) and not _hashable(leaf)
    ]
    if not culprits:
        return cause
    path, kind = culprits[0]
    return TypeError(
        problem(
            f"named_jit({name})",
            f"{path} is static, for it is no array, and unhashable ({kind})",
            "expected an array, or a static value with hash and equality",
            "Pass an array, or make it hashable (a tuple for a list, a frozen dataclass).",
        )
    )


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True
