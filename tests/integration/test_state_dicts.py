"""State dicts of Levanter's models, in torch's shapes and in their own, wherever their arrays are."""

from __future__ import annotations

import contextlib
import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType
from levanter.layers.stacked import ArrayStacked

import haliax as hax
import haliax.nn as hnn
from haliax.state_dict import (
    StateDictError,
    from_state_dict,
    from_torch_compatible_state_dict,
    load_state_dict,
    save_state_dict,
    to_numpy_state_dict,
    to_state_dict,
    to_torch_compatible_state_dict,
)
from integration.models import MODELS, Vocab, tiny

MAPPING = {"embed": "data", "mlp": "model", "heads": "model"}
SIZES = {"data": 4, "model": 2}

MESHES = {
    "no mesh": contextlib.nullcontext,
    "a mesh": lambda: jax.set_mesh(hax.make_mesh(SIZES)),
    "explicit axes": lambda: jax.set_mesh(hax.make_mesh(SIZES, axis_types=AxisType.Explicit)),
    "a mesh without devices": lambda: jax.sharding.use_abstract_mesh(AbstractMesh((4, 2), ("data", "model"))),
}


@functools.cache
def model_of(name: str) -> Any:
    """A model with numbers that differ, for which no initialisation is compiled."""
    config: Any = tiny(name)
    template = eqx.filter_eval_shape(config.model_type.init, Vocab, config, key=jax.random.key(0))

    def fill(leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        return jnp.asarray(np.arange(math.prod(leaf.shape)).reshape(leaf.shape) % 1000, leaf.dtype)

    return jax.tree.map(fill, template)


def shapes_of(model: Any) -> Any:
    return eqx.filter_eval_shape(lambda: model)


def same(have: Any, want: Any) -> bool:
    """Whether two modules have the same structure and the same arrays."""
    assert jax.tree.structure(have) == jax.tree.structure(want)
    for mine, theirs in zip(jax.tree.leaves(have), jax.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    return True


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", MODELS)
def test_round_trips(name, mesh):
    """Eight devices, arrays on the default one; without a mesh the library that this one replaces fails."""
    model = model_of(name)
    with MESHES[mesh]():
        for_torch = to_torch_compatible_state_dict(model)
        assert all(type(value) is np.ndarray for value in for_torch.values())
        assert same(from_torch_compatible_state_dict(shapes_of(model), for_torch), model)
        assert same(from_state_dict(model, to_state_dict(model, "a.b"), "a.b"), model)
        assert same(from_state_dict(shapes_of(model), to_numpy_state_dict(model)), model)


@pytest.mark.parametrize("axis_types", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("name", MODELS)
def test_sharded_models_have_the_state_dicts_of_others(name, axis_types, tmp_path):
    model, mesh = model_of(name), hax.make_mesh(SIZES, axis_types=axis_types)
    sharded = hax.shard(model, MAPPING, mesh=mesh)
    expected = to_torch_compatible_state_dict(model)
    for context in (contextlib.nullcontext(), jax.set_mesh(mesh)):
        with context:
            found = to_torch_compatible_state_dict(sharded)
            assert found.keys() == expected.keys()
            assert all(np.array_equal(found[name], expected[name]) for name in found)
    save_state_dict(found, tmp_path, max_shard_size=20_000)
    assert load_state_dict(tmp_path).keys() == expected.keys()
    read = from_torch_compatible_state_dict(shapes_of(model), tmp_path, mesh=mesh, sharding=MAPPING)
    assert same(read, model)
    for mine, theirs in zip(jax.tree.leaves(read), jax.tree.leaves(sharded), strict=True):
        if isinstance(mine, jax.Array):
            assert mine.sharding.is_equivalent_to(theirs.sharding, mine.ndim)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_missing_is_listed_and_what_is_extra_is_left(name):
    """As checkpoints have it: buffers that nobody asks for."""
    model = model_of(name)
    state_dict = to_torch_compatible_state_dict(model)
    more = {**state_dict, "model.rotary_emb.inv_freq": np.ones(4), "lm_head.extra": np.ones(1)}
    assert same(from_torch_compatible_state_dict(model, more), model)
    # experts are loaded by a method of Levanter's, which then looks for those of an older format
    gone = [key for key in sorted(state_dict) if name != "mixtral" or ".mlp." not in key][::5]
    less = {key: value for key, value in more.items() if key not in gone}
    with pytest.raises(StateDictError) as error:
        from_torch_compatible_state_dict(model, less)
    assert all(f"missing: {key!r}" in str(error.value) for key in gone)


class Layer(eqx.Module):
    """A layer with arrays that have no names, as Levanter stacks them."""

    weight: jax.Array
    bias: jax.Array | None = None

    @staticmethod
    def init(scale: jax.Array) -> Layer:
        return Layer(scale * jnp.arange(6.0).reshape(2, 3))


def test_stacks_of_levanter(tmp_path):
    """They name and load their layers by methods of their own, which get all entries."""
    stack = ArrayStacked.init(3, Layer)(jnp.arange(1.0, 4.0))
    model = {"layers": stack, "norm": hnn.LayerNorm.init(hax.Axis("embed", 4))}
    state_dict = to_numpy_state_dict(model, "m")
    assert {name: value.shape for name, value in state_dict.items()} == {
        **{f"m.layers.{i}.weight": (2, 3) for i in range(3)},
        "m.norm.weight": (4,),
        "m.norm.bias": (4,),
    }
    save_state_dict(state_dict, tmp_path)
    for given in (state_dict, tmp_path):
        assert same(from_torch_compatible_state_dict(shapes_of(model), given, prefix="m"), model)
