"""Choosing elements: against numpy on index tuples and on explicit loops over names."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import haliax as hax
from haliax.axis import Axis, dslice, make_axes
from helpers import compilations
from programs import operations

ds = dslice
H, W, D = make_axes(H=2, W=3, D=4)
X = hax.arange((H, W, D))


def same(array, axis_names, expected):
    assert array.axis_names == tuple(axis_names)
    np.testing.assert_array_equal(array.array, expected)


# --- integers and slices ---

slices = st.builds(slice, *[st.none() | st.integers(-5, 5)] * 2, st.none() | st.sampled_from([-2, -1, 1, 2]))


@settings(max_examples=20)
@given(st.permutations("HWD"), st.integers(0, 3), st.data())
def test_integers_and_slices_are_those_of_numpy(names, n, data):
    index = {}
    for name in names[:n]:
        size = X.axis_size(name)
        index[name] = data.draw(slices | st.integers(-size, size - 1))
    at = tuple(index.get(name, slice(None)) for name in X.axis_names)
    kept = [name for name, item in zip(X.axis_names, at, strict=True) if isinstance(item, slice)]
    expected = np.asarray(X.array)[at]
    same(X[index], kept, expected)
    same(X[tuple(itertools.chain(*index.items()))], kept, expected)
    same(hax.index(X, index), kept, expected)


@pytest.mark.parametrize("one", [1, np.int32(1), np.array(1), jnp.array(1), hax.named(1, ())], ids=repr)
@pytest.mark.parametrize("axis", ["W", W], ids=repr)
def test_one_index_of_any_kind(one, axis):
    for result in (X[axis, one], X[{axis: one}], X.take(axis, one), hax.take(X, axis, one), X.at[axis, one].get()):
        same(result, ("H", "D"), X.array[:, 1])


@pytest.mark.parametrize("bound", [1, np.int8(1), jnp.array(1), hax.named(1, ())], ids=repr)
def test_the_bounds_of_a_slice_are_static_integers_of_any_kind(bound):
    same(X["W", bound:], ("H", "W", "D"), X.array[:, 1:])


def test_everything():
    for result in (X[...], X[{}], X[()], hax.index(X, {})):
        same(result, X.axis_names, X.array)


def test_integers_out_of_bounds_take_the_nearest():
    same(X["W", 7], ("H", "D"), X.array[:, 2])
    same(X["W", hax.named([0, 7, -7], "i")], ("H", "i", "D"), X.array[:, jnp.array([0, 2, 0])])


# --- index arrays ---


@pytest.mark.parametrize("items", [[0, 2], np.array([0, 2]), jnp.array([0, 2]), hax.named([0, 2], "W")], ids=repr)
def test_an_unnamed_index_replaces_its_own_axis(items):
    for result in (X["W", items], X.take("W", items)):
        same(result, ("H", "W", "D"), X.array[:, jnp.array([0, 2])])


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5])
def test_whatever_its_length(size):
    items = np.arange(size) % 2
    same(X["H", items], ("H", "W", "D"), X.array[items])
    expected = X.array[np.ix_(np.arange(2), items, items)]
    same(X["W", items, "D", items].rearrange(("H", "W", "D")), ("H", "W", "D"), expected)


def test_an_empty_list():
    assert X["W", []].axes == (H, W.resize(0), D)


# the index, and the names of the result: the axes of index arrays are in the place of neighbours, else in front
ORDER = [
    ({"W": "A"}, "H A D"),
    ({"W": "AB"}, "H A B D"),
    ({"W": "AB", "D": "B"}, "H A B"),
    ({"D": "AB", "W": "B"}, "H A B"),
    ({"W": "A", "D": "B"}, "H B A"),
    ({"D": "A", "W": "B"}, "H B A"),
    ({"H": "A", "D": "B"}, "B A W"),
    ({"H": "A", "W": "B", "D": "C"}, "C B A"),
    ({"H": 0, "D": "A"}, "A W"),
    ({"W": 0, "D": "A"}, "H A"),
    ({"W": slice(2), "D": "A"}, "H W A"),
    ({"H": "A", "D": slice(2)}, "A W D"),
    ({"W": "H"}, "H D"),
    ({"W": "D"}, "H D"),
    ({"H": "D"}, "D W"),
    ({"H": "W"}, "W D"),
    ({"W": "AH"}, "A H D"),
    ({"W": "HA"}, "H A D"),
    ({"H": "AD"}, "A D W"),
    ({"H": "A", "D": "W"}, "A W"),
    ({"W": "W"}, "H W D"),
    ({"W": "W", "H": "W"}, "W D"),
    ({"W": "D", "D": "W"}, "H W D"),
    ({"W": "D", "D": 0}, "H D"),
    ({"W": ds(0, 2)}, "H W D"),
    ({"H": ds(0, 2), "W": ds(0, 2)}, "W H D"),
    ({"H": 0, "D": ds(0, 2)}, "D W"),
    ({"H": "A", "W": ds(0, 2)}, "W A D"),
    ({"W": ds(0, 2), "H": "W"}, "W D"),
    ({"W": ds(0, 3), "H": "D"}, "W D"),
]
SIZES = {"A": 2, "B": 2, "C": 2, "H": 2, "W": 3, "D": 4}


def named_items(index, sizes):
    """The index with an array for each string of axes, with different elements."""
    items = {}
    for name, item in index.items():
        if isinstance(item, str):
            shape = {axis: sizes[axis] for axis in item}
            item = (hax.arange(shape) * 5 + 1) % X.axis_size(name)
        items[name] = item
    return items


def chosen(index, names, sizes):
    """The elements that an index chooses, by the definition: one by one, for each value of the result's axes."""
    result = np.zeros([sizes[name] for name in names], int)
    for place in np.ndindex(result.shape):
        at = dict(zip(names, place, strict=True))
        source = {name: at.get(name) for name in X.axis_names}
        for name, item in index.items():
            if isinstance(item, hax.NamedArray):
                source[name] = int(item.array[tuple(at[axis] for axis in item.axis_names)])
            elif isinstance(item, slice):
                source[name] = range(X.axis_size(name))[item][at[name]]
            elif isinstance(item, dslice):
                source[name] = item.start + at[name]
            else:
                source[name] = item
        result[place] = X.array[tuple(source[name] for name in X.axis_names)]
    return result


def sizes_for(index):
    """The sizes in the result; where slices and windows shorten axes."""
    short = {n: i.size if isinstance(i, dslice) else i.stop for n, i in index.items() if isinstance(i, slice | dslice)}
    return {**SIZES, **short}


@pytest.mark.parametrize(("index", "names"), ORDER, ids=repr)
def test_index_arrays(index, names):
    sizes = sizes_for(index)
    items = named_items(index, sizes)
    expected = chosen(items, names.split(), sizes)
    same(X[items], names.split(), expected)
    same(X.at[items].get(mode="promise_in_bounds"), names.split(), expected)


@settings(max_examples=15)
@given(st.data())
def test_any_index_arrays(data):
    """Whatever the axes of the index arrays, each element comes from where its names say."""
    index = {}
    for name in data.draw(st.permutations("HWD"))[: data.draw(st.integers(1, 3))]:
        index[name] = "".join(data.draw(st.lists(st.sampled_from("ABHWD"), unique=True, max_size=2)))
    sizes = {**SIZES, "A": data.draw(st.integers(1, 3)), "B": data.draw(st.integers(1, 3))}
    items = named_items(index, sizes)
    result = X[items]
    same(result, result.axis_names, chosen(items, result.axis_names, sizes))


# --- windows ---


@pytest.mark.parametrize("size", [0, 1, 2, 4, 6])
@pytest.mark.parametrize("start", [-9, -4, -1, 0, 1, 3, 4, 9])
def test_a_window_reads_zero_outside(start, size):
    first = start + 4 if start < 0 else start
    padded = np.pad(np.asarray(X.array), [(0, 0), (0, 0), (20, 20)])
    expected = padded[..., first + 20 : first + 20 + size]
    same(X["D", ds(start, size)], X.axis_names, expected)
    same(jax.jit(lambda x, s: x["D", ds(s, size)])(X, start), X.axis_names, expected)
    same(jax.jit(lambda x, s: x["D", s])(X, ds(hax.named(np.int8(start), ()), size)), X.axis_names, expected)


def test_a_window_for_each_index_of_another_axis():
    starts = hax.named([2, 1], "H")
    result = X["D", ds(starts, 3)]
    expected = [X.array[0, :, 2:].tolist(), X.array[1, :, 1:].tolist()]
    assert result.axis_names == ("H", "D", "W")
    np.testing.assert_array_equal(result["H", 0, "D", 0:2].array.T, expected[0])
    np.testing.assert_array_equal(result["H", 0, "D", 2].array, 0)
    np.testing.assert_array_equal(result["H", 1].array.T, expected[1])
    assert X["D", ds(hax.named([0, 1], "B"), 2)].axes == (H, W, Axis("B", 2), D.resize(2))


@pytest.mark.parametrize("read", [lambda x: x, lambda x: x.at], ids=["[]", "at"])
def test_many_windows_are_each_as_one(read):
    """Before the start and after the end they read zero, and an integer beside them takes the nearest element."""
    for start in (-6, -2, 3):
        for one in (-9, 1, 9, hax.named([-9, 9], "j")):
            results = [read(X)["D", ds(at, 3), "W", one] for at in (start, hax.named([start], "i"))]
            single, many = (r if isinstance(r, hax.NamedArray) else r.get() for r in results)
            names = ("i", *single.axis_names)
            same(many.rearrange(names), names, single.array[None])


def test_many_windows_write_nothing_before_the_start():
    for mode in (None, "drop"):
        one, many = (X.at["D", ds(at, 3)].set(-1, mode=mode) for at in (-6, hax.named([-6], "i")))
        same(many, one.axis_names, one.array)


def test_blocks():
    same(X["D", hax.axis.dblock(1, 2)], X.axis_names, X.array[..., 2:])


# --- transforms ---


def test_gradients_are_those_of_plain_indexing():
    x = X.astype(jnp.float32)
    rows, weights = hax.named([2, 0], "H"), hax.arange((H, D)) + 1.0
    grad = jax.grad(lambda x: (x["W", rows] * weights).sum().scalar())(x)
    plain = jax.grad(lambda a: (a[jnp.arange(2), jnp.array([2, 0])] * weights.array).sum())(x.array)
    same(grad, x.axis_names, plain)
    grad = jax.grad(lambda x, s: (x["D", ds(s, 3)] ** 2).sum().scalar())(x, 2)
    same(grad, x.axis_names, jnp.where(jnp.arange(4) >= 2, 2 * x.array, 0))


def test_vmap():
    rows = jnp.array([2, 0])
    result = jax.vmap(lambda a, i: hax.named(a, "W D")["W", i].array)(X.array, rows)
    np.testing.assert_array_equal(result, X["W", hax.named(rows, "H")].array)


# --- errors ---

HAS = "the array has H=2, W=3, D=4."
KINDS = "expected an integer, a slice, a dslice, a NamedArray of integers or an unnamed one of rank 1."
PAIRS = 'expected pairs of an axis and what to take of it, or a mapping. Write x["batch", 0] or x[{"batch": 0}].'
MASK = "expected integers. For a mask use haliax.where, or haliax.nonzero for the places."

ERRORS = [
    (lambda: X["w", 0], ValueError, f"index: no axis 'w'; {HAS}"),
    (lambda: X.take("w", 0), ValueError, f"take: no axis 'w'; {HAS}"),
    (
        lambda: X[Axis("W", 4), 0],
        ValueError,
        "index: axis 'W' has size 4; expected 3. An Axis must have the size that the array has.",
    ),
    (lambda: X["W", 0, "W", 1], ValueError, "index: axis 'W' occurs more than once in (W, W)."),
    (lambda: X["W"], TypeError, f"index: the index is a string; {PAIRS}"),
    (lambda: X[0], TypeError, f"index: the index is an int; {PAIRS}"),
    (
        lambda: X["W", 0, "D"],
        ValueError,
        "index: 3 items were given; expected pairs of an axis and what to take of it.",
    ),
    (lambda: X["W", None], TypeError, f"index: the index of axis 'W' is None; {KINDS}"),
    (lambda: X["W", 1.0], TypeError, f"index: the index of axis 'W' is a float; {KINDS}"),
    (lambda: X["W", (0, 1)], TypeError, f"index: the index of axis 'W' is a tuple; {KINDS}"),
    (lambda: X["W", True], TypeError, f"index: the index of axis 'W' is a bool; {KINDS}"),
    (lambda: X["W", [1.5]], TypeError, "index: the index of axis 'W' has dtype float64; expected integers."),
    (lambda: X["W", X.array[0, :, 0] > 1], TypeError, f"index: the index of axis 'W' has dtype bool; {MASK}"),
    (lambda: X["W", X["H", 0, "D", 0] > 1], TypeError, f"index: the index of axis 'W' has dtype bool; {MASK}"),
    (
        lambda: X["W", jnp.zeros((1, 2), int)],
        ValueError,
        "index: the index of axis 'W' is an unnamed array of shape (1, 2); expected rank 0 or 1."
        " Name its axes with haliax.named(array, axes).",
    ),
    (
        lambda: X["W", hax.arange(Axis("D", 3))],
        ValueError,
        "index: axis 'D' has size 3; expected 4. An index along another axis must have the size of this one.",
    ),
    (
        lambda: X["W", hax.arange(Axis("a", 3)), "D", hax.arange(Axis("a", 2))],
        ValueError,
        "index: axis 'a' has size 2; expected 3. All arrays must agree on the size of a shared axis.",
    ),
    (
        lambda: X["W", hax.arange(Axis("D", 2)), "D", 0:2],
        ValueError,
        "index: axis 'D' is sliced, and an axis of an index array; expected one of both. Slice the array first.",
    ),
    (
        lambda: X["D", ds(jnp.arange(2), 2)],
        ValueError,
        "index: the dslice of axis 'D' starts at an unnamed array of shape (2,); expected rank 0."
        " Name its axes with haliax.named(array, axes).",
    ),
    (
        lambda: X["D", ds(hax.arange(D), 2)],
        ValueError,
        "index: axis 'D' occurs more than once in (D, D). The start of a dslice can not have the axis that it slices.",
    ),
    (
        lambda: jax.jit(lambda x, i: x["W", i:2])(X, 1),
        TypeError,
        "index: a bound of the slice of axis 'W' is a traced array of shape (); expected a static integer."
        " For a traced start use haliax.ds(start, size).",
    ),
    (
        lambda: hax.take(np.ones(2), "a", 0),
        TypeError,
        "take: the array is a numpy array of shape (2,); expected a NamedArray."
        " Name its axes with haliax.named(array, axes).",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS, ids=[message[:60] for _, _, message in ERRORS])
def test_errors(call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message


# --- programs ---

PROGRAMS = [
    (lambda x: x["H", 1].array, lambda a: a[1]),
    (lambda x: x["W", 1].array, lambda a: a[:, 1]),
    (lambda x: x["W", -1, "D", 0].array, lambda a: a[:, -1, 0]),
    (lambda x: x["W", 0:2].array, lambda a: a[:, 0:2]),
    (lambda x: x["D", ::-2].array, lambda a: a[..., ::-2]),
    (lambda x: x["D", ds(1, 2)].array, lambda a: a[..., 1:3]),
    (lambda x: x["W", hax.named([0, 2], "i")].array, lambda a: a[:, jnp.array([0, 2])]),
    (lambda x: x["W", np.array([0, 2])].array, lambda a: a[:, np.array([0, 2])]),
    (lambda x: x["H", hax.named([1], "i"), "W", 1].array, lambda a: a[jnp.array([1]), 1]),
]


@pytest.mark.parametrize(("fn", "plain"), PROGRAMS)
def test_programs_are_those_of_jax_numpy(fn, plain):
    assert operations(fn, X) == operations(plain, X.array)


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda x: x["W", 1], ["slice", "reshape"]),
        (lambda x: x["W", 0:2], ["slice"]),
        (lambda x: x["W", ds(1, 2)], ["slice"]),
        (lambda x: x[...], []),
    ],
)
def test_static_indices_are_slices(fn, expected):
    assert operations(fn, X) == expected


def test_an_index_along_a_shared_axis_is_a_batched_gather():
    """Without an iota: axes that are shared stay as they are laid out."""
    text = jax.jit(lambda x, i: x["W", i]).lower(X, hax.arange({"H": 2, "k": 2})).as_text()
    assert "operand_batching_dims = [0]" in text
    assert "iota" not in text


ROWS, PAIRS = hax.arange(H), hax.named([[0], [1]], ("i", "j"))

# outside a trace, all that differ in a number only
SERIES = {
    "integer": lambda n: X["W", n],
    "from the end": lambda n: X["W", n - 3],
    "outside": lambda n: X["W", n - 1, "D", 3 + n],
    "slice": lambda n: X["W", n : n + 2],
    "empty slice": lambda n: X["W", n:0],
    "integer and slice": lambda n: X["W", n, "D", n : n + 2],
    "backwards": lambda n: X["H", n, "D", ::-1],
    "window": lambda n: X["W", ds(n, 2)],
    "window outside": lambda n: X["W", ds(n + 2, 2)],
    "windows": lambda n: X["W", ds(PAIRS, 2), "D", n],
    "array": lambda n: X["W", hax.named([n, 1], "i")],
    "array and slice": lambda n: X["W", hax.named([n, 1], "i"), "D", n : n + 2],
    "array and window": lambda n: X["W", hax.named([n, 1], "i"), "D", ds(n, 2)],
    "shared axis": lambda n: X["W", ROWS, "D", n],
    "shared axis and slice": lambda n: X["W", ROWS, "D", n : n + 2],
    "fill": lambda n: X.at["W", ds(n, 2)].get(mode="fill", fill_value=7),
    "set": lambda n: X.at["W", n].set(n),
    "set a slice": lambda n: X.at["W", n : n + 2].set(n),
    "add to a slice": lambda n: X.at["W", n : n + 2, "D", PAIRS].add(hax.arange({"i": 2})),
    "multiply a window": lambda n: X.at["W", ds(n + 2, 2)].multiply(2),
    "max at an array": lambda n: X.at["W", ROWS, "D", n : n + 2].max(hax.arange({"D": 2})),
    "hax.slice": lambda n: hax.slice(X, "D", start=n, length=2),
    "updated_slice": lambda n: hax.updated_slice(X, {"D": n, "W": PAIRS["i", :, "j", 0].rename({"i": "H"})}, PART),
}
PART = hax.arange({"D": 2})


@pytest.mark.parametrize("series", SERIES.values(), ids=SERIES)
def test_one_program_serves_all_numbers(series):
    """Inside a trace numbers that are known are a part of the program, which must do the same."""
    series(0)
    with compilations() as compiled:
        result = series(1)
    assert compiled == []
    expected = jax.jit(lambda: series(1))()
    same(result, expected.axis_names, expected.array)
    assert result.dtype == expected.dtype


def test_parts_of_a_numpy_array_are_views():
    """They may be those of a file that is larger than memory."""
    values = np.arange(24).reshape(2, 3, 4)
    x = hax.NamedArray(values, ("H", "W", "D"))
    for part in (x["W", 1], x["D", ::-2], x["W", 0:2, "H", -1]):
        assert isinstance(part.array, np.ndarray) and np.shares_memory(part.array, values)
    same(x["W", 1, "D", ::2], ("H", "D"), values[:, 1, ::2])


@pytest.mark.parametrize("transform", [lambda fn: fn, jax.jit], ids=["eager", "jit"])
def test_a_numpy_array_behaves_as_one_of_jax(transform):
    x = hax.NamedArray(np.arange(24).reshape(2, 3, 4), ("H", "W", "D"))
    index = hax.named([0, 9], "i")
    results = transform(lambda i: (x["W", i], x["W", jnp.int32(2)], x["W", ds(2, 2)], x.at["W", i].set(0)))(index)
    expected = X["W", index], X["W", 2], X["W", ds(2, 2)], X.at["W", index].set(0)
    for result, wanted in zip(results, expected, strict=True):
        same(result, wanted.axis_names, wanted.array)
