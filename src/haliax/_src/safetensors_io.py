"""The safetensors format: where each tensor lies in a file, and reading and writing blocks of tensors in place.

A file is the length of its header, the header as JSON, and the tensors one after the other, row by row. So a block of
a tensor is a set of runs of bytes, known from the shape alone: a process reads and writes its own and no others.

The library of the format writes a file only from tensors that are all in memory, and reads by a memory map, whose pages
count as memory of the process until it is closed; hence these few functions.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from haliax._src.errors import problem

DTYPES = {
    "BOOL": np.dtype(np.bool_),
    **{f"I{8 * size}": np.dtype(f"i{size}") for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": np.dtype(f"u{size}") for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"f{size}") for size in (2, 4, 8)},
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "C64": np.dtype(np.complex64),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "F8_E8M0": np.dtype(ml_dtypes.float8_e8m0fnu),
}
"""The dtypes by the names that the format has for them."""

_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_LENGTH = 8  # bytes of the length of the header
_MAX_HEADER = 100_000_000  # the limit of the format's own library

Index = tuple[slice, ...]


class TensorFileError(ValueError):
    """A file of tensors can not be read: it is truncated, corrupt or of another kind."""


@dataclasses.dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file, of which any block can be read.

    Args:
        path: The file.
        name: The name of the tensor in the file.
        offset: Where in the file it begins, in bytes.
        shape: Its shape.
        dtype: Its dtype.
    """

    path: Path
    name: str
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def read(self, index: Index) -> np.ndarray:
        """Read a block: the bytes of the file that it consists of, and no others.

        Args:
            index: A slice with a step of 1 for each dimension.

        Returns:
            A new array.

        Raises:
            TensorFileError: If the file ends too early.
        """
        block = np.empty(block_shape(self.shape, index), self.dtype)
        at, target = 0, bytes_of(block)
        with open(self.path, "rb", buffering=0) as file:
            for start, size in runs(self.shape, index, self.dtype.itemsize):
                _read_into(file, self.offset + start, target[at : at + size], self)
                at += size
        return block

    def reshape(self, shape: tuple[int, ...]) -> StoredTensor:
        """The same tensor, seen in another shape of as many elements."""
        return dataclasses.replace(self, shape=tuple(shape))


def bytes_of(block: np.ndarray) -> memoryview:
    """The memory of a contiguous array."""
    return block.reshape(-1).view(np.uint8).data


def _read_into(file: Any, start: int, target: memoryview, tensor: StoredTensor) -> None:
    """Fill `target` from a place in a file; one call of the system reads two gigabytes at most."""
    file.seek(start)
    done = 0
    while done < len(target):
        count = file.readinto(target[done:])
        if not count:
            raise TensorFileError(problem("load_state_dict", f"{tensor.path} ends inside tensor {tensor.name!r}"))
        done += count


def block_shape(shape: Sequence[int], index: Index) -> tuple[int, ...]:
    """The shape of the block of an array at an index."""
    return tuple(len(range(*part.indices(size))) for part, size in zip(index, shape, strict=True))


def runs(shape: Sequence[int], index: Index, itemsize: int) -> Iterator[tuple[int, int]]:
    """Where the bytes of a block of a row-major array lie.

    Args:
        shape: The shape of the array.
        index: A slice with a step of 1 for each dimension.
        itemsize: Bytes of an element.

    Yields:
        Start and size, in bytes, of each contiguous run, in the order of the block's elements.
    """
    sizes = block_shape(shape, index)
    if 0 in sizes:
        return
    # the dimensions after the last one that is cut are whole, so each place in those before it is one run
    cut = max((dim for dim, size in enumerate(shape) if sizes[dim] < size), default=0)
    strides = [itemsize * math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
    starts = [part.indices(size)[0] for part, size in zip(index, shape, strict=True)]
    first = sum(start * stride for start, stride in zip(starts, strides, strict=True))
    length = itemsize * math.prod(sizes[cut:])
    for place in np.ndindex(sizes[:cut]):
        yield first + sum(i * stride for i, stride in zip(place, strides, strict=False)), length


# reading --------------------------------------------------------------------------------------------------------------


def read_header(path: Path) -> dict[str, StoredTensor]:
    """The tensors of a file, by name, with nothing read but the header.

    Args:
        path: The file.

    Returns:
        The tensors, in the order in which they lie in the file.

    Raises:
        FileNotFoundError: If there is no such file.
        TensorFileError: If the file is truncated, corrupt or not in this format.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        start = _LENGTH + int.from_bytes(file.read(_LENGTH), "little")
        if size < _LENGTH or start > size or start > _MAX_HEADER:
            raise _unreadable(path, f"has {size} bytes, and a header that ends at byte {start}")
        text = file.read(start - _LENGTH)
    try:
        header = json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise _unreadable(path, "has a header that is no JSON") from None
    if not isinstance(header, dict):
        raise _unreadable(path, "has a header that is no table of tensors")
    header.pop("__metadata__", None)
    entries = {name: _parse(path, name, entry) for name, entry in header.items()}
    end = 0
    for name, (_, _, begin, stop) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if begin != end:
            raise _unreadable(path, f"has tensor {name!r} at byte {start + begin} in place of byte {start + end}")
        if start + stop > size:
            raise _unreadable(path, f"is truncated: tensor {name!r} ends at byte {start + stop} of {size}")
        end = stop
    if start + end != size:
        raise _unreadable(path, f"has {size - start - end} bytes after its last tensor")
    return {
        name: StoredTensor(path, name, start + begin, shape, dtype)
        for name, (dtype, shape, begin, _) in sorted(entries.items(), key=lambda item: item[1][2:])
    }


def _parse(path: Path, name: str, entry: Any) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    """Dtype, shape, begin and end of a tensor, once they are sure to fit each other."""
    try:
        shape = tuple(int(size) for size in entry["shape"])
        begin, end = (int(offset) for offset in entry["data_offsets"])
        kind = entry["dtype"]
    except (KeyError, TypeError, ValueError):
        raise _unreadable(path, f"has an entry for tensor {name!r} that lacks dtype, shape or offsets") from None
    if kind not in DTYPES:
        known = f"expected one of {', '.join(DTYPES)}"
        raise TensorFileError(problem("load_state_dict", f"{path} has tensor {name!r} of dtype {kind!r}", known))
    needed = math.prod(shape) * DTYPES[kind].itemsize
    if min(shape, default=0) < 0 or begin < 0 or end - begin != needed:
        given = f"has {end - begin} bytes for tensor {name!r} of dtype {kind} and shape {shape}, which takes {needed}"
        raise _unreadable(path, given)
    return DTYPES[kind], shape, begin, end


def _unreadable(path: Path, given: str) -> TensorFileError:
    return TensorFileError(problem("load_state_dict", f"{path} {given}", "expected a whole safetensors file"))


# writing --------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Spec:
    """Shape and dtype of a tensor to be written."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """The bytes that it takes."""
        return math.prod(self.shape) * self.dtype.itemsize


def check_dtype(name: str, dtype: np.dtype[Any]) -> None:
    """Raise a TypeError for a dtype that the format has no name for."""
    if dtype not in _NAMES:
        expected = f"expected one of {', '.join(str(dtype) for dtype in _NAMES)}"
        raise TypeError(problem("save_state_dict", f"{name!r} has dtype {dtype}", expected, "Convert it first."))


def write_header(path: Path, specs: Mapping[str, Spec]) -> dict[str, StoredTensor]:
    """Begin a file: write its header and make room for the tensors.

    Args:
        path: The file, which is replaced.
        specs: Shapes and dtypes by name.

    Returns:
        Where each tensor is to be written.
    """
    # wide elements first, so that each tensor begins at a multiple of its element size
    order = sorted(specs, key=lambda name: (-specs[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in order:
        spec, begin = specs[name], end
        end += spec.nbytes
        header[name] = {"dtype": _NAMES[spec.dtype], "shape": list(spec.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    start = _LENGTH + len(text)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(_LENGTH, "little") + text)
        file.truncate(start + end)
    return {
        name: StoredTensor(path, name, start + header[name]["data_offsets"][0], specs[name].shape, specs[name].dtype)
        for name in order
    }


def write_block(tensor: StoredTensor, index: Index, block: np.ndarray) -> None:
    """Write a block of a tensor in its place.

    Args:
        tensor: Where the tensor lies.
        index: A slice with a step of 1 for each dimension.
        block: The elements, in the shape of the index.
    """
    at, data = 0, bytes_of(np.ascontiguousarray(block))
    with open(tensor.path, "r+b") as file:
        for start, size in runs(tensor.shape, index, tensor.dtype.itemsize):
            file.seek(tensor.offset + start)
            file.write(data[at : at + size])
            at += size
