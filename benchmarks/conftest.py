"""Benchmarks compare, in one process, a haliax program with the plain JAX program that does the same.

Machines are shared and noisy, so what counts is a ratio of two figures of one run. Each benchmark belongs to a group,
and one member of the group, `baseline`, is what the others are divided by.
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("HALIAX_FORCED_HOST_SHIM", "off")

import pytest


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    """Print, for each group, the fastest round of each benchmark and its ratio to that of the baseline."""
    session = getattr(terminalreporter.config, "_benchmarksession", None)
    groups: dict[str, dict[str, float]] = {}
    for bench in getattr(session, "benchmarks", ()):
        if bench.stats.rounds:
            groups.setdefault(bench.group, {})[bench.params["variant"]] = bench.stats.min
    if not groups:
        return
    terminalreporter.section("ratios to the baseline of each group (fastest rounds)")
    for group, times in groups.items():
        baseline = times.get("baseline")
        terminalreporter.write_line(group)
        for variant, seconds in times.items():
            ratio = f"{seconds / baseline:5.2f}" if baseline else "    ?"
            terminalreporter.write_line(f"  {variant:<24} {seconds * 1e6:9.1f} us  {ratio}")
