"""How long a process takes to start and import haliax, beside one that imports what haliax is built on."""

import subprocess
import sys
import time

import pytest

STATEMENTS = {"baseline": "import jax, equinox", "haliax": "import haliax", "haliax and layers": "import haliax.nn"}


@pytest.mark.benchmark(timer=time.perf_counter)  # whatever the option says: the work is done in another process
@pytest.mark.parametrize("variant", list(STATEMENTS))
def test_import(benchmark, variant):
    benchmark.group = "start and import"
    command = [sys.executable, "-c", STATEMENTS[variant]]
    benchmark.pedantic(lambda: subprocess.run(command, check=True), rounds=5, warmup_rounds=1)
