"""Convolutions against sums in numpy: options, places of axes, dtypes, initial numbers, programs, messages."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import Axis
from haliax.nn import Conv, ConvTranspose
from helpers import with_numbers

B, C, In, Out, H, W = (Axis(n, s) for n, s in {"b": 2, "c": 3, "i": 4, "o": 6, "h": 7, "w": 5}.items())
KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(2, 4, 7, 5)).astype(np.float32)
X = hax.named(jnp.asarray(VALUES), ("b", "i", "h", "w"))


def convolve(x, w, bias, stride, pads, dilation, groups):
    """A convolution of (b, i, *spatial) by (o, i / groups, *kernel): a sum over the elements of the kernel."""
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    x = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    w = w.reshape(groups, -1, *w.shape[1:])
    sizes = [
        max(0, (n - d * (k - 1) - 1) // s + 1)
        for n, k, s, d in zip(x.shape[3:], w.shape[3:], stride, dilation, strict=True)
    ]
    out = 0
    for place in itertools.product(*map(range, w.shape[3:])):
        window = tuple(
            slice(k * d, k * d + s * (n - 1) + 1 if n else k * d, s)
            for k, d, s, n in zip(place, dilation, stride, sizes, strict=True)
        )
        out = out + np.einsum("bgi...,goi->bgo...", x[:, :, :, *window], w[:, :, :, *place])
    return out.reshape(len(x), len(bias), *sizes) + bias.reshape(-1, *[1] * len(sizes))


def spread(x, w, bias, stride, cut, added, dilation, groups):
    """A transposed convolution: each element of x is spread over the output, from the kernel's last element on."""
    x = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    w = w.reshape(groups, -1, *w.shape[1:])
    full = [
        (n - 1) * s + d * (k - 1) + 1 for n, k, s, d in zip(x.shape[3:], w.shape[3:], stride, dilation, strict=True)
    ]
    out = np.zeros((x.shape[0], groups, w.shape[1], *(n + a for n, a in zip(full, added, strict=True))))
    for place in itertools.product(*map(range, w.shape[3:])):
        window = tuple(
            slice(first := d * (size - 1 - k), first + s * (n - 1) + 1, s)
            for k, size, d, s, n in zip(place, w.shape[3:], dilation, stride, x.shape[3:], strict=True)
        )
        out[:, :, :, *window] += np.einsum("bgi...,goi->bgo...", x, w[:, :, :, *place])
    kept = tuple(slice(lo, n - hi) for n, (lo, hi) in zip(out.shape[3:], cut, strict=True))
    out = out[:, :, :, *kept]
    return out.reshape(len(x), len(bias), *out.shape[3:]) + bias.reshape(-1, *[1] * (out.ndim - 3))


def same(size, kernel, stride):
    missing = max(0, (-(-size // stride) - 1) * stride + kernel - size)
    return missing // 2, missing - missing // 2


# options, then stride, padding, dilation, groups as the sums take them
OPTIONS = [
    ({"kernel_size": 3}, (1, 1), [(0, 0), (0, 0)], (1, 1), 1),
    ({"kernel_size": (3, 2)}, (1, 1), [(0, 0), (0, 0)], (1, 1), 1),
    ({"kernel_size": {"w": 2, "h": 3}, "groups": 2}, (1, 1), [(0, 0), (0, 0)], (1, 1), 2),
    ({"kernel_size": [1, 3], "stride": np.array([2, 3]), "padding": 1}, (2, 3), [(1, 1), (1, 1)], (1, 1), 1),
    ({"kernel_size": 3, "padding": (1, 0), "dilation": {"h": 2, "w": 1}}, (1, 1), [(1, 1), (0, 0)], (2, 1), 1),
    ({"kernel_size": 2, "padding": ((2, 0), (0, 1)), "stride": 2}, (2, 2), [(2, 0), (0, 1)], (1, 1), 1),
    ({"kernel_size": 3, "padding": {"h": (0, 2), "w": 1}}, (1, 1), [(0, 2), (1, 1)], (1, 1), 1),
    ({"kernel_size": 3, "padding": "valid", "stride": 2}, (2, 2), [(0, 0), (0, 0)], (1, 1), 1),
    ({"kernel_size": 3, "padding": "SAME"}, (1, 1), [(1, 1), (1, 1)], (1, 1), 1),
    (
        {"kernel_size": (4, 3), "padding": "same", "stride": (2, 3)},
        (2, 3),
        [same(7, 4, 2), same(5, 3, 3)],
        (1, 1),
        1,
    ),
    ({"kernel_size": 2, "padding": "SAME", "dilation": 3}, (1, 1), [same(7, 4, 1), same(5, 4, 1)], (3, 3), 1),
    ({"kernel_size": 3, "padding": -1}, (1, 1), None, (1, 1), 1),
    ({"kernel_size": 9}, (1, 1), [(0, 0), (0, 0)], (1, 1), 1),
]


@pytest.mark.parametrize(("options", "stride", "pads", "dilation", "groups"), OPTIONS)
def test_options(options, stride, pads, dilation, groups):
    layer = with_numbers(Conv.init, (H, W), In, Out, key=KEY, **options)
    values, around = (VALUES, pads) if pads else (VALUES[:, :, 1:-1, 1:-1], [(0, 0), (0, 0)])
    expected = convolve(
        values, np.asarray(layer.weight.array), np.asarray(layer.bias.array), stride, around, dilation, groups
    )
    y = layer(X, key=KEY)
    assert y.axis_names == ("b", "o", "h", "w")
    np.testing.assert_allclose(y.array, expected, rtol=1e-4, atol=1e-5)


ZEROS = [(0, 0), (0, 0)]


@pytest.mark.parametrize(
    ("options", "stride", "cut", "added", "dilation", "groups"),
    [
        ({"kernel_size": 3}, (1, 1), ZEROS, (0, 0), (1, 1), 1),
        ({"kernel_size": (3, 2), "stride": 2, "groups": 2}, (2, 2), ZEROS, (0, 0), (1, 1), 2),
        ({"kernel_size": 3, "stride": (3, 2), "padding": (1, 0)}, (3, 2), [(1, 1), (0, 0)], (0, 0), (1, 1), 1),
        ({"kernel_size": 3, "stride": 2, "output_padding": {"h": 1, "w": 0}}, (2, 2), ZEROS, (1, 0), (1, 1), 1),
        ({"kernel_size": 2, "dilation": 3, "padding": ((2, 1), (0, 1))}, (1, 1), [(2, 1), (0, 1)], (0, 0), (3, 3), 1),
        ({"kernel_size": 4, "stride": 2, "padding": "same"}, (2, 2), [(1, 1), (1, 1)], (0, 0), (1, 1), 1),
        ({"kernel_size": 3, "padding": "VALID"}, (1, 1), ZEROS, (0, 0), (1, 1), 1),
    ],
)
def test_transposed_options(options, stride, cut, added, dilation, groups):
    layer = with_numbers(ConvTranspose.init, (H, W), In, Out, key=KEY, **options)
    expected = spread(
        VALUES, np.asarray(layer.weight.array), np.asarray(layer.bias.array), stride, cut, added, dilation, groups
    )
    y = layer(X, key=KEY)
    assert y.axis_names == ("b", "o", "h", "w")
    np.testing.assert_allclose(y.array, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (4, 2), (2, 3), (5, 3)])
def test_transposed_same_padding_is_that_of_jax(kernel, stride):
    layer = with_numbers(ConvTranspose.init, H, In, Out, kernel, stride=stride, padding="SAME", use_bias=False, key=KEY)
    x, w = X["w", 0].array, jnp.transpose(layer.weight.array, (2, 1, 0))
    expected = jax.lax.conv_transpose(x, w, (stride,), "SAME", dimension_numbers=("NCH", "HIO", "NCH"))
    y = layer(X["w", 0])
    assert y.axis_size("h") == 7 * stride
    np.testing.assert_allclose(y.array, expected, rtol=1e-4, atol=1e-5)


BATCHES = [
    ("i", "h", "w"),
    ("w", "i", "h"),
    ("b", "i", "h", "w"),
    ("h", "i", "w", "b"),
    ("b", "c", "i", "h", "w"),
    ("i", "h", "c", "b", "w"),
    ("b", "i", "c", "h", "w"),
    ("w", "b", "h", "i", "c"),
]


@pytest.mark.parametrize("names", BATCHES)
@pytest.mark.parametrize("cls", [Conv, ConvTranspose])
def test_axes_stand_anywhere_and_any_others_are_batch_axes(cls, names):
    layer = with_numbers(cls.init, ("h", "w"), In, Out, kernel_size=(3, 2), stride=2, key=KEY)
    shape = {axis.name: axis.size for axis in (B, C, In, H, W)}
    x = hax.named(jnp.asarray(RNG.normal(size=[shape[n] for n in names]), jnp.float32), names)
    y = layer(x)
    assert y.axis_names == tuple("o" if name == "i" else name for name in names)
    others = [name for name in names if name in "bc"]
    one_by_one = layer(x[dict.fromkeys(others, 1)])
    np.testing.assert_allclose(y[dict.fromkeys(others, 1)].array, one_by_one.array, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("spatial", [(), ("h",), ("h", "w"), ("h", "w", "c")])
def test_any_number_of_spatial_axes(spatial):
    layer = with_numbers(Conv.init, spatial, In, Out, kernel_size=2, key=KEY)
    x = hax.named(jnp.asarray(RNG.normal(size=(2, 4, *[3] * len(spatial)))), ("b", "i", *spatial))
    raw = (np.asarray(array) for array in (x.array, layer.weight.array, layer.bias.array))
    ones = (1,) * len(spatial)
    expected = convolve(*raw, ones, [(0, 0)] * len(spatial), ones, 1)
    np.testing.assert_allclose(layer(x).array, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cls", [Conv, ConvTranspose])
def test_the_output_axis_may_have_the_name_of_the_input_axis(cls):
    layer, other = (with_numbers(cls.init, (H, W), In, axis, 3, key=KEY) for axis in (In.resize(6), Out))
    assert layer.weight.axis_names == ("i", "i_in", "h", "w")
    y = layer(X)
    assert y.axis_names == ("b", "i", "h", "w") and y.axis_size("i") == 6
    np.testing.assert_array_equal(y.array, other(X).array)


def test_the_weight_may_have_its_axes_in_any_order():
    layer = with_numbers(Conv.init, (H, W), In, Out, 3, key=KEY)
    turned = jax.tree.map(lambda x: x, layer)
    object.__setattr__(turned, "weight", layer.weight.rearrange(("h", "i", "w", "o")))
    np.testing.assert_allclose(turned(X).array, layer(X).array, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sizes", [{"b": 0}, {"i": 1}, {"h": 3, "w": 3}])
def test_small_sizes(sizes):
    shape = {"b": 2, "i": 4, "h": 7, "w": 5} | sizes
    layer = with_numbers(Conv.init, (H, W), In.resize(shape["i"]), Out, 3, key=KEY)
    y = layer(hax.ones(shape))
    assert y.array.shape == (shape["b"], 6, shape["h"] - 2, shape["w"] - 2)


def test_initial_numbers():
    """Facts: the numbers of the library that this one replaces, for the same key."""
    for cls in (Conv, ConvTranspose):
        layer = cls.init((Axis("H", 5), Axis("W", 6)), Axis("I", 4), Axis("O", 6), 3, key=KEY)
        assert layer.weight.axes == (Axis("O", 6), Axis("I", 4), Axis("H", 3), Axis("W", 3))
        np.testing.assert_allclose(layer.weight.array.ravel()[:3], [0.11410471, -0.10587379, -0.09094064], rtol=1e-6)
        np.testing.assert_allclose(layer.bias.array[:2], [-0.1642354, -0.15970294], rtol=1e-6)
        grouped = cls.init((Axis("H", 5), Axis("W", 6)), Axis("I", 4), Axis("O", 6), 3, groups=2, key=KEY)
        assert grouped.weight.axis_size("I") == 2
        np.testing.assert_allclose(grouped.weight.array.ravel()[:3], [0.16136843, -0.14972813, -0.12860948], rtol=1e-6)
        plain = cls.init((Axis("H", 5), Axis("W", 6)), Axis("I", 4), Axis("O", 6), 3, use_bias=False, key=KEY)
        assert plain.bias is None
        np.testing.assert_array_equal(plain.weight.array, layer.weight.array)


@pytest.mark.parametrize(
    ("inputs", "weights", "result"),
    [("bfloat16", "bfloat16", "bfloat16"), ("bfloat16", "float32", "float32"), ("int32", "float32", "float32")],
)
def test_dtypes_are_promoted(inputs, weights, result):
    layer = jax.tree.map(lambda x: x.astype(weights), with_numbers(Conv.init, W, In, Out, 2, key=KEY))
    assert layer(X["h", 0].astype(inputs)).array.dtype == result


@pytest.mark.parametrize("names", [("b", "i", "h", "w"), ("h", "b", "w", "i")])
def test_lowers_to_the_plain_operation(names):
    layer, x = with_numbers(Conv.init, (H, W), In, Out, 3, use_bias=False, key=KEY), X.rearrange(names)
    numbers = ("".join(n.upper().replace("I", "C").replace("B", "N") for n in names), "OIHW")
    numbers = (*numbers, numbers[0])

    def plain(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=numbers)

    def named(x, w):
        return jax.tree.map(lambda old: w, layer)(hax.NamedArray(x, names)).array

    texts = [jax.jit(fn).lower(x.array, layer.weight.array).as_text() for fn in (named, plain)]
    operations = [
        [line.split(" = ")[1] for line in text.splitlines() if " = " in line and "stablehlo" in line] for text in texts
    ]
    assert operations[0] == operations[1]


@pytest.mark.parametrize("cls", [Conv, ConvTranspose])
def test_gradients_are_finite_differences(cls):
    layer = with_numbers(cls.init, (H, W), In, Out, 3, stride=2, padding=1, groups=2, key=KEY)
    loss = lambda layer, x: hax.sum(hax.sin(layer(x))).scalar()  # noqa: E731
    gradient = jax.grad(loss, (0, 1))(layer, X)
    direction = jax.tree.map(lambda x: jnp.asarray(RNG.normal(size=x.shape), x.dtype), (layer, X))
    moved = [loss(*jax.tree.map(lambda x, d, s=s: x + s * d, (layer, X), direction)) for s in (1e-2, -1e-2)]
    slope = sum(jax.tree.leaves(jax.tree.map(lambda g, d: (g * d).sum(), gradient, direction)))
    assert math.isclose(slope, (moved[0] - moved[1]) / 2e-2, rel_tol=2e-2)


@pytest.mark.parametrize("cls", [Conv, ConvTranspose])
@pytest.mark.parametrize("spec", [("data",), (None, None, "model"), ("data", "model"), (None, "model")])
def test_explicit_axes(cls, spec, explicit_mesh):
    layer = with_numbers(cls.init, (H, W), In, Out, 3, padding="SAME", key=KEY)
    x = hax.random.normal(KEY, (Axis("b", 8), In, Axis("h", 8), W))
    expected = layer(x)
    sharding = jax.sharding.NamedSharding(explicit_mesh, jax.sharding.PartitionSpec(*spec))
    y = layer(x.like(jax.device_put(x.array, sharding), x.axis_names))
    np.testing.assert_allclose(y.array, expected.array, rtol=1e-4, atol=1e-5)
    entries = tuple(jax.typeof(y.array).sharding.spec)
    kept = tuple(None if i == 1 else entry for i, entry in enumerate((*spec, *[None] * (4 - len(spec)))))
    assert entries == kept


def init(*args, cls=Conv, **kwargs):
    return lambda: cls.init(*args, **{"kernel_size": 3, "key": KEY} | kwargs)


MESSAGES = [
    (init((H, W), (In, C), Out), TypeError, "Conv.init: In is a tuple; expected an Axis."),
    (init((H, W), In, "o"), TypeError, "Conv.init: Out is a string; expected an Axis."),
    (
        init((H, W), In, H),
        ValueError,
        "Conv.init: axis 'h' occurs more than once in (h, w, h). The spatial axes, In and Out must differ.",
    ),
    (
        init((H, W), In, Out, groups=3),
        ValueError,
        "Conv.init: groups is 3, and the axes are i=4, o=6; expected a divisor of both sizes.",
    ),
    (
        init((H, W), In, Out, groups=4, cls=ConvTranspose),
        ValueError,
        "ConvTranspose.init: groups is 4, and the axes are i=4, o=6; expected a divisor of both sizes.",
    ),
    (init((H, W), In, Out, stride=0), ValueError, "Conv.init: stride is 0; expected 1 or more."),
    (
        init((H, W), In, Out, kernel_size=(3, 3, 3)),
        ValueError,
        "Conv.init: kernel_size has length 3, and the spatial axes are (h, w);"
        " expected one value for all, or one for each.",
    ),
    (
        init((H, W), In, Out, kernel_size={"h": 3}),
        ValueError,
        "Conv.init: kernel_size has no entry for axis 'w'; expected one for each spatial axis.",
    ),
    (
        init((H, W), In, Out, dilation={"h": 3, "v": 1}),
        ValueError,
        "Conv.init: no axis 'v'; dilation is for the axes h, w.",
    ),
    (
        init((H, W), In, Out, kernel_size=1.5),
        TypeError,
        "Conv.init: kernel_size is a float; expected an integer, or one for each spatial axis.",
    ),
    (
        init((H, W), In, Out, key=None),
        TypeError,
        "Conv.init: the key is None; expected a random key. Make one with jax.random.key(seed).",
    ),
    (init((H, W), In, Out, groups=2.0), TypeError, "Conv.init: groups is a float; expected an integer."),
    (
        init((H, W), In, Out, padding=((1, 2, 3), 0)),
        TypeError,
        "Conv.init: padding is a tuple;"
        " expected an integer or a pair of them, or one or the other for each spatial axis.",
    ),
    (
        init((H, W), In, Out, padding="full"),
        ValueError,
        "Conv.init: padding is 'full'; expected 'SAME', 'VALID', an integer, or a pair for each axis.",
    ),
    (
        init((H, W), In, Out, output_padding=-1, cls=ConvTranspose),
        ValueError,
        "ConvTranspose.init: output_padding is -1; expected 0 or more.",
    ),
    (
        lambda: init((H, W), In, Out)()(X.rename({"h": "y"})),
        ValueError,
        "Conv: no axis 'h'; the array has b=2, i=4, y=7, w=5.",
    ),
    (
        lambda: init((H, W), In.resize(8), Out, cls=ConvTranspose)()(X),
        ValueError,
        "ConvTranspose: axis 'i' has size 4; expected 8. The layer was made with i=8.",
    ),
    (
        lambda: init((H, W), In, Out)()(X.rename({"b": "o"})),
        ValueError,
        "Conv: axis 'o' occurs more than once in (o, i, h, w, o). Rename the axis that the output axis repeats.",
    ),
    (
        lambda: init((H, W), In, Out)()(VALUES),
        TypeError,
        "Conv: the array is a numpy array of shape (2, 4, 7, 5); expected a NamedArray."
        " Name its axes with haliax.named(array, axes).",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), MESSAGES, ids=[m[2][:50] for m in MESSAGES])
def test_messages(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message
