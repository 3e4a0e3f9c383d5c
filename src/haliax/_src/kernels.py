"""Which kernel computes an operation: one rule. A program carries what was chosen, and `explain` shows it.

A choice is made while a function is traced. It is written into the names of the operations (`jax.named_scope`), where
profilers show it too and where it is read from again, whether or not a trace comes out of a cache.
"""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
from jax.core import Tracer
from jax.sharding import Mesh

from haliax._src.errors import bad_value, problem
from haliax._src.resources import ambient_mesh, manual_axes

XLA = "xla"

_REASONS = {
    "asked": "it was asked for",
    "cpu": "a CPU has no other",
    "missing": "tokamax is not installed",
    "devices": "the compiler can not split a kernel over the devices of the mesh; shard_map can",
    "tokamax": "tokamax is installed",
}


class Kernel(NamedTuple):
    """A kernel that was chosen, and why."""

    op: str
    """The operation that it computes."""
    name: str
    """`xla` for what the compiler makes of the operation of JAX; else the implementation in tokamax, or `tokamax`."""
    code: str
    """The reason, in a word."""

    @property
    def reason(self) -> str:
        """Why this one was chosen."""
        return _REASONS[self.code]

    def __str__(self) -> str:
        return f"{self.op} by {self.name}, as {self.reason}"

    def scope(self) -> AbstractContextManager[Any]:
        """A context in which operations are named after this choice."""
        return jax.named_scope(f"haliax.kernel:{self.op}:{self.name}:{self.code}")


def choose_kernel(
    op: str, implementation: str, implementations: Mapping[str, str | None], arrays: Sequence[Any]
) -> Kernel:
    """The rule: a kernel of tokamax where it is there and can be used, else what XLA makes of the operation.

    Args:
        op: The operation.
        implementation: `auto`, `xla`, or one of `implementations`.
        implementations: What tokamax calls the other ones.
        arrays: The operands, whose devices count if there is no mesh in force.

    Returns:
        The choice. XLA computes everything on a CPU, and what is split over devices outside `shard_map`.

    Raises:
        ValueError: If there is no such implementation.
        ImportError: If a kernel was asked for, and tokamax is not installed.
    """
    if implementation not in ("auto", XLA, *implementations):
        known = ", ".join(map(repr, ("auto", XLA, *implementations)))
        raise bad_value(op, f"implementation is {implementation!r}", f"expected one of {known}")
    if implementation == XLA:
        return Kernel(op, XLA, "asked")
    if _platform(arrays) == "cpu":
        return Kernel(op, XLA, "cpu")
    if _devices_of_compiler() > 1:
        return Kernel(op, XLA, "devices")
    if importlib.util.find_spec("tokamax") is not None:
        return Kernel(op, implementations.get(implementation) or "tokamax", "tokamax")
    if implementation == "auto":
        return Kernel(op, XLA, "missing")
    given = f"implementation is {implementation!r}, and tokamax is not installed"
    raise ImportError(problem(op, given, remedy="Install haliax[kernels], or let implementation be 'auto'."))


def _platform(arrays: Sequence[Any]) -> str:
    """The platform of the mesh in force; else of the first array that is somewhere; else the usual one."""
    mesh = ambient_mesh()
    if isinstance(mesh, Mesh):
        return mesh.devices.flat[0].platform
    for array in arrays:
        if isinstance(array, jax.Array) and not isinstance(array, Tracer):
            return next(iter(array.devices())).platform
    return jax.default_backend()


def _devices_of_compiler() -> int:
    """Over how many devices the compiler splits what is computed here: those of mesh axes that are not manual."""
    mesh, manual = ambient_mesh(), manual_axes()
    return 1 if mesh is None else math.prod(size for name, size in mesh.shape.items() if name not in manual)


_SCOPE = re.compile(r"haliax\.kernel:(\w+):([\w.]+):(\w+)")


def kernels_in(jaxpr: Any) -> tuple[Kernel, ...]:
    """The kernels that a program uses, each once, in the order of first use."""
    return tuple(dict.fromkeys(_kernels(jaxpr)))


def _kernels(jaxpr: Any) -> Iterator[Kernel]:
    for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield from (Kernel(*found) for found in _SCOPE.findall(str(eqn.source_info.name_stack)))
        for param in eqn.params.values():
            for inner in param if isinstance(param, tuple | list) else (param,):
                if hasattr(getattr(inner, "jaxpr", inner), "eqns"):
                    yield from _kernels(inner)
