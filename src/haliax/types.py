"""Type aliases used throughout haliax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, Union

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import Precision
from jaxtyping import PyTree as PyTree

DType: TypeAlias = np.dtype
"""A dtype itself."""

DTypeLike: TypeAlias = str | type[Any] | np.dtype | jnp.dtype
"""Anything that `jax.numpy.dtype` accepts."""

Scalar: TypeAlias = Union[float, int, bool, complex, jax.Array, np.generic]  # noqa: UP007 (jax.Array is no plain class)
"""A Python or numpy scalar, or an array with no axes."""

IntScalar: TypeAlias = Union[int, jax.Array, np.integer]  # noqa: UP007 (as above)
"""A Python or numpy integer, or an array with no axes."""

PrecisionLike: TypeAlias = str | Precision | tuple[str, str] | tuple[Precision, Precision] | None
"""What `precision=` of `jax.lax.dot_general` accepts."""

FilterSpec: TypeAlias = bool | Callable[[Any], bool]
"""A bool, or a predicate on leaves, that tells which leaves of a pytree are selected."""

FilterTree: TypeAlias = FilterSpec | PyTree[FilterSpec]
"""A `FilterSpec` for each leaf of a pytree, or for all leaves of a part of it."""

GatherScatterModeStr: TypeAlias = Literal["promise_in_bounds", "clip", "drop", "fill"]
"""What reading and writing do with an index out of bounds."""
