"""One process of several: it joins the others, runs checks in lockstep with them, and writes down how each went.

Usage: worker.py PROCESS COUNT COORDINATOR OUTCOMES MODULE:CHECK...
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import jax

# A process that dies must be missed soon, also by those that do not talk to it; on a busy machine, not too soon.
TIMEOUTS = {"heartbeat_timeout_seconds": 10, "initialization_timeout": 60, "shutdown_timeout_seconds": 30}


def main(process: str, count: str, coordinator: str, outcomes: str, *checks: str) -> None:
    """Run checks until one fails: the others may be waiting there, and must not take a later check for this one."""
    functions = {check: function_of(*check.split(":")) for check in checks}
    jax.distributed.initialize(coordinator, int(count), int(process), **TIMEOUTS)
    with open(outcomes, "w") as out:
        for name, function in functions.items():
            outcome = run(function)
            print(json.dumps({"check": name, **outcome}), file=out, flush=True)
            if "error" in outcome:
                os._exit(1)  # without the usual farewell, for which the others are not ready


def function_of(module: str, name: str) -> Callable[[], Any]:
    """A function of a module of this directory."""
    return getattr(importlib.import_module(module), name)


def run(check: Callable[[], Any]) -> dict[str, Any]:
    """What a check returned or raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return {"value": check()}
    except BaseException:  # as pytest's own failures are
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    main(*sys.argv[1:])
