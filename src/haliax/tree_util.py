"""Pytrees whose leaves are named arrays: functions with the names of `jax.tree_util`, and a few more."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from haliax._src.array_base import NamedArrayBase
from haliax._src.axis import AxisSelector, axis_name
from haliax._src.errors import check_integer
from haliax._src.jax_helpers import as_key, maybe_rng_split
from haliax._src.tree import (
    scan_aware_tree_map as scan_aware_tree_map,
    tree_flatten as tree_flatten,
    tree_leaves as tree_leaves,
    tree_map as tree_map,
    tree_structure as tree_structure,
    tree_unflatten as tree_unflatten,
)


def hashable_partition(pytree: Any, filter_spec: Any) -> tuple[Any, Hashable]:
    """Split a pytree into the leaves that satisfy a condition and a hashable description of all else.

    Args:
        pytree: A pytree.
        filter_spec: The condition, as for `equinox.partition`.

    Returns:
        The pytree with None in place of the other leaves, and these with the structure, hashable if they are.

    Source:
        `equinox.partition`
    """
    dynamic, static = eqx.partition(pytree, filter_spec)
    leaves, treedef = jax.tree.flatten(static)
    return dynamic, (tuple(leaves), treedef)


def hashable_combine(dynamic: Any, static: Any) -> Any:
    """The pytree that `hashable_partition` has split into these.

    Args:
        dynamic: The arrays.
        static: The rest, hashable.

    Returns:
        The pytree.

    Source:
        `equinox.combine`
    """
    leaves, treedef = static
    return eqx.combine(dynamic, jax.tree.unflatten(treedef, leaves))


def resize_axis(tree: Any, old_axis: AxisSelector, new_size: int, key: jax.Array | None = None) -> Any:
    """Cut an axis, or fill it up with values that look like those there are.

    Args:
        tree: A pytree; named arrays that have the axis are resized.
        old_axis: The axis; an Axis must have the size that the arrays have.
        new_size: Its new size.
        key: A random key: the new values are drawn from a normal distribution, cut at two standard deviations, with the
            mean and the deviation along the axis. Without it they are the mean.

    Returns:
        The pytree with the new arrays, of the same dtypes.

    Raises:
        ValueError: If the axis has another size.

    Source:
        Hewitt, "Initializing New Word Embeddings for Pretrained Language Models" (2021)
    """
    check_integer("resize_axis", "the new size", new_size, 0)
    leaves, treedef = tree_flatten(tree)
    keys = maybe_rng_split(None if key is None else as_key("resize_axis", key), len(leaves))
    return tree_unflatten(treedef, [_resize(leaf, old_axis, new_size, k) for leaf, k in zip(leaves, keys, strict=True)])


def _resize(leaf: Any, axis: AxisSelector, new_size: int, key: jax.Array | None) -> Any:
    if not isinstance(leaf, NamedArrayBase) or axis_name(axis) not in leaf.axis_names:
        return leaf
    dim = leaf.require_axis("resize_axis", axis)
    array = leaf.array
    missing = new_size - array.shape[dim]
    if missing <= 0:
        return leaf.like(jax.lax.slice_in_dim(array, 0, new_size, axis=dim), leaf.axis_names)
    new = jnp.mean(array, axis=dim, keepdims=True)
    shape = (*array.shape[:dim], missing, *array.shape[dim + 1 :])
    if key is not None:
        noise = jax.random.truncated_normal(key, -2, 2, shape, new.dtype)
        new = new + noise * jnp.std(array, axis=dim, keepdims=True)
    new = jnp.broadcast_to(new, shape).astype(array.dtype)
    return leaf.like(jnp.concatenate([array, new], axis=dim), leaf.axis_names)
