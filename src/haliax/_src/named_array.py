"""`NamedArray`: the data of `NamedArrayBase` and a table of the operations that are methods.

Each entry is the function itself, so `x.sum("batch")` is `haliax.sum(x, "batch")`.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.tree_util import GetAttrKey

from haliax._src import elementwise, rearrange, reductions, reshape
from haliax._src.array_base import NamedArrayBase, wrap


class NamedArray(NamedArrayBase):
    """An array whose axes have names; operations find axes by name and broadcast by name.

    Args:
        array: The array, of any rank.
        axis_names: One name, or Axis whose size must fit, for each axis.

    Raises:
        ValueError: If names repeat, or their number or a given size does not fit the array.
    """

    __slots__ = ()

    # a numpy array on the left of an operator leaves the operation to us
    __array_priority__ = 1000
    __array_ufunc__ = None
    __hash__ = None  # pyright: ignore[reportAssignmentType]  (as arrays: equality is elementwise)

    # elementwise operations and reductions
    __abs__ = elementwise.abs
    __neg__ = elementwise.negative

    # names and shapes
    flatten = reshape.flatten
    flatten_axes = reshape.flatten_axes
    ravel = reshape.ravel
    rearrange = rearrange.rearrange
    rename = reshape.rename
    split = reshape.split
    unbind = reshape.unbind
    unflatten_axis = reshape.unflatten_axis


NamedArrayBase.concrete = NamedArray


def _flatten(x: NamedArray) -> tuple[tuple[Any], tuple[str, ...]]:
    return (x.array,), x.axis_names


def _flatten_with_keys(x: NamedArray) -> tuple[tuple[tuple[GetAttrKey, Any]], tuple[str, ...]]:
    return ((GetAttrKey("array"), x.array),), x.axis_names


def _unflatten(axis_names: tuple[str, ...], children: tuple[Any]) -> NamedArray:
    # no check: a transformation may put anything in place of the array
    return wrap(children[0], axis_names)


jax.tree_util.register_pytree_with_keys(NamedArray, _flatten_with_keys, _unflatten, _flatten)
