"""Inputs keep their shardings; an input mapping lays them out on every call."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import haliax as hax
from helpers import count_traces
from meshes import MAPPING, NAMES, PLACES, VALUES, on, spec_of

SPECS = [(), ("data",), ("model",), (None, "data"), ("model", "data"), (("data", "model"),), ("data", "model")]


def compiled_spec(f, *args):
    """The layout in which the compiled program takes its first argument."""
    (layouts, _) = f.lower(*args).compile().input_shardings
    return layouts[0]


@pytest.mark.parametrize("mapping", [None, MAPPING], ids=["unmapped", "mapped"])
@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("kind", ["named", "raw"])
def test_a_committed_array_enters_as_it_is(mesh, mapping, spec, kind):
    x = on(mesh, *spec)
    x = x if kind == "named" else x.array
    f = hax.named_jit(count_traces(lambda x: x + 1), mapping, mesh=mesh)
    f(x)
    with jax.transfer_guard("disallow"):
        out = f(x)
    assert f._fn.traces == 1
    assert np.array_equal(np.asarray(out), VALUES + 1)
    assert compiled_spec(f, x).is_equivalent_to(NamedSharding(mesh, PartitionSpec(*spec)), 2)


def test_a_memory_kind_is_kept(mesh):
    kinds = {memory.kind for memory in jax.devices()[0].addressable_memories()}
    host = next(kind for kind in sorted(kinds) if kind != jax.devices()[0].default_memory().kind)
    x = jax.device_put(VALUES, NamedSharding(mesh, PartitionSpec("data"), memory_kind=host))
    for f in (hax.named_jit(lambda x: x, mesh=mesh), hax.named_jit(lambda x: x, in_axis_resources=MAPPING, mesh=mesh)):
        out = f(hax.NamedArray(x, NAMES))
        assert compiled_spec(f, hax.NamedArray(x, NAMES)).memory_kind == host
        assert np.array_equal(np.asarray(out), VALUES)


@pytest.mark.parametrize("place", ["uncommitted", "host"])
def test_what_is_not_committed_is_placed_by_jax(mesh, place):
    out = hax.named_jit(lambda x: x + 1, mesh=mesh)(PLACES[place]())
    with jax.set_mesh(mesh):
        plain = jax.jit(lambda x: x + 1)(PLACES[place]().array)
    assert out.array.sharding == plain.sharding and np.array_equal(np.asarray(out), VALUES + 1)


@pytest.mark.parametrize("place", PLACES)
def test_an_input_mapping_lays_out_named_arguments_on_every_call(mesh, place):
    f = hax.named_jit(count_traces(lambda x, raw: x + 1), in_axis_resources=MAPPING, mesh=mesh)
    for _ in range(3):
        out = f(PLACES[place](), 1.0)
        assert spec_of(out) == ("data", "model") and np.array_equal(np.asarray(out), VALUES + 1)
    assert f._fn.traces == 1


def test_an_input_mapping_leaves_raw_arrays_alone(mesh):
    x = on(mesh, "model").array
    out = hax.named_jit(lambda named, raw: raw * 1, in_axis_resources=MAPPING, mesh=mesh)(on(mesh), x)
    assert spec_of(out) == ("model", None)


def test_a_mapped_call_with_arrays_in_place_moves_nothing_and_compiles_once(mesh):
    f = hax.named_jit(
        count_traces(lambda x: x * 2), MAPPING, in_axis_resources=MAPPING, out_axis_resources=MAPPING, mesh=mesh
    )
    x = f(on(mesh, "data", "model"))
    (program,) = f._programs.values()
    with jax.transfer_guard("disallow"):
        for _ in range(3):
            before = x.array
            x = f(x)
            assert program.prepare([before]) == [before]
    assert f._fn.traces == 1 and program.jitted._cache_size() == 1


def test_an_input_mapping_follows_the_sizes_of_each_call(mesh):
    f = hax.named_jit(lambda x: x + 1, in_axis_resources=MAPPING, mesh=mesh)
    for rows in (8, 4, 12):
        x = hax.named(jnp.ones((rows, 4)), NAMES)
        assert spec_of(f(x)) == ("data", "model")
    with pytest.raises(ValueError, match="axis batch=6 can not be split over mesh axes"):
        f(hax.named(jnp.ones((6, 4)), NAMES))
    assert spec_of(f(hax.named(jnp.ones((8, 4)), NAMES))) == ("data", "model")


def test_nothing_moves_when_one_argument_does_not_fit(mesh):
    f = hax.named_jit(lambda x, y: (x, y), in_axis_resources=MAPPING, mesh=mesh, donate_args=True)
    x = on(mesh, "model")
    with pytest.raises(ValueError, match=r"named_jit\(<lambda>\): y\['w'\]: axis batch=6 can not be split"):
        f(x, {"w": hax.named(jnp.ones((6, 4)), NAMES)})
    assert spec_of(x) == ("model", None) and not x.array.is_deleted()


def test_an_array_whose_rank_was_changed_by_a_transformation(mesh):
    f = hax.named_jit(lambda x: x, in_axis_resources=MAPPING, mesh=mesh)
    with pytest.raises(ValueError) as error:
        f(hax.named(jnp.ones((8, 4)), NAMES).like(jnp.ones((2, 8, 4)), NAMES))
    assert str(error.value) == (
        "named_jit(<lambda>): x has axes (batch, embed) and holds an array of shape (2, 8, 4);"
        " expected one dimension for each axis."
    )


def test_an_input_mapping_inside_another_jit_is_a_constraint(mesh):
    inner = hax.named_jit(lambda x: x + 1, in_axis_resources=MAPPING, mesh=mesh)
    with hax.set_mesh(mesh):
        assert spec_of(jax.jit(inner)(on(mesh))) == ("data", "model")


def test_explicit_axes(explicit_mesh):
    f = hax.named_jit(count_traces(lambda x: x + 1), MAPPING, in_axis_resources={"batch": "data"}, mesh=explicit_mesh)
    for _ in range(2):
        assert spec_of(f(on(explicit_mesh, "data"))) == ("data", "model")
    keeps = hax.named_jit(lambda x: x + 1, mesh=explicit_mesh)
    assert spec_of(keeps(on(explicit_mesh, None, "model"))) == (None, "model")
    assert f._fn.traces == 1


def test_named_keys_and_missing_leaves(mesh):
    keys = hax.NamedArray(jax.random.split(jax.random.key(0), 8), ("batch",))
    tree = {"keys": keys, "nothing": hax.NamedArray(None, ("batch",)), "none": None, "empty": ()}
    f = hax.named_jit(lambda t: t, MAPPING, in_axis_resources=MAPPING, mesh=mesh)
    out = f(tree)
    assert spec_of(out["keys"]) == ("data",)
    assert out["nothing"].array is None and out["none"] is None and out["empty"] == ()
    assert jnp.array_equal(jax.random.key_data(out["keys"].array), jax.random.key_data(keys.array))
