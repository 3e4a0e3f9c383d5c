"""Helpers for JAX itself, against what JAX does."""

import functools
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas

import haliax as hax
from haliax import jax_utils

RAW, TYPED = jax.random.PRNGKey(0), jax.random.key(0)
X = hax.Axis("x", 3)


# --- What is it? ---


def inside(transform, *args):
    """What `is_in_jit` says in the body of a function under a transformation."""
    said = []

    def body(x):
        said.append(jax_utils.is_in_jit())
        return x * 1.0

    transform(body)(*args)
    return said[0]


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (lambda f: f, False),
        (jax.grad, False),
        (jax.jit, True),
        (lambda f: functools.partial(jax.eval_shape, f), True),
        (lambda f: lambda x: jax.lax.map(f, jnp.ones(2) * x), True),
        (lambda f: lambda x: jax.vmap(f)(jnp.ones(2) * x), False),
    ],
    ids=["eager", "grad", "jit", "eval_shape", "lax.map", "vmap"],
)
def test_is_in_jit(transform, expected):
    assert inside(transform, 1.0) is expected


NAMED = hax.ones(X)
KINDS = {
    "number": (2.0, False, True),
    "bool": (True, False, True),
    "numpy number": (np.float32(2), True, True),
    "rank 0": (jnp.ones(()), True, True),
    "one typed key": (TYPED, True, True),
    "array": (jnp.ones(2), True, False),
    "numpy array": (np.ones((2, 1)), True, False),
    "shape": (jax.ShapeDtypeStruct((2,), jnp.float32), True, False),
    "named": (NAMED, True, False),
    "named scalar": (hax.named(1.0, ()), True, True),
    "str": ("a", False, False),
    "None": (None, False, False),
    "list": ([1], False, False),
    "class": (jnp.ndarray, True, False),
}


@pytest.mark.parametrize(("x", "array_like", "scalarish"), KINDS.values(), ids=KINDS)
def test_kinds(x, array_like, scalarish):
    assert jax_utils.is_jax_array_like(x) is array_like
    assert jax_utils.is_scalarish(x) is scalarish


def test_ensure_scalar():
    assert jax_utils.ensure_scalar(3) == 3
    assert jax_utils.ensure_scalar(hax.named(jnp.float32(2), ())).shape == ()
    assert jax_utils.ensure_scalar(None) is None


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (NAMED, "ensure_scalar: start is a NamedArray; expected a scalar. It has x=3."),
        (np.ones((2, 1)), "ensure_scalar: start is a numpy array of shape (2, 1); expected a scalar."),
    ],
)
def test_ensure_scalar_refuses_dimensions(x, message):
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        jax_utils.ensure_scalar(x, name="start")


def test_is_pallas_dslice():
    assert jax_utils.is_pallas_dslice(pallas.ds(0, 3))
    assert not jax_utils.is_pallas_dslice(slice(0, 3))


def test_is_on_mac_metal():
    assert jax_utils.is_on_mac_metal() is False


def test_static_is_structure():
    assert jax.tree.leaves(jax_utils.Static("a")) == []
    assert jax.tree.structure(jax_utils.Static("a")) == jax.tree.structure(jax_utils.Static("a"))
    assert jax.tree.structure(jax_utils.Static("a")) != jax.tree.structure(jax_utils.Static("b"))


# --- Keys ---


@pytest.mark.parametrize("key", [RAW, TYPED], ids=["raw", "typed"])
@pytest.mark.parametrize("shape", [0, 2, (), (1,), (1, 1), (2,), (2, 3)])
def test_shaped_rng_split(key, shape):
    keys = jax_utils.shaped_rng_split(key, shape)
    dims = (shape,) if isinstance(shape, int) else shape
    assert keys.shape == (*dims, *key.shape)
    count = int(np.prod(dims))
    expected = key.reshape(1, *key.shape) if count == 1 else jax.random.split(key, count)
    assert (keys.reshape(count, *key.shape) == expected).all()


@pytest.mark.parametrize("key", [RAW, TYPED], ids=["raw", "typed"])
def test_maybe_rng_split(key):
    assert (jax_utils.maybe_rng_split(key, 3) == jax.random.split(key, 3)).all()
    assert (jax_utils.maybe_rng_split(key, 1) == key[None]).all()
    assert (jax_utils.maybe_rng_split(key) == jax.random.split(key)).all()
    assert jax_utils.maybe_rng_split(None, 3) == [None, None, None]


# --- Names ---


class Layer(eqx.Module):
    @jax_utils.named_call
    def __call__(self, x):
        return jnp.sin(x)

    @jax_utils.named_call
    def method(self, x, *, scale=1):
        return jnp.sin(x) * scale

    @jax_utils.named_call(name="given")
    def named(self, x):
        return jnp.sin(x)

    @jax_utils.named_call
    @classmethod
    def outer(cls, x):
        return jnp.sin(x) + (cls is not Layer)

    @classmethod
    @jax_utils.named_call
    def inner(cls, x):
        return jnp.sin(x) + (cls is not Layer)

    @jax_utils.named_call
    @staticmethod
    def static(x):
        return jnp.sin(x)


@jax_utils.named_call
def function(x, shift=0.0):
    """Documented."""
    return jnp.sin(x + shift)


SCOPED = {
    "Layer": Layer(),
    "Layer.method": Layer().method,
    "given": Layer().named,
    "Layer.outer": Layer.outer,
    "Layer.inner": Layer.inner,
    "Layer.static": Layer.static,
    "function": function,
    "renamed": jax_utils.named_call(function, "renamed"),
    "renamed too": jax_utils.named_call(name="renamed too")(function),
    "function of a partial": jax_utils.named_call(functools.partial(function, shift=0.0)),
    "Layer as a callable": jax_utils.named_call(Layer()),
}


@pytest.mark.parametrize(("scope", "f"), SCOPED.items(), ids=SCOPED)
def test_named_call(scope, f):
    assert f(1.0) == jnp.sin(1.0)
    text = jax.jit(lambda x: f(x)).lower(1.0).as_text(debug_info=True)
    assert f"/{scope.split(' of ')[0].split(' as ')[0]}/" in text


def test_named_call_keeps_name_and_docstring():
    assert (function.__name__, function.__doc__) == ("function", "Documented.")
    assert Layer().method(1.0, scale=2) == 2 * jnp.sin(1.0)


def test_tree_checkpoint_name():
    tree = {"named": NAMED, "raw": jnp.ones(2), "number": 3, "none": None, "str": "x", "key": TYPED}
    named = jax_utils.tree_checkpoint_name(tree, "here")
    assert jax.tree.structure(named) == jax.tree.structure(tree)
    assert (named["number"], named["none"], named["str"]) == (3, None, "x")
    program = str(jax.make_jaxpr(lambda x: hax.tree_checkpoint_name((x, 2), "here"))(NAMED))
    assert program.count("name=here") == 1


# --- Transformations ---


def saved_count(f, *args):
    """The number of values that the backward pass of `f` keeps."""
    _, vjp = jax.vjp(f, *args)
    return len(jax.tree.leaves(vjp))


def test_filter_checkpoint_takes_and_returns_anything():
    f = jax_utils.filter_checkpoint(lambda x, how, *, n: (how(x), how, n, None))
    out, how, n, none = f(NAMED, hax.sin, n=3)
    assert out.axes == NAMED.axes
    assert (how, n, none) == (hax.sin, 3, None)


def test_filter_checkpoint_keeps_less_and_changes_nothing():
    def deep(x):
        for _ in range(5):
            x = jnp.sin(jnp.cos(x))
        return x.sum()

    x = jnp.linspace(0, 1, 7)
    light = jax_utils.filter_checkpoint(deep)
    np.testing.assert_allclose(jax.grad(light)(x), jax.grad(deep)(x), rtol=1e-6)
    assert saved_count(light, x) < saved_count(deep, x)
    everything = jax_utils.filter_checkpoint(deep, policy=jax.checkpoint_policies.everything_saveable)
    assert saved_count(everything, x) >= saved_count(deep, x)


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_filter_checkpoint_prevent_cse(prevent_cse):
    f = jax_utils.filter_checkpoint(jnp.sin, prevent_cse=prevent_cse)
    assert f"prevent_cse={prevent_cse}" in str(jax.make_jaxpr(lambda x: f(x))(1.0))


def test_broadcast_prefix():
    full = ((3, 4), {"a": 5, "b": None})
    assert jax_utils.broadcast_prefix((1, 2), full) == ((1, 1), {"a": 2, "b": None})
    assert jax_utils.broadcast_prefix(True, full) == ((True, True), {"a": True, "b": None})
    with pytest.raises(ValueError, match="length"):
        jax_utils.broadcast_prefix((1, 2, 3), full)


def step(carry, x):
    carry = jnp.sin(carry * x["a"]) + x["b"]
    return carry, {"y": carry * 2}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("outer", [1, 2, 3, 6])
def test_multilevel_scan_is_a_scan(outer, reverse):
    xs = {"a": jnp.linspace(0, 1, 6), "b": jnp.arange(12.0).reshape(6, 2)}
    expected = jax.lax.scan(step, jnp.ones(2), xs, reverse=reverse)
    got = jax_utils.multilevel_scan(step, jnp.ones(2), xs, outer, 6, reverse=reverse, unroll=1)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6), got, expected)


def test_multilevel_scan_keeps_few_carries():
    def loss(scan, x):
        return scan(lambda c, _: (jnp.sin(c), None), x)[0].sum()

    nested = functools.partial(loss, lambda f, c: jax_utils.multilevel_scan(f, c, None, 4, 16))
    flat = functools.partial(loss, lambda f, c: jax.lax.scan(f, c, None, length=16))
    x = jnp.ones(8)
    np.testing.assert_allclose(jax.grad(nested)(x), jax.grad(flat)(x), rtol=1e-6)

    def kept(f):
        return sum(leaf.size for leaf in jax.tree.leaves(jax.vjp(f, x)[1]) if hasattr(leaf, "size"))

    assert kept(nested) <= 4 * 8 + 8 < 16 * 8 <= kept(flat)


def test_multilevel_scan_refuses_what_does_not_divide():
    message = "multilevel_scan: outer_size is 4; expected a divisor of the length 6."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        jax_utils.multilevel_scan(step, jnp.ones(2), None, 4, 6)


# --- Several processes, here one ---


def test_one_process_agrees_with_itself():
    tree = {"raw": jnp.arange(3), "named": NAMED, "key": TYPED, "number": 3}
    received = jax_utils.broadcast_one_to_all(tree)
    assert received["named"].axes == NAMED.axes
    assert received["key"].dtype == TYPED.dtype
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(jnp.asarray(a == b), True), received, tree)
    jax_utils.assert_equal(tree, "they differ")
    jax_utils.sync_global_devices("here")
