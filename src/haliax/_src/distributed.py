"""What several processes must do together. With one process, each of these does nothing."""

from __future__ import annotations

from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

from haliax._src.jax_helpers import is_typed_key

T = TypeVar("T")


def broadcast_one_to_all(in_tree: T, is_source: bool | None = None) -> T:
    """Give every process the values that one of them has.

    Args:
        in_tree: A pytree of arrays and numbers, of the same structure and shapes in all processes.
        is_source: Whether this process has the values; process 0 has them by default.

    Returns:
        The values of the source; numpy arrays in place of raw arrays and numbers, keys as keys.

    Source:
        `jax.experimental.multihost_utils.broadcast_one_to_all`
    """
    received = multihost_utils.broadcast_one_to_all(jax.tree.map(_as_sent, in_tree), is_source=is_source)
    return jax.tree.map(_as_received, in_tree, received)


def _as_sent(x: Any) -> Any:
    """What collectives send of a leaf: of a typed key its data, and bytes of what JAX would narrow, such as int64."""
    if is_typed_key(x):
        return jax.random.key_data(x)
    if isinstance(x, jax.Array):
        return x
    x = np.asarray(x)
    return x if jax.dtypes.canonicalize_dtype(x.dtype) == x.dtype else np.frombuffer(x.tobytes(), np.uint8)


def _as_received(x: Any, received: Any) -> Any:
    """Undo `_as_sent` for what was received in place of `x`."""
    if is_typed_key(x):
        return jax.random.wrap_key_data(received, impl=jax.random.key_impl(x))
    dtype = x.dtype if isinstance(x, jax.Array) else np.asarray(x).dtype
    return received if received.dtype == dtype else np.frombuffer(received.tobytes(), dtype).reshape(np.shape(x))


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
    multihost_utils.assert_equal(jax.tree.map(_as_sent, in_tree), fail_message=fail_message)
