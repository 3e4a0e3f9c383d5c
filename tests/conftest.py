"""The conditions under which every test runs.

Eight CPU devices, strict rank promotion (an op of ours broadcasts by name, never by position) and no forced-host shim.
They are set through the environment, before JAX is imported, so that processes started by a test inherit them.
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()
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
