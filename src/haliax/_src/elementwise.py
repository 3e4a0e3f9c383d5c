"""Elementwise operations: each is the `jax.numpy` function of its name, on named arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from haliax._src.array_base import A, NamedArrayBase
from haliax._src.families import apply_binary, binary, unary

# one array ----------------------------------------------------------------------------------------------------------

abs = unary(jnp.abs)
absolute = unary(jnp.absolute)
angle = unary(jnp.angle)
arccos = unary(jnp.arccos)
arccosh = unary(jnp.arccosh)
arcsin = unary(jnp.arcsin)
arcsinh = unary(jnp.arcsinh)
arctan = unary(jnp.arctan)
arctanh = unary(jnp.arctanh)
around = unary(jnp.around)
bitwise_count = unary(jnp.bitwise_count)
bitwise_invert = unary(jnp.bitwise_invert)
bitwise_not = unary(jnp.bitwise_not)
cbrt = unary(jnp.cbrt)
ceil = unary(jnp.ceil)
conj = unary(jnp.conj)
conjugate = unary(jnp.conjugate)
copy = unary(jnp.copy)
cos = unary(jnp.cos)
cosh = unary(jnp.cosh)
deg2rad = unary(jnp.deg2rad)
degrees = unary(jnp.degrees)
exp = unary(jnp.exp)
exp2 = unary(jnp.exp2)
expm1 = unary(jnp.expm1)
fabs = unary(jnp.fabs)
fix = unary(jnp.trunc, name="fix")  # jax.numpy has dropped `fix`, which is the same function
floor = unary(jnp.floor)
i0 = unary(jnp.i0)
imag = unary(jnp.imag)
invert = unary(jnp.invert)
iscomplex = unary(jnp.iscomplex)
isfinite = unary(jnp.isfinite)
isinf = unary(jnp.isinf)
isnan = unary(jnp.isnan)
isneginf = unary(jnp.isneginf)
isposinf = unary(jnp.isposinf)
isreal = unary(jnp.isreal)
log = unary(jnp.log)
log10 = unary(jnp.log10)
log1p = unary(jnp.log1p)
log2 = unary(jnp.log2)
logical_not = unary(jnp.logical_not)
nan_to_num = unary(jnp.nan_to_num)
negative = unary(jnp.negative)
positive = unary(jnp.positive)
rad2deg = unary(jnp.rad2deg)
radians = unary(jnp.radians)
real = unary(jnp.real)
reciprocal = unary(jnp.reciprocal)
rint = unary(jnp.rint)
rsqrt = unary(jax.lax.rsqrt, doc="Calculate the reciprocal of the square root of each element.")
sign = unary(jnp.sign)
signbit = unary(jnp.signbit)
sin = unary(jnp.sin)
sinc = unary(jnp.sinc)
sinh = unary(jnp.sinh)
sqrt = unary(jnp.sqrt)
square = unary(jnp.square)
tan = unary(jnp.tan)
tanh = unary(jnp.tanh)
trunc = unary(jnp.trunc)


def round(a: A, decimals: int = 0) -> A:
    """Round each element to the given number of decimals.

    Args:
        a: An array with any axes, or a raw array.
        decimals: How many decimals to keep; a negative number rounds to tens, hundreds, ...

    Returns:
        An array with the same axes.

    Source:
        `jax.numpy.round`
    """
    if isinstance(a, NamedArrayBase):
        return a.like(jnp.round(a.array, decimals), a.axis_names)
    return jnp.round(a, decimals)


def ndim(a: Any) -> int:
    """The number of axes.

    Args:
        a: An array with any axes, or a raw array.

    Returns:
        A plain int.

    Source:
        `jax.numpy.ndim`
    """
    return jnp.ndim(a.array if isinstance(a, NamedArrayBase) else a)


def frexp(a: A) -> tuple[A, A]:
    """Split each element into mantissa and exponent of two.

    Args:
        a: An array with any axes, or a raw array.

    Returns:
        The mantissas and the exponents, each with the same axes.

    Source:
        `jax.numpy.frexp`
    """
    return _pair(jnp.frexp, a)


def modf(a: A) -> tuple[A, A]:
    """Split each element into its fractional and its integral part.

    Args:
        a: An array with any axes, or a raw array.

    Returns:
        The fractional and the integral parts, each with the same axes.

    Source:
        `jax.numpy.modf`
    """
    return _pair(jnp.modf, a)


def _pair(fn: Any, a: Any) -> tuple[Any, Any]:
    if isinstance(a, NamedArrayBase):
        first, second = fn(a.array)
        return a.like(first, a.axis_names), a.like(second, a.axis_names)
    return fn(a)


# two arrays ---------------------------------------------------------------------------------------------------------

add = binary(jnp.add)
arctan2 = binary(jnp.arctan2)
bitwise_and = binary(jnp.bitwise_and)
bitwise_left_shift = binary(jnp.bitwise_left_shift)
bitwise_or = binary(jnp.bitwise_or)
bitwise_right_shift = binary(jnp.bitwise_right_shift)
bitwise_xor = binary(jnp.bitwise_xor)
copysign = binary(jnp.copysign)
divide = binary(jnp.divide)
equal = binary(jnp.equal)
float_power = binary(jnp.float_power)
floor_divide = binary(jnp.floor_divide)
fmax = binary(jnp.fmax)
fmin = binary(jnp.fmin)
fmod = binary(jnp.fmod)
gcd = binary(jnp.gcd)
greater = binary(jnp.greater)
greater_equal = binary(jnp.greater_equal)
heaviside = binary(jnp.heaviside)
hypot = binary(jnp.hypot)
lcm = binary(jnp.lcm)
left_shift = binary(jnp.left_shift)
less = binary(jnp.less)
less_equal = binary(jnp.less_equal)
logaddexp = binary(jnp.logaddexp)
logaddexp2 = binary(jnp.logaddexp2)
logical_and = binary(jnp.logical_and)
logical_or = binary(jnp.logical_or)
logical_xor = binary(jnp.logical_xor)
maximum = binary(jnp.maximum)
minimum = binary(jnp.minimum)
mod = binary(jnp.mod)
multiply = binary(jnp.multiply)
nextafter = binary(jnp.nextafter)
not_equal = binary(jnp.not_equal)
power = binary(jnp.power)
remainder = binary(jnp.remainder)
right_shift = binary(jnp.right_shift)
subtract = binary(jnp.subtract)
true_divide = binary(jnp.true_divide)


def divmod(a: Any, b: Any) -> tuple[Any, Any]:
    """Quotient and remainder of each element, broadcast by name.

    Args:
        a: An array with any axes, or a scalar.
        b: An array whose axes contain those of `a` or are among them, or a scalar.

    Returns:
        The quotients and the remainders, each with the axes of the operand that has more of them.

    Source:
        `jax.numpy.divmod`
    """
    return apply_binary("divmod", jnp.floor_divide, a, b), apply_binary("divmod", jnp.remainder, a, b)
