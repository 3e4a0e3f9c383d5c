"""How an array is shown: its dtype and axes, how and where it is laid out, and its values if they are few.

Showing an array never fails, whatever a pytree transformation has put in its place, and never moves many values.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec, Sharding

from haliax._src.array_base import NamedArrayBase
from haliax._src.jax_compat import spec_entries
from haliax._src.layout_text import describe_spec
from haliax._src.resources import mesh_axes

_MAX_VALUES = 1000  # from here on numpy too leaves elements out


def describe_array(arr: Any) -> str:
    """An array without its values: `NamedArray(float32[batch=8, embed=4], sharding batch->data)`.

    Args:
        arr: A named or raw array, or anything that stands in the place of one; nothing waits for it to be computed.

    Returns:
        Its class, dtype and axes (sizes, where it has no names), and what is special: that it is traced or deleted, how
        it is spread over a mesh, and the kind of memory it is in if that is not the device's own.

    Source:
        `jax.typeof`
    """
    named = isinstance(arr, NamedArrayBase)
    array, names = (arr.array, arr.axis_names) if named else (arr, None)
    if not named and dtype_and_shape(arr) is None:
        return _stand_in(arr)
    kind = "Array" if isinstance(arr, jax.Array) else "scalar" if isinstance(arr, np.generic) else type(arr).__name__
    return f"{kind}({', '.join([describe_axes(array, names), *_circumstances(array, names)])})"


def describe_axes(array: Any, names: Sequence[str] | None, short: bool = False) -> str:
    """An array's dtype and axes, as `float32[batch=8, embed=4]`.

    Args:
        array: An array, or anything that stands in its place.
        names: The names of its axes; None if they have none.
        short: Whether to shorten dtypes, `f32` for `float32`.

    Returns:
        The description; a shape that does not fit the names, or what is no array, is shown beside them.
    """
    found = dtype_and_shape(array)
    if found is None:
        return f"{_stand_in(array, short)} as [{', '.join(names or ())}]"
    dtype, shape = found
    label = _short(str(dtype)) if short else str(dtype)
    if names is None:
        return f"{label}{list(shape)}"
    if len(shape) != len(names):
        return f"{label}{list(shape)} as [{', '.join(names)}]"
    return f"{label}[{', '.join(f'{name}={size}' for name, size in zip(names, shape, strict=True))}]"


def describe_layout(sharding: Sharding | None, names: Sequence[str]) -> str:
    """How an array is spread over devices, as `batch->data, embed->model`; empty if it is on one, or not known."""
    if not isinstance(sharding, NamedSharding):
        devices = 1 if sharding is None else len(sharding.device_set)
        return f"over {devices} devices" if devices > 1 else ""
    if sharding.mesh.size == 1:
        return ""
    entries = zip(names, spec_entries(sharding.spec), strict=False)
    split = [f"{name}->{'+'.join(mesh_axes(axes))}" for name, axes in entries if axes]
    if unreduced := sharding.spec.unreduced:
        split.append(f"to be summed over {'+'.join(sorted(unreduced))}")
    return ", ".join(split) or "replicated"


def dimension_names(array: Any) -> tuple[str, ...]:
    """What to call the dimensions of an array without names."""
    return tuple(f"dim{i}" for i in range(len(array.shape)))


def known_sharding(array: Any) -> Sharding | None:
    """The sharding of an array; of a traced one, what its type tells of it, which is its part on explicit mesh axes."""
    if not isinstance(array, Tracer):
        sharding = getattr(array, "sharding", None)
        return sharding if isinstance(sharding, Sharding) else None
    sharding = getattr(jax.typeof(array), "sharding", None)
    if not isinstance(sharding, NamedSharding) or AxisType.Explicit not in sharding.mesh.axis_types:
        return None
    return sharding if any(spec_entries(sharding.spec)) else None


def special_memory(sharding: Sharding | None) -> str:
    """The kind of memory that an array is in; empty if it is where its devices keep arrays."""
    kind = None if sharding is None else sharding.memory_kind
    if sharding is None or kind in (None, "device"):
        return ""
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh):
        return kind
    return "" if kind == next(iter(sharding.device_set)).default_memory().kind else kind


def show(x: NamedArrayBase) -> str:
    """The `repr` of a named array: `describe_array`, and the values if they are few and at hand."""
    described, values = describe_array(x)[:-1], _values(x.array)
    if "\n" in values:
        return f"{described},\n{textwrap.indent(values, '  ')})"
    return f"{described}, {values})" if values else f"{described})"


def dtype_and_shape(array: Any) -> tuple[Any, tuple[int, ...]] | None:
    """What makes something an array; a NamedArray, in the place of another one's array, has names to be shown too."""
    if isinstance(array, NamedArrayBase | type):
        return None
    dtype, shape = getattr(array, "dtype", None), getattr(array, "shape", None)
    return None if dtype is None or not isinstance(shape, tuple) else (dtype, shape)


def _stand_in(value: Any, short: bool = False) -> str:
    """What stands in the place of an array: itself if that is a word, as in trees of flags and of shardings."""
    if isinstance(value, NamedArrayBase):  # as jax.jacobian makes them
        return f"{type(value).__name__}({describe_axes(value.array, value.axis_names, short)})"
    if isinstance(value, NamedSharding | PartitionSpec):
        return describe_spec(value.spec if isinstance(value, NamedSharding) else value)
    if value is None or type(value) in (bool, float, complex) or (type(value) is int and value.bit_length() <= 64):
        return repr(value)
    return type(value).__name__


def _short(dtype: str) -> str:
    for word, letter in (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        dtype = dtype.replace(word, letter)
    return dtype


def _circumstances(array: Any, names: Sequence[str] | None) -> Iterator[str]:
    """What is special about an array."""
    if isinstance(array, Tracer):
        yield "traced"
    elif isinstance(array, jax.Array) and array.is_deleted():
        yield "deleted"
    sharding = known_sharding(array)
    if layout := describe_layout(sharding, names if names is not None else dimension_names(array)):
        yield f"sharding {layout}"
    if memory := special_memory(sharding):
        yield f"memory {memory}"


def _values(array: Any) -> str:
    """The elements, if there are few and one device has them all."""
    if isinstance(array, Tracer) or not isinstance(array, jax.Array | np.ndarray | np.generic):
        return ""
    if array.size >= _MAX_VALUES:
        return ""
    if isinstance(array, jax.Array):
        if jnp.issubdtype(array.dtype, jax.dtypes.extended) or array.is_deleted() or not array.is_fully_replicated:
            return ""
        if not array.sharding.addressable_devices:  # they belong to other processes
            return ""
        # of several copies the first will do, also where other processes have the rest; device_get is no implicit
        # transfer, which a guard may forbid
        array = jax.device_get(array.addressable_data(0))
    return np.array2string(np.asarray(array), separator=", ")
