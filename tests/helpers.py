"""Small tools shared by the tests."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def count_traces(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, with an attribute `traces`: how often its Python body has run, which under `jit` counts traces."""

    @functools.wraps(fn)
    def counted(*args, **kwargs):
        counted.traces += 1
        return fn(*args, **kwargs)

    counted.traces = 0
    return counted
