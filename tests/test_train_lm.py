"""The example job, in small: what it prints, and what it says about options that cannot work."""

import contextlib
import importlib.util
import io
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from helpers import count_traces

SCRIPT = Path(__file__).parents[1] / "examples" / "train_lm.py"
TINY = "--embed 16 --layers 1 --heads 2 --seq 16 --batch 4 --steps 6 --eval-every 3 --sample 8".split()


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train_lm", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_lm"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def traces_and_output(script) -> tuple[int, str]:
    """How often the training step was traced, and what a run of a few steps prints."""
    script.train_step = step = count_traces(script.train_step)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        script.main(TINY)
    return step.traces, out.getvalue()


@pytest.fixture
def output(traces_and_output) -> str:
    return traces_and_output[1]


def test_train_step_is_traced_once(traces_and_output):
    assert traces_and_output[0] == 1


def test_first_line_says_what_the_devices_are(output):
    assert output.splitlines()[0] == (
        "8 forced CPU devices stand in for accelerators; the forced-host shim is off, as it is on those."
    )


def test_held_out_loss_is_reported_and_falls(output):
    first, last = map(float, re.search(r"^Held-out loss: (\S+) -> (\S+) nats per byte$", output, re.M).groups())
    reports = re.findall(r"^step (\d+): held-out loss (\S+) nats per byte$", output, re.M)
    assert [step for step, _ in reports] == ["3", "6"]
    assert float(reports[-1][1]) == last < first
    assert first == pytest.approx(np.log(256), abs=0.2)


def test_parameters_keep_their_layouts(output):
    table = output[output.index("parameter ") : output.index("\nSaved")].splitlines()
    rows = [re.split(r"\s{2,}", line) for line in table if line]
    assert rows[0] == ["parameter", "axes", "before", "after", "bytes moved"]
    layouts = {path: (axes, before, after, moved) for path, axes, before, after, moved in rows[1:]}
    assert layouts["embedding.weight"] == ("vocab=256, embed=16", "P('model', 'data')", "P('model', 'data')", "0")
    assert len(layouts) == 9
    assert {(before == after, moved) for _, before, after, moved in layouts.values()} == {(True, "0")}


def test_loaded_parameters_are_reported_and_give_the_same_loss(output):
    assert "MeshMismatchWarning: named_jit(train_step): 9 of its arrays live on another mesh" in output
    assert len(re.findall("^ *model[.].* in another device order$", output, re.M)) == 9
    difference = re.search(r"Difference: (\S+)[.]$", output, re.M)
    assert float(difference[1]) <= 1e-5


def test_text_is_written(output):
    written = output.split("of the held-out text:\n\n")[1].split("\n\nDone in")[0]
    assert 1 <= len(written) <= 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--mesh 3x2", "--mesh 3x2: no mesh of 8 devices has this shape; choose from 4x2, 2x4, 8x1, 1x8"),
        ("--mesh foo", "--mesh foo: no mesh of 8 devices has this shape; choose from 4x2, 2x4, 8x1, 1x8"),
        ("--mesh 2x4 --heads 6", "--embed 64: does not divide over the 6 heads; 60 or 66 would"),
        ("--embed 66 --heads 6", "--embed 66: does not divide over the 4 devices along 'data'; 64 or 68 would"),
        ("--batch 2", "--batch 2: does not divide over the 4 devices along 'data'; 4 would"),
        ("--heads 1", "--heads 1: does not divide over the 2 devices along 'model'; 2 would"),
        ("--layers 0", "--layers 0: must be positive"),
        ("--seed -1", "--seed -1: must be positive"),
        ("--lr -1", "--lr -1.0: must be positive"),
        ("--steps many", "argument --steps: invalid int value: 'many'"),
    ],
)
def test_options_that_cannot_work_are_one_line(script, capsys, options, message):
    with pytest.raises(SystemExit) as exit:
        script.main(options.split())
    out, err = capsys.readouterr()
    assert (exit.value.code, out, err.split(": ", 1)[1]) == (2, "", message + "\n")


def test_help_documents_size_steps_and_mesh():
    """In a process of its own, as a user asks."""
    shown = subprocess.run([sys.executable, SCRIPT, "--help"], capture_output=True, text=True, check=True).stdout
    for name in ["--embed", "--layers", "--heads", "--seq", "--batch", "--steps", "--lr", "--mesh", "--seed"]:
        assert name in shown
    assert "devices along 'data' x along 'model', 8 in all" in " ".join(shown.split())
