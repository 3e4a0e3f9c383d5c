"""Arrays that live on another mesh than the call's: moved and reported, moved, or refused."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import haliax as hax
from haliax.partitioning import MeshMismatchError, MeshMismatchWarning
from helpers import count_traces
from meshes import ELSEWHERE, MAPPING, NAMES, PLACES, VALUES, make_mesh, on, spec_of


@pytest.mark.parametrize("mapping", [None, MAPPING], ids=["unmapped", "mapped"])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside one in place"])
@pytest.mark.parametrize("place", PLACES)
def test_right_values_on_every_call(mesh, place, beside, mapping):
    f = hax.named_jit(count_traces(lambda x, y: x * 2 + y), mapping, mesh=mesh, on_mesh_mismatch="move")
    for _ in range(3):
        out = f(PLACES[place](), on(mesh, "data") if beside else 1.0)
        assert np.array_equal(np.asarray(out), VALUES * 2 + (VALUES if beside else 1))
        assert out.array.sharding.mesh == mesh
        if mapping:
            assert spec_of(out) == ("data", "model")
    assert f._fn.traces == 1


@pytest.mark.parametrize("place", PLACES)
def test_into_explicit_axes(explicit_mesh, place):
    f = hax.named_jit(lambda x: x * 2, MAPPING, mesh=explicit_mesh, on_mesh_mismatch="move")
    for _ in range(3):
        out = f(PLACES[place]())
        assert spec_of(out) == ("data", "model") and np.array_equal(np.asarray(out), VALUES * 2)


def test_the_warning_is_a_table(mesh):
    params = {
        "w": PLACES["permuted"](),
        "b": jax.device_put(jnp.ones(3, jnp.int8), jax.devices()[3]),
        "x": PLACES["explicit"](),
        "ok": on(mesh),
    }

    def step(params, scale):
        return jax.tree.map(lambda x: x * scale, params)

    f = hax.named_jit(step, mesh=mesh)
    with pytest.warns(MeshMismatchWarning) as caught:
        f(params, 2.0)
    (warning,) = caught
    assert (
        str(warning.message)
        == """\
named_jit(step): 3 of its arrays live on another mesh than the call's and were moved.
  argument     shape             dtype    from                 to         bytes moved  reason
  params['b']  (3,)              int8     device 3             P()        21           on one device
  params['w']  batch=8, embed=4  float32  P('data') on mesh 1  P('data')  256          in another device order
  params['x']  batch=8, embed=4  float32  P('data') on mesh 2  P('data')  0            on a mesh with other axis types
  the call's mesh: data=4, model=2; devices 0 1 2 3 4 5 6 7
  mesh 1: data=4, model=2; devices 7 6 5 4 3 2 1 0
  mesh 2: data=4, model=2; explicit data, model; devices 0 1 2 3 4 5 6 7
  To avoid this, move them once before the loop: params = hax.shard(params, mesh=mesh)"""
    )
    assert warning.filename == __file__


def test_it_warns_once_for_each_call_site_and_set_of_arguments(mesh):
    f = hax.named_jit(lambda **kwargs: 0, mesh=mesh, keep_unused=True)
    x = PLACES["permuted"]()
    with pytest.warns(MeshMismatchWarning) as caught:
        for _ in range(3):
            f(a=x, b=1.0)
        f(a=x, b=1.0)
        f(a=x, b=x)
    assert len(caught) == 3


def test_the_advice_works(mesh):
    f = hax.named_jit(lambda t: t["x"] + t["raw"].sum(), mesh=mesh)
    tree = {"x": PLACES["permuted"](), "raw": PLACES["one device"]().array, "text": "kept", "number": 1.0}
    moved = hax.shard(tree, mesh=mesh)
    assert spec_of(moved["x"]) == ("data", None) and moved["text"] == "kept" and moved["number"] == 1.0
    assert np.array_equal(np.asarray(f(moved)), VALUES + VALUES.sum())  # warnings are errors here


def test_move_does_not_warn(mesh):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hax.named_jit(lambda x: x, mesh=mesh, on_mesh_mismatch="move")(PLACES["permuted"]())


@pytest.mark.parametrize("place", ELSEWHERE)
def test_error_comes_before_anything_is_moved_or_donated(mesh, place):
    f = hax.named_jit(lambda x, y: x * 2, mesh=mesh, donate_args=True, on_mesh_mismatch="error")
    x, y = PLACES[place](), on(mesh)
    sharding = x.array.sharding
    for _ in range(2):
        with pytest.raises(MeshMismatchError, match=r"1 of its arrays live on another mesh .* and nothing was moved\."):
            f(x, y)
    assert not x.array.is_deleted() and not y.array.is_deleted() and x.array.sharding == sharding
    assert np.array_equal(np.asarray(f(on(mesh), y)), VALUES * 2)


def keys_on(mesh):
    return jax.device_put(jax.random.split(jax.random.key(0), 8), NamedSharding(mesh, PartitionSpec("data")))


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (lambda: on(make_mesh(slice(None, None, -1)), "data", "model"), ("data", "model")),
        (lambda: on(make_mesh(slice(4), (4, 1)), ("data", "model")), (("data", "model"), None)),
        (lambda: PLACES["one device"]().array, (None, None)),
        (lambda: keys_on(make_mesh(slice(None, None, -1))), ("data",)),
    ],
    ids=["same spec", "same spec, other sizes", "a raw array is replicated", "typed keys"],
)
def test_the_target_layout(mesh, array, target):
    out = hax.named_jit(lambda x: x, mesh=mesh, on_mesh_mismatch="move")(array())
    assert spec_of(out) == target


@pytest.mark.parametrize(
    ("names", "spec", "mapping", "target"),
    [
        (("x", "y"), ("x", "y"), {}, (None, None)),
        (("x", "y"), ("x", "y"), MAPPING, ("data", "model")),
        (("x", "y"), ("x", "y"), {"batch": "model"}, ("model", None)),
        (("data", "y"), ("data",), MAPPING, ("data", None)),
    ],
    ids=["no such axes, no mapping", "no such axes, mapping", "partly mapped", "same axis"],
)
def test_a_spec_that_the_mesh_does_not_know(mesh, names, spec, mapping, target):
    other = jax.sharding.Mesh(mesh.devices[::-1], names, axis_types=mesh.axis_types)
    seen = hax.named_jit(lambda x: x, mapping, out_axis_resources={}, mesh=mesh, on_mesh_mismatch="move")
    seen(on(other, *spec))
    (program,) = seen._programs.values()
    assert spec_of(program.prepare([on(other, *spec).array])[0]) == target


def test_sizes_that_do_not_divide_fall_back(mesh):
    other = make_mesh(slice(6), (3, 2))
    x = hax.NamedArray(jax.device_put(np.ones((6, 4)), NamedSharding(other, PartitionSpec("data"))), NAMES)
    out = hax.named_jit(lambda x: x, mesh=mesh, on_mesh_mismatch="move")(x)
    assert spec_of(out) == (None, None)


@pytest.mark.parametrize("place", ELSEWHERE)
def test_a_moved_argument_that_was_to_be_donated_is_freed(mesh, place):
    f = hax.named_jit(lambda x, y: (x * 2, y * 2), mesh=mesh, donate_args=(True, False), on_mesh_mismatch="move")
    for _ in range(3):
        x, y = PLACES[place](), PLACES[place]()
        first, second = f(x, y)
        assert x.array.is_deleted() and not y.array.is_deleted()
        assert np.array_equal(np.asarray(first), VALUES * 2) and np.array_equal(np.asarray(second), VALUES * 2)
        assert np.array_equal(np.asarray(y), VALUES)


def test_a_function_that_fails_moves_and_frees_nothing(mesh):
    def fails(x):
        raise ValueError("mine")

    f = hax.named_jit(fails, mesh=mesh, donate_args=True)
    x = PLACES["permuted"]()
    with pytest.raises(ValueError, match="mine"):
        f(x)
    assert not x.array.is_deleted()


def test_a_mesh_of_another_shape(mesh):
    """The same devices in the same order: JAX accepts them, and then fails to name the layout of some results."""
    other = jax.sharding.Mesh(mesh.devices.reshape(2, 4), ("x", "y"), axis_types=mesh.axis_types)
    f = hax.named_jit(lambda x: hax.shard(x * 2, MAPPING), mesh=mesh, on_mesh_mismatch="move")
    g = hax.named_jit(lambda x: x * 2, mesh=mesh, on_mesh_mismatch="move")
    for _ in range(3):
        assert spec_of(f(on(other, "x", "y"))) == ("data", "model")
        assert np.array_equal(np.asarray(g(on(other, "x", "y"))), VALUES * 2)


def test_without_a_mesh_the_refusal_says_what_to_do():
    x, y = PLACES["permuted"]().array, PLACES["in place"]().array
    with pytest.raises(ValueError, match="incompatible devices") as error:
        hax.named_jit(lambda x, y: x + y)(x, y)
    assert error.value.__notes__[-1] == (
        "named_jit(<lambda>): the arguments live on 2 different device lists and there is no mesh to move them to."
        " Pass mesh=..., or call it under `with haliax.set_mesh(mesh):`."
    )


def test_a_key_on_the_training_mesh_under_a_one_device_mesh(mesh):
    key = jax.device_put(jax.random.key(0), NamedSharding(mesh, PartitionSpec()))
    one = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",), axis_types=(AxisType.Auto,))
    expected = np.asarray(jax.random.normal(jax.random.key(0), (8,)))

    def sample(key):
        return jax.random.normal(key, (8,))

    with jax.set_mesh(one):
        assert np.allclose(np.asarray(hax.named_jit(sample, mesh=mesh)(key)), expected)
        with pytest.warns(MeshMismatchWarning, match="on other devices"):
            out = hax.named_jit(sample)(key)
        assert np.allclose(np.asarray(out), expected)


def test_arrays_in_the_function_itself_are_moved_too(mesh):
    x = PLACES["permuted"]()
    with pytest.warns(MeshMismatchWarning, match=r"fn\.args\[0\]"):
        out = hax.named_jit(functools.partial(lambda x, y: x + y, x), mesh=mesh)(on(mesh))
    assert np.array_equal(np.asarray(out), VALUES * 2)


def test_an_argument_that_is_not_used_may_live_anywhere(mesh):
    f = hax.named_jit(lambda x, y: x * 2, mesh=mesh, on_mesh_mismatch="error")
    x, y = on(mesh, "data"), PLACES["one device"]()
    for _ in range(2):
        assert spec_of(f(x, y)) == ("data", None) and y.array.sharding.device_set == {jax.devices()[3]}


@pytest.mark.parametrize("place", ELSEWHERE)
def test_a_later_call_from_elsewhere(mesh, place):
    f = hax.named_jit(lambda x: x * 2, mesh=mesh)
    f(on(mesh, "data"))
    with pytest.warns(MeshMismatchWarning):
        assert np.array_equal(np.asarray(f(PLACES[place]())), VALUES * 2)


@pytest.mark.parametrize("place", ELSEWHERE)
def test_a_later_call_from_elsewhere_beside_mapped_inputs(mesh, place):
    f = hax.named_jit(lambda x, raw: x * raw[0, 0], mesh=mesh, in_axis_resources=MAPPING)
    x, home = on(mesh, "data", "model"), on(mesh, "data").array + 1
    away = PLACES[place]().array + 1
    for _ in range(3):
        f(x, home)
    with pytest.warns(MeshMismatchWarning) as caught:
        for raw in (away, home, away):
            out = f(x, raw)
            assert np.array_equal(np.asarray(out), VALUES) and spec_of(out) == ("data", "model")
    assert len(caught) == 1
