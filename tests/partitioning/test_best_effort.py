"""Layouts and meshes that are worked out from sizes: `best_effort_sharding` and `make_mesh`."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

import haliax as hax
from haliax import best_effort_sharding, make_mesh

SHAPES = [
    ((8,), P(("data", "model"))),
    ((4,), P("data")),
    ((2,), P("model")),
    ((3,), P(None)),
    ((), P()),
    ((16, 8), P(("data", "model"), None)),
    ((8, 16), P(None, ("data", "model"))),
    ((4, 12), P("model", "data")),
    ((4, 6), P("data", "model")),
    ((3, 4, 2), P(None, "data", "model")),
    ((0, 8), P(None, ("data", "model"))),
    ((0, 3), P(None, None)),
]


@pytest.mark.parametrize("kind", ["mesh", "explicit_mesh"])
@pytest.mark.parametrize(("shape", "spec"), SHAPES)
def test_specs(request, kind, shape, spec):
    mesh = request.getfixturevalue(kind)
    layout = best_effort_sharding(shape, mesh=mesh)
    assert layout == NamedSharding(mesh, spec)
    placed = jax.device_put(np.zeros(shape), layout)
    assert placed.sharding == layout


def test_whatever_has_a_shape(mesh):
    Batch, Embed = hax.make_axes(batch=8, embed=6)
    expected = NamedSharding(mesh, P(("data", "model"), None))
    named = hax.NamedArray(np.zeros((8, 6)), ("batch", "embed"))
    struct = jax.ShapeDtypeStruct((8, 6), jnp.float32)
    for x in (
        named,
        named.like(struct, named.axis_names),
        named.array,
        jnp.zeros((8, 6)),
        struct,
        (Batch, Embed),
        [8, 6],
    ):
        assert best_effort_sharding(x, mesh=mesh) == expected
    assert best_effort_sharding(Batch, mesh=mesh).spec == P(("data", "model"))
    with jax.set_mesh(mesh):
        assert best_effort_sharding(named) == expected


def test_replica_axes_are_left_out():
    mesh = make_mesh({"replica": 2, "data": 2}, {"replica_dcn": 2})
    assert best_effort_sharding((8, 8), mesh=mesh).spec == P("data", None)


def test_axes_over_slow_links_are_used():
    mesh = make_mesh({"data": 2, "model": 2}, {"data": 2})
    assert best_effort_sharding((8, 6), mesh=mesh).spec == P(("data", "model"), None)
    mesh = make_mesh({"model": 4}, {"stage": 2})
    assert best_effort_sharding((4, 2), mesh=mesh).spec == P("model", "stage")


@given(
    st.lists(st.sampled_from([0, 1, 2, 3, 4, 6, 8, 12]), max_size=4),
    st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=3),
)
def test_nothing_splits_more(shape, sizes):
    names = "abc"[: len(sizes)]
    layout = best_effort_sharding(shape, mesh=AbstractMesh(tuple(sizes), tuple(names)))
    layout.shard_shape(tuple(shape))  # divides
    used = {name for entry in layout.spec if entry for name in ((entry,) if isinstance(entry, str) else entry)}
    parts = math.prod(size for name, size in zip(names, sizes, strict=True) if name in used)
    assert parts == most_parts(shape, sizes)


def most_parts(shape, sizes) -> int:
    if not sizes:
        return 1
    first, *rest = sizes
    best = most_parts(shape, rest)
    for dim, size in enumerate(shape):
        if size and size % first == 0:
            cut = [*shape[:dim], size // first, *shape[dim + 1 :]]
            best = max(best, first * most_parts(cut, rest))
    return best


def test_no_mesh():
    with pytest.raises(ValueError) as error:
        best_effort_sharding((8,))
    assert str(error.value) == (
        "best_effort_sharding: there is no mesh. Pass mesh=..., or call it under `with haliax.set_mesh(mesh):`."
    )


# meshes ---------------------------------------------------------------------------------------------------------------


class Device:
    """A device of a machine with several slices."""

    platform, device_kind = "cpu", "cpu"

    def __init__(self, number, **places):
        self.id = number
        self.process_index = 0
        vars(self).update(places)


@pytest.mark.parametrize(
    ("ici", "dcn", "names", "ids"),
    [
        ({"data": 8}, None, ("data",), range(8)),
        ({"data": -1, "model": 2}, {}, ("data", "model"), np.arange(8).reshape(4, 2)),
        ({"data": 2, "model": -1}, {"replica_dcn": 2}, ("replica_dcn", "data", "model"), np.arange(8).reshape(2, 2, 2)),
        ({"data": 2, "model": 2}, {"data": 2}, ("data", "model"), np.arange(8).reshape(4, 2)),
        ({"data": 2, "model": 2}, {"model": 2}, ("data", "model"), [[0, 1, 4, 5], [2, 3, 6, 7]]),
        ({}, {"data": 8}, ("data",), range(8)),
    ],
)
def test_meshes(ici, dcn, names, ids):
    mesh = make_mesh(ici, dcn)
    assert mesh.axis_names == names and set(mesh.axis_types) == {AxisType.Auto}
    assert np.array_equal(np.vectorize(lambda device: device.id)(mesh.devices), ids)


def test_types_and_devices():
    mesh = make_mesh({"data": 2, "model": 2}, devices=jax.devices()[4:], axis_types=(AxisType.Explicit, AxisType.Auto))
    assert mesh.axis_types == (AxisType.Explicit, AxisType.Auto)
    assert [device.id for device in mesh.devices.flat] == [4, 5, 6, 7]
    assert make_mesh({"data": 8}, axis_types=AxisType.Explicit).axis_types == (AxisType.Explicit,)
    assert make_mesh({}, devices=jax.devices()[:1]).devices.shape == ()


@pytest.mark.parametrize("attribute", ["slice_index", "process_index"])
def test_slices_are_those_of_the_devices(attribute):
    # the devices of a slice are not neighbours in the list
    devices = [Device(i, **{attribute: i % 2}) for i in range(8)]
    mesh = make_mesh({"data": 4}, {"slice": 2}, devices=devices)
    assert [[device.id for device in row] for row in mesh.devices] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    with pytest.raises(ValueError) as error:
        make_mesh({"data": 2}, {"slice": 4}, devices=devices)
    assert str(error.value) == "make_mesh: dcn_axes make 4 slices; the devices are in 2 (4 + 4)."


@pytest.mark.parametrize(
    ("ici", "dcn", "message"),
    [
        ({"data": 3}, None,
         "ici_axes are (data=3); expected a product of 8, the devices of a slice; one size may be -1."),
        ({"a": -1, "b": -1}, None,
         "ici_axes are (a=-1, b=-1); expected a product of 8, the devices of a slice; one size may be -1."),
        ({"a": 0}, None, "ici_axes are (a=0); expected a product of 8, the devices of a slice; one size may be -1."),
        ({"data": -1}, {"slice": 3}, "dcn_axes make 3 slices; the devices are in 1 (8)."),
        ({"data": 4}, {"slice": 0}, "dcn_axes make 0 slices; the devices are in 1 (8)."),
    ],
)  # fmt: skip
def test_messages(ici, dcn, message):
    with pytest.raises(ValueError) as error:
        make_mesh(ici, dcn)
    assert str(error.value) == f"make_mesh: {message}"
