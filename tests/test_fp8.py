"""Contractions in 8-bit floating point: values, gradients and state against float32 and a model in numpy."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from haliax._src import fp8

E4M3, E5M2 = jnp.float8_e4m3fn, jnp.float8_e5m2
LARGEST = {E4M3: 448.0, E5M2: 57344.0}
# half of the distance of two neighbours, relative to them
ROUNDING = {E4M3: 2**-4, E5M2: 2**-3}
ONE = jnp.ones(1)


def state(steps=4, **histories):
    """Scales of 1, and empty histories but for those given."""
    names = "lhs", "rhs", "grad"
    scales = {f"{name}_scale": ONE for name in names}
    empty = {f"{name}_amax_history": jnp.zeros(steps) for name in names}
    return scales | empty | {f"{name}_amax_history": jnp.asarray(h) for name, h in histories.items()}


# scales --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
def test_the_largest_number(dtype):
    largest = fp8.get_fp8_max(dtype, jnp.bfloat16)
    assert largest.dtype == jnp.bfloat16 and float(fp8.get_fp8_max(dtype, jnp.float32)) == LARGEST[dtype]


@pytest.mark.parametrize(
    ("amax", "scale", "margin", "expected"),
    [
        (3.0, 1.0, 0, 3 / 448),
        (3.0, 1.0, 1, 6 / 448),
        (900.0, 2.0, 0, 900 / 448),
        (0.0, 1.5, 0, 1.5),
        (np.inf, 1.5, 0, 1.5),
        (np.nan, 1.5, 2, 1.5),
    ],
)
def test_scales(amax, scale, margin, expected):
    found = fp8.compute_scale(jnp.float32(amax), jnp.full(1, scale), jnp.float32(448), margin)
    np.testing.assert_allclose(found, [expected], rtol=1e-6)


def test_a_history_rolls():
    history = jnp.asarray([3.0, 2.0, 1.0, 0.5])
    assert fp8.compute_amax_history(jnp.asarray([1.0, -9.0]), history).tolist() == [9.0, 1.0, 0.5, 3.0]
    assert fp8.compute_amax_history(jnp.zeros((0, 2)), history).tolist() == [0.0, 1.0, 0.5, 3.0]
    assert fp8.compute_amax_history(jnp.asarray(2.0, jnp.bfloat16), history).dtype == jnp.float32


def test_a_scale_knows_nothing_of_its_own_step():
    scale, history = fp8.update_fp8_meta(jnp.asarray([900.0]), E4M3, ONE, jnp.asarray([3.0, 0.0]))
    np.testing.assert_allclose(scale, [3 / 448], rtol=1e-6)
    assert history.tolist() == [900.0, 3.0]


# rounding ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
@pytest.mark.parametrize("compute", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("scale", [jnp.float32(0.5), jnp.full(1, 0.5)], ids=["scalar", "vector"])
def test_rounding(dtype, compute, scale):
    x = np.random.default_rng(0).normal(size=(64,)).astype(np.float32)
    quantized = fp8.quantize(jnp.asarray(x), dtype, scale, compute)
    assert quantized.dtype == dtype and quantized.shape == x.shape
    back = fp8.dequantize(quantized, jnp.float32, scale)
    # bfloat16 rounds once more; numbers below the normal ones lose more
    bound = ROUNDING[dtype] + (2**-8 if compute == jnp.bfloat16 else 0)
    np.testing.assert_allclose(back, x, rtol=bound, atol=2**-7)


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
def test_what_is_out_of_range_becomes_the_largest_number(dtype):
    far = jnp.asarray([1e6, -1e6, jnp.inf, -jnp.inf])
    largest = LARGEST[dtype]
    assert fp8.quantize(far, dtype, ONE, jnp.float32).astype(jnp.float32).tolist() == [
        largest,
        -largest,
        largest,
        -largest,
    ]


# contractions --------------------------------------------------------------------------------------------------------

DIMENSIONS = {
    "matrix": ((4, 3), (3, 5), (((1,), (0,)), ((), ()))),
    "transposed": ((3, 4), (5, 3), (((0,), (1,)), ((), ()))),
    "vector": ((3,), (3, 5), (((0,), (0,)), ((), ()))),
    "batched": ((2, 4, 3), (2, 3, 5), (((2,), (1,)), ((0,), (0,)))),
    "two contracted, crossed": ((4, 3, 2), (2, 3, 5), (((1, 2), (1, 0)), ((), ()))),
    "batches in the middle": ((4, 2, 3, 6), (3, 6, 5, 2), (((2,), (0,)), ((1, 3), (3, 1)))),
    "outer": ((4,), (5,), (((), ()), ((), ()))),
    "lists": ((4, 3), (3, 5), [[[1], [0]], [[], []]]),
}


@pytest.mark.parametrize("name", DIMENSIONS)
def test_values_and_gradients(name):
    """All are those of float32, but for the rounding of what is multiplied."""
    lhs_shape, rhs_shape, dims = DIMENSIONS[name]
    rng = np.random.default_rng(1)
    lhs, rhs = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in (lhs_shape, rhs_shape))

    def plain(lhs, rhs):
        return jax.lax.dot_general(lhs, rhs, dims)

    # scales that fit, from a step that was like this one
    start = state(lhs=[4.0], rhs=[4.0], grad=[4.0])
    out, of_operands = jax.vjp(lambda lhs, rhs: fp8.fp8_scaled_dot_general(lhs, rhs, dims, **start), lhs, rhs)
    expected, plain_of_operands = jax.vjp(plain, lhs, rhs)
    g = jnp.asarray(rng.normal(size=out.shape), jnp.float32)

    assert out.shape == expected.shape and out.dtype == jnp.float32
    magnitudes = jax.lax.dot_general(jnp.abs(lhs), jnp.abs(rhs), dims)
    assert bool(jnp.all(jnp.abs(out - expected) <= magnitudes * 2.2 * ROUNDING[E4M3] + 1e-2))
    for mine, theirs in zip(of_operands(g), plain_of_operands(g), strict=True):
        assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
        scale = float(jnp.linalg.norm(theirs))
        assert float(jnp.linalg.norm(mine - theirs)) <= scale * (ROUNDING[E4M3] + ROUNDING[E5M2])


@pytest.mark.parametrize("name", DIMENSIONS)
def test_transposes(name):
    """In float32 the two transposed contractions are the derivatives of the contraction."""
    lhs_shape, rhs_shape, dims = DIMENSIONS[name]
    rng = np.random.default_rng(2)
    lhs, rhs = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in (lhs_shape, rhs_shape))
    out, vjp = jax.vjp(lambda lhs, rhs: jax.lax.dot_general(lhs, rhs, dims), lhs, rhs)
    g = jnp.asarray(rng.normal(size=out.shape), jnp.float32)
    options = {"dimension_numbers": dims, "precision": None, "preferred_element_type": jnp.float32}
    of_lhs, of_rhs = vjp(g)
    np.testing.assert_allclose(fp8.dot_general_transpose_lhs(g, lhs, rhs, **options), of_lhs, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(fp8.dot_general_transpose_rhs(g, lhs, rhs, **options), of_rhs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("preferred", [None, jnp.float32, jnp.bfloat16])
def test_dtypes(dtype, preferred):
    lhs, rhs = jnp.ones((2, 3), dtype), jnp.ones((3, 4), dtype)
    dims = DIMENSIONS["matrix"][2]
    out, vjp = jax.vjp(
        lambda lhs, rhs: fp8.fp8_scaled_dot_general(
            lhs, rhs, dims, None, preferred, quantize_compute_type=dtype, **state()
        ),
        lhs,
        rhs,
    )
    assert out.dtype == (preferred or dtype) and out.tolist() == [[3.0] * 4] * 2
    assert [g.dtype for g in vjp(jnp.ones_like(out))] == [dtype, dtype]


def test_what_is_multiplied_has_8_bits():
    """Forward and backward, so that hardware for it can be used."""
    lhs, rhs = jnp.ones((4, 3)), jnp.ones((3, 5))
    dims = DIMENSIONS["matrix"][2]

    def loss(lhs, rhs):
        return fp8.fp8_scaled_dot_general(lhs, rhs, dims, **state()).sum()

    text = jax.jit(jax.value_and_grad(loss, (0, 1))).lower(lhs, rhs).as_text()
    dots = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
    assert len(dots) == 3
    assert all(line.count("f8E") == 2 and line.rstrip().endswith("f32>") for line in dots)
    assert sum("f8E5M2" in line for line in dots) == 2


# the state -----------------------------------------------------------------------------------------------------------


def next_state(scale, history, x, dtype):
    """A model of delayed scaling in numpy."""
    amax = np.float32(history.max())
    scale = np.float32(amax / LARGEST[dtype]) if np.isfinite(amax) and amax > 0 else scale
    history = np.roll(history, -1)
    history[0] = np.abs(x).max()
    return scale, history


@jax.jit
def one_step(state, lhs, rhs, g):
    def fn(state, lhs, rhs):
        return fp8.fp8_scaled_dot_general(lhs, rhs, DIMENSIONS["matrix"][2], **state)

    return jax.vjp(fn, state, lhs, rhs)[1](g)[0]


@given(steps=st.sampled_from([1, 3]), seed=st.integers(0, 2**16), count=st.integers(1, 6))
@settings(max_examples=50, deadline=None)
def test_the_state_over_steps(steps, seed, count):
    rng = np.random.default_rng(seed)
    names, dtypes = ("lhs", "rhs", "grad"), (E4M3, E4M3, E5M2)
    found = state(steps)
    model = {name: (np.float32(1), np.zeros(steps, np.float32)) for name in names}

    for _ in range(count):
        shapes = (2, 3), (3, 2), (2, 2)
        lhs, rhs, g = (np.float32(rng.normal(size=s) * 10.0 ** rng.integers(-3, 4)) for s in shapes)
        found = one_step(found, lhs, rhs, g)
        for name, dtype, x in zip(names, dtypes, (lhs, rhs, g), strict=True):
            model[name] = next_state(*model[name], x, dtype)
    for name in names:
        scale, history = model[name]
        np.testing.assert_allclose(found[f"{name}_scale"], [scale], rtol=1e-6)
        np.testing.assert_allclose(found[f"{name}_amax_history"], history, rtol=1e-6)


def test_one_history_entry():
    """The roll of one entry is that entry, which the new one takes the place of."""
    assert fp8.compute_amax_history(jnp.asarray([5.0]), jnp.asarray([7.0])).tolist() == [5.0]


def test_rules_by_themselves():
    """What JAX calls to differentiate: none for what is rounded, next values for the state."""
    x, history = jnp.asarray([1.0, -2.0]), jnp.asarray([3.0, 0.0])
    (quantized, scale), residual = fp8.in_q_fwd(jnp.float32, E4M3, x, ONE, history)
    again, same = fp8.in_q(jnp.float32, E4M3, x, ONE, history)
    assert quantized.tolist() == again.tolist() and scale.tolist() == same.tolist()
    none, new_scale, new_history = fp8.in_q_bwd(jnp.float32, E4M3, residual, None)
    assert none is None and new_scale.tolist() == scale.tolist() and new_history.tolist() == [2.0, 3.0]

    out, nothing = fp8.out_dq_fwd(jnp.bfloat16, jnp.full(1, 2.0), jnp.full(1, 3.0), x)
    assert (out.dtype, out.tolist(), nothing) == (jnp.bfloat16, [6.0, -12.0], None)
    assert fp8.out_dq(jnp.float32, jnp.full(1, 2.0), jnp.full(1, 3.0), x).tolist() == [6.0, -12.0]
    *nones, g = fp8.out_dq_bwd(jnp.bfloat16, None, jnp.ones(2, jnp.bfloat16))
    assert nones == [None, None] and g.dtype == jnp.float32

    q = jnp.asarray(ml_dtypes.float8_e4m3fn(2)).reshape(1, 1)
    dims = DIMENSIONS["matrix"][2]
    arguments = jnp.ones((1, 1)), q, ONE, jnp.ones((1, 1)), q, ONE, ONE, history
    assert fp8.quantized_dot(*arguments, dims).tolist() == [[4.0]]
    out, residual = fp8.quantized_dot_fwd(*arguments, dims, None, E5M2)
    found = fp8.quantized_dot_bwd(dims, None, E5M2, residual, jnp.ones((1, 1)))
    np.testing.assert_allclose(found[0], [[2.0]], rtol=0.1)
    assert [x is None for x in found] == [False, True, True, False, True, True, False, False]
