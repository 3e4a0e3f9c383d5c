"""Layouts as people see them: tables, grids of devices, pictures."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P, SingleDeviceSharding

import haliax as hax
from haliax._src.shard_grid import shard_grid
from haliax.debug import plot_named_sharding, plot_shardings, visualize_named_sharding, visualize_shardings

NAMES, SHAPE = ("a", "b", "c"), (8, 4, 2)
POD = AbstractMesh((64, 64), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def on(mesh, *spec, **kwargs) -> hax.NamedArray:
    return hax.NamedArray(jax.device_put(jnp.ones(SHAPE), NamedSharding(mesh, P(*spec), **kwargs)), NAMES)


@pytest.fixture
def shown(capsys):
    """What was printed since the last call, without the first and the last line break."""
    return lambda: capsys.readouterr().out.rstrip("\n")


# which device holds which part

SPECS = [
    (),
    ("data",),
    ("model",),
    ("data", "model"),
    (None, "data", "model"),
    (("data", "model"),),
    (None, ("model",)),
    (("model", "data"), None, None),
]


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_the_grid_says_what_jax_says(spec, mesh):
    sharding = NamedSharding(mesh, P(*spec))
    grid, found = shard_grid(NAMES, SHAPE, sharding), {}
    for row, cells in zip(grid.rows, grid.cells, strict=True):
        for column, devices in zip(grid.columns, cells, strict=True):
            for device in devices:
                found[device] = ", ".join(sorted(filter(None, [*row.split(", "), column])))
    bounds = {
        device.id: ", ".join(f"{n} {i.start}:{i.stop}" for n, i in zip(NAMES, index, strict=True) if i != slice(None))
        for device, index in sharding.devices_indices_map(SHAPE).items()
    }
    assert found == bounds


ALONE = {
    "two axes": (
        lambda mesh: on(mesh, "data", "model"),
        """
float32[a=8, b=4, c=2]: a->data, b->model; 32 bytes on each device
         b 0:2  b 2:4
  a 0:2  CPU 0  CPU 1
  a 2:4  CPU 2  CPU 3
  a 4:6  CPU 4  CPU 5
  a 6:8  CPU 6  CPU 7
""",
    ),
    "last axis": (
        lambda mesh: on(mesh, None, None, "model"),
        """
float32[a=8, b=4, c=2]: c->model; 128 bytes on each device
  c 0:1        c 1:2
  CPU 0,2,4,6  CPU 1,3,5,7
""",
    ),
    "raw": (
        lambda mesh: on(mesh, "data").array,
        """
float32[8, 4, 2]: dim0->data; 64 bytes on each device
  dim0 0:2  CPU 0,1
  dim0 2:4  CPU 2,3
  dim0 4:6  CPU 4,5
  dim0 6:8  CPU 6,7
""",
    ),
    "copies in another memory": (
        lambda mesh: on(mesh, memory_kind="pinned_host"),
        """
float32[a=8, b=4, c=2]: replicated; 256 bytes on each device in pinned_host
  CPU 0,1,..,7
""",
    ),
    "committed to a device": (
        lambda mesh: hax.NamedArray(jax.device_put(jnp.ones(2), jax.devices()[3]), "a"),
        "\nfloat32[a=2]: device 3; 8 bytes\n  CPU 3\n",
    ),
    "uncommitted": (lambda mesh: hax.ones({"a": 0}), "\nfloat32[a=0]: device 0 (uncommitted); 0 bytes\n  CPU 0\n"),
    "scalar": (lambda mesh: hax.named(1.0, ()), "\nfloat32[]: device 0 (uncommitted); 4 bytes\n  CPU 0\n"),
    "key": (lambda mesh: jax.random.key(0), "\nkey<fry>[]: device 0 (uncommitted); 8 bytes\n  CPU 0\n"),
    "numpy": (lambda mesh: hax.NamedArray(np.ones(3, np.int8), "a"), "\nint8[a=3]: on the host\n"),
    "numpy scalar": (lambda mesh: np.float32(1), "\nfloat32[]: on the host\n"),
    "shape": (lambda mesh: jax.ShapeDtypeStruct((3,), jnp.bfloat16), "\nbfloat16[3]: not known\n"),
    "no array": (lambda mesh: {"n": 3, "none": None, "gone": hax.NamedArray(None, "a")}, "\nno arrays\n"),
    "names that do not fit": (
        lambda mesh: jax.tree.map(lambda x: x[0, 0], on(mesh, None, None, "model")),
        """
float32[2] as [a, b, c]: dim0->model; 4 bytes on each device
  dim0 0:1     dim0 1:2
  CPU 0,2,4,6  CPU 1,3,5,7
""",
    ),
}


@pytest.mark.parametrize("case", ALONE)
def test_one_array(case, mesh, shown):
    make, expected = ALONE[case]
    assert visualize_shardings(make(mesh)) is None
    assert shown() == expected.strip()


TABLE = """
mesh 1: data=4, model=2; explicit data, model; devices 0 1 2 3 4 5 6 7
mesh 2: data=4, model=2; devices 0 1 2 3 4 5 6 7
array         type                    sharding                      layout             bytes/device  memory
['explicit']  float32[a=8, b=4, c=2]  P(None, 'model') on mesh 1    b->model           128
['host']      float64[3]              on the host                   -                  -
['nested'].b  float32[a=2]            device 0 (uncommitted)        -                  8
['nested'].w  float32[a=8, b=4, c=2]  P('data', 'model') on mesh 2  a->data, b->model  32
['pinned']    float32[a=8, b=4, c=2]  P('data') on mesh 2           a->data            64            pinned_host
['raw']       float32[8, 4, 2]        P() on mesh 2                 replicated         256
total                                                                                  488
"""


class Layer(eqx.Module):
    b: hax.NamedArray
    w: hax.NamedArray
    size: int


def test_a_tree(mesh, explicit_mesh, shown):
    tree = {
        "nested": Layer(hax.ones({"a": 2}), on(mesh, "data", "model"), 3),
        "raw": on(mesh).array,
        "host": np.ones(3),
        "pinned": on(mesh, "data", memory_kind="pinned_host"),
        "explicit": on(explicit_mesh, None, "model"),
    }
    visualize_shardings(tree)
    assert shown() == TABLE.strip()


def test_a_deleted_array(mesh, shown):
    x = on(mesh, "data")
    x.array.delete()
    visualize_shardings([x])
    assert "  P('data') (deleted)  a->data  64" in shown()


def test_shapes_on_a_mesh_bigger_than_the_machine(shown):
    w = jax.ShapeDtypeStruct((64, 128), jnp.float32, sharding=NamedSharding(POD, P("data", "model")))
    visualize_shardings({"w": hax.NamedArray(w, ("a", "b"))})
    assert (
        shown()
        == """
mesh: data=64, model=64; 4096 abstract devices
array  type                  sharding            layout             bytes/device
['w']  float32[a=64, b=128]  P('data', 'model')  a->data, b->model  8
total                                                               8
""".strip()
    )
    visualize_shardings(hax.NamedArray(w, ("a", "b")))
    lines = shown().splitlines()
    assert len(lines) == 18
    assert lines[2] == (
        "  a 0:1    place 0     place 1     place 2     place 3     place 4     place 5     ...  place 63"
    )
    assert lines[-2].split() == ["..."] * 9
    assert lines[-1].endswith("place 4037  ...  place 4095")


# inside programs


def test_a_program_says_it_when_it_is_compiled(mesh, shown):
    @jax.jit
    def program(x):
        y = hax.shard(x * 2, {"c": "model"}, mesh)
        visualize_shardings({"y": y, "key": jax.random.split(jax.random.key(0), 8), "n": 3})
        visualize_shardings(x.array)
        return x

    x = on(mesh, "data")
    program.lower(x)
    assert shown() == ""
    program(x)
    table, grid = shown().split("\nfloat32", 1)
    assert [line.split()[0] for line in table.splitlines()] == ["mesh:", "array", "['key']", "['y']", "total"]
    assert "['y']    float32[a=8, b=4, c=2]" in table and "c->model" in table
    assert grid.startswith("[8, 4, 2]: dim0->data; 64 bytes on each device\n  dim0 0:2  CPU 0,1\n")
    program(x)
    assert shown() == ""
    program(on(mesh, "model"))
    assert "dim0->model" in shown()


def test_a_program_on_explicit_axes_knows_it_at_once(explicit_mesh, shown):
    jax.jit(lambda x: visualize_shardings([x, x.sum("a")])).lower(on(explicit_mesh, "data"))
    assert (
        shown()
        == """
mesh: data=4, model=2; explicit data, model; 8 abstract devices
array  type                    sharding   layout      bytes/device
[0]    float32[a=8, b=4, c=2]  P('data')  a->data     64
[1]    float32[b=4, c=2]       P()        replicated  32
total                                                 96
""".strip()
    )


def test_axes_that_do_not_divide_inside_a_program(mesh, shown):
    @jax.jit
    def program(x):
        x = jax.lax.with_sharding_constraint(x[:5], NamedSharding(mesh, P("data")))
        visualize_shardings(x)
        return x.sum()

    program(jnp.ones(8))
    assert (
        shown()
        == """
float32[5]: dim0->data; 8 bytes on each device
  dim0 0:2  dim0 2:4  dim0 4:5  dim0 5:5
  CPU 0,1   CPU 2,3   CPU 4,5   CPU 6,7
""".strip()
    )


def test_other_transformations(mesh, shown):
    x = on(mesh, "data")
    hax.vmap(lambda x: visualize_shardings([x]), "b")(x)
    assert "mapped by vmap" in shown()
    jax.vmap(lambda x: jax.grad(lambda y: visualize_shardings(y) or y.sum())(x))(x.array)
    assert shown() == "float32[4, 2]: mapped by vmap"
    jax.grad(lambda x: visualize_shardings(x) or x.sum().array)(x)
    assert shown().startswith("float32[a=8, b=4, c=2]: a->data; 64 bytes on each device\n")
    inside = jax.shard_map(lambda x: visualize_shardings([x]) or x, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    jax.jit(inside)(x.array)
    assert shown().startswith("inside shard_map over data, model: the parts of one device\n")


def test_no_tracer_is_kept(mesh, shown):
    @jax.jit
    def program(x):
        jax.vmap(lambda row: visualize_shardings({"mapped": row, "whole": x}) or row)(x)
        return x

    with jax.checking_leaks():
        program(on(mesh, "data").array)
    assert "['mapped']  float32[4, 2]     mapped by vmap  -           -\n" in shown()


# axes and a sharding


@pytest.mark.parametrize("form", ["sharding", "spec", "mapping", "abstract"])
def test_named_shardings(form, mesh, shown):
    axes = {"head": 2, "batch": 8} if form == "mapping" else (hax.Axis("head", 2), hax.Axis("batch", 8))
    spec = P("model", "data")
    abstract = NamedSharding(mesh.abstract_mesh, spec)
    forms = {"sharding": NamedSharding(mesh, spec), "spec": spec, "mapping": {"batch": "data", "head": "model"}}
    with jax.set_mesh(mesh):
        visualize_named_sharding(axes, forms.get(form, abstract))
    heading, *lines = shown().splitlines()
    unit = "place" if form == "abstract" else "CPU"
    assert heading == "head->model, batch->data"
    assert lines[0].split() == ["batch", "0:2", "batch", "2:4", "batch", "4:6", "batch", "6:8"]
    assert lines[1].split() == ["head", "0:1", unit, "0", unit, "2", unit, "4", unit, "6"]
    assert lines[2].split() == ["head", "1:2", unit, "1", unit, "3", unit, "5", unit, "7"]


def test_named_shardings_of_one_axis_and_of_none(mesh, shown):
    visualize_named_sharding(hax.Axis("batch", 8), NamedSharding(mesh, P("model")))
    assert shown() == "batch->model\n  batch 0:4    batch 4:8\n  CPU 0,2,4,6  CPU 1,3,5,7"
    visualize_named_sharding((), SingleDeviceSharding(jax.devices()[2]))
    assert shown() == "device 2\n  CPU 2"


ERRORS = [
    (
        {"a": 3},
        lambda mesh: NamedSharding(mesh, P("data")),
        "the array: axis a=3 can not be split over mesh axes (data=4); expected a multiple of 4. "
        "The nearest sizes that fit are 4 or 8; see haliax.partitioning.round_axis_for_partitioning.",
    ),
    (
        {"a": 4},
        lambda mesh: NamedSharding(mesh, P("data", "model")),
        "P('data', 'model') has 2 entries; expected at most one for each axis of (a).",
    ),
    (
        ("a", "b"),
        lambda mesh: NamedSharding(mesh, P()),
        "the axes are a, b; expected a size for each. Pass Axis objects, or a mapping from names to sizes.",
    ),
    ({"a": 4}, lambda mesh: 3, "sharding is an int; expected a Sharding, a PartitionSpec or a mapping."),
    (
        {"a": 4},
        lambda mesh: {"a": "data"},
        "there is no mesh. Pass a NamedSharding, or call it under `with haliax.set_mesh(mesh):`.",
    ),
]


@pytest.mark.parametrize("form", [{"a": "dta"}, P("dta")], ids=type)
def test_mesh_axes_that_do_not_exist(form, mesh):
    with jax.set_mesh(mesh), pytest.raises(ValueError) as e:
        visualize_named_sharding({"a": 8}, form)
    assert str(e.value) == (
        "visualize_named_sharding: axis 'a' is mapped to mesh axis 'dta'; the mesh has data=4, model=2. "
        "Did you mean 'data'?"
    )


def test_axes_that_are_none(mesh):
    with pytest.raises(TypeError, match=r"^visualize_named_sharding: the axes are a NamedArray; "):
        visualize_named_sharding(on(mesh), P())


@pytest.mark.parametrize(("axes", "sharding", "message"), ERRORS, ids=range(len(ERRORS)))
@pytest.mark.parametrize("op", [visualize_named_sharding, plot_named_sharding], ids=lambda op: op.__name__)
def test_named_shardings_that_make_no_sense(op, axes, sharding, message, mesh):
    with pytest.raises((ValueError, TypeError)) as e:
        op(axes, sharding(mesh))
    assert str(e.value) == f"{op.__name__}: {message}"


# pictures


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_pictures(mesh):
    tree = {"x": on(mesh, "data", "model"), "y": hax.ones({"a": 2}), "z": np.ones(3), "n": 1, "all": on(mesh)}
    figure = plot_shardings(tree)
    everywhere, x, y = figure.axes
    assert x.get_title() == "['x']  float32[a=8, b=4, c=2]\na->data, b->model"
    assert [label.get_text() for label in x.get_xticklabels()] == ["b 0:2", "b 2:4"]
    assert [label.get_text() for label in x.get_yticklabels()] == ["a 0:2", "a 2:4", "a 4:6", "a 6:8"]
    assert texts(x) == [f"CPU {i}" for i in range(8)]
    assert (y.get_title(), texts(y)) == ("['y']  float32[a=2]\ndevice 0 (uncommitted)", ["CPU 0"])
    assert texts(everywhere) == ["CPU 0,1,..,7"] and not everywhere.get_xticklabels()


def test_pictures_are_written(mesh, tmp_path):
    plot_shardings(on(mesh, "data")).savefig(tmp_path / "one.png")
    plot_named_sharding({"a": 640, "b": 6400}, NamedSharding(POD, P("data", "model"))).savefig(tmp_path / "pod.svg")
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("one.png", "pod.svg"))


@pytest.mark.parametrize("tree", [{}, 3, np.ones(2), jax.ShapeDtypeStruct((2,), jnp.float32)], ids=type)
def test_nothing_to_draw(tree):
    with pytest.raises(ValueError) as e:
        plot_shardings(tree)
    assert str(e.value) == (
        "plot_shardings: no array has a known sharding; expected at least one."
        " Inside jax.jit use visualize_shardings, which waits for the compiler."
    )


def test_without_matplotlib(mesh, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError) as e:
        plot_shardings(hax.ones({"a": 2}))
    assert str(e.value) == ("plot_shardings: matplotlib is not installed. Install it with pip install 'haliax[plot]'.")
