"""Broadcasting by name: which axes a result has, in which order, with which elements."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

import haliax as hax
from haliax.core import broadcast_arrays_and_return_axes
from strategies import assert_same, named_arrays, spread, sub_arrays
from test_elementwise import operations

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5}


def axes(names):
    return tuple(hax.Axis(name, SIZES[name]) for name in names)


def array(names):
    return hax.zeros(axes(names))


# (the axes of the array, the axes asked for, the axes of the result if they must be in order, and if they need not)
BROADCAST_TO = [
    ("", "ab", "ab", "ab"),
    ("a", "ab", "ab", "ba"),
    ("b", "ab", "ab", "ab"),
    ("ab", "ba", "ba", "ab"),
    ("ab", "cba", "cba", "cab"),
    ("ab", "acb", "acb", "cab"),
    # with axes that are not asked for
    ("ab", "b", "ab", "ab"),
    ("ab", "cb", "cab", "cab"),
    ("ab", "ac", "acb", "cab"),
    ("ab", "bc", "bca", "cab"),
    ("abc", "ba", "bac", "abc"),
]


@pytest.mark.parametrize(("have", "want", "ordered", "unordered"), BROADCAST_TO)
def test_broadcast_to(have, want, ordered, unordered):
    def broadcast(**options):
        extra = set(have) - set(want)
        return hax.broadcast_to(array(have), axes(want), enforce_no_extra_axes=not extra, **options)

    assert broadcast().axes == axes(ordered)
    assert broadcast(ensure_order=False).axes == axes(unordered)
    assert hax.broadcast_axis(array(have), axes(want)).axes == axes(ordered)


@given(st.data())
def test_elements_follow_their_axes(data):
    target = data.draw(named_arrays())
    x = data.draw(sub_arrays(target))
    result = hax.broadcast_to(x, target.axes)
    assert result.axes == target.axes
    assert_same(result, np.broadcast_to(spread(x, target.axis_names), target.array.shape))


@given(named_arrays())
def test_an_array_is_returned_as_it_is(x):
    assert hax.broadcast_to(x, x.axes) is x
    assert hax.broadcast_axis(x, ()) is x
    for name in x.axis_names:
        assert hax.broadcast_axis(x, name) is x


def test_scalars():
    assert_same(hax.broadcast_to(2.0, axes("a")), jnp.full(2, 2.0))
    assert hax.broadcast_axis(jnp.array(2), axes("ab")).axes == axes("ab")


@pytest.mark.parametrize("form", [axes("ab"), {"a": 2, "b": 3}, ["a", hax.Axis("b", 3)], {"a": None, "b": 3}])
def test_forms_of_axes(form):
    assert hax.broadcast_to(array("a"), form).axes == axes("ab")


def test_broadcast_to_lowers_to_the_plain_program():
    x = jax.ShapeDtypeStruct((3,), jnp.float32)

    def named(x):
        return hax.broadcast_to(hax.NamedArray(x, ("b",)), axes("ab")).array

    assert operations(named, x) == operations(lambda x: jnp.broadcast_to(x, (2, 3)), x)


# several arrays

# (the axes of the arrays, the axes of all results): where no array has all axes, those of larger arrays come later
COMMON = [
    (["ab", "b"], "ab"),
    (["b", "ab"], "ab"),
    (["ab", "ba"], "ab"),
    (["ba", "a", "ab"], "ba"),
    (["a", "b"], "ab"),
    (["b", "a"], "ab"),
    (["ab", "bc", "cd"], "abcd"),
    (["ab", "ac", "ad"], "bcad"),
    (["ab", "cab", "bd"], "dcab"),
]


@pytest.mark.parametrize(("arrays", "common"), COMMON)
def test_broadcast_arrays(arrays, common):
    inputs = [array(names) for names in arrays]
    results, all_axes = broadcast_arrays_and_return_axes(*inputs, require_subset=False)
    assert all_axes == axes(common)
    assert [x.axes for x in results] == [axes(common)] * len(arrays)
    unordered = hax.broadcast_arrays(*inputs, require_subset=False, ensure_order=False)
    assert [set(x.axes) for x in unordered] == [set(axes(common))] * len(arrays)


def test_broadcast_arrays_leaves_scalars_alone():
    x, two, none = hax.broadcast_arrays(array("ab"), 2, None)
    assert (x.axes, two, none) == (axes("ab"), 2, None)
    assert hax.broadcast_arrays(1, None) == (1, None)


# errors

ERRORS = [
    (
        lambda: hax.broadcast_to(array("ab"), axes("b")),
        ValueError,
        "broadcast_to: the array has a=2, b=3; expected no axes beyond (b). "
        "Reduce the extra axes first, or pass enforce_no_extra_axes=False.",
    ),
    (
        lambda: hax.broadcast_to(array("a"), hax.Axis("a", 4)),
        ValueError,
        "broadcast_to: axis 'a' has size 4; expected 2. An axis keeps its size.",
    ),
    (
        lambda: hax.broadcast_axis(array("a"), "b"),
        ValueError,
        "broadcast_axis: axis 'b' has no size; expected an Axis; the array has a=2.",
    ),
    (
        lambda: hax.broadcast_to(jnp.ones(2), hax.Axis("a", 2)),
        ValueError,
        "broadcast_to: an operand is an unnamed array of shape (2,); expected a NamedArray or a scalar. "
        "Name its axes with haliax.named(array, axes).",
    ),
    (
        lambda: hax.broadcast_axis("text", hax.Axis("a", 2)),
        TypeError,
        "broadcast_axis: an operand is a string; expected a NamedArray or a scalar.",
    ),
    (
        lambda: hax.broadcast_arrays(array("a"), array("b")),
        ValueError,
        "broadcast_arrays: axes (a=2) and (b=3); expected the axes of one to contain those of the other. "
        "Use broadcast_axis to give the first operand 'b' explicitly.",
    ),
    (
        lambda: hax.broadcast_arrays(array("a"), hax.ones(hax.Axis("a", 3))),
        ValueError,
        "broadcast_arrays: axis 'a' has size 3; expected 2. All arrays must agree on the size of a shared axis.",
    ),
    (
        lambda: hax.broadcast_arrays(array("a"), "text"),
        TypeError,
        "broadcast_arrays: an operand is a string; expected a NamedArray or a scalar.",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_errors(call, kind, message):
    with pytest.raises(kind) as e:
        call()
    assert str(e.value) == message
