"""What differs between two signatures of a `named_jit` function, in the user's terms: arguments, axes, values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from types import NoneType
from typing import Any, NamedTuple

from jax.sharding import AxisType

from haliax._src.array_base import NamedArrayBase
from haliax._src.jit_plan import Plan
from haliax._src.layout_text import describe_mesh, describe_spec
from haliax._src.resources import FrozenMapping, format_mesh, mesh_axes
from haliax._src.signature import merge_leaves, static_key

_LONGEST_VALUE = 60  # characters of a static value that are shown


@dataclasses.dataclass(frozen=True, eq=False)
class Signature:
    """What JAX tells traces and compilations apart by.

    Args:
        plan: What decides the program.
        avals: The abstract value of each traced leaf.
        layouts: The layout of each traced leaf, in words; None where it was not seen.
    """

    plan: Plan
    avals: tuple[Any, ...]
    layouts: tuple[str | None, ...]

    def agrees(self, other: Signature) -> bool:
        """Whether the two are the same as far as both know their layouts."""
        if self.plan is not other.plan or self.avals != other.avals:
            return False
        return all(None in pair or pair[0] == pair[1] for pair in zip(self.layouts, other.layouts, strict=True))


class _Static(NamedTuple):
    """A static leaf."""

    value: Any

    def __str__(self) -> str:
        return f"static {_short(self.value)}"


class _Traced(NamedTuple):
    """An array leaf, with the axis names if it is that of a NamedArray."""

    names: tuple[str, ...] | None
    aval: Any
    layout: str | None

    def __str__(self) -> str:
        return f"{self.aval.dtype}[{', '.join(_sizes(self))}]"


def differences(before: Signature, after: Signature) -> list[str]:
    """What differs between two signatures.

    Args:
        before: The earlier signature.
        after: The later one.

    Returns:
        A sentence for each difference, such as `x: axis batch was 8, now 16`.
    """
    old, new = _leaves(before), _leaves(after)
    found = [*_context_changes(before.plan, after.plan)]
    if old.keys() == new.keys():
        found += _structure_changes(before.plan, after.plan)
    for path in dict.fromkeys([*old, *new]):
        found += _leaf_changes(path, old.get(path), new.get(path))
    return found


def describe_mapping(mapping: FrozenMapping | None) -> str:
    """A mapping as `batch->data, embed->replica+model`."""
    entries = [f"{name}->{'+'.join(mesh_axes(spec))}" for name, spec in (mapping or {}).items() if mesh_axes(spec)]
    return ", ".join(entries) or "none"


# mesh, mappings and structure ---------------------------------------------------------------------------------------


def _context_changes(old: Plan, new: Plan) -> Iterator[str]:
    """Changes of the mesh and of the mappings; those of inputs and results are told if they are not that of all."""
    if old.mesh != new.mesh:
        yield _change("mesh", _mesh_or_none(old), _mesh_or_none(new))
    if old.compute_mapping != new.compute_mapping:
        yield _change("axis mapping", describe_mapping(old.compute_mapping), describe_mapping(new.compute_mapping))
    for kind in ("input", "output"):
        was, now = getattr(old, f"{kind}_mapping"), getattr(new, f"{kind}_mapping")
        follows = was == old.compute_mapping and now == new.compute_mapping
        if was != now and not follows:
            yield _change(f"{kind} mapping", describe_mapping(was), describe_mapping(now))


def _mesh_or_none(plan: Plan) -> str:
    return "none" if plan.mesh is None else describe_mesh(plan.mesh)


def _structure_changes(old: Plan, new: Plan) -> Iterator[str]:
    """What differs in the structure of two calls whose leaves have the same paths."""
    (_, *was), (_, *now) = old.treedef.children(), new.treedef.children()
    if not all(map(_same_node, was, now)):
        yield "arguments: one that was passed by position is now passed by name, or the reverse"
        return
    positions = [i for i, _ in old.statics]
    paths = merge_leaves([path for path, _ in old.paths], list(zip(positions, old.static_paths, strict=True)))
    for kind, leaves in _differing_nodes(old.treedef, new.treedef, 0):
        where = _common_path(paths[leaves]) or "arguments"
        if kind in (NoneType, tuple, list, dict):
            yield f"{where}: a None or an empty container is another one"
        elif not issubclass(kind, NamedArrayBase):  # its axes are told of its array
            yield f"{where}: static fields of {kind.__name__} differ"


def _differing_nodes(old: Any, new: Any, start: int) -> Iterator[tuple[type, slice]]:
    """The uppermost nodes in which two treedefs differ: their type, and which leaves are below them."""
    if not _same_node(old, new):
        kind, _ = old.node_data() or new.node_data()
        yield kind, slice(start, start + old.num_leaves)
        return
    for a, b in zip(old.children(), new.children(), strict=True):
        if a != b:
            yield from _differing_nodes(a, b, start)
        start += a.num_leaves


def _same_node(old: Any, new: Any) -> bool:
    """Whether the uppermost nodes of two treedefs are the same, whatever is below them."""
    return old.node_data() == new.node_data() and len(old.children()) == len(new.children())


def _common_path(paths: Sequence[str]) -> str:
    """The path of the node that has leaves with these paths."""
    first, last = min(paths, default=""), max(paths, default="")
    if first == last:
        return first
    same = next(i for i, (a, b) in enumerate(zip_longest(first, last)) if a != b)
    return first[: max(first.rfind(".", 0, same), first.rfind("[", 0, same), 0)]


# leaves -------------------------------------------------------------------------------------------------------------


def _leaves(signature: Signature) -> dict[str, _Static | _Traced]:
    """The leaves of a call, by path."""
    plan = signature.plan
    statics = {path: _Static(value) for path, (_, value) in zip(plan.static_paths, plan.statics, strict=True)}
    arrays = {
        path: _Traced(names, aval, layout)
        for (path, names), aval, layout in zip(plan.paths, signature.avals, signature.layouts, strict=True)
    }
    return statics | arrays


def _leaf_changes(path: str, old: _Static | _Traced | None, new: _Static | _Traced | None) -> Iterator[str]:
    """What changed of one leaf."""
    if old is None:
        yield f"{path}: is new ({new})"
    elif new is None:
        yield f"{path}: was {old}, now absent"
    elif isinstance(old, _Traced) and isinstance(new, _Traced):
        yield from (f"{path}: {change}" for change in _array_changes(old, new))
    elif type(old) is not type(new):
        yield _change(path, str(old), str(new))
    elif isinstance(old, _Static) and isinstance(new, _Static) and static_key(old.value) != static_key(new.value):
        yield _static_change(path, _short(old.value), _short(new.value), type(new.value).__name__)


def _static_change(path: str, was: str, now: str, kind: str) -> str:
    if was == now:
        return f"{path}: static value is another {kind}, not equal to the earlier one ({now})"
    return _change(f"{path}: static value", was, now)


def _array_changes(old: _Traced, new: _Traced) -> Iterator[str]:
    """What changed of an array: axes, dtype, weak type, memory, layout."""
    if old.names != new.names or len(old.aval.shape) != len(new.aval.shape):
        yield _change("axes", ", ".join(_sizes(old)) or "none", ", ".join(_sizes(new)) or "none")
    elif old.names is None or len(old.names) != len(old.aval.shape):
        if old.aval.shape != new.aval.shape:
            yield _change("shape", str(tuple(old.aval.shape)), str(tuple(new.aval.shape)))
    else:
        for name, was, now in zip(old.names, old.aval.shape, new.aval.shape, strict=True):
            if was != now:
                yield _change(f"axis {name}", str(was), str(now))
    for what, describe in _PROPERTIES.items():
        was, now = describe(old.aval), describe(new.aval)
        if was != now:
            yield _change(what, was, now)
    was, now = old.layout or _layout_of_type(old.aval), new.layout or _layout_of_type(new.aval)
    if was != now and (None not in (old.layout, new.layout) or _layout_of_type(old.aval) != _layout_of_type(new.aval)):
        yield _change("layout", was, now)


def _sizes(array: _Traced) -> list[str]:
    """The axes of an array as `batch=8`, or their sizes alone if they have no names."""
    sizes = [str(size) for size in array.aval.shape]
    if array.names is None or len(array.names) != len(sizes):
        return sizes
    return [f"{name}={size}" for name, size in zip(array.names, sizes, strict=True)]


_PROPERTIES: dict[str, Callable[[Any], str]] = {
    "dtype": lambda aval: str(aval.dtype),
    "type": lambda aval: "weak" if getattr(aval, "weak_type", False) else "strong",
    "memory": lambda aval: getattr(getattr(aval, "memory_space", None), "name", "any").lower(),
}


def _layout_of_type(aval: Any) -> str:
    """What the type of an array tells of its layout: all of it on explicit axes, else whether it is on a mesh."""
    sharding = getattr(aval, "sharding", None)
    if sharding is None or sharding.mesh.empty:
        return "not on a mesh"
    if AxisType.Explicit in sharding.mesh.axis_types:
        return f"{describe_spec(sharding.spec)} on explicit {format_mesh(sharding.mesh)}"
    return f"on a mesh of {format_mesh(sharding.mesh)}"


# words --------------------------------------------------------------------------------------------------------------


def _change(what: str, was: str, now: str) -> str:
    return f"{what} {'were' if what == 'axes' else 'was'} {was}, now {now}"


def _short(value: Any) -> str:
    """The `repr` of a static value, on one line and cut to a length; its type if it has none."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a message about a retrace must not fail because of someone's __repr__
        return type(value).__name__
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
