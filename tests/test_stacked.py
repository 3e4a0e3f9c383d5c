"""Stacks and lists of layers against plain loops over their layers."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import ScanCheckpointPolicy
from haliax.axis import make_axes
from haliax.nn.scan import BlockFoldable, BlockSeq, Stacked
from helpers import count_traces

L, E = make_axes(layers=3, e=2)
KEYS = jax.random.split(jax.random.PRNGKey(0), 3)
X = hax.ones(E)

both = pytest.mark.parametrize("kind", [Stacked, BlockSeq])
close = functools.partial(np.testing.assert_allclose, rtol=1e-5)


class Layer(eqx.Module):
    """Has named and raw arrays, a static field, a number and a function."""

    weight: hax.NamedArray
    raw: jax.Array
    how: object
    scale: float
    name: str = eqx.field(static=True, default="layer")

    @staticmethod
    def init(axis, scale=1.0, *, key, how=hax.sin, rate=None):
        weight = hax.named(jax.random.normal(key, (axis.size,)), axis.name) * scale
        return Layer(weight, jnp.ones(2) if rate is None else jnp.ones(2) * rate, how, 2.0)

    def __call__(self, x, extra=None, *, factor=None):
        y = x + self.how(self.weight) * self.scale * self.raw.sum() * (1 if extra is None else extra)
        return y if factor is None else y * factor

    def with_output(self, x, extra=1.0):
        return self(x, extra), {"sum": hax.sum(self.weight) * extra, "raw": self.raw, "number": 3, "none": None}

    def alone(self, x, extra=1.0):
        return self.weight * x * extra, self.raw, "text", 3


def make(kind, *args, **options):
    return kind.init(L, Layer, **options)(*(args or (E,)), key=KEYS)


def loop(layers, x, extras=(None, None, None), **kwargs):
    for layer, extra in zip(layers, extras, strict=True):
        x = layer(x, extra, **kwargs)
    return x


LAYERS = [Layer.init(E, key=key) for key in KEYS]


# --- Making them ---


@both
@pytest.mark.parametrize("axis", [L, "layers"], ids=["Axis", "name"])
def test_each_layer_is_made_from_its_key(kind, axis):
    layers = kind.init(axis, Layer)(E, key=KEYS)
    assert layers.Block == L
    for layer, expected in zip(layers.unstacked(), LAYERS, strict=True):
        np.testing.assert_array_equal(layer.weight.array, expected.weight.array)
        assert jax.tree.structure(layer) == jax.tree.structure(expected)
        assert (layer.scale, layer.how, layer.name) == (2.0, hax.sin, "layer")


@both
def test_the_numbers_are_those_of_the_library_that_this_one_replaces(kind):
    weights = jnp.stack([layer.weight.array for layer in make(kind).unstacked()])
    close(weights, [[1.0040143, -0.9063372], [-2.4424558, -2.0356805], [1.2956359, 1.3550105]])


@both
def test_arguments_that_run_along_the_axis_are_split(kind):
    layers = kind.init(L, Layer)(E, hax.arange(L), key=jax.random.split(jax.random.key(0), 3), rate=jnp.arange(3.0))
    for i, (layer, expected) in enumerate(zip(layers.unstacked(), LAYERS, strict=True)):
        close(layer.weight.array, expected.weight.array * i)
        close(layer.raw, np.full(2, i))


def test_a_stack_has_the_axis_in_front():
    stack = make(Stacked)
    assert stack.Layers == L
    assert stack.stacked.weight.axes == (L, E)
    assert stack.stacked.raw.shape == (3, 2)
    assert (stack.stacked.scale, stack.stacked.how) == (2.0, hax.sin)


def test_what_is_a_leaf():
    assert len(jax.tree.leaves(eqx.filter(make(Stacked), eqx.is_array))) == 2
    assert len(jax.tree.leaves(eqx.filter(make(BlockSeq), eqx.is_array))) == 6
    assert hash(jax.tree.structure(eqx.filter(make(Stacked), eqx.is_array))) is not None


POLICIES = [
    (True, None, ScanCheckpointPolicy(simple=True)),
    (True, True, ScanCheckpointPolicy(simple=True, prevent_cse=True)),
    ("nested", False, ScanCheckpointPolicy(nested=True)),
    (ScanCheckpointPolicy(nested=2), None, ScanCheckpointPolicy(nested=2)),
    (ScanCheckpointPolicy(nested=2), True, ScanCheckpointPolicy(nested=2, prevent_cse=True)),
]


@both
@pytest.mark.parametrize(("given", "prevent_cse", "policy"), POLICIES, ids=str)
def test_policies(kind, given, prevent_cse, policy):
    layers = make(kind, gradient_checkpointing=given, prevent_cse=prevent_cse)
    assert layers.gradient_checkpointing == policy


def test_the_constructor_takes_a_short_form_of_a_policy():
    assert BlockSeq(LAYERS, L, True).gradient_checkpointing == ScanCheckpointPolicy(simple=True)


@both
def test_kinds_have_one_interface(kind):
    assert isinstance(make(kind), BlockFoldable)


# --- Running them ---

REMAT = [False, True, "full", "offload", "save_all", "nested", ScanCheckpointPolicy(save_inputs=True, nested=3)]


@both
@pytest.mark.parametrize("remat", REMAT, ids=str)
@pytest.mark.parametrize("unroll", [None, 1, True])
def test_fold(kind, remat, unroll):
    layers = make(kind, gradient_checkpointing=remat)
    out = layers.fold(X, unroll=unroll)
    assert out.axes == (E,)
    close(out.array, loop(LAYERS, X).array)


EXTRAS = {
    "number": (2.0, [2.0, 2.0, 2.0]),
    "shared raw": (jnp.array(2.0), [2.0, 2.0, 2.0]),
    "shared named": (hax.arange(E), [hax.arange(E)] * 3),
    "split raw": (jnp.arange(3.0), [0.0, 1.0, 2.0]),
    "split named": (hax.arange(L) * 1.0, [0.0, 1.0, 2.0]),
    "split named, axis last": (hax.named(jnp.arange(6.0).reshape(2, 3), ("e", "layers")), None),
}


@both
@pytest.mark.parametrize(("extra", "rows"), EXTRAS.values(), ids=EXTRAS)
def test_extra_arguments(kind, extra, rows):
    rows = hax.unbind(extra, "layers") if rows is None else rows
    expected = loop(LAYERS, X, rows, factor=3.0).array
    layers = make(kind)
    close(layers.fold(X, extra, factor=3.0).array, expected)
    close(layers.fold_via(lambda layer, x, e, f: layer(x, e, factor=f))(X, extra, 3.0).array, expected)
    outs = layers.vmap_via(lambda layer, e: layer(X, e))(extra)
    assert outs.axis_names == ("layers", "e")
    close(outs.array, jnp.stack([layer(X, row).array for layer, row in zip(LAYERS, rows, strict=True)]))


@both
def test_keys_are_split_among_the_layers(kind):
    for keys in (KEYS, jax.random.split(jax.random.key(0), 3)):
        noise = make(kind).fold_via(lambda layer, x, *, key: x + jax.random.normal(key))(0.0, key=keys)
        close(noise, jax.vmap(jax.random.normal)(keys).sum())


@both
@pytest.mark.parametrize("remat", REMAT, ids=str)
def test_scan(kind, remat):
    layers = make(kind, gradient_checkpointing=remat)
    carry, outs = layers.scan_via(Layer.with_output)(X, 2.0)
    close(carry.array, loop(LAYERS, X, [2.0] * 3).array)
    assert outs["sum"].axes == (L,)
    close(outs["sum"].array, [hax.sum(layer.weight).array * 2 for layer in LAYERS])
    assert outs["raw"].shape == (3, 2)
    np.testing.assert_array_equal(outs["number"], [3, 3, 3])
    assert outs["none"] is None


class Pair(eqx.Module):
    weight: hax.NamedArray

    @staticmethod
    def init(weight):
        return Pair(weight)

    def __call__(self, x, *, shift=0.0):
        return x * self.weight + shift, x


@both
def test_scan_calls_the_layers(kind):
    weights = hax.named(jnp.arange(6.0).reshape(3, 2), ("layers", "e"))
    carry, outs = kind.init(L, Pair)(weights).scan(X, shift=1.0)
    close(carry.array, [(0 + 1) * 2 * 4 + 4 + 1, (1 + 1) * 3 * 5 + 5 + 1])
    assert outs.axes == (L, E)
    close(outs.array[0], X.array)


@both
def test_vmap(kind):
    layers = make(kind)
    out = layers.vmap(X, factor=2.0)
    assert out.axes == (L, E)
    close(out.array, jnp.stack([layer(X, factor=2.0).array for layer in LAYERS]))
    named, raw, text, number = layers.vmap_via(Layer.alone)(X)
    assert (named.axes, raw.shape, text, number) == ((L, E), (3, 2), "text", 3)


UNROLL = [None, 0, 1, 2, 3, 7, np.int64(2), True, False]


@both
@pytest.mark.parametrize("unroll", UNROLL, ids=repr)
def test_unroll(kind, unroll):
    layers, rows = make(kind), hax.arange(L) * 1.0
    expected = loop(LAYERS, X, [0.0, 1.0, 2.0]).array
    close(layers.fold(X, rows, unroll=unroll).array, expected)
    close(layers.fold_via(Layer.__call__, unroll=unroll)(X, rows).array, expected)
    carry, outs = layers.scan_via(Layer.with_output, unroll=unroll)(X, rows)
    close(carry.array, expected)
    close(outs["sum"].array, [hax.sum(layer.weight).array * i for i, layer in enumerate(LAYERS)])
    pairs = kind.init(L, Pair)(hax.named(jnp.arange(6.0).reshape(3, 2), ("layers", "e")))
    close(pairs.scan(X, unroll=unroll)[0].array, [0, 1 * 3 * 5])


RAW_ROWS, NAMED_ROWS = jnp.arange(6.0).reshape(3, 2), hax.named(jnp.arange(6.0).reshape(2, 3), ("e", "layers"))
CALLS = {
    "fold": lambda layers: layers.fold(X, NAMED_ROWS, factor=jnp.arange(3.0)),
    "fold_via": lambda layers: layers.fold_via(lambda layer, x, e, *, k: layer(x, k) * e)(X, NAMED_ROWS, k=2.0),
    "scan_via": lambda layers: layers.scan_via(Layer.with_output)(X, jnp.arange(3.0)),
    "scan_via, outputs of all kinds": lambda layers: layers.scan_via(
        lambda layer, x, rows: (x, [rows, layer, (1, "text", None, 2.0)])
    )(X, RAW_ROWS),
    "scan_via, a carry without names": lambda layers: layers.scan_via(lambda layer, c, e: ((c[0] + 1, e), c[0]))(
        (0, jnp.zeros(2)), RAW_ROWS
    ),
    "vmap": lambda layers: layers.vmap(X, NAMED_ROWS, factor=jnp.arange(3.0)),
    "vmap_via": lambda layers: layers.vmap_via(lambda layer, x, *, rows: (layer(x), rows * 2))(X, rows=RAW_ROWS),
    "keys": lambda layers: layers.vmap_via(lambda layer, *, key: hax.random.normal(key, E))(key=KEYS),
    "typed keys": lambda layers: layers.fold_via(
        lambda layer, x, *, key: x + hax.random.normal(key["a"], E) * layer.weight
    )(X, key={"a": jax.random.split(jax.random.key(0), 3)}),
    "unstacked": lambda layers: tuple(layers.unstacked()),
    "get_layer": lambda layers: layers.get_layer(-1),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_stacks_and_lists_give_the_same(call):
    stack, blocks = call(make(Stacked)), call(make(BlockSeq))
    assert jax.tree.structure(stack) == jax.tree.structure(blocks)
    for ours, theirs in zip(jax.tree.leaves(stack), jax.tree.leaves(blocks), strict=True):
        if isinstance(ours, jax.Array):
            close(ours, theirs, atol=1e-6)
        else:
            assert ours == theirs


@both
@pytest.mark.parametrize("remat", [False, True, "full", "offload", "save_all", "nested"])
@pytest.mark.parametrize("count", [0, 1])
def test_few_layers(kind, count, remat):
    keys = KEYS[:count]
    layers = kind.init(L.resize(count), Layer, gradient_checkpointing=remat)(E, key=keys)
    assert layers.Block == L.resize(count) and len(layers.unstacked()) == count
    expected = loop([Layer.init(E, key=key) for key in keys], X, [None] * count)
    value, gradient = jax.value_and_grad(lambda x: hax.sum(layers.fold(x)).scalar())(X)
    close(value, expected.sum().scalar())
    close(gradient.array, [1, 1])


@both
@pytest.mark.parametrize("index", [0, 2, -1, np.int64(1), jnp.array(1)], ids=repr)
def test_get_layer(kind, index):
    layer = make(kind).get_layer(index)
    np.testing.assert_array_equal(layer.weight.array, LAYERS[int(index)].weight.array)
    assert layer.weight.axes == (E,)


def test_get_layer_of_a_stack_with_a_traced_index():
    stack = make(Stacked)
    weights = jax.vmap(lambda i: stack.get_layer(i).weight.array)(jnp.array([2, 0]))
    close(weights, jnp.stack([LAYERS[2].weight.array, LAYERS[0].weight.array]))


@pytest.mark.parametrize("nested", [Stacked, BlockSeq])
@both
def test_layers_of_layers(kind, nested):
    class Group(eqx.Module):
        layers: BlockFoldable

        @staticmethod
        def init(*, key):
            return Group(nested.init(hax.Axis("inner", 2), Layer)(E, key=jax.random.split(key, 2)))

        def __call__(self, x):
            return self.layers.fold(x)

    groups = kind.init(L, Group)(key=KEYS)
    flat = [Layer.init(E, key=inner) for key in KEYS for inner in jax.random.split(key, 2)]
    close(groups.fold(X).array, loop(flat, X, [None] * 6).array)


def test_a_list_may_hold_layers_that_differ():
    layers = BlockSeq([LAYERS[0], eqx.tree_at(lambda m: m.how, LAYERS[1], hax.cos)], hax.Axis("layers", 2), False)
    expected = layers.blocks[1](LAYERS[0](X))
    close(layers.fold(X).array, expected.array)


# --- Gradients and cost ---


@both
@pytest.mark.parametrize("remat", REMAT, ids=str)
def test_gradients(kind, remat):
    def loss(layers, x):
        return hax.sum(hax.sin(layers.fold(x, jnp.arange(3.0)))).array

    def loop_loss(layers, x):
        return hax.sum(hax.sin(loop(layers, x, [0.0, 1.0, 2.0]))).array

    got = eqx.filter_grad(loss)(make(kind, gradient_checkpointing=remat), X)
    expected = eqx.filter_grad(loop_loss)(LAYERS, X)
    for layer, want in zip(got.unstacked(), expected, strict=True):
        close(layer.weight.array, want.weight.array, atol=1e-6)
        close(layer.raw, want.raw, atol=1e-6)


@pytest.mark.parametrize("remat", [False, True, "nested"])
def test_a_stack_of_twelve_traces_one_layer(remat):
    axis = hax.Axis("layers", 12)
    called = count_traces(lambda layer, x: layer(x))
    stack = Stacked.init(axis, Layer, gradient_checkpointing=remat)(E, key=jax.random.split(jax.random.key(0), 12))
    run = eqx.filter_jit(lambda stack, x: stack.fold_via(called)(x))
    run(stack, X)
    run(stack, X + 1)
    assert called.traces == 1


def test_sharding_of_a_stack(mesh):
    weights = jax.device_put(
        jnp.ones((3, 8)), jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, "model"))
    )
    stack = Stacked.init(L, Pair)(hax.named(weights, ("layers", "e")))
    carry = jax.jit(lambda s, x: s.fold_via(lambda m, x: m(x)[0])(x))(stack, hax.ones(hax.Axis("e", 8)))
    assert carry.array.shape == (8,)
    assert stack.get_layer(0).weight.array.sharding.spec == jax.sharding.PartitionSpec("model")


@pytest.mark.parametrize("remat", [False, "nested"])
@pytest.mark.parametrize("axes", ["mesh", "explicit_mesh"])
def test_layers_may_be_split_over_devices(axes, remat, request):
    """A loop collects its layers; gradients are laid out as the layers are, as far as types tell."""
    weights = hax.random.normal(jax.random.key(0), hax.make_axes(layers=4, e=2))
    x = hax.random.normal(jax.random.key(1), hax.make_axes(batch=8, e=2))
    mapping = {"layers": "model", "batch": "data"}

    def gradients(stack, x):
        def loss(stack, x):
            carry, ys = stack.scan(x, shift=0.5)
            return (hax.mean(carry) + hax.sum(ys)).scalar()

        return jax.grad(loss, (0, 1))(stack, x)

    make = Stacked.init(L.resize(4), Pair, gradient_checkpointing=remat)
    expected = gradients(make(weights), x)
    with jax.set_mesh(request.getfixturevalue(axes)), hax.axis_mapping(mapping):
        got = jax.jit(gradients)(*hax.shard((make(weights), x)))
    jax.tree.map(close, got, expected)
    if axes == "explicit_mesh":
        assert "model" in str(jax.typeof(got[0].stacked.weight.array).sharding.spec)
