"""Putting axes in another order, by name: parse -> plan -> apply.

The plan is a permutation, computed from names and sizes alone and looked up in a bounded cache.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import EllipsisType

import jax

from haliax._src.array_base import A, require_named
from haliax._src.axis import Axis, AxisSelector, PartialAxisSpec
from haliax._src.axis_order import order_axes
from haliax._src.errors import wrong_type


def rearrange(array: A, axes: PartialAxisSpec) -> A:
    """Put the axes of an array in another order.

    Args:
        array: A named array with any axes.
        axes: The axes in the order wanted; `...` stands for those that are not named.

    Returns:
        An array with the same axes in that order.

    Raises:
        ValueError: If an axis is missing, repeated, has another size, or has no place in the order.
        TypeError: If `axes` is no sequence of axes, names and `...`.

    Source:
        `jax.numpy.transpose`
    """
    return axis_spec_rearrange(array, axes)


def axis_spec_rearrange(array: A, axis_spec: PartialAxisSpec) -> A:
    """`rearrange` by a sequence of axes, names and `...`."""
    require_named("rearrange", array)
    if isinstance(axis_spec, str) or not isinstance(axis_spec, Sequence):
        raise wrong_type("rearrange", "the order", axis_spec, "a sequence of axes, names and `...`")
    return permute(array, _permutation(array.axis_names, array._sizes(), tuple(axis_spec)))


def permute(array: A, permutation: Sequence[int]) -> A:
    """The array with its dimensions in another order; itself if that is the order they have."""
    if all(i == dim for i, dim in enumerate(permutation)):
        return array
    names = array.axis_names
    return array.like(jax.lax.transpose(array.array, permutation), tuple(names[dim] for dim in permutation))


@functools.lru_cache(maxsize=4096)
def _permutation(
    names: tuple[str, ...], sizes: tuple[int, ...], order: tuple[AxisSelector | EllipsisType, ...]
) -> tuple[int, ...]:
    """Which dimension goes to each place."""
    ordered = order_axes("rearrange", order, tuple(map(Axis, names, sizes)))
    return tuple(names.index(axis.name) for axis in ordered)
