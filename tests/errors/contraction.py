"""Contraction."""

import haliax as hax
from errors.arrays import A_DTYPE, A_PRECISION, ANY_FORM, NAME_IT, RAW, ROW, VECTOR, X
from haliax import Axis

CASES = [
    (
        lambda: X @ X,
        ValueError,
        "matmul: `@` was used; expected the axes to contract, by name. Use haliax.dot(a, b, axis=...).",
    ),
    (lambda: hax.dot(X, ROW, axis="z"), ValueError, "dot: no axis 'z'; the arrays have batch=2, time=3."),
    (
        lambda: hax.dot(X, None, axis="time"),
        TypeError,
        "dot: argument 1 is None; expected a NamedArray. The axes to contract are given already.",
    ),
    (
        lambda: hax.dot(X, RAW, axis="time"),
        TypeError,
        f"dot: argument 1 is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.dot(X, 3, axis="time"), TypeError, "dot: argument 1 is an int; expected a NamedArray."),
    (lambda: hax.dot(axis="time"), ValueError, "dot: no array was given; expected at least one NamedArray."),
    (lambda: hax.dot(X, ROW, axis=0), TypeError, f"dot: the axes are an int; {ANY_FORM}"),
    (
        lambda: hax.dot(X, hax.zeros({"time": 5}), axis="time"),
        ValueError,
        "dot: axis 'time' has size 5; expected 3. Arrays must agree on the size of a shared axis.",
    ),
    (
        lambda: hax.dot(X, ROW, axis=("time", "time")),
        ValueError,
        "dot: axis 'time' occurs more than once in (time, time).",
    ),
    (lambda: hax.dot(X, ROW, axis=Axis("time", 7)), ValueError, "dot: axis 'time' has size 7; expected 3."),
    (
        lambda: hax.dot(X, ROW),
        ValueError,
        (
            "dot: the axes to contract were not given; expected one selection. Pass axis=...; axis=None "
            "contracts all axes."
        ),
    ),
    (lambda: hax.dot(X, ROW, axis="time", out_axes=("z",)), ValueError, "dot: no axis 'z'; the axes are batch=2."),
    (
        lambda: hax.dot(X, ROW, axis="time", out_axes=("time",)),
        ValueError,
        "dot: no axis 'time'; the axes are batch=2.",
    ),
    (
        lambda: hax.dot(X, ROW, axis="time", out_axes=("batch", "batch")),
        ValueError,
        "dot: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (
        lambda: hax.dot(X, ROW, axis="time", preferred_element_type="foo"),
        TypeError,
        f"dot: there is no dtype 'foo'; {A_DTYPE}",
    ),
    (
        lambda: hax.dot(X, VECTOR, axis=(), out_axes=("batch",)),
        ValueError,
        (
            "dot: the order (batch) has no place for time=3, embed=4; expected all axes to be named. "
            "Name them, or put `...` where they go."
        ),
    ),
    (
        lambda: hax.dot(X, ROW, axis="time", precision="foo"),
        ValueError,
        f"dot: precision is 'foo'; {A_PRECISION}",
    ),
    (
        lambda: hax.einsum("batch time, time -> batch", X, ROW, precision=3),
        ValueError,
        f"einsum: precision is an int; {A_PRECISION}",
    ),
]
