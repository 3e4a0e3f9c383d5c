"""Models whose linear layers contract in 8 bits: which layers, what they compute, and how their state is trained."""

import re
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType

import haliax as hax
import haliax.nn as hnn
from haliax.quantization import (
    CustomGradientAccumulation,
    DefaultDotGeneralOp,
    DotGeneralOp,
    Fp8DotGeneralOp,
    Int8DotGeneralOp,
    QuantizationConfig,
    accumulate_gradients,
    apply_updates,
    partition_for_grad_overwrite,
    quantize_linear_layers,
)
from meshes import make_mesh

Batch, In, Out, Layers, Groups = hax.make_axes(batch=8, embed=16, mlp=32, layers=3, groups=2)
KEY = jax.random.key(0)
STATE = [
    "input_scale",
    "output_grad_scale",
    "kernel_scale",
    "input_amax_history",
    "output_grad_amax_history",
    "kernel_amax_history",
]
FP8 = QuantizationConfig(fp8=True, amax_history_length=4)


class Block(eqx.Module):
    """A residual block of two linear layers."""

    up: hnn.Linear
    down: hnn.Linear

    @staticmethod
    def init(*, key):
        keys = jax.random.split(key)
        return Block(hnn.Linear.init(In, Out, key=keys[0]), hnn.Linear.init(Out, In, key=keys[1], use_bias=False))

    def __call__(self, x):
        return x + self.down(hnn.relu(self.up(x)))


class Group(eqx.Module):
    """A stack, to be stacked."""

    blocks: hnn.Stacked

    @staticmethod
    def init(*, key):
        return Group(hnn.Stacked.init(Layers, Block)(key=jax.random.split(key, Layers.size)))

    def __call__(self, x):
        return self.blocks.fold(x)


class Model(eqx.Module):
    """Linear layers in all places where one may be."""

    first: hnn.Linear
    inner: list
    named: dict
    stack: hnn.Stacked
    head: hnn.Linear

    @staticmethod
    def init():
        keys = jax.random.split(KEY, 5)
        stack = hnn.Stacked.init(Layers, Block)(key=jax.random.split(keys[3], Layers.size))
        return Model(
            hnn.Linear.init(In, In, key=keys[0]),
            [hnn.Linear.init(In, In, key=keys[1])],
            {"gate": hnn.Linear.init(In, In, key=keys[2])},
            stack,
            hnn.Linear.init(In, Out, key=keys[4]),
        )

    def __call__(self, x):
        for layer in (self.first, *self.inner, self.named["gate"]):
            x = layer(x)
        return self.head(self.stack.fold(x))


PATHS = {
    "first": lambda m: m.first,
    "inner.0": lambda m: m.inner[0],
    "named.gate": lambda m: m.named["gate"],
    "stack.stacked.up": lambda m: m.stack.stacked.up,
    "stack.stacked.down": lambda m: m.stack.stacked.down,
    "head": lambda m: m.head,
}
MODEL = Model.init()


def quantized_paths(model):
    return [path for path, layer in PATHS.items() if isinstance(layer(model).dot_general, Fp8DotGeneralOp)]


def loss_of(model, x):
    return hax.mean(model(x) ** 2).scalar()


X = hax.random.normal(jax.random.key(1), (Batch, In))


# which layers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        (None, list(PATHS)),
        (".*", list(PATHS)),
        ("first", ["first"]),
        ("f", ["first"]),
        ("inner", ["inner.0"]),
        (r"inner\.0", ["inner.0"]),
        ("stack", ["stack.stacked.up", "stack.stacked.down"]),
        ("stacked", ["stack.stacked.up", "stack.stacked.down"]),
        (r"stacked\.up|head", ["stack.stacked.up", "head"]),
        (".*down", ["stack.stacked.down"]),
        (["up"], ["stack.stacked.up"]),
        (["gate", "0", "head"], ["inner.0", "named.gate", "head"]),
        (("first",), ["first"]),
    ],
    ids=str,
)
def test_targets(targets, expected):
    quantized = quantize_linear_layers(MODEL, QuantizationConfig(targets, fp8=True))
    assert quantized_paths(quantized) == expected
    assert quantized_paths(MODEL) == []


def test_a_layer_by_itself():
    assert isinstance(quantize_linear_layers(MODEL.first, FP8).dot_general, Fp8DotGeneralOp)
    with pytest.warns(UserWarning, match="no linear layer"):
        layer = quantize_linear_layers(MODEL.first, QuantizationConfig(["first"], fp8=True))
    assert isinstance(layer.dot_general, DefaultDotGeneralOp)


def test_options_reach_the_operation():
    op: Fp8DotGeneralOp = quantize_linear_layers(
        MODEL, QuantizationConfig(None, 7, jnp.bfloat16, True)
    ).head.dot_general
    assert op.compute_dtype == jnp.bfloat16 and op.input_amax_history.shape == (7,)


def test_stacks_have_a_state_for_each_layer():
    op: Fp8DotGeneralOp = quantize_linear_layers(MODEL, FP8).stack.stacked.up.dot_general
    assert [getattr(op, name).shape for name in STATE] == [(3, 1)] * 3 + [(3, 4)] * 3

    nested = hnn.Stacked.init(Groups, Group)(key=jax.random.split(KEY, Groups.size))
    quantized = quantize_linear_layers(nested, QuantizationConfig(r"stacked\.up", fp8=True, amax_history_length=4))
    op = quantized.stacked.blocks.stacked.up.dot_general
    assert [getattr(op, name).shape for name in STATE] == [(2, 3, 1)] * 3 + [(2, 3, 4)] * 3
    assert isinstance(quantized.stacked.blocks.stacked.down.dot_general, DefaultDotGeneralOp)
    out, expected = (eqx.filter_jit(lambda model, x: model.fold(x))(model, X).array for model in (quantized, nested))
    assert 0 < float(jnp.linalg.norm(out - expected) / jnp.linalg.norm(expected)) < 0.1


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: QuantizationConfig(fp8=True, int8=True),
            ValueError,
            "QuantizationConfig: both fp8 and int8 are set; at most one of them.",
        ),
        (
            lambda: Fp8DotGeneralOp.init(0),
            ValueError,
            "Fp8DotGeneralOp.init: amax_history_length is 0; at least 1.",
        ),
        (
            lambda: CustomGradientAccumulation().accumulate(None),
            NotImplementedError,
            "CustomGradientAccumulation must define accumulate.",
        ),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        make()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            QuantizationConfig(),
            "quantize_linear_layers: neither fp8 nor int8 is set, so nothing is quantized.",
        ),
        (
            QuantizationConfig("haed", fp8=True),
            "quantize_linear_layers: no linear layer is named by targets='haed'; the linear layers are: first, inner.0,"
            " named.gate, stack.stacked.up, stack.stacked.down, head.",
        ),
    ],
)
def test_warnings(config, message):
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        assert eqx.tree_equal(quantize_linear_layers(MODEL, config), MODEL)
    assert caught[0].filename == __file__


# what they compute ---------------------------------------------------------------------------------------------------


def trained_state(model, x, steps=2):
    """The model after steps that change nothing but the state of what is quantized."""
    for _ in range(steps):
        grads = eqx.filter_jit(eqx.filter_grad(loss_of))(model, x)
        overwrites, grads = partition_for_grad_overwrite(grads)
        model = apply_updates(model, jax.tree.map(jnp.zeros_like, grads), overwrites)
    return model


def test_values_are_near_those_of_float32():
    quantized = trained_state(quantize_linear_layers(MODEL, FP8), X)
    expected, found = MODEL(X).array, quantized(X).array
    assert found.dtype == jnp.float32
    error = jnp.linalg.norm(found - expected) / jnp.linalg.norm(expected)
    # six contractions in a row, each of numbers that are rounded to 4 bits
    assert 0 < float(error) < 6 * 2**-5
    plain, mine = (eqx.filter_jit(eqx.filter_grad(loss_of))(model, X) for model in (MODEL, quantized))
    for path, layer in PATHS.items():
        a, b = layer(plain).weight.array, layer(mine).weight.array
        # two and more for each of these, of numbers of which some are rounded to 3 bits
        assert float(jnp.linalg.norm(a - b) / jnp.linalg.norm(a)) < 10 * 2**-5, path


@pytest.mark.parametrize("compute", [None, jnp.bfloat16, jnp.float32])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_dtypes(compute, dtype):
    op = Fp8DotGeneralOp.init(4, compute)
    out = op(jnp.ones((2, 3), dtype), jnp.ones((3, 4), dtype), (((1,), (0,)), ((), ())))
    assert out.dtype == (compute or dtype)
    layer = hnn.Linear.init(In, Out, key=KEY, dot_general=op)
    assert layer(X.astype(dtype)).dtype == MODEL.head(X.astype(dtype)).dtype


def test_input_and_weight_are_told_apart():
    layer = quantize_linear_layers(MODEL.head, FP8)
    grad = eqx.filter_grad(loss_of)(layer, X).dot_general
    assert grad.input_amax_history[0] == jnp.max(jnp.abs(X.array))
    assert grad.kernel_amax_history[0] == jnp.max(jnp.abs(layer.weight.array))
    out = layer(X)
    # the derivative of the mean of squares
    np.testing.assert_allclose(grad.output_grad_amax_history[0], jnp.max(jnp.abs(out.array)) * 2 / out.size, rtol=0.02)


def test_a_program_may_not_know():
    """An operation is a part of a model: jit, vmap and a batch axis more change nothing."""
    layer = trained_state(quantize_linear_layers(MODEL.head, FP8), X)
    expected = layer(X)
    np.testing.assert_array_equal(hax.named_jit(lambda layer, x: layer(x))(layer, X).array, expected.array)
    np.testing.assert_allclose(hax.vmap(layer, Batch)(X).array, expected.array, rtol=1e-6)
    assert isinstance(hax.named_jit(layer)(X), hax.NamedArray)
    assert issubclass(Fp8DotGeneralOp, CustomGradientAccumulation)
    assert isinstance(DotGeneralOp.default(), DefaultDotGeneralOp)


@pytest.mark.parametrize("explicit", [False, True], ids=["auto", "explicit"])
def test_on_devices(explicit):
    mesh = make_mesh(types=(AxisType.Explicit if explicit else AxisType.Auto,) * 2)
    mapping = {"batch": "data", "mlp": "model"}
    model = trained_state(quantize_linear_layers(MODEL, FP8), X)
    expected = eqx.filter_grad(loss_of)(model, X)
    with jax.set_mesh(mesh), hax.axis_mapping(mapping):
        sharded, x = hax.shard((model, X), mapping)
        found = hax.named_jit(eqx.filter_grad(loss_of), mapping)(sharded, x)
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(a, b, rtol=0.07, atol=0.02 * float(jnp.max(jnp.abs(a))) + 1e-6)


# training ------------------------------------------------------------------------------------------------------------


def test_training():
    """The loss falls as it does in float32, and the state follows the magnitudes."""
    optimizer = optax.adam(1e-2)
    targets = hax.random.normal(jax.random.key(2), (Batch, Out))

    def objective(model):
        return hax.mean((model(X) - targets) ** 2).scalar()

    @eqx.filter_jit
    def step(model, opt_state):
        loss, grads = eqx.filter_value_and_grad(objective)(model)
        overwrites, grads = partition_for_grad_overwrite(grads)
        updates, opt_state = optimizer.update(grads, opt_state)
        return apply_updates(model, updates, overwrites), opt_state, loss

    losses = {}
    for kind, model in {"plain": MODEL, "fp8": quantize_linear_layers(MODEL, FP8)}.items():
        _, parameters = partition_for_grad_overwrite(eqx.filter(model, eqx.is_inexact_array))
        opt_state = optimizer.init(parameters)
        losses[kind] = []
        for _ in range(30):
            model, opt_state, loss = step(model, opt_state)
            losses[kind].append(float(loss))
    assert losses["plain"][-1] < losses["plain"][0] / 3
    assert losses["fp8"][-1] < losses["plain"][0] / 3
    op = model.head.dot_general
    assert bool(jnp.all(op.kernel_amax_history > 0))
    np.testing.assert_allclose(op.kernel_scale, jnp.max(op.kernel_amax_history) / 448, rtol=0.05)


def test_gradients_are_taken_apart():
    model = quantize_linear_layers(MODEL, QuantizationConfig(["head"], fp8=True))
    grads = eqx.filter_grad(loss_of)(model, X)
    overwrites, rest = partition_for_grad_overwrite(grads)
    assert eqx.tree_equal(overwrites.head.dot_general, grads.head.dot_general)
    assert len(jax.tree.leaves(overwrites)) == len(STATE)
    assert rest.head.dot_general is None and overwrites.head.weight.array is None
    assert len(jax.tree.leaves(rest)) == len(jax.tree.leaves(eqx.filter_grad(loss_of)(MODEL, X)))
    new = apply_updates(model, rest, overwrites)
    np.testing.assert_allclose(new.head.weight.array, (model.head.weight + grads.head.weight).array)
    assert eqx.tree_equal(new.head.dot_general, grads.head.dot_general)
    # nothing to update, nothing to overwrite
    nothing = jax.tree.map(lambda x: None, MODEL)
    assert eqx.tree_equal(apply_updates(MODEL, nothing, nothing), MODEL)


def test_gradients_of_several_batches():
    model = quantize_linear_layers(MODEL, QuantizationConfig(["head"], fp8=True))
    one, two = (eqx.filter_grad(loss_of)(model, X * scale) for scale in (1.0, 3.0))
    both = accumulate_gradients(one, two)
    np.testing.assert_allclose(both.first.weight.array, (one.first.weight + two.first.weight).array, rtol=1e-6)
    for name in STATE:
        a, b, c = (getattr(g.head.dot_general, name) for g in (one, two, both))
        assert c.tolist() == jnp.maximum(a, b).tolist()
    assert eqx.tree_equal(accumulate_gradients(None, one), one)
    found = accumulate_gradients({"a": jnp.ones(2), "b": None, "c": None}, {"a": jnp.ones(2), "b": None, "c": 1.0})
    assert found["a"].tolist() == [2, 2] and found["b"] is None and found["c"] == 1


# integers ------------------------------------------------------------------------------------------------------------


# AQT passes arrays where JAX wants dtypes
of_aqt = pytest.mark.filterwarnings("ignore:Implicit conversion of an array to a dtype:DeprecationWarning")


@of_aqt
def test_int8():
    quantized = quantize_linear_layers(MODEL, QuantizationConfig(int8=True))
    assert isinstance(quantized.stack.stacked.up.dot_general, Int8DotGeneralOp)
    expected, found = MODEL(X).array, quantized(X).array
    error = jnp.linalg.norm(found - expected) / jnp.linalg.norm(expected)
    assert 0 < float(error) < 6 * 2**-7
    plain, mine = (eqx.filter_jit(eqx.filter_grad(loss_of))(m, X) for m in (MODEL, quantized))
    for path, layer in PATHS.items():
        a, b = layer(plain).weight.array, layer(mine).weight.array
        assert float(jnp.linalg.norm(a - b) / jnp.linalg.norm(a)) < 0.1, path
    overwrites, _ = partition_for_grad_overwrite(mine)
    assert jax.tree.leaves(overwrites) == []


@of_aqt
def test_int8_has_no_state():
    op = Int8DotGeneralOp.init()
    assert op.to_state_dict("prefix") == {} and op.from_state_dict({}, "prefix") is op and op.accumulate(op) is op
    out = op(jnp.ones((2, 3)), jnp.ones((3, 4)), (((1,), (0,)), ((), ())), None, jnp.bfloat16)
    assert out.dtype == jnp.bfloat16


def test_int8_without_aqt(monkeypatch):
    monkeypatch.setitem(sys.modules, "aqt.jax.v2", None)
    message = "Int8DotGeneralOp: the package aqtp is not installed. Install the extra: pip install 'haliax[quant]'."
    with pytest.raises(ImportError, match=f"^{re.escape(message)}$"):
        Int8DotGeneralOp.init()
