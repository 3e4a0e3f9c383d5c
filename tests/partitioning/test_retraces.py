"""Retraces: how often a function was traced, and what changed, in the user's terms."""

import dataclasses
import threading
import warnings
import weakref

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType

import haliax as hax
from haliax.debug import RetraceWarning, warn_on_retrace
from meshes import MAPPING, make_mesh, on


def ones(**sizes):
    return hax.ones(sizes)


class Layer(eqx.Module):
    weight: hax.NamedArray
    act: str = eqx.field(static=True, default="relu")


@dataclasses.dataclass(frozen=True)
class Config:
    width: int

    def __repr__(self):
        raise RuntimeError("no repr")


class Alike:
    def __repr__(self):
        return "Alike()"


# (the arguments before, those after, what is said of the change)
CHANGES = {
    "axis size": (ones(batch=8, embed=4), ones(batch=16, embed=4), ["x: axis batch was 8, now 16"]),
    "two axes": (ones(a=2, b=3), ones(a=4, b=5), ["x: axis a was 2, now 4", "x: axis b was 3, now 5"]),
    "other axes": (ones(a=2), ones(b=2), ["x: axes were a=2, now b=2"]),
    "order": (ones(a=2, b=2), ones(b=2, a=2), ["x: axes were a=2, b=2, now b=2, a=2"]),
    "rank": (ones(a=2), ones(a=2, b=3), ["x: axes were a=2, now a=2, b=3"]),
    "no axes": (ones(a=2), hax.named(jnp.float32(1), ()), ["x: axes were a=2, now none"]),
    "shape": (jnp.ones(3), jnp.ones(4), ["x: shape was (3,), now (4,)"]),
    "name": (ones(a=3), jnp.ones(3), ["x: axes were a=3, now 3"]),
    "dtype": (ones(a=2), ones(a=2).astype(jnp.bfloat16), ["x: dtype was float32, now bfloat16"]),
    "weak type": (jnp.asarray(1.0), jnp.float32(1), ["x: type was weak, now strong"]),
    "static value": (3, 4, ["x: static value was 3, now 4"]),
    "static type": (3, 3.0, ["x: static value was 3, now 3.0"]),
    "zero": (0.0, -0.0, ["x: static value was 0.0, now -0.0"]),
    "static to traced": (3, jnp.zeros(2), ["x was static 3, now float32[2]"]),
    "traced to static": (ones(a=2), "s", ["x was float32[a=2], now static 's'"]),
    "a long value": ("a" * 99, "b", [f"x: static value was '{'a' * 59}..., now 'b'"]),
    "no repr": (Config(1), Config(2), ["x: static value is another Config, not equal to the earlier one (Config)"]),
    "alike": (Alike(), Alike(), ["x: static value is another Alike, not equal to the earlier one (Alike())"]),
    "a new leaf": ({"a": 1}, {"a": 1, "b": jnp.ones(2)}, ["x['b']: is new (float32[2])"]),
    "a lost leaf": ([ones(a=2), 1], [ones(a=2)], ["x[1]: was static 1, now absent"]),
    "none": ([None, 1], [(), 1], ["arguments: a None or an empty container is another one"]),
    "static field": (Layer(ones(a=2)), Layer(ones(a=2), "gelu"), ["x.weight: static fields of Layer differ"]),
    "a field within": (
        [Layer(ones(a=2)), Layer(ones(a=2))],
        [Layer(ones(a=2)), Layer(ones(a=2), "gelu")],
        ["x[1].weight: static fields of Layer differ"],
    ),
}


@pytest.mark.parametrize(("before", "after", "expected"), CHANGES.values(), ids=CHANGES)
def test_what_changed(before, after, expected):
    f = hax.named_jit(lambda x: 0)
    f(before)
    f(after)
    assert f.explain(after).changes == tuple(expected)


LAYOUTS = {
    "uncommitted": (lambda mesh: hax.ones({"batch": 8, "embed": 4}), "x: layout was uncommitted, now P('data')"),
    "split otherwise": (lambda mesh: on(mesh, None, "model"), "x: layout was P(None, 'model'), now P('data')"),
    "replicated": (lambda mesh: on(mesh), "x: layout was P(), now P('data')"),
}


@pytest.mark.parametrize(("before", "expected"), LAYOUTS.values(), ids=LAYOUTS)
def test_another_layout(mesh, before, expected):
    """On automatic axes a layout may cost a compilation without a trace, so the first call notes it."""
    f = hax.named_jit(lambda x: x + 1, mesh=mesh)
    f(before(mesh))
    assert f.explain(on(mesh, "data")).changes == (expected,)
    f(on(mesh, "data"))
    report = f.explain(on(mesh, "data"))
    assert (report.compilations, report.changes) == (2, (expected,))


def test_another_layout_on_explicit_axes():
    mesh = make_mesh(types=(AxisType.Explicit, AxisType.Explicit))
    f = hax.named_jit(lambda x: x + 1, mesh=mesh)
    f(on(mesh, "data"))
    with pytest.warns(RetraceWarning, match=r"x: layout was P\('data'\), now P\('model'\) on explicit data=4, model=2"):
        with warn_on_retrace(1):
            f(on(mesh, "model"))


def test_another_mesh_and_mapping(mesh):
    f = hax.named_jit(lambda x: x + 1)
    with hax.set_mesh(mesh):
        f(on(mesh))
        with hax.axis_mapping(MAPPING):
            report = f.explain(on(mesh))
    assert report.changes == ("axis mapping was none, now batch->data, embed->model",)
    other = make_mesh(slice(None, None, -1))
    with hax.set_mesh(other), hax.axis_mapping(MAPPING):
        assert f.explain(on(other)).changes == (
            "mesh was data=4, model=2; devices 0 1 2 3 4 5 6 7, now data=4, model=2; devices 7 6 5 4 3 2 1 0",
        )


def test_the_forced_host_shim_shows_as_an_input_mapping(mesh):
    f = hax.named_jit(lambda x: x + 1, {"batch": "data"}, mesh=mesh)
    f(on(mesh, "data"))
    with hax.partitioning.forced_host_shim("on"):
        assert f.explain(on(mesh, "data")).changes == ("input mapping was none, now batch->data",)


def test_an_argument_by_name():
    f = hax.named_jit(lambda x, y: 0)
    f(1, 2)
    expected = "arguments: one that was passed by position is now passed by name, or the reverse"
    assert f.explain(1, y=2).changes == (expected,)


def test_traces_are_counted_once_a_signature():
    f = hax.named_jit(lambda x: x + 1)
    for _ in range(3):
        f(ones(a=2))
    assert f.explain(ones(a=2)).traces == 1
    assert f.explain(ones(a=3)).traces == 2
    f(ones(a=3))
    assert f.explain(ones(a=3)).traces == 2


def test_the_last_two_signatures_are_those_seen_last():
    f = hax.named_jit(lambda x: x + 1)
    for size in (2, 3, 4):
        f(ones(a=size))
    assert f.explain(ones(a=4)).changes == ("x: axis a was 3, now 4",)
    assert f.explain(ones(a=2)).changes == ("x: axis a was 4, now 2",)
    assert f.explain(ones(a=2)).changes == ("x: axis a was 4, now 2",)


def test_it_is_off_by_default():
    f = hax.named_jit(lambda x: x + 1)
    with warnings.catch_warnings(record=True) as caught:
        for size in range(1, 5):
            f(ones(a=size))
    assert caught == []


def test_the_warning():
    f = hax.named_jit(step)
    with warn_on_retrace(2):
        f(ones(a=2), 1)
        f(ones(a=3), 1)
        with pytest.warns(RetraceWarning) as caught:
            f(ones(a=3), 5)
        f(ones(a=2), 1)
    f(ones(a=9), 9)
    (warning,) = caught
    assert str(warning.message) == (
        "named_jit(step): trace 3, expected at most 2. Changed since the most similar one:\n"
        "  n: static value was 1, now 5"
    )
    assert warning.filename == __file__


def step(x, n):
    return x * n


def test_the_warning_compares_with_the_most_similar_signature():
    f = hax.named_jit(step)
    f(ones(a=2), 1)
    f(ones(b=3), 2)
    with warn_on_retrace(2), pytest.warns(RetraceWarning, match=r"one:\n  x: axis a was 2, now 4$"):
        f(ones(a=4), 1)


def test_the_warning_for_a_signature_seen_before():
    f = hax.named_jit(step)
    f(ones(a=2), 1)
    with warn_on_retrace(1), pytest.warns(RetraceWarning, match=r"signature is one seen before: .*another jax\.config"):
        with jax.default_matmul_precision("float32"):
            f(ones(a=2), 1)


def test_the_warning_where_nothing_is_known():
    f = hax.named_jit(step)
    f(ones(a=2), 1)
    jax.clear_caches()
    with (
        warn_on_retrace(1),
        pytest.warns(RetraceWarning, match=r"^named_jit\(step\): trace 2, .* No earlier signature"),
    ):
        f(ones(a=2), 1)


def test_a_long_list_of_changes_is_abridged():
    f = hax.named_jit(lambda x: 0)
    f([jnp.ones(2)] * 20)
    with warn_on_retrace(1), pytest.warns(RetraceWarning, match=r"x\[7\]: shape was .*\n  \.\.\. and 12 more$"):
        f([jnp.ones(3)] * 20)


def test_a_warning_turned_into_an_error_leaves_everything_intact():
    f = hax.named_jit(step)
    with warn_on_retrace(0), pytest.raises(RetraceWarning):
        f(ones(a=2), 2)
    assert np.array_equal(np.asarray(f(ones(a=2), 2)), [2, 2])


def test_the_limit_holds_from_the_call_on_and_until_the_block_ends():
    f = hax.named_jit(step)
    outer = warn_on_retrace(0)
    with warn_on_retrace(None):
        f(ones(a=1), 1)
    with pytest.warns(RetraceWarning):
        f(ones(a=2), 1)
    outer.__exit__(None, None, None)
    f(ones(a=3), 1)


def in_a_thread(fn):
    thread = threading.Thread(target=fn)
    thread.start()
    thread.join()


def test_a_call_holds_for_all_threads():
    f = hax.named_jit(step)
    whole_process = warn_on_retrace(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        in_a_thread(lambda: f(ones(a=2), 1))
        in_a_thread(lambda: warn_on_retrace(None))
        f(ones(a=3), 1)
    whole_process.__exit__(None, None, None)
    assert [str(warning.message)[:32] for warning in caught] == ["named_jit(step): trace 1, expect"]


def test_a_block_holds_for_its_thread():
    f = hax.named_jit(step)
    with warn_on_retrace(0):
        in_a_thread(lambda: f(ones(a=2), 1))
    with warn_on_retrace(None):
        with pytest.warns(RetraceWarning):
            in_a_thread(lambda: retrace_under_a_limit(f))
        f(ones(a=4), 1)
    assert f.explain(ones(a=2), 1).traces == 3


def retrace_under_a_limit(f):
    with warn_on_retrace(1):
        f(ones(a=3), 1)


def test_blocks_that_begin_at_once_leave_nothing_behind():
    """Each is made before the other one begins, as may happen in two threads."""
    f = hax.named_jit(step)
    before = warn_on_retrace(None)
    one, other = warn_on_retrace(0), warn_on_retrace(0)
    with one, other:
        with pytest.warns(RetraceWarning):
            f(ones(a=2), 1)
    f(ones(a=3), 1)
    before.__exit__()


def test_a_block_may_be_entered_twice():
    f = hax.named_jit(step)
    block = warn_on_retrace(0)
    with block, block:
        pass
    f(ones(a=2), 1)
    with block, pytest.warns(RetraceWarning):
        f(ones(a=3), 1)


def test_calls_do_not_add_up():
    first = warn_on_retrace(None)
    reference = weakref.ref(first._setting)
    for _ in range(3):
        warn_on_retrace(None)
    del first
    for _ in range(2):
        warn_on_retrace(None)
    assert reference() is None


def test_a_bad_limit():
    with pytest.raises(
        ValueError, match=r"^warn_on_retrace: limit is -1; expected at least 0, or None to stop warning\.$"
    ):
        warn_on_retrace(-1)
