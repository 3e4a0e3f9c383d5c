"""What processes do together: broadcasts, barriers, files, and the training step of the example."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import haliax as hax
from haliax.jax_utils import assert_equal, broadcast_one_to_all, sync_global_devices
from meshes import MAPPING, NAMES, VALUES, make_mesh, spec_of

SCRIPT = Path(__file__).parents[2] / "examples" / "train_lm.py"


@pytest.mark.parametrize(("processes", "devices"), [(2, 4), (4, 2)])
def test_in_lockstep(in_lockstep, processes, devices, check):
    values = in_lockstep(processes, devices, check)
    if check == "check_training":
        assert np.allclose(values, train(), rtol=0, atol=1e-5)


# broadcasts and barriers ----------------------------------------------------------------------------------------------


def tree_of(number: int) -> dict:
    """A pytree that differs from process to process, with all kinds of leaves that can be sent."""
    return {
        "named": hax.NamedArray(jnp.arange(3.0) + number, ("x",)),
        "raw": jnp.full((2, 2), number, jnp.bfloat16),
        "host": np.array([number, 1], np.int8),
        "flag": np.array(number == 1),
        "wide": np.array([[2**40 + number], [-1]]),
        "seconds": 1 / (number + 3),
        "number": number,
        "key": jax.random.key(number),
        "keys": hax.NamedArray(jax.random.split(jax.random.key(number), 3), ("x",)),
    }


def is_typed_key(leaf) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def data_of(leaf) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if is_typed_key(leaf) else leaf)


def check_broadcast():
    mine = tree_of(jax.process_index())
    for source in (None, 1):
        received = broadcast_one_to_all(mine, is_source=None if source is None else jax.process_index() == source)
        expected = tree_of(source or 0)
        assert jax.tree.structure(received) == jax.tree.structure(expected)
        for have, want in zip(jax.tree.leaves(received), jax.tree.leaves(expected), strict=True):
            assert np.array_equal(data_of(have), data_of(want))
            assert is_typed_key(have) == is_typed_key(want) and data_of(have).dtype == data_of(want).dtype


def check_barrier():
    folder = Path(os.environ["HALIAX_TEST_FOLDER"])
    (folder / f"arrived.{jax.process_index()}").touch()
    sync_global_devices("all have arrived")
    assert len(list(folder.glob("arrived.*"))) == jax.process_count()


def check_equality():
    assert_equal(tree_of(0))
    with pytest.raises(AssertionError):
        assert_equal({"wide": np.array(2**40 + jax.process_index())})
    with pytest.raises(AssertionError, match="the models differ"):
        assert_equal({"x": hax.arange(hax.Axis("x", 3)) + jax.process_index()}, "the models differ")


# files ----------------------------------------------------------------------------------------------------------------


def check_each_process_saves_and_loads_its_parts():
    path = Path(os.environ["HALIAX_TEST_FOLDER"]) / f"parts.{jax.process_index()}.safetensors"
    x = hax.shard(hax.NamedArray(VALUES, NAMES), MAPPING, make_mesh())
    save_file({str(part.index): np.asarray(part.data) for part in x.array.addressable_shards}, path)
    parts = load_file(path)
    raw = jax.make_array_from_callback(VALUES.shape, x.array.sharding, lambda index: parts[str(index)])
    assert holds(hax.named_jit(lambda x: x * 2, MAPPING, mesh=make_mesh())(hax.named(raw, NAMES)), VALUES * 2)


def check_one_process_saves_and_all_load():
    path = Path(os.environ["HALIAX_TEST_FOLDER"]) / "whole.safetensors"
    mesh = make_mesh()
    x = hax.shard(hax.NamedArray(VALUES, NAMES), MAPPING, mesh)
    whole = np.asarray(hax.named_jit(lambda x: x, out_axis_resources={}, mesh=mesh)(x))
    if jax.process_index() == 0:
        save_file({"x": whole}, path)
    sync_global_devices("saved")
    loaded = hax.shard(hax.NamedArray(load_file(path)["x"], NAMES), MAPPING, mesh)
    assert spec_of(loaded) == ("data", "model") and holds(loaded, VALUES)


def holds(x, values) -> bool:
    return all(np.array_equal(np.asarray(part.data), values[part.index]) for part in x.array.addressable_shards)


# training -------------------------------------------------------------------------------------------------------------


def check_training():
    return train()


@functools.cache
def train() -> list[float]:
    """The losses of a few steps of the example over eight devices."""
    job = example()
    options = job.Options(embed=16, layers=1, heads=2, seq=16, batch=4, steps=4)
    mesh = make_mesh()
    on_mesh = functools.partial(hax.named_jit, mesh=mesh)
    model = on_mesh(functools.partial(job.Transformer.init, options), job.PARAMETERS)(key=jax.random.key(0))
    optimizer = job.make_optimizer(options)
    state = on_mesh(optimizer.init, job.PARAMETERS)(model)
    step = on_mesh(
        functools.partial(job.train_step, optimizer),
        job.COMPUTE,
        out_axis_resources=job.PARAMETERS,
        donate_args=(True, True),
    )
    text = np.frombuffer(SCRIPT.read_bytes(), np.uint8)
    batches = job.random_windows(text, options.batch, options.seq, options.seed, mesh)
    losses = []
    for _ in range(options.steps):
        model, state, loss = step(model, state, *next(batches))
        losses.append(float(loss))
    return losses


def example() -> ModuleType:
    """examples/train_lm.py as a module."""
    spec = importlib.util.spec_from_file_location("train_lm", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = sys.modules["train_lm"] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
