"""Arguments that live on another mesh than the call: find them, report them, move them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from jax.sharding import Mesh, NamedSharding

from haliax._src.layout_text import describe_devices, describe_mesh, describe_spec, table
from haliax._src.resources import ResourceMapping
from haliax._src.sharding import layout_on, lives_elsewhere
from haliax._src.transfers import FROM_HOST_DATA, can_transfer

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
    def mesh(self) -> Mesh | None:
        """The mesh it lives on, if it is on one."""
        mesh = getattr(self.argument.array.sharding, "mesh", None)
        return mesh if isinstance(mesh, Mesh) else None

    @property
    def is_stuck(self) -> bool:
        """Whether it can not be moved, because some process can not get at the data that it needs."""
        return not can_transfer(self.argument.array, self.target)

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
    sources = list(dict.fromkeys(m.mesh for m in misplaced if m.mesh is not None))
    header = ("argument", "shape", "dtype", "from", "to", "bytes moved", "reason")
    rows = [header, *(_row(m, sources) for m in misplaced)]
    lines = [
        f"named_jit({function}): {len(misplaced)} of its arrays live on another mesh than the call's and {verdict}.",
        *table(rows),
        f"the call's mesh: {describe_mesh(mesh)}",
        *(f"mesh {number}: {describe_mesh(source)}" for number, source in enumerate(sources, 1)),
        _remedy(misplaced),
    ]
    return "\n  ".join(lines)


def _remedy(misplaced: Sequence[Misplaced]) -> str:
    """The line that avoids the move, or what to do where there can be none."""
    stuck = [m.argument.path for m in misplaced if m.is_stuck]
    if stuck:
        return f"{', '.join(stuck)}: between processes an array moves only among its own devices. {FROM_HOST_DATA}"
    root = misplaced[0].argument.path.split("[")[0].split(".")[0]
    return f"To avoid this, move them once before the loop: {root} = hax.shard({root}, mesh=mesh)"


def _row(misplaced: Misplaced, sources: Sequence[Mesh]) -> tuple[str, ...]:
    path, array, names = misplaced.argument
    if names is None:
        shape = str(tuple(array.shape))
    else:
        shape = ", ".join(f"{name}={size}" for name, size in zip(names, array.shape, strict=True))
    if misplaced.mesh is None:
        source = describe_devices(array.sharding)
    else:
        source = f"{describe_spec(array.sharding.spec)} on mesh {sources.index(misplaced.mesh) + 1}"
    target = describe_spec(misplaced.target.spec)
    return path, shape, str(array.dtype), source, target, f"{misplaced.bytes_moved:,}", misplaced.reason
