"""Bunches of random cases: run by haliax in one compiled program, and one by one by numpy.

XLA takes 50 ms to compile an operation on its own, and about 5 ms as one of many if it need not optimize. So an example
of Hypothesis is a bunch of cases, and a family of operations meets more than 300 cases within seconds. Nothing is
shrunk: a failure names its case, which is small.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from hypothesis import Phase, given, settings, strategies as st

import haliax as hax

BUNCHES, CASES = 20, 15
assert BUNCHES * CASES >= 300

# the least work of the compiler; the rest has its own tests
UNOPTIMIZED: dict[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_parallel_codegen_split_count": 1,
}
if jax.__version_info__ < (0, 11):
    UNOPTIMIZED["xla_cpu_use_fusion_emitters"] = False

TOLERANCE = {
    np.dtype(ml_dtypes.bfloat16): 2e-2,
    np.dtype(np.float16): 4e-3,
    np.dtype(np.float32): 2e-5,
    np.dtype(np.complex64): 2e-5,
}

Result = tuple[str | tuple[str, ...] | frozenset[str] | None, Any]
"""The names of the axes, None for a raw array, and the elements in numpy, with the dtype.

A frozenset of names stands for any order; the elements are then a function of the order.
"""


class Case:
    """A call, and what it must give.

    Args:
        label: How to write the call.
        arrays: What it is called with.
        run: The call: from named arrays to one or several.
        expect: The same in numpy, from the named arrays with their data in numpy.
    """

    def __init__(
        self,
        label: str,
        arrays: tuple[hax.NamedArray, ...],
        run: Callable[..., Any],
        expect: Callable[..., Result | list[Result]],
    ):
        """Keep all of it."""
        self.label, self.arrays, self.run, self.expect = label, arrays, run, expect

    def __repr__(self) -> str:
        arrays = [f"{a.dtype}({', '.join(f'{n}={s}' for n, s in a.shape.items())})" for a in self.arrays]
        return f"{self.label} with {', '.join(arrays)}"

    def __str__(self) -> str:
        """The call, its arrays and their elements."""
        return f"{self!r}:\n{[np.asarray(a.array).tolist() for a in self.arrays]}"


def agrees(*strategies: st.SearchStrategy[Case], bunches: int = BUNCHES) -> Callable[[Any], Callable[[], None]]:
    """A test that haliax agrees with numpy on all cases; it takes the place of the function that it decorates.

    Half of the bunches are mapped: each case runs on its arrays and on their mirror images, under `jax.vmap`.
    """

    def decorate(test: Any) -> Callable[[], None]:
        cases = st.one_of(*strategies)

        @settings(
            max_examples=min(bunches, settings().max_examples), phases=[Phase.explicit, Phase.reuse, Phase.generate]
        )
        @given(st.lists(cases, min_size=CASES, max_size=CASES), st.booleans())
        def checked(bunch, mapped):
            check(bunch, mapped)

        checked.__name__ = checked.__qualname__ = test.__name__
        checked.__doc__ = test.__doc__
        checked.__module__ = test.__module__
        return checked

    return decorate


def check(cases: list[Case], mapped: bool) -> None:
    """Run all cases in one program, compare each with numpy."""
    rows = [images(case) if mapped else [case.arrays] for case in cases]
    inputs = [stack(row) if mapped else [a.array for a in row[0]] for row in rows]

    def program(inputs: Any) -> Any:
        calls = [functools.partial(call, case) for case in cases]
        return [
            (jax.vmap(f) if mapped and case.arrays else f)(*raw)
            for case, f, raw in zip(cases, calls, inputs, strict=True)
        ]

    compiled = jax.jit(program).lower(inputs).compile(compiler_options=UNOPTIMIZED)
    for case, row, outputs in zip(cases, rows, compiled(inputs), strict=True):
        for i, arrays in enumerate(row):
            this = Case(case.label, arrays, case.run, case.expect)
            for output, (names, elements) in zip(outputs, expectation(this), strict=True):
                compare(this, output, names, elements, i if mapped and case.arrays else ...)


def expectation(case: Case) -> list[Result]:
    """What numpy gives for a case."""
    try:
        expected = case.expect(*(a.like(np.asarray(a.array), a.axis_names) for a in case.arrays))
    except Exception as error:
        raise AssertionError(f"no oracle for {case}") from error
    return expected if isinstance(expected, list) else [expected]


def call(case: Case, *raw: Any) -> list[Any]:
    """The results of a case for raw arrays with the axes that it has."""
    result = case.run(*(a.like(x, a.axis_names) for a, x in zip(case.arrays, raw, strict=True)))
    return list(result) if isinstance(result, tuple | list) else [result]


def images(case: Case) -> list[tuple[hax.NamedArray, ...]]:
    """The arrays of a case, and their mirror images."""
    return [case.arrays, tuple(a.like(np.flip(np.asarray(a.array)), a.axis_names) for a in case.arrays)]


def stack(rows: list[tuple[hax.NamedArray, ...]]) -> list[Any]:
    """The arrays of all rows, each with one more dimension in front."""
    return [np.stack([np.asarray(a.array) for a in column]) for column in zip(*rows, strict=True)]


def compare(case: Case, output: Any, names: Any, expected: Any, row: Any) -> None:
    """Compare one result, or one row of many: its axes, its dtype, its elements."""
    if isinstance(names, frozenset):
        assert set(output.axis_names) == names, f"{case}\naxes {output.axis_names}, not {set(names)}"
        names, expected = output.axis_names, expected(output.axis_names)
    if names is not None:
        assert isinstance(output, hax.NamedArray), f"{case}\nno named array but a {type(output).__name__}"
        assert output.axis_names == tuple(names), f"{case}\naxes {output.axis_names}, not {tuple(names)}"
        output = output.array
    # in numpy, as JAX would compile what takes one row
    actual, expected = np.asarray(output)[row], np.asarray(expected)
    assert actual.shape == expected.shape, f"{case}\nshape {actual.shape}, not {expected.shape}"
    assert actual.dtype == expected.dtype, f"{case}\ndtype {actual.dtype}, not {expected.dtype}"
    tolerance = TOLERANCE.get(actual.dtype, 0)
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    near = np.isclose(actual.astype(wide), expected.astype(wide), tolerance, tolerance, equal_nan=True)
    assert near.all(), f"{case}\n{actual.tolist()}, not\n{expected.tolist()}"


# what an oracle needs -----------------------------------------------------------------------------------------------


def wide(array: Any) -> np.ndarray:
    """The elements in the widest dtype of their kind, in which numpy is exact enough to be the judge."""
    array = np.asarray(array)
    kinds = {"b": np.bool_, "i": np.int64, "u": np.uint64, "c": np.complex128}
    return array.astype(kinds.get(array.dtype.kind, np.float64))


def dtype_of(fn: Callable[..., Any], *operands: Any) -> Any:
    """The dtype that a function of `jax.numpy` gives arrays of some dtypes, and scalars; None if it refuses them."""
    try:
        return jax.eval_shape(lambda: fn(*(jnp.zeros(2, x) if isinstance(x, np.dtype) else x for x in operands))).dtype
    except (TypeError, ValueError):
        return None


def in_order(x: hax.NamedArray, names: Any) -> np.ndarray:
    """The elements with one dimension for each of `names`, of size 1 where the array lacks the axis."""
    here = [name for name in names if name in x.axis_names]
    array = np.transpose(np.asarray(x.array), [x.axis_names.index(name) for name in here])
    return array.reshape([x.axis_size(name) if name in here else 1 for name in names])


def as_numpy(dtype: Any) -> np.dtype:
    """A dtype as numpy has it, once JAX has had its say on 64 bits."""
    return np.dtype(jnp.zeros((), dtype).dtype)
