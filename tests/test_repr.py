"""How named arrays are shown: repr, str and format, in modules, and by treescope."""

import functools
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import treescope
import wadler_lindig as wl
from hypothesis import given
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P, SingleDeviceSharding
from jaxtyping import TypeCheckError, jaxtyped

import haliax as hax
from strategies import named_arrays

A, B = hax.Axis("a", 2), hax.Axis("b", 3)
X = hax.named(jnp.arange(6.0).reshape(2, 3), (A, B))
SCALAR = hax.named(jnp.float32(2.5), ())
HUGE, FLAT = 10**5000, jnp.ones(2)
PAIR = jax.tree.structure(X)
ABSTRACT_MESH = AbstractMesh((4,), ("data",), axis_types=(AxisType.Auto,))


class Foreign:
    pass


class Mine(hax.NamedArray):
    __slots__ = ()


# without a mesh

SHOWN = [
    (X, "NamedArray(float32[a=2, b=3],\n  [[0., 1., 2.],\n   [3., 4., 5.]])"),
    (hax.ones({"a": 2, "b": 1, "c": 1}), "NamedArray(float32[a=2, b=1, c=1],\n  [[[1.]],\n\n   [[1.]]])"),
    (hax.named(jnp.arange(3), "b"), "NamedArray(int32[b=3], [0, 1, 2])"),
    (hax.named(jnp.arange(3) + 0.5j, "b"), "NamedArray(complex64[b=3], [0.+0.5j, 1.+0.5j, 2.+0.5j])"),
    (hax.full(B, 1.5, jnp.bfloat16), "NamedArray(bfloat16[b=3], [1.5, 1.5, 1.5])"),
    (hax.ones(A, jnp.float8_e4m3fn), "NamedArray(float8_e4m3fn[a=2], [1, 1])"),
    (hax.ones(A, jnp.int4), "NamedArray(int4[a=2], [1, 1])"),
    (hax.ones(A, bool), "NamedArray(bool[a=2], [ True,  True])"),
    (SCALAR, "NamedArray(float32[], 2.5)"),
    (hax.zeros(hax.Axis("a", 1000)), "NamedArray(float32[a=1000])"),
    (hax.zeros(hax.Axis("a", 0)), "NamedArray(float32[a=0], [])"),
    (hax.NamedArray(np.ones(2, np.int8), A), "NamedArray(int8[a=2], [1, 1])"),
    (hax.NamedArray(np.float32(2), ()), "NamedArray(float32[], 2.)"),
    (hax.NamedArray(jax.random.key(0), ()), "NamedArray(key<fry>[])"),
    (Mine(jnp.ones(2), "a"), "Mine(float32[a=2], [1., 1.])"),
]


@pytest.mark.parametrize(("x", "expected"), SHOWN, ids=range(len(SHOWN)))
def test_repr(x, expected):
    assert repr(x) == str(x) == f"{x}" == expected


@given(named_arrays())
def test_any_array_is_shown(x):
    described = ", ".join(f"{name}={size}" for name, size in x.shape.items())
    assert repr(x).startswith(f"NamedArray({x.dtype}[{described}],")
    assert not re.search(r"[ \t]$", repr(x), re.MULTILINE)


# what a pytree transformation may put in the place of the array

STAND_INS = [
    (jax.ShapeDtypeStruct((2, 3), jnp.float32), "NamedArray(float32[a=2, b=3])"),
    (
        jax.ShapeDtypeStruct((2, 3), jnp.float32, sharding=NamedSharding(ABSTRACT_MESH, P("data"))),
        "NamedArray(float32[a=2, b=3], sharding a->data)",
    ),
    (FLAT, "NamedArray(float32[2] as [a, b], [1., 1.])"),
    (X, "NamedArray(NamedArray(float32[a=2, b=3]) as [a, b])"),
    (None, "NamedArray(None as [a, b])"),
    (True, "NamedArray(True as [a, b])"),
    (3, "NamedArray(3 as [a, b])"),
    (HUGE, "NamedArray(int as [a, b])"),
    (0.5, "NamedArray(0.5 as [a, b])"),
    (P("data", None), "NamedArray(P('data') as [a, b])"),
    (NamedSharding(ABSTRACT_MESH, P(None, "data")), "NamedArray(P(None, 'data') as [a, b])"),
    ("text", "NamedArray(str as [a, b])"),
    (Foreign(), "NamedArray(Foreign as [a, b])"),
    (jnp.float32, "NamedArray(_ScalarMeta as [a, b])"),
    (np.ndarray, "NamedArray(type as [a, b])"),
]


@pytest.mark.parametrize(("value", "expected"), STAND_INS, ids=range(len(STAND_INS)))
def test_anything_in_place_of_the_array(value, expected):
    assert repr(PAIR.unflatten([value])) == expected


def test_traced_arrays():
    shown = []
    jax.jit(lambda x: shown.append(repr(x)))(X)
    jax.vmap(lambda x: shown.append(repr(x)))(X)
    jax.grad(lambda x: shown.append(repr(x)) or x.sum().array)(X)
    traced = "NamedArray(float32[a=2, b=3], traced)"
    assert shown == [traced, "NamedArray(float32[3] as [a, b], traced)", traced]


def test_traced_arrays_on_explicit_axes(explicit_mesh):
    shown = []
    x = hax.shard(hax.ones({"a": 8, "b": 4}), {"a": "data"}, explicit_mesh)
    jax.jit(lambda x: shown.append(repr(x)))(x)
    jax.jit(lambda x: shown.append(repr(x.sum("a"))))(x)
    assert shown == ["NamedArray(float32[a=8, b=4], traced, sharding a->data)", "NamedArray(float32[b=4], traced)"]


def test_deleted_and_donated_arrays():
    x, y = hax.ones(A), hax.ones(A)
    x.array.delete()
    hax.named_jit(lambda y: y + 1, donate_args=(True,))(y)
    assert repr(x) == repr(y) == "NamedArray(float32[a=2], deleted)"


def test_a_program_prints_its_values(capsys):
    @jax.jit
    def program(x, s):
        jax.debug.print("{x} {s:.3f}", x=x, s=s)

    program(hax.ones(A), SCALAR)
    jax.effects_barrier()
    assert capsys.readouterr().out == "NamedArray(float32[a=2], [1., 1.]) 2.500\n"


# on a mesh

LAYOUTS = [
    (("data", None, "model"), "a->data, c->model"),
    ((("data", "model"),), "a->data+model"),
    ((None, "model"), "b->model"),
]


@pytest.mark.parametrize(("spec", "expected"), LAYOUTS, ids=repr)
@pytest.mark.parametrize("kind", ["mesh", "explicit_mesh"])
def test_layouts(spec, expected, kind, request):
    mesh = request.getfixturevalue(kind)
    sharded = jax.device_put(jnp.ones((8, 4, 2)), NamedSharding(mesh, P(*spec)))
    assert repr(hax.NamedArray(sharded, ("a", "b", "c"))) == f"NamedArray(float32[a=8, b=4, c=2], sharding {expected})"


def test_copies_on_a_mesh_have_their_values_at_hand(mesh):
    loss = jax.device_put(SCALAR.array, NamedSharding(mesh, P()))
    assert repr(hax.named(loss, ())) == "NamedArray(float32[], sharding replicated, 2.5)"
    assert f"{hax.named(loss, ()):.3f}" == "2.500"


def test_memory_kinds(mesh):
    on_mesh = jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, P("data"), memory_kind="pinned_host"))
    alone = jax.device_put(jnp.ones(2), SingleDeviceSharding(jax.devices()[1], memory_kind="pinned_host"))
    abstract = jax.ShapeDtypeStruct(
        (2,), jnp.float32, sharding=NamedSharding(ABSTRACT_MESH, P(), memory_kind="pinned_host")
    )
    assert [repr(hax.NamedArray(x, ("a", "b")[: x.ndim])) for x in (on_mesh, alone, abstract)] == [
        "NamedArray(float32[a=8, b=4], sharding a->data, memory pinned_host)",
        "NamedArray(float32[a=2], memory pinned_host, [1., 1.])",
        "NamedArray(float32[a=2], sharding replicated, memory pinned_host)",
    ]


def test_partial_sums(explicit_mesh):
    sharding = NamedSharding(explicit_mesh, P(None, unreduced={"model"}))
    x = hax.NamedArray(jax.ShapeDtypeStruct((2,), jnp.float32, sharding=sharding), "a")
    assert repr(x) == "NamedArray(float32[a=2], sharding to be summed over model)"


# describe_array

DESCRIBED = [
    (X, "NamedArray(float32[a=2, b=3])"),
    (X.array, "Array(float32[2, 3])"),
    (np.ones((2, 0)), "ndarray(float64[2, 0])"),
    (jax.ShapeDtypeStruct((), jnp.bfloat16), "ShapeDtypeStruct(bfloat16[])"),
    (np.float32(3), "scalar(float32[])"),
    (3, "3"),
    ("text", "str"),
    (None, "None"),
]


@pytest.mark.parametrize(("x", "expected"), DESCRIBED, ids=range(len(DESCRIBED)))
def test_describe_array(x, expected):
    assert hax.debug.describe_array(x) == expected


def test_describe_array_in_a_trace_and_on_a_mesh(mesh):
    shown = []
    jax.jit(lambda x: shown.append(hax.debug.describe_array(x)))(X.array)
    shown.append(hax.debug.describe_array(jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, P(None, "model")))))
    assert shown == ["Array(float32[2, 3], traced)", "Array(float32[8, 4], sharding dim1->model)"]


# format

FORMATS = [
    (SCALAR, ".3f", "2.500"),
    (SCALAR, ">8", "     2.5"),
    (hax.named(3, ()), "04d", "0003"),
    (hax.named(3, ()), ".1f", "3.0"),
    (SCALAR.astype(jnp.bfloat16), ".2e", "2.50e+00"),
    (SCALAR.astype(jnp.complex64), ".1f", "2.5+0.0j"),
    (hax.NamedArray(np.float32(2.5), ()), ".3f", "2.500"),
]


@pytest.mark.parametrize(("x", "spec", "expected"), FORMATS, ids=range(len(FORMATS)))
def test_format(x, spec, expected):
    assert f"{x:{spec}}" == expected


def test_format_of_an_array():
    with pytest.raises(TypeError) as e:
        f"{X:.2f}"
    assert str(e.value) == "format: the array has a=2, b=3; expected no axes. Reduce it, or take one element."


def test_format_of_a_traced_array():
    with pytest.raises(TypeError) as e:
        jax.jit(lambda x: f"{x:.2f}")(SCALAR)
    assert str(e.value) == (
        "format: the array is traced, and has no value yet."
        ' Print it when the program runs: jax.debug.print("{x:.2f}", x=...).'
    )


# in modules


class Module(eqx.Module):
    weight: hax.NamedArray
    bias: hax.NamedArray | None


def test_modules():
    module = Module(X.astype(jnp.bfloat16), None)
    assert repr(module) == eqx.tree_pformat(module) == "Module(weight=NamedArray(bf16[a=2, b=3]), bias=None)"
    assert eqx.tree_pformat(module, short_arrays=False).startswith("Module(weight=NamedArray(bfloat16[a=2, b=3],\n")
    assert wl.pformat({"x": Mine(jnp.ones(2, jnp.uint8), "a")}) == "{'x': Mine(u8[a=2])}"
    assert wl.pformat([PAIR.unflatten([True])]) == "[NamedArray(True as [a, b])]"


def test_jaxtyping_shows_named_arrays():
    def refuse(fn):
        def wrong(*args):
            raise TypeError

        return functools.wraps(fn)(wrong)

    @jaxtyped(typechecker=refuse)
    def fn(x: hax.NamedArray) -> int:
        return 1

    with pytest.raises(TypeCheckError, match=r"Actual value: NamedArray\(f32\[a=2, b=3\]\)\n"):
        fn(X)


# treescope

pytestmark = pytest.mark.filterwarnings("ignore:The chararray class is deprecated")  # treescope looks through numpy

RENDERED = [
    (X, "<NamedArray float32[a=2, b=3] ≈2.5 ±1.7 [≥0.0, ≤5.0] zero:1 nonzero:5>"),
    (hax.ones(A, jnp.int4), "<NamedArray int4[a=2] [≥1, ≤1] nonzero:2>"),
    (hax.ones(A, bool), "<NamedArray bool[a=2] true:2>"),
    (hax.zeros({"a": 0, "b": 2}), "<NamedArray float32[a=0, b=2]>"),
    (hax.NamedArray(jax.random.key(0), ()), "<NamedArray key<fry>[]>"),
    (hax.NamedArray(np.ones(2), "a"), "<NamedArray float64[a=2]>"),
    *[
        (PAIR.unflatten([value]), f"<NamedArray {shown[11:-1]}>")
        for value, shown in STAND_INS
        if value is not HUGE and value is not FLAT
    ],
]


@pytest.mark.parametrize(("x", "expected"), RENDERED, ids=range(len(RENDERED)))
def test_treescope_text(x, expected):
    wide = [x, *["other leaves, so that the array is shown on one line"] * 20]
    assert treescope.render_to_text(wide).splitlines()[1] == f"  {expected},"


def test_treescope_unfolds_the_array():
    assert treescope.render_to_text(SCALAR) == "# NamedArray float32[]\n  <jax.Array(2.5, dtype=float32)>"
    empty = hax.NamedArray(np.ones((0, 2)), ("a", "b"))
    assert treescope.render_to_text(empty) == "# NamedArray float64[a=0, b=2]\n  array([], shape=(0, 2), dtype=float64)"


def test_treescope_shows_layouts_and_traces(mesh):
    shown = []
    x = hax.shard(hax.ones({"a": 8}), {"a": "data"}, mesh)
    jax.jit(lambda x: shown.append(treescope.render_to_text([x])))(x)
    assert "NamedArray float32[a=8], sharding a->data" in treescope.render_to_text([x])
    assert "NamedArray float32[a=8], traced" in shown[0]


def test_treescope_html():
    module = Module(X, None)
    assert "NamedArray float32[a=2, b=3]" in treescope.render_to_html(module, compressed=False)


@pytest.mark.parametrize("array", [X.array, np.ones((2, 3))], ids=type)
def test_treescope_visualises_arrays(array):
    with treescope.active_autovisualizer.set_scoped(treescope.ArrayAutovisualizer()):
        html = treescope.render_to_html([PAIR.unflatten([array])], compressed=False)
    assert '"label": "a: 2"' in html and '"label": "b: 3"' in html


@pytest.mark.parametrize(
    "array", [None, 1, jnp.ones(3), jnp.ones((0, 3)), jax.random.split(jax.random.key(0))], ids=type
)
def test_treescope_leaves_out_what_it_can_not_draw(array):
    with treescope.active_autovisualizer.set_scoped(treescope.ArrayAutovisualizer()):
        assert '"label": "a: ' not in treescope.render_to_html([PAIR.unflatten([array])], compressed=False)


def labels(figure) -> list[str]:
    return re.findall(r'"label": "(.*?)"', treescope.render_to_text(figure))


def test_treescope_draws_by_name(mesh):
    x = hax.ones({"a": 8, "b": 4, "c": 2})
    mask = hax.named(jnp.array([[True, False]] * 4).T, ("c", "b"))
    figure = treescope.render_array(x, rows=["c", "a"], columns=["b"], valid_mask=mask)
    assert labels(figure) == ["b: 4", "c: 2", "a: 8"]
    sharded = hax.shard(x, {"a": "data"}, mesh)
    assert labels(treescope.render_array_sharding(sharded, rows=["a"])) == ["b: 4/1", "c: 2/1", "a: 8/4"]
