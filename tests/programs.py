"""What a function lowers to, for tests that a named operation costs what the plain one does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax


def operations(fn: Callable[..., Any], *args: Any) -> list[str]:
    """The StableHLO operations of a function, in order, without constants."""
    text = jax.jit(fn).lower(*args).as_text()
    return [name for name in re.findall(r"stablehlo\.(\w+)", text) if name != "constant"]
