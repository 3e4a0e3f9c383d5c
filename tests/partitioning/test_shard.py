"""`shard`, the mappings, and what they say of axes."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import haliax as hax
from haliax import Axis, partitioning as hp
from meshes import MAPPING, NAMES, PLACES, VALUES, make_mesh, on, spec_of

Batch, Embed, Odd = Axis("batch", 8), Axis("embed", 4), Axis("odd", 3)
WIDE = {"batch": ("data", "model"), "embed": None}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("types", [AxisType.Auto, AxisType.Explicit])
def test_shard_brings_a_named_array_from_anywhere(place, types):
    mesh = make_mesh(types=(types, types))
    x = PLACES[place]()
    out = hax.shard(x, MAPPING, mesh)
    assert spec_of(out) == ("data", "model") and out.array.sharding.mesh == mesh
    assert np.array_equal(np.asarray(out), VALUES)


def test_shard_of_an_array_in_place_moves_nothing(mesh):
    x = hax.shard(on(mesh), MAPPING, mesh)
    with jax.transfer_guard("disallow"):
        again = hax.shard(x, MAPPING, mesh)
    assert buffers(again) == buffers(x)


def buffers(x) -> list[int]:
    return [shard.data.unsafe_buffer_pointer() for shard in x.array.addressable_shards]


def test_shard_of_a_pytree(mesh):
    tree = {
        "x": on(mesh),
        "raw": jnp.ones(8),
        "host": np.ones(2),
        "key": jax.random.key(0),
        "f": 1.0,
        "s": "text",
        "n": None,
    }
    with hax.set_mesh(mesh):
        out = hax.shard(tree, MAPPING)
    assert spec_of(out["x"]) == ("data", "model")
    assert all(out[name] is tree[name] for name in ("raw", "host", "f", "s", "n"))


def test_shard_leaves_placeholders_alone(mesh):
    x = hax.NamedArray(None, NAMES)
    assert hax.shard(x, MAPPING, mesh).array is None


@pytest.mark.parametrize("call", [hax.shard, hax.shard_with_axis_mapping, hax.auto_sharded])
def test_the_mapping_and_mesh_in_force(mesh, call):
    x = hax.NamedArray(VALUES, NAMES)
    assert call(x) is x
    with hax.set_mesh(mesh), hax.axis_mapping(MAPPING):
        assert spec_of(call(x)) == ("data", "model")
        assert spec_of(jax.jit(call)(x)) == ("data", "model")


def test_without_a_mesh_it_warns_and_does_nothing():
    x = hax.NamedArray(VALUES, NAMES)
    with pytest.warns(UserWarning, match=r"shard: there is no mesh, so nothing is sharded. Pass mesh=..."):
        assert hax.shard(x, MAPPING) is x


def test_auto_sharded_without_a_mesh_is_silent():
    x = hax.NamedArray(VALUES, NAMES)
    with hax.axis_mapping(MAPPING):
        assert hax.auto_sharded(x) is x


def test_samplers_follow_the_mapping_in_force(mesh):
    key = jax.random.key(0)
    plain = hax.random.normal(key, (Batch, Embed))
    with hax.set_mesh(mesh), hax.axis_mapping(MAPPING):
        eager = hax.random.normal(key, (Batch, Embed))
        jitted = jax.jit(lambda key: hax.random.normal(key, (Batch, Embed)) * 1)(key)
    for x in (eager, jitted):
        assert spec_of(x) == ("data", "model") and np.array_equal(np.asarray(x), np.asarray(plain))


def test_inside_a_trace_it_is_a_constraint(mesh):
    with hax.set_mesh(mesh):
        f = jax.jit(lambda x: hax.shard(x * 2, MAPPING))
        assert spec_of(f(on(mesh))) == ("data", "model")
        assert "sharding_constraint" in f.lower(on(mesh)).as_text()


def test_gradients_pass_through(mesh):
    f = hax.named_jit(jax.grad(lambda x: (hax.shard(x, MAPPING) ** 2).sum().scalar()), mesh=mesh)
    assert np.array_equal(np.asarray(f(on(mesh))), 2 * VALUES)


def test_inside_shard_map_manual_axes_are_left_out(mesh):
    def body(x):
        assert hp.pspec_for(hax.NamedArray(x, NAMES), MAPPING) == P("data", "model")
        return hax.shard(hax.NamedArray(x, NAMES), MAPPING).array * 2

    with jax.set_mesh(mesh):
        f = jax.jit(jax.shard_map(body, in_specs=P("data"), out_specs=P("data"), axis_names={"data"}))
        out = f(on(mesh, "data").array)
    assert np.array_equal(np.asarray(out), VALUES * 2) and spec_of(out) == ("data", "model")


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (
            {"batch": "dta"},
            "shard: axis 'batch' is mapped to mesh axis 'dta'; the mesh has data=4, model=2. Did you mean 'data'?",
        ),
        (
            {"odd": ("model", "data")},
            "shard: x['b']: axis odd=3 can not be split over mesh axes (model=2, data=4); expected a multiple of 8."
            " The nearest sizes that fit are 8 or 16; see haliax.partitioning.round_axis_for_partitioning.",
        ),
        (
            {"odd": "model"},
            "shard: x['b']: axis odd=3 can not be split over mesh axes (model=2); expected a multiple of 2."
            " The nearest sizes that fit are 2 or 4; see haliax.partitioning.round_axis_for_partitioning.",
        ),
        (
            {"batch": "data", "odd": "data"},
            "shard: x['b']: axes 'batch' and 'odd' are both mapped to mesh axis 'data'; expected distinct mesh axes."
            " Map one of them to another mesh axis; the mesh has data=4, model=2.",
        ),
    ],
)
@pytest.mark.parametrize("how", ["eager", "jitted"])
def test_a_mapping_that_does_not_fit(mesh, mapping, message, how):
    tree = {"a": on(mesh), "b": hax.zeros((Batch, Odd))}
    call = (
        (lambda t: hax.shard(t, mapping, mesh))
        if how == "eager"
        else hax.named_jit(lambda x: hax.shard(x, mapping), mesh=mesh)
    )
    with pytest.raises(ValueError) as error:
        call(tree)
    assert str(error.value) == message
    assert spec_of(tree["a"]) == (None, None)


# mappings -----------------------------------------------------------------------------------------------------------


def test_axis_mapping_scopes():
    current = hp.current_thread_local_mapping
    assert current() is None
    with hax.axis_mapping(MAPPING):
        assert current() == MAPPING
        with hax.axis_mapping({"batch": "model"}):
            assert current() == {"batch": "model"}
        with hax.axis_mapping({"batch": ["model", "data"]}, merge=True, extra="data"):
            assert current() == {"batch": ("model", "data"), "embed": "model", "extra": "data"}
        with pytest.raises(KeyError), hax.axis_mapping({}):
            raise KeyError
        assert current() == MAPPING
    assert current() is None


def test_each_thread_has_its_own_mapping():
    seen = []
    with hax.axis_mapping(MAPPING):
        thread = threading.Thread(target=lambda: seen.append(hp.current_thread_local_mapping()))
        thread.start(), thread.join()
    assert seen == [None]


@pytest.mark.parametrize(
    ("axis", "mapping", "expected"),
    [
        (Batch, None, P(None)),
        (Batch, MAPPING, P("data")),
        ("batch", MAPPING, P("data")),
        ((Batch, "embed"), MAPPING, P("data", "model")),
        ((Batch, Embed, Odd), WIDE, P(("data", "model"), None, None)),
        ({"odd": 3, "batch": 8}, MAPPING, P(None, "data")),
        ((), MAPPING, P()),
    ],
)
def test_pspec_for_axis(axis, mapping, expected):
    assert hp.pspec_for_axis(axis, mapping) == expected
    with hax.axis_mapping(mapping or {}):
        assert hp.pspec_for_axis(axis) == expected


def test_physical_axes(mesh):
    assert hp.physical_axis_name(Batch, MAPPING) == "data"
    assert hp.physical_axis_name("batch", WIDE) == ("data", "model")
    assert hp.physical_axis_name("nothing", MAPPING) is None
    assert hp.physical_axis_size(Batch, WIDE, mesh) == 8
    with hax.set_mesh(mesh), hax.axis_mapping(MAPPING):
        assert hp.physical_axis_name("embed") == "model"
        assert [hp.physical_axis_size(name) for name in ("batch", "embed", "nothing")] == [4, 2, None]
        assert hp.round_axis_for_partitioning(Axis("batch", 5)) == Axis("batch", 8)
        assert hp.round_axis_for_partitioning(Odd) == Odd
    assert hp.round_axis_for_partitioning(Axis("batch", 0), MAPPING, mesh) == Axis("batch", 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hp.physical_axis_size("batch", MAPPING), "physical_axis_size: there is no mesh."),
        (lambda: hp.round_axis_for_partitioning(Batch, MAPPING), "round_axis_for_partitioning: there is no mesh."),
        (lambda: hp.sharding_for_axis(Batch, MAPPING), "sharding_for_axis: there is no mesh."),
        (lambda: hp.infer_resource_partitions({}, MAPPING), "infer_resource_partitions: there is no mesh."),
    ],
)
def test_what_needs_a_mesh(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == f"{message} Pass mesh=..., or call it under `with haliax.set_mesh(mesh):`."


def test_an_unknown_mesh_axis(mesh):
    with pytest.raises(
        ValueError, match=r"physical_axis_size: axis 'batch' is mapped to mesh axis 'modl'.*Did you mean 'model'\?"
    ):
        hp.physical_axis_size("batch", {"batch": "modl"}, mesh)


TREE = {
    "x": hax.NamedArray(VALUES, NAMES),
    "raw": np.ones((2, 3)),
    "key": jax.random.key(0),
    "f": 1.0,
    "s": "text",
    "n": None,
}
SPECS = {"x": P("data", "model"), "raw": P(None, None), "key": P(), "f": P(), "s": None, "n": None}


def test_specs_and_shardings_of_a_pytree(mesh):
    assert hp.pspec_for(TREE, MAPPING) == SPECS
    shardings = hp.infer_resource_partitions(TREE, MAPPING, mesh)
    assert shardings == {k: None if spec is None else NamedSharding(mesh, spec) for k, spec in SPECS.items()}
    with hax.set_mesh(mesh), hax.axis_mapping(MAPPING):
        assert hp.infer_resource_partitions(TREE) == shardings
    with pytest.raises(ValueError, match="pspec_for: there is no axis mapping"):
        hp.pspec_for(TREE)
    assert hp.sharding_for_axis((Batch, Embed), MAPPING, mesh) == NamedSharding(mesh, P("data", "model"))


def test_explicit_meshes(mesh, explicit_mesh):
    assert not hp.all_mesh_axes_explicit(mesh, P("data"))
    assert hp.all_mesh_axes_explicit(explicit_mesh, P("data", ("model",)))
    assert hp.get_pspec_for_manual_mesh((Batch, Embed), MAPPING) is None
    assert hp.get_pspec_for_manual_mesh((Batch, Embed), MAPPING, mesh=mesh) is None
    assert hp.get_pspec_for_manual_mesh((Batch, Embed), MAPPING, mesh=explicit_mesh) == P("data", "model")


def test_names_of_mesh_axes():
    assert hp.ResourceAxis.DATA == "data" and hp.ResourceAxis.REPLICA_DCN == "replica_dcn"


# fsdp ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap",
    [
        lambda f, mesh: hax.fsdp(f, MAPPING, {"batch": "data"}, mesh=mesh),
        lambda f, mesh: hax.fsdp(MAPPING, {"batch": "data"}, mesh=mesh)(f),
        lambda f, mesh: hax.fsdp(parameter_mapping=MAPPING, compute_mapping={"batch": "data"}, mesh=mesh)(f),
        lambda f, mesh: hax.fsdp(f, parameter_mapping=MAPPING, compute_mapping={"batch": "data"}, mesh=mesh),
        lambda f, mesh: hax.fsdp(f, MAPPING, compute_mapping={"batch": "data"}, mesh=mesh),
    ],
)
def test_fsdp(mesh, wrap):
    seen = []

    def f(x):
        seen.append(dict(hp.current_thread_local_mapping()))
        return x * 2

    jitted = wrap(f, mesh)
    for place in ("in place", "one device", "host", "in place"):
        out = jitted(PLACES[place]())
        assert spec_of(out) == ("data", "model") and np.array_equal(np.asarray(out), VALUES * 2)
    assert seen == [{"batch": "data"}]


def test_fsdp_with_too_many_mappings():
    with pytest.raises(TypeError, match="fsdp: 3 mappings were given; expected parameter_mapping and compute_mapping"):
        hax.fsdp(MAPPING, MAPPING, MAPPING)
