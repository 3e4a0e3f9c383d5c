"""A layout for an array about which nothing is known but its shape: over as many devices as its sizes allow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from jax.sharding import AxisType, NamedSharding, PartitionSpec

from haliax._src.array_base import NamedArrayBase
from haliax._src.axis import Axis
from haliax._src.resources import MeshLike, as_seen_here, require_mesh
from haliax._src.sharding import ResourceAxis

REPLICAS = (ResourceAxis.REPLICA, ResourceAxis.REPLICA_DCN)
"""The mesh axes whose devices hold the same data."""


def best_effort_sharding(shape_or_named: Any, *, mesh: MeshLike | None = None) -> NamedSharding:
    """A sharding that splits an array over as many devices as its sizes allow.

    Every mesh axis but the replica axes (`replica` and `replica_dcn`) is used where some dimension divides by it;
    several may share a dimension. Of the choices that give the most parts, those that cut large dimensions come first.

    Args:
        shape_or_named: A shape, of ints or of Axis objects, or anything that has one: an array, named or raw, or a
            `jax.ShapeDtypeStruct`.
        mesh: The mesh, which may have axes over slow links; the one in force if None.

    Returns:
        The sharding, with an entry for each dimension; replicated if nothing divides.

    Raises:
        ValueError: If there is no mesh.

    Source:
        `jax.sharding.NamedSharding`
    """
    mesh = as_seen_here(require_mesh("best_effort_sharding", mesh))
    sizes = _sizes(shape_or_named)
    axes = [axis for axis, kind in zip(mesh.axis_names, mesh.axis_types, strict=True) if _is_usable(mesh, axis, kind)]
    best = _best_choice(mesh, axes, sizes)
    entries = [tuple(axis for axis, at in zip(axes, best, strict=True) if at == dim) for dim in range(len(sizes))]
    spec = PartitionSpec(*(entry[0] if len(entry) == 1 else entry or None for entry in entries))
    return NamedSharding(mesh, spec)  # pyright: ignore[reportArgumentType]  (AbstractMesh is accepted)


def _sizes(shape_or_named: Any) -> tuple[int, ...]:
    """The sizes of the dimensions."""
    if isinstance(shape_or_named, NamedArrayBase):
        return shape_or_named._sizes()
    if isinstance(shape_or_named, Axis):
        return (shape_or_named.size,)
    shape: Sequence[Any] = getattr(shape_or_named, "shape", shape_or_named)
    return tuple(item.size if isinstance(item, Axis) else int(item) for item in shape)


def _is_usable(mesh: MeshLike, axis: str, kind: AxisType) -> bool:
    return axis not in REPLICAS and kind != AxisType.Manual and mesh.shape[axis] > 1


def _best_choice(mesh: MeshLike, axes: Sequence[str], sizes: Sequence[int]) -> tuple[int | None, ...]:
    """The dimension that each mesh axis splits, or None: what gives the most parts, the first of equals."""
    dims = sorted(range(len(sizes)), key=lambda dim: -sizes[dim])
    best, most = (None,) * len(axes), 0
    for choice in _choices(mesh, axes, sizes, dims):
        parts = math.prod(mesh.shape[axis] for axis, dim in zip(axes, choice, strict=True) if dim is not None)
        if parts > most:
            best, most = choice, parts
        if None not in choice:  # nothing can be better; most often the first choice is one
            break
    return best


def _choices(
    mesh: MeshLike, axes: Sequence[str], sizes: Sequence[int], dims: Sequence[int]
) -> Iterator[tuple[int | None, ...]]:
    """For each mesh axis a dimension that it splits, or None, in all ways in which everything divides."""
    for choice in itertools.product([*dims, None], repeat=len(axes)):
        factors = dict.fromkeys(dims, 1)
        for axis, dim in zip(axes, choice, strict=True):
            if dim is not None:
                factors[dim] *= mesh.shape[axis]
        if all((sizes[dim] and sizes[dim] % factor == 0) or factor == 1 for dim, factor in factors.items()):
            yield choice
