"""Mutable named arrays: what is read and written, views, transformations and errors."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax.sharding import NamedSharding, PartitionSpec as P

import haliax as hax
from haliax import Axis, ds
from meshes import make_mesh
from strategies import assert_same

VALUES = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)  # each element tells where it is, and 0 that it is nowhere
X = hax.NamedArray(jnp.asarray(VALUES), ("a", "b", "c"))


def same(actual: hax.NamedArray, expected: hax.NamedArray) -> None:
    assert actual.axis_names == expected.axis_names
    assert_same(actual.array, expected.array)


# reading and writing ------------------------------------------------------------------------------------------------


def places(*values: int, name: str = "i") -> hax.NamedArray:
    return hax.NamedArray(jnp.asarray(values), (name,))


TWICE = ("c", places(0, 2, 2))
INDICES = [
    ...,
    ("b", 1),
    {"a": -1, "c": 2},
    ("c", slice(1, 3)),
    ("c", slice(None, None, 2), "a", 0),
    ("c", slice(None, None, -1)),
    ("b", slice(2, 1)),
    ("c", np.int8(-1)),
    ("c", jnp.int8(-1), "b", jnp.uint32(2)),
    ("b", hax.NamedArray(jnp.int32(1), ())),
    ("c", ds(1, 2)),
    ("c", ds(jnp.int32(2), 2), "a", 1),
    ("c", ds(-1, 3)),
    ("c", ds(1, 2), "a", 1),
    ("a", ds(0, 1), "c", ds(1, 2)),
    ("c", ds(1, 2), "b", slice(0, 2)),
    ("b", jnp.int32(1), "c", ds(jnp.int32(1), 2)),
    ("a", 0, "c", slice(1, 3), "b", jnp.int32(1)),
    ("a", jnp.int32(0), "c", slice(None, None, 3)),
    ("c", ds(jnp.int32(3), 2)),
    ("c", [0, 2]),
    ("c", np.array([3, 0])),
    TWICE,
    ("c", places(0, 2, 1, name="b")),
    ("a", 0, "c", places(0, 2, 1, name="b")),
    ("a", 0, "c", places(1, 0)),
    ("b", ds(places(0, 1), 2)),
    ("b", ds(places(0, 1, name="a"), 2), "c", 1),
]

each_index = pytest.mark.parametrize("index", INDICES, ids=range(len(INDICES)))


@each_index
def test_reading_is_indexing(index):
    ref = hax.new_ref(X)
    same(ref[index], X[index])
    same(hax.get(ref, index), X[index])
    same(ref.value(), X)


def written(index, value: np.ndarray) -> np.ndarray:
    """VALUES with a value written to the elements that an index chooses."""
    places = np.asarray(X[index].array, int)
    raw = VALUES.copy().reshape(-1)
    raw[places[places > 0] - 1] = value[places > 0]
    return raw.reshape(VALUES.shape)


@each_index
def test_writing_is_an_update(index):
    ref, before = hax.new_ref(X), X[index]
    value = -1 - np.arange(before.array.size, dtype=np.float32).reshape(before.array.shape)
    if index is TWICE:
        value *= 0
    same(hax.swap(ref, index, hax.NamedArray(value, before.axis_names)), before)
    assert_same(ref.value().array, written(index, value))


@pytest.mark.parametrize("index", INDICES[4::3], ids=range(4, len(INDICES), 3))
def test_a_program_does_the_same(index):
    @jax.jit
    def double(ref):
        ref[index] *= 2
        return ref[index]

    ref, twice = hax.new_ref(X), X[index] * 2
    same(double(ref), twice)
    assert_same(ref.value().array, written(index, np.asarray(twice.array)))


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("place", [-5, -4, -1, 0, 3, 4, 9])
def test_traced_places_out_of_bounds_read_the_nearest_and_write_nothing(place, jit):
    def write(ref, place):
        ref["c", place] = ref["c", place] + 100
        return ref["c", place]

    ref = hax.new_ref(X)
    (jax.jit(write) if jit else write)(ref, jnp.int32(place))
    same(ref.value(), X.at["c", jnp.int32(place)].add(100))
    same(ref["c", jnp.int32(place)], ref.value()["c", jnp.int32(place)])


@pytest.mark.parametrize(
    "value",
    [
        3,
        2.5,
        np.float32(1),
        jnp.ones(()),
        hax.NamedArray(jnp.ones(()), ()),
        X["a", 0] * 2,
        X["a", 0, "b", 0] * 2,
        X["a", 0].rearrange(("c", "b")),
        X["a", 0].astype(jnp.bfloat16),
        X["a", 0].astype(jnp.int8),
        hax.NamedArray(VALUES[0] + 1, ("b", "c")),
    ],
    ids=range(11),
)
def test_values_are_broadcast_by_name_in_the_dtype_of_the_ref(value):
    ref = hax.new_ref(X)
    ref["a", 1] = value
    same(ref.value(), X.at["a", 1].set(value))


def test_an_unnamed_value_of_the_very_shape_is_taken():
    ref = hax.new_ref(X)
    ref[...] = VALUES * 2
    ref["a", 0] = jnp.ones((3, 4))
    same(ref.value(), (X * 2).at["a", 0].set(1))


@pytest.mark.parametrize("dtype", [jnp.bool_, jnp.int8, jnp.bfloat16, jnp.complex64])
def test_dtypes(dtype):
    ref = hax.new_ref(X.astype(dtype))
    ref["a", 0] = X["a", 1].astype(dtype)
    same(ref["a", 0], X["a", 1].astype(dtype))
    assert ref.dtype == dtype


def test_random_keys():
    keys = hax.NamedArray(jax.random.split(jax.random.key(0), 3), ("k",))
    ref = hax.new_ref(keys)
    ref["k", 0] = keys["k", 2]
    assert (ref["k", jnp.int32(0)].array == keys["k", 2].array).all()
    assert ref["k", slice(1, 1)].shape == {"k": 0}


@pytest.mark.parametrize("sizes", [(0, 2), (2, 0), (1, 1), (2, 1)])
def test_sizes_zero_and_one(sizes):
    x = hax.NamedArray(jnp.ones(sizes), ("a", "b"))
    ref = hax.new_ref(x)
    ref[...] = 2
    same(ref.value(), x * 2)
    ref["b", slice(0, 0)] = 5
    same(ref["a", slice(0, 1)], x["a", slice(0, 1)] * 2)


def test_without_axes():
    ref = hax.new_ref(hax.NamedArray(jnp.float32(1), ()))
    ref[...] += 1
    assert float(ref[...]) == float(ref.value()) == 2 and ref.axes == () and ref.ndim == 0


def test_the_array_itself_stays():
    x = hax.NamedArray(VALUES.copy(), ("a", "b", "c"))
    ref = hax.new_ref(x)
    ref[...] = 0
    assert np.array_equal(x.array, VALUES)


# views --------------------------------------------------------------------------------------------------------------


def test_what_it_is():
    ref = hax.new_ref(X).slice({"a": 0, "c": slice(1, None, 2)})
    assert ref.axes == (Axis("b", 3), Axis("c", 2))
    assert ref.shape == ref.named_shape == {"b": 3, "c": 2}
    assert (ref.ndim, ref.dtype) == (2, jnp.float32)
    assert ref.resolve_axis("c") == Axis("c", 2) and ref.resolve_axis(("b",)) == (Axis("b", 3),)
    assert repr(ref) == "NamedRef(float32[b=3, c=2])"
    assert ref.unsliced().axes == X.axes
    assert ref.unsafe_buffer_pointer() == ref.unsliced().unsafe_buffer_pointer()


steps = st.one_of(
    st.none(),
    st.integers(0, 1).map(lambda i: ("int", i)),
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 2)).map(lambda s: ("slice", slice(*s))),
    st.integers(-2, 3).map(lambda i: ("traced", jnp.int32(i))),
)


@settings(max_examples=10)
@given(st.lists(st.tuples(st.sampled_from("abc"), steps), max_size=5), st.integers(-3, 3))
def test_views_of_views(path, value):
    ref, expected = hax.new_ref(X), X
    view = ref
    for axis, step in path:
        size = view.shape.get(axis)
        if step is None or size is None or (step[0] != "slice" and not size):
            continue
        kind, item = step
        item = item % size if kind == "int" else jnp.clip(item, -size, size - 1) if kind == "traced" else item
        view, expected = view.slice({axis: item}), expected[axis, item]
    same(view.value(), expected)
    view[...] = value
    expected = np.where(np.isin(VALUES, np.asarray(expected.array)), value, VALUES)
    assert np.array_equal(ref.value().array, expected)


@pytest.mark.parametrize("index", INDICES[3::5], ids=range(3, len(INDICES), 5))
def test_indices_of_views(index):
    base = np.zeros((2, 3, 9), np.float32)
    base[..., :8:2] = VALUES
    ref = hax.new_ref(hax.NamedArray(base, X.axis_names))
    view = ref.slice({"c": slice(0, 8, 2)})
    same(view[index], X[index])
    view[index] = 50
    base[..., :8:2] = written(index, np.full(X[index].array.shape, 50))
    assert_same(ref.value().array, base)


@pytest.mark.parametrize("start", [-1, 1, 3])
def test_windows_whose_start_is_traced(start):
    @jax.jit
    def f(ref, start):
        view = ref.slice({"c": ds(start, 2), "a": 1})
        assert view.shape == {"b": 3, "c": 2}
        view["b", 0] = 100
        view[...] += 1
        return view.value()

    ref, window = hax.new_ref(X), ds(jnp.int32(start), 2)
    result = f(ref, start)
    updated = X.at["c", window, "a", 1, "b", 0].set(100).at["c", window, "a", 1].add(1)
    same(result, updated["a", 1]["c", window])
    same(ref.value(), updated)


def test_a_view_of_a_traced_place_crosses_into_a_program():
    view = hax.new_ref(X).slice({"a": jnp.int32(1), "c": slice(1, 3)})

    @jax.jit
    def f(view):
        view[...] = view[...] * 2
        return view.value()

    same(f(view), X["a", 1, "c", slice(1, 3)] * 2)


# functions ----------------------------------------------------------------------------------------------------------


def test_freeze():
    same(hax.freeze(hax.new_ref(X)), X)
    same(hax.freeze(hax.new_ref(X).slice({"a": 1})), X["a", 1])


def test_plain_refs():
    ref = jax.new_ref(jnp.arange(3.0))
    assert_same(hax.get(ref), jnp.arange(3.0))
    assert_same(hax.swap(ref, 0, jnp.float32(9)), jnp.float32(0))
    assert_same(hax.freeze(ref), jnp.array([9.0, 1, 2]))


# transformations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jit", [False, True])
def test_in_the_body_of_a_fold(jit):
    steps = Axis("step", 4)

    def run(x):
        ref = hax.new_ref(x)

        def body(carry, i):
            ref["c", i] = ref["c", i] * carry
            return carry + 1

        total = hax.fold(body, steps)(1.0, hax.arange(steps))
        return total, hax.freeze(ref)

    total, out = (jax.jit(run) if jit else run)(X)
    same(out, X * hax.arange(Axis("c", 4), start=1, dtype=jnp.float32))
    assert total == 5


def test_in_a_scan_and_under_grad():
    def run(raw):
        ref = hax.new_ref(hax.NamedArray(raw, X.axis_names))

        def body(carry, i):
            ref["a", 0, "c", i] = ref["a", 1, "c", i] * ref["a", 0, "c", i]
            return carry, ref["a", 0, "b", 0, "c", i]

        hax.scan(body, Axis("c", 4))(None, hax.arange(Axis("c", 4)))
        return hax.freeze(ref)["a", 0].sum().scalar()

    expected = np.stack([VALUES[1], VALUES[0]])
    assert_same(jax.jit(jax.grad(run))(X.array), expected)


def test_under_vmap():
    def run(x, scale):
        ref = hax.new_ref(x)
        ref["c", 1] *= scale
        return hax.freeze(ref)

    scale = hax.NamedArray(jnp.array([2.0, 3.0]), ("a",))
    same(hax.vmap(run, "a")(X, scale), X.at["c", 1].multiply(scale))


def test_an_argument_of_named_jit():
    ref, f = hax.new_ref(X), hax.named_jit(lambda ref, v: ref.__setitem__(("a", 0), v))
    for value in (1.0, 2.0):
        f(ref, hax.full((Axis("b", 3), Axis("c", 4)), value))
    same(ref.value(), X.at["a", 0].set(2))


def test_in_a_shard_map(mesh):
    @jax.jit
    def run(ref):
        hax.shard_map(lambda ref: ref.__setitem__(("a", 0), 5.0), mesh=mesh, axis_mapping={})(ref)
        return ref.value()

    whole = X.like(jax.device_put(X.array, NamedSharding(mesh, P())), X.axis_names)
    same(run(hax.new_ref(whole)), X.at["a", 0].set(5))


EXPLICIT = [
    (..., P("data", None)),
    (("a", 0), P(None)),
    (("a", jnp.int32(1)), P(None)),
    (("a", jnp.int32(9)), P(None)),
    (("a", places(0, 1), "b", 2), P(None)),
]


@pytest.mark.parametrize(("index", "spec"), EXPLICIT, ids=range(len(EXPLICIT)))
def test_explicit_mesh_axes(explicit_mesh, index, spec):
    with jax.set_mesh(explicit_mesh):
        x = hax.shard(hax.NamedArray(jnp.arange(32.0).reshape(8, 4), ("a", "b")), {"a": "data"})
        ref = hax.new_ref(x)
        same(ref[index], x[index])
        assert jax.typeof(ref[index].array).sharding.spec == spec
        ref[index] = 100
        same(ref.value(), x if index is EXPLICIT[3][0] else x.at[index].set(100))
        assert jax.typeof(ref.value().array).sharding.spec == P("data", None)


# errors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_ref_is_not_copied(take):
    with pytest.raises(TypeError) as error:
        take(hax.new_ref(X))
    assert str(error.value) == (
        "NamedRef: a place in memory can not be copied or pickled. Take its value: ref.value()."
    )


def write(index, value):
    hax.new_ref(X)[index] = value


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda r: r["cc", 0], ValueError, "NamedRef: no axis 'cc'; the array has a=2, b=3, c=4. Did you mean 'c'?"),
        (lambda r: r["c", 4], IndexError, "NamedRef: index 4 of axis 'c'; expected -4 to 3."),
        (lambda r: write(("c", -5), 0), IndexError, "NamedRef: index -5 of axis 'c'; expected -4 to 3."),
        (lambda r: r.slice({"c": slice(0, 0)})["c", 0], IndexError, "NamedRef: index 0 of axis"
         " 'c'; it is empty."),
        (lambda r: r.slice({"c": slice(0, 0)})["c", jnp.int32(0)], IndexError, "NamedRef: an index of axis 'c'; it is"
         " empty."),
        (lambda r: r[0], TypeError, "NamedRef: the index is an int; expected pairs of an axis and what to take of it,"
         ' or a mapping. Write x["batch", 0] or x[{"batch": 0}].'),
        (lambda r: write(("a", 0), X), ValueError, "NamedRef: the value has a=2, b=3, c=4; expected axes among those of"
         " the place: b=3, c=4."),
        (lambda r: write(("c", slice(0, 2)), X), ValueError, "NamedRef: axis 'c' has size 4; expected 2. The value must"
         " have the size that the place has."),
        (lambda r: write(..., X * 1j), TypeError, "NamedRef: the value has dtype complex64; expected what float32 can"
         " hold. Use value.astype(...)."),
        (lambda r: r.slice({"c": places(0, 1)}), ValueError, "NamedRef.slice: the part of axis 'c' is no view; expected"
         " an integer, a slice with a positive step or one dslice, of an axis without a dslice. Index the ref instead:"
         " ref[...]."),
        (lambda r: r.slice({"c": slice(None, None, -1)}), ValueError, "NamedRef.slice: the part of axis 'c' is no view;"
         " expected an integer, a slice with a positive step or one dslice, of an axis without a dslice. Index the ref"
         " instead: ref[...]."),
        (lambda r: list(r), TypeError, "NamedRef: it can not be iterated over. Take its value: ref.value()."),
        (lambda r: hax.new_ref(2.0), TypeError, "new_ref: the array is a float; expected a NamedArray."
         " Name its axes with haliax.named(array, axes)."),
        (lambda r: hax.get(X), TypeError, "get: ref is a NamedArray; expected a NamedRef or a jax.Ref. Make one with"
         " haliax.new_ref(array)."),
        (lambda r: hax.shard_map(lambda r: r.value(), mesh=make_mesh(), axis_mapping={})(r), TypeError,
         "shard_map: r._ref is a Ref; expected an array. Call it inside jit: outside, JAX splits no mutable arrays."),
        (lambda r: jax.vmap(lambda r: r["a", 0])(r), ValueError, "NamedRef: a ref with a=2, b=3, c=4 holds (3, 4);"
         " expected one dimension for each axis. A transformation has changed it: let the function use the ref, rather"
         " than be given it."),
    ],
)  # fmt: skip
def test_errors(call, kind, message):
    with pytest.raises(kind) as error:
        call(hax.new_ref(X))
    assert str(error.value) == message


def test_an_unnamed_value_of_another_shape():
    with pytest.raises(ValueError, match=r"^NamedRef: "):
        write(..., jnp.ones(4))
