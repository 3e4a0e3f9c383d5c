"""The report about forced host devices: its cases run here, and the page shows them all."""

import re
import signal
import sys
from pathlib import Path

import forced_host_report
import pytest
from forced_host_report import CASES, Case, in_a_process, outcome, report

PAGE = (Path(__file__).parents[1] / "docs" / "forced-host.md").read_text()

# right on every version that we support; on some, the others end the process
SOUND = [
    "donation under a constraint, same layout",
    "donation under a constraint, another layout",
    "pass-through, split by rows",
    "pass-through, split by columns",
    "`in_shardings`, permuted mesh, first call",
    "`in_shardings`, another layout",
    "arguments in two device orders",
    "`f(donate(a), a)`, one device",
    "transfer guard, another layout",
]


@pytest.mark.parametrize("name", SOUND)
def test_sound_behaviour(name):
    """What `named_jit` builds on: should one of these fail, JAX has changed and the page is out of date."""
    assert outcome(CASES[name]) == CASES[name].expected


def test_an_error_is_told_by_its_name():
    def run() -> str:
        raise KeyError("x")

    assert outcome(Case("right", run)) == "KeyError"


def test_a_case_in_a_process():
    assert in_a_process(sys.executable, "--case", "pass-through, split by rows") == "kept"


def test_a_process_that_a_case_ends(tmp_path, monkeypatch):
    script = tmp_path / "script.py"
    script.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    monkeypatch.setattr(forced_host_report, "__file__", str(script))
    assert in_a_process(sys.executable) == signal.SIGKILL.name


def test_faults_are_bold(monkeypatch):
    seen = {"--version": "jax 1", "good": "right", "bad": "SIGSEGV"}
    monkeypatch.setattr(forced_host_report, "in_a_process", lambda python, *arguments: seen[arguments[-1]])
    monkeypatch.setattr(forced_host_report, "CASES", dict.fromkeys(["good", "bad"], Case("right", lambda: "right")))
    assert list(report(["python"])) == [
        "| case | expected | jax 1 |",
        "|---|---|---|",
        "| good | right | right |",
        "| bad | right | **SIGSEGV** |",
    ]


def test_the_page_shows_every_case():
    rows = re.findall(r"^\| (.+?) \| (\S+) \|", PAGE, re.MULTILINE)
    assert rows == [("case", "expected"), *((name, case.expected) for name, case in CASES.items())]


@pytest.mark.parametrize("program", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_reports_are_short_programs(program):
    compile(program, "report", "exec")
    assert len(program.splitlines()) <= 10
