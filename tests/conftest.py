"""The conditions under which every test runs.

Eight CPU devices, strict rank promotion (an op of ours broadcasts by name, never by position) and no forced-host shim.
They are set through the environment, before JAX is imported, so that processes started by a test inherit them.

Most tests run a small program once: XLA spends as little as it can on making it fast, which halves the time of the
suite. `HALIAX_TEST_XLA_FLAGS=""` has it optimise as it does for users.

`--brief` is for versions of dependencies beside others that have run every test: a third of each table, a tenth of the
random cases.
"""

import collections
import importlib.metadata
import itertools
import os

QUICK = ["--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"]
if tuple(map(int, importlib.metadata.version("jax").split(".")[:2])) < (0, 11):
    QUICK += ["--xla_cpu_parallel_codegen_split_count=1", "--xla_cpu_use_fusion_emitters=false"]

FLAGS = os.environ.get("XLA_FLAGS", ""), os.environ.get("HALIAX_TEST_XLA_FLAGS", " ".join(QUICK))
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = " ".join((*FLAGS, "--xla_force_host_platform_device_count=8")).strip()
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
os.environ.setdefault("HALIAX_FORCED_HOST_SHIM", "off")

import hypothesis
import jax
import pytest
from jax.sharding import AxisType, Mesh

# No test may depend on time, and a failure in CI must fail again on the same commit.
hypothesis.settings.register_profile(
    "haliax",
    deadline=None,
    max_examples=50,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
hypothesis.settings.load_profile("haliax")
hypothesis.settings.register_profile("brief", max_examples=hypothesis.settings().max_examples // 10)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--brief", action="store_true", help="run every third row of each table, few random cases")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--brief"):
        hypothesis.settings.load_profile("brief")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--brief"):
        rows = collections.defaultdict(itertools.count)
        run = [next(rows[item.nodeid.partition("[")[0]]) % 3 == 0 for item in items]
        config.hook.pytest_deselected(items=list(itertools.compress(items, [not chosen for chosen in run])))
        items[:] = itertools.compress(items, run)


@pytest.fixture(scope="session")
def mesh() -> Mesh:
    """Eight devices as 4 'data' by 2 'model', partitioned by the compiler."""
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))


@pytest.fixture(scope="session")
def explicit_mesh() -> Mesh:
    """The same 4 by 2 devices with shardings in types, so that `jax.typeof` shows an array's layout."""
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit, AxisType.Explicit))


@pytest.fixture(scope="session")
def flat_mesh() -> Mesh:
    """Eight devices along 'data', partitioned by the compiler."""
    return jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
