"""Meshes of named axes over fast links (ICI, within a slice) and slow ones (DCN, between slices)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import AxisType, Mesh

from haliax._src.errors import bad_value


def make_mesh(
    ici_axes: Mapping[str, int],
    dcn_axes: Mapping[str, int] | None = None,
    *,
    devices: Sequence[Any] | None = None,
    axis_types: AxisType | Sequence[AxisType] = AxisType.Auto,
) -> Mesh:
    """A mesh from the sizes of its axes, by name.

    Args:
        ici_axes: The axes within a slice; one of the sizes may be -1, for what the other axes leave.
        dcn_axes: The axes between slices; their product is the number of slices. An axis of both kinds has the product
            of both sizes. A slice is what the devices call one, or else the devices of one process; those of a single
            process are cut into slices in order, as if they were several.
        devices: The devices; all of them if None.
        axis_types: The type of all axes, or of each: first those of `dcn_axes` alone, then those of `ici_axes`.

    Returns:
        A mesh with the axes in that order.

    Raises:
        ValueError: If the sizes do not fit the devices.

    Source:
        `jax.make_mesh`, `jax.experimental.mesh_utils.create_hybrid_device_mesh`
    """
    dcn_axes = dict(dcn_axes or {})
    devices = list(jax.devices() if devices is None else devices)
    slices = _slices(devices, math.prod(dcn_axes.values()))
    ici_axes = _fill(ici_axes, len(slices[0]))
    names = (*(name for name in dcn_axes if name not in ici_axes), *ici_axes)
    inner = [ici_axes.get(name, 1) for name in names]
    outer = [dcn_axes.get(name, 1) for name in names]
    blocks = np.empty(len(slices), object)
    blocks[:] = [mesh_utils.create_device_mesh(inner, part, allow_split_physical_axes=True) for part in slices]
    grid = np.block(blocks.reshape(outer).tolist()) if names else np.array(devices).reshape(())
    kinds = (axis_types,) * len(names) if isinstance(axis_types, AxisType) else tuple(axis_types)
    return Mesh(grid, names, axis_types=kinds)


def _slices(devices: Sequence[Any], count: int) -> list[list[Any]]:
    """The devices of each slice."""
    groups: dict[Any, list[Any]] = {}
    for attribute in ("slice_index", "process_index"):
        groups = {}
        for device in devices:
            groups.setdefault(getattr(device, attribute, 0), []).append(device)
        if len(groups) > 1:
            break
    if count == 1:
        return [list(devices)]
    if len(groups) == 1 and count > 0 and len(devices) % count == 0:
        return [list(part) for part in np.array(devices, object).reshape(count, -1)]
    parts = [groups[key] for key in sorted(groups)]
    if len(parts) != count or len({len(part) for part in parts}) > 1:
        have = " + ".join(str(len(part)) for part in parts)
        raise bad_value("make_mesh", f"dcn_axes make {count} slices", f"the devices are in {len(parts)} ({have})")
    return parts


def _fill(ici_axes: Mapping[str, int], count: int) -> dict[str, int]:
    """The sizes within a slice of `count` devices, with -1 replaced."""
    known = math.prod(size for size in ici_axes.values() if size != -1)
    unknown = [name for name, size in ici_axes.items() if size == -1]
    fits = known > 0 and (count % known == 0 if unknown else count == known)
    if len(unknown) > 1 or not fits:
        sizes = ", ".join(f"{name}={size}" for name, size in ici_axes.items())
        expected = f"expected a product of {count}, the devices of a slice; one size may be -1"
        raise bad_value("make_mesh", f"ici_axes are ({sizes})", expected)
    return {name: count // known if size == -1 else size for name, size in ici_axes.items()}
