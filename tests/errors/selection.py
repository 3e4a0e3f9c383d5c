"""Choosing by value, sets, matrices and padding."""

import jax.numpy as jnp

import haliax as hax
from errors.arrays import (
    A_DTYPE,
    EMPTY,
    GIVE_EMBED,
    HAS,
    MASK,
    NAME_IT,
    ONE_INSIDE,
    OPERAND,
    OR_SCALAR,
    RAW,
    RAW2,
    ROW,
    SAME_SIZE,
    SCALAR,
    VECTOR,
    B,
    E,
    N,
    T,
    X,
)
from haliax import Axis

CASES = [
    (
        lambda: hax.where(RAW, X, X),
        ValueError,
        f"where: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.where(MASK, X), ValueError, "where: only x was given; expected both x and y, or neither."),
    (
        lambda: hax.where(MASK, X, VECTOR),
        ValueError,
        f"where: axes (batch=2, time=3) and (embed=4); {ONE_INSIDE} {GIVE_EMBED}",
    ),
    (
        lambda: hax.where(MASK),
        ValueError,
        (
            "where: only a condition was given; expected x and y, or fill_value and new_axis. The number "
            "of places must be known in advance: it is a part of the shape."
        ),
    ),
    (lambda: hax.where("a", X, X), TypeError, f"where: an operand is a string; {OR_SCALAR}"),
    (lambda: hax.where(None, X, X), TypeError, f"where: an operand is None; {OR_SCALAR}"),
    (
        lambda: hax.where(MASK, new_axis="e", fill_value=0),
        TypeError,
        "where: the new axis is a string; expected an Axis. Its size is the number of places to look for.",
    ),
    (
        lambda: hax.clip(X, RAW, 1),
        ValueError,
        f"clip: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.clip(X, VECTOR, None),
        ValueError,
        f"clip: axes (batch=2, time=3) and (embed=4); {ONE_INSIDE} {GIVE_EMBED}",
    ),
    (lambda: hax.clip(X, "a", 1), TypeError, f"clip: an operand is a string; {OR_SCALAR}"),
    (
        lambda: hax.nonzero(RAW, size=2),
        TypeError,
        f"nonzero: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nonzero(X, size="a"),
        TypeError,
        ("nonzero: the new axis is a string; expected an Axis. Its size is the number of places to look for."),
    ),
    (
        lambda: hax.nonzero(X, size=-1),
        TypeError,
        "nonzero: the new axis is an int; expected an Axis. Its size is the number of places to look for.",
    ),
    (
        lambda: hax.nonzero(X, size=B, fill_value=RAW),
        ValueError,
        f"nonzero: fill_value is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.top_k(X, "z", 1), ValueError, f"top_k: no axis 'z'; {HAS}."),
    (lambda: hax.top_k(X, "time", 7), ValueError, "top_k: k is 7; expected 0 to the size of the axis, time=3."),
    (lambda: hax.top_k(X, "time", -1), ValueError, "top_k: k is -1; expected 0 to the size of the axis, time=3."),
    (lambda: hax.top_k(X, "time", "a"), TypeError, "top_k: k is a string; expected an integer."),
    (
        lambda: hax.top_k(RAW, "time", 1),
        TypeError,
        f"top_k: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.top_k(X, "time", 1, new_axis="batch"),
        ValueError,
        "top_k: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (lambda: hax.top_k(X, None, 1), TypeError, "top_k: the axis is None; expected an Axis or a name."),
    (lambda: hax.top_k(X, ("batch", "time"), 1), TypeError, "top_k: the axis is a tuple; expected an Axis or a name."),
    (lambda: hax.top_k(X, "time", 1.5), TypeError, "top_k: k is a float; expected an integer."),
    (
        lambda: hax.top_k(X, "time", 2, new_axis=Axis("k", 3)),
        ValueError,
        "top_k: axis 'k' has size 3; expected 2. Its size must be k.",
    ),
    (
        lambda: hax.unique(X, "u"),
        TypeError,
        "unique: Unique is a string; expected an Axis. Its size is a part of the shape of the result.",
    ),
    (
        lambda: hax.unique(X, None),
        TypeError,
        "unique: Unique is None; expected an Axis. Its size is a part of the shape of the result.",
    ),
    (
        lambda: hax.unique(RAW, E),
        TypeError,
        f"unique: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.unique(X, E, axis="z"), ValueError, f"unique: no axis 'z'; {HAS}."),
    (
        lambda: hax.unique(X, Axis("batch", 2), axis="time"),
        ValueError,
        "unique: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (
        lambda: hax.unique(X, E, fill_value=RAW),
        ValueError,
        f"unique: fill_value is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.unique_values(RAW, E),
        TypeError,
        f"unique_values: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.unique_counts(X, "a"),
        TypeError,
        ("unique_counts: Unique is a string; expected an Axis. Its size is a part of the shape of the result."),
    ),
    (lambda: hax.bincount(X, E), ValueError, f"bincount: {HAS}; expected one axis."),
    (lambda: hax.bincount(ROW, E), TypeError, "bincount: the array has dtype float32; expected integers."),
    (
        lambda: hax.bincount(RAW, E),
        TypeError,
        f"bincount: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.bincount(hax.arange(T), 5),
        TypeError,
        "bincount: Counts is an int; expected an Axis. Its size is a part of the shape of the result.",
    ),
    (
        lambda: hax.bincount(hax.arange(T), E, weights=VECTOR),
        ValueError,
        "bincount: the weights have embed=4; expected time=3.",
    ),
    (
        lambda: hax.bincount(hax.arange(T), E, weights=RAW2),
        ValueError,
        "bincount: the weights have shape (2, 3); expected time=3.",
    ),
    (
        lambda: hax.bincount(hax.arange(T), E, minlength="a"),
        TypeError,
        "bincount: minlength is a string; expected an integer.",
    ),
    (lambda: hax.searchsorted(X, 1), ValueError, f"searchsorted: {HAS}; expected one axis."),
    (
        lambda: hax.searchsorted(RAW, 1),
        TypeError,
        f"searchsorted: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.searchsorted(ROW, RAW),
        ValueError,
        f"searchsorted: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.searchsorted(ROW, 1, side="foo"),
        ValueError,
        "searchsorted: side is 'foo'; expected 'left' or 'right'.",
    ),
    (
        lambda: hax.searchsorted(ROW, 1, sorter=VECTOR),
        ValueError,
        "searchsorted: the sorter has embed=4; expected time=3.",
    ),
    (
        lambda: hax.searchsorted(ROW, 1, sorter=ROW),
        TypeError,
        "searchsorted: the sorter has dtype float32; expected integers.",
    ),
    (lambda: hax.searchsorted(ROW, None), TypeError, f"searchsorted: an operand is None; {OR_SCALAR}"),
    (
        lambda: hax.searchsorted(ROW, 1, method="foo"),
        ValueError,
        "searchsorted: method is 'foo'; expected 'scan', 'scan_unrolled', 'sort' or 'compare_all'.",
    ),
    (lambda: hax.tril(X, "batch", "z"), ValueError, f"tril: no axis 'z'; {HAS}."),
    (
        lambda: hax.tril(X, "batch", "batch"),
        ValueError,
        "tril: axis 'batch' occurs more than once in (batch, batch). Rows and columns must be two axes.",
    ),
    (
        lambda: hax.tril(RAW2, "batch", "time"),
        TypeError,
        f"tril: the array is a jax array of shape (2, 3); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.tril(X, "batch", 0), TypeError, "tril: the axis is an int; expected an Axis or a name."),
    (lambda: hax.tril(X, "batch", "time", k="a"), TypeError, "tril: k is a string; expected an integer."),
    (lambda: hax.tril(X, "batch", "time", k=1.5), TypeError, "tril: k is a float; expected an integer."),
    (lambda: hax.triu(ROW, "time", None), TypeError, "triu: the axis is None; expected an Axis or a name."),
    (
        lambda: hax.trace(X, "batch", "batch"),
        ValueError,
        "trace: axis 'batch' occurs more than once in (batch, batch). Rows and columns must be two axes.",
    ),
    (lambda: hax.trace(X, "z", "batch"), ValueError, f"trace: no axis 'z'; {HAS}."),
    (
        lambda: hax.trace(RAW2, 0, 1),
        TypeError,
        f"trace: the array is a jax array of shape (2, 3); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.trace(X, "batch", "time", offset="a"), TypeError, f"trace: offset is a string; {OR_SCALAR}"),
    (lambda: hax.trace(X, "batch", "time", dtype="foo"), TypeError, f"trace: there is no dtype 'foo'; {A_DTYPE}"),
    (lambda: hax.pad(X, {"z": (1, 1)}), ValueError, f"pad: no axis 'z'; {HAS}."),
    (
        lambda: hax.pad(X, {"time": (1, 1, 1)}),
        TypeError,
        ("pad: the width of axis 'time' is a tuple; expected an integer, or a pair of them: before and after."),
    ),
    (
        lambda: hax.pad(X, {"time": (-1, 1)}),
        ValueError,
        ("pad: axis 'time' is to grow by (-1, 1); expected no negative number. Use slice to make an axis shorter."),
    ),
    (
        lambda: hax.pad(X, 1),
        TypeError,
        "pad: pad_width is an int; expected a mapping from axes to numbers before and after.",
    ),
    (
        lambda: hax.pad(X, ((0, 0), (1, 1))),
        TypeError,
        "pad: pad_width is a tuple; expected a mapping from axes to numbers before and after.",
    ),
    (
        lambda: hax.pad(X, {"time": (1, 1)}, mode="foo"),
        ValueError,
        (
            "pad: mode is 'foo'; expected 'constant', 'edge', 'empty', 'linear_ramp', 'maximum', 'mean', "
            "'median', 'minimum', 'reflect', 'symmetric' or 'wrap'."
        ),
    ),
    (
        lambda: hax.pad(X, {"time": (1, 1)}, value="a"),
        TypeError,
        "pad: no option 'value'; expected constant_values in mode 'constant'.",
    ),
    (
        lambda: hax.pad(RAW, {"time": (1, 1)}),
        TypeError,
        f"pad: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.pad_left(X, "z", Axis("z", 5)), ValueError, f"pad_left: no axis 'z'; {HAS}."),
    (
        lambda: hax.pad_left(X, T, Axis("time", 2)),
        ValueError,
        "pad_left: the new axis has size 2; expected at least that of time=3.",
    ),
    (lambda: hax.pad_left(X, T, "time"), TypeError, "pad_left: new_axis is a string; expected an Axis."),
    (
        lambda: hax.pad_left(RAW, T, E),
        TypeError,
        f"pad_left: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.pad_left(X, T, Axis("batch", 5)),
        ValueError,
        "pad_left: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (lambda: hax.pad_left(X, T, Axis("t", 5), value="a"), TypeError, f"pad_left: the value is a string; {OR_SCALAR}"),
    (
        lambda: hax.packbits(X, "time"),
        TypeError,
        "packbits: the array has dtype float32; expected booleans or integers.",
    ),
    (lambda: hax.packbits(N, "z"), ValueError, f"packbits: no axis 'z'; {HAS}."),
    (lambda: hax.unpackbits(X, "time"), TypeError, "unpackbits: the array has dtype float32; expected uint8."),
    (
        lambda: hax.packbits(N, "time", bitorder="foo"),
        ValueError,
        "packbits: bitorder is 'foo'; expected 'big' or 'little'.",
    ),
    (
        lambda: hax.where(MASK, hax.zeros({"time": 5}), 0),
        ValueError,
        "where: axis 'time' has size 5; expected 3. All arrays must agree on the size of a shared axis.",
    ),
    (lambda: hax.clip(None, 0, 1), TypeError, f"clip: an operand is None; {OPERAND}"),
    (
        lambda: hax.clip(X, hax.zeros({"time": 5}), None),
        ValueError,
        "clip: axis 'time' has size 5; expected 3. All arrays must agree on the size of a shared axis.",
    ),
    (lambda: hax.nonzero(SCALAR, size=B), ValueError, "nonzero: the array has no axes; expected at least one."),
    (lambda: hax.top_k(EMPTY, "time", 1), ValueError, "top_k: k is 1; expected 0 to the size of the axis, time=0."),
    (lambda: hax.unique(X, E, fill_value="a"), TypeError, f"unique: fill_value is a string; {OR_SCALAR}"),
    (
        lambda: hax.unique_inverse(X, None),
        TypeError,
        "unique_inverse: Unique is None; expected an Axis. Its size is a part of the shape of the result.",
    ),
    (
        lambda: hax.unique_all(RAW, E),
        TypeError,
        f"unique_all: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.searchsorted(ROW, 1, sorter=3),
        TypeError,
        "searchsorted: the sorter is an int; expected an array with time=3.",
    ),
    (
        lambda: hax.searchsorted(ROW, 1, sorter=RAW2),
        ValueError,
        "searchsorted: the sorter has shape (2, 3); expected time=3.",
    ),
    (
        lambda: hax.triu(X, "batch", "batch"),
        ValueError,
        "triu: axis 'batch' occurs more than once in (batch, batch). Rows and columns must be two axes.",
    ),
    (lambda: hax.triu(X, "batch", "time", k=None), TypeError, "triu: k is None; expected an integer."),
    (
        lambda: hax.trace(X, Axis("batch", 5), "time"),
        ValueError,
        f"trace: axis 'batch' has size 5; expected 2. {SAME_SIZE}",
    ),
    (
        lambda: hax.trace(X, "batch", "time", offset=RAW),
        ValueError,
        f"trace: offset is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.pad(X, {"time": None}),
        TypeError,
        "pad: the width of axis 'time' is None; expected an integer, or a pair of them: before and after.",
    ),
    (
        lambda: hax.pad(X, {"time": (1, 1)}, mode="edg"),
        ValueError,
        (
            "pad: mode is 'edg'; expected 'constant', 'edge', 'empty', 'linear_ramp', 'maximum', 'mean', "
            "'median', 'minimum', 'reflect', 'symmetric' or 'wrap'. Did you mean 'edge'?"
        ),
    ),
    (
        lambda: hax.pad(X, {"time": (1, 1)}, mode="edge", stat_length=3),
        TypeError,
        "pad: no option 'stat_length'; expected none in mode 'edge'.",
    ),
    (
        lambda: hax.pad(X, {Axis("time", 7): (1, 1)}),
        ValueError,
        f"pad: axis 'time' has size 7; expected 3. {SAME_SIZE}",
    ),
    (
        lambda: hax.pad(X, {"time": (1, 1)}, constant_values="a"),
        TypeError,
        "pad: constant_values is a string; expected a number, or one for before and one for after.",
    ),
    (lambda: hax.unpackbits(N, "time"), TypeError, "unpackbits: the array has dtype int32; expected uint8."),
    (
        lambda: hax.unpackbits(N.astype(jnp.uint8), "time", bitorder="middle"),
        ValueError,
        "unpackbits: bitorder is 'middle'; expected 'big' or 'little'.",
    ),
]
