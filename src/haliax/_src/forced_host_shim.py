"""The forced-host shim: on CPU with forced host devices, a mapping lays out the inputs of `named_jit` too.

Where it comes from. haliax used to lay out the arguments of a `named_jit` call by the compute mapping. Now they keep
the shardings they have. Code and tests written against forced CPU devices may expect the old layouts, so the old
behaviour is kept there, and only there. Values are the same either way.

What was looked for and not found is a fault of JAX that would need this: the one documented (a donated buffer under a
sharding constraint gave garbage on forced-host CPU, jax issue 20088, closed) does not reproduce on jax 0.10 or 0.12; no
open issue says that forced-host CPU preserves input shardings differently; and haliax's own tests of June 2024 pass on
jax 0.4.28 with the input mapping taken out, with 1 and with 8 forced devices. So the shim is for compatibility only.

It is easy to switch (`HALIAX_FORCED_HOST_SHIM`, `with forced_host_shim("off"):`) and to remove: without this file
`named_jit` behaves as with the shim off.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Literal, TypeAlias, cast, get_args

import jax

from haliax._src.errors import bad_value
from haliax._src.resources import MeshLike

Mode: TypeAlias = Literal["auto", "on", "off"]

logger = logging.getLogger("haliax.partitioning")

_VARIABLE = "HALIAX_FORCED_HOST_SHIM"


def _checked(mode: str, where: str) -> Mode:
    if mode not in get_args(Mode):
        raise bad_value(where, f"the mode is {mode!r}", "expected 'auto', 'on' or 'off'")
    return cast(Mode, mode)


_from_environment = _checked(os.environ.get(_VARIABLE, "auto"), _VARIABLE)
_mode: ContextVar[Mode | None] = ContextVar("haliax_forced_host_shim", default=None)


@contextlib.contextmanager
def forced_host_shim(mode: Mode) -> Iterator[None]:
    """A context in which the shim has the given mode, whatever `HALIAX_FORCED_HOST_SHIM` says.

    Args:
        mode: "auto" (active for CPU meshes of a process whose host devices are forced), "on" or "off".

    Yields:
        Nothing; the mode holds for this thread until the context ends.

    Raises:
        ValueError: If the mode is none of the three.
    """
    token = _mode.set(_checked(mode, "forced_host_shim"))
    try:
        yield
    finally:
        _mode.reset(token)


def shim_is_active(mesh: MeshLike | None) -> bool:
    """Whether a call on this mesh uses its mapping for its inputs too.

    Args:
        mesh: The mesh of the call.

    Returns:
        True in mode "on"; in mode "auto", if the mesh has CPU devices of a process that has several because they were
        forced.
    """
    mode = _mode.get() or _from_environment
    active = mode == "on" or (mode == "auto" and isinstance(mesh, jax.sharding.Mesh) and _is_forced_host(mesh))
    if active:
        _announce()
    return active


@functools.lru_cache(maxsize=256)
def _is_forced_host(mesh: jax.sharding.Mesh) -> bool:
    return (
        all(device.platform == "cpu" for device in mesh.devices.flat)
        and len(jax.local_devices(backend="cpu")) > 1
        and forced_device_count() > 1
    )


def forced_device_count() -> int:
    """How many CPU devices this process was told to have; 1 if it was not told.

    The flag in `XLA_FLAGS` and the config `jax_num_cpu_devices` are independent: with the flag alone, the config
    still reads -1.
    """
    flags = re.findall(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    return max([1, jax.config.jax_num_cpu_devices, *map(int, flags)])  # pyright: ignore[reportAttributeAccessIssue]


@functools.cache
def _announce() -> None:
    """Say once that the shim is at work."""
    logger.info(
        "named_jit: the forced-host shim is active: on CPU with forced host devices the axis mapping also lays out the"
        " inputs. Set %s=off, or use `with haliax.partitioning.forced_host_shim('off'):`, for the behaviour of"
        " accelerators.",
        _VARIABLE,
    )
