"""Files of many tensors: one safetensors file, or several with an index, as Hugging Face has them.

Saving writes beside the old files and renames at the end, so that at any moment a whole state dict is in place: the old
one or the new one. Of several processes, the first writes; each array is gathered by itself and forgotten.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.experimental import multihost_utils

from haliax._src.errors import bad_value, problem, wrong_type
from haliax._src.jax_compat import eager_scope
from haliax._src.jax_helpers import is_typed_key
from haliax._src.safetensors_io import (
    Spec,
    StoredTensor,
    TensorFileError,
    check_dtype,
    read_header,
    write_block,
    write_header,
)
from haliax._src.tensor_parts import blocks, check_gatherable, gather

PathLike = str | os.PathLike[str]

NAME = "model.safetensors"
"""The file in a folder, if only the folder is given."""

INDEX = ".index.json"
"""What is put after the name of a file to get that of the index of its parts."""


# reading --------------------------------------------------------------------------------------------------------------


def open_tensors(path: PathLike) -> dict[str, StoredTensor]:
    """The tensors of a file, or of several that belong together, with nothing read but what says where they are.

    Args:
        path: A safetensors file, an index of several, or a folder with either.

    Returns:
        The tensors by name.

    Raises:
        FileNotFoundError: If there is no such file.
        TensorFileError: If a file is truncated, corrupt or of another kind.
    """
    path = _file_of("load_state_dict", path)
    if path.exists() and not path.name.endswith(INDEX):
        return read_header(path)
    index = path if path.name.endswith(INDEX) else path.with_name(path.name + INDEX)
    if not index.exists():
        raise FileNotFoundError(problem("load_state_dict", f"there is no file {path}, nor {index.name} beside it"))
    places = _read_index(index)
    headers = {file: _read_part(index, file) for file in sorted(set(places.values()))}
    for name, file in places.items():
        if name not in headers[file]:
            raise TensorFileError(problem("load_state_dict", f"{index} has tensor {name!r} in {file}, which lacks it"))
    return {name: headers[file][name] for name, file in places.items()}


def _file_of(op: str, path: PathLike) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise wrong_type(op, "path", path, "the path of a file or folder")
    path = Path(path)
    return path / NAME if path.is_dir() else path


def _read_index(index: Path) -> dict[str, str]:
    """In which file each tensor is, by name."""
    try:
        places = json.loads(index.read_text())["weight_map"]
        return {str(name): os.fspath(file) for name, file in places.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise TensorFileError(problem("load_state_dict", f"{index} is no index of safetensors files")) from None


def _read_part(index: Path, file: str) -> dict[str, StoredTensor]:
    try:
        return read_header(index.parent / file)
    except FileNotFoundError:
        raise TensorFileError(problem("load_state_dict", f"{index} names {file}, which is not there")) from None


# writing --------------------------------------------------------------------------------------------------------------


@eager_scope()
def save_state_dict(state_dict: Mapping[str, Any], path: PathLike, *, max_shard_size: int | None = 5 * 10**9) -> None:
    """Write a state dict in the safetensors format, so that a crash leaves the file that was there.

    Of several processes all must call this, with the same names and shapes; the first one writes. One array at a time
    is gathered on its host.

    Args:
        state_dict: Arrays, of numpy or on devices in any layout, and numbers, by name; None for no entry.
        path: The file, or a folder, in which it is `model.safetensors`. A file there is replaced.
        max_shard_size: The most bytes of tensors in a file. A bigger state dict is written as Hugging Face does it: as
            `model-00001-of-00003.safetensors` and so on, and `model.safetensors.index.json`, which says what is where.
            None for one file in any case.

    Raises:
        TypeError: If a value is no array, or has a dtype that the format does not know.
        ValueError: If an array is on some processes alone.
        OSError: If the files can not be written. The old ones are then still in place.

    Source:
        https://huggingface.co/docs/safetensors
    """
    file, values = Path(), {}
    failure: Exception | None = None
    try:
        if max_shard_size is not None and max_shard_size < 1:
            raise bad_value("save_state_dict", f"max_shard_size is {max_shard_size}", "expected bytes, or None")
        file = _file_of("save_state_dict", path)
        values = {name: _checked(name, value) for name, value in state_dict.items() if value is not None}
    except Exception as error:
        failure = error
    _agree(failure)
    gathered = ((name, gather(value)) for name, value in values.items())
    try:
        if jax.process_index() == 0:
            _write_files(file, {name: _spec(value) for name, value in values.items()}, max_shard_size, gathered)
    except Exception as error:
        failure = error
    # the other processes wait for the parts that this one has, even if it can not write; nothing is kept
    collections.deque(gathered, maxlen=0)
    _agree(failure)


def _agree(failure: Exception | None) -> None:
    """Raise in every process if one has failed, so that no process waits for another."""
    failed = [failure is not None]
    if jax.process_count() > 1:
        failed = multihost_utils.process_allgather(np.array(failed)).reshape(-1).tolist()
    if failure is not None:
        raise failure
    if any(failed):
        raise OSError(problem("save_state_dict", f"process {failed.index(True)} could not do its part"))


def _checked(name: Any, value: Any) -> Any:
    """A value in the form in which it is written."""
    if not isinstance(name, str):
        raise wrong_type("save_state_dict", "a key of the state dict", name, "the name of an array")
    if isinstance(value, bool | int | float | complex | np.generic | np.ndarray):
        value = np.asarray(value)
    elif not isinstance(value, jax.Array) or isinstance(value, Tracer):
        raise wrong_type("save_state_dict", f"{name!r}", value, "an array or a number")
    elif is_typed_key(value):
        value = jax.random.key_data(value)
    check_dtype(name, _spec(value).dtype)
    check_gatherable("save_state_dict", name, value)
    return value


def _spec(value: Any) -> Spec:
    return Spec(tuple(value.shape), np.dtype(value.dtype).newbyteorder("="))


def _write_files(path: Path, specs: Mapping[str, Spec], limit: int | None, arrays: Iterable[tuple[str, Any]]) -> None:
    """Write new files, then put them in the place of the old ones by one renaming, then remove the old ones."""
    if not path.parent.is_dir():
        raise FileNotFoundError(problem("save_state_dict", f"there is no folder {path.parent}"))
    groups, index = _groups(specs, limit), path.with_name(path.name + INDEX)
    old = _listed(index)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    files = [temporary] if len(groups) == 1 else _new_names(path, len(groups))
    with _removed_on_failure([temporary, *files]):
        places: dict[str, StoredTensor] = {}
        for file, names in zip(files, groups, strict=True):
            places |= write_header(file, {name: specs[name] for name in names})
        for name, array in arrays:
            _write(places[name], array)
            del array  # before the next one is gathered
        if len(groups) > 1:
            temporary.write_text(_index_text(specs, places))
        for file in {temporary, *files}:
            _flush(file)
        os.replace(temporary, index if len(groups) > 1 else path)
    # where a crash leaves both, `open_tensors` takes the single file: the new one, or the old one, but a whole one
    for stale in [path, *old] if len(groups) > 1 else [index, *old]:
        if stale not in files:
            stale.unlink(missing_ok=True)


def _write(place: StoredTensor, array: Any) -> None:
    for index, block in blocks(array):
        write_block(place, index, block)


def _groups(specs: Mapping[str, Spec], limit: int | None) -> list[list[str]]:
    """The names of the tensors of each file, in order."""
    groups: list[list[str]] = [[]]
    size = 0
    for name, spec in specs.items():
        if limit is not None and groups[-1] and size + spec.nbytes > limit:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += spec.nbytes
    return groups


def _new_names(path: Path, count: int) -> list[Path]:
    """Names of files that do not exist: the usual ones, unless older files have them."""
    stem = path.name.removesuffix(".safetensors")
    for middle in ("", f"-{uuid.uuid4().hex[:8]}"):
        names = [f"{stem}{middle}-{i:05}-of-{count:05}.safetensors" for i in range(1, count + 1)]
        files = [path.with_name(name) for name in names]
        if not any(file.exists() for file in files):
            break
    return files


def _index_text(specs: Mapping[str, Spec], places: Mapping[str, StoredTensor]) -> str:
    total = sum(spec.nbytes for spec in specs.values())
    weight_map = {name: places[name].path.name for name in specs}
    return json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}, indent=2) + "\n"


def _listed(index: Path) -> list[Path]:
    """The files of an index, if there is one that can be read."""
    try:
        return [index.parent / file for file in sorted(set(_read_index(index).values())) if os.sep not in file]
    except (OSError, TensorFileError):
        return []


@contextlib.contextmanager
def _removed_on_failure(files: Sequence[Path]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for file in files:
            file.unlink(missing_ok=True)
        raise


def _flush(file: Path) -> None:
    """Wait until a file is on the disk: a renaming must not come before what it names."""
    with open(file, "rb") as stream:
        os.fsync(stream.fileno())
