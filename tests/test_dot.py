"""Contraction by name against `jnp.einsum`: values, dtypes, names, compiled operations, and messages."""

import string

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

import haliax as hax
from haliax import Axis, NamedArray

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5}
DTYPES = [jnp.bool_, jnp.int32, jnp.bfloat16, jnp.float16, jnp.float32, jnp.complex64]


def array(names: str, dtype=jnp.float32, seed: int = 0) -> NamedArray:
    """An array of small whole numbers, which no order of summation rounds; each letter is an axis."""
    values = np.random.default_rng([seed, len(names)]).integers(0, 3, [SIZES[n] for n in names])
    return NamedArray(jnp.asarray(values, dtype), tuple(names))


def compiled_operations(fn, *args) -> list[str]:
    """The operations of the StableHLO that `fn` lowers to."""
    words = jax.jit(fn).lower(*args).as_text().replace("(", " ").split()
    return sorted(word for word in words if word.startswith(("stablehlo.", "call", "func.call")))


# (operands, contracted, names of the result)
CASES = [
    ("ab bc", "b", "ac"),
    ("ab cb", "b", "ac"),
    ("ba bc", "b", "ac"),
    ("abc cd", "c", "abd"),
    ("cd abc", "c", "dab"),
    ("abc abd", "a", "bcd"),
    ("abc abd", "ab", "cd"),
    ("abc abd", "", "abcd"),
    ("abc cbd", "c", "abd"),
    ("abc bcd", "bc", "ad"),
    ("ab ab", "b", "a"),
    ("ab cd", "bc", "ad"),
    ("ab bc", "abc", ""),
    ("ab ", "b", "a"),
    (" ", "", ""),
    ("abc", "b", "ac"),
    ("abc", "", "abc"),
    ("ab bc cd", "bc", "ad"),
    ("ab bc cd", "b", "acd"),
    ("ab bc ca", "abc", ""),
    ("abcd ab cd bd", "bd", "ac"),
]


@pytest.mark.parametrize(("operands", "axis", "names"), CASES)
@pytest.mark.parametrize("dtype", [jnp.bool_, jnp.bfloat16, jnp.float32], ids=lambda d: d.__name__)
def test_values_dtype_and_names(operands, axis, names, dtype):
    arrays = [array(n, dtype, i) for i, n in enumerate(operands.split(" "))]
    result = hax.dot(*arrays, axis=tuple(axis))
    expected = jnp.einsum(f"{operands.replace(' ', ',')}->{names}", *(a.array for a in arrays))
    assert result.axis_names == tuple(names)
    assert result.array.dtype == expected.dtype
    np.testing.assert_array_equal(result.array, expected)


@given(st.data())
def test_any_contraction_is_that_of_einsum(data):
    names = st.lists(st.sampled_from("abcd"), unique=True, max_size=4).map("".join)
    operands = data.draw(st.lists(names, min_size=1, max_size=4))
    all_names = "".join(dict.fromkeys("".join(operands)))
    contracted = data.draw(st.lists(st.sampled_from(all_names), unique=True)) if all_names else []
    out = "".join(data.draw(st.permutations([n for n in all_names if n not in contracted])))
    arrays = [array(n, seed=i) for i, n in enumerate(operands)]
    result = hax.dot(*arrays, axis=contracted, out_axes=tuple(out))
    expected = np.einsum(f"{','.join(operands)}->{out}", *(np.asarray(a.array) for a in arrays))
    assert result.axis_names == tuple(out)
    np.testing.assert_array_equal(result.array, expected)


@pytest.mark.parametrize("preferred", [None, jnp.complex64])
@pytest.mark.parametrize("right", DTYPES)
@pytest.mark.parametrize("left", DTYPES)
def test_mixed_dtypes_follow_jax_numpy(left, right, preferred):
    a, b = array("ab", left), array("bc", right)
    result = hax.dot(a, b, axis="b", preferred_element_type=preferred)
    expected = jnp.einsum("ab,bc->ac", a.array, b.array, preferred_element_type=preferred)
    assert jax.typeof(result.array) == jax.typeof(expected)
    np.testing.assert_array_equal(result.array, expected)


@pytest.mark.parametrize("value", [1, 1.0, 1j])
def test_weak_dtypes_stay_weak(value):
    weak = NamedArray(jnp.full(2, value), ("a",))
    strong = NamedArray(weak.array.astype(weak.array.dtype), ("a",))
    for x, y in ((weak, weak), (weak, strong), (strong, weak)):
        assert jax.typeof(hax.dot(x, y, axis="a").array) == jax.typeof(jnp.dot(x.array, y.array))


SELECTIONS = ["b", Axis("b", 3), ["b"], ("b",), (Axis("b", 3),), {"b": 3}, {"b": None}]


@pytest.mark.parametrize("axis", SELECTIONS, ids=repr)
def test_ways_to_select_the_axis(axis):
    a, b = array("ab"), array("bc")
    expected = a.array @ b.array
    for result in (hax.dot(a, b, axis=axis), hax.dot(axis, a, b), hax.dot(a, axis, b), hax.dot(a, b, axis)):
        assert result.axis_names == ("a", "c")
        np.testing.assert_array_equal(result.array, expected)


def test_none_contracts_all_axes():
    a, b = array("ab"), array("bc")
    for result in (hax.dot(a, b, axis=None), hax.dot(None, a, b)):
        assert result.axis_names == ()
        np.testing.assert_array_equal(result.array, jnp.sum(a.array @ b.array))


@pytest.mark.parametrize(
    ("out_axes", "names"),
    [
        (("d", ...), "dab"),
        ((..., "a"), "bda"),
        ((..., "d", "a"), "bda"),
        (("d", "b", "a"), "dba"),
        ((Axis("d", 5), ..., Axis("b", 3)), "dab"),
        ((...,), "abd"),
        ({"b": 3, "a": 2, "d": None}, "bad"),
    ],
)
def test_out_axes(out_axes, names):
    a, b = array("abc"), array("cd")
    result = hax.dot(a, b, axis="c", out_axes=out_axes)
    assert result.axis_names == tuple(names)
    np.testing.assert_array_equal(result.array, jnp.einsum(f"abc,cd->{names}", a.array, b.array))


def test_one_out_axis_needs_no_tuple():
    assert hax.dot(array("ab"), array("bc"), axis=("a", "b"), out_axes="c").axis_names == ("c",)


@pytest.mark.parametrize(("operands", "axis", "names"), [c for c in CASES if c[0].count(" ") <= 1])
def test_lowers_to_the_operations_of_einsum(operands, axis, names):
    arrays = [array(n, seed=i) for i, n in enumerate(operands.split(" "))]
    spec = f"{operands.replace(' ', ',')}->{names}"
    ours = compiled_operations(lambda *x: hax.dot(*x, axis=tuple(axis)).array, *arrays)
    plain = compiled_operations(lambda *x: jnp.einsum(spec, *x), *(a.array for a in arrays))
    assert ours == [op for op in plain if "call" not in op]


@pytest.mark.parametrize(
    ("operands", "axis", "out"),
    [
        ("ab bc", "b", "ac"),
        ("ab bc", "b", "ca"),
        ("abc dc", "c", "abd"),
        ("ac abd", "a", "bdc"),
        ("abc abd", "c", "abd"),
    ],
)
def test_plain_layouts_are_one_dot_general(operands, axis, out):
    arrays = [array(n) for n in operands.split(" ")]
    operations = compiled_operations(lambda *x: hax.dot(*x, axis=tuple(axis), out_axes=tuple(out)).array, *arrays)
    assert operations.count("stablehlo.dot_general") == 1
    assert set(operations) <= {"stablehlo.dot_general", "stablehlo.reduce", "stablehlo.add", "stablehlo.constant"}


def test_options_reach_dot_general():
    calls = []

    def dot_general(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None, **kwargs):
        calls.append((lhs.shape, rhs.shape, dimension_numbers, precision, preferred_element_type, kwargs))
        return jax.lax.dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)

    a, b = array("abc"), array("cd")
    result = hax.dot(a, b, axis="c", dot_general=dot_general, precision="highest", preferred_element_type=jnp.float32)
    dimension_numbers = (((2,), (0,)), ((), ()))
    assert calls == [((2, 3, 4), (4, 5), dimension_numbers, "highest", jnp.float32, {})]
    np.testing.assert_array_equal(result.array, a.array @ b.array)


def test_gradient_is_that_of_einsum():
    a, b = array("abc"), array("cbd", seed=1)
    ours = jax.grad(lambda a, b: hax.dot(a, b, axis="c").array.sum(), argnums=(0, 1))(a, b)
    plain = jax.grad(lambda a, b: jnp.einsum("abc,cbd->abd", a, b).sum(), argnums=(0, 1))(a.array, b.array)
    for mine, expected in zip(ours, plain, strict=True):
        np.testing.assert_array_equal(mine.array, expected)


def test_bfloat16_sums_are_accumulated_in_float32():
    ones = NamedArray(jnp.ones(1000, jnp.bfloat16), ("x",))
    assert hax.dot(ones, axis="x").array == jnp.bfloat16(1000)
    assert hax.dot(ones, ones, axis="x").array == jnp.bfloat16(1000)
    assert hax.dot(ones, axis="x", preferred_element_type=jnp.float32).array.dtype == jnp.float32


def test_a_plan_is_made_once():
    arrays = [NamedArray(jnp.ones((2, 2)), (f"{letter}-once", "shared")) for letter in string.ascii_lowercase[:2]]
    traces = []

    @jax.jit
    def f(a, b):
        traces.append(None)
        return hax.dot(a, b, axis="shared")

    for _ in range(3):
        f(*arrays)
    assert len(traces) == 1


A, B = array("ab"), array("bc")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: hax.dot(A, B),
            ValueError,
            "dot: the axes to contract were not given; expected one selection."
            " Pass axis=...; axis=None contracts all axes.",
        ),
        (
            lambda: hax.dot("b", A, B, axis="b"),
            TypeError,
            "dot: argument 0 is a string; expected a NamedArray. The axes to contract are given already.",
        ),
        (lambda: hax.dot(axis="b"), ValueError, "dot: no array was given; expected at least one NamedArray."),
        (
            lambda: hax.dot(NamedArray(jnp.ones(2), ("time",)), B, axis="tiem"),
            ValueError,
            "dot: no axis 'tiem'; the arrays have time=2, b=3, c=4. Did you mean 'time'?",
        ),
        (lambda: hax.dot(A, B, axis=Axis("b", 7)), ValueError, "dot: axis 'b' has size 7; expected 3."),
        (
            lambda: hax.dot(A, NamedArray(jnp.ones((7, 2)), ("b", "c")), axis="b"),
            ValueError,
            "dot: axis 'b' has size 7; expected 3. Arrays must agree on the size of a shared axis.",
        ),
        (
            lambda: hax.dot(A, NamedArray(jnp.ones((7, 3)), ("a", "b")), axis="b"),
            ValueError,
            "dot: axis 'a' has size 7; expected 2. Arrays must agree on the size of a shared axis.",
        ),
        (
            lambda: hax.dot(A, np.ones(3), axis="b"),
            TypeError,
            "dot: argument 1 is a numpy array of shape (3,); expected a NamedArray."
            " Name its axes with haliax.named(array, axes).",
        ),
        (
            lambda: hax.dot(A, 2.0, axis="b"),
            TypeError,
            "dot: argument 1 is a float; expected a NamedArray.",
        ),
        (
            lambda: hax.dot(A, B, axis="b", out_axes=("c",)),
            ValueError,
            "dot: the order (c) has no place for a=2; expected all axes to be named."
            " Name them, or put `...` where they go.",
        ),
        (
            lambda: hax.dot(A, B, axis="b", out_axes=("b", ...)),
            ValueError,
            "dot: no axis 'b'; the axes are a=2, c=4.",
        ),
        (
            lambda: hax.dot(A, B, axis="b", out_axes=(..., Axis("c", 9))),
            ValueError,
            "dot: axis 'c' has size 9; expected 4.",
        ),
    ],
)
def test_messages(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message
