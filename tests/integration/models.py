"""The models of Levanter that the integration tests use, in tiny sizes."""

from collections.abc import Callable
from typing import Any

from levanter.models.gemma import GemmaConfig
from levanter.models.gpt2 import Gpt2Config
from levanter.models.llama import LlamaConfig
from levanter.models.lm_model import LmConfig
from levanter.models.mistral import MistralConfig
from levanter.models.mixtral import MixtralConfig
from levanter.models.olmo import Olmo2Config
from levanter.models.qwen import QwenConfig

from haliax import Axis

Vocab = Axis("vocab", 64)
SEQUENCE = 32

_SIZES: dict[str, Any] = {"max_seq_len": SEQUENCE, "hidden_dim": 32, "num_layers": 2, "num_heads": 4}
_LLAMA: dict[str, Any] = _SIZES | {"intermediate_dim": 64, "num_kv_heads": 2}

_CONFIGS: dict[str, Callable[..., LmConfig]] = {
    "gpt2": lambda **options: Gpt2Config(**_SIZES | options),
    "llama": lambda **options: LlamaConfig(**_LLAMA | options),
    "mistral": lambda **options: MistralConfig(**_LLAMA | {"sliding_window": 16} | options),
    "qwen": lambda **options: QwenConfig(**_LLAMA | options),
    "gemma": lambda **options: GemmaConfig(**_LLAMA | {"head_dim": 8, "vocab_size": Vocab.size} | options),
    "olmo2": lambda **options: Olmo2Config(**_LLAMA | options),
    "mixtral": lambda **options: MixtralConfig(**_LLAMA | {"sliding_window": 16, "n_routed_experts": 4} | options),
}

MODELS = tuple(_CONFIGS)


def tiny(name: str, **options: Any) -> LmConfig:
    """The configuration of the model `name`: 2 layers, 4 heads, width 32; `options` override its fields."""
    return _CONFIGS[name](**options)
