"""`rearrange` by a pattern: against einops and plain JAX, with what it compiles to and where it is laid out."""

import math

import einops
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax.sharding import NamedSharding, PartitionSpec as P

import haliax as hax
from haliax import Axis
from haliax._src.rearrange import axis_spec_rearrange, einops_rearrange
from programs import operations
from strategies import DTYPES, assert_same, values

H, W, D, C = hax.make_axes(H=4, W=6, D=2, C=3)
X = hax.arange((H, W, D, C))


def check(x: hax.NamedArray, pattern: str, bindings: dict, names: str, expected) -> None:
    """The result of a pattern has these names and elements."""
    result = x.rearrange(pattern, **bindings)
    assert result.axis_names == tuple(names.split())
    assert result.array.dtype == x.array.dtype
    np.testing.assert_array_equal(result.array, expected)


SPLIT = {"a": 2, "c": 2}
# (pattern, keywords, names of the result, pattern of einops, its keywords)
TABLE = [
    ("a b c d -> d c b a", {}, "C D W H", "a b c d -> d c b a", {}),
    ("H W D C -> C D W H", {}, "C D W H", "a b c d -> d c b a", {}),
    ("W H D C -> H W D C", {}, "W H D C", "a b c d -> b a c d", {}),
    ("a b ... -> ... b a", {}, "D C W H", "a b ... -> ... b a", {}),
    ("...d->d...", {}, "C H W D", "... d -> d ...", {}),
    ("a ... d -> d ... a", {}, "C W D H", "a ... d -> d ... a", {}),
    ("a b c d -> d c ...", {}, "C D H W", "a b c d -> d c a b", {}),
    ("a ... -> ... a ...", {}, "H W D C", "a ... -> a ...", {}),
    ("a b c d -> {d c b a}", {}, "C D W H", "a b c d -> d c b a", {}),
    ("{H W D C} -> C D W H", {}, "C D W H", "a b c d -> d c b a", {}),
    ("{C W} -> ... C W", {}, "H D C W", "a b c d -> a c d b", {}),
    ("{C W ...} -> C W ...", {}, "C W H D", "a b c d -> d b a c", {}),
    ("{W C ...} -> C ... W", {}, "C H D W", "a b c d -> d a c b", {}),
    ("{C ... D} -> ... C ... D", {}, "H W C D", "a b c d -> a b d c", {}),
    ("{H} -> ...", {}, "H W D C", "a b c d -> a b c d", {}),
    ("{...} -> ...", {}, "H W D C", "a b c d -> a b c d", {}),
    ("{q w} -> w q ...", {"q": H, "w": "W"}, "W H D C", "a b ... -> b a ...", {}),
    ("{H W} -> W H ...", {"H": "W", "W": "H"}, "H W D C", "a b ... -> a b ...", {}),
    ("... -> q ...", {"q": "D"}, "D H W C", "a b c d -> c a b d", {}),
    ("a b ... -> b a ...", {"a": 4, "b": W}, "W H D C", "a b ... -> b a ...", {}),
    # merge
    ("a b c d -> (x: a b) c d", {}, "x D C", "a b c d -> (a b) c d", {}),
    ("a b c d -> (x: d a) (y: c b)", {}, "x y", "a b c d -> (d a) (c b)", {}),
    ("a b c d -> (x: a b c d)", {}, "x", "a b c d -> (a b c d)", {}),
    ("a b c d -> (C: a b d) c", {}, "C D", "a b c d -> (a b d) c", {}),
    ("a b ... -> (a: a b) ...", {}, "H D C", "a b ... -> (a b) ...", {}),
    ("a b ... -> (a: b a) ...", {"a": "H"}, "H D C", "a b ... -> (b a) ...", {}),
    ("a b ... -> (x: a b) ...", {"x": "y"}, "y D C", "a b ... -> (a b) ...", {}),
    ("a b ... -> (x: a b) ...", {"x": Axis("y", 24)}, "y D C", "a b ... -> (a b) ...", {}),
    ("a b ... -> (x: a b) ...", {"x": 24}, "x D C", "a b ... -> (a b) ...", {}),
    ("{H W D C} -> (x: D W) (y: C H)", {}, "x y", "a b c d -> (c b) (d a)", {}),
    ("{H W} -> (H: H W) ...", {}, "H D C", "a b ... -> (a b) ...", {}),
    ("{W D} -> (x: D W) ...", {}, "x H C", "a b c d -> (c b) a d", {}),
    ("{H} -> (x: H) ...", {}, "x W D C", "a ... -> a ...", {}),
    ("a b c d -> (x: a) b (c) d", {}, "x W D C", "a ... -> a ...", {}),
    ("a ... -> (x: a q) ...", {"q": "W"}, "x D C", "a b ... -> (a b) ...", {}),
    # split
    ("(a b) ... -> a b ...", {"a": 2}, "a b W D C", "(a b) ... -> a b ...", {"a": 2}),
    ("(a b) ... -> b a ...", {"a": 2, "b": 2}, "b a W D C", "(a b) ... -> b a ...", {"a": 2}),
    ("(a b) ... -> b ... a", {"a": Axis("A", 1), "b": "B"}, "B W D C A", "(a b) ... -> b ... a", {"a": 1}),
    ("a (b c d) ... -> c a d ... b", {"b": 1, "c": np.int32(3)}, "c H d D C b", "a (c d) ... -> c a d ... 1", {"c": 3}),
    ("(x: a b) ... -> ... a b", {"a": 2}, "W D C a b", "(a b) ... -> ... a b", {"a": 2}),
    ("(x: a) b (c) d -> d a c b", {}, "C H D W", "a b c d -> d a c b", {}),
    ("(H b) ... -> H b ...", {"H": 2}, "H b W D C", "(a b) ... -> a b ...", {"a": 2}),
    ("{(W: a b)} -> a ... b", {"b": 2}, "a H D C b", "h (a b) ... -> a h ... b", {"b": 2}),
    ("{(q: a b)} -> a ... b", {"q": "W", "b": 2}, "a H D C b", "h (a b) ... -> a h ... b", {"b": 2}),
    ("{(q: a b)} -> ... b a", {"q": W, "b": 2}, "H D C b a", "h (a b) ... -> h ... b a", {"b": 2}),
    ("{(H: a)} -> ... a", {}, "W D C H", "a ... -> ... a", {}),
    ("{(W: p b) ...} -> (q: b p) ...", {"p": "D"}, "q H D C", "h (p b) ... -> (b p) h ...", {"p": 2}),
    # split and merge
    ("{(H: a b) (W: c d)} -> (u: a c) (v: b d) ...", SPLIT, "u v D C", "(a b) (c d) ... -> (a c) (b d) ...", SPLIT),
    ("{(H: a b) (W: c d)} -> (H: a c) (W: b d) ...", SPLIT, "H W D C", "(a b) (c d) ... -> (a c) (b d) ...", SPLIT),
    ("{(q: a b)} -> ... (q: b a)", {"q": "H", "a": 2}, "W D C H", "(a b) ... -> ... (b a)", {"a": 2}),
    ("(x: a b) ... -> ... (x: b a)", {"a": 2}, "W D C x", "(a b) ... -> ... (b a)", {"a": 2}),
    ("(W b) ... c d -> (q: c b) ... d (H: W)", {"W": 2}, "q W C H", "(w b) e c d -> (c b) e d w", {"w": 2}),
    ("a (b c) ... -> (x: a b) c ...", {"b": 2}, "x c D C", "a (b c) ... -> (a b) c ...", {"b": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "bindings", "names", "plain", "sizes"), TABLE, ids=[case[0] for case in TABLE])
def test_table(pattern, bindings, names, plain, sizes):
    check(X, pattern, bindings, names, einops.rearrange(np.asarray(X.array), plain, **sizes))


def test_names_in_quotes():
    x = X.rename({"H": "num heads", "W": "W.a", "D": "it's"})
    assert x.rearrange("{'num heads' \"W.a\"} -> 'W.a' ... 'num heads'").axis_names == ("W.a", "it's", "C", "num heads")
    assert x.rearrange("'a b' ... -> ... 'a b'").axis_names == ("W.a", "it's", "C", "num heads")
    assert x.rearrange(r"{'it\'s'} -> 'it\'s' ...").axis_names == ("it's", "num heads", "W.a", "C")
    assert x.rearrange("{é p} -> (x_1: é p) ...", é="it's", p="C").axis_names == ("x_1", "num heads", "W.a")


def test_white_space_may_be_anything():
    assert X.rearrange("\n{ H\tW }->W\n H...").axis_names == ("W", "H", "D", "C")
    assert X.rearrange("( a  b )... -> ( x :b a)...", a=2).axis_names == ("x", "W", "D", "C")


@pytest.mark.parametrize("pattern", ["->", " -> ", "{} -> ", "{} -> {}", "...->...", "... ->", "{}->..."])
def test_no_axes(pattern):
    x = hax.named(3.0, ())
    assert x.rearrange(pattern) is x


def grouped(labels: list[str], name: str = "") -> str:
    """Several labels in parentheses, behind a name."""
    return f"({name}{' '.join(labels)})" if len(labels) > 1 else labels[0]


@st.composite
def patterns(draw):
    """An array, a pattern for it, keywords, and the pattern for einops."""
    sizes = draw(st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), max_size=4))
    labels = [[f"p{d}{i}" for i in range(len(s))] if len(s) > 1 else [f"axis{d}"] for d, s in enumerate(sizes)]
    begin, end = sorted(draw(st.tuples(*2 * [st.integers(0, len(sizes))])))
    rest = ["..."] if begin < end or draw(st.booleans()) else []
    named = [*range(begin), *range(end, len(sizes))]

    left = [grouped(labels[d]) for d in named]
    plain = " ".join([*left[:begin], *rest, *left[begin:]])
    pattern = plain
    if draw(st.booleans()):  # by name, in any order, with `...` or without
        entries = [grouped(labels[d], f"axis{d}: ") for d in named] + rest * draw(st.integers(0, 1))
        pattern = f"{{{' '.join(draw(st.permutations(entries)))}}}"

    parts, groups = draw(st.permutations([label for d in named for label in labels[d]])), []
    while parts:
        n = draw(st.integers(1, 3))
        groups.append(parts[:n])
        parts = parts[n:]
    at = draw(st.integers(0, len(groups)))
    plain += " -> " + " ".join([*map(grouped, groups[:at]), *rest, *map(grouped, groups[at:])])
    merged = [grouped(group, f"new{i}: ") for i, group in enumerate(groups)]
    pattern += " -> " + " ".join([*merged[:at], *rest, *merged[at:]])

    given = [(label, size) for d in named for label, size in list(zip(labels[d], sizes[d], strict=True))[1:]]
    array = values(np.random.default_rng(0), tuple(map(math.prod, sizes)), draw(st.sampled_from(DTYPES)), tame=True)
    names = tuple(f"axis{d}" for d in range(len(sizes)))
    return hax.NamedArray(jnp.asarray(array), names), pattern, dict(given), plain


@settings(max_examples=60)
@given(st.lists(patterns(), min_size=5, max_size=5))
def test_agrees_with_einops(cases):
    """Five patterns at a time, which is one compilation."""

    @jax.jit
    def run_all(arrays):
        return [x.rearrange(c[1], **c[2]) for x, c in zip(arrays, cases, strict=True)]

    results = run_all([case[0] for case in cases])
    for result, (x, pattern, keywords, plain) in zip(results, cases, strict=True):
        assert_same(result.array, einops.rearrange(np.asarray(x.array), plain, **keywords))
        right = pattern.split("->")[1].replace("...", "").split()
        assert [n for n in result.axis_names if n[:3] == "new"] == [n[1:-1] for n in right if n[:4] == "(new"]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_dtypes(dtype):
    array = values(np.random.default_rng(0), (4, 3), dtype)
    x = hax.NamedArray(jnp.asarray(array), ("a", "b"))
    expected = array.reshape(2, 2, 3).transpose(1, 2, 0)
    result = x.rearrange("(p q) b -> q b p", p=2).array
    assert_same(result, expected)


def test_sizes_of_zero():
    x = hax.zeros({"a": 0, "b": 3})
    assert x.rearrange("(p q) b -> q (x: b p)", p=2).shape == {"q": 0, "x": 6}
    assert x.rearrange("(p q) b -> q (x: b p)", p=0, q=5).shape == {"q": 5, "x": 0}
    assert x.rearrange("a b -> (x: b a)").shape == {"x": 0}


# (pattern, keywords, the plain chain)
CHAINS = [
    ("a b c d -> a b c d", {}, lambda x: x),
    ("{H} -> H ...", {}, lambda x: x),
    ("{(H: a b)} -> (H: a b) ...", {"a": 2}, lambda x: x),
    ("a b c d -> d c b a", {}, lambda x: x.transpose(3, 2, 1, 0)),
    ("{(W: a b)} -> (W: a b) ...", {"a": 2}, lambda x: x.transpose(1, 0, 2, 3)),
    ("a b ... -> (x: a b) ...", {}, lambda x: x.reshape(24, 2, 3)),
    ("a (b c) ... -> (x: a b) c ...", {"b": 2}, lambda x: x.reshape(8, 3, 2, 3)),
    ("(a b) ... -> a b ...", {"a": 2}, lambda x: x.reshape(2, 2, 6, 2, 3)),
    ("a b ... -> (x: b a) ...", {}, lambda x: x.transpose(1, 0, 2, 3).reshape(24, 2, 3)),
    ("(a b) ... -> b a ...", {"a": 2}, lambda x: x.reshape(2, 2, 6, 2, 3).transpose(1, 0, 2, 3, 4)),
    (
        "(a b) c ... -> (x: c a) b ...",
        {"a": 2},
        lambda x: x.reshape(2, 2, 6, 2, 3).transpose(2, 0, 1, 3, 4).reshape(12, 2, 2, 3),
    ),
]


@pytest.mark.parametrize(("pattern", "bindings", "plain"), CHAINS, ids=[case[0] for case in CHAINS])
def test_lowers_to_the_plain_chain(pattern, bindings, plain):
    ours = operations(lambda x: x.rearrange(pattern, **bindings).array, X)
    assert ours == operations(plain, X.array)
    np.testing.assert_array_equal(X.rearrange(pattern, **bindings).array, plain(X.array))


def test_what_stays_as_it_is_is_the_same_array():
    assert X.rearrange("{(H: a b)} -> (H: a b) ...", a=2) is X
    assert X.rearrange("{H} -> (x: H) ...").array is X.array


def test_transforms():
    pattern, x = "{(W: a b) H} -> ... (x: b H) a", X.astype(float)
    f = lambda x: x.rearrange(pattern, a=2)  # noqa: E731
    expected = f(x)
    assert jax.tree.structure(jax.jit(f)(x)) == jax.tree.structure(expected)
    np.testing.assert_array_equal(jax.jit(f)(x).array, expected.array)
    gradient = jax.grad(lambda x: (f(x) * expected).sum().scalar())(x)
    np.testing.assert_array_equal(gradient.array, x.array)
    mapped = hax.vmap(f, "D")(x)
    np.testing.assert_array_equal(mapped.rearrange(expected.axis_names).array, expected.array)
    assert jax.eval_shape(f, x).axes == expected.axes


def test_any_kind_of_array():
    on_host = hax.NamedArray(np.arange(6).reshape(2, 3), ("a", "b"))
    keys = hax.NamedArray(jax.random.split(jax.random.key(0), 6), ("a",))
    assert on_host.rearrange("a b -> b a").shape == {"b": 3, "a": 2}
    assert on_host.rearrange("a b -> (x: b a)").array.tolist() == [0, 3, 1, 4, 2, 5]
    split = keys.rearrange("(a b) -> b a", a=2)
    assert jnp.issubdtype(split.array.dtype, jax.dtypes.prng_key)
    assert split.shape == {"b": 3, "a": 2}


def test_the_functions_behind_it():
    by_pattern, by_axes = einops_rearrange(X, expression="a ... -> ... a", a=4), axis_spec_rearrange(X, (..., "H"))
    assert by_pattern.axes == by_axes.axes
    np.testing.assert_array_equal(by_pattern.array, by_axes.array)


def test_names_may_be_those_of_parameters():
    result = X.rearrange("(self array) axes expression d -> array self ...", array=2)
    assert result.axis_names == ("array", "self", "W", "D", "C")


# what an array of axes (batch@data, embed@model) becomes
LAYOUTS = [
    ("a b -> b a", {}, "8@model,8@data"),
    ("{embed} -> embed ...", {}, "8@model,8@data"),
    ("a b -> (x: a b)", {}, "64@(data,model)"),
    ("a b -> (x: b a)", {}, "64@(model,data)"),
    ("(p q) b -> q b p", {"p": 4}, "2,8@model,4@data"),
    ("(p q) b -> q b p", {"q": 4}, "4@data,8@model,2"),
    ("(p q) (r s) -> s q r p", {"p": 4, "r": 4}, "2,2,4@model,4@data"),
    ("(p q) b -> p (x: q b)", {"p": 4}, "4@data,16@model"),
    ("(p q) (r s) -> (x: p r) (y: q s)", {"p": 4, "r": 4}, "16@(data,model),4"),
]


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize(("pattern", "bindings", "layout"), LAYOUTS, ids=lambda x: x if isinstance(x, str) else "")
def test_explicit_mesh(pattern, bindings, layout, jitted, explicit_mesh):
    f = lambda x: x.rearrange(pattern, **bindings)  # noqa: E731
    plain = hax.arange({"batch": 8, "embed": 8})
    with jax.set_mesh(explicit_mesh):
        x = hax.NamedArray(
            jax.device_put(plain.array, NamedSharding(explicit_mesh, P("data", "model"))), ("batch", "embed")
        )
        result = jax.jit(f)(x) if jitted else f(x)
    assert str(jax.typeof(result.array)) == f"int32[{layout}]"
    np.testing.assert_array_equal(result.array, f(plain).array)
