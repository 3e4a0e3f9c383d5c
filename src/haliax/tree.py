"""Pytrees whose leaves are named arrays: `haliax.tree.map` and its kin, as in `jax.tree`."""

from ._src.tree import (
    scan_aware_tree_map as scan_aware_tree_map,
    tree_flatten as tree_flatten,
    tree_leaves as tree_leaves,
    tree_map as tree_map,
    tree_structure as tree_structure,
    tree_unflatten as tree_unflatten,
)
from ._src.util import T as T, renamed as renamed

flatten = renamed(tree_flatten, "flatten", __name__)
leaves = renamed(tree_leaves, "leaves", __name__)
map = renamed(tree_map, "map", __name__)
scan_aware_map = renamed(scan_aware_tree_map, "scan_aware_map", __name__)
structure = renamed(tree_structure, "structure", __name__)
unflatten = renamed(tree_unflatten, "unflatten", __name__)

__all__ = ["T", "flatten", "leaves", "map", "scan_aware_map", "structure", "unflatten"]
