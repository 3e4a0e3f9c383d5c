"""Load a Hugging Face folder onto a mesh of eight devices, straight from its safetensors files.

Each array is read into the layout that an axis mapping gives it: no device and no host ever holds the whole model, and
of several processes (`--processes 2`) each reads the bytes of its own devices alone. A folder of the GPT-2 family
becomes a named model, which then runs on the mesh; of any other model the arrays are loaded by name, split as evenly as
their sizes allow. Without a folder, a small GPT-2 with random weights is written first. `--help` lists what can be
changed.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import equinox as eqx
import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding

import haliax as hax
import haliax.nn as hnn
import local_processes
from haliax import Axis, NamedArray
from haliax.partitioning import forced_host_shim
from haliax.state_dict import (
    StateDictError,
    TensorFileError,
    from_torch_compatible_state_dict,
    load_state_dict,
    save_state_dict,
    to_torch_compatible_state_dict,
)

# How the axes of the model lie over the mesh, in its files and while it runs.
MAPPING = {"embed": "data", "heads": "model", "mlp": "model"}
COMPUTE = {"heads": "model", "mlp": "model"}

DEVICES = 8
SMALL = {"vocab_size": 512, "n_positions": 64, "n_embd": 64, "n_head": 4, "n_layer": 4, "layer_norm_epsilon": 1e-5}


# A model with the names that Hugging Face gives to its parts ---------------------------------------------------------


class Attention(eqx.Module):
    c_attn: hnn.Linear
    c_proj: hnn.Linear

    def __call__(self, x: NamedArray) -> NamedArray:
        query, key, value = self.c_attn(x).unbind("qkv")
        Pos = x.resolve_axis("pos")
        KeyPos = Pos.alias("key_pos")
        key, value = (array.rename({"pos": "key_pos"}) for array in (key, value))
        mask = hnn.attention.causal_mask(Pos, KeyPos)
        return self.c_proj(hnn.attention.dot_product_attention(KeyPos, "head_size", query, key, value, mask=mask))


class Mlp(eqx.Module):
    c_fc: hnn.Linear
    c_proj: hnn.Linear

    def __call__(self, x: NamedArray) -> NamedArray:
        return self.c_proj(hnn.gelu(self.c_fc(x)))


class Block(eqx.Module):
    ln_1: hnn.LayerNorm
    attn: Attention
    ln_2: hnn.LayerNorm
    mlp: Mlp

    @staticmethod
    def init(config: Mapping[str, Any], *, key: jax.Array) -> Block:
        Embed, Heads = Axis("embed", config["n_embd"]), Axis("heads", config["n_head"])
        HeadSize, Hidden = Axis("head_size", Embed.size // Heads.size), Axis("mlp", 4 * Embed.size)

        def linear(In: Any, Out: Any, number: int) -> hnn.Linear:
            # GPT-2's matrices have their inputs first
            return hnn.Linear.init(In, Out, key=jax.random.fold_in(key, number), out_first=False)

        norm = hnn.LayerNorm.init(Embed, eps=config["layer_norm_epsilon"])
        attention = Attention(linear(Embed, (Axis("qkv", 3), Heads, HeadSize), 0), linear((Heads, HeadSize), Embed, 1))
        return Block(norm, attention, norm, Mlp(linear(Embed, Hidden, 2), linear(Hidden, Embed, 3)))

    def __call__(self, x: NamedArray) -> NamedArray:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(eqx.Module):
    wte: hnn.Embedding
    wpe: hnn.Embedding
    h: hnn.Stacked[Block]
    ln_f: hnn.LayerNorm

    @staticmethod
    def init(config: Mapping[str, Any], *, key: jax.Array) -> Gpt2:
        Embed, Layers = Axis("embed", config["n_embd"]), Axis("layers", config["n_layer"])
        tokens, positions, layers = jax.random.split(key, 3)
        return Gpt2(
            hnn.Embedding.init(Axis("vocab", config["vocab_size"]), Embed, key=tokens, init_scale=0.2),
            hnn.Embedding.init(Axis("position", config["n_positions"]), Embed, key=positions, init_scale=0.2),
            hnn.Stacked.init(Layers, Block)(config, key=jax.random.split(layers, Layers.size)),
            hnn.LayerNorm.init(Embed, eps=config["layer_norm_epsilon"]),
        )

    def __call__(self, tokens: NamedArray) -> NamedArray:
        """Logits of the token after each, along axes pos and vocab."""
        x = self.wte(tokens) + self.wpe(hax.arange(tokens.resolve_axis("pos")))
        return self.wte.unembed(self.ln_f(self.h.fold(x)))


# The job -------------------------------------------------------------------------------------------------------------


def write_small(folder: Path) -> None:
    """A folder as `save_pretrained` leaves it, with the weights in several files."""
    model = Gpt2.init(SMALL, key=jax.random.key(0))
    arrays = to_torch_compatible_state_dict(model, prefix="transformer")
    config = {**SMALL, "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    save_state_dict(arrays, folder, max_shard_size=300_000)


def template_of(config: Mapping[str, Any]) -> Gpt2 | None:
    """The model that a folder holds, of shapes without arrays; None if this file does not know it."""
    if config.get("model_type") != "gpt2":
        return None
    return eqx.filter_eval_shape(Gpt2.init, config, key=jax.random.key(0))


def load(template: Gpt2 | None, folder: Path, mesh: Mesh, prefix: str) -> Any:
    """What is in a folder, on the mesh: like the template, or arrays by name."""
    if template is None:
        return load_state_dict(folder, mesh=mesh)
    # some files have buffers beside the parameters
    return from_torch_compatible_state_dict(
        template, folder, prefix=prefix or None, mesh=mesh, sharding=MAPPING, strict="missing"
    )


def bytes_read() -> int | None:
    """The bytes that this process has read of files so far, where the system counts them."""
    counters = Path("/proc/self/io")
    if not counters.exists():
        return None
    return int(dict(line.split(": ") for line in counters.read_text().splitlines())["rchar"])


def table(tree: Any) -> Iterator[str]:
    """A line for each array: its path, its axes, how they lie over the mesh, and its bytes."""
    rows = [("path", "axes", "layout", "bytes")]
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree, is_leaf=lambda x: isinstance(x, NamedArray)):
        named = isinstance(leaf, NamedArray)
        axes = ", ".join(f"{axis.name}={axis.size}" for axis in leaf.axes) if named else str(leaf.shape)
        array = leaf.array if named else leaf
        rows.append((jax.tree_util.keystr(path, simple=True, separator="."), axes, layout(array), f"{array.nbytes:,}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def layout(array: jax.Array) -> str:
    spec = array.sharding.spec if isinstance(array.sharding, NamedSharding) else ()
    return f"P({', '.join(map(repr, spec))})"


def next_token(model: Gpt2, tokens: NamedArray) -> jax.Array:
    return hax.argmax(model(tokens)["pos", -1], "vocab").scalar()


def run(folder: Path, options: argparse.Namespace) -> None:
    """The job of one process; all of them do the same."""
    mesh = jax.make_mesh((DEVICES // 2, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
    try:
        template = template_of(json.loads((folder / "config.json").read_text()))
    except json.JSONDecodeError as error:
        raise SystemExit(f"{folder / 'config.json'} is no JSON: {error}") from None
    except KeyError as key:
        raise SystemExit(f"{folder / 'config.json'} has no entry {key}") from None
    before = bytes_read()
    model = jax.block_until_ready(load(template, folder, mesh, options.prefix))
    after = bytes_read()

    arrays = jax.tree.leaves(model)
    total = sum(array.nbytes for array in arrays)
    if jax.process_index() == 0:
        print("\n".join(table(model)))
    counted = "(this system does not count)" if before is None or after is None else f"{after - before:,}"
    print(f"Process {jax.process_index()} of {jax.process_count()} read {counted} of {total:,} bytes.")

    if isinstance(model, Gpt2):
        tokens = hax.named(np.array(options.tokens, np.int32), "pos")
        token = hax.named_jit(next_token, mesh=mesh, axis_resources=COMPUTE)(model, tokens)
        if jax.process_index() == 0:
            print(f"After the tokens {' '.join(map(str, options.tokens))} the most likely one is {int(token)}.")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def parse_options() -> argparse.Namespace:
    parser = Parser(description="Load a Hugging Face folder onto a mesh of eight devices.")
    parser.add_argument("folder", type=Path, nargs="?", help="with config.json and safetensors files (a small GPT-2)")
    parser.add_argument("--processes", type=int, default=1, help="how many share the devices: 1, 2 or 4 (1)")
    parser.add_argument(
        "--prefix", default="transformer", help="of the names in a GPT-2's files; empty for none (transformer)"
    )
    parser.add_argument(
        "--tokens", type=int, nargs="+", default=[1, 2, 3, 5, 8], help="what a GPT-2 continues (1 2 3 5 8)"
    )
    options = parser.parse_args()
    if options.processes not in (1, 2, 4):
        parser.error(f"--processes {options.processes}: must be 1, 2 or 4, which share {DEVICES} devices")
    if options.folder is not None and not (options.folder / "config.json").is_file():
        parser.error(f"{options.folder}: has no config.json")
    return options


def main() -> None:
    options = parse_options()
    local_processes.use_cpu_devices(DEVICES // options.processes)
    member = local_processes.join()
    if not member:
        print("Eight forced CPU devices stand in for accelerators; the forced-host shim is off, as it is on those.")
    with tempfile.TemporaryDirectory() as made, forced_host_shim("off"):
        folder = options.folder or Path(os.environ.setdefault("HALIAX_EXAMPLE_FOLDER", made))
        if options.folder is None and not member:
            write_small(folder)
        if options.processes > 1 and not member:
            local_processes.launch(options.processes)
            return
        try:
            run(folder, options)
        except (OSError, StateDictError, TensorFileError) as error:
            raise SystemExit(f"{folder}: {error}") from None


if __name__ == "__main__":
    main()
