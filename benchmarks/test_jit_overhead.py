"""What a call of `named_jit` costs beside `jax.jit` on the same module of N named arrays."""

import jax
import pytest
from jit_calls import (
    MAPPING,
    SIZES,
    add_one,
    at_most,
    donating,
    mesh_calls,
    mesh_of,
    plain_calls,
    sharded_calls,
    static_calls,
    weights_of,
)

import haliax as hax

pytestmark = pytest.mark.benchmark(max_time=0.2, disable_gc=True)
sizes = pytest.mark.parametrize("n", SIZES)


def measure(benchmark, group, n, variant, calls, wait=False):
    """One call with arguments in place."""
    benchmark.group = f"{group}, {n} leaves"
    if variant.startswith("named_jit"):
        benchmark.extra_info["at_most"] = at_most(n, variant)
    fn, args = calls[variant]
    jax.block_until_ready(fn(*args))
    benchmark(waiting(fn) if wait else fn, *args)


def waiting(fn):
    """The function with its result awaited: devices that share few cores would otherwise fall behind the calls."""
    return lambda *args: jax.block_until_ready(fn(*args))


@sizes
@pytest.mark.parametrize("variant", list(plain_calls(1)))
def test_call(benchmark, n, variant):
    measure(benchmark, "one call", n, variant, plain_calls(n))


@sizes
@pytest.mark.parametrize("variant", list(static_calls(1)))
def test_static_argument(benchmark, n, variant):
    measure(benchmark, "static argument", n, variant, static_calls(n))


@sizes
@pytest.mark.parametrize("variant", list(sharded_calls(1)))
def test_sharded_arguments(benchmark, n, variant):
    measure(benchmark, "arguments on a mesh", n, variant, sharded_calls(n))


@sizes
@pytest.mark.parametrize("devices", [1, 8])
@pytest.mark.parametrize("variant", list(mesh_calls(1, 1)))
def test_call_on_a_mesh(benchmark, n, devices, variant):
    with jax.set_mesh(mesh_of(devices)):
        measure(benchmark, f"mesh of {devices}", n, variant, mesh_calls(n, devices), wait=devices > 1)


@sizes
@pytest.mark.parametrize("devices", [1, 8])
@pytest.mark.parametrize("variant", ["baseline", "named_jit, donated"])
def test_donated_state(benchmark, n, devices, variant):
    """A state that is donated and replaced on each call."""
    benchmark.group = f"donated state on {devices}, {n} leaves"
    if variant != "baseline":
        benchmark.extra_info["at_most"] = at_most(n)
    mesh = mesh_of(devices)
    with jax.set_mesh(mesh):
        # an addition of our own, as an array that is not made by a computation may not be given away
        state = add_one(hax.shard(weights_of(n), MAPPING, mesh))
        fn = donating(variant, devices)
        run = waiting(fn) if devices > 1 else fn

        def step():
            nonlocal state
            state = run(state)

        step()
        benchmark(step)
