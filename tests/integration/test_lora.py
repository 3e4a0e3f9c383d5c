"""Levanter fine-tunes by low-rank adapters on our haliax, which it puts into stacks of layers by `hax.vmap`."""

import jax
import numpy as np
import pytest
from levanter.adaptor.lora import (
    LoraConfig,
    filter_lora_params,
    lora_trainable_params_filter,
    loraize,
    merge_lora_modules,
    partition_lora_params,
)

import haliax as hax
from integration.models import Vocab, tiny
from integration.training import Layout, layouts, loss, text, trainer

pytestmark = pytest.mark.usefixtures("forced_hosts")

MODEL = tiny("llama")


def numbers(tree):
    return {jax.tree_util.keystr(path): np.asarray(x) for path, x in jax.tree_util.tree_leaves_with_path(tree)}


@pytest.mark.parametrize("layout", [Layout(4, 2), Layout(4, 2, explicit=True)], ids=str)
def test_adapters_are_trained_and_nothing_else(layout, tmp_path):
    with trainer(layout, tmp_path) as run:
        mapping = run.parameter_axis_mapping
        base = hax.named_jit(MODEL.build, mapping)(Vocab, key=jax.random.key(1))
        adapt = hax.named_jit(lambda m: loraize(m, LoraConfig(r=4), key=jax.random.key(2)), mapping)
        model = adapt(base)
        weights = numbers(partition_lora_params(model)[0])
        trainable = lora_trainable_params_filter(model)
        state = run.initial_state(jax.random.PRNGKey(0), model=model, is_trainable=trainable)
        before = layouts(state)
        steps = list(run.training_steps(state, run.data_loader(text(MODEL))))
        trained = steps[-1].state.model

        assert steps[-1].loss < steps[0].loss
        assert loss.traces == 1
        assert layouts(steps[-1].state) == before
        for path, value in numbers(partition_lora_params(trained)[0]).items():
            np.testing.assert_array_equal(value, weights[path], err_msg=path)
        moments = [path for path in layouts(state.opt_state) if path.endswith(".array")]
        assert len(moments) == 2 * len(layouts(filter_lora_params(model)))
        assert all("lora" in path for path in moments)

        merged = merge_lora_modules(trained)
        tokens = hax.arange(MODEL.max_Pos) % Vocab.size
        predict = hax.named_jit(lambda m: m(tokens, key=None))
        np.testing.assert_allclose(predict(merged).array, predict(trained).array, atol=1e-4)
