"""What several processes must do together. With one process, each of these does nothing."""

from __future__ import annotations

from typing import Any, TypeVar

import jax
from jax.experimental import multihost_utils

from haliax._src.jax_helpers import is_typed_key

T = TypeVar("T")


def broadcast_one_to_all(in_tree: T, is_source: bool | None = None) -> T:
    """Give every process the values that one of them has.

    Args:
        in_tree: A pytree of arrays and numbers, of the same structure and shapes in all processes.
        is_source: Whether this process has the values; process 0 has them by default.

    Returns:
        The values of the source; numpy arrays in place of raw arrays, keys as keys.

    Source:
        `jax.experimental.multihost_utils.broadcast_one_to_all`
    """
    received = multihost_utils.broadcast_one_to_all(jax.tree.map(_key_data, in_tree), is_source=is_source)
    return jax.tree.map(_like, in_tree, received)


def _key_data(x: Any) -> Any:
    """The raw data of a typed key, which collectives can not send."""
    return jax.random.key_data(x) if is_typed_key(x) else x


def _like(sent: Any, received: Any) -> Any:
    return jax.random.wrap_key_data(received, impl=jax.random.key_impl(sent)) if is_typed_key(sent) else received


def sync_global_devices(name: str) -> None:
    """Wait until every process has come to the point of this name.

    Args:
        name: What the point is called, the same in all processes.

    Source:
        `jax.experimental.multihost_utils.sync_global_devices`
    """
    multihost_utils.sync_global_devices(name)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Check that every process has the same values.

    Args:
        in_tree: A pytree of arrays and numbers.
        fail_message: Put in front of the error message.

    Raises:
        AssertionError: If the values of a process differ from those of process 0.

    Source:
        `jax.experimental.multihost_utils.assert_equal`
    """
    multihost_utils.assert_equal(jax.tree.map(_key_data, in_tree), fail_message=fail_message)
