"""Arguments that live on another mesh than the call: find them, report them, move them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
from jax.sharding import Mesh, NamedSharding

from haliax._src import jax_compat
from haliax._src.resources import ResourceMapping, format_mesh
from haliax._src.sharding import layout_on, lives_elsewhere

Policy: TypeAlias = Literal["warn", "move", "error"]
"""What to do about arguments on another mesh: move them and warn, move them, or raise."""


class MeshMismatchWarning(UserWarning):
    """Arguments of a `named_jit` call lived on another mesh, and were moved."""


class MeshMismatchError(ValueError):
    """Arguments of a `named_jit` call live on another mesh; nothing was moved or donated."""


class Argument(NamedTuple):
    """One array among the arguments of a call."""

    path: str
    array: Any
    names: tuple[str, ...] | None
    """Its axis names, if it is the array of a NamedArray."""


class Misplaced(NamedTuple):
    """An argument that lives on another mesh, and where it will go."""

    position: int
    argument: Argument
    target: NamedSharding
    reason: str

    @property
    def bytes_moved(self) -> int:
        """How many bytes must be copied between devices: those of each target shard that its device lacks."""
        array = self.argument.array
        have = array.sharding.devices_indices_map(array.shape)
        want = self.target.devices_indices_map(array.shape)
        shard_bytes = math.prod(self.target.shard_shape(array.shape)) * array.dtype.itemsize
        return shard_bytes * sum(have.get(device) != index for device, index in want.items())


def find_misplaced(arguments: Mapping[int, Argument], mesh: Mesh, mapping: ResourceMapping | None) -> list[Misplaced]:
    """The arguments that JAX refuses in a computation on `mesh`.

    Args:
        arguments: Arrays of the call, by position.
        mesh: The mesh of the call.
        mapping: The mapping of the call, which may say where a named array belongs.

    Returns:
        Those that live elsewhere, in order, each with the layout it will get.
    """
    found = []
    for position, argument in arguments.items():
        reason = lives_elsewhere(argument.array, mesh)
        if reason is not None:
            target = layout_on(mesh, argument.array, argument.names, mapping)
            found.append(Misplaced(position, argument, target, reason))
    return found


def report(misplaced: Sequence[Misplaced], mesh: Mesh, function: str, verdict: str) -> str:
    """A table of misplaced arguments, with the line that avoids the move.

    Args:
        misplaced: What was found.
        mesh: The mesh of the call.
        function: The name of the function called.
        verdict: What was done about it.

    Returns:
        Several lines of text: names, sizes and layouts, no values.
    """
    header = ("argument", "shape", "dtype", "from", "to", "bytes moved", "reason")
    rows = [header, *(_row(m) for m in misplaced)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    root = misplaced[0].argument.path.split("[")[0].split(".")[0]
    return "\n".join(
        [
            f"named_jit({function}): {len(misplaced)} of its arrays live on another mesh than the call's"
            f" ({format_mesh(mesh)}) and {verdict}.",
            *table,
            f"  To avoid this, move them once before the loop: {root} = hax.shard({root}, mesh=mesh)",
        ]
    )


def _row(misplaced: Misplaced) -> tuple[str, ...]:
    argument, target = misplaced.argument, misplaced.target
    array = argument.array
    shape = (
        str(tuple(array.shape))
        if argument.names is None
        else ", ".join(f"{name}={size}" for name, size in zip(argument.names, array.shape, strict=True))
    )
    return (
        argument.path,
        shape,
        str(array.dtype),
        format_sharding(array.sharding),
        format_sharding(target),
        f"{misplaced.bytes_moved:,}",
        misplaced.reason,
    )


def format_sharding(sharding: jax.sharding.Sharding) -> str:
    """A sharding as its PartitionSpec and mesh, or as its device, in a few words."""
    if isinstance(sharding, NamedSharding):
        entries = ", ".join(repr(entry) for entry in sharding.spec)
        return f"P({entries}) on ({format_mesh(sharding.mesh)}; {_device_range(sharding)})"
    return _device_range(sharding)


def _device_range(sharding: jax.sharding.Sharding) -> str:
    """The device ids of a sharding: all of a few, the ends of many."""
    ids = [str(device.id) for device in jax_compat.device_order(sharding)]
    shown = ids if len(ids) <= 8 else [*ids[:3], "...", ids[-1]]
    return f"device{'s' if len(ids) > 1 else ''} {' '.join(shown)}"
