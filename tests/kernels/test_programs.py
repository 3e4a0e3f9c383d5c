"""Programs lowered here for a GPU or TPU: which kernels are in them, and that none is in a program for a CPU."""

import re
from collections import Counter

import jax
import pytest
from jax.sharding import AbstractDevice, AbstractMesh, AxisType, PartitionSpec, use_abstract_mesh
from tokamax._src import gpu_utils

import haliax as hax
from haliax import Axis
from haliax._src.kernels import Kernel
from haliax.nn import MoELinear, ragged_dot
from kernels.loops import with_gradients

# what JAX lowers for, by the platform of a device
PLATFORMS = {"tpu": "tpu", "gpu": "cuda", "cpu": "cpu"}
KINDS = {"tpu": "TPU v5 lite", "gpu": "NVIDIA H100 80GB HBM3", "cpu": "cpu"}
CALLS = {"@tpu_custom_call(": "kernel", "@mosaic_gpu_v2(": "kernel", '"chlo.ragged_dot"(': "xla"}


def mesh_of(platform, kind=None, size=1):
    device = AbstractDevice(kind or KINDS[platform], None if platform == "cpu" else 1, platform)
    return AbstractMesh((size,), ("data",), axis_types=(AxisType.Auto,), abstract_device=device)


def calls(lowered):
    """How many products the kernels and XLA compute in a program."""
    return Counter(CALLS[name] for name in re.findall("|".join(map(re.escape, CALLS)), lowered.as_text()))


def program(fn, *args, mesh):
    with use_abstract_mesh(mesh):
        platform = PLATFORMS[mesh.abstract_device.platform]
        return jax.jit(fn).trace(*args).lower(lowering_platforms=(platform,))


def operands(m=128, k=128, n=128, g=3, dtype="bfloat16", sizes="int32"):
    shapes = (((m, k), dtype), ((g, k, n), dtype), ((g,), sizes), ((m, n), dtype))
    return tuple(jax.ShapeDtypeStruct(*shape) for shape in shapes)


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """The kernels for GPUs ask the usual device for its generation."""
    monkeypatch.setattr(gpu_utils, "_compute_capability", lambda device=None: 9.0)


THREE = with_gradients(ragged_dot)


@pytest.mark.parametrize("platform", ["tpu", "gpu"])
def test_kernels_are_called(platform):
    mesh = mesh_of(platform)
    assert calls(program(lambda *args: ragged_dot(*args[:3]), *operands(), mesh=mesh)) == {"kernel": 1}
    assert calls(program(THREE, *operands(), mesh=mesh)) == {"kernel": 3}
    by_xla = with_gradients(lambda *args: ragged_dot(*args, implementation="xla"))
    assert calls(program(by_xla, *operands(), mesh=mesh)) == {"xla": 3}
    assert calls(program(THREE, *operands(), mesh=mesh_of("cpu"))) == {}


@pytest.mark.parametrize("kind", ["TPU v5 lite", "TPU v5", "TPU v6 lite", "TPU7x"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_each_generation_of_tpus(kind, dtype):
    assert calls(program(THREE, *operands(k=130, n=200, dtype=dtype), mesh=mesh_of("tpu", kind))) == {"kernel": 3}


@pytest.mark.parametrize(
    ("generation", "found"),
    [(8.0, {"kernel": 2, "xla": 1}), (9.0, {"kernel": 3}), (10.0, {"kernel": 2, "xla": 1}), (7.0, {"xla": 3})],
)
@pytest.mark.parametrize("sizes", [(64, 64, 64), (192, 448, 960)])
def test_each_generation_of_gpus(monkeypatch, generation, found, sizes):
    """Some have no kernel for the gradient by the matrices."""
    monkeypatch.setattr(gpu_utils, "_compute_capability", lambda device=None: generation)
    jax.clear_caches()
    assert calls(program(THREE, *operands(*sizes), mesh=mesh_of("gpu"))) == found


REFUSED = {
    "tpu": [{"m": 100}, {"k": 64}, {"n": 127}, {"dtype": "float16"}, {"dtype": "int8"}, {"m": 0}, {"g": 0}],
    "gpu": [{"m": 100}, {"k": 100}, {"n": 72}, {"dtype": "float32"}, {"dtype": "int8"}]
    + [{size: 0} for size in ("m", "k", "n", "g")],
}


@pytest.mark.parametrize("implementation", ["auto", "megablox"])
@pytest.mark.parametrize(
    ("platform", "refused"), [(platform, refused) for platform, table in REFUSED.items() for refused in table], ids=str
)
def test_what_no_kernel_takes(platform, refused, implementation):
    """tokamax, JAX or the compiler refuses each of these at some point, a compiler for instance by a crash."""

    def product(lhs, rhs, groups):
        return ragged_dot(lhs, rhs, groups, implementation=implementation)

    args, mesh = operands(**refused), mesh_of(platform)
    assert calls(program(product, *args[:3], mesh=mesh))["kernel"] == 0
    if refused.get("dtype") != "int8":
        assert calls(program(with_gradients(product), *args, mesh=mesh))["kernel"] == 0


@pytest.mark.parametrize("sizes", ["int8", "uint8", "uint32", "int32"])
@pytest.mark.parametrize("platform", ["tpu", "gpu"])
def test_group_sizes_are_any_integers(platform, sizes):
    assert calls(program(THREE, *operands(sizes=sizes), mesh=mesh_of(platform))) == {"kernel": 3}


@pytest.mark.parametrize("platform", ["tpu", "gpu"])
@pytest.mark.parametrize("mapped", range(3), ids=["rows", "matrices", "groups"])
def test_maps(platform, mapped):
    lhs, rhs, sizes, cotangent = operands()
    stacked = [
        jax.ShapeDtypeStruct((2, *x.shape), x.dtype) if i == mapped else x for i, x in enumerate((lhs, rhs, sizes))
    ]
    axes = tuple(0 if i == mapped else None for i in range(3))
    fn = jax.vmap(THREE, (*axes, None))
    assert calls(program(fn, *stacked, cotangent, mesh=mesh_of(platform))) == {"kernel": 3}


@pytest.mark.parametrize("platform", ["tpu", "gpu"])
def test_over_several_devices(platform):
    """Kernels inside `shard_map`, and XLA where the compiler splits the rows."""
    rows, shared = PartitionSpec("data"), PartitionSpec()
    mesh, args = mesh_of(platform, size=8), operands(m=8 * 128)
    fn = jax.shard_map(THREE, in_specs=(rows, shared, shared, rows), out_specs=(rows, rows, shared))
    assert calls(program(fn, *args, mesh=mesh)) == {"kernel": 3}
    assert calls(program(THREE, *args, mesh=mesh)) == {"xla": 3}


@pytest.mark.parametrize("platform", ["tpu", "gpu"])
def test_a_named_program(platform):
    E, In, Out, R = Axis("e", 3), Axis("in", 128), Axis("out", 192), Axis("rows", 128)
    layer = jax.eval_shape(lambda: MoELinear.init(E, In, Out, key=jax.random.key(0), use_gmm=True))
    x, groups = jax.eval_shape(lambda: (hax.zeros((R, In)), hax.zeros(E, dtype="int32")))
    layer, x = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, "bfloat16"), (layer, x))

    def loss(layer, x, groups):
        return hax.sum(layer(x, groups)).scalar()

    step = hax.named_jit(jax.value_and_grad(loss), mesh=mesh_of(platform))
    assert calls(step.lower(layer, x, groups)) == {"kernel": 2}  # the result, and the gradient by the weight


def test_explain_is_for_the_device_of_the_mesh():
    names = {"tpu": "mosaic_tpu", "gpu": "mosaic_gpu"}
    for platform, name in names.items():
        explained = hax.named_jit(ragged_dot, mesh=mesh_of(platform)).explain(*operands()[:3])
        assert explained.kernels == (Kernel("ragged_dot", name, "tokamax"),)
