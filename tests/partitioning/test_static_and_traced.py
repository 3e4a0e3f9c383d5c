"""Which arguments are traced and which are static, and what that means for traces and caches."""

import dataclasses
import enum
import functools
import gc
import inspect
import threading
import weakref

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from helpers import count_traces
from meshes import MAPPING, NAMES, VALUES, on, spec_of


class Mode(enum.Enum):
    TRAIN = 1
    EVAL = 2


@dataclasses.dataclass(frozen=True)
class Config:
    width: int


STATIC = [1, 2.5, True, "text", None, Mode.TRAIN, Config(3), jnp.float32, np.dtype("int8"), jnp.sin, (1, 2), 1 + 2j]
TRACED = [
    jnp.ones(3),
    np.ones(3),
    np.float32(2),
    np.int8(3),
    jnp.float32(1),
    jax.random.key(0),
    hax.NamedArray(jnp.ones(3), ("a",)),
]


@pytest.mark.parametrize("value", STATIC, ids=lambda v: type(v).__name__)
def test_a_static_argument_arrives_as_it_is(value):
    f = hax.named_jit(count_traces(lambda x, v: (x, v)))
    for _ in range(2):
        _, out = f(jnp.ones(2), value)
        assert out == value and type(out) is type(value)
    assert f._fn.traces == 1


@pytest.mark.parametrize("value", TRACED, ids=lambda v: type(v).__name__)
def test_an_array_is_traced(value):
    f = hax.named_jit(count_traces(lambda v: all(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(v))))
    assert f(value) and f(value)
    assert f._fn.traces == 1


def test_a_ref_is_traced():
    ref = jax.new_ref(jnp.zeros(3))

    def write(ref):
        ref[...] = ref[...] + 1

    f = hax.named_jit(count_traces(write))
    f(ref), f(ref)
    assert (ref[...] == 2).all() and f._fn.traces == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0, False),
        (0.0, -0.0),
        ("a", "b"),
        (Mode.TRAIN, Mode.EVAL),
        (1j, complex(-0.0, 1.0)),
        (None, ()),
    ],
)
def test_equal_is_not_the_same(one, other):
    f = hax.named_jit(lambda v: repr(v))
    assert f(one) == repr(one) and f(other) == repr(other) and f(one) == repr(one)


def test_nan_is_the_same_as_itself():
    f = hax.named_jit(count_traces(lambda v: v))
    f(float("nan")), f(float("nan"))
    assert f._fn.traces == 1


class Schedule:
    """Can be changed, and is hashed by what it holds."""

    def __init__(self, steps):
        self.steps = steps

    def __eq__(self, other):
        return self.steps == other.steps

    def __hash__(self):
        return hash(self.steps)


def test_a_static_object_that_was_changed_is_another_one():
    f = hax.named_jit(count_traces(lambda x, schedule: x * schedule.steps))
    schedule = Schedule(2)
    for steps in (2, 2, 3, 3, 2):
        schedule.steps = steps
        assert f(jnp.ones(()), schedule) == steps


class Elementwise:
    """Compares as arrays do, and is hashed by identity."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        return np.arange(3) == 1


def test_static_objects_of_other_hashes_are_not_compared():
    f = hax.named_jit(count_traces(lambda x, static: x))
    one, other = Elementwise(), Elementwise()
    for _ in range(2):
        f(jnp.ones(2), one), f(jnp.ones(2), one), f(jnp.ones(2), other)
    assert f._fn.traces == 2


def test_structures_are_not_compared_where_static_objects_differ():
    class Layer(eqx.Module):
        held: Elementwise = eqx.field(static=True)  # to compare two raises

    f = hax.named_jit(count_traces(lambda layer, n: n))
    one, other = Layer(Elementwise()), Layer(Elementwise())
    assert [f(one, 1), f(one, 1), f(other, 2), f(other, 2)] == [1, 1, 2, 2] and f._fn.traces == 2


def test_one_trace_for_each_signature(mesh):
    f = hax.named_jit(count_traces(lambda x, flag, *, scale=1.0: x * scale), MAPPING, mesh=mesh)
    x = on(mesh, "data", "model")
    for _ in range(3):
        f(x, True), f(x, False), f(x, True, scale=2.0), f(x + x, True), f({"x": x}["x"], flag=True)
    assert f._fn.traces == 4


def test_a_changed_mapping_or_mesh_is_another_program(mesh, flat_mesh):
    f = hax.named_jit(count_traces(lambda x: x + 1))
    x = jnp.ones(8)
    for _ in range(2):
        for scope in (mesh, flat_mesh):
            with jax.set_mesh(scope):
                for mapping in ({"batch": "data"}, {"batch": None}):
                    with hax.axis_mapping(mapping):
                        f(hax.NamedArray(x, ("batch",)))
    assert f._fn.traces == 4


@pytest.mark.parametrize(
    ("args", "kwargs", "path", "kind"),
    [
        (([jnp.ones(2), {1, 2}],), {}, "x[1]", "set"),
        ((1,), {"y": {"deep": bytearray(b"a")}}, "y['deep']", "bytearray"),
    ],
)
def test_an_unhashable_static_argument(args, kwargs, path, kind):
    with pytest.raises(TypeError) as error:
        hax.named_jit(lambda x, y=None: 0)(*args, **kwargs)
    assert str(error.value) == (
        f"named_jit(<lambda>): {path} is static, for it is no array, and unhashable ({kind}); expected an array, or a"
        " static value with hash and equality. Pass an array, or make it hashable (a tuple for a list, a frozen"
        " dataclass)."
    )


def test_a_static_field_of_a_module_needs_equality_alone():
    class Layer(eqx.Module):
        sizes: list = eqx.field(static=True)

    f = hax.named_jit(count_traces(lambda layer: layer.sizes))
    assert f(Layer([1, 2])) == [1, 2] == f(Layer([1, 2])) and f(Layer([3])) == [3]
    assert f._fn.traces == 2


# arrays in the function itself --------------------------------------------------------------------------------------


class Scale(eqx.Module):
    weight: hax.NamedArray
    name: str = eqx.field(static=True, default="scale")

    def __call__(self, x):
        return x * self.weight

    def method(self, x):
        return x * self.weight


class Plain:
    """Not a pytree: its arrays are constants, as for `jax.jit`."""

    factor = 3

    def method(self, x):
        return x * self.factor


def callables():
    scale = Scale(hax.NamedArray(jnp.full((8, 4), 3.0), NAMES))
    times = lambda w, x: x * w  # noqa: E731
    return {
        "module": scale,
        "method of a module": scale.method,
        "partial with an array": functools.partial(times, scale.weight),
        "partial of a partial": functools.partial(functools.partial(times, scale.weight)),
        "partial with a keyword": functools.partial(times, w=scale.weight),
        "partial of a static method": functools.partial(staticmethod(times), scale.weight),
        "partial of a module": functools.partial(scale),
        "eqx.Partial": eqx.Partial(times, scale.weight),
        "jax.tree_util.Partial": jax.tree_util.Partial(times, scale.weight),
        "method of a plain object": Plain().method,
        "jitted": jax.jit(lambda x: x * 3),
        "named_jit": hax.named_jit(lambda x: x * 3),
        "builtin": __import__("operator").itemgetter(slice(None)),
    }


@pytest.mark.parametrize("name", [n for n in callables() if n != "builtin"])
def test_callables(mesh, name):
    fn = callables()[name]
    call = (lambda f, x: f(x=x)) if name == "partial with a keyword" else (lambda f, x: f(x))
    out = call(hax.named_jit(fn, MAPPING, mesh=mesh), on(mesh))
    assert np.array_equal(np.asarray(out), VALUES * 3)


@pytest.mark.parametrize("name", [n for n in callables() if "module" in n or "artial" in n])
def test_arrays_in_a_callable_are_arguments_not_constants(mesh, name):
    f = hax.named_jit(callables()[name])
    text = (f.lower(x=on(mesh)) if name == "partial with a keyword" else f.lower(on(mesh))).as_text()
    assert "dense<3" not in text and text.split("@main(")[1].split(")")[0].count("tensor<8x4xf32>") == 2


def test_a_callable_without_a_name_or_signature():
    f = hax.named_jit(functools.partial(max, 1))
    assert f(2) == 2 and f.__name__ == "max"


def test_a_partial_takes_an_argument_of_any_name():
    assert hax.named_jit(functools.partial(lambda a, **kwargs: a * kwargs["self"], 2))(self=3) == 6


# wrappers -----------------------------------------------------------------------------------------------------------


class Model(eqx.Module):
    weight: hax.NamedArray

    @hax.named_jit
    def __call__(self, x):
        """Scale."""
        return x * self.weight

    @hax.named_jit(donate_args=(False, True))
    def donating(self, x):
        return x + 1

    @staticmethod
    @hax.named_jit
    def static(x):
        return x * 2

    @hax.named_jit
    @classmethod
    def cls_inside(cls, x):
        return cls.__name__, x

    @classmethod
    @hax.named_jit
    def cls_outside(cls, x):
        return cls.__name__, x

    @hax.named_jit
    @staticmethod
    def static_inside(x):
        return x * 2


def test_methods(mesh):
    model = Model(on(mesh))
    assert np.array_equal(np.asarray(model(on(mesh))), VALUES * VALUES)
    assert np.array_equal(np.asarray(model.static(on(mesh))), VALUES * 2)
    assert np.array_equal(np.asarray(Model.static_inside(on(mesh))), VALUES * 2)
    assert model.cls_inside(1)[0] == "Model" == Model.cls_outside(1)[0]
    x = on(mesh)
    assert np.array_equal(np.asarray(model.donating(x)), VALUES + 1) and x.array.is_deleted()
    assert not model.weight.array.is_deleted()
    assert "func.func" in model.donating.lower(on(mesh)).as_text()
    assert model.donating.eval_shape(on(mesh)).array.shape == (8, 4)


@pytest.mark.parametrize("transform", [hax.named_jit, jax.jit, eqx.filter_jit])
def test_the_arrays_of_a_method_are_traced_where_it_is_an_argument(transform):
    def through(method, x):
        return method(x).sum().array

    counted = count_traces(through)
    f, x = transform(counted), hax.NamedArray(jnp.arange(3.0), ("a",))
    assert [f(Model(x * n), x) for n in (1, 2, 3)] == [5, 10, 15] == [f(Model(x * n).__call__, x) for n in (1, 2, 3)]
    assert counted.traces == 2
    assert np.array_equal(eqx.filter_grad(through)(Model(x).__call__, x).__self__.weight.array, x.array)


def test_a_method_of_a_plain_class():
    class Counter:
        def __init__(self, start):
            self.start = start

        @hax.named_jit
        def add(self, x):
            return x + self.start

    assert Counter(1).add(jnp.zeros(())) == 1 and Counter(2).add(jnp.zeros(())) == 2


def test_name_docstring_and_signature():
    @hax.named_jit
    def step(params: int, *, rate: float = 0.1) -> int:
        """One step."""
        return params

    assert (step.__name__, step.__doc__, step.__module__) == ("step", "One step.", __name__)
    assert str(inspect.signature(step)) == "(params: int, *, rate: float = 0.1) -> int"
    assert repr(step) == "named_jit(step)"
    assert str(inspect.signature(Model.__dict__["donating"].__get__(1))) == "(x)"


@pytest.mark.parametrize(
    "wrap", [hax.named_jit(), hax.named_jit(axis_resources={}), hax.named_jit(None, {}), hax.named_jit]
)
def test_as_a_decorator(wrap):
    assert wrap(lambda x: x + 1)(jnp.zeros(())) == 1


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"in_shardings": 1},
            TypeError,
            "named_jit: in_shardings is an option of jax.jit; here it is in_axis_resources.",
        ),
        (
            {"out_shardings": 1},
            TypeError,
            "named_jit: out_shardings is an option of jax.jit; here it is out_axis_resources.",
        ),
        (
            {"donate_argnums": 1},
            TypeError,
            "named_jit: donate_argnums is an option of jax.jit; here it is donate_args.",
        ),
        (
            {"donate_argnames": 1},
            TypeError,
            "named_jit: donate_argnames is an option of jax.jit; here it is donate_kwargs.",
        ),
        (
            {"static_argnums": 1},
            TypeError,
            "named_jit: static_argnums is an option of jax.jit; here it is nothing: arguments that are no arrays are"
            " static.",
        ),
        (
            {"on_mesh_mismatch": "ignore"},
            ValueError,
            "named_jit: on_mesh_mismatch is 'ignore'; expected 'warn', 'move' or 'error'.",
        ),
        ({"mesh": "data"}, TypeError, "named_jit: mesh is a string; expected a jax.sharding.Mesh or AbstractMesh."),
        (
            {"axis_resources": "data"},
            TypeError,
            "named_jit: axis_resources is a string; expected a mapping from axis names to mesh axes.",
        ),
    ],
)
def test_options_are_checked_when_a_function_is_wrapped(options, kind, message):
    with pytest.raises(kind) as error:
        hax.named_jit(lambda x: x, **options)
    assert str(error.value) == message


def test_unknown_options_and_things_that_are_no_functions():
    with pytest.raises(TypeError, match=r"named_jit: unknown option 'keep_unsued'; options: .*keep_unused"):
        hax.named_jit(lambda x: x, keep_unsued=True)
    with pytest.raises(TypeError, match="named_jit: fn is a dict; expected a callable"):
        hax.named_jit({"batch": "data"})


def test_options_of_jit_are_passed_on(mesh):
    f = hax.named_jit(lambda x, y: x, keep_unused=True, compiler_options={"xla_cpu_enable_fast_math": True})
    assert f.lower(jnp.ones(2), jnp.ones(3)).as_text().count("tensor<3xf32>") == 1
    assert (f(jnp.ones(2), jnp.ones(3)) == 1).all()


# caches -------------------------------------------------------------------------------------------------------------


def test_a_wrapper_that_goes_frees_its_model():
    model = Scale(hax.NamedArray(jnp.ones((8, 4)), NAMES))
    watched = weakref.ref(model.weight.array)
    f = hax.named_jit(model)
    f(hax.NamedArray(jnp.ones((8, 4)), NAMES))
    assert watched() is not None
    del model, f
    gc.collect()
    assert watched() is None


def test_jax_clear_caches_clears_ours():
    f = hax.named_jit(count_traces(lambda x: x + 1))
    f(jnp.ones(2))
    jax.clear_caches()
    assert not f._programs
    f(jnp.ones(2))
    assert f._fn.traces == 2


def test_the_cache_is_bounded(monkeypatch):
    monkeypatch.setattr("haliax._src.named_jit._MOST_PROGRAMS", 8)
    f = hax.named_jit(lambda v: v)
    for i in range(30):
        assert f(i) == i
    assert len(f._programs) == 8


def test_what_is_known_of_calls_is_bounded(monkeypatch):
    """A wrapper knows which leaves are static by their types, and what results hold beside arrays."""
    monkeypatch.setattr("haliax._src.signature._MOST_PARTITIONS", 8)
    f = hax.named_jit(lambda v, *arrays: (arrays, "static", -0.0, v))
    for n in range(20):
        arrays, static, zero, v = f(type(f"Static{n}", (), {})(), *[jnp.ones(1)] * n)
        assert (len(arrays), static, str(zero), type(v).__name__) == (n, "static", "-0.0", f"Static{n}")
    assert len(f._partitions) <= 8

    g = hax.named_jit(lambda x: (x, "static", 0.0, len))
    for n in range(1, 21):
        x, *statics = g(jnp.ones(n))
        assert x.shape == (n,) and statics == ["static", 0.0, len]
    (program,) = g._programs.values()
    assert len(program._structures) == 1


@pytest.mark.parametrize("wrong", [[], [1, 2], {"n": 3}, {1}, bytearray(b"no")], ids=str)
def test_no_array_at_all(wrong):
    f = hax.named_jit(lambda *args, **kwargs: (args, kwargs))
    assert f(1, "a", 2.0, len, flag=True) == ((1, "a", 2.0, len), {"flag": True})
    assert f() == ((), {})
    if isinstance(wrong, set | bytearray):
        with pytest.raises(TypeError, match="is static, for it is no array, and unhashable"):
            f(wrong)
    else:
        assert f(wrong) == ((wrong,), {})


def test_threads_share_one_trace_and_keep_their_mappings(mesh):
    f = hax.named_jit(count_traces(lambda x: x + 1), mesh=mesh)
    barrier, results = threading.Barrier(8), {}
    # one at a time: programs of several forced CPU devices that run at once may wait for each other for ever
    one_at_a_time = threading.Lock()

    def work(i):
        axis = ("data", "model")[i % 2]
        barrier.wait()
        with hax.axis_mapping({"batch": axis}), one_at_a_time:
            results[i] = axis, jax.block_until_ready(f(on(mesh)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert len(results) == 8
    for axis, out in results.values():
        assert spec_of(out) == (axis, None) and np.array_equal(np.asarray(out), VALUES + 1)
    assert f._fn.traces == 2
