"""From a state dict to a module: every entry in its place, or one error that lists all that do not fit.

The module that is given is a template. The walk puts a `Loaded` in the place of each array, which may not have been
read yet; only when all of them fit are they read, each into its layout. So a stack of layers is read into one array.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax.core import Tracer

from haliax._src.array_base import NamedArrayBase
from haliax._src.errors import bad_value, format_shape, kind, wrong_type
from haliax._src.jax_compat import eager_scope
from haliax._src.jax_helpers import is_typed_key, struct_of
from haliax._src.resources import MeshLike
from haliax._src.safetensors_io import StoredTensor
from haliax._src.state_dict_entries import (
    Entries,
    LayersAtOnce,
    Loaded,
    Loading,
    Strict,
    check,
    is_loading,
    loading_now,
    loading_scope,
    unread,
)
from haliax._src.state_dict_layouts import Layout, LayoutRule, layout_rule
from haliax._src.state_dict_naming import (
    is_number,
    named_leaf,
    one_layer,
    own_method,
    parts_of,
    raw_array,
    scales_of,
    with_prefix,
)
from haliax._src.tensor_files import PathLike, open_tensors
from haliax._src.tensor_parts import as_tensor, scale, stack
from haliax._src.tree import is_layer_stack

T = TypeVar("T")
Walk = Callable[[Any, Mapping[str, Any], str | None], Any]


# what users call ------------------------------------------------------------------------------------------------------


@eager_scope()
def from_state_dict(
    tree: T,
    state_dict: Mapping[str, Any] | PathLike,
    prefix: str | None = None,
    *,
    mesh: MeshLike | None = None,
    sharding: LayoutRule | None = None,
    strict: Strict | None = None,
) -> T:
    """A module with the arrays of a state dict.

    Args:
        tree: A module, or a pytree of modules and arrays: the template. Its arrays may be `jax.ShapeDtypeStruct`, as
            `equinox.filter_eval_shape` gives them. What is static or no data is taken from it.
        state_dict: Arrays by name, in the shapes of the template; or a file of them, of which each process then reads
            what its devices hold. See `load_state_dict` for what may be a file.
        prefix: What all names begin with, without the dot.
        mesh: The mesh to put the arrays on; the one in force if None, where `sharding` needs one.
        sharding: The layouts. `"best_effort"`, the default if there is a mesh, for `best_effort_sharding`; an axis
            mapping, under which arrays without names are not split; or a function of the name of an array, in which `*`
            stands for the layers of a stack, and of its shape, as a `jax.ShapeDtypeStruct` or a NamedArray of one. The
            function returns a sharding, a PartitionSpec, or None for no split. Without mesh and sharding, arrays stay
            where they are, and others go to the default device.
        strict: What is an error: True for missing and extra entries, `"missing"` for missing ones, False for neither;
            what is missing is then taken from the template. By default True for a file, and `"missing"` for arrays by
            name, which may be those of something bigger.

    Returns:
        A module like the template, with arrays in the dtypes of the state dict.

    Raises:
        StateDictError: If entries are missing, extra (of those with the prefix), or do not fit. It lists them all.
        TensorFileError: If a file is truncated, corrupt or of another kind.
        ValueError: If a layout does not fit. Nothing has been read then.

    Source:
        `torch.nn.Module.load_state_dict`
    """
    rule = layout_rule("from_state_dict", mesh, sharding)
    return settle(load("from_state_dict", walk, tree, state_dict, prefix, strict), rule)


@eager_scope()
def default_eqx_module_from_state_dict(mod: T, state_dict: Mapping[str, Any], prefix: str | None = None) -> T:
    """`from_state_dict` as it is without a method of that name in the module's class.

    Args:
        mod: The template.
        state_dict: Arrays by name.
        prefix: What all names begin with, without the dot.

    Returns:
        A module like the template.

    Raises:
        StateDictError: See `from_state_dict`.
    """
    return settle(load("from_state_dict", _load_parts, mod, state_dict, prefix, strict=None), None)


def load(
    op: str,
    walker: Walk,
    template: Any,
    state_dict: Mapping[str, Any] | PathLike,
    prefix: str | None,
    strict: Strict | None,
) -> Any:
    """Walk over a template, and check at the end that all is well; a walk within another is checked with that one.

    Args:
        op: The operation, for error messages.
        walker: What walks.
        template: The template.
        state_dict: Arrays by name, or a file.
        prefix: What all names begin with.
        strict: What is an error; see `from_state_dict`.

    Returns:
        The template with `Loaded` in the place of its arrays.
    """
    if not isinstance(strict, bool | None) and not (isinstance(strict, str) and strict == "missing"):
        raise bad_value(op, f"strict is {strict!r}", 'expected True, False or "missing"')
    if not isinstance(state_dict, Mapping | str | os.PathLike):
        raise wrong_type(op, "state_dict", state_dict, "a mapping from names to arrays, or the path of a file")
    entries: Mapping[str, Any] = state_dict if isinstance(state_dict, Mapping) else open_tensors(state_dict)
    if is_loading():
        return walker(template, entries, prefix)
    loading = Loading(set(), {}, [], [])
    with loading_scope(loading):
        loaded = walker(template, Entries(entries, loading), prefix)
    if strict is None:
        strict = "missing" if isinstance(state_dict, Mapping) else True
    check(op, type(template).__name__, loading, entries, prefix, strict)
    return loaded


# the walk -------------------------------------------------------------------------------------------------------------


def walk(tree: Any, entries: Mapping[str, Any], prefix: str | None) -> Any:
    """The template with `Loaded` in the place of its arrays."""
    method = own_method(tree, "from_state_dict")
    if method is None:
        return _load_parts(tree, entries, prefix)
    found = loading_now()
    before = found.problems
    try:
        return as_loaded(method(entries, prefix), prefix)
    except Exception:
        if found.problems == before:
            raise
        return tree  # it can not do without what is missing: the error that lists all is to come


def walk_exactly(tree: Any, entries: Mapping[str, Any], prefix: str | None) -> Any:
    """`walk`, where methods of modules must come to the shapes of the template, too."""
    loaded = walk(tree, entries, prefix)
    loading_now().unfit.extend(misfits(tree, loaded))
    return loaded


def _load_parts(tree: Any, entries: Mapping[str, Any], prefix: str | None) -> Any:
    if is_layer_stack(tree):
        return _load_stack(tree, entries, prefix)
    found = parts_of(tree)
    if found is None:
        return _load_leaf(tree, entries, prefix)
    (parts, treedef), scales = found, scales_of(tree)
    loaded = [walk(part, entries, with_prefix(prefix, name)) for name, part in parts]
    return treedef.unflatten(
        _scaled(part, 1 / scales.get(name, 1)) for (name, _), part in zip(parts, loaded, strict=True)
    )


def _scaled(tree: Any, factor: float) -> Any:
    """What was loaded, times a number."""

    def scaled(leaf: Any) -> Any:
        return dataclasses.replace(leaf, tensor=scale(leaf.tensor, factor)) if isinstance(leaf, Loaded) else leaf

    return tree if factor == 1 else jax.tree.map(scaled, tree)


def as_loaded(tree: Any, prefix: str | None) -> Any:
    """A module of arrays with `Loaded` in their place, so that they get their layouts as others do."""
    if is_layer_stack(tree):
        return dataclasses.replace(tree, stacked=as_loaded(tree.stacked, with_prefix(prefix, "*")))
    found = parts_of(tree)
    if found is not None:
        parts, treedef = found
        return treedef.unflatten([as_loaded(part, with_prefix(prefix, name)) for name, part in parts])
    raw = raw_array(tree)
    if not isinstance(raw, jax.Array | np.ndarray):
        return tree
    loaded = Loaded(prefix or "", as_tensor(raw))
    return tree.like(loaded, tree.axis_names) if isinstance(tree, NamedArrayBase) else loaded


def _load_leaf(leaf: Any, entries: Mapping[str, Any], prefix: str | None) -> Any:
    raw = raw_array(leaf)
    if raw is None and not is_number(leaf):
        return leaf
    name = named_leaf("from_state_dict", prefix)
    if name not in entries:
        if raw is not None:
            loading_now().missing[name] = f" {_format_shape(leaf)}"
        return leaf
    if raw is None and isinstance(entries, LayersAtOnce):
        value = entries.of_first_layer(name)  # the layers share their numbers
    else:
        value = unread(entries, name)
    unfit = _why_no_array(value, leaf)
    if unfit:
        loading_now().unfit.append(f"{name!r} {unfit}; expected {_format_shape(leaf)}")
        return leaf
    tensor = as_tensor(value.array if isinstance(value, NamedArrayBase) else value)
    if raw is None:
        return _load_number(leaf, name, tensor)
    is_data_of_keys = is_typed_key(raw) and not is_typed_key(tensor)
    expected = jax.eval_shape(jax.random.key_data, raw) if is_data_of_keys else raw
    if tuple(tensor.shape) != tuple(expected.shape):
        loading_now().unfit.append(f"{name!r} has shape {tuple(tensor.shape)}; expected {_format_shape(leaf)}")
        return leaf
    if isinstance(tensor, StoredTensor) and _family(tensor.dtype) != _family(expected.dtype):
        file = f" in {tensor.path}"
        loading_now().unfit.append(f"{name!r} has dtype {tensor.dtype}{file}; expected one like {expected.dtype}")
        return leaf
    loaded = Loaded(name, tensor, _kind_of_keys(raw) if is_data_of_keys else None)
    return leaf.like(loaded, leaf.axis_names) if isinstance(leaf, NamedArrayBase) else loaded


def _why_no_array(value: Any, leaf: Any) -> str:
    """What is wrong with a value that is no raw array, in words; nothing if it can be one."""
    if isinstance(value, NamedArrayBase):
        if isinstance(leaf, NamedArrayBase) and value.axis_names == leaf.axis_names:
            return ""
        return f"has axes ({format_shape(value.shape)})"
    dtype = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    return f"is {kind(value)}" if getattr(dtype, "kind", "") in ("O", "U", "S") else ""


def _load_number(leaf: Any, name: str, tensor: Any) -> Any:
    if tuple(tensor.shape) != ():
        loading_now().unfit.append(f"{name!r} has shape {tuple(tensor.shape)}; expected a number")
        return leaf
    if isinstance(tensor, Tracer):
        return tensor
    return type(leaf)((tensor if isinstance(tensor, jax.Array) else tensor.read(())).item())


def _kind_of_keys(keys: Any) -> Any:
    """The implementation of typed keys, of which there may be only the shape."""
    found = []
    jax.eval_shape(lambda keys: found.append(jax.random.key_impl(keys)), keys)
    return found[0]


def _family(dtype: Any) -> str:
    """What a dtype is for; numbers of any width are of one kind."""
    for family in (np.floating, np.integer, np.complexfloating):
        if jax.numpy.issubdtype(dtype, family):
            return family.__name__
    return str(dtype)


def _format_shape(leaf: Any) -> str:
    """The shape of an array of the template, with names if it has them; `a number` for one."""
    if is_number(leaf):
        return "a number"
    if isinstance(leaf, NamedArrayBase):
        return f"({format_shape(leaf.shape)})" if leaf.axis_names else "()"
    return str(tuple(leaf.shape))


# stacks of layers -----------------------------------------------------------------------------------------------------


def _load_stack(tree: Any, entries: Mapping[str, Any], prefix: str | None) -> Any:
    """A stack, whose layers have entries of their own."""
    if tree.Block.size == 0:
        return tree
    layer, before = one_layer(tree), loading_now().copy()
    try:
        layers = [walk(layer, entries, with_prefix(prefix, str(i))) for i in range(tree.Block.size)]
        if any(misfits(layer, loaded) for loaded in layers):
            return _load_at_once(tree, entries, prefix, before)
    except Exception as error:
        return _load_at_once(tree, entries, prefix, before, error)

    def restack(leaf: Any, *parts: Any) -> Any:
        return _stack_leaf(leaf, parts, prefix)

    return dataclasses.replace(tree, stacked=jax.tree.map(restack, tree.stacked, *layers, is_leaf=is_leaf))


def _load_at_once(
    tree: Any, entries: Mapping[str, Any], prefix: str | None, before: Loading, error: Exception | None = None
) -> Any:
    """A stack whose layers have a method that wants the arrays of all of them, as it got them in the old haliax."""
    found = loading_now()
    in_layers = found.copy()
    found.go_back(before)
    at_once = LayersAtOnce(entries, found, "" if prefix is None else f"{prefix}.", tree.Block.size)
    try:
        stacked = walk(tree.stacked, at_once, with_prefix(prefix, "*"))
    except Exception as again:
        raise error or again from None
    if in_layers.problems > before.problems:
        found.go_back(in_layers)  # which has their names
    return dataclasses.replace(tree, stacked=stacked)


def misfits(template: Any, loaded: Any) -> list[str]:
    """What methods of modules have loaded in other places or shapes than the template has, a sentence for each."""
    wanted, found = (jax.tree.leaves(tree, is_leaf=is_leaf) for tree in (template, loaded))
    if len(wanted) != len(found):
        return [f"methods of modules have loaded {len(found)} arrays and numbers; expected {len(wanted)}"]
    sentences = []
    for want, have in zip(wanted, found, strict=True):
        raw = have.array if isinstance(have, NamedArrayBase) else have
        shape = tuple(getattr(raw, "shape", ()))  # a number has none
        if raw_array(want) is not None and shape != tuple(raw_array(want).shape):
            name = f"{raw.name!r}" if isinstance(raw, Loaded) else "an array"
            sentences.append(f"{name} is loaded in shape {shape}; expected {_format_shape(want)}")
    return sentences


def is_leaf(x: Any) -> bool:
    """Whether `x` is an array of a module that is being loaded."""
    return isinstance(x, NamedArrayBase | Loaded)


def _stack_leaf(leaf: Any, parts: tuple[Any, ...], prefix: str | None) -> Any:
    """What the layers have in one place, stacked."""
    raws = [part.array if isinstance(part, NamedArrayBase) else part for part in parts]
    name, found = _name_in_layers(raws, prefix), loading_now()
    if raw_array(leaf) is None:
        if any(raw != raws[0] for raw in raws):
            found.unfit.append(f"{name!r} is not the same in all layers; expected one value")
        return raws[0]
    missing = sum(isinstance(raw, jax.ShapeDtypeStruct) for raw in raws)
    if missing:
        if missing < len(raws):
            given = f"{name!r} lacks arrays in {missing} of {len(raws)} layers"
            found.partly.append(f"{given}; expected them in all or none")
        return leaf
    tensors = [as_tensor(raw.tensor if isinstance(raw, Loaded) else raw) for raw in raws]
    if len({str(tensor.dtype) for tensor in tensors}) > 1:
        found.unfit.append(f"{name!r} has not the same dtype in all layers; expected one dtype")
        return leaf
    loaded = Loaded(name, stack(tensors), getattr(raws[0], "key", None))
    return leaf.like(loaded, leaf.axis_names) if isinstance(leaf, NamedArrayBase) else loaded


def _name_in_layers(raws: Sequence[Any], prefix: str | None) -> str:
    """The name that something has in all layers, with `*` for the number of the layer."""
    every = with_prefix(prefix, "*")
    for i, raw in enumerate(raws):
        if isinstance(raw, Loaded):
            return every + raw.name.removeprefix(with_prefix(prefix, str(i)))
    return every


# after the walk -------------------------------------------------------------------------------------------------------


def settle(loaded: Any, rule: Callable[[str, Any], Layout] | None) -> Any:
    """Put what was loaded on devices: all layouts are found first, then array after array is read.

    Args:
        loaded: A module with `Loaded` in the place of arrays.
        rule: The layout of an array by its name and shape; None to leave that to JAX.
    """
    leaves, treedef = jax.tree.flatten(loaded, is_leaf=is_leaf)
    layouts = [None if rule is None else _layout(rule, leaf) for leaf in leaves]
    return treedef.unflatten(_settled(leaf, layout) for leaf, layout in zip(leaves, layouts, strict=True))


def _layout(rule: Callable[[str, Any], Layout], leaf: Any) -> Layout | None:
    raw = leaf.array if isinstance(leaf, NamedArrayBase) else leaf
    if not isinstance(raw, Loaded):
        return None
    struct = struct_of(raw.shape, raw.tensor.dtype)
    return rule(raw.name, leaf.like(struct, leaf.axis_names) if isinstance(leaf, NamedArrayBase) else struct)


def _settled(leaf: Any, layout: Layout | None) -> Any:
    if isinstance(leaf, NamedArrayBase) and isinstance(leaf.array, Loaded):
        return leaf.like(leaf.array.put(layout), leaf.axis_names)
    return leaf.put(layout) if isinstance(leaf, Loaded) else leaf
