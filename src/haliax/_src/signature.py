"""What a call looks like to `named_jit`: which leaves of its arguments are traced, and what the static ones are.

As in `equinox.filter_jit`, arrays are traced and everything else is static. Paths are worked out only when an error or
a report needs them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import keystr

from haliax._src.array_base import NamedArrayBase
from haliax._src.errors import problem
from haliax._src.jax_compat import ArrayImpl

TRACED = (jax.Array, np.ndarray, np.generic, jax.Ref)
"""Leaves of these types are arrays, whose values are not part of the program."""

ABSTRACT = (*TRACED, jax.ShapeDtypeStruct)
"""The same, ahead of time."""

# nearly all leaves of nearly all calls have one of these types: one look at the set of types spares a look at each leaf
_PLAIN = frozenset({ArrayImpl, np.ndarray})

Statics = tuple[tuple[int, Any], ...]
"""The position and the key of each static leaf."""


def split_leaves(leaves: list[Any], traced: tuple[type, ...] = TRACED) -> tuple[list[Any], Statics]:
    """Part the leaves of a call into arrays and static values.

    Args:
        leaves: All leaves, in order.
        traced: The types of arrays.

    Returns:
        The arrays, and the static leaves as keys that tell different programs apart.
    """
    if _PLAIN.issuperset(map(type, leaves)):
        return leaves, ()
    arrays, statics = [], []
    for position, leaf in enumerate(leaves):
        if type(leaf) in _PLAIN or isinstance(leaf, traced):
            arrays.append(leaf)
        else:
            statics.append((position, static_key(leaf)))
    return arrays, tuple(statics)


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
    """Undo `split_leaves`, with the static values themselves in place of their keys."""
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


def named_paths(root: str, tree: Any) -> list[tuple[str, tuple[str, ...] | None]]:
    """For each leaf of a pytree, its path and, for the array of a NamedArray, the axis names.

    Args:
        root: What the paths start with.
        tree: Any pytree.

    Returns:
        One (path, names or None) for each leaf, in order.
    """
    found: list[tuple[str, tuple[str, ...] | None]] = []
    flat, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: isinstance(x, NamedArrayBase))
    for path, leaf in flat:
        names = leaf.axis_names if isinstance(leaf, NamedArrayBase) else None
        found += [(root + keystr(path), names)] * len(jax.tree_util.tree_leaves(leaf))
    return found


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
