"""One program of a `named_jit` function: what it runs for one signature, mesh and mapping.

A program traces the function once, on flat leaves; lays out its inputs where a mapping asks for it; constrains the
named arrays of the result; and moves arguments that live on another mesh when JAX refuses them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from jax.core import Tracer
from jax.sharding import AbstractMesh, Mesh, NamedSharding, Sharding
from jax.tree_util import keystr, register_pytree_node

from haliax._src import jax_compat
from haliax._src.array_base import NamedArrayBase
from haliax._src.differences import Signature
from haliax._src.errors import problem
from haliax._src.jax_helpers import is_in_jit, struct_of
from haliax._src.jit_plan import Plan
from haliax._src.layout_text import describe_placement
from haliax._src.layouts import constrain, has_layout, in_memory_of, layout_for, memory_kind, place
from haliax._src.mesh_mismatch import (
    Argument,
    MeshMismatchError,
    MeshMismatchWarning,
    Misplaced,
    find_misplaced,
    report,
)
from haliax._src.resources import FrozenMapping, MeshLike, axis_mapping
from haliax._src.retraces import History
from haliax._src.sharding import OTHER_SHAPE, has_other_axis_types, layout_on, lives_elsewhere
from haliax._src.signature import TRACED, axis_names_at, merge_leaves, picker, static_key
from haliax._src.transfers import check_transfer

# a program forgets nothing it has warned about, so it stops warning at some point
_MOST_WARNINGS = 1024


class Result:
    """A result that holds static values, as JAX sees it: its arrays, and which structure of the program they fill.

    A cache of JAX keeps the pytree structures of the last 4,096 results, whether or not their functions are still
    there: a number keeps no static value alive, and is the same for most programs.
    """

    __slots__ = ("arrays", "number")

    def __init__(self, arrays: list[Any], number: int):
        self.arrays, self.number = arrays, number


register_pytree_node(Result, lambda r: (r.arrays, r.number), lambda number, arrays: Result(list(arrays), number))


@dataclasses.dataclass(frozen=True, eq=False)
class Structure:
    """What a result with static values is but for its arrays.

    Args:
        treedef: Its pytree structure.
        statics: Its static leaves, by position.
    """

    treedef: Any  # a PyTreeDef
    statics: tuple[tuple[int, Any], ...]

    def is_like(self, other: Structure) -> bool:
        """Whether nobody could tell the results apart, so that traces for other shapes need not keep their own."""
        return (
            self.treedef == other.treedef
            and len(self.statics) == len(other.statics)
            and all(i == j and _is_like(a, b) for (i, a), (j, b) in zip(self.statics, other.statics, strict=True))
        )


def _is_like(a: Any, b: Any) -> bool:
    if isinstance(a, str | int | float | complex):
        return static_key(a) == static_key(b)
    return a is b


class Decision(NamedTuple):
    """The layout that an input is given before JAX sees it, and what gives it."""

    layout: NamedSharding
    cause: Literal["other mesh", "input mapping", "axis mapping"]
    reason: str = ""


def flat_function(plan: Plan, history: History, structures: list[Structure]) -> Callable[..., Any]:
    """The function that JAX traces: from the traced leaves of a call to the arrays of its result.

    It refers to no array and to no wrapper, so that JAX's caches keep neither alive. It runs once for each trace.
    """
    treedef, statics = plan.treedef, plan.statics
    output_mapping, mesh, name = plan.output_mapping, plan.mesh, plan.name
    mapping = plan.compute_mapping

    def flat(*arrays: Any) -> Any:
        history.traced(Signature(plan, tuple(map(jax.typeof, arrays)), (None,) * len(arrays)))
        fn, args, kwargs = treedef.unflatten(merge_leaves(arrays, statics))
        with contextlib.nullcontext() if mapping is None else axis_mapping(mapping):
            result = fn(*args, **kwargs)
        if output_mapping is not None and mesh is not None:
            result = _constrain_result(name, result, output_mapping, mesh)
        return _pack(result, structures)

    flat.__name__ = flat.__qualname__ = name
    return flat


def _constrain_result(name: str, result: Any, mapping: FrozenMapping, mesh: MeshLike) -> Any:
    """Give each array with names the layout of the mapping; other arrays of a result are left to JAX."""
    op = f"named_jit({name})"

    def constrain_leaf(path: Any, leaf: Any) -> Any:
        raw = leaf.array if isinstance(leaf, NamedArrayBase) else leaf
        if not isinstance(raw, TRACED):
            return leaf
        names = axis_names_at(op, result, path, leaf)
        if names is None:
            return leaf
        named = isinstance(leaf, NamedArrayBase)
        shape = leaf._sizes() if named else raw.shape
        raw = constrain(raw, layout_for(op, f"result{keystr(path)}", names, shape, mapping, mesh))
        return leaf.like(raw, names) if named else raw

    return jax.tree_util.tree_map_with_path(constrain_leaf, result, is_leaf=lambda x: isinstance(x, NamedArrayBase))


def _pack(result: Any, structures: list[Structure]) -> Any:
    """A result as JAX can return it: itself if all its leaves are arrays, else with its structure put aside."""
    leaves, treedef = jax.tree_util.tree_flatten(result)
    if all(isinstance(leaf, TRACED) for leaf in leaves):
        return result
    statics = tuple((i, leaf) for i, leaf in enumerate(leaves) if not isinstance(leaf, TRACED))
    structure = Structure(treedef, statics)
    known = next((s for s in structures if s.is_like(structure)), None)
    if known is None:
        structures.append(structure)
    # threads may trace at the same time, so a new one need not be the last
    number = structures.index(structure if known is None else known)
    return Result([leaf for leaf in leaves if isinstance(leaf, TRACED)], number)


class Program:
    """A compiled function for one plan; JAX tells its avals and shardings apart.

    Args:
        plan: What decides the program.
        history: Where its traces are recorded.
    """

    def __init__(self, plan: Plan, history: History):
        self.plan, self.declared, self.history = plan, plan.declared, history
        self._structures: list[Structure] = []
        flat = flat_function(plan, history, self._structures)
        self._traced_code = flat.__code__
        self.jitted = jax.jit(flat, donate_argnums=tuple(sorted(plan.donated)), **plan.jit_options)
        # on one device JAX itself refuses an array that is donated and passed twice
        self._checks_donated = bool(plan.donated) and (plan.mesh is None or plan.mesh.size > 1)
        self._abstract = isinstance(plan.mesh, AbstractMesh)
        named = [i for i, (_, names) in enumerate(plan.paths) if names is not None]
        self._mapped = [] if plan.input_mapping is None or plan.mesh is None else named
        self._layouts: dict[int, tuple[Any, NamedSharding]] = {}
        self._mapped_of = picker(self._mapped)
        self._settled: list[Sharding] = []
        self._examined = False
        self._direct = False
        self._mismatch_seen = self._shapes_count = False
        self._unused: frozenset[int] = frozenset()
        self._warned: set[Any] = set()

    def run(self, arrays: Sequence[Any]) -> Any:
        """Run the program on the traced leaves of a call, under its mesh."""
        if self._checks_donated and len(set(map(id, arrays))) < len(arrays):
            self._check_donated_once(arrays)
        if self._direct or (self._settled and self._mapped_shardings(arrays) == self._settled):
            try:
                result = self.jitted(*arrays)
            except Exception as error:
                # the usual call pays nothing for arrays on another mesh: JAX refuses them, before it donates any
                if not self.refused(arrays, error):
                    raise
                result = self._prepared_call(arrays)
        else:
            result = self._prepared_call(arrays)
        return result if type(result) is not Result else self.unpack(result)

    def _prepared_call(self, arrays: Sequence[Any]) -> Any:
        """Run the program on arrays that are first put where they belong."""
        first = not self._examined
        if first:
            self._examine(arrays)
        prepared = self.prepare(arrays)
        try:
            result = self.jitted(*prepared)
        except Exception as error:
            if not self.refused(arrays, error):
                raise
            prepared = self.prepare(arrays)
            result = self.jitted(*prepared)
        if first:
            self.history.laid_out(self.plan, [describe_placement(array, self.plan.mesh) for array in prepared])
        if prepared is not arrays:
            self._free_moved(arrays, prepared)
        return result

    def unpack(self, result: Any) -> Any:
        """What the function returned, from what the program returned."""
        if type(result) is not Result:
            return result
        structure = self._structures[result.number]
        return structure.treedef.unflatten(merge_leaves(result.arrays, structure.statics))

    def run_compiled(self, compiled: jax.stages.Compiled, arrays: Sequence[Any]) -> Any:
        """Run what was compiled ahead of time, on arrays that are first put where they belong."""
        if self.plan.donated:
            self._check_donated_once(arrays)
        prepared = self.prepare(arrays)
        result = compiled(*prepared)
        self._free_moved(arrays, prepared)
        return self.unpack(result)

    def _free_moved(self, arrays: Sequence[Any], prepared: Sequence[Any]) -> None:
        """Now that nothing can fail any more, free the arguments that were moved and were to be donated."""
        for i in self.plan.donated:
            array = arrays[i]
            # inside a `jit` nothing has moved yet: what it is laid out for may run many times
            if prepared[i] is not array and isinstance(array, jax.Array) and not isinstance(prepared[i], Tracer):
                array.delete()

    def _examine(self, arrays: Sequence[Any]) -> None:
        """Look at the arrays of the first call, so that no trace is spent on a layout that JAX then refuses."""
        if self._abstract and not jax_compat.is_in_trace():
            raise self._not_executable()
        if self._misplaced(arrays):
            if not self.plan.jit_options.get("keep_unused", False):
                # arguments that the function does not use may live anywhere
                self._unused = unused_inputs(self.jitted.trace(*self.abstract_inputs(arrays)).jaxpr)
            self._mismatch_seen = True
        self._examined = not self._abstract
        self._direct = self._examined and not self._mapped and not self._mismatch_seen

    def _check_donated_once(self, arrays: Sequence[Any]) -> None:
        """Raise if an array that is donated is passed twice: on several devices JAX may crash the process.

        Inside a `jit` nothing is donated.
        """
        first: dict[int, int] = {}
        for i, array in enumerate(arrays):
            j = first.setdefault(id(array), i)
            if j != i and isinstance(array, jax.Array) and {i, j} & self.plan.donated and not is_in_jit():
                given = f"{self.plan.paths[j][0]} and {self.plan.paths[i][0]} are the same array, which is donated"
                remedy = "Pass a copy (x.copy()), or do not donate it."
                raise ValueError(problem(f"named_jit({self.plan.name})", given, "expected two arrays", remedy))

    def _not_executable(self) -> ValueError:
        return ValueError(
            problem(
                f"named_jit({self.plan.name})",
                "the mesh is an AbstractMesh, which has no devices",
                "expected a Mesh, to run on",
                "Use .lower(...) or .eval_shape(...) with an AbstractMesh.",
            )
        )

    def prepare(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Put arrays where they belong: on the call's mesh, and in the layout of the input mapping.

        All is checked before anything moves, and what moves goes in one transfer.
        """
        layouts = self._input_layouts(arrays) if self._mapped else {}
        if self._mismatch_seen:
            layouts |= self._relocations(arrays)
        if layouts and self.plan.donated:
            self._check_donated_once(arrays)
        return place(arrays, layouts, self.plan.donated) if layouts else arrays

    # the layout of inputs ------------------------------------------------------------------------------------------

    def _mapped_shardings(self, arrays: Sequence[Any]) -> list[Sharding] | None:
        """The shardings of the arrays that the input mapping lays out, if they are all committed."""
        return jax_compat.shardings_if_committed(self._mapped_of(arrays))

    def _input_layouts(self, arrays: Sequence[Any]) -> dict[int, NamedSharding]:
        """The layouts of the input mapping, for the named arrays that do not have them already."""
        shardings = self._mapped_shardings(arrays)
        # the usual case, in which nothing has changed since they were found in place
        if shardings is not None and shardings == self._settled:
            return {}
        pending = self._pending_layouts(arrays)
        if shardings is not None and not pending and self._examined and not self._mismatch_seen:
            self._settled = shardings
        return pending

    def _pending_layouts(self, arrays: Sequence[Any]) -> dict[int, NamedSharding]:
        """The same, after a look at each array."""
        pending = {}
        for i in self._mapped:
            array = arrays[i]
            if isinstance(array, jax.Ref):  # it can not be moved
                continue
            key = (np.shape(array), memory_kind(array))
            known = self._layouts.get(i)
            if known is None or known[0] != key:
                known = self._layouts[i] = key, self.input_layout(i, array)
            if not has_layout(array, known[1]):
                check_transfer(f"named_jit({self.plan.name})", self.plan.paths[i][0], array, known[1])
                pending[i] = known[1]
        return pending

    def input_layout(self, i: int, array: Any) -> NamedSharding:
        """The layout that the input mapping gives to one array, which keeps its kind of memory."""
        plan = self.plan
        path, names = plan.paths[i]
        assert names is not None and plan.mesh is not None
        op, shape = f"named_jit({plan.name})", np.shape(array)
        if len(shape) != len(names):
            given = f"{path} has axes ({', '.join(names)}) and holds an array of shape {shape}"
            raise ValueError(problem(op, given, "expected one dimension for each axis"))
        mapping = plan.compute_mapping if plan.input_mapping is None else plan.input_mapping
        return in_memory_of(array, layout_for(op, path, names, shape, mapping, plan.mesh))

    def abstract_inputs(self, arrays: Sequence[Any]) -> list[Any]:
        """The inputs of a program that is lowered and not run: in the layouts that a call would give them.

        A ShapeDtypeStruct in a NamedArray that has no sharding of its own gets that of the mapping.
        """
        decided = self.decisions(arrays)
        return [
            struct_of(np.shape(array), array.dtype, sharding=decided[i].layout, weak_type=_is_weak(array))
            if i in decided
            else array
            for i, array in enumerate(arrays)
        ]

    def decisions(self, arrays: Sequence[Any]) -> dict[int, Decision]:
        """The layouts of inputs that are not left as they are, by position."""
        plan = self.plan
        decided = {m.position: Decision(m.target, "other mesh", m.reason) for m in self._misplaced(arrays)}
        for i, ((_, names), array) in enumerate(zip(plan.paths, arrays, strict=True)):
            undecided = isinstance(array, jax.ShapeDtypeStruct) and array.sharding is None
            if i in self._mapped:
                decided[i] = Decision(self.input_layout(i, array), "input mapping")
            elif undecided and names is not None and plan.mesh is not None:
                decided[i] = Decision(self.input_layout(i, array), "axis mapping")
            elif isinstance(plan.mesh, AbstractMesh) and (reason := lives_elsewhere(array, plan.mesh)):
                decided[i] = Decision(layout_on(plan.mesh, array, names, plan.compute_mapping), "other mesh", reason)
        return decided

    # arrays on another mesh ----------------------------------------------------------------------------------------

    def refused(self, arrays: Sequence[Any], error: Exception) -> bool:
        """Whether JAX refused a call because of where its arguments live.

        Raises:
            ValueError: If it refused it because of an array that is donated and passed twice.
        """
        if self.plan.donated:
            self._check_donated_once(arrays)
        if not isinstance(error, ValueError) or any(_is_deleted(array) for array in arrays):
            return False
        mesh, tracing = self.plan.mesh, self._raised_while_tracing(error)
        self._unused = frozenset()  # which arguments are used may depend on their shapes
        # an array on a mesh of another shape fails when JAX names the layout of a result
        self._shapes_count = not tracing and type(error).__name__ == "IndivisibleError"
        misplaced = self._misplaced(arrays)
        if tracing and isinstance(mesh, Mesh):
            # the function itself failed: only arrays whose types name another mesh can be the cause
            misplaced = [m for m in misplaced if has_other_axis_types(m.argument.array, mesh)]
        if misplaced:
            self._mismatch_seen, self._direct, self._settled = True, False, []
        if not misplaced and mesh is None and not tracing:
            self._explain_refusal(arrays, error)
        return bool(misplaced)

    def _raised_while_tracing(self, error: Exception) -> bool:
        """Whether an error comes from the function, rather than from what JAX does before or after it is traced."""
        frames = traceback.walk_tb(error.__traceback__)
        return any(frame.f_code is self._traced_code for frame, _ in frames)

    def _misplaced(self, arrays: Sequence[Any]) -> list[Misplaced]:
        """The arguments on another mesh, but for those that the input mapping lays out in any case.

        Those on a mesh of another shape JAX may well accept, so they count only once it has not.
        """
        plan = self.plan
        if not isinstance(plan.mesh, Mesh):
            return []
        arguments = {
            i: Argument(path, array, names)
            for i, ((path, names), array) in enumerate(zip(plan.paths, arrays, strict=True))
            if i not in self._mapped and i not in self._unused
        }
        misplaced = find_misplaced(arguments, plan.mesh, plan.compute_mapping)
        return [m for m in misplaced if m.reason != OTHER_SHAPE or self._shapes_count]

    def _relocations(self, arrays: Sequence[Any]) -> dict[int, NamedSharding]:
        """Where the arguments on another mesh go, after the policy has had its say."""
        misplaced, mesh, name = self._misplaced(arrays), self.plan.mesh, self.plan.name
        if misplaced and isinstance(mesh, Mesh):
            if self.plan.policy == "error" or any(m.is_stuck for m in misplaced):
                raise MeshMismatchError(report(misplaced, mesh, name, "nothing was moved"))
            if self.plan.policy == "warn":
                self._warn(misplaced, mesh)
        return {m.position: m.target for m in misplaced}

    def _warn(self, misplaced: Sequence[Misplaced], mesh: Mesh) -> None:
        """Warn once for each call site and set of arguments."""
        depth, site = _call_site()
        key = (site, tuple(m.argument.path for m in misplaced))
        if key not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add(key)
            warnings.warn(report(misplaced, mesh, self.plan.name, "were moved"), MeshMismatchWarning, stacklevel=depth)

    def _explain_refusal(self, arrays: Sequence[Any], error: Exception) -> None:
        """Without a mesh nothing can be moved: say so, if arrays on different devices are the cause."""
        orders = {
            jax_compat.device_order(a.sharding)
            for a in arrays
            if isinstance(a, jax.Array) and not isinstance(a, Tracer) and a.committed
        }
        if len(orders) > 1:
            error.add_note(
                f"named_jit({self.plan.name}): the arguments live on {len(orders)} different device lists and there is"
                " no mesh to move them to. Pass mesh=..., or call it under `with haliax.set_mesh(mesh):`."
            )


def unused_inputs(jaxpr: Any) -> frozenset[int]:
    """The positions of the inputs of a closed jaxpr that nothing in it refers to."""
    jaxpr = jaxpr.jaxpr
    used = {id(v) for eqn in jaxpr.eqns for v in eqn.invars} | {id(v) for v in jaxpr.outvars}
    return frozenset(i for i, v in enumerate(jaxpr.invars) if id(v) not in used)


def _is_weak(array: Any) -> bool:
    return bool(getattr(array, "weak_type", False))


def _is_deleted(array: Any) -> bool:
    return isinstance(array, jax.Array) and not isinstance(array, Tracer) and array.is_deleted()


def _call_site() -> tuple[int, tuple[str, int]]:
    """The first frame outside this package: its depth, for `warnings.warn`, and its file and line."""
    depth, frame = 1, sys._getframe(1)
    package = __name__.split(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == package:
        depth, frame = depth + 1, frame.f_back
    return depth, (frame.f_code.co_filename, frame.f_lineno)
