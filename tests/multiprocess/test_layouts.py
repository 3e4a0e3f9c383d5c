"""Layouts of global arrays, of which each process holds a part: kept, mapped, moved, donated, or refused."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import haliax as hax
from haliax.partitioning import MeshMismatchError, MeshMismatchWarning, forced_host_shim
from meshes import MAPPING, NAMES, VALUES, make_mesh, spec_of

REVERSED = slice(None, None, -1)
SPECS = [(), ("data",), (None, "data"), (("data", "model"),), ("data", "model")]


@pytest.mark.parametrize(("processes", "devices"), [(2, 4), (4, 2)])
def test_in_lockstep(in_lockstep, processes, devices, check):
    in_lockstep(processes, devices, check)


@pytest.mark.parametrize(("processes", "devices", "spec"), [(2, 1, []), (2, 2, ["data", None])])
def test_one_device_in_each_process_is_not_forced(group_of, processes, devices, spec):
    check = "test_layouts:input_layout_in_auto_mode"
    group = group_of(processes, devices, check)
    assert [process.failure(check) for process in group] == [None] * processes
    assert [process.outcomes[check]["value"] for process in group] == [spec] * processes


def on(mesh, *spec) -> hax.NamedArray:
    """VALUES committed to a layout over the devices of all processes."""
    layout = NamedSharding(mesh, PartitionSpec(*spec))
    return hax.NamedArray(jax.make_array_from_callback(VALUES.shape, layout, lambda index: VALUES[index]), NAMES)


def raw(x):
    return x.array if isinstance(x, hax.NamedArray) else x


def holds(x, values) -> bool:
    """Whether the parts that this process has are those of `values`."""
    return all(np.array_equal(np.asarray(part.data), values[part.index]) for part in raw(x).addressable_shards)


def buffers(x) -> list[int]:
    return [part.data.unsafe_buffer_pointer() for part in raw(x).addressable_shards]


def here(*spec) -> hax.NamedArray:
    """VALUES committed to the devices of this process."""
    mesh = jax.sharding.Mesh(np.array(jax.local_devices()), ("data",))
    return hax.NamedArray(jax.device_put(VALUES, NamedSharding(mesh, PartitionSpec(*spec))), NAMES)


# inputs and outputs ---------------------------------------------------------------------------------------------------


def check_global_arrays_enter_as_they_are():
    mesh = make_mesh()
    for spec in SPECS:
        for x in (on(mesh, *spec), on(mesh, *spec).array):
            f = hax.named_jit(lambda x: x + 1, mesh=mesh)
            f(x)
            with jax.transfer_guard("disallow"):
                out = f(x)
            ((layout,), _) = f.lower(x).compile().input_shardings
            assert layout.is_equivalent_to(raw(x).sharding, 2) and holds(out, VALUES + 1)


def check_what_is_not_committed_is_placed():
    f = hax.named_jit(lambda x: x + 1, MAPPING, mesh=make_mesh())
    for x in (VALUES, jnp.asarray(VALUES)):
        out = f(hax.NamedArray(x, NAMES))
        assert spec_of(out) == ("data", "model") and holds(out, VALUES + 1)


def check_an_input_mapping_lays_out_named_arguments_on_every_call():
    mesh = make_mesh()
    f = hax.named_jit(lambda x, raw: (x + 1, raw + 1), in_axis_resources=MAPPING, mesh=mesh)
    for x in (on(mesh, "model"), on(mesh), on(make_mesh(REVERSED), "data"), hax.NamedArray(VALUES, NAMES)):
        for _ in range(2):
            named, plain = f(x, on(mesh, "data").array)
            assert spec_of(named) == ("data", "model") and holds(named, VALUES + 1)
            assert spec_of(plain) == ("data", None) and holds(plain, VALUES + 1)


def check_results_have_the_layout_of_the_mapping():
    mesh = make_mesh()
    f = hax.named_jit(lambda x: (x * 2, x.array * 2), {"batch": "model"}, out_axis_resources=MAPPING, mesh=mesh)
    named, plain = f(on(mesh, "model"))
    assert spec_of(named) == ("data", "model") and spec_of(plain) == ("model", None)
    assert holds(named, VALUES * 2) and holds(plain, VALUES * 2)


def check_the_ambient_mesh_and_mapping_serve():
    with jax.set_mesh(make_mesh()), hax.axis_mapping(MAPPING):
        out = hax.named_jit(lambda x: hax.shard(x.sum("embed")))(on(make_mesh()))
    assert spec_of(out) == ("data",) and holds(out, VALUES.sum(1))


def check_a_compiled_program_takes_named_arrays():
    mesh = make_mesh()
    x = on(mesh, "data")
    out = hax.named_jit(lambda x: x * 2, MAPPING, mesh=mesh).lower(x).compile()(x)
    assert spec_of(out) == ("data", "model") and holds(out, VALUES * 2)


def check_an_array_is_shown_without_values_from_elsewhere():
    assert repr(on(make_mesh(), "data")) == "NamedArray(float32[batch=8, embed=4], sharding batch->data)"


def check_copies_are_shown_where_there_is_one():
    count = hax.NamedArray(
        jax.make_array_from_callback((), NamedSharding(make_mesh(), PartitionSpec()), lambda _: 3), ()
    )
    assert repr(count) == "NamedArray(int32[], sharding replicated, 3)"
    last = make_mesh(slice(-1, None), (1, 1))
    alone = jax.make_array_from_callback((), NamedSharding(last, PartitionSpec()), lambda _: np.int32(3), np.int32)
    is_here = jax.devices()[-1] in jax.local_devices()
    assert repr(hax.NamedArray(alone, ())) == f"NamedArray(int32[]{', 3' if is_here else ''})"


def check_layouts_of_all_processes_are_printed():
    hax.debug.visualize_shardings({"x": on(make_mesh(), "data", "model"), "n": 3})
    hax.debug.visualize_shardings(on(make_mesh(), "data"))
    hax.debug.diagnose_common_issues([on(make_mesh(), "data"), jnp.ones(3)])


# donation -------------------------------------------------------------------------------------------------------------


def check_donated_memory_is_used_again():
    mesh = make_mesh()
    f = hax.named_jit(lambda x, y: (x + 1, y + 1), mesh=mesh, donate_args=(True, False))
    x, y = on(mesh, "data") + 0, on(mesh, "data")  # the first is in memory of JAX, not of numpy
    before = buffers(x)
    first, second = f(x, y)
    assert buffers(first) == before and x.array.is_deleted() and not y.array.is_deleted()
    assert holds(first, VALUES + 1) and holds(second, VALUES + 1) and holds(y, VALUES)


def check_donated_arrays_that_are_laid_out_first():
    mesh = make_mesh()
    f = hax.named_jit(lambda x: x + 1, in_axis_resources=MAPPING, mesh=mesh, donate_args=True)
    for x in (on(mesh, "data", "model"), on(mesh, "model"), on(make_mesh(REVERSED), "data")):
        out = f(x)
        assert x.array.is_deleted() and holds(out, VALUES + 1)


# another mesh ---------------------------------------------------------------------------------------------------------


def check_another_order_of_the_devices_is_moved_on_every_call():
    mesh, other = make_mesh(), make_mesh(REVERSED)
    f = hax.named_jit(lambda x, y: x * 2 + y, mesh=mesh, on_mesh_mismatch="move", donate_args=(True, False))
    for spec in SPECS:
        x, y = on(other, *spec), on(mesh, "data")
        out = f(x, y)
        assert holds(out, VALUES * 3) and out.array.sharding.mesh == mesh
        assert x.array.is_deleted() and holds(y, VALUES)


def check_typed_keys_are_moved():
    mesh = make_mesh()
    keys = hax.NamedArray(jax.random.split(jax.random.key(0), 8), ("batch",))
    expected = np.asarray(jax.vmap(jax.random.bits)(keys.array))
    sample = hax.named_jit(lambda keys: jax.vmap(jax.random.bits)(keys.array), mesh=mesh, on_mesh_mismatch="move")
    elsewhere = hax.shard(keys, MAPPING, make_mesh(REVERSED))
    assert spec_of(elsewhere) == ("data",)
    for placed in (elsewhere, hax.shard(elsewhere, MAPPING, mesh)):
        assert holds(sample(placed), expected)


def check_a_move_is_reported_once():
    f = hax.named_jit(lambda x: x * 2, mesh=make_mesh())
    x = on(make_mesh(REVERSED), "data")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            assert holds(f(x), VALUES * 2)
    assert [w.category for w in caught] == [MeshMismatchWarning]
    assert "in another device order" in str(caught[0].message)


def check_a_move_can_be_refused():
    f = hax.named_jit(lambda x: x * 2, mesh=make_mesh(), on_mesh_mismatch="error", donate_args=True)
    x = on(make_mesh(REVERSED), "data")
    with pytest.raises(MeshMismatchError, match=r"1 of its arrays .* and nothing was moved\."):
        f(x)
    assert holds(x, VALUES)


STUCK = {
    "on one device": lambda: hax.NamedArray(jax.device_put(VALUES, jax.local_devices()[0]), NAMES),
    "on some of the devices": lambda: here("data"),
    "on half of the devices of each process": lambda: on(
        jax.sharding.Mesh(np.array([d for i, d in enumerate(jax.devices()) if i % 2]), ("data",)), "data"
    ),
}


def check_an_impossible_move_is_refused_before_anything_is_moved():
    mesh = make_mesh()
    for policy in ("warn", "move", "error"):
        f = hax.named_jit(lambda x, y: (x * 2, y * 2), mesh=mesh, on_mesh_mismatch=policy, donate_args=True)
        for make in STUCK.values():
            for _ in range(2):
                x, y = on(make_mesh(REVERSED), "data"), make()
                message = (
                    r"2 of its arrays .* nothing was moved(.|\n)*\n  y: between processes an array moves only among"
                )
                with pytest.raises(MeshMismatchError, match=message):
                    f(x, y)
                assert holds(x, VALUES) and holds(y, VALUES)
        ok, _ = f(on(mesh, "data"), on(mesh))
        assert holds(ok, VALUES * 2)


def check_an_impossible_layout_of_an_input_mapping_is_refused():
    f = hax.named_jit(lambda x: x, in_axis_resources=MAPPING, mesh=make_mesh())
    for make in STUCK.values():
        with pytest.raises(ValueError, match=r"named_jit\(<lambda>\): x lives on device.* only among its own devices"):
            f(make())


def check_moves_within_a_process():
    """A mesh of the devices of one process is like one in a program of one process."""
    mesh = jax.sharding.Mesh(np.array(jax.local_devices())[::-1], ("data",))
    f = hax.named_jit(lambda x: x * 2, mesh=mesh, on_mesh_mismatch="move")
    for x in (here("data"), STUCK["on one device"]()):
        for _ in range(2):
            assert holds(f(x), VALUES * 2)
    with pytest.raises(MeshMismatchError, match="x: between processes an array moves only among"):
        f(on(make_mesh(), "data"))


# shard ----------------------------------------------------------------------------------------------------------------


def check_shard():
    mesh, other = make_mesh(), make_mesh(REVERSED)
    for x in (hax.NamedArray(VALUES, NAMES), on(mesh, "model"), on(other, "data")):
        out = hax.shard(x, MAPPING, mesh)
        assert spec_of(out) == ("data", "model") and holds(out, VALUES) and out.array.sharding.mesh == mesh
    plain = hax.shard(on(other, "data").array, mesh=mesh)
    assert spec_of(plain) == ("data", None) and holds(plain, VALUES)


def check_shard_refuses_what_it_can_not_move():
    for make in STUCK.values():
        x = on(make_mesh(REVERSED), "data")
        with pytest.raises(ValueError, match=r"shard: x\['y'\] lives on device"):
            hax.shard({"x": x, "y": make()}, MAPPING, make_mesh())
        assert holds(x, VALUES)
    with pytest.raises(ValueError) as error:
        hax.shard(STUCK["on one device"](), MAPPING, make_mesh())
    assert str(error.value) == (
        f"shard: x lives on device {jax.local_devices()[0].id} and is to go to devices"
        f" {' '.join(str(device.id) for device in jax.devices())}; between processes an array can be moved only among"
        " its own devices. Make it there from data that every process has: pass a numpy array, or use"
        " jax.make_array_from_callback."
    )


# the shim -------------------------------------------------------------------------------------------------------------


def input_layout_in_auto_mode() -> list:
    """In which layout a mapped call takes an array that is replicated."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    x = on(mesh)
    with forced_host_shim("auto"):
        ((layout,), _) = hax.named_jit(lambda x: x + 1, {"batch": "data"}, mesh=mesh).lower(x).compile().input_shardings
    return list(layout.spec)
