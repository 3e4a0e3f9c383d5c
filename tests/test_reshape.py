"""Names and shapes, against numpy on arrays of any sizes."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import haliax as hax
from haliax.axis import Axis, make_axes
from haliax.core import flatten_all_axes_but
from programs import operations

H, W, D = make_axes(H=2, W=3, D=4)
X = hax.arange((H, W, D))


@st.composite
def arrays(draw, min_axes=0):
    """Arrays with up to four axes of sizes 0 to 3, whose elements are all different."""
    names = draw(st.lists(st.sampled_from("abcd"), unique=True, min_size=min_axes, max_size=4))
    return hax.arange({name: draw(st.integers(0, 3)) for name in names})


def same(array, axis_names, expected):
    assert array.axis_names == tuple(axis_names)
    np.testing.assert_array_equal(array.array, expected)


# --- rename ---


@pytest.mark.parametrize(
    ("renames", "names"),
    [
        ({"H": "A"}, "A W D"),
        ({"H": "A", "missing": "B"}, "A W D"),
        ({"H": "W", "W": "H"}, "W H D"),
        ({"H": Axis("A", 2)}, "A W D"),
        ({H: "A", D: Axis("B", 4)}, "A W B"),
        ({"H": "H"}, "H W D"),
        ({}, "H W D"),
    ],
    ids=repr,
)
def test_rename(renames, names):
    renamed = X.rename(renames)
    assert renamed.axis_names == tuple(names.split())
    assert renamed.array is X.array


def test_rename_needs_no_array():
    assert hax.NamedArray(0, ("a",)).rename({"a": "b"}).axis_names == ("b",)


# --- merge ---


@settings(max_examples=20)
@given(arrays(), st.data())
def test_flatten_axes(x, data):
    old = data.draw(st.permutations(x.axis_names))[: data.draw(st.integers(0, 4))]
    rest = [name for name in x.axis_names if name not in old]
    place = min((x.axis_names.index(name) for name in old), default=0)
    order = [*rest[:place], *old, *rest[place:]]
    moved = np.transpose(x.array, [x.axis_names.index(name) for name in order])
    sizes = [x.axis_size(name) for name in order]
    size = math.prod(sizes[place : place + len(old)])
    expected = moved.reshape(*sizes[:place], size, *sizes[place + len(old) :])

    names = (*rest[:place], "f", *rest[place:])
    same(x.flatten_axes(old, "f"), names, expected)
    same(hax.flatten_axes(x, old_axes=x.resolve_axis(tuple(old)), new_axis=Axis("f", size)), names, expected)


@settings(max_examples=20)
@given(arrays())
def test_flatten(x):
    same(x.flatten("f"), ("f",), np.ravel(x.array))
    same(hax.ravel(x, Axis("f", x.size)), ("f",), np.ravel(x.array))


def test_the_new_axis_may_take_an_old_name():
    same(X.flatten_axes(("H", "W"), "H"), ("H", "D"), X.array.reshape(6, 4))
    same(X.flatten_axes({"H": 2}, "f"), ("f", "W", "D"), X.array)


@settings(max_examples=20)
@given(arrays(), st.data(), st.booleans())
def test_flatten_all_axes_but_is_undone(x, data, front):
    merged = data.draw(st.lists(st.sampled_from(x.axis_names), unique=True)) if x.axis_names else []
    flat, unflatten = flatten_all_axes_but(x, "f", merged, reorder_to_front=front)
    expected = x.flatten_axes(merged, "f")
    expected = expected.rearrange(("f", ...)) if front else expected
    same(flat, expected.axis_names, expected.array)
    restored = unflatten(flat)
    same(restored, x.axis_names, x.array)


def test_unflatten_puts_other_axes_where_some_are_gone():
    flat, unflatten = flatten_all_axes_but(X, "f", ("H", "D"))
    assert flat.axis_names == ("f", "W")
    assert unflatten(flat.rename({"W": "Z"})).axis_names == ("H", "Z", "D")
    assert unflatten(flat.sum("W")).axis_names == ("H", "D")
    assert unflatten(hax.stack("new", [flat, flat])).axis_names == ("H", "W", "D", "new")


# --- split ---


@settings(max_examples=20)
@given(arrays(min_axes=1), st.data())
def test_unflatten_axis_undoes_flatten(x, data):
    n = data.draw(st.integers(1, len(x.axis_names)))
    same(x.flatten_axes(x.axis_names[:n], "f").unflatten_axis("f", x.axes[:n]), x.axis_names, x.array)


@pytest.mark.parametrize(
    "parts", [(Axis("a", 2), Axis("b", 2)), {"a": 2, "b": 2}, {"a": 2, "b": None}, ("a", Axis("b", 2))], ids=repr
)
@pytest.mark.parametrize("axis", ["D", D], ids=repr)
def test_unflatten_axis(axis, parts):
    same(X.unflatten_axis(axis, parts), ("H", "W", "a", "b"), X.array.reshape(2, 3, 2, 2))


def test_unflatten_axis_into_one_or_none():
    same(X.unflatten_axis("D", Axis("a", 4)), ("H", "W", "a"), X.array)
    same(X.unflatten_axis("D", (Axis("D", 2), Axis("a", 2))), ("H", "W", "D", "a"), X.array.reshape(2, 3, 2, 2))
    same(X["D", 0:1].unflatten_axis("D", ()), ("H", "W"), X.array[..., 0])


@settings(max_examples=20)
@given(arrays(min_axes=1), st.data())
def test_split(x, data):
    dim = data.draw(st.integers(0, len(x.axis_names) - 1))
    name, size = x.axis_names[dim], x.axes[dim].size
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=3)))
    expected = np.split(np.asarray(x.array), cuts, dim)
    pieces = x.split(name, [Axis("p", part.shape[dim]) for part in expected])
    assert isinstance(pieces, list)
    for piece, part in zip(pieces, expected, strict=True):
        same(piece, ["p" if n == name else n for n in x.axis_names], part)


def test_split_takes_a_mapping():
    a, b = hax.split(X, D, {"a": 1, "b": 3})
    same(a, ("H", "W", "a"), X.array[..., :1])
    same(b, ("H", "W", "b"), X.array[..., 1:])


@settings(max_examples=20)
@given(arrays(min_axes=1), st.data())
def test_unbind(x, data):
    dim = data.draw(st.integers(0, len(x.axis_names) - 1))
    parts = x.unbind(x.axes[dim])
    assert len(parts) == x.axes[dim].size
    for i, part in enumerate(parts):
        same(part, x.axis_names[:dim] + x.axis_names[dim + 1 :], np.take(np.asarray(x.array), i, dim))


# --- roll ---


@pytest.mark.parametrize(
    ("shift", "axis"),
    [
        (1, "W"),
        (-4, W),
        (np.int32(2), "W"),
        (hax.named(2, ()), "W"),
        ((1, 2), ("H", "D")),
        (1, ("D", "H")),
        (jnp.array([1, 2]), ("H", "D")),
        (-1, {"W": 3}),
    ],
    ids=repr,
)
def test_roll(shift, axis):
    raw_shift = shift.array if isinstance(shift, hax.NamedArray) else shift
    dims = X.axis_indices(axis)
    same(hax.roll(X, shift, axis), X.axis_names, jnp.roll(X.array, raw_shift, dims))


# --- errors ---

ERRORS = [
    (lambda: X.rename({"H": "W"}), "rename: axis 'W' occurs more than once in (W, W, D)."),
    (
        lambda: X.rename({"H": Axis("A", 3)}),
        "rename: axis 'A' has size 3; expected 2. An Axis must have the size of what it names.",
    ),
    (
        lambda: X.rename({Axis("H", 3): "A"}),
        "rename: axis 'H' has size 3; expected 2. An Axis must have the size of what it names.",
    ),
    (lambda: X.flatten(Axis("f", 7)), "flatten: axis 'f' has size 7; expected 24. It merges H=2, W=3, D=4."),
    (lambda: X.flatten_axes(("H", "W"), "D"), "flatten_axes: axis 'D' occurs more than once in (D, D)."),
    (lambda: X.flatten_axes(("H", "Q"), "f"), "flatten_axes: no axis 'Q'; the array has H=2, W=3, D=4."),
    (lambda: X.flatten_axes(("H", "H"), "f"), "flatten_axes: axis 'H' occurs more than once in (H, H)."),
    (
        lambda: X.unflatten_axis("D", {"a": 2, "b": 3}),
        "unflatten_axis: axis D=4 can not be split into (a=2, b=3); the product of the sizes must be 4.",
    ),
    (
        lambda: X.unflatten_axis("D", {"a": 3, "b": None}),
        "unflatten_axis: axis D=4 can not be split into (a=3, b); the product of the sizes must be 4.",
    ),
    (
        lambda: X.unflatten_axis("D", ("a", "b")),
        "unflatten_axis: axes 'a', 'b' have no size; expected at most one without.",
    ),
    (
        lambda: X.unflatten_axis("D", {"H": 2, "b": 2}),
        "unflatten_axis: axis 'H' occurs more than once in (H, W, H, b).",
    ),
    (
        lambda: X.split("D", {"a": 1, "b": 2}),
        "split: axis D=4 can not be cut into (a=1, b=2); the sizes must add up to 4.",
    ),
    (lambda: X.split("D", ["a"]), "split: axis D=4 can not be cut into (a); the sizes must add up to 4."),
    (lambda: X.split("D", []), "split: axis D=4 can not be cut into (no axes); the sizes must add up to 4."),
    (lambda: X.split("D", [Axis("H", 4)]), "split: axis 'H' occurs more than once in (H, W, H)."),
    (
        lambda: X.unbind(Axis("H", 3)),
        "unbind: axis 'H' has size 3; expected 2. An Axis must have the size that the array has.",
    ),
    (lambda: hax.roll(X, 1, "w"), "roll: no axis 'w'; the array has H=2, W=3, D=4."),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message.split(";")[0] for _, message in ERRORS])
def test_errors(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message


CALLS = {
    "rename": lambda x: hax.rename(x, {"a": "b"}),
    "flatten": lambda x: hax.flatten(x, "f"),
    "flatten_axes": lambda x: hax.flatten_axes(x, ("a",), "f"),
    "flatten_all_axes_but": lambda x: flatten_all_axes_but(x, "f", ("a",)),
    "unflatten_axis": lambda x: hax.unflatten_axis(x, "a", (H,)),
    "split": lambda x: hax.split(x, "a", (H,)),
    "unbind": lambda x: hax.unbind(x, "a"),
    "roll": lambda x: hax.roll(x, 1, "a"),
}


@pytest.mark.parametrize("op", CALLS)
def test_arrays_without_names_are_refused(op):
    with pytest.raises(TypeError) as error:
        CALLS[op](np.ones(2))
    message = f"{op}: the array is a numpy array of shape (2,); expected a NamedArray."
    assert str(error.value) == f"{message} Name its axes with haliax.named(array, axes)."


def test_an_axis_is_one_axis():
    with pytest.raises(TypeError) as error:
        X.flatten(("f", "g"))
    assert str(error.value) == "flatten: the axis is a tuple; expected an Axis or a name."


# --- programs ---

PROGRAMS = [
    (lambda x: x.rename({"H": "A"}), []),
    (lambda x: x.flatten_axes("H", "f"), []),
    (lambda x: x.unflatten_axis("D", Axis("f", 4)), []),
    (lambda x: x.flatten_axes(("H", "W"), "f"), ["reshape"]),
    (lambda x: x.flatten_axes(("W", "D"), "f"), ["reshape"]),
    (lambda x: x.flatten("f"), ["reshape"]),
    (lambda x: x.flatten_axes(("W", "H"), "f"), ["transpose", "reshape"]),
    (lambda x: x.flatten_axes(("H", "D"), "f"), ["transpose", "reshape"]),
    (lambda x: x.unflatten_axis("D", {"a": 2, "b": 2}), ["reshape"]),
    (lambda x: x.split("D", {"a": 1, "b": 3}), ["slice", "slice"]),
    (lambda x: x.unbind("H"), ["slice", "slice", "reshape", "reshape"]),
    (lambda x: flatten_all_axes_but(x, "f", ("H", "W"))[0], ["reshape"]),
]


@pytest.mark.parametrize(("fn", "expected"), PROGRAMS)
def test_programs_hold_nothing_needless(fn, expected):
    assert operations(fn, X) == expected


def test_the_gradient_of_split_joins():
    grad = jax.grad(lambda x: sum((i + 1.0) * part.sum().scalar() for i, part in enumerate(x.unbind("H"))))
    np.testing.assert_array_equal(grad(X.astype(float)).array, np.broadcast_to([[[1]], [[2]]], (2, 3, 4)))
