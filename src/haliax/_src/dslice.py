"""Slices of a static size whose start may be traced: what `jax.lax.dynamic_slice` needs, for one named axis."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp

from . import errors
from .axis import Axis
from .util import renamed


@dataclasses.dataclass(frozen=True, init=False, slots=True)
class dslice:
    """The `length` consecutive indices from `start` on.

    The start is a leaf of the pytree and may be traced, or have axes of its own (then each of its elements starts a
    slice). The size is static: shapes depend on it.

    Args:
        start: The first index: an int, an integer array or a NamedArray.
        length: The number of indices, or an `Axis` of that size.

    Raises:
        TypeError: `start` is no integer, or `length` no static one.
        ValueError: `length` is negative.
    """

    start: Any
    size: int

    def __init__(self, start: Any, length: int | Axis):
        _check_start(start)
        _set(self, start, length.size if isinstance(length, Axis) else _static_size(length))

    def to_slice(self) -> slice:
        """The Python slice of the same indices."""
        return slice(self.start, self.start + self.size)

    @staticmethod
    def block(idx: Any, size: int | Axis) -> dslice:
        """The block number `idx` of an axis cut into blocks of `size`.

        Args:
            idx: The number of the block: an int, an integer array or a NamedArray.
            size: The size of each block, or an `Axis` of that size.

        Returns:
            The indices from `idx * size` on.

        Raises:
            TypeError: `idx` is no integer, or `size` no static one.
            ValueError: `size` is negative.
        """
        _check_start(idx, "idx")
        size = size.size if isinstance(size, Axis) else _static_size(size, "size")
        return dslice(idx * size, size)


ds = dslice
dblock = renamed(dslice.block, "dblock")


def _set(into: dslice, start: Any, size: int) -> None:
    """Fill in the fields, which are frozen."""
    object.__setattr__(into, "start", start)
    object.__setattr__(into, "size", size)


def _check_start(start: Any, argument: str = "start") -> None:
    dtype = getattr(start, "dtype", None)
    if dtype is None:
        try:
            operator.index(start)
        except TypeError:
            raise errors.wrong_type("dslice", argument, start, "an integer or an array of integers") from None
    elif not jnp.issubdtype(dtype, jnp.integer):
        raise errors.wrong_dtype("dslice", argument, dtype, "integers")


def _static_size(length: Any, argument: str = "length") -> int:
    try:
        size = operator.index(length)
    except TypeError:
        remedy = "The size of a slice is a part of the shape: it can not be traced."
        raise errors.wrong_type("dslice", argument, length, "an int or an Axis", remedy) from None
    if size < 0:
        raise errors.bad_value("dslice", f"{argument} is {size}", "expected at least 0")
    return size


def _flatten(s: dslice) -> tuple[tuple[tuple[Any, Any]], int]:
    return ((jax.tree_util.GetAttrKey("start"), s.start),), s.size


def _unflatten(size: int, children: Iterable[Any]) -> dslice:
    """Rebuild without checks: a leaf may be anything while a tree is transformed."""
    into = object.__new__(dslice)
    (start,) = children
    _set(into, start, size)
    return into


jax.tree_util.register_pytree_with_keys(dslice, _flatten, _unflatten)
