"""What decides a program of `named_jit`, as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from haliax._src.mesh_mismatch import Policy
from haliax._src.resources import FrozenMapping, MeshLike


@dataclasses.dataclass(frozen=True)
class Plan:
    """Everything that decides a program, beside the avals of its arrays: plain data, no arrays.

    Args:
        name: The name of the function, for messages.
        treedef: The structure of `(callable, args, kwargs)`.
        statics: The static leaves, by position among all leaves.
        static_paths: The path of each static leaf.
        paths: The path, and the axis names if any, of each traced leaf.
        declared: The positions among the traced leaves of raw arrays in fields that declare their axes.
        ranks: How many dimensions these have, which decides whether the names are theirs.
        donated: The positions among the traced leaves of those to be donated.
        mesh: The mesh of the call, if there is one.
        input_mapping: The mapping for inputs, or None to keep their shardings.
        compute_mapping: The mapping in force while the function is traced.
        output_mapping: The mapping for the named arrays of the result.
        policy: What to do about arrays on another mesh.
        jit_options: Further options of `jax.jit`.
    """

    name: str
    treedef: Any  # a PyTreeDef
    statics: tuple[tuple[int, Any], ...]
    static_paths: Sequence[str]
    paths: Sequence[tuple[str, tuple[str, ...] | None]]
    declared: tuple[int, ...]
    ranks: tuple[int, ...]
    donated: frozenset[int]
    mesh: MeshLike | None
    input_mapping: FrozenMapping | None
    compute_mapping: FrozenMapping | None
    output_mapping: FrozenMapping | None
    policy: Policy
    jit_options: Mapping[str, Any]
