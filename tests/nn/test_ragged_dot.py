"""Ragged products and mixtures of experts against loops; which kernel computes them, and how that is told."""

import dataclasses
import importlib.util
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import Axis
from haliax._src.kernels import InTokamax, Kernel, choose_kernels
from haliax.nn import MoELinear
from haliax.nn.ragged_dot import RaggedLayout, TritonBlockConfig, TritonKernelFamily, ragged_dot
from helpers import with_numbers
from kernels.loops import loop

RNG = np.random.default_rng(0)
LHS, RHS = (jnp.asarray(RNG.normal(size=shape), jnp.float32) for shape in ((6, 2), (3, 2, 4)))
SIZES = [(2, 1, 3), (0, 6, 0), (1, 1, 1), (0, 0, 0)]


def close(actual, expected):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), actual, expected)


def squares(fn):
    return lambda lhs, rhs, sizes: (fn(lhs, rhs, sizes) ** 2).sum()


@pytest.fixture
def tokamax(monkeypatch):
    """A stand-in for tokamax that is exact, except that it leaves rows of no group undefined: here nan.

    Like the real one (tests/kernels) it is not used for its own derivatives or maps.
    """

    def fake(lhs, rhs, group_sizes, numbers, *, implementation, **options):
        assert implementation in ("mosaic_tpu", "mosaic_gpu", "triton")
        assert options == {"manual_axis_type": None, "bypass_device_check": True}
        if implementation in module.refuses:
            raise NotImplementedError
        module.asked.append(implementation)
        result = jax.lax.ragged_dot_general(lhs, rhs, group_sizes, numbers)
        if not numbers.rhs_group_dimensions:
            return result
        return jnp.where(jnp.arange(lhs.shape[0])[:, None] < group_sizes.sum(), result, jnp.nan)

    module = types.SimpleNamespace(ragged_dot_general=fake, asked=[], refuses=())
    monkeypatch.setitem(sys.modules, "tokamax", module)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: module)
    return module


def on_device(monkeypatch, kind):
    monkeypatch.setattr("haliax._src.kernels._device_kind", lambda operands: kind)


@pytest.fixture
def on_gpu(monkeypatch):
    on_device(monkeypatch, "NVIDIA H100 80GB HBM3")


@pytest.fixture(params=["xla", "tokamax"])
def any_kernel(request):
    if request.param == "tokamax":
        request.getfixturevalue("on_gpu")
        request.getfixturevalue("tokamax")


@pytest.mark.usefixtures("any_kernel")
@pytest.mark.parametrize("sizes", SIZES)
def test_follows_a_loop(sizes):
    close(ragged_dot(LHS, RHS, jnp.array(sizes)), loop(LHS, RHS, sizes))
    gradients = jax.grad(squares(ragged_dot), (0, 1))(LHS, RHS, jnp.array(sizes))
    close(gradients, jax.grad(squares(loop), (0, 1))(LHS, RHS, sizes))


@pytest.mark.usefixtures("any_kernel")
def test_second_derivatives():
    sizes = SIZES[0]

    def twice(fn, sizes):
        inner = jax.grad(squares(fn), 1)
        return jax.grad(lambda lhs, rhs: (inner(lhs, rhs, sizes) ** 2).sum(), (0, 1))(LHS, RHS)

    close(twice(ragged_dot, jnp.array(sizes)), twice(loop, sizes))


@pytest.mark.usefixtures("any_kernel")
@pytest.mark.parametrize("mapped", [(0, None, None), (None, 0, None), (None, None, 0), (0, None, 0), (0, 0, 0)])
def test_maps_over_any_argument(mapped):
    many = (jnp.stack([LHS, -LHS]), jnp.stack([RHS, 2 * RHS]), jnp.array(SIZES[:2]))
    one = (LHS, RHS, jnp.array(SIZES[2]))
    arguments = [m if axis == 0 else o for m, o, axis in zip(many, one, mapped, strict=True)]
    each = [[a[i] if axis == 0 else a for a, axis in zip(arguments, mapped, strict=True)] for i in range(2)]
    close(jax.vmap(ragged_dot, mapped)(*arguments), jnp.stack([loop(*args) for args in each]))
    gradients = jax.vmap(jax.grad(squares(ragged_dot), (0, 1)), mapped)(*arguments)
    close(gradients, jax.tree.map(lambda *x: jnp.stack(x), *[jax.grad(squares(loop), (0, 1))(*a) for a in each]))


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [("bfloat16", "bfloat16", "bfloat16"), ("bfloat16", "float32", "float32"), ("int32", "float32", "float32")],
)
def test_dtypes_are_promoted(left, right, result):
    assert ragged_dot(LHS.astype(left), RHS.astype(right), jnp.array([1, 2, 3], jnp.int8)).dtype == result


@pytest.mark.parametrize("split", ["rows", "matrices"])
def test_gradients_inside_shard_map(flat_mesh, split):
    """Those of operands that all devices share are summed over the devices."""
    spec = jax.sharding.PartitionSpec
    rows, matrices = (spec("data"), spec()) if split == "rows" else (spec(), spec("data"))
    lhs, rhs = (jnp.tile(LHS, (8, 1)), RHS) if split == "rows" else (LHS, jnp.tile(RHS, (8, 1, 1)))
    sizes = jnp.array(SIZES[0])
    gradients = jax.shard_map(
        lambda lhs, rhs: jax.grad(squares(ragged_dot), (0, 1))(lhs, rhs, sizes),
        mesh=flat_mesh,
        in_specs=(rows, matrices),
        out_specs=(rows, matrices),
    )
    to_lhs, to_rhs = jax.grad(squares(loop), (0, 1))(LHS, RHS, SIZES[0])
    each, once = (to_lhs, to_rhs) if split == "rows" else (to_rhs, to_lhs)
    found = dict(zip(("rows", "matrices"), gradients(lhs, rhs), strict=True))
    close(found.pop(split), jnp.tile(each, (8, *[1] * (each.ndim - 1))))
    close(*found.values(), 8 * once)


def test_sum_over_a_mesh_axis(mesh):
    spec = jax.sharding.PartitionSpec
    fn = jax.shard_map(
        lambda a, b: ragged_dot(a, b, jnp.array(SIZES[0]), ar=True),
        mesh=mesh,
        in_specs=(spec(None, "model"), spec(None, "model")),
        out_specs=spec(),
    )
    close(fn(LHS, RHS), loop(LHS, RHS, SIZES[0]))


# kernels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("implementation", ["auto", "triton", "triton_tile_map"])
def test_tokamax_is_used_where_it_is_there(tokamax, on_gpu, implementation):
    def fn(lhs, rhs, sizes):
        return ragged_dot(lhs, rhs, sizes, implementation=implementation)

    sizes = SIZES[2]
    close(fn(LHS, RHS, jnp.array(sizes)), loop(LHS, RHS, sizes))
    close(jax.grad(squares(fn), (0, 1))(LHS, RHS, jnp.array(sizes)), jax.grad(squares(loop), (0, 1))(LHS, RHS, sizes))
    assert tokamax.asked == ["triton"] * 4


def test_what_tokamax_refuses_is_computed_by_xla(tokamax, on_gpu):
    tokamax.refuses = ("triton",)
    close(ragged_dot(LHS, RHS, jnp.array(SIZES[2])), loop(LHS, RHS, SIZES[2]))
    assert hax.named_jit(ragged_dot).explain(LHS, RHS, jnp.array(SIZES[2])).kernels == (
        Kernel("ragged_dot", "xla", "refused"),
    )


def shapes(m, k, n, g, dtype="bfloat16"):
    sizes = jax.ShapeDtypeStruct((g,), "int32")
    return (jax.ShapeDtypeStruct((m, k), dtype), jax.ShapeDtypeStruct((g, k, n), dtype), sizes)


@pytest.mark.parametrize(
    ("kind", "operands", "names"),
    [
        ("TPU v5 lite", shapes(128, 130, 200, 3), ["mosaic_tpu", "xla"]),
        ("TPU v5 lite", shapes(128, 128, 128, 3, "float32"), ["mosaic_tpu", "xla"]),
        ("TPU v5 lite", shapes(128, 128, 128, 3, "float16"), ["xla"]),
        ("TPU v5 lite", shapes(130, 128, 128, 3), ["xla"]),
        ("TPU v5 lite", shapes(128, 64, 128, 3), ["xla"]),
        ("TPU v5 lite", shapes(128, 128, 128, 0), ["xla"]),
        ("TPU v5 lite", shapes(0, 128, 128, 1), ["xla"]),
        ("NVIDIA H100", shapes(64, 128, 192, 3), ["mosaic_gpu", "triton", "xla"]),
        ("NVIDIA H100", shapes(64, 64, 64, 3, "float16"), ["mosaic_gpu", "triton", "xla"]),
        ("NVIDIA H100", shapes(64, 64, 64, 3, "float32"), ["triton", "xla"]),
        ("NVIDIA H100", shapes(64, 64, 64, 3, "int8"), ["xla"]),
        ("NVIDIA H100", shapes(72, 64, 64, 3), ["triton", "xla"]),
        ("NVIDIA H100", shapes(64, 100, 64, 3), ["triton", "xla"]),
        ("NVIDIA H100", shapes(64, 64, 0, 3), ["xla"]),
        ("AMD Instinct MI300X", shapes(64, 64, 64, 3), ["xla"]),
    ],
)
def test_which_kernels_are_tried(tokamax, monkeypatch, kind, operands, names):
    on_device(monkeypatch, kind)
    tokamax.refuses = {"mosaic_tpu", "mosaic_gpu", "triton"}
    tried = []
    tokamax.ragged_dot_general = lambda *args, implementation, **options: tried.append(implementation) or refuse()
    jax.eval_shape(lambda *args: ragged_dot(*args), *operands)
    assert [*tried, "xla"] == names


def refuse():
    raise NotImplementedError


TRITON = InTokamax("triton", "NVIDIA", lambda *operands: True, ("tokamax", "jax_triton"))
BY_TRITON = (Kernel("ragged_dot", "triton", "tokamax"), Kernel("ragged_dot", "xla", "refused"))


def choice(implementation="auto"):
    return choose_kernels("ragged_dot", implementation, {"triton": (TRITON,)}, (LHS,))


def only_xla(code):
    return (Kernel("ragged_dot", "xla", code),)


def test_one_rule(tokamax, monkeypatch, mesh):
    assert choice("xla") == only_xla("asked")
    assert choice() == choice("triton") == only_xla("cpu")
    with jax.set_mesh(mesh):
        assert choice() == only_xla("cpu")
        on_device(monkeypatch, "NVIDIA H100")
        assert choice() == only_xla("devices")
        inside = []
        spec = jax.sharding.PartitionSpec()
        jax.eval_shape(jax.shard_map(lambda x: inside.append(choice()) or x, in_specs=spec, out_specs=spec), LHS)
    assert inside == [BY_TRITON] == [choice()] == [choice("triton")]
    on_device(monkeypatch, "TPU v5 lite")
    assert choice() == choice("triton") == only_xla("device")


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("tokamax", "and tokamax is not installed. Install haliax[kernels], or let implementation be 'auto'."),
        ("jax_triton", "and jax_triton is not installed. Install tokamax[cuda], or let implementation be 'auto'."),
    ],
)
def test_what_is_not_installed(on_gpu, monkeypatch, missing, message):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else name)
    assert choice() == only_xla("missing")
    with pytest.raises(ImportError) as raised:
        choice("triton")
    assert str(raised.value) == f"ragged_dot: implementation is 'triton', {message}"


@pytest.mark.parametrize(
    ("kind", "platform"), [("TPU v5 lite", "tpu"), ("NVIDIA H100 80GB HBM3", "gpu"), ("Nothing known", "other")]
)
def test_an_abstract_mesh_tells_the_device(tokamax, kind, platform):
    names = [field.name for field in dataclasses.fields(jax.sharding.AbstractDevice)]
    device = jax.sharding.AbstractDevice(kind, None, *[platform] * ("platform" in names))
    mesh = jax.sharding.AbstractMesh((1,), ("x",), abstract_device=device)
    with jax.sharding.use_abstract_mesh(mesh):
        assert choice() == (BY_TRITON if platform == "gpu" else only_xla("device"))


def test_explain_shows_the_choice(mesh):
    def fn(lhs, rhs, sizes):
        return jax.lax.map(lambda x: ragged_dot(x, rhs, sizes), lhs[None])[0] + ragged_dot(lhs, rhs, sizes)

    step = hax.named_jit(jax.grad(lambda *args: fn(*args).sum()))
    for _ in range(2):  # a trace out of the cache tells as much
        report = step.explain(LHS, RHS, jnp.array(SIZES[0]))
        assert report.kernels == (Kernel("ragged_dot", "xla", "cpu"),)
    assert "kernels: ragged_dot by xla, as a CPU has no other" in str(report)
    assert hax.named_jit(lambda x: x + 1).explain(LHS).kernels == ()


MESSAGES = [
    (
        lambda: ragged_dot(LHS, RHS, jnp.array([1, 2])),
        ValueError,
        "ragged_dot: the shapes are (6, 2), (3, 2, 4) and (2,); expected (m, k), (g, k, n) and (g,).",
    ),
    (
        lambda: ragged_dot(LHS, RHS[0], jnp.array([1, 2, 3])),
        ValueError,
        "ragged_dot: rhs_ has shape (2, 4); expected 3 dimensions.",
    ),
    (
        lambda: ragged_dot(hax.named(LHS, ("a", "b")), RHS, jnp.array([1, 2, 3])),
        TypeError,
        "ragged_dot: lhs_ is a NamedArray; expected an array without names."
        " Named arrays go through haliax.nn.MoELinear.",
    ),
    (
        lambda: ragged_dot(LHS, RHS, jnp.array([1.0, 2, 3])),
        TypeError,
        "ragged_dot: group_sizes_ has dtype float32; expected integers.",
    ),
    (
        lambda: ragged_dot(LHS, RHS, jnp.array([1, 2, 3]), implementation="cuda"),
        ValueError,
        "ragged_dot: implementation is 'cuda'; expected one of 'auto', 'xla', 'megablox', 'triton',"
        " 'triton_group_grid', 'triton_tile_map'.",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), MESSAGES)
def test_messages(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message


def test_names_of_the_old_library():
    """Facts: its members and numbers."""
    assert [str(member) for member in RaggedLayout] == ["fwd", "dlhs", "drhs"]
    assert [str(member) for member in TritonKernelFamily] == ["group_grid", "tile_map"]
    config = TritonBlockConfig(128, 128, 64, 4, 2, 1, 8)
    for problem, blocks in {(30, 70, 100): (32, 128, 64), (1, 1, 1): (16, 16, 16), (0, 33, 17): (16, 32, 64)}.items():
        fitted = config.fit(*problem)
        assert (fitted.block_m, fitted.block_n, fitted.block_k) == blocks
        assert fitted.group_m == 8


# mixtures of experts ------------------------------------------------------------------------------------------------

E, In, Out, R, S = (Axis(n, s) for n, s in {"e": 3, "in": 2, "out": 4, "rows": 6, "s": 2}.items())
KEY = jax.random.key(0)
GROUPS = hax.named(jnp.array(SIZES[0]), "e")


def experts(Experts, *args, bias=True, **kwargs):
    """A mixture with random numbers, of which each expert has its own bias."""

    def make():
        layer = MoELinear.init(Experts, *args, key=KEY, use_bias=bias, **kwargs)
        return dataclasses.replace(layer, bias=layer.bias.broadcast_axis(Experts)) if bias else layer

    return with_numbers(make)


@pytest.mark.parametrize("out_first", [False, True])
@pytest.mark.parametrize("sizes", SIZES[:3])
def test_each_row_goes_through_the_layer_of_its_expert(out_first, sizes):
    layer = experts(E, In, Out, out_first=out_first)
    assert layer.out_first == out_first
    x = hax.random.normal(KEY, (R, In))
    y = layer(x, hax.named(jnp.array(sizes), "e"), key=KEY)
    assert y.axis_names == ("rows", "out")
    start = 0
    for expert, size in enumerate(sizes):
        of_one = hax.nn.Linear(layer.weight["e", expert], layer.bias["e", expert], In, Out)
        close(y["rows", start : start + size].array, of_one(x["rows", start : start + size]).array)
        start += size
    np.testing.assert_array_equal(y["rows", start:].array, 0)


@pytest.mark.parametrize(
    ("layer", "names"),
    [
        (experts(E, (In, S), Out), ("s", "rows", "in")),
        (experts(E, (In, S), Out, bias=False), ("in", "rows", "s")),
        (experts(E, In, (Out, S), out_first=True), ("rows", "in")),
        (experts(E, In, In, use_gmm=True), ("in", "rows")),
        (experts((E, Axis("f", 1)), In, Out), ("rows", "in")),
        (experts(E, In, ()), ("rows", "in")),
    ],
)
def test_several_axes(layer, names):
    sizes = {axis.name: axis.size for axis in (R, In, S)}
    x = hax.random.normal(KEY, tuple(Axis(name, sizes[name]) for name in names))
    groups = GROUPS if isinstance(layer.Experts, Axis) else GROUPS.broadcast_axis(Axis("f", 1))
    y = layer(x, groups)
    outer = (layer.Out,) if isinstance(layer.Out, Axis) else layer.Out
    assert y.axis_names == ("rows", *(axis.name for axis in outer))
    of_rows = np.repeat(np.arange(3), SIZES[0])
    for row, expert in enumerate(of_rows):
        place = {"e": int(expert)} | ({} if isinstance(layer.Experts, Axis) else {"f": 0})
        bias = None if layer.bias is None else layer.bias[place]
        close(y["rows", row].array, hax.nn.Linear(layer.weight[place], bias, layer.In, layer.Out)(x["rows", row]).array)


def test_batches_of_groups():
    layer = experts(E, In, Out)
    x = hax.random.normal(KEY, (R, S, In))
    groups = hax.named(jnp.array(SIZES[:2]), ("s", "e"))
    y = layer(x, groups)
    assert y.axis_names == ("rows", "s", "out")
    for i in range(2):
        close(y["s", i].array, layer(x["s", i], groups["s", i]).array)


def test_gradient_of_a_mixture():
    x, layer = hax.random.normal(KEY, (R, In)), experts(E, In, Out)
    gradient = jax.grad(lambda layer: hax.sum(layer(x, GROUPS)).scalar())(layer)
    np.testing.assert_array_equal(gradient.bias.array, np.broadcast_to(np.array(SIZES[0])[:, None], (3, 4)))
    of_groups = [x.array[a:b].sum(0) for a, b in ((0, 2), (2, 3), (3, 6))]
    close(gradient.weight.array, jnp.broadcast_to(jnp.stack(of_groups)[:, :, None], (3, 2, 4)))


def test_a_bias_for_all_experts():
    """Rows of no expert are shifted too, as in the library that this one replaces."""
    x, layer = hax.random.normal(KEY, (R, In)), experts(E, In, Out, bias=False)
    groups, bias = hax.named(jnp.array([2, 1, 1]), "e"), hax.arange(Out) + 1.0
    y = dataclasses.replace(layer, bias=bias)(x, groups)
    close(y.array, layer(x, groups).array + bias.array[None])
    close(y.array[4:], np.broadcast_to(bias.array, (2, 4)))


def test_initial_numbers():
    """Facts: the numbers of the library that this one replaces, for the same key."""
    layer = MoELinear.init(E, In, Out, key=KEY)
    assert layer.weight.axis_names == ("e", "in", "out") and layer.bias.axis_names == ("out",)
    np.testing.assert_allclose(layer.weight.array[0, 0], [1.1394622, 1.4147108, -0.30571622, -0.05544052], rtol=1e-6)
    np.testing.assert_array_equal(layer.bias.array, 0)
    assert MoELinear.init(E, In, Out, key=KEY, use_bias=False).bias is None
    turned = MoELinear.init(E, In, Out, key=KEY, out_first=True, init_scale=2.0).weight
    assert turned.axis_names == ("e", "out", "in")
    np.testing.assert_allclose(turned.array.ravel(), 2 * layer.weight.array.ravel(), rtol=1e-6)


MOE_MESSAGES = [
    (
        lambda layer: layer(hax.ones((S, R, In)), GROUPS),
        ValueError,
        "MoELinear: besides (in) the inputs have s=2, rows=6; expected one axis of rows."
        " Merge several with flatten_axes, or give group_sizes the batch axes among them.",
    ),
    (
        lambda layer: layer(hax.ones(In), GROUPS),
        ValueError,
        "MoELinear: besides (in) the inputs have no axes; expected one axis of rows.",
    ),
    (
        lambda layer: layer(hax.ones((R, In)), GROUPS.rename({"e": "f"})),
        ValueError,
        "MoELinear: no axis 'e'; the array has f=3.",
    ),
    (
        lambda layer: layer(hax.ones((R, In.resize(5))), GROUPS),
        ValueError,
        "MoELinear: axis 'in' has size 5; expected 2. The layer was made with in=2.",
    ),
    (
        lambda layer: layer(hax.ones((Out, In)), GROUPS),
        ValueError,
        "MoELinear: axis 'out' occurs more than once in (out, out). Rename the axis that the output axis repeats.",
    ),
    (
        lambda layer: layer(hax.ones((R, In)), GROUPS.array),
        TypeError,
        "MoELinear: group_sizes is a jax array of shape (3,); expected a NamedArray."
        " Name its axes with haliax.named(array, axes).",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), MOE_MESSAGES)
def test_messages_of_mixtures(call, error, message):
    with pytest.raises(error) as raised:
        call(MoELinear.init(E, In, Out, key=KEY))
    assert str(raised.value) == message
