"""Run checks in several processes, each with a few CPU devices, which together are one JAX.

A process group takes seconds to start, so it runs all checks of this directory that were selected, `check_*`, one after
the other in lockstep. Each is then a test of its own, which asks how that check went in every process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

WORKER = Path(__file__).with_name("worker.py")
HARD_LIMIT = 300  # seconds, some fifteen times what a group takes: then it hangs
FOLDER = "HALIAX_TEST_FOLDER"


@dataclasses.dataclass(frozen=True)
class Process:
    """How one process of a group fared."""

    outcomes: dict[str, dict[str, Any]]
    """For each check that it finished, {"value": ...} or {"error": traceback}."""
    returncode: int | None
    """None if it was still there at the hard limit."""
    log: str

    @property
    def successes(self) -> int:
        """How many checks succeeded before one did not."""
        return sum("value" in outcome for outcome in self.outcomes.values())

    def failure(self, check: str) -> str | None:
        """Why a check did not succeed here; None if it did."""
        if check in self.outcomes:
            return self.outcomes[check].get("error")
        ended = "hung" if self.returncode is None else f"ended with code {self.returncode}"
        return f"{ended} before {check} was finished:\n{self.log[-2000:]}"


def launch(checks: Sequence[str], processes: int, devices: int, folder: Path) -> list[Process]:
    """Run checks of this directory in a group of processes, and wait until all have ended.

    Args:
        checks: Functions without parameters, each as `module:function`.
        processes: How many processes.
        devices: How many devices each has.
        folder: Where the processes may write.
    """
    coordinator = f"127.0.0.1:{free_port()}"
    # of a flag that is given twice the last one counts; unoptimized programs compile in half the time
    flags = f"--xla_force_host_platform_device_count={devices} --xla_backend_optimization_level=0"
    environment = os.environ | {
        "XLA_FLAGS": f"{os.environ['XLA_FLAGS']} {flags}",
        "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo",
        "PYTHONPATH": os.pathsep.join(sys.path),
        FOLDER: str(folder),
    }
    deadline = time.monotonic() + HARD_LIMIT
    with contextlib.ExitStack() as stack:
        started = []
        for i in range(processes):
            log = stack.enter_context(open(folder / f"log.{i}", "w+"))
            command = [sys.executable, WORKER, str(i), str(processes), coordinator, folder / f"outcomes.{i}"]
            process = subprocess.Popen([*command, *checks], env=environment, stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)
            started.append(process)
        codes = [_wait(process, deadline) for process in started]
    return [
        Process(_outcomes(folder / f"outcomes.{i}"), code, _log(folder / f"log.{i}")) for i, code in enumerate(codes)
    ]


def launch_all(checks: Sequence[str], processes: int, devices: int, folder: Path) -> list[Process]:
    """`launch`, and again for what comes after a check that failed, until all checks have been tried."""
    group = launch(checks, processes, devices, folder)
    tried = 1 + min(process.successes for process in group)
    if tried >= len(checks) or any(process.returncode is None for process in group):
        return group
    rest = launch_all(checks[tried:], processes, devices, folder)
    return [
        dataclasses.replace(before, outcomes=before.outcomes | after.outcomes)
        for before, after in zip(group, rest, strict=True)
    ]


def free_port() -> int:
    """A port of the loopback that nothing listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _wait(process: subprocess.Popen, deadline: float) -> int | None:
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None


def _outcomes(path: Path) -> dict[str, dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {outcome.pop("check"): outcome for outcome in map(json.loads, lines)}


def _log(path: Path) -> str:
    return "\n".join(line for line in path.read_text().splitlines() if "[Gloo]" not in line)


# what tests use -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory) -> Path:
    """A folder of this test run, the same in all processes of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def group_of(shared_folder) -> Callable[..., list[Process]]:
    """A function that runs checks in a group of processes: once, whoever asks first."""

    def run(processes: int, devices: int, *checks: str) -> list[Process]:
        folder = shared_folder / "-".join([str(processes), str(devices), checks[0].replace(":", "-")])
        with _locked(folder.with_suffix(".lock")):
            result = folder / "processes.json"
            if not result.exists():
                folder.mkdir()
                group = launch_all(checks, processes, devices, folder)
                result.write_text(json.dumps([dataclasses.asdict(process) for process in group]))
        return [Process(**fields) for fields in json.loads(result.read_text())]

    return run


@pytest.fixture
def in_lockstep(request, group_of) -> Callable[[int, int, str], list[Any]]:
    """A function that gives what a check of the test module returned in each process of a group, or fails."""

    def values(processes: int, devices: int, check: str) -> list[Any]:
        selected = {qualified(item): None for item in request.session.items if "check" in parameters(item)}
        group = group_of(processes, devices, *selected)
        name = qualified(request.node)
        failures = [f"process {i}: {text}" for i, process in enumerate(group) if (text := process.failure(name))]
        if failures:
            pytest.fail("\n".join(failures), pytrace=False)
        return [process.outcomes[name]["value"] for process in group]

    return values


def parameters(item: pytest.Item) -> dict[str, Any]:
    """The parameters of a test."""
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec else {}


def qualified(item: pytest.Item) -> str:
    """The check that a test asks about, as `module:function`."""
    return f"{item.path.stem}:{parameters(item)['check']}"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with a parameter `check` runs for each check of its module."""
    if "check" in metafunc.fixturenames:
        metafunc.parametrize("check", [name for name in vars(metafunc.module) if name.startswith("check_")])
