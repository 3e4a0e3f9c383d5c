"""The names of the arrays of a module, and how a state dict is made of it.

A name is the path of an array: the fields, keys and indices that lead to it, joined by dots. A stack of layers is seen
as its layers, so that it and a list of the same layers have one state dict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, overload

import equinox as eqx
import jax
import numpy as np
from jax.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

from haliax._src.array_base import NamedArrayBase
from haliax._src.errors import problem
from haliax._src.jax_compat import eager_scope
from haliax._src.jax_helpers import is_jax_array_like
from haliax._src.tensor_parts import scale
from haliax._src.tree import is_layer_stack

Mod = TypeVar("Mod", bound=eqx.Module)
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

StateDict: TypeAlias = dict[str, Any]
"""Raw arrays, and numbers, by name."""


@overload
def with_prefix(prefix: str | None, leaf: str) -> str: ...
@overload
def with_prefix(prefix: str, leaf: None) -> str: ...
@overload
def with_prefix(prefix: str | None, leaf: str | None) -> str | None: ...
def with_prefix(prefix: str | None, leaf: str | None) -> str | None:
    """Two parts of a name, joined by a dot.

    Args:
        prefix: The first part; None if there is none.
        leaf: The second part; None if there is none.

    Returns:
        The name; None if there is neither.

    Source:
        `torch.nn.Module.state_dict`
    """
    if prefix is None or leaf is None:
        return leaf if prefix is None else prefix
    return f"{prefix}.{leaf}"


# methods that a module may have ---------------------------------------------------------------------------------------


def usual(method: F) -> F:
    """Mark a method that does what is done for a module without it, so that nobody needs to call it."""
    method.is_usual = True  # pyright: ignore[reportFunctionMemberAccess]
    return method


def own_method(module: Any, name: str) -> Callable[..., Any] | None:
    """The method by which a module departs from what is usual; None if it does not."""
    method = None if isinstance(module, type) else getattr(type(module), name, None)
    return None if method is None or getattr(method, "is_usual", False) else getattr(module, name)


# the parts of a module ------------------------------------------------------------------------------------------------


def parts_of(node: Any) -> tuple[list[tuple[str | None, Any]], Any] | None:
    """The parts of a module, list, dict or other pytree node, one level down.

    Args:
        node: Any object.

    Returns:
        The parts by name, None standing for a part whose name is left out, and the structure that puts them together
        again; None if `node` is a leaf.
    """
    if node is None or isinstance(node, NamedArrayBase):
        return None
    parts, treedef = jax.tree_util.tree_flatten_with_path(node, is_leaf=lambda x: x is not node)
    if jax.tree_util.treedef_is_leaf(treedef) and parts and not parts[0][0]:
        return None
    renames: Mapping[str, str | None] = node._state_dict_key_map() if hasattr(node, "_state_dict_key_map") else {}
    names = [_part_name(path[0]) for path, _ in parts]
    return [(renames.get(name, name), part) for name, (_, part) in zip(names, parts, strict=True)], treedef


def _part_name(key: Any) -> str:
    match key:
        case GetAttrKey():
            return key.name
        case DictKey() | FlattenedIndexKey():
            return str(key.key)
        case SequenceKey():
            return str(key.idx)
    return str(key)


def scales_of(node: Any) -> Mapping[str | None, float]:
    """What the arrays of some parts of a module are multiplied by in a state dict, by the names of the parts."""
    return node._state_dict_scales() if hasattr(node, "_state_dict_scales") else {}


def is_number(x: Any) -> bool:
    """Whether a leaf is a plain number, which a state dict may have or lack."""
    return isinstance(x, bool | int | float | complex)


def raw_array(leaf: Any) -> Any:
    """The raw array of a leaf, or what stands in its place; None if the leaf holds no array."""
    raw = leaf.array if isinstance(leaf, NamedArrayBase) else leaf
    return raw if is_jax_array_like(raw) and not isinstance(raw, type) else None


# state dicts ----------------------------------------------------------------------------------------------------------


@eager_scope()
def to_state_dict(tree: Any, prefix: str | None = None) -> StateDict:
    """The arrays of a module by name.

    Args:
        tree: A module, or a pytree of modules and arrays.
        prefix: What all names begin with, without the dot.

    Returns:
        Raw arrays, in the shapes that they have in the module, and plain numbers. Layers of a stack are arrays of their
        own. What is static or no data has no entry.

    Raises:
        ValueError: If an array would have no name, or two arrays one name.

    Source:
        `torch.nn.Module.state_dict`
    """
    method = own_method(tree, "to_state_dict")
    return dict(method(prefix)) if method is not None else default_eqx_module_to_state_dict(tree, prefix)


@eager_scope()
def default_eqx_module_to_state_dict(mod: Any, prefix: str | None = None) -> StateDict:
    """`to_state_dict` as it is without a method of that name in the module's class.

    Args:
        mod: A module, or another pytree.
        prefix: What all names begin with, without the dot.

    Returns:
        Raw arrays and numbers by name.
    """
    if is_layer_stack(mod):
        return _merged(to_state_dict(layer, with_prefix(prefix, str(i))) for i, layer in enumerate(layers_of(mod)))
    found = parts_of(mod)
    if found is not None:
        scales = scales_of(mod)
        return _merged(_scaled(to_state_dict(part, with_prefix(prefix, n)), scales.get(n, 1)) for n, part in found[0])
    value = mod if is_number(mod) else raw_array(mod)
    if value is None:
        return {}
    return {named_leaf("to_state_dict", prefix): value}


def _merged(dicts: Iterable[Mapping[str, Any]]) -> StateDict:
    merged: StateDict = {}
    for one in dicts:
        for name in one:
            if name in merged:
                remedy = "Rename one of them by _state_dict_key_map."
                raise ValueError(problem("to_state_dict", f"two arrays have the name {name!r}", remedy=remedy))
        merged.update(one)
    return merged


def _scaled(state_dict: StateDict, factor: float) -> StateDict:
    return {name: value if is_number(value) else scale(value, factor) for name, value in state_dict.items()}


def named_leaf(op: str, name: str | None) -> str:
    """The name of a leaf, or an error if it has none."""
    if name is None:
        given = "an array that is part of nothing has no name"
        raise ValueError(problem(op, given, remedy="Pass prefix=..., which is then its name."))
    return name


def layers_of(stack: Any) -> Iterable[Any]:
    """The layers of a stack; those of numpy arrays are views, for which nothing is compiled."""
    leaves = jax.tree.leaves(stack)
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves):
        return [one_layer(stack)] * stack.Block.size
    if not any(isinstance(leaf, np.ndarray) for leaf in leaves):
        return stack.unstacked()
    leaves, treedef = jax.tree.flatten(one_layer(stack))
    arrays = jax.tree.leaves(stack.stacked)

    def layer(i: int) -> Any:
        parts = (a[i] if raw_array(leaf) is not None else a for leaf, a in zip(leaves, arrays, strict=True))
        return treedef.unflatten(parts)

    return map(layer, range(stack.Block.size))


def one_layer(stack: Any) -> Any:
    """A layer of a stack, with shapes in the place of arrays."""
    return eqx.filter_eval_shape(lambda stack: stack.get_layer(0), stack)


# torch's shapes -------------------------------------------------------------------------------------------------------


@eager_scope()
def flatten_modules_for_export(t: T) -> T:
    """Give every module the shapes that torch has for it, by its method `flatten_for_export`.

    Args:
        t: A module, or a pytree of modules; layers of a stack are flattened each by itself.

    Returns:
        A module of the same structure, in which for example a `Linear` has one input and one output axis.

    Source:
        `torch.nn.Module.state_dict`
    """
    tree: Any = t
    if is_layer_stack(tree):
        return tree.map_layers(flatten_modules_for_export)
    found = parts_of(tree)
    if found is None:
        return t
    parts, treedef = found
    flat = treedef.unflatten([flatten_modules_for_export(part) for _, part in parts])
    method = own_method(flat, "flatten_for_export")
    return flat if method is None else method()


@eager_scope()
def unflatten_modules_from_export(t: T, template: T) -> T:
    """Undo `flatten_modules_for_export`.

    Args:
        t: A flattened module.
        template: A module with the axes that the result is to have; its arrays may be `jax.ShapeDtypeStruct`.

    Returns:
        A module with the arrays of `t` and the axes of `template`.

    Raises:
        ValueError: If the two do not fit.

    Source:
        `torch.nn.Module.load_state_dict`
    """
    tree: Any = t
    shapes: Any = template
    if is_layer_stack(tree):
        layer_shapes = one_layer(shapes)  # not an argument of the mapped function: it has no axis of layers
        return tree.map_layers(lambda layer: unflatten_modules_from_export(layer, layer_shapes))
    found = parts_of(shapes)
    if found is None:
        return t
    # the parts were flattened before the whole, so the whole is taken apart with parts as they are when flattened
    parts, treedef = found
    method = own_method(tree, "unflatten_from_export")
    if method is not None:
        flat = [eqx.filter_eval_shape(flatten_modules_for_export, part) for _, part in parts]
        tree = method(treedef.unflatten(flat))
    mine = parts_of(tree)
    if mine is None or len(mine[0]) != len(parts):
        given = f"{type(tree).__name__} has other parts than the template, {type(shapes).__name__}"
        raise ValueError(problem("unflatten_modules_from_export", given))
    both = zip(mine[0], parts, strict=True)
    return mine[1].unflatten([unflatten_modules_from_export(part, shape) for (_, part), (_, shape) in both])
