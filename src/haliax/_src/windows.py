"""Windows: blocks of a raw array of a static size, whose place may be traced.

`jax.lax.dynamic_slice` moves a window that does not fit until it does. Here a window stays where it was asked for: what
lies outside the array reads as zero and is not written, so that no other elements than those named are touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from haliax._src.dslice import dslice

Windows = Mapping[int, dslice]
"""The window along each dimension that has one; its start is an int or an array of rank 0."""


def of_one_dtype(starts: Sequence[Any]) -> list[Any]:
    """Starts as `jax.lax` takes them: all of one dtype, the widest among them."""
    dtypes = [start.dtype for start in starts if hasattr(start, "dtype")]
    if not dtypes:
        return list(starts)
    dtype = np.result_type(*dtypes)
    # JAX would take an int to be of 32 bits
    return [dtype.type(s) if isinstance(s, int) else jax.lax.convert_element_type(s, dtype) for s in starts]


class Inside(dslice):
    """A window that is known to lie inside the array, though its start may be traced."""

    __slots__ = ()


# starts are brought into bounds in `_place`, once
def _slice(array: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
    return jax.lax.dynamic_slice(array, of_one_dtype(starts), sizes, allow_negative_indices=False)


def _update(array: Any, update: Any, starts: Sequence[Any]) -> Any:
    return jax.lax.dynamic_update_slice(array, update, of_one_dtype(starts), allow_negative_indices=False)


class _Place(NamedTuple):
    """Where a window lies along one dimension, and where in it lies what was asked for."""

    start: Any
    width: int
    offset: Any
    margin: int


def read_windows(array: Any, windows: Windows) -> Any:
    """The elements inside windows, zero outside the array.

    Args:
        array: An array of any rank.
        windows: The window along each dimension that has one. A negative start counts from the end.

    Returns:
        An array in which the dimensions with windows have their sizes.

    Source:
        `jax.lax.slice`, `jax.lax.dynamic_slice`
    """
    places = _places(array, windows)
    if all(isinstance(p.start, int) and not p.margin for p in places):
        return jax.lax.slice(array, [p.start for p in places], [p.start + p.width for p in places])
    inside = _slice(array, [p.start for p in places], [p.width for p in places])
    if not any(p.margin for p in places):
        return inside
    return _slice(_with_margins(inside, places), [p.offset for p in places], _sizes(array, windows))


def write_windows(array: Any, windows: Windows, update: Any) -> Any:
    """The array with the elements inside windows replaced.

    Args:
        array: An array of any rank.
        windows: The window along each dimension that has one. A negative start counts from the end.
        update: The new elements, of the shape that `read_windows` returns; those outside the array are dropped.

    Returns:
        An array of the same shape.

    Source:
        `jax.lax.dynamic_update_slice`
    """
    places = _places(array, windows)
    starts = [p.start for p in places]
    if any(p.margin for p in places):
        inside = _slice(array, starts, [p.width for p in places])
        inside = _update(_with_margins(inside, places), update, [p.offset for p in places])
        update = jax.lax.slice(inside, [p.margin for p in places], [p.margin + p.width for p in places])
    return _update(array, update, starts)


def _with_margins(inside: Any, places: list[_Place]) -> Any:
    zero = jnp.zeros((), inside.dtype)
    return jax.lax.pad(inside, zero, [(p.margin, p.margin, 0) for p in places])


def _sizes(array: Any, windows: Windows) -> list[int]:
    return [windows[dim].size if dim in windows else size for dim, size in enumerate(array.shape)]


def _places(array: Any, windows: Windows) -> list[_Place]:
    return [_place(windows.get(dim), size) for dim, size in enumerate(array.shape)]


def _place(window: dslice | None, size: int) -> _Place:
    """The part of a window that lies inside, as far as is known, and the margin that the rest may need."""
    if window is None:
        return _Place(0, size, 0, 0)
    if isinstance(window, Inside):
        return _Place(window.start, window.size, 0, 0)
    start, width = window.start, min(window.size, size)
    if isinstance(start, int):
        start += size if start < 0 else 0
        if 0 <= start <= size - window.size:
            return _Place(start, width, 0, 0)
        start = jnp.int32(start)
    else:
        start = jnp.astype(start, jnp.result_type(start, jnp.int32))
        start = jnp.where(start < 0, start + size, start)
    inside = jnp.clip(start, 0, size - width)
    return _Place(inside, width, jnp.maximum(start - inside + window.size, 0), window.size)
