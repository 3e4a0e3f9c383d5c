"""Small tools shared by the tests."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def count_traces(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, with an attribute `traces`: how often its Python body has run, which under `jit` counts traces."""

    @functools.wraps(fn)
    def counted(*args, **kwargs):
        counted.traces += 1
        return fn(*args, **kwargs)

    counted.traces = 0
    return counted


@contextlib.contextmanager
def compilations() -> Iterator[list[str]]:
    """What XLA compiles in a block: a list that is filled with the messages of JAX."""
    messages: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("Finished XLA compilation"):
                messages.append(record.getMessage())

    handler = Handler()
    logging.getLogger("jax").addHandler(handler)
    try:
        with jax.log_compiles():
            yield messages
    finally:
        logging.getLogger("jax").removeHandler(handler)


def with_numbers(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `make` returns, with other random numbers in its arrays: made without a compilation for each shape."""
    shapes, treedef = jax.tree.flatten(jax.eval_shape(lambda: make(*args, **kwargs)))
    draws = [np.random.default_rng(i).normal(size=x.shape) for i, x in enumerate(shapes)]
    return treedef.unflatten(jnp.asarray(x, shape.dtype) for x, shape in zip(draws, shapes, strict=True))
