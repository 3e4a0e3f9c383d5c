"""haliax.ops and top_k: the results of jax.numpy, found by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import haliax as hax
import haliax.ops as ops
from haliax.axis import Axis, make_axes
from haliax.specialized_fns import top_k
from helpers import compilations
from programs import operations

H, W, D = make_axes(H=2, W=3, D=4)
X = hax.arange((H, W)) - 2
Y = hax.arange((H, W, D)) / 2
U = Axis("U", 3)


def same(array, names, expected):
    assert isinstance(array, hax.NamedArray)
    assert array.axis_names == tuple(names.split())
    np.testing.assert_array_equal(array.array, expected)


# --- where, clip, isclose: one operand has all axes of the others ---

WHERE = [
    (X > 0, X, 0, "H W"),
    (X > 0, 1.5, 2, "H W"),
    (X > 0, X.rearrange(("W", "H")), -X, "H W"),
    (X["H", 0] < -1, X, Y, "H W D"),
    (X > 0, X["W", 0], X["H", 0], "H W"),
    (X["H", 0] < -1, X["W", 0], X, "H W"),
    (True, X, 0, "H W"),
    (jnp.array(False), X, Y, "H W D"),
    (hax.named(True, ()), X, -X, "H W"),
    (hax.named(True, ()), hax.named(1, ()), 2, ""),
]


def numpy_of(a, names):
    """The elements with one dimension for each of `names`, of size 1 where the array lacks it."""
    if not isinstance(a, hax.NamedArray):
        return a
    array = a.rearrange([name for name in names if name in a.axis_names])
    return np.reshape(array.array, [a.axis_size(name) if name in a.axis_names else 1 for name in names])


@pytest.mark.parametrize(("condition", "x", "y", "names"), WHERE)
def test_where(condition, x, y, names):
    plain = jnp.where(*(numpy_of(a, names.split()) for a in (condition, x, y)))
    result = hax.where(condition, x, y)
    same(result, names, plain)
    assert result.dtype == plain.dtype


@pytest.mark.parametrize("x", [1, jnp.array(1), jnp.arange(3)], ids=str)
def test_a_condition_without_axes_makes_nothing_named(x):
    result = hax.where(hax.named(True, ()), x, 5)
    assert isinstance(result, jax.Array)
    np.testing.assert_array_equal(result, x)


def test_where_of_raw_arrays():
    result = hax.where(jnp.array([True, False]), jnp.arange(2), 5)
    np.testing.assert_array_equal(result, jnp.array([0, 5]))


@pytest.mark.parametrize("size", [0, 2, 3, 8])
def test_places(size):
    axis = Axis("n", size)
    expected = jnp.nonzero(X.array > 0, size=size, fill_value=-1)
    for result in (hax.where(X > 0, fill_value=-1, new_axis=axis), hax.nonzero(X > 0, size=axis, fill_value=-1)):
        assert len(result) == 2
        for places, plain in zip(result, expected, strict=True):
            same(places, "n", plain)


@pytest.mark.parametrize(
    ("array", "low", "high", "names"),
    [
        (X, -1, 2, "H W"),
        (X, None, 2, "H W"),
        (X, 0, None, "H W"),
        (X, None, None, "H W"),
        (X, X["H", 0], 2, "H W"),
        (X, X["W", 0], X["H", 1], "H W"),
        (X["H", 0], X, 3, "H W"),
        (3, X, 10, "H W"),
        (X, hax.named(0, ()), jnp.array(1), "H W"),
        (X, 0.5, 1.5, "H W"),
    ],
)
def test_clip(array, low, high, names):
    plain = jnp.clip(*(numpy_of(a, names.split()) for a in (array, low, high)))
    same(hax.clip(array, low, high), names, plain)
    if isinstance(array, hax.NamedArray):
        same(array.clip(low, high), names, plain)
        same(array.clip(a_max=high, a_min=low), names, plain)


def test_isclose():
    y = X + jnp.array(1e-6)
    same(hax.isclose(X, y), "H W", jnp.isclose(X.array, y.array))
    same(hax.isclose(X, y["H", 0], atol=1), "H W", jnp.isclose(X.array, y.array[:1], atol=1))
    same(hax.isclose(-1, X), "H W", X.array == -1)
    nan = hax.full(H, jnp.nan)
    same(hax.isclose(nan, nan), "H", np.zeros(2, bool))
    same(hax.isclose(nan, nan, equal_nan=True), "H", np.ones(2, bool))


ROW = X["H", 0] * 2
ALIGNED = {
    "where": (lambda x, y: hax.where(x > 0, x, y), lambda x, y: jnp.where(x > 0, x, y[None])),
    "where, a condition": (lambda x, y: hax.where(y > 0, x, 0), lambda x, y: jnp.where(y[None] > 0, x, 0)),
    "clip": (lambda x, y: hax.clip(x, None, y), lambda x, y: jnp.clip(x, None, y[None])),
    "clip, both": (lambda x, y: hax.clip(x, y, y + 1), lambda x, y: jnp.clip(x, y[None], y[None] + 1)),
    "isclose": (lambda x, y: hax.isclose(x, y, 0.5), lambda x, y: jnp.isclose(x, y[None], 0.5)),
}


@pytest.mark.parametrize(("named", "plain"), ALIGNED.values(), ids=ALIGNED)
def test_operands_that_are_broadcast(named, plain):
    same(named(X, ROW), "H W", plain(X.array, ROW.array))
    assert sorted(operations(named, X, ROW)) == sorted(operations(plain, X.array, ROW.array))


def test_operands_are_broadcast_in_one_step():
    """Outside a trace they are compiled together with the operation."""
    condition, x, y = (
        hax.named(np.ones(5, bool), "a"),
        hax.named(np.ones(7), "b"),
        hax.named(np.ones((7, 5)), ("b", "a")),
    )
    with compilations() as compiled:
        hax.where(condition, x, y)
    assert len(compiled) == 1


# a, b, allclose, array_equal, array_equiv
COMPARISONS = [
    (X, X, True, True, True),
    (X, X.rearrange(("W", "H")), True, True, True),
    (X, X + 1, False, False, False),
    (X, X * (1 + 1e-6), True, False, False),
    (X * 0, X["H", 0] * 0, True, False, True),
    (X["H", 0] * 0, X * 0, True, False, True),
    (X * 0, 0, True, False, True),
    (hax.named(3, ()), 3, True, True, True),
    (X, X.rename({"W": "V"}), None, False, False),
    (X, X["W", 0:2], None, False, False),
]


@pytest.mark.parametrize(("a", "b", "close", "equal", "equiv"), COMPARISONS)
def test_comparisons(a, b, close, equal, equiv):
    assert hax.array_equal(a, b) is equal
    assert hax.array_equiv(a, b) is equiv
    if close is not None:
        assert hax.allclose(a, b) is close


@pytest.mark.parametrize("compare", [hax.allclose, hax.array_equal, hax.array_equiv])
def test_comparisons_may_be_traced(compare):
    result = jax.jit(lambda a: compare(a, a))(X)
    assert result.shape == () and bool(result)


# --- rows and columns ---


@pytest.mark.parametrize("k", [-1, 0, 1])
@pytest.mark.parametrize(
    ("rows", "columns", "names"), [("W", "D", "H W D"), (D, "W", "H D W"), ("H", W, "D H W"), ("D", "H", "W D H")]
)
@pytest.mark.parametrize(("op", "plain"), [(hax.tril, jnp.tril), (hax.triu, jnp.triu)])
def test_triangles(op, plain, rows, columns, names, k):
    moved = Y.rearrange(names.split())
    same(op(Y, rows, columns, k), names, plain(moved.array, k))


@pytest.mark.parametrize("offset", [-1, 0, 1])
@pytest.mark.parametrize(("rows", "columns", "rest"), [("H", "W", "D"), (D, "H", "W")])
def test_trace(rows, columns, rest, offset):
    dims = Y.axis_indices((rows, columns))
    same(hax.trace(Y, rows, columns, offset), rest, jnp.trace(Y.array, offset, *dims))
    same(Y.trace(rows, columns, offset=offset, dtype=int), rest, jnp.trace(Y.array, offset, *dims, dtype=int))


# --- padding ---


@pytest.mark.parametrize(
    ("widths", "raw_widths"),
    [
        ({"H": (1, 2)}, [(1, 2), (0, 0)]),
        ({"W": 1, H: (0, 1)}, [(0, 1), (1, 1)]),
        ({}, [(0, 0), (0, 0)]),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "options", [{}, {"constant_values": 7}, {"constant_values": (1, 2)}, {"mode": "edge"}, {"mode": "wrap"}], ids=repr
)
def test_pad(widths, raw_widths, options):
    same(hax.pad(X, widths, **options), "H W", jnp.pad(X.array, raw_widths, **options))


@pytest.mark.parametrize("new_axis", [Axis("W", 5), Axis("V", 5), Axis("V", 3)], ids=repr)
@pytest.mark.parametrize("axis", ["W", W], ids=repr)
def test_pad_left(axis, new_axis):
    plain = jnp.pad(X.array, [(0, 0), (new_axis.size - 3, 0)], constant_values=7)
    same(hax.pad_left(X, axis, new_axis, value=7), f"H {new_axis.name}", plain)


# --- sets ---

UNIQUE = {
    "unique_values": ("values",),
    "unique_counts": ("values", "counts"),
    "unique_inverse": ("values", "inverse"),
    "unique_all": ("values", "index", "inverse", "counts"),
}
DATA = hax.named([[1, 3, 1], [1, 2, 1]], "H W")


@pytest.mark.parametrize("op", UNIQUE)
@pytest.mark.parametrize("axis", [None, "H", W], ids=repr)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_unique(op, axis, size):
    dim = None if axis is None else DATA.axis_indices(axis)
    flags = {f"return_{part}": part in UNIQUE[op] for part in ("index", "inverse", "counts")}
    results = getattr(ops, op)(DATA, U.resize(size), axis=axis, fill_value=0)
    results = results if isinstance(results, tuple) else (results,)
    plain = jnp.unique(DATA.array, axis=dim, size=size, fill_value=0, **flags)
    plain = plain if isinstance(plain, tuple) else (plain,)
    values = "U" if dim is None else ["U W", "H U"][dim]
    names = {"values": values, "index": "U", "inverse": "H W" if dim is None else "HW"[dim], "counts": "U"}
    for part, result, expected in zip(UNIQUE[op], results, plain, strict=True):
        same(result, names[part], expected)


def test_unique_returns_what_is_asked_for():
    same(hax.unique(DATA, U), "U", [1, 2, 3])
    values, counts = hax.unique(DATA, U, return_counts=True)
    same(values, "U", [1, 2, 3])
    same(counts, "U", [4, 1, 1])


@settings(max_examples=10)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(1, 7))
def test_bincount(values, size):
    x, axis = hax.named(values, "a"), Axis("C", size)
    weights = hax.arange(x.axes[0]) / 2
    expected = jnp.bincount(x.array, length=size)
    same(hax.bincount(x, axis), "C", expected)
    same(hax.bincount(x, axis, minlength=9), "C", expected)
    for given_weights in (weights, weights.array):
        same(hax.bincount(x, axis, weights=given_weights), "C", jnp.bincount(x.array, weights.array, length=size))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("values", [X, X["H", 0], 1, hax.named(2.5, ())], ids=["HW", "W", "int", "scalar"])
def test_searchsorted(values, side):
    a = hax.named([-1, 1, 2], "a")
    names = " ".join(values.axis_names) if isinstance(values, hax.NamedArray) else ""
    plain = jnp.searchsorted(a.array, ops.raw_array_or_scalar(values), side)
    same(hax.searchsorted(a, values, side=side), names, plain)
    order = hax.named([2, 0, 1], "a")
    shuffled = hax.named([1, 2, -1], "a")
    for sorter in (order, order.array):
        same(hax.searchsorted(shuffled, values, side=side, sorter=sorter, method="sort"), names, plain)


# --- bits, the largest ---


@pytest.mark.parametrize("bitorder", ["big", "little"])
@pytest.mark.parametrize("axis", ["a", Axis("b", 9)], ids=repr)
def test_bits(axis, bitorder):
    bits = hax.named(np.arange(18).reshape(2, 9) % 3 == 0, "a b")
    dim = bits.axis_indices(axis)
    packed = hax.packbits(bits, axis, bitorder=bitorder)
    same(packed, "a b", jnp.packbits(bits.array, dim, bitorder))
    name = bits.axis_names[dim]
    same(hax.unpackbits(packed, name, count=bits.axis_size(name), bitorder=bitorder), "a b", bits.array)
    same(hax.unpackbits(packed, name, bitorder=bitorder), "a b", jnp.unpackbits(packed.array, dim, None, bitorder))


@pytest.mark.parametrize("sizes", [(0, 3), (9, 0), (0, 0)], ids=repr)
def test_bits_of_nothing(sizes):
    bits = hax.zeros(dict(zip("ab", sizes, strict=True)), dtype=bool)
    packed = hax.packbits(bits, "a")
    same(packed, "a b", np.packbits(bits.array, 0))
    for count, size in [(None, 8 * packed.axis_size("a")), (0, 0), (5, 5)]:
        same(hax.unpackbits(packed, "a", count=count), "a b", np.zeros((size, sizes[1]), np.uint8))


def test_places_in_nothing():
    for places in hax.nonzero(hax.zeros((H, W.resize(0))), size=U, fill_value=-1):
        same(places, "U", [-1, -1, -1])


@pytest.mark.parametrize(("axis", "dim"), [("W", 1), (H, 0), ("D", 2)])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_top_k(axis, dim, k):
    values, indices = jax.lax.top_k(Y.array, k, axis=dim)
    for new_axis, name in [(None, Y.axis_names[dim]), ("K", "K"), (Axis("K", k), "K")]:
        names = " ".join([*Y.axis_names[:dim], name, *Y.axis_names[dim + 1 :]])
        result = top_k(Y, axis, k, new_axis)
        same(result[0], names, values)
        same(result[1], names, indices)


# --- errors ---

NEED_XY = (
    "where: only a condition was given; expected x and y, or fill_value and new_axis."
    " The number of places must be known in advance: it is a part of the shape."
)
NO_NAMES = "expected a NamedArray or a scalar. Name its axes with haliax.named(array, axes)."
ERRORS = [
    (lambda: hax.where(X > 0), ValueError, NEED_XY),
    (lambda: hax.where(X > 0, new_axis=U), ValueError, NEED_XY),
    (lambda: hax.where(X > 0, X), ValueError, "where: only x was given; expected both x and y, or neither."),
    (lambda: hax.where(X > 0, y=X), ValueError, "where: only y was given; expected both x and y, or neither."),
    (
        lambda: hax.where(X > 0, jnp.ones((2, 3)), 0),
        ValueError,
        f"where: an operand is an unnamed array of shape (2, 3); {NO_NAMES}",
    ),
    (
        lambda: hax.where(X > 0, fill_value=0, new_axis="n"),
        TypeError,
        "where: the new axis is a string; expected an Axis. Its size is the number of places to look for.",
    ),
    (
        lambda: hax.nonzero(hax.named(1, ()), size=U),
        ValueError,
        "nonzero: the array has no axes; expected at least one.",
    ),
    (
        lambda: hax.array_equal(jnp.ones(2), X),
        ValueError,
        f"array_equal: an operand is an unnamed array of shape (2,); {NO_NAMES}",
    ),
    (
        lambda: hax.trace(X, "W", "W"),
        ValueError,
        "trace: axis 'W' occurs more than once in (W, W). Rows and columns must be two axes.",
    ),
    (lambda: hax.triu(X, "H", "w"), ValueError, "triu: no axis 'w'; the array has H=2, W=3."),
    (lambda: hax.pad(X, {"w": 1}), ValueError, "pad: no axis 'w'; the array has H=2, W=3."),
    (
        lambda: hax.pad(X, {"W": (1, -1)}),
        ValueError,
        "pad: axis 'W' is to grow by (1, -1); expected no negative number. Use slice to make an axis shorter.",
    ),
    (
        lambda: hax.pad(X, 1),
        TypeError,
        "pad: pad_width is an int; expected a mapping from axes to numbers before and after.",
    ),
    (
        lambda: hax.pad_left(X, "W", Axis("W", 2)),
        ValueError,
        "pad_left: the new axis has size 2; expected at least that of W=3.",
    ),
    (
        lambda: hax.pad_left(X, "W", Axis("H", 4)),
        ValueError,
        "pad_left: axis 'H' occurs more than once in (H, H).",
    ),
    (lambda: hax.pad_left(X, "W", "V"), TypeError, "pad_left: new_axis is a string; expected an Axis."),
    (
        lambda: hax.unique(X, "U"),
        TypeError,
        "unique: Unique is a string; expected an Axis. Its size is a part of the shape of the result.",
    ),
    (
        lambda: hax.unique(X, H, axis="W"),
        ValueError,
        "unique: axis 'H' occurs more than once in (H, H).",
    ),
    (lambda: hax.bincount(X, U), ValueError, "bincount: the array has H=2, W=3; expected one axis."),
    (
        lambda: hax.bincount(X["H", 0], U, weights=X["W", 0]),
        ValueError,
        "bincount: the weights have H=2; expected W=3.",
    ),
    (
        lambda: hax.searchsorted(X["H", 0], jnp.ones(2)),
        ValueError,
        f"searchsorted: an operand is an unnamed array of shape (2,); {NO_NAMES}",
    ),
    (lambda: top_k(X, "W", 4), ValueError, "top_k: k is 4; expected 0 to the size of the axis, W=3."),
    (
        lambda: top_k(X, "W", 2, Axis("K", 3)),
        ValueError,
        "top_k: axis 'K' has size 3; expected 2. Its size must be k.",
    ),
    (
        lambda: top_k(jnp.ones(2), "a", 1),
        TypeError,
        "top_k: the array is a jax array of shape (2,); expected a NamedArray."
        " Name its axes with haliax.named(array, axes).",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS, ids=[message.split(";")[0] for _, _, message in ERRORS])
def test_errors(call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message


def test_gradients():
    x = X.astype(jnp.float32)
    grad = jax.grad(lambda x: hax.where(x > 0, x**2, 0).sum().scalar())(x)
    same(grad, "H W", jnp.where(x.array > 0, 2 * x.array, 0))
    grad = jax.grad(lambda x: hax.pad_left(x, "W", Axis("V", 5)).sum().scalar())(x)
    same(grad, "H W", np.ones((2, 3)))
