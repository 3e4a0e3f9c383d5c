"""`scan`, `fold` and `map` by name against `jax.lax.scan` and against loops."""

import functools
import itertools
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import haliax as hax
from haliax._src.checkpointing import find_closest_divisible_int_to_sqrt
from haliax._src.scan import is_named_or_shaped_array_like
from haliax.axis import make_axes
from helpers import count_traces

L, X, Y = make_axes(l=6, x=3, y=4)


def random(*axes, seed=0):
    sizes = [axis.size for axis in axes]
    return hax.named(jax.random.normal(jax.random.key(seed), sizes), [axis.name for axis in axes])


def step(carry, x):
    carry = hax.sin(carry * x) + 1
    return carry, carry * 2


def raw_step(carry, x):
    carry = jnp.sin(carry * x) + 1
    return carry, carry * 2


close = functools.partial(np.testing.assert_allclose, rtol=1e-6)

OPTIONS = {
    "plain": {},
    "reverse": {"reverse": True},
    "unroll": {"unroll": 3},
    "unroll all": {"unroll": True},
    **{f"remat {how}": {"remat": how} for how in (True, "full", "recompute", "save_all", "nested", "offload")},
    "remat policy": {"remat": hax.ScanCheckpointPolicy(nested=2, save_carries=False, save_inputs=True)},
    "nested reverse unroll": {"remat": "nested", "reverse": True, "unroll": 2},
}
with_options = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


# --- Against jax.lax.scan ---


@with_options
@pytest.mark.parametrize("axis", [L, "l"], ids=["Axis", "name"])
def test_scan(options, axis):
    x, init = random(L, X), random(X, seed=1)
    carry, ys = hax.scan(step, axis, **options)(init, x)
    expected_carry, expected_ys = jax.lax.scan(raw_step, init.array, x.array, reverse=options.get("reverse", False))
    close(carry.array, expected_carry)
    close(ys.array, expected_ys)
    assert (carry.axes, ys.axes) == ((X,), (L, X))


@with_options
def test_fold(options):
    x, init = random(L, X), random(X, seed=1)
    carry = hax.fold(lambda c, x: step(c, x)[0], L, **options)(init, x)
    close(carry.array, jax.lax.scan(raw_step, init.array, x.array, reverse=options.get("reverse", False))[0])


@with_options
def test_map(options):
    x = random(L, X)
    out = hax.map(lambda x: {"y": hax.sin(x)}, L, **options)(x)
    assert out["y"].axes == (L, X)
    close(out["y"].array, np.sin(x.array))


@with_options
def test_gradients(options):
    def loss(init, x, shared):
        carry, ys = hax.scan(lambda c, x: step(c * shared, x), L, **options)(init, x)
        return (hax.sum(carry) + hax.sum(ys)).array

    def raw_loss(init, x, shared):
        carry, ys = jax.lax.scan(lambda c, x: raw_step(c * shared, x), init, x, reverse=options.get("reverse", False))
        return carry.sum() + ys.sum()

    args = random(X, seed=1), random(L, X), random(X, seed=2)
    grads = jax.grad(loss, argnums=(0, 1, 2))(*args)
    expected = jax.grad(raw_loss, argnums=(0, 1, 2))(*(a.array for a in args))
    for got, want, arg in zip(grads, expected, args, strict=True):
        assert got.axes == arg.axes
        np.testing.assert_allclose(got.array, want, rtol=1e-5, atol=1e-6)


# --- Inputs ---


@pytest.mark.parametrize("order", list(itertools.permutations([L, X, Y])), ids=lambda o: "".join(a.name for a in o))
def test_the_axis_may_be_anywhere(order):
    x = random(*order)
    rest = tuple(axis.name for axis in order if axis != L)

    def f(carry, x):
        assert x.axis_names == rest
        return carry, x

    _, ys = hax.scan(f, "l")(0.0, x)
    assert ys.axis_names == ("l", *rest)
    np.testing.assert_array_equal(ys.array, hax.rearrange(x, ("l", *rest)).array)


@settings(max_examples=12)  # each one compiles
@given(st.permutations(["l", "x", "y"]), st.permutations(["l", "x"]), st.booleans())
def test_as_a_loop(names, other_names, reverse):
    sizes = {"l": L, "x": X, "y": Y}
    a, b = random(*[sizes[n] for n in names]), random(*[sizes[n] for n in other_names], seed=1)

    def f(carry, p, *, q):
        carry = carry + hax.sum(p * q, "x")
        return carry, {"carry": carry, "raw": p.array.sum()}

    rows = list(zip(hax.unbind(a, "l"), hax.unbind(b, "l"), strict=True))
    carry, outputs = hax.zeros(Y), []
    for p, q in reversed(rows) if reverse else rows:
        carry, out = f(carry, p, q=q)
        outputs.append(out)
    outputs = outputs[::-1] if reverse else outputs
    got_carry, got = hax.scan(f, L, reverse=reverse)(hax.zeros(Y), a, q=b)
    np.testing.assert_allclose(got_carry.array, carry.array, rtol=1e-5, atol=1e-5)
    assert got["carry"].axes == (L, Y)
    expected = jnp.stack([out["carry"].array for out in outputs])
    np.testing.assert_allclose(got["carry"].array, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got["raw"], jnp.stack([out["raw"] for out in outputs]), rtol=1e-5, atol=1e-5)


def test_what_does_not_run_along_the_axis_is_shared():
    shared = random(X, seed=2)

    def f(carry, x, named, number, rank0, text, how, key, *, none):
        assert (number, text, none) == (2, "s", None)
        assert named.axes == (X,)
        return carry + how(x * named) * number * rank0 + jax.random.normal(key), None

    x = random(L, X)
    args = (shared, 2, jnp.array(3.0), "s", hax.sin, jax.random.key(0))
    carry, _ = hax.scan(f, L)(hax.zeros(X), x, *args, none=None)
    noise = jax.random.normal(jax.random.key(0)) * L.size
    close(carry.array, jnp.sin(x.array * shared.array[None]).sum(0) * 6 + noise, rtol=1e-5)


@pytest.mark.parametrize(
    "xs", [jnp.arange(6.0), np.arange(6.0), jnp.arange(12.0).reshape(6, 2)], ids=["jax", "numpy", "rank 2"]
)
def test_raw_arrays_run_along_their_first_dimension(xs):
    carry, ys = hax.scan(lambda c, x: (c + x.sum(), x), "l")(0.0, xs)
    close(carry, xs.sum())
    close(ys, xs)


@pytest.mark.parametrize(
    "keys", [jax.random.split(jax.random.key(0), 6), jax.random.split(jax.random.PRNGKey(0), 6)], ids=["typed", "raw"]
)
@pytest.mark.parametrize("remat", [False, True, hax.ScanCheckpointPolicy(save_inputs=True), "nested"], ids=str)
def test_keys(keys, remat):
    _, ys = hax.scan(lambda c, k: (c, (jax.random.normal(k), k)), L, remat=remat)(0.0, keys)
    close(ys[0], jax.vmap(jax.random.normal)(keys))
    assert (ys[1] == keys).all()
    close(hax.map(jax.random.normal, L, remat=remat)(keys), ys[0])


IS_SCANNED = {
    "named arrays only": hax.is_named_array,
    "none of rank 1": lambda x: is_named_or_shaped_array_like(x) and x.ndim > 1,
}


@pytest.mark.parametrize("is_scanned", IS_SCANNED.values(), ids=IS_SCANNED)
def test_is_scanned(is_scanned):
    x = random(L, X)
    carry = hax.fold(lambda c, x, raw: c + x * raw.sum(), L, is_scanned=is_scanned)(hax.zeros(X), x, jnp.ones(5))
    close(carry.array, x.array.sum(0) * 5, rtol=1e-5)


@pytest.mark.parametrize("is_scanned", [True, False])
def test_is_scanned_for_all(is_scanned):
    shape = hax.fold(lambda c, x: c + x.ndim, L, is_scanned=is_scanned)(0, random(L, X))
    assert shape == L.size * (1 if is_scanned else 2)


def test_no_inputs():
    carry, ys = hax.scan(lambda c: (c + 1, c), L)(0.0)
    assert carry == 6
    np.testing.assert_array_equal(ys, np.arange(6))
    assert hax.fold(lambda c, none: c + 1, L)(0, None) == 6


def test_map_takes_several_inputs():
    x, shared = random(L, X), random(X, seed=1)
    out = hax.map(lambda a, b, *, c: a * b + c, L)(x, shared, c=jnp.arange(6.0))
    close(out.array, x.array * shared.array[None] + jnp.arange(6.0)[:, None], rtol=1e-5)


# --- Carry and outputs ---


def test_a_carry_may_hold_what_is_no_array():
    init = {"sum": 0.0, "how": hax.sin, "text": "s", "count": 0}

    def f(carry, x):
        assert carry["text"] == "s"
        new = {"sum": carry["sum"] + hax.sum(carry["how"](x)).array, "count": carry["count"] + 1}
        return {**carry, **new}, None

    x = random(L, X)
    carry, _ = hax.scan(f, L)(init, x)
    close(carry["sum"], jnp.sin(x.array).sum(), rtol=1e-5)
    assert (carry["how"], carry["text"], carry["count"]) == (hax.sin, "s", 6)


def test_a_weak_initial_carry_is_promoted():
    assert hax.fold(lambda c, x: c + x, L)(0, jnp.ones(6)).dtype == jnp.float32
    assert hax.fold(lambda c, x: c + x, L)(0.0, jnp.ones(6, jnp.bfloat16)).dtype == jnp.bfloat16


def test_outputs_of_all_kinds():
    named, raw, number, rest = hax.map(lambda x: (x, x.array, 2.0, (None, "s", hax.sin)), L)(random(L, X))
    assert named.axes == (L, X)
    assert raw.shape == (6, 3)
    np.testing.assert_array_equal(number, np.full(6, 2.0))
    assert rest == (None, "s", hax.sin)


class Module(eqx.Module):
    weight: hax.NamedArray
    how: object


def test_modules_run_along_the_axis():
    stacked = Module(random(L, X), hax.sin)

    def f(carry, module):
        return module.how(carry * module.weight)

    close(
        hax.fold(f, L)(random(X, seed=1), stacked).array,
        jax.lax.scan(lambda c, w: (jnp.sin(c * w), None), random(X, seed=1).array, stacked.weight.array)[0],
    )


# --- What it costs ---


def operations(f, *args):
    return sorted(re.findall(r"stablehlo\.\w+", jax.jit(f).lower(*args).as_text()))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2])
def test_lowers_to_the_operations_of_lax_scan(reverse, unroll):
    options = {"reverse": reverse, "unroll": unroll}
    init, x, shared = random(X, seed=1), random(L, X), random(X, seed=2)
    by_name = hax.scan(lambda c, x, s: step(c, x * s), L, **options)
    assert operations(by_name, init, x, shared) == operations(
        lambda init, x, s: jax.lax.scan(lambda c, x: raw_step(c, x * s), init, x, **options),
        init.array,
        x.array,
        shared.array,
    )


def test_one_move_brings_the_axis_to_the_front():
    moved = operations(hax.scan(step, L), random(X, seed=1), random(X, L))
    plain = operations(hax.scan(step, L), random(X, seed=1), random(L, X))
    assert sorted([*plain, "stablehlo.transpose"]) == moved


@pytest.mark.parametrize("remat", [False, True, "nested", "offload"])
def test_one_trace(remat):
    counted = count_traces(step)
    jax.jit(hax.scan(counted, L, remat=remat))(random(X), random(L, X))
    assert counted.traces == 1


def test_name_and_docstring():
    def documented(carry, x):
        """Says what."""
        return carry, x

    for loop in (hax.scan, hax.fold, hax.map):
        assert (loop(documented, L).__name__, loop(documented, L).__doc__) == ("documented", "Says what.")


@pytest.mark.parametrize("n", [*range(1, 40), 48, 64, 96, 97, 100, 1000])
def test_find_closest_divisible_int_to_sqrt(n):
    divisors = [d for d in range(1, n + 1) if n % d == 0]
    assert find_closest_divisible_int_to_sqrt(n) == min(divisors, key=lambda d: abs(d - n**0.5))


# --- Errors ---

REMEDY = "A step must return a carry of the structure, names, shapes and dtypes that it gets."
CARRIES = {
    "named": (0.0, lambda c: hax.named(c, ()), "carry is float32[] with axes () after a step; it was float32[]"),
    "raw": (hax.ones(X), lambda c: c.array, "carry is float32[3] after a step; it was float32[3] with axes (x)"),
    "names": (
        {"h": hax.ones((X, Y))},
        lambda c: {"h": hax.rearrange(c["h"], ("y", "x"))},
        "carry['h'] is float32[4, 3] with axes (y, x) after a step; it was float32[3, 4] with axes (x, y)",
    ),
    "shape": (jnp.ones(2), lambda c: jnp.ones(3), "carry is float32[3] after a step; it was float32[2]"),
    "dtype": (
        (1, jnp.ones(2)),
        lambda c: (c[0], c[1].astype(jnp.bfloat16)),
        "carry[1] is bfloat16[2] after a step; it was float32[2]",
    ),
    "more": ((0.0,), lambda c: (c[0], c[0]), "carry[1] is float32[] after a step; it was nothing"),
    "fewer": ({"a": 0.0, "b": 1}, lambda c: {"a": c["a"]}, "carry['b'] is nothing after a step; it was int32[]"),
    "other object": ([0.0, "s"], lambda c: [c[0], "t"], "carry[1] is another value after a step; it was a string"),
    "an array for an object": (
        [0.0, "s"],
        lambda c: [c[0], c[0]],
        "carry[1] is float32[] after a step; it was a string",
    ),
    "empty": (
        hax.NamedArray(None, ("x",)),
        lambda c: hax.ones(X),
        "carry is float32[3] with axes (x) after a step; it was None with axes (x)",
    ),
}


@pytest.mark.parametrize(("init", "change", "message"), CARRIES.values(), ids=CARRIES)
@pytest.mark.parametrize("remat", [False, True, "nested"])
def test_a_step_that_changes_the_carry(init, change, message, remat):
    with pytest.raises(TypeError) as error:
        hax.fold(lambda c, x: change(c), L, remat=remat)(init, jnp.ones(6))
    assert str(error.value) == f"fold: {message} before. {REMEDY}"


ERRORS = {
    "nothing has it": (
        lambda: hax.scan(step, "l")(0.0, random(X)),
        ValueError,
        "scan: no argument has axis 'l'; expected one that has it, or an Axis with a size.",
    ),
    "other size": (
        lambda: hax.fold(step, hax.Axis("l", 5))(0.0, random(X, L)),
        ValueError,
        "fold: axis 'l' has size 6; expected 5. x has size 6 at dimension 1: its shape is (3, 6).",
    ),
    "two sizes": (
        lambda: hax.map(lambda x, y: x, "l")(random(L), y={"k": jnp.ones(5)}),
        ValueError,
        "map: axis 'l' has size 5; expected 6. y['k'] has leading dimension 5: its shape is (5,).",
    ),
    "one key": (
        lambda: hax.map(jax.random.normal, L)(jax.random.key(0)),
        TypeError,
        "map: args[0] is a single random key; expected one for each place along axis 'l'. Split it with"
        " jax.random.split.",
    ),
    "no pair": (
        lambda: hax.scan(lambda c, x: c, L)(random(X), random(L)),
        ValueError,
        "scan: the result of the function is a NamedArray; expected a pair of the next carry and an output.",
    ),
    "several axes": (
        lambda: hax.scan(step, (L, X))(0.0, random(L, X)),
        TypeError,
        "scan: the axis is a tuple; expected an Axis or a name.",
    ),
    "output has it": (
        lambda: hax.map(lambda x: [x, hax.ones(L)], L)(random(L)),
        ValueError,
        "map: axis 'l' occurs more than once in (l, l). Result [1] has it before this adds it in front: rename one of"
        " them.",
    ),
    "unknown policy": (
        lambda: hax.scan(step, L, remat="bogus")(random(X), random(L)),
        ValueError,
        "ScanCheckpointPolicy: no policy 'bogus'; expected a policy, a bool, or one of 'offload', 'recompute', 'full',"
        " 'save_all', 'nested'.",
    ),
    "nested does not divide": (
        lambda: hax.scan(step, L, remat=hax.ScanCheckpointPolicy(nested=4))(random(X), random(L)),
        ValueError,
        "multilevel_scan: outer_size is 4; expected a divisor of the length 6.",
    ),
    "no root": (
        lambda: find_closest_divisible_int_to_sqrt(0),
        ValueError,
        "find_closest_divisible_int_to_sqrt: n is 0; expected a positive number.",
    ),
}


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message
