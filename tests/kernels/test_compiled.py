"""Programs that the compiler for TPUs compiles, on a machine without one: what the kernels are really accepted for."""

import re

import jax
import numpy as np
import pytest
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh, PartitionSpec

import haliax as hax
from haliax._src.kernels import Kernel
from haliax.nn import ragged_dot
from kernels.loops import with_gradients

THREE = with_gradients(ragged_dot)
BY_KERNEL, REFUSED, SPLIT = (
    Kernel("ragged_dot", *choice) for choice in (("mosaic_tpu", "tokamax"), ("xla", "refused"), ("xla", "devices"))
)
# one for each of the three products
OURS = {"pallas_tpu_ragged_dot_gmm", "pallas_tpu_ragged_dot_gmm_transpose_rhs", "pallas_tpu_ragged_dot_tgmm"}


@pytest.fixture(scope="module")
def devices():
    """Four devices of a TPU v5e that only compile."""
    return topologies.get_topology_desc("v5e:2x2", "tpu").devices


def mesh_of(devices):
    return Mesh(np.array(devices), ("data",), axis_types=(AxisType.Auto,))


def operands(m, k, n, g, dtype):
    shapes = (((m, k), dtype), ((g, k, n), dtype), ((g,), "int32"), ((m, n), dtype))
    return tuple(jax.ShapeDtypeStruct(*shape) for shape in shapes)


def compiled(step, *args):
    """The kernels of tokamax in what the compiler made."""
    return set(re.findall(r"pallas_tpu_ragged_dot_\w+", step.lower(*args).compile().as_text()))


@pytest.mark.parametrize(
    ("sizes", "dtype", "found", "chosen"),
    [
        ((128, 128, 128, 3), "bfloat16", OURS, BY_KERNEL),
        ((256, 130, 200, 2), "float32", OURS, BY_KERNEL),
        ((256, 130, 200, 1), "bfloat16", OURS, BY_KERNEL),
        ((100, 128, 128, 3), "bfloat16", set(), REFUSED),
        ((128, 64, 128, 3), "float32", set(), REFUSED),
    ],
)
def test_gradients(devices, sizes, dtype, found, chosen):
    step, args = hax.named_jit(THREE, mesh=mesh_of(devices[:1])), operands(*sizes, dtype)
    assert compiled(step, *args) == found
    assert step.explain(*args).kernels == (chosen,)


def test_over_four_devices(devices):
    rows, shared = PartitionSpec("data"), PartitionSpec()
    args = operands(4 * 128, 128, 128, 3, "bfloat16")
    split = jax.shard_map(THREE, in_specs=(rows, shared, shared, rows), out_specs=(rows, rows, shared))
    step = hax.named_jit(split, mesh=mesh_of(devices))
    assert compiled(step, *args) == OURS
    assert step.explain(*args).kernels == (BY_KERNEL,)
    assert hax.named_jit(ragged_dot, mesh=mesh_of(devices)).explain(*args[:3]).kernels == (SPLIT,)
