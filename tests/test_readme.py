"""The README's example prints what the README says."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text()


def block(language: str) -> str:
    """The first block of code in a language."""
    found = re.search(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_example_prints_what_the_readme_says():
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}  # it makes its own devices
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", block("python")], env=environment, capture_output=True, text=True
    )
    assert (result.stdout, result.stderr, result.returncode) == (block("text"), "", 0)


def test_first_commands_are_those_of_a_newcomer():
    assert [line.split("#")[0].strip() for line in block("bash").splitlines()] == ["make demo", "make test"]
