"""`f.explain`: what a program does with layouts, told without running it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

import haliax as hax
from haliax._src.hlo_collectives import Collective, find_collectives
from haliax.partitioning import forced_host_shim
from helpers import count_traces
from meshes import ELSEWHERE, MAPPING, NAMES, PLACES, VALUES, make_mesh, on

EXPLICIT = (AxisType.Explicit, AxisType.Explicit)


def shape(sharding=None, sizes=(8, 4), names=NAMES):
    return hax.NamedArray(jax.ShapeDtypeStruct(sizes, jnp.float32, sharding=sharding), names)


def weights(mesh, *spec):
    return hax.NamedArray(jax.device_put(np.ones((4, 6), np.float32), NamedSharding(mesh, P(*spec))), ("embed", "out"))


def trimmed(spec):
    """A PartitionSpec without the dimensions at its end that are not split."""
    entries = list(spec)
    while entries and entries[-1] is None:
        entries.pop()
    return P(*entries)


def predict(model, x, scale):
    return {"y": hax.dot(x, model["w"], axis="embed") * scale, "w": model["w"].array}


REPORT = """
named_jit(predict)
mesh: data=4, model=2; devices 0 1 2 3 4 5 6 7
axis mapping: batch->data, embed->model
input mapping: none, so arguments keep their shardings
forced-host shim: not active

argument    axes              dtype    from                                                   to          bytes/device  verdict    why
model['b']  (3,)              float32  -                                                      -           0             unused     the function does not use it
model['w']  embed=4, out=6    float32  P('model')                                             P('model')  48            preserved  no input mapping
x           batch=8, embed=4  float32  P('data') on data=4, model=2; devices 7 6 5 4 3 2 1 0  P('data')   32            moved      lives in another device order
total                                                                                                     80

result       axes            dtype    layout      bytes/device  verdict      why
result['w']  (4, 6)          float32  P('model')  48            placed       chosen by the compiler
result['y']  batch=8, out=6  float32  P('data')   48            constrained  axis mapping
total                                             96

collective  count  bytes/device
all-reduce  1      48

traces: 2; programs compiled for calls: 1
between the last two signatures:
  scale: static value was 2, now 3
"""  # noqa: E501


def test_the_report(mesh):
    f = hax.named_jit(predict, MAPPING, mesh=mesh)
    model = {"w": weights(mesh, "model"), "b": jnp.ones(3)}
    f(model, on(mesh, "data"), 2)
    report = f.explain(model, PLACES["permuted"](), 3)
    assert str(report) == repr(report) == REPORT.strip()


def test_its_attributes(mesh):
    report = hax.named_jit(predict, MAPPING, mesh=mesh).explain({"w": weights(mesh)}, on(mesh, "data", "model"), 2)
    _, x = report.arguments
    assert (x.path, x.axes, x.shape, x.dtype) == ("x", hax.make_axes(batch=8, embed=4), (8, 4), "float32")
    assert (x.spec_in, x.spec_out, x.nbytes, x.bytes_per_device) == (P("data", "model"), P("data", "model"), 128, 16)
    assert (x.verdict, x.reason) == ("preserved", "no input mapping")
    w, y = report.results
    assert w.axes is None and y.axes == hax.make_axes(batch=8, out=6) and y.spec_in is None
    assert report.mesh is mesh and report.axis_mapping == MAPPING and report.input_mapping is None
    assert (report.name, report.shim_active, report.traces, report.changes) == ("predict", False, 1, None)


def test_html_is_escaped(mesh):
    f = hax.named_jit(lambda x: x["<b>&"], {"batch": "data"}, mesh=mesh)
    html = f.explain({"<b>&": on(mesh)})._repr_html_()
    assert "<b>" not in html and "<lambda>" not in html
    assert "<td>x[&#x27;&lt;b&gt;&amp;&#x27;]</td>" in html and "named_jit(&lt;lambda&gt;)<br>" in html
    assert "<th>argument</th>" in html and html.count("<table>") == html.count("</table>") == 2


# what becomes of an argument -----------------------------------------------------------------------------------------

INPUTS = {"batch": "model"}

# (where the argument is, options of named_jit, verdict, reason, its spec in the program)
VERDICTS = {
    "kept": ("in place", {}, "preserved", "no input mapping", P("data")),
    "uncommitted": ("uncommitted", {}, "placed", "uncommitted: chosen by the compiler", P("data", "model")),
    "numpy": ("host", {}, "placed", "uncommitted: chosen by the compiler", P("data", "model")),
    "permuted": ("permuted", {}, "moved", "lives in another device order", P("data")),
    "half": ("half", {}, "moved", "lives on some of the devices", P("data")),
    "one device": ("one device", {}, "moved", "lives on one device", P("data", "model")),
    "explicit": ("explicit", {}, "moved", "lives on a mesh with other axis types", P("data")),
    "refused": (
        "permuted",
        {"on_mesh_mismatch": "error"},
        "refused",
        "lives in another device order, and on_mesh_mismatch is 'error'",
        P("data"),
    ),
    "mapped": ("in place", {"in_axis_resources": INPUTS}, "moved", "input mapping", P("model")),
    "mapped from elsewhere": ("permuted", {"in_axis_resources": INPUTS}, "moved", "input mapping", P("model")),
    "mapped from nowhere": ("host", {"in_axis_resources": INPUTS}, "placed", "input mapping", P("model")),
    "as mapped": (
        "in place",
        {"in_axis_resources": {"batch": "data"}},
        "preserved",
        "has the layout of the input mapping",
        P("data"),
    ),
}


@pytest.mark.parametrize(("place", "options", "verdict", "reason", "spec"), VERDICTS.values(), ids=VERDICTS)
def test_verdicts_on_arguments(mesh, place, options, verdict, reason, spec):
    (x,) = hax.named_jit(lambda x: x + 1, MAPPING, mesh=mesh, **options).explain(PLACES[place]()).arguments
    assert (x.verdict, x.reason, trimmed(x.spec_out)) == (verdict, reason, spec)
    assert x.bytes_per_device == 128 // np.prod([mesh.shape[axis] for axis in spec])


@pytest.mark.parametrize("place", ELSEWHERE)
@pytest.mark.parametrize("inputs", [None, {"batch": "data"}])
def test_what_it_says_is_what_a_call_does(mesh, place, inputs):
    """The layout told is the one that the array then has inside the program."""
    f = hax.named_jit(lambda x: x, mesh=mesh, in_axis_resources=inputs, on_mesh_mismatch="move")
    (told,) = f.explain(PLACES[place]()).arguments
    assert f(PLACES[place]()).array.sharding.is_equivalent_to(told.after, 2)


SHAPES = {
    "without a sharding": (None, {}, "placed", "a shape without a sharding: axis mapping", P("data", "model")),
    "mapped": (None, {"in_axis_resources": INPUTS}, "placed", "input mapping", P("model")),
    "with one": (P("model"), {}, "preserved", "no input mapping", P("model")),
    "moved": (P("data"), {"in_axis_resources": INPUTS}, "moved", "input mapping", P("model")),
}


@pytest.mark.parametrize(("spec", "options", "verdict", "reason", "expected"), SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("kind", ["concrete", "abstract"])
def test_verdicts_on_shapes(mesh, kind, spec, options, verdict, reason, expected):
    mesh = mesh if kind == "concrete" else mesh.abstract_mesh
    x = shape(None if spec is None else NamedSharding(mesh, spec))
    (x,) = hax.named_jit(lambda x: x + 1, MAPPING, mesh=mesh, **options).explain(x).arguments
    assert (x.verdict, x.reason, trimmed(x.spec_out)) == (verdict, reason, expected)


def test_the_shim(mesh):
    with forced_host_shim("on"):
        report = hax.named_jit(lambda x: x + 1, MAPPING, mesh=mesh).explain(on(mesh))
    assert report.shim_active and report.arguments[0].reason == "axis mapping (forced-host shim)"
    assert "forced-host shim: active, so the axis mapping lays out the arguments too" in str(report)


def test_raw_arrays_under_an_input_mapping(mesh):
    f = hax.named_jit(lambda x: x + 1, in_axis_resources=MAPPING, mesh=mesh)
    (x,) = f.explain(on(mesh, "data").array).arguments
    assert (x.verdict, x.reason) == ("preserved", "raw arrays keep their shardings")


def test_arrays_that_are_not_used(mesh):
    f = hax.named_jit(lambda x, y: x + 1, mesh=mesh)
    assert [a.verdict for a in f.explain(on(mesh), PLACES["permuted"]()).arguments] == ["preserved", "unused"]
    f = hax.named_jit(lambda x, y: x + 1, mesh=mesh, keep_unused=True)
    assert [a.verdict for a in f.explain(on(mesh), on(mesh)).arguments] == ["preserved", "preserved"]


def test_without_a_mesh():
    report = hax.named_jit(lambda x: x + 1).explain(PLACES["one device"]())
    assert report.mesh is None and [a.verdict for a in (*report.arguments, *report.results)] == ["preserved", "placed"]
    assert "mesh: none" in str(report) and str(report).count("device 3") == 3


def test_traced_arguments(mesh):
    f, reports = hax.named_jit(lambda x: x + 1, MAPPING, mesh=mesh), []

    def around(x):
        reports.append(f.explain(x))
        return x

    jax.jit(around)(on(mesh))
    assert reports[0].arguments[0].reason == "is traced by a transformation around this call"


def test_typed_keys_and_static_values(mesh):
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), NamedSharding(mesh, P("data")))
    report = hax.named_jit(lambda keys, n: (n, keys, None), MAPPING, mesh=mesh).explain(keys, 3)
    (key,), (result,) = report.arguments, report.results
    assert (key.dtype, key.nbytes, key.bytes_per_device) == ("key<fry>", 64, 16)
    assert (result.path, result.bytes_per_device) == ("result[1]", 16)


def test_a_reference():
    def increment(ref):
        ref[...] += 1
        return ref[...]

    report = hax.named_jit(increment).explain(jax.new_ref(jnp.ones(3)))
    assert report.arguments[0].bytes_per_device == 12 and report.results[0].after is None


def test_a_method_and_the_arrays_of_the_function(mesh):
    class Model(eqx.Module):
        w: hax.NamedArray

        @hax.named_jit
        def method(self, x):
            return x * self.w

        def __call__(self, x):
            return x * self.w

    model = Model(on(mesh, "data"))
    assert [a.path for a in model.method.explain(on(mesh)).arguments] == ["self.w", "x"]
    assert [a.path for a in hax.named_jit(model).explain(on(mesh)).arguments] == ["fn.w", "x"]


# results -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "verdict", "reason", "spec"),
    [
        ({}, "placed", "chosen by the compiler", P("data")),
        ({"axis_resources": MAPPING}, "constrained", "axis mapping", P("data", "model")),
        ({"out_axis_resources": INPUTS}, "constrained", "output mapping", P("model")),
        ({"axis_resources": MAPPING, "out_axis_resources": INPUTS}, "constrained", "output mapping", P("model")),
    ],
)
@pytest.mark.parametrize("abstract", [False, True])
def test_verdicts_on_results(mesh, abstract, options, verdict, reason, spec):
    mesh = mesh.abstract_mesh if abstract else mesh
    f = hax.named_jit(lambda x: x + 1, mesh=mesh, **options)
    (result,) = f.explain(shape(NamedSharding(mesh, P("data")))).results
    assert (result.verdict, result.reason) == (verdict, reason)
    known = not abstract or verdict == "constrained"
    assert trimmed(result.spec_out) == spec if known else result.after is None


@pytest.mark.parametrize("abstract", [False, True])
def test_explicit_axes(abstract):
    mesh = make_mesh(types=EXPLICIT)
    mesh = mesh.abstract_mesh if abstract else mesh
    report = hax.named_jit(lambda x: x.array + 1, mesh=mesh).explain(shape(NamedSharding(mesh, P("data", None))))
    (result,) = report.results
    assert (result.spec_out, result.bytes_per_device) == (P("data", None), 32)
    assert (result.verdict, result.reason) == ("placed", "by its type (explicit axes)")
    assert ("explicit data, model" in str(report)) and (report.collectives is None) == abstract


# nothing happens -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_moved_donated_or_run(mesh, place):
    ran = []
    f = hax.named_jit(lambda x: jax.debug.callback(lambda: ran.append(1)) or x + 1, mesh=mesh, donate_args=True)
    x = PLACES[place]()
    with jax.transfer_guard("disallow_explicit"):
        f.explain(x)
    jax.effects_barrier()
    assert ran == [] and np.array_equal(np.asarray(x), VALUES)


def test_it_costs_no_trace_of_its_own(mesh):
    f = hax.named_jit(count_traces(lambda x: x + 1), MAPPING, mesh=mesh)
    before = f.explain(on(mesh, "data"))
    f(on(mesh, "data"))
    after = f.explain(on(mesh, "data"))
    assert (before.traces, after.traces, f._fn.traces) == (1, 1, 1)
    assert (before.compilations, after.compilations) == (0, 1)


# collectives ---------------------------------------------------------------------------------------------------------


def replicate(x):
    return hax.shard(x, {})


# (function, spec of x, mapping, collectives: kind, count, bytes on a device)
PROGRAMS = {
    "none": (lambda x: x + 1, ("data",), None, []),
    "contraction": (lambda x: hax.dot(x, x, axis="embed"), (None, "model"), {}, [("all-reduce", 1, 32)]),
    "sum": (lambda x: x.sum("batch"), ("data",), {}, [("all-reduce", 1, 16)]),
    "two sums": (lambda x: x.sum("batch").sum(), ("data", "model"), {}, [("all-reduce", 2, 12)]),
    "gather": (replicate, ("data",), None, [("all-gather", 1, 128)]),
    "permute": (lambda x: hax.roll(x, 1, "batch"), ("data",), {"batch": "data"}, [("collective-permute", 1, 16)]),
}


@pytest.mark.parametrize(("fn", "spec", "mapping", "expected"), PROGRAMS.values(), ids=PROGRAMS)
def test_collectives(mesh, fn, spec, mapping, expected):
    report = hax.named_jit(fn, mapping, mesh=mesh).explain(on(mesh, *spec))
    assert [(c.kind, c.count, c.bytes) for c in report.collectives] == expected
    assert ("collectives: none" in str(report)) == (not expected)


LINES = {
    "sync": ("%r.1 = f32[2,6]{1,0} all-reduce(%dot), to_apply=%add", ("all-reduce", 48)),
    "tuple": ("%r = (f32[2]{0:T(8,128)(2,1)}, /*index=1*/f32[]) all-reduce(%a, %b)", ("all-reduce", 12)),
    "root": ("ROOT %g = bf16[8]{0} all-gather(%p), dimensions={0}", ("all-gather", 16)),
    "start": ("%g = (f32[2]{0}, f32[8]{0}) all-gather-start(%p)", None),
    "done": ("%g = f32[8]{0} all-gather-done(%s)", ("all-gather", 32)),
    "small": ("%t = (pred[4], s4[3]{0:E(4)}) all-to-all(%a, %b)", ("all-to-all", 6)),
    "odd dtypes": ("s = (f8e4m3fn[4], c128[1], token[]) reduce-scatter(a)", ("reduce-scatter", 20)),
    "scalar": ("%c = u32[] collective-permute(%a)", ("collective-permute", 4)),
    "an operand": ("%f = f32[4] fusion(%all-reduce.5), calls=%all-reduce", None),
    "a name": ('%f = f32[4] add(%a, %b), metadata={op_name="x = f32[] all-reduce("}', None),
    "element": ("%e = f32[2] get-tuple-element(%all-reduce.5), index=0", None),
}


@pytest.mark.parametrize(("line", "expected"), LINES.values(), ids=LINES)
def test_lines_of_hlo(line, expected):
    found = find_collectives(f"HloModule m\n\nENTRY %main {{\n  {line}\n}}\n")
    assert found == (() if expected is None else (Collective(expected[0], 1, expected[1]),))


# more devices than there are -----------------------------------------------------------------------------------------

POD = AbstractMesh((256, 16), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
POD_MAPPING = {"batch": "data", "mlp": "model"}


@pytest.mark.parametrize("types", [(AxisType.Auto,) * 2, EXPLICIT])
@pytest.mark.parametrize("place", ["in place", "explicit", "one device"])
def test_real_arrays_stand_for_their_shapes(types, place):
    """An array that is on this machine is shown where it would be on the large mesh, and lowers there."""
    mesh = AbstractMesh((2, 4), ("data", "model"), axis_types=types)
    f = hax.named_jit(lambda x: (x + 1).array, MAPPING, mesh=mesh)
    (x,) = f.explain(PLACES[place]()).arguments
    expected = (P("data", "model"), 16) if place == "one device" else (P("data"), 64)
    assert (trimmed(x.spec_out), x.bytes_per_device) == expected
    assert x.verdict == "moved" and "lives on another mesh" == x.reason
    assert '<["data"=2, "model"=4]>' in f.lower(PLACES[place]()).as_text()


def train_step(model, batch, rate):
    def loss(model):
        hidden = hax.dot(batch["x"], model["up"], axis="embed")
        y = hax.dot(hax.tanh(hidden), model["down"], axis="mlp").rename({"embed": "out"})
        return hax.mean(hax.square(y - batch["y"])).scalar()

    value, gradients = jax.value_and_grad(loss)(model)
    return value, jax.tree.map(lambda w, g: w - rate * g, model, gradients)


def test_a_train_step_over_4096_devices():
    model = {"up": shape(None, (512, 64), ("embed", "mlp")), "down": shape(None, (64, 512), ("mlp", "embed"))}
    batch = {"x": shape(None, (1024, 512)), "y": shape(None, (1024, 512), ("batch", "out"))}
    f = hax.named_jit(train_step, POD_MAPPING, mesh=POD)
    report = f.explain(model, batch, jax.ShapeDtypeStruct((), jnp.float32))
    assert {a.path: (a.spec_out, a.bytes_per_device) for a in report.arguments} == {
        "model['down']": (P("model", None), 8192),
        "model['up']": (P(None, "model"), 8192),
        "batch['x']": (P("data", None), 8192),
        "batch['y']": (P("data", None), 8192),
        "rate": (None, None),
    }
    assert {a.path: (a.spec_out, a.bytes_per_device) for a in report.results} == {
        "result[0]": (None, None),
        "result[1]['down']": (P("model", None), 8192),
        "result[1]['up']": (P(None, "model"), 8192),
    }
    assert report.collectives is None and report.traces == 1
    assert "mesh: data=256, model=16; 4096 abstract devices" in str(report)
    assert "at most 32,772" in str(report) and "collectives: not known" in str(report)
    assert "sdy.sharding" in f.lower(model, batch, jax.ShapeDtypeStruct((), jnp.float32)).as_text()
