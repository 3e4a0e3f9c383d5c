"""Checkpoint policies: what each keeps for the backward pass of a scan, in values and in bytes."""

import dataclasses
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import ScanCheckpointPolicy as Policy
from haliax.axis import make_axes
from haliax.nn.scan import BlockSeq, Stacked

L, X = make_axes(l=9, x=128)
LAYER = X.size  # the elements of a carry, and of an input


def step(carry, w):
    """Keeps a carry, an input and several values of its own, one of which has a name."""
    hidden = hax.tree_checkpoint_name(hax.sin(carry * w), "hidden")
    return hax.cos(hax.sin(hidden * hidden)) * carry


def loss(policy):
    return lambda w: hax.sum(hax.fold(step, L, remat=policy)(hax.ones(X), w)).array


WEIGHTS = hax.named(jax.random.normal(jax.random.key(0), (L.size, X.size)), ("l", "x"))


def residuals(f, *args):
    """The elements that the backward pass keeps on the device and on the host, the arguments themselves aside."""
    program = jax.make_jaxpr(lambda *args: jax.vjp(f, *args)[1])(*args).jaxpr
    kept = [var.aval for var in program.outvars if var not in program.invars]
    host = sum(aval.size for aval in kept if "<host>" in str(aval))
    return sum(aval.size for aval in kept) - host, host


EACH = L.size * LAYER  # one value of the size of a carry for each step
KEEPS = {
    "carries": (Policy(), EACH, 0),
    "simple": (True, EACH, 0),
    "recompute": ("recompute", EACH, 0),
    "full": ("full", EACH, 0),
    "name": (Policy(save_block_internals=["hidden"]), 2 * EACH, 0),
    "offload": ("offload", 0, 2 * EACH),
    "offload a name": (Policy(offload_block_internals=["hidden"]), EACH, EACH),
    "nested": ("nested", 3 * LAYER, 0),
    "nested by 9": (Policy(nested=9), 9 * LAYER, 0),
    "nested and simple": (Policy(simple=True, nested=True), 3 * LAYER, 0),
}


@pytest.mark.parametrize(("policy", "device", "host"), KEEPS.values(), ids=KEEPS)
def test_what_is_kept(policy, device, host):
    kept, offloaded = residuals(loss(policy), WEIGHTS)
    # the reshaped weights of a nested scan are views in a compiled program, and so are not counted
    kept -= EACH if Policy.from_bool_or_str(policy).nested else 0
    assert device <= kept <= device + 2 * LAYER
    assert offloaded == host


@pytest.mark.parametrize("everything", [False, "save_all", Policy(disable=True), Policy(disable=True, nested=True)])
def test_without_a_checkpoint_all_is_kept(everything):
    assert residuals(loss(everything), WEIGHTS)[0] >= 4 * EACH


POLICIES = [
    False,
    "save_all",
    *(policy for policy, _, _ in KEEPS.values()),
    Policy(save_carries=False, save_inputs=True),
    Policy(save_carries=False, save_block_internals=True),
    Policy(save_inputs="offload", save_carries=True),
    Policy(prevent_cse=True),
    Policy(nested=1),
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_gradients_are_the_same(policy):
    def raw_loss(w):
        def raw_step(carry, w):
            hidden = jnp.sin(carry * w)
            return jnp.cos(jnp.sin(hidden * hidden)) * carry, None

        return jax.lax.scan(raw_step, jnp.ones(X.size), w)[0].sum()

    got = jax.jit(jax.grad(loss(policy)))(WEIGHTS)
    np.testing.assert_allclose(got.array, jax.grad(raw_loss)(WEIGHTS.array), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("save_inputs", [False, True])
def test_inputs_are_not_kept_twice(save_inputs):
    """The backward pass reads them where they are."""
    policy = Policy(save_inputs=save_inputs, save_carries=False)
    assert residuals(loss(policy), WEIGHTS) == residuals(loss(True), WEIGHTS)
    everything = dataclasses.replace(policy, save_block_internals=True, save_carries=True)
    assert residuals(loss(everything), WEIGHTS)[0] <= residuals(loss(False), WEIGHTS)[0]


@pytest.mark.parametrize(("unroll", "prevented"), [(1, False), (3, False), (9, True), (True, True)])
def test_a_loop_that_is_unrolled_prevents_cse(unroll, prevented):
    program = jax.make_jaxpr(lambda w: hax.fold(step, L, remat=True, unroll=unroll)(hax.ones(X), w))(WEIGHTS)
    assert f"prevent_cse={prevented}" in str(program)


# --- In stacks of layers ---


class Layer(eqx.Module):
    weight: hax.NamedArray

    @staticmethod
    def init(weight):
        return Layer(weight)

    def __call__(self, x):
        return step(x, self.weight)


@pytest.mark.parametrize("kind", [Stacked, BlockSeq])
@pytest.mark.parametrize(("policy", "most"), [(True, 1), ("full", 1), ("nested", 0.3)])
def test_layers_keep_less(kind, policy, most):
    def layers(policy):
        return kind.init(L, Layer, gradient_checkpointing=policy)(WEIGHTS)

    def loss(layers):
        return hax.sum(layers.fold(hax.ones(X))).array

    kept, all_kept = residuals(loss, layers(policy))[0], residuals(loss, layers(False))[0]
    kept -= EACH if (kind, policy) == (Stacked, "nested") else 0  # as above
    assert kept <= most * EACH + 5 * LAYER
    assert all_kept >= 4 * EACH
    got, expected = jax.grad(loss)(layers(policy)), jax.grad(loss)(layers(False))
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_a_list_of_layers_always_prevents_cse():
    layers = BlockSeq.init(L, Layer, gradient_checkpointing=True)(WEIGHTS)
    program = str(jax.make_jaxpr(lambda layers: layers.fold(hax.ones(X)))(layers))
    assert program.count("prevent_cse=True") == L.size


# --- Forms ---

NOTHING = Policy(save_carries=False)
FORMS = {
    True: Policy(simple=True),
    False: Policy(save_inputs=True, save_block_internals=True, disable=True),
    "offload": Policy(save_carries="offload", save_inputs="offload"),
    "recompute": NOTHING,
    "full": NOTHING,
    "save_all": Policy(save_inputs=True, save_block_internals=True),
    "nested": Policy(nested=True),
    NOTHING: NOTHING,
}


@pytest.mark.parametrize(("form", "policy"), FORMS.items(), ids=str)
def test_short_forms(form, policy):
    assert Policy.from_bool_or_str(form) == policy


@pytest.mark.parametrize("form", ["bogus", "", None, 1, 0, 2.5], ids=repr)
def test_unknown_short_forms(form):
    with pytest.raises(ValueError) as error:
        Policy.from_bool_or_str(form)
    assert str(error.value) == (
        f"ScanCheckpointPolicy: no policy {form!r}; expected a policy, a bool, or one of 'offload', 'recompute',"
        " 'full', 'save_all', 'nested'."
    )


def test_defaults():
    fields = {field.name: getattr(Policy(), field.name) for field in dataclasses.fields(Policy)}
    assert fields == {
        "save_carries": True,
        "save_inputs": False,
        "save_block_internals": False,
        "offload_block_internals": (),
        "prevent_cse": False,
        "disable": False,
        "simple": False,
        "nested": False,
    }


def test_policies_are_static():
    policy = Policy(save_block_internals=["a"], offload_block_internals=["b"])
    assert hash(policy) == hash(Policy(save_block_internals=("a",), offload_block_internals=("b",)))
    assert policy == dataclasses.replace(policy)


REFUSED = {
    "all and some": (
        {"save_block_internals": True, "save_carries": "offload"},
        ValueError,
        "ScanCheckpointPolicy: save_block_internals=True together with something to offload; expected one or the other."
        " List the names to keep in save_block_internals.",
    ),
    "a name": (
        {"offload_block_internals": "hidden"},
        TypeError,
        "ScanCheckpointPolicy: offload_block_internals is a string; expected a sequence of names. Put it in a list.",
    ),
}


@pytest.mark.parametrize(("fields", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_policies(fields, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        Policy(**fields)


def test_checkpoint_of_any_step():
    def f(carry, x, *, how):
        return how(carry * x), how

    step = Policy(save_carries=True, save_inputs="offload").checkpoint("the carry", "the input", f)
    carry, how = step(jnp.ones(2), jnp.ones(2), how=jnp.sin)
    assert how is jnp.sin
    np.testing.assert_allclose(carry, np.sin(np.ones(2)), rtol=1e-6)
    program = str(jax.make_jaxpr(lambda c, x: step(c, x, how=jnp.sin)[0])(1.0, 2.0))
    assert "name=the carry" in program
    assert "name=the input" in program
    assert Policy(disable=True).checkpoint("the carry", "the input", f) is f
