"""Train on several hosts: each process reads its own part of a batch, and all of them take the same step.

Two processes of this machine stand in for hosts, with four forced CPU devices each, in one mesh of eight. Everything
but `local_processes.launch` is what runs on a cluster too. `--help` lists what can be changed.
"""

from __future__ import annotations

import argparse
import functools
import math
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import haliax as hax
import haliax.nn as hnn
import local_processes
from haliax import Axis, NamedArray
from haliax.partitioning import forced_host_shim

# Parameters and optimizer state are split over all devices between steps; in a step, the batch is.
PARAMETERS = {"hidden": "data"}
COMPUTE = {"batch": "data"}

DEVICES = 4  # of each process
Point, Hidden, Spiral = Axis("point", 2), Axis("hidden", 64), Axis("spiral", 2)


class Classifier(eqx.Module):
    """Tells from a point of the plane which spiral it is on."""

    layers: hnn.MLP

    @staticmethod
    def init(key: jax.Array) -> Classifier:
        return Classifier(hnn.MLP.init(Point, Spiral, Hidden, depth=3, key=key, activation=hnn.gelu))

    def loss(self, points: NamedArray, labels: NamedArray) -> jax.Array:
        return hnn.cross_entropy_loss(self.layers(hax.auto_sharded(points)), Spiral, labels).scalar()


def my_examples(count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points on two spirals and the number of the spiral of each: what a host would read from its own files."""
    labels = generator.integers(2, size=count)
    turn = generator.uniform(0.5, 6.0, size=count)
    angle = turn + np.pi * labels
    points = np.stack([turn * np.cos(angle), turn * np.sin(angle)], axis=1) / 3
    return points.astype(np.float32), labels.astype(np.int32)


def global_batch(mesh: Mesh, size: int, generator: np.random.Generator) -> tuple[NamedArray, NamedArray]:
    """One array over all devices, of which each process has put its part in place; none has seen the whole."""
    points, labels = my_examples(size // jax.process_count(), generator)
    over_devices = NamedSharding(mesh, PartitionSpec("data"))
    as_one = functools.partial(jax.make_array_from_process_local_data, over_devices)
    return hax.named(as_one(points), ("batch", Point)), hax.named(as_one(labels), "batch")


def train_step(
    optimizer: optax.GradientTransformation, model: Classifier, state: Any, points: NamedArray, labels: NamedArray
) -> tuple[Classifier, Any, jax.Array]:
    value, gradients = eqx.filter_value_and_grad(Classifier.loss)(model, points, labels)
    updates, state = optimizer.update(gradients, state, model)  # pyright: ignore  (any pytree holds parameters)
    return eqx.apply_updates(model, updates), state, value


def run(options: argparse.Namespace) -> None:
    """The job of one process; all of them run the same programs in the same order."""
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    on_mesh = functools.partial(hax.named_jit, mesh=mesh)
    first = jax.process_index() == 0
    generator = np.random.default_rng(jax.process_index())  # each host has examples of its own

    optimizer = optax.adam(3e-3)
    # the same key everywhere, so that all processes make one and the same model, each its own part of it
    model = on_mesh(Classifier.init, PARAMETERS)(jax.random.key(0))
    state = on_mesh(optimizer.init, PARAMETERS)(model)  # pyright: ignore  (any pytree holds parameters)
    if first:
        print(f"{jax.process_count()} processes with {DEVICES} devices each, one mesh of data={mesh.shape['data']}.")
    jax.block_until_ready((model, state))  # a CPU that plays several devices runs, or compiles, one program at a time
    weight = model.layers.layers[1].weight
    held = sum(shard.data.size for shard in weight.array.addressable_shards)
    print(f"Process {jax.process_index()} holds {held:,} of {weight.size:,} numbers of {weight}.")

    step = on_mesh(
        functools.partial(train_step, optimizer), COMPUTE, out_axis_resources=PARAMETERS, donate_args=(True, True)
    )
    value = math.inf
    for number in range(1, options.steps + 1):
        model, state, loss = step(model, state, *global_batch(mesh, options.batch, generator))
        value = float(loss)  # a scalar is on all devices: each process reads its own copy
        if first and (number % max(1, options.steps // 5) == 0 or number == 1):
            print(f"step {number}: loss {value:.4f}")

    print(f"Process {jax.process_index()}: final loss {value:.6f}")
    losses = multihost_utils.process_allgather(np.float32(value))
    if first:
        print(f"The losses of all processes are {'equal' if len(set(losses.tolist())) == 1 else 'DIFFERENT'}.")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> Any:
        self.exit(2, f"{self.prog}: {message}\n")


def parse_options() -> argparse.Namespace:
    parser = Parser(
        description="Train a small classifier in several processes.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--processes", type=int, default=2, help="how many")
    parser.add_argument("--steps", type=int, default=60, help="training steps")
    parser.add_argument("--batch", type=int, default=512, help="examples in a step, of all processes together")
    options = parser.parse_args()
    for name, value in vars(options).items():
        if value < 1:
            parser.error(f"--{name} {value}: must be positive")
    devices = options.processes * DEVICES
    if Hidden.size % devices:
        parser.error(f"--processes {options.processes}: {Hidden} does not divide over {devices} devices")
    if options.batch % devices:
        parser.error(f"--batch {options.batch}: does not divide over {devices} devices")
    return options


if __name__ == "__main__":
    options = parse_options()
    local_processes.use_cpu_devices(DEVICES)
    if local_processes.join():
        with forced_host_shim("off"):
            run(options)
    else:
        print("Forced CPU devices stand in for accelerators; the forced-host shim is off, as it is on those.")
        local_processes.launch(options.processes)
