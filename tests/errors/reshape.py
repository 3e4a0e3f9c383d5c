"""Names and shapes."""

import haliax as hax
from errors.arrays import ANY_FORM, HAS, NAME_IT, RAW, SAME_SIZE, X
from haliax import Axis

CASES = [
    (
        lambda: X.rename("q"),
        TypeError,
        ('rename: the renaming is a string; expected a mapping from old to new names. Write rename({"old": "new"}).'),
    ),
    (
        lambda: X.rename(None),
        TypeError,
        ('rename: the renaming is None; expected a mapping from old to new names. Write rename({"old": "new"}).'),
    ),
    (lambda: X.rename({"batch": "time"}), ValueError, "rename: axis 'time' occurs more than once in (time, time)."),
    (lambda: X.rename({"batch": 3}), TypeError, "rename: the axis is an int; expected an Axis or a name."),
    (
        lambda: X.rename({"batch": Axis("b", 7)}),
        ValueError,
        "rename: axis 'b' has size 7; expected 2. An Axis must have the size of what it names.",
    ),
    (lambda: X.rename({"batch": None}), TypeError, "rename: the axis is None; expected an Axis or a name."),
    (
        lambda: X.rename(("a", "b")),
        TypeError,
        ('rename: the renaming is a tuple; expected a mapping from old to new names. Write rename({"old": "new"}).'),
    ),
    (
        lambda: hax.rename(RAW, {"a": "b"}),
        TypeError,
        f"rename: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.rename(None, {"a": "b"}), TypeError, "rename: the array is None; expected a NamedArray."),
    (lambda: X.flatten(None), TypeError, "flatten: the axis is None; expected an Axis or a name."),
    (lambda: X.flatten(0), TypeError, "flatten: the axis is an int; expected an Axis or a name."),
    (
        lambda: X.flatten(Axis("a", 7)),
        ValueError,
        "flatten: axis 'a' has size 7; expected 6. It merges batch=2, time=3.",
    ),
    (lambda: X.flatten(("a", "b")), TypeError, "flatten: the axis is a tuple; expected an Axis or a name."),
    (
        lambda: hax.flatten(RAW, "a"),
        TypeError,
        f"flatten: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: X.flatten_axes(("batch", "z"), "a"), ValueError, f"flatten_axes: no axis 'z'; {HAS}."),
    (
        lambda: X.flatten_axes(("batch", "batch"), "a"),
        ValueError,
        "flatten_axes: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (
        lambda: X.flatten_axes("batch", "time"),
        ValueError,
        "flatten_axes: axis 'time' occurs more than once in (time, time).",
    ),
    (
        lambda: X.flatten_axes(("batch", "time"), Axis("a", 5)),
        ValueError,
        "flatten_axes: axis 'a' has size 5; expected 6. It merges batch=2, time=3.",
    ),
    (lambda: X.flatten_axes((0, 1), "a"), TypeError, "flatten_axes: the axis is an int; expected an Axis or a name."),
    (lambda: X.flatten_axes(None, "a"), TypeError, f"flatten_axes: the axes are None; {ANY_FORM}"),
    (
        lambda: X.flatten_axes(("batch", "time"), None),
        TypeError,
        "flatten_axes: the axis is None; expected an Axis or a name.",
    ),
    (lambda: hax.core.flatten_all_axes_but(X, "a", "z"), ValueError, f"flatten_all_axes_but: no axis 'z'; {HAS}."),
    (
        lambda: hax.core.flatten_all_axes_but(X, 3, "time"),
        TypeError,
        "flatten_all_axes_but: the axis is an int; expected an Axis or a name.",
    ),
    (lambda: X.unflatten_axis("z", {"a": 1}), ValueError, f"unflatten_axis: no axis 'z'; {HAS}."),
    (
        lambda: X.unflatten_axis("time", {"a": 2, "b": 2}),
        ValueError,
        ("unflatten_axis: axis time=3 can not be split into (a=2, b=2); the product of the sizes must be 3."),
    ),
    (
        lambda: X.unflatten_axis("time", ("a", "b")),
        ValueError,
        "unflatten_axis: axes 'a', 'b' have no size; expected at most one without.",
    ),
    (
        lambda: X.unflatten_axis("time", {"a": 2, "b": None}),
        ValueError,
        "unflatten_axis: axis time=3 can not be split into (a=2, b); the product of the sizes must be 3.",
    ),
    (
        lambda: X.unflatten_axis("time", {"batch": 3}),
        ValueError,
        "unflatten_axis: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (lambda: X.unflatten_axis("time", None), TypeError, f"unflatten_axis: the axes are None; {ANY_FORM}"),
    (
        lambda: X.unflatten_axis("time", (3,)),
        TypeError,
        "unflatten_axis: entry 0 of the axes is an int; expected an Axis or a name.",
    ),
    (
        lambda: X.unflatten_axis("time", {"a": "b"}),
        TypeError,
        "unflatten_axis: the size of axis 'a' is a string; expected an integer.",
    ),
    (
        lambda: X.unflatten_axis(0, {"a": 3}),
        TypeError,
        "unflatten_axis: the axis is an int; expected an Axis or a name.",
    ),
    (
        lambda: X.unflatten_axis("time", {"a": 0, "b": None}),
        ValueError,
        "unflatten_axis: axis time=3 can not be split into (a=0, b); the product of the sizes must be 3.",
    ),
    (
        lambda: X.unflatten_axis("time", {"a": 3.0}),
        TypeError,
        "unflatten_axis: the size of axis 'a' is a float; expected an integer.",
    ),
    (
        lambda: X.unflatten_axis("time", {"a": -1}),
        ValueError,
        "unflatten_axis: axis 'a' has size -1; expected 0 or more.",
    ),
    (
        lambda: X.split("time", {"a": 1, "b": 3}),
        ValueError,
        "split: axis time=3 can not be cut into (a=1, b=3); the sizes must add up to 3.",
    ),
    (lambda: X.split("z", {"a": 1}), ValueError, f"split: no axis 'z'; {HAS}."),
    (
        lambda: X.split("time", ("a", "b")),
        ValueError,
        "split: axis time=3 can not be cut into (a, b); the sizes must add up to 3.",
    ),
    (lambda: X.split("time", {"batch": 3}), ValueError, "split: axis 'batch' occurs more than once in (batch, batch)."),
    (lambda: X.split("time", 3), TypeError, f"split: the axes are an int; {ANY_FORM}"),
    (lambda: X.split("time", None), TypeError, f"split: the axes are None; {ANY_FORM}"),
    (lambda: X.split(0, {"a": 3}), TypeError, "split: the axis is an int; expected an Axis or a name."),
    (
        lambda: X.split("time", (Axis("a", -1), Axis("b", 4))),
        ValueError,
        "split: axis 'a' has size -1; expected 0 or more.",
    ),
    (lambda: X.unbind("z"), ValueError, f"unbind: no axis 'z'; {HAS}."),
    (lambda: X.unbind(0), TypeError, "unbind: the axis is an int; expected an Axis or a name."),
    (lambda: X.unbind(None), TypeError, "unbind: the axis is None; expected an Axis or a name."),
    (lambda: X.unbind(("batch", "time")), TypeError, "unbind: the axis is a tuple; expected an Axis or a name."),
    (lambda: X.unbind(Axis("time", 5)), ValueError, f"unbind: axis 'time' has size 5; expected 3. {SAME_SIZE}"),
    (
        lambda: hax.unbind(RAW, "a"),
        TypeError,
        f"unbind: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.roll(X, 1, "z"), ValueError, f"roll: no axis 'z'; {HAS}."),
    (lambda: hax.roll(X, 1, None), TypeError, f"roll: the axes are None; {ANY_FORM}"),
    (lambda: hax.roll(X, 1, 0), TypeError, f"roll: the axes are an int; {ANY_FORM}"),
    (
        lambda: hax.roll(X, "a", "time"),
        TypeError,
        "roll: the shift is a string; expected an integer, or a sequence with one for each axis.",
    ),
    (lambda: hax.roll(X, 1.5, "time"), TypeError, "roll: the shift has dtype float32; expected integers."),
    (
        lambda: hax.roll(X, (1, 2, 3), ("batch", "time")),
        ValueError,
        "roll: the shift has shape (3,); expected one integer, or 2: one for each axis.",
    ),
    (
        lambda: hax.roll(X, None, "time"),
        TypeError,
        "roll: the shift is None; expected an integer, or a sequence with one for each axis.",
    ),
    (
        lambda: hax.roll(X, (1, 2), "time"),
        ValueError,
        "roll: the shift has shape (2,); expected one integer, or 1: one for each axis.",
    ),
    (
        lambda: hax.roll(RAW, 1, "time"),
        TypeError,
        f"roll: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
]
