"""A training step of Levanter beside `jax.jit` of the same step: what `levanter_step.py` runs with each haliax."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

from integration.models import tiny
from integration.training import Layout, initial_state, text, trainer

CALLS = 200


def measure() -> dict[str, float]:
    """The milliseconds of a call, by what was measured."""
    model = tiny("llama")
    with tempfile.TemporaryDirectory() as folder, trainer(Layout(8), Path(folder)) as run:
        batch = next(iter(run.data_loader(text(model))))
        arrays, rest = eqx.partition((initial_state(run, model), batch), eqx.is_array)
        (states, batches), structure = tuple(map(jax.tree.leaves, arrays)), jax.tree.structure(arrays)

        def flat(state: list[jax.Array], batch: list[jax.Array]) -> list[jax.Array]:
            state, batch = eqx.combine(structure.unflatten(state + batch), rest)
            return jax.tree.leaves(run._train_step(state, (batch,), {}, _no_hooks=True))

        bare = jax.jit(flat, donate_argnums=0)
        named = run._jit_train_step_fn_no_hook
        kept = len(states)

        def step_bare(state: list[jax.Array]) -> list[jax.Array]:
            return bare(state, batches)[-kept:]

        def step_named(state: Any) -> Any:
            return named(state, (batch,), {}).new_state

        return compare({"jax.jit": (step_bare, states), "named_jit": (step_named, initial_state(run, model))})


def compare(variants: dict[str, tuple[Callable[[Any], Any], Any]]) -> dict[str, float]:
    """Steps of all variants by turns: until the results are there, and the work of the calling thread until then."""
    whole: dict[str, list[float]] = {name: [] for name in variants}
    calls: dict[str, list[float]] = {name: [] for name in variants}
    states = {name: jax.block_until_ready(step(state)) for name, (step, state) in variants.items()}
    for _ in range(CALLS):
        for name, (step, _state) in variants.items():
            begin, begin_thread = time.perf_counter(), time.thread_time()
            states[name] = step(states[name])
            calls[name].append(time.thread_time() - begin_thread)
            jax.block_until_ready(states[name])
            whole[name].append(time.perf_counter() - begin)
    found = {f"{name}, the step": times for name, times in whole.items()}
    found |= {f"{name}, the call alone (CPU time)": times for name, times in calls.items()}
    return {label: 1000 * min(times) for label, times in found.items()}


if __name__ == "__main__":
    print(json.dumps(measure()))
