"""Mesh axes of type Explicit: where JAX can not tell the layout of a result, the names of its axes do.

With explicit mesh axes the layout of an array is a part of its type, and JAX refuses an operation whose result it
can not type: a gather, a contraction of axes that are split, operands that are laid out differently. Here such an
operation runs with its mesh axes left to the compiler, and each axis of the result is split as the axis of that name is
in the operands. Operands that disagree are first brought to the layout that the axis mapping in force gives them.

All of this begins with an exception of JAX, so that nothing else pays for it:

    try:
        return operation(x, y)
    except REFUSALS as refusal:
        return by_name("operation", refusal, operation, x, y)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from haliax._src.array_base import NamedArrayBase
from haliax._src.errors import bad_value
from haliax._src.jax_compat import DuplicateSpecError, ShardingTypeError
from haliax._src.jax_helpers import struct_of
from haliax._src.layouts import layout_for
from haliax._src.resources import MeshLike, current_mapping, mesh_axes, resolve_mesh, split_factor

F = TypeVar("F", bound=Callable[..., Any])
Names = tuple[str, ...]
Layout = dict[str, tuple[str, ...]]
"""The mesh axes that each axis is split over, by name; an axis that is not split is left out."""

GIVE_A_MAPPING = (
    "Lay one out anew with haliax.shard(x, mapping), or let a mapping decide: `with haliax.axis_mapping(mapping):`."
)

REFUSALS = (ShardingTypeError, DuplicateSpecError, ValueError)
"""What JAX raises for layouts that it can not type; some operations of some versions raise a plain ValueError."""


def laid_out_by_name(name: str) -> Callable[[F], F]:
    """A decorator for operations on named arrays that JAX may refuse.

    Args:
        name: The operation, for error messages.

    Returns:
        A decorator for functions of which each argument is an array, a sequence of arrays, or static.
    """

    def decorate(fn: F) -> F:
        @functools.wraps(fn)
        def op(*args: Any, **kwargs: Any) -> Any:
            try:
                return fn(*args, **kwargs)
            except REFUSALS as refusal:
                call = lambda args, values: fn(*args, **dict(zip(kwargs, values, strict=True)))  # noqa: E731
                return by_name(name, refusal, call, args, tuple(kwargs.values()))

        return cast(F, op)

    return decorate


def by_name(op: str, refusal: Exception, fn: Callable[..., Any], *operands: Any) -> Any:
    """Run an operation that JAX has refused; the names of its result tell the layout.

    Args:
        op: The operation, for error messages.
        refusal: What JAX has raised.
        fn: The operation, a function of the operands.
        *operands: Named arrays, raw ones, sequences of them; anything else is static.

    Returns:
        What `fn` returns.

    Raises:
        ValueError: If operands are laid out differently, and there is no axis mapping to decide.
        Exception: The refusal itself, if it is about anything but layouts.

    Source:
        `jax.sharding.auto_axes`
    """
    leaves, treedef = jax.tree.flatten(operands, is_leaf=lambda x: isinstance(x, NamedArrayBase | Mapping))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, NamedArrayBase | jax.Array)]
    arrays = [leaves[i] for i in places]
    mesh = explicit_mesh(arrays)
    if mesh is None:
        raise refusal

    def call(*arrays: Any) -> Any:
        filled = dict(enumerate(leaves)) | dict(zip(places, arrays, strict=True))
        return fn(*treedef.unflatten(filled.values()))

    try:
        with jax.sharding.use_abstract_mesh(_automatic(mesh)):
            results = jax.eval_shape(call, *jax.tree.map(_without_layout, arrays))
    except Exception:
        raise refusal from None  # it fails without any layout, too
    arrays, layout = agree(op, mesh, arrays, results)
    shardings = jax.tree.map(lambda result: laid_out(result, layout, mesh), results, is_leaf=is_named)
    return jax.sharding.auto_axes(call, out_sharding=shardings)(*arrays)


def reshape(array: Any, sizes: tuple[int, ...]) -> Any:
    """`jnp.reshape` of a raw array, of which some neighbouring dimensions are merged or split.

    Mesh axes of merged dimensions split the new one; those of a dimension that is taken apart split the first part that
    has room for them.
    """
    try:
        return jnp.reshape(array, sizes)
    except REFUSALS as refusal:
        mesh = explicit_mesh([array])
        if mesh is None:
            raise refusal
        spec = _reshaped(entries(array), array.shape, sizes, mesh)
        return jax.lax.reshape(array, sizes, out_sharding=NamedSharding(mesh, spec))  # pyright: ignore


def _reshaped(layout: Sequence[Names], old: Sequence[int], new: Sequence[int], mesh: MeshLike) -> PartitionSpec:
    """The layout after a reshape: as before in front of and behind what changes."""
    front = 0
    while front < min(len(old), len(new)) and old[front] == new[front]:
        front += 1
    back = 0
    while back < min(len(old), len(new)) - front and old[-1 - back] == new[-1 - back]:
        back += 1
    homeless = [axis for entry in layout[front : len(old) - back] for axis in entry]
    middle: list[Names] = []
    for size in new[front : len(new) - back]:
        taken = ()
        for axis in list(homeless):
            if size % split_factor(mesh, (*taken, axis)) == 0:
                taken = (*taken, axis)
                homeless.remove(axis)
        middle.append(taken)
    return PartitionSpec(*(entry or None for entry in (*layout[:front], *middle, *layout[len(old) - back :])))


# one layout for all -------------------------------------------------------------------------------------------------


def explicit_mesh(arrays: Sequence[Any]) -> MeshLike | None:
    """The mesh of the first of some arrays that has explicit axes; None if there is none, as almost always."""
    for array in map(_raw, arrays):
        if isinstance(array, jax.Array):
            mesh = jax.typeof(array).sharding.mesh
            if AxisType.Explicit in mesh.axis_types:
                return mesh if isinstance(array, Tracer) else array.sharding.mesh  # pyright: ignore
    return None


def agree(op: str, mesh: MeshLike, arrays: list[Any], results: Any) -> tuple[list[Any], Layout]:
    """The operands in layouts that agree, and the layout of each axis.

    Args:
        op: The operation, for error messages.
        mesh: The mesh.
        arrays: The operands.
        results: The results, none of which may be split over one mesh axis twice.

    Returns:
        The operands, and the union of their layouts. If they do not agree, those that are not laid out as the axis
        mapping in force says are laid out anew: as few as possible, otherwise all.

    Raises:
        ValueError: If they do not agree and there is no mapping, or that does not fit either.
    """
    outputs = [leaf.axis_names for leaf in jax.tree.leaves(results, is_leaf=is_named) if is_named(leaf)]
    layout, quarrel, names = _union(arrays, outputs)
    if not quarrel:
        return arrays, layout
    mapping = current_mapping()
    if mapping is None:
        layouts = " and ".join(_describe(array) for array in arrays if _names(array))
        raise bad_value(op, f"{quarrel}: {layouts}", "expected operands that agree", GIVE_A_MAPPING)
    others = {name for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True) if kind != AxisType.Explicit}
    wanted = {name: tuple(axis for axis in mesh_axes(spec) if axis not in others) for name, spec in mapping.items()}
    for i, array in enumerate(arrays):
        if is_named(array):
            layout_for(op, f"operand {i}", array.axis_names, array.array.shape, wanted, mesh)
    for only in (names, None):
        moved = [relaid(array, wanted, mesh) if _differs(array, wanted, only) else array for array in arrays]
        layout, quarrel, _ = _union(moved, outputs)
        if not quarrel:
            return moved, layout
    raise bad_value(op, quarrel, "the axis mapping in force says so", "Map one of them to another mesh axis.")


def as_mapped(result: Any) -> Any:
    """The result of a contraction, its axes split over explicit mesh axes as the axis mapping in force says.

    Args:
        result: A named array.

    Returns:
        The array. Without a mapping, or explicit mesh axes, it is itself; an axis that the mapping does not name stays
        as it is laid out, unless its mesh axes are needed for one that is named.
    """
    mapping = current_mapping()
    if mapping is None:
        return result
    mesh = explicit_mesh([result]) or resolve_mesh()  # what came from outside the mesh has none in its type
    if mesh is None or AxisType.Explicit not in mesh.axis_types:
        return result
    explicit = {name for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True) if kind == AxisType.Explicit}
    layout = dict(zip(result.axis_names, entries(result), strict=True))
    wanted = {name: mesh_axes(mapping[name]) for name in layout if name in mapping}
    wanted = {name: tuple(axis for axis in axes if axis in explicit) for name, axes in wanted.items()}
    needed = {axis for axes in wanted.values() for axis in axes}
    kept = {name: axes for name, axes in layout.items() if needed.isdisjoint(axes)}
    return relaid(result, kept | wanted, mesh)


def _union(arrays: Sequence[Any], outputs: Sequence[Names]) -> tuple[Layout, str, Names]:
    """The layout of each axis of some arrays; what is wrong with it, if anything is, and the axes concerned."""
    layout: Layout = {}
    for array in arrays:
        for name, entry in zip(_names(array), entries(array), strict=False):
            if entry and layout.setdefault(name, entry) != entry:
                return layout, f"axis {name!r} is laid out in two ways", (name,)
    for names in outputs:
        users: dict[str, str] = {}
        for name in names:
            for axis in layout.get(name, ()):
                other = users.setdefault(axis, name)
                if other != name:
                    wrong = f"mesh axis {axis!r} would split both {other!r} and {name!r} of the result"
                    return layout, wrong, (other, name)
    return layout, "", ()


def _differs(array: Any, layout: Layout, names: Names | None) -> bool:
    """Whether an array has one of some axes, or any, in another layout."""
    pairs = zip(_names(array), entries(array), strict=False)
    return any(entry != layout.get(name, ()) for name, entry in pairs if names is None or name in names)


def _describe(array: NamedArrayBase) -> str:
    """The axes of an array with their mesh axes, such as `(batch@data, embed)`."""
    parts = []
    for name, entry in zip(array.axis_names, entries(array), strict=True):
        over = entry[0] if len(entry) == 1 else f"({', '.join(entry)})"
        parts.append(f"{name}@{over}" if entry else name)
    return f"({', '.join(parts)})"


def relaid(array: Any, layout: Layout, mesh: MeshLike) -> Any:
    """A named array in a layout, if it is in another one."""
    if not is_named(array):
        return array
    sharding = laid_out(array, layout, mesh)
    if tuple(map(mesh_axes, sharding.spec)) == entries(array):
        return array
    return array.like(jax.sharding.reshard(array.array, sharding), array.axis_names)


def laid_out(array: Any, layout: Layout, mesh: MeshLike) -> NamedSharding:
    """The sharding of an array by name; an axis that does not divide, such as a part of one that did, is not split."""
    named_sizes = zip(_names(array), _raw(array).shape, strict=False)
    spec = [_fitting(layout.get(name, ()), size, mesh) for name, size in named_sizes]
    return NamedSharding(mesh, PartitionSpec(*spec))  # pyright: ignore[reportArgumentType]


def _fitting(entry: Names, size: int, mesh: MeshLike) -> Names | None:
    return entry if entry and size % split_factor(mesh, entry) == 0 else None


def entries(array: Any) -> tuple[Names, ...]:
    """The mesh axes of each dimension, as they are in the type of an array."""
    return tuple(map(mesh_axes, jax.typeof(_raw(array)).sharding.spec))


def _automatic(mesh: MeshLike) -> AbstractMesh:
    """The mesh with the axes that are explicit left to the compiler."""
    types = tuple(AxisType.Auto if kind == AxisType.Explicit else kind for kind in mesh.axis_types)
    return AbstractMesh(tuple(mesh.shape.values()), mesh.axis_names, axis_types=types)


def is_named(x: Any) -> bool:
    """Whether `x` is a named array; the usual `is_leaf`."""
    return isinstance(x, NamedArrayBase)


def _raw(x: Any) -> Any:
    return x.array if isinstance(x, NamedArrayBase) else x


def _names(x: Any) -> Names:
    return x.axis_names if isinstance(x, NamedArrayBase) else ()


def _without_layout(array: Any) -> jax.ShapeDtypeStruct:
    return struct_of(array.shape, array.dtype)
