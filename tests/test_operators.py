"""Operators: each is the elementwise operation of its name, on both sides, and leaves room for foreign classes."""

import operator as op

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax._src.errors import kind
from strategies import assert_same

A, B = hax.Axis("a", 2), hax.Axis("b", 3)
FLOATS = hax.named(jnp.array([[1.0, -2, 3], [4, 5, -6]]), (A, B))
INTEGERS = hax.named(jnp.array([[1, 2, 3], [4, 5, 6]]), (A, B))
ROW = hax.named(jnp.array([3, 1, 2]), B)

ARITHMETIC = [op.add, op.sub, op.mul, op.truediv, op.floordiv, op.mod, op.pow]
COMPARISONS = [op.eq, op.ne, op.lt, op.le, op.gt, op.ge]
BITS = [op.and_, op.or_, op.xor, op.lshift, op.rshift]
UNARY = [op.neg, op.pos, abs, round]

each_arithmetic = pytest.mark.parametrize("f", [*ARITHMETIC, *COMPARISONS])


@pytest.mark.parametrize("f", [*ARITHMETIC, *COMPARISONS, *BITS])
def test_two_named_arrays(f):
    assert f(INTEGERS, ROW).axes == f(ROW, INTEGERS).axes == (A, B)
    assert_same(f(INTEGERS, ROW), f(INTEGERS.array, ROW.array[None]))
    assert_same(f(ROW, INTEGERS), f(ROW.array[None], INTEGERS.array))


@each_arithmetic
@pytest.mark.parametrize(
    "scalar", [2, 2.5, True, np.float32(2), np.float64(2), np.int32(2), np.array(2), jnp.array(2.0)]
)
def test_scalars_on_both_sides(f, scalar):
    # numpy's own scalars would take the operation over from a jax array on the right
    raw = jnp.asarray(scalar) if isinstance(scalar, np.ndarray | np.generic) else scalar
    for result, expected in [
        (f(FLOATS, scalar), f(FLOATS.array, raw)),
        (f(scalar, FLOATS), f(raw, FLOATS.array)),
    ]:
        assert isinstance(result, hax.NamedArray)
        assert result.axes == (A, B)
        assert_same(result, expected)


@pytest.mark.parametrize("f", BITS)
def test_integers_on_both_sides(f):
    assert_same(f(INTEGERS, 2), f(INTEGERS.array, 2))
    assert_same(f(2, INTEGERS), f(2, INTEGERS.array))


@pytest.mark.parametrize("f", UNARY)
def test_one_array(f):
    assert f(FLOATS).axes == (A, B)
    assert_same(f(FLOATS), f(FLOATS.array))


def test_invert_and_round():
    assert_same(~INTEGERS, ~INTEGERS.array)
    assert_same(round(FLOATS / 3, 1), jnp.round(FLOATS.array / 3, 1))


def test_divmod():
    for quotient, remainder in [divmod(INTEGERS, 2), divmod(INTEGERS, ROW * 0 + 2)]:
        assert_same(quotient, INTEGERS.array // 2)
        assert_same(remainder, INTEGERS.array % 2)
    assert_same(divmod(7, INTEGERS)[1], 7 % INTEGERS.array)


@pytest.mark.parametrize("scalar", [2, 2.5, np.float32(2), jnp.array(2, jnp.int8)])
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.int8, jnp.float32])
def test_types_are_those_of_jax(scalar, dtype):
    for f in ARITHMETIC:
        raw = jnp.ones(3, dtype)
        assert jax.typeof(f(hax.named(raw, B), scalar).array) == jax.typeof(f(raw, scalar))


def test_augmented_assignment_makes_a_new_array():
    x = y = FLOATS
    x += 1
    assert x is not y
    assert_same(x, y.array + 1)


# foreign operands

FOREIGN = [None, "text", object(), [1, 2], {"b": 1}]


@pytest.mark.parametrize("foreign", [*FOREIGN, hax.Axis("b", 3)], ids=lambda x: type(x).__name__)
def test_what_is_no_array_is_not_equal(foreign):
    assert (ROW == foreign) is False
    assert (foreign == ROW) is False
    assert (ROW != foreign) is True
    assert (foreign != ROW) is True


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda x: type(x).__name__)
def test_what_is_no_array_is_refused(foreign):
    expected = f"subtract: an operand is {kind(foreign)}; expected a NamedArray or a scalar."
    for call in (lambda: ROW - foreign, lambda: foreign - ROW):
        with pytest.raises(TypeError) as e:
            call()
        assert str(e.value) == expected


@pytest.mark.parametrize("array", [np.ones(3), jnp.ones(3), np.ones((2, 3)), np.ones(1)], ids=lambda x: str(type(x)))
@each_arithmetic
def test_unnamed_arrays_must_be_named(f, array):
    for call in (lambda: f(ROW, array), lambda: f(array, ROW)):
        with pytest.raises(ValueError) as e:
            call()
        name, message = str(e.value).split(": ", 1)
        assert callable(getattr(hax, name))
        assert message == (
            f"an operand is an unnamed array of shape {array.shape}; expected a NamedArray or a scalar. "
            "Name its axes with haliax.named(array, axes)."
        )


class TakesOver:
    __array_ufunc__ = None

    def __rsub__(self, other):
        return "taken over"

    def __sub__(self, other):
        return "as usual"

    def __eq__(self, other):
        return "compared"

    __hash__ = None


def test_a_class_may_take_operators_over():
    assert ROW - TakesOver() == "taken over"
    assert TakesOver() - ROW == "as usual"
    assert (ROW == TakesOver()) == "compared"
    with pytest.raises(TypeError, match="unsupported operand type"):
        ROW + TakesOver()


def test_dtypes_without_a_meaning_are_refused():
    with pytest.raises(TypeError) as e:
        FLOATS & FLOATS
    assert str(e.value) == "bitwise_and: the operands have dtype float32; expected booleans or integers."
    assert "does not accept dtype float32" in str(e.value.__cause__)


@pytest.mark.parametrize("other", [ROW, jnp.ones(3), np.ones(3)], ids=lambda x: type(x).__name__)
def test_matmul_is_refused(other):
    for call in (lambda: ROW @ other, lambda: other @ ROW):
        with pytest.raises(ValueError) as e:
            call()
        assert str(e.value) == (
            "matmul: `@` was used; expected the axes to contract, by name. Use haliax.dot(a, b, axis=...)."
        )
