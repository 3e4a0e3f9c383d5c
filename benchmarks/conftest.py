"""Benchmarks compare, in one process, a haliax program with the plain JAX program that does the same.

Machines are shared and noisy, so what counts is a ratio of two figures of one run. Each benchmark belongs to a group,
and one member of the group, `baseline`, is what the others are divided by.
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("HALIAX_FORCED_HOST_SHIM", "off")
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()

import pytest


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    """Print, for each group, the fastest round of each benchmark and its ratio to that of the baseline."""
    session = getattr(terminalreporter.config, "_benchmarksession", None)
    groups: dict[str, dict[str, tuple[float, float | None]]] = {}
    for bench in getattr(session, "benchmarks", ()):
        if bench.stats.rounds:
            at_most = bench.extra_info.get("at_most")
            groups.setdefault(bench.group, {})[bench.params["variant"]] = (bench.stats.min, at_most)
    if not groups:
        return
    terminalreporter.section("ratios to the baseline of each group (fastest rounds)")
    for group, rows in groups.items():
        terminalreporter.write_line(group)
        baseline, _ = rows.get("baseline", (None, None))
        for variant, (seconds, at_most) in rows.items():
            ratio = f"{seconds / baseline:5.2f}" if baseline else "    ?"
            target = f"  (at most {at_most})" if at_most else ""
            terminalreporter.write_line(f"  {variant:<28} {seconds * 1e6:11.1f} us  {ratio}{target}")
