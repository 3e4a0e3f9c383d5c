"""Files of tensors that can not be read or written: which file, which tensor, and what is wrong."""

from __future__ import annotations

import json
import os

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import haliax as hax
from haliax._src.safetensors_io import read_header
from haliax.state_dict import StateDictError, TensorFileError, from_state_dict, load_state_dict, save_state_dict
from tensor_dicts import PARTS, equal, values


def file_of(header, data=b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


WHOLE = "; expected a whole safetensors file."
BROKEN = {
    "empty": (b"", f"FILE has 0 bytes, and a header that ends at byte 8{WHOLE}"),
    "a pickle": (b"\x80\x04\x95" + b"x" * 20, "FILE has 23 bytes, and a header that ends at byte"),
    "header cut": (
        file_of({"a": entry()}, bytes(8))[:40],
        f"FILE has 40 bytes, and a header that ends at byte 69{WHOLE}",
    ),
    "header no JSON": (file_of(b"{nonsense"), f"FILE has a header that is no JSON{WHOLE}"),
    "header no text": (file_of(b"\xff\xfe\xfd"), f"FILE has a header that is no JSON{WHOLE}"),
    "header no table": (file_of([1]), f"FILE has a header that is no table of tensors{WHOLE}"),
    "entry no table": (
        file_of({"a": 1}),
        f"FILE has an entry for tensor 'a' that lacks dtype, shape or offsets{WHOLE}",
    ),
    "tensor cut": (
        file_of({"a": entry(), "b": entry(offsets=(8, 16))}, bytes(12)),
        f"FILE is truncated: tensor 'b' ends at byte 147 of 143{WHOLE}",
    ),
    "more bytes": (file_of({"a": entry()}, bytes(9)), f"FILE has 1 bytes after its last tensor{WHOLE}"),
    "a gap": (
        file_of({"a": entry(offsets=(4, 12))}, bytes(12)),
        f"FILE has tensor 'a' at byte 74 in place of byte 70{WHOLE}",
    ),
    "wrong size": (
        file_of({"a": entry(shape=(3,))}, bytes(8)),
        f"FILE has 8 bytes for tensor 'a' of dtype F32 and shape (3,), which takes 12{WHOLE}",
    ),
    "negative": (
        file_of({"a": entry(shape=(-1, -2))}, bytes(8)),
        f"FILE has 8 bytes for tensor 'a' of dtype F32 and shape (-1, -2), which takes 8{WHOLE}",
    ),
    "unknown dtype": (
        file_of({"a": entry("F4")}, bytes(8)),
        "FILE has tensor 'a' of dtype 'F4'; expected one of BOOL, I8,",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files(tmp_path, kind):
    data, message = BROKEN[kind]
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    for load in (load_state_dict, lambda path: from_state_dict({"a": jnp.ones(2)}, path)):
        with pytest.raises(TensorFileError) as error:
            load(path)
        assert str(error.value).startswith(f"load_state_dict: {message.replace('FILE', str(path))}")


def test_a_file_that_is_cut_while_it_is_read(tmp_path):
    path = tmp_path / "model.safetensors"
    save_state_dict({"a": values(100)}, path)
    tensor = read_header(path)["a"]
    os.truncate(path, tensor.offset + 200)
    with pytest.raises(TensorFileError) as error:
        tensor.read((slice(None),))
    assert str(error.value) == f"load_state_dict: {path} ends inside tensor 'a'."


def test_broken_indices(tmp_path):
    save_state_dict(PARTS, tmp_path, max_shard_size=100)
    index = tmp_path / "model.safetensors.index.json"
    part = tmp_path / "model-00001-of-00003.safetensors"
    good = index.read_text()
    for text, message in [
        ("{}", f"{index} is no index of safetensors files."),
        ("nonsense", f"{index} is no index of safetensors files."),
        (good.replace('"a"', '"x"'), f"{index} has tensor 'x' in {part.name}, which lacks it."),
        (good.replace("00001-of", "00009-of"), f"{index} names model-00009-of-00003.safetensors, which is not there."),
    ]:
        index.write_text(text)
        with pytest.raises(TensorFileError) as error:
            load_state_dict(tmp_path)
        assert str(error.value) == f"load_state_dict: {message}"


def test_what_is_not_there(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(FileNotFoundError) as error:
        load_state_dict(tmp_path)
    message = f"load_state_dict: there is no file {path}, nor model.safetensors.index.json beside it."
    assert str(error.value) == message
    with pytest.raises(FileNotFoundError) as error:
        save_state_dict(PARTS, tmp_path / "no" / "model")
    assert str(error.value) == f"save_state_dict: there is no folder {tmp_path / 'no'}."


def test_a_file_of_other_dtypes(tmp_path):
    save_state_dict({"a": values(2, np.int32), "b": values(2, ml_dtypes.bfloat16)}, tmp_path)
    with pytest.raises(StateDictError) as error:
        from_state_dict({"a": jnp.ones(2), "b": jnp.ones(2)}, tmp_path)
    assert str(error.value) == (
        "from_state_dict: the state dict and dict differ in 1 place:\n"
        f"  does not fit: 'a' has dtype int32 in {tmp_path / 'model.safetensors'}; expected one like float32"
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda path: save_state_dict({"a": "text"}, path), TypeError,
         "save_state_dict: 'a' is a string; expected an array or a number."),
        (lambda path: save_state_dict({1: np.ones(1)}, path), TypeError,
         "save_state_dict: a key of the state dict is an int; expected the name of an array."),
        (lambda path: save_state_dict({"a": np.ones(1, "U3")}, path), TypeError, None),
        (lambda path: save_state_dict({"a": np.ones(1, complex)}, path), TypeError, None),
        (lambda path: save_state_dict({"a": hax.ones(hax.Axis("x", 2))}, path), TypeError, None),
        (lambda path: jax.jit(lambda x: save_state_dict({"a": x}, path))(1), TypeError, None),
        (lambda path: save_state_dict({}, path, max_shard_size=0), ValueError,
         "save_state_dict: max_shard_size is 0; expected bytes, or None."),
        (lambda path: load_state_dict(path, mesh=hax.make_mesh({"data": 8}), sharding={"old": P("data")}), ValueError,
         "load_state_dict: 'old' of shape (3,) can not be split as ('data',)."),
        (lambda path: load_state_dict(path, mesh=hax.make_mesh({"data": 8}), sharding={"odl": P("data")}), ValueError,
         "load_state_dict: sharding has an entry for 'odl'; the file has no tensor of this name. Did you mean 'old'?"),
        (lambda path: load_state_dict(path, mesh=hax.make_mesh({"data": 8}), sharding={"embed": "data"}), ValueError,
         "load_state_dict: sharding has an entry for 'embed'; the file has no tensor of this name."
         " To lay arrays out by the names of their axes, use from_state_dict."),
        (lambda path: load_state_dict(path, mesh=hax.make_mesh({"data": 8}), sharding={"old": "data"}), TypeError,
         "load_state_dict: the sharding of 'old' is a string; expected a PartitionSpec, a sharding, or None."),
        (lambda path: load_state_dict(path, mesh=hax.make_mesh({"data": 8}), sharding=3), TypeError,
         "load_state_dict: sharding is an int; expected \"best_effort\", a mapping or a function."),
        (lambda path: load_state_dict(path, sharding="best_effort"), ValueError,
         "load_state_dict: there is no mesh. Pass mesh=..., or call it under `with haliax.set_mesh(mesh):`."),
    ],
)  # fmt: skip
def test_messages(tmp_path, call, error, message):
    save_state_dict({"old": np.ones(3)}, tmp_path)
    with pytest.raises(error) as raised:
        call(tmp_path)
    assert message is None or str(raised.value) == message
    assert equal(load_state_dict(tmp_path), {"old": np.ones(3)})
