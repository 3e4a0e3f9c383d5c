"""Pytrees whose leaves are named arrays: `haliax.tree.map` and its kin, as in `jax.tree`."""

from ._src.tree import scan_aware_tree_map as scan_aware_map
from ._src.tree import tree_flatten as flatten
from ._src.tree import tree_leaves as leaves
from ._src.tree import tree_map as map
from ._src.tree import tree_structure as structure
from ._src.tree import tree_unflatten as unflatten

__all__ = ["flatten", "leaves", "map", "scan_aware_map", "structure", "unflatten"]
