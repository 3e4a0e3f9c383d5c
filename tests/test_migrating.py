"""The code in docs/migrating.md runs, and what it says of commands is so."""

import operator
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import haliax
from haliax.debug import RetraceWarning
from haliax.partitioning import MeshMismatchWarning

DOCUMENT = (Path(__file__).parents[1] / "docs" / "migrating.md").read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"^```bash\n(.*?)\n```$", DOCUMENT, re.DOTALL | re.MULTILINE)
*STATEMENTS, MODULE = PYTHON


def run(*command: str | Path, folder: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(Path(haliax.__file__).parents[1])}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_block_is_run_here():
    assert DOCUMENT.count("```") == 2 * (len(PYTHON) + len(COMMANDS))
    assert MODULE.startswith("# my_model.py\n")


def test_the_statements_hold(tmp_path):
    assert run(sys.executable, "-W", "error", "-c", "\n".join(STATEMENTS), folder=tmp_path) == ""


def test_the_command_measures_the_model(tmp_path):
    (tmp_path / "my_model.py").write_text(MODULE)
    python, *arguments = shlex.split(COMMANDS[0])
    assert python == "python"
    printed = run(sys.executable, *arguments, "--seconds", "0", folder=tmp_path)
    for row in re.search(r"on the same arguments: (.*?)\.", DOCUMENT.replace("\n", " "))[1].split(", "):
        assert row.split(" with ")[0] in printed
    assert "Arguments are donated: each call gets copies" in printed


def test_the_other_command_has_one_more_option():
    assert COMMANDS[1].removeprefix(COMMANDS[0]) == " --old old-environment/bin/python"
    assert len(COMMANDS) == 2


@pytest.mark.parametrize("warning", [MeshMismatchWarning, RetraceWarning])
def test_warnings_are_where_it_says(warning):
    module = {MeshMismatchWarning: "haliax.partitioning", RetraceWarning: "haliax.debug"}[warning]
    assert f"| `{module}.{warning.__name__}` |" in DOCUMENT


GONE = {
    "nn.attention.self_attention": "nn.attention.dot_product_attention",
    "nn.attention.dropout_mask": "random.bernoulli",
    "axis.overlapping_axes": "axis.intersect_axes",
    "nn.Linear.out_first": "nn.Linear.weight",
    "quantization.fp8_linear_layers": "quantization.quantize_linear_layers",
    "quantization.Fp8Config": "quantization.QuantizationConfig",
    "quantization.OverwriteWithGradient": "quantization.CustomGradientAccumulation",
    "random.generate_sharded": "named_jit",
}
"""What 1.3 had and is no more, and what takes its place."""


@pytest.mark.parametrize("gone", GONE)
def test_what_is_gone_is_gone_and_what_is_instead_is_there(gone):
    assert gone.split(".")[-1] in DOCUMENT and GONE[gone].split(".")[-1] in DOCUMENT
    with pytest.raises(AttributeError):
        operator.attrgetter(gone)(haliax)
    if GONE[gone] != "nn.Linear.weight":  # a field
        operator.attrgetter(GONE[gone])(haliax)


def test_least_versions_are_those_of_the_package():
    project = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    python, jax, equinox = re.search(r"^Python (\S+), JAX (\S+) and Equinox (\S+) are", DOCUMENT, re.MULTILINE).groups()
    for bound in [f'requires-python = ">={python}"', f'"jax>={jax}"', f'"equinox>={equinox}"']:
        assert bound in project
