"""Mapping and loops over arrays on explicit mesh axes: one layout for what is sliced, one for what is carried.

JAX maps along an axis only if all arrays have it split in the same way, loops along one only if it is not split, and
carries an array only if each step leaves its layout as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from haliax._src.array_base import wrap
from haliax._src.errors import bad_value
from haliax._src.explicit_axes import GIVE_A_MAPPING, Names, agree, entries, explicit_mesh, is_named, laid_out, relaid
from haliax._src.resources import current_mapping, mesh_axes


def split_alike(op: str, name: str, arrays: Sequence[Any], dims: Sequence[int]) -> list[Any]:
    """Raw arrays of which one dimension each, the shared axis `name`, is split over the same mesh axes.

    Args:
        op: The operation, for error messages.
        name: The axis.
        arrays: The arrays.
        dims: The dimension of the axis in each of them.

    Returns:
        The arrays. Those that were laid out differently are laid out anew.

    Raises:
        ValueError: If they are split over different mesh axes, and there is no axis mapping to decide.
    """
    given = {_entry(array, dim) for array, dim in zip(arrays, dims, strict=True)}
    if len(given) < 2:
        return list(arrays)
    ways = sorted(given - {()})
    if len(ways) == 1:
        way = ways[0]
    elif (mapping := current_mapping()) is not None:
        way = mesh_axes(mapping.get(name))
    else:
        over = " and ".join(f"({', '.join(way)})" for way in ways)
        raise bad_value(op, f"axis {name!r} is split over {over}", "expected arguments that agree", GIVE_A_MAPPING)
    mesh = explicit_mesh(arrays)
    return [_resplit(array, dim, way, mesh) for array, dim in zip(arrays, dims, strict=True)]


def is_split(arrays: Iterable[Any], dims: Iterable[int]) -> bool:
    """Whether one of some raw arrays is split over explicit mesh axes along its dimension."""
    return any(_entry(array, dim) for array, dim in zip(arrays, dims, strict=True))


def unsplit(array: Any, dim: int) -> Any:
    """A raw array of which a dimension is not split, as a loop along it needs."""
    return _resplit(array, dim, (), explicit_mesh([array])) if _entry(array, dim) else array


def _entry(array: Any, dim: int) -> Names:
    """The mesh axes of one dimension, of anything that may be an array."""
    return entries(array)[dim] if isinstance(array, jax.Array) else ()


def _resplit(array: Any, dim: int, entry: Names, mesh: Any) -> Any:
    """A raw array of which one dimension is split over the given mesh axes, and no other dimension over these."""
    if array is None:
        return None
    before = entries(array)
    after: list[Names] = [tuple(axis for axis in way if axis not in entry) for way in before]
    after[dim] = entry
    if tuple(after) == before:
        return array
    return jax.sharding.reshard(array, NamedSharding(mesh, PartitionSpec(*after)))


class CarryLayout(Exception):
    """Raised in the first step of a loop: the carry that it began with must be laid out otherwise."""

    def __init__(self, shardings: list[NamedSharding | None]):
        """Remember the layout of each leaf, None if it can stay."""
        super().__init__()
        self.shardings = shardings


def keep_layouts(op: str, before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """The arrays of a carry after a step, in the layouts that they had before it.

    Args:
        op: The operation, for error messages.
        before: The arrays, named or raw, that the step got.
        after: The arrays that it returned, with the same shapes.

    Returns:
        The arrays `after`; those that are laid out differently are laid out anew.

    Raises:
        CarryLayout: If an array was split over fewer mesh axes than the step splits it: it should begin like that.
        ValueError: If the layouts disagree, and there is no axis mapping to decide.
    """
    wanted: list[NamedSharding | None] = []
    kept: list[Any] = []
    for was, now in zip(before, after, strict=True):
        mesh = explicit_mesh([was, now])
        wanted.append(None)
        kept.append(now)
        if mesh is None or entries(was) == entries(now):
            continue
        pair = [_with_names(was), _with_names(now)]
        _, layout = agree(op, mesh, pair, pair[:1])
        target = laid_out(pair[0], layout, mesh)
        if tuple(map(mesh_axes, target.spec)) != entries(was):
            wanted[-1] = target
        moved = relaid(pair[1], layout, mesh).array
        kept[-1] = now.like(moved, now.axis_names) if is_named(now) else moved
    if any(wanted):
        raise CarryLayout(wanted)
    return kept


def _with_names(array: Any) -> Any:
    return array if is_named(array) else wrap(array, tuple(f"dimension {i}" for i in range(jnp.ndim(array))))
