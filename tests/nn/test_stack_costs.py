"""What stacks of layers cost beside loops written by hand: operations, tracing, and memory of the backward pass."""

from __future__ import annotations

import functools
import math
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jax.ad_checkpoint import checkpoint_name

import haliax as hax
from haliax import Axis, ScanCheckpointPolicy as Policy
from haliax.nn.scan import BlockSeq, Stacked
from helpers import count_traces
from programs import counted

both = pytest.mark.parametrize("kind", [Stacked, BlockSeq])


class Layer(eqx.Module):
    """An MLP with a residual connection; `hidden` is the name of one of its values."""

    up: hax.NamedArray
    down: hax.NamedArray
    scale: jax.Array

    @staticmethod
    def init(Embed, Hidden, *, key):
        keys = jax.random.split(key)
        up, down = hax.random.normal(keys[0], (Embed, Hidden)), hax.random.normal(keys[1], (Hidden, Embed))
        return Layer(up, down, jnp.ones(()))

    def __call__(self, x, shift):
        hidden = hax.tree_checkpoint_name(hax.sin(x.dot(self.up, axis="embed")), "hidden")
        return x + hax.cos(hidden * hidden + shift).dot(self.down, axis="hidden") * self.scale

    def with_output(self, x, shift):
        y = self(x, shift)
        return y, hax.cos(y)


def layer(x, up, down, scale, shift):
    """The same by hand."""
    hidden = checkpoint_name(jnp.sin(x @ up), "hidden")
    return x + jnp.cos(hidden * hidden + shift) @ down * scale


def stack(kind, count, policy=False, size=4):
    keys = jax.random.split(jax.random.key(0), count)
    make = kind.init(Axis("layers", count), Layer, gradient_checkpointing=policy)
    return make(*hax.make_axes(embed=size, hidden=size), key=keys)


# operations ---------------------------------------------------------------------------------------------------------

LAYERS, SHIFTS = stack(Stacked, 4).stacked, jnp.arange(4.0)
X = hax.random.normal(jax.random.key(1), hax.make_axes(batch=2, embed=4))
RAW = (X.array, LAYERS.up.array, LAYERS.down.array, LAYERS.scale, SHIFTS)
names = jax.checkpoint_policies


def named_carry(step):
    return lambda carry, x: step(checkpoint_name(carry, "carry"), x)


def named(step):
    return lambda carry, x: step(*checkpoint_name((carry, x), "all"))


def keep(policy, wrap=named_carry, prevent_cse=False):
    """A checkpoint of a step by hand."""
    return lambda step: jax.checkpoint(wrap(step), prevent_cse=prevent_cse, policy=policy)


ARGUMENTS = functools.partial(jax.checkpoint, prevent_cse=False)
OFFLOAD = names.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["all"],
    offload_src="device",
    offload_dst="pinned_host",
)
POLICIES = {
    "none": (False, lambda step: step),
    "simple": (True, ARGUMENTS),
    "full": ("full", ARGUMENTS),
    "recompute": ("recompute", ARGUMENTS),
    "carries": (Policy(), keep(names.save_only_these_names("carry"))),
    "name": (Policy(save_block_internals=["hidden"]), keep(names.save_only_these_names("carry", "hidden"))),
    "save_all": ("save_all", keep(names.save_anything_except_these_names())),
    "all but carries": (
        Policy(save_carries=False, save_block_internals=True),
        keep(names.save_anything_except_these_names("carry")),
    ),
    "offload": ("offload", keep(OFFLOAD, named)),
}


def by_hand(step):
    return lambda x, *rest: jax.lax.scan(step, x, rest)


def by_hand_nested(step):
    """A scan of scans, of which the inner ones are recomputed."""

    def scan(x, *rest):
        inner = jax.checkpoint(functools.partial(jax.lax.scan, step))
        carry, ys = jax.lax.scan(inner, x, [a.reshape(2, 2, *a.shape[1:]) for a in rest])
        return carry, None if ys is None else ys.reshape(4, *ys.shape[2:])

    return scan


LOOPS = {name: (policy, {}, by_hand, wrap) for name, (policy, wrap) in POLICIES.items()} | {
    "nested": ("nested", {}, by_hand_nested, POLICIES["carries"][1]),
    "nested, simple": (Policy(nested=2, simple=True), {}, by_hand_nested, ARGUMENTS),
    "unroll": (True, {"unroll": 2}, lambda step: lambda x, *rest: jax.lax.scan(step, x, rest, unroll=2), ARGUMENTS),
    "unroll all": (
        True,
        {"unroll": True},
        lambda step: lambda x, *rest: jax.lax.scan(step, x, rest, unroll=True),
        jax.checkpoint,
    ),
}


def arrays(tree):
    return [leaf.array if isinstance(leaf, hax.NamedArray) else leaf for leaf in hax.tree_util.tree_leaves(tree)]


def assert_same_operations(ours, plain):
    """`ours` of named arrays and `plain` of raw ones, and their gradients, are the same operations."""

    def loss(f):
        return jax.grad(lambda *args: sum(jnp.sum(y) for y in f(*args)), argnums=(0, 1, 2, 3))

    named = (X, LAYERS.up, LAYERS.down, LAYERS.scale, SHIFTS)
    outputs = lambda *args: arrays(ours(*args))  # noqa: E731
    plain_outputs = lambda *args: jax.tree.leaves(plain(*args))  # noqa: E731
    assert counted(outputs, *named) == counted(plain_outputs, *RAW)
    assert counted(loss(outputs), *named) == counted(loss(plain_outputs), *RAW)


@pytest.mark.parametrize(("policy", "options", "loop", "checkpoint"), LOOPS.values(), ids=LOOPS)
def test_fold_is_the_loop_by_hand(policy, options, loop, checkpoint):
    def fold(x, up, down, scale, shifts):
        return Stacked(Layer(up, down, scale), Axis("layers", 4), policy).fold(x, shifts, **options)

    step = checkpoint(lambda carry, x: (layer(carry, *x), None))
    assert_same_operations(fold, loop(step))


@pytest.mark.parametrize(("policy", "options", "loop", "checkpoint"), LOOPS.values(), ids=LOOPS)
def test_scan_is_the_loop_by_hand(policy, options, loop, checkpoint):
    def scan(x, up, down, scale, shifts):
        layers = Stacked(Layer(up, down, scale), Axis("layers", 4), policy)
        return layers.scan_via(Layer.with_output, **options)(x, shifts)

    def step(carry, x):
        y = layer(carry, *x)
        return y, jnp.cos(y)

    assert_same_operations(scan, loop(checkpoint(step)))


def test_vmap_is_that_by_hand():
    def vmap(x, up, down, scale, shifts):
        return Stacked(Layer(up, down, scale), Axis("layers", 4), False).vmap(x, shifts)

    assert_same_operations(vmap, jax.vmap(layer, in_axes=(None, 0, 0, 0, 0)))


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "offload"])
def test_a_list_is_the_calls_by_hand(name):
    """A checkpoint in straight code prevents that both computations are merged."""
    policy, _ = POLICIES[name]
    checkpoint = {
        "none": lambda f: f,
        "carries": keep(names.save_only_these_names("carry"), prevent_cse=True),
        "name": keep(names.save_only_these_names("carry", "hidden"), prevent_cse=True),
        "save_all": keep(names.save_anything_except_these_names(), prevent_cse=True),
        "all but carries": keep(names.save_anything_except_these_names("carry"), prevent_cse=True),
    }.get(name, jax.checkpoint)

    def fold(x, up, down, scale, shifts):
        layers = Stacked(Layer(up, down, scale), Axis("layers", 4), False).unstacked()
        return BlockSeq(layers, Axis("layers", 4), policy).fold(x, shifts)

    def plain(x, *rest):
        layers = [[a[i] for a in rest[:3]] for i in range(4)]
        for i, weights in enumerate(layers):
            x = checkpoint(lambda carry, x: layer(carry, *x))(x, (*weights, rest[3][i]))
        return x

    assert_same_operations(fold, plain)


# tracing ------------------------------------------------------------------------------------------------------------


def calls(fn, *args):
    """How many functions are called by `fn`, of Python or of C: its time in a measure that is always the same."""
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        fn(*args)
    finally:
        sys.setprofile(before)
    return count


def gradient(stack, x, shifts, keys):
    def loss(stack, x):
        def step(layer, x, shift, *, key):
            return layer(x, shift) + jax.random.normal(key)

        return hax.sum(stack.fold_via(step)(x, shifts, key=keys)).scalar()

    return jax.grad(loss)(stack, x)


@pytest.mark.parametrize("policy", [False, True, "offload", "nested"])
def test_a_hundred_layers_are_traced_as_one_is(policy):
    def trace(count):
        shapes = jax.eval_shape(lambda: (stack(Stacked, count, policy), X, jnp.ones(count), keys(count)))
        jax.clear_caches()
        return calls(lambda: programs.append(jax.make_jaxpr(gradient)(*shapes)))

    programs = []
    few, many = trace(1), trace(100)
    assert many <= 1.3 * few
    assert len({str(program).count(" = ") for program in programs}) == 1  # as many equations


def keys(count):
    return jax.random.split(jax.random.key(1), count)


@pytest.mark.parametrize("count", [1, 100])
def test_one_layer_is_traced_to_make_all(count):
    init = count_traces(Layer.init)
    make = Stacked.init(Axis("layers", count), type("Counted", (Layer,), {"init": staticmethod(init)}))
    made = jax.eval_shape(lambda: make(*hax.make_axes(embed=4, hidden=4), key=keys(count)))
    assert init.traces == 1
    assert made.stacked.up.axes == hax.make_axes(layers=count, embed=4, hidden=4)


# memory of the backward pass ----------------------------------------------------------------------------------------

COUNT, ROOT, WIDE = 64, 8, (Axis("batch", 512), Axis("embed", 8))
CARRY = math.prod(axis.size for axis in WIDE) * 4


@functools.cache
def kept(policy):
    """The temporary bytes of the program of a gradient, as carries: far larger than the weights of a layer."""

    def loss(layers, x):
        return hax.sum(layers.fold(x, jnp.ones(COUNT))).scalar()

    shapes = jax.eval_shape(lambda: (stack(Stacked, COUNT, policy, size=8), hax.ones(WIDE)))
    program = jax.jit(jax.grad(loss)).lower(*shapes).compile()
    return program.memory_analysis().temp_size_in_bytes / CARRY


ONE_LAYER = 10
MEMORY = {
    "carries": (Policy(), COUNT),
    "simple": (True, COUNT),
    "full": ("full", COUNT),
    "recompute": ("recompute", COUNT),
    "inputs too": (Policy(save_inputs=True), COUNT),
    "name": (Policy(save_block_internals=["hidden"]), 2 * COUNT),
    "nested": ("nested", 2 * ROOT),
    "nested, simple": (Policy(simple=True, nested=True), 2 * ROOT),
    "nested by 4": (Policy(nested=4), 4 + COUNT // 4),
}


@pytest.mark.parametrize(("policy", "carries"), MEMORY.values(), ids=MEMORY)
def test_memory_of_the_backward_pass(policy, carries):
    assert carries <= kept(policy) <= carries + ONE_LAYER


@pytest.mark.parametrize("policy", [False, "save_all", Policy(save_carries=False, save_block_internals=True)])
def test_memory_where_all_is_kept(policy):
    assert 4 * COUNT <= kept(policy) <= 8 * COUNT


@pytest.mark.parametrize(
    ("policy", "moved"),
    [
        ("offload", 5),
        (Policy(save_carries="offload"), 1),
        (Policy(save_inputs="offload"), 4),
        (Policy(offload_block_internals=["hidden"]), 1),
        (Policy(save_block_internals=["hidden"], save_carries="offload"), 1),
    ],
)
def test_what_is_offloaded_is_moved_to_the_host_and_back(policy, moved):
    """In the program for a GPU: memory of a CPU is of one kind, for which JAX moves nothing."""
    shapes = jax.eval_shape(lambda: (stack(Stacked, 4, policy), X, SHIFTS, keys(4)))
    traced = jax.jit(gradient).trace(*shapes)
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert text.count('_xla_buffer_placement = "pinned_host"') == moved
    assert text.count('_xla_buffer_placement = "device"') == moved
    assert "pinned_host" not in traced.lower().as_text()
