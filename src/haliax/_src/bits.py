"""Bits along an axis, packed into bytes and back."""

from __future__ import annotations

import math
from typing import Literal

import jax.numpy as jnp

from haliax._src.array_base import A, require_named
from haliax._src.axis import AxisSelector
from haliax._src.errors import check_choice, wrong_dtype
from haliax._src.explicit_axes import laid_out_by_name


@laid_out_by_name("packbits")
def packbits(a: A, axis: AxisSelector, *, bitorder: Literal["big", "little"] = "big") -> A:
    """Pack eight bits along an axis into a byte.

    Args:
        a: A named array of booleans or integers, with any axes.
        axis: The axis of the bits; zeros are added at its end up to a multiple of eight.
        bitorder: Whether the first bit is the highest (`"big"`) or the lowest of its byte.

    Returns:
        An array of uint8 with the same axes, of which `axis` has an eighth of its size, rounded up.

    Raises:
        ValueError: If the axis is missing or has another size.

    Source:
        `jax.numpy.packbits`
    """
    dim = require_named("packbits", a).require_axis("packbits", axis)
    check_choice("packbits", "bitorder", bitorder, ("big", "little"))
    if not jnp.issubdtype(a.array.dtype, jnp.integer) and a.array.dtype != bool:
        raise wrong_dtype("packbits", "the array", a.array.dtype, "booleans or integers")
    sizes = list(a._sizes())
    if 0 in sizes:  # jax.numpy divides by zero
        sizes[dim] = math.ceil(sizes[dim] / 8)
        return a.like(jnp.zeros(sizes, jnp.uint8), a.axis_names)
    return a.like(jnp.packbits(a.array, dim, bitorder), a.axis_names)


@laid_out_by_name("unpackbits")
def unpackbits(a: A, axis: AxisSelector, *, count: int | None = None, bitorder: Literal["big", "little"] = "big") -> A:
    """Unpack bytes along an axis into eight bits each.

    Args:
        a: A named array of uint8, with any axes.
        axis: The axis of the bytes.
        count: How many bits to keep; all if None, all but so many if negative.
        bitorder: Whether the first bit is the highest (`"big"`) or the lowest of its byte.

    Returns:
        An array of uint8 with the same axes, of which `axis` has eight times its size, or `count`.

    Raises:
        ValueError: If the axis is missing or has another size.

    Source:
        `jax.numpy.unpackbits`
    """
    dim = require_named("unpackbits", a).require_axis("unpackbits", axis)
    check_choice("unpackbits", "bitorder", bitorder, ("big", "little"))
    if a.array.dtype != jnp.uint8:
        raise wrong_dtype("unpackbits", "the array", a.array.dtype, "uint8")
    sizes = list(a._sizes())
    if 0 in sizes:
        all_bits = 8 * sizes[dim]
        sizes[dim] = all_bits if count is None else count if count >= 0 else max(all_bits + count, 0)
        return a.like(jnp.zeros(sizes, jnp.uint8), a.axis_names)
    return a.like(jnp.unpackbits(a.array, dim, count, bitorder), a.axis_names)
