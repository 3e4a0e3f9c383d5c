"""Putting axes in another order by a sequence of axes."""

import jax
import numpy as np
import pytest
from hypothesis import given, strategies as st

import haliax as hax
from haliax.axis import Axis, make_axes, rearrange_for_partial_order
from programs import operations

H, W, D = make_axes(H=2, W=3, D=4)
X = hax.arange((H, W, D))


@pytest.mark.parametrize(
    ("order", "names"),
    [
        (("D", "H", "W"), "D H W"),
        (["D", "H", "W"], "D H W"),
        ((D, "H", W), "D H W"),
        (("W", ...), "W H D"),
        ((..., "H"), "W D H"),
        ((..., H, W), "D H W"),
        (("D", ..., "H"), "D W H"),
        (("D", ..., ..., "H"), "D W H"),
        ((..., "W", ...), "H W D"),
        ((...,), "H W D"),
    ],
    ids=repr,
)
def test_table(order, names):
    y = X.rearrange(order)
    assert y.axis_names == tuple(names.split())
    np.testing.assert_array_equal(y.array, np.transpose(X.array, [X.axis_names.index(n) for n in y.axis_names]))


@given(st.permutations("abcd"), st.integers(0, 4), st.booleans())
def test_agrees_with_the_order_of_axes(names, n, in_front):
    x = hax.arange({"a": 2, "b": 1, "c": 3, "d": 2})
    order = (..., *names[:n]) if in_front else (*names[:n], ...)
    y = hax.rearrange(x, order)
    assert y.axes == rearrange_for_partial_order(order, x.axes)
    np.testing.assert_array_equal(y.rearrange(x.axis_names).array, x.array)


def test_the_same_order_is_the_same_array():
    assert X.rearrange(("H", ...)) is X
    assert operations(lambda x: x.rearrange((..., "W", "D")), X) == []
    assert operations(lambda x: x.rearrange(("D", ...)), X) == ["transpose"]


def test_transforms():
    f = lambda x: x.rearrange(("D", ...)).sum("H")  # noqa: E731
    np.testing.assert_array_equal(jax.jit(f)(X).array, X.array.sum(0).T)
    np.testing.assert_array_equal(jax.grad(lambda x: f(x)["W", 0].sum().scalar())(X.astype(float))["W", 0].array, 1)


ERRORS = [
    (
        ("W",),
        "rearrange: the order (W) has no place for H=2, D=4; expected all axes to be named."
        " Name them, or put `...` where they go.",
    ),
    ((Axis("W", 4), ...), "rearrange: axis 'W' has size 4; expected 3."),
    (("w", ...), "rearrange: no axis 'w'; the axes are H=2, W=3, D=4."),
    (("W", "W", ...), "rearrange: axis 'W' occurs more than once in (W, W)."),
]


@pytest.mark.parametrize(("order", "message"), ERRORS, ids=repr)
def test_errors(order, message):
    with pytest.raises(ValueError) as error:
        X.rearrange(order)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: X.rearrange({"D": 4}),
            "the order is a dict; expected a pattern, or a sequence of axes, names and `...`.",
        ),
        (lambda: X.rearrange(("D", ...), a=2), "the order beside keyword 'a' is a tuple; expected a pattern."),
        (
            lambda: X.rearrange(b"a b c"),
            "the order is a bytes; expected a pattern, or a sequence of axes, names and `...`.",
        ),
        (lambda: X.rearrange((0, ...)), "entry 0 of the order is an int; expected an Axis, a name or `...`."),
        (
            lambda: hax.rearrange(np.ones(2), ("a",)),
            "the array is a numpy array of shape (2,); expected a NamedArray."
            " Name its axes with haliax.named(array, axes).",
        ),
    ],
)
def test_type_errors(call, message):
    with pytest.raises(TypeError) as error:
        call()
    assert str(error.value) == f"rearrange: {message}"
