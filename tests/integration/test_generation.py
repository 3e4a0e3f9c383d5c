"""Levanter's inference engine on our haliax: with its cache of keys and values it generates what the model predicts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from levanter.inference.engine import InferenceEngine, InferenceEngineConfig, Request
from levanter.inference.jit_scheduler import SeqDecodingParams
from levanter.layers.attention import AttentionMask

import haliax as hax
from integration.models import Vocab, tiny
from integration.training import Layout, config

pytestmark = pytest.mark.usefixtures("forced_hosts")

MODEL = tiny("llama")
PROMPTS = [[3, 4, 5, 6], [40], [10, 11, 12, 13, 14, 15, 16]]
NEW = 6
ENGINE = InferenceEngineConfig(
    max_seq_len=32, page_size=4, max_pages=48, max_seqs=6, max_queued_tokens=16, compute_dtype=jnp.float32
)


def request(prompt, number=0, *, temperature=0.0, n=1, stop=None):
    stop_tokens = None if stop is None else hax.named(jnp.array([[stop]], jnp.int32), ("stop_seq", "position"))
    params = SeqDecodingParams(
        max_num_tokens=jnp.array(len(prompt) + NEW, dtype=jnp.int32),
        stop_tokens=stop_tokens,
        temperature=jnp.array(temperature, dtype=jnp.float32),
        top_p=jnp.array(1.0, dtype=jnp.float32),
        key=jax.random.PRNGKey(0),
    )
    return Request(prompt_tokens=prompt, request_id=number, decode_params=params, n_generations=n)


def greedy(predict, prompt):
    """The likeliest tokens after a prompt, each from a pass over all tokens so far."""
    tokens = list(prompt)
    for _ in range(NEW):
        padded = hax.named(np.array(tokens + [0] * (MODEL.max_seq_len - len(tokens)), np.int32), MODEL.max_Pos)
        tokens.append(int(predict(padded)["position", len(tokens) - 1].argmax("vocab").item()))
    return tokens[len(prompt) :]


@pytest.mark.parametrize("layout", [Layout(8), Layout(2, 4)], ids=str)
def test_generation_follows_the_model(layout, tmp_path):
    run = config(layout, tmp_path)
    with run.use_device_mesh(), hax.axis_mapping(run.compute_axis_mapping):
        model = hax.named_jit(MODEL.build, run.parameter_axis_mapping)(Vocab, key=jax.random.key(1))
        predict = hax.named_jit(lambda tokens: model(tokens, AttentionMask.causal()))
        expected = [greedy(predict, prompt) for prompt in PROMPTS]
        engine = InferenceEngine.from_model_with_config(model, None, ENGINE, run.compute_axis_mapping)
        for _ in range(2):
            result = engine.generate([request(prompt, i) for i, prompt in enumerate(PROMPTS)])
            assert result.tokens == expected

        sampled = [engine.generate([request(PROMPTS[0], temperature=1.0, n=3)]).tokens for _ in range(2)]
        assert sampled[0] == sampled[1]
        assert len(set(map(tuple, sampled[0]))) == 3
        stop = expected[2][-1]
        stopped = engine.generate([request(PROMPTS[2], stop=stop)]).tokens[0]
        assert stopped == expected[2][: expected[2].index(stop) + 1]
