"""Names and shapes against numpy: renaming, merging, splitting, joining, repeating, padding, slicing, triangles."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

import haliax as hax
from haliax import Axis
from oracles.bunches import Case, agrees, in_order
from strategies import DTYPES, named_arrays, sub_arrays, values

seeds = st.integers(0, 2**16)
arrays = named_arrays([*DTYPES, np.int16, np.uint32], tame=True)
arrays_with_axes = named_arrays(DTYPES, tame=True, min_axes=1)
arrays_with_two_axes = named_arrays(DTYPES, tame=True, min_axes=2)


@st.composite
def selector(draw, x, name):
    """An axis of an array, by name or as an Axis."""
    return draw(st.sampled_from([name, x.resolve_axis(name)]))


@st.composite
def some_axes(draw, x, least=0):
    """Some of the axes of an array, in any order."""
    return tuple(draw(st.permutations(x.axis_names))[: draw(st.integers(least, x.ndim))])


def replaced(names, old, *new):
    """Names with others in the place of one."""
    dim = names.index(old)
    return (*names[:dim], *new, *names[dim + 1 :])


def cut(x, name, item):
    """The elements at one place, or in one slice, along an axis."""
    return np.asarray(x.array)[tuple(item if n == name else slice(None) for n in x.axis_names)]


# the names -----------------------------------------------------------------------------------------------------------


@st.composite
def renames(draw):
    x = draw(arrays)
    new = dict(zip(draw(some_axes(x)), draw(st.permutations("xyz")), strict=False))
    names = tuple(new.get(name, name) for name in x.axis_names)
    return Case(f"rename({new})", (x,), lambda x: x.rename({**new, "absent": "q"}), lambda x: (names, x.array))


@st.composite
def swaps(draw):
    """New names that are old ones."""
    x = draw(arrays)
    new = dict(zip(x.axis_names, draw(st.permutations(x.axis_names)), strict=True))
    names = tuple(new.values())
    return Case(f"rename({new})", (x,), lambda x: hax.rename(x, new), lambda x: (names, x.array))


@st.composite
def orders(draw):
    x = draw(arrays)
    names = tuple(draw(st.permutations(x.axis_names)))
    return Case(f"rearrange({names})", (x,), lambda x: x.rearrange(names), lambda x: (names, in_order(x, names)))


# merging and splitting -----------------------------------------------------------------------------------------------


@st.composite
def merges(draw):
    x = draw(arrays)
    old = draw(some_axes(x))
    first = min(map(x.axis_names.index, old), default=0)
    rest = [name for name in x.axis_names if name not in old]
    names = (*rest[:first], "m", *rest[first:])
    size = math.prod(x.axis_size(name) for name in old)
    new = draw(st.sampled_from(["m", Axis("m", size)]))

    def expect(x):
        order = (*rest[:first], *old, *rest[first:])
        return names, in_order(x, order).reshape([size if n == "m" else x.axis_size(n) for n in names])

    return Case(f"flatten_axes({old}, {new})", (x,), lambda x: hax.flatten_axes(x, old, new), expect)


@st.composite
def flat(draw):
    x = draw(arrays)
    op = draw(st.sampled_from([hax.flatten, hax.ravel]))
    return Case("flatten(f)", (x,), lambda x: op(x, "f"), lambda x: ("f", np.ravel(x.array)))


@st.composite
def unmerges(draw):
    x = draw(arrays_with_axes)
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    parts = dict(zip("xyz", sizes, strict=False))
    name = draw(st.sampled_from(x.axis_names))
    shape = [math.prod(sizes) if n == name else s for n, s in x.shape.items()]
    x = hax.named(jnp.asarray(values(np.random.default_rng(draw(seeds)), shape, x.dtype, True)), x.axis_names)
    names = replaced(x.axis_names, name, *parts)
    infer = draw(st.sampled_from(list(parts)))
    spec = tuple(n if n == infer and math.prod(sizes) else Axis(n, s) for n, s in parts.items())

    def expect(x):
        return names, np.reshape(x.array, [parts.get(n, x.shape.get(n)) for n in names])

    return Case(f"unflatten_axis({name}, {spec})", (x,), lambda x: hax.unflatten_axis(x, name, spec), expect)


@st.composite
def splits(draw):
    x = draw(arrays_with_axes)
    name = draw(st.sampled_from(x.axis_names))
    at = draw(st.integers(0, x.axis_size(name)))
    pieces = [Axis("u", at), Axis(draw(st.sampled_from(["u", "v", name])), x.axis_size(name) - at)]

    def expect(x):
        ends = slice(None, at), slice(at, None)
        return [
            (replaced(x.axis_names, name, axis.name), cut(x, name, end)) for axis, end in zip(pieces, ends, strict=True)
        ]

    return Case(f"split({name}, {pieces})", (x,), lambda x: hax.split(x, name, pieces), expect)


@st.composite
def unbinds(draw):
    x = draw(arrays_with_axes)
    name = draw(st.sampled_from(x.axis_names))
    axis = draw(selector(x, name))

    def expect(x):
        return [(replaced(x.axis_names, name), cut(x, name, i)) for i in range(x.axis_size(name))]

    return Case(f"unbind({axis})", (x,), lambda x: hax.unbind(x, axis), expect)


# joining -------------------------------------------------------------------------------------------------------------


@st.composite
def alike(draw, x, name=None):
    """Arrays with the axes of another in other orders; the size of one axis may differ."""
    parts = [x]
    for _ in range(draw(st.integers(0, 2))):
        names = tuple(draw(st.permutations(x.axis_names)))
        sizes = [draw(st.integers(0, 3)) if n == name else x.axis_size(n) for n in names]
        dtype = draw(st.sampled_from([x.dtype, x.dtype, np.int8]))
        parts.append(hax.named(jnp.asarray(values(np.random.default_rng(draw(seeds)), sizes, dtype, True)), names))
    return tuple(parts)


@st.composite
def stacks(draw):
    x = draw(arrays)
    parts = draw(alike(x))
    axis = draw(st.sampled_from(["s", Axis("s", len(parts))]))

    def expect(*parts):
        return ("s", *x.axis_names), joined(np.stack, parts, x.axis_names, 0)

    return Case(f"stack({axis}, {len(parts)})", parts, lambda *parts: hax.stack(axis, parts), expect)


@st.composite
def concatenations(draw):
    x = draw(arrays_with_axes)
    name = draw(st.sampled_from(x.axis_names))
    parts = draw(alike(x, name))
    axis = draw(st.sampled_from([name, Axis(name, sum(part.axis_size(name) for part in parts))]))

    def expect(*parts):
        return x.axis_names, joined(np.concatenate, parts, x.axis_names, x.axis_names.index(name))

    return Case(f"concatenate({axis})", parts, lambda *parts: hax.concatenate(axis, parts), expect)


def joined(fn, parts, names, dim):
    dtype = jnp.result_type(*(part.dtype for part in parts))
    return fn([in_order(part, names).astype(dtype) for part in parts], dim)


# repeating, padding, broadcasting ------------------------------------------------------------------------------------


@st.composite
def repeats(draw):
    x = draw(arrays_with_axes)
    name = draw(st.sampled_from(x.axis_names))
    counts = draw(st.lists(st.integers(0, 3), min_size=x.axis_size(name), max_size=x.axis_size(name)))
    times = draw(st.sampled_from([0, 1, 2, hax.named(np.array(counts, int), name), np.array(counts, int)]))
    total = None if isinstance(times, int) else sum(counts)
    raw = times.array if isinstance(times, hax.NamedArray) else times

    def expect(x):
        return x.axis_names, np.repeat(x.array, raw, x.axis_names.index(name))

    run = lambda x: hax.repeat(x, times, name, total_repeat_length=total)  # noqa: E731
    return Case(f"repeat({times}, {name})", (x,), run, expect)


@st.composite
def tiles(draw):
    x = draw(arrays)
    reps = {name: draw(st.integers(0, 2)) for name in (*draw(some_axes(x)), *draw(st.sampled_from(["", "x", "yx"])))}
    new = tuple(name for name in reps if name not in x.axis_names)
    names = (*new, *x.axis_names)
    counts = [reps.get(name, 1) for name in names]
    return Case(f"tile({reps})", (x,), lambda x: hax.tile(x, reps), lambda x: (names, np.tile(x.array, counts)))


@st.composite
def pads(draw):
    x = draw(arrays_with_axes.filter(lambda x: x.size))
    widths = {name: (draw(st.integers(0, 2)), draw(st.integers(0, 2))) for name in draw(some_axes(x))}
    mode = draw(st.sampled_from(["constant", "edge", "wrap", "symmetric"]))
    options = {"constant_values": 1} if mode == "constant" else {}

    def expect(x):
        raw = [widths.get(name, (0, 0)) for name in x.axis_names]
        return x.axis_names, np.pad(x.array, raw, mode, **options)

    return Case(f"pad({widths}, {mode})", (x,), lambda x: hax.pad(x, widths, mode=mode, **options), expect)


@st.composite
def broadcasts(draw):
    """An array to axes in any order, of which it has some."""
    x = draw(arrays)
    y = draw(sub_arrays(x, [x.dtype]))
    names = tuple(draw(st.permutations(x.axis_names)))
    axes = tuple(x.resolve_axis(name) for name in names)

    def expect(y):
        full = np.broadcast_to(in_order(y, names), [axis.size for axis in axes])
        return frozenset(names), lambda order: np.transpose(full, [names.index(name) for name in order])

    def in_any_order(y):
        return hax.broadcast_to(y, axes, ensure_order=False)

    ordered = draw(st.booleans())
    run = (lambda y: hax.broadcast_to(y, axes)) if ordered else in_any_order
    label = f"broadcast_to({axes}, ensure_order={ordered})"
    return Case(label, (y,), run, lambda y: (names, expect(y)[1](names)) if ordered else expect(y))


# parts ---------------------------------------------------------------------------------------------------------------


@st.composite
def slices(draw):
    """`slice` along several axes; one that would go beyond the end starts earlier."""
    x = draw(arrays_with_axes)
    chosen = draw(some_axes(x, least=1))
    lengths = {name: draw(st.integers(0, x.axis_size(name))) for name in chosen}
    starts = {name: draw(st.integers(-3, 4)) for name in chosen}

    def expect(x):
        raw = np.asarray(x.array)
        for name in chosen:
            size = x.axis_size(name)
            first = starts[name] + (size if starts[name] < 0 else 0)
            first = min(max(first, 0), size - lengths[name])
            raw = raw.take(range(first, first + lengths[name]), x.axis_names.index(name))
        return x.axis_names, raw

    return Case(f"slice({starts}, {lengths})", (x,), lambda x: hax.slice(x, starts, lengths), expect)


@st.composite
def updated_slices(draw):
    """`updated_slice` along several axes, with an update that may lack axes."""
    x = draw(arrays_with_axes)
    chosen = draw(some_axes(x, least=1))
    lengths = {name: draw(st.integers(0, x.axis_size(name))) for name in chosen}
    starts = {name: draw(st.integers(0, x.axis_size(name) - lengths[name])) for name in chosen}
    names = tuple(draw(st.permutations(chosen)))
    raw = values(np.random.default_rng(draw(seeds)), [lengths[name] for name in names], x.dtype, True)

    def expect(x, update):
        result = np.array(x.array)
        at = [slice(starts[n], starts[n] + lengths[n]) if n in starts else slice(None) for n in x.axis_names]
        result[tuple(at)] = in_order(update, x.axis_names)
        return x.axis_names, result

    update = hax.named(jnp.asarray(raw), names)
    label = f"updated_slice({starts}, {names} {lengths})"
    return Case(label, (x, update), lambda x, update: hax.updated_slice(x, starts, update), expect)


@st.composite
def triangles(draw):
    x = draw(arrays_with_two_axes)
    rows, columns = draw(st.permutations(x.axis_names))[:2]
    rest = tuple(name for name in x.axis_names if name not in (rows, columns))
    k, name = draw(st.integers(-2, 2)), draw(st.sampled_from(["tril", "triu"]))
    names = (*rest, rows, columns)

    def expect(x):
        return names, getattr(np, name)(in_order(x, names), k)

    return Case(f"{name}({rows}, {columns}, {k})", (x,), lambda x: getattr(hax, name)(x, rows, columns, k), expect)


@st.composite
def traces(draw):
    x = draw(named_arrays([np.int32, np.float32, np.complex64], tame=True, min_axes=2))
    rows, columns = draw(st.permutations(x.axis_names))[:2]
    rest = tuple(name for name in x.axis_names if name not in (rows, columns))
    offset = draw(st.integers(-2, 2))

    def expect(x):
        dims = x.axis_names.index(rows), x.axis_names.index(columns)
        return rest, np.asarray(np.trace(x.array, offset, *dims)).astype(x.dtype)

    return Case(f"trace({rows}, {columns}, {offset})", (x,), lambda x: hax.trace(x, rows, columns, offset), expect)


@agrees(renames(), swaps(), orders(), merges(), flat(), unmerges(), splits(), unbinds(), triangles(), traces())
def test_names_and_shapes():
    """Axes are renamed, moved, merged, split, and taken as rows and columns."""


@agrees(stacks(), concatenations(), repeats(), tiles(), pads(), broadcasts())
def test_joining():
    """Axes become longer, or are new."""


@agrees(slices(), updated_slices())
def test_slicing():
    """Axes become shorter, and consecutive elements are replaced."""
