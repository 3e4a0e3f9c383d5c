"""Levanter trains its models on our haliax: the loss falls, layouts stay, nothing is traced twice."""

import numpy as np
import pytest

import haliax as hax
from integration.models import MODELS, tiny
from integration.training import LAYOUTS, Layout, initial_state, layouts, loss, mapped_layouts, text, trainer


@pytest.fixture(scope="module")
def expected() -> dict[str, list[float]]:
    """The losses of each model by step, on the first mesh that it was trained on."""
    return {}


def train(name: str, layout: Layout, folder, **options) -> list[float]:
    """The losses of a few steps; what must hold of them for every model is checked on the way."""
    model = tiny(name)
    with trainer(layout, folder, **options) as run, hax.debug.warn_on_retrace(1):
        state = initial_state(run, model)
        before = layouts(state)
        steps = list(run.training_steps(state, run.data_loader(text(model))))
        state = steps[-1].state
        assert layouts(state) == before
        assert layouts(state.model) == mapped_layouts(state.model, run.parameter_axis_mapping, run.device_mesh)
    assert loss.traces == 1
    return [step.loss for step in steps]


# Levanter's mixture of experts says itself how its arrays are split, not as they are on explicit axes.
ALLOWED = [(name, layout) for name in MODELS for layout in LAYOUTS if not (name == "mixtral" and layout.explicit)]


@pytest.mark.parametrize(("name", "layout"), ALLOWED, ids=str)
def test_every_model_learns_on_every_mesh(name, layout, tmp_path, expected):
    losses = train(name, layout, tmp_path)
    assert losses[-1] < losses[0] - 0.25
    np.testing.assert_allclose(losses, expected.setdefault(name, losses), rtol=1e-4)
