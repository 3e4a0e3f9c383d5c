"""State dicts of global arrays: one process writes all, each reads its own part, and all fail together."""

from __future__ import annotations

import contextlib
import os
import weakref
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import haliax as hax
import haliax.nn as hnn
from haliax._src import safetensors_io, tensor_files
from haliax._src.tensor_parts import gather
from haliax.jax_utils import sync_global_devices
from haliax.state_dict import (
    from_torch_compatible_state_dict,
    load_state_dict,
    save_state_dict,
    to_numpy_state_dict,
    to_state_dict,
    to_torch_compatible_state_dict,
)
from meshes import make_mesh

SPECS = [(), ("data",), (None, "model"), (("data", "model"),), ("model", "data")]
ELEMENTS = np.arange(16 * 24, dtype=np.int32).reshape(16, 24)


@pytest.mark.parametrize(("processes", "devices"), [(2, 4), (4, 2)])
def test_in_lockstep(in_lockstep, processes, devices, check):
    in_lockstep(processes, devices, check)


def folder(name: str) -> Path:
    """A folder that all processes share."""
    path = Path(os.environ["HALIAX_TEST_FOLDER"]) / name
    path.mkdir(exist_ok=True)
    return path


def on(values: np.ndarray, *spec, mesh: Mesh | None = None) -> jax.Array:
    """Values laid out over the devices of all processes."""
    layout = NamedSharding(mesh or make_mesh(), PartitionSpec(*spec))
    return jax.make_array_from_callback(values.shape, layout, lambda index: values[index], values.dtype)


def parts(array: jax.Array) -> dict[str, jax.Array]:
    """The distinct parts of an array that this process has."""
    return {str(shard.index): shard for shard in array.addressable_shards}


def holds(array: jax.Array, values: np.ndarray) -> bool:
    return all(np.array_equal(np.asarray(shard.data), values[shard.index]) for shard in array.addressable_shards)


def state() -> dict:
    """Arrays in all kinds of places."""
    here = Mesh(np.array(jax.local_devices()), ("data",))
    return {
        **{f"global.{i}": on(ELEMENTS + i, *spec) for i, spec in enumerate(SPECS)},
        "odd": on(np.arange(6, dtype=np.float32).reshape(2, 3), "model"),
        "backwards": on(ELEMENTS, "data", mesh=make_mesh(slice(None, None, -1))),
        "bfloat16": on(ELEMENTS.astype(jnp.bfloat16), "data"),
        "local": jnp.ones(3),
        "here": jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(here, PartitionSpec("data"))),
        "host": np.arange(3),
        "number": 2.5,
    }


def plain() -> dict[str, np.ndarray]:
    """The values of `state`."""
    return {
        **{f"global.{i}": ELEMENTS + i for i in range(len(SPECS))},
        "odd": np.arange(6, dtype=np.float32).reshape(2, 3),
        "backwards": ELEMENTS,
        "bfloat16": ELEMENTS.astype(jnp.bfloat16),
        "local": np.ones(3, np.float32),
        "here": np.arange(8, dtype=np.float32),
        "host": np.arange(3),
        "number": np.float64(2.5),
    }


def check_the_first_process_writes_what_all_have():
    explicit = make_mesh(types=(AxisType.Explicit, AxisType.Explicit))
    for limit, ambient in [(None, contextlib.nullcontext), (2000, lambda: jax.set_mesh(explicit))]:
        path = folder(f"saved.{limit}")
        arrays = state()
        with ambient():
            save_state_dict(arrays, path, max_shard_size=limit)
        loaded = load_state_dict(path)
        assert loaded.keys() == plain().keys()
        for name, values in plain().items():
            assert loaded[name].dtype == values.dtype and np.array_equal(loaded[name], values), name
        assert not list(path.glob(".*"))
        sync_global_devices("looked")


def check_one_copy_is_gathered():
    for spec in SPECS[1:]:
        gathered = gather(on(ELEMENTS, *spec))
        assert holds(gathered, ELEMENTS)
        assert sum(shard.data.nbytes for shard in gathered.addressable_shards) == ELEMENTS.nbytes
        assert len(parts(gathered)) == jax.local_device_count()


def check_one_tensor_is_gathered_at_a_time():
    alive: list[weakref.ref] = []

    def watched(array):
        assert [ref() for ref in alive] == [None] * len(alive)
        gathered = gather(array)
        alive.append(weakref.ref(gathered))
        return gathered

    arrays = {str(i): on(ELEMENTS + i, "data") for i in range(4)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensor_files, "gather", watched)
        save_state_dict(arrays, folder("one"))
    assert len(alive) == 4


def check_all_processes_get_numpy_arrays():
    model = {"x": hax.NamedArray(on(ELEMENTS, "data"), ("a", "b")), "keys": jax.random.split(jax.random.key(0), 3)}
    found = to_numpy_state_dict(model)
    assert np.array_equal(found["x"], ELEMENTS) and found["keys"].shape == (3, 2)


@contextlib.contextmanager
def elements_read():
    """The elements of 4 bytes that are read from the data of files, one after the other."""
    found: list[int] = []
    read = safetensors_io._read_into

    def counted(file, start, target, tensor):
        assert (start - tensor.offset) % 4 == 0 and len(target) % 4 == 0
        first = (start - tensor.offset) // 4
        found.extend(range(first, first + len(target) // 4))
        return read(file, start, target, tensor)

    safetensors_io._read_into = counted
    try:
        yield found
    finally:
        safetensors_io._read_into = read


def check_a_process_reads_its_own_bytes_and_no_others():
    path = folder("bytes") / "file"
    save_state_dict({"x": ELEMENTS}, path)
    for spec in SPECS:
        with elements_read() as found:
            x = load_state_dict(path, mesh=make_mesh(), sharding={"x": PartitionSpec(*spec)})["x"]
        assert holds(x, ELEMENTS)
        own = np.concatenate([ELEMENTS[shard.index].ravel() for shard in parts(x).values()])
        assert sorted(found) == sorted(own.tolist())
    with elements_read() as found:
        x = load_state_dict(path, mesh=make_mesh())["x"]
    assert holds(x, ELEMENTS) and len(found) == ELEMENTS.size // jax.process_count()


def check_a_stack_is_read_in_the_shapes_of_torch():
    L, E, H, D = hax.make_axes(L=3, E=8, H=4, D=2)
    init = hnn.Stacked.init(L, hnn.Linear)
    shapes = eqx.filter_eval_shape(lambda: init(E, (H, D), key=jax.random.split(jax.random.key(0), 3)))
    whole = jax.tree.map(lambda x: np.arange(x.size, dtype=x.dtype).reshape(x.shape), shapes)
    save_state_dict(to_torch_compatible_state_dict(whole), folder("stack"))
    for mapping in ({"H": "data"}, {"D": "model", "E": "data"}, {"E": ("data", "model")}):
        with elements_read() as found:
            loaded = from_torch_compatible_state_dict(shapes, folder("stack"), mesh=make_mesh(), sharding=mapping)
        own = 0
        for have, want in zip(jax.tree.leaves(loaded), jax.tree.leaves(whole), strict=True):
            assert holds(have, want)
            own += sum(shard.data.size for shard in parts(have).values())
        assert len(found) == own
        for have, want in zip(
            to_torch_compatible_state_dict(loaded).values(), to_torch_compatible_state_dict(whole).values(), strict=True
        ):
            assert np.array_equal(have, want)
    save_state_dict(to_state_dict(loaded), folder("again"))
    assert np.array_equal(load_state_dict(folder("again"))["1.weight"], whole.stacked.weight.array[1])


def check_peak_memory():
    """Beside the arrays, loading takes at most 1.3 of what this process has of the largest."""
    megabyte, count = 1 << 20, 3
    whole = np.arange(4 * megabyte, dtype=np.float32).reshape(8, 2, -1)
    path = folder("memory") / "file"
    save_state_dict({f"{i}": whole for i in range(count)}, path)
    mine = whole.nbytes // jax.process_count()
    del whole
    with peak_memory() as peak:
        loaded = load_state_dict(path, mesh=make_mesh())
    assert peak() < count * mine + 1.3 * mine + 2 * megabyte, peak() / megabyte
    assert holds(loaded["0"], np.arange(4 * megabyte, dtype=np.float32).reshape(8, 2, -1))


@contextlib.contextmanager
def peak_memory():
    """How much more memory than before this process had at a time, as a function."""
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    yield lambda: status("VmHWM") - before


def status(key: str) -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return 1024 * int(line.split()[1])


# failures -------------------------------------------------------------------------------------------------------------


def check_a_process_that_can_not_write_tells_the_others():
    path = folder("failure") / "missing" / "file"
    with pytest.raises(OSError) as error:
        save_state_dict(state(), path)
    if jax.process_index() == 0:
        assert str(error.value) == f"save_state_dict: there is no folder {path.parent}."
    else:
        assert str(error.value) == "save_state_dict: process 0 could not do its part."


def check_an_array_out_of_reach_is_refused_by_all():
    first = jax.devices()[0].process_index
    alone = Mesh(np.array([device for device in jax.devices() if device.process_index == first]), ("data",))
    with pytest.raises((ValueError, OSError)) as error:
        save_state_dict({"a": np.ones(1), "x": on(ELEMENTS, "data", mesh=alone)}, folder("reach"))
    if jax.process_index() == first:
        assert str(error.value) == "save_state_dict: process 1 could not do its part."
    else:
        message = "'x' has no part on process 1; expected an array of one process, or of all."
        assert str(error.value) == f"save_state_dict: {message}"
    assert not list(folder("reach").iterdir())


def check_other_processes_fail_alike():
    with pytest.raises(TypeError if jax.process_index() == 1 else OSError):
        save_state_dict({"x": "text" if jax.process_index() == 1 else np.ones(1)}, folder("alike"))
    save_state_dict({"x": np.ones(1)}, folder("alike"))
    assert load_state_dict(folder("alike"))["x"] == 1
