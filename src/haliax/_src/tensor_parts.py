"""Tensors on the host, in blocks: arrays of devices taken apart, blocks put on devices, and what makes up a tensor.

A *tensor* here has a shape, a dtype and `read(index)`, which gives a block of it as a numpy array; it may be in a file
(`StoredTensor`), in memory, or many tensors stacked. Nothing bigger than the block of one device is in memory at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from haliax._src.best_effort import best_effort_sharding
from haliax._src.errors import problem
from haliax._src.jax_helpers import is_typed_key
from haliax._src.safetensors_io import Index, block_shape
from haliax._src.transfers import check_transfer, transfer


class Tensor(Protocol):
    """What blocks can be read from."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the blocks."""
        ...

    def read(self, index: Index) -> np.ndarray:
        """The block at an index."""
        ...

    def reshape(self, shape: tuple[int, ...]) -> Tensor:
        """The same elements, row by row, in another shape."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class HostTensor:
    """A tensor that is a numpy array."""

    array: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the array."""
        return self.array.dtype

    def read(self, index: Index) -> np.ndarray:
        """The block at an index: a copy, as the array is the caller's, and arrays of the CPU may share memory."""
        return np.array(self.array[index])

    def reshape(self, shape: tuple[int, ...]) -> HostTensor:
        """The same elements, row by row, in another shape."""
        return HostTensor(self.array.reshape(shape))


@dataclasses.dataclass(frozen=True, eq=False)
class StackedTensor:
    """Tensors of one shape and dtype, stacked along a new dimension in front."""

    parts: tuple[Tensor, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of tensors, and the shape of each."""
        return (len(self.parts), *self.parts[0].shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of each tensor."""
        return self.parts[0].dtype

    def read(self, index: Index) -> np.ndarray:
        """The block at an index, to which only the tensors in the first slice contribute."""
        block = np.empty(block_shape(self.shape, index), self.dtype)
        for i, part in enumerate(self.parts[index[0]]):
            block[i] = part.read(index[1:])
        return block

    def reshape(self, shape: tuple[int, ...]) -> StackedTensor:
        """The same elements in another shape, whose first dimension is still that of the stack."""
        return StackedTensor(tuple(part.reshape(shape[1:]) for part in self.parts))


@dataclasses.dataclass(frozen=True, eq=False)
class ScaledTensor:
    """A tensor times a number, block by block as it is read."""

    tensor: Tensor
    factor: float

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return self.tensor.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the tensor."""
        return self.tensor.dtype

    def read(self, index: Index) -> np.ndarray:
        """The block at an index, scaled in place, bit by bit: there is no memory for another one."""
        block = np.asarray(self.tensor.read(index), order="C")
        elements = block.reshape(-1)
        for start in range(0, elements.size, _ELEMENTS_AT_ONCE):
            some = elements[start : start + _ELEMENTS_AT_ONCE]
            some[:] = scale(some, self.factor)
        return block

    def reshape(self, shape: tuple[int, ...]) -> ScaledTensor:
        """The same elements, row by row, in another shape."""
        return ScaledTensor(self.tensor.reshape(shape), self.factor)


_ELEMENTS_AT_ONCE = 1 << 16


def scale(value: Any, factor: float) -> Any:
    """A value of a state dict times a number, in its own dtype; what is still to be read is scaled then."""
    if factor == 1 or isinstance(value, jax.ShapeDtypeStruct):
        return value
    if hasattr(value, "read"):
        return ScaledTensor(value, factor)
    # a dtype of few digits has no room for the factor, which would be off for all elements alike
    wide = jnp.float32 if value.dtype.itemsize < 4 else value.dtype
    return (value.astype(wide) * factor).astype(value.dtype)


def as_tensor(value: Any) -> Any:
    """A value of a state dict as a tensor; what is on devices stays there."""
    if isinstance(value, jax.Array | StackedTensor) or hasattr(value, "read"):
        return value
    return HostTensor(np.asarray(value))


def stack(values: Sequence[Any]) -> Any:
    """Stack what `as_tensor` returned, without reading anything."""
    if any(isinstance(value, jax.Array) for value in values):
        return jnp.stack([value if isinstance(value, jax.Array) else put(value, None) for value in values])
    return StackedTensor(tuple(values))


def everything(shape: Sequence[int]) -> Index:
    """The index of a whole array."""
    return (slice(None),) * len(shape)


# from devices ---------------------------------------------------------------------------------------------------------


def blocks(array: Any) -> Iterator[tuple[Index, np.ndarray]]:
    """The blocks of an array of which this process has a copy, each once, as numpy arrays.

    Args:
        array: An array, of numpy or on devices.

    Yields:
        Index and elements; a block of memory at a time, which the array does not keep.
    """
    if not isinstance(array, jax.Array):
        array = np.asarray(array)
        yield everything(array.shape), array.astype(array.dtype.newbyteorder("="), copy=False)
        return
    seen = set()
    for shard in array.addressable_shards:
        if str(shard.index) not in seen:
            seen.add(str(shard.index))
            yield shard.index, _to_numpy(shard.data)


def _to_numpy(array: jax.Array) -> np.ndarray:
    """The elements of an array of one device: on the CPU its own memory; JAX would keep what it copies from others."""
    (device,) = array.devices()
    return np.asarray(array if device.platform == "cpu" else array.copy())


def check_gatherable(op: str, name: str, array: Any) -> None:
    """Raise a ValueError if an array is on some processes, and this one can not get at it."""
    if not isinstance(array, jax.Array) or array.is_fully_addressable:
        return
    missing = set(range(jax.process_count())) - {device.process_index for device in array.sharding.device_set}
    if missing:
        given = f"{name!r} has no part on process {min(missing)}"
        raise ValueError(problem(op, given, "expected an array of one process, or of all"))


def gather(array: Any) -> Any:
    """An array of which this process has all blocks; every process must call this.

    Between processes, the result is split over the devices of each process, so that there is one copy of it for each
    process, not one for each device.

    Args:
        array: Any array that passes `check_gatherable`.

    Returns:
        The array itself if this process has all of it.
    """
    if not isinstance(array, jax.Array) or array.is_fully_addressable or array.is_fully_replicated:
        return array
    (gathered,) = transfer([array], [_one_copy_per_process(array)])
    return gathered


def _one_copy_per_process(array: jax.Array) -> NamedSharding:
    """A layout over the same devices in which each process has all of an array, once if it divides."""
    by_process: dict[int, list[Any]] = {}
    for device in sorted(array.sharding.device_set, key=lambda device: device.id):
        by_process.setdefault(device.process_index, []).append(device)
    groups = list(by_process.values())
    if len({len(group) for group in groups}) > 1:
        everywhere = [device for group in groups for device in group]
        return NamedSharding(Mesh(np.array(everywhere), ("device",)), PartitionSpec())
    return best_effort_sharding(array, mesh=Mesh(np.array(groups), ("replica", "device")))


def to_host(op: str, name: str, array: Any) -> np.ndarray:
    """All elements of an array as a numpy array, of a typed key its data; every process must call this.

    Args:
        op: The operation, for error messages.
        name: What to call the array, for error messages.
        array: Any array.

    Raises:
        ValueError: If it is on some processes alone.
        TypeError: If it has no values, in a function that is being traced.
    """
    if isinstance(array, Tracer):
        given = f"{name!r} is an array of a function that is being traced, which has no values yet"
        raise TypeError(problem(op, given, remedy="Call it outside of the function, or use to_state_dict there."))
    if is_typed_key(array):
        array = jax.random.key_data(array)
    check_gatherable(op, name, array)
    if not isinstance(array, jax.Array):
        return np.asarray(array)
    whole = np.empty(array.shape, array.dtype)
    for index, block in blocks(gather(array)):
        whole[index] = block
    return whole


# to devices -----------------------------------------------------------------------------------------------------------


def put(tensor: Any, sharding: Sharding | None, name: str = "") -> jax.Array:
    """Put a tensor on devices, block by block.

    Args:
        tensor: What `as_tensor` returned.
        sharding: Its layout; the default device, or for an array on devices where it is, if None.
        name: What to call it in an error message.

    Returns:
        An array in the dtype that JAX has for that of the tensor.

    Raises:
        ValueError: If integers do not fit into the dtype that JAX has for them.

    Source:
        `jax.make_array_from_callback`, which keeps the blocks of all devices until all are there
    """
    if isinstance(tensor, jax.Array):
        if sharding is None:
            return tensor
        if isinstance(sharding, NamedSharding):
            check_transfer("from_state_dict", repr(name), tensor, sharding)
        return transfer([tensor], [sharding])[0]  # pyright: ignore[reportArgumentType]
    if sharding is None:
        return jax.device_put(narrowed(tensor.read(everything(tensor.shape)), name))
    by_index: dict[str, tuple[Index, list[Any]]] = {}
    for device, index in sharding.addressable_devices_indices_map(tensor.shape).items():
        by_index.setdefault(str(index), (index or (), []))[1].append(device)
    arrays = []
    for index, devices in by_index.values():
        block = narrowed(tensor.read(index), name)
        arrays += jax.block_until_ready([jax.device_put(block, device) for device in devices])
    dtype = jax.dtypes.canonicalize_dtype(tensor.dtype)
    return jax.make_array_from_single_device_arrays(tensor.shape, sharding, arrays, dtype=dtype)


def narrowed(block: np.ndarray, name: str) -> np.ndarray:
    """A block in the dtype that JAX has for it: without 64 bits, integers must fit into 32."""
    dtype = np.dtype(jax.dtypes.canonicalize_dtype(block.dtype))
    if dtype == block.dtype:
        return block
    if np.issubdtype(dtype, np.integer) and block.size:
        limits = np.iinfo(dtype)
        if block.min() < limits.min or block.max() > limits.max:
            given = f"{name!r} has {block.dtype} integers that do not fit into {dtype}"
            raise ValueError(problem("load_state_dict", given, remedy="Switch jax_enable_x64 on."))
    return block.astype(dtype)
