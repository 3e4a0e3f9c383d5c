"""A plain Equinox model with a few named arrays: trained with Optax on a mesh, saved and restored with Orbax.

Only what is worth splitting has names: the weights of a mixture of experts, by `expert` and `hidden`. The layers around
them are Equinox's own, with raw arrays, which keep whatever layout they have. Everything is one pytree, so Optax and
Orbax need to know nothing of haliax. Eight forced CPU devices stand in for accelerators; `--help` lists what can be
changed.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import haliax as hax
import haliax.nn as hnn
from haliax import Axis, NamedArray
from haliax.partitioning import forced_host_shim

# How named axes lie over the mesh, while a step runs and between steps.
COMPUTE = {"batch": "data", "expert": "model"}
PARAMETERS = {"expert": "model", "hidden": "data"}

DEVICES = 8
Batch, Expert, Width, Hidden = Axis("batch", 256), Axis("expert", 4), Axis("width", 16), Axis("hidden", 32)


# Model ---------------------------------------------------------------------------------------------------------------


class Model(eqx.Module):
    """From points of the plane to a number, by experts that each point is shared out among."""

    encoder: eqx.nn.Linear
    gate: eqx.nn.Linear
    up: NamedArray
    down: NamedArray
    activation: Callable[[NamedArray], NamedArray] = eqx.field(static=True, default=hnn.silu)

    @staticmethod
    def init(key: jax.Array) -> Model:
        keys = jax.random.split(key, 4)
        return Model(
            eqx.nn.Linear(2, Width.size, key=keys[0]),
            eqx.nn.Linear(Width.size, Expert.size, key=keys[1]),
            hax.random.normal(keys[2], (Expert, Width, Hidden)) / Width.size**0.5,
            hax.random.normal(keys[3], (Expert, Hidden)) / Hidden.size**0.5,
        )

    def __call__(self, points: jax.Array) -> NamedArray:
        """Points along the batch, to numbers along the batch: raw arrays get names where experts come in."""
        encoded = jnp.tanh(jax.vmap(self.encoder)(points))
        gates = hax.named(jax.nn.softmax(jax.vmap(self.gate)(encoded)), (Batch, Expert))
        hidden = hax.dot(hax.named(encoded, (Batch, Width)), self.up, axis=Width)
        hidden = hax.auto_sharded(self.activation(hidden))
        return hax.dot(hidden, self.down, gates, axis=(Expert, Hidden))


def loss(model: Model, points: jax.Array, values: jax.Array) -> jax.Array:
    return hax.mean((model(points) - hax.named(values, Batch)) ** 2).scalar()


def train_step(
    optimizer: optax.GradientTransformation, model: Model, state: Any, points: jax.Array, values: jax.Array
) -> tuple[Model, Any, jax.Array]:
    """The next model and optimizer state, and the loss before the step."""
    value, gradients = eqx.filter_value_and_grad(loss)(model, points, values)
    updates, state = optimizer.update(gradients, state, model)  # pyright: ignore  (any pytree holds parameters)
    return eqx.apply_updates(model, updates), state, value


def batches(mesh: Mesh) -> Iterator[tuple[jax.Array, jax.Array]]:
    """For ever: points of the plane, and at each the height of a hilly landscape."""
    generator = np.random.default_rng(0)
    split = NamedSharding(mesh, PartitionSpec("data"))
    while True:
        points = generator.uniform(-2, 2, size=(Batch.size, 2)).astype(np.float32)
        values = np.sin(2 * points[:, 0]) * np.cos(2 * points[:, 1])
        yield jax.device_put((points, values), split)


# Checkpoints ---------------------------------------------------------------------------------------------------------


def save(folder: Path, tree: Any) -> None:
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder, tree)


def restore(folder: Path, like: Any) -> Any:
    """What was saved, each array in the layout of its counterpart: the parts of it are read where they belong."""
    with ocp.StandardCheckpointer() as checkpointer:
        return checkpointer.restore(folder, jax.tree.map(ocp.utils.to_shape_dtype_struct, like))


def layout_table(model: Model, restored: Model) -> Iterator[str]:
    """A line for each array: its path, its axes, and its layout before and after."""
    rows = [("array", "axes", "saved", "restored")]
    leaves = functools.partial(jax.tree_util.tree_leaves_with_path, is_leaf=lambda x: isinstance(x, NamedArray))
    for (path, leaf), (_, other) in zip(leaves(model), leaves(restored), strict=True):
        named = isinstance(leaf, NamedArray)
        axes = ", ".join(f"{axis.name}={axis.size}" for axis in leaf.axes) if named else f"{leaf.shape}, no names"
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        before, after = (layout(x.array if named else x) for x in (leaf, other))
        rows.append((name, axes, before, after))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def layout(array: jax.Array) -> str:
    spec = array.sharding.spec if isinstance(array.sharding, NamedSharding) else ()
    return f"P({', '.join(map(repr, spec))})"


# The job -------------------------------------------------------------------------------------------------------------


def run(steps: int) -> None:
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
    on_mesh = functools.partial(hax.named_jit, mesh=mesh)
    optimizer = optax.adam(1e-2)
    model = on_mesh(Model.init, PARAMETERS)(jax.random.key(0))
    state = on_mesh(optimizer.init, PARAMETERS)(model)  # pyright: ignore  (any pytree holds parameters)
    # parameters come and go in their layout of between steps, and a step reuses their memory
    step = on_mesh(
        functools.partial(train_step, optimizer), COMPUTE, out_axis_resources=PARAMETERS, donate_args=(True, True)
    )

    data = batches(mesh)
    for number in range(1, steps + 1):
        model, state, value = step(model, state, *next(data))
        if number in (1, steps) or number % max(1, steps // 4) == 0:
            print(f"step {number}: loss {float(value):.4f}")

    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / "checkpoint", (model, state))
        restored, restored_state = restore(Path(folder) / "checkpoint", (model, state))
    print("\nSaved and restored:\n")
    print("\n".join(layout_table(model, restored)))

    batch = next(data)
    _, _, expected = step(model, state, *batch)
    _, _, value = step(restored, restored_state, *batch)
    print(f"\nThe next step: loss {expected:.6f} without a stop, {value:.6f} as restored.")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> None:
    parser = Parser(
        description="Train an Equinox model with a few named arrays; save it and restore it.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--steps", type=int, default=200, help="training steps")
    options = parser.parse_args(argv)
    if options.steps < 1:
        parser.error(f"--steps {options.steps}: must be positive")
    print(f"{DEVICES} forced CPU devices stand in for accelerators; the forced-host shim is off, as it is on those.")
    with forced_host_shim("off"):
        run(options.steps)


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", DEVICES)
    main()
