"""Layers against torch: values and gradients, for the input and all parameters."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F

import haliax as hax
from haliax import Axis
from haliax.nn import attention
from with_torch.agreement import agree, named, normal

KEY = jax.random.key(0)


def sizes(**axes):
    return tuple(Axis(name, size) for name, size in axes.items())


def with_arrays(layer, weight, bias=None):
    """The layer around raw arrays."""
    bias = None if bias is None else layer.bias.like(bias, layer.bias.axis_names)
    return dataclasses.replace(layer, weight=layer.weight.like(weight, layer.weight.axis_names), bias=bias)


# linear layers and embeddings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("out_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 1, 1, 1), (0, 2, 3, 4)])
def test_linear(shape, bias, out_first):
    b, t, i, o = shape
    layer = hax.nn.Linear.init(Axis("i", i), Axis("o", o), key=KEY, use_bias=bias, out_first=out_first)
    parameters = [normal(*layer.weight.array.shape), *([normal(o)] if bias else [])]
    agree(
        lambda x, *p: with_arrays(layer, *p)(named(x, "bti")).array,
        lambda x, w, *p: F.linear(x, w if out_first else w.T, *p),
        normal(b, t, i),
        *parameters,
    )


def test_linear_with_several_axes():
    layer = hax.nn.Linear.init(sizes(i=3, j=2), sizes(o=4, p=5), key=KEY)
    agree(
        lambda x, w, b: with_arrays(layer, w, b)(named(x, "ibj")).array,
        lambda x, w, b: F.linear(
            x.transpose(0, 1).reshape(7, 6), w.permute(0, 1, 2, 3).reshape(20, 6), b.reshape(20)
        ).reshape(7, 4, 5),
        normal(3, 7, 2),
        normal(4, 5, 3, 2),
        normal(4, 5),
    )


def test_mlp():
    model = hax.nn.MLP.init(Axis("i", 3), Axis("o", 2), 5, 2, hax.nn.gelu, key=KEY)
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(model)]

    def theirs(x, *p):
        for k in range(0, 6, 2):
            x = F.linear(x, p[k], p[k + 1])
            x = F.gelu(x, approximate="tanh") if k < 4 else x
        return x

    rebuilt = lambda p: jax.tree.unflatten(jax.tree.structure(model), p)  # noqa: E731
    agree(lambda x, *p: rebuilt(p)(named(x, "bi")).array, theirs, normal(4, 3), *arrays)


def test_embedding():
    layer = hax.nn.Embedding.init(Axis("v", 7), Axis("e", 3), key=KEY)
    ids = np.array([[0, 6, 3], [3, 3, 1]])

    def rebuilt(w):
        return dataclasses.replace(layer, weight=layer.weight.like(w, layer.weight.axis_names))

    agree(lambda ids, w: rebuilt(w)(named(ids, "bt")).array, F.embedding, ids, normal(7, 3))
    agree(lambda x, w: rebuilt(w).unembed(named(x, "be")).array, F.linear, normal(4, 3), normal(7, 3))


# normalisation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [0, 1, 2])
@pytest.mark.parametrize("axes", [{"c": 5}, {"c": 1}, {"h": 3, "c": 4}])
def test_layer_norm(axes, parameters):
    shape = tuple(axes.values())
    layer = hax.nn.LayerNorm.init(sizes(**axes), use_weight=parameters > 0, use_bias=parameters > 1)
    agree(
        lambda x, *p: (with_arrays(layer, *p) if p else layer)(named(x, ["b", *axes])).array,
        lambda x, *p: F.layer_norm(x, shape, *p),
        normal(3, *shape),
        *(normal(*shape) for _ in range(parameters)),
    )


@pytest.mark.parametrize("eps", [1e-5, 0.1])
def test_rms_norm(eps):
    layer = hax.nn.RmsNorm.init(Axis("c", 5), eps, use_bias=False)
    agree(
        lambda x, w: with_arrays(layer, w)(named(x, "bc")).array,
        lambda x, w: F.rms_norm(x, (5,), w, eps),
        normal(3, 5),
        normal(5),
    )


# convolutions and pools ---------------------------------------------------------------------------------------------

SPATIAL = {"h": 9, "w": 6, "d": 4}
CONV = [
    (1, {}),
    (1, {"stride": 2, "padding": 3}),
    (2, {"padding": (1, 0), "dilation": 2}),
    (2, {"stride": (2, 3), "groups": 2}),
    (2, {"padding": "same", "dilation": (1, 2)}),
    (2, {"padding": "valid", "groups": 4}),
    (3, {"stride": 2, "padding": (0, 1, 2)}),
]


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("kernel", [1, 2, 3])
@pytest.mark.parametrize(("n", "options"), CONV)
def test_conv(n, options, kernel):
    names, shape = list(SPATIAL)[:n], tuple(SPATIAL.values())[:n]
    layer = hax.nn.Conv.init(names, Axis("i", 4), Axis("o", 8), kernel, key=KEY, **options)
    agree(
        lambda x, w, b: with_arrays(layer, w, b)(named(x, ["b", "i", *names])).array,
        lambda x, w, b: getattr(F, f"conv{n}d")(x, w, b, **options),
        normal(2, 4, *shape),
        normal(*layer.weight.array.shape),
        normal(8),
    )


CONV_TRANSPOSE = [
    (1, {}),
    (1, {"stride": 3, "padding": 1, "output_padding": 2}),
    (2, {"stride": (2, 1), "groups": 2}),
    (2, {"padding": (1, 0), "dilation": 2, "output_padding": (1, 0)}),
    (3, {"stride": 2, "padding": 1, "groups": 4}),
]


@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize(("n", "options"), CONV_TRANSPOSE)
def test_conv_transpose(n, options, kernel):
    """The kernel of torch is flipped, and has the input axis, with all groups, first."""
    names, shape = list(SPATIAL)[:n], tuple(SPATIAL.values())[:n]
    layer = hax.nn.ConvTranspose.init(names, Axis("i", 4), Axis("o", 8), kernel, key=KEY, **options)
    groups = options.get("groups", 1)

    def theirs(x, w, b):
        w = w.flip(tuple(range(2, n + 2))).reshape(groups, 8 // groups, 4 // groups, *w.shape[2:])
        return getattr(F, f"conv_transpose{n}d")(
            x, w.transpose(1, 2).reshape(4, 8 // groups, *w.shape[3:]), b, **options
        )

    agree(
        lambda x, w, b: with_arrays(layer, w, b)(named(x, ["b", "i", *names])).array,
        theirs,
        normal(2, 4, *shape),
        normal(*layer.weight.array.shape),
        normal(8),
    )


POOL = [
    (1, 2, {"stride": 1}),
    (1, 3, {"stride": 2, "padding": 1, "ceil_mode": True}),
    (1, 2, {"stride": 4, "ceil_mode": True}),
    (2, 2, {"stride": 2}),
    (2, (3, 2), {"stride": (2, 1), "padding": 1}),
    (2, (4, 3), {"stride": 3, "padding": (2, 0), "ceil_mode": True}),
    (3, (3, 2, 1), {"stride": (2, 2, 3), "padding": (1, 0, 0), "ceil_mode": True}),
]


@pytest.mark.parametrize("kind", ["max", "min", "mean", "mean with padding"])
@pytest.mark.parametrize(("n", "window", "options"), POOL)
def test_pool(n, window, options, kind):
    names, shape = list(SPATIAL)[:n], tuple(SPATIAL.values())[:n]
    window = (window,) * n if isinstance(window, int) else window
    ours = {"use_ceil" if name == "ceil_mode" else name: value for name, value in options.items()}
    ours = {"padding": 0} | ours
    which, _, counted = kind.partition(" ")
    if which == "mean":
        ours["count_include_pad"] = bool(counted)

    def theirs(x):
        if which == "mean":
            return getattr(F, f"avg_pool{n}d")(x, window, **options, count_include_pad=bool(counted))
        pooled = getattr(F, f"max_pool{n}d")
        return pooled(x, window, **options) if which == "max" else -pooled(-x, window, **options)

    fn = getattr(hax.nn, f"{which}_pool")
    agree(
        lambda x: fn(tuple(map(Axis, names, window)), named(x, ["b", "c", *names]), **ours).array,
        theirs,
        normal(2, 3, *shape),
    )


# losses -------------------------------------------------------------------------------------------------------------

REDUCTIONS = {"mean": {}, "sum": {"reduction": hax.sum}, "none": {"reduction": None}}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(5, 7), (1, 1)])
def test_cross_entropy(shape, reduction):
    def ours(logits, targets):
        targets = named(targets, "bc"[: targets.ndim])
        return hax.nn.cross_entropy_loss(named(logits, "bc"), "c", targets, **REDUCTIONS[reduction]).array

    theirs = lambda logits, targets: F.cross_entropy(logits, targets, reduction=reduction)  # noqa: E731
    agree(ours, theirs, normal(*shape), np.arange(shape[0]) % shape[1])
    # gradients for probabilities agree as far as they stay probabilities
    agree(
        lambda logits, x: ours(logits, jax.nn.softmax(x)),
        lambda logits, x: theirs(logits, F.softmax(x, 1)),
        normal(*shape),
        normal(*shape),
    )


def test_cross_entropy_of_some():
    """What torch ignores is masked; its weights of classes are weights of the losses of their labels."""
    labels, classes = np.array([0, 2, 1, 2, 0]), np.array([0.5, 2.0, 1.0], np.float32)
    where = named(jnp.asarray(labels != 1), "b")
    weight = named(jnp.asarray(classes[labels]), "b")

    def ours(logits, labels):
        return hax.nn.cross_entropy_loss(named(logits, "bc"), "c", named(labels, "b"), where=where, weight=weight).array

    theirs = lambda x, t: F.cross_entropy(x, t, weight=torch.tensor(classes), ignore_index=1)  # noqa: E731
    agree(ours, theirs, normal(5, 3), labels)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy(reduction):
    targets = np.random.default_rng(1).uniform(size=(4, 3)).astype(np.float32)
    agree(
        lambda x, t: hax.nn.binary_cross_entropy_loss(named(x, "bc"), named(t, "bc"), **REDUCTIONS[reduction]).array,
        lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction=reduction),
        10 * normal(4, 3),
        targets,
    )


# attention ----------------------------------------------------------------------------------------------------------

MASK = np.arange(20).reshape(4, 5) % 3 != 0


@pytest.mark.parametrize("kind", ["plain", "mask", "bias", "causal"])
def test_attention(kind):
    Q, K = Axis("q", 4), Axis("k", 5 if kind != "causal" else 4)

    def ours(query, key, value, bias):
        mask = {"mask": named(jnp.asarray(MASK), "qk"), "causal": attention.causal_mask(Q, K)}.get(kind)
        arrays = named(query, "bhqd"), named(key, "bhkd"), named(value, "bhkd")
        bias = named(bias, "hqk") if kind == "bias" else None
        return attention.dot_product_attention("k", "d", *arrays, mask=mask, bias=bias).array + 0 * bias_sum(bias)

    def bias_sum(bias):
        return 0 if bias is None else bias.sum().array

    def theirs(query, key, value, bias):
        mask = {"mask": torch.tensor(MASK), "bias": bias}.get(kind)
        result = F.scaled_dot_product_attention(query, key, value, mask, is_causal=kind == "causal")
        return result + 0 * bias.sum()

    agree(ours, theirs, normal(2, 3, 4, 6), *(normal(2, 3, K.size, 6) for _ in range(2)), normal(3, 4, K.size))


# activations --------------------------------------------------------------------------------------------------------

ACTIVATIONS = {
    "celu": (lambda x: hax.nn.celu(x, alpha=0.7), lambda x: F.celu(x, 0.7)),
    "elu": (lambda x: hax.nn.elu(x, 1.5), lambda x: F.elu(x, 1.5)),
    "gelu": (lambda x: hax.nn.gelu(x, approximate=False), F.gelu),
    "gelu, approximate": (hax.nn.gelu, lambda x: F.gelu(x, approximate="tanh")),
    "glu": (lambda x: hax.nn.glu(x, "b"), lambda x: F.glu(x, 1)),
    "hard_sigmoid": (hax.nn.hard_sigmoid, F.hardsigmoid),
    "hard_silu": (hax.nn.hard_silu, F.hardswish),
    "hard_swish": (hax.nn.hard_swish, F.hardswish),
    "hard_tanh": (hax.nn.hard_tanh, F.hardtanh),
    "leaky_relu": (hax.nn.leaky_relu, F.leaky_relu),
    "leaky_relu, steeper": (lambda x: hax.nn.leaky_relu(x, 0.2), lambda x: F.leaky_relu(x, 0.2)),
    "log_sigmoid": (hax.nn.log_sigmoid, F.logsigmoid),
    "log_softmax": (lambda x: hax.nn.log_softmax(x, "a"), lambda x: F.log_softmax(x, 0)),
    "logsumexp": (lambda x: hax.nn.logsumexp(x, "b"), lambda x: torch.logsumexp(x, 1)),
    "quick_gelu": (hax.nn.quick_gelu, lambda x: x * torch.sigmoid(1.702 * x)),
    "relu": (hax.nn.relu, F.relu),
    "relu6": (hax.nn.relu6, F.relu6),
    "relu_squared": (hax.nn.relu_squared, lambda x: F.relu(x) ** 2),
    "selu": (hax.nn.selu, F.selu),
    "sigmoid": (hax.nn.sigmoid, torch.sigmoid),
    "silu": (hax.nn.silu, F.silu),
    "soft_sign": (hax.nn.soft_sign, F.softsign),
    "softmax": (lambda x: hax.nn.softmax(x, "b"), lambda x: F.softmax(x, 1)),
    "softplus": (hax.nn.softplus, F.softplus),
    "swish": (hax.nn.swish, F.silu),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name):
    ours, theirs = ACTIVATIONS[name]
    agree(lambda x: ours(named(x, "ab")).array, theirs, 4 * normal(5, 6))


# other dtypes -------------------------------------------------------------------------------------------------------

LOW = {
    "linear": (
        lambda x, w, b: F.linear(x, w, b),
        lambda: hax.nn.Linear.init(Axis("i", 8), Axis("o", 5), key=KEY),
        "bi",
    ),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (8,), w, b), lambda: hax.nn.LayerNorm.init(Axis("i", 8)), "bi"),
    "conv": (
        lambda x, w, b: F.conv1d(x, w, b),
        lambda: hax.nn.Conv.init("h", Axis("i", 8), Axis("o", 5), 3, key=KEY),
        "bih",
    ),
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", LOW)
def test_low_precision(name, dtype):
    theirs, make, names = LOW[name]
    layer = make()
    arrays = [normal(3, 8, 6)[:, :, : 6 if len(names) == 3 else 1].reshape(3, 8, -1)] + [
        normal(*leaf.shape) for leaf in jax.tree.leaves(layer)
    ]
    arrays[0] = arrays[0] if len(names) == 3 else arrays[0][:, :, 0]
    x, weight, bias = (jnp.asarray(a, dtype) for a in arrays)
    result = with_arrays(layer, weight, bias)(named(x, names)).array
    assert result.dtype == dtype
    expected = theirs(*(torch.tensor(a).to(getattr(torch, dtype)) for a in arrays))
    np.testing.assert_allclose(result.astype(jnp.float32), expected.float().numpy(), rtol=3e-2, atol=3e-2)


def attend(query, key, value):
    q, k, v = named(query, "qd"), named(key, "kd"), named(value, "kd")
    return attention.dot_product_attention("k", "d", q, k, v, attention.causal_mask(Axis("q", 4), Axis("k", 4))).array


LOW_FUNCTIONS = {
    "attention": (attend, lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]),
    "cross entropy": (
        lambda x, t, _: hax.nn.cross_entropy_loss(named(x, "bc"), "c", hax.nn.softmax(named(t, "bc"), "c")).array,
        lambda x, t, _: F.cross_entropy(x, F.softmax(t, 1)),
    ),
    "binary cross entropy": (
        lambda x, t, _: hax.nn.binary_cross_entropy_loss(named(x, "bc"), hax.nn.sigmoid(named(t, "bc"))).array,
        lambda x, t, _: F.binary_cross_entropy_with_logits(x, torch.sigmoid(t)),
    ),
    "rms norm": (
        lambda x, _, __: (
            hax.nn.RmsNorm.init(Axis("c", 6), 1e-5, use_bias=False, use_weight=False)(named(x, "bc")).array
        ),
        lambda x, _, __: F.rms_norm(x, (6,), eps=1e-5),
    ),
    "mean pool": (
        lambda x, _, __: hax.nn.mean_pool({"c": 3}, named(x, "bc"), stride=3).array,
        lambda x, _, __: F.avg_pool1d(x, 3),
    ),
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", LOW_FUNCTIONS)
def test_low_precision_of_functions(name, dtype):
    ours, theirs = LOW_FUNCTIONS[name]
    arrays = [normal(4, 6) for _ in range(3)]
    result = ours(*(jnp.asarray(a, dtype) for a in arrays))
    expected = theirs(*(torch.tensor(a).to(getattr(torch, dtype)) for a in arrays))
    assert result.dtype == str(expected.dtype).removeprefix("torch.")
    np.testing.assert_allclose(result.astype(jnp.float32), expected.float().numpy(), rtol=2e-2, atol=2e-2)
