"""Programs ahead of time: lowered, compiled, called on named pytrees."""

import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractDevice, AbstractMesh, AxisType, NamedSharding, PartitionSpec

import haliax as hax
from helpers import count_traces
from meshes import MAPPING, NAMES, VALUES, on, spec_of


def abstract(shape=(8, 4), sharding=None):
    return hax.NamedArray(jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding), NAMES)


def test_a_compiled_program_takes_and_returns_named_pytrees(mesh):
    f = hax.named_jit(count_traces(lambda t, flag: {"out": t["x"] + 1, "flag": flag}), MAPPING, mesh=mesh)
    compiled = f.lower({"x": on(mesh, "data")}, "on").compile()
    out = compiled({"x": on(mesh, "data")}, "on")
    assert spec_of(out["out"]) == ("data", "model") and out["flag"] == "on"
    assert np.array_equal(np.asarray(out["out"]), VALUES + 1)
    f({"x": on(mesh, "data")}, "on")
    assert f._fn.traces == 1
    assert compiled.cost_analysis() is not None and "HloModule" in compiled.as_text()


@pytest.mark.parametrize(
    ("sharding", "mapping", "inputs", "expected"),
    [
        (None, MAPPING, None, ("data", "model")),
        (None, None, {"batch": "model"}, ("model",)),
        (PartitionSpec("model"), MAPPING, None, ("model",)),
        (PartitionSpec("model"), MAPPING, {"batch": "data"}, ("data",)),
    ],
)
def test_a_shape_in_a_named_array(mesh, sharding, mapping, inputs, expected):
    x = abstract(sharding=sharding and NamedSharding(mesh, sharding))
    f = hax.named_jit(lambda x: x + 1, mapping, in_axis_resources=inputs, mesh=mesh)
    (layouts, _) = f.lower(x).compile().input_shardings
    assert layouts[0].is_equivalent_to(NamedSharding(mesh, PartitionSpec(*expected)), 2)


def test_eval_shape_and_trace(mesh):
    f = hax.named_jit(lambda x, n: (x.sum("embed"), n), MAPPING, mesh=mesh)
    out, n = f.eval_shape(abstract(), 3)
    assert out.axes == (hax.Axis("batch", 8),) and isinstance(out.array, jax.ShapeDtypeStruct) and n == 3
    assert "reduce_sum" in str(f.trace(abstract(), 3).jaxpr)


def test_other_arguments_than_it_was_compiled_for(mesh):
    compiled = hax.named_jit(lambda x, flag: x, mesh=mesh).lower(on(mesh), True).compile()
    with pytest.raises(TypeError, match=r"compiled for arguments of structure .*; this call has other static values\."):
        compiled(on(mesh), False)
    with pytest.raises(TypeError, match=r"compiled for arguments of structure .*; this call has PyTreeDef"):
        compiled([on(mesh)], True)


def test_a_static_object_that_was_changed_since():
    @dataclasses.dataclass(unsafe_hash=True)
    class Schedule:
        steps: int

    schedule = Schedule(2)
    compiled = hax.named_jit(lambda x, schedule: x * schedule.steps).lower(jnp.ones(()), schedule).compile()
    assert compiled(jnp.ones(()), schedule) == 2 == compiled(jnp.ones(()), Schedule(2))
    schedule.steps = 3
    with pytest.raises(TypeError, match="this call has other static values"):
        compiled(jnp.ones(()), schedule)


def test_a_compiled_program_of_a_module(mesh):
    f = hax.named_jit(functools.partial(lambda w, x: x * w, on(mesh)), mesh=mesh)
    assert np.array_equal(np.asarray(f.lower(on(mesh)).compile()(on(mesh))), VALUES * VALUES)


def test_an_axis_that_does_not_divide(mesh):
    with pytest.raises(ValueError, match=r"named_jit\(<lambda>\): x: axis batch=6 can not be split"):
        hax.named_jit(lambda x: x.sum(), MAPPING, mesh=mesh).lower(abstract((6, 4)))


@pytest.mark.parametrize(
    ("kind", "platform"),
    [("TPU v5 lite", "tpu"), ("NVIDIA H100 80GB HBM3", "cuda"), ("AMD Instinct MI300X", "rocm"), (None, "cpu")],
)
def test_an_abstract_mesh_of_a_kind_of_device_lowers_for_it(kind, platform):
    mesh = AbstractMesh((1,), ("data",), axis_types=(AxisType.Auto,))
    if kind is not None:
        known = {"device_kind": kind, "num_cores": None, "platform": platform}  # jax 0.9 has no platform
        names = [field.name for field in dataclasses.fields(AbstractDevice)]
        mesh = mesh.update(abstract_device=AbstractDevice(**{name: known[name] for name in names}))
    branches = {"tpu": jnp.sin, "cuda": jnp.cos, "rocm": jnp.tan, "cpu": jnp.exp}
    step = hax.named_jit(lambda x: jax.lax.platform_dependent(x, **branches), mesh=mesh)
    found = re.findall(r"stablehlo\.(sine|cosine|tan|exponential) ", step.lower(jnp.ones(3)).as_text())
    assert found == [{"tpu": "sine", "cuda": "cosine", "rocm": "tan", "cpu": "exponential"}[platform]]
