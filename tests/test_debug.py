"""diagnose_common_issues: each kind of mistake, and modules in which there is none."""

import dataclasses
import functools
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import NamedSharding, PartitionSpec as P

import haliax as hax
from haliax.debug import ModuleProblems, Problem, diagnose_common_issues

# Equinox warns about the plainest of these mistakes
pytestmark = pytest.mark.filterwarnings("ignore:A JAX array is being set as static")

A, B = hax.Axis("a", 2), hax.Axis("b", 3)


class Module(eqx.Module):
    x: object
    y: object = None
    s: object = eqx.field(static=True, default=None)

    def method(self):
        return self.x


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Registered:
    x: object
    s: object = dataclasses.field(metadata={"static": True}, default=None)


class Plain:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Slotted:
    __slots__ = ("other", "w")

    def __init__(self, w):
        self.w = w


@dataclasses.dataclass
class Unregistered:
    w: object


def cyclic() -> Plain:
    plain = Plain()
    plain.itself = [plain]
    return plain


def closure(array):
    return lambda x: x + array


def donated():
    x = jnp.ones(2)
    x.delete()
    return x


def at(device: int):
    return jax.device_put(jnp.ones(3), jax.devices()[device])


ONE = hax.ones(A)
RAW = jnp.ones(3)
KEY = jax.random.key(0)
MISFIT = jax.tree.unflatten(jax.tree.structure(ONE), [jnp.ones((2, 3))])

SAME = "the same array, {}, which an update makes {} arrays that differ. "
SAME += "Keep it at one place and use it from there (see eqx.nn.Shared), or copy it."
STATIC = "an array, {}, in a static field; nothing trains or shards it. "
STATIC += "Make the field a normal one; jax.lax.stop_gradient keeps it from being trained."
HIDDEN = "an array, {}, hidden in {}; nothing trains or shards it. "
HIDDEN += "Make it a field of a module (jax.tree_util.Partial is a functools.partial that is a pytree)."
MUTABLE = "a {} in a static field; jit does not see when it is changed in place. "
MUTABLE += "Use a value that does not change: a tuple, a frozenset, a frozen dataclass."
NUMPY = "a numpy array, {}: eqx.is_array leaves it out, and every call copies it to the device. "
NUMPY += "Convert it with jnp.asarray."
PLAIN = "an object that is no pytree, of class Plain"

FOUND = {
    "named twice": (lambda: Module(ONE, ONE), ["reused array"], ".x, .y: " + SAME.format("float32[a=2]", 2)),
    "under two names": (
        lambda: {"x": ONE, "y": [ONE.rename({"a": "c"})]},
        ["reused array"],
        "['x'], ['y'][0]: " + SAME.format("float32[a=2]", 2),
    ),
    "raw and named": (
        lambda: Module(ONE.array, ONE),
        ["reused array"],
        ".x, .y: " + SAME.format("float32[2]", 2),
    ),
    "many times": (
        lambda: [RAW] * 9,
        ["reused array"],
        "[0], [1], [2], 6 more: " + SAME.format("float32[3]", 9),
    ),
    "key": (lambda: Module(KEY, KEY), ["reused array"], ".x, .y: " + SAME.format("key<fry>[]", 2)),
    "bound method": (
        lambda: Module(m := Module(RAW), m.method),
        ["reused array"],
        ".x.x, .y.__self__.x: " + SAME.format("float32[3]", 2),
    ),
    "static": (lambda: Module(1, s=ONE), ["static array"], ".s: " + STATIC.format("float32[a=2]")),
    "static in a container": (
        lambda: Module([Module(1, s={"k": (RAW,)})]),
        ["static array"],
        ".x[0].s['k'][0]: " + STATIC.format("float32[3]"),
    ),
    "static numpy": (
        lambda: Registered(1, np.ones(2)),
        ["static array"],
        ".s: " + STATIC.format("float64[2]"),
    ),
    "static function": (
        lambda: Module(1, s=closure(RAW)),
        ["static array"],
        ".s(array): " + STATIC.format("float32[3]"),
    ),
    "mutable": (lambda: Module(1, s=[1]), ["mutable static value"], ".s: " + MUTABLE.format("list")),
    "mutable set": (lambda: Registered(1, {1}), ["mutable static value"], ".s: " + MUTABLE.format("set")),
    "closure": (
        lambda: Module(closure(ONE)),
        ["hidden array"],
        ".x(array): " + HIDDEN.format("float32[a=2]", "a function"),
    ),
    "jitted closure": (
        lambda: [jax.jit(closure(RAW))],
        ["hidden array"],
        "[0].__wrapped__(array): " + HIDDEN.format("float32[3]", "a function"),
    ),
    "default": (
        lambda: [lambda x, w=RAW: x + w],
        ["hidden array"],
        "[0](defaults)[0]: " + HIDDEN.format("float32[3]", "a function"),
    ),
    "partial": (
        lambda: [functools.partial(jnp.add, RAW)],
        ["hidden array"],
        "[0](arguments)[0]: " + HIDDEN.format("float32[3]", "a function"),
    ),
    "method of an object": (
        lambda: [Plain(w=RAW, f=1).__init__],
        ["hidden array"],
        "[0](self).w: " + HIDDEN.format("float32[3]", "a function"),
    ),
    "object": (
        lambda: Module(Plain(inner=Plain(w={"k": RAW}))),
        ["hidden array"],
        ".x.inner.w['k']: " + HIDDEN.format("float32[3]", PLAIN),
    ),
    "object with slots": (
        lambda: [Slotted(RAW)],
        ["hidden array"],
        "[0].w: " + HIDDEN.format("float32[3]", PLAIN.replace("Plain", "Slotted")),
    ),
    "dataclass that is not registered": (
        lambda: {"d": Unregistered(RAW)},
        ["hidden array"],
        "['d'].w: " + HIDDEN.format("float32[3]", PLAIN.replace("Plain", "Unregistered")),
    ),
    "misfit": (
        lambda: Module(MISFIT),
        ["names do not fit"],
        ".x: float32[2, 3] as [a], with more or fewer names than dimensions. "
        "Use haliax.vmap and haliax.scan, which keep names and dimensions together.",
    ),
    "numpy": (lambda: Module(np.ones(3)), ["numpy array"], ".x: " + NUMPY.format("float64[3]")),
    "named numpy": (
        lambda: {"w": hax.NamedArray(np.ones(2, np.int8), "a")},
        ["numpy array"],
        "['w']: " + NUMPY.format("int8[a=2]"),
    ),
    "itself": (lambda: np.ones(2), ["numpy array"], "(itself): " + NUMPY.format("float64[2]")),
    "deleted": (
        lambda: Module(donated()),
        ["deleted array"],
        ".x: float32[2], which has been deleted, most often by donating it to a jitted function. "
        "Use what that function returned.",
    ),
    "apart": (
        lambda: [at(1), at(1), at(3)],
        ["arrays apart"],
        "[0], [2]: arrays on different devices, or on the same in another order ([0] and 1 more on device 1; [2] on "
        "device 3). Bring them to one mesh with haliax.shard(module, mapping, mesh).",
    ),
    "weak": (
        lambda: Module(jnp.asarray(1.0)),
        ["weak type"],
        ".x: float32[] is weakly typed; after an update it is not, and jitted functions are traced again. "
        "Make it with a dtype: jnp.asarray(1.0, jnp.float32).",
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_problems(case):
    make, kinds, message = FOUND[case]
    module = make()
    with pytest.raises(ModuleProblems) as e:
        diagnose_common_issues(module)
    assert [found.kind for found in e.value.problems] == kinds
    name = type(module).__name__
    assert str(e.value) == f"diagnose_common_issues: 1 problem in {name}:\n  {message}"


def test_repeated_names():
    x = jax.tree.structure(hax.ones(A)).unflatten([jnp.ones((2, 2))])
    x = x.like(x.array, ("a", "a"))
    with pytest.raises(
        ModuleProblems, match=r"  \.x: float32\[a=2, a=2\], where a name occurs twice\. Rename one axis\.$"
    ):
        diagnose_common_issues(Module(x))


def test_mixed_precision():
    with jax.enable_x64(True):
        wide = jnp.ones(2)
        assert diagnose_common_issues(Module(wide, jnp.arange(3))) is None
        with pytest.raises(ModuleProblems) as e:
            diagnose_common_issues(Module(wide, RAW))
    assert str(e.value).endswith(
        "  .x: float64[2] among arrays of fewer bits, whose results it widens. Convert it with astype."
    )


def test_an_order_of_devices_counts_and_a_mesh_does_not(mesh, flat_mesh):
    forward = jax.device_put(jnp.ones(8), NamedSharding(flat_mesh, P("data")))
    other_mesh = jax.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))
    assert diagnose_common_issues([forward, other_mesh, jnp.ones(3)]) is None
    backward = jax.make_mesh((8,), ("data",), devices=jax.devices()[::-1], axis_types=flat_mesh.axis_types)
    with pytest.raises(ModuleProblems, match=r"\(\[0\] on devices 0 1 .* 7; \[1\] on devices 7 6 .* 0\)"):
        diagnose_common_issues([forward, jax.device_put(jnp.ones(8), NamedSharding(backward, P("data")))])


def test_several_problems():
    with pytest.raises(ModuleProblems) as e:
        diagnose_common_issues(Module(ONE, [ONE, np.ones(2)], s=[RAW, RAW]))
    problems = e.value
    assert [found.kind for found in problems.problems] == [
        "reused array",
        "static array",
        "static array",
        "numpy array",
    ]
    assert str(problems).startswith("diagnose_common_issues: 4 problems in Module:\n  .x, .y[0]: the same array")
    assert len(str(problems).splitlines()) == 5
    ((array, paths),) = problems.reused_arrays
    assert array is ONE.array and paths == [".x", ".y[0]"]
    assert problems.static_arrays == [".s[0]", ".s[1]"]


def test_the_exception():
    empty = ModuleProblems()
    assert (empty.problems, empty.reused_arrays, empty.static_arrays) == ((), [], [])
    assert str(empty) == "diagnose_common_issues: no problems in the module."
    one = ModuleProblems([Problem("static array", (".s",), "an array", "Move it.")], "Module")
    assert str(pickle.loads(pickle.dumps(one))) == str(one)


MODEL = hax.nn.MLP.init(A, B, 4, 2, key=KEY)

CLEAN = {
    "layer": lambda: hax.nn.Linear.init(A, B, key=KEY),
    "layers": lambda: [hax.nn.Embedding.init(A, B, key=KEY), hax.nn.LayerNorm.init(A), hax.nn.Dropout(0.1)],
    "mlp": lambda: MODEL,
    "stack": lambda: hax.nn.Stacked.init(hax.Axis("layer", 2), hax.nn.Linear)(A, B, key=jax.random.split(KEY, 2)),
    "equinox": lambda: eqx.nn.MLP(2, 2, 2, 2, key=KEY),
    "shared": lambda: eqx.nn.Shared((a := Module(RAW), Module(a.x)), lambda m: m[1].x, lambda m: m[0].x),
    "functions": lambda: [jax.nn.relu, jnp.tanh, jax.jit(lambda x: x), hax.named_jit(lambda x: x), int, jnp.float32],
    "methods and partials": lambda: [functools.partial(jnp.add, 1), Plain(n=1, table=np.ones(3)).__init__],
    "cyclic object": lambda: [cyclic()],
    "optimizer": lambda: (MODEL, optax.adam(1e-3).init(eqx.filter(MODEL, eqx.is_array)), optax.adam(1e-3)),
    "constants": lambda: Module(1, None, s=("a", 1, jnp.float32, jax.nn.relu, frozenset({1}))),
    "numbers and words": lambda: {"n": 1, "x": 0.5, "name": "w", "none": None},
    "shapes": lambda: jax.eval_shape(lambda: MODEL),
    "a part": lambda: eqx.filter(MODEL, lambda x: False),
    "placeholders": lambda: hax.NamedArray(None, ("a", "b")),
    "array": lambda: RAW,
    "key": lambda: KEY,
    "empty": lambda: (),
}


@pytest.mark.parametrize("case", CLEAN)
def test_no_problems(case):
    assert diagnose_common_issues(CLEAN[case]()) is None


def test_traced_modules():
    jax.jit(lambda m: diagnose_common_issues(m))(Module(ONE, RAW))
    hax.vmap(lambda x: diagnose_common_issues(Module(x)), "a")(ONE)
    with pytest.raises(ModuleProblems, match="the same array"):
        jax.jit(lambda x: diagnose_common_issues(Module(x, x)))(RAW)


def test_why_static_values_must_not_change():
    module = Module(RAW, s=[1])
    program = jax.jit(lambda m: m.x * m.s[0])
    assert program(module)[0] == 1
    module.s[0] = 5
    assert program(module)[0] == 1  # the program of the old value
