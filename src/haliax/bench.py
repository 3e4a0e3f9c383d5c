"""Measure what haliax costs on one's own model: `python -m haliax.bench module:function`.

The function returns what to call: `(fn, args)` or `(fn, args, kwargs)`. `fn` is a plain function, or one that
`named_jit` has compiled with the options that are to be measured:

    # my_model.py
    def step():
        return hax.named_jit(train_step, axis_resources=mapping, donate_args=(True,)), (state, batch)

    python -m haliax.bench my_model:step

It may yield it instead, inside the contexts that a call needs, such as a mesh. `--old` takes an interpreter that has an
older haliax, measures there too, and prints both side by side.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from haliax._src import call_costs

STEPS = {
    "call": "one call, until its result is there",
    "arguments alone": "the same arguments, nothing computed",
    "trace and lower": "trace and lower",
    "compile": "compile",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print.

    Args:
        argv: The command line; that of the process if None.

    Raises:
        SystemExit: If something can not be used, after one line that says what.

    Source:
        `timeit.main`
    """
    parser = argparse.ArgumentParser(
        "python -m haliax.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("function", metavar="module:function", help="gives the function to call and its arguments")
    parser.add_argument("--old", metavar="PYTHON", help="an interpreter with an older haliax, to compare with")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long to repeat each step (%(default)s)")
    options = parser.parse_args(argv)
    try:
        if not options.seconds >= 0:
            raise call_costs.Malformed(f"--seconds {options.seconds}: must not be negative")
        call_costs.find(options.function)
        old = _measure_with(options.old, options.function, options.seconds) if options.old else None
        new = call_costs.run(options.function, options.seconds)
    except call_costs.Malformed as error:
        print(f"haliax.bench: {error}", file=sys.stderr)
        sys.exit(2)
    print("\n".join(_table(options.function, new, old)))


def _measure_with(python: str, function: str, seconds: float) -> dict[str, Any]:
    """Measure with another interpreter, which has another haliax."""
    ours = Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        # not as a file on the command line, whose folder would come first on the path, modules of ours in it
        program = f"import runpy; runpy.run_path({call_costs.__file__!r}, run_name='__main__')"
        command = [python, "-c", program, function, str(seconds), str(report)]
        try:
            done = subprocess.run(command, env=_without(ours.parent), capture_output=True, text=True)
        except OSError as error:
            raise call_costs.Malformed(f"--old {python}: {error.strerror}") from None
        if done.returncode:
            raise call_costs.Malformed(f"--old {python}: it failed: {_last_error(done.stderr)}")
        measured = json.loads(report.read_text())
    if Path(measured["where"]).is_relative_to(ours):
        raise call_costs.Malformed(f"--old {python}: its haliax is this one, in {ours}")
    return measured


def _without(folder: Path) -> dict[str, str]:
    """The environment, without a folder on the path of Python."""
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    kept = [path for path in paths if Path(path).resolve() != folder.resolve()]
    return os.environ | {"PYTHONPATH": os.pathsep.join(kept)}


def _last_error(printed: str) -> str:
    """The last line that tells of an exception; JAX has words of its own after it."""
    told = re.findall(r"^[\w.]+: .+$", printed, re.MULTILINE)
    return told[-1] if told else "it says nothing"


def _table(function: str, new: dict[str, Any], old: dict[str, Any] | None) -> Iterator[str]:
    """The lines to print: a row for each step, with times and what they are divided by."""
    yield f"{function}: {new['arrays']} arrays, {new['bytes']:,} bytes, on {new['machine']}"
    head = ["", "jax.jit", "named_jit", "ratio"]
    rows = [[text] for text in STEPS.values()]
    for row, step in zip(rows, STEPS, strict=True):
        plain, ours = (new["costs"][kind][step] for kind in ("jax.jit", "named_jit"))
        row += [_time(plain), _time(ours), f"{ours / plain:.2f}"]
        if old is not None:
            theirs = old["costs"]["named_jit"][step]
            row += [_time(theirs), f"{theirs / ours:.2f}"]
    if old is not None:
        head += ["old named_jit", "old / new"]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for first, *others in [head, *rows]:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *cells])
    yield f"new: {new['haliax']}" + (f"; old: {old['haliax']}" if old is not None else "")
    if new["donates"]:
        yield "Arguments are donated: each call gets copies, which are made before it. jax.jit keeps its arguments."


def _time(seconds: float) -> str:
    for limit, unit, scale in [(1e-3, "us", 1e6), (1.0, "ms", 1e3)]:
        if seconds < limit:
            return f"{seconds * scale:.1f} {unit}"
    return f"{seconds:.2f} s"


if __name__ == "__main__":
    main()
