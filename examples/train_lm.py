"""Train a small transformer on the source code of Python's standard library, over a mesh of eight devices.

The whole job in one file: read the text, say how the axes of the model lie over the mesh, train through `named_jit`,
look at where the parameters are, save them, load them on devices in another order, and let the model write.
Eight forced CPU devices stand in for accelerators, so that it runs anywhere; `--help` lists what can be changed.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # errors only: XLA of jax 0.12 warns of moves between device orders

import equinox as eqx
import jax
import numpy as np
import optax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, Sharding
from safetensors.numpy import load_file, save_file
from tqdm import tqdm

import haliax as hax
import haliax.nn as hnn
from haliax import Axis, NamedArray
from haliax.partitioning import forced_host_shim

# How axes lie over the mesh. Between steps, the parameters are split over all devices: by "embed" among those that work
# on different parts of a batch, by the others among those that work on the same part.
PARAMETERS = {"embed": "data", "heads": "model", "mlp": "model", "vocab": "model"}
# Inside a step it is the batch that is split over "data"; the compiler gathers what it needs of the parameters.
COMPUTE = {"batch": "data", "heads": "model", "mlp": "model", "vocab": "model"}

DEVICES = 8
HELD_OUT_WINDOWS = 128
Vocab = Axis("vocab", 256)  # a token is a byte

Batch: TypeAlias = tuple[NamedArray, NamedArray]  # bytes, and those that follow them
Batches: TypeAlias = Iterator[Batch]
Step: TypeAlias = Callable[..., tuple["Transformer", Any, jax.Array]]


# Options -------------------------------------------------------------------------------------------------------------


def option(default: Any, text: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": text})


@dataclasses.dataclass(frozen=True)
class Options:
    """What the command line sets, and the axes it gives."""

    embed: int = option(64, "width of the residual stream, a multiple of --heads")
    layers: int = option(2, "number of transformer blocks")
    heads: int = option(4, "attention heads in a block")
    seq: int = option(128, "bytes that the model sees at once")
    batch: int = option(16, "sequences in a step")
    steps: int = option(500, "training steps")
    lr: float = option(1e-2, "highest learning rate")
    mesh: str = option("4x2", f"devices along 'data' x along 'model', {DEVICES} in all")
    eval_every: int = option(50, "steps between looks at the held-out loss")
    sample: int = option(400, "bytes to write at the end")
    seed: int = option(0, "seed of everything random")

    @property
    def mesh_shape(self) -> tuple[int, int]:
        data, _, model = self.mesh.partition("x")
        return int(data), int(model)

    @property
    def Embed(self) -> Axis:
        return Axis("embed", self.embed)

    @property
    def Heads(self) -> Axis:
        return Axis("heads", self.heads)

    @property
    def HeadSize(self) -> Axis:
        return Axis("head_size", self.embed // self.heads)

    @property
    def Mlp(self) -> Axis:
        return Axis("mlp", 4 * self.embed)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def parse_options(argv: Sequence[str] | None) -> Options:
    parser = Parser(
        description="Train a small byte-level transformer on the source code of Python's standard library.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for field in dataclasses.fields(Options):
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=type(field.default),
            default=field.default,
            help=field.metadata["help"],
        )
    options = Options(**vars(parser.parse_args(argv)))
    problem = find_problem(options)
    if problem is not None:
        parser.error(problem)
    return options


def find_problem(options: Options) -> str | None:
    """What is wrong with the options, in one line."""
    for name, value in vars(options).items():
        if name != "mesh" and not (value > 0 or (name == "seed" and value == 0)):
            return f"--{name.replace('_', '-')} {value}: must be positive"
    shapes = [(n, DEVICES // n) for n in (4, 2, 8, 1)]
    if options.mesh not in {f"{data}x{model}" for data, model in shapes}:
        choices = ", ".join(f"{data}x{model}" for data, model in shapes)
        return f"--mesh {options.mesh}: no mesh of {DEVICES} devices has this shape; choose from {choices}"
    data, model = options.mesh_shape
    for name, parts, why in [
        ("embed", options.heads, f"the {options.heads} heads"),
        ("embed", data, f"the {data} devices along 'data'"),
        ("batch", data, f"the {data} devices along 'data'"),
        ("heads", model, f"the {model} devices along 'model'"),
    ]:
        size = getattr(options, name)
        if size % parts:
            up = -(-size // parts) * parts
            fits = f"{up - parts} or {up}" if up > parts else f"{up}"
            return f"--{name} {size}: does not divide over {why}; {fits} would"
    return None


# Text ----------------------------------------------------------------------------------------------------------------


def read_standard_library() -> tuple[np.ndarray, np.ndarray]:
    """The bytes of Python's standard library, without its tests: most files to train on, every twentieth held out."""
    root = Path(sysconfig.get_path("stdlib"))
    skipped = {"test", "tests", "idlelib", "site-packages", "dist-packages"}
    files = sorted(path for path in root.rglob("*.py") if skipped.isdisjoint(path.relative_to(root).parts))

    def read(paths: list[Path]) -> np.ndarray:
        return np.frombuffer(b"\n".join(path.read_bytes() for path in paths), np.uint8)

    return read([path for i, path in enumerate(files) if i % 20]), read(files[::20])


def random_windows(text: np.ndarray, count: int, seq: int, seed: int, mesh: Mesh) -> Batches:
    """For ever: bytes and the bytes that follow them, each with axes batch and pos, split over the mesh."""
    generator = np.random.default_rng(seed)
    axes = (Axis("batch", count), Axis("pos", seq))
    while True:
        starts = generator.integers(len(text) - seq, size=count)
        windows = text[starts[:, None] + np.arange(seq + 1)].astype(np.int32)
        yield hax.shard((hax.named(windows[:, :-1], axes), hax.named(windows[:, 1:], axes)), COMPUTE, mesh)


# Model ---------------------------------------------------------------------------------------------------------------


class Block(eqx.Module):
    """Attention, then a multilayer perceptron, each on normalized input and added to the residual stream."""

    attention_norm: hnn.RmsNorm
    to_qkv: hnn.Linear
    from_heads: hnn.Linear
    mlp_norm: hnn.RmsNorm
    up: hnn.Linear
    down: hnn.Linear

    @staticmethod
    def init(options: Options, *, key: jax.Array) -> Block:
        Embed, Heads, HeadSize, Mlp = options.Embed, options.Heads, options.HeadSize, options.Mlp
        linear = partial(hnn.Linear.init, use_bias=False)
        norm = hnn.RmsNorm.init(Embed, use_bias=False)
        keys = jax.random.split(key, 4)
        return Block(
            norm,
            linear(Embed, (Axis("qkv", 3), Heads, HeadSize), key=keys[0]),
            linear((Heads, HeadSize), Embed, key=keys[1], init_scale=0.3),
            norm,
            linear(Embed, Mlp, key=keys[2]),
            linear(Mlp, Embed, key=keys[3], init_scale=0.3),
        )

    def __call__(self, x: NamedArray) -> NamedArray:
        x = hax.auto_sharded(x + self.attend(self.attention_norm(x)))
        return hax.auto_sharded(x + self.down(hnn.gelu(self.up(self.mlp_norm(x)))))

    def attend(self, x: NamedArray) -> NamedArray:
        """Each position looks at itself and at those before it, the near ones first (ALiBi, Press et al. 2021)."""
        query, key, value = self.to_qkv(x).unbind("qkv")
        Pos = x.resolve_axis("pos")
        KeyPos = Pos.alias("key_pos")
        mixed = hnn.attention.dot_product_attention(
            KeyPos,
            "head_size",
            query,
            key.rename({"pos": "key_pos"}),
            value.rename({"pos": "key_pos"}),
            mask=hnn.attention.causal_mask(Pos, KeyPos),
            bias=hnn.attention.alibi_attention_bias(query.resolve_axis("heads"), KeyPos),
        )
        return self.from_heads(mixed)


class Transformer(eqx.Module):
    """From bytes along axis pos to logits of the byte after each: axes pos and vocab, and any others of the input."""

    embedding: hnn.Embedding
    blocks: hnn.Stacked[Block]
    norm: hnn.RmsNorm
    head: hnn.Linear

    @staticmethod
    def init(options: Options, *, key: jax.Array) -> Transformer:
        Embed = options.Embed
        embedding_key, blocks_key, head_key = jax.random.split(key, 3)
        return Transformer(
            hnn.Embedding.init(Vocab, Embed, key=embedding_key, init_scale=Embed.size**0.5),  # vectors of length 1
            hnn.Stacked.init(Axis("layers", options.layers), Block)(
                options, key=jax.random.split(blocks_key, options.layers)
            ),
            hnn.RmsNorm.init(Embed, use_bias=False),
            hnn.Linear.init(Embed, Vocab, key=head_key, use_bias=False, init_scale=0.1),
        )

    def __call__(self, tokens: NamedArray) -> NamedArray:
        x = hax.auto_sharded(self.embedding(tokens))
        return self.head(self.norm(self.blocks.fold(x)))


# Steps ---------------------------------------------------------------------------------------------------------------


def loss(model: Transformer, inputs: NamedArray, targets: NamedArray) -> jax.Array:
    """Nats per byte."""
    return hnn.cross_entropy_loss(model(inputs), Vocab, targets).scalar()


def train_step(
    optimizer: optax.GradientTransformation, model: Transformer, state: Any, inputs: NamedArray, targets: NamedArray
) -> tuple[Transformer, Any, jax.Array]:
    """The next model and optimizer state, and the loss before the step."""
    value, gradients = eqx.filter_value_and_grad(loss)(model, inputs, targets)
    updates, state = optimizer.update(gradients, state, model)  # pyright: ignore  (any pytree holds parameters)
    return eqx.apply_updates(model, updates), state, value


def write(model: Transformer, window: NamedArray, keys: jax.Array, temperature: float = 0.7) -> NamedArray:
    """One byte for each key; the model always sees the same number of bytes, so one program writes all of them."""
    Pos = window.resolve_axis("pos")
    is_last = hax.arange(Pos) == Pos.size - 1

    def write_byte(window: NamedArray, key: jax.Array) -> tuple[NamedArray, NamedArray]:
        logits = model(window)["pos", -1] / temperature
        byte = hax.random.categorical(key, logits, "vocab").astype(window.dtype)
        return hax.where(is_last, byte, hax.roll(window, -1, "pos")), byte

    return hax.scan(write_byte, Axis("written", len(keys)))(window, keys)[1]


def make_optimizer(options: Options) -> optax.GradientTransformation:
    schedule = optax.warmup_cosine_decay_schedule(
        0.0, options.lr, warmup_steps=options.steps // 10, decay_steps=options.steps, end_value=options.lr / 20
    )
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, b2=0.95, weight_decay=0.1))


# Where the parameters are --------------------------------------------------------------------------------------------


def named_parameters(model: Transformer) -> dict[str, NamedArray]:
    """The parameters of a model by path, such as `blocks.stacked.up.weight`."""
    leaves = jax.tree_util.tree_leaves_with_path(model, is_leaf=lambda x: isinstance(x, NamedArray))
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def bytes_moved(array: jax.Array, before: jax.sharding.Sharding) -> int:
    """The bytes of an array that lie on devices which had other parts of it before."""
    had = before.devices_indices_map(array.shape)
    return sum(shard.data.nbytes for shard in array.addressable_shards if had.get(shard.device) != shard.index)


def layout_table(model: Transformer, before: Mapping[str, Sharding]) -> str:
    rows = [("parameter", "axes", "before", "after", "bytes moved")]
    for path, parameter in named_parameters(model).items():
        axes = ", ".join(f"{axis.name}={axis.size}" for axis in parameter.axes)
        after = parameter.array.sharding
        moved = f"{bytes_moved(parameter.array, before[path]):,}"
        rows.append((path, axes, format_layout(before[path]), format_layout(after), moved))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def format_layout(sharding: Sharding) -> str:
    spec = sharding.spec if isinstance(sharding, NamedSharding) else PartitionSpec()
    return f"P({', '.join(map(repr, spec))})"


def save(model: Transformer, path: Path) -> None:
    save_file({name: np.asarray(parameter.array) for name, parameter in named_parameters(model).items()}, path)


def load(like: Transformer, path: Path, mesh: Mesh) -> Transformer:
    """A model saved by `save`, with the structure of `like`, laid out on `mesh`."""
    arrays = load_file(path)
    parameters = [hax.named(arrays[name], parameter.axes) for name, parameter in named_parameters(like).items()]
    structure = jax.tree.structure(like, is_leaf=lambda x: isinstance(x, NamedArray))
    return hax.shard(structure.unflatten(parameters), PARAMETERS, mesh)


# The job -------------------------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> None:
    started = time.monotonic()
    options = parse_options(argv)
    print(f"{DEVICES} forced CPU devices stand in for accelerators; the forced-host shim is off, as it is on those.")
    with forced_host_shim("off"):
        run(options)
    print(f"\nDone in {time.monotonic() - started:.0f} s.")


def run(options: Options) -> None:
    mesh = jax.make_mesh(options.mesh_shape, ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
    on_mesh = partial(hax.named_jit, mesh=mesh)
    training, held_out = read_standard_library()
    batches = random_windows(training, options.batch, options.seq, options.seed, mesh)
    held_out_batch = next(random_windows(held_out, HELD_OUT_WINDOWS, options.seq, options.seed, mesh))

    # Parameters are made where they belong: no device ever holds all of them.
    key, sample_key = jax.random.split(jax.random.key(options.seed))
    model = on_mesh(partial(Transformer.init, options), PARAMETERS)(key=key)
    optimizer = make_optimizer(options)
    state = on_mesh(optimizer.init, PARAMETERS)(model)  # pyright: ignore  (any pytree holds parameters)
    before = {path: parameter.array.sharding for path, parameter in named_parameters(model).items()}
    size = sum(parameter.size for parameter in named_parameters(model).values())
    print(f"Model: {size:,} parameters on a mesh of data={mesh.shape['data']}, model={mesh.shape['model']}.")
    print(f"Text: {len(training):,} bytes to train on, {len(held_out):,} held out.\n")

    # A step takes the parameters as they lie and returns them so; it reuses their memory.
    step = on_mesh(partial(train_step, optimizer), COMPUTE, out_axis_resources=PARAMETERS, donate_args=(True, True))
    held_out_loss = on_mesh(lambda model, batch: loss(model, *batch), COMPUTE)
    model, state = train(options, step, partial(held_out_loss, batch=held_out_batch), model, state, batches)
    print(layout_table(model, before))

    model = call_with_loaded(step, model, state, next(batches), Mesh(mesh.devices[::-1, ::-1], mesh.axis_names))

    prompt = hax.named(held_out[: options.seq].astype(np.int32), "pos")
    written = on_mesh(write, COMPUTE)(model, prompt, jax.random.split(sample_key, options.sample))
    print(f"\nThe model writes on after the first {options.seq} bytes of the held-out text:\n")
    print(bytes(np.asarray(written).astype(np.uint8)).decode(errors="replace"))


def train(
    options: Options,
    step: Step,
    held_out_loss: Callable[[Transformer], jax.Array],
    model: Transformer,
    state: Any,
    batches: Batches,
) -> tuple[Transformer, Any]:
    """All steps, with a progress bar and the held-out loss now and then."""
    first = last = float(held_out_loss(model))
    progress = tqdm(range(1, options.steps + 1), desc="training", unit="step", dynamic_ncols=True, mininterval=1)
    for number in progress:
        model, state, value = step(model, state, *next(batches))
        progress.set_postfix(loss=f"{float(value):.3f}", held_out=f"{last:.3f}", refresh=False)
        if number % options.eval_every == 0 or number == options.steps:
            last = float(held_out_loss(model))
            progress.write(f"step {number}: held-out loss {last:.3f} nats per byte", file=sys.stdout)
    print(f"\nHeld-out loss: {first:.3f} -> {last:.3f} nats per byte\n")
    return model, state


def call_with_loaded(step: Step, model: Transformer, state: Any, batch: Batch, other_mesh: Mesh) -> Transformer:
    """Save the parameters, load them on another mesh, and take the same step with both; returns the next model."""
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "model.safetensors")
        loaded = load(model, Path(folder) / "model.safetensors", other_mesh)
    print("\nSaved, and loaded on the same devices in reversed order. The same step, called with what was loaded:\n")
    model, state, expected = step(model, state, *batch)
    with warnings.catch_warnings(record=True, action="always") as caught:
        _, _, value = step(loaded, state, *batch)
    print(*(f"{warning.category.__name__}: {warning.message}" for warning in caught), sep="\n")
    print(f"\nLoss with the parameters in memory: {expected:.6f}. As loaded: {value:.6f}.", end=" ")
    print(f"Difference: {abs(expected - value):.1e}.")
    return model


def use_cpu_devices() -> None:
    """Make this process's CPU look like eight devices; it must come before anything runs on JAX."""
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", DEVICES)


if __name__ == "__main__":
    use_cpu_devices()
    main()
