"""Finding out what a program of `named_jit` does with layouts, without running it or moving anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, Sharding

from haliax._src import jax_compat
from haliax._src.axis import Axis
from haliax._src.differences import Signature
from haliax._src.explanation import ArrayLayout, Explanation, Verdict
from haliax._src.hlo_collectives import find_collectives
from haliax._src.jit_plan import Plan
from haliax._src.kernels import kernels_in
from haliax._src.layout_text import describe_placement
from haliax._src.layouts import layout_for
from haliax._src.program import Decision, Program, unused_inputs
from haliax._src.signature import named_paths


def explain(program: Program, arrays: Sequence[Any], *, shim_active: bool, compilations: int) -> Explanation:
    """Explain a program, under its mesh, for the arrays of one call.

    Args:
        program: The program.
        arrays: The traced leaves of the call; arrays or ShapeDtypeStructs.
        shim_active: Whether its input mapping comes from the forced-host shim.
        compilations: How many compiled programs there are.

    Returns:
        The explanation. The program is traced, if it was not yet for these avals, and compiled if it has devices.
    """
    plan, history = program.plan, program.history
    traced, compiled = _prepare(program, arrays)
    entering = program.abstract_inputs(arrays)
    layouts = tuple(describe_placement(array, plan.mesh) for array in entering)
    history.seen(Signature(plan, tuple(traced.jaxpr.in_avals), layouts))
    changes = history.last_changes()
    return Explanation(
        name=plan.name,
        mesh=plan.mesh,
        axis_mapping=plan.compute_mapping,
        input_mapping=plan.input_mapping,
        output_mapping=plan.output_mapping,
        shim_active=shim_active,
        arguments=_arguments(program, arrays, traced, compiled, shim_active),
        results=_results(program, traced, compiled),
        collectives=None if compiled is None else find_collectives(compiled.as_text() or ""),
        traces=history.traces,
        compilations=compilations,
        changes=None if changes is None else tuple(changes),
        kernels=kernels_in(traced.jaxpr),
    )


def _prepare(program: Program, arrays: Sequence[Any]) -> tuple[jax.stages.Traced, jax.stages.Compiled | None]:
    """The program traced and, if its mesh has devices, compiled, for arrays that are where a call would put them."""
    try:
        traced = program.jitted.trace(*program.abstract_inputs(arrays))
        return traced, None if isinstance(program.plan.mesh, AbstractMesh) else traced.lower().compile()
    except Exception as error:
        if not program.refused(arrays, error):
            raise
    traced = program.jitted.trace(*program.abstract_inputs(arrays))
    return traced, traced.lower().compile()


# arguments ----------------------------------------------------------------------------------------------------------


def _arguments(
    program: Program,
    arrays: Sequence[Any],
    traced: jax.stages.Traced,
    compiled: jax.stages.Compiled | None,
    shim_active: bool,
) -> tuple[ArrayLayout, ...]:
    plan, decisions = program.plan, program.decisions(arrays)
    unused = frozenset() if plan.jit_options.get("keep_unused") else unused_inputs(traced.jaxpr)
    found = []
    for i, ((path, names), array) in enumerate(zip(plan.paths, arrays, strict=True)):
        before, decision = _committed_to(array), decisions.get(i)
        if i in unused:
            found.append(_array_layout(path, names, array, before, None, "unused", "the function does not use it"))
            continue
        after = decision.layout if decision else before
        if compiled is not None:
            after = _chosen(compiled.input_shardings[0][i], plan)
        verdict, reason = _verdict(array, before, decision, plan, named=names is not None, shim_active=shim_active)
        found.append(_array_layout(path, names, array, before, after, verdict, reason))
    return tuple(found)


def _committed_to(array: Any) -> Sharding | None:
    """The sharding that an argument insists on, if any."""
    if isinstance(array, Tracer) or not getattr(array, "committed", True):
        return None
    return getattr(array, "sharding", None)


def _verdict(
    array: Any, before: Sharding | None, decision: Decision | None, plan: Plan, *, named: bool, shim_active: bool
) -> tuple[Verdict, str]:
    """What becomes of the layout of an argument that the function uses, and why."""
    if decision is None:
        return _left_alone(array, before, plan, named)
    if decision.cause == "other mesh":
        if plan.policy == "error":
            return "refused", f"lives {decision.reason}, and on_mesh_mismatch is 'error'"
        return "moved", f"lives {decision.reason}"
    cause = "axis mapping (forced-host shim)" if shim_active else decision.cause
    if before is None:
        return "placed", cause if decision.cause == "input mapping" else f"a shape without a sharding: {cause}"
    if _equivalent(before, decision.layout, np.ndim(array)):
        return "preserved", f"has the layout of the {cause}"
    return "moved", cause


def _left_alone(array: Any, before: Sharding | None, plan: Plan, named: bool) -> tuple[Verdict, str]:
    """The verdict on an argument whose layout is left to it, or to JAX."""
    if isinstance(array, Tracer):
        return "preserved", "is traced by a transformation around this call"
    if before is None:
        kind = "a shape without a sharding" if isinstance(array, jax.ShapeDtypeStruct) else "uncommitted"
        return "placed", f"{kind}: chosen by the compiler"
    return "preserved", "raw arrays keep their shardings" if plan.input_mapping and not named else "no input mapping"


def _equivalent(a: Sharding, b: NamedSharding, ndim: int) -> bool:
    return a == b or (isinstance(b.mesh, Mesh) and a.is_equivalent_to(b, ndim))


# results ------------------------------------------------------------------------------------------------------------


def _results(
    program: Program, traced: jax.stages.Traced, compiled: jax.stages.Compiled | None
) -> tuple[ArrayLayout, ...]:
    plan = program.plan
    result = program.unpack(traced.out_info)
    leaves = zip(named_paths("result", result), jax.tree_util.tree_leaves(result), strict=True)
    infos = [(path, names, info) for (path, names), info in leaves if isinstance(info, jax.ShapeDtypeStruct)]
    layouts = [None] * len(infos) if compiled is None else _output_shardings(compiled, len(infos))
    return tuple(
        _result(path, names, info, layout, plan) for (path, names, info), layout in zip(infos, layouts, strict=True)
    )


def _output_shardings(compiled: jax.stages.Compiled, count: int) -> list[Any]:
    try:
        return jax.tree_util.tree_leaves(compiled.output_shardings)
    except ValueError:  # JAX can not tell them of a program that writes to a `jax.Ref`
        return [None] * count


def _chosen(sharding: Sharding | None, plan: Plan) -> Sharding | None:
    """A sharding of a compiled program, with a PartitionSpec if the program has a mesh."""
    return jax_compat.on_mesh(sharding, plan.mesh) if sharding and isinstance(plan.mesh, Mesh) else sharding


def _result(
    path: str, names: tuple[str, ...] | None, info: jax.ShapeDtypeStruct, layout: Sharding | None, plan: Plan
) -> ArrayLayout:
    """One array of the result; its layout, if no program was compiled, as far as tracing tells."""
    layout = _chosen(layout, plan)
    if names is not None and plan.output_mapping is not None and plan.mesh is not None:
        if layout is None:
            layout = layout_for("explain", path, names, info.shape, plan.output_mapping, plan.mesh)
        reason = "axis mapping" if plan.output_mapping == plan.compute_mapping else "output mapping"
        return _array_layout(path, names, info, None, layout, "constrained", reason)
    if plan.mesh is not None and AxisType.Explicit in plan.mesh.axis_types:
        return _array_layout(path, names, info, None, layout or info.sharding, "placed", "by its type (explicit axes)")
    return _array_layout(path, names, info, None, layout, "placed", "chosen by the compiler")


def _array_layout(
    path: str,
    names: tuple[str, ...] | None,
    array: Any,
    before: Sharding | None,
    after: Sharding | None,
    verdict: Verdict,
    reason: str,
) -> ArrayLayout:
    shape = tuple(np.shape(array))
    size = None if after is None else math.prod(after.shard_shape(shape)) * array.dtype.itemsize
    return ArrayLayout(
        path=path,
        axes=None if names is None or len(names) != len(shape) else tuple(map(Axis, names, shape)),
        shape=shape,
        dtype=str(array.dtype),
        nbytes=math.prod(shape) * array.dtype.itemsize,
        before=before,
        after=after,
        bytes_per_device=0 if verdict == "unused" else size,
        verdict=verdict,
        reason=reason,
    )
