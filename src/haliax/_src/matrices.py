"""Two axes as rows and columns: triangles and the trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from haliax._src.array_base import A, NamedArrayBase, require_named
from haliax._src.axis import AxisSelector
from haliax._src.broadcasting import as_scalar
from haliax._src.errors import check_integer, duplicate_axes
from haliax._src.explicit_axes import laid_out_by_name
from haliax._src.rearrange import permute
from haliax._src.refused import check_dtype
from haliax.types import DTypeLike


@laid_out_by_name("tril")
def tril(array: A, axis1: AxisSelector, axis2: AxisSelector, k: int = 0) -> A:
    """Keep the lower triangle, with zeros elsewhere.

    Args:
        array: A named array with at least two axes.
        axis1: The rows.
        axis2: The columns.
        k: The last diagonal to keep: 0 is the main one, those above it are positive.

    Returns:
        An array with the same axes, of which `axis1` and `axis2` come last.

    Raises:
        ValueError: If an axis is missing, or both are the same.

    Source:
        `jax.numpy.tril`
    """
    return _triangle(jnp.tril, array, axis1, axis2, k)


@laid_out_by_name("triu")
def triu(array: A, axis1: AxisSelector, axis2: AxisSelector, k: int = 0) -> A:
    """Keep the upper triangle, with zeros elsewhere.

    Args:
        array: A named array with at least two axes.
        axis1: The rows.
        axis2: The columns.
        k: The first diagonal to keep: 0 is the main one, those above it are positive.

    Returns:
        An array with the same axes, of which `axis1` and `axis2` come last.

    Raises:
        ValueError: If an axis is missing, or both are the same.

    Source:
        `jax.numpy.triu`
    """
    return _triangle(jnp.triu, array, axis1, axis2, k)


def _triangle(fn: Callable[..., Any], array: A, axis1: AxisSelector, axis2: AxisSelector, k: int) -> A:
    dims = _rows_and_columns(fn.__name__, array, axis1, axis2)
    check_integer(fn.__name__, "k", k)
    rest = [dim for dim in range(len(array.axis_names)) if dim not in dims]
    array = permute(array, (*rest, *dims))
    return array.like(fn(array.array, k=k), array.axis_names)


@laid_out_by_name("trace")
def trace(array: A, axis1: AxisSelector, axis2: AxisSelector, offset: int = 0, dtype: DTypeLike | None = None) -> A:
    """Sum the elements of a diagonal.

    Args:
        array: A named array with at least two axes.
        axis1: The rows.
        axis2: The columns.
        offset: Which diagonal: 0 is the main one, those above it are positive.
        dtype: The dtype in which to compute, and of the result.

    Returns:
        An array without the two axes.

    Raises:
        ValueError: If an axis is missing, or both are the same.

    Source:
        `jax.numpy.trace`
    """
    dims = _rows_and_columns("trace", array, axis1, axis2)
    check_dtype("trace", dtype)
    offset = as_scalar("trace", offset, "offset")
    # jnp traces an offset that is passed, even if it is the default
    options: dict[str, Any] = {} if isinstance(offset, int) and offset == 0 else {"offset": offset}
    total = jnp.trace(array.array, axis1=dims[0], axis2=dims[1], dtype=dtype, **options)
    return array.like(total, tuple(name for i, name in enumerate(array.axis_names) if i not in dims))


def _rows_and_columns(op: str, array: NamedArrayBase, axis1: AxisSelector, axis2: AxisSelector) -> tuple[int, int]:
    """The positions of two axes that must be distinct."""
    require_named(op, array)
    dims = array.require_axis(op, axis1), array.require_axis(op, axis2)
    if dims[0] == dims[1]:
        raise duplicate_axes(op, [array.axis_names[dim] for dim in dims], "Rows and columns must be two axes.")
    return dims
