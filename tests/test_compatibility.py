"""Behaviour that programs of the 1.4 line rely on, and that no signature shows: found by `make conformance`."""

import importlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec as P

import haliax as hax
from haliax import Axis, nn
from haliax._src.state_dict import default_eqx_module_from_state_dict, default_eqx_module_to_state_dict
from haliax.nn.normalization import LayerNormBase

A, B, C = hax.make_axes(a=2, b=3, c=4)
BATCH, SEQ = hax.make_axes(batch=3, seq=5)


# axes of the array that the index has too stay in their order, and what is new comes first
@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("ab", "ab"),
        ("ba", "ab"),
        ("x", "abx"),
        ("xy", "abxy"),
        ("bx", "xab"),
        ("xyb", "xyab"),
        ("bc", "cab"),
        ("c", "abc"),
    ],
)
def test_order_of_axes_that_take_gives(index, expected):
    x = hax.arange((A, B, C))
    sizes = {"a": 2, "b": 3, "c": 5, "x": 6, "y": 7}
    places = hax.arange(tuple(Axis(name, sizes[name]) for name in index)) % C.size
    taken = hax.take(x, C, places)
    assert "".join(taken.axis_names) == expected
    same = x["c", places].rearrange(taken.axes)
    assert np.array_equal(taken.array, same.array)


@pytest.mark.parametrize("update", [hax.named([7, 8, 9], BATCH), hax.named([[7], [8], [9]], ("batch", "seq"))])
@pytest.mark.parametrize("jit", [False, True])
def test_an_update_at_a_start_of_its_own_is_one_element_of_the_axis_it_lacks(update, jit):
    write = lambda start: hax.updated_slice(hax.zeros((BATCH, SEQ), dtype=int), {"seq": start}, update)  # noqa: E731
    result = (jax.jit(write) if jit else write)(hax.named([0, 1, 7], BATCH))
    assert result.array.tolist() == [[7, 0, 0, 0, 0], [0, 8, 0, 0, 0], [0, 0, 0, 0, 9]]


@pytest.mark.parametrize("raw", [np.arange(3.0), jnp.arange(3.0)], ids=["numpy", "jax"])
@pytest.mark.parametrize(
    "op", [hax.add, hax.subtract, hax.power, lambda a, b: a * b], ids=["add", "subtract", "power", "*"]
)
def test_a_named_array_without_axes_is_a_scalar_beside_a_raw_array(op, raw):
    two = hax.named(2.0, ())
    for result, expected in ((op(two, raw), op(2.0, raw)), (op(raw, two), op(raw, 2.0))):
        assert isinstance(result, jax.Array)
        assert np.array_equal(result, expected)


@pytest.mark.parametrize("label", [-1, np.int8(-1), jnp.array(-1)], ids=["int", "numpy", "jax"])
def test_one_unnamed_label_counts_from_the_end(label):
    assert hax.nn.one_hot(label, C).array.tolist() == [0, 0, 0, 1]
    assert hax.nn.one_hot(hax.named(label, ()), C).array.tolist() == [0, 0, 0, 0]


def test_an_axis_in_a_mapping_names_the_axis_of_a_transform():
    x = hax.arange((B, C), dtype=float)
    result = hax.fft(x, axis={"b": None, "c": Axis("frequency", 6)})
    assert result.axes == (B, Axis("frequency", 6))
    assert np.allclose(result.array, jnp.fft.fftn(x.array, (3, 6)), atol=1e-5)


def test_a_part_may_have_the_name_of_its_axis():
    x = hax.arange({"h": 6, "w": 4})
    result = hax.rearrange(x, "{(h: top h) (w: left w)} -> top left h w", top=2, left=2)
    assert result.shape == {"top": 2, "left": 2, "h": 3, "w": 2}
    assert np.array_equal(result.array, np.arange(24).reshape(2, 3, 2, 2).transpose(0, 2, 1, 3))


def test_a_shift_with_axes_is_refused():
    with pytest.raises(TypeError) as error:
        hax.roll(hax.ones((A, B)), hax.named([0, 1], "d"), "a")
    assert str(error.value) == "roll: the shift has d=2; expected an integer, or a sequence with one for each axis."


def test_an_error_of_a_loop_names_the_parameter_and_the_field():
    def step(carry, layer, y):
        return carry

    layer = Layer(jnp.ones((3, 2)))
    with pytest.raises(ValueError) as error:
        hax.fold(step, A)(0.0, layer, y=jnp.ones(2))
    expected = "fold: axis 'a' has size 3; expected 2. layer.weight has leading dimension 3: its shape is (3, 2)."
    assert str(error.value) == expected


# raw arrays with names ------------------------------------------------------------------------------------------------


class Layer(eqx.Module):
    weight: jax.Array = hax.field(axis_names=("a", "b"))
    other: jax.Array | None = None


MAPPING = {"a": "data", "b": "model"}


def test_a_field_says_how_its_raw_array_is_split():
    x = jnp.ones((4, 2))
    specs = hax.partitioning.pspec_for({"layers": [Layer(x, x)]}, MAPPING)
    assert specs["layers"][0].weight == P("data", "model")
    assert specs["layers"][0].other == P(None, None)
    named = Layer(hax.ones({"b": 2, "a": 4}))
    assert hax.partitioning.pspec_for(named, MAPPING).weight == P("model", "data")
    assert hax.partitioning.pspec_for(Layer(None), MAPPING).weight is None


def test_a_field_with_too_many_names():
    with pytest.raises(ValueError) as error:
        hax.partitioning.pspec_for([Layer(jnp.ones(3))], MAPPING)
    message = "pspec_for: [0].weight has rank 1, and its field the axis names (a, b); expected one for each dimension."
    assert str(error.value) == message


def test_a_static_field_has_no_axes():
    with pytest.raises(ValueError) as error:
        hax.field(static=True, axis_names=("a",))
    message = "field: static=True and axis_names were given; expected one of them. Only arrays have axes."
    assert str(error.value) == message


def test_a_raw_array_is_split_as_its_type_says(explicit_mesh, mesh):
    for m, expected in ((explicit_mesh, P("data", None)), (mesh, P(None, None))):
        x = jax.device_put(jnp.ones((4, 2)), NamedSharding(m, P("data", None)))
        assert hax.partitioning.pspec_for(x, {}) == expected


# classes and functions of which others are made -----------------------------------------------------------------------


def test_parametrisations_and_norms_have_common_bases():
    assert issubclass(nn.linear.LinearStandardParam, nn.mup.AbstractLinearReparam)
    assert issubclass(nn.embedding.EmbeddingStandardParam, nn.mup.AbstractEmbeddingReparam)
    for base in (nn.mup.AbstractLinearReparam, nn.mup.AbstractEmbeddingReparam):
        assert issubclass(base, nn.mup.AbstractReparam)
    for norm in (nn.LayerNorm, nn.RmsNorm):
        assert isinstance(norm.init(A), nn.normalization.LayerNormBase)


def test_a_module_as_a_state_dict_by_default():
    layer = Layer(jnp.ones((4, 2)), jnp.zeros(3))
    state = default_eqx_module_to_state_dict(layer, "layer")
    assert sorted(state) == ["layer.other", "layer.weight"]
    empty = jax.tree.map(jnp.zeros_like, layer)
    loaded = default_eqx_module_from_state_dict(empty, state, "layer")
    assert eqx.tree_equal(loaded, layer)


# contractions on explicit mesh axes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        (None, P(None, "model")),
        ({}, P(None, "model")),
        ({"a": "data"}, P("data", "model")),
        ({"a": "model"}, P("model", None)),
        ({"c": None}, P(None, None)),
    ],
)
def test_contractions_are_laid_out_as_the_mapping_says(explicit_mesh, mapping, expected, jit):
    A, B, C = hax.make_axes(a=4, b=3, c=2)
    with hax.set_mesh(explicit_mesh):
        x, y = hax.ones((A, B)), hax.shard(hax.ones((B, C)), {"c": "model"})
        calls = [lambda x, y: hax.dot("b", x, y), lambda x, y: hax.einsum("a b, b c -> a c", x, y)]
        for call in map(jax.jit, calls) if jit else calls:
            if mapping is None:
                result = call(x, y)
            else:
                with hax.axis_mapping(mapping):
                    result = call(x, y)
            assert jax.typeof(result.array).sharding.spec == expected


def test_a_size_is_that_of_the_part_with_the_name_of_its_axis():
    x = hax.named(jnp.arange(12).reshape(6, 2), ("H", "C"))
    for sizes in ({"H": 2}, {"h": 3}, {"H": hax.Axis("H", 2)}):
        result = hax.rearrange(x, "{(H: h H)} -> h H ...", **sizes)
        assert result.shape == {"h": 3, "H": 2, "C": 2}
        assert np.array_equal(result.array, np.arange(12).reshape(3, 2, 2))


# names for annotations, and constants, that programs import from where they were
@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("haliax", ["NamedOrNumeric", "Scalar", "DTypeLike"]),
        ("haliax.core", ["NamedOrNumeric", "NamedIndex", "SliceSpec", "GatherScatterModeStr"]),
        ("haliax.partitioning", ["Mesh"]),
        ("haliax.nn.scan", ["ScanCheckpointSpec", "ScanCheckpointPolicy"]),
        ("haliax.nn.mlp", ["DEFAULT_WIDTH_NAME"]),
    ],
)
def test_names_that_annotations_use(module, names):
    assert [name for name in names if not hasattr(importlib.import_module(module), name)] == []


def test_a_policy_of_a_short_form_by_its_other_name():
    assert nn.ScanCheckpointPolicy._mk("offload") == nn.ScanCheckpointPolicy.from_bool_or_str("offload")


class Doubled(LayerNormBase):
    """A normalisation of a user, which has all of its call to itself."""

    def __call__(self, x):
        return 2 * x


def test_a_normalisation_needs_a_call_and_nothing_else():
    layer = Doubled.init(A)
    assert layer(hax.ones(A)).array.tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match="__call__"):
        LayerNormBase.init(A)


@pytest.mark.parametrize(("In", "Out", "expected"), [(A, B, True), ((A, B), C, True), ((), B, False), (A, (), True)])
@pytest.mark.parametrize("stacked", [False, True])
def test_a_linear_layer_tells_the_order_of_its_axes(In, Out, expected, stacked):
    for out_first in (True, False):
        init = lambda key, out_first=out_first: nn.Linear.init(In, Out, key=key, out_first=out_first)  # noqa: E731
        layer = hax.vmap(init, BATCH)(jax.random.split(jax.random.key(0), 3)) if stacked else init(jax.random.key(0))
        one_order = In == () or Out == ()
        assert layer._out_first == (expected if one_order else out_first)
