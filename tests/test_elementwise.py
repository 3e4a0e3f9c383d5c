"""Elementwise operations: all names of the table, broadcasting by name, dtypes, and the programs they lower to."""

import inspect
import pickle
import re
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

import haliax as hax
from strategies import DTYPES, assert_same, named_arrays, spread, sub_arrays, values

UNARY = """
    abs absolute angle arccos arccosh arcsin arcsinh arctan arctanh around bitwise_count bitwise_invert bitwise_not cbrt
    ceil conj conjugate copy cos cosh deg2rad degrees exp exp2 expm1 fabs fix floor i0 imag invert iscomplex isfinite
    isinf isnan isneginf isposinf isreal log log10 log1p log2 logical_not negative positive rad2deg radians real
    reciprocal rint rsqrt sign signbit sin sinc sinh sqrt square tan tanh trunc
""".split()
BINARY = """
    add arctan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
    float_power floor_divide fmax fmin fmod gcd greater greater_equal heaviside hypot lcm left_shift less less_equal
    logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum mod multiply nextafter not_equal power
    remainder right_shift subtract true_divide
""".split()
PAIRS = ["frexp", "modf"]
OTHER = ["divmod", "nan_to_num", "ndim", "round"]

each_op = pytest.mark.parametrize("name", [*UNARY, *BINARY])
each_unary = pytest.mark.parametrize("name", UNARY)
each_binary = pytest.mark.parametrize("name", BINARY)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)

A, B = hax.Axis("a", 2), hax.Axis("b", 3)
SCALAR = jnp.array(2)


def attempt(fn, *args):
    """The result of a call as (dtype, weak type, elements), or that it is refused: JAX is of two minds about how."""
    try:
        result = fn(*args)
    except (TypeError, ValueError):
        return "refused"
    result = result.array if isinstance(result, hax.NamedArray) else result
    return result.dtype, result.weak_type, np.asarray(result).tobytes()


def attempt_type(fn, *args):
    """The dtype and the weak type of a result, which take no compilation, or that it is refused."""
    try:
        result = jax.eval_shape(fn, *args)
    except (TypeError, ValueError):
        return "refused"
    result = result.array if isinstance(result, hax.NamedArray) else result
    return result.dtype, result.weak_type


# what an operation looks like


@each_op
def test_names(name):
    op = getattr(hax, name)
    assert (op.__name__, op.__qualname__, op.__module__) == (name, name, "haliax")
    assert pickle.loads(pickle.dumps(op)) is op


@pytest.mark.parametrize("name", [*UNARY, *BINARY, *PAIRS, *OTHER])
def test_docstrings_have_all_sections(name):
    op = getattr(hax, name)
    sentence, *sections = op.__doc__.split("\n\n")
    assert re.fullmatch(r"[^\n]+\.", sentence)
    assert [section.split("\n")[0] for section in sections] == ["Args:", "Returns:", "Source:"]
    assert [line.split(":")[0].strip() for line in sections[0].split("\n")[1:]] == list(
        inspect.signature(op).parameters
    )
    assert sections[2].endswith(f".{op.__jax__.__name__}`")


@each_unary
def test_unary_signature(name):
    assert list(inspect.signature(getattr(hax, name)).parameters) == ["a"]


@each_binary
def test_binary_signature(name):
    assert list(inspect.signature(getattr(hax, name)).parameters) == ["a", "b"]


# what it computes


@each_op
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.int32])
def test_elements_are_those_of_jax(name, dtype):
    op = getattr(hax, name)
    rng = np.random.default_rng(0)
    raw = [jnp.asarray(values(rng, (2, 3), dtype)) for _ in inspect.signature(op).parameters]
    named = [hax.NamedArray(array, ("a", "b")) for array in raw]
    assert attempt(op, *named) == attempt(op.__jax__, *raw) == attempt(op, *raw)


@each_op
def test_types_are_those_of_jax(name):
    op = getattr(hax, name)
    count = len(inspect.signature(op).parameters)
    for dtypes in [[dtype] * count for dtype in DTYPES] + [[jnp.int8, jnp.bfloat16][:count]]:
        raw = [jnp.ones((2, 3), dtype) for dtype in dtypes]
        named = [hax.NamedArray(array, ("a", "b")) for array in raw]
        assert attempt_type(op, *named) == attempt_type(op.__jax__, *raw), dtypes


@given(named_arrays(), st.sampled_from(["negative", "square", "isnan", "sign", "conj"]))
def test_unary_keeps_names(x, name):
    if x.dtype == bool and name in ("negative", "sign"):
        x = x.astype(jnp.int32)
    result = getattr(hax, name)(x)
    assert result.axis_names == x.axis_names
    assert_same(result, getattr(jnp, name)(x.array))


@given(st.data(), st.sampled_from(["add", "multiply", "equal", "maximum"]), st.booleans())
def test_binary_broadcasts_by_name(data, name, smaller_first):
    x = data.draw(named_arrays(tame=True))
    y = data.draw(sub_arrays(x, tame=True))
    operands = (y, x) if smaller_first else (x, y)
    result = getattr(hax, name)(*operands)

    same_axes = len(x.axis_names) == len(y.axis_names)
    names = operands[0].axis_names if same_axes else x.axis_names
    expected = getattr(jnp, name)(*(jnp.asarray(spread(operand, names)) for operand in operands))
    assert result.axis_names == names
    assert_same(result, expected)


@each_binary
def test_every_binary_op_broadcasts(name):
    op = getattr(hax, name)
    dtype = bool if name.startswith("logical") else jnp.int32
    if name in ("copysign", "heaviside", "nextafter", "logaddexp", "logaddexp2", "hypot", "arctan2"):
        dtype = jnp.float32
    x = jnp.arange(1, 7).reshape(2, 3).astype(dtype)
    y = jnp.array([2, 1, 3]).astype(dtype)
    result = op(hax.named(y, "b"), hax.named(x, ("a", "b")))
    assert result.axis_names == ("a", "b")
    assert_same(result, op.__jax__(y[None], x))


@pytest.mark.parametrize(
    "scalar", [2, 2.5, True, 1j, np.float32(2), np.int8(2), np.float64(1), np.array(3), jnp.array(2)]
)
@pytest.mark.parametrize("op", [hax.add, hax.multiply])
@each_dtype
def test_scalars_promote_as_in_jax(op, scalar, dtype):
    raw = jnp.ones((2, 3), dtype)
    x = hax.NamedArray(raw, ("a", "b"))
    assert attempt_type(lambda x: op(x, scalar), x) == attempt_type(lambda x: op.__jax__(x, scalar), raw)
    assert attempt_type(lambda x: op(scalar, x), x) == attempt_type(lambda x: op.__jax__(scalar, x), raw)


def test_weak_types_survive():
    weak = hax.named(jnp.asarray(2.0), ())
    assert weak.array.weak_type
    assert (hax.ones(A, dtype=jnp.bfloat16) * weak).dtype == jnp.bfloat16


# several results


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_one_array_with_two_results(name):
    raw = jnp.array([[0.25, -3.5, 8], [1, 2, -0.125]])
    results = getattr(hax, name)(hax.named(raw, (A, B)))
    for result, expected in zip(results, getattr(jnp, name)(raw), strict=True):
        assert result.axes == (A, B)
        assert_same(result, expected)
    assert len(getattr(hax, name)(raw)) == 2


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.float32])
def test_divmod(dtype):
    x, y = jnp.arange(-3, 3).reshape(2, 3).astype(dtype), jnp.array([2, -1, 3]).astype(dtype)
    quotient, remainder = hax.divmod(hax.named(x, (A, B)), hax.named(y, B))
    expected = jnp.divmod(x, y[None])
    assert quotient.axes == remainder.axes == (A, B)
    assert_same(quotient, expected[0])
    assert_same(remainder, expected[1])
    assert tuple(map(int, hax.divmod(7, 2))) == (3, 1)


# the rest


@pytest.mark.parametrize("decimals", [0, 1, -1])
def test_round(decimals):
    raw = jnp.array([1.25, 12.5, -3.75])
    assert attempt(hax.round, hax.named(raw, B), decimals) == attempt(jnp.round, raw, decimals)
    assert attempt(hax.round, raw, decimals) == attempt(jnp.round, raw, decimals)


def test_nan_to_num():
    raw = jnp.array([jnp.nan, jnp.inf, -jnp.inf])
    assert hax.nan_to_num(hax.named(raw, B), nan=1, posinf=2, neginf=3).tolist() == [1, 2, 3]
    assert attempt(hax.nan_to_num, hax.named(raw, B)) == attempt(hax.nan_to_num, raw) == attempt(jnp.nan_to_num, raw)


def test_ndim():
    assert hax.ndim(hax.ones((A, B))) == 2
    assert hax.ndim(jnp.ones(3)) == 1
    assert type(hax.ndim(hax.ones(A))) is int


# the programs they lower to

X, Y, ROW, COLUMN = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in [(2, 3), (3, 2), (3,), (2,)])
LAYOUTS = {
    "equal axes": (("a", "b"), X, ("a", "b"), X, lambda f: f),
    "last axis": (("a", "b"), X, ("b",), ROW, lambda f: lambda x, y: f(x, y[None])),
    "first axis": (("a", "b"), X, ("a",), COLUMN, lambda f: lambda x, y: f(x, y[:, None])),
    "another order": (("a", "b"), X, ("b", "a"), Y, lambda f: lambda x, y: f(x, y.T)),
    "smaller first": (("b",), ROW, ("a", "b"), X, lambda f: lambda x, y: f(x[None], y)),
    "no axes": (("a", "b"), X, (), jax.ShapeDtypeStruct((), jnp.float32), lambda f: f),
}


def operations(fn, *args):
    """How often each operation occurs in the program of a function."""
    return Counter(re.findall(r"(?:stablehlo|chlo)\.\w+", jax.jit(fn).lower(*args).as_text()))


@pytest.mark.parametrize("name", ["add", "subtract", "power", "maximum", "floor_divide", "less"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_binary_lowers_to_the_plain_program(name, layout):
    x_names, x, y_names, y, plain = LAYOUTS[layout]
    op = getattr(hax, name)

    def named(x, y):
        return op(hax.NamedArray(x, x_names), hax.NamedArray(y, y_names)).array

    assert operations(named, x, y) == operations(plain(op.__jax__), x, y)


# the layouts they keep


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", ["exp", "negative", "isnan"])
def test_unary_keeps_the_layout(name, jitted, explicit_mesh):
    op = getattr(hax, name)
    with jax.set_mesh(explicit_mesh):
        x = jax.device_put(jnp.ones((8, 4)), jax.P("data", "model"))
        result = (jax.jit(op) if jitted else op)(hax.NamedArray(x, ("a", "b")))
        assert jax.typeof(result.array) == jax.typeof(op.__jax__(x))


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", ["add", "maximum", "less"])
def test_binary_keeps_the_layout(name, jitted, explicit_mesh):
    op = getattr(hax, name)
    with jax.set_mesh(explicit_mesh):
        x = jax.device_put(jnp.ones((8, 4)), jax.P("data", "model"))
        row = jax.device_put(jnp.ones(4), jax.P("model"))
        call = jax.jit(op) if jitted else op
        operands = [(hax.named(x, "a b"), x), (hax.named(row, "b"), row[None]), (hax.named(x.T, "b a"), x), (2, 2)]
        for operand, raw in operands:
            result = call(hax.named(x, "a b"), operand)
            assert jax.typeof(result.array) == jax.typeof(op.__jax__(x, raw))


# errors

x23, x3, y4 = hax.ones((A, B)), hax.ones(B), hax.ones(hax.Axis("b", 4))
q5 = hax.ones(hax.Axis("q", 5))
ERRORS = [
    (
        x23,
        y4,
        ValueError,
        "add: axis 'b' has size 4; expected 3. Both operands must agree on the size of a shared axis.",
    ),
    (
        x3,
        q5,
        ValueError,
        "add: axes (b=3) and (q=5); expected the axes of one to contain those of the other. "
        "Use broadcast_axis to give the first operand 'q' explicitly.",
    ),
    (
        x3,
        jnp.ones(3),
        ValueError,
        "add: an operand is an unnamed array of shape (3,); expected a NamedArray or a scalar. "
        "Name its axes with haliax.named(array, axes).",
    ),
    (x3, "s", TypeError, "add: an operand is a string; expected a NamedArray or a scalar."),
    (x3, None, TypeError, "add: an operand is None; expected a NamedArray or a scalar."),
    (x3, {"b": 1}, TypeError, "add: an operand is a dict; expected a NamedArray or a scalar."),
    (x3, [1, 2, 3], TypeError, "add: an operand is a list; expected a NamedArray or a scalar."),
]


@pytest.mark.parametrize(("a", "b", "kind", "message"), ERRORS)
def test_errors(a, b, kind, message):
    with pytest.raises(kind) as e:
        hax.add(a, b)
    assert str(e.value) == message


@pytest.mark.parametrize("foreign", [jnp.ones(3), "s", None, {"b": 1}], ids=lambda x: type(x).__name__)
def test_errors_do_not_depend_on_the_side(foreign):
    messages = set()
    for operands in [(x3, foreign), (foreign, x3)]:
        with pytest.raises((TypeError, ValueError)) as e:
            hax.subtract(*operands)
        messages.add(str(e.value))
    assert len(messages) == 1
