"""Helpers for JAX itself: keys, names, checkpoints, several processes."""

from ._src.distributed import (
    assert_equal as assert_equal,
    broadcast_one_to_all as broadcast_one_to_all,
    sync_global_devices as sync_global_devices,
)
from ._src.jax_helpers import (
    F as F,
    Static as Static,
    T as T,
    broadcast_prefix as broadcast_prefix,
    ensure_scalar as ensure_scalar,
    filter_checkpoint as filter_checkpoint,
    is_in_jit as is_in_jit,
    is_jax_array_like as is_jax_array_like,
    is_on_mac_metal as is_on_mac_metal,
    is_pallas_dslice as is_pallas_dslice,
    is_scalarish as is_scalarish,
    maybe_rng_split as maybe_rng_split,
    multilevel_scan as multilevel_scan,
    named_call as named_call,
    shaped_rng_split as shaped_rng_split,
    tree_checkpoint_name as tree_checkpoint_name,
)
