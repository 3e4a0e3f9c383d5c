"""Named arrays on a mesh: mappings from axis names to mesh axes, `shard` and `named_jit`."""

import contextlib as _contextlib

from jax.sharding import Mesh as Mesh

from haliax._src.best_effort import best_effort_sharding as best_effort_sharding
from haliax._src.callables import WrappedCallable as WrappedCallable
from haliax._src.explanation import Explanation as Explanation
from haliax._src.jax_helpers import F as F
from haliax._src.make_mesh import make_mesh as make_mesh
from haliax._src.mesh_mismatch import MeshMismatchError as MeshMismatchError, MeshMismatchWarning as MeshMismatchWarning
from haliax._src.named_jit import NamedJit as NamedJit, fsdp as fsdp, named_jit as named_jit
from haliax._src.resources import (
    MeshLike as MeshLike,
    PhysicalAxisSpec as PhysicalAxisSpec,
    ResourceMapping as ResourceMapping,
    _get_mesh as _get_mesh,
    axis_mapping as axis_mapping,
    current_thread_local_mapping as current_thread_local_mapping,
)
from haliax._src.shard_map import Args as Args, R as R, shard_map as shard_map
from haliax._src.sharding import (
    ResourceAxis as ResourceAxis,
    all_mesh_axes_explicit as all_mesh_axes_explicit,
    auto_sharded as auto_sharded,
    get_pspec_for_manual_mesh as get_pspec_for_manual_mesh,
    infer_resource_partitions as infer_resource_partitions,
    mesh_context as mesh_context,
    physical_axis_name as physical_axis_name,
    physical_axis_size as physical_axis_size,
    pspec_for as pspec_for,
    pspec_for_axis as pspec_for_axis,
    round_axis_for_partitioning as round_axis_for_partitioning,
    set_mesh as set_mesh,
    shard as shard,
    shard_with_axis_mapping as shard_with_axis_mapping,
    sharding_for_axis as sharding_for_axis,
)
from haliax._src.util import T as T

with _contextlib.suppress(ModuleNotFoundError):  # the shim is one file, and may be removed
    from haliax._src.forced_host_shim import forced_host_shim as forced_host_shim
