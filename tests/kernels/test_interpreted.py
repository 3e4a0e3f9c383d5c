"""Values and derivatives of the kernels of tokamax, by the interpreters of JAX, against loops."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest
import tokamax
from jax._src import tpu_info
from jax.experimental.pallas import mosaic_gpu as plgpu, tpu as pltpu
from jax.sharding import PartitionSpec
from tokamax._src import gpu_utils

import haliax as hax
from haliax import Axis
from haliax._src.kernels import Kernel, kernels_in
from haliax.nn import MoELinear, ragged_dot
from helpers import with_numbers
from kernels.loops import Sizes, assert_close, expected, loop, with_gradients

MOSAIC_TPU, MOSAIC_GPU = (Kernel("ragged_dot", name, "tokamax") for name in ("mosaic_tpu", "mosaic_gpu"))
REFUSED = Kernel("ragged_dot", "xla", "refused")
SMALL = Sizes(128, 128, 128, (40, 0, 60))


@pytest.fixture
def tpu(monkeypatch):
    """A TPU v5e, interpreted."""
    v5e = pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V5E, 1)
    monkeypatch.setitem(tpu_info.registry, "cpu", lambda: v5e)
    monkeypatch.setattr("haliax._src.kernels._device_kind", lambda operands: "TPU v5 lite")
    with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams(uninitialized_memory="nan", buffer_bounds="padded")):
        yield


@pytest.fixture
def gpu(monkeypatch):
    """An H100, interpreted."""
    monkeypatch.setattr(gpu_utils, "_compute_capability", lambda device=None: 9.0)
    monkeypatch.setattr("haliax._src.kernels._device_kind", lambda operands: "NVIDIA H100 80GB HBM3")
    with plgpu.force_gpu_interpret_mode(plgpu.InterpretGPUParams(uninitialized_memory="nan")):
        yield


def run(fn, *args, by=(MOSAIC_TPU,)):
    """The result of a function, compiled, of which all products are computed by these kernels."""
    traced = jax.jit(fn).trace(*args)
    assert kernels_in(traced.jaxpr) == by
    return traced.lower().compile()(*args)


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [
        (SMALL, "float32"),
        (SMALL, "bfloat16"),
        (Sizes(256, 130, 200, (100, 30, 126)), "float32"),  # no multiples of a tile
        (Sizes(256, 128, 128, (0, 128, 0, 1, 127)), "bfloat16"),  # tiles of one group and of several
        (Sizes(256, 128, 128, (256,)), "float32"),  # one group
        (Sizes(128, 128, 128, (0, 0)), "float32"),  # none
    ],
    ids=str,
)
def test_values_and_gradients(sizes, dtype):
    operands = sizes.operands(dtype)
    assert_close(run(with_gradients(ragged_dot), *operands), expected(with_gradients(loop), *operands))


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [(Sizes(100, 128, 128, (40, 60)), "float32"), (Sizes(128, 8, 128, (40, 60)), "bfloat16")],
    ids=str,
)
def test_what_the_kernel_refuses_is_computed_by_xla(sizes, dtype):
    operands = sizes.operands(dtype)
    actual = run(with_gradients(ragged_dot), *operands, by=(REFUSED,))
    assert_close(actual, expected(with_gradients(loop), *operands))


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize("implementation", ["auto", "megablox"])
def test_without_jit(implementation):
    lhs, rhs, groups, _ = SMALL.operands("float32")
    assert_close(ragged_dot(lhs, rhs, groups, implementation=implementation), expected(loop, lhs, rhs, groups))


def second_derivatives(product):
    def fn(lhs, rhs, groups, cotangent):
        def inner(lhs, rhs):
            return with_gradients(product)(lhs, rhs, groups, cotangent)[1:]

        return jax.vjp(inner, lhs, rhs)[1]((jnp.nan_to_num(cotangent @ rhs[0].T), rhs))

    return fn


@pytest.mark.usefixtures("tpu")
def test_second_derivatives():
    operands = SMALL.operands("float32")
    assert_close(run(second_derivatives(ragged_dot), *operands), expected(second_derivatives(loop), *operands))


@pytest.mark.usefixtures("tpu")
@pytest.mark.parametrize("mapped", range(3), ids=["rows", "matrices", "groups"])
def test_maps(mapped):
    operands = SMALL.operands("float32")
    many = [jnp.stack(pair) for pair in zip(operands, (-operands[0], 2 * operands[1], operands[2][::-1]), strict=False)]
    axes = [0 if i == mapped else None for i in range(4)]
    args = [many[i] if i == mapped else operand for i, operand in enumerate(operands)]
    actual = run(jax.vmap(with_gradients(ragged_dot), axes), *args)
    for i in range(2):
        one = [a[i] if axis == 0 else a for a, axis in zip(args, axes, strict=True)]
        assert_close([part[i] for part in actual], list(expected(with_gradients(loop), *one)))


@pytest.mark.usefixtures("tpu")
def test_inside_shard_map(flat_mesh):
    """Each of eight devices has rows of its own; the matrices are shared, and their gradient is the sum."""
    _, rhs, groups, _ = SMALL.operands("float32")
    each = [SMALL.operands("float32") for _ in range(8)]
    lhs, cotangent = (jnp.concatenate([operands[i] for operands in each]) for i in (0, 3))
    rows, shared = PartitionSpec("data"), PartitionSpec()
    fn = jax.shard_map(
        with_gradients(ragged_dot),
        mesh=flat_mesh,
        in_specs=(rows, shared, shared, rows),
        out_specs=(rows, rows, shared),
    )
    parts = [expected(with_gradients(loop), a, rhs, groups, b) for a, _, _, b in each]
    result, to_lhs, to_rhs = zip(*parts, strict=True)
    assert_close(run(fn, lhs, rhs, groups, cotangent), (*map(jnp.concatenate, (result, to_lhs)), sum(to_rhs)))


@pytest.mark.usefixtures("tpu")
def test_sum_over_a_mesh_axis():
    mesh = jax.make_mesh((2,), ("model",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:2])
    lhs, rhs, groups, _ = Sizes(128, 256, 128, (40, 0, 60)).operands("float32")
    fn = jax.shard_map(
        lambda lhs, rhs, groups: ragged_dot(lhs, rhs, groups, ar=True),
        mesh=mesh,
        in_specs=(PartitionSpec(None, "model"), PartitionSpec(None, "model"), PartitionSpec()),
        out_specs=PartitionSpec(),
    )
    assert_close(run(fn, lhs, rhs, groups), expected(loop, lhs, rhs, groups))


@pytest.mark.usefixtures("tpu")
def test_a_mixture_of_experts():
    E, In, Out, R = Axis("e", 3), Axis("in", 128), Axis("out", 130), Axis("rows", 128)

    def make():
        layer = MoELinear.init(E, In, Out, key=jax.random.key(0), use_gmm=True)
        return dataclasses.replace(layer, bias=layer.bias.broadcast_axis(E))

    layer, x = with_numbers(make), hax.random.normal(jax.random.key(1), (R, In))
    groups = hax.named(jnp.array([40, 0, 60]), "e")

    def loss(layer, x):
        return hax.sum(layer(x, groups) ** 2).scalar()

    step = hax.named_jit(jax.value_and_grad(loss))
    assert step.explain(layer, x).kernels == (MOSAIC_TPU,)
    assert "kernels: ragged_dot by mosaic_tpu, as tokamax is installed" in str(step.explain(layer, x))
    by_xla = dataclasses.replace(layer, use_gmm=False)
    value, gradient = step(layer, x)
    assert_close((value, jax.tree.leaves(gradient)), (loss(by_xla, x), jax.tree.leaves(jax.grad(loss)(by_xla, x))))


# Hopper; the interpreter has no way for the product of the third kind, which gives the gradient by the matrices


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [(Sizes(64, 64, 64, (20, 0, 30)), "bfloat16"), (Sizes(128, 64, 192, (128,)), "float16")],
    ids=str,
)
def test_values_on_a_gpu(sizes, dtype):
    lhs, rhs, groups, _ = sizes.operands(dtype)
    assert_close(run(ragged_dot, lhs, rhs, groups, by=(MOSAIC_GPU,)), expected(loop, lhs, rhs, groups))


@pytest.mark.usefixtures("gpu")
def test_a_gradient_for_which_there_is_no_kernel(monkeypatch):
    """As on an A100 and a B200, which have kernels for the two other products."""
    product = tokamax.ragged_dot_general

    def some(lhs, rhs, groups, numbers, **options):
        if not numbers.rhs_group_dimensions:
            raise NotImplementedError
        return product(lhs, rhs, groups, numbers, **options)

    monkeypatch.setattr(tokamax, "ragged_dot_general", some)
    operands = Sizes(64, 64, 128, (20, 0, 30)).operands("bfloat16")
    actual = run(with_gradients(ragged_dot), *operands, by=(MOSAIC_GPU, REFUSED))
    assert_close(actual, expected(with_gradients(loop), *operands))
