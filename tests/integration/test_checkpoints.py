"""Levanter saves training on our haliax and takes it up again, on the same mesh and on another."""

import equinox as eqx
import jax
import numpy as np
import pytest
from levanter.checkpoint import latest_checkpoint_path, load_checkpoint

import haliax as hax
from haliax import NamedArray
from integration.models import Vocab, tiny
from integration.training import LAYOUTS, STEPS, Layout, initial_state, layouts, mapped_layouts, text, trainer

pytestmark = pytest.mark.usefixtures("forced_hosts")

MODEL = tiny("llama")


def train(layout, folder, until):
    """Train from the last checkpoint in `folder`, or from the beginning, and save what has come of it."""
    with trainer(layout, folder, num_train_steps=until) as run:
        state = initial_state(run, MODEL)
        begun = int(state.step)
        assert layouts(state.model) == mapped_layouts(state.model, run.parameter_axis_mapping, run.device_mesh)
        last = run.train(state, run.data_loader(text(MODEL)).iter_from_step(begun))
    return begun, last


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return train(Layout(4, 2), tmp_path_factory.mktemp("uninterrupted"), STEPS)[1]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_training_goes_on_where_it_was_saved(layout, tmp_path, uninterrupted):
    train(Layout(4, 2), tmp_path, STEPS // 2)
    begun, last = train(layout, tmp_path, STEPS)
    assert begun == STEPS // 2
    assert last.step == STEPS - 1
    np.testing.assert_allclose(last.loss, uninterrupted.loss, rtol=1e-4)


def test_a_model_alone_is_restored_by_its_shapes(tmp_path):
    _, last = train(Layout(4, 2), tmp_path, 1)
    shapes = eqx.filter_eval_shape(MODEL.build, Vocab, key=jax.random.key(0))
    path = latest_checkpoint_path(str(tmp_path / "checkpoints" / "run"))
    with trainer(Layout(2, 4), tmp_path) as run:
        model = load_checkpoint(shapes, path, subpath="model", axis_mapping=run.parameter_axis_mapping)
        assert layouts(model) == mapped_layouts(model, run.parameter_axis_mapping, run.device_mesh)
    for restored, saved in zip(hax.tree_util.tree_leaves(model), hax.tree_util.tree_leaves(last.model), strict=True):
        assert isinstance(restored, NamedArray)
        assert restored.axes == saved.axes
        np.testing.assert_array_equal(restored.array, saved.array)
