"""What contracts two raw arrays inside a layer: `jax.lax.dot_general`, or an operation that quantizes.

The protocol stands by itself, so that layers need to know nothing of quantization.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import equinox as eqx
import jax

from haliax.types import DTypeLike, PrecisionLike

DimensionNumbers = Any
"""The contracted and the batch dimensions of both operands, as `jax.lax.dot_general` takes them."""


class DotGeneralOp(Protocol):
    """A stand-in for `jax.lax.dot_general`; as a part of a layer it may hold arrays, such as scales."""

    def __call__(
        self,
        lhs: jax.Array,
        rhs: jax.Array,
        dimension_numbers: DimensionNumbers,
        precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None,
        **kwargs: Any,
    ) -> jax.Array:
        """Contract two raw arrays; see `jax.lax.dot_general`."""
        ...

    @staticmethod
    def default() -> DotGeneralOp:
        """The operation that does not quantize."""
        return DefaultDotGeneralOp()


class DefaultDotGeneralOp(eqx.Module):
    """`jax.lax.dot_general` itself, as a part of a layer."""

    def __call__(
        self,
        lhs: jax.Array,
        rhs: jax.Array,
        dimension_numbers: DimensionNumbers,
        precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None,
        **kwargs: Any,
    ) -> jax.Array:
        """Contract two raw arrays; see `jax.lax.dot_general`."""
        return jax.lax.dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type, **kwargs)

    @staticmethod
    def init() -> DefaultDotGeneralOp:
        """The operation; it has no state."""
        return DefaultDotGeneralOp()

    default = init


def contraction(op: DotGeneralOp) -> Callable[..., jax.Array]:
    """What `haliax.dot` is given for an operation: `jax.lax.dot_general` itself, which it compiles, if that is all."""
    return jax.lax.dot_general if type(op) is DefaultDotGeneralOp else op
