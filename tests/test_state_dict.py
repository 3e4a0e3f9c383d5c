"""State dicts: the names and shapes of arrays, round trips of all kinds of modules, and what does not fit."""

from __future__ import annotations

import contextlib
import math
from typing import Any, NamedTuple

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
    flatten_modules_for_export,
    from_state_dict,
    from_torch_compatible_state_dict,
    to_numpy_state_dict,
    to_state_dict,
    to_torch_compatible_state_dict,
    unflatten_modules_from_export,
    with_prefix,
)
from helpers import compilations

E, V, H, D, L, O = hax.make_axes(E=4, V=6, H=2, D=3, L=3, O=2)  # noqa: E741
KEY = jax.random.key(0)


class Holder(eqx.Module):
    a: Any
    b: Any = eqx.field(static=True, default=5)


class Pair(NamedTuple):
    first: Any
    second: Any


class Wrapped(ModuleWithStateDictSerialization):
    """A model whose parts have the names of another library."""

    transformer: Any
    head: Any

    def _state_dict_key_map(self):
        return {"transformer": None, "head": "lm_head"}


class Transposed(ModuleWithStateDictSerialization):
    """A layer that is saved in another layout than it has, by methods of its own."""

    weight: hax.NamedArray

    def to_state_dict(self, prefix=None):
        return {with_prefix(prefix, "kernel"): self.weight.array.T}

    def from_state_dict(self, state_dict, prefix=None):
        return Transposed(hax.named(state_dict[with_prefix(prefix, "kernel")].T, self.weight.axis_names))

    @staticmethod
    def init(key):
        return Transposed(hax.random.normal(key, (H, D)))


class Block(eqx.Module):
    inner: Any
    scale: jax.Array
    active: bool = True

    @staticmethod
    def init(key):
        return Block(hnn.Stacked.init(L, hnn.Linear)(E, (H, D), key=jax.random.split(key, L.size)), jnp.arange(3.0))


def make(name) -> Any:
    """A module of the table with values that differ, for which no initialisation is compiled."""

    def fill(leaf):
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.split(KEY, leaf.shape)
        return jnp.asarray(np.arange(math.prod(leaf.shape)).reshape(leaf.shape) % 100, leaf.dtype)

    return jax.tree.map(fill, eqx.filter_eval_shape(MODULES[name]))


def stacked(kind=hnn.Stacked):
    return kind.init(L, hnn.Linear)(E, (H, D), key=jax.random.split(KEY, L.size))


MODULES = {
    "linear": lambda: hnn.Linear.init(E, V, key=KEY),
    "linear without bias": lambda: hnn.Linear.init(E, (H, D), key=KEY, use_bias=False),
    "linear, inputs first": lambda: hnn.Linear.init((H, D), (E, V), key=KEY, out_first=False),
    "linear from nothing": lambda: hnn.Linear.init((), E, key=KEY),
    "linear to nothing": lambda: hnn.Linear.init(E, (), key=KEY),
    "linear to itself": lambda: hnn.Linear.init((E, H), (E, D), key=KEY),
    "layer norm": lambda: hnn.LayerNorm.init((H, D)),
    "rms norm": lambda: hnn.RmsNorm.init(E, use_bias=False),
    "embedding": lambda: hnn.Embedding.init(V, (H, D), key=KEY),
    "mlp": lambda: hnn.MLP.init(E, V, 5, 1, key=KEY),
    "dropout": lambda: hnn.Dropout(0.1),
    "stacked": stacked,
    "block seq": lambda: stacked(hnn.BlockSeq),
    "stacks in a stack": lambda: hnn.Stacked.init(O, Block)(jax.random.split(KEY, O.size)),
    "stacks in a list": lambda: hnn.BlockSeq.init(O, Block)(jax.random.split(KEY, O.size)),
    "methods of its own": lambda: hnn.Stacked.init(L, Transposed)(jax.random.split(KEY, L.size)),
    "other names": lambda: Wrapped(hnn.Linear.init(E, V, key=KEY), hax.ones(E)),
    "containers": lambda: Holder(
        {"x": [jnp.ones(2), (hax.ones(H),)], "y": Pair(np.ones(3, np.float32), None), "z": []}
    ),
    "numbers": lambda: Holder([1.5, 3, True, 2j, "text", abs]),
    "dtypes": lambda: Holder([jnp.ones(2, t) for t in (jnp.bfloat16, jnp.float8_e4m3fn, bool, jnp.int8)]),
    "keys": lambda: Holder([hax.NamedArray(jax.random.split(KEY, 3), ("L",))]),
    "no elements": lambda: Holder([hax.zeros(hax.Axis("none", 0)), jnp.zeros((0, 3))]),
}


def data_of(leaf):
    is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf)) if is_key else leaf


def same(have, want) -> bool:
    """Whether two modules have the same structure, and the same arrays in the same dtypes."""
    assert jax.tree.structure(have) == jax.tree.structure(want)
    for mine, theirs in zip(jax.tree.leaves(have), jax.tree.leaves(want), strict=True):
        mine, theirs = data_of(mine), data_of(theirs)
        if not hasattr(theirs, "dtype"):
            assert mine == theirs and type(mine) is type(theirs)
            continue
        assert mine.dtype == jax.dtypes.canonicalize_dtype(theirs.dtype) and np.array_equal(mine, theirs)
    return True


def shapes_of(module):
    """The module with shapes in the place of arrays."""
    return eqx.filter_eval_shape(lambda: module)


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


# what does not fit ----------------------------------------------------------------------------------------------------


def test_all_that_does_not_fit_is_listed():
    model = {"block": make("stacked"), "norm": make("layer norm")}
    state_dict = to_numpy_state_dict(model)
    state_dict["block.1.wieght"] = state_dict.pop("block.1.weight")
    state_dict["block.0.bias"] = np.ones((3, 2))
    state_dict["step"] = np.ones(())
    del state_dict["norm.bias"]
    with pytest.raises(StateDictError) as error:
        from_state_dict(model, state_dict)
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
    assert same(from_state_dict(linear, state_dict, "a"), linear)
    with pytest.raises(StateDictError, match=r"extra: 'a\.c'"):
        from_state_dict(linear, {**state_dict, "a.c": np.ones(1)}, "a")


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
         "to_numpy_state_dict: \"['a']\" is an array of a function that is being traced, which has no values yet."
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


def test_errors_of_own_methods_are_theirs():
    class Odd(ModuleWithStateDictSerialization):
        def from_state_dict(self, state_dict, prefix=None):
            assert state_dict.get("absent", 3) == 3 and state_dict.copy() == {"present": 1} and len(state_dict) == 1
            raise RuntimeError("not today")

    with pytest.raises(RuntimeError, match="not today"):
        from_state_dict([Odd()], {"present": 1})
