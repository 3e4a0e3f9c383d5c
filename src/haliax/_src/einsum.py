"""Einstein summation over named arrays: an equation becomes a plan of `dot`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from haliax._src import dot
from haliax._src.array_base import A, NamedArrayBase
from haliax._src.axis import AxisSelector
from haliax._src.einsum_plan import OP, Plan, plan_einsum
from haliax._src.errors import bad_value, wrong_type
from haliax._src.explicit_axes import explicit_mesh
from haliax._src.layouts import constrain, layout_for
from haliax._src.parsing import check_bindings
from haliax._src.resources import resolve_mesh
from haliax.types import DTypeLike, PrecisionLike


def einsum(
    equation: str,
    *arrays: A,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., jax.Array] | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
    **axis_aliases: AxisSelector | int,
) -> A:
    """Contract arrays as an equation says: multiply them, and sum over the axes that the result does not have.

    Axes in order, `"batch time, time embed -> batch embed"`: names stand for the axes of each array by position, and
    `...` for any number of others, which are matched by name.

    Axes by name, `"{time embed} -> embed"`: the axes in braces that are not on the right are summed over. Those that
    are not mentioned are kept, in front, unless there is `...` in the braces. If there is `...` on the right, it takes
    all axes that are not named there, and nothing is summed over.

    The result by name, `"-> batch embed"`: all axes but those on the right are summed over.

    Args:
        equation: The equation.
        *arrays: One or more named arrays.
        precision: As in `jax.lax.dot_general`.
        preferred_element_type: The dtype in which to accumulate, and of the result.
        _dot_general: Contracts two raw arrays in place of `jax.lax.dot_general`.
        out_sharding: The layout of the result, one entry for each axis.
        **axis_aliases: What names of the equation stand for: an Axis, the name of an axis, or a size.

    Returns:
        An array with the axes on the right. They have the names they have in `arrays`.

    Raises:
        ValueError: If the equation can not be read or does not fit the arrays, or an axis has two sizes.
        TypeError: If an argument is no named array, or the equation is no string.

    Source:
        `jax.numpy.einsum`
    """
    for i, array in enumerate(arrays):
        if not isinstance(array, NamedArrayBase):
            remedy = "Name its axes with haliax.named(array, axes)." if hasattr(array, "shape") else ""
            raise wrong_type(OP, f"operand {i}", array, "a NamedArray", remedy)
    if not isinstance(equation, str):
        raise wrong_type(OP, "the equation", equation, "a string")
    plan = plan_einsum(
        equation,
        tuple([array.axis_names for array in arrays]),
        tuple([array._sizes() for array in arrays]),
        check_bindings(OP, axis_aliases) if axis_aliases else (),
    )

    def contract(*arrays: Any) -> Any:
        dot_general = _dot_general or jax.lax.dot_general
        return dot.contract(OP, plan.contraction, plan.names, arrays, precision, preferred_element_type, dot_general)

    return contract(*arrays) if out_sharding is None else _laid_out(contract, arrays, plan, out_sharding)


def _laid_out(
    contract: Callable[..., Any], arrays: Sequence[Any], plan: Plan, out_sharding: NamedSharding | PartitionSpec
) -> Any:
    """The contraction with its result in a layout that the user gives."""
    if not isinstance(out_sharding, NamedSharding | PartitionSpec):
        raise wrong_type(OP, "out_sharding", out_sharding, "a NamedSharding or a PartitionSpec")
    spec = out_sharding if isinstance(out_sharding, PartitionSpec) else out_sharding.spec
    if len(spec) > len(plan.names):
        given = f"out_sharding has {len(spec)} entries"
        raise bad_value(OP, given, f"expected at most one for each axis of ({', '.join(plan.names)})")
    given_mesh = out_sharding.mesh if isinstance(out_sharding, NamedSharding) else explicit_mesh(arrays)
    mesh = resolve_mesh(given_mesh)
    if mesh is None:
        raise bad_value(OP, "out_sharding is a PartitionSpec and there is no mesh", "expected a NamedSharding")
    mapping = dict(zip(plan.names, spec, strict=False))
    sharding = layout_for(OP, "the result", plan.names, plan.sizes, mapping, mesh)
    if AxisType.Explicit in mesh.axis_types:
        return jax.sharding.auto_axes(contract, out_sharding=sharding)(*arrays)
    result = contract(*arrays)
    return result.like(constrain(result.array, sharding), plan.names)
