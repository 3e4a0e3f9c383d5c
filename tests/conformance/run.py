"""Run the tests of the library that haliax replaces against ours: `make conformance`.

Its source distribution comes from the package index into a temporary folder, of which only the tests are unpacked. They
run twice, with one device and with eight, and every failure must be in `expected.toml`, with its reason; every entry
there must fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

RELEASE = "marin-haliax==0.2.227.dev40316220070"
EXPECTED = Path(__file__).with_name("expected.toml")
DEVICES = (1, 8)

# One of their files asks for eight devices when it is collected: the number is fixed by then. Another one imports
# private functions for a few tests: the others run without them.
CONFTEST = """
import haliax.nn.scan
import jax

jax.devices()
haliax.nn.scan._stack_state_dict = haliax.nn.scan._unstack_state_dict = None
"""

Outcomes = dict[str, str]
"""What became of each test, `passed`, `failed` or `skipped`, by `file::name[parameters]`."""


def main() -> int:
    """Run everything; the exit status is 0 if the outcome is the expected one."""
    expected = read_expected(EXPECTED)
    runs: dict[int, Outcomes] = {}
    with tempfile.TemporaryDirectory(prefix="haliax-conformance-") as folder:
        tests = unpack_tests(download(RELEASE, Path(folder)), Path(folder))
        (tests / "conftest.py").write_text(CONFTEST)
        for devices in DEVICES:
            runs[devices] = run_tests(tests, devices)
    for devices, outcomes in runs.items():
        totals = ", ".join(f"{n} {outcome}" for outcome, n in sorted(Counter(outcomes.values()).items()))
        print(f"{devices} device{'s' if devices > 1 else ''}: {totals}")
    problems = surprises(runs, expected)
    print("\n".join(problems) or f"All failures are expected: {len(expected)} entries in {EXPECTED.name}.")
    return 1 if problems else 0


def download(requirement: str, folder: Path) -> Path:
    """Fetch a source distribution into a folder."""
    project = requirement.split("==")[0]
    command = ["pip", "download", "-q", "--no-deps", "--no-binary", project, "-d", str(folder), requirement]
    subprocess.run([sys.executable, "-m", *command], check=True)
    (archive,) = folder.glob("*.tar.gz")
    return archive


def unpack_tests(archive: Path, folder: Path) -> Path:
    """Unpack the folder `tests` of a source distribution, and nothing else of it."""
    with tarfile.open(archive) as tar:
        members = [member for member in tar.getmembers() if Path(member.name).parts[1:2] == ("tests",)]
        tar.extractall(folder, members, filter="data")
    return folder / archive.name.removesuffix(".tar.gz") / "tests"


def run_tests(tests: Path, devices: int) -> Outcomes:
    """Run all tests in this environment, in which haliax is installed, with a number of CPU devices."""
    report = tests.parent / f"{devices}.xml"
    environment = os.environ | {
        "HALIAX_FORCED_HOST_SHIM": "off",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",  # of XLA, whose time is most of all
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
    options = ["-q", "--tb=short", "--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:benchmark", "-n", "2"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *options,
        f"--rootdir={tests.parent}",
        f"--junitxml={report}",
        str(tests),
    ]
    subprocess.run(command, env=environment, check=False)
    return read_report(report)


def read_report(path: Path) -> Outcomes:
    """The outcomes in a JUnit report; a file that can not be imported is one failure, by its name."""
    outcomes = {}
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}".removeprefix("::").removeprefix("tests.")
        kinds = {child.tag for child in case}
        outcomes[name] = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
    return outcomes


def read_expected(path: Path) -> dict[str, str]:
    """The expected failures with their reasons: tests, files, or names up to some of the parameters."""
    sections = tomllib.loads(path.read_text())
    return {entry: reason for section in sections.values() for entry, reason in section.items()}


def surprises(runs: Mapping[int, Outcomes], expected: Iterable[str]) -> list[str]:
    """Failures that are not expected, and expected ones that pass or are gone."""
    problems, failed = [], set()
    for devices, outcomes in runs.items():
        for test, outcome in outcomes.items():
            entries = {entry for entry in expected if covers(entry, test)}
            if outcome == "failed" and not entries:
                problems.append(f"fails with {devices} devices, and is not expected to: {test}")
            if outcome == "passed" and entries:
                problems.append(f"passes with {devices} devices, and is expected to fail: {test}")
            failed |= entries if outcome == "failed" else set()
    return problems + [f"is expected to fail, and does not: {entry}" for entry in expected if entry not in failed]


def covers(entry: str, test: str) -> bool:
    """Whether an entry stands for a test: its file, its name, or its name with the first of its parameters."""
    return test == entry or test.startswith((f"{entry}[", f"{entry}::")) or ("[" in entry and test.startswith(entry))


if __name__ == "__main__":
    sys.exit(main())
