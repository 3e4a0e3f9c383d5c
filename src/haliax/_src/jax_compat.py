"""The only file that imports `jax._src`: what JAX knows and does not yet tell in public.

Each function says which public name it waits for. Everything here holds for jax 0.9.2 to 0.12.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
from jax._src import config as _config, core as _core, mesh as _mesh, sharding_impls as _sharding_impls, util as _util
from jax._src.array import ArrayImpl as ArrayImpl
from jax._src.core import ShardingTypeError as ShardingTypeError, trace_state_clean as _trace_state_clean
from jax._src.named_sharding import DuplicateSpecError as DuplicateSpecError
from jax.core import Tracer
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

# of JAX's plain arrays; asking for the public attributes takes twice as long
_sharding_of, _is_committed = operator.attrgetter("_sharding"), operator.attrgetter("_committed")
_WITHOUT_MESH = {SingleDeviceSharding}


def shardings_if_committed(arrays: Sequence[Any]) -> list[Sharding] | None:
    """The shardings of arrays that are all plain and committed, else None."""
    try:
        return list(map(_sharding_of, arrays)) if all(map(_is_committed, arrays)) else None
    except AttributeError:
        return None


def shared_mesh(arrays: Sequence[Any]) -> Mesh | None:
    """The one mesh that the committed arrays of a call share, if there is one.

    Each call of `named_jit` without a mesh asks; the usual answers, that none has a mesh or all are on one, come first.
    """
    try:
        if {array._sharding.__class__ for array in arrays} <= _WITHOUT_MESH:
            return None
        if len({id(array._sharding.mesh) for array in arrays}) == 1 and any(map(_is_committed, arrays)):
            return arrays[0]._sharding.mesh
    except AttributeError:  # not all of them are plain arrays on meshes
        pass
    try:
        shardings = list(itertools.compress(map(_sharding_of, arrays), map(_is_committed, arrays)))
    except AttributeError:
        known = [a for a in arrays if isinstance(a, jax.Array) and not isinstance(a, Tracer)]
        shardings = [a.sharding for a in known if a.committed]
    meshes = {id(s.mesh): s.mesh for s in shardings if isinstance(s, NamedSharding)}
    distinct = {mesh for mesh in meshes.values() if isinstance(mesh, Mesh)}  # to compare them calls Python
    return distinct.pop() if len(distinct) == 1 else None


# where the mesh of `jax.set_mesh` is kept, up to jax 0.10 and from 0.11 on
_contexts: Any = _mesh if hasattr(_mesh, "device_context") else _config
_concrete_context, _abstract_context = _contexts.device_context, _contexts.abstract_mesh_context_manager
_trace_context = _core.trace_ctx
_NO_MESH, _NO_ABSTRACT_MESH = _concrete_context.get_global(), _abstract_context.get_global()
_thread_resources = _mesh.thread_resources  # where that of `with mesh:` is kept


def ambient_mesh() -> Mesh | AbstractMesh | None:
    """The mesh in force here: set with `jax.set_mesh`, that of the current trace, or entered with `with mesh:`.

    JAX has no public way to ask for the first inside a trace, nor for the last. A mesh without axes stands for none.
    Each call of `named_jit` asks, so the usual case comes first.
    """
    concrete, abstract = _concrete_context.value, _abstract_context.value
    if concrete is not _NO_MESH or abstract is not _NO_ABSTRACT_MESH:
        concrete, abstract = _set_mesh(), abstract_mesh()
        # inside a trace the abstract mesh is the one that counts: of a `named_jit` on another mesh, or inside
        # `shard_map`, which makes axes manual
        if abstract is not None and (concrete is None or concrete.abstract_mesh != abstract):
            return abstract
        if concrete is not None:
            return concrete
    legacy = _thread_resources.env.physical_mesh
    return legacy if legacy.axis_names else None


def _set_mesh() -> Mesh | None:
    """The mesh set with `jax.set_mesh`."""
    mesh = _concrete_context.value
    return mesh if mesh is not None and mesh.axis_names else None


def abstract_mesh() -> AbstractMesh | None:
    """The mesh of the current trace or of `jax.sharding.use_abstract_mesh`."""
    mesh = _abstract_context.value
    return mesh if mesh is not None and mesh.axis_names else None


def legacy_mesh() -> Mesh | None:
    """The mesh entered with the deprecated `with mesh:`."""
    mesh = _thread_resources.env.physical_mesh
    return mesh if mesh.axis_names else None


def is_in_trace() -> bool:
    """Whether any JAX transformation is tracing at this point; JAX has no public way to ask."""
    return not _trace_state_clean()


def mesh_scope(mesh: Mesh | AbstractMesh) -> contextlib.AbstractContextManager[Any]:
    """A context in which `mesh` is the mesh: `jax.set_mesh`, or inside a trace and for an abstract mesh its like."""
    if isinstance(mesh, Mesh) and _trace_state_clean():
        with contextlib.suppress(ValueError):  # jax 0.9.2 takes an eager vmap for a trace here
            return jax.set_mesh(mesh)
    return jax.sharding.use_abstract_mesh(mesh.abstract_mesh if isinstance(mesh, Mesh) else mesh)


@contextlib.contextmanager
def eager_scope() -> Iterator[None]:
    """A context in which operations on arrays run, also under an abstract mesh alone, on which JAX runs nothing.

    Inside a trace it changes nothing. As a decorator it serves functions that convert arrays, wherever they are called.
    """
    if abstract_mesh() is None or _set_mesh() is not None or not _trace_state_clean():
        yield
        return
    with jax.sharding.use_abstract_mesh(AbstractMesh((), ())):
        yield


def call_under_mesh(mesh: Mesh | AbstractMesh | None, fn: Callable[[Any], Any], argument: Any) -> Any:
    """`fn(argument)` under `mesh_scope(mesh)`.

    Outside a trace it swaps the two thread-local values that `jax.set_mesh` swaps: in half a microsecond in place of
    three, of the four that a call of `named_jit` may cost beyond `jax.jit`.
    """
    if mesh is None:
        return fn(argument)
    outside = _trace_context.trace is _core.eval_trace and _trace_context.axis_env is _core.top_axis_env
    if not outside or not isinstance(mesh, Mesh):
        with mesh_scope(mesh):
            return fn(argument)
    abstract = _abstract_context.swap_local(mesh.abstract_mesh)
    concrete = _concrete_context.swap_local(mesh)
    try:
        return fn(argument)
    finally:
        _concrete_context.set_local(concrete)
        _abstract_context.set_local(abstract)


class _Clearer:
    """Clears the caches of all living owners when `jax.clear_caches()` is called."""

    def __init__(self) -> None:
        self.owners: weakref.WeakSet[Any] = weakref.WeakSet()

    def cache_clear(self) -> None:
        for owner in list(self.owners):
            owner.clear_cache()


_clearer = _Clearer()
_util.register_cache(_clearer, "haliax")


def clear_with_jax(owner: Any) -> None:
    """Have `owner.clear_cache()` called by `jax.clear_caches()` for as long as `owner` lives."""
    _clearer.owners.add(owner)


def device_order(sharding: jax.sharding.Sharding) -> tuple[Any, ...]:
    """The devices of a sharding in order; JAX tells only their set in public."""
    return tuple(sharding._device_assignment)


def on_mesh(sharding: Sharding, mesh: Mesh) -> Sharding:
    """A sharding that the compiler chose, with a PartitionSpec over `mesh`; JAX gives one only for some arrays."""
    hlo_sharding = getattr(sharding, "_hlo_sharding", None)
    if isinstance(sharding, NamedSharding) or hlo_sharding is None:
        return sharding
    try:
        (spec,) = _sharding_impls.parse_flatten_op_sharding(hlo_sharding, mesh)
    except (AssertionError, NotImplementedError, ValueError):  # split in a way that this mesh has no axes for
        return sharding
    return NamedSharding(mesh, spec, memory_kind=sharding.memory_kind)


def spec_entries(spec: PartitionSpec) -> tuple[Any, ...]:
    """The entry of each dimension; from jax 0.10 on a spec with partial sums is not to be iterated over."""
    return tuple(getattr(spec, "partitions", spec))


def compiled_count(jitted: Any) -> int:
    """How many compiled programs JAX keeps for calls of a jitted function; only its tests ask in this way."""
    return jitted._cache_size()
