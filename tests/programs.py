"""What a function lowers to, for tests that a named operation costs what the plain one does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax


def operations(fn: Callable[..., Any], *args: Any) -> list[str]:
    """The StableHLO operations of a function, in order, without constants."""
    text = jax.jit(fn).lower(*args).as_text()
    return [name for name in re.findall(r"stablehlo\.(\w+)", text) if name != "constant"]


def counted(fn: Callable[..., Any], *args: Any) -> Counter[str]:
    """How often each StableHLO (or CHLO) operation occurs in the program of a function, constants included."""
    return Counter(re.findall(r"(?:stablehlo|chlo)\.\w+", jax.jit(fn).lower(*args).as_text()))
