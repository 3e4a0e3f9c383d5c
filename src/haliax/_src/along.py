"""Functions applied along a named axis: which arguments have it, taking it from them, giving it to the results.

`vmap`, `scan` and stacks of layers share this. A leaf of the arguments is either sliced or shared, by its rule: None
shares it; a number slices a raw array along that dimension, and a named array by name if it has the axis.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.tree_util import keystr

from haliax._src.array_base import NamedArrayBase
from haliax._src.axis import Axis, AxisSelector, axis_name
from haliax._src.errors import bad_value, duplicate_axes, not_an_axis, problem, size_mismatch, wrong_type
from haliax._src.explicit_loops import split_alike, unsplit
from haliax._src.jax_helpers import is_jax_array_like, is_typed_key
from haliax._src.tree import is_named_array, tree_flatten

Rule = int | None
Labels = Sequence[str] | Callable[[tuple[Any, ...]], str]


@dataclasses.dataclass(frozen=True)
class Along:
    """Arguments of which some leaves are sliced along an axis.

    Args:
        axis: The axis.
        leaves: All leaves, named arrays among them.
        treedef: The structure of the arguments.
        dims: For each leaf to slice, by its number, the dimension of the axis.
    """

    axis: Axis
    leaves: Sequence[Any]
    treedef: Any
    dims: dict[int, int]

    def arrays(self) -> dict[int, Any]:
        """The raw arrays to slice, by the number of their leaf."""
        return {i: _data(self.leaves[i]) for i in self.dims}

    def mapped(self, op: str) -> dict[int, Any]:
        """The raw arrays to slice, with the axis split over devices alike in all of them."""
        arrays = self.arrays()
        alike = split_alike(op, self.axis.name, list(arrays.values()), list(self.dims.values()))
        return dict(zip(arrays, alike, strict=True))

    def leading(self) -> dict[int, Any]:
        """The raw arrays to slice, with the axis in front and not split over devices: a loop takes it apart."""
        arrays = {i: unsplit(a, self.dims[i]) for i, a in self.arrays().items()}
        return {i: a if a is None else jnp.moveaxis(a, self.dims[i], 0) for i, a in arrays.items()}

    def one(self, index: int | jax.Array) -> Any:
        """The arguments at one place along the axis."""
        return self.fill(jax.tree.map(lambda a: a[index], self.leading()))

    def fill(self, slices: dict[int, Any]) -> Any:
        """The arguments with slices in the places of the arrays that are sliced."""
        leaves = list(self.leaves)
        for i, array in slices.items():
            leaf = leaves[i]
            if is_named_array(leaf):
                leaves[i] = leaf.like(array, tuple(name for name in leaf.axis_names if name != self.axis.name))
            else:
                leaves[i] = array
        return self.treedef.unflatten(leaves)


def _data(leaf: Any) -> Any:
    return leaf.array if is_named_array(leaf) else leaf


def along(op: str, axis: AxisSelector, labels: Labels, values: Sequence[Any], rules: Sequence[Rule]) -> Along:
    """Find out which leaves of some arguments are sliced along an axis.

    Args:
        op: The operation, for error messages.
        axis: The axis; with a name alone, an argument must have the size.
        labels: What to call each of the arguments in an error message, or a function that gives a path its name.
        values: The arguments, any pytrees.
        rules: One for each leaf of `values`.

    Returns:
        The plan, whose `fill` gives a tuple of arguments.

    Raises:
        ValueError: If sizes differ, or nothing gives a size.
        TypeError: If the axis is none, or there is a single random key where there should be many.
    """
    if not isinstance(axis, str | Axis):
        raise not_an_axis(op, axis)
    name = axis_name(axis)
    leaves, treedef = tree_flatten(tuple(values))
    dims: dict[int, int] = {}
    size = axis.size if isinstance(axis, Axis) else None
    for i, (leaf, rule) in enumerate(zip(leaves, rules, strict=True)):
        where = functools.partial(_path, labels, values, i)  # a path is built for an error only
        dim = _dim(op, name, leaf, rule, where)
        if dim is not None:
            dims[i] = dim
            size = _size(op, name, _data(leaf), dim, size, where)
    if size is None:
        raise bad_value(op, f"no argument has axis {name!r}", "expected one that has it, or an Axis with a size")
    return Along(Axis(name, size), leaves, treedef, dims)


def _dim(op: str, name: str, leaf: Any, rule: Rule, where: Callable[[], str]) -> int | None:
    """The dimension along which to slice a leaf, None to share it."""
    if rule is None:
        return None
    if isinstance(leaf, NamedArrayBase):
        return leaf.axis_names.index(name) if name in leaf.axis_names else None
    if not is_jax_array_like(leaf):
        return None
    if isinstance(rule, bool) or not isinstance(rule, int):
        raise wrong_type(op, f"the rule for {where()}", rule, "the number of a dimension, or None")
    rank = len(leaf.shape)
    if rank == 0:
        if is_typed_key(leaf):
            raise single_key(op, name, where())
        return None
    if not -rank <= rule < rank:
        raise bad_value(op, f"the rule for {where()} is dimension {rule}", f"its shape is {tuple(leaf.shape)}")
    return rule % rank


def single_key(op: str, name: str, where: str) -> TypeError:
    """The error for one typed key where each place along the axis needs its own."""
    return TypeError(
        problem(
            op,
            f"{where} is a single random key",
            f"expected one for each place along axis {name!r}",
            "Split it with jax.random.split.",
        )
    )


def _size(op: str, name: str, array: Any, dim: int, size: int | None, where: Callable[[], str]) -> int | None:
    """The size of the axis, once an array agrees with what is known of it."""
    if array is None:
        return size
    given = array.shape[dim]
    if size is not None and given != size:
        size_there = f"size {given} at dimension {dim}" if dim else f"leading dimension {given}"
        remedy = f"{where()} has {size_there}: its shape is {tuple(array.shape)}."
        raise size_mismatch(op, name, given, size, remedy)
    return given


def _path(labels: Labels, values: Sequence[Any], index: int) -> str:
    """How a user would write the leaf with this number."""
    leaves = jax.tree_util.tree_flatten_with_path(tuple(values), is_leaf=is_named_array)[0]
    path = cast("tuple[Any, ...]", leaves[index][0])
    if callable(labels):
        return labels(path)
    argument: int = path[0].idx
    return labels[argument] + keystr(path[1:])


def with_axis(op: str, name: str, tree: Any) -> Any:
    """Put an axis in front of the names of every named array, whose raw array has it already.

    Args:
        op: The operation, for error messages.
        name: The name of the axis.
        tree: A pytree of results.

    Returns:
        The same arrays with the longer names.

    Raises:
        ValueError: If an array has an axis of this name already.
    """

    def extend(path: Any, leaf: Any) -> Any:
        if not isinstance(leaf, NamedArrayBase):
            return leaf
        names = (name, *leaf.axis_names)
        if name in leaf.axis_names:
            where = f"Result {keystr(path)} has it" if path else "The result has it"
            raise duplicate_axes(op, names, f"{where} before this adds it in front: rename one of them.")
        return leaf.like(leaf.array, names)

    return jax.tree_util.tree_map_with_path(extend, tree, is_leaf=is_named_array)
