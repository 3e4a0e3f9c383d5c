"""Programs ahead of time: lowered, then compiled, then called on named pytrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import AbstractMesh

# what the kinds of devices have in their names; jax 0.9 does not tell the platform of an abstract device
_PLATFORMS = {"TPU": "tpu", "NVIDIA": "cuda", "AMD": "rocm", "cpu": "cpu"}


def platforms_of(mesh: Any) -> tuple[str, ...] | None:
    """What to lower for on an abstract mesh: its kind of device, or the usual one; None on a mesh that has devices."""
    if not isinstance(mesh, AbstractMesh):
        return None
    kind = "" if mesh.abstract_device is None else mesh.abstract_device.device_kind
    return (next((platform for name, platform in _PLATFORMS.items() if name in kind), jax.default_backend()),)


class Lowered:
    """A program lowered ahead of time: `jax.stages.Lowered`, whose compiled form takes named pytrees.

    Args:
        lowered: What JAX lowered, over flat leaves.
        call: How a compiled program is called on the arguments of a user.

    Source:
        `jax.stages.Lowered`
    """

    def __init__(self, lowered: jax.stages.Lowered, call: Callable[..., Any]):
        self._lowered, self._call = lowered, call

    def __getattr__(self, name: str) -> Any:
        """Everything else is as JAX has it: `as_text`, `cost_analysis`, ..."""
        if name.startswith("_"):  # also before there is anything to ask
            raise AttributeError(name)
        return getattr(self._lowered, name)

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """Compile the program; the arguments are those of `jax.stages.Lowered.compile`."""
        return Compiled(self._lowered.compile(*args, **kwargs), self._call)


class Compiled:
    """A program compiled ahead of time, called as the function is.

    Args:
        compiled: What JAX compiled, over flat leaves.
        call: How it is called on the arguments of a user.

    Source:
        `jax.stages.Compiled`
    """

    def __init__(self, compiled: jax.stages.Compiled, call: Callable[..., Any]):
        self._compiled, self._call = compiled, call

    def __getattr__(self, name: str) -> Any:
        """Everything else is as JAX has it: `as_text`, `memory_analysis`, `input_shardings`, ..."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._compiled, name)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the program on arguments of the structure it was compiled for."""
        return self._call(self._compiled, args, kwargs)
