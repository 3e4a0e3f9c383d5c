"""Which devices hold which part of an array, as a grid of parts for arrays of any rank.

Axes that are not split have no part in the picture: the last one that is split runs across, the others down.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from jax.sharding import AbstractMesh, NamedSharding, Sharding

from haliax._src.errors import bad_value
from haliax._src.jax_compat import spec_entries
from haliax._src.layout_text import describe_spec
from haliax._src.layouts import indivisible
from haliax._src.resources import MeshLike, PhysicalAxisSpec, mesh_axes, split_factor

Part: TypeAlias = tuple[tuple[int, int], ...]
"""Where a part of an array begins and ends in each dimension."""


@dataclasses.dataclass(frozen=True)
class ShardGrid:
    """The parts of one array, row by row.

    Args:
        rows: What each row holds of the axes that are split from row to row, as `batch 0:2, head 0:1`; one empty string
            if there are none.
        columns: What each column holds of the axis that is split from column to column; the same.
        cells: The devices that hold each part, by rows and columns.
        unit: What the numbers of devices stand for: the platform, or places in a mesh without devices.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[tuple[int, ...], ...], ...]
    unit: str


def shard_grid(names: Sequence[str], sizes: Sequence[int], sharding: Sharding) -> ShardGrid:
    """The grid of an array with these axes.

    Args:
        names: The axis names.
        sizes: The axis sizes.
        sharding: How the array is spread over devices.

    Returns:
        The grid; where an axis does not divide, the last part is smaller, as it is in compiled programs.
    """
    holders: dict[Part, list[int]] = {}
    for device, part in _parts(sizes, sharding):
        holders.setdefault(part, []).append(device)
    split = [i for i in range(len(sizes)) if len({part[i] for part in holders}) > 1]
    across = split[-1:] if len(split) > 1 or split[-1:] == [len(sizes) - 1] else []
    down = split[: len(split) - len(across)]

    def along(part: Part, dims: list[int]) -> Part:
        return tuple(part[i] for i in dims)

    def label(bounds: Part, dims: list[int]) -> str:
        return ", ".join(f"{names[i]} {start}:{stop}" for i, (start, stop) in zip(dims, bounds, strict=True))

    rows, columns = (sorted({along(part, dims) for part in holders}) for dims in (down, across))
    at = {(along(part, down), along(part, across)): tuple(devices) for part, devices in holders.items()}
    return ShardGrid(
        rows=tuple(label(row, down) for row in rows),
        columns=tuple(label(column, across) for column in columns),
        cells=tuple(tuple(at.get((row, column), ()) for column in columns) for row in rows),
        unit=_unit(sharding),
    )


def shard_sizes(sizes: Sequence[int], sharding: Sharding) -> tuple[int, ...]:
    """The sizes of the biggest part of an array."""
    if not isinstance(sharding, NamedSharding):
        return sharding.shard_shape(tuple(sizes))
    return tuple(_step(size, sharding.mesh, entry) for size, entry in _with_entries(sizes, sharding))


def check_fits(op: str, names: Sequence[str], sizes: Sequence[int], sharding: Sharding) -> None:
    """Raise a ValueError if arrays with these axes can not be laid out like this."""
    if not isinstance(sharding, NamedSharding):
        return
    entries = spec_entries(sharding.spec)
    if len(entries) > len(sizes):
        given = f"{describe_spec(sharding.spec)} has {len(entries)} entries"
        raise bad_value(op, given, f"expected at most one for each axis of ({', '.join(names)})")
    for name, (size, entry) in zip(names, _with_entries(sizes, sharding), strict=True):
        if size % split_factor(sharding.mesh, entry):
            raise indivisible(op, "the array", name, size, mesh_axes(entry), sharding.mesh)


def _parts(sizes: Sequence[int], sharding: Sharding) -> list[tuple[int, Part]]:
    """The part that each device holds."""
    if isinstance(sharding, NamedSharding):
        return _parts_on_mesh(sizes, sharding)
    slices = sharding.devices_indices_map(tuple(sizes))
    bounds = lambda index: tuple(s.indices(size)[:2] for s, size in zip(index, sizes, strict=True))  # noqa: E731
    return [(device.id, bounds(index)) for device, index in slices.items()]


def _parts_on_mesh(sizes: Sequence[int], sharding: NamedSharding) -> list[tuple[int, Part]]:
    """The same from a PartitionSpec, which a mesh without devices has too."""
    mesh, shape = sharding.mesh, tuple(sharding.mesh.shape.values())
    places = dict(zip(mesh.axis_names, np.indices(shape).reshape(len(shape), -1), strict=True))
    bounds = []
    for size, entry in _with_entries(sizes, sharding):
        index, step = np.zeros(mesh.size, int), _step(size, mesh, entry)
        for axis in mesh_axes(entry):  # the first mesh axis of several is the slowest
            index = index * mesh.shape[axis] + places[axis]
        bounds.append([(min(int(i) * step, size), min(int(i + 1) * step, size)) for i in index])
    devices = range(mesh.size) if isinstance(mesh, AbstractMesh) else [device.id for device in mesh.devices.flat]
    return list(zip(devices, zip(*bounds, strict=True) if bounds else [()] * mesh.size, strict=True))


def _with_entries(sizes: Sequence[int], sharding: NamedSharding) -> list[tuple[int, Any]]:
    """The size of each dimension and its entry in the PartitionSpec."""
    return list(itertools.zip_longest(sizes, spec_entries(sharding.spec)))


def _step(size: int, mesh: MeshLike, entry: PhysicalAxisSpec | None) -> int:
    return -(-size // split_factor(mesh, entry))


def _unit(sharding: Sharding) -> str:
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh):
        return "place"
    return next(iter(sharding.device_set)).platform.upper()
