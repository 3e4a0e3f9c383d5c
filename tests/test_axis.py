"""Axes and the forms that name them."""

import copy
import dataclasses
import pickle
from types import MappingProxyType

import jax
import pytest
from hypothesis import given, strategies as st

from haliax.axis import (
    Axis,
    axis_name,
    axis_size,
    axis_spec_to_shape_dict,
    axis_spec_to_tuple,
    concat_axes,
    eliminate_axes,
    intersect_axes,
    is_axis_compatible,
    make_axes,
    replace_axis,
    replace_missing_with_ellipsis,
    resolve_axis,
    selects_axis,
    to_jax_shape,
    union_axes,
    unsize_axes,
    without_axes,
)

A, B, C = make_axes(a=2, b=3, c=4)
A9 = Axis("a", 9)


# --- The class ---


def test_axis_is_a_value():
    assert Axis("a", 2) == Axis(name="a", size=2) != Axis("a", 3)
    assert hash(A) == hash(Axis("a", 2))
    assert repr(A) == "Axis(name='a', size=2)"
    assert f"{A}" == "a(2)"
    assert A.alias("x") == Axis("x", 2)
    assert A.resize(7) == Axis("a", 7)
    assert Axis.__match_args__ == ("name", "size")


def test_axis_can_not_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        A.size = 3
    with pytest.raises((AttributeError, TypeError)):
        A.other = 3


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_axis_survives_copies(again):
    assert again(A) == A


def test_axis_is_a_leaf_of_a_pytree():
    assert jax.tree.leaves({"x": A}) == [A]


def test_make_axes():
    assert make_axes() == ()
    assert make_axes(b=3, a=2) == (B, A)


# --- From one form to another ---

# Each row: the form, its names, its entries as a tuple, as a dict.
FORMS = [
    (A, "a", (A,), {"a": 2}),
    ("a", "a", ("a",), {"a": None}),
    ((), (), (), {}),
    ([], (), (), {}),
    ({}, (), (), {}),
    ((A,), ("a",), (A,), {"a": 2}),
    (["a"], ("a",), ("a",), {"a": None}),
    ({"a": None}, ("a",), ("a",), {"a": None}),
    ((B, A), ("b", "a"), (B, A), {"b": 3, "a": 2}),
    ([A, "b"], ("a", "b"), (A, "b"), {"a": 2, "b": None}),
    ({"b": 3, "a": None}, ("b", "a"), (B, "a"), {"b": 3, "a": None}),
    (MappingProxyType({"b": 3}), ("b",), (B,), {"b": 3}),
    ((A, A), ("a", "a"), (A, A), {"a": 2}),
    (("a", B, A), ("a", "b", "a"), ("a", B, A), {"a": 2, "b": 3}),
    ((A, "a"), ("a", "a"), (A, "a"), {"a": 2}),
]


@pytest.mark.parametrize(("axes", "names", "entries", "shape"), FORMS, ids=str)
def test_forms(axes, names, entries, shape):
    assert axis_name(axes) == names
    assert axis_spec_to_tuple(axes) == entries
    as_dict = axis_spec_to_shape_dict(axes)
    assert as_dict == shape
    assert list(as_dict) == list(shape)
    assert type(as_dict) is dict


def test_a_shape_dict_is_new():
    given_dict = {"a": 2}
    assert axis_spec_to_shape_dict(given_dict) is not given_dict
    assert union_axes(given_dict, {}) is not given_dict


@pytest.mark.parametrize(
    ("axes", "shape", "size"),
    [
        (A, 2, 2),
        ((), (), 1),
        ({}, (), 1),
        ([A], (2,), 2),
        ((A, B, C), (2, 3, 4), 24),
        ({"c": 4, "b": 3}, (4, 3), 12),
        ((A, A), (2, 2), 4),
    ],
    ids=str,
)
def test_sizes(axes, shape, size):
    assert to_jax_shape(axes) == shape
    assert axis_size(axes) == size


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.integers(0, 9), max_size=5))
def test_sized_forms_round_trip(shape):
    axes = axis_spec_to_tuple(shape)
    assert axes == tuple(Axis(name, size) for name, size in shape.items())
    assert axis_spec_to_shape_dict(axes) == shape
    assert list(axis_spec_to_shape_dict(list(axes))) == list(shape)
    assert axis_name(axes) == tuple(shape)
    assert to_jax_shape(axes) == to_jax_shape(shape) == tuple(shape.values())
    assert resolve_axis(axes, unsize_axes(axes)) == axes


@pytest.mark.parametrize(
    ("axes", "all_unsized", "a_unsized"),
    [
        (A, "a", ("a",)),
        ("a", "a", ("a",)),
        ((A, B), ("a", "b"), ("a", B)),
        ([B, A], ("b", "a"), (B, "a")),
        ({"a": 2, "b": 3}, {"a": None, "b": None}, {"a": None, "b": 3}),
        (MappingProxyType({"a": 2}), {"a": None}, {"a": None}),
    ],
    ids=str,
)
def test_unsize_axes(axes, all_unsized, a_unsized):
    assert unsize_axes(axes) == all_unsized
    assert unsize_axes(axes, "a") == unsize_axes(axes, (A,)) == unsize_axes(axes, {"a": 2}) == a_unsized
    assert axis_spec_to_tuple(unsize_axes(axes, ())) == axis_spec_to_tuple(axes)


# --- Errors ---

ANY_FORM = "expected an Axis, a name, a sequence of those, or a mapping from names to sizes."

NOT_AXES = [
    (None, "the axes are None; " + ANY_FORM),
    (5, "the axes are an int; " + ANY_FORM),
    ({"a"}, "the axes are a set; " + ANY_FORM),
    ((A, 5), "entry 1 of the axes is an int; expected an Axis or a name."),
    ([None], "entry 0 of the axes is None; expected an Axis or a name."),
    (((A,), B), "entry 0 of the axes is a tuple; expected an Axis or a name."),
    ({5: 2}, "a key of the axes is an int; expected a name."),
]
"""What names no axes, and what every function says about it after its own name."""

ONE_ARGUMENT = [axis_name, axis_size, axis_spec_to_shape_dict, axis_spec_to_tuple, to_jax_shape]
TWO_ARGUMENTS = [
    concat_axes,
    eliminate_axes,
    intersect_axes,
    replace_missing_with_ellipsis,
    resolve_axis,
    selects_axis,
    union_axes,
    unsize_axes,
    without_axes,
]


@pytest.mark.parametrize(("axes", "message"), NOT_AXES, ids=str)
@pytest.mark.parametrize("fn", ONE_ARGUMENT, ids=lambda f: f.__name__)
def test_one_argument_that_names_no_axes(fn, axes, message):
    with pytest.raises(TypeError) as error:
        fn(axes)
    assert str(error.value) == f"{fn.__name__}: {message}"


@pytest.mark.parametrize(("axes", "message"), NOT_AXES, ids=str)
@pytest.mark.parametrize("fn", TWO_ARGUMENTS, ids=lambda f: f.__name__)
def test_either_argument_that_names_no_axes(fn, axes, message):
    with pytest.raises(TypeError) as first:
        fn(axes, ())
    assert str(first.value) == f"{fn.__name__}: {message}"
    if fn is unsize_axes and axes is None:
        return  # None asks for all axes
    with pytest.raises(TypeError) as second:
        fn((), axes)
    assert str(second.value) == f"{fn.__name__}: {message}"


@pytest.mark.parametrize("fn", [fn for fn in TWO_ARGUMENTS if fn is not concat_axes], ids=lambda f: f.__name__)
@pytest.mark.parametrize("arguments", [((A, A9), ()), (A, (A, A9))], ids=["first", "second"])
def test_one_name_with_two_sizes_in_an_argument(fn, arguments):
    with pytest.raises(ValueError) as error:
        fn(*arguments)
    assert str(error.value) == f"{fn.__name__}: axis 'a' has size 9; expected 2."


SIZE_9 = "axis 'a' has size 9; expected 2."
NO_SIZE = "has no size; expected an Axis, or a mapping from name to size."

ERRORS = [
    (axis_spec_to_shape_dict, [(A, A9)], SIZE_9),
    (axis_size, ["a"], f"axis 'a' {NO_SIZE}"),
    (axis_size, [(A, "b")], f"axis 'b' {NO_SIZE}"),
    (axis_size, [{"a": 2, "b": None}], f"axis 'b' {NO_SIZE}"),
    (to_jax_shape, ["a"], f"axis 'a' {NO_SIZE}"),
    (to_jax_shape, [(A, "b")], f"axis 'b' {NO_SIZE}"),
    (to_jax_shape, [{"a": None}], f"axis 'a' {NO_SIZE}"),
    (union_axes, [A, A9], SIZE_9),
    (union_axes, [(A, B), {"c": 1, "a": 9}], SIZE_9),
    (intersect_axes, [A, A9], SIZE_9),
    (intersect_axes, [{"b": 3, "a": 2}, (A9, B)], SIZE_9),
    (replace_missing_with_ellipsis, [(A, B), A9], SIZE_9),
    (without_axes, [(A, B), A9], SIZE_9),
    (without_axes, [{"a": 2}, {"a": 9}], SIZE_9),
    (concat_axes, [A, A], "axis 'a' occurs more than once in (a, a)."),
    (concat_axes, [(A, B), ("c", "b", "a")], "axis 'b', 'a' occurs more than once in (a, b, c, b, a)."),
    (concat_axes, [{"a": 2}, {"a": None}], "axis 'a' occurs more than once in (a, a)."),
    (concat_axes, [(), (A, A)], "axis 'a' occurs more than once in (a, a)."),
    (eliminate_axes, [(A, B), "c"], "no axis 'c'; the axes are a=2, b=3."),
    (eliminate_axes, [(), "c"], "no axis 'c'; the axes are no axes."),
    (eliminate_axes, [(A, "b"), ("a", "c")], "no axis 'c'; the axes are a=2, b."),
    (eliminate_axes, [{"time": 8}, "tiem"], "no axis 'tiem'; the axes are time=8. Did you mean 'time'?"),
    (eliminate_axes, [(A, B), A9], SIZE_9),
    (resolve_axis, [(A, B), "c"], "no axis 'c'; the axes are a=2, b=3."),
    (resolve_axis, [A, {"b": None}], "no axis 'b'; the axes are a=2."),
    (resolve_axis, [{"batch": 8}, ("btach",)], "no axis 'btach'; the axes are batch=8. Did you mean 'batch'?"),
    (resolve_axis, [(A, B), A9], SIZE_9),
    (resolve_axis, [(A, B), {"a": 9}], SIZE_9),
    (resolve_axis, [(A, "b"), "b"], f"axis 'b' {NO_SIZE}"),
    (resolve_axis, ["a", A], f"axis 'a' {NO_SIZE}"),
    (unsize_axes, [(A, B), "c"], "no axis 'c'; the axes are a=2, b=3."),
    (unsize_axes, [{"a": 2}, A9], SIZE_9),
    (replace_axis, [(A, B), "c", "d"], "no axis 'c'; the axes are a=2, b=3."),
    (replace_axis, [(A, B), A9, "d"], SIZE_9),
    (replace_axis, [(A, B), "a", "b"], "axis 'b' occurs more than once in (b, b)."),
    (replace_axis, [(A, B), "a", (A9, "b")], "axis 'b' occurs more than once in (a, b, b)."),
    (replace_axis, [{"a": 2, "b": 3}, "b", {"a": 2}], "axis 'a' occurs more than once in (a, a)."),
]


@pytest.mark.parametrize(("fn", "arguments", "message"), ERRORS, ids=lambda x: getattr(x, "__name__", None))
def test_value_errors(fn, arguments, message):
    with pytest.raises(ValueError) as error:
        fn(*arguments)
    assert str(error.value) == f"{fn.__name__}: {message}"


TYPE_ERRORS = [
    (replace_axis, [(A, B), (A,), "c"], "old is a tuple; expected an Axis or a name."),
    (replace_axis, [(A, B), {"a": 2}, "c"], "old is a dict; expected an Axis or a name."),
    (replace_axis, [(A, B), None, "c"], "old is None; expected an Axis or a name."),
    (replace_axis, [(A, B), "a", None], f"the axes are None; {ANY_FORM}"),
    (replace_axis, [5, "a", "c"], f"the axes are an int; {ANY_FORM}"),
    (is_axis_compatible, [A, None], "ax2 is None; expected an Axis or a name."),
    (is_axis_compatible, [(A,), "a"], "ax1 is a tuple; expected an Axis or a name."),
]


@pytest.mark.parametrize(("fn", "arguments", "message"), TYPE_ERRORS, ids=lambda x: getattr(x, "__name__", None))
def test_type_errors(fn, arguments, message):
    with pytest.raises(TypeError) as error:
        fn(*arguments)
    assert str(error.value) == f"{fn.__name__}: {message}"
