"""`named_jit`: `jax.jit` for functions of named arrays, on an explicit mesh, which keeps the shardings of its inputs.

A call flattens its arguments once and looks up a program by what decides it: the structure, the static leaves, the mesh
and the mapping. The rest is `jax.jit` on flat leaves.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import jax
from jax.tree_util import register_pytree_node, tree_flatten

from haliax._src import jax_compat
from haliax._src.aot import Lowered, platforms_of
from haliax._src.callables import callable_as_pytree
from haliax._src.errors import problem, wrong_type
from haliax._src.explain import explain
from haliax._src.explanation import Explanation
from haliax._src.jit_options import JitOptions, check_donated_names, check_options, donated_leaves
from haliax._src.jit_plan import Plan
from haliax._src.mesh_mismatch import Policy
from haliax._src.program import Program
from haliax._src.resources import (
    GIVE_A_MESH,
    FrozenMapping,
    MeshLike,
    ResourceMapping,
    ambient_mesh,
    as_seen_here,
    check_mapping,
    current_mapping,
    is_in_force,
    mesh_axes,
)
from haliax._src.retraces import History
from haliax._src.signature import (
    ABSTRACT,
    TRACED,
    Partition,
    Partitions,
    call_paths,
    call_structure,
    call_tree,
    declared_leaves,
    flatten,
    named_paths,
    ranks_of,
    unhashable_static,
)
from haliax._src.util import safe_update_wrapper

try:
    from haliax._src.forced_host_shim import shim_is_active
except ModuleNotFoundError:  # without that file there is no shim

    def shim_is_active(mesh: MeshLike | None) -> bool:
        """Never, without the shim."""
        return False


P = ParamSpec("P")
Q = ParamSpec("Q")
Mapped = ResourceMapping | None
R = TypeVar("R", covariant=True)

# programs kept by one wrapper: many more than a training script has, few enough to bound what static arguments that
# never repeat can fill (JAX keeps about 1.5 MB for each)
_MOST_PROGRAMS = 1024


class NamedJit(Generic[P, R]):
    """A function compiled by `named_jit`.

    Args:
        fn: The function.
        options: What `named_jit` was given.
    """

    __name__: str

    def __init__(self, fn: Callable[P, R], options: JitOptions):
        safe_update_wrapper(self, fn)
        for name in ("lower", "trace", "eval_shape", "explain", "clear_cache"):  # a function may have attributes too
            self.__dict__.pop(name, None)
        self._fn = fn
        self._options = options
        self._fn_leaves, self._fn_treedef = tree_flatten(callable_as_pytree(fn))
        self._fn_arrays = [leaf for leaf in self._fn_leaves if isinstance(leaf, TRACED)]
        self._partitions, self._abstract_partitions = Partitions(TRACED), Partitions(ABSTRACT)
        self._programs: dict[Any, Program] = {}
        # the last one, with its key: to compare is half of what it takes to look up
        self._recent: tuple[Any, Program | None] = None, None
        self._history = History(self.__name__)
        self._lock = threading.Lock()
        jax_compat.clear_with_jax(self)

    def __repr__(self) -> str:
        return f"named_jit({self.__name__})"

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedJit, (self._fn, self._options)

    def __deepcopy__(self, memo: dict[int, Any]) -> NamedJit[P, R]:
        # the options hold a mesh, whose devices can not be copied
        return NamedJit(copy.deepcopy(self._fn, memo), self._options)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function on these arguments, compiled."""
        program, arrays, in_force = self._select(args, kwargs, self._partitions)
        if in_force:
            return program.run(arrays)
        return jax_compat.call_under_mesh(program.plan.mesh, program.run, arrays)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> NamedJit[P, R]: ...
    @overload
    def __get__(
        self: NamedJit[Concatenate[Any, Q], R], instance: Any, owner: type | None = None
    ) -> BoundNamedJit[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind to an instance, as a function in a class body does."""
        return self if instance is None else BoundNamedJit(self, instance)

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """Lower the program for these arguments, which may be ShapeDtypeStructs, without running it.

        Returns:
            What `jax.jit(...).lower` gives, whose `compile()` takes and returns named pytrees.

        Source:
            `jax.stages.Lowered`
        """
        program, arrays, _ = self._select(args, kwargs, self._abstract_partitions)
        with _scope(program):
            traced = program.jitted.trace(*program.abstract_inputs(arrays))
            lowered = traced.lower(lowering_platforms=platforms_of(program.plan.mesh))
        _, signature = self._abstract_partitions.split(args, kwargs)
        return Lowered(lowered, self._call_compiled(program, signature))

    def trace(self, /, *args: Any, **kwargs: Any) -> jax.stages.Traced:
        """Trace the program for these arguments, which may be ShapeDtypeStructs, over its flat leaves.

        Source:
            `jax.stages.Traced`
        """
        program, arrays, _ = self._select(args, kwargs, self._abstract_partitions)
        with _scope(program):
            return program.jitted.trace(*program.abstract_inputs(arrays))

    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """The result for these arguments, with a ShapeDtypeStruct in place of each array.

        Source:
            `jax.eval_shape`
        """
        program, arrays, _ = self._select(args, kwargs, self._abstract_partitions)
        with _scope(program):
            return program.unpack(jax.eval_shape(program.jitted, *program.abstract_inputs(arrays)))

    def explain(self, /, *args: Any, **kwargs: Any) -> Explanation:
        """Say what a call with these arguments, which may be ShapeDtypeStructs, does with layouts, without running it.

        Returns:
            A report to print, or to read by its attributes: where each argument and result is and why, the collectives
            of the compiled program, and the traces so far.
        """
        program, arrays, _ = self._select(args, kwargs, self._abstract_partitions)
        shim_active = program.plan.input_mapping is not None and self._options.in_axis_resources is None
        compilations = sum(jax_compat.compiled_count(known.jitted) for known in list(self._programs.values()))
        with _scope(program):
            return explain(program, arrays, shim_active=shim_active, compilations=compilations)

    def clear_cache(self) -> None:
        """Forget all programs; `jax.clear_caches()` does it too."""
        self._programs.clear()
        self._recent = None, None
        self._history.clear()

    def _select(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], partitions: Partitions
    ) -> tuple[Program, Sequence[Any], bool]:
        """The program for a call, its arrays, and whether its mesh is in force.

        Each call comes here, and a call of a Python function takes a hundredth of one of `jax.jit`: so the usual way is
        written out.
        """
        leaves, treedef = flatten(call_tree(args, kwargs) if kwargs else args)
        types = tuple([type(leaf) for leaf in leaves])  # on Python 3.12 a list takes half the time of a `map`
        partition = partitions.get(types) or partitions.add(types, leaves)
        kinds, arrays, statics = partition.kinds, leaves, ()
        if kinds:
            arrays, statics = partition.arrays_of(leaves), partition.keys_of(leaves)
        if self._fn_arrays:
            arrays = [*self._fn_arrays, *arrays]
        options = self._options
        mapping = options.axis_resources
        if mapping is None:
            mapping = current_mapping()
        mesh, ambient = options.mesh, ambient_mesh()
        if mesh is None:
            mesh = jax_compat.shared_mesh(arrays) if ambient is None else ambient
        elif ambient is not None and mesh is not ambient:
            mesh = as_seen_here(mesh)
        shim = mapping is not None and options.in_axis_resources is None and shim_is_active(mesh)
        try:
            # the hash tells of a static object, equal to itself, that has changed since the last call; what users
            # made comes last, for to compare that may raise
            key = (hash(statics), kinds, mesh, mapping, shim, statics, treedef)
            recent, program = self._recent
            if key != recent:
                program = self._programs.get(key)
                if program is not None:
                    self._recent = key, program
        except TypeError as error:
            raise unhashable_static(self.__name__, self._fn, args, kwargs, error) from error
        if program is not None and program.declared:
            ranks = ranks_of(arrays, program.declared)
            if ranks != program.plan.ranks:  # a program of its own, whose arrays have other names
                key = (*key, ranks)
                program = self._programs.get(key)
        if program is None:
            program = self._add_program(key, leaves, args, kwargs)
        return program, arrays, mesh is None or (mesh is ambient and mesh is not jax_compat.legacy_mesh())

    def _add_program(self, key: Any, leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        plan = self._plan(key, leaves, args, kwargs)
        with self._lock:  # threads that call for the first time share one program, and so one trace
            program = self._programs.get(key)
            if program is None:
                while len(self._programs) >= _MOST_PROGRAMS:
                    del self._programs[next(iter(self._programs))]
                program = self._programs[key] = Program(plan, self._history)
        return program

    def _plan(self, key: Any, leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
        _, kinds, mesh, mapping, shim, _, treedef = key[:7]
        options = self._options
        inputs = options.in_axis_resources if not shim else mapping
        outputs = mapping if options.out_axis_resources is None else options.out_axis_resources
        self._check_mesh(mesh, inputs, mapping, outputs)
        flags = donated_leaves(self.__name__, options, self._fn, args, kwargs)
        fn = self._fn_treedef.unflatten(self._fn_leaves)
        paths = named_paths("fn", fn) + call_paths(self._fn, args, kwargs)
        held = len(self._fn_leaves)
        flags = [False] * held + flags
        leaves = [*self._fn_leaves, *leaves]
        static = [i for i, _ in Partition(self._fn_leaves).kinds] + [held + i for i, _ in kinds]
        arrays = sorted({*range(len(leaves))}.difference(static))
        statics = tuple((i, leaves[i]) for i in static)
        declares = declared_leaves((fn, args, kwargs))
        declared = tuple(position for position, i in enumerate(arrays) if declares[i])
        return Plan(
            name=self.__name__,
            treedef=call_structure(self._fn_treedef, treedef),
            statics=statics,
            static_paths=[paths[i][0] for i, _ in statics],
            paths=[paths[i] for i in arrays],
            declared=declared,
            ranks=ranks_of([leaves[i] for i in arrays], declared),
            donated=frozenset(position for position, i in enumerate(arrays) if flags[i]),
            mesh=mesh,
            input_mapping=inputs,
            compute_mapping=mapping,
            output_mapping=outputs,
            policy=options.on_mesh_mismatch,
            jit_options=options.jit_kwargs,
        )

    def _check_mesh(self, mesh: MeshLike | None, *mappings: FrozenMapping | None) -> None:
        """Raise if a mapping needs a mesh and there is none, or one that was given names a mesh axis that is not there.

        An ambient mapping may speak of more than this mesh has: it is checked for the arrays that it lays out.
        """
        op = f"named_jit({self.__name__})"
        for mapping in filter(None, mappings):
            axes = sorted({axis for spec in mapping.values() for axis in mesh_axes(spec)})
            if axes and mesh is None:
                given = f"the axis mapping names mesh axes ({', '.join(axes)}) and there is no mesh"
                raise ValueError(problem(op, given, remedy=GIVE_A_MESH))
            if mesh is not None and any(mapping is m for m in self._options.mappings):
                check_mapping(op, mapping, mesh)

    def _call_compiled(self, program: Program, signature: Any) -> Callable[..., Any]:
        """How a program compiled ahead of time is called: on arguments of the same structure and static values."""
        known = hash(signature[-1])  # of a static object that may change

        def call(compiled: jax.stages.Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            arrays, given = self._partitions.split(args, kwargs)
            if given != signature or hash(given[-1]) != known:
                structure, expected = given[0], signature[0]
                raise TypeError(
                    problem(
                        f"named_jit({self.__name__})",
                        f"compiled for arguments of structure {expected}",
                        f"this call has {structure}" if structure != expected else "this call has other static values",
                        "Lower and compile it again for these arguments.",
                    )
                )
            with _scope(program):
                return program.run_compiled(compiled, [*self._fn_arrays, *arrays])

        return call


class BoundNamedJit(Generic[P, R]):
    """A compiled function bound to its first argument: what a method is to a function.

    Args:
        jitted: The compiled function.
        instance: Its first argument.
    """

    def __init__(self, jitted: NamedJit, instance: Any):
        self.__func__, self.__self__ = jitted, instance
        safe_update_wrapper(self, jitted)
        self.__wrapped__ = functools.partial(jitted._fn, instance)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the compiled function."""
        return self.__func__(self.__self__, *args, **kwargs)

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """See `NamedJit.lower`."""
        return self.__func__.lower(self.__self__, *args, **kwargs)

    def trace(self, /, *args: Any, **kwargs: Any) -> jax.stages.Traced:
        """See `NamedJit.trace`."""
        return self.__func__.trace(self.__self__, *args, **kwargs)

    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """See `NamedJit.eval_shape`."""
        return self.__func__.eval_shape(self.__self__, *args, **kwargs)

    def explain(self, /, *args: Any, **kwargs: Any) -> Explanation:
        """See `NamedJit.explain`."""
        return self.__func__.explain(self.__self__, *args, **kwargs)


# like the methods of a module, which are pytrees, it shows its arrays where it is passed as an argument
register_pytree_node(BoundNamedJit, lambda b: ((b.__self__,), b.__func__), lambda fn, held: BoundNamedJit(fn, *held))


def _scope(program: Program) -> contextlib.AbstractContextManager[Any]:
    """The mesh of a program, if it is not in force already."""
    mesh = program.plan.mesh
    if mesh is None or is_in_force(mesh):
        return contextlib.nullcontext()
    return jax_compat.mesh_scope(mesh)


@overload
def named_jit(
    fn: Callable[P, R],
    axis_resources: ResourceMapping | None = None,
    *,
    mesh: MeshLike | None = None,
    in_axis_resources: ResourceMapping | None = None,
    out_axis_resources: ResourceMapping | None = None,
    donate_args: Any = None,
    donate_kwargs: Any = None,
    on_mesh_mismatch: Policy = "warn",
    **jit_kwargs: Any,
) -> NamedJit[P, R]: ...


@overload
def named_jit(
    fn: None = None,
    axis_resources: ResourceMapping | None = None,
    *,
    mesh: MeshLike | None = None,
    in_axis_resources: ResourceMapping | None = None,
    out_axis_resources: ResourceMapping | None = None,
    donate_args: Any = None,
    donate_kwargs: Any = None,
    on_mesh_mismatch: Policy = "warn",
    **jit_kwargs: Any,
) -> Callable[[Callable[P, R]], NamedJit[P, R]]: ...


def named_jit(
    fn: Callable[..., Any] | None = None,
    axis_resources: ResourceMapping | None = None,
    *,
    mesh: MeshLike | None = None,
    in_axis_resources: ResourceMapping | None = None,
    out_axis_resources: ResourceMapping | None = None,
    donate_args: Any = None,
    donate_kwargs: Any = None,
    on_mesh_mismatch: Policy = "warn",
    **jit_kwargs: Any,
) -> Any:
    """Compile a function of named arrays, on an explicit mesh, keeping the shardings of the arrays it is given.

    Arrays are traced, wherever they are: in pytrees, in named arrays, in `fn` itself if it is a module, a partial or a
    bound method. Everything else is static. The function is traced once for each signature.

    Args:
        fn: The function; without it, `named_jit(...)` is a decorator.
        axis_resources: Mesh axes by axis name, in force while the function runs and for the named arrays of its
            result; the mapping in force at the call if None.
        mesh: The mesh to run on. If None: the one in force (`haliax.set_mesh`, `jax.set_mesh`, `with mesh:`), else the
            one that all committed arguments share (outside a trace).
        in_axis_resources: If given, named arguments are put in the layout of this mapping on every call. If not, every
            array keeps the sharding it has.
        out_axis_resources: The mapping for the named arrays of the result, if it is not `axis_resources`.
        donate_args: Which positional arguments give their memory to the result: a bool for all, or one for each (fewer
            are filled up with False), where a pytree of bools may be a prefix of an argument. In a method, `self` is
            the first.
        donate_kwargs: The same by name: a bool for all, a mapping, or a sequence of names.
        on_mesh_mismatch: What to do about arguments that live on another mesh: "warn" moves them and says so, "move"
            moves them, "error" raises before anything is moved or donated.
        **jit_kwargs: Further options of `jax.jit`, such as `keep_unused`, `inline` or `compiler_options`.

    Returns:
        The compiled function, with the name, docstring and signature of `fn`; it binds as a method, and has `lower`,
        `trace`, `eval_shape` and `explain`.

    Raises:
        TypeError: If an option belongs to `jax.jit` alone, or a static argument is unhashable.
        ValueError: If a mapping does not fit the mesh, an axis does not divide, or a mapping needs a mesh and there is
            none.
        MeshMismatchError: If arguments live on another mesh and `on_mesh_mismatch` is "error".

    Source:
        `jax.jit`, `equinox.filter_jit`
    """
    options = check_options(
        mesh=mesh,
        axis_resources=axis_resources,
        in_axis_resources=in_axis_resources,
        out_axis_resources=out_axis_resources,
        donate_args=donate_args,
        donate_kwargs=donate_kwargs,
        on_mesh_mismatch=on_mesh_mismatch,
        jit_kwargs=jit_kwargs,
    )

    def wrap(fn: Callable[..., Any]) -> Any:
        if isinstance(fn, classmethod | staticmethod):
            return type(fn)(wrap(fn.__func__))
        if not callable(fn):
            raise wrong_type("named_jit", "fn", fn, "a callable", "Pass a mapping as axis_resources=...")
        jitted = NamedJit(fn, options)
        check_donated_names(fn, jitted.__name__, donate_kwargs)
        return jitted

    return wrap if fn is None else wrap(fn)


@overload
def fsdp(
    fn: Callable[P, R], parameter_mapping: Mapped = None, compute_mapping: Mapped = None, **kwargs: Any
) -> NamedJit[P, R]: ...


@overload
def fsdp(
    parameter_mapping: Mapped = None, compute_mapping: Mapped = None, **kwargs: Any
) -> Callable[[Callable[P, R]], NamedJit[P, R]]: ...


def fsdp(*args: Any, **kwargs: Any) -> Any:
    """`named_jit` for fully sharded data parallelism: parameters in one layout, computation in another.

    Args:
        *args: `fn, parameter_mapping, compute_mapping`, or the two mappings alone for a decorator; each may be passed
            by name.
        **kwargs: Further options of `named_jit`.

    Returns:
        The compiled function: its named arguments and results have the layout of `parameter_mapping`, and
        `compute_mapping` is in force inside.

    Raises:
        TypeError: If there are more than a function and two mappings.

    Source:
        Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel" (2023)
    """
    fn: Callable[..., Any] | None = kwargs.pop("fn", None)
    if args and callable(args[0]):
        fn, args = args[0], args[1:]
    names = ("parameter_mapping", "compute_mapping")
    if len(args) > len(names):
        given = f"{len(args)} mappings were given"
        raise TypeError(problem("fsdp", given, "expected parameter_mapping and compute_mapping"))
    given = dict(zip(names, args, strict=False))
    parameters = kwargs.pop("parameter_mapping", given.get("parameter_mapping"))
    compute = kwargs.pop("compute_mapping", given.get("compute_mapping"))
    for name, mapping in zip(names, (parameters, compute), strict=True):
        if mapping is not None and not isinstance(mapping, Mapping):
            raise wrong_type("fsdp", name, mapping, "a mapping from axis names to mesh axes")
    return named_jit(fn, compute, in_axis_resources=parameters, out_axis_resources=parameters, **kwargs)
