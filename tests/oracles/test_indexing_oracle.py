"""Reading and updating elements by position, against the definition: one by one, for each place in the result."""

from __future__ import annotations

import functools
import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

import haliax as hax
from haliax import dslice
from oracles.bunches import Case, agrees
from strategies import named_arrays, values

# numpy warns of a division by zero, and of an overflow of small integers
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

NEW = {"i": 2, "j": 3}
"""Axes that only index arrays have."""

seeds = st.integers(0, 2**16)
bounds = st.none() | st.integers(-4, 4)
slices = st.builds(slice, bounds, bounds, st.sampled_from([None, 1, 2, -1, -2]))


@st.composite
def index_arrays(draw, low, high, axes):
    """A named array of integers from `low` to before `high`, whose axes are among those given."""
    names = draw(st.permutations(sorted(axes)))[: draw(st.integers(0, 2))]
    shape = [axes[name] for name in names]
    elements = np.random.default_rng(draw(seeds)).integers(low, high, shape)
    return hax.named(jnp.asarray(elements, draw(st.sampled_from([np.int8, np.int32]))), tuple(names))


@st.composite
def indices(draw, x, inside=False):
    """What to take of some axes: integers, slices, windows, index arrays."""
    index = {}
    chosen = draw(st.permutations(x.axis_names))[: draw(st.integers(0, x.ndim))]
    kinds = {n: draw(st.sampled_from(["int", "slice", "window", "array", "list", "windows"])) for n in chosen}
    kinds = {n: kind if x.axis_size(n) else "slice" for n, kind in kinds.items()}
    cut = {n for n, kind in kinds.items() if kind in ("slice", "window", "windows", "list")}
    axes = {**NEW, **{n: s for n, s in x.shape.items() if n not in cut}}
    for name, kind in kinds.items():
        size = x.axis_size(name)
        margin = 0 if inside else 2
        if kind == "slice":
            index[name] = draw(slices)
        elif kind == "int":
            number = draw(st.integers(-size - margin, size + margin - 1))
            index[name] = draw(st.sampled_from([number, np.int32(number), np.array(number), jnp.array(number)]))
        elif kind == "window":
            length = draw(st.integers(0, size if inside else 4))
            index[name] = dslice(draw(st.integers(0, size - length) if inside else st.integers(-6, 5)), length)
        elif kind == "list":
            index[name] = draw(st.lists(st.integers(-size - margin, size + margin - 1), max_size=3))
        elif kind == "array":
            index[name] = draw(index_arrays(-size - margin, size + margin, axes))
        else:
            length = draw(st.integers(0, size if inside else 3))
            ends = (0, size - length + 1) if inside else (-size - margin, size + margin)
            index[name] = dslice(draw(index_arrays(*ends, axes)), length)
    return index


def axes_of_result(x, index):
    """The axes of the elements that an index chooses, with their sizes, in any order."""
    sizes = {}
    for name, size in x.shape.items():
        item = index.get(name, slice(None))
        if isinstance(item, slice):
            sizes[name] = len(range(size)[item])
        elif isinstance(item, dslice):
            sizes[name] = item.size
        elif isinstance(item, list):
            sizes[name] = len(item)
        for array in (item, getattr(item, "start", None)):
            if isinstance(array, hax.NamedArray):
                sizes.update(array.shape)
    return sizes


def source(x, index, at):
    """Where an element comes from, and whether it is in a window that is outside there.

    Args:
        x: The array indexed.
        index: The index.
        at: The place in the result, by axis.
    """
    place, outside = [], []
    for name, size in x.shape.items():
        item = index.get(name, slice(None))
        if isinstance(item, slice):
            number = range(size)[item][at[name]]
        elif isinstance(item, dslice):
            start = element(item.start, at)
            number = start + (size if start < 0 else 0) + at[name]
            outside.append(not 0 <= number < size)
        else:
            number = item[at[name]] if isinstance(item, list) else element(item, at)
            number += size if number < 0 else 0
        place.append(number)
    return place, any(outside)


def element(item, at):
    """An integer, which may be the element of an index array at a place."""
    return int(np.asarray(item.array)[tuple(at[n] for n in item.axis_names)] if hasattr(item, "axis_names") else item)


def places(sizes, names):
    return (dict(zip(names, at, strict=True)) for at in itertools.product(*(range(sizes[name]) for name in names)))


def read(x, index, names, mode, fill):
    """The elements that an index chooses, with axes `names`."""
    sizes, raw = axes_of_result(x, index), np.asarray(x.array)
    result = np.zeros([sizes[name] for name in names], raw.dtype)
    for at in places(sizes, names):
        place, in_window_outside = source(x, index, at)
        nearest = tuple(np.clip(place, 0, np.array(raw.shape) - 1)) if raw.ndim else ()
        outside = list(nearest) != place
        if mode == "fill" and outside:
            value = fill
        elif mode is None and in_window_outside:
            value = 0
        else:
            value = raw[nearest]
        result[tuple(at[name] for name in names)] = value
    return result


@st.composite
def reads(draw):
    """`x[...]`, `hax.index`, `take`, and `x.at[...].get` in all modes."""
    x = draw(named_arrays([np.int32, np.float32, np.bool_, np.float16], tame=True))
    how = draw(st.sampled_from(["[]", "index", "take", "get", "fill", "clip", "promise_in_bounds"]))
    index = draw(indices(x, inside=how == "promise_in_bounds"))
    if how == "take":
        index = dict([(name, item) for name, item in index.items() if not isinstance(item, slice | dslice)][:1])
        how = "take" if index else "[]"
    run = {
        "[]": lambda x: x[index],
        "index": lambda x: hax.index(x, index),
        "take": lambda x: hax.take(x, *next(iter(index.items()))),
        "get": lambda x: x.at[index].get(),
        "fill": lambda x: x.at[index].get(mode="fill", fill_value=1),
    }.get(how, lambda x: x.at[index].get(mode=how))
    names, mode = frozenset(axes_of_result(x, index)), how if how in ("fill", "clip") else None
    return Case(f"{how} x[{index}]", (x,), run, lambda x: (names, functools.partial(read, x, index, mode=mode, fill=1)))


def targets(x, index, mode):
    """For each place in the result, in one order of its axes, the element that it is; None if it is outside."""
    sizes = axes_of_result(x, index)
    for at in places(sizes, sizes):
        place, _ = source(x, index, at)
        nearest = tuple(int(i) for i in np.clip(place, 0, np.array(x.array.shape) - 1)) if place else ()
        yield at, nearest if mode == "clip" or list(nearest) == place else None


UPDATES = {
    "set": lambda old, new: new,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "mul": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
    "apply": lambda old, new: old * 2,
}
ONCE = {"set", "power", "apply"}
"""What may not happen twice to an element, as the order would matter."""


@st.composite
def updates(draw):
    """All methods of `x.at[...]` in all modes, with scalars and with arrays of some of the axes of the elements."""
    x = draw(named_arrays([np.int32, np.int8, np.float32], tame=True))
    mode = draw(st.sampled_from([None, "drop", "fill", "clip", "promise_in_bounds"]))
    index = draw(indices(x, inside=mode == "promise_in_bounds"))
    method = draw(st.sampled_from([m for m in UPDATES if x.dtype.kind == "f" or m not in ("divide", "power")]))
    elements = [target for _, target in targets(x, index, mode) if target is not None]
    if method in ONCE and len(set(elements)) < len(elements):
        method = "add"
    sizes = axes_of_result(x, index)
    names = tuple(draw(st.permutations(sorted(sizes)))[: draw(st.integers(0, len(sizes)))])
    raw = values(np.random.default_rng(draw(seeds)), tuple(sizes[name] for name in names), x.dtype, tame=True)
    scalar = draw(st.sampled_from([None, 2, np.int8(1)]))
    update = (hax.named(np.where(raw == 0, np.ones_like(raw), raw), names),) if scalar is None else ()

    def run(x, *update):
        chosen = x.at[index]
        options = {"mode": mode} if mode else {}
        if method == "apply":
            return chosen.apply(lambda a: a * 2, **options)
        return getattr(chosen, method)(update[0] if update else scalar, **options)

    def expect(x, *update):
        result, fn = np.array(x.array), UPDATES[method]
        for at, target in targets(x, index, mode):
            if target is not None:
                new = np.asarray(update[0].array)[tuple(at[name] for name in names)] if update else scalar
                result[target] = fn(result[target], np.asarray(new, x.dtype))
        return x.axis_names, result

    return Case(f"x.at[{index}].{method}({names or scalar}) in mode {mode}", (x, *update), run, expect)


@agrees(reads())
def test_reads():
    """Integers, slices, windows and index arrays, in any combination, inside and outside."""


@agrees(updates())
def test_updates():
    """What is outside is dropped, or is the nearest; what is chosen twice is updated twice."""
