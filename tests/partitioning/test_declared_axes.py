"""Raw arrays in fields that declare their axes: to `named_jit` they are as good as named arrays."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from meshes import MAPPING, VALUES, make_mesh, spec_of


class Layer(eqx.Module):
    weight: jax.Array = hax.field(axis_names=("batch", "embed"))
    bias: jax.Array = eqx.field()
    scale: hax.NamedArray = eqx.field()


def layer(mesh, weight=VALUES):
    raw = jax.device_put(weight, jax.NamedSharding(mesh, jax.P()))
    return Layer(raw, jax.device_put(np.ones(3), jax.NamedSharding(mesh, jax.P())), hax.NamedArray(raw[0], ("embed",)))


@pytest.fixture
def mesh():
    return make_mesh()


@pytest.mark.parametrize("mapping", ["axis_resources", "out_axis_resources"])
def test_results_have_the_layout_of_the_mapping(mesh, mapping):
    f = hax.named_jit(lambda m: {"layers": [m]}, mesh=mesh, **{mapping: MAPPING})
    out = f(layer(mesh))["layers"][0]
    assert spec_of(out.weight) == ("data", "model") and spec_of(out.scale) == ("model",)
    assert np.array_equal(out.weight, VALUES)


def test_arguments_have_the_layout_of_an_input_mapping(mesh):
    f = hax.named_jit(lambda m: m.weight.sum(), mesh=mesh, in_axis_resources=MAPPING)
    report = f.explain(layer(mesh))
    assert "m.weight" in str(report)
    (layouts, _) = f.lower(layer(mesh)).compile().input_shardings
    assert layouts[0].spec == jax.P("data", "model")
    assert f(layer(mesh)) == VALUES.sum()


def test_arguments_keep_their_layout_without_one(mesh):
    f = hax.named_jit(lambda m: m.weight.sum(), MAPPING, mesh=mesh)
    (layouts, _) = f.lower(layer(mesh)).compile().input_shardings
    assert layouts[0].spec == jax.P()


def test_a_stack_of_modules_has_more_axes_than_the_field_declares(mesh):
    """Its arrays are raw ones."""
    f = hax.named_jit(lambda m: m, MAPPING, mesh=mesh, in_axis_resources=MAPPING)
    stacked = Layer(jnp.stack([VALUES, VALUES]), jnp.ones(3), hax.NamedArray(jnp.ones(4), ("embed",)))
    assert f(stacked).weight.shape == (2, 8, 4)


@pytest.mark.parametrize("stacked_first", [False, True])
def test_stacks_and_single_modules_take_turns(mesh, stacked_first):
    """The layout of each is the same, whichever came first."""
    single = layer(mesh)
    stacked = Layer(jnp.stack([single.weight, single.weight]), single.bias, single.scale)
    f = hax.named_jit(lambda m: m.weight * 2, MAPPING, mesh=mesh, in_axis_resources=MAPPING)
    for module in [stacked, single, stacked] if stacked_first else [single, stacked, single]:
        given = f.explain(module).arguments[0]
        assert given.spec_out == (jax.P("data", "model") if module is single else jax.P())
        assert np.array_equal(f(module), module.weight * 2)


def test_numpy_arrays_of_64_bits(mesh):
    """They are arrays of 32 bits to JAX, and nothing is said about it, whichever way they go."""
    module = Layer(VALUES.astype(np.float64), np.arange(3), hax.NamedArray(np.ones(4), ("embed",)))
    f = hax.named_jit(lambda m: m, MAPPING, mesh=mesh, in_axis_resources=MAPPING)
    expected = {"weight": jnp.float32, "bias": jnp.int32, "scale": jnp.float32}
    for out in (f(module), f.lower(module).compile()(module), f.eval_shape(module)):
        assert {name: getattr(out, name).dtype for name in expected} == expected
    assert [given.spec_out for given in f.explain(module).arguments][::2] == [jax.P("data", "model"), jax.P("model")]


def test_an_array_on_another_mesh_is_moved_by_its_names(mesh):
    other = make_mesh(slice(None, None, -1))
    f = hax.named_jit(lambda m: m, MAPPING, mesh=mesh, on_mesh_mismatch="move")
    assert spec_of(f(layer(other)).weight) == ("data", "model")


def test_what_a_layout_can_not_split_is_an_error(mesh):
    f = hax.named_jit(lambda m: m, MAPPING, mesh=mesh)
    with pytest.raises(ValueError, match=r"result\.weight"):
        f(layer(mesh, np.ones((3, 4), np.float32)))
