"""Linear layers and perceptrons: values, initial numbers, parametrisations, shared axes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import Axis, NamedArray
from haliax.nn import mup

B, C, D, E = Axis("b", 2), Axis("c", 3), Axis("d", 4), Axis("e", 5)
KEY = jax.random.PRNGKey(0)
X = hax.random.normal(jax.random.key(1), (B, C, D))
Linear, MLP = hax.nn.Linear, hax.nn.MLP


@pytest.mark.parametrize(
    ("In", "Out", "weight", "result", "spec"),
    [
        (D, E, "ed", "bce", "bcd,ed->bce"),
        (C, E, "ec", "bde", "bcd,ec->bde"),
        ((C, D), E, "ecd", "be", "bcd,ecd->be"),
        (D, (E, Axis("f", 2)), "efd", "bcef", "bcd,efd->bcef"),
        ({"d": 4}, {"e": 5}, "ed", "bce", "bcd,ed->bce"),
        (D, (), "d", "bc", "bcd,d->bc"),
        ((), E, "e", "bcde", "bcd,e->bcde"),
    ],
)
@pytest.mark.parametrize("out_first", [True, False])
def test_linear_map(In, Out, weight, result, spec, out_first):
    layer = Linear.init(In, Out, key=KEY, out_first=out_first)
    assert set(layer.weight.axis_names) == set(weight)
    if out_first:
        assert layer.weight.axis_names == tuple(weight)
    bias = hax.random.normal(jax.random.key(2), layer.bias.axes)
    layer = dataclasses.replace(layer, bias=bias)
    y = layer(X)
    assert y.axis_names == tuple(result)
    raw = layer.weight.rearrange(tuple(weight)).array if len(weight) > 1 else layer.weight.array
    expected = jnp.einsum(spec, X.array, raw) + bias.array.reshape(
        (1,) * (y.array.ndim - bias.array.ndim) + bias.array.shape
    )
    np.testing.assert_allclose(y.array, expected, rtol=1e-5, atol=1e-5)


def test_lowers_to_one_product_without_transposes():
    layer = Linear.init(D, E, key=KEY)
    text = jax.jit(lambda f, x: f(x)).lower(layer, X).as_text()
    assert text.count("stablehlo.dot_general") == 1
    assert text.count("stablehlo.transpose") == 0


@pytest.mark.parametrize(("In", "Out", "result"), [(D, D, "bcd"), (D, Axis("d", 7), "bcd"), ((C, D), (D, E), "bde")])
@pytest.mark.parametrize("out_first", [True, False])
def test_an_output_axis_replaces_the_input_axis_of_its_name(In, Out, result, out_first):
    layer = Linear.init(In, Out, key=KEY, out_first=out_first)
    y = layer(X)
    assert y.axis_names == tuple(result)
    inner = X.rename({"d": "d_in"})
    np.testing.assert_allclose(
        y.array, hax.dot(inner, layer.weight, axis=[n for n in layer.weight.axis_names if n in inner.axis_names]).array,
        rtol=1e-6,
    )  # fmt: skip
    np.testing.assert_allclose(
        jax.grad(lambda f: f(X).sum().scalar())(layer).bias.array, y.array.size / layer.bias.array.size
    )


def test_dtype_follows_promotion():
    layer = Linear.init(D, E, key=KEY)
    assert layer(X.astype(jnp.bfloat16)).array.dtype == jnp.float32
    low = jax.tree.map(lambda x: x.astype(jnp.bfloat16), layer)
    assert low(X.astype(jnp.bfloat16)).array.dtype == jnp.bfloat16


def test_custom_contraction():
    class Doubled:
        def __call__(self, lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None, **kwargs):
            return 2 * jax.lax.dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)

    plain, doubled = Linear.init(D, E, key=KEY), Linear.init(D, E, key=KEY, dot_general=Doubled())
    np.testing.assert_allclose(doubled(X).array, 2 * plain(X).array, rtol=1e-6)


def test_layer_is_a_pytree():
    layer = Linear.init({"d": 4}, E, key=KEY)
    assert [leaf.shape for leaf in jax.tree.leaves(layer)] == [(5, 4), (5,)]
    hash(jax.tree.structure(layer))
    stacked = jax.vmap(lambda key: Linear.init(D, E, key=key))(jax.random.split(KEY, 2))
    assert stacked.weight.array.shape == (2, 5, 4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda layer: layer(X["d", 0]),
            ValueError,
            "Linear: no axis 'd'; the array has b=2, c=3.",
        ),
        (
            lambda layer: layer(hax.ones((B, Axis("d", 9)))),
            ValueError,
            "Linear: axis 'd' has size 9; expected 4. The layer was made with d=4.",
        ),
        (
            lambda layer: layer(np.ones(4)),
            TypeError,
            "Linear: the array is a numpy array of shape (4,); expected a NamedArray."
            " Name its axes with haliax.named(array, axes).",
        ),
        (
            lambda layer: MLP.init(C, D, 5, -1, key=KEY),
            ValueError,
            "MLP.init: depth is -1; expected 0 or more.",
        ),
    ],
)
def test_messages(call, error, message):
    with pytest.raises(error) as raised:
        call(Linear.init(D, E, key=KEY))
    assert str(raised.value) == message


# parametrisations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reparam", "init_scale", "active_scale", "lr_scale"),
    [
        (mup.LinearStandardParam, 12**-0.5, 1, 1),
        (mup.InputLinearMup, 1, 1, 1),
        (mup.HiddenLinearMup, 12**-0.5, 1, 1 / 12),
        (mup.OutputLinearMup, 1, 1 / 12, 1),
    ],
)
def test_linear_parametrisations(reparam, init_scale, active_scale, lr_scale):
    layer = Linear.init((C, D), E, key=KEY, reparam_cls=reparam)
    np.testing.assert_allclose(reparam.init_scale((C, D), E), init_scale)
    assert isinstance(layer, mup.ReparamEnabled) and layer.reparam == reparam((C, D), E)
    np.testing.assert_allclose([layer.reparam.active_scale, layer.reparam.lr_scale], [active_scale, lr_scale])
    standard = Linear.init((C, D), E, key=KEY)
    np.testing.assert_allclose(layer.weight.array, standard.weight.array * init_scale * 12**0.5, rtol=1e-6)
    layer = dataclasses.replace(layer, bias=hax.ones(E))
    expected = jnp.einsum("bcd,ecd->be", X.array, layer.weight.array) * active_scale + 1
    np.testing.assert_allclose(layer(X).array, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["input", "hidden", "output"])
def test_choice_of_parametrisation(kind):
    choose = getattr(Linear, f"{kind}_reparam")
    assert choose() is getattr(mup, f"{kind.title()}LinearMup")
    assert choose(use_mup=False) is mup.LinearStandardParam


# perceptrons --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_perceptron(depth):
    model = MLP.init((C, D), E, 6, depth, key=KEY)
    assert (model.In, model.Out, len(model.layers)) == ((C, D), E, depth + 1)
    expected = X
    for i, layer in enumerate(model.layers):
        expected = layer(expected) if i == depth else hax.nn.relu(layer(expected))
    assert model(X).axis_names == ("b", "e")
    np.testing.assert_array_equal(model(X).array, expected.array)
    np.testing.assert_array_equal(model(X, key=KEY).array, expected.array)
    for layer, key in zip(model.layers, jax.random.split(KEY, depth + 1), strict=True):
        np.testing.assert_array_equal(layer.weight.array, Linear.init(layer.In, layer.Out, key=key).weight.array)


def test_hidden_axes_alternate():
    axes = [layer.Out for layer in MLP.init(C, D, 5, 3, key=KEY).layers]
    assert axes == [Axis("mlp", 5), Axis("mlp2", 5), Axis("mlp", 5), D]
    named = [layer.Out for layer in MLP.init(C, C, Axis("w", 6), 2, key=KEY).layers]
    assert named == [Axis("w", 6), Axis("w2", 6), C]


def test_a_width_may_have_the_name_of_the_input():
    model = MLP.init(Axis("c", 3), D, Axis("c", 8), 2, key=KEY)
    assert model(X["d", 0]).axis_names == ("b", "d")


def test_options_of_perceptrons():
    model = MLP.init(C, D, 5, 2, hax.tanh, key=KEY, use_bias=False, out_first=False, init_scale=0.5)
    assert [layer.bias is None for layer in model.layers] == [True, True, False]
    assert model.layers[0].weight.axis_names == ("c", "mlp")
    assert model.activation is hax.tanh
    none = MLP.init(C, D, 5, 1, key=KEY, use_bias=False, use_final_bias=False)
    assert [layer.bias for layer in none.layers] == [None, None]
    assert isinstance(none(X), NamedArray)


@pytest.mark.parametrize("reparam", [Linear.input_reparam, Linear.hidden_reparam, Linear.output_reparam])
@pytest.mark.parametrize("use_mup", [False, True])
def test_an_axis_may_have_size_zero(reparam, use_mup):
    none = Axis("none", 0)
    to_d = Linear.init(none, D, key=KEY, reparam_cls=reparam(use_mup))
    assert to_d(hax.ones((C, none))).tolist() == np.zeros((C.size, D.size)).tolist()
    assert Linear.init(D, none, key=KEY, reparam_cls=reparam(use_mup))(hax.ones((C, D))).axes == (C, none)
