"""Pytrees whose leaves are named arrays, and stacks of layers seen as their layers.

`jax.tree` looks into a named array and finds a raw one; here a `NamedArray` is a leaf, with its names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax

from haliax._src.array_base import NamedArrayBase
from haliax._src.errors import check_callable
from haliax._src.jax_helpers import is_jax_array_like

IsLeaf = Callable[[Any], bool]


def is_named_array(leaf: Any) -> bool:
    """Whether `leaf` is a NamedArray."""
    return isinstance(leaf, NamedArrayBase)


def is_jax_or_hax_array_like(x: Any) -> bool:
    """Whether `x` is a NamedArray, or has a shape and a dtype."""
    return is_named_array(x) or is_jax_array_like(x)


def _or_named(is_leaf: IsLeaf | None) -> IsLeaf:
    """The condition for a leaf: a named array, or what `is_leaf` accepts."""
    return is_named_array if is_leaf is None else lambda x: is_named_array(x) or is_leaf(x)


def tree_map(fn: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Apply a function to the leaves of pytrees, of which each NamedArray is one.

    Args:
        fn: Called with a leaf of `tree` and what stands in its place in each of `rest`.
        tree: A pytree.
        *rest: Pytrees with the structure of `tree`, or ones that go on below its leaves.
        is_leaf: What else to take as a leaf.

    Returns:
        A pytree with the structure of `tree` and the results.

    Raises:
        TypeError: If `fn` can not be called.
        ValueError: If the structures do not fit.

    Source:
        `jax.tree.map`
    """
    check_callable("tree.map", fn)
    return jax.tree.map(fn, tree, *rest, is_leaf=_or_named(is_leaf))


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a pytree, of which each NamedArray is one; see `jax.tree.leaves`.

    Args:
        tree: A pytree.
        is_leaf: What is a leaf besides named arrays.

    Returns:
        A list of leaves.

    Source:
        `jax.tree.leaves`
    """
    return jax.tree.leaves(tree, is_leaf=_or_named(is_leaf))


def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], Any]:
    """The leaves of a pytree, of which each NamedArray is one, and its structure; see `jax.tree.flatten`.

    Args:
        tree: A pytree.
        is_leaf: What is a leaf besides named arrays.

    Returns:
        A list of leaves, and the structure.

    Source:
        `jax.tree.flatten`
    """
    return jax.tree.flatten(tree, is_leaf=_or_named(is_leaf))


def tree_structure(tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """The structure of a pytree in which each NamedArray is a leaf; see `jax.tree.structure`.

    Args:
        tree: A pytree.
        is_leaf: What is a leaf besides named arrays.

    Returns:
        The structure.

    Source:
        `jax.tree.structure`
    """
    return jax.tree.structure(tree, is_leaf=_or_named(is_leaf))


def tree_unflatten(treedef: Any, leaves: Iterable[Any]) -> Any:
    """The pytree with the given structure and leaves; see `jax.tree.unflatten`.

    Args:
        treedef: The structure.
        leaves: As many leaves as it has.

    Returns:
        The pytree.

    Source:
        `jax.tree.unflatten`
    """
    return jax.tree.unflatten(treedef, leaves)


def is_layer_stack(x: Any) -> bool:
    """Whether `x` keeps many layers as one whose arrays have one more axis, and so has a method `map_layers`.

    `stack.map_layers(fn, *others)` is the stack of `fn(layer, *other_layers)` for each layer, computed all at once.
    State dicts also use `stack.stacked`, the layers as one, whose arrays have the axis `stack.Block` in front, and
    `stack.get_layer(i)` and `stack.unstacked()`.
    """
    return hasattr(type(x), "map_layers")


def scan_aware_tree_map(fn: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """`tree_map` that applies the function to each layer of a stack of layers, however deep the stacks are nested.

    Args:
        fn: Called with leaves; those of a stack come without the axis of its layers.
        tree: A pytree, perhaps with stacks such as `haliax.nn.Stacked` in it.
        *rest: Pytrees with the structure of `tree`.
        is_leaf: What else to take as a leaf.

    Returns:
        A pytree with the structure of `tree` and the results; those of a stack are stacked again.

    Source:
        `jax.tree.map`, `jax.vmap`
    """
    check_callable("tree.scan_aware_map", fn)

    def on_layers(*layers: Any) -> Any:
        return scan_aware_tree_map(fn, *layers, is_leaf=is_leaf)

    def on_leaf(leaf: Any, *others: Any) -> Any:
        if is_layer_stack(leaf) and not (is_leaf and is_leaf(leaf)):
            return leaf.map_layers(on_layers, *others)
        return fn(leaf, *others)

    return tree_map(on_leaf, tree, *rest, is_leaf=lambda x: is_layer_stack(x) or (is_leaf is not None and is_leaf(x)))
