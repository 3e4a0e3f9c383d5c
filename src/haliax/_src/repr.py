"""How a named array is shown: its dtype and axes, how it is laid out over a mesh, and its values if they are few.

Showing an array never fails and never waits for a device, whatever a pytree transformation has put in its place.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import NamedSharding

from haliax._src.array_base import NamedArrayBase
from haliax._src.resources import mesh_axes

_MAX_VALUES = 1000  # from here on numpy too leaves elements out


def describe_array(array: Any, names: tuple[str, ...], short: bool = False) -> str:
    """An array's dtype and axes, as `float32[batch=8, embed=4]`.

    Args:
        array: An array, or anything that stands in its place.
        names: The names of its axes.
        short: Whether to shorten dtypes, `f32` for `float32`.

    Returns:
        The description; a shape that does not fit the names, or a foreign type, is shown beside them.
    """
    # a named array may stand in place of an array, as jax.jacobian makes them, and have no shape to tell
    named = isinstance(array, NamedArrayBase)
    dtype, shape = (None, None) if named else (getattr(array, "dtype", None), getattr(array, "shape", None))
    if dtype is None or shape is None:
        return f"{type(array).__name__} as [{', '.join(names)}]"
    label = _short(str(dtype)) if short else str(dtype)
    if len(shape) != len(names):
        return f"{label}{list(shape)} as [{', '.join(names)}]"
    return f"{label}[{', '.join(f'{name}={size}' for name, size in zip(names, shape, strict=True))}]"


def _short(dtype: str) -> str:
    for word, letter in (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        dtype = dtype.replace(word, letter)
    return dtype


def describe_layout(array: Any, names: tuple[str, ...]) -> str:
    """How an array is spread over a mesh, as `batch->data, embed->model`; empty if it is on no mesh of many."""
    if isinstance(array, Tracer):
        return ""
    sharding = getattr(array, "sharding", None)
    if not isinstance(sharding, NamedSharding) or sharding.mesh.size == 1:
        return ""
    split = [(name, mesh_axes(entry)) for name, entry in zip(names, sharding.spec, strict=False)]
    return ", ".join(f"{name}->{'+'.join(axes)}" for name, axes in split if axes) or "replicated"


def show(array: Any, names: tuple[str, ...]) -> str:
    """The `repr` of a named array."""
    shown = f"NamedArray({describe_array(array, names)}"
    if isinstance(array, Tracer):
        return f"{shown}, traced)"
    if layout := describe_layout(array, names):
        return f"{shown}, sharding {layout})"
    values = _values(array)
    if "\n" in values:
        return f"{shown},\n  " + values.replace("\n", "\n  ") + ")"
    return f"{shown}, {values})" if values else f"{shown})"


def _values(array: Any) -> str:
    """The elements, if there are few and they are at hand."""
    if not isinstance(array, jax.Array | np.ndarray) or array.size >= _MAX_VALUES:
        return ""
    if isinstance(array, jax.Array):
        if jnp.issubdtype(array.dtype, jax.dtypes.extended):
            return ""
        if array.is_deleted() or not array.is_fully_addressable or len(array.devices()) > 1:
            return ""
    return np.array2string(np.asarray(array), separator=", ")
