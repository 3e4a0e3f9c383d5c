"""State dicts: the names and shapes of arrays, and round trips of all kinds of modules."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import haliax as hax
import haliax.nn as hnn
from haliax.state_dict import (
    ModuleWithStateDictSerialization,
    flatten_modules_for_export,
    from_state_dict,
    from_torch_compatible_state_dict,
    save_state_dict,
    to_numpy_state_dict,
    to_state_dict,
    to_torch_compatible_state_dict,
    unflatten_modules_from_export,
    with_prefix,
)
from helpers import compilations
from state_dict_modules import KEY, MODULES, D, H, Holder, make, same, shapes_of, stacked


def shapes(state_dict) -> dict[str, Any]:
    return {name: getattr(value, "shape", value) for name, value in state_dict.items()}


# names and shapes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected", "for_torch"),
    [
        ("linear", {"weight": (6, 4), "bias": (6,)}, {}),
        ("linear without bias", {"weight": (2, 3, 4)}, {"weight": (6, 4)}),
        ("linear, inputs first", {"weight": (2, 3, 4, 6), "bias": (4, 6)}, {"weight": (6, 24), "bias": (24,)}),
        ("linear from nothing", {"weight": (4,), "bias": (4,)}, {"weight": (4, 1)}),
        ("linear to nothing", {"weight": (4,), "bias": ()}, {"weight": (1, 4), "bias": (1,)}),
        ("linear to itself", {"weight": (4, 3, 4, 2), "bias": (4, 3)}, {"weight": (12, 8), "bias": (12,)}),
        ("layer norm", {"weight": (2, 3), "bias": (2, 3)}, {"weight": (6,), "bias": (6,)}),
        ("rms norm", {"weight": (4,)}, {}),
        ("embedding", {"weight": (6, 2, 3)}, {"weight": (6, 6)}),
        ("dropout", {"inference": False}, {"inference": None}),
        ("other names", {"weight": (6, 4), "bias": (6,), "lm_head": (4,)}, {}),
        ("containers", {"a.x.0": (2,), "a.x.1.0": (2,), "a.y.first": (3,)}, {}),
        ("numbers", {"a.0": 1.5, "a.1": 3, "a.2": True, "a.3": 2j}, dict.fromkeys(["a.0", "a.1", "a.2", "a.3"])),
        ("keys", {"a.0": (3,)}, {"a.0": (3, 2)}),
        (
            "stacked",
            {f"{i}.{name}": shape for i in range(3) for name, shape in (("weight", (2, 3, 4)), ("bias", (2, 3)))},
            {f"{i}.{name}": shape for i in range(3) for name, shape in (("weight", (6, 4)), ("bias", (6,)))},
        ),
        (
            "stacks in a stack",
            {
                **{f"{o}.inner.{i}.weight": (2, 3, 4) for o in range(2) for i in range(3)},
                **{f"{o}.inner.{i}.bias": (2, 3) for o in range(2) for i in range(3)},
                **{f"{o}.{name}": value for o in range(2) for name, value in (("scale", (3,)), ("active", True))},
            },
            {
                **{f"{o}.inner.{i}.weight": (6, 4) for o in range(2) for i in range(3)},
                **{f"{o}.inner.{i}.bias": (6,) for o in range(2) for i in range(3)},
                **{f"{o}.active": None for o in range(2)},
            },
        ),
        ("methods of its own", {f"{i}.kernel": (3, 2) for i in range(3)}, {}),
    ],
)
def test_names_and_shapes(name, expected, for_torch):
    module = make(name)
    assert shapes(to_state_dict(module)) == expected
    assert shapes(to_state_dict(module, "a.b")) == {f"a.b.{name}": shape for name, shape in expected.items()}
    flat = {name: shape for name, shape in {**expected, **for_torch}.items() if shape is not None}
    found = to_torch_compatible_state_dict(module)
    assert shapes(found) == flat and all(type(value) is np.ndarray for value in found.values())


@pytest.mark.parametrize(("one", "other"), [("stacked", "block seq"), ("stacks in a stack", "stacks in a list")])
def test_a_stack_and_a_list_of_layers_have_one_state_dict(one, other):
    one, other = make(one), make(other)
    assert shapes(to_state_dict(one)) == shapes(to_state_dict(other))
    assert same(to_numpy_state_dict(from_state_dict(one, to_state_dict(other))), to_numpy_state_dict(other))


@pytest.mark.parametrize("name", [name for name in MODULES if not name.startswith("methods")])
def test_a_template_has_the_names_and_shapes_of_the_module(name):
    module = make(name)
    assert shapes(to_state_dict(shapes_of(module))) == shapes(to_state_dict(module))


@pytest.mark.parametrize(
    ("prefix", "leaf", "name"),
    [(None, None, None), ("a", None, "a"), (None, "b", "b"), ("a", "b", "a.b"), ("a.b", "c", "a.b.c"), ("", "b", ".b")],
)
def test_with_prefix(prefix, leaf, name):
    assert with_prefix(prefix, leaf) == name


def test_methods_are_the_functions():
    linear = make("linear")
    assert shapes(linear.to_state_dict("p")) == {"p.weight": (6, 4), "p.bias": (6,)}
    assert same(linear.from_state_dict(linear.to_state_dict("p"), "p"), linear)
    assert linear.flatten_for_export() is linear and linear.unflatten_from_export(linear) is linear


def test_flattened_modules_have_one_axis_of_each_kind():
    linear, stack = make("linear, inputs first"), make("stacked")
    flat = linear.flatten_for_export()
    assert flat.weight.axes == (flat.In, flat.Out)
    assert (flat.In, flat.Out) == (hax.Axis("__IN__", 6), hax.Axis("__OUT__", 24))
    assert flatten_modules_for_export(stack).stacked.weight.shape == {"L": 3, "__OUT__": 6, "__IN__": 4}
    assert hnn.LayerNorm.init((H, D)).flatten_for_export().weight.shape == {"__OUT": 6}
    assert np.array_equal(flat.weight.array, linear.weight.array.reshape(6, 24))


# round trips ----------------------------------------------------------------------------------------------------------


PLACES = {
    "no mesh": lambda: contextlib.nullcontext(),
    "ambient mesh": lambda: jax.set_mesh(hax.make_mesh({"data": 4, "model": 2})),
    "abstract mesh": lambda: jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((8,), ("data",))),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", MODULES)
def test_round_trips(name, place):
    module = make(name)
    template = shapes_of(module)
    with PLACES[place]():
        assert same(from_state_dict(template, to_state_dict(module, "p"), "p"), module)
        assert same(from_state_dict(module, to_numpy_state_dict(module)), module)
        for_torch = to_torch_compatible_state_dict(module, prefix="p")
        assert same(from_torch_compatible_state_dict(template, for_torch, prefix="p"), module)
        assert same(unflatten_modules_from_export(flatten_modules_for_export(module), template), module)


@pytest.mark.parametrize("kind", ["mesh", "explicit_mesh"])
def test_round_trips_of_sharded_modules(kind, request):
    mesh, module = request.getfixturevalue(kind), make("stacks in a stack")
    sharded = hax.shard(module, {"O": "model", "E": "data"}, mesh)
    for context in (contextlib.nullcontext(), jax.set_mesh(mesh)):
        with context:
            assert same(to_torch_compatible_state_dict(sharded), to_torch_compatible_state_dict(module))
            assert same(from_state_dict(module, to_state_dict(sharded)), module)


@pytest.mark.parametrize(("name", "factor"), [("output by muP", 1 / 8), ("outputs by muP", 1 / 4)])
def test_a_weight_has_its_scale_in_a_state_dict(name, factor, tmp_path, mesh):
    """Other libraries have no factor on the output of a layer."""
    module, numbers = make(name), np.arange(100, dtype=np.float32)
    for convert in (to_state_dict, to_numpy_state_dict, to_torch_compatible_state_dict, jax.jit(to_state_dict)):
        found = {"weight": [], "bias": []}
        for name, value in convert(module).items():
            found[name.split(".")[-1]].extend(np.ravel(value))
        np.testing.assert_allclose(found["weight"], numbers[: len(found["weight"])] * factor, rtol=1e-6)
        np.testing.assert_array_equal(found["bias"], numbers[: len(found["bias"])])
    save_state_dict(to_numpy_state_dict(module), tmp_path)
    for loaded in (
        from_state_dict(module, tmp_path, mesh=mesh, sharding={"E": "data"}),
        from_torch_compatible_state_dict(shapes_of(module), to_torch_compatible_state_dict(module)),
        jax.jit(lambda d: from_state_dict(module, d))(to_state_dict(module)),
    ):
        for have, want in zip(jax.tree.leaves(loaded), jax.tree.leaves(module), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-6)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float8_e5m2, jnp.float32, jnp.complex64, jnp.int32])
def test_scales_are_exact_in_any_dtype(dtype):
    layer = hnn.Linear.init(hax.Axis("in", 768), (), key=KEY, reparam_cls=hnn.mup.OutputLinearMup)
    layer = jax.tree.map(lambda x: jnp.full_like(x, 768, dtype), layer)
    for convert in (to_state_dict, to_numpy_state_dict):
        found = convert(layer)
        assert found["weight"].dtype == dtype and (found["weight"] == 1).all()
        assert same(from_state_dict(layer, found), layer)


def test_scales_of_single_numbers(tmp_path):
    class Shift(ModuleWithStateDictSerialization):
        by: hax.NamedArray

        def _state_dict_scales(self):
            return {"by": 0.5}

    module = Shift(hax.named(3.0, ()))
    save_state_dict(to_numpy_state_dict(module), tmp_path)
    for state_dict in (tmp_path, to_numpy_state_dict(module), to_state_dict(module)):
        assert same(from_state_dict(module, state_dict), module)


def test_without_flattening():
    linear = make("linear, inputs first")
    state_dict = to_torch_compatible_state_dict(linear, flatten=False)
    assert shapes(state_dict) == {"weight": (2, 3, 4, 6), "bias": (4, 6)}
    assert same(from_torch_compatible_state_dict(linear, state_dict, unflatten=False), linear)


@pytest.mark.parametrize(
    ("keep", "names"),
    [
        (True, ["bias", "weight"]),
        (eqx.is_array, ["bias", "weight"]),
        (lambda x: x.ndim == 1, ["bias"]),
        (
            eqx.tree_at(
                lambda m: m.stacked.weight.array, jax.tree.map(lambda _: False, eqx.filter_eval_shape(stacked)), True
            ),
            None,
        ),
    ],
)
def test_filter(keep, names):
    if names is None:
        found = to_torch_compatible_state_dict(make("stacked"), filter=keep)
        assert shapes(found) == {f"{i}.weight": (6, 4) for i in range(3)}
    else:
        assert sorted(to_torch_compatible_state_dict(make("linear"), filter=keep)) == names


def test_dtypes_are_those_of_the_state_dict():
    linear = make("linear")
    halved = {name: value.astype(np.float16) for name, value in to_numpy_state_dict(linear).items()}
    assert from_state_dict(linear, halved).weight.dtype == jnp.float16
    wide = {name: value.astype(np.float64) for name, value in halved.items()}
    assert from_state_dict(linear, wide).weight.dtype == jnp.float32


def test_integers_that_do_not_fit_are_not_cut():
    assert from_state_dict(Holder(jnp.zeros(2, int)), {"a": np.array([-5, 2**31 - 1])}).a.tolist() == [-5, 2**31 - 1]
    message = r"load_state_dict: 'a' has int64 integers that do not fit into int32\. Switch jax_enable_x64 on\."
    with pytest.raises(ValueError, match=message):
        from_state_dict(Holder(jnp.zeros(2, int)), {"a": np.array([1, 2**31])})


def test_arrays_of_the_caller_are_copied():
    values = np.zeros(1 << 16, np.float32)
    loaded = from_state_dict(Holder(jnp.zeros(values.shape)), {"a": values})
    values[:] = 1
    assert not loaded.a.any()


def test_numbers_may_be_missing_and_keep_their_type():
    module = make("numbers")
    assert from_state_dict(module, {}).a == module.a
    loaded = from_state_dict(module, {"a.0": np.float32(2), "a.1": jnp.int32(4), "a.2": np.array(False)})
    assert loaded.a[:3] == [2.0, 4, False] and [type(x) for x in loaded.a[:3]] == [float, int, bool]


def test_arrays_go_to_a_mesh(mesh):
    stack = make("stacks in a stack")
    state_dict = to_numpy_state_dict(stack)
    loaded = from_state_dict(stack, state_dict, mesh=mesh, sharding={"O": "model", "E": "data"})
    assert same(loaded, stack)
    assert loaded.stacked.inner.stacked.weight.array.sharding.spec == PartitionSpec("model", None, None, None, "data")
    assert loaded.stacked.scale.sharding.spec == PartitionSpec()
    seen = {}

    def rule(name, array):
        seen[name] = array.shape
        return PartitionSpec("model")

    assert from_state_dict(stack, state_dict, mesh=mesh, sharding=rule).stacked.scale.sharding.spec == PartitionSpec(
        "model"
    )
    assert seen == {
        "*.inner.*.weight": {"O": 2, "L": 3, "H": 2, "D": 3, "E": 4},
        "*.inner.*.bias": {"O": 2, "L": 3, "H": 2, "D": 3},
        "*.scale": (2, 3),
    }


def test_arrays_of_own_methods_go_to_a_mesh(mesh):
    module = make("methods of its own")
    loaded = from_state_dict(module, to_numpy_state_dict(module), mesh=mesh, sharding={"H": "model"})
    assert same(loaded, module)
    assert loaded.stacked.weight.array.sharding.spec == PartitionSpec(None, "model", None)


def test_inside_a_program():
    linear = make("linear, inputs first")
    state_dict = to_state_dict(linear)
    assert same(jax.jit(lambda d: from_state_dict(linear, d))(state_dict), linear)
    assert shapes(jax.jit(to_state_dict)(linear)) == shapes(state_dict)
    assert jax.jit(flatten_modules_for_export)(linear).weight.shape == {"__IN__": 6, "__OUT__": 24}
    gradients = jax.grad(lambda d: from_state_dict(linear, d).weight.sum().array)(state_dict)
    assert np.array_equal(gradients["weight"], np.ones((2, 3, 4, 6)))


def test_named_arrays_in_a_state_dict_must_have_the_names():
    linear = make("linear")
    assert same(from_state_dict(linear, {"weight": linear.weight, "bias": linear.bias}), linear)


def test_conversions_compile_nothing():
    stack = jax.tree.map(lambda x: np.asarray(x) if eqx.is_array(x) else x, make("stacks in a stack"))
    with compilations() as compiled:
        from_torch_compatible_state_dict(stack, to_torch_compatible_state_dict(stack))
    assert compiled == []


def test_the_guide_is_true(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guide = (Path(__file__).parents[1] / "docs" / "state-dicts.md").read_text()
    names: dict[str, Any] = {}
    exec("\n".join(re.findall(r"^```python\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)), names)
    model, loaded = names["model"].transformer, names["loaded"]
    assert same(loaded, model)
    assert loaded.stacked.weight.array.sharding.spec == PartitionSpec(None, "model", None, "data")
