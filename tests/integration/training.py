"""Levanter's trainer on a tiny model and on a text that is easily learnt, as programs that use Levanter make it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jmp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from levanter.checkpoint import CheckpointerConfig
from levanter.data.dataset import ListAsyncDataset
from levanter.models.lm_model import LmConfig, LmExample
from levanter.optim.config import OptimizerConfig
from levanter.tracker import NoopConfig, defer_tracker_for_jit
from levanter.trainer import Trainer, TrainerConfig
from levanter.trainer_state import TrainerState
from levanter.utils.mesh import MeshConfig

import haliax as hax
from haliax import NamedArray
from haliax.partitioning import ResourceMapping
from helpers import count_traces
from integration.models import Vocab

BATCH, STEPS = 8, 4


@dataclasses.dataclass(frozen=True)
class Layout:
    """The sizes of the mesh, and whether its axes are explicit."""

    data: int
    model: int = 1
    explicit: bool = False

    def __str__(self) -> str:
        return f"data={self.data} x model={self.model}" + " explicit" * self.explicit


LAYOUTS = (Layout(8), Layout(4, 2), Layout(2, 4), Layout(4, 2, explicit=True))


def config(layout: Layout, folder: Path, **options: Any) -> TrainerConfig:
    """The configuration of a trainer with that mesh, which keeps its files in `folder`."""
    defaults: dict[str, Any] = {
        "id": "run",
        "tracker": NoopConfig(),
        "log_dir": folder / "logs",
        "checkpointer": CheckpointerConfig(base_path=str(folder / "checkpoints")),
        "require_accelerator": False,
        "mp": jmp.get_policy("f32"),
        "mesh": MeshConfig(axes={"data": layout.data, "model": layout.model}),
        "use_explicit_mesh_axes": layout.explicit,
        "train_batch_size": BATCH,
        "num_train_steps": STEPS,
        "log_jaxprs": False,
        "log_xla_hlo": False,
    }
    result = TrainerConfig(**defaults | options)
    result._validate_and_set_defaults()  # what is left of `initialize` without its logging
    return result


@count_traces
def loss(model: Any, example: LmExample, *, key: jax.Array | None = None) -> Any:
    """The loss of the next token, and what the model logs meanwhile; it counts its traces."""
    with defer_tracker_for_jit() as metrics:
        result = model.compute_next_token_loss(example, key=key)
    return result, metrics


@contextmanager
def trainer(
    layout: Layout, folder: Path, *, optimizer: OptimizerConfig | None = None, **options: Any
) -> Iterator[Trainer]:
    """A trainer that is entered, so that its mesh and the mapping of its parameters are in force."""
    loss.traces = 0
    transform = optax.adam(1e-2) if optimizer is None else optimizer.build(STEPS)
    with Trainer(config(layout, folder, **options), transform, loss) as entered:
        yield entered


def initial_state(trainer: Trainer, model: LmConfig, **options: Any) -> TrainerState:
    """The state of a model with numbers of its own, or of the last checkpoint in the trainer's folder."""
    build = lambda: model.build(Vocab, key=jax.random.key(1))  # noqa: E731
    return trainer.initial_state(jax.random.PRNGKey(0), model_init=build, **options)


def text(model: LmConfig, first: int = 0) -> ListAsyncDataset:
    """As many batches as there are steps, all the same: in each row, a token is the one after the last."""
    rows = (np.arange(model.max_seq_len) + first + np.arange(STEPS * BATCH)[:, None] % BATCH) % Vocab.size
    return ListAsyncDataset([LmExample.causal(hax.named(row, model.max_Pos)) for row in rows.astype(np.int32)])


def layouts(tree: Any) -> dict[str, tuple]:
    """Where the arrays of a tree are: the PartitionSpec of each, without Nones at its end, by path."""
    leaves = {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
    return {path: _spec(leaf.sharding) for path, leaf in leaves.items() if isinstance(leaf, jax.Array)}


def mapped_layouts(tree: Any, mapping: ResourceMapping, mesh: Mesh) -> dict[str, tuple]:
    """Where `mapping` puts the named arrays of a tree on `mesh`, in the form of `layouts`."""
    split = {name: axis for name, axis in mapping.items() if mesh.shape[axis] > 1}
    leaves = jax.tree_util.tree_leaves_with_path(tree, is_leaf=lambda x: isinstance(x, NamedArray))
    named = {jax.tree_util.keystr(path): leaf for path, leaf in leaves if isinstance(leaf, NamedArray)}
    return {f"{path}.array": _strip(tuple(map(split.get, x.axis_names))) for path, x in named.items()}


def _spec(sharding: NamedSharding) -> tuple:
    return _strip(tuple(sharding.spec))


def _strip(spec: tuple) -> tuple:
    return _strip(spec[:-1]) if spec and spec[-1] is None else spec
