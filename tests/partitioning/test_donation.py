"""Which arguments give their memory to the result."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import haliax as hax
from meshes import MAPPING, NAMES, PLACES, VALUES, make_mesh, on, spec_of


def fresh(mesh):
    return {"a": on(mesh, "data"), "b": {"c": on(mesh, "data").array}}, on(mesh, "model")


def gone(tree):
    return [leaf.is_deleted() for leaf in jax.tree.leaves(tree)]


def step(params, x=None):
    return jax.tree.map(lambda leaf: leaf + 1, (params, x))


A, BC = [True, False], [False, True]


@pytest.mark.parametrize(
    ("donate_args", "first", "second"),
    [
        (None, [False, False], [False]),
        (False, [False, False], [False]),
        (True, [True, True], [True]),
        ((True,), [True, True], [False]),
        ((True, False), [True, True], [False]),
        ([False, True], [False, False], [True]),
        (({"a": True, "b": False}, False), A, [False]),
        (({"a": False, "b": {"c": True}}, True), BC, [True]),
        ((), [False, False], [False]),
    ],
)
def test_donate_args(mesh, donate_args, first, second):
    f = hax.named_jit(step, mesh=mesh, donate_args=donate_args)
    for _ in range(2):
        params, x = fresh(mesh)
        out, _ = f(params, x)
        assert gone(params) == first and gone(x) == second
        assert np.array_equal(np.asarray(out["a"]), VALUES + 1)


@pytest.mark.parametrize(
    ("donate_kwargs", "first", "second"),
    [
        (None, [False, False], [False]),
        (True, [True, True], [True]),
        ({"x": True}, [False, False], [True]),
        ({"params": {"a": True, "b": False}}, A, [False]),
        (("params",), [True, True], [False]),
        (["x"], [False, False], [True]),
    ],
)
def test_donate_kwargs(mesh, donate_kwargs, first, second):
    f = hax.named_jit(step, mesh=mesh, donate_kwargs=donate_kwargs)
    params, x = fresh(mesh)
    f(params=params, x=x)
    assert gone(params) == first and gone(x) == second


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"donate_args": (True, False, True)},
            ValueError,
            "named_jit(step): donate_args has 3 entries; expected at most one for each positional argument, of"
            " which this call has 2. Arguments passed by keyword are donated with donate_kwargs; `self` counts as an"
            " argument of a method.",
        ),
        (
            {"donate_args": ({"a": True}, False)},
            ValueError,
            "named_jit(step): donate_args or donate_kwargs does not fit the structure of the arguments; expected a bool"
            " for each argument, or a pytree of bools that is a prefix of it.",
        ),
        (
            {"donate_args": ("yes", False)},
            TypeError,
            "named_jit(step): an entry of donate_args or donate_kwargs is a string; expected a bool.",
        ),
    ],
)
def test_what_does_not_fit(mesh, options, kind, message):
    params, x = fresh(mesh)
    with pytest.raises(kind) as error:
        hax.named_jit(step, mesh=mesh, **options)(params, x)
    assert str(error.value) == message
    assert gone(params) == [False, False]


def test_a_typo_in_donate_kwargs():
    with pytest.raises(ValueError) as error:
        hax.named_jit(step, donate_kwargs={"parms": True})
    assert str(error.value) == (
        "named_jit(step): donate_kwargs names 'parms', which is no parameter; expected one of params, x."
        " Did you mean 'params'?"
    )


def test_static_and_host_arguments_are_not_donated(mesh):
    host = VALUES.copy()
    f = hax.named_jit(lambda a, b, c: (a + 1, c), mesh=mesh, donate_args=True)
    out, text = f(host, None, "text")
    assert np.array_equal(np.asarray(out), VALUES + 1) and text == "text" and np.array_equal(host, VALUES)


@pytest.mark.parametrize("place", ["model", None])
def test_an_argument_that_an_input_mapping_moves(mesh, place):
    """It is freed as if it had been donated in place."""
    f = hax.named_jit(lambda x: x * 2, MAPPING, in_axis_resources=MAPPING, mesh=mesh, donate_args=True)
    for _ in range(3):
        x = on(mesh, place)
        out = f(x)
        assert x.array.is_deleted() and np.array_equal(np.asarray(out), VALUES * 2)


@pytest.mark.parametrize("place", ["in place", "permuted", "half", "one device"])
@pytest.mark.parametrize("devices", [8, 1])
def test_one_array_donated_and_kept_is_refused_before_anything_is_lost(devices, place):
    mesh = make_mesh() if devices == 8 else make_mesh(slice(1), (1, 1))
    x = on(mesh, "data") if place == "in place" else PLACES[place]()
    f = hax.named_jit(lambda x, y: (x + 1, y), mesh=mesh, donate_args=(True, False), on_mesh_mismatch="move")
    with pytest.raises(ValueError) as error:
        f(x, {"again": [x]})
    assert str(error.value) == (
        "named_jit(<lambda>): x and y['again'][0] are the same array, which is donated; expected two arrays."
        " Pass a copy (x.copy()), or do not donate it."
    )
    assert not x.array.is_deleted() and np.array_equal(np.asarray(x), VALUES)


@pytest.mark.parametrize("inputs", [None, MAPPING], ids=["kept", "mapped"])
@pytest.mark.parametrize("place", ["in place", "permuted"])
def test_nothing_is_donated_inside_a_jit(mesh, place, inputs):
    """An array from outside lives on, also one that is laid out anew, and one may be passed twice."""
    held = on(mesh, "data") if place == "in place" else PLACES[place]()
    options = {"in_axis_resources": inputs, "donate_args": True, "on_mesh_mismatch": "move"}
    f = hax.named_jit(lambda x, y: x * 2 + y, mesh=mesh, **options)
    outer = jax.jit(lambda x: (f(held, x), f(held, held), f(x, x)))
    for dtype in (jnp.float32, jnp.float32, jnp.float16):  # the last one is traced again
        x = hax.NamedArray(jnp.asarray(VALUES, dtype), NAMES)
        for out in outer(x):
            assert np.array_equal(np.asarray(out), VALUES * 3)
        assert gone((held, x)) == [False, False]


def test_a_training_loop_that_donates_its_state(mesh):
    f = hax.named_jit(lambda state, x: (state + x, (state * x).sum()), MAPPING, mesh=mesh, donate_args=(True, False))
    state, x = hax.shard(hax.NamedArray(VALUES, NAMES), MAPPING, mesh=mesh), on(mesh, "data")
    pointers = set()
    for _ in range(4):
        with jax.transfer_guard("disallow"):
            state, _ = f(state, x)
        pointers.add(state.array.addressable_shards[0].data.unsafe_buffer_pointer())
        assert spec_of(state) == ("data", "model")
    assert np.array_equal(np.asarray(state), VALUES * 5) and len(pointers) == 1


def test_a_donated_buffer_under_a_constraint_gives_right_values(mesh):
    """The fault that was documented for forced-host CPU (jax issue 20088), in the form reported."""
    f = hax.named_jit(lambda x: hax.shard(x * 2, {"batch": "model"}), {}, mesh=mesh, donate_args=True)
    for _ in range(20):
        x = hax.NamedArray(jax.device_put(VALUES, NamedSharding(mesh, PartitionSpec("data"))), NAMES)
        assert np.array_equal(np.asarray(f(x)), VALUES * 2)
    assert jnp.float32 == x.dtype
