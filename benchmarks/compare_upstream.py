"""Run the benchmarks with the haliax that people used before and with this checkout, and print both side by side.

Both run in one environment, which has the former haliax from PyPI and is kept for the next time: this checkout goes in
front of it on the path. So Python, JAX and Equinox are the same. Further arguments go to pytest, such as `-k eager`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[1]
REQUIREMENTS = ["marin-haliax==0.2.227.dev40316220070", "jax==0.12.0.1", "pytest>=8.4", "pytest-benchmark>=5.3"]
HOME = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "haliax-compare-upstream"

Results: TypeAlias = dict[str, dict[str, float]]
"""The fastest round of each variant, in seconds, by group."""


def find_python() -> str:
    """An interpreter that the former haliax runs on: Python 3.12 or newer."""
    if sys.version_info >= (3, 12):
        return sys.executable
    found = next(filter(None, map(shutil.which, ("python3.12", "python3.13"))), None)
    if found is None:
        sys.exit("compare_upstream: needs Python 3.12 or newer: pass --python")
    return found


def environment(home: Path, python: str) -> Path:
    """The interpreter of the environment, which is built unless it is there."""
    interpreter, ready = home / "bin" / "python", home / "ready"
    if not ready.exists():
        print(f"building {home} (a minute or two)", flush=True)
        subprocess.run([python, "-m", "venv", "--clear", home], check=True)
        # a development version, whose own requirements are such too
        subprocess.run([interpreter, "-m", "pip", "install", "-q", "--pre", *REQUIREMENTS], check=True)
        ready.touch()
    return interpreter


def run(python: Path, path: str, arguments: Sequence[str]) -> Results:
    """Run the benchmarks with `path` as PYTHONPATH."""
    env = {**os.environ, "PYTHONPATH": path}
    where = subprocess.run([python, "-c", "import haliax; print(haliax.__file__)"], env=env, stdout=subprocess.PIPE)
    print(f"running with {where.stdout.decode().strip()}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        options = ["-q", "--benchmark-quiet", "-o", "filterwarnings=default", "-p", "no:cacheprovider"]
        command = [python, "-m", "pytest", *options, f"--benchmark-json={file}", "benchmarks", *arguments]
        # a benchmark that fails is a gap in the table
        subprocess.run(command, env=env, cwd=ROOT)
        return read(json.loads(file.read_text() or "{}"))


def read(report: dict[str, Any]) -> Results:
    """What counts of a report of pytest-benchmark."""
    results: Results = {}
    for bench in report.get("benchmarks", ()):
        results.setdefault(bench["group"], {})[bench["params"]["variant"]] = bench["stats"]["min"]
    return results


def side_by_side(ours: Results, theirs: Results) -> Iterator[str]:
    """A table with a line for each benchmark: microseconds, and how often the baseline of the same run goes into it."""
    yield f"{'':34}{'this checkout':>20}{'upstream':>20}{'upstream / ours':>18}"
    for group in {**ours, **theirs}:
        yield group
        here, there = ours.get(group, {}), theirs.get(group, {})
        for variant in {**here, **there}:
            speedup = f"{there[variant] / here[variant]:.2f}" if variant in here and variant in there else "-"
            yield f"  {variant:<32}{_cell(here, variant):>20}{_cell(there, variant):>20}{speedup:>18}"


def _cell(times: dict[str, float], variant: str) -> str:
    if variant not in times:
        return "-"
    ratio = f"{times[variant] / times['baseline']:7.2f}" if "baseline" in times else f"{'?':>7}"
    return f"{times[variant] * 1e6:.1f} {ratio}"


def main() -> None:
    """Build, run twice, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the environment (%(default)s)")
    parser.add_argument("--python", help="an interpreter of Python 3.12 or newer, to build it with")
    options, arguments = parser.parse_known_args()
    python = environment(options.home, options.python or find_python())
    ours = run(python, str(ROOT / "src"), arguments)
    theirs = run(python, "", arguments)
    print("\n".join(side_by_side(ours, theirs)))


if __name__ == "__main__":
    main()
