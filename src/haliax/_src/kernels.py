"""Which kernel computes an operation: one rule. A program carries what was chosen, and `explain` shows it.

A choice is made while a function is traced. It is written into the names of the operations (`jax.named_scope`), where
profilers show it too and where it is read from again, whether or not a trace comes out of a cache.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
from jax.core import Tracer
from jax.extend.backend import get_default_device
from jax.sharding import Mesh

from haliax._src.errors import bad_value, problem
from haliax._src.resources import ambient_mesh, manual_axes

XLA = "xla"

_REASONS = {
    "asked": "it was asked for",
    "cpu": "a CPU has no other",
    "device": "tokamax has no such kernel for this device",
    "devices": "the compiler can not split a kernel over the devices of the mesh; shard_map can",
    "missing": "tokamax is not installed",
    "refused": "tokamax has no kernel for these sizes and dtypes",
    "tokamax": "tokamax is installed",
}
_INSTALL = {"tokamax": "haliax[kernels]", "jax_triton": "tokamax[cuda]"}


class Kernel(NamedTuple):
    """A kernel that was chosen, and why."""

    op: str
    """The operation that it computes."""
    name: str
    """`xla` for what the compiler makes of the operation of JAX; else the name of the implementation in tokamax."""
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


class InTokamax(NamedTuple):
    """A kernel that tokamax has."""

    name: str
    """What tokamax calls it."""
    device: str
    """What the kinds of the devices that it is for have in their names."""
    takes: Callable[..., bool]
    """Whether it can compute the operation for these operands. It may refuse them later, with a NotImplementedError."""
    modules: tuple[str, ...] = ("tokamax",)
    """What has to be installed."""

    def missing(self) -> str | None:
        """A module that is not installed, if there is one."""
        return next((name for name in self.modules if importlib.util.find_spec(name) is None), None)


def choose_kernels(
    op: str, implementation: str, implementations: Mapping[str, Sequence[InTokamax]], operands: Sequence[Any]
) -> tuple[Kernel, ...]:
    """The rule: a kernel of tokamax where it is there and can be used, else what XLA makes of the operation.

    Args:
        op: The operation.
        implementation: `auto`, `xla`, or one of `implementations`.
        implementations: The kernels of tokamax that each of them stands for, the best ones first; `auto` is for all.
        operands: The operands, whose devices count if there is no mesh in force.

    Returns:
        What to try, in this order. The last is XLA, the only one on a CPU and for what is split over devices outside
        `shard_map`.

    Raises:
        ValueError: If there is no such implementation.
        ImportError: If a kernel was asked for, and what it needs is not installed.
    """
    if implementation not in ("auto", XLA, *implementations):
        known = ", ".join(map(repr, ("auto", XLA, *implementations)))
        raise bad_value(op, f"implementation is {implementation!r}", f"expected one of {known}")
    if implementation == XLA:
        return (Kernel(op, XLA, "asked"),)
    kind = _device_kind(operands)
    if kind == "cpu":
        return (Kernel(op, XLA, "cpu"),)
    if _devices_of_compiler() > 1:
        return (Kernel(op, XLA, "devices"),)
    wanted = dict.fromkeys(itertools.chain(*implementations.values()))
    if implementation != "auto":
        wanted = implementations[implementation]
    for_device = [kernel for kernel in wanted if kernel.device in kind]
    installed = [kernel for kernel in for_device if not kernel.missing()]
    if not for_device:
        return (Kernel(op, XLA, "device"),)
    if implementation != "auto" and not installed:
        raise _not_installed(op, implementation, str(for_device[0].missing()))
    fitting = [Kernel(op, kernel.name, "tokamax") for kernel in installed if kernel.takes(*operands)]
    return (*fitting, Kernel(op, XLA, "refused" if installed else "missing"))


def _not_installed(op: str, implementation: str, module: str) -> ImportError:
    given = f"implementation is {implementation!r}, and {module} is not installed"
    return ImportError(problem(op, given, remedy=f"Install {_INSTALL[module]}, or let implementation be 'auto'."))


def _device_kind(arrays: Sequence[Any]) -> str:
    """The kind of device in use: that of the mesh in force, else of the first array that is on one, else the usual.

    An abstract mesh may have it too, for programs that are compiled on a machine of another kind.
    """
    mesh = ambient_mesh()
    if isinstance(mesh, Mesh):
        return mesh.devices.flat[0].device_kind
    if mesh is not None and mesh.abstract_device is not None:
        return mesh.abstract_device.device_kind
    for array in arrays:
        if isinstance(array, jax.Array) and not isinstance(array, Tracer):
            return next(iter(array.devices())).device_kind
    return get_default_device().device_kind


def _devices_of_compiler() -> int:
    """Over how many devices the compiler splits what is computed here: those of mesh axes that are not manual."""
    mesh, manual = ambient_mesh(), manual_axes()
    return 1 if mesh is None else math.prod(size for name, size in mesh.shape.items() if name not in manual)


def varying_axes(array: jax.Array) -> frozenset[str]:
    """The manual mesh axes over which an array inside `shard_map` is known to vary."""
    kind: Any = jax.typeof(array)
    return kind.vma if hasattr(kind, "vma") else kind.manual_axis_type.varying  # jax 0.9, jax 0.10 and later


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
