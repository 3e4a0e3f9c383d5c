"""Updates, and consecutive elements."""

import haliax as hax
from errors.arrays import HAS, NAME_IT, OR_SCALAR, PAIRS, RAW, ROW, VECTOR, N, T, X
from haliax import Axis

CASES = [
    (lambda: X.at.set(1.0), AttributeError, 'at: no elements were chosen to set. Write x.at["axis", index].set(...).'),
    (lambda: X.at.foo, AttributeError, "at: there is no 'foo'."),
    (
        lambda: X.at["batch", 0].set(1, foo=1),
        TypeError,
        "at.set: no option 'foo'; the options are indices_are_sorted, unique_indices, mode.",
    ),
    (
        lambda: X.at["batch", 0].set(1, mode="foo"),
        ValueError,
        "at.set: mode is 'foo'; expected 'clip', 'drop', 'fill', 'promise_in_bounds' or 'wrap'.",
    ),
    (
        lambda: X.at["batch", 0].set(RAW),
        ValueError,
        f"at.set: the update is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: X.at["batch", 0].set(None), TypeError, f"at.set: the update is None; {OR_SCALAR}"),
    (
        lambda: X.at["batch", 0].set(VECTOR),
        ValueError,
        "at.set: the update has embed=4; expected axes among those of the elements: time=3.",
    ),
    (
        lambda: X.at["batch", 0].set(hax.zeros({"time": 5})),
        ValueError,
        ("at.set: axis 'time' has size 5; expected 3. The update must have the size that the elements have."),
    ),
    (lambda: X.at["batch", 0].set("a"), TypeError, f"at.set: the update is a string; {OR_SCALAR}"),
    (lambda: X.at["batch", 0].add(None), TypeError, f"at.add: the update is None; {OR_SCALAR}"),
    (lambda: X.at["batch", 0].apply(3), TypeError, "at.apply: func is an int; expected a function of raw arrays."),
    (lambda: X.at["z", 0].set(1), ValueError, f"at: no axis 'z'; {HAS}."),
    (lambda: X.at[0].set(1), TypeError, f"at: the index is an int; {PAIRS}"),
    (lambda: X.at["batch"].set(1), TypeError, f"at: the index is a string; {PAIRS}"),
    (
        lambda: X.at["batch", 0].get(mode="foo"),
        ValueError,
        "at.get: mode is 'foo'; expected 'clip', 'drop', 'fill', 'promise_in_bounds' or 'wrap'.",
    ),
    (
        lambda: X.at["batch", 0].get(fill_value="a", mode="fill"),
        TypeError,
        f"at.get: fill_value is a string; {OR_SCALAR}",
    ),
    (
        lambda: X.at["batch", 0].get(foo=1),
        TypeError,
        "at.get: no option 'foo'; the options are indices_are_sorted, unique_indices, mode, fill_value.",
    ),
    (lambda: X.slice("z", length=1), ValueError, f"slice: no axis 'z'; {HAS}."),
    (lambda: X.slice("time"), ValueError, "slice: no length was given; expected length, or an Axis as new_axis."),
    (lambda: X.slice("time", length=7), ValueError, "slice: length 7; expected 0 to the size of the axis, time=3."),
    (lambda: X.slice("time", length=-1), ValueError, "slice: length -1; expected 0 to the size of the axis, time=3."),
    (lambda: X.slice("time", length=1.5), TypeError, "slice: the length is a float; expected an integer."),
    (
        lambda: X.slice("time", "batch", length=1),
        ValueError,
        "slice: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (
        lambda: X.slice("time", start="a", length=1),
        TypeError,
        "slice: the start of axis 'time' is a string; expected an integer.",
    ),
    (
        lambda: X.slice("time", start=1.5, length=1),
        TypeError,
        "slice: the start of axis 'time' has dtype float32; expected an integer.",
    ),
    (
        lambda: X.slice("time", start=RAW, length=1),
        ValueError,
        (
            "slice: axis 'time' has several starts; expected one. For a start at each index of another "
            "axis use array[axis, haliax.ds(start, size)]."
        ),
    ),
    (
        lambda: X.slice("time", start=None, length=1),
        TypeError,
        "slice: the start of axis 'time' is None; expected an integer.",
    ),
    (
        lambda: X.slice({"time": 0}, {"batch": 1}),
        ValueError,
        "slice: axis 'time' has a start and no length; expected a length for each start.",
    ),
    (
        lambda: X.slice({"time": 0}, 1),
        TypeError,
        "slice: the length is an int; expected a mapping, as the start is one.",
    ),
    (
        lambda: X.slice("time", Axis("t", 2), length=1),
        ValueError,
        "slice: axis 't' has size 2; expected 1. It must have the length of the slice.",
    ),
    (lambda: X.slice(0, length=1), TypeError, "slice: the axis is an int; expected an Axis or a name."),
    (
        lambda: hax.slice(RAW, "a", length=1),
        TypeError,
        f"slice: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: X.updated_slice({"z": 0}, ROW), ValueError, f"updated_slice: no axis 'z'; {HAS}."),
    (
        lambda: X.updated_slice({"time": 0}, RAW),
        TypeError,
        f"updated_slice: the update is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: X.updated_slice({"time": 2}, ROW),
        ValueError,
        "updated_slice: an update of time=3 starts at 2; expected it to end within time=3.",
    ),
    (
        lambda: X.updated_slice({"time": 0}, hax.zeros({"time": 5})),
        ValueError,
        "updated_slice: axis 'time' has size 5; expected 3. An update can not be longer than the array.",
    ),
    (lambda: X.updated_slice({"time": 0}, VECTOR), ValueError, f"updated_slice: no axis 'embed'; {HAS}."),
    (
        lambda: X.updated_slice("time", ROW),
        TypeError,
        "updated_slice: the start is a string; expected a mapping from axes to starts.",
    ),
    (
        lambda: X.updated_slice({"time": 0}, 1.0),
        TypeError,
        f"updated_slice: the update is a float; expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: X.updated_slice({"time": "a"}, ROW),
        TypeError,
        "updated_slice: the start of axis 'time' is a string; expected an integer.",
    ),
    (
        lambda: X.updated_slice({"time": 1.5}, ROW),
        TypeError,
        "updated_slice: the start of axis 'time' has dtype float32; expected an integer.",
    ),
    (
        lambda: N.updated_slice({"time": 0}, ROW),
        TypeError,
        ("updated_slice: the update has dtype float32; expected what int32 can hold. Use update.astype(...)."),
    ),
    (
        lambda: X.updated_slice({"time": hax.arange(T)}, ROW),
        ValueError,
        (
            "updated_slice: axis 'time' occurs more than once in (time, time). A start can not have the "
            "axis that it is for."
        ),
    ),
    (
        lambda: X.updated_slice({"batch": hax.arange({"time": 5})}, ROW),
        ValueError,
        "updated_slice: axis 'time' has size 5; expected 3. A start must have the sizes of the array.",
    ),
    (lambda: X.at["tiem", 0].add(1), ValueError, f"at: no axis 'tiem'; {HAS}. Did you mean 'time'?"),
    (
        lambda: X.at["batch", 5, "batch", 2].set(0),
        ValueError,
        "at: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (
        lambda: X.at["batch", 0].add(RAW),
        ValueError,
        f"at.add: the update is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: X.at["batch", 0].multiply("a"), TypeError, f"at.multiply: the update is a string; {OR_SCALAR}"),
    (
        lambda: X.at["batch", 0].max(VECTOR),
        ValueError,
        "at.max: the update has embed=4; expected axes among those of the elements: time=3.",
    ),
    (
        lambda: X.at["batch", 0].set(1, unique=True),
        TypeError,
        (
            "at.set: no option 'unique'; the options are indices_are_sorted, unique_indices, mode. Did "
            "you mean 'unique_indices'?"
        ),
    ),
    (
        lambda: X.at["batch", 0].get(fill=1),
        TypeError,
        "at.get: no option 'fill'; the options are indices_are_sorted, unique_indices, mode, fill_value.",
    ),
    (
        lambda: X.at["batch", 0].set(0, mode="clamp"),
        ValueError,
        (
            "at.set: mode is 'clamp'; expected 'clip', 'drop', 'fill', 'promise_in_bounds' or 'wrap'. "
            "Did you mean 'clip'?"
        ),
    ),
    (
        lambda: X.at["batch", 0].apply("exp"),
        TypeError,
        "at.apply: func is a string; expected a function of raw arrays.",
    ),
    (lambda: X.at.add(1), AttributeError, 'at: no elements were chosen to add. Write x.at["axis", index].add(...).'),
    (lambda: X.slice("time", start=0, length="a"), TypeError, "slice: the length is a string; expected an integer."),
    (
        lambda: X.slice({"time": 0}, {"time": 9}),
        ValueError,
        "slice: length 9; expected 0 to the size of the axis, time=3.",
    ),
    (lambda: X.slice({"tiem": 0}, {"tiem": 1}), ValueError, f"slice: no axis 'tiem'; {HAS}. Did you mean 'time'?"),
    (
        lambda: X.updated_slice({"time": 5}, ROW),
        ValueError,
        "updated_slice: an update of time=3 starts at 5; expected it to end within time=3.",
    ),
    (
        lambda: X.updated_slice({"time": None}, ROW),
        TypeError,
        "updated_slice: the start of axis 'time' is None; expected an integer.",
    ),
    (
        lambda: X.updated_slice({"time": 0}, None),
        TypeError,
        "updated_slice: the update is None; expected a NamedArray.",
    ),
]
