"""Choosing elements by position."""

import jax
import jax.numpy as jnp

import haliax as hax
from errors.arrays import HAS, INDICES, MASK, NAME_IT, PAIRS, RAW, RAW2, SAME_SIZE, X
from haliax import Axis

CASES = [
    (lambda: X[0], TypeError, f"index: the index is an int; {PAIRS}"),
    (lambda: X["z", 0], ValueError, f"index: no axis 'z'; {HAS}."),
    (lambda: X["batch"], TypeError, f"index: the index is a string; {PAIRS}"),
    (
        lambda: X["batch", 0, "time"],
        ValueError,
        "index: 3 items were given; expected pairs of an axis and what to take of it.",
    ),
    (lambda: X[None], TypeError, f"index: the index is None; {PAIRS}"),
    (lambda: X["batch", "a"], TypeError, f"index: the index of axis 'batch' is a string; {INDICES}"),
    (lambda: X["batch", 1.5], TypeError, f"index: the index of axis 'batch' is a float; {INDICES}"),
    (lambda: X["batch", None], TypeError, f"index: the index of axis 'batch' is None; {INDICES}"),
    (lambda: X["batch", True], TypeError, f"index: the index of axis 'batch' is a bool; {INDICES}"),
    (
        lambda: X["batch", MASK],
        TypeError,
        (
            "index: the index of axis 'batch' has dtype bool; expected integers. For a mask use "
            "haliax.where, or haliax.nonzero for the places."
        ),
    ),
    (lambda: X["batch", X], TypeError, "index: the index of axis 'batch' has dtype float32; expected integers."),
    (lambda: X["batch", 0, "batch", 1], ValueError, "index: axis 'batch' occurs more than once in (batch, batch)."),
    (lambda: X[("batch", 0), ("time", 1)], TypeError, "index: the axis is a tuple; expected an Axis or a name."),
    (
        lambda: X["batch", 0:1.5],
        TypeError,
        (
            "index: a bound of the slice of axis 'batch' is a float; expected a static integer. For a "
            "traced start use haliax.ds(start, size)."
        ),
    ),
    (lambda: X["batch", ::0], ValueError, "index: the slice of axis 'batch' has step 0; expected another step."),
    (
        lambda: X["batch", hax.ds(RAW.astype(int), 2)],
        ValueError,
        f"index: the dslice of axis 'batch' starts at an unnamed array of shape (3,); expected rank 0. {NAME_IT}",
    ),
    (
        lambda: X["batch", hax.named(jnp.zeros((5,), int), "time")],
        ValueError,
        ("index: axis 'time' has size 5; expected 3. An index along another axis must have the size of this one."),
    ),
    (
        lambda: X["batch", hax.named(jnp.zeros((5,), int), "time"), "time", 0:2],
        ValueError,
        ("index: axis 'time' is sliced, and an axis of an index array; expected one of both. Slice the array first."),
    ),
    (
        lambda: jax.jit(lambda i: X["batch", 0:i])(1),
        TypeError,
        (
            "index: a bound of the slice of axis 'batch' is a traced array of shape (); expected a "
            "static integer. For a traced start use haliax.ds(start, size)."
        ),
    ),
    (lambda: X[Axis("batch", 7), 0], ValueError, f"index: axis 'batch' has size 7; expected 2. {SAME_SIZE}"),
    (lambda: X[:, 0], TypeError, "index: the axis is a slice; expected an Axis or a name."),
    (lambda: X[..., 0], TypeError, "index: the axis is `...`; expected an Axis or a name."),
    (lambda: X[["batch"]], TypeError, f"index: the index is a list; {PAIRS}"),
    (
        lambda: hax.index(RAW, {"a": 0}),
        TypeError,
        f"index: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.take(X, "z", 0), ValueError, f"take: no axis 'z'; {HAS}."),
    (lambda: hax.take(X, "time", 1.5), TypeError, f"take: the index of axis 'time' is a float; {INDICES}"),
    (lambda: hax.take(X, "time", None), TypeError, f"take: the index of axis 'time' is None; {INDICES}"),
    (
        lambda: hax.take(X, "time", RAW),
        TypeError,
        "take: the index of axis 'time' has dtype float32; expected integers.",
    ),
    (lambda: hax.take(X, 0, 0), TypeError, "take: the axis is an int; expected an Axis or a name."),
    (lambda: hax.take(X, ("batch", "time"), 0), TypeError, "take: the axis is a tuple; expected an Axis or a name."),
    (
        lambda: hax.take(RAW, "time", 0),
        TypeError,
        f"take: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.take(X, "time", RAW2.astype(int)),
        ValueError,
        f"take: the index of axis 'time' is an unnamed array of shape (2, 3); expected rank 0 or 1. {NAME_IT}",
    ),
    (lambda: hax.take(X, "time", "a"), TypeError, f"take: the index of axis 'time' is a string; {INDICES}"),
    (
        lambda: X.take("batch", hax.named(jnp.zeros(5, int), "time")),
        ValueError,
        ("take: axis 'time' has size 5; expected 3. An index along another axis must have the size of this one."),
    ),
    (lambda: X["batch", [0.5]], TypeError, "index: the index of axis 'batch' has dtype float64; expected integers."),
    (lambda: X["tiem", 0], ValueError, f"index: no axis 'tiem'; {HAS}. Did you mean 'time'?"),
    (
        lambda: X["batch", "a":2],
        TypeError,
        (
            "index: a bound of the slice of axis 'batch' is a string; expected a static integer. For a "
            "traced start use haliax.ds(start, size)."
        ),
    ),
    (lambda: X["batch", {"a": 1}], TypeError, f"index: the index of axis 'batch' is a dict; {INDICES}"),
]
