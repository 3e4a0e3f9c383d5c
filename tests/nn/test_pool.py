"""Pools against loops over windows in numpy: options, dtypes, gradients, layouts, messages."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import Axis
from haliax.nn import max_pool, mean_pool, min_pool
from haliax.nn.pool import pool

B, H, W = Axis("b", 2), Axis("h", 7), Axis("w", 5)
VALUES = np.random.default_rng(0).normal(size=(2, 7, 5)).astype(np.float32)
X = hax.named(jnp.asarray(VALUES), ("b", "h", "w"))
H1, H2, H3, W2, W3 = Axis("h", 1), Axis("h", 2), Axis("h", 3), Axis("w", 2), Axis("w", 3)


def windows(size, window, stride, before, after, use_ceil):
    """Where each window along an axis begins and ends, which may be outside of it: by less than a stride."""
    starts, start = [], -before
    while start + window <= size + after or (use_ceil and start + window < size + after + stride and start < size):
        starts.append(start)
        start += stride
    return [(start, start + window) for start in starts]


def reduced(fn, x, window, stride, pads, use_ceil=False):
    """`fn` of the elements of each window, an array, and of the places along the last two axes where they end."""
    per_axis = [
        windows(n, k, s, lo, hi, use_ceil) for n, k, s, (lo, hi) in zip(x.shape[1:], window, stride, pads, strict=True)
    ]
    out = np.zeros((len(x), *map(len, per_axis)), np.float64)
    for place in itertools.product(*map(range, out.shape)):
        spans = [axis[i] for axis, i in zip(per_axis, place[1:], strict=True)]
        inside = x[place[0], *(slice(max(0, a), max(0, b)) for a, b in spans)]
        out[place] = fn(inside, spans)
    return out


def mean_with_padding(pads):
    """The mean of a window in which padding counts as zeros."""

    def mean(inside, spans):
        ends = [min(b, n + hi) for (_, b), n, (_, hi) in zip(spans, VALUES.shape[1:], pads, strict=True)]
        return inside.sum() / np.prod([b - a for (a, _), b in zip(spans, ends, strict=True)])

    return mean


# Window, options, then window, stride, padding
CASES = [
    ((H2, W3), {}, (2, 3), (1, 1), [(0, 0), (0, 0)]),
    (H2, {}, (2, 1), (1, 1), [(0, 0), (0, 0)]),
    ((W2, H3), {"stride": (1, 2)}, (3, 2), (2, 1), [(0, 0), (0, 0)]),
    ({"h": 2, "w": 2}, {"stride": 2}, (2, 2), (2, 2), [(0, 0), (0, 0)]),
    ((H3, W2), {"stride": {"w": 3, "h": 2}, "padding": 1}, (3, 2), (2, 3), [(1, 1), (1, 1)]),
    ((H3, W2), {"padding": (1, 0)}, (3, 2), (1, 1), [(1, 1), (0, 0)]),
    ((H2, W3), {"padding": ((1, 0), (0, 2)), "stride": 2}, (2, 3), (2, 2), [(1, 0), (0, 2)]),
    ((H3, W3), {"padding": "SAME"}, (3, 3), (1, 1), [(1, 1), (1, 1)]),
    ((H2, W2), {"padding": "same", "stride": 2}, (2, 2), (2, 2), [(0, 1), (0, 1)]),
    ((H1, W2), {"stride": 3}, (1, 2), (3, 3), [(0, 0), (0, 0)]),
    (Axis("h", 9), {}, (9, 1), (1, 1), [(0, 0), (0, 0)]),
]
FUNCTIONS = {
    "max": (max_pool, lambda inside, _: inside.max(initial=-np.inf)),
    "min": (min_pool, lambda inside, _: inside.min(initial=np.inf)),
    "mean": (mean_pool, lambda inside, _: inside.mean()),
}


@pytest.mark.parametrize("use_ceil", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("Window", "options", "window", "stride", "pads"), CASES)
def test_follows_a_loop(name, use_ceil, Window, options, window, stride, pads):
    fn, of_window = FUNCTIONS[name]
    y = fn(Window, X, use_ceil=use_ceil, **options)
    assert y.axis_names == ("b", "h", "w")
    np.testing.assert_allclose(
        y.array, reduced(of_window, VALUES, window, stride, pads, use_ceil), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("use_ceil", [False, True])
@pytest.mark.parametrize(("Window", "options", "window", "stride", "pads"), CASES)
def test_padding_may_count(use_ceil, Window, options, window, stride, pads):
    y = mean_pool(Window, X, use_ceil=use_ceil, count_include_pad=True, **options)
    expected = reduced(mean_with_padding(pads), VALUES, window, stride, pads, use_ceil)
    np.testing.assert_allclose(y.array, expected, rtol=1e-5, atol=1e-6)


def test_windows_without_an_element():
    options = {"stride": 2, "padding": {"h": 3}}
    np.testing.assert_array_equal(max_pool(H2, X, **options).array[:, 0], -np.inf)
    np.testing.assert_array_equal(min_pool(H2, X, **options).array[:, 0], np.inf)
    assert np.isnan(mean_pool(H2, X, **options).array[:, 0]).all()
    np.testing.assert_array_equal(mean_pool(H2, X, count_include_pad=True, **options).array[:, 0], 0)


@pytest.mark.parametrize("names", [("h", "w", "b"), ("w", "b", "h")])
def test_axes_stand_anywhere(names):
    y = mean_pool((H2, W2), X.rearrange(names), stride=2)
    assert y.axis_names == names
    np.testing.assert_allclose(y.rearrange(("b", "h", "w")).array, mean_pool((H2, W2), X, stride=2).array, rtol=1e-5)


def test_no_window_leaves_everything():
    for fn in (max_pool, min_pool, mean_pool):
        np.testing.assert_array_equal(fn((), X).array, VALUES)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "float16", "bfloat16"])
def test_dtypes(dtype):
    x = (X * 10).astype(dtype)
    raw = np.asarray(x.array)
    for name in ("max", "min"):
        y = FUNCTIONS[name][0](H2, x, padding=1)
        assert y.array.dtype == dtype
        np.testing.assert_array_equal(y.array[:, 1:-1], getattr(np, f"{name}imum")(raw[:, 1:], raw[:, :-1]))
        np.testing.assert_array_equal(y.array[:, 0], raw[:, 0])
    mean = mean_pool(H2, x)
    assert mean.array.dtype == (dtype if "float" in dtype else "float32")
    exact = (raw[:, 1:].astype(np.float32) + raw[:, :-1].astype(np.float32)) / 2
    np.testing.assert_array_equal(mean.array, exact.astype(mean.array.dtype))


@pytest.mark.parametrize("fn", [hax.add, jnp.add, jax.lax.add, lambda a, b: a + b])
def test_any_function(fn):
    expected = reduced(lambda inside, _: inside.sum(), VALUES, (3, 2), (2, 2), [(1, 1), (1, 1)])
    np.testing.assert_allclose(pool((H3, W2), X, 0.0, fn, 2, 1).array, expected, rtol=1e-5, atol=1e-6)


def test_gradients():
    gradient = jax.grad(lambda x: max_pool(H2, x, stride=2).sum().scalar())(X)
    pairs = VALUES[:, :6].reshape(2, 3, 2, 5)
    expected = (pairs == pairs.max(2, keepdims=True)).reshape(2, 6, 5)
    np.testing.assert_array_equal(gradient.array, np.pad(expected, ((0, 0), (0, 1), (0, 0))))
    gradient = jax.grad(lambda x: mean_pool((H2, W2), x, stride=2).sum().scalar())(X)
    np.testing.assert_array_equal(gradient.array, np.pad(np.full((2, 6, 4), 0.25), ((0, 0), (0, 1), (0, 1))))
    for fn in (hax.add, jnp.add):
        gradient = jax.grad(lambda x, fn=fn: pool(H2, x, 0.0, fn).sum().scalar())(X)
        np.testing.assert_array_equal(gradient.array[0, :, 0], [1, 2, 2, 2, 2, 2, 1])


def test_lowers_to_the_plain_operation():
    named = jax.make_jaxpr(lambda x: max_pool((H2, W2), x, stride=2).array)(X)
    plain = jax.make_jaxpr(
        lambda x: jax.lax.reduce_window(x, np.float32(-np.inf), jax.lax.max, (1, 2, 2), (1, 2, 2), "VALID")
    )(X.array)
    assert named.pretty_print() == plain.pretty_print()


@pytest.mark.parametrize("spec", [("data",), (None, "data"), (None, None, "model"), (("data", "model"),)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_explicit_axes(name, spec, explicit_mesh):
    x = hax.named(jnp.arange(8 * 16 * 8.0).reshape(8, 16, 8), ("b", "h", "w"))
    fn = FUNCTIONS[name][0]
    split = x.like(
        jax.device_put(x.array, jax.sharding.NamedSharding(explicit_mesh, jax.sharding.PartitionSpec(*spec))),
        x.axis_names,
    )
    y = fn((H3, W3), split, stride=2, padding="SAME")
    np.testing.assert_allclose(y.array, fn((H3, W3), x, stride=2, padding="SAME").array, rtol=1e-6)
    assert tuple(jax.typeof(y.array).sharding.spec) == (*spec, *[None] * (3 - len(spec)))


MESSAGES = [
    (lambda: max_pool(Axis("v", 2), X), ValueError, "max_pool: no axis 'v'; the array has b=2, h=7, w=5."),
    (
        lambda: min_pool("h", X),
        TypeError,
        "min_pool: Window is a string; expected an Axis, or several, with the sizes of the window.",
    ),
    (lambda: mean_pool(Axis("h", 0), X), ValueError, "mean_pool: the window has h=0; expected 1 or more."),
    (lambda: pool((H2, H3), X, 0, jnp.add), ValueError, "pool: axis 'h' occurs more than once in (h, h)."),
    (lambda: max_pool(H2, X, stride=0), ValueError, "max_pool: stride is 0; expected 1 or more."),
    (
        lambda: max_pool((H2, W2), X, padding=(1, 2, 3)),
        ValueError,
        "max_pool: padding has length 3, and the spatial axes are (h, w); expected one value for all, or one for each.",
    ),
    (
        lambda: max_pool(H2, VALUES),
        TypeError,
        "max_pool: the array is a numpy array of shape (2, 7, 5); expected a NamedArray."
        " Name its axes with haliax.named(array, axes).",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), MESSAGES)
def test_messages(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message
