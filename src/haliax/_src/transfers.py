"""Transfers of arrays to other layouts, also where several processes share the devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.core import Tracer
from jax.sharding import AbstractMesh, NamedSharding

from haliax._src.errors import problem
from haliax._src.jax_helpers import is_typed_key
from haliax._src.layout_text import describe_devices

FROM_HOST_DATA = (
    "Make it there from data that every process has: pass a numpy array, or use jax.make_array_from_callback."
)
"""What to do about an array that can not be moved between processes."""


def can_transfer(array: Any, layout: NamedSharding) -> bool:
    """Whether an array can be moved to a layout.

    Within a process it always can. Between processes JAX moves what is committed only among the devices that it is on,
    in any order: all else would need data that some process can not get at.
    """
    if jax.process_count() == 1 or isinstance(layout.mesh, AbstractMesh):
        return True
    if not isinstance(array, jax.Array) or isinstance(array, Tracer) or not array.committed:
        return True
    if array.is_fully_addressable and layout.is_fully_addressable:
        return True
    return array.sharding.device_set == layout.device_set


def check_transfer(op: str, path: str, array: Any, layout: NamedSharding) -> None:
    """Raise a ValueError if an array can not be moved to a layout.

    Args:
        op: The operation, for the error message.
        path: Where the array was found, for the error message.
        array: Any leaf.
        layout: Where it is to go.
    """
    if not can_transfer(array, layout):
        given = f"{path} lives on {describe_devices(array.sharding)} and is to go to {describe_devices(layout)}"
        expected = "between processes an array can be moved only among its own devices"
        raise ValueError(problem(op, given, expected, FROM_HOST_DATA))


def transfer(arrays: Sequence[Any], layouts: Sequence[NamedSharding], may_alias: bool | None = None) -> list[Any]:
    """Move arrays to layouts, all in one transfer.

    Args:
        arrays: Arrays outside any trace.
        layouts: The layout of each.
        may_alias: Whether the results may share the memory of the arrays; None if it does not matter.

    Returns:
        The arrays in their layouts.

    Source:
        `jax.device_put`, which moves no typed keys between processes: here their data go
    """
    as_data = [is_typed_key(array) and not to.is_fully_addressable for array, to in zip(arrays, layouts, strict=True)]
    sent = [jax.random.key_data(array) if keys else array for array, keys in zip(arrays, as_data, strict=True)]
    moved = jax.device_put(sent, list(layouts), may_alias=may_alias)
    return [
        jax.random.wrap_key_data(data, impl=jax.random.key_impl(array)) if keys else data
        for array, data, keys in zip(arrays, moved, as_data, strict=True)
    ]
