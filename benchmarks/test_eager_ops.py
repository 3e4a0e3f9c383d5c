"""What an operation outside a trace costs beside the call of `jax.numpy` that does the same."""

import jax
import pytest
from eager_ops import OPS

pytestmark = pytest.mark.benchmark(max_time=0.2, disable_gc=True)


@pytest.mark.parametrize("variant", ["baseline", "named"])
@pytest.mark.parametrize("op", list(OPS))
def test_eager_op(benchmark, op, variant):
    benchmark.group = f"eager, {op}"
    named, plain, at_most = OPS[op]
    if variant == "named":
        benchmark.extra_info["at_most"] = at_most
    fn = plain if variant == "baseline" else named
    jax.block_until_ready(fn())
    benchmark(fn)
