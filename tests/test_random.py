"""Random arrays by axes: the numbers are those of `jax.random` for the same key and sizes."""

import jax
import jax.numpy as jnp
import jax.random as jrandom
import numpy as np
import pytest

import haliax as hax
from haliax import Axis, NamedArray

B, C, D = Axis("b", 2), Axis("c", 3), Axis("d", 4)
KEYS = [jrandom.PRNGKey(3), jrandom.key(3)]
each_key = pytest.mark.parametrize("key", KEYS, ids=["raw", "typed"])


def named(names: str, values) -> NamedArray:
    return NamedArray(jnp.asarray(values), tuple(names))


ROW, COLUMN = named("c", [1.0, 2.0, 3.0]), named("b", [0.25, 0.5])
SWAPPED = named("cb", np.arange(1.0, 7.0, dtype=np.float32).reshape(3, 2))

STANDARD = ["normal", "rademacher", "exponential", "cauchy", "gumbel", "laplace", "logistic", "uniform"]

# a distribution, and sets of parameters for it
PARAMETERS = [
    ("uniform", {"minval": -2, "maxval": 3.0}),
    ("uniform", {"minval": COLUMN, "maxval": ROW}),
    ("uniform", {"maxval": SWAPPED}),
    ("randint", {"minval": 0, "maxval": 10}),
    ("randint", {"minval": named("b", [0, 5]), "maxval": named("c", [10, 20, 30])}),
    ("truncated_normal", {"lower": -1.0, "upper": 1.5}),
    ("truncated_normal", {"lower": COLUMN, "upper": SWAPPED}),
    ("bernoulli", {"p": 0.3}),
    ("bernoulli", {"p": COLUMN}),
    ("beta", {"a": ROW, "b": COLUMN}),
    ("gamma", {"a": SWAPPED}),
    ("loggamma", {"a": ROW}),
    ("pareto", {"b": 2.0}),
    ("pareto", {"b": COLUMN}),
    ("poisson", {"lam": ROW}),
    ("t", {"df": 3.0}),
    ("weibull_min", {"scale": 1.0, "concentration": 2.0}),
    ("weibull_min", {"scale": COLUMN, "concentration": ROW}),
    ("uniform", {"maxval": NamedArray(jnp.float32(3), ())}),
]


def broadcast(value):
    """A parameter as an array of shape (b, c)."""
    if not isinstance(value, NamedArray):
        return jnp.full((2, 3), value)
    dims = [value.axis_names.index(n) for n in "bc" if n in value.axis_names]
    shape = [n if name in value.axis_names else 1 for name, n in (("b", 2), ("c", 3))]
    return jnp.broadcast_to(jnp.transpose(value.array, dims).reshape(shape), (2, 3))


def assert_same(result, expected, names="bc"):
    assert result.axis_names == tuple(names)
    assert result.array.dtype == expected.dtype
    np.testing.assert_array_equal(result.array, expected)


@each_key
@pytest.mark.parametrize("name", STANDARD)
def test_standard_distributions(name, key):
    assert_same(getattr(hax.random, name)(key, (B, C)), getattr(jrandom, name)(key, (2, 3), float))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("name", STANDARD)
def test_dtype(name, dtype):
    assert_same(getattr(hax.random, name)(KEYS[0], (B, C), dtype), getattr(jrandom, name)(KEYS[0], (2, 3), dtype))


@pytest.mark.parametrize(("name", "params"), PARAMETERS)
def test_parameters_are_broadcast_by_name(name, params):
    raw = {param: broadcast(value) for param, value in params.items()}
    assert_same(
        getattr(hax.random, name)(KEYS[0], (B, C), **params), getattr(jrandom, name)(KEYS[0], shape=(2, 3), **raw)
    )


@pytest.mark.parametrize(
    ("shape", "names", "sizes"),
    [(B, "b", (2,)), ((), "", ()), ({"b": 2, "c": 3}, "bc", (2, 3)), ([C, B], "cb", (3, 2))],
)
def test_ways_to_give_axes(shape, names, sizes):
    assert_same(hax.random.normal(KEYS[0], shape), jrandom.normal(KEYS[0], sizes), names)


def test_ball():
    assert_same(hax.random.ball(KEYS[0], (B, C), D, p=1.0), jrandom.ball(KEYS[0], 4, 1.0, (2, 3)), "bcd")


LOGITS = named("bcd", np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_categorical(axis):
    name, rest = "bcd"[axis], "bcd".replace("bcd"[axis], "")
    assert_same(hax.random.categorical(KEYS[0], LOGITS, name), jrandom.categorical(KEYS[0], LOGITS.array, axis), rest)
    more = (Axis("n", 5), *(ax for ax in (B, C, D) if ax.name != name))
    sizes = tuple(ax.size for ax in more)
    assert_same(
        hax.random.categorical(KEYS[0], LOGITS, Axis(name, LOGITS.array.shape[axis]), more),
        jrandom.categorical(KEYS[0], LOGITS.array, axis, sizes),
        "n" + rest,
    )


def test_categorical_takes_axes_in_any_order():
    """Where `jax.random` has no word for the order, each line still follows its own logits."""
    certain = named("bd", np.where(np.eye(2, 4), 0.0, -np.inf))
    result = hax.random.categorical(KEYS[0], certain, "d", (B, C))
    assert_same(result, jnp.array([[0, 0, 0], [1, 1, 1]], jnp.int32))


@pytest.mark.parametrize("p", [None, named("d", [0.1, 0.2, 0.3, 0.4])])
def test_choice(p):
    a = named("d", [10, 20, 30, 40])
    raw = None if p is None else p.array
    assert_same(hax.random.choice(KEYS[0], (B, C), a, D, p=p), jrandom.choice(KEYS[0], a.array, (2, 3), p=raw))
    expected = jrandom.choice(KEYS[0], a.array, (3,), replace=False, p=raw)
    assert_same(hax.random.choice(KEYS[0], C, a, "d", replace=False, p=p), expected, "c")


@pytest.mark.parametrize(("axis", "names"), [("b", "xyc"), ("c", "bxy")])
def test_choice_of_slices_puts_the_new_axes_in_place(axis, names):
    a = named("bc", np.arange(6).reshape(2, 3))
    result = hax.random.choice(KEYS[0], (Axis("x", 2), Axis("y", 5)), a, axis)
    assert_same(result, jrandom.choice(KEYS[0], a.array, (2, 5), axis="bc".index(axis)), names)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_permutation(axis, independent):
    x = named("bc", np.arange(6).reshape(2, 3))
    result = hax.random.permutation(KEYS[0], x, "bc"[axis], independent=independent)
    assert_same(result, jrandom.permutation(KEYS[0], x.array, axis, independent))


def test_gradients_reach_parameters():
    def total(high):
        return hax.random.uniform(KEYS[0], (B, C), maxval=high).array.sum()

    expected = jrandom.uniform(KEYS[0], (2, 3)).sum(axis=0)
    np.testing.assert_allclose(jax.grad(total)(ROW).array, expected, rtol=1e-6)


R = hax.random
A = named("d", [1, 2, 3, 4])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda k: R.normal(k, ("b", C)), ValueError, "normal: axis 'b' has no size; expected an Axis"),
        (lambda k: R.normal(k, (B, B)), ValueError, "normal: axis 'b' occurs more than once in (b, b)."),
        (
            lambda k: R.uniform(k, (B, C), minval=named("d", np.ones(4))),
            ValueError,
            "uniform: 'minval' has d=4; expected axes among those of the result: b=2, c=3.",
        ),
        (
            lambda k: R.gamma(k, (B, C), named("c", np.ones(7))),
            ValueError,
            "gamma: 'a' has c=7; expected axes among those of the result: b=2, c=3.",
        ),
        (
            lambda k: R.bernoulli(k, (B, C), np.ones(3)),
            ValueError,
            "bernoulli: p is an unnamed array of shape (3,)",
        ),
        (lambda k: R.ball(k, (B, C), C), ValueError, "ball: axis 'c' occurs more than once in (b, c, c)."),
        (
            lambda k: R.categorical(k, LOGITS, "e"),
            ValueError,
            "categorical: no axis 'e'; the array has b=2, c=3, d=4.",
        ),
        (
            lambda k: R.categorical(k, LOGITS, "d", (B,)),
            ValueError,
            "categorical: the result has b=2; expected axis 'c' of the logits, too.",
        ),
        (
            lambda k: R.categorical(k, LOGITS, "d", (B, Axis("c", 1))),
            ValueError,
            "categorical: axis 'c' has size 1; expected 3. The result has the size of the logits.",
        ),
        (
            lambda k: R.categorical(k, np.ones(3), "d"),
            TypeError,
            "categorical: the array is a numpy array of shape (3,)",
        ),
        (lambda k: R.choice(k, B, 4, "d"), TypeError, "choice: the array is an int"),
        (
            lambda k: R.choice(k, B, LOGITS, "d"),
            ValueError,
            "choice: axis 'b' occurs more than once in (b, c, b). Rename one of them.",
        ),
        (
            lambda k: R.choice(k, B, A, "d", p=np.ones(4)),
            TypeError,
            "choice: p is a numpy array of shape (4,); expected a NamedArray with d=4.",
        ),
        (lambda k: R.choice(k, B, A, "d", p=ROW), ValueError, "choice: 'p' has c=3; expected d=4."),
        (lambda k: R.permutation(k, A, Axis("d", 9)), ValueError, "permutation: axis 'd' has size 9; expected 4."),
    ],
)
def test_messages(call, error, message):
    with pytest.raises(error) as raised:
        call(KEYS[0])
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("key", KEYS, ids=["raw", "typed"])
def test_a_key_may_be_in_a_named_array(key):
    held = hax.named(key, ()) if key.ndim == 0 else key
    for draw in (lambda k: R.normal(k, B), lambda k: R.categorical(k, LOGITS, "d"), lambda k: R.choice(k, B, A, "d")):
        np.testing.assert_array_equal(draw(held).array, draw(key).array)


def test_keys_of_a_named_array_are_mapped_over():
    keys = hax.named(jax.random.split(KEYS[1], 2), B)
    drawn = hax.vmap(lambda k: R.normal(k, Axis("d", 4)), B)(keys)
    np.testing.assert_allclose(drawn["b", 1].array, jax.random.normal(keys.array[1], (4,)))
