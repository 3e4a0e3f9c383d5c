"""Where the arrays of a state dict go: the rules by which a user may say it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from haliax._src.array_base import NamedArrayBase
from haliax._src.best_effort import best_effort_sharding
from haliax._src.errors import bad_value, nearest, problem, wrong_type
from haliax._src.jax_compat import spec_entries
from haliax._src.layouts import layout_for
from haliax._src.resources import MeshLike, check_mapping, require_mesh

Layout: TypeAlias = Sharding
LayoutRule: TypeAlias = str | Mapping[str, Any] | Callable[[str, Any], Any]
"""How a user gives layouts: `"best_effort"`, a mapping, or a function of name and shape."""

KINDS = '"best_effort", a mapping or a function'


def layout_rule(
    op: str, mesh: MeshLike | None, sharding: LayoutRule | None, names: Iterable[str] | None = None
) -> Callable[[str, Any], Layout] | None:
    """The layout of each array, as a function of its name and shape.

    Args:
        op: The operation, for error messages.
        mesh: The mesh; the one in force if None.
        sharding: The rule of the user.
        names: The names of the arrays, if a mapping is from them; else it is from axis names.

    Returns:
        A function of a name and an array without elements; None if there is neither mesh nor rule.

    Raises:
        ValueError: If there is no mesh, or the rule names what is not there.
        TypeError: If the rule is of another kind.
    """
    if mesh is None and sharding is None:
        return None
    if sharding is None or sharding == "best_effort":
        target = _concrete(op, mesh)
        return lambda name, array: best_effort_sharding(array, mesh=target)
    if isinstance(sharding, str):
        raise bad_value(op, f"sharding is {sharding!r}", f"expected {KINDS}")
    if isinstance(sharding, Mapping):
        if names is None:
            return _by_axis(op, _concrete(op, mesh), sharding)
        return _by_name(op, mesh, sharding, set(names))
    if not callable(sharding):
        raise wrong_type(op, "sharding", sharding, KINDS)
    return lambda name, array: _checked(op, name, array, mesh, sharding(name, array))


def _concrete(op: str, mesh: MeshLike | None) -> Mesh:
    mesh = require_mesh(op, mesh)
    if not isinstance(mesh, Mesh):
        raise bad_value(op, "the mesh is an AbstractMesh, which has no devices", "expected a Mesh")
    return mesh


def _by_axis(op: str, mesh: Mesh, mapping: Mapping[str, Any]) -> Callable[[str, Any], Layout]:
    """The layouts that an axis mapping gives."""
    check_mapping(op, mapping, mesh)

    def layout(name: str, array: Any) -> Layout:
        if not isinstance(array, NamedArrayBase):
            return NamedSharding(mesh, PartitionSpec())
        return layout_for(op, name, array.axis_names, array._sizes(), mapping, mesh)

    return layout


def _by_name(
    op: str, mesh: MeshLike | None, mapping: Mapping[str, Any], names: set[str]
) -> Callable[[str, Any], Layout]:
    """The layouts that a mapping from names of arrays gives; others are not split."""
    for name, spec in mapping.items():
        if name not in names:
            remedy = nearest(name, names) or "To lay arrays out by the names of their axes, use from_state_dict."
            raise bad_value(op, f"sharding has an entry for {name!r}", "the file has no tensor of this name", remedy)
        if spec is not None and not isinstance(spec, PartitionSpec | Sharding):
            raise wrong_type(op, f"the sharding of {name!r}", spec, "a PartitionSpec, a sharding, or None")
    return lambda name, array: _checked(op, name, array, mesh, mapping.get(name))


def _checked(op: str, name: str, array: Any, mesh: MeshLike | None, spec: Any) -> Layout:
    """The sharding of one array, once it fits the shape."""
    shape = array.array.shape if isinstance(array, NamedArrayBase) else array.shape
    if spec is None or isinstance(spec, PartitionSpec):
        spec = NamedSharding(_concrete(op, mesh), PartitionSpec() if spec is None else spec)
    if not isinstance(spec, Sharding):
        raise wrong_type(op, f"the sharding of {name!r}", spec, "a PartitionSpec, a sharding, or None")
    try:
        spec.shard_shape(shape)
    except ValueError as error:
        entries = spec_entries(spec.spec) if isinstance(spec, NamedSharding) else spec
        given = f"{name!r} of shape {tuple(shape)} can not be split as {entries}"
        raise ValueError(problem(op, given)) from error
    return spec
