"""State dicts that do not fit a module: one error lists all of it, also where methods of modules load their parts."""

from __future__ import annotations

import dataclasses
import re
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
    StateDictError,
    from_state_dict,
    from_torch_compatible_state_dict,
    save_state_dict,
    to_numpy_state_dict,
    to_state_dict,
    to_torch_compatible_state_dict,
    with_prefix,
)
from state_dict_modules import AtOnce, E, Holder, L, V, Wrapped, make, same


@pytest.mark.parametrize("strict", [None, True, "missing"])
def test_all_that_does_not_fit_is_listed(strict):
    model = {"block": make("stacked"), "norm": make("layer norm")}
    state_dict = to_numpy_state_dict(model)
    state_dict["block.1.wieght"] = state_dict.pop("block.1.weight")
    state_dict["block.0.bias"] = np.ones((3, 2))
    state_dict["step"] = np.ones(())
    del state_dict["norm.bias"]
    with pytest.raises(StateDictError) as error:
        from_state_dict(model, state_dict, strict=strict)
    assert str(error.value) == (
        "from_state_dict: the state dict and dict differ in 5 places:\n"
        "  does not fit: 'block.0.bias' has shape (3, 2); expected (H=2, D=3)\n"
        "  missing: 'block.1.weight' (H=2, D=3, E=4) Did you mean 'block.1.wieght'?\n"
        "  missing: 'norm.bias' (H=2, D=3)\n"
        "  extra: 'block.1.wieght' Did you mean 'block.1.weight'?\n"
        "  extra: 'step'\n"
        "Pass strict=False to leave what is missing or extra."
    )
    assert isinstance(error.value, KeyError) and isinstance(error.value, ValueError)


def test_what_some_layers_lack_can_not_be_left():
    stack = make("stacked")
    state_dict = to_numpy_state_dict(stack)
    del state_dict["1.weight"]
    with pytest.raises(StateDictError) as error:
        from_state_dict(stack, state_dict, strict=False)
    assert str(error.value) == (
        "from_state_dict: the state dict and Stacked differ in 1 place:\n"
        "  does not fit: '*.weight' lacks arrays in 1 of 3 layers; expected them in all or none"
    )


def test_not_strict_keeps_what_is_missing():
    model = {"linear": make("linear"), "stack": make("stacked"), "other": make("layer norm")}
    ones = jax.tree.map(jnp.ones_like, model)
    state_dict = to_numpy_state_dict(ones)
    state_dict["extra"] = np.ones(3)
    for name in [name for name in state_dict if name.endswith("bias")]:
        del state_dict[name]
    expected = eqx.tree_at(
        lambda m: (m["linear"].weight, m["stack"].stacked.weight, m["other"].weight),
        model,
        (ones["linear"].weight, ones["stack"].stacked.weight, ones["other"].weight),
    )
    assert same(from_state_dict(model, state_dict, strict=False), expected)
    for_torch = {name: value.reshape(6) if name == "other.weight" else value for name, value in state_dict.items()}
    for i in range(3):
        for_torch[f"stack.{i}.weight"] = for_torch[f"stack.{i}.weight"].reshape(6, 4)
    assert same(from_torch_compatible_state_dict(model, for_torch, strict=False), expected)


def test_only_names_with_the_prefix_count():
    linear = make("linear")
    state_dict = {**to_numpy_state_dict(linear, "a"), "ab.weight": np.ones(1), "b": np.ones(1)}
    assert same(from_state_dict(linear, state_dict, "a", strict=True), linear)
    with pytest.raises(StateDictError, match=r"extra: 'a\.c'"):
        from_state_dict(linear, {**state_dict, "a.c": np.ones(1)}, "a", strict=True)


@pytest.mark.parametrize("load", [from_state_dict, from_torch_compatible_state_dict])
def test_what_is_extra_is_an_error_in_a_file_and_not_among_arrays_by_name(load, tmp_path):
    linear, name = make("linear"), type(make("linear")).__name__
    state_dict = {**to_numpy_state_dict(linear), "rotary.inv_freq": np.ones(2, np.float32)}
    save_state_dict(state_dict, tmp_path)
    assert same(load(linear, state_dict), linear)
    for given, strict in [(tmp_path, None), (tmp_path, True), (state_dict, True)]:
        with pytest.raises(StateDictError) as error:
            load(linear, given, strict=strict)
        assert str(error.value) == (
            f"{load.__name__}: the state dict and {name} differ in 1 place:\n"
            "  extra: 'rotary.inv_freq'\n"
            'Pass strict="missing" to leave what is extra.'
        )
    for strict in ("missing", False):
        assert same(load(linear, tmp_path, strict=strict), linear)
    for given in ({"weight": state_dict["weight"]}, {}):
        with pytest.raises(StateDictError, match=r"missing: 'bias' \(V=6\)"):
            load(linear, given)


def test_own_methods_may_load_parts_and_rename():
    class Renamed(ModuleWithStateDictSerialization):
        linear: hnn.Linear

        def from_state_dict(self, state_dict, prefix=None):
            renamed = {name.replace("kernel", "weight"): value for name, value in state_dict.items()}
            linear = from_state_dict(self.linear, renamed, with_prefix(prefix, "linear"))
            assert isinstance(linear.weight.array, jax.Array)
            return Renamed(linear)

    linear = make("linear")
    old = {"m.linear.kernel": linear.weight.array, "m.linear.bias": linear.bias.array}
    assert same(from_state_dict({"m": Renamed(linear)}, old), {"m": Renamed(linear)})
    with pytest.raises(StateDictError, match=r"missing: 'm\.linear\.weight' \(V=6, E=4\)"):
        from_state_dict({"m": Renamed(linear)}, {"m.linear.bias": linear.bias.array})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: to_state_dict(jnp.ones(3)), ValueError,
         "to_state_dict: an array that is part of nothing has no name. Pass prefix=..., which is then its name."),
        (lambda: from_state_dict(jnp.ones(3), {}), ValueError,
         "from_state_dict: an array that is part of nothing has no name. Pass prefix=..., which is then its name."),
        (lambda: to_state_dict(Wrapped({"lm_head": jnp.ones(1)}, jnp.ones(2))), ValueError,
         "to_state_dict: two arrays have the name 'lm_head'. Rename one of them by _state_dict_key_map."),
        (lambda: jax.jit(to_numpy_state_dict)({"a": jnp.ones(3)}), TypeError,
         "to_numpy_state_dict: 'a' is an array of a function that is being traced, which has no values yet."
         " Call it outside of the function, or use to_state_dict there."),
        (lambda: from_state_dict(make("linear"), None), TypeError,
         "from_state_dict: state_dict is None; expected a mapping from names to arrays, or the path of a file."),
        (lambda: from_state_dict([hax.ones((V, E)), np.ones(3)], {"0": hax.ones((E, V)), "1": None}), StateDictError,
         "from_state_dict: the state dict and list differ in 2 places:\n"
         "  does not fit: '0' has axes (E=4, V=6); expected (V=6, E=4)\n"
         "  does not fit: '1' is None; expected (3,)"),
        (lambda: from_state_dict(Holder(1.5), {"a": "1.5"}), StateDictError,
         "from_state_dict: the state dict and Holder differ in 1 place:\n"
         "  does not fit: 'a' is a string; expected a number"),
        (lambda: from_state_dict(Holder(1.5), {"a": np.ones(2)}), StateDictError,
         "from_state_dict: the state dict and Holder differ in 1 place:\n"
         "  does not fit: 'a' has shape (2,); expected a number"),
        (lambda: from_state_dict(make("linear"), {}, strict="extra"), ValueError,
         "from_state_dict: strict is 'extra'; expected True, False or \"missing\"."),
        (lambda: from_state_dict(make("linear"), {}, strict=1), ValueError,
         "from_state_dict: strict is 1; expected True, False or \"missing\"."),
        (lambda: from_state_dict(make("linear"), {}, sharding="best_effort"), ValueError,
         "from_state_dict: there is no mesh. Pass mesh=..., or call it under `with haliax.set_mesh(mesh):`."),
        (lambda: from_state_dict(make("linear"), {}, mesh=hax.make_mesh({"data": 8}), sharding="even"), ValueError,
         "from_state_dict: sharding is 'even'; expected \"best_effort\", a mapping or a function."),
        (lambda: from_state_dict(make("mlp"), {}, mesh=hax.make_mesh({"data": 8}), sharding={"V": "dat"}), ValueError,
         "from_state_dict: axis 'V' is mapped to mesh axis 'dat'; the mesh has data=8. Did you mean 'data'?"),
        (lambda: from_state_dict(Holder(jnp.ones(3)), {"a": np.ones(3)}, mesh=hax.make_mesh({"data": 8}),
                                 sharding=lambda name, array: PartitionSpec("data")), ValueError,
         "from_state_dict: 'a' of shape (3,) can not be split as ('data',)."),
        (lambda: from_state_dict(Holder(jnp.ones(3)), {"a": np.ones(3)}, mesh=hax.make_mesh({"data": 8}),
                                 sharding=lambda name, array: "data"), TypeError,
         "from_state_dict: the sharding of 'a' is a string; expected a PartitionSpec, a sharding, or None."),
        (lambda: from_state_dict(make("linear"), {}, mesh=hax.make_mesh({"data": 8}).abstract_mesh), ValueError,
         "from_state_dict: the mesh is an AbstractMesh, which has no devices; expected a Mesh."),
    ],
)  # fmt: skip
def test_messages(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert message is None or str(raised.value) == message


def test_what_own_methods_lack_is_listed_with_the_rest():
    model = {"a": make("methods of its own"), "b": make("linear")}
    state_dict = to_numpy_state_dict(model)
    del state_dict["a.1.kernel"], state_dict["b.weight"]
    with pytest.raises(StateDictError) as error:
        from_state_dict(model, state_dict)
    assert str(error.value) == (
        "from_state_dict: the state dict and dict differ in 2 places:\n"
        "  missing: 'a.1.kernel'\n"
        "  missing: 'b.weight' (V=6, E=4)\n"
        "Pass strict=False to leave what is missing or extra."
    )


def test_what_methods_for_all_layers_lack_is_listed():
    stack = hnn.Stacked.init(L, AtOnce)(jax.random.split(jax.random.key(0), L.size))
    state_dict = to_numpy_state_dict({"stack": stack, "linear": make("linear")})
    del state_dict["stack.1.0.kernel"], state_dict["linear.bias"]
    with pytest.raises(StateDictError) as error:
        from_state_dict({"stack": stack, "linear": make("linear")}, state_dict)
    assert str(error.value) == (
        "from_state_dict: the state dict and dict differ in 3 places:\n"
        "  missing: 'linear.bias' (V=6)\n"
        "  missing: 'stack.1.0.kernel' Did you mean 'stack.1.1.kernel'?\n"
        "  extra: 'stack.1.1.kernel' Did you mean 'stack.1.0.kernel'?\n"
        "Pass strict=False to leave what is missing or extra."
    )


def test_methods_must_come_to_the_shapes_that_are_to_be_reshaped():
    class Turned(ModuleWithStateDictSerialization):
        linear: hnn.Linear

        def from_state_dict(self, state_dict, prefix=None):
            weight = hax.named(state_dict[with_prefix(prefix, "linear.weight")].T, ("a", "b"))
            return Turned(dataclasses.replace(self.linear, weight=weight))

    module = Turned(make("linear without bias"))
    with pytest.raises(StateDictError) as error:
        from_torch_compatible_state_dict(module, to_torch_compatible_state_dict(module))
    assert str(error.value) == (
        "from_torch_compatible_state_dict: the state dict and Turned differ in 1 place:\n"
        "  does not fit: 'linear.weight' is loaded in shape (4, 6); expected (__OUT__=6, __IN__=4)"
    )


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (None, "methods of modules have loaded 0 arrays and numbers; expected 1"),
        (2.0, "an array is loaded in shape (); expected (3,)"),
    ],
)
def test_methods_must_come_to_arrays_in_the_same_places(array, message):
    class Other(ModuleWithStateDictSerialization):
        array: Any

        def from_state_dict(self, state_dict, prefix=None):
            return Other(array)

    with pytest.raises(StateDictError, match=re.escape(message)):
        from_torch_compatible_state_dict(Other(np.ones(3)), {})


def test_errors_of_own_methods_are_theirs():
    class Odd(ModuleWithStateDictSerialization):
        def from_state_dict(self, state_dict, prefix=None):
            assert state_dict.get("absent", 3) == 3 and state_dict.copy() == {"present": 1} and len(state_dict) == 1
            raise RuntimeError("not today")

    with pytest.raises(RuntimeError, match="not today"):
        from_state_dict([Odd()], {"present": 1})
