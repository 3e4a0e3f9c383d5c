"""Type aliases used throughout haliax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, Union

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import Precision

DTypeLike: TypeAlias = str | type[Any] | np.dtype | jnp.dtype
"""Anything that `jax.numpy.dtype` accepts."""

Scalar: TypeAlias = Union[float, int, bool, complex, jax.Array, np.generic]  # noqa: UP007 (jax.Array is no plain class)
"""A Python or numpy scalar, or an array with no axes."""

PrecisionLike: TypeAlias = str | Precision | tuple[str, str] | tuple[Precision, Precision] | None
"""What `precision=` of `jax.lax.dot_general` accepts."""

FilterSpec: TypeAlias = bool | Callable[[Any], bool]
"""A bool, or a predicate on leaves, that tells which leaves of a pytree are selected."""
