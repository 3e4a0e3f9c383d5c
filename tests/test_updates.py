"""`x.at[...]` against `jnp.ndarray.at`, and against numpy for windows and shared axes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax.axis import Axis, dslice, make_axes
from programs import operations

ds = dslice
H, W, D = make_axes(H=2, W=3, D=4)
X = hax.arange((H, W, D)) + 1.0
METHODS = ["set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max"]


def same(array, expected):
    assert array.axes == X.axes
    assert array.dtype == expected.dtype
    np.testing.assert_allclose(array.array, expected, rtol=1e-6)


# an index, the index in jax.numpy, an update, the update in jax.numpy
i, j = hax.named([2, 0], "i"), hax.named([1, 1], "i")
CASES = [
    (("W", 1), (slice(None), 1), 2.0, 2.0),
    (("W", 1), (slice(None), 1), hax.named(2.0, ()), 2.0),
    (("W", 1), (slice(None), 1), hax.arange(D), jnp.arange(4)[None]),
    (("W", 1), (slice(None), 1), hax.arange((D, H)), jnp.arange(8).reshape(4, 2).T),
    (("W", -1, "D", 0), (slice(None), -1, 0), hax.arange(H), jnp.arange(2)),
    (("W", slice(0, 2)), (slice(None), slice(0, 2)), hax.arange(H), jnp.arange(2)[:, None, None]),
    (("D", slice(None, None, 2)), (..., slice(None, None, 2)), hax.arange({"D": 2}), jnp.arange(2)[None, None]),
    (("D", slice(None, None, -1)), (..., slice(None, None, -1)), hax.arange(D), jnp.arange(4)[None, None]),
    (("W", i), (slice(None), i.array), 2.0, 2.0),
    (("W", i), (slice(None), i.array), hax.arange({"i": 2}), jnp.arange(2)[None, :, None]),
    (("W", i, "D", j), (slice(None), i.array, j.array), hax.arange({"i": 2}), jnp.arange(2)[None]),
    (("H", j, "D", i), (j.array, slice(None), i.array), hax.arange((W, i.axes[0])), jnp.arange(6).reshape(3, 2).T),
    (("W", [2, 0]), (slice(None), jnp.array([2, 0])), hax.arange({"W": 2}), jnp.arange(2)[None, :, None]),
    (("W", hax.named([2, 0], "W")), (slice(None), jnp.array([2, 0])), 2.0, 2.0),
    (("W", hax.named([2, 0], "H")), (jnp.arange(2), jnp.array([2, 0])), hax.arange(H), jnp.arange(2)[:, None]),
    (("W", hax.named([2, 0], "H")), (jnp.arange(2), jnp.array([2, 0])), hax.arange(D), jnp.arange(4)[None]),
    (("W", hax.named([2, 0], "H"), "D", 1), (jnp.arange(2), jnp.array([2, 0]), 1), 2.0, 2.0),
    (("D", ds(1, 2)), (..., slice(1, 3)), hax.arange({"D": 2}), jnp.arange(2)[None, None]),
    (("H", 1, "D", ds(-2, 2)), (1, slice(None), slice(2, 4)), hax.arange(W), jnp.arange(3)[:, None]),
    ((...,), (...,), hax.arange(D), jnp.arange(4)[None, None]),
]


def at(index):
    return X.at[index[0] if index == (...,) else index]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("index", "raw_index", "update", "raw_update"), CASES, ids=lambda c: repr(c)[:30])
def test_updates(method, index, raw_index, update, raw_update):
    same(getattr(at(index), method)(update), getattr(X.array.at[raw_index], method)(raw_update))


@pytest.mark.parametrize(("index", "raw_index"), [case[:2] for case in CASES], ids=lambda c: repr(c)[:30])
def test_apply(index, raw_index):
    same(at(index).apply(jnp.sin), X.array.at[raw_index].apply(jnp.sin))


def test_elements_chosen_twice_are_added_twice():
    index = hax.named([1, 1, 0], "i")
    same(X.at["W", index].add(1), X.array.at[:, jnp.array([1, 1, 0])].add(1))


@pytest.mark.parametrize("mode", [None, "drop", "clip"])
def test_modes_out_of_bounds(mode):
    index = hax.named([0, 7], "i")
    same(X.at["W", index].set(0, mode=mode), X.array.at[:, index.array].set(0, mode=mode))
    same(X.at["W", 7].set(0, mode=mode), X.array.at[:, 7].set(0, mode=mode))


@pytest.mark.parametrize("options", [{}, {"mode": "fill"}, {"mode": "fill", "fill_value": -1}, {"mode": "clip"}])
def test_get(options):
    index = jnp.array([0, 7])
    expected = X.array.at[:, index].get(**options)
    np.testing.assert_array_equal(X.at["W", index].get(**options).array, expected)
    window = X.at["D", ds(3, 2)].get(**options)
    if options:
        np.testing.assert_array_equal(window.array, X.array.at[..., jnp.array([3, 4])].get(**options))


@pytest.mark.parametrize("size", [0, 1, 2, 4, 6])
@pytest.mark.parametrize("start", [-9, -4, -1, 0, 1, 3, 4, 9])
@pytest.mark.parametrize("method", ["set", "add"])
def test_a_window_writes_nothing_outside(start, size, method):
    first = start + 4 if start < 0 else start
    update = hax.arange({"W": 3, "D": size}) + 10.0
    padded = np.pad(np.asarray(X.array), [(0, 0), (0, 0), (20, 20)])
    inside = padded[..., first + 20 : first + 20 + size]
    inside[...] = np.asarray(update.array) + (inside if method == "add" else 0)
    expected = padded[..., 20:24]
    same(getattr(X.at["D", ds(start, size)], method)(update), expected)
    traced = jax.jit(lambda x, s: getattr(x.at["D", ds(s, size)], method)(update))(X, start)
    same(traced, expected)


def test_a_window_for_each_index_of_another_axis():
    updated = X.at["D", ds(hax.named([3, 1], "H"), 2)].set(0)
    expected = np.array(X.array)
    expected[0, :, 3:] = expected[1, :, 1:3] = 0
    same(updated, expected)


def test_gradients_are_those_of_plain_updates():
    value, rows = hax.arange((H, D)) + 1.0, hax.named([2, 0], "H")
    unique = {"unique_indices": True}
    named = jax.grad(lambda x, v: (x.at["W", rows].mul(v, **unique) ** 2).sum().scalar(), (0, 1))(X, value)
    at = jnp.arange(2), rows.array
    raw = jax.grad(lambda x, v: (x.at[at].mul(v, **unique) ** 2).sum(), (0, 1))(X.array, value.array)
    for a, b in zip(named, raw, strict=True):
        np.testing.assert_allclose(a.array, b)


def test_an_integer_array_keeps_its_dtype():
    x = hax.arange((H, W))
    assert x.at["W", 0].add(1).dtype == x.at["W", ds(0, 2)].set(1).dtype == jnp.int32
    with pytest.warns(FutureWarning, match="scatter inputs have incompatible types"):
        x.at["W", ds(0, 2)].set(1.5)


ERRORS = [
    (
        lambda: X.at["W", 0].set(hax.arange(Axis("Q", 2))),
        "at.set: the update has Q=2; expected axes among those of the elements: H=2, D=4.",
    ),
    (
        lambda: X.at["W", 0:2].add(hax.arange(W)),
        "at.add: axis 'W' has size 3; expected 2. The update must have the size that the elements have.",
    ),
    (
        lambda: X.at["W", 0].set(jnp.zeros((2, 4))),
        "at.set: the update is an unnamed array of shape (2, 4); expected a NamedArray or a scalar."
        " Name its axes with haliax.named(array, axes).",
    ),
    (lambda: X.at["w", 0], "at: no axis 'w'; the array has H=2, W=3, D=4."),
    (
        lambda: X.at["W", hax.arange(Axis("H", 3))].set(0),
        "at.set: axis 'H' has size 3; expected 2. An index along another axis must have the size of this one.",
    ),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message.split(";")[0] for _, message in ERRORS])
def test_errors(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message


PROGRAMS = [
    (lambda x: x.at["W", 1].set(0), lambda a: a.at[:, 1].set(0)),
    (lambda x: x.at["W", 0:2].add(1), lambda a: a.at[:, 0:2].add(1)),
    (lambda x: x.at["W", i].add(1), lambda a: a.at[:, i.array].add(1)),
]


@pytest.mark.parametrize(("named", "plain"), PROGRAMS)
def test_programs_are_those_of_jax_numpy(named, plain):
    assert operations(lambda x: named(x).array, X) == operations(plain, X.array)


def test_a_window_is_written_in_place():
    assert operations(lambda x: x.at["D", ds(1, 2)].set(0), X) == ["broadcast_in_dim", "dynamic_update_slice"]
    assert "scatter" not in operations(lambda x, s: x.at["D", ds(s, 2)].set(0), X, 1)
