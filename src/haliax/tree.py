"""Pytrees whose leaves are named arrays: `haliax.tree.map` and its kin, as in `jax.tree`."""

from ._src.tree import (
    scan_aware_tree_map as scan_aware_map,
    tree_flatten as flatten,
    tree_leaves as leaves,
    tree_map as map,
    tree_structure as structure,
    tree_unflatten as unflatten,
)
from ._src.util import T as T

__all__ = ["T", "flatten", "leaves", "map", "scan_aware_map", "structure", "unflatten"]
