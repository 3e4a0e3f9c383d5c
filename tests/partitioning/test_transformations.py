"""`named_jit` inside other transformations: jit, grad, vmap, scan, shard_map, and itself."""

import copy
import functools
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import haliax as hax
from meshes import MAPPING, NAMES, VALUES, make_mesh, on, spec_of

Batch, Embed = hax.Axis("batch", 8), hax.Axis("embed", 4)


def total(x):
    return (x * x).sum().scalar()


@pytest.mark.parametrize("inputs", [None, MAPPING], ids=["unmapped", "mapped inputs"])
@pytest.mark.parametrize("donate", [None, True], ids=["kept", "donated"])
@pytest.mark.parametrize("shim", ["off", "on"])
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: lambda x: jax.grad(f)(x).array,
        lambda f: lambda x: jax.jit(jax.grad(f))(x).array,
        lambda f: lambda x: jax.value_and_grad(f)(x)[1].array,
        lambda f: lambda x: jax.jvp(f, (x,), (x,))[1] / total(x) * x.array,
    ],
    ids=["grad", "jit of grad", "value_and_grad", "jvp"],
)
def test_derivatives(mesh, inputs, donate, shim, transform):
    f = hax.named_jit(total, MAPPING, mesh=mesh, in_axis_resources=inputs, donate_args=donate)
    with hax.partitioning.forced_host_shim(shim):
        for _ in range(2):
            x = on(mesh, "data")
            assert np.allclose(np.asarray(transform(f)(x)), 2 * VALUES) and not x.array.is_deleted()


def test_scan_and_vmap(mesh):
    f = hax.named_jit(lambda c, x: (c + x, c.sum()), {"embed": "model"}, mesh=mesh, donate_args=True)
    x = hax.NamedArray(jnp.asarray(VALUES), NAMES)
    carry, _ = hax.scan(f, "batch")(hax.zeros(Embed), x)
    assert np.array_equal(np.asarray(carry), VALUES.sum(0))
    out = hax.vmap(hax.named_jit(lambda x: x * 2, mesh=mesh), "batch")(x)
    assert np.array_equal(np.asarray(out), VALUES * 2)


# arrays from outside a trace ---------------------------------------------------------------------------------------


def test_a_constant_in_the_result_gets_the_layout(mesh):
    x = hax.NamedArray(VALUES, NAMES)
    on_device = hax.NamedArray(jnp.asarray(VALUES), NAMES)
    for constant in (x, on_device):
        out = hax.named_jit(lambda _: constant, MAPPING, mesh=mesh)(1.0)  # noqa: B023
        assert spec_of(out) == ("data", "model") and np.array_equal(np.asarray(out), VALUES)


def test_a_captured_array_is_laid_out_in_a_program(mesh):
    x = hax.NamedArray(jnp.asarray(VALUES), NAMES)
    inner = hax.named_jit(lambda x: x * 1, in_axis_resources=MAPPING, mesh=mesh)
    with jax.set_mesh(mesh):
        assert spec_of(jax.jit(lambda: hax.shard(x, MAPPING))()) == ("data", "model")
        assert spec_of(jax.jit(lambda: inner(x))()) == ("data", "model")


def test_an_empty_input_mapping_is_one(mesh):
    f = hax.named_jit(lambda x: x.array, MAPPING, in_axis_resources={}, mesh=mesh)
    assert spec_of(f(hax.ones({"batch": 7}))) == (None,)


# a mesh inside a mesh ----------------------------------------------------------------------------------------------


def mesh_here():
    return tuple(jax.sharding.get_abstract_mesh().shape.values())


@pytest.mark.parametrize("outer", [jax.jit, hax.named_jit], ids=["jit", "named_jit"])
def test_the_mesh_of_an_inner_function_wins(mesh, outer):
    inner = hax.named_jit(lambda x: hax.shard(x * 2, {"batch": "data"}), mesh=make_mesh(shape=(2, 4)))
    f = outer(lambda x: hax.shard(inner(x), {"batch": "data"}))
    with jax.set_mesh(mesh):
        x = hax.NamedArray(VALUES, NAMES)
        assert '["data"=2, "model"=4]' in f.lower(x).as_text()
        out = f(x)
    assert spec_of(out) == ("data", None) and out.array.sharding.mesh == mesh
    assert np.array_equal(np.asarray(out), VALUES * 2)


def test_eagerly_the_mesh_of_a_function_wins(mesh):
    inner = hax.named_jit(lambda x: hax.shard(x * 2, {"batch": "data"}), mesh=make_mesh(shape=(2, 4)))
    with jax.set_mesh(mesh):
        out = inner(hax.NamedArray(VALUES, NAMES))
    assert {s.data.shape for s in out.array.addressable_shards} == {(4, 4)}


def test_meshes_nest_and_come_back(mesh):
    other, seen = make_mesh(shape=(2, 4)), []

    def look(then):
        def f(x):
            seen.append(mesh_here())
            return then(x)

        return f

    innermost = hax.named_jit(look(lambda x: x), mesh=mesh)
    middle = hax.named_jit(look(innermost), mesh=other)
    hax.named_jit(look(middle), mesh=mesh)(jnp.ones(3))
    assert seen == [(4, 2), (2, 4), (4, 2)]


def test_mesh_axes_that_only_the_inner_mesh_has(mesh):
    other = jax.sharding.Mesh(mesh.devices.reshape(8), ("expert",), axis_types=(AxisType.Auto,))
    inner = hax.named_jit(lambda x: x * 2, {"batch": "expert"}, mesh=other)
    with jax.set_mesh(mesh):
        out = jax.jit(inner)(hax.NamedArray(VALUES, NAMES))
    assert {s.data.shape for s in out.array.addressable_shards} == {(1, 4)}


@pytest.mark.parametrize("axis_names", [{"data", "model"}, {"data"}], ids=["all manual", "some manual"])
@pytest.mark.parametrize(
    "options",
    [{}, {"mesh": True}, {"in_axis_resources": MAPPING}, {"mesh": True, "in_axis_resources": MAPPING}],
    ids=str,
)
def test_inside_shard_map_manual_axes_are_left_out(mesh, axis_names, options):
    options = options | ({"mesh": mesh} if "mesh" in options else {})
    f = hax.named_jit(lambda x: x * 2, MAPPING, **options)
    spec = P(*(axis if axis in axis_names else None for axis in ("data", "model")))

    @functools.partial(jax.shard_map, in_specs=spec, out_specs=spec, axis_names=axis_names)
    def body(x):
        return f(hax.NamedArray(x, NAMES)).array

    with jax.set_mesh(mesh):
        out = jax.jit(body)(on(mesh, "data", "model").array)
    assert np.array_equal(np.asarray(out), VALUES * 2)


def test_collectives_inside_shard_map(mesh):
    f = hax.named_jit(lambda x: jax.lax.psum(x.array, "data"), mesh=mesh)
    with jax.set_mesh(mesh):
        body = jax.shard_map(lambda x: f(hax.NamedArray(x, NAMES)), in_specs=P("data"), out_specs=P())
        assert np.array_equal(np.asarray(jax.jit(body)(VALUES)), VALUES.reshape(4, 2, 4).sum(0))


# wrappers are objects ----------------------------------------------------------------------------------------------


def double(x):
    return x * 2


def test_copies_and_pickles(mesh):
    f = hax.named_jit(double, MAPPING, mesh=mesh)
    for other in (copy.copy(f), copy.deepcopy(f), copy.deepcopy({"f": f})["f"]):
        assert spec_of(other(on(mesh))) == ("data", "model") and other.__name__ == "double"
    assert pickle.loads(pickle.dumps(hax.named_jit(double, MAPPING, donate_args=True)))._options.donate_args is True
    copy.copy(f.lower(on(mesh))), copy.copy(f.lower(on(mesh)).compile())


def test_arrays_of_a_bound_wrapper_are_arguments():
    class Layer(eqx.Module):
        weight: jax.Array

        @hax.named_jit
        def apply(self, x):
            return x * self.weight

    f = hax.named_jit(Layer(jnp.full(3, 2.0)).apply)
    assert len(f._fn_arrays) == 1 and (f(jnp.ones(3)) == 2).all()


def test_parameters_called_self():
    assert hax.named_jit(lambda self, x: x + self)(self=1.0, x=jnp.zeros(())) == 1
    assert hax.named_jit(lambda self, x: x + self).eval_shape(self=1.0, x=jnp.zeros(())).shape == ()


def test_attributes_of_a_function_do_not_hide_those_of_the_wrapper():
    def f(x):
        return x

    f.lower, f._options, f._fn, f.note = 1, 2, 3, "kept"
    jitted = hax.named_jit(f)
    assert jitted(jnp.ones(())) == 1 and jitted.note == "kept" and "func" in jitted.lower(jnp.ones(())).as_text()


def test_a_shape_in_a_call_is_static():
    f = hax.named_jit(lambda x, like: x + like.shape[0])
    shape = jax.ShapeDtypeStruct((3,), jnp.float32)
    assert f(jnp.zeros(()), shape) == 3
    assert hax.named_jit(functools.partial(lambda s, x: x + s.shape[0], shape))(jnp.zeros(())) == 3
    assert f.eval_shape(jnp.zeros(()), shape).shape == ()


# errors keep their place -------------------------------------------------------------------------------------------


def test_an_error_of_the_function_is_not_blamed_on_the_mesh(mesh):
    other = jax.sharding.Mesh(mesh.devices.reshape(2, 4), ("x", "y"), axis_types=mesh.axis_types)
    f = hax.named_jit(lambda x: hax.ones({"batch": 6}), {"batch": "data"}, mesh=mesh, on_mesh_mismatch="error")
    with pytest.raises(ValueError, match="axis batch=6 can not be split"):
        f(on(other, "x"))
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        hax.named_jit(lambda x: hax.log(x - 100), mesh=mesh, on_mesh_mismatch="error")(on(other))


def test_what_is_used_may_depend_on_the_shape(mesh):
    def f(x, y):
        return x.sum() + (y.sum() if x.shape[0] > 4 else 0)

    y = jax.device_put(jnp.ones(8), jax.devices()[3])
    g = hax.named_jit(f, mesh=mesh, on_mesh_mismatch="move")
    assert g(jnp.ones(2), y) == 2 and g(jnp.ones(8), y) == 16 and g(jnp.ones(2), y) == 2


def test_an_abstract_mesh_does_not_run_after_it_was_traced(mesh):
    f = hax.named_jit(lambda x: x + 1, mesh=mesh.abstract_mesh)
    x = hax.NamedArray(VALUES, NAMES)
    with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
        jax.make_jaxpr(f)(x)
    with pytest.raises(ValueError, match="AbstractMesh, which has no devices"):
        f(x)


def test_a_compiled_program_checks_what_is_donated(mesh):
    compiled = (
        hax.named_jit(lambda a, b: (a + b, a * b), mesh=mesh, donate_args=True).lower(on(mesh), on(mesh)).compile()
    )
    x = on(mesh)
    with pytest.raises(ValueError, match="a and b are the same array, which is donated"):
        compiled(x, x)
    assert not x.array.is_deleted()


def test_shard_returns_the_array_itself_where_it_is_in_place(mesh):
    x = on(mesh, "data")
    assert hax.shard(x, {"batch": "data"}, mesh).array is x.array
    f = hax.named_jit(lambda a, b: (a + 1, b), mesh=mesh, donate_args=(True, False))
    with pytest.raises(ValueError, match="same array, which is donated"):
        f(x, hax.shard(x, {"batch": "data"}, mesh))


def test_a_mixed_mesh_that_has_no_room_for_an_automatic_axis():
    mesh = make_mesh(types=(AxisType.Explicit, AxisType.Auto))
    with pytest.raises(ValueError) as error:
        hax.named_jit(lambda x: x + 1, {"batch": ("data", "model")}, mesh=mesh)(hax.ones(Batch))
    assert str(error.value) == (
        "shard: every axis is split over explicit mesh axes, and one over an automatic one as well; expected an axis"
        " that is split over automatic mesh axes alone. Give all axes of the mesh one type."
    )


def test_shapes_and_abstract_meshes_in_shard(mesh):
    x = hax.NamedArray(jax.ShapeDtypeStruct((8, 4), jnp.float32), NAMES)
    assert hax.shard(x, MAPPING, mesh).array.sharding.spec == P("data", "model")
    with pytest.raises(ValueError, match="shard: the mesh is an AbstractMesh, which has no devices; expected a Mesh"):
        hax.shard(hax.NamedArray(VALUES, NAMES), MAPPING, mesh.abstract_mesh)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: hax.named_jit(double, donate_args=0),
            TypeError,
            "named_jit: donate_args is an int; expected a bool, or one for each argument. It says which arguments, not"
            " how many or where: (True, False) donates the first of two.",
        ),
        (
            lambda: hax.named_jit(double, {"batch": 3}),
            TypeError,
            "axis mapping: the entry of axis 'batch' is an int; expected a mesh axis, several, or None.",
        ),
        (
            lambda: hax.named_jit(double, {Batch: "data"}),
            TypeError,
            "axis mapping: a key is an Axis; expected the name of an axis.",
        ),
        (
            lambda: hax.named_jit(double, {"batch": ("data", "data")}),
            ValueError,
            "axis mapping: axis 'batch' is mapped to (data, data); expected distinct mesh axes.",
        ),
        (
            lambda: hax.axis_mapping(None).__enter__(),
            TypeError,
            "axis_mapping: mapping is None; expected a mapping from axis names to mesh axes.",
        ),
    ],
)
def test_options_and_mappings_that_make_no_sense(call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message


def test_the_mapping_in_force_can_not_be_edited():
    with hax.axis_mapping(MAPPING), pytest.raises(TypeError, match="it can not be changed"):
        hax.partitioning.current_thread_local_mapping()["batch"] = "model"


@pytest.mark.parametrize("names", ["x", ("x",), {"x": True}])
def test_donation_by_name_of_an_argument_passed_by_position(mesh, names):
    f = hax.named_jit(double, mesh=mesh, donate_kwargs=names)
    x, y = on(mesh), on(mesh)
    f(x), f(x=y)
    assert x.array.is_deleted() and y.array.is_deleted()


def test_refs_keep_their_place(mesh):
    ref = jax.new_ref(jax.device_put(jnp.zeros(8), NamedSharding(mesh, P())))
    f = hax.named_jit(lambda r: r[...], in_axis_resources={"batch": "data"}, mesh=mesh)
    assert (f(ref) == 0).all()
