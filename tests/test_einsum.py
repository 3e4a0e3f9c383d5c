"""Einstein summation against `jnp.einsum`: every form of equation, dtypes, compiled operations, layouts."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax.sharding import NamedSharding, PartitionSpec as P

import haliax as hax
from haliax import Axis, NamedArray
from programs import operations
from strategies import DTYPES

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5}


def array(names: str, dtype=jnp.float32, seed: int = 0, largest: int = 2) -> NamedArray:
    """An array of small whole numbers, which no order of summation rounds; each letter is an axis."""
    values = np.random.default_rng([seed, len(names)]).integers(0, largest + 1, [SIZES[n] for n in names])
    return NamedArray(jnp.asarray(values, dtype), tuple(names))


def check(result: NamedArray, spec: str, arrays: list[NamedArray]) -> None:
    """The result is that of `jnp.einsum`, with the axes that the specification gives it."""
    expected = jnp.einsum(spec, *(a.array for a in arrays))
    assert result.axis_names == tuple(spec.split("->")[1])
    assert jax.typeof(result.array) == jax.typeof(expected)
    np.testing.assert_array_equal(result.array, expected)


# (equation, keywords, the same for `jnp.einsum`)
TABLE = [
    # axes in order
    ("i j, j k -> i k", {}, "ab,bc->ac"),
    ("i j,j k->k i", {}, "ab,bc->ca"),
    ("a b, b c -> a c", {}, "ab,bc->ac"),
    ("b a, a c -> b c", {}, "ab,bc->ac"),
    ("i j, j k -> {i k}", {}, "ab,bc->ac"),
    ("i j, j k -> i j k", {}, "ab,bc->abc"),
    ("i j, j k -> ", {}, "ab,bc->"),
    ("i j, k l -> i l", {}, "ab,cd->ad"),
    ("i j -> j i", {}, "ab->ba"),
    ("i j -> i", {}, "ab->a"),
    ("i j k, j k -> i", {}, "abc,bc->a"),
    ("i j, j k, k l -> l i", {}, "ab,bc,cd->da"),
    ("i j, -> j i", {}, "ab,->ba"),
    (", i -> i", {}, ",a->a"),
    (",->", {}, ",->"),
    ("i j, j k -> k i", {"i": "a", "j": Axis("b", 3), "k": 4}, "ab,bc->ca"),
    ("'x y' j, j \"it's\" -> 'x y' \"it's\"", {}, "ab,bc->ac"),
    ("i ..., ... k -> i k", {}, "ab,bc->ac"),
    ("i ... k, k ... l -> i ... l", {}, "abc,cbd->abd"),
    ("i ... k, k ... l -> i l", {}, "abc,cbd->ad"),
    ("... k, k l -> ... l", {}, "abc,cd->abd"),
    ("... k, k ... -> ...", {}, "ab,bc->ac"),
    ("... k, k ... -> k ...", {}, "ab,bc->bac"),
    ("..., ... -> ...", {}, "abc,cb->abc"),
    ("i ..., i ... -> ...", {}, "ab,ac->bc"),
    ("i ..., ... j -> ... j ... i", {}, "abc,bd->bcda"),
    ("i j, j k -> i ... k", {}, "ab,bc->ac"),
    ("i j, j k -> ...", {}, "ab,bc->"),
    # axes by name
    ("{b} -> ", {}, "ab,bc->ac"),
    ("{a b} -> a", {}, "ab,bc->ca"),
    ("{a b c} -> a c", {}, "ab,bc->ac"),
    ("{a b c} -> c a", {}, "ab,bc->ca"),
    ("{b c} -> {c}", {}, "ab,bc->ac"),
    ("{a} -> a", {}, "ab->ba"),
    ("{b c} ->", {}, "ab,bc,cd->ad"),
    ("{a ...} -> a", {}, "ab,bc->a"),
    ("{...} -> c a", {}, "ab,bc->ca"),
    ("{...} -> ", {}, "ab,bc->"),
    ("{...} -> ...", {}, "ab,bc->abc"),
    ("{} -> ...", {}, "ab,bc->abc"),
    ("{b} -> c ...", {}, "ab,bc->cab"),
    ("{b} -> ... a", {}, "ab,bc->bca"),
    ("{a} -> ... b ...", {}, "ab,bc->abc"),
    ("{x y} -> x", {"x": "a", "y": Axis("b", 3)}, "ab,bc->ca"),
    ("{a b} -> a", {"a": 2, "b": 3}, "ab,bc->ca"),
    ("{a} -> ", {"a": "b"}, "ab,bc->ac"),
    # the result by name
    ("-> a c", {}, "ab,bc->ac"),
    ("->c", {}, "ab,bc->c"),
    ("-> {c a}", {}, "ab,bc->ca"),
    ("->", {}, "ab,bc->"),
    ("->", {}, "->"),
    ("-> c ...", {}, "ab,bc->cab"),
    ("-> ...", {}, "ab,bc->abc"),
    ("-> x", {"x": Axis("c", 4)}, "ab,bc->c"),
    ("-> b a", {}, "ab->ba"),
]


@pytest.mark.parametrize(("equation", "aliases", "spec"), TABLE, ids=[case[0] for case in TABLE])
def test_table(equation, aliases, spec):
    arrays = [array(names, seed=i) for i, names in enumerate(spec.split("->")[0].split(","))]
    check(hax.einsum(equation, *arrays, **aliases), spec, arrays)


def test_one_axis_under_two_names_is_two_axes():
    x, y = array("ab"), array("bc", seed=1)
    np.testing.assert_array_equal(hax.einsum("i j, k l -> i l", x, y).array, np.outer(x.array.sum(1), y.array.sum(0)))
    result = hax.einsum("i ..., k l -> i ...", x, y)
    np.testing.assert_array_equal(result.array, x.array * y.array.sum())


def test_a_name_in_the_equation_is_not_that_of_an_axis():
    result = hax.einsum("b a, a b -> b", array("ab"), array("ba"), a="b", b="a")
    assert result.axis_names == ("a",)


# equations drawn at random -------------------------------------------------------------------------------------------


def in_order(draw, operands: list[str], contracted: set[str], out: str) -> tuple[str, str]:
    """An equation of the first form, and the axes of its result; `...` stands for the axes in `rest`."""
    rest = [n for n in draw(st.sampled_from([sorted(contracted), sorted(out)])) if draw(st.booleans())]

    def words(names) -> list[str]:
        return [word for word, _ in itertools.groupby("..." if n in rest else f"i{n}" for n in names)]

    if any(words(names).count("...") > 1 for names in operands):
        rest = []
    named = [n for n in out if n not in rest]
    taken = [n for n in dict.fromkeys("".join(operands)) if n in rest and n in out]
    at = draw(st.integers(0, len(named)))
    out = "".join([*named[:at], *taken, *named[at:]])
    return f"{', '.join(' '.join(words(names)) for names in operands)} -> {' '.join(words(out))}", out


@st.composite
def contractions(draw):
    """Arrays, and what to do with them in one of the forms; the specification for einsum."""
    letters = st.lists(st.sampled_from("abcd"), unique=True, max_size=3).map("".join)
    operands = draw(st.lists(letters, min_size=1, max_size=3))
    seen = "".join(dict.fromkeys("".join(operands)))
    contracted = {n for n in seen if draw(st.booleans())}
    out = "".join(draw(st.permutations([n for n in seen if n not in contracted])))
    form = draw(st.sampled_from(["in order", "braces", "all in braces", "result", "dot"]))
    if form == "in order":
        equation, out = in_order(draw, operands, contracted, out)
    elif form == "braces":
        mentioned = {n for n in out if draw(st.booleans())}
        kept = "".join(n for n in seen if n in out and n not in mentioned)
        listed = [n for n in out if n in mentioned]
        equation = f"{{{' '.join(draw(st.permutations(sorted(contracted | mentioned))))}}} -> {' '.join(listed)}"
        out = kept + "".join(listed)
    elif form == "dot":
        equation = None
    else:
        equation = f"{'{...} ' if form == 'all in braces' else ''}-> {' '.join(out)}"
    dtypes = [draw(st.sampled_from(DTYPES)) for _ in operands]
    if len(operands) > 2:  # `jnp.einsum` refuses some mixed dtypes
        dtypes = dtypes[:1] * len(operands)
    arrays = [array(n, dtype, seed, largest=1) for seed, (n, dtype) in enumerate(zip(operands, dtypes, strict=True))]
    return equation, arrays, tuple(sorted(contracted)), f"{','.join(operands)}->{out}"


def run(equation, arrays, contracted, spec):
    if equation is None:
        return hax.dot(*arrays, axis=contracted, out_axes=tuple(spec.split("->")[1]))
    return hax.einsum(equation, *arrays)


@settings(max_examples=60)
@given(st.lists(contractions(), min_size=5, max_size=5))
def test_any_equation_is_that_of_jax_numpy(cases):
    """Five equations at a time, which is one compilation; `jax.numpy` tells the types, and numpy the numbers."""

    @jax.jit
    def run_all(operands):
        return [run(c[0], arrays, *c[2:]) for c, arrays in zip(cases, operands, strict=True)]

    results = run_all([case[1] for case in cases])
    for (_, arrays, _, spec), result in zip(cases, results, strict=True):
        assert result.axis_names == tuple(spec.split("->")[1])
        plain = jax.eval_shape(functools.partial(jnp.einsum, spec), *(a.array for a in arrays))
        assert result.array.dtype == plain.dtype
        expected = np.einsum(spec, *(np.asarray(a.array, complex) for a in arrays))
        if result.array.dtype == bool:
            expected = expected != 0
        np.testing.assert_array_equal(np.asarray(result.array, complex), expected)


# dtypes and options --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_dtypes(dtype):
    x, y = array("ab", dtype), array("bc", dtype, seed=1)
    check(hax.einsum("{b} -> ", x, y), "ab,bc->ac", [x, y])


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32, jnp.complex64], ids=lambda d: d.__name__)
def test_integers_and_then_floats(dtype):
    """`jnp.einsum` refuses this for dtypes of 16 bits."""
    arrays = [array("ab", jnp.int32), array("bc", jnp.int32, seed=1), array("cd", dtype, seed=2)]
    result = hax.einsum("-> d a", *arrays)
    assert result.array.dtype == dtype
    expected = np.einsum("ab,bc,cd->da", *(np.asarray(a.array, complex) for a in arrays))
    np.testing.assert_array_equal(np.asarray(result.array, complex), expected)


def test_preferred_element_type_and_precision():
    x, y = array("ab", jnp.bfloat16), array("bc", jnp.bfloat16)
    result = hax.einsum("-> a c", x, y, preferred_element_type=jnp.float32, precision="highest")
    assert result.array.dtype == jnp.float32
    program = jax.make_jaxpr(lambda x, y: hax.einsum("-> a c", x, y, precision="highest").array)(x, y)
    assert "Precision.HIGHEST" in str(program)


def test_another_dot_general():
    calls = []

    def dot_general(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None, **kwargs):
        calls.append((lhs.shape, rhs.shape, dimension_numbers, precision, preferred_element_type, kwargs))
        return jax.lax.dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)

    result = hax.einsum("i j, j k -> i k", array("ab"), array("bc"), _dot_general=dot_general)
    assert calls == [((2, 3), (3, 4), (((1,), (0,)), ((), ())), None, jnp.float32, {})]
    assert result.axis_names == ("a", "c")


@pytest.mark.parametrize(("equation", "aliases", "spec"), TABLE, ids=[case[0] for case in TABLE])
def test_lowers_to_the_operations_of_jax_numpy(equation, aliases, spec):
    arrays = [array(names) for names in spec.split("->")[0].split(",")]
    if len(arrays) < 3:  # `jnp.einsum` wraps the steps of longer ones in functions
        ours = operations(lambda *x: hax.einsum(equation, *x, **aliases).array, *arrays)
        plain = operations(lambda *x: jnp.einsum(spec, *x), *(a.array for a in arrays))
        assert sorted(ours) == sorted(plain)


def test_sizes_of_zero_and_one():
    x, y = hax.ones({"a": 2, "b": 0}), hax.ones({"b": 0, "c": 1})
    assert hax.einsum("{b} ->", x, y).array.tolist() == [[0.0], [0.0]]
    assert hax.einsum("i j, j k -> k", x, y).array.tolist() == [0.0]


def test_transforms():
    x, y = array("abc"), array("cd", seed=1)
    f = lambda x, y: hax.einsum("{b c} -> b", x, y)  # noqa: E731
    expected = f(x, y)
    np.testing.assert_array_equal(jax.jit(f)(x, y).array, expected.array)
    ours = jax.grad(lambda x, y: (f(x, y) ** 2).sum().scalar(), argnums=(0, 1))(x, y)
    plain = jax.grad(lambda x, y: (jnp.einsum("abc,cd->adb", x, y) ** 2).sum(), argnums=(0, 1))(x.array, y.array)
    for mine, its in zip(ours, plain, strict=True):
        np.testing.assert_array_equal(mine.array, its)
    mapped = hax.vmap(f, "a")(x, y)
    np.testing.assert_array_equal(mapped.rearrange(expected.axis_names).array, expected.array)
    assert jax.eval_shape(f, x, y).axes == expected.axes


def test_arrays_on_the_host():
    x = NamedArray(np.ones((2, 3), np.float32), ("a", "b"))
    np.testing.assert_array_equal(hax.einsum("-> a", x, x).array, [3.0, 3.0])


# layouts -------------------------------------------------------------------------------------------------------------

# what an array of axes (batch@data, embed@model) and a weight of (embed, out) become
LAYOUTS = [
    ("b e, e o -> b o", "8@data,4"),
    ("{embed} ->", "8@data,4"),
    ("{embed} -> ... batch", "8@model,4,8@data"),
    ("-> out batch", "4,8@data"),
    ("-> embed", "8@model"),
]


@pytest.fixture
def operands(explicit_mesh):
    batch = hax.arange({"batch": 8, "embed": 8}, dtype=jnp.float32)
    laid_out = jax.device_put(batch.array, NamedSharding(explicit_mesh, P("data", "model")))
    return batch.like(laid_out, batch.axis_names), hax.arange({"embed": 8, "out": 4}, dtype=jnp.float32)


def layout(x: NamedArray) -> str:
    return str(jax.typeof(x.array)).removeprefix("float32[").removesuffix("]")


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize(("equation", "expected"), LAYOUTS)
def test_explicit_mesh(equation, expected, jitted, operands, explicit_mesh):
    x, w = operands
    f = lambda x, w: hax.einsum(equation, x, w)  # noqa: E731
    with jax.set_mesh(explicit_mesh):
        result = (jax.jit(f) if jitted else f)(x, w)
    assert layout(result) == expected
    plain = f(NamedArray(np.asarray(x.array), x.axis_names), w)
    np.testing.assert_array_equal(result.array, plain.array)


@pytest.mark.parametrize(
    ("spec", "expected"), [(P("model", "data"), "8@model,4@data"), (P(None, "model"), "8,4@model")]
)
def test_out_sharding(spec, expected, operands, explicit_mesh):
    for sharding in (spec, NamedSharding(explicit_mesh, spec)):
        with jax.set_mesh(explicit_mesh):
            assert layout(hax.einsum("b e, e o -> b o", *operands, out_sharding=sharding)) == expected


def test_out_sharding_on_automatic_axes(operands, mesh):
    x, w = (NamedArray(np.asarray(a.array), a.axis_names) for a in operands)
    result = hax.einsum("-> out batch", x, w, out_sharding=NamedSharding(mesh, P(None, "data")))
    assert result.array.sharding.spec == P(None, "data")
    with jax.set_mesh(mesh):
        f = jax.jit(lambda x, w: hax.einsum("-> out batch", x, w, out_sharding=P("model")))
        assert f(x, w).array.sharding.spec in (P("model"), P("model", None))


BAD_LAYOUTS = [
    (P(), ValueError, "out_sharding is a PartitionSpec and there is no mesh; expected a NamedSharding."),
    (P(None, None, None), ValueError, "out_sharding has 3 entries; expected at most one for each axis of (a, c)."),
    ("data", TypeError, "out_sharding is a string; expected a NamedSharding or a PartitionSpec."),
]


@pytest.mark.parametrize(("out_sharding", "error", "message"), BAD_LAYOUTS)
def test_bad_out_sharding(out_sharding, error, message):
    with pytest.raises(error) as raised:
        hax.einsum("-> a c", array("ab"), array("bc"), out_sharding=out_sharding)
    assert str(raised.value) == f"einsum: {message}"


def test_out_sharding_must_fit(mesh):
    with pytest.raises(ValueError) as raised:
        hax.einsum("-> a c", array("ab"), array("bc"), out_sharding=NamedSharding(mesh, P("data")))
    assert str(raised.value).startswith("einsum: the result: axis a=2 can not be split over mesh axes (data=4);")
