"""Layouts as text: PartitionSpecs, meshes and devices in a few words, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.core import Tracer
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from haliax._src import jax_compat
from haliax._src.resources import MeshLike, format_mesh


def describe_spec(spec: PartitionSpec) -> str:
    """A PartitionSpec as `P('data')`, without the dimensions at its end that are not split."""
    entries = list(jax_compat.spec_entries(spec))
    while entries and entries[-1] is None:
        entries.pop()
    shown = list(map(repr, entries))
    if spec.unreduced:
        shown.append(f"unreduced={{{', '.join(map(repr, sorted(spec.unreduced)))}}}")
    return f"P({', '.join(shown)})"


def describe_mesh(mesh: MeshLike) -> str:
    """The axes of a mesh, those that are explicit, and its devices."""
    explicit = [name for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True) if kind == AxisType.Explicit]
    kinds = f"; explicit {', '.join(explicit)}" if explicit else ""
    if isinstance(mesh, AbstractMesh):
        return f"{format_mesh(mesh)}{kinds}; {mesh.size} abstract devices"
    return f"{format_mesh(mesh)}{kinds}; {describe_devices(NamedSharding(mesh, PartitionSpec()))}"


def describe_devices(sharding: jax.sharding.Sharding) -> str:
    """The device ids of a sharding: all of a few, the ends of many."""
    ids = [str(device.id) for device in jax_compat.device_order(sharding)]
    shown = ids if len(ids) <= 16 else [*ids[:4], "...", *ids[-2:]]
    return f"device{'s' if len(ids) > 1 else ''} {' '.join(shown)}"


def describe_sharding(sharding: jax.sharding.Sharding, mesh: MeshLike | None) -> str:
    """A sharding as seen from `mesh`: its PartitionSpec, and what it lives on if that is something else."""
    if not isinstance(sharding, NamedSharding):
        return describe_devices(sharding)
    elsewhere = "" if mesh is None or sharding.mesh == mesh else f" on {describe_mesh(sharding.mesh)}"
    return f"{describe_spec(sharding.spec)}{elsewhere}"


def describe_placement(array: Any, mesh: MeshLike | None) -> str | None:
    """Where an argument is, as seen from `mesh`; None if that is not known: a tracer, or a shape without a sharding."""
    sharding = None if isinstance(array, Tracer) else getattr(array, "sharding", None)
    if sharding is None:
        return None if isinstance(array, Tracer | jax.ShapeDtypeStruct) else "uncommitted"
    return describe_sharding(sharding, mesh) if getattr(array, "committed", True) else "uncommitted"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of text in which the cells of each column start at the same place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
