"""Levanter evaluates on our haliax: what it reports is what plain JAX computes from the model's logits."""

import jax
import numpy as np
import optax
import pytest
from levanter.eval import cb_tagged_lm_evaluate
from levanter.layers.attention import AttentionMask
from levanter.tracker import NoopConfig, NoopTracker

import haliax as hax
from integration.models import tiny
from integration.training import LAYOUTS, initial_state, text, trainer

pytestmark = pytest.mark.usefixtures("forced_hosts")

MODEL = tiny("llama")
SETS = {"text/near": text(MODEL), "text/far": text(MODEL, first=30)}


class Keeping(NoopTracker):
    """A tracker that keeps what was logged last."""

    def __init__(self):
        self.logged = {}

    def log(self, metrics, *, step, commit=None):
        self.logged |= metrics


class KeepingConfig(NoopConfig):
    def init(self, run_id):
        return Keeping()


def loss_of_next_token(model, dataset) -> float:
    """The mean over all tokens that have a next one, on one device."""
    rows = np.stack([np.asarray(example.tokens.array) for example in dataset.data])
    logits = model(hax.named(rows, ("batch", MODEL.max_Pos.name)), AttentionMask.causal())
    raw = logits.rearrange(("batch", MODEL.max_Pos.name, "vocab")).array
    return float(optax.softmax_cross_entropy_with_integer_labels(raw[:, :-1], rows[:, 1:]).mean())


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_losses_by_dataset(layout, tmp_path):
    with trainer(layout, tmp_path, tracker=KeepingConfig(), steps_per_eval=1, num_train_steps=1) as run:
        state = initial_state(run, MODEL)
        tagged = [(dataset, [name]) for name, dataset in SETS.items()]
        mapping = run.compute_axis_mapping
        run.add_hook(cb_tagged_lm_evaluate(run.EvalBatch, tagged, None, run.device_mesh, mapping, mp=run.mp), every=1)
        run.add_eval_hook(SETS["text/far"], name="far")
        model = run.train(state, run.data_loader(text(MODEL))).model
        logged = run.tracker.loggers[0].logged

    model = jax.tree.map(np.asarray, model)
    near, far = (loss_of_next_token(model, dataset) for dataset in SETS.values())
    found = [logged[f"eval/{name}"] for name in ("text/near/loss", "text/far/loss", "loss", "far/loss")]
    np.testing.assert_allclose(found, [near, far, (near + far) / 2, far], rtol=1e-4)
