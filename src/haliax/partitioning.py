"""Named arrays on a mesh: mappings from axis names to mesh axes, `shard` and `named_jit`."""

import contextlib as _contextlib

from haliax._src.mesh_mismatch import MeshMismatchError as MeshMismatchError
from haliax._src.mesh_mismatch import MeshMismatchWarning as MeshMismatchWarning
from haliax._src.named_jit import NamedJit as NamedJit
from haliax._src.named_jit import WrappedCallable as WrappedCallable
from haliax._src.named_jit import fsdp as fsdp
from haliax._src.named_jit import named_jit as named_jit
from haliax._src.resources import MeshLike as MeshLike
from haliax._src.resources import PhysicalAxisSpec as PhysicalAxisSpec
from haliax._src.resources import ResourceMapping as ResourceMapping
from haliax._src.resources import _get_mesh as _get_mesh
from haliax._src.resources import axis_mapping as axis_mapping
from haliax._src.resources import current_thread_local_mapping as current_thread_local_mapping
from haliax._src.sharding import ResourceAxis as ResourceAxis
from haliax._src.sharding import all_mesh_axes_explicit as all_mesh_axes_explicit
from haliax._src.sharding import auto_sharded as auto_sharded
from haliax._src.sharding import get_pspec_for_manual_mesh as get_pspec_for_manual_mesh
from haliax._src.sharding import infer_resource_partitions as infer_resource_partitions
from haliax._src.sharding import mesh_context as mesh_context
from haliax._src.sharding import physical_axis_name as physical_axis_name
from haliax._src.sharding import physical_axis_size as physical_axis_size
from haliax._src.sharding import pspec_for as pspec_for
from haliax._src.sharding import pspec_for_axis as pspec_for_axis
from haliax._src.sharding import round_axis_for_partitioning as round_axis_for_partitioning
from haliax._src.sharding import set_mesh as set_mesh
from haliax._src.sharding import shard as shard
from haliax._src.sharding import shard_with_axis_mapping as shard_with_axis_mapping
from haliax._src.sharding import sharding_for_axis as sharding_for_axis

with _contextlib.suppress(ModuleNotFoundError):  # the shim is one file, and may be removed
    from haliax._src.forced_host_shim import forced_host_shim as forced_host_shim
