"""Levanter trains its models on our haliax: the loss falls, layouts stay, nothing is traced twice."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jmp
import numpy as np
import pytest
from levanter.callbacks.watch import WatchConfig
from levanter.layers.attention import AttentionBackend
from levanter.models.lm_model import LmConfig
from levanter.optim.config import AdamConfig
from levanter.optim.model_averaging import EmaModelAveragingConfig
from levanter.optim.muon import MuonConfig

import haliax as hax
from haliax.partitioning import forced_host_shim
from haliax.quantization import QuantizationConfig
from integration.models import MODELS, tiny
from integration.training import BATCH, LAYOUTS, Layout, initial_state, layouts, loss, mapped_layouts, text, trainer


def train(model: LmConfig, layout: Layout, folder: Path, **options: Any) -> list[float]:
    """The losses of a few steps; what must hold of them for every model is checked on the way."""
    with trainer(layout, folder, **options) as run, hax.debug.warn_on_retrace(1):
        state = initial_state(run, model)
        before = layouts(state)
        steps = list(run.training_steps(state, run.data_loader(text(model))))
        state = steps[-1].state
        assert layouts(state) == before
        mapped = mapped_layouts(state.model, run.parameter_axis_mapping, run.device_mesh)
        assert {path: layouts(state.model)[path] for path in mapped} == mapped
    return [step.loss for step in steps]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[float]]:
    """The losses of each model by step, on the first mesh."""

    @functools.cache
    def losses(name: str) -> list[float]:
        found = train(tiny(name), LAYOUTS[0], tmp_path_factory.mktemp(name))
        assert loss.traces == 1
        return found

    return losses


# Levanter's mixture of experts says itself how its arrays are split, not as they are on explicit axes.
ALLOWED = [
    pytest.param(name, layout, id=f"{name}, {layout}", marks=pytest.mark.xdist_group(name))
    for name in MODELS
    for layout in LAYOUTS
    if not (name == "mixtral" and layout.explicit)
]


@pytest.mark.parametrize(("name", "layout"), ALLOWED)
def test_every_model_learns_on_every_mesh(name, layout, tmp_path, expected):
    reference = expected(name)
    losses = reference if layout == LAYOUTS[0] else train(tiny(name), layout, tmp_path)
    assert loss.traces == 1
    assert losses[-1] < losses[0] - 0.25
    np.testing.assert_allclose(losses, reference, rtol=1e-4)


# options of the trainer and of the model that change how a step is computed, not what comes out
SAME = {
    "forced-host shim": ({}, {}),  # off everywhere else in this file
    "programs logged": ({"log_jaxprs": True, "log_xla_hlo": True}, {}),
    "norms watched": ({"watch": WatchConfig(["grads", "params", "opt_state", "updates"], interval=2)}, {}),
    "weights averaged": ({"model_averaging": EmaModelAveragingConfig(0.9)}, {}),
    "layers in a loop": ({}, {"scan_layers": False}),
    "nothing recomputed": ({}, {"gradient_checkpointing": False}),
    "carries on the host": ({}, {"gradient_checkpointing": "offload"}),
    "scan of scans": ({}, {"gradient_checkpointing": "nested"}),
    "plain attention": ({}, {"attn_backend": AttentionBackend.VANILLA}),
    "attention in blocks": ({}, {"flash_attention_block_size": 8}),
}


@pytest.mark.xdist_group("llama")
@pytest.mark.parametrize("way", SAME)
def test_the_same_training_in_another_way(way, tmp_path, expected):
    options, fields = SAME[way]
    reference = expected("llama")
    with forced_host_shim("on" if way == "forced-host shim" else "off"):
        losses = train(tiny("llama", **fields), Layout(4, 2), tmp_path, **options)
    assert loss.traces == 1 + (way == "norms watched")  # Levanter has a program with and one without
    np.testing.assert_allclose(losses, reference, rtol=1e-3)


OTHER = {
    "bfloat16": {"mp": jmp.get_policy("p=f32,c=bfloat16")},
    "8-bit floats": {"quantization": QuantizationConfig(fp8=True)},
    "8-bit integers": {"quantization": QuantizationConfig(int8=True)},
    "microbatches": {"train_batch_size": 2 * BATCH, "per_device_parallelism": 2, "num_train_steps": 2},
    "microbatches of 8-bit floats": {
        "train_batch_size": 2 * BATCH,
        "per_device_parallelism": 2,
        "num_train_steps": 2,
        "quantization": QuantizationConfig(fp8=True),
    },
    "adam": {"optimizer": AdamConfig(warmup=0.0)},
    "muon": {"optimizer": MuonConfig(warmup=0.0)},
}


@pytest.mark.parametrize("way", OTHER)
def test_training_by_other_numbers(way, tmp_path):
    losses = train(tiny("llama"), Layout(4, 2), tmp_path, **OTHER[way])
    assert losses[-1] < losses[0] - 0.1
    assert loss.traces == 1 + way.startswith("microbatches")  # Levanter asks for the shapes first
