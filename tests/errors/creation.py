"""Arrays from data, values, ranges and other arrays."""

import jax
import jax.numpy as jnp

import haliax as hax
from errors.arrays import (
    A_DTYPE,
    ANY_FORM,
    GIVE_EMBED,
    HAS,
    NAME_IT,
    ONE_INSIDE,
    OPERAND,
    OR_SCALAR,
    RAW,
    RAW2,
    ROW,
    SAME_SIZE,
    SIZED,
    VECTOR,
    B,
    E,
    N,
    T,
    X,
)
from haliax import Axis

CASES = [
    (lambda: hax.named(RAW, 0), TypeError, f"named: the axes are an int; {ANY_FORM}"),
    (lambda: hax.named(RAW, None), TypeError, f"named: the axes are None; {ANY_FORM}"),
    (
        lambda: hax.named(None, "a"),
        TypeError,
        "named: the array is None; expected an array, a number or nested lists of numbers.",
    ),
    (
        lambda: hax.named(RAW, ("a", "b")),
        ValueError,
        "named: an array of shape (3,) and 2 names (a, b); expected one name for each dimension.",
    ),
    (
        lambda: hax.named(RAW2, "a"),
        ValueError,
        "named: an array of shape (2, 3) and 1 names (a); expected one name for each dimension.",
    ),
    (
        lambda: hax.named(RAW2, ("a", "a")),
        ValueError,
        "named: axis 'a' occurs more than once in (a, a). Rename one of them.",
    ),
    (
        lambda: hax.named(RAW2, (B, Axis("time", 5))),
        ValueError,
        "named: axis 'time' has size 5; expected 3. The array has shape (2, 3).",
    ),
    (
        lambda: hax.named(X, "a"),
        TypeError,
        (
            "named: the array is a NamedArray; expected an array without names. Use rename for other "
            "names, or rearrange for another order."
        ),
    ),
    (
        lambda: hax.named("abc", "a"),
        TypeError,
        "named: the array is a string; expected an array, a number or nested lists of numbers.",
    ),
    (
        lambda: hax.named([[1, 2], [3]], ("a", "b")),
        ValueError,
        "named: the list is no array; expected numbers, in lists of equal lengths.",
    ),
    (lambda: hax.named(RAW, ("a", None)), TypeError, "named: entry 1 of the axes is None; expected an Axis or a name."),
    (
        lambda: hax.named(RAW, {"time": 4}),
        ValueError,
        "named: axis 'time' has size 4; expected 3. The array has shape (3,).",
    ),
    (lambda: hax.named(RAW, [3]), TypeError, "named: entry 0 of the axes is an int; expected an Axis or a name."),
    (
        lambda: hax.named({"a": 1}, "a"),
        TypeError,
        "named: the array is a dict; expected an array, a number or nested lists of numbers.",
    ),
    (
        lambda: hax.named(object(), "a"),
        TypeError,
        "named: the array is an object; expected an array, a number or nested lists of numbers.",
    ),
    (lambda: hax.NamedArray(RAW, None), TypeError, f"NamedArray: the axes are None; {ANY_FORM}"),
    (
        lambda: hax.NamedArray(RAW, ("a", "b")),
        ValueError,
        "NamedArray: an array of shape (3,) and 2 names (a, b); expected one name for each dimension.",
    ),
    (lambda: hax.NamedArray(RAW, 0), TypeError, f"NamedArray: the axes are an int; {ANY_FORM}"),
    (
        lambda: hax.NamedArray(RAW2, ("a", "a")),
        ValueError,
        "NamedArray: axis 'a' occurs more than once in (a, a). Rename one of them.",
    ),
    (lambda: hax.zeros("a"), ValueError, f"zeros: axis 'a' has no size; {SIZED}"),
    (lambda: hax.zeros(None), TypeError, f"zeros: the axes are None; {ANY_FORM}"),
    (lambda: hax.zeros(3), TypeError, f"zeros: the axes are an int; {ANY_FORM}"),
    (lambda: hax.zeros((B, B)), ValueError, "zeros: axis 'batch' occurs more than once in (batch, batch)."),
    (lambda: hax.zeros((B, "time")), ValueError, f"zeros: axis 'time' has no size; {SIZED}"),
    (lambda: hax.zeros((2, 3)), TypeError, "zeros: entry 0 of the axes is an int; expected an Axis or a name."),
    (lambda: hax.zeros({"a": -1}), ValueError, "zeros: axis 'a' has size -1; expected 0 or more."),
    (lambda: hax.zeros({"a": 1.5}), TypeError, "zeros: the size of axis 'a' is a float; expected an integer."),
    (lambda: hax.zeros({"a": "b"}), TypeError, "zeros: the size of axis 'a' is a string; expected an integer."),
    (lambda: hax.zeros(B, "flaot32"), TypeError, f"zeros: there is no dtype 'flaot32'; {A_DTYPE}"),
    (lambda: hax.zeros(B, dtype=3), TypeError, f"zeros: the dtype is an int; {A_DTYPE}"),
    (lambda: hax.ones(None), TypeError, f"ones: the axes are None; {ANY_FORM}"),
    (
        lambda: hax.full(B, RAW),
        ValueError,
        f"full: the fill value is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.full(B, None), TypeError, f"full: the fill value is None; {OR_SCALAR}"),
    (lambda: hax.full(B, "a"), TypeError, f"full: the fill value is a string; {OR_SCALAR}"),
    (
        lambda: hax.full(B, ROW),
        ValueError,
        "full: the fill value has time=3; expected axes among those of the result: batch=2.",
    ),
    (lambda: hax.full("a", 1), ValueError, f"full: axis 'a' has no size; {SIZED}"),
    (lambda: hax.zeros_like(None), TypeError, f"zeros_like: an operand is None; {OPERAND}"),
    (lambda: hax.zeros_like("a"), TypeError, f"zeros_like: an operand is a string; {OPERAND}"),
    (lambda: hax.ones_like([1, 2]), TypeError, f"ones_like: an operand is a list; {OPERAND}"),
    (lambda: hax.full_like(X, ROW), ValueError, "full_like: the fill value has time=3; expected a scalar."),
    (
        lambda: hax.full_like(X, RAW),
        ValueError,
        f"full_like: the fill value is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.full_like(X, None), TypeError, f"full_like: the fill value is None; {OR_SCALAR}"),
    (lambda: hax.full_like(None, 1), TypeError, f"full_like: an operand is None; {OPERAND}"),
    (lambda: hax.arange("a"), ValueError, f"arange: axis 'a' has no size; {SIZED}"),
    (lambda: hax.arange(None), TypeError, f"arange: the axes are None; {ANY_FORM}"),
    (lambda: hax.arange(5), TypeError, f"arange: the axes are an int; {ANY_FORM}"),
    (
        lambda: hax.arange(B, start=RAW),
        ValueError,
        f"arange: start is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.arange(B, start=None), TypeError, f"arange: start is None; {OR_SCALAR}"),
    (lambda: hax.arange(B, step="a"), TypeError, f"arange: step is a string; {OR_SCALAR}"),
    (lambda: hax.arange(B, step=ROW), ValueError, "arange: step has time=3; expected a scalar."),
    (lambda: hax.linspace((B, T), start=0, stop=1), ValueError, "linspace: 2 axes were given; expected one axis."),
    (lambda: hax.linspace(5, start=0, stop=1), TypeError, f"linspace: the axes are an int; {ANY_FORM}"),
    (
        lambda: hax.linspace(B, start=RAW, stop=1),
        ValueError,
        f"linspace: start is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.linspace(B, start=0, stop=None), TypeError, f"linspace: stop is None; {OR_SCALAR}"),
    (
        lambda: hax.linspace(Axis("a", -1), start=0, stop=1),
        ValueError,
        "linspace: axis 'a' has size -1; expected 0 or more.",
    ),
    (lambda: hax.logspace((B, T), start=0, stop=1), ValueError, "logspace: 2 axes were given; expected one axis."),
    (lambda: hax.logspace(B, start=0, stop=1, base="a"), TypeError, f"logspace: base is a string; {OR_SCALAR}"),
    (lambda: hax.geomspace((B, T), start=1, stop=2), ValueError, "geomspace: 2 axes were given; expected one axis."),
    (lambda: hax.stack("a", X), TypeError, "stack: the arrays are a NamedArray; expected a sequence of NamedArrays."),
    (lambda: hax.stack("a", None), TypeError, "stack: the arrays are None; expected a sequence of NamedArrays."),
    (
        lambda: hax.stack("batch", [X, X]),
        ValueError,
        (
            "stack: axis 'batch' occurs more than once in (batch, batch, time). Use concatenate to join "
            "arrays along an axis that they have."
        ),
    ),
    (
        lambda: hax.stack(Axis("a", 3), [X, X]),
        ValueError,
        "stack: axis 'a' has size 3; expected 2. There must be one array for each index.",
    ),
    (
        lambda: hax.stack("a", [X, ROW]),
        ValueError,
        "stack: one array has batch=2, time=3 and another time=3; expected the same axes.",
    ),
    (
        lambda: hax.stack("a", [X, RAW]),
        ValueError,
        f"stack: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.stack("a", [X, None]), TypeError, f"stack: an operand is None; {OR_SCALAR}"),
    (lambda: hax.stack(None, [X, X]), TypeError, "stack: the axis is None; expected an Axis or a name."),
    (lambda: hax.stack(("a", "b"), [X, X]), TypeError, "stack: the axis is a tuple; expected an Axis or a name."),
    (lambda: hax.stack([X, X], "a"), TypeError, "stack: the axis is a list; expected an Axis or a name."),
    (
        lambda: hax.concatenate("batch", X),
        TypeError,
        "concatenate: the arrays are a NamedArray; expected a sequence of NamedArrays.",
    ),
    (
        lambda: hax.concatenate("batch", [X, RAW]),
        TypeError,
        f"concatenate: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.concatenate("batch", [X, ROW]), ValueError, "concatenate: no axis 'batch'; the array has time=3."),
    (lambda: hax.concatenate("embed", [X, X]), ValueError, f"concatenate: no axis 'embed'; {HAS}."),
    (
        lambda: hax.concatenate(Axis("batch", 5), [X, X]),
        ValueError,
        "concatenate: axis 'batch' has size 5; expected 4. The sizes of the arrays must add up to it.",
    ),
    (lambda: hax.concatenate(None, [X, X]), TypeError, "concatenate: the axis is None; expected an Axis or a name."),
    (lambda: hax.concatenate(0, [X, X]), TypeError, "concatenate: the axis is an int; expected an Axis or a name."),
    (
        lambda: hax.concatenate("batch", None),
        TypeError,
        "concatenate: the arrays are None; expected a sequence of NamedArrays.",
    ),
    (lambda: hax.repeat(X, 2, "z"), ValueError, f"repeat: no axis 'z'; {HAS}."),
    (lambda: hax.repeat(X, -1, "time"), ValueError, "repeat: the count is -1; expected 0 or more."),
    (
        lambda: hax.repeat(X, 2.5, "time"),
        TypeError,
        ("repeat: the count has dtype float32; expected an integer, or an integer for each index of 'time'."),
    ),
    (lambda: hax.repeat(X, jnp.arange(2), "time"), ValueError, "repeat: the counts have shape (2,); expected time=3."),
    (
        lambda: hax.repeat(X, jnp.ones((2, 2), int), "time"),
        ValueError,
        "repeat: the counts have shape (2, 2); expected time=3.",
    ),
    (
        lambda: hax.repeat(X, N, "time"),
        ValueError,
        "repeat: the counts have batch=2, time=3; expected time=3, or no axes.",
    ),
    (
        lambda: hax.repeat(X, [1, 2], "time"),
        TypeError,
        "repeat: the count is a list; expected an integer, or an integer for each index of 'time'.",
    ),
    (
        lambda: hax.repeat(X, None, "time"),
        TypeError,
        "repeat: the count is None; expected an integer, or an integer for each index of 'time'.",
    ),
    (
        lambda: hax.repeat(RAW, 2, "time"),
        TypeError,
        f"repeat: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.repeat(X, 2, 0), TypeError, "repeat: the axis is an int; expected an Axis or a name."),
    (lambda: hax.repeat(X, 2, axis=None), TypeError, "repeat: the axis is None; expected an Axis or a name."),
    (
        lambda: jax.jit(lambda r: hax.repeat(X, r, "time"))(jnp.array([1, 2, 3])),
        ValueError,
        (
            "repeat: the counts are traced; expected total_repeat_length with them. The size of the axis "
            "of the result must be known in advance: it is a part of the shape."
        ),
    ),
    (lambda: hax.tile(X, 2), TypeError, "tile: reps is an int; expected a mapping from axes to numbers."),
    (
        lambda: hax.tile(X, {"time": -1}),
        ValueError,
        "tile: axis 'time' is to be repeated -1 times; expected 0 or more.",
    ),
    (
        lambda: hax.tile(X, {"time": 1.5}),
        TypeError,
        "tile: the number for axis 'time' is a float; expected an integer.",
    ),
    (lambda: hax.tile(X, {Axis("time", 5): 2}), ValueError, f"tile: axis 'time' has size 5; expected 3. {SAME_SIZE}"),
    (
        lambda: hax.tile(RAW, {"a": 2}),
        TypeError,
        f"tile: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.tile(X, {0: 2}), TypeError, "tile: the axis is an int; expected an Axis or a name."),
    (lambda: hax.tile(X, {"time": None}), TypeError, "tile: the number for axis 'time' is None; expected an integer."),
    (
        lambda: hax.broadcast_to(X, "embed"),
        ValueError,
        f"broadcast_to: axis 'embed' has no size; expected an Axis; {HAS}.",
    ),
    (
        lambda: hax.broadcast_to(X, (B, E)),
        ValueError,
        (
            f"broadcast_to: {HAS}; expected no axes beyond (batch, embed)."
            f" Reduce the extra axes first, or pass enforce_no_extra_axes=False."
        ),
    ),
    (
        lambda: hax.broadcast_to(X, (Axis("batch", 5), T)),
        ValueError,
        "broadcast_to: axis 'batch' has size 5; expected 2. An axis keeps its size.",
    ),
    (
        lambda: hax.broadcast_to(RAW, B),
        ValueError,
        f"broadcast_to: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.broadcast_to(X, None), TypeError, f"broadcast_to: the axes are None; {ANY_FORM}"),
    (
        lambda: hax.broadcast_axis(X, "embed"),
        ValueError,
        f"broadcast_axis: axis 'embed' has no size; expected an Axis; {HAS}.",
    ),
    (
        lambda: hax.broadcast_axis(X, Axis("batch", 7)),
        ValueError,
        "broadcast_axis: axis 'batch' has size 7; expected 2. An axis keeps its size.",
    ),
    (lambda: hax.broadcast_axis(X, None), TypeError, f"broadcast_axis: the axes are None; {ANY_FORM}"),
    (lambda: hax.broadcast_axis(None, E), TypeError, f"broadcast_axis: an operand is None; {OR_SCALAR}"),
    (
        lambda: hax.broadcast_arrays(X, RAW),
        ValueError,
        f"broadcast_arrays: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.broadcast_arrays(X, VECTOR),
        ValueError,
        f"broadcast_arrays: axes (batch=2, time=3) and (embed=4); {ONE_INSIDE} {GIVE_EMBED}",
    ),
    (
        lambda: hax.broadcast_arrays(X, hax.zeros({"time": 5})),
        ValueError,
        ("broadcast_arrays: axis 'time' has size 5; expected 3. All arrays must agree on the size of a shared axis."),
    ),
    (lambda: hax.broadcast_arrays(X, "a"), TypeError, f"broadcast_arrays: an operand is a string; {OR_SCALAR}"),
    (
        lambda: hax.NamedArray(RAW, ("a", 3)),
        TypeError,
        "NamedArray: entry 1 of the axes is an int; expected an Axis or a name.",
    ),
    (
        lambda: hax.named(RAW, Axis("time", 5)),
        ValueError,
        "named: axis 'time' has size 5; expected 3. The array has shape (3,).",
    ),
    (lambda: hax.zeros({"a": True}), TypeError, "zeros: the size of axis 'a' is a bool; expected an integer."),
    (lambda: hax.zeros(Axis(3, 4)), TypeError, "zeros: the name of an Axis is an int; expected a string."),
    (lambda: hax.ones(Axis("a", -1)), ValueError, "ones: axis 'a' has size -1; expected 0 or more."),
    (lambda: hax.ones_like(X, dtype="foo"), TypeError, f"ones_like: there is no dtype 'foo'; {A_DTYPE}"),
    (lambda: hax.linspace(T, start=ROW, stop=1), ValueError, "linspace: start has time=3; expected a scalar."),
    (lambda: hax.linspace(T, start=0, stop=1, dtype="foo"), TypeError, f"linspace: there is no dtype 'foo'; {A_DTYPE}"),
    (lambda: hax.full(B, 1, dtype="foo"), TypeError, f"full: there is no dtype 'foo'; {A_DTYPE}"),
    (lambda: hax.arange(B, dtype="foo"), TypeError, f"arange: there is no dtype 'foo'; {A_DTYPE}"),
    (
        lambda: hax.concatenate("batch", "abc"),
        TypeError,
        "concatenate: the arrays are a string; expected a sequence of NamedArrays.",
    ),
]
