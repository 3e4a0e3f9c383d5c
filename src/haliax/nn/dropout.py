"""Dropout: set elements to zero at random, and scale up the others so that the expectation stays."""

from __future__ import annotations

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from haliax._src.array_base import A, require_named
from haliax._src.axis import AxisSelection, iter_axes
from haliax._src.broadcasting import alignment, as_scalar
from haliax._src.errors import bad_value, problem
from haliax._src.jax_helpers import as_key

T = TypeVar("T")


def dropout(
    x: A,
    pdrop: float | jax.Array,
    broadcast_axes: AxisSelection | None = None,
    *,
    inference: bool,
    key: jax.Array | None = None,
) -> A:
    """Set elements to zero with probability `pdrop`, and divide the others by `1 - pdrop`.

    Args:
        x: A named array.
        pdrop: The probability, from 0 to 1; it may be traced.
        broadcast_axes: Axes along which elements share their fate; those that `x` lacks do not matter.
        inference: Whether to leave `x` as it is.
        key: The random key, needed unless `inference` holds or `pdrop` is 0.

    Returns:
        An array with the same axes.

    Raises:
        ValueError: If `pdrop` is not a probability.
        RuntimeError: If there is no key.

    Source:
        Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting" (2014)
    """
    require_named("dropout", x)
    if inference or _is_number(pdrop, 0):
        return x
    if _is_number(pdrop, 1):
        return x.like(jnp.zeros_like(x.array), x.axis_names)
    pdrop = as_scalar("dropout", pdrop, "pdrop")
    if isinstance(pdrop, int | float) and not 0 <= pdrop <= 1:
        raise bad_value("dropout", f"pdrop is {pdrop}", "expected a probability from 0 to 1")
    if key is None:
        raise RuntimeError(problem("dropout", "there is no key", remedy="Pass key=..., or inference=True."))

    key = as_key("dropout", key)
    shared = () if broadcast_axes is None else tuple(name for name, _ in iter_axes("dropout", broadcast_axes))
    own = tuple(name for name in x.axis_names if name not in shared)
    keep = 1 - pdrop
    mask = jax.random.bernoulli(key, keep, tuple(x.shape[name] for name in own))
    mask = alignment(own, x.axis_names)(mask)
    # where pdrop is traced and 1, all is dropped: the other branch must not divide by zero, or gradients are nan
    scaled = x.array / (keep if isinstance(pdrop, int | float) else jnp.where(keep == 0, 1, keep).astype(x.array.dtype))
    return x.like(jnp.where(mask, scaled, 0), x.axis_names)


def _is_number(x: object, number: int) -> bool:
    """Whether `x` is this very Python number, not an array that may equal it."""
    return isinstance(x, int | float) and x == number


class Dropout(eqx.Module):
    """A layer that sets elements to zero at random while a model is trained.

    Args:
        pdrop: The probability with which an element is dropped.
        broadcast_axes: Axes along which elements share their fate.
        inference: Whether to leave arrays as they are; `equinox.nn.inference_mode` sets it.

    Source:
        Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", 2014.
    """

    pdrop: float = eqx.field(default=0.5, static=True)
    broadcast_axes: AxisSelection | None = eqx.field(default=None, static=True)
    inference: bool = False

    def __call__(self, x: A, *, inference: bool | None = None, key: jax.Array | None = None) -> A:
        """Drop elements of an array.

        Args:
            x: A named array.
            inference: Whether to leave `x` as it is; what the layer says if None.
            key: The random key, needed while the layer is active.

        Returns:
            An array with the same axes.

        Raises:
            RuntimeError: If the layer is active and there is no key.
        """
        inference = self.inference if inference is None else inference
        return dropout(x, self.pdrop, self.broadcast_axes, inference=inference, key=key)

    @property
    def is_active(self) -> bool:
        """Whether the layer drops anything."""
        return not self.inference and self.pdrop > 0
