"""The examples, as a user runs them: what they print, and what they say about options that cannot work."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from haliax.state_dict import save_state_dict

EXAMPLES = Path(__file__).parents[2] / "examples"
SAID_FIRST = "forced CPU devices stand in for accelerators; the forced-host shim is off, as it is on those."


def run(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run an example in an environment like a user's, without what the tests set for themselves."""
    ours = ("XLA_", "JAX_", "HALIAX_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = [sys.executable, EXAMPLES / script, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def printed(script: str, *arguments: str | Path) -> list[str]:
    """The lines that an example prints, if it ends well and complains of nothing."""
    done = run(script, *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    first, *lines = done.stdout.splitlines()
    assert first.lower().replace("eight", "8").removeprefix("8 ") == SAID_FIRST.lower()
    return lines


def of_process(number: int, lines: list[str]) -> list[str]:
    """What one of several processes prints."""
    return [line.removeprefix(f"[{number}] ") for line in lines if line.startswith(f"[{number}] ")]


def cells(lines: list[str], head: str) -> dict[str, tuple[str, ...]]:
    """The rows of a table with a head, by their first cells."""
    start = next(i for i, line in enumerate(lines) if re.split(r"\s{2,}", line) == head.split())
    rows = [re.split(r"\s{2,}", line) for line in lines[start + 1 :]]
    width = len(head.split())
    return {first: tuple(others) for first, *others in rows if len(others) == width - 1}


# hf_to_mesh.py -------------------------------------------------------------------------------------------------------

BYTES = 947_712


@pytest.fixture(scope="module")
def one_process() -> list[str]:
    return printed("hf_to_mesh.py")


def bytes_read(lines: list[str], number: int, count: int) -> int:
    """What a process says that it has read, of all."""
    found = [re.fullmatch(rf"Process {number} of {count} read ([\d,]+) of {BYTES:,} bytes\.", line) for line in lines]
    (match,) = filter(None, found)
    return int(match[1].replace(",", ""))


def test_a_folder_becomes_a_named_model_on_the_mesh(one_process):
    table = cells(one_process, "path axes layout bytes")
    assert len(table) == 16
    assert table["wte.weight"] == ("vocab=512, embed=64", "P(None, 'data')", "131,072")
    assert table["h.stacked.attn.c_attn.weight"] == (
        "layers=4, embed=64, qkv=3, heads=4, head_size=16",
        "P(None, 'data', None, 'model', None)",
        "196,608",
    )
    assert sum(int(size.replace(",", "")) for *_, size in table.values()) == BYTES
    assert BYTES <= bytes_read(one_process, 0, 1) < 1.05 * BYTES


def test_two_processes_read_half_each_and_find_the_same(one_process):
    lines = printed("hf_to_mesh.py", "--processes", "2")
    for number in range(2):
        assert BYTES / 2 <= bytes_read(of_process(number, lines), number, 2) < 0.55 * BYTES
    first = of_process(0, lines)
    assert cells(first, "path axes layout bytes") == cells(one_process, "path axes layout bytes")
    assert first[-1] == one_process[-1] and first[-1].startswith("After the tokens 1 2 3 5 8 the most likely one is ")


def test_a_model_that_it_does_not_know_is_loaded_by_name(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "another"}))
    save_state_dict({"a.weight": np.ones((16, 6), np.float32), "a.bias": np.ones(5, np.float32)}, tmp_path)
    table = cells(printed("hf_to_mesh.py", tmp_path), "path axes layout bytes")
    assert table == {
        "a.weight": ("(16, 6)", "P(('data', 'model'), None)", "384"),
        "a.bias": ("(5,)", "P(None)", "20"),
    }


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ('{"model_type": "another"}', ": "),  # there are no weights
        ('{"model_type": "gpt2"}', "/config.json has no entry 'n_embd'"),
        ("{", "/config.json is no JSON: "),
    ],
)
def test_a_folder_that_does_not_fit(tmp_path, config, message):
    (tmp_path / "config.json").write_text(config)
    done = run("hf_to_mesh.py", tmp_path)
    assert done.returncode == 1 and done.stderr.startswith(f"{tmp_path}{message}") and "Traceback" not in done.stderr


# multihost.py and equinox_model.py -----------------------------------------------------------------------------------


def test_two_processes_train_one_model():
    lines = printed("multihost.py", "--steps", "30")
    first, second = of_process(0, lines), of_process(1, lines)
    assert first[0] == "2 processes with 4 devices each, one mesh of data=8."
    assert [line for line in first + second if "holds 2,048 of 4,096 numbers" in line] == [first[1], second[0]]
    losses = [re.search(r"final loss (\d\.\d+)$", "\n".join(of), re.MULTILINE) for of in (first, second)]
    assert losses[0] is not None and losses[1] is not None and losses[0][1] == losses[1][1]
    assert float(losses[0][1]) < 0.3
    assert first[-1] == "The losses of all processes are equal."


def test_an_equinox_model_is_trained_saved_and_restored():
    lines = printed("equinox_model.py", "--steps", "40")
    losses = [float(line.split()[-1]) for line in lines if line.startswith("step ")]
    assert losses[-1] < 0.8 * losses[0]
    table = cells(lines, "array axes saved restored")
    assert table["up"] == ("expert=4, width=16, hidden=32", "P('model', None, 'data')", "P('model', None, 'data')")
    assert len(table) == 6 and all(saved == restored for _, saved, restored in table.values())
    match = re.fullmatch(r"The next step: loss (\S+) without a stop, (\S+) as restored\.", lines[-1])
    assert match is not None and match[1] == match[2]


# Options -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "options", "message"),
    [
        ("hf_to_mesh.py", "nowhere", "nowhere: has no config.json"),
        ("hf_to_mesh.py", "--processes 3", "--processes 3: must be 1, 2 or 4, which share 8 devices"),
        ("hf_to_mesh.py", "--tokens one", "argument --tokens: invalid int value: 'one'"),
        ("multihost.py", "--steps 0", "--steps 0: must be positive"),
        ("multihost.py", "--processes 3", "--processes 3: hidden(64) does not divide over 12 devices"),
        ("multihost.py", "--batch 12", "--batch 12: does not divide over 8 devices"),
        ("equinox_model.py", "--steps 0", "--steps 0: must be positive"),
    ],
)
def test_options_that_cannot_work_are_one_line(script, options, message):
    done = run(script, *options.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{script}: {message}\n")


@pytest.mark.parametrize("script", ["hf_to_mesh.py", "multihost.py", "equinox_model.py"])
def test_help(script):
    done = run(script, "--help")
    assert done.returncode == 0 and "--" in done.stdout and done.stderr == ""
