"""Facts: the numbers that the library which this one replaces gives to new layers, for the same key.

Of each array, in the order of the leaves of a layer: its axes, its first and its last number, and the sum of the
absolute values of all.
"""

import functools

import equinox as eqx
import jax
import numpy as np
import pytest

import haliax as hax
from haliax import Axis, nn
from haliax.nn import mup
from haliax.nn.scan import BlockSeq, Stacked

A, B, C, D = hax.make_axes(a=3, b=4, c=2, d=5)
Layers, Width = Axis("layers", 3), Axis("width", 6)


class Block(eqx.Module):
    linear: nn.Linear
    norm: nn.LayerNorm

    @staticmethod
    def init(In, Out, *, key):
        return Block(nn.Linear.init(In, Out, key=key), nn.LayerNorm.init(Out))


def split(key):
    return jax.random.split(key, Layers.size)


LAYERS = {
    "Linear": (
        lambda key: nn.Linear.init(A, B, key=key),
        [("b a", 0.930367, -1.116523, 6.894755), ("b", 0, 0, 0)],
    ),
    "Linear, input first": (
        lambda key: nn.Linear.init(A, B, key=key, out_first=False),
        [("a b", 0.930367, -1.116523, 6.894755), ("b", 0, 0, 0)],
    ),
    "Linear, no bias": (
        lambda key: nn.Linear.init(A, B, key=key, use_bias=False),
        [("b a", 0.930367, -1.116523, 6.894755)],
    ),
    "Linear, several axes": (
        lambda key: nn.Linear.init((A, C), (B, D), key=key),
        [("b d a c", 0.6578689, -0.8286991, 36.26657), ("b d", 0, 0, 0)],
    ),
    "Linear, several axes, input first": (
        lambda key: nn.Linear.init((A, C), (B, D), key=key, out_first=False),
        [("a c b d", 0.6578689, -0.8286991, 36.26657), ("b d", 0, 0, 0)],
    ),
    "Linear, scaled": (
        lambda key: nn.Linear.init(A, B, key=key, init_scale=0.02),
        [("b a", 0.01860734, -0.02233046, 0.1378951), ("b", 0, 0, 0)],
    ),
    "Linear, no input": (
        lambda key: nn.Linear.init((), B, key=key),
        [("b", 1.611443, -0.07840474, 4.122899), ("b", 0, 0, 0)],
    ),
    "Linear, no output": (
        lambda key: nn.Linear.init(A, (), key=key),
        [("a", 0.930367, -0.2496163, 2.33509), ("", 0, 0, 0)],
    ),
    "Linear, muP input": (
        lambda key: nn.Linear.init(A, B, key=key, reparam_cls=nn.Linear.input_reparam()),
        [("b a", 1.611443, -1.933874, 11.94207), ("b", 0, 0, 0)],
    ),
    "Linear, muP hidden": (
        lambda key: nn.Linear.init(A, B, key=key, reparam_cls=nn.Linear.hidden_reparam()),
        [("b a", 0.930367, -1.116523, 6.894755), ("b", 0, 0, 0)],
    ),
    "Linear, muP output": (
        lambda key: nn.Linear.init(A, B, key=key, reparam_cls=nn.Linear.output_reparam()),
        [("b a", 1.611443, -1.933874, 11.94207), ("b", 0, 0, 0)],
    ),
    "MoELinear": (
        lambda key: nn.MoELinear.init(C, A, B, key=key),
        [("c a b", 0.930367, 0.4684484, 13.35428), ("b", 0, 0, 0)],
    ),
    "MoELinear, output first": (
        lambda key: nn.MoELinear.init(C, A, B, key=key, out_first=True),
        [("c b a", 0.930367, 0.4684484, 13.35428), ("b", 0, 0, 0)],
    ),
    "MoELinear, no bias": (
        lambda key: nn.MoELinear.init(C, A, (B, D), key=key, use_bias=False, init_scale=0.5),
        [("c a b d", 0.4651835, -0.5859787, 25.64433)],
    ),
    "MLP": (
        lambda key: nn.MLP.init(A, B, 6, 2, key=key),
        [
            ("mlp a", 0.5774581, -0.272199, 9.605592),
            ("mlp", 0, 0, 0),
            ("mlp2 mlp", -0.9721931, -0.2909114, 13.70451),
            ("mlp2", 0, 0, 0),
            ("b mlp2", 0.5263777, 0.1124345, 7.225007),
            ("b", 0, 0, 0),
        ],
    ),
    "MLP, no hidden": (
        lambda key: nn.MLP.init(A, B, 6, 0, key=key),
        [("b a", 0.5774581, 0.07692844, 6.900289), ("b", 0, 0, 0)],
    ),
    "MLP, axes": (
        lambda key: nn.MLP.init((A, C), B, Width, 1, key=key, out_first=False, use_final_bias=False, init_scale=0.5),
        [
            ("a c width", 0.2041623, -0.04019497, 7.081211),
            ("width", 0, 0, 0),
            ("width b", -0.4860966, 0.1652374, 4.782504),
        ],
    ),
    "MLP, no bias": (
        lambda key: nn.MLP.init(A, B, 6, 1, use_bias=False, use_final_bias=False, key=key),
        [("mlp a", 0.5774581, -0.272199, 9.605592), ("b mlp", -0.9721931, 0.3304748, 9.565008)],
    ),
    "Embedding": (
        lambda key: nn.Embedding.init(D, A, key=key),
        [("d a", 0.5371476, 0.4236673, 4.575997)],
    ),
    "Embedding, several axes": (
        lambda key: nn.Embedding.init(D, (A, C), key=key),
        [("d a c", 0.2685738, -0.123097, 4.500984)],
    ),
    "Embedding, scaled": (
        lambda key: nn.Embedding.init(D, A, key=key, init_scale=0.02),
        [("d a", 0.01074295, 0.008473346, 0.09151995)],
    ),
    "Embedding, range": (
        lambda key: nn.Embedding.init(D, A, key=key, init_scale=3.0, initializer_range=0.02),
        [("d a", 0.01074295, 0.008473346, 0.09151995)],
    ),
    "Embedding, muP": (
        lambda key: nn.Embedding.init(D, A, key=key, reparam_cls=mup.EmbeddingMup),
        [("d a", 1.611443, 1.271002, 13.72799)],
    ),
    "Conv": (
        lambda key: nn.Conv.init(("h", "w"), A, B, 3, key=key),
        [("b a h w", 0.1317568, -0.1525703, 12.37141), ("b", -0.1896427, -0.05317859, 0.4585714)],
    ),
    "ConvTranspose": (
        lambda key: nn.ConvTranspose.init(("h",), A, B, 3, stride=2, key=key),
        [("b a h", 0.2282094, -0.052176, 7.234288), ("b", -0.3284708, -0.09210801, 0.794269)],
    ),
    "LayerNorm": (
        lambda key: nn.LayerNorm.init((A, C)),
        [("a c", 1, 1, 6), ("a c", 0, 0, 0)],
    ),
    "LayerNorm, no bias": (
        lambda key: nn.LayerNorm.init(A, use_bias=False),
        [("a", 1, 1, 3)],
    ),
    "RmsNorm": (
        lambda key: nn.RmsNorm.init(A),
        [("a", 1, 1, 3), ("a", 0, 0, 0)],
    ),
    "RmsNorm, no weight": (
        lambda key: nn.RmsNorm.init(A, use_weight=False),
        [("a", 0, 0, 0)],
    ),
    "Stacked": (
        lambda key: Stacked.init(Layers, Block)(A, B, key=split(key)),
        [
            ("layers b a", 0.5774581, 1.011206, 20.0554),
            ("layers b", 0, 0, 0),
            ("layers b", 1, 1, 12),
            ("layers b", 0, 0, 0),
        ],
    ),
    "BlockSeq": (
        lambda key: BlockSeq.init(Layers, Block)(A, B, key=split(key)),
        [
            ("b a", 0.5774581, 0.07692844, 6.900289),
            ("b", 0, 0, 0),
            ("b", 1, 1, 4),
            ("b", 0, 0, 0),
            ("b a", -1.374889, 0.5545088, 7.433513),
            ("b", 0, 0, 0),
            ("b", 1, 1, 4),
            ("b", 0, 0, 0),
            ("b a", 0.7444105, 1.011206, 5.721599),
            ("b", 0, 0, 0),
            ("b", 1, 1, 4),
            ("b", 0, 0, 0),
        ],
    ),
    "resize": (
        lambda key: nn.Embedding.init(D, A, key=key).resize_embeddings(7, key=key),
        [("d a", 0.5371476, -0.4409668, 6.951917)],
    ),
}


def check(layer, expected):
    arrays = jax.tree.leaves(layer, is_leaf=lambda x: isinstance(x, hax.NamedArray))
    assert [" ".join(array.axis_names) for array in arrays] == [axes for axes, *_ in expected]
    for array, (_, first, last, total) in zip(arrays, expected, strict=True):
        numbers = np.ravel(array.array)
        assert numbers.dtype == np.float32
        np.testing.assert_allclose((numbers[0], numbers[-1], abs(numbers).sum()), (first, last, total), rtol=2e-6)


@functools.cache
def layers(mapping):
    """All layers, made in one program: on one device from a typed key, or over a mesh from a raw one."""
    key = jax.random.PRNGKey(0) if mapping else jax.random.key(0)
    return hax.named_jit(lambda key: {name: make(key) for name, (make, _) in LAYERS.items()}, dict(mapping))(key)


@pytest.mark.parametrize("name", LAYERS)
def test_numbers(name):
    check(layers(())[name], LAYERS[name][1])


@pytest.mark.parametrize("name", LAYERS)
def test_numbers_over_devices(name, mesh):
    with jax.set_mesh(mesh):
        check(layers((("b", "data"), ("c", "model")))[name], LAYERS[name][1])


def test_numbers_outside_a_program():
    make, expected = LAYERS["MLP"]
    check(make(jax.random.key(0)), expected)
