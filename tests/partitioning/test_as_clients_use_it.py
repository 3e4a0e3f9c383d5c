"""`named_jit` in the ways that training code uses it, found in Levanter: values, layouts, traces, donation.

Each runs with the forced-host shim off, as on accelerators, and on, as such code is tested on CPU.
"""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import haliax as hax
from haliax import Axis, NamedArray
from haliax.partitioning import _get_mesh, current_thread_local_mapping, forced_host_shim
from helpers import count_traces
from meshes import spec_of

PARAMETERS = {"embed": "data", "mlp": "model"}
COMPUTE = {"batch": "data", "mlp": "model"}
Batch, Embed, Mlp = Axis("batch", 8), Axis("embed", 4), Axis("mlp", 6)


@pytest.fixture(params=["off", "on", "auto"], autouse=True)
def shim(request):
    with forced_host_shim(request.param):
        yield request.param


@pytest.fixture(autouse=True)
def in_force(mesh):
    """The mesh is in force, as a trainer sets it once for all of its work."""
    with hax.set_mesh(mesh):
        yield


class Model(eqx.Module):
    up: NamedArray
    down: NamedArray

    @staticmethod
    def init(seed: int = 0) -> Model:
        draw = np.random.default_rng(seed).normal
        up, down = draw(size=(Embed.size, Mlp.size)), draw(size=(Mlp.size, Embed.size))
        return Model(hax.named(jnp.float32(up), (Embed, Mlp)), hax.named(jnp.float32(down), (Mlp, Embed)))

    def __call__(self, x: NamedArray) -> NamedArray:
        hidden = hax.auto_sharded(hax.tanh(hax.dot(x, self.up, axis="embed")))
        return hax.dot(hidden, self.down, axis="mlp")

    def initial_cache(self, slots: Axis, *, dtype: Any) -> NamedArray:
        """Zeros for each slot, as a decoder allocates them; the shape comes from the parameters."""
        return hax.auto_sharded(hax.zeros((slots, self.up.resolve_axis("mlp")), dtype=dtype))


class State(eqx.Module):
    """Named parameters, and an optimizer's state of named moments and raw counters, with a raw and a typed key."""

    step: jax.Array
    model: Model
    moments: Any
    key: jax.Array
    typed_key: jax.Array


class Result(eqx.Module):
    loss: jax.Array
    state: State
    metrics: dict[str, jax.Array]
    hooks: Any


OPTIMIZER = optax.adam(1e-2)


def laid_out(seed: int = 0) -> Model:
    """Parameters in their layout between steps."""
    return hax.shard(Model.init(seed), PARAMETERS)


def inputs() -> NamedArray:
    return hax.shard(hax.arange((Batch, Embed), dtype=jnp.float32) / 32, COMPUTE)


def initial_state() -> State:
    model = laid_out()
    return State(jnp.zeros((), jnp.int32), model, OPTIMIZER.init(model), jax.random.PRNGKey(0), jax.random.key(1))


def layouts(model: Model) -> tuple[Any, Any]:
    return spec_of(model.up), spec_of(model.down)


def close(a: Any, b: Any) -> bool:
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.allclose(x, y, rtol=1e-5, atol=1e-6) for x, y in pairs)


def gone(tree: Any) -> set[bool]:
    return {leaf.is_deleted() for leaf in jax.tree.leaves(tree)}


IN_PARAMETERS = (("data", "model"), ("model", "data"))
IN_COMPUTE = ((None, "model"), ("model", None))


# Decorators ----------------------------------------------------------------------------------------------------------


@hax.named_jit
@count_traces
def doubled(model: Model) -> Model:
    """Twice the model."""
    return jax.tree.map(lambda leaf: leaf * 2, model)


def test_a_decorator_without_arguments_at_the_top_of_a_module():
    traces = doubled._fn.traces
    model = laid_out()
    out = doubled(model), doubled(model)
    assert doubled.__name__ == "doubled" and doubled.__doc__ == "Twice the model."
    assert layouts(out[0]) == layouts(out[1]) == IN_PARAMETERS
    assert close(out[0], jax.tree.map(lambda leaf: leaf * 2, Model.init())) and gone(model) == {False}
    assert doubled._fn.traces - traces <= 1


def test_a_decorator_with_axis_resources_only():
    key, scale = jax.random.key(3), jnp.float32(2)

    @hax.named_jit(axis_resources=COMPUTE)
    @count_traces
    def noisy(model, x):
        """It closes over arrays and a key."""
        return model(x) * scale + hax.random.normal(key, (Batch, Embed))

    model, x = laid_out(), inputs()
    expected = Model.init()(hax.named(np.asarray(x), x.axes)) * 2 + hax.random.normal(key, (Batch, Embed))
    for _ in range(2):
        out = noisy(model, x)
        assert close(out, expected) and spec_of(out) == ("data", None)
    assert noisy._fn.traces == 1 and layouts(model) == IN_PARAMETERS and gone(model) == {False}


def test_a_decorator_on_a_function_without_arguments():
    """Only what is missing of a model is made, by a closure over a tree of shapes."""
    shapes = eqx.filter_eval_shape(Model.init)
    missing = eqx.tree_at(lambda m: m.up.array, shapes, replace_fn=lambda _: None)

    @hax.named_jit(axis_resources=PARAMETERS)
    @count_traces
    def buffers():
        new = Model.init()
        return jax.tree.map(
            lambda leaf, made: made if leaf is not None else None, missing, new, is_leaf=lambda leaf: leaf is None
        )

    made = buffers(), buffers()
    assert made[0].up.array is None and close(made[0].down, Model.init().down)
    assert spec_of(made[0].down) == ("model", "data") and buffers._fn.traces == 1


@pytest.mark.parametrize("donate", [True, False])
@pytest.mark.parametrize("spelled", [lambda donate: (donate,), lambda donate: donate], ids=["(flag,)", "(flag)"])
def test_donation_by_a_tuple_and_by_a_bool_in_parentheses(donate, spelled):
    @hax.named_jit(axis_resources=PARAMETERS, donate_args=spelled(donate))
    @count_traces
    def step(model):
        return jax.tree.map(lambda leaf: leaf + 1, model)

    model = laid_out()
    for _ in range(3):
        before, model = model, step(model)
        assert gone(before) == {donate} and layouts(model) == IN_PARAMETERS
    assert close(model, jax.tree.map(lambda leaf: leaf + 3, Model.init())) and step._fn.traces == 1


def test_three_mappings_and_a_raw_result():
    @hax.named_jit(in_axis_resources=PARAMETERS, axis_resources=COMPUTE, out_axis_resources=COMPUTE)
    @count_traces
    def scores(model, x):
        assert current_thread_local_mapping() == COMPUTE
        y = model(x)
        return y.rearrange((Embed, Batch)).array, y

    for x in (inputs(), hax.shard(inputs(), PARAMETERS)):
        raw, named = scores(laid_out(), x)
        assert not isinstance(raw, NamedArray) and raw.shape == (4, 8) and close(raw.T, named.array)
        assert close(named, Model.init()(hax.named(np.asarray(x), x.axes))) and spec_of(named) == ("data", None)


# Plain calls ---------------------------------------------------------------------------------------------------------


def to_half(model):
    return jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), model)


def test_a_mapping_by_position_for_one_call():
    for _ in range(2):
        out = hax.named_jit(to_half, PARAMETERS)(Model.init())
        assert layouts(out) == IN_PARAMETERS and out.up.dtype == jnp.bfloat16


def test_a_lambda_in_the_mapping_of_a_context():
    fn = hax.named_jit(count_traces(lambda model: jax.tree.map(lambda leaf: leaf - 1, model)))
    for mapping, expected in [(PARAMETERS, IN_PARAMETERS), (COMPUTE, IN_COMPUTE), (PARAMETERS, IN_PARAMETERS)]:
        with hax.axis_mapping(mapping):
            assert layouts(fn(laid_out())) == expected
    assert fn._fn.traces == 2


@pytest.mark.parametrize("mapping", [None, COMPUTE, {"slot": "data"}], ids=str)
def test_a_bound_method_of_a_module(mapping):
    """Its parameters are arguments of the program, not constants in it."""
    model = laid_out()
    allocate = hax.named_jit(model.initial_cache, axis_resources=mapping)
    cache = allocate(Axis("slot", 4), dtype=jnp.bfloat16)
    expected = {None: (None, None), str(COMPUTE): (None, "model"), str({"slot": "data"}): ("data", None)}
    assert cache.axes == (Axis("slot", 4), Mlp) and cache.dtype == jnp.bfloat16 and not np.asarray(cache).any()
    if mapping is not None:
        assert spec_of(cache) == expected[str(mapping)]
    assert len(allocate.lower(Axis("slot", 4), dtype=jnp.bfloat16).args_info[0]) == 2


def test_a_partial_of_a_large_module_holds_no_constants():
    model = Model(hax.ones((Embed.resize(512), Mlp.resize(512))), hax.ones((Mlp.resize(512), Embed.resize(512))))
    call = hax.named_jit(functools.partial(Model.__call__, hax.shard(model, PARAMETERS)), axis_resources=COMPUTE)
    x = hax.ones((Batch, Embed.resize(512)))
    text = call.lower(x).as_text()
    assert len(text) < 20_000
    out = call(x)
    assert spec_of(out) == ("data", None) and out.axes == (Batch, Embed.resize(512))


def summaries(prefix, model, *, split=False, histogram=False):
    leaves = {"up": model.up, "down": model.down}
    out = {f"{prefix}/{name}/norm": hax.sqrt(hax.sum(leaf**2)).scalar() for name, leaf in leaves.items()}
    if histogram:
        out |= {f"{prefix}/{name}/histogram": jnp.histogram(leaf.array, bins=3)[0] for name, leaf in leaves.items()}
    return out | {f"{prefix}/split": split}


def test_strings_and_bools_beside_a_model():
    fn = hax.named_jit(count_traces(summaries))
    for _ in range(2):
        out = fn("params", laid_out(), split=True, histogram=True)
        assert sorted(out) == sorted(summaries("params", Model.init(), histogram=True))
        assert out["params/split"] is True
        assert float(out["params/up/norm"]) == pytest.approx(float(np.linalg.norm(np.asarray(Model.init().up))))
    assert fn._fn.traces == 1
    fn("updates", laid_out())
    assert fn._fn.traces == 2


def test_no_output_mapping_leaves_results_undivided():
    """`out_axis_resources={}` says that no axis of the results is split, whatever holds inside."""
    fn = hax.named_jit(lambda model, x: (model(x), model(x).array), axis_resources=COMPUTE, out_axis_resources={})
    named, raw = fn(laid_out(), inputs())
    assert spec_of(named) == (None, None) and named.array.is_fully_replicated
    assert close(named.array, raw)


# Steps of training ---------------------------------------------------------------------------------------------------


class Trainer:
    """No pytree: its methods are compiled once for each trainer."""

    def __init__(self) -> None:
        self.traces = 0

    @functools.cached_property
    def step(self):
        return hax.named_jit(self._step, axis_resources=PARAMETERS, out_axis_resources=PARAMETERS, donate_args=(True,))

    @functools.cached_property
    def step_without_hooks(self):
        return hax.named_jit(
            functools.partial(self._step, _no_hooks=True),
            axis_resources=PARAMETERS,
            out_axis_resources=PARAMETERS,
            donate_args=(True,),
        )

    def loss(self, model: Model, x: NamedArray) -> tuple[jax.Array, jax.Array]:
        """The mean over the batch, and the loss of each example as a raw array."""
        with hax.axis_mapping(COMPUTE):
            x = hax.auto_sharded(x)
            losses = hax.mean((model(x) - x) ** 2, "embed")
            return hax.mean(losses).scalar(), losses.array

    def _step(self, state: State, batch: tuple[NamedArray, ...], kwargs: dict[str, Any], _no_hooks=False) -> Result:
        self.traces += 1
        key, new_key = jax.random.split(state.key)
        gradient_of = eqx.filter_value_and_grad(lambda model: self.loss(model, *batch, **kwargs), has_aux=True)
        (value, losses), gradients = gradient_of(state.model)
        updates, moments = OPTIMIZER.update(gradients, state.moments, state.model)  # pyright: ignore
        model = eqx.apply_updates(state.model, updates)
        typed_key = jax.random.fold_in(state.typed_key, state.step)
        new_state = hax.shard(State(state.step + 1, model, moments, new_key, typed_key), PARAMETERS)
        hooks = None if _no_hooks else {"norm": hax.sum(gradients.up**2).scalar()}
        metrics = {"train/losses": losses, "train/key": jax.random.uniform(key)}
        return hax.shard_with_axis_mapping(Result(value, new_state, metrics, hooks), PARAMETERS)


def same_state(state: State, expected: State) -> bool:
    numbers = lambda s: (s.step, s.model, s.moments, s.key, jax.random.key_data(s.typed_key))  # noqa: E731
    return close(numbers(state), numbers(expected))


@pytest.mark.parametrize("which", ["step", "step_without_hooks"])
def test_a_bound_train_step_that_returns_an_optimizer_state(which):
    trainer = Trainer()
    state, expected = initial_state(), initial_state()
    for number in range(3):
        before = state
        result = getattr(trainer, which)(state, (inputs(),), {})
        state, expected = result.state, Trainer()._step(expected, (inputs(),), {}).state
        assert same_state(state, expected) and int(state.step) == number + 1
        assert gone(before) == {True}
        assert layouts(state.model) == layouts(state.moments[0].mu) == layouts(state.moments[0].nu) == IN_PARAMETERS
        assert (result.hooks is None) == (which == "step_without_hooks")
        assert spec_of(result.metrics["train/losses"]) == ("data",), "a raw array is left to JAX, which splits it"
    assert trainer.traces == 1


@pytest.mark.parametrize("donate_args", [True, False, None, (True,)], ids=str)
def test_initialization_merges_what_was_loaded(donate_args):
    """A state of which some was loaded; the rest is made in the program, where it belongs."""

    @hax.named_jit(
        axis_resources=PARAMETERS, out_axis_resources=PARAMETERS, donate_args=donate_args, donate_kwargs=None
    )
    @count_traces
    def init_and_merge(loaded, *args, **kwargs):
        loaded = eqx.filter(loaded, lambda leaf: not isinstance(leaf, jax.ShapeDtypeStruct))
        return eqx.combine(loaded, Model.init(*args, **kwargs))

    shapes = eqx.filter_eval_shape(Model.init, 1)
    loaded = eqx.tree_at(lambda m: m.up, shapes, laid_out(7).up)
    out = init_and_merge(loaded, 1)
    assert close(out, Model(Model.init(7).up, Model.init(1).down)) and layouts(out) == IN_PARAMETERS
    assert loaded.up.array.is_deleted() == bool(donate_args)
    nothing = eqx.filter(shapes, lambda _: False)
    assert close(init_and_merge(nothing, seed=2), Model.init(2)) and init_and_merge._fn.traces == 2


def test_a_template_of_shapes_and_a_dictionary_of_arrays():
    """How a checkpoint of another library is loaded: the template is static, the arrays are not."""

    def load(template, arrays):
        named = {name: hax.named(array, getattr(template, name).axes) for name, array in arrays.items()}
        return hax.shard_with_axis_mapping(Model(**named), PARAMETERS)

    fn = hax.named_jit(
        count_traces(load), axis_resources=PARAMETERS, out_axis_resources=PARAMETERS, donate_args=(True,)
    )
    arrays = {"up": np.asarray(Model.init(5).up), "down": np.asarray(Model.init(5).down)}
    for _ in range(2):
        out = fn(eqx.filter_eval_shape(Model.init), arrays)
        assert close(out, Model.init(5)) and layouts(out) == IN_PARAMETERS
    assert fn._fn.traces == 1


# What a program asks about its surroundings --------------------------------------------------------------------------


def test_the_mesh_and_the_mapping_as_seen_inside_and_outside(mesh):
    seen = {}

    @hax.named_jit(axis_resources=COMPUTE)
    def look(x):
        inside = _get_mesh()
        seen["inside"] = inside.empty, dict(inside.shape), current_thread_local_mapping()
        with hax.axis_mapping(PARAMETERS):
            seen["nested"] = current_thread_local_mapping()
        return x

    look(inputs())
    outside = _get_mesh()
    assert outside is not None and (outside.empty, dict(outside.shape)) == (False, dict(mesh.shape))
    assert seen["inside"] == (False, dict(mesh.shape), COMPUTE) and seen["nested"] == PARAMETERS
    assert current_thread_local_mapping() is None


def test_a_shard_map_of_the_mesh_in_force():
    @hax.named_jit(axis_resources=COMPUTE)
    def scaled(x):
        inner = jax.shard_map(
            lambda block: block * 2,
            mesh=_get_mesh(),
            in_specs=hax.partitioning.pspec_for_axis(x.axes),
            out_specs=hax.partitioning.pspec_for_axis(x.axes),
        )
        return hax.named(inner(x.array), x.axes)

    x = inputs()
    assert close(scaled(x), x * 2) and spec_of(scaled(x)) == ("data", None)
