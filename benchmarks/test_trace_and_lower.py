"""What names cost before a program runs: tracing and lowering a transformer, and its first call.

The baseline is the same transformer in `jax.numpy`. The programs are equal, which `extra_info` in the JSON shows.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import pytest
import transformer

import haliax as hax


class Variant(NamedTuple):
    """Which of the two transformers, and how it is compiled."""

    named: bool
    jit: Callable[..., Any]


VARIANTS = {
    "baseline": Variant(False, jax.jit),
    "jax.jit, named": Variant(True, jax.jit),
    "named_jit": Variant(True, hax.named_jit),
}
PROGRAMS = {
    "logits": (transformer.named_logits, transformer.plain_logits),
    "loss and gradients": (
        jax.value_and_grad(transformer.named_loss),
        jax.value_and_grad(transformer.plain_loss),
    ),
}
each_variant = pytest.mark.parametrize("variant", list(VARIANTS))
each_program = pytest.mark.parametrize("program", list(PROGRAMS))


def prepared(program: str, variant: str, blocks: int = transformer.BLOCKS):
    """A function that makes a new jitted function, which nothing has been traced for, and its arguments."""
    named, jit = VARIANTS[variant]
    fn = PROGRAMS[program][0 if named else 1]
    arguments = transformer.Transformer.init(blocks), transformer.named_tokens()
    return lambda: jit(lambda *args: fn(*args)), arguments if named else transformer.raw(arguments)


@each_variant
@each_program
def test_lower(benchmark, program, variant):
    benchmark.group = f"trace and lower, {program}"
    fresh, arguments = prepared(program, variant)
    lowered = benchmark.pedantic(lambda: fresh().lower(*arguments), rounds=7, warmup_rounds=1)
    if variant != "baseline":
        benchmark.extra_info["at_most"] = 1.15
    if hasattr(lowered, "cost_analysis"):
        cost = lowered.cost_analysis()
        benchmark.extra_info.update(
            operations=len(re.findall(r"(?:stablehlo|chlo)\.\w+", lowered.as_text())),
            flops=cost["flops"],
            bytes=cost["bytes accessed"],
        )


@each_variant
def test_first_call(benchmark, variant):
    """Trace, lower, compile and run."""
    benchmark.group = "first call, logits"
    if variant != "baseline":
        benchmark.extra_info["at_most"] = 1.1
    fresh, arguments = prepared("logits", variant)
    benchmark.pedantic(lambda: jax.block_until_ready(fresh()(*arguments)), rounds=3, warmup_rounds=1)
