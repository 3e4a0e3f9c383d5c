"""State dicts in the shapes of torch, in which a layer has one input axis and one output axis.

Flattening a module mostly reshapes its arrays, and a reshape moves no element. So what torch has saved is read straight
into the shapes of the module, in its layout.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import equinox as eqx
import jax
from jax.extend.core import Literal

from haliax._src.array_base import NamedArrayBase
from haliax._src.jax_compat import eager_scope
from haliax._src.jax_helpers import is_jax_array_like, is_typed_key, struct_of
from haliax._src.resources import MeshLike
from haliax._src.state_dict_entries import Strict
from haliax._src.state_dict_layouts import LayoutRule, layout_rule
from haliax._src.state_dict_loading import as_loaded, from_state_dict, is_leaf, load, settle, walk_exactly
from haliax._src.state_dict_naming import (
    StateDict,
    flatten_modules_for_export,
    is_number,
    raw_array,
    to_state_dict,
    unflatten_modules_from_export,
)
from haliax._src.tensor_files import PathLike
from haliax._src.tensor_parts import to_host
from haliax.types import FilterSpec

T = TypeVar("T")


@eager_scope()
def to_numpy_state_dict(model: Any, prefix: str | None = None) -> StateDict:
    """`to_state_dict` with numpy arrays, gathered from all devices and processes.

    Args:
        model: A module, or a pytree of modules and arrays.
        prefix: What all names begin with, without the dot.

    Returns:
        Numpy arrays, and numbers, by name; typed keys as the data of the keys.

    Raises:
        ValueError: If an array would have no name, or two arrays one name, or is on some processes alone.

    Source:
        `torch.nn.Module.state_dict`
    """
    op = "to_numpy_state_dict"
    state_dict = to_state_dict(_on_host(op, model), prefix)
    return {name: value if is_number(value) else to_host(op, name, value) for name, value in state_dict.items()}


def _on_host(op: str, tree: Any) -> Any:
    """A module with numpy arrays, of which parts can be taken without a program for each."""

    def on_host(path: Any, leaf: Any) -> Any:
        if raw_array(leaf) is None or is_typed_key(leaf):
            return leaf
        return to_host(op, jax.tree_util.keystr(path, simple=True, separator="."), leaf)

    return jax.tree_util.tree_map_with_path(on_host, tree)


@eager_scope()
def to_torch_compatible_state_dict(
    t: Any, *, flatten: bool = True, prefix: str | None = None, filter: FilterSpec = is_jax_array_like
) -> StateDict:
    """The arrays of a module as numpy arrays, in the names and shapes that torch has for them.

    Args:
        t: A module, or a pytree of modules and arrays.
        flatten: Whether to give arrays the shapes of torch; see `flatten_modules_for_export`.
        prefix: What all names begin with, without the dot.
        filter: Which leaves to take, as for `equinox.filter`; raw arrays are leaves, named ones are not.

    Returns:
        Numpy arrays by name.

    Raises:
        ValueError: If an array would have no name, or two arrays one name, or is on some processes alone.

    Source:
        `torch.nn.Module.state_dict`
    """
    host = _on_host("to_torch_compatible_state_dict", t)
    leaves, treedef = jax.tree.flatten(_flattened(host) if flatten else host)
    # flattening keeps the number of leaves and their order, and needs all of them
    kept = jax.tree.leaves(eqx.filter(t, filter), is_leaf=lambda x: x is None)
    every = jax.tree.leaves(t, is_leaf=lambda x: x is None)
    taken = [keep is not None for keep, leaf in zip(kept, every, strict=True) if leaf is not None]
    selected = [leaf if take else None for leaf, take in zip(leaves, taken, strict=True)]
    return to_numpy_state_dict(treedef.unflatten(selected), prefix)


def _flattened(t: Any) -> Any:
    """`flatten_modules_for_export` of what has numpy arrays; where it only reshapes, nothing is compiled."""
    shapes = _without_arrays(t)
    if not only_reshapes(flatten_modules_for_export, shapes):
        return flatten_modules_for_export(t)
    leaves, treedef = jax.tree.flatten(eqx.filter_eval_shape(flatten_modules_for_export, shapes))
    arrays = jax.tree.leaves(t)
    both = zip(leaves, arrays, strict=True)
    return treedef.unflatten(leaf if raw_array(leaf) is None else array.reshape(leaf.shape) for leaf, array in both)


@eager_scope()
def from_torch_compatible_state_dict(
    t: T,
    state_dict: Mapping[str, Any] | PathLike,
    *,
    unflatten: bool = True,
    prefix: str | None = None,
    mesh: MeshLike | None = None,
    sharding: LayoutRule | None = None,
    strict: Strict | None = None,
) -> T:
    """A module with the arrays of a state dict in the names and shapes of torch.

    Args:
        t: The template; see `from_state_dict`.
        state_dict: Arrays by name, or a file of them; see `from_state_dict`.
        unflatten: Whether arrays have the shapes of torch, rather than those of the template.
        prefix: What all names begin with, without the dot.
        mesh: The mesh to put the arrays on; see `from_state_dict`.
        sharding: The layouts, for the axes of the template; see `from_state_dict`.
        strict: What is an error: True for missing and extra entries, `"missing"` for missing ones, False for neither.
            By default True for a file, and `"missing"` for arrays by name; see `from_state_dict`.

    Returns:
        A module like the template.

    Raises:
        StateDictError: If entries are missing, extra (of those with the prefix), or do not fit.
        TensorFileError: If a file is truncated, corrupt or of another kind.
        ValueError: If a layout does not fit.

    Source:
        `torch.nn.Module.load_state_dict`
    """
    if not unflatten:
        return from_state_dict(t, state_dict, prefix, mesh=mesh, sharding=sharding, strict=strict)
    op = "from_torch_compatible_state_dict"
    rule = layout_rule(op, mesh, sharding)
    shapes = _without_arrays(t)
    flattened = eqx.filter_eval_shape(flatten_modules_for_export, shapes)
    loaded = load(op, walk_exactly, flattened, state_dict, prefix, strict)
    if only_reshapes(flatten_modules_for_export, shapes):
        return settle(_in_shapes_of(t, loaded), rule)
    flat = settle(loaded, None if rule is None else layout_rule(op, mesh, "best_effort"))
    return settle(as_loaded(unflatten_modules_from_export(flat, shapes), prefix), rule)


def _without_arrays(tree: Any) -> Any:
    """The tree with shapes in the place of arrays: no layout, no values."""
    return jax.tree.map(lambda x: struct_of(x.shape, x.dtype) if raw_array(x) is not None else x, tree)


def _in_shapes_of(template: Any, loaded: Any) -> Any:
    """What was loaded for the flattened template, in the shapes of the template."""
    leaves, treedef = jax.tree.flatten(template, is_leaf=is_leaf)
    found = jax.tree.leaves(loaded, is_leaf=is_leaf)

    def reshaped(leaf: Any, flat: Any) -> Any:
        raw = flat.array if isinstance(flat, NamedArrayBase) else flat
        if raw_array(leaf) is None:
            return flat
        if isinstance(raw, jax.ShapeDtypeStruct):  # not in the state dict
            return leaf
        raw = raw.reshape(tuple(raw_array(leaf).shape))
        return leaf.like(raw, leaf.axis_names) if isinstance(leaf, NamedArrayBase) else raw

    return treedef.unflatten(reshaped(leaf, flat) for leaf, flat in zip(leaves, found, strict=True))


def only_reshapes(fn: Any, tree: Any) -> bool:
    """Whether a function from modules to modules does nothing but reshape each array."""
    leaves, treedef = jax.tree.flatten(tree)
    is_data = [raw_array(leaf) is not None for leaf in leaves]
    arrays = [leaf for leaf, data in zip(leaves, is_data, strict=True) if data]

    def on_arrays(arrays: list[Any]) -> list[Any]:
        rest = iter(arrays)
        full = treedef.unflatten(next(rest) if data else leaf for leaf, data in zip(leaves, is_data, strict=True))
        return [leaf for leaf in jax.tree.leaves(fn(full)) if raw_array(leaf) is not None]

    jaxpr: Any = jax.make_jaxpr(on_arrays)(arrays).jaxpr
    return _sources(jaxpr, list(range(len(arrays)))) == list(range(len(arrays)))


_MOVES_NOTHING = {"reshape", "squeeze", "expand_dims", "copy", "copy_p", "sharding_constraint", "reshard"}


def _sources(jaxpr: Any, inputs: list[int | None]) -> list[int | None]:
    """For each output of a program, which input it has the elements of, in their order; None for no single one."""
    source: dict[Any, int | None] = dict(zip(jaxpr.invars, inputs, strict=True))

    def of(var: Any) -> int | None:
        return None if isinstance(var, Literal) else source.get(var)

    for eqn in jaxpr.eqns:
        given = [of(var) for var in eqn.invars]
        results: list[int | None] = [None] * len(eqn.outvars)
        if "jaxpr" in eqn.params and eqn.primitive.name in ("jit", "pjit"):
            results = _sources(eqn.params["jaxpr"].jaxpr, given)
        elif eqn.primitive.name in _MOVES_NOTHING or _adds_ones(eqn):
            results = given[:1]
        source.update(zip(eqn.outvars, results, strict=True))
    return [of(var) for var in jaxpr.outvars]


def _adds_ones(eqn: Any) -> bool:
    """Whether an operation broadcasts an array only to dimensions of size 1."""
    return eqn.primitive.name == "broadcast_in_dim" and eqn.invars[0].aval.size == eqn.outvars[0].aval.size
