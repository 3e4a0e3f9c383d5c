"""Long runs: many wrappers, calls, static values and threads, and calls that fail. Nothing may grow, leak or mix.

HALIAX_ENDURANCE=0.01 scales the figures, for a quick look.
"""

from __future__ import annotations

import functools
import gc
import inspect
import os
import sys
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax.partitioning import MeshMismatchError, current_thread_local_mapping
from helpers import count_traces
from meshes import MAPPING, NAMES, VALUES, make_mesh, on, spec_of

SCALE = float(os.environ.get("HALIAX_ENDURANCE", "1"))
WRAPPERS, CALLS, STATICS, THREADS = int(10_000 * SCALE), int(200_000 * SCALE), int(1_000 * SCALE), 16
REVERSED = slice(None, None, -1)

FLAT = 200
"""Objects by which the many may grow against the few: far less than one for each of the many."""


def living() -> int:
    """How many objects the garbage collector knows once it has collected."""
    gc.collect()
    return len(gc.get_objects())


def named(values: Any = VALUES) -> hax.NamedArray:
    return hax.NamedArray(jnp.asarray(values), NAMES)


# memory ---------------------------------------------------------------------------------------------------------------


def test_wrappers_that_go_leave_nothing():
    x, models = named(), weakref.WeakValueDictionary()

    def make_and_drop(count):
        for i in range(count):
            model = named()
            models[i] = model.array
            f = hax.named_jit(functools.partial(lambda model, x: x, model), {"batch": "data"}, mesh=make_mesh())
            f.eval_shape(x)
            if i % 100 == 0:  # a compilation takes twenty times as long as a trace
                f(x)

    make_and_drop(200)
    before = living()
    make_and_drop(WRAPPERS)
    assert living() - before < FLAT and not models


def test_calls_leave_nothing():
    mesh = make_mesh(slice(1), (1, 1))  # eight devices of one processor take their time
    f = hax.named_jit(count_traces(lambda x, mode: x * 2 if mode == "double" else x), mesh=mesh)
    x, y = on(mesh, "data"), on(mesh, "model")

    def call(count):
        for _ in range(count // 4):
            f(x, "double"), f(y, mode="double"), f(x, "same")
            with hax.axis_mapping(MAPPING):
                f(x, "double")

    call(400)
    before = living()
    call(CALLS)
    assert living() - before < FLAT
    assert f._fn.traces == 4 and np.array_equal(np.asarray(f(x, "double")), VALUES * 2)


def test_static_values_are_all_told_apart_and_all_forgotten():
    x = named()

    def call(count):
        f = hax.named_jit(count_traces(lambda x, value: (x, value)))
        for _ in range(2):
            for i in range(count):
                assert f(x, ("value", i))[1] == ("value", i)
        assert f._fn.traces == count

    call(10)
    before = living()
    call(STATICS)
    assert living() - before < FLAT


class Static:
    """A value that is hashed by identity and can be watched."""


def test_static_values_that_do_not_come_back_are_forgotten(monkeypatch):
    monkeypatch.setattr("haliax._src.named_jit._MOST_PROGRAMS", 16)
    f, x, values = hax.named_jit(lambda x, value: x), named(), weakref.WeakSet()
    for _ in range(200):
        value = Static()
        values.add(value)
        f.eval_shape(x, value)
    del value
    gc.collect()
    assert len(f._programs) == 16 and len(values) <= 64  # the last programs, and what is remembered of retraces


def test_a_wrapper_that_goes_frees_the_static_values_of_its_results():
    f, value = hax.named_jit(lambda x, value: (x, value)), Static()
    watched = weakref.ref(value)
    assert f(named(), value)[1] is value
    del f, value
    gc.collect()
    assert watched() is None


def test_every_cache_has_a_bound():
    caches = [c for c in gc.get_objects() if isinstance(c, functools._lru_cache_wrapper) and is_ours(c.__module__)]
    unbounded = [c for c in caches if c.cache_parameters()["maxsize"] is None and inspect.signature(c).parameters]
    assert caches and not unbounded


def test_no_container_of_a_module_grows():
    def use(i):
        x = hax.NamedArray(VALUES, (f"a{i}", f"b{i}"))
        y = hax.rearrange(x, (f"b{i}", f"a{i}")) + x.sum(f"a{i}")
        z = hax.dot(x, y.rename({f"b{i}": f"c{i}"}), axis=f"a{i}")
        f = hax.named_jit(lambda x: hax.shard(x + i), {f"a{i}": "data"}, mesh=make_mesh())
        return f.eval_shape(z[f"b{i}", 0].rename({f"c{i}": f"a{i}"}))

    use(-1)
    before = containers()
    for i in range(20):
        use(i)
    gc.collect()
    assert containers() == before


def is_ours(module: str | None) -> bool:
    return (module or "").split(".")[0] == "haliax"


def containers() -> dict[str, int]:
    """The size of each container that a module of ours or a class in it holds."""
    kinds = (dict, list, set, deque, weakref.WeakSet, weakref.WeakKeyDictionary, weakref.WeakValueDictionary)
    return {
        f"{type(owner).__name__} {owner.__name__}.{name}": len(value)
        for owner in owners()
        for name, value in list(vars(owner).items())
        if isinstance(value, kinds) and not name.startswith("__")
    }


def owners() -> Iterator[Any]:
    for module in [module for name, module in list(sys.modules.items()) if is_ours(name)]:
        yield module
        yield from (x for x in vars(module).values() if isinstance(x, type) and is_ours(x.__module__))


# threads --------------------------------------------------------------------------------------------------------------


def test_threads_do_not_mix():
    """Each thread has its mapping and its mesh, and calls wrappers that all share and one of its own.

    Programs run one at a time: on forced CPU devices, programs over several devices that run at once may wait for each
    other for ever, with plain `jax.jit` too.
    """

    def fn(x, scale):
        return hax.shard(x * scale), hax.NamedArray(x.array + 1, NAMES), dict(current_thread_local_mapping())

    meshes = [make_mesh(), make_mesh(shape=(2, 4)), make_mesh(REVERSED), make_mesh(slice(4), (2, 2))]
    mappings = [MAPPING, {"batch": "model"}]
    shared = [hax.named_jit(count_traces(fn)) for _ in range(2)]
    together, one_at_a_time, failures = threading.Barrier(THREADS), threading.Lock(), []

    def work(number):
        mesh, mapping = meshes[number % 4], mappings[number // 4 % 2]  # two threads for each pair
        expected = tuple(mapping.get(name) for name in NAMES)
        own = hax.named_jit(fn)
        with jax.set_mesh(mesh), hax.axis_mapping(mapping):
            for step in range(50):
                together.wait()
                for f in (*shared, own):
                    assert f.eval_shape(on(mesh), 2.0)[2] == mapping == current_thread_local_mapping()
                if step % 10 == 0:
                    with one_at_a_time:
                        double, more, seen = jax.block_until_ready(shared[step % 2](on(mesh), 2.0))
                        assert np.array_equal(double.array, VALUES * 2) and np.array_equal(more.array, VALUES + 1)
                    assert double.array.sharding.mesh == more.array.sharding.mesh == mesh and seen == mapping
                    assert spec_of(double) == spec_of(more) == expected

    def watched(number):
        try:
            work(number)
        except BaseException as error:
            failures.append(error)
            together.abort()

    threads = [threading.Thread(target=watched, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    # one for each mesh and mapping, though two threads come with each at the same time
    assert [f._fn.traces for f in shared] == [8, 8]
    assert current_thread_local_mapping() is None


def test_threads_share_the_first_trace():
    """Threads that make the first call of a function at once trace it once, and may call each other's functions."""
    together, results = threading.Barrier(4), []

    @hax.named_jit
    @count_traces
    def inner(x):
        return x + 1

    @count_traces
    def double(x):
        return inner(x) * 2

    outer = hax.named_jit(double)

    def work(f):
        together.wait()
        results.append(float(f(jnp.float32(1.0))))

    threads = [threading.Thread(target=work, args=(f,)) for f in (inner, outer, inner, outer)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [2, 2, 4, 4]
    assert double.traces == 1


# calls that fail ------------------------------------------------------------------------------------------------------


class Job:
    """A step that fails in tracing as long as `error` says so."""

    error: Callable[[Any], None] | None = None

    def __call__(self, state: hax.NamedArray, other: hax.NamedArray, option: str | None = None):
        with hax.axis_mapping({"embed": "data"}), jax.sharding.use_abstract_mesh(make_mesh(shape=(2, 4)).abstract_mesh):
            if self.error is not None:
                self.error(state)
        return state + other


def raises(error: BaseException) -> Callable[[Any], None]:
    def fail(_):
        raise error

    return fail


def fails_to_trace(state):
    if state.array.sum() > 0:
        raise AssertionError


def with_error(error, kind):
    """A call that fails in the function, and that is right once the function is."""

    def call(f, job, state, other):
        job.error = error
        try:
            with pytest.raises(kind):
                f(state, other, "retried")
        finally:
            job.error = None

    return call


def with_arguments(kind, *more, **changes):
    """A call that is refused for its arguments."""

    def call(f, job, state, other):
        arguments = {"state": state, "other": other} | {name: make() for name, make in changes.items()}
        with pytest.raises(kind):
            f(*arguments.values(), *more)

    return call


def donated_twice(f, job, state, other):
    with pytest.raises(ValueError, match="are the same array, which is donated"):
        f(state, state)


def gone():
    x = on(make_mesh(), "data")
    x.array.delete()
    return x


FAILURES = {
    "the function raises": with_error(raises(ValueError("mine")), ValueError),
    "the function is interrupted": with_error(raises(KeyboardInterrupt()), KeyboardInterrupt),
    "the function exits": with_error(raises(SystemExit(1)), SystemExit),
    "a value is asked for in tracing": with_error(fails_to_trace, jax.errors.TracerBoolConversionError),
    "a name is wrong": with_error(lambda state: state.sum("time"), ValueError),
    "an axis does not divide": with_arguments(
        ValueError, state=lambda: named(np.ones((6, 4))), other=lambda: named(np.ones((6, 4)))
    ),
    "a static value is unhashable": with_arguments(TypeError, {1, 2}),
    "an argument too many": with_arguments(TypeError, 1, 2, 3),
    "an argument on another mesh": with_arguments(MeshMismatchError, other=lambda: on(make_mesh(REVERSED), "data")),
    "a deleted argument": with_arguments(RuntimeError, other=gone),
    "an array donated twice": donated_twice,
}


@pytest.mark.parametrize("warm", [False, True], ids=["first call", "later call"])
@pytest.mark.parametrize("failure", FAILURES)
def test_after_a_failure_all_is_as_before(failure, warm):
    mesh, ambient = make_mesh(), make_mesh(slice(4), (2, 2))
    job = Job()
    f = hax.named_jit(job, MAPPING, mesh=mesh, donate_args=(True, False), on_mesh_mismatch="error")
    if warm:
        f(on(mesh, "data", "model"), on(mesh, "data"))
    state, other = on(mesh, "data", "model"), on(mesh, "data")
    with jax.set_mesh(ambient), hax.axis_mapping({"batch": "model"}):
        mapping, abstract = current_thread_local_mapping(), jax.sharding.get_abstract_mesh()
        FAILURES[failure](f, job, state, other)
        assert current_thread_local_mapping() is mapping
        assert jax.sharding.get_mesh() == ambient and jax.sharding.get_abstract_mesh() == abstract
        assert np.array_equal(np.asarray(state), VALUES) and np.array_equal(np.asarray(other), VALUES)
        out = f(state, other, "retried")
    assert np.array_equal(np.asarray(out), VALUES * 2) and spec_of(out) == ("data", "model")
    assert state.array.is_deleted() and not other.array.is_deleted()


def test_who_makes_an_error_of_a_warning_in_lowering_can_call_again():
    """JAX warns of donated memory that no result can use, and then runs the program."""
    f, x = hax.named_jit(lambda x: x.sum(), donate_args=True), named()
    with pytest.raises(UserWarning, match="donated buffers were not usable"):  # warnings are errors here
        f(x)
    assert np.array_equal(np.asarray(x), VALUES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert f(x).array == VALUES.sum()
