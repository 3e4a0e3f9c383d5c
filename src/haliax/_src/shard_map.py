"""`jax.shard_map` by name: a function of the shards of its arguments, one call for each device.

Which part of an array a device gets is what the axis mapping says of its names; a named array in the result is put
together in the same way. A PartitionSpec decides where it is given. As names have no sizes, the named arrays inside are
plain ones, with the sizes of the shards.

The function is traced once: JAX reads `out_specs` after it has called the function, which fills them in.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, overload

import equinox as eqx
import jax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from haliax._src.callables import callable_as_pytree
from haliax._src.errors import bad_value, problem, wrong_type
from haliax._src.jax_compat import is_in_trace, mesh_scope
from haliax._src.jax_helpers import broadcast_prefix
from haliax._src.layouts import checked_spec, is_staged, layout_for, place
from haliax._src.resources import (
    FrozenMapping,
    MeshLike,
    ResourceMapping,
    as_seen_here,
    current_mapping,
    format_mesh,
    freeze,
    is_in_force,
    manual_axes,
    mesh_axes,
    require_mesh,
)
from haliax._src.sharding import lives_elsewhere
from haliax._src.signature import TRACED, call_paths, named_paths
from haliax._src.util import safe_wraps

Args = ParamSpec("Args")
R = TypeVar("R")

_OP = "shard_map"
_BY_MAPPING = "by mapping"  # a leaf of specs, where None would be an empty pytree
_GIVE_A_MAPPING = (
    "Pass axis_mapping=..., call it under `with haliax.axis_mapping(mapping):`, or give a PartitionSpec for it."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `shard_map`."""

    in_specs: Any
    out_specs: Any
    mesh: MeshLike | None
    axis_mapping: FrozenMapping | None
    axis_names: frozenset[str]
    check_vma: bool


@overload
def shard_map(
    f: Callable[Args, R],
    *,
    in_specs: Any = None,
    out_specs: Any = None,
    mesh: MeshLike | None = None,
    axis_mapping: ResourceMapping | None = None,
    check_rep: bool = False,
    **shmap_kwargs: Any,
) -> Callable[Args, R]: ...
@overload
def shard_map(
    f: None = None,
    *,
    in_specs: Any = None,
    out_specs: Any = None,
    mesh: MeshLike | None = None,
    axis_mapping: ResourceMapping | None = None,
    check_rep: bool = False,
    **shmap_kwargs: Any,
) -> Callable[[Callable[Args, R]], Callable[Args, R]]: ...
def shard_map(
    f: Callable[..., Any] | None = None,
    *,
    in_specs: Any = None,
    out_specs: Any = None,
    mesh: MeshLike | None = None,
    axis_mapping: ResourceMapping | None = None,
    check_rep: bool = False,
    **shmap_kwargs: Any,
) -> Any:
    """Call a function on the shards of its arguments, once for each device, with collectives over mesh axes inside.

    Args:
        f: A function, method, classmethod, staticmethod, module, partial or other callable. Arrays among its arguments,
            and those that it holds itself, are split; everything else is passed as it is. Left out for a decorator.
        in_specs: How the positional arguments are split: a PartitionSpec for all, or a tuple of one for each, each of
            which may be a pytree that is a prefix of its argument. Where it is None, named arrays are split as the axis
            mapping says, and raw ones are not.
        out_specs: How the result is put together, in the same form. What is not split must be equal on all devices.
        mesh: The mesh; the one in force if None.
        axis_mapping: Mesh axes by axis name; the mapping in force if None.
        check_rep: Whether JAX checks that what is not split in the result is equal on all devices, `check_vma` of JAX.
        **shmap_kwargs: `axis_names`, the mesh axes over which to split, all of them by default; and `check_vma`.

    Returns:
        A function of the same arguments, whole ones, that returns the whole result.

    Raises:
        ValueError: When called, if there is no mesh or mapping, or an axis does not divide over its mesh axes.
        TypeError: If an option is unknown, or a spec is none.

    Source:
        `jax.shard_map`
    """
    if mesh is not None and not isinstance(mesh, Mesh | AbstractMesh):
        raise wrong_type(_OP, "mesh", mesh, "a jax.sharding.Mesh or AbstractMesh")
    options = Options(
        in_specs=_checked_specs("in_specs", in_specs),
        out_specs=_checked_specs("out_specs", out_specs),
        mesh=mesh,
        axis_mapping=freeze(axis_mapping),
        axis_names=frozenset(mesh_axes(shmap_kwargs.pop("axis_names", ()))),
        check_vma=shmap_kwargs.pop("check_vma", check_rep),
    )
    if shmap_kwargs:
        raise TypeError(problem(_OP, f"unknown option {min(shmap_kwargs)!r}", "options: axis_names, check_vma"))
    return functools.partial(_wrap, options) if f is None else _wrap(options, f)


def _checked_specs(argument: str, specs: Any) -> Any:
    """Specs with a leaf in place of each None; a list for all arguments is a tuple."""

    def check(spec: Any) -> Any:
        if spec is not None and not isinstance(spec, PartitionSpec):
            raise wrong_type(_OP, f"a leaf of {argument}", spec, "a PartitionSpec, or None for the axis mapping")
        for entry in spec or ():
            if entry is not None and not isinstance(entry, str | tuple):
                raise wrong_type(_OP, f"an entry of a PartitionSpec of {argument}", entry, "mesh axes, or None")
        return _BY_MAPPING if spec is None else spec

    specs = jax.tree.map(check, specs, is_leaf=_is_spec)
    return tuple(specs) if argument == "in_specs" and isinstance(specs, list) else specs


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def _wrap(options: Options, f: Any) -> Any:
    if isinstance(f, classmethod | staticmethod):
        return type(f)(_wrap(options, f.__func__))
    if not callable(f):
        raise wrong_type(_OP, "f", f, "a callable")

    @safe_wraps(f)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        return _Call(options).run(f, args, kwargs)

    return mapped


class _Call:
    """One call: the mesh and the mapping that hold for it, and the specs that they give."""

    def __init__(self, options: Options):
        self.options = options
        self.mesh = as_seen_here(require_mesh(_OP, options.mesh))
        self.axis_names = options.axis_names or frozenset(self.mesh.axis_names) - manual_axes()
        if not self.axis_names <= set(self.mesh.axis_names):
            given = f"axis_names has {min(self.axis_names - set(self.mesh.axis_names))!r}"
            raise bad_value(_OP, given, f"the mesh has {format_mesh(self.mesh)}")
        mapping = options.axis_mapping if options.axis_mapping is not None else current_mapping()
        self.mapping = None if mapping is None else {name: self._over(entry) for name, entry in mapping.items()}

    def _over(self, entry: Any) -> tuple[str, ...]:
        """The part of a mapping entry over which this call splits; a mesh axis that is unknown stays, for an error."""
        others = set(self.mesh.axis_names) - self.axis_names
        return tuple(axis for axis in mesh_axes(entry) if axis not in others)

    def run(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call `f` on shards, and put its result together."""
        if self.options.in_specs != _BY_MAPPING:
            args, kwargs = _positional(f, args, kwargs)
        target = callable_as_pytree(f)
        inputs, rest = eqx.partition((target, args, kwargs), _is_array)
        arrays, treedef = jax.tree.flatten(inputs)
        in_specs = self._in_specs(f, target, args, kwargs)
        out_specs: list[PartitionSpec] = []
        outputs: list[Any] = []

        def flat(*shards: Any) -> list[Any]:
            target, args, kwargs = eqx.combine(treedef.unflatten(shards), rest)
            result = target(*args, **kwargs)
            out_specs[:] = self._out_specs(result)
            results, static = eqx.partition(result, _is_array)
            leaves, structure = jax.tree.flatten(results)
            outputs[:] = structure, static
            return leaves

        flat.__name__ = flat.__qualname__ = getattr(f, "__name__", type(f).__name__)
        with contextlib.nullcontext() if is_in_force(self.mesh) else mesh_scope(self.mesh):
            arrays = self._within_reach(arrays, in_specs)
            leaves = self._mapped(flat, in_specs, out_specs)(*arrays)
        structure, static = outputs
        return eqx.combine(structure.unflatten(leaves), static)

    def _mapped(
        self, flat: Callable[..., Any], in_specs: list[PartitionSpec], out_specs: list[PartitionSpec]
    ) -> Callable[..., Any]:
        """`flat` on shards; `out_specs` may be filled in while it runs."""
        mapped = jax.shard_map(
            flat,
            mesh=self.mesh,
            in_specs=tuple(in_specs),
            out_specs=out_specs,
            axis_names=self.axis_names,
            check_vma=self.options.check_vma,
        )
        # outside of jit, JAX before 0.12 can not split over some of the mesh axes without check_vma
        partial = self.axis_names != frozenset(self.mesh.axis_names)
        return jax.jit(mapped) if partial and not is_in_trace() else mapped

    def _in_specs(
        self, f: Callable[..., Any], target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> list[PartitionSpec]:
        """The spec of each array of the callable and of the arguments."""
        paths = [*named_paths("f", target), *call_paths(f, args, kwargs)]
        leaves = jax.tree.leaves((target, args, kwargs))
        specs = [_BY_MAPPING] * len(leaves)
        first = len(jax.tree.leaves(target))
        given = _spread("in_specs", self.options.in_specs, args, "the positional arguments")
        specs[first : first + len(given)] = given
        return [
            self._in_spec(*path, leaf, spec)
            for path, leaf, spec in zip(paths, leaves, specs, strict=True)
            if _is_array(leaf)
        ]

    def _in_spec(self, path: str, names: tuple[str, ...] | None, array: Any, given: Any) -> PartitionSpec:
        """The spec of one array, once it is known to divide."""
        if isinstance(array, jax.Ref) and not is_in_trace():
            remedy = "Call it inside jit: outside, JAX splits no mutable arrays."
            raise wrong_type(_OP, path, array, "an array", remedy)
        spec = self._spec(path, names, array, given)
        names = names or _numbers(array)
        layout_for(_OP, path, names, array.shape, dict(zip(names, spec, strict=False)), self.mesh)
        return spec

    def _out_specs(self, result: Any) -> list[PartitionSpec]:
        """The spec of each array of the result, which has the sizes of a shard."""
        given = _spread("out_specs", self.options.out_specs, result, "the result")
        leaves = jax.tree.leaves(result)
        return [
            self._spec(*path, leaf, spec)
            for path, leaf, spec in zip(named_paths("result", result), leaves, given, strict=True)
            if _is_array(leaf)
        ]

    def _spec(self, path: str, names: tuple[str, ...] | None, array: Any, given: Any) -> PartitionSpec:
        """The spec given for an array, else that of the mapping for a named one, else an unsplit one."""
        if isinstance(given, PartitionSpec):
            self._check_given(path, names or _numbers(array), given)
            return given
        if names is None:
            return PartitionSpec()
        if self.mapping is None:
            raise bad_value(_OP, f"{path} is a named array", "expected an axis mapping", _GIVE_A_MAPPING)
        return checked_spec(_OP, path, names, self.mapping, self.mesh)

    def _check_given(self, path: str, names: tuple[str, ...], spec: PartitionSpec) -> None:
        if len(spec) > len(names):
            given = f"{path} has {len(names)} dimensions, and its PartitionSpec {len(spec)} entries"
            raise bad_value(_OP, given, "expected no more than dimensions")
        checked_spec(_OP, path, names, dict(zip(names, spec, strict=False)), self.mesh)
        others = [axis for entry in spec for axis in mesh_axes(entry) if axis not in self.axis_names]
        if others:
            given = f"the PartitionSpec of {path} has mesh axis {others[0]!r}"
            raise bad_value(_OP, given, f"this call splits over {', '.join(sorted(self.axis_names))}")

    def _within_reach(self, arrays: list[Any], specs: Sequence[PartitionSpec]) -> list[Any]:
        """The arrays where JAX takes them: on this mesh, and laid out as the specs say over explicit axes."""
        explicit = AxisType.Explicit in self.mesh.axis_types
        layouts: dict[int, NamedSharding] = {}
        for i, (array, spec) in enumerate(zip(arrays, specs, strict=True)):
            away = not is_staged(array) and isinstance(self.mesh, Mesh) and lives_elsewhere(array, self.mesh)
            if (explicit or away) and not isinstance(array, jax.Ref):
                layouts[i] = NamedSharding(self.mesh, spec)  # pyright: ignore[reportArgumentType]
        return place(arrays, layouts)


def _numbers(array: Any) -> tuple[str, ...]:
    """What to call the dimensions of an array without names in an error message."""
    return tuple(map(str, range(array.ndim)))


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, TRACED)


def _positional(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The arguments with those in their places that were given by name, so that the specs of these are found."""
    try:
        bound = inspect.signature(f).bind(*args, **kwargs)
    except (TypeError, ValueError):  # a builtin without a signature; or the call itself will tell what is wrong
        return args, kwargs
    return bound.args, bound.kwargs


def _spread(argument: str, specs: Any, tree: Any, what: str) -> list[Any]:
    """The spec of each leaf of a tree, from specs that are a prefix of it."""
    try:
        return jax.tree.leaves(broadcast_prefix(specs, tree))
    except ValueError as error:
        given = f"{argument} do not fit {what}"
        raise bad_value(_OP, given, "expected one PartitionSpec, or a pytree of them that is a prefix") from error
