"""What haliax adds to a training step of Levanter: a tiny llama on 8 CPU devices, with the former haliax and with ours.

Run it with a Python 3.12 that has Levanter as PyPI has it, with the haliax that it asks for, such as the one that
`python3.12 -m venv X; X/bin/pip install marin-levanter==0.2.227.dev40316220070` makes. This checkout goes in front of
that haliax on the path, in a process of its own, so all else is the same. Each figure is the fastest of many calls,
which take turns with `jax.jit` of the same step on flat lists of arrays.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CALLS = Path(__file__).with_name("levanter_calls.py")
COLUMNS = {"former": ROOT / "tests", "ours": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}"}


def in_process(path: str | os.PathLike[str]) -> dict[str, float]:
    """The milliseconds of each call, with that PYTHONPATH."""
    flags = "--xla_force_host_platform_device_count=8"
    env = {**os.environ, "PYTHONPATH": str(path), "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    env["HALIAX_FORCED_HOST_SHIM"] = "off"  # inputs stay where they are, as on accelerators
    done = subprocess.run([sys.executable, CALLS], env=env, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    found = {name: in_process(path) for name, path in COLUMNS.items()}
    print(f"{'milliseconds':<42}" + "".join(f"{name:>10}" for name in found) + f"{'former / ours':>16}")
    for label in found["ours"]:
        former, ours = found["former"][label], found["ours"][label]
        print(f"{label:<42}{former:>10.3f}{ours:>10.3f}{former / ours:>16.2f}")


if __name__ == "__main__":
    main()
