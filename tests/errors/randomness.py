"""Random arrays and keys."""

import haliax as hax
from errors.arrays import (
    A_DTYPE,
    A_KEY,
    ANY_FORM,
    HAS,
    KEY,
    KEYS,
    NAME_IT,
    OR_SCALAR,
    RAW,
    ROW,
    SIZED,
    VECTOR,
    B,
    E,
    T,
    X,
)
from haliax import Axis

CASES = [
    (lambda: hax.random.normal(KEY, "a"), ValueError, f"normal: axis 'a' has no size; {SIZED}"),
    (
        lambda: hax.random.normal(KEY, (2, 3)),
        TypeError,
        "normal: entry 0 of the axes is an int; expected an Axis or a name.",
    ),
    (lambda: hax.random.normal(KEY, None), TypeError, f"normal: the axes are None; {ANY_FORM}"),
    (lambda: hax.random.normal(None, B), TypeError, f"normal: the key is None; {A_KEY}"),
    (lambda: hax.random.normal(0, B), TypeError, f"normal: the key is an int; {A_KEY}"),
    (lambda: hax.random.normal(B, KEY), TypeError, f"normal: the key is an Axis; {A_KEY}"),
    (lambda: hax.random.normal(RAW, B), TypeError, f"normal: the key is a jax array of shape (3,); {A_KEY}"),
    (
        lambda: hax.random.normal(KEYS, B),
        TypeError,
        (
            "normal: the key is an array of random keys of shape (3,); expected a single random key. Map "
            "over keys with haliax.vmap."
        ),
    ),
    (
        lambda: hax.random.normal(KEY, B, dtype=int),
        TypeError,
        "normal: the dtype is int64; jax.random.normal gives no such numbers.",
    ),
    (lambda: hax.random.normal(KEY, B, "foo"), TypeError, f"normal: there is no dtype 'foo'; {A_DTYPE}"),
    (
        lambda: hax.random.uniform(KEY, B, minval=RAW),
        ValueError,
        f"uniform: minval is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.random.uniform(KEY, B, minval=ROW),
        ValueError,
        "uniform: 'minval' has time=3; expected axes among those of the result: batch=2.",
    ),
    (lambda: hax.random.uniform(KEY, B, minval="a"), TypeError, f"uniform: minval is a string; {OR_SCALAR}"),
    (
        lambda: hax.random.uniform(KEY, B, dtype=int),
        TypeError,
        "uniform: the dtype is int64; jax.random.uniform gives no such numbers.",
    ),
    (lambda: hax.random.randint(KEY, B, None, 2), TypeError, f"randint: minval is None; {OR_SCALAR}"),
    (
        lambda: hax.random.randint(KEY, B, 0, 2, dtype=float),
        TypeError,
        "randint: the dtype is float64; jax.random.randint gives no such numbers.",
    ),
    (lambda: hax.random.bernoulli(KEY, B, "a"), TypeError, f"bernoulli: p is a string; {OR_SCALAR}"),
    (
        lambda: hax.random.bernoulli(KEY, B, ROW),
        ValueError,
        "bernoulli: 'p' has time=3; expected axes among those of the result: batch=2.",
    ),
    (lambda: hax.random.bernoulli(KEY, B, 1), TypeError, "bernoulli: p has dtype int32; expected a float."),
    (
        lambda: hax.random.categorical(KEY, RAW, "a"),
        TypeError,
        f"categorical: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.random.categorical(KEY, X, "z"), ValueError, f"categorical: no axis 'z'; {HAS}."),
    (
        lambda: hax.random.categorical(KEY, X, None),
        TypeError,
        "categorical: the axis is None; expected an Axis or a name.",
    ),
    (
        lambda: hax.random.categorical(KEY, X, "time", shape=T),
        ValueError,
        "categorical: the result has time=3; expected axis 'batch' of the logits, too.",
    ),
    (
        lambda: hax.random.categorical(KEY, X, "time", shape=(Axis("batch", 5),)),
        ValueError,
        "categorical: axis 'batch' has size 5; expected 2. The result has the size of the logits.",
    ),
    (lambda: hax.random.categorical(None, X, "time"), TypeError, f"categorical: the key is None; {A_KEY}"),
    (lambda: hax.random.choice(KEY, B, X, "z"), ValueError, f"choice: no axis 'z'; {HAS}."),
    (
        lambda: hax.random.choice(KEY, B, X, "time"),
        ValueError,
        "choice: axis 'batch' occurs more than once in (batch, batch). Rename one of them.",
    ),
    (
        lambda: hax.random.choice(KEY, E, RAW, "time"),
        TypeError,
        f"choice: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.random.choice(KEY, E, X, "time", p=RAW),
        TypeError,
        "choice: p is a jax array of shape (3,); expected a NamedArray with time=3.",
    ),
    (lambda: hax.random.choice(KEY, E, X, "time", p=VECTOR), ValueError, "choice: 'p' has embed=4; expected time=3."),
    (
        lambda: hax.random.choice(KEY, E, ROW, "time", replace=False),
        ValueError,
        "choice: 4 elements of time=3; expected no more than there are without replacement.",
    ),
    (lambda: hax.random.permutation(KEY, X, "z"), ValueError, f"permutation: no axis 'z'; {HAS}."),
    (
        lambda: hax.random.permutation(KEY, RAW, "z"),
        TypeError,
        f"permutation: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.random.ball(KEY, B, B), ValueError, "ball: axis 'batch' occurs more than once in (batch, batch)."),
    (lambda: hax.random.ball(KEY, B, "d"), TypeError, "ball: D is a string; expected an Axis."),
    (lambda: hax.random.ball(KEY, B, T, p="a"), TypeError, f"ball: p is a string; {OR_SCALAR}"),
    (lambda: hax.random.poisson(KEY, B, "a"), TypeError, f"poisson: lam is a string; {OR_SCALAR}"),
    (
        lambda: hax.random.poisson(KEY, B, 1, dtype=float),
        TypeError,
        "poisson: the dtype is float64; jax.random.poisson gives no such numbers.",
    ),
    (lambda: hax.random.beta(KEY, B, 1, None), TypeError, f"beta: b is None; {OR_SCALAR}"),
    (
        lambda: hax.random.gamma(KEY, B, RAW),
        ValueError,
        f"gamma: a is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.random.truncated_normal(KEY, B, "a", 1),
        TypeError,
        f"truncated_normal: lower is a string; {OR_SCALAR}",
    ),
    (lambda: hax.random.rademacher(KEY, None), TypeError, f"rademacher: the axes are None; {ANY_FORM}"),
    (
        lambda: hax.jax_utils.shaped_rng_split(KEY, "a"),
        TypeError,
        "shaped_rng_split: a size is a string; expected an integer.",
    ),
    (
        lambda: hax.jax_utils.shaped_rng_split(KEY, -1),
        ValueError,
        "shaped_rng_split: a size is -1; expected 0 or more.",
    ),
    (lambda: hax.jax_utils.shaped_rng_split(None, 2), TypeError, f"shaped_rng_split: the key is None; {A_KEY}"),
    (
        lambda: hax.jax_utils.maybe_rng_split(KEY, -1),
        ValueError,
        "maybe_rng_split: the number of keys is -1; expected 0 or more.",
    ),
    (
        lambda: hax.random.uniform(KEYS, B),
        TypeError,
        (
            "uniform: the key is an array of random keys of shape (3,); expected a single random key. "
            "Map over keys with haliax.vmap."
        ),
    ),
    (lambda: hax.random.uniform(KEY, ("batch", B)), ValueError, f"uniform: axis 'batch' has no size; {SIZED}"),
    (
        lambda: hax.random.uniform(KEY, (B, B)),
        ValueError,
        "uniform: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (lambda: hax.random.laplace(KEY, 3), TypeError, f"laplace: the axes are an int; {ANY_FORM}"),
    (
        lambda: hax.random.bernoulli(KEY, B, VECTOR),
        ValueError,
        "bernoulli: 'p' has embed=4; expected axes among those of the result: batch=2.",
    ),
    (lambda: hax.random.gumbel(RAW, B), TypeError, f"gumbel: the key is a jax array of shape (3,); {A_KEY}"),
    (
        lambda: hax.random.randint(KEY, B, 0, RAW),
        ValueError,
        f"randint: maxval is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.random.poisson(KEY, B, RAW),
        ValueError,
        f"poisson: lam is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.random.ball(KEY, B, T, p=RAW),
        ValueError,
        f"ball: p is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.random.choice(KEY, E, X, "time", p=hax.zeros({"time": 5})),
        ValueError,
        "choice: 'p' has time=5; expected time=3.",
    ),
    (lambda: hax.random.choice(KEY, E, X, 0), TypeError, "choice: the axis is an int; expected an Axis or a name."),
    (lambda: hax.random.choice(3, E, X, "time"), TypeError, f"choice: the key is an int; {A_KEY}"),
    (
        lambda: hax.random.permutation(KEY, X, 0),
        TypeError,
        "permutation: the axis is an int; expected an Axis or a name.",
    ),
    (lambda: hax.random.permutation(None, X, "time"), TypeError, f"permutation: the key is None; {A_KEY}"),
    (
        lambda: hax.random.permutation(KEY, 5, "time"),
        TypeError,
        f"permutation: the array is an int; expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.random.t(KEY, B, "a"), TypeError, f"t: df is a string; {OR_SCALAR}"),
    (
        lambda: hax.random.weibull_min(KEY, B, VECTOR, 1),
        ValueError,
        "weibull_min: 'scale' has embed=4; expected axes among those of the result: batch=2.",
    ),
    (
        lambda: hax.random.pareto(KEY, B, hax.zeros({"batch": 5})),
        ValueError,
        "pareto: 'b' has batch=5; expected axes among those of the result: batch=2.",
    ),
    (lambda: hax.random.loggamma(KEY, B, None), TypeError, f"loggamma: a is None; {OR_SCALAR}"),
    (
        lambda: hax.jax_utils.shaped_rng_split(KEY, 2.5),
        TypeError,
        "shaped_rng_split: a size is a float; expected an integer.",
    ),
    (lambda: hax.jax_utils.shaped_rng_split(3, 2), TypeError, f"shaped_rng_split: the key is an int; {A_KEY}"),
    (lambda: hax.jax_utils.maybe_rng_split("a", 2), TypeError, f"maybe_rng_split: the key is a string; {A_KEY}"),
]
