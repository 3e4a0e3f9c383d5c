"""Operands laid out differently on explicit mesh axes: the axis mapping in force decides, or an error tells."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import haliax as hax
from haliax import Axis
from haliax.partitioning import axis_mapping
from meshes import make_mesh

MAPPING = {"b": "data", "e": "model"}
REMEDY = (
    "expected operands that agree. Lay one out anew with haliax.shard(x, mapping), or let a mapping decide: "
    "`with haliax.axis_mapping(mapping):`."
)


def on(mesh, names, *spec):
    """An array with axes of size 8 in a layout, or on one device if there is no mesh."""
    names = tuple(names.split())
    values = np.arange(8.0 ** len(names), dtype=np.float32).reshape((8,) * len(names)) / 8
    return hax.NamedArray(
        jnp.asarray(values) if mesh is None else jax.device_put(values, NamedSharding(mesh, P(*spec))), names
    )


def layout(x) -> tuple:
    return tuple(jax.typeof(x.array).sharding.spec)


TWO_WAYS = "axis 'b' is laid out in two ways: (b@data, e) and (b@model, e)"
# the operation, the axes and layouts of its operands, the layout by the mapping below, what is wrong without a mapping
CONFLICTS = {
    "add": (lambda x, y: x + y, ("b e", "data"), ("b e", "model"), ("data", "model"), TWO_WAYS),
    "add, transposed": (
        lambda x, y: x + y,
        ("b e", "data"),
        ("e b", None, "model"),
        ("data", "model"),
        "axis 'b' is laid out in two ways: (b@data, e) and (e, b@model)",
    ),
    "add, broadcast": (
        lambda x, y: x + y,
        ("b e", "data"),
        ("e", "data"),
        ("data", "model"),
        "mesh axis 'data' would split both 'b' and 'e' of the result: (b@data, e) and (e@data)",
    ),
    "where": (lambda x, y: hax.where(x > 0, x, y), ("b e", "data"), ("b e", "model"), ("data", "model"), None),
    "sum": (lambda x, y: hax.sum(x, "e", where=y > 2), ("b e", "data"), ("b", "model"), ("data",), None),
    "dot, batch": (lambda x, y: hax.dot(x, y, axis="e"), ("b e", "data"), ("b e", "model"), ("data",), TWO_WAYS),
    "dot, contracted": (
        lambda x, y: hax.dot(x, y, axis="e"),
        ("b e", None, "data"),
        ("e o", "model"),
        ("data", None),
        "axis 'e' is laid out in two ways: (b, e@data) and (e@model, o)",
    ),
    "dot, kept": (
        lambda x, y: hax.dot(x, y, axis="e"),
        ("b e", "data", "model"),
        ("e o", "model", "data"),
        ("data", None),
        "mesh axis 'data' would split both 'b' and 'o' of the result: (b@data, e@model) and (e@model, o@data)",
    ),
    "take": (
        lambda x, y: x.take("e", y.astype(int)),
        ("b e", "data"),
        ("p", "data"),
        ("data", None),
        "mesh axis 'data' would split both 'b' and 'p' of the result: (b@data, e) and (p@data)",
    ),
    "at": (lambda x, y: x.at["e", 0].add(y), ("b e", "data"), ("b", "model"), ("data", None), None),
    "stack": (lambda x, y: hax.stack("n", [x, y]), ("b e", "data"), ("b e", "model"), (None, "data", "model"), None),
}
each_conflict = pytest.mark.parametrize("name", CONFLICTS)


@each_conflict
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
def test_the_mapping_decides(name, jitted, explicit_mesh):
    fn, x, y, expected, _ = CONFLICTS[name]
    with axis_mapping(MAPPING), jax.set_mesh(explicit_mesh):
        got = (jax.jit(fn) if jitted else fn)(on(explicit_mesh, *x), on(explicit_mesh, *y))
    np.testing.assert_allclose(np.asarray(got.array), np.asarray(fn(on(None, x[0]), on(None, y[0])).array), 1e-5)
    assert layout(got) == expected


@pytest.mark.parametrize("name", [name for name, case in CONFLICTS.items() if case[-1] is not None])
def test_without_a_mapping_the_error_names_both_layouts(name, explicit_mesh):
    fn, x, y, _, wrong = CONFLICTS[name]
    with jax.set_mesh(explicit_mesh), pytest.raises(ValueError, match=r"mesh axis|two ways") as error:
        fn(on(explicit_mesh, *x), on(explicit_mesh, *y))
    assert str(error.value) == f"{name.split(',')[0]}: {wrong}; {REMEDY}"


def test_a_mapping_that_does_not_fit(explicit_mesh):
    x, y = on(explicit_mesh, "b e", "data"), on(explicit_mesh, "e o", None, "data")
    with jax.set_mesh(explicit_mesh), axis_mapping({"b": "data", "o": "data"}), pytest.raises(ValueError) as error:
        hax.dot(x, y, axis="e")
    assert str(error.value) == (
        "dot: mesh axis 'data' would split both 'b' and 'o' of the result; the axis mapping in force says so. "
        "Map one of them to another mesh axis."
    )
    with jax.set_mesh(explicit_mesh), axis_mapping({"b": "dota"}), pytest.raises(ValueError) as error:
        hax.dot(x, y, axis="e")
    assert str(error.value) == (
        "dot: axis 'b' is mapped to mesh axis 'dota'; the mesh has data=4, model=2. Did you mean 'data'?"
    )


def test_other_errors_stay(explicit_mesh):
    x = on(explicit_mesh, "b e", "data")
    with jax.set_mesh(explicit_mesh), pytest.raises(ValueError, match=r"no axis 'q'"):
        hax.roll(x, 1, "q")


@pytest.mark.parametrize("map_it", [False, True], ids=["no mapping", "mapping"])
def test_agreement_adds_no_operation(map_it, explicit_mesh):
    """Operands that agree are left alone, also by a mapping that would have them elsewhere."""
    x, y = on(explicit_mesh, "b e", "model", "data"), on(explicit_mesh, "b e", "model", "data")
    with jax.set_mesh(explicit_mesh), axis_mapping(MAPPING) if map_it else contextlib.nullcontext():
        named = jax.jit(lambda x, y: (x + y).sum("b").array).lower(x, y).as_text()
    with jax.set_mesh(explicit_mesh):
        raw = jax.jit(lambda x, y: jnp.sum(x + y, axis=0)).lower(x.array, y.array).as_text()
    assert [line.split("{")[0] for line in named.splitlines()[3:]] == [
        line.split("{")[0] for line in raw.splitlines()[3:]
    ]


def test_a_contraction_is_the_one_of_jax(explicit_mesh):
    """The program with the layout that names tell is the one with `out_sharding`."""
    x, y = on(explicit_mesh, "b e", "data", "model"), on(explicit_mesh, "e o", "model")
    dims = (((1,), (0,)), ((), ()))
    with jax.set_mesh(explicit_mesh):
        named = jax.jit(lambda x, y: hax.dot(x, y, axis="e").array).lower(x, y).as_text()
        raw = jax.jit(lambda x, y: jax.lax.dot_general(x, y, dims, out_sharding=P("data", None)))
        raw = raw.lower(x.array, y.array).as_text()
    body = [line for line in named.splitlines() if "%" in line and "func" not in line]
    assert body == [line for line in raw.splitlines() if "%" in line and "func" not in line]


def test_only_the_operand_that_disagrees_moves(explicit_mesh):
    x, y = on(explicit_mesh, "b e", "data"), on(explicit_mesh, "b e", "model")
    with jax.set_mesh(explicit_mesh), axis_mapping({"b": "data"}):
        jaxpr = jax.make_jaxpr(lambda x, y: (x + y).array)(x, y).jaxpr
    first = next(eqn for eqn in jaxpr.eqns if eqn.primitive.name == "reshard")
    assert first.invars == jaxpr.invars[1:]
    assert first.outvars[0].aval == jax.typeof(x.array)


def test_mixed_mesh():
    """What a mapping says of automatic mesh axes is left to the compiler."""
    mesh = make_mesh(types=(AxisType.Explicit, AxisType.Auto))
    x, y = on(mesh, "b e", "data"), on(mesh, "e b", "data")
    with jax.set_mesh(mesh), axis_mapping(MAPPING):
        got = jax.jit(lambda x, y: x + y)(x, y)
    assert layout(got) == ("data", None)
    np.testing.assert_array_equal(np.asarray(got.array), np.asarray((on(None, "b e") + on(None, "e b")).array))


def test_without_an_ambient_mesh(explicit_mesh):
    x = on(explicit_mesh, "b e", "data", "model")
    assert layout(hax.dot(x, x, axis="e")) == ("data",)
    assert layout(x.at["b", 3].set(0.0)) == ("data", "model")
    assert layout(hax.fold(lambda c, row: c + row, "b")(hax.zeros(Axis("e", 8)), x)) == ("model",)


# --- along axes ---


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: hax.concatenate("e", [x, hax.NamedArray(np.ones((8, 8)), ("e", "b"))]),
        lambda x: x["e", hax.NamedArray(np.zeros(8, np.int64), ("b",))],
    ],
    ids=["floats", "integers"],
)
def test_numpy_arrays_of_64_bits_beside_a_layout(fn, explicit_mesh):
    x = on(explicit_mesh, "b e", "data")
    with jax.set_mesh(explicit_mesh):
        result = fn(x)
    assert layout(result)[0] == "data"
    np.testing.assert_array_equal(result.array, fn(hax.NamedArray(np.asarray(x.array), x.axis_names)).array)


@pytest.mark.parametrize("mapping", [None, {"b": "model"}], ids=str)
def test_vmap_over_two_layouts(mapping, explicit_mesh):
    x, y = on(explicit_mesh, "b e", "data"), on(explicit_mesh, "b e", "model")
    add = hax.vmap(lambda x, y: x + y, "b")
    with jax.set_mesh(explicit_mesh):
        if mapping is not None:
            with axis_mapping(mapping):
                assert layout(add(x, y)) == ("model", None)
            return
        with pytest.raises(ValueError) as error:
            add(x, y)
    assert str(error.value) == "vmap: axis 'b' is split over (data) and (model); " + REMEDY.replace(
        "operands", "arguments"
    )


@pytest.mark.parametrize("jit", [False, True])
def test_vmap_over_the_mesh_axis_of_another_axis(jit, explicit_mesh):
    x, y = on(explicit_mesh, "b", "data"), on(explicit_mesh, "e", "data")
    multiply = hax.vmap(lambda x, y: x * y, "b")
    with jax.set_mesh(explicit_mesh), pytest.raises(ValueError) as error:
        (jax.jit(multiply) if jit else multiply)(x, y)
    assert str(error.value) == (
        "vmap: axis 'b' and an axis that it meets in the function are split over the same mesh axis; expected distinct"
        " ones. Map one of them to another mesh axis."
    )


@pytest.mark.parametrize("mapping", [None, {"e": "data"}], ids=str)
def test_a_carry_in_two_layouts(mapping, explicit_mesh):
    init, xs = on(explicit_mesh, "e", "model"), on(explicit_mesh, "b e", None, "data")
    fold = hax.fold(lambda c, row: row * 2, "b")
    with jax.set_mesh(explicit_mesh):
        if mapping is not None:
            with axis_mapping(mapping):
                assert layout(fold(init, xs)) == ("data",)
            return
        with pytest.raises(ValueError) as error:
            fold(init, xs)
    assert str(error.value) == "fold: axis 'e' is laid out in two ways: (e@model) and (e@data); " + REMEDY


def test_a_carry_keeps_a_finer_layout(explicit_mesh):
    """A step that loses the layout of its carry gets it back, without moving data."""
    init, xs = on(explicit_mesh, "e", "model"), on(explicit_mesh, "b e")
    with jax.set_mesh(explicit_mesh):
        assert layout(hax.fold(lambda c, row: row, "b")(init, xs)) == ("model",)
        raw = hax.fold(lambda c, row: row.array * 2, "b")(jnp.zeros(8), on(explicit_mesh, "b e", None, "data"))
    assert tuple(jax.typeof(raw).sharding.spec) == ("data",)
