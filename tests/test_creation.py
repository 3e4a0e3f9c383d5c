"""Making named arrays: the values and dtypes of jax.numpy, under the axes given."""

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

import haliax as hax
from haliax.axis import Axis, make_axes

H, W, D = Axis("H", 2), Axis("W", 3), Axis("D", 4)

shapes = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3), max_size=3)


def check(array, axes, expected):
    """The array has these axes, and the values and the dtype of `expected`."""
    assert array.axes == tuple(axes)
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array.array, expected)


# --- named ---


@pytest.mark.parametrize(
    "names", ["H W", " H  W ", ("H", "W"), ["H", W], (H, W), {"H": 2, "W": 3}, {"H": None, "W": 3}], ids=repr
)
def test_named_takes_names_in_any_form(names):
    array = hax.named(np.arange(6).reshape(2, 3), names)
    check(array, (H, W), jnp.arange(6).reshape(2, 3))
    assert isinstance(array.array, jax.Array)


@pytest.mark.parametrize("name", ["H", H, ("H",), {"H": 2}, {"H": None}], ids=repr)
@pytest.mark.parametrize("data", [[1, 2], (1, 2), np.array([1, 2]), jnp.array([1, 2])], ids=lambda d: type(d).__name__)
def test_named_takes_one_axis_and_data_of_any_kind(data, name):
    check(hax.named(data, name), (H,), jnp.array([1, 2]))


@pytest.mark.parametrize("number", [1.5, True, 3, np.float32(2), np.array(7)], ids=repr)
@pytest.mark.parametrize("names", [(), "", {}], ids=repr)
def test_named_takes_a_number(number, names):
    check(hax.named(number, names), (), jnp.asarray(number))


def test_one_name_may_have_a_space():
    assert hax.named([1, 2], "two words").axes == (Axis("two words", 2),)


def test_named_keeps_what_jax_knows_as_an_array():
    struct = jax.ShapeDtypeStruct((2, 3), jnp.float32)
    assert hax.named(struct, "H W").array is struct
    keys = jax.random.split(jax.random.key(0), 2)
    assert hax.named(keys, "H").array is keys
    assert jax.eval_shape(lambda x: hax.named(x, (H, W)), struct).axes == (H, W)


NAMED_ERRORS = [
    (np.ones(3), Axis("H", 4), "named: axis 'H' has size 4; expected 3. The array has shape (3,)."),
    (np.ones((3, 3)), ("H", "H"), "named: axis 'H' occurs more than once in (H, H). Rename one of them."),
    (np.ones((2, 3)), "H", "named: an array of shape (2, 3) and 1 names (H); expected one name for each dimension."),
]


@pytest.mark.parametrize(("data", "names", "message"), NAMED_ERRORS)
def test_named_errors(data, names, message):
    with pytest.raises(ValueError) as error:
        hax.named(data, names)
    assert str(error.value) == message


def test_a_named_array_is_not_named_again():
    with pytest.raises(TypeError) as error:
        hax.named(hax.ones(H), "W")
    assert str(error.value) == (
        "named: the array is a NamedArray; expected an array without names."
        " Use rename for other names, or rearrange for another order."
    )


# --- one value ---

FILLED = [(hax.zeros, jnp.zeros), (hax.ones, jnp.ones)]
LIKE = [(hax.zeros_like, jnp.zeros_like), (hax.ones_like, jnp.ones_like)]


@pytest.mark.parametrize(("make", "jax_make"), FILLED, ids=["zeros", "ones"])
@given(shape=shapes, dtype=st.sampled_from([None, jnp.int32, "bfloat16", bool]))
def test_zeros_and_ones(make, jax_make, shape, dtype):
    check(make(shape, dtype), make_axes(**shape), jax_make(tuple(shape.values()), dtype))


@pytest.mark.parametrize("shape", [H, (H,), [H], {"H": 2}], ids=repr)
def test_a_shape_has_any_form(shape):
    assert hax.zeros(shape).axes == hax.ones(shape).axes == hax.full(shape, 1).axes == (H,)


@given(shape=shapes, value=st.sampled_from([3, 2.5, True, 1j]), dtype=st.sampled_from([None, jnp.complex64]))
def test_full(shape, value, dtype):
    sizes = tuple(shape.values())
    check(hax.full(shape, value, dtype), make_axes(**shape), jnp.full(sizes, value, dtype))
    check(hax.full(shape, hax.named(value, ()), dtype), make_axes(**shape), jnp.full(sizes, value, dtype))


def test_full_repeats_a_smaller_array_by_name():
    row = hax.arange(W)
    check(hax.full((W, H), row), (W, H), jnp.array([[0, 0], [1, 1], [2, 2]]))
    check(hax.full((H, W), row, jnp.float32), (H, W), jnp.array([[0.0, 1, 2], [0, 1, 2]]))


@pytest.mark.parametrize(("make", "jax_make"), LIKE, ids=["zeros", "ones"])
@pytest.mark.parametrize("dtype", [None, jnp.int8])
def test_like(make, jax_make, dtype):
    raw = jnp.ones((2, 3), jnp.bfloat16)
    check(make(hax.named(raw, "H W"), dtype), (H, W), jax_make(raw, dtype))
    np.testing.assert_array_equal(make(raw, dtype), jax_make(raw, dtype), strict=True)


@pytest.mark.parametrize("dtype", [None, jnp.float32])
@pytest.mark.parametrize("value", [7, 7.5, hax.named(7.5, ())], ids=["int", "float", "named"])
def test_full_like(value, dtype):
    raw = jnp.arange(6).reshape(2, 3)
    number = 7 if isinstance(value, int) else 7.5
    check(hax.full_like(hax.named(raw, "H W"), value, dtype), (H, W), jnp.full_like(raw, number, dtype))
    np.testing.assert_array_equal(hax.full_like(raw, value, dtype), jnp.full_like(raw, number, dtype), strict=True)


# --- ranges ---


@given(
    size=st.integers(0, 5),
    start=st.sampled_from([0, 2, -3, 1.5]),
    step=st.sampled_from([1, 3, -1, 0.5]),
    dtype=st.sampled_from([None, jnp.float32, jnp.int32, jnp.bfloat16]),
)
def test_arange(size, start, step, dtype):
    exact = start + step * np.arange(size)
    expected = jnp.asarray(exact, dtype or jnp.result_type(start, step))
    check(hax.arange(Axis("a", size), start=start, step=step, dtype=dtype), (Axis("a", size),), expected)


def test_arange_over_several_axes_runs_fastest_over_the_last():
    check(hax.arange((H, W)), (H, W), jnp.arange(6).reshape(2, 3))
    check(hax.arange({"H": 2, "W": 3}, start=5), (H, W), jnp.arange(5, 11).reshape(2, 3))
    check(hax.arange(()), (), jnp.array(0))


@pytest.mark.parametrize("start", [jnp.int32(2), hax.named(2, ())], ids=["raw", "named"])
def test_arange_starts_at_an_array(start):
    check(eqx.filter_jit(lambda s: hax.arange(W, start=s, step=s))(start), (W,), jnp.array([2, 4, 6]))


def test_arange_counts_before_it_rounds():
    assert hax.arange(Axis("a", 300), dtype=jnp.bfloat16).array[-1] == jnp.bfloat16(299)


SPACED = [
    (hax.linspace, jnp.linspace, {}),
    (hax.logspace, jnp.logspace, {}),
    (hax.logspace, jnp.logspace, {"base": 2.0}),
    (hax.geomspace, jnp.geomspace, {}),
]


@pytest.mark.parametrize(("make", "jax_make", "options"), SPACED)
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("dtype", [None, jnp.int32])
def test_spaced(make, jax_make, options, endpoint, dtype):
    options = {**options, "endpoint": endpoint, "dtype": dtype}
    for axis in (D, {"D": 4}):
        check(make(axis, start=1, stop=hax.named(9, ()), **options), (D,), jax_make(1, 9, 4, **options))
    assert make("D", start=1, stop=9).axes == (Axis("D", 50),)


# --- from named arrays ---


def test_stack():
    a = hax.arange((H, W))
    b = -a.rearrange(("W", "H"))
    expected = jnp.stack([a.array, b.array.T])
    check(hax.stack("s", [a, b]), (Axis("s", 2), H, W), expected)
    check(hax.stack(Axis("s", 2), (x for x in (a, b))), (Axis("s", 2), H, W), expected)
    check(hax.stack("s", [1.0, hax.named(2.0, ())]), (Axis("s", 2),), jnp.array([1.0, 2.0]))
    check(hax.stack("s", []), (Axis("s", 0),), jnp.zeros(0))


def test_concatenate():
    a, b = hax.arange((H, W)), hax.ones((W, Axis("H", 1)))
    expected = jnp.concatenate([a.array, b.array.T])
    check(hax.concatenate("H", [a, b]), (Axis("H", 3), W), expected)
    check(hax.concatenate(Axis("H", 3), (x for x in (a, b))), (Axis("H", 3), W), expected)
    check(hax.concatenate("H", [a]), (H, W), a.array)
    check(hax.concatenate("H", []), (Axis("H", 0),), jnp.zeros(0))


@pytest.mark.parametrize("axis", ["W", W], ids=repr)
@pytest.mark.parametrize("repeats", [0, 2, [0, 1, 2], np.array([2, 2, 2])], ids=repr)
def test_repeat(axis, repeats):
    a = hax.arange((H, W))
    expected = jnp.repeat(a.array, np.asarray(repeats), axis=1)
    check(hax.repeat(a, np.asarray(repeats), axis), (H, Axis("W", expected.shape[1])), expected)
    if np.ndim(repeats):
        check(hax.repeat(a, hax.named(repeats, "W"), axis), (H, Axis("W", expected.shape[1])), expected)


def test_repeat_of_a_traced_number():
    a = hax.arange((H, W))
    result = jax.jit(lambda n: hax.repeat(a, n, "H", total_repeat_length=5))(jnp.array([1, 2]))
    check(result, (Axis("H", 5), W), jnp.repeat(a.array, jnp.array([1, 2]), 0, total_repeat_length=5))


@pytest.mark.parametrize(
    ("reps", "names", "raw_reps"),
    [
        ({"H": 2}, "H W", (2, 1)),
        ({W: 3, "H": 2}, "H W", (2, 3)),
        ({"H": 0}, "H W", (0, 1)),
        ({"Q": 2, "W": 2}, "Q H W", (2, 1, 2)),
        ({}, "H W", ()),
    ],
    ids=repr,
)
def test_tile(reps, names, raw_reps):
    a = hax.arange((H, W))
    result = hax.tile(a, reps)
    assert result.axis_names == tuple(names.split())
    np.testing.assert_array_equal(result.array, jnp.tile(a.array, raw_reps))


# --- errors ---

HW, HD, W2 = hax.zeros((H, W)), hax.zeros((H, D)), hax.zeros((H, Axis("W", 2)))

ERRORS = [
    (lambda: hax.zeros("a"), "zeros: axis 'a' has no size; expected an Axis, or a mapping from name to size."),
    (lambda: hax.ones((H, H)), "ones: axis 'H' occurs more than once in (H, H)."),
    (
        lambda: hax.full((H, W), jnp.ones(3)),
        "full: the fill value is an unnamed array of shape (3,); expected a NamedArray or a scalar."
        " Name its axes with haliax.named(array, axes).",
    ),
    (lambda: hax.arange(W, start=hax.zeros(H)), "arange: start has H=2; expected a scalar."),
    (lambda: hax.linspace((H, W), start=0, stop=1), "linspace: 2 axes were given; expected one axis."),
    (
        lambda: hax.stack("s", [HW, HD]),
        "stack: one array has H=2, W=3 and another H=2, D=4; expected the same axes.",
    ),
    (
        lambda: hax.stack("H", [HW, HW]),
        "stack: axis 'H' occurs more than once in (H, H, W). Use concatenate to join arrays along an axis that they"
        " have.",
    ),
    (
        lambda: hax.stack(Axis("s", 3), [HW, HW]),
        "stack: axis 's' has size 3; expected 2. There must be one array for each index.",
    ),
    (
        lambda: hax.concatenate("H", [HW, W2]),
        "concatenate: one array has H=2, W=3 and another H=2, W=2; expected the same axes but for the size of 'H'.",
    ),
    (lambda: hax.concatenate("W", [HW, HD]), "concatenate: no axis 'W'; the array has H=2, D=4."),
    (
        lambda: hax.concatenate(Axis("H", 5), [HW, HW]),
        "concatenate: axis 'H' has size 5; expected 4. The sizes of the arrays must add up to it.",
    ),
    (lambda: hax.repeat(HW, 2, "Q"), "repeat: no axis 'Q'; the array has H=2, W=3."),
    (lambda: hax.repeat(HW, hax.ones(W), "H"), "repeat: the counts have W=3; expected H=2, or no axes."),
    (
        lambda: hax.tile(HW, {Axis("H", 3): 2}),
        "tile: axis 'H' has size 3; expected 2. An Axis must have the size that the array has.",
    ),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message.split(";")[0] for _, message in ERRORS])
def test_errors(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("call", "given"),
    [
        (lambda: hax.concatenate("H", [jnp.ones(2)]), "concatenate: the array is a jax array of shape (2,)"),
        (lambda: hax.repeat(np.ones(2), 2, "H"), "repeat: the array is a numpy array of shape (2,)"),
        (lambda: hax.tile([1, 2], {"H": 2}), "tile: the array is a list"),
    ],
)
def test_arrays_without_names_are_refused(call, given):
    with pytest.raises(TypeError) as error:
        call()
    assert str(error.value) == f"{given}; expected a NamedArray. Name its axes with haliax.named(array, axes)."


def test_sizes_may_be_symbolic():
    (n,) = jax.export.symbolic_shape("n")
    exported = jax.export.export(jax.jit(lambda a: hax.named(a, "n") + hax.zeros({"n": a.shape[0]})))
    assert exported(jax.ShapeDtypeStruct((n,), jnp.float32)).out_avals[0].shape == (n,)
