"""The layout of results: named arrays as the mapping says, raw ones as JAX has them; one trace."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import haliax as hax
from helpers import count_traces
from meshes import MAPPING, NAMES, VALUES, make_mesh, on, spec_of

OTHER = {"batch": "model", "embed": None}
AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit


@pytest.mark.parametrize(
    ("ambient", "axis", "out", "expected"),
    [
        (OTHER, None, None, ("model", None)),
        (OTHER, MAPPING, None, ("data", "model")),
        (MAPPING, MAPPING, OTHER, ("model", None)),
        (MAPPING, None, OTHER, ("model", None)),
        (MAPPING, {}, None, (None, None)),
        (None, {"batch": ("data", "model")}, None, (("data", "model"), None)),
    ],
)
@pytest.mark.parametrize("types", [(AUTO, AUTO), (EXPLICIT, EXPLICIT), (EXPLICIT, AUTO)], ids=str)
def test_which_mapping_counts(types, ambient, axis, out, expected):
    mesh = make_mesh(types=types)
    f = hax.named_jit(count_traces(lambda x: x * 2), axis, out_axis_resources=out, mesh=mesh)
    with hax.axis_mapping(ambient) if ambient is not None else hax.axis_mapping({}, merge=True):
        for _ in range(2):
            result = f(on(mesh, "data"))
            assert spec_of(result) == expected and np.array_equal(np.asarray(result), VALUES * 2)
    assert f._fn.traces == 1


@pytest.mark.parametrize("types", [(AUTO, AUTO), (EXPLICIT, EXPLICIT), (AUTO, EXPLICIT)], ids=str)
def test_the_order_of_mesh_axes_counts(types):
    mesh = make_mesh(types=types)
    order = ("model", "data")
    f = hax.named_jit(lambda x: x * 2, {"batch": order}, mesh=mesh)
    assert spec_of(f(hax.NamedArray(VALUES, NAMES))) == (order, None)


def test_an_order_that_a_mesh_of_mixed_axis_types_can_not_have():
    f = hax.named_jit(lambda x: x * 2, {"batch": ("data", "model")}, mesh=make_mesh(types=(AUTO, EXPLICIT)))
    with pytest.raises(ValueError) as error:
        f(hax.NamedArray(VALUES, NAMES))
    assert str(error.value) == (
        "shard: one axis is split over mesh axes (data, model); expected the explicit ones (model) first."
        " Change their order in the axis mapping."
    )


def test_without_a_mapping_nothing_is_constrained(mesh):
    f = hax.named_jit(lambda x: x * 2, mesh=mesh)
    assert "sharding_constraint" not in f.lower(on(mesh, "data")).as_text()
    assert spec_of(f(on(mesh, "data"))) == ("data", None)


def test_raw_arrays_and_keys_are_left_to_jax(mesh):
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), NamedSharding(mesh, PartitionSpec("data")))
    raw = on(mesh, "data", "model").array

    def f(raw, keys):
        return {"raw": raw * 2, "keys": keys, "named": hax.NamedArray(raw, NAMES), "new": jnp.ones(3), "n": 3}

    out = hax.named_jit(f, {"batch": "model"}, mesh=mesh)(raw, keys)
    assert spec_of(out["raw"]) == ("data", "model")
    assert spec_of(out["keys"]) == ("data",)
    assert spec_of(out["named"]) == ("model", None)
    assert out["n"] == 3 and isinstance(out["n"], int)


def test_named_keys(mesh):
    out = hax.named_jit(
        lambda: hax.NamedArray(jax.random.split(jax.random.key(0), 8), ("batch",)), MAPPING, mesh=mesh
    )()
    assert spec_of(out) == ("data",)


def test_results_may_hold_anything(mesh):
    def f(x):
        return x, "text", 2.5, None, (), {"f": f, "dtype": x.dtype}, hax.NamedArray(None, ("a",)), np.ones(2), True

    x, text, number, none, empty, table, placeholder, array, flag = hax.named_jit(f, MAPPING, mesh=mesh)(on(mesh))
    assert text == "text" and number == 2.5 and none is None and empty == () and flag is True
    assert table == {"f": f, "dtype": jnp.float32} and placeholder.array is None
    assert spec_of(x) == ("data", "model") and isinstance(array, jax.Array)


class Pair(eqx.Module):
    first: hax.NamedArray
    second: jax.Array
    name: str = eqx.field(static=True)


def test_a_module_in_and_out(mesh):
    pair = Pair(on(mesh), on(mesh, "model").array, "pair")
    out = hax.named_jit(count_traces(lambda p: p), MAPPING, mesh=mesh)(pair)
    assert isinstance(out, Pair) and out.name == "pair"
    assert spec_of(out.first) == ("data", "model") and spec_of(out.second) == ("model", None)


def test_shapes_of_one_structure_do_not_mix(mesh):
    """A cache of result shapes that ignores argument shapes fails here: rank 2, rank 1, rank 2."""
    f = hax.named_jit(count_traces(lambda x: (x * 2, x.shape)), mesh=mesh)
    for shape in [(8, 4), (8,), (8, 4), (4,), (8,)]:
        out, static = f(jnp.ones(shape))
        assert out.shape == shape == static
    assert f._fn.traces == 3


def test_a_result_whose_structure_depends_on_the_shape(mesh):
    f = hax.named_jit(lambda x: {f"part {i}": x[i] for i in range(x.shape[0])} | {"n": x.shape[0]}, mesh=mesh)
    for n in (2, 3, 2):
        assert f(jnp.ones((n, 4)))["n"] == n and len(f(jnp.ones((n, 4)))) == n + 1


@pytest.mark.parametrize("types", ["mesh", "explicit_mesh"])
def test_an_axis_that_does_not_divide(request, types):
    mesh = request.getfixturevalue(types)
    f = hax.named_jit(lambda x: {"loss": (x, x.sum("embed"))}, {"batch": "data"}, mesh=mesh, donate_args=True)
    x = hax.named(jnp.ones((6, 4)), NAMES)
    with pytest.raises(ValueError) as error:
        f(x)
    assert str(error.value) == (
        "named_jit(<lambda>): result['loss'][0]: axis batch=6 can not be split over mesh axes (data=4); expected a"
        " multiple of 4. The nearest sizes that fit are 4 or 8; see haliax.partitioning.round_axis_for_partitioning."
    )
    assert not x.array.is_deleted()


def test_the_program_is_the_hand_written_one(mesh):
    sharding = NamedSharding(mesh, PartitionSpec("data", "model"))

    def by_hand(x):
        return jax.lax.with_sharding_constraint(x * 2 + 1, sharding)

    with jax.set_mesh(mesh):
        plain = jax.jit(by_hand).lower(on(mesh, "data").array).as_text()
    ours = hax.named_jit(lambda x: x * 2 + 1, MAPPING, mesh=mesh).lower(on(mesh, "data")).as_text()
    assert operations(ours) == operations(plain)


def operations(text: str) -> list[str]:
    return [line.split(" = ")[1].split(" ")[0] for line in text.splitlines() if " = " in line]
