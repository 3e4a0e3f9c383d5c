"""Contraction by name: axes that are selected are summed over, all others are batch axes of the arrays that have them.

The plan is made from names and sizes alone and looked up in a bounded cache: which pairs of arrays to contract, each by
one `dot_general`, and how to permute the last result. Operands are ordered so that no permutation is needed where that
is possible.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

import jax
import jax.numpy as jnp

from haliax._src.array_base import A, NamedArrayBase, selectors
from haliax._src.axis import Axis, AxisSelection, AxisSelector, PartialAxisSpec, axis_name, check_size
from haliax._src.axis_order import order_axes
from haliax._src.errors import axis_not_found, bad_value, duplicate_axes, size_mismatch, wrong_type
from haliax._src.explicit_axes import REFUSALS, as_mapped, by_name, entries
from haliax._src.jax_compat import ShardingTypeError
from haliax._src.refused import check_dtype, check_precision
from haliax._src.util import UNSPECIFIED, Unspecified
from haliax.types import DTypeLike, PrecisionLike

Names = tuple[str, ...]
Sizes = tuple[int, ...]
Dims = tuple[int, ...]


class Contraction(NamedTuple):
    """One `dot_general` of two arrays, whose result goes to the end of the list of arrays."""

    lhs: int
    """The position of the left operand in the list."""
    rhs: int
    lhs_summed: Dims
    """Contracted dimensions that only the left operand has: they are summed over beforehand."""
    rhs_summed: Dims
    dimension_numbers: tuple[tuple[Dims, Dims], tuple[Dims, Dims]]
    """The contracted and the batch dimensions of both after the sums, as `dot_general` takes them."""


class Plan(NamedTuple):
    """How to contract any number of arrays: two at a time, then a sum and a permutation of the last one."""

    names: Names
    contractions: tuple[Contraction, ...]
    summed: Dims
    permutation: Dims | None


@overload
def dot(
    array: A,
    /,
    *arrays: A | AxisSelection | None,
    axis: AxisSelection | Unspecified | None = UNSPECIFIED,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_axes: PartialAxisSpec | None = None,
    dot_general: Callable[..., jax.Array] = jax.lax.dot_general,
) -> A: ...
@overload
def dot(
    axis: AxisSelection | None,
    /,
    *arrays: A,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_axes: PartialAxisSpec | None = None,
    dot_general: Callable[..., jax.Array] = jax.lax.dot_general,
) -> A: ...
def dot(
    *arrays: Any,
    axis: AxisSelection | Unspecified | None = UNSPECIFIED,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_axes: PartialAxisSpec | None = None,
    dot_general: Callable[..., jax.Array] = jax.lax.dot_general,
) -> Any:
    """Contract arrays over the selected axes; the other axes are matched by name.

    Args:
        *arrays: One or more named arrays. A selection of axes among them serves as `axis`: `dot("embed", x, w)`.
        axis: The axes to contract, each of which at least one array has; all axes if None.
        precision: As in `jax.lax.dot_general`.
        preferred_element_type: The dtype in which to accumulate, and of the result.
        out_axes: The order of the result's axes; `...` stands for any number of axes.
        dot_general: Contracts two raw arrays in place of `jax.lax.dot_general`.

    Returns:
        An array with all axes but the contracted ones: those of the first array, then what is new in each next one, or
        in the order of `out_axes`.

    Raises:
        ValueError: If there is no array or no `axis`, no array has one of the axes, or an axis has two sizes.
        TypeError: If an argument is neither a named array nor a selection of axes.

    Source:
        `jax.lax.dot_general`, `jax.numpy.einsum`
    """
    named = [a for a in arrays if isinstance(a, NamedArrayBase)]
    if len(named) != len(arrays) or axis is UNSPECIFIED:
        axis = _positional_axis(arrays, axis)
    if not named:
        raise bad_value("dot", "no array was given", "expected at least one NamedArray")

    plan = plan_dot(
        tuple([a.axis_names for a in named]),
        tuple([a._sizes() for a in named]),
        axis if axis is None or isinstance(axis, str) else selectors("dot", axis),  # pyright: ignore[reportArgumentType]
        None if out_axes is None else selectors("dot", out_axes),  # pyright: ignore[reportArgumentType]
    )
    return contract("dot", plan, plan.names, named, precision, preferred_element_type, dot_general)


def contract(
    op: str,
    plan: Plan,
    names: Names,
    operands: Sequence[NamedArrayBase],
    precision: PrecisionLike,
    preferred_element_type: DTypeLike | None,
    dot_general: Callable[..., jax.Array],
) -> Any:
    """Apply a plan to named arrays; `names` are those of the result, `op` is the operation for error messages."""
    check_dtype(op, preferred_element_type)

    def apply(operands: Sequence[NamedArrayBase], dot_general: Any) -> Any:
        arrays = [a.array for a in operands]
        if dot_general is jax.lax.dot_general:
            result = _run_compiled(plan, precision, preferred_element_type, arrays)
        else:  # an operation of the user's may hold arrays, which are no constants of a compiled function
            result = run(plan, precision, preferred_element_type, arrays, dot_general)
        return operands[0].like(result, names)

    try:
        result = apply(operands, dot_general)
    except REFUSALS as refusal:
        check_precision(op, precision)
        result = by_name(op, refusal, apply, operands, dot_general)
    return as_mapped(result)


def _positional_axis(arrays: Sequence[Any], axis: Any) -> Any:
    """The selection of axes, which may stand among the arrays instead of being given as `axis`."""
    given = [] if axis is UNSPECIFIED else [axis]
    for i, a in enumerate(arrays):
        if isinstance(a, NamedArrayBase):
            continue
        selects = a is None or isinstance(a, AxisSelector | Sequence | dict)
        if given or not selects:
            remedy = "Name its axes with haliax.named(array, axes)." if hasattr(a, "shape") else ""
            expected = "a NamedArray" if given else "a NamedArray or a selection of axes"
            remedy = "The axes to contract are given already." if given and selects else remedy
            raise wrong_type("dot", f"argument {i}", a, expected, remedy)
        given.append(a)
    if not given:
        given_not = "the axes to contract were not given"
        raise bad_value("dot", given_not, "expected one selection", "Pass axis=...; axis=None contracts all axes.")
    return given[0]


@functools.lru_cache(maxsize=4096)
def plan_dot(
    operands: tuple[Names, ...],
    sizes: tuple[Sizes, ...],
    axis: str | tuple[AxisSelector, ...] | None,
    out_axes: tuple[Any, ...] | None,
) -> Plan:
    """The plan of `dot` for arrays with these names and sizes.

    Raises:
        ValueError: If an axis is missing or has two sizes.
    """
    shape = joint_shape("dot", operands, sizes)
    contracted = _contracted(axis, shape)
    kept = tuple(Axis(name, size) for name, size in shape.items() if name not in contracted)
    out = axis_name(kept if out_axes is None else order_axes("dot", out_axes, kept))

    arrays = list(operands)
    contractions = []
    for lhs, rhs, others in _path(operands, shape, out):
        wanted = out if not others else tuple(n for n in shape if n in out or any(n in arrays[i] for i in others))
        names, contraction = _contract_pair(arrays, lhs, rhs, wanted)
        contractions.append(contraction)
        arrays.append(names)

    summed = tuple(i for i, name in enumerate(arrays[-1]) if name not in out)
    names = tuple(name for name in arrays[-1] if name in out)
    permutation = None if names == out else tuple(map(names.index, out))
    return Plan(out, tuple(contractions), summed, permutation)


def joint_shape(op: str, operands: Sequence[Names], sizes: Sequence[Sizes]) -> dict[str, int]:
    """All axes of all arrays, in the order of first mention."""
    shape: dict[str, int] = {}
    for names, dims in zip(operands, sizes, strict=True):
        for name, size in zip(names, dims, strict=True):
            if shape.setdefault(name, size) != size:
                raise size_mismatch(op, name, size, shape[name], "Arrays must agree on the size of a shared axis.")
    return shape


def _contracted(axis: str | tuple[AxisSelector, ...] | None, shape: dict[str, int]) -> set[str]:
    """The names of the contracted axes, once they are known to exist."""
    if axis is None:
        return set(shape)
    selection = selectors("dot", axis)
    for ax in selection:
        name = axis_name(ax)
        if name not in shape:
            raise axis_not_found("dot", name, shape, owner="the arrays have")
        if not isinstance(ax, str):
            check_size("dot", name, ax.size, shape[name])
    names = [axis_name(ax) for ax in selection]
    if len(set(names)) < len(names):
        raise duplicate_axes("dot", names)
    return set(names)


def _path(operands: tuple[Names, ...], shape: dict[str, int], out: Names) -> list[tuple[int, int, tuple[int, ...]]]:
    """The positions of the two arrays that each step contracts, and of those that are left beside its result.

    Source:
        `jax.numpy.einsum_path`
    """
    if len(operands) <= 2:
        return [(0, 1, ())] * (len(operands) - 1)
    number = {name: i for i, name in enumerate(shape)}
    arguments: list[Any] = []
    for names in operands:
        struct = jax.ShapeDtypeStruct(tuple(shape[name] for name in names), jnp.float32)
        arguments += [struct, [number[name] for name in names]]
    pairs, _ = jnp.einsum_path(*arguments, [number[name] for name in out])

    # a pair holds positions among the arrays that are left, ours are positions among all arrays ever
    left = list(range(len(operands)))
    steps = []
    for pair in pairs:
        rhs, lhs = (left.pop(i) for i in sorted(pair, reverse=True))
        steps.append((lhs, rhs, tuple(left)))
        left.append(len(operands) + len(steps) - 1)
    return steps


def _contract_pair(arrays: Sequence[Names], i: int, j: int, wanted: Names) -> tuple[Names, Contraction]:
    """The `dot_general` of two arrays that keeps the wanted axes, as far as they have them, and the names it gives.

    `dot_general` gives batch dimensions, then those of the left operand, then those of the right one: the operands
    change places if only that gives the wanted order.
    """
    wanted = tuple(name for name in wanted if name in arrays[i] or name in arrays[j])
    batch = tuple(name for name in wanted if name in arrays[i] and name in arrays[j])

    def result(i: int, j: int) -> Names:
        return batch + tuple(n for k in (i, j) for n in arrays[k] if n in wanted and n not in batch)

    if result(i, j) != wanted == result(j, i):
        i, j = j, i
    lhs, rhs = arrays[i], arrays[j]
    # what only one operand has and nobody wants is summed over before
    lhs_left = tuple(name for name in lhs if name in wanted or name in rhs)
    rhs_left = tuple(name for name in rhs if name in wanted or name in lhs)
    contracted = tuple(name for name in lhs_left if name not in wanted)

    def dims(names: Names) -> tuple[Dims, Dims]:
        return tuple(map(lhs_left.index, names)), tuple(map(rhs_left.index, names))

    return result(i, j), Contraction(
        i,
        j,
        tuple(d for d, name in enumerate(lhs) if name not in lhs_left),
        tuple(d for d, name in enumerate(rhs) if name not in rhs_left),
        (dims(contracted), dims(batch)),
    )


def run(
    plan: Plan,
    precision: PrecisionLike,
    preferred_element_type: DTypeLike | None,
    operands: Sequence[jax.Array],
    dot_general: Callable[..., jax.Array] = jax.lax.dot_general,
) -> jax.Array:
    """Apply a plan to raw arrays."""
    dtype = jnp.result_type(*operands) if preferred_element_type is None else preferred_element_type
    arrays = list(operands)
    for step in plan.contractions:
        lhs = _sum(arrays[step.lhs], step.lhs_summed, dtype)
        rhs = _sum(arrays[step.rhs], step.rhs_summed, dtype)
        _check_layouts(lhs, rhs, *step.dimension_numbers[1])
        if preferred_element_type is None and _are_discrete(lhs, rhs) and jnp.issubdtype(dtype, jnp.inexact):
            # two arrays of integers, and a third one of floats: JAX refuses a result narrower than the integers
            lhs, rhs = jax.lax.convert_element_type(lhs, dtype), jax.lax.convert_element_type(rhs, dtype)
        arrays.append(dot_general(lhs, rhs, step.dimension_numbers, precision, preferred_element_type=dtype))
    result = _sum(arrays[-1], plan.summed, dtype)
    if plan.permutation is not None:
        result = jax.lax.transpose(result, plan.permutation)
    # a conversion would make a weak dtype strong
    return result if result.dtype == dtype else jax.lax.convert_element_type(result, dtype)


def _are_discrete(*arrays: jax.Array) -> bool:
    """Whether all arrays hold integers or booleans."""
    return not any(jnp.issubdtype(array.dtype, jnp.inexact) for array in arrays)


def _check_layouts(lhs: jax.Array, rhs: jax.Array, lhs_batch: Dims, rhs_batch: Dims) -> None:
    """Refuse batch dimensions that differ in layout: JAX would keep that of the left operand, even if it is none."""
    if lhs_batch:
        left, right = entries(lhs), entries(rhs)
        if any(left[i] != right[j] for i, j in zip(lhs_batch, rhs_batch, strict=True)):
            raise ShardingTypeError("dot: batch dimensions are laid out in two ways.")


# Compiled, so that an eager contraction costs one dispatch; inlined, so that a traced one leaves no call behind.
_run_compiled = jax.jit(run, static_argnums=(0, 1, 2), inline=True)


def _sum(array: jax.Array, dims: Dims, dtype: DTypeLike) -> jax.Array:
    """Sum over dimensions in at least the precision of `dtype`; as in `jnp.einsum`, a sum of booleans is their `or`."""
    if not dims:
        return array
    dtype = jnp.promote_types(array.dtype, dtype)
    return jnp.any(array, dims) if dtype == jnp.bool_ else jnp.sum(array, dims, dtype=dtype)
