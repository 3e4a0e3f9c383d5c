"""`haliax.vmap` against `jax.vmap` and against loops."""

import functools
import itertools
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

import haliax as hax
from haliax.axis import make_axes
from helpers import count_traces

B, X, Y = make_axes(b=2, x=3, y=4)


def random(*axes, seed=0):
    sizes = [axis.size for axis in axes]
    return hax.named(jax.random.normal(jax.random.key(seed), sizes), [axis.name for axis in axes])


XS = random(X, B)
RAW = jnp.arange(6.0).reshape(2, 3)


def assert_same(got, expected):
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6), got, expected)


# --- Named arrays ---


@pytest.mark.parametrize("axis", [B, "b", (B,), ["b"]], ids=["Axis", "name", "tuple", "list"])
@pytest.mark.parametrize("order", list(itertools.permutations([B, X, Y])), ids=lambda o: "".join(a.name for a in o))
def test_the_axis_may_be_anywhere_and_comes_out_in_front(order, axis):
    x = random(*order)
    rest = tuple(ax.name for ax in order if ax != B)

    def f(z):
        assert z.axis_names == rest
        return z * 2

    out = hax.vmap(f, axis)(x)
    assert out.axis_names == ("b", *rest)
    np.testing.assert_allclose(out.array, hax.rearrange(x, ("b", *rest)).array * 2)


def test_arrays_without_the_axis_are_shared():
    shared = random(X, seed=1)
    out = hax.vmap(lambda a, b: a * b, B)(XS, shared)
    np.testing.assert_allclose(out.array, XS.array.T * shared.array[None], rtol=1e-6)
    assert hax.vmap(lambda a: a, B)(shared).axes == (B, X)


@given(st.permutations(["b", "x", "y"]), st.permutations(["b", "x"]), st.booleans())
def test_as_a_loop(names, other_names, by_name):
    sizes = {"b": B, "x": X, "y": Y}
    a, b = random(*[sizes[n] for n in names]), random(*[sizes[n] for n in other_names], seed=1)

    def f(p, q):
        return {"sum": hax.sum(p * q, "x"), "pair": (p, q.array * 2)}

    out = hax.vmap(f, "b" if by_name else B)(a, b)
    rows = [f(p, q) for p, q in zip(hax.unbind(a, "b"), hax.unbind(b, "b"), strict=True)]
    expected = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=1e-6), jax.tree.leaves(out), jax.tree.leaves(expected)
    )
    assert out["sum"].axis_names == ("b", *rows[0]["sum"].axis_names)


@pytest.mark.parametrize("axes", [(B, X), (X, B), ("b", "x"), ("x", "b"), (B, "x"), ()], ids=str)
def test_several_axes(axes):
    names = [ax if isinstance(ax, str) else ax.name for ax in axes]
    left = [n for n in ("x", "b") if n not in names]
    out = hax.vmap(lambda z: z * 2, axes)(XS)
    assert out.axis_names == (*names, *left)
    np.testing.assert_allclose(out.array, 2 * hax.rearrange(XS, out.axis_names).array)


def test_several_axes_take_the_leading_dimensions_of_raw_arrays():
    out = hax.vmap(lambda z: z * 2, (X, B))(jnp.ones((3, 2, 7)))
    assert out.shape == (3, 2, 7)
    assert hax.vmap(lambda z: z.shape[0], (X, B))(jnp.ones((3, 2, 7))) == 7


def test_no_arguments():
    assert hax.vmap(lambda: hax.ones(X), B)().axes == (B, X)


# --- Raw arrays and rules ---

RULES = {
    "first dimension": ({}, RAW, RAW),
    "default": ({"default": 1}, RAW.T, RAW),
    "default from the end": ({"default": -1}, RAW.T, RAW),
    "default function": ({"default": lambda x: x.ndim - 1}, RAW.T, RAW),
    "position": ({"args": (0, 1)}, RAW.T, RAW),
    "function": ({"args": (0, lambda x: 1)}, RAW.T, RAW),
    "name": ({"kwargs": {"raw": 1}}, RAW.T, RAW),
    "numpy": ({}, np.asarray(RAW), RAW),
}


@pytest.mark.parametrize(("rules", "raw", "rows"), RULES.values(), ids=RULES)
@pytest.mark.parametrize("by_name", [False, True], ids=["positional", "keyword"])
def test_rules_for_raw_arrays(rules, raw, rows, by_name):
    f = hax.vmap(lambda named, raw: named * raw.sum(), B, **rules)
    out = f(XS, raw=raw) if by_name else f(XS, raw)
    np.testing.assert_allclose(out.array, XS.array.T * rows.sum(1)[:, None], rtol=1e-6)


SHARED = {
    "default None": {"default": None},
    "default function": {"default": lambda x: None},
    "position": {"args": (0, None)},
    "name": {"kwargs": {"raw": None}},
    "function": {"args": (0, lambda x: None)},
}


@pytest.mark.parametrize("rules", SHARED.values(), ids=SHARED)
def test_rules_that_share_raw_arrays(rules):
    out = hax.vmap(lambda named, raw: named * raw.sum(), B, **rules)(XS, jnp.ones(5))
    np.testing.assert_allclose(out.array, XS.array.T * 5, rtol=1e-6)


def test_none_shares_a_named_array_that_has_the_axis():
    out = hax.vmap(lambda z: hax.sum(z, "b"), B, args=(None,))(XS)
    assert out.axes == (B, X)


def test_rules_are_prefixes():
    f = hax.vmap(lambda d, *_: d["a"] * d["b"]["c"].sum() * d["b"]["e"], B, args=({"a": 0, "b": {"c": 1, "e": None}},))
    out = f({"a": XS, "b": {"c": RAW.T, "e": 3.0}}, None)
    np.testing.assert_allclose(out.array, XS.array.T * RAW.sum(1)[:, None] * 3, rtol=1e-6)


def test_rules_for_collected_arguments():
    f = hax.vmap(lambda *zs, **kw: zs[0] * zs[1].sum() * kw["a"] * kw["b"].sum(), B, args=(0, 1), kwargs={"b": None})
    out = f(XS, RAW.T, b=jnp.ones(5), a=jnp.arange(2.0))
    np.testing.assert_allclose(out.array, XS.array.T * (RAW.sum(1) * 5 * jnp.arange(2.0))[:, None], rtol=1e-6)


def test_scalars_and_other_leaves_are_shared():
    def f(z, number, rank0, numpy0, text, how, none, flags):
        assert (number, text, how, none, flags) == (2, "s", hax.sin, None, [True, 1.5])
        return how(z) * number * rank0 * numpy0

    values = XS, 2, jnp.array(3.0), np.float32(4), "s", hax.sin, None, [True, 1.5]
    hax.vmap(f, B, default=lambda x: 0 if x.ndim else None)(*values)  # it is asked about arrays only
    out = hax.vmap(f, B)(*values)
    np.testing.assert_allclose(out.array, np.sin(XS.array.T) * 24, rtol=1e-5)


def test_defaults_of_the_function_are_arguments():
    out = hax.vmap(lambda z, raw=RAW, how=hax.sin: how(z) * raw.sum(), B)(XS)
    np.testing.assert_allclose(out.array, np.sin(XS.array.T) * RAW.sum(1)[:, None], rtol=1e-5)


def test_functions_without_a_signature():
    class Opaque:
        __signature__ = "none"

        def __call__(self, a, b):
            return a * b

    assert hax.vmap(Opaque(), B)(XS, XS).axes == (B, X)


@pytest.mark.parametrize(
    "keys", [jax.random.split(jax.random.key(0), 2), jax.random.split(jax.random.PRNGKey(0), 2)], ids=["typed", "raw"]
)
def test_keys(keys):
    out = hax.vmap(lambda k: jax.random.normal(k, (3,)), B)(keys)
    np.testing.assert_array_equal(out, jax.vmap(lambda k: jax.random.normal(k, (3,)))(keys))
    split = hax.vmap(lambda k: jax.random.split(k, 4), B)(keys)
    assert split.dtype == keys.dtype


def test_a_single_key_can_be_shared():
    out = hax.vmap(lambda z, k: z + jax.random.normal(k), B, args=(0, None))(XS, jax.random.key(0))
    assert out.axes == (B, X)


# --- Results ---


def test_results_of_all_kinds():
    named, raw, constant, rest = hax.vmap(lambda z: (z, z.array, hax.ones(Y), (1, "s", None, hax.sin)), B)(XS)
    assert named.axes == (B, X)
    assert raw.shape == (2, 3)
    assert constant.axes == (B, Y)
    assert rest == (1, "s", None, hax.sin)


# rules, and the dimensions that `jax.vmap` gives the axis in the arrays of the result
OUT_AXES = {
    "first": (0, (0, 0, 0)),
    "second": ({"named": 1, "raw": 1, "sum": 0, "text": 0}, (1, 1, 0)),
    "last": (-1, (-1, -1, -1)),
    "prefix": ({"named": 2, "raw": -2, "sum": -1, "text": None}, (2, -2, -1)),
    "function": (lambda x: x.ndim, (2, 2, 0)),
    "if_array": ({"named": 0, "raw": eqx.if_array(1), "sum": eqx.if_array(0), "text": eqx.if_array(0)}, (0, 1, 0)),
}


@pytest.mark.parametrize(("out_axes", "dims"), OUT_AXES.values(), ids=OUT_AXES)
def test_out_axes(out_axes, dims):
    x = random(X, B, Y)
    out = hax.vmap(lambda z: {"named": z, "raw": z.array, "sum": z.sum(), "text": "s"}, B, out_axes=out_axes)(x)
    named, raw, total = jax.vmap(lambda a: (a, a, a.sum()), in_axes=1, out_axes=dims)(x.array)
    names = ["x", "y"]
    names.insert(dims[0] if dims[0] >= 0 else 3 + dims[0], "b")
    assert (out["named"].axis_names, out["sum"].axis_names, out["text"]) == (tuple(names), ("b",), "s")
    assert_same([out["named"].array, out["raw"]], [named, raw])
    np.testing.assert_allclose(out["sum"].array, total, rtol=1e-5)


@pytest.mark.parametrize(("place", "names"), [(0, "bxyz"), (1, "ybxz"), (-1, "yzbx"), (-2, "ybxz")])
def test_out_axes_of_several_axes(place, names):
    """They go together, the outermost first."""
    x = random(X, Y, B, hax.Axis("z", 5))
    out = hax.vmap(lambda w: (w, w.array), ("b", "x"), out_axes=place)(x)
    assert out[0].axis_names == tuple(names)
    np.testing.assert_array_equal(out[0].array, x.rearrange(tuple(names)).array)
    np.testing.assert_array_equal(out[1], out[0].array)


def test_out_axes_that_share():
    def f(z, shared):
        return {"mapped": z, "shared": shared * 2, "raw": shared.array.sum(), "constant": hax.ones(Y)}

    rules = {"mapped": 0, "shared": None, "raw": None, "constant": None}
    shared = random(X)
    for axis, names in [(B, ("b", "y")), ((B, "y"), ("b", "y"))]:
        out = hax.vmap(f, axis, out_axes=rules)(random(B, Y), shared)
        assert (out["mapped"].axis_names, out["shared"].axes, out["constant"].axes) == (names, (X,), (Y,))
        assert out["raw"].shape == ()


def test_collectives_find_the_axis():
    def f(z):
        return z / jax.lax.psum(z, "batch"), jax.lax.axis_index("batch")

    share, index = hax.vmap(f, B, axis_name="batch")(XS)
    np.testing.assert_allclose(share.array, (XS.array / XS.array.sum(1, keepdims=True)).T, rtol=1e-5)
    assert index.tolist() == [0, 1]
    total = hax.vmap(lambda z: jax.lax.psum(z, ("outer", "inner")), ("b", "x"), axis_name=["outer", "inner"])(XS)
    np.testing.assert_allclose(total.array, np.full((2, 3), XS.array.sum()), rtol=1e-5)
    one = hax.vmap(lambda z: jax.lax.psum(z, "inner"), ("b", "x"), axis_name=[None, "inner"])(XS)
    np.testing.assert_allclose(one.array[:, 0], XS.array.sum(0), rtol=1e-5)


def test_constraints_inside_split_the_axis(mesh):
    """`spmd_axis_name` says over which mesh axes, as a constraint inside can not."""
    x = hax.ones({"batch": 4, "embed": 6})

    def f(z):
        return jax.lax.with_sharding_constraint(z.array, jax.NamedSharding(mesh, jax.P("model")))

    out = jax.jit(hax.vmap(f, "batch", spmd_axis_name="data"))(x)
    assert out.sharding.is_equivalent_to(jax.NamedSharding(mesh, jax.P("data", "model")), 2)


def test_options_of_classmethods_and_staticmethods():
    class Holder:
        last = hax.vmap(staticmethod(lambda z: z), "b", out_axes=1)

    assert Holder.last(random(B, X)).axes == (X, B)


def test_an_empty_named_array_keeps_its_names():
    out = hax.vmap(lambda z, empty: empty, B)(XS, hax.NamedArray(None, ("y", "b")))
    assert (out.array, out.axis_names) == (None, ("b", "y"))


# --- What can be mapped ---


class Model(eqx.Module):
    weight: hax.NamedArray
    raw: jax.Array

    @staticmethod
    def init(axis, scale, *, key):
        return Model(jax_normal(key, axis) * scale, jnp.ones(axis.size))

    def __call__(self, x):
        return self.weight * x * self.raw.sum()

    def method(self, x):
        return self(x)

    @classmethod
    def make(cls, x):
        return cls(x, jnp.ones(3))

    twice = hax.vmap(lambda self, x: self.weight * x, "b")
    made = hax.vmap(make, "b")


def jax_normal(key, axis):
    return hax.named(jax.random.normal(key, (axis.size,)), axis.name)


def test_modules_methods_and_partials_are_mapped_by_the_names_they_hold():
    model = Model(XS, jnp.ones(3))
    x = random(X, seed=2)
    expected = XS.array.T * x.array[None] * 3
    partial = functools.partial(lambda m, y: m(y), model)
    for f in (model, model.method, partial, jax.tree_util.Partial(model.method), functools.partial(model)):
        out = hax.vmap(f, B)(x)
        assert out.axes == (B, X)
        np.testing.assert_allclose(out.array, expected, rtol=1e-6)
    dots = hax.vmap(functools.partial(hax.dot, axis="x"), B)(XS, x)
    np.testing.assert_allclose(dots.array, expected.sum(1) / 3, rtol=1e-5)


def test_as_a_decorator_of_methods():
    model = Model(XS, RAW)
    np.testing.assert_allclose(model.twice(hax.ones(X)).array, XS.array.T)
    assert model.made(XS).weight.axes == (B, X)
    assert Model.made(XS).raw.shape == (2, 3)


def test_many_modules_from_one_init():
    keys = jax.random.split(jax.random.key(0), 2)
    many = hax.vmap(Model.init, B)(X, 2.0, key=keys)
    assert many.weight.axes == (B, X)
    assert many.raw.shape == (2, 3)
    np.testing.assert_array_equal(many.weight.array[1], Model.init(X, 2.0, key=keys[1]).weight.array)
    out = hax.vmap(lambda model, x: model(x), B)(many, XS)
    np.testing.assert_allclose(out.array, many.weight.array * XS.array.T * 3, rtol=1e-6)


def test_name_and_docstring():
    def documented(z):
        """Says what."""
        return z

    mapped = hax.vmap(documented, B)
    assert (mapped.__name__, mapped.__doc__) == ("documented", "Says what.")


# --- With other transformations, and its cost ---


def test_gradients():
    grad = jax.grad(lambda x: hax.sum(hax.vmap(lambda z: hax.sum(z * z), B)(x)).array)(XS)
    assert grad.axes == XS.axes
    np.testing.assert_allclose(grad.array, 2 * XS.array, rtol=1e-6)


def test_nested():
    out = hax.vmap(lambda z: hax.vmap(lambda w: w * z, Y)(random(Y)), B)(XS)
    assert out.axes == (B, Y, X)


def test_one_trace():
    f = count_traces(lambda z: z * 2)
    jitted = jax.jit(hax.vmap(f, B))
    jitted(XS)
    jitted(XS + 1)
    assert f.traces == 1


def operations(f, *args):
    return re.findall(r"stablehlo\.\w+", jax.jit(f).lower(*args).as_text())


@pytest.mark.parametrize("order", [(B, X), (X, B)], ids=str)
def test_lowers_to_the_operations_of_jax_vmap(order):
    x, y = random(*order), random(X)
    dim = order.index(B)
    plain = jax.vmap(lambda a, b: jnp.sin(a) * b, in_axes=(dim, None))
    by_name = hax.vmap(lambda a, b: hax.sin(a) * b, B)
    assert operations(by_name, x, y) == operations(plain, x.array, y.array)


# --- Errors ---

ERRORS = {
    "nothing has it": (
        lambda: hax.vmap(hax.sin, "c")(XS),
        ValueError,
        "vmap: no argument has axis 'c'; expected one that has it, or an Axis with a size.",
    ),
    "other size": (
        lambda: hax.vmap(lambda z: z, hax.Axis("b", 7))(XS),
        ValueError,
        "vmap: axis 'b' has size 2; expected 7. z has size 2 at dimension 1: its shape is (3, 2).",
    ),
    "two sizes": (
        lambda: hax.vmap(lambda z, d: z, "b")(XS, {"k": [hax.ones(hax.Axis("b", 5))]}),
        ValueError,
        "vmap: axis 'b' has size 5; expected 2. d['k'][0] has leading dimension 5: its shape is (5,).",
    ),
    "raw size": (
        lambda: hax.vmap(lambda *zs: zs, B)(XS, RAW.T),
        ValueError,
        "vmap: axis 'b' has size 3; expected 2. zs[1] has leading dimension 3: its shape is (3, 2).",
    ),
    "one key": (
        lambda: hax.vmap(lambda key: key, B)(jax.random.key(0)),
        TypeError,
        "vmap: key is a single random key; expected one for each place along axis 'b'. Split it with jax.random.split.",
    ),
    "no such dimension": (
        lambda: hax.vmap(lambda z: z, B, default=2)(RAW),
        ValueError,
        "vmap: the rule for z is dimension 2; its shape is (2, 3).",
    ),
    "strange rule": (
        lambda: hax.vmap(lambda z: z, B, args=(True,))(RAW),
        TypeError,
        "vmap: the rule for z is a bool; expected the number of a dimension, or None.",
    ),
    "rule for nothing": (
        lambda: hax.vmap(lambda z: z, B, kwargs={"q": 0}),
        TypeError,
        "vmap: the rules do not fit the arguments of the function: got an unexpected keyword argument 'q'.",
    ),
    "result has it": (
        lambda: hax.vmap(lambda z: {"out": hax.ones(B)}, B)(XS),
        ValueError,
        "vmap: axis 'b' occurs more than once in (b, b). Result ['out'] has it before this adds it in front: rename one"
        " of them.",
    ),
    "result depends": (
        lambda: hax.vmap(lambda z: z, B, out_axes=None)(XS),
        ValueError,
        "vmap: a result that out_axes shares depends on axis 'b'; expected one that is the same at each place."
        " Give it a dimension in out_axes.",
    ),
    "out structure": (
        lambda: hax.vmap(lambda z: (z, z), B, out_axes=(0, 0, 0))(XS),
        ValueError,
        "vmap: out_axes has another structure than the result; expected a prefix of it.",
    ),
    "out dimension": (
        lambda: hax.vmap(lambda z: z, B, out_axes=2)(XS),
        ValueError,
        "vmap: a rule of out_axes is dimension 2; expected -2 to 1.",
    ),
    "out rule": (
        lambda: hax.vmap(lambda z: z, B, out_axes="b")(XS),
        TypeError,
        "vmap: a rule of out_axes is a string; expected the number of a dimension, or None.",
    ),
    "names for axes": (
        lambda: hax.vmap(lambda z: z, ("b", "x"), axis_name="b"),
        TypeError,
        "vmap: axis_name is a string; expected a sequence with one item for each of 2 axes.",
    ),
    "no axis": (
        lambda: hax.vmap(lambda z: z, (3,))(XS),
        TypeError,
        "vmap: the axis is an int; expected an Axis or a name.",
    ),
}


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message
