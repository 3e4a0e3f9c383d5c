"""The conditions under which Levanter runs here, on top of those of all tests: no network, its warnings its own."""

import os
from collections.abc import Iterator

import jax
import pytest

import haliax as hax

os.environ |= {"WANDB_MODE": "disabled", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
# Levanter broadcasts raw arrays by position. Warnings of other libraries are not ours to mend; ours are errors.
jax.config.update("jax_numpy_rank_promotion", "allow")
OURS = [hax.partitioning.MeshMismatchWarning, hax.debug.RetraceWarning]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.filterwarnings("default"), append=False)
        for category in OURS:
            item.add_marker(pytest.mark.filterwarnings(f"error::{category.__module__}.{category.__name__}"))
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))  # the tests of a file share what they start from


@pytest.fixture
def forced_hosts() -> Iterator[None]:
    """The forced-host shim as users of Levanter on CPUs have it."""
    with hax.partitioning.forced_host_shim("auto"):
        yield
