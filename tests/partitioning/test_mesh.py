"""Which mesh a call runs on: the argument, the one in force, the one its arguments share, none."""

import functools

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, Mesh

import haliax as hax
from meshes import MAPPING, VALUES, make_mesh, on, spec_of


def mesh_inside(_=None):
    """What a function sees as its mesh while it is traced: axis sizes, as a static result."""
    return tuple(jax.sharding.get_abstract_mesh().shape.items())


THIS = (("data", 4), ("model", 2))
OTHER = (("data", 2), ("model", 4))


@pytest.fixture
def other_mesh() -> Mesh:
    return make_mesh(shape=(2, 4))


def test_the_argument(mesh):
    assert hax.named_jit(mesh_inside, mesh=mesh)(jnp.ones(3)) == THIS


def test_the_argument_wins_over_the_mesh_in_force(mesh, other_mesh):
    with hax.set_mesh(other_mesh):
        assert hax.named_jit(mesh_inside, mesh=mesh)(jnp.ones(3)) == THIS
        assert mesh_inside() == OTHER


@pytest.mark.parametrize("set_mesh", [jax.set_mesh, hax.set_mesh, hax.partitioning.mesh_context])
def test_the_mesh_in_force(mesh, set_mesh):
    f = hax.named_jit(mesh_inside)
    with set_mesh(mesh):
        assert f(jnp.ones(3)) == THIS
    assert f(jnp.ones(3)) == ()
    assert hax.partitioning._get_mesh() is None


@pytest.mark.filterwarnings("ignore:.*with mesh.*has been deprecated:DeprecationWarning")
def test_the_legacy_mesh(mesh):
    with mesh:
        assert hax.named_jit(mesh_inside)(jnp.ones(3)) == THIS
        assert hax.partitioning._get_mesh() == mesh


@pytest.mark.filterwarnings("ignore:.*with mesh.*has been deprecated:DeprecationWarning")
def test_set_mesh_wins_over_the_legacy_mesh(mesh, other_mesh):
    with other_mesh, hax.set_mesh(mesh):
        assert hax.named_jit(mesh_inside)(jnp.ones(3)) == THIS


def test_the_mesh_that_the_arguments_share(mesh):
    f = hax.named_jit(mesh_inside)
    assert f(on(mesh, "data")) == THIS
    assert f({"a": on(mesh), "b": jnp.ones(3), "c": VALUES, "d": 1.0}) == THIS
    assert f(jnp.ones(3)) == ()


def test_typed_keys_tell_the_mesh(mesh):
    key = jax.device_put(jax.random.key(0), jax.sharding.NamedSharding(mesh, jax.P()))
    assert hax.named_jit(mesh_inside)(key) == THIS


def test_arguments_on_two_meshes_share_none(mesh, other_mesh):
    same_devices = hax.named_jit(lambda x, y: mesh_inside())
    assert same_devices(on(mesh), on(other_mesh)) == ()


def test_the_mesh_of_arrays_in_the_function_itself(mesh):
    x = on(mesh, "data")
    assert hax.named_jit(functools.partial(mesh_inside, x))() == THIS


def test_shard_inside_sees_the_argument(mesh, other_mesh):
    f = hax.named_jit(lambda x: hax.shard(x, {"batch": "data"}), mesh=mesh)
    with hax.set_mesh(other_mesh):
        out = f(hax.NamedArray(VALUES, ("batch", "embed")))
    assert out.array.sharding.mesh == mesh and spec_of(out) == ("data", None)


def test_a_mapping_shared_by_arguments(mesh):
    out = hax.named_jit(lambda x: x + 1, MAPPING)(on(mesh))
    assert spec_of(out) == ("data", "model") and out.array.sharding.mesh == mesh


def test_the_mesh_in_force_is_restored_after_an_error(mesh, other_mesh):
    def fails(x):
        raise KeyError("mine")

    with hax.set_mesh(other_mesh), hax.axis_mapping({"batch": "model"}):
        with pytest.raises(KeyError, match="mine"):
            hax.named_jit(fails, MAPPING, mesh=mesh)(1)
        assert mesh_inside() == OTHER
        assert hax.partitioning.current_thread_local_mapping() == {"batch": "model"}


def test_inside_another_jit(mesh):
    inner = hax.named_jit(lambda x: x * 2, MAPPING, mesh=mesh)
    outer = jax.jit(lambda x: inner(x) + 1)
    for scope in (hax.set_mesh, hax.partitioning.mesh_context):
        with scope(mesh):
            assert spec_of(inner(on(mesh))) == ("data", "model")
            assert (outer(on(mesh)).array == VALUES * 2 + 1).all()
    assert (hax.named_jit(lambda x: inner(x) + 1)(on(mesh)).array == VALUES * 2 + 1).all()


def test_without_a_mesh_a_function_runs_where_its_arguments_are():
    x = hax.NamedArray(jax.device_put(VALUES, jax.devices()[5]), ("batch", "embed"))
    assert hax.named_jit(lambda x: x + 1)(x).array.devices() == {jax.devices()[5]}


def test_a_mapping_that_names_no_mesh_axis_needs_no_mesh():
    x = hax.named(jnp.asarray(VALUES), ("batch", "embed"))
    assert (hax.named_jit(lambda x: x + 1, {})(x).array == VALUES + 1).all()


ABSTRACT = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))


def test_an_abstract_mesh_lowers_and_does_not_run():
    f = hax.named_jit(lambda x: x + 1, MAPPING, mesh=ABSTRACT)
    x = hax.NamedArray(jax.ShapeDtypeStruct((8, 4), jnp.float32), ("batch", "embed"))
    assert "func.func" in f.lower(x).as_text()
    assert f.eval_shape(x).array.shape == (8, 4)
    with pytest.raises(ValueError) as error:
        f(hax.named(jnp.asarray(VALUES), ("batch", "embed")))
    assert str(error.value) == (
        "named_jit(<lambda>): the mesh is an AbstractMesh, which has no devices; expected a Mesh, to run on."
        " Use .lower(...) or .eval_shape(...) with an AbstractMesh."
    )


def call_with(mapping, mesh=None, **options):
    def call():
        x = hax.named(jnp.asarray(VALUES), ("batch", "embed"))
        return hax.named_jit(lambda x: x + 1, mapping, mesh=mesh, **options)(x)

    return call


@pytest.mark.parametrize(
    ("mapping", "options", "message"),
    [
        (
            MAPPING,
            {},
            "named_jit(<lambda>): the axis mapping names mesh axes (data, model) and there is no mesh."
            " Pass mesh=..., or call it under `with haliax.set_mesh(mesh):`.",
        ),
        (
            {"batch": "dta"},
            {"mesh": True},
            "named_jit: axis 'batch' is mapped to mesh axis 'dta'; the mesh has data=4, model=2. Did you mean 'data'?",
        ),
        (
            {"other": ("model", "expert")},
            {"mesh": True},
            "named_jit: axis 'other' is mapped to mesh axis 'expert'; the mesh has data=4, model=2.",
        ),
        (
            {"batch": "data", "embed": "data"},
            {"mesh": True},
            "named_jit(<lambda>): result: axes 'batch' and 'embed' are both mapped to mesh axis 'data'; expected"
            " distinct mesh axes. Map one of them to another mesh axis; the mesh has data=4, model=2.",
        ),
        (
            {"embed": ("data", "model")},
            {"mesh": True},
            "named_jit(<lambda>): result: axis embed=4 can not be split over mesh axes (data=4, model=2); expected a"
            " multiple of 8. The nearest sizes that fit are 8 or 16; see"
            " haliax.partitioning.round_axis_for_partitioning.",
        ),
        (
            None,
            {"mesh": True, "in_axis_resources": {"embed": ("data", "model")}},
            "named_jit(<lambda>): x: axis embed=4 can not be split over mesh axes (data=4, model=2); expected a"
            " multiple of 8. The nearest sizes that fit are 8 or 16; see"
            " haliax.partitioning.round_axis_for_partitioning.",
        ),
    ],
)
def test_a_mapping_that_does_not_fit(mesh, mapping, options, message):
    with pytest.raises(ValueError) as error:
        call_with(mapping, **{**options, **({"mesh": mesh} if "mesh" in options else {})})()
    assert str(error.value) == message


def test_an_unknown_mesh_axis_with_the_mesh_in_force(mesh):
    with (
        hax.set_mesh(mesh),
        pytest.raises(ValueError, match=r"mapped to mesh axis 'dta'; the mesh has data=4, model=2"),
    ):
        call_with({"batch": "dta"})()
