"""Helpers for JAX itself: keys, names, checkpoints, several processes."""

from ._src.distributed import assert_equal as assert_equal
from ._src.distributed import broadcast_one_to_all as broadcast_one_to_all
from ._src.distributed import sync_global_devices as sync_global_devices
from ._src.jax_helpers import F as F
from ._src.jax_helpers import Static as Static
from ._src.jax_helpers import T as T
from ._src.jax_helpers import broadcast_prefix as broadcast_prefix
from ._src.jax_helpers import ensure_scalar as ensure_scalar
from ._src.jax_helpers import filter_checkpoint as filter_checkpoint
from ._src.jax_helpers import is_in_jit as is_in_jit
from ._src.jax_helpers import is_jax_array_like as is_jax_array_like
from ._src.jax_helpers import is_on_mac_metal as is_on_mac_metal
from ._src.jax_helpers import is_pallas_dslice as is_pallas_dslice
from ._src.jax_helpers import is_scalarish as is_scalarish
from ._src.jax_helpers import maybe_rng_split as maybe_rng_split
from ._src.jax_helpers import multilevel_scan as multilevel_scan
from ._src.jax_helpers import named_call as named_call
from ._src.jax_helpers import shaped_rng_split as shaped_rng_split
from ._src.jax_helpers import tree_checkpoint_name as tree_checkpoint_name
