"""Files of tensors: what is written and read, block by block, over a mesh, in one file or many, whole or broken."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tracemalloc
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings, strategies as st
from jax.sharding import NamedSharding, PartitionSpec as P

import haliax as hax
import haliax.nn as hnn
from haliax._src import tensor_files
from haliax._src.safetensors_io import Spec, StoredTensor, read_header, runs, write_block, write_header
from haliax.state_dict import (
    StateDictError,
    TensorFileError,
    from_state_dict,
    from_torch_compatible_state_dict,
    load_state_dict,
    save_state_dict,
    to_torch_compatible_state_dict,
)
from tensor_dicts import PARTS, equal, values

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8"]
SMALL_FLOATS = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu]


STATE = {
    "step": np.int64(2**40),
    **{np.dtype(dtype).name: values((3, 2), dtype) for dtype in [*DTYPES, *SMALL_FLOATS]},
    "scalar": np.float32(3),
    "empty": np.zeros((0, 3), np.int8),
    "ä.0": values(5),
}


# the format -----------------------------------------------------------------------------------------------------------


def test_any_dtype_and_shape_comes_back(tmp_path):
    save_state_dict(STATE, tmp_path / "all.safetensors")
    assert equal(load_state_dict(tmp_path / "all.safetensors"), STATE)
    assert [file.name for file in tmp_path.iterdir()] == ["all.safetensors"]


def test_the_library_reads_what_is_written(tmp_path):
    state = {name: value for name, value in STATE.items() if np.asarray(value).dtype.isbuiltin == 1}
    save_state_dict(state, tmp_path / "file")
    assert equal(safetensors.numpy.load_file(tmp_path / "file"), {name: np.asarray(x) for name, x in state.items()})
    with safetensors.safe_open(tmp_path / "file", "np") as file:
        assert file.metadata() == {"format": "pt"}


def test_what_the_library_writes_is_read(tmp_path):
    state = {name: np.asarray(value) for name, value in STATE.items() if np.asarray(value).dtype.isbuiltin == 1}
    safetensors.numpy.save_file(state, tmp_path / "file", metadata={"by": "someone"})
    assert equal(load_state_dict(tmp_path / "file"), state)


def test_tensors_are_aligned(tmp_path):
    save_state_dict(STATE, tmp_path / "file")
    for tensor in read_header(tmp_path / "file").values():
        assert tensor.offset % tensor.dtype.itemsize == 0


def test_numbers_and_foreign_byte_orders_and_views(tmp_path):
    state = {"int": 3, "float": 1.5, "bool": True, "big": values(4, ">f4"), "strided": values((4, 6))[::2, ::3].T}
    save_state_dict(state, str(tmp_path / "file"))
    expected = {"big": values(4, "<f4"), "strided": np.array(state["strided"])}
    assert equal(load_state_dict(str(tmp_path / "file")), {**state, **expected})


def test_none_has_no_entry(tmp_path):
    save_state_dict({"bias": None, "weight": values(3)}, tmp_path)
    assert equal(load_state_dict(tmp_path), {"weight": values(3)})


def test_typed_keys_are_saved_as_their_numbers(tmp_path):
    keys = hax.NamedArray(jax.random.split(jax.random.key(0), 3), ("x",))
    save_state_dict({"keys": keys.array}, tmp_path / "file")
    loaded = from_state_dict({"keys": keys}, tmp_path / "file")["keys"]
    assert loaded.array.dtype == keys.array.dtype
    assert np.array_equal(jax.random.key_data(loaded.array), jax.random.key_data(keys.array))


@st.composite
def blocks(draw):
    """A shape, and an index of one of its blocks."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    bounds = [sorted((draw(st.integers(0, n)), draw(st.integers(0, n)))) for n in shape]
    return shape, tuple(slice(*b) if draw(st.booleans()) else slice(None) for b in bounds)


@settings(max_examples=100)
@given(blocks())
def test_the_runs_of_a_block_are_its_elements(block):
    shape, index = block
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    places = [place for start, size in runs(shape, index, 1) for place in range(start, start + size)]
    assert places == array[index].ravel().tolist()
    assert all(size for _, size in runs(shape, index, 1))


@pytest.mark.parametrize("dtype", ["?", "f4", ml_dtypes.bfloat16])
def test_blocks_are_read_and_written_in_place(tmp_path, dtype):
    array = values((4, 3, 6), dtype)
    tensor = write_header(tmp_path / "file", {"x": Spec(array.shape, array.dtype), "y": Spec((), array.dtype)})["x"]
    for i in (slice(0, 1), slice(1, 4)):
        for k in (slice(0, 2), slice(2, 6)):
            write_block(tensor, (i, slice(None), k), array[i, :, k])
    assert equal({"x": load_state_dict(tmp_path / "file")["x"]}, {"x": array})
    for index in [(slice(1, 3), slice(None), slice(None)), (slice(None), slice(1, 2), slice(3, 5))]:
        assert np.array_equal(tensor.read(index), array[index])
    assert np.array_equal(tensor.reshape((12, 6)).read((slice(2, 5), slice(0, 3))), array.reshape(12, 6)[2:5, :3])


# onto a mesh ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def bytes_read(monkeypatch) -> list[int]:
    """The sizes of the blocks read from files."""
    sizes: list[int] = []

    def read(tensor, index, read=StoredTensor.read):
        block = read(tensor, index)
        sizes.append(block.nbytes)
        return block

    monkeypatch.setattr(StoredTensor, "read", read)
    return sizes


BIG = {
    "a": values((8, 12)),
    "b": values((4, 2), ml_dtypes.bfloat16),
    "c": values(6, np.int64),
    "flag": np.array([True]),
}


@pytest.mark.parametrize("kind", ["mesh", "explicit_mesh"])
@pytest.mark.parametrize(
    ("sharding", "specs"),
    [
        ("best_effort", {"a": P("model", "data"), "b": P("data", "model"), "c": P("model")}),
        (None, {}),
        ({"a": P("model", "data"), "b": P(None, "model")}, {"a": P("model", "data"), "c": P()}),
        (lambda name, array: P("data") if array.shape[0] % 4 == 0 else None, {"a": P("data"), "c": P()}),
    ],
)
def test_arrays_are_read_onto_a_mesh(tmp_path, request, bytes_read, kind, sharding, specs):
    mesh = request.getfixturevalue(kind)
    save_state_dict(BIG, tmp_path / "file")
    loaded = load_state_dict(tmp_path / "file", mesh=mesh, sharding=sharding)
    assert equal(loaded, {**BIG, "c": BIG["c"].astype(np.int32)})
    for name, spec in specs.items():
        assert loaded[name].sharding.is_equivalent_to(NamedSharding(mesh, spec), loaded[name].ndim)
    assert all(array.sharding.mesh == mesh for array in loaded.values())
    assert sum(bytes_read) == sum(np.asarray(array).nbytes for array in BIG.values())  # each element once


def test_a_sharding_can_bring_its_own_mesh(tmp_path, mesh):
    save_state_dict(BIG, tmp_path / "file")
    loaded = load_state_dict(tmp_path / "file", sharding=lambda name, array: NamedSharding(mesh, P()))
    assert equal({"a": loaded["a"]}, {"a": BIG["a"]}) and loaded["a"].sharding == NamedSharding(mesh, P())
    with jax.set_mesh(mesh):
        loaded = load_state_dict(tmp_path / "file", sharding={"a": P("data")})
    assert loaded["a"].sharding == NamedSharding(mesh, P("data"))


def test_modules_are_read_in_the_shapes_of_torch(tmp_path, mesh, bytes_read):
    L, E, H, D = hax.make_axes(L=3, E=4, H=2, D=6)
    stack = hnn.Stacked.init(L, hnn.Linear)(E, (H, D), key=jax.random.split(jax.random.key(0), 3))
    save_state_dict(to_torch_compatible_state_dict(stack), tmp_path)
    loaded = from_torch_compatible_state_dict(stack, tmp_path, mesh=mesh, sharding={"H": "model", "E": "data"})
    assert loaded.stacked.weight.array.sharding.spec == P(None, "model", None, "data")
    assert all(map(np.array_equal, jax.tree.leaves(loaded), jax.tree.leaves(stack)))
    assert sum(bytes_read) == sum(array.nbytes for array in jax.tree.leaves(stack))
    largest = stack.stacked.weight.array.nbytes // 8 // 3
    assert max(bytes_read) == max(largest, stack.stacked.bias.array.nbytes // 2 // 3)


def test_one_tensor_is_in_memory_at_a_time(tmp_path, flat_mesh):
    size = 1 << 20
    state = {f"{i}": jnp.full((8, size // 32), i, jnp.float32) for i in range(6)}
    placed = {name: jax.device_put(array, NamedSharding(flat_mesh, P("data"))) for name, array in state.items()}
    tracemalloc.start()
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(tracemalloc.stop)
        save_state_dict(placed, tmp_path / "file")
        assert tracemalloc.get_traced_memory()[1] < size
        tracemalloc.reset_peak()
        layout = NamedSharding(flat_mesh, P("data"))
        load_state_dict(tmp_path / "file", sharding=lambda name, array: layout)
        # blocks may be the memory of the arrays themselves; of what is beside them there is one block
        assert tracemalloc.get_traced_memory()[1] < 6.3 * size
    assert equal(load_state_dict(tmp_path / "file"), state)


def test_scaled_weights_take_no_more_memory(tmp_path):
    """A block is scaled where it is, also in a dtype that has to be widened for that."""
    E, V = hax.make_axes(E=768, V=4096)
    layer = hnn.Linear.init(E, V, key=jax.random.key(0), use_bias=False, reparam_cls=hnn.mup.OutputLinearMup)
    layer = jax.tree.map(lambda x: jnp.full_like(x, 768, jnp.bfloat16), layer)
    save_state_dict(to_torch_compatible_state_dict(layer), tmp_path)
    template = eqx.filter_eval_shape(lambda: layer)
    tracemalloc.start()
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(tracemalloc.stop)
        loaded = from_torch_compatible_state_dict(template, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    assert peak < 1.3 * loaded.weight.array.nbytes and (loaded.weight.array == 768).all()


def untouched(folder) -> dict:
    """Changes after which the files of `PARTS` in a folder do not fit what is asked for."""
    second = folder / "model-00002-of-00003.safetensors"
    return {
        "a file is cut": (lambda: os.truncate(second, second.stat().st_size - 1), {}, TensorFileError, "'c'"),
        "a file is gone": (second.unlink, {}, TensorFileError, second.name),
        "one is missing": (lambda: None, {"e": jnp.ones(2)}, StateDictError, "missing: 'e'"),
        "one is extra": (lambda: None, {"b": None}, StateDictError, "extra: 'b'"),
        "one has another shape": (lambda: None, {"c": jnp.ones(3)}, StateDictError, "'c' has shape"),
        "one has another dtype": (lambda: None, {"c": jnp.ones((8, 4), int)}, StateDictError, "'c' has dtype"),
    }


@pytest.mark.parametrize("case", untouched(Path()))
def test_nothing_is_read_before_all_fits(tmp_path, bytes_read, case):
    save_state_dict(PARTS, tmp_path, max_shard_size=100)
    change, other, error, words = untouched(tmp_path)[case]
    change()
    template = jax.tree.map(jnp.asarray, PARTS) | other
    with pytest.raises(error, match=re.escape(words)):
        from_state_dict(template, tmp_path)
    if error is TensorFileError:
        with pytest.raises(error, match=re.escape(words)):
            load_state_dict(tmp_path)
    assert bytes_read == []


# in parts -------------------------------------------------------------------------------------------------------------


def test_a_big_state_dict_is_written_in_parts(tmp_path):
    save_state_dict(PARTS, tmp_path / "model.safetensors", max_shard_size=100)
    names = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]
    assert sorted(file.name for file in tmp_path.iterdir()) == [*names, "model.safetensors.index.json"]
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    weight_map = {"a": names[0], "b": names[0], "c": names[1], "d": names[2]}
    assert index == {"metadata": {"total_size": 228}, "weight_map": weight_map}
    assert equal(safetensors.numpy.load_file(tmp_path / names[0]), {"a": PARTS["a"], "b": PARTS["b"]})
    for path in (tmp_path, tmp_path / "model.safetensors", tmp_path / "model.safetensors.index.json"):
        assert equal(load_state_dict(path), PARTS)


@pytest.mark.parametrize("limit", [None, 228, 5 * 10**9])
def test_a_small_one_is_one_file(tmp_path, limit):
    save_state_dict(PARTS, tmp_path, max_shard_size=limit)
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


LIMITS = [None, 100, 60, 100, None]


def test_files_of_the_old_state_dict_go(tmp_path):
    for i, limit in enumerate(LIMITS):
        new = {name: array + i for name, array in PARTS.items()}
        save_state_dict(new, tmp_path, max_shard_size=limit)
        assert equal(load_state_dict(tmp_path), new)
        files = {file.name for file in tmp_path.iterdir()}
        listed = set()
        if "model.safetensors.index.json" in files:
            listed = set(json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"].values())
        assert files == ({"model.safetensors"} if limit is None else {*listed, "model.safetensors.index.json"})


class Crash(Exception):
    """The process ends here, without any cleaning up."""


STEPS = [
    (tensor_files, "write_header"),
    (tensor_files, "write_block"),
    (os, "fsync"),
    (os, "replace"),
    (Path, "unlink"),
]


def crash_at(patch, step: int) -> list[str]:
    """Let one of the next steps of saving crash; the list that is returned gets the names of those that were done."""
    done: list[str] = []

    def crashing(name, original):
        def do(*args, **kwargs):
            if len(done) == step:
                raise Crash
            done.append(name)
            return original(*args, **kwargs)

        return do

    for owner, name in STEPS:
        patch.setattr(owner, name, crashing(name, getattr(owner, name)))
    patch.setattr(tensor_files, "_removed_on_failure", lambda files: contextlib.nullcontext())
    return done


@pytest.mark.parametrize(("before", "after"), [(None, None), (100, 100), (None, 100), (100, None)])
def test_a_crash_leaves_a_whole_state_dict(tmp_path, monkeypatch, before, after):
    new = {name: array + 1 for name, array in PARTS.items()}
    outcomes = []
    for step in range(50):
        folder = tmp_path / str(step)
        folder.mkdir()
        save_state_dict(PARTS, folder, max_shard_size=before)
        with monkeypatch.context() as patch, contextlib.suppress(Crash):
            done = crash_at(patch, step)
            save_state_dict(new, folder, max_shard_size=after)
            break
        found = load_state_dict(folder)
        outcomes.append("new" if found["a"][0, 0] == new["a"][0, 0] else "old")
        assert equal(found, new if outcomes[-1] == "new" else PARTS)
        save_state_dict(new, folder, max_shard_size=after)  # what is left over is in nobody's way
        assert equal(load_state_dict(folder), new)
    assert {"write_header", "write_block", "fsync", "replace"} <= set(done) and len(outcomes) == len(done)
    assert outcomes == sorted(outcomes, reverse=True)  # first the old one, then the new one


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    save_state_dict(PARTS, tmp_path)

    def full(*args):
        raise OSError(28, "No space left on device")

    for limit in (None, 100):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
            patch.setattr(tensor_files, "write_block", full)
            save_state_dict({"x": np.ones(3), "y": np.ones(30)}, tmp_path, max_shard_size=limit)
        assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]
        assert equal(load_state_dict(tmp_path), PARTS)
