"""What calls of `named_jit` cost beside `jax.jit` on the same arguments: measured, for `python -m haliax.bench`.

This file uses nothing of haliax but `named_jit`, and runs as a script: so an interpreter with an older haliax measures
the same function in the same way.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import importlib.metadata
import inspect
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from haliax import partitioning

Times = dict[str, float]
"""The seconds that each step of something takes."""


class Case(NamedTuple):
    """A function and the arguments of a call."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Malformed(Exception):
    """The user's function can not be found, or does not give what it should; the message is one line."""


# The user's function --------------------------------------------------------------------------------------------------


def find(spec: str) -> Callable[[], Any]:
    """The function named by `module:function`."""
    module, colon, name = spec.partition(":")
    if not (module and colon and name):
        raise Malformed(f"{spec!r} is no module:function")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # an import in the module
        raise Malformed(f"there is no module {error.name!r} in this folder or on the path") from None
    fn = getattr(found, name, None)
    if not callable(fn):
        raise Malformed(f"{module} has no function {name!r}")
    return fn


@contextlib.contextmanager
def prepared(make: Callable[[], Any]) -> Iterator[Case]:
    """The case that a function returns, or yields: then its contexts are in force for as long as the case is used."""
    context = contextlib.contextmanager(make) if inspect.isgeneratorfunction(make) else _returning(make)
    with context() as given:
        fn, args, kwargs = (*given, {})[:3] if isinstance(given, tuple) and len(given) in (2, 3) else (None, None, None)
        if not (callable(fn) and isinstance(args, tuple) and isinstance(kwargs, dict)):
            expected = "(fn, args) or (fn, args, kwargs), of a callable, a tuple and a dictionary"
            raise Malformed(f"{make.__name__} must return or yield {expected}")
        yield Case(fn, args, kwargs)


def _returning(make: Callable[[], Any]) -> Callable[[], contextlib.AbstractContextManager[Any]]:
    return lambda: contextlib.nullcontext(make())


# The two ways to compile it -------------------------------------------------------------------------------------------


def is_array(x: Any) -> bool:
    """Whether a leaf is traced; all others are static."""
    return isinstance(x, jax.Array | np.ndarray | np.generic)


def is_named_jit(fn: Callable[..., Any]) -> bool:
    """Whether a function is compiled already, with options of its own."""
    return isinstance(getattr(fn, "__func__", fn), type(partitioning.named_jit(is_array)))


def by_named_jit(case: Case) -> Case:
    """The case with its function compiled by `named_jit`, unless it is already."""
    return case if is_named_jit(case.fn) else case._replace(fn=partitioning.named_jit(case.fn))


def by_jax_jit(case: Case) -> Case:
    """The same call by `jax.jit`: modules stay modules, and what is no array is left out of them."""
    fn = getattr(case.fn, "__wrapped__", case.fn) if is_named_jit(case.fn) else case.fn
    if isinstance(fn, functools.partial):  # JAX sees arrays in its own kind only
        fn = jax.tree_util.Partial(fn.func, *fn.args, **fn.keywords)
    arrays, statics = eqx.partition((fn, case.args, case.kwargs), is_array)

    def call(arrays: Any) -> Any:
        fn, args, kwargs = eqx.combine(arrays, statics)
        return eqx.filter(fn(*args, **kwargs), is_array)

    return Case(jax.jit(call), (arrays,), {})


def without_work(case: Case) -> Case:
    """A call with the same arguments that computes nothing."""
    return case._replace(fn=lambda *args, **kwargs: ())


# Time -----------------------------------------------------------------------------------------------------------------


def one_call(case: Case, step: str, donates: bool) -> Callable[[], Times]:
    """A call, until its result is there; arguments that it would use up are copied before, which is not counted."""
    arrays, statics = eqx.partition((case.args, case.kwargs), lambda x: isinstance(x, jax.Array))
    copies = jax.jit(lambda arrays: jax.tree.map(jnp.copy, arrays)) if donates else lambda arrays: arrays

    def call() -> Times:
        args, kwargs = eqx.combine(jax.block_until_ready(copies(arrays)), statics)
        started = time.perf_counter()
        jax.block_until_ready(case.fn(*args, **kwargs))
        return {step: time.perf_counter() - started}

    return call


def first_steps(case: Case) -> Callable[[], Times]:
    """Tracing, lowering and compiling a call, as if JAX had not seen anything before.

    An older haliax has caches that JAX does not clear: repeated, it traces once where it first traced twice.
    """

    def prepare() -> Times:
        jax.clear_caches()
        started = time.perf_counter()
        lowered = case.fn.lower(*case.args, **case.kwargs)  # pyright: ignore[reportFunctionMemberAccess]
        traced = time.perf_counter()
        lowered.compile()
        return {"trace and lower": traced - started, "compile": time.perf_counter() - traced}

    return prepare


def fastest(runs: dict[str, Callable[[], Times]], seconds: float, least: int) -> dict[str, Times]:
    """The shortest times of many runs of each kind; they take turns, so that a busy machine is so for all of them."""
    best = {kind: run() for kind, run in runs.items()}
    end, rounds = time.perf_counter() + seconds, 1
    collecting = gc.isenabled()
    gc.disable()
    try:
        while rounds < least or time.perf_counter() < end:
            for kind, run in runs.items():
                best[kind] = {step: min(best[kind][step], took) for step, took in run().items()}
            rounds += 1
    finally:
        if collecting:
            gc.enable()
    return best


def uses_up_arguments(case: Case) -> bool:
    """Whether a call takes the memory of its arguments; it is run once, on a copy."""
    copied = jax.tree.map(lambda x: jnp.copy(x) if isinstance(x, jax.Array) else x, (case.args, case.kwargs))
    args, kwargs = copied
    jax.block_until_ready(case.fn(*args, **kwargs))
    return any(x.is_deleted() for x in jax.tree.leaves(copied) if isinstance(x, jax.Array))


def measure(case: Case, seconds: float) -> dict[str, Any]:
    """Everything that the table shows.

    Args:
        case: The user's function and arguments.
        seconds: How long to repeat each kind of call.

    Returns:
        For each of "jax.jit" and "named_jit" the seconds that each step takes, and what was measured.
    """
    compiled = {"jax.jit": by_jax_jit(case), "named_jit": by_named_jit(case)}
    idle = {"jax.jit": by_jax_jit(without_work(case)), "named_jit": by_named_jit(without_work(case))}
    donates = uses_up_arguments(compiled["named_jit"])
    steps = [
        fastest({kind: first_steps(each) for kind, each in compiled.items()}, seconds, least=1),
        fastest({kind: one_call(each, "call", donates) for kind, each in compiled.items()}, seconds, least=3),
        fastest({kind: one_call(each, "arguments alone", False) for kind, each in idle.items()}, seconds, least=3),
    ]
    costs = {kind: {step: took for times in steps for step, took in times[kind].items()} for kind in compiled}
    arrays = jax.tree.leaves(compiled["jax.jit"].args)
    return {
        "costs": costs,
        "arrays": len(arrays),
        "bytes": sum(x.size * x.dtype.itemsize for x in arrays),
        "donates": donates,
        "haliax": version(),
        "where": str(partitioning.__file__),
        "machine": f"{jax.device_count()} {jax.default_backend()} device{'s'[: jax.device_count() - 1]}",
    }


def version() -> str:
    """The distribution that haliax is from, where it says so."""
    known = getattr(sys.modules["haliax"], "__version__", None)
    if known:
        return f"haliax {known}"
    names = importlib.metadata.packages_distributions().get("haliax", ["haliax"])
    return f"{names[0]} {importlib.metadata.version(names[0])}"


def run(spec: str, seconds: float) -> dict[str, Any]:
    """Measure the case that `module:function` gives."""
    with prepared(find(spec)) as case:
        return measure(case, seconds)


if __name__ == "__main__":
    _, spec, seconds, report = sys.argv
    with open(report, "w") as file:
        json.dump(run(spec, float(seconds)), file)
