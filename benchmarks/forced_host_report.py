"""What JAX does with sharded arrays on a CPU that is told to be eight devices, where haliax has been told of faults.

    python forced_host_report.py [INTERPRETER ...]

prints a table with a column for each interpreter's JAX. Nothing but JAX is needed. Each case runs in a process of its
own, since some end it. `docs/forced-host.md` holds the table for the versions that haliax supports.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
from jax.typing import ArrayLike

DEVICES = 8
FORCED = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}"}
RIGHT, WRONG = "right", "WRONG VALUES"


class Case(NamedTuple):
    """A behaviour in question: what should come out, and a function that says what does."""

    expected: str
    run: Callable[[], str]


# Arrays --------------------------------------------------------------------------------------------------------------


def flat(order: int = 1) -> Mesh:
    """All devices along 'data', in their order or (-1) the reverse of it."""
    return Mesh(np.array(jax.devices()[::order]), ("data",))


def grid(kind: AxisType = AxisType.Auto) -> Mesh:
    """The same devices in the same order, as 4 'data' by 2 'model'."""
    return Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"), axis_types=(kind, kind))


def on(mesh: Mesh, *spec: str | None) -> NamedSharding:
    """A layout on a mesh."""
    return NamedSharding(mesh, P(*spec))


def values() -> np.ndarray:
    """8 by 8 numbers."""
    return np.arange(64, dtype=np.float32).reshape(8, 8)


def verdict(result: ArrayLike, expected: np.ndarray) -> str:
    """Whether values are what they should be."""
    return RIGHT if np.array_equal(result, expected) else WRONG


# Cases ---------------------------------------------------------------------------------------------------------------


def donated_under_constraint(*spec: str | None) -> str:
    """Donate a buffer to a function whose result is constrained (jax issue 20088), many times over."""
    layout = on(flat(), *spec)
    fn = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2 + 1, layout), donate_argnums=0)
    results = [fn(jax.device_put(values() + i, on(flat(), "data"))) for i in range(50)]
    expected = [(values() + i) * 2 + 1 for i in range(50)]
    return verdict(np.stack(results), np.stack(expected))


def pass_through(*spec: str | None) -> str:
    """Whether an array keeps the layout that it comes with, where nothing else is said."""
    x = jax.device_put(values(), on(flat(), *spec))
    layouts = [jax.jit(fn)(x).sharding for fn in (lambda x: x, lambda x: x + 1)]
    return "kept" if all(layout.is_equivalent_to(x.sharding, 2) for layout in layouts) else f"CHANGED: {layouts}"


def permuted_in_shardings(calls: int) -> str:
    """`in_shardings` on a mesh with the devices in another order than those of the argument."""
    x = jax.device_put(values(), on(flat(), "data"))
    fn = jax.jit(lambda x: x + 1, in_shardings=on(flat(-1), "data"))
    for _ in range(calls):
        result = fn(x)
    return verdict(result, values() + 1)


def other_in_shardings() -> str:
    """`in_shardings` with another layout than that of the argument, on the same mesh."""
    x = jax.device_put(values(), on(flat(), "data"))
    return verdict(jax.jit(lambda x: x + 1, in_shardings=on(flat(), None, "data"))(x), values() + 1)


def two_device_orders() -> str:
    """Two arguments on meshes with the same devices in two orders."""
    x, y = (jax.device_put(values(), on(flat(order), "data")) for order in (1, -1))
    return verdict(jax.jit(lambda x, y: x + y)(x, y), 2 * values())


def donated_and_passed_again(devices: int) -> str:
    """`f(donate(a), a)`: the memory of an array that the function also reads."""
    mesh = Mesh(np.array(jax.devices()[:devices]), ("data",))
    x = jax.device_put(values(), on(mesh, "data"))
    return verdict(jax.jit(lambda x, y: x + y, donate_argnums=0)(x, x), 2 * values())


def two_mesh_shapes() -> str:
    """Two arguments on meshes of two shapes over the same devices in the same order."""
    x = jax.device_put(values(), on(flat()))
    y = jax.device_put(values(), on(grid(), "data", "model"))
    return verdict(jax.jit(lambda x, y: x + y)(x, y), 2 * values())


def one_row_updated(split: Callable[[jax.Array], jax.Array], mesh: Mesh) -> str:
    """Update a row of an array that the same program splits, several rows to each device (XLA issue 49121)."""
    x = jax.device_put(values() + 1, on(mesh))
    update = lambda x: x.at[0].add(1)  # noqa: E731
    if mesh.axis_types[0] == AxisType.Explicit:
        update = jax.sharding.auto_axes(update, out_sharding=P("data"))
    with jax.set_mesh(mesh):
        return verdict(jax.jit(lambda x: update(split(x)))(x), values() + 1 + np.eye(8)[:1].T)


def slice_of_a_slice() -> str:
    """The element that two slices choose, of which the second starts beyond its end; on one device."""
    slices = jax.jit(lambda x, i, j: jax.lax.dynamic_slice(jax.lax.dynamic_slice(x, (i,), (2,)), (j,), (1,)))
    return verdict(slices(values()[0], 4, 5), values()[0, 5:6])


def guarded_move(source: NamedSharding, target: NamedSharding) -> str:
    """Whether a transfer guard sees a move."""
    x = jax.block_until_ready(jax.device_put(values(), source))
    with jax.transfer_guard("disallow_explicit"):
        jax.block_until_ready(jax.device_put(x, target))
    return "NOT SEEN"


CASES = {
    "donation under a constraint, same layout": Case(RIGHT, lambda: donated_under_constraint("data")),
    "donation under a constraint, another layout": Case(RIGHT, lambda: donated_under_constraint(None, "data")),
    "pass-through, split by rows": Case("kept", lambda: pass_through("data")),
    "pass-through, split by columns": Case("kept", lambda: pass_through(None, "data")),
    "`in_shardings`, permuted mesh, first call": Case(RIGHT, lambda: permuted_in_shardings(1)),
    "`in_shardings`, permuted mesh, second call": Case(RIGHT, lambda: permuted_in_shardings(2)),
    "`in_shardings`, another layout": Case("ValueError", other_in_shardings),
    "arguments in two device orders": Case("ValueError", two_device_orders),
    "arguments on two mesh shapes": Case(RIGHT, two_mesh_shapes),
    "`f(donate(a), a)`, one device": Case("JaxRuntimeError", lambda: donated_and_passed_again(1)),
    "`f(donate(a), a)`, eight devices": Case("JaxRuntimeError", lambda: donated_and_passed_again(8)),
    "`x.at[0].add` after a constraint": Case(
        RIGHT, lambda: one_row_updated(lambda x: jax.lax.with_sharding_constraint(x, P("data")), grid())
    ),
    "`x.at[0].add` after `reshard`": Case(
        RIGHT, lambda: one_row_updated(lambda x: jax.sharding.reshard(x, P("data")), grid(AxisType.Explicit))
    ),
    "`dynamic_slice` twice, beyond the end": Case(RIGHT, slice_of_a_slice),
    "transfer guard, another layout": Case("JaxRuntimeError", lambda: guarded_move(on(flat(), "data"), on(flat()))),
    "transfer guard, another device order": Case(
        "JaxRuntimeError", lambda: guarded_move(on(flat(), "data"), on(flat(-1), "data"))
    ),
}


# Report --------------------------------------------------------------------------------------------------------------


def outcome(case: Case) -> str:
    """What a case comes to, in this process: what it says, or the name of its error."""
    try:
        return case.run()
    except Exception as error:
        return type(error).__name__


def in_a_process(python: str, *arguments: str) -> str:
    """What this script prints when it is run by an interpreter, or the signal that ended it."""
    env = {**os.environ, **FORCED, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([python, __file__, *arguments], env=env, capture_output=True, text=True, timeout=300)
    if done.returncode < 0:
        return signal.Signals(-done.returncode).name
    return done.stdout.strip() or f"exit status {done.returncode}"


def report(pythons: Sequence[str]) -> Iterator[str]:
    """The lines of a table in Markdown: what was expected, and what each interpreter's JAX did; faults in bold."""
    versions = [in_a_process(python, "--version") for python in pythons]
    yield f"| case | expected | {' | '.join(versions)} |"
    yield "|---" * (2 + len(versions)) + "|"
    for name, case in CASES.items():
        seen = [in_a_process(python, "--case", name) for python in pythons]
        cells = [text if text == case.expected else f"**{text}**" for text in seen]
        yield f"| {name} | {case.expected} | {' | '.join(cells)} |"


def main(arguments: Sequence[str]) -> None:
    """Print the table; or, in a process of one case, its outcome."""
    match arguments:
        case ["--version"]:
            print(f"jax {jax.__version__}")
        case ["--case", name]:
            print(outcome(CASES[name]))
        case _:
            for line in report(arguments or [sys.executable]):
                print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
