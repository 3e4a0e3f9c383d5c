"""An index outside a trace is one compiled step.

JAX takes an index in many small steps, which together cost 40 to 400 microseconds; compiled, they are one of five. A
program serves all indices of one form: integers, the starts of slices and of windows, and arrays of places are its
arguments, as otherwise each number would be compiled anew. Inside a trace, numbers that are known stay so.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from haliax._src.array_base import A, NamedArrayBase, raw_array_or_scalar, wrap
from haliax._src.at_index import TAKE, Step
from haliax._src.explicit_axes import REFUSALS, by_name
from haliax._src.index_items import Items
from haliax._src.index_plan import Form, Names, Plan, Sizes, make_plan, put_together, take_apart
from haliax._src.jax_compat import is_in_trace
from haliax._src.windows import Inside, read_windows, write_windows


class Operation(Protocol):
    """What to do at an index, by its plan: read the elements, or make an array with these updated."""

    def __call__(self, op: str, array: A, items: Items, plan: Plan, step: Step, update: Any, /) -> A: ...


def carry_out(fn: Operation, op: str, array: A, items: Items, step: Step, update: Any = None) -> A:
    """Do something at an index, as one compiled step where that is possible.

    Args:
        fn: What to do.
        op: The operation, for error messages.
        array: The array.
        items: The index, in normal form.
        step: How to do it.
        update: What to update the elements with.

    Returns:
        What `fn` returns.

    Raises:
        ValueError: If sizes do not agree.
    """
    names, sizes = array.axis_names, array._sizes()
    forms, numbers = take_apart(items, sizes)
    try:
        if isinstance(array.array, jax.Array) and step.is_static and not is_in_trace():
            of_update = update.axis_names if isinstance(update, NamedArrayBase) else None
            program, of_result = _program(fn, op, names, sizes, forms, step, of_update)
            raw = program(array.array, raw_array_or_scalar(update), *map(raw_array_or_scalar, numbers))
            return array.like(raw, of_result)
        plan = make_plan(op, names, sizes, forms, step.has_mode)
        if isinstance(array.array, np.ndarray) and not _is_view(step, numbers):
            array = array.like(jnp.asarray(array.array), names)
        return fn(op, array, items, plan, step, update)
    except REFUSALS as refusal:

        def anew(array: A, numbers: list[Any], update: Any) -> A:
            plan = make_plan(op, names, sizes, forms, step.has_mode)
            return fn(op, array, put_together(forms, numbers), plan, step, update)

        return by_name(op, refusal, anew, array, numbers, update)


def _is_view(step: Step, numbers: list[Any]) -> bool:
    """Whether numpy has the elements without a copy: those of its arrays stay what they are, as the parts of a file."""
    return step is TAKE and all(number is None or isinstance(number, int) for number in numbers)


@functools.lru_cache(maxsize=1024)
def _program(
    fn: Operation, op: str, names: Names, sizes: Sizes, forms: tuple[Form, ...], step: Step, of_update: Names | None
) -> tuple[Callable[..., Any], Names]:
    """The compiled operation on raw arrays, for all indices of one form, and the axes of its result.

    Slices come first, as windows: the rest of the index then has nothing to do with where they start.
    """
    plan = make_plan(op, names, sizes, forms, step.has_mode)
    rest = [i for i, form in enumerate(forms) if form.kind != "slice"]

    def run(x: Any, update: Any, *numbers: Any) -> Any:
        slices = {form.dim: Inside(numbers[i], form.size) for i, form in enumerate(forms) if i not in rest}
        items = put_together([forms[i] for i in rest], [numbers[i] for i in rest])
        if of_update is not None:
            update = wrap(update, of_update)
        inside = read_windows(x, slices) if slices else x
        result = fn(op, wrap(inside, names), items, plan, step, update).array
        return result if step.reads or not slices else write_windows(x, slices, result)

    return jax.jit(run), plan.result if step.reads else names
