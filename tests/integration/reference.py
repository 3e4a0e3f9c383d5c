"""The other side of the tests with Hugging Face: torch and transformers, in an environment and a process of their own.

    python reference.py write FOLDER    write tiny random models, each into a folder with its tokenizer and its logits
    python reference.py read FOLDER     write the logits of the models that are in the folders of FOLDER

All models are done in one process, which takes longest to start.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers

VOCAB, LENGTH = 64, 32
TOKENS = np.random.default_rng(0).integers(0, VOCAB, (8, LENGTH), np.int32)

SIZES = {
    "vocab_size": VOCAB,
    "max_position_embeddings": LENGTH,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": None,
    "bos_token_id": 0,
    "eos_token_id": 1,
}

GPT2_SIZES = {
    "vocab_size": VOCAB,
    "n_positions": LENGTH,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "bos_token_id": 0,
    "eos_token_id": 1,
}

CONFIGS: dict[str, Callable[[], transformers.PretrainedConfig]] = {
    "gpt2": lambda: transformers.GPT2Config(**GPT2_SIZES),
    "llama": lambda: transformers.LlamaConfig(**SIZES),
    "mistral": lambda: transformers.MistralConfig(**SIZES),
    "qwen": lambda: transformers.Qwen2Config(**SIZES),
    "gemma": lambda: transformers.GemmaConfig(**SIZES, head_dim=8, hidden_act="gelu_pytorch_tanh"),
    "olmo2": lambda: transformers.Olmo2Config(**SIZES),
    "mixtral": lambda: transformers.MixtralConfig(**SIZES, num_local_experts=4),
}


def write(folder: Path) -> None:
    """Write a model of each kind, in several files."""
    np.save(folder / "tokens.npy", TOKENS)
    for name, config in CONFIGS.items():
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config()).eval()
        with torch.no_grad():
            # the initial numbers would hide mistakes: biases are 0, scales are 1
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        model.save_pretrained(folder / name, max_shard_size="40KB")
        tokenizer().save_pretrained(folder / name)
        write_logits(model, folder / name)


def read(folder: Path) -> None:
    """Write the logits of the models that somebody else has written."""
    for path in sorted(path.parent for path in folder.glob("*/config.json")):
        model, report = transformers.AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32, output_loading_info=True
        )
        wrong = {kind: sorted(names) for kind, names in report.items() if names}
        if wrong:
            raise SystemExit(f"{path} does not fit {type(model).__name__}: {wrong}")
        write_logits(model.eval(), path)


def write_logits(model: transformers.PreTrainedModel, folder: Path) -> None:
    """Write what a model makes of the tokens."""
    with torch.no_grad():
        logits = model(torch.tensor(TOKENS.astype(np.int64))).logits
    np.save(folder / "logits.npy", logits.numpy())


def tokenizer() -> transformers.PreTrainedTokenizerFast:
    """A tokenizer that knows one word for each token."""
    words = ["<s>", "</s>", *(f"w{i}" for i in range(2, VOCAB))]
    model = tokenizers.models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<s>")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(model), bos_token="<s>", eos_token="</s>", unk_token="<s>"
    )


if __name__ == "__main__":
    transformers.utils.logging.disable_progress_bar()
    {"write": write, "read": read}[sys.argv[1]](Path(sys.argv[2]))
