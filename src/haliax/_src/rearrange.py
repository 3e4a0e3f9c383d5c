"""Rearranging axes by name, in an order or by a pattern: parse -> plan -> apply.

The plan is computed from names and sizes alone and looked up in a bounded cache.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any

import jax

from haliax._src import explicit_axes
from haliax._src.array_base import A, require_named
from haliax._src.axis import Axis, AxisSelector, PartialAxisSpec
from haliax._src.axis_order import order_axes
from haliax._src.errors import wrong_type
from haliax._src.parsing import check_bindings
from haliax._src.rearrange_plan import Plan, plan_rearrange


def rearrange(array: A, axes: PartialAxisSpec | str, /, **bindings: AxisSelector | int) -> A:
    """Put the axes of an array in another order, merge and split them.

    A pattern names the axes of the array, and then those of the result:

        x.rearrange("batch time embed -> embed batch time")    # axes in order; the names are those of the pattern alone
        x.rearrange("{embed time} -> embed ... time")          # axes by name; `...` stands for all others
        x.rearrange("{(embed: heads size)} -> ... heads size", heads=8)    # split an axis
        x.rearrange("{batch time} -> (tokens: batch time) ...")            # merge axes

    Args:
        array: A named array with any axes.
        axes: The axes in the order wanted, where `...` stands for those that are not named; or a pattern.
        **bindings: What names of a pattern stand for: an Axis, the name of an axis, or a size.

    Returns:
        An array of the same elements, with the axes in that order.

    Raises:
        ValueError: If an axis is missing, repeated, has another size, or has no place in the order; if a pattern can
            not be read, or leaves the sizes of two parts of an axis open.
        TypeError: If `axes` is neither a pattern nor a sequence of axes, names and `...`.

    Source:
        `jax.numpy.transpose`, `jax.numpy.reshape`; patterns are those of einops, https://einops.rocks
    """
    if isinstance(axes, str):
        return _by_pattern(array, axes, bindings)
    if bindings:
        raise wrong_type("rearrange", f"the order beside keyword {next(iter(bindings))!r}", axes, "a pattern")
    return axis_spec_rearrange(array, axes)


def axis_spec_rearrange(array: A, axis_spec: PartialAxisSpec) -> A:
    """`rearrange` by a sequence of axes, names and `...`."""
    require_named("rearrange", array)
    if isinstance(axis_spec, str | bytes) or not isinstance(axis_spec, Sequence):
        raise wrong_type("rearrange", "the order", axis_spec, "a pattern, or a sequence of axes, names and `...`")
    return permute(array, _permutation(array.axis_names, array._sizes(), tuple(axis_spec)))


def einops_rearrange(array: A, expression: str, **bindings: AxisSelector | int) -> A:
    """`rearrange` by a pattern."""
    return _by_pattern(array, expression, bindings)


def _by_pattern(array: A, expression: str, bindings: Mapping[str, AxisSelector | int]) -> A:
    require_named("rearrange", array)
    if not isinstance(expression, str):
        raise wrong_type("rearrange", "the pattern", expression, "a string")
    bound = check_bindings("rearrange", bindings) if bindings else ()
    plan = plan_rearrange(expression, array.axis_names, array._sizes(), bound)
    raw = array.array
    if plan.splits is not None or plan.merges is not None:
        raw = _reshaped(plan, raw)
    elif plan.permutation is not None:
        raw = jax.lax.transpose(raw, plan.permutation)
    elif plan.names == array.axis_names:
        return array
    return array.like(raw, plan.names)


def _reshaped(plan: Plan, raw: Any) -> Any:
    """Apply a plan that changes dimensions; on explicit mesh axes one of them at a time, if JAX refuses."""
    try:
        return _run_compiled(plan, raw)
    except explicit_axes.REFUSALS:
        return _run_stepwise(plan, raw)


def _run(plan: Plan, raw: jax.Array) -> jax.Array:
    """Apply a plan by at most two reshapes, by one if the parts stay in order."""
    if plan.splits is not None and (plan.permutation is not None or plan.merges is None):
        raw = jax.lax.reshape(raw, tuple(itertools.chain(*plan.splits)))
    if plan.permutation is not None:
        raw = jax.lax.transpose(raw, plan.permutation)
    return raw if plan.merges is None else jax.lax.reshape(raw, tuple(map(math.prod, plan.merges)))


# Compiled, so that it costs one dispatch outside a trace; inlined, so that inside one it leaves no call behind.
_run_compiled = jax.jit(_run, static_argnums=0, inline=True)


def _run_stepwise(plan: Plan, raw: Any) -> Any:
    """Apply a plan by a reshape for each dimension that is taken apart or made, which tells where mesh axes go."""
    for dim, split in reversed(list(enumerate(plan.splits or ()))):
        if len(split) != 1:
            raw = explicit_axes.reshape(raw, raw.shape[:dim] + split + raw.shape[dim + 1 :])
    if plan.permutation is not None:
        raw = jax.lax.transpose(raw, plan.permutation)
    for dim, merge in enumerate(plan.merges or ()):
        if len(merge) != 1:
            raw = explicit_axes.reshape(raw, (*raw.shape[:dim], math.prod(merge), *raw.shape[dim + len(merge) :]))
    return raw


def permute(array: A, permutation: Sequence[int]) -> A:
    """The array with its dimensions in another order; itself if that is the order they have."""
    if all(i == dim for i, dim in enumerate(permutation)):
        return array
    names = array.axis_names
    return array.like(jax.lax.transpose(array.array, permutation), tuple(names[dim] for dim in permutation))


@functools.lru_cache(maxsize=4096)
def _permutation(
    names: tuple[str, ...], sizes: tuple[int, ...], order: tuple[AxisSelector | EllipsisType, ...]
) -> tuple[int, ...]:
    """Which dimension goes to each place."""
    ordered = order_axes("rearrange", order, tuple(map(Axis, names, sizes)))
    return tuple(names.index(axis.name) for axis in ordered)
