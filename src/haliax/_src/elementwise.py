"""Elementwise operations: each is the `jax.numpy` function of its name, on named arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from haliax._src.array_base import N, NamedArrayBase
from haliax._src.broadcasting import as_scalar
from haliax._src.describe import documented
from haliax._src.errors import check_integer
from haliax._src.families import apply_binary, binary, separate, unary
from haliax._src.refused import check_dtype
from haliax.types import DTypeLike

# --- One array ---

abs = unary(jnp.abs, "The absolute value of each element.")
absolute = unary(jnp.absolute, "The absolute value of each element.")
angle = unary(jnp.angle, "The angle of each complex element, in radians.")
arccos = unary(jnp.arccos, "The angle, in radians, whose cosine is each element.")
arccosh = unary(jnp.arccosh, "The inverse hyperbolic cosine of each element.")
arcsin = unary(jnp.arcsin, "The angle, in radians, whose sine is each element.")
arcsinh = unary(jnp.arcsinh, "The inverse hyperbolic sine of each element.")
arctan = unary(jnp.arctan, "The angle, in radians, whose tangent is each element.")
arctanh = unary(jnp.arctanh, "The inverse hyperbolic tangent of each element.")
around = unary(jnp.around, "The integer nearest to each element; the even one if two are.")
bitwise_count = unary(jnp.bitwise_count, "The number of bits that are set in the absolute value of each element.")
bitwise_invert = unary(jnp.bitwise_invert, "Each integer with all bits inverted; the negation of each bool.")
bitwise_not = unary(jnp.bitwise_not, "Each integer with all bits inverted; the negation of each bool.")
cbrt = unary(jnp.cbrt, "The cube root of each element.")
ceil = unary(jnp.ceil, "The smallest integer that is not below each element.")
conj = unary(jnp.conj, "The complex conjugate of each element.")
conjugate = unary(jnp.conjugate, "The complex conjugate of each element.")
copy = unary(jnp.copy, "The same elements in a new array.")
cos = unary(jnp.cos, "The cosine of each element, which is in radians.")
cosh = unary(jnp.cosh, "The hyperbolic cosine of each element.")
deg2rad = unary(jnp.deg2rad, "Each element, which is in degrees, in radians.")
degrees = unary(jnp.degrees, "Each element, which is in radians, in degrees.")
exp = unary(jnp.exp, "Euler's number to the power of each element.")
exp2 = unary(jnp.exp2, "Two to the power of each element.")
expm1 = unary(jnp.expm1, "The exponential of each element less one, exact for elements near zero.")
fabs = unary(jnp.fabs, "The absolute value of each element, as a float.")
fix = unary(jnp.trunc, "The integer next to each element in the direction of zero.", name="fix")  # jnp has dropped fix
floor = unary(jnp.floor, "The largest integer that is not above each element.")
i0 = unary(jnp.i0, "The modified Bessel function of the first kind, of order zero, of each element.")
imag = unary(jnp.imag, "The imaginary part of each element.")
invert = unary(jnp.invert, "Each integer with all bits inverted; the negation of each bool.")
iscomplex = unary(jnp.iscomplex, "Whether the imaginary part of each element is not zero.")
isfinite = unary(jnp.isfinite, "Whether each element is neither infinite nor NaN.")
isinf = unary(jnp.isinf, "Whether each element is infinite.")
isnan = unary(jnp.isnan, "Whether each element is NaN.")
isneginf = unary(jnp.isneginf, "Whether each element is minus infinity.")
isposinf = unary(jnp.isposinf, "Whether each element is plus infinity.")
isreal = unary(jnp.isreal, "Whether the imaginary part of each element is zero.")
log = unary(jnp.log, "The natural logarithm of each element.")
log10 = unary(jnp.log10, "The logarithm of each element to base ten.")
log1p = unary(jnp.log1p, "The natural logarithm of one plus each element, exact for elements near zero.")
log2 = unary(jnp.log2, "The logarithm of each element to base two.")
logical_not = unary(jnp.logical_not, "Whether each element is false (zero).")
negative = unary(jnp.negative, "Each element with the opposite sign.")
positive = unary(jnp.positive, "Each element as it is.")
rad2deg = unary(jnp.rad2deg, "Each element, which is in radians, in degrees.")
radians = unary(jnp.radians, "Each element, which is in degrees, in radians.")
real = unary(jnp.real, "The real part of each element.")
reciprocal = unary(jnp.reciprocal, "One divided by each element.")
rint = unary(jnp.rint, "The integer nearest to each element; the even one if two are.")
rsqrt = unary(jax.lax.rsqrt, "One divided by the square root of each element.")
sign = unary(jnp.sign, "-1, 0 or 1 by the sign of each element.")
signbit = unary(jnp.signbit, "Whether the sign bit of each element is set.")
sin = unary(jnp.sin, "The sine of each element, which is in radians.")
sinc = unary(jnp.sinc, "The normalized sinc function, sin(pi x) / (pi x), of each element.")
sinh = unary(jnp.sinh, "The hyperbolic sine of each element.")
sqrt = unary(jnp.sqrt, "The square root of each element.")
square = unary(jnp.square, "The square of each element.")
tan = unary(jnp.tan, "The tangent of each element, which is in radians.")
tanh = unary(jnp.tanh, "The hyperbolic tangent of each element.")
trunc = unary(jnp.trunc, "The integer next to each element in the direction of zero.")

_ONE = {"a": "An array with any axes, or a raw array."}
_SAME = "An array with the same axes."


@documented(
    jnp.round,
    {**_ONE, "decimals": "How many decimals to keep; a negative number rounds to tens, hundreds, and so on."},
    _SAME,
)
def round(a: N, decimals: int = 0) -> N:
    """Each element rounded to a number of decimals."""
    check_integer("round", "decimals", decimals)
    if isinstance(a, NamedArrayBase):
        return a.like(jnp.round(a.array, decimals), a.axis_names)
    return jnp.round(a, decimals)


@documented(jnp.astype, {**_ONE, "dtype": "The dtype of the result."}, _SAME)
def astype(a: N, dtype: DTypeLike) -> N:
    """Each element, converted to a dtype."""
    check_dtype("astype", dtype)
    if isinstance(a, NamedArrayBase):
        return a.like(a.array.astype(dtype), a.axis_names)
    return jnp.astype(a, dtype)


@documented(
    jnp.nan_to_num,
    {
        **_ONE,
        "nan": "What stands for NaN.",
        "posinf": "What stands for infinity; the largest number of the dtype if None.",
        "neginf": "What stands for minus infinity; the lowest number of the dtype if None.",
    },
    _SAME,
)
def nan_to_num(a: N, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> N:
    """Each element, with numbers in place of NaN and infinity."""
    given = {"nan": nan, "posinf": posinf, "neginf": neginf}
    if isinstance(nan, float) and nan == 0:  # jnp traces what is passed, even if it is the default
        del given["nan"]
    options = {name: as_scalar("nan_to_num", x, name) for name, x in given.items() if x is not None}
    if isinstance(a, NamedArrayBase):
        return a.like(jnp.nan_to_num(a.array, **options), a.axis_names)
    return jnp.nan_to_num(a, **options)


@documented(jnp.frexp, _ONE, "The mantissas and the exponents, each with the same axes.")
def frexp(a: N) -> tuple[N, N]:
    """The mantissa and the exponent of two of each element."""
    return separate(_frexp(a))


@documented(jnp.modf, _ONE, "The fractional and the integral parts, each with the same axes.")
def modf(a: N) -> tuple[N, N]:
    """The fractional and the integral part of each element."""
    return separate(_modf(a))


_frexp, _modf = unary(jnp.frexp), unary(jnp.modf)


@documented(jnp.ndim, _ONE, "A plain int.")
def ndim(a: Any) -> int:
    """The number of axes."""
    return jnp.ndim(a.array if isinstance(a, NamedArrayBase) else a)


# --- Two arrays, broadcast by name ---

add = binary(jnp.add, "The sum of two arrays.")
arctan2 = binary(jnp.arctan2, "The angle, in radians, of the point with ordinate `a` and abscissa `b`.")
bitwise_and = binary(jnp.bitwise_and, "The bits that are set in both of two arrays.")
bitwise_left_shift = binary(jnp.bitwise_left_shift, "The bits of `a` moved up by `b` places.")
bitwise_or = binary(jnp.bitwise_or, "The bits that are set in one of two arrays, or in both.")
bitwise_right_shift = binary(jnp.bitwise_right_shift, "The bits of `a` moved down by `b` places.")
bitwise_xor = binary(jnp.bitwise_xor, "The bits that are set in one of two arrays and not in the other.")
copysign = binary(jnp.copysign, "The magnitude of `a` with the sign of `b`.")
divide = binary(jnp.divide, "The quotient of two arrays, as a float.")
equal = binary(jnp.equal, "Whether the elements of two arrays are equal.")
float_power = binary(jnp.float_power, "`a` to the power of `b`, as a float.")
floor_divide = binary(jnp.floor_divide, "The quotient of two arrays, rounded down.")
fmax = binary(jnp.fmax, "The larger of the elements of two arrays; the other one if one is NaN.")
fmin = binary(jnp.fmin, "The smaller of the elements of two arrays; the other one if one is NaN.")
fmod = binary(jnp.fmod, "The remainder of a division, with the sign of `a`.")
gcd = binary(jnp.gcd, "The greatest common divisor of the elements of two arrays.")
greater = binary(jnp.greater, "Whether `a` is greater than `b`.")
greater_equal = binary(jnp.greater_equal, "Whether `a` is greater than `b` or equal to it.")
heaviside = binary(jnp.heaviside, "0 where `a` is negative, 1 where it is positive, `b` where it is zero.")
hypot = binary(jnp.hypot, "The hypotenuse of the right triangle with legs `a` and `b`.")
lcm = binary(jnp.lcm, "The least common multiple of the elements of two arrays.")
left_shift = binary(jnp.left_shift, "The bits of `a` moved up by `b` places.")
less = binary(jnp.less, "Whether `a` is less than `b`.")
less_equal = binary(jnp.less_equal, "Whether `a` is less than `b` or equal to it.")
logaddexp = binary(jnp.logaddexp, "The logarithm of the sum of the exponentials of two arrays.")
logaddexp2 = binary(jnp.logaddexp2, "The logarithm to base two of the sum of two to the powers of two arrays.")
logical_and = binary(jnp.logical_and, "Whether both elements are true (not zero).")
logical_or = binary(jnp.logical_or, "Whether one element is true (not zero), or both are.")
logical_xor = binary(jnp.logical_xor, "Whether one element is true (not zero) and the other is not.")
maximum = binary(jnp.maximum, "The larger of the elements of two arrays; NaN if one is NaN.")
minimum = binary(jnp.minimum, "The smaller of the elements of two arrays; NaN if one is NaN.")
mod = binary(jnp.mod, "The remainder of a division, with the sign of `b`.")
multiply = binary(jnp.multiply, "The product of two arrays.")
nextafter = binary(jnp.nextafter, "The next float after `a` in the direction of `b`.")
not_equal = binary(jnp.not_equal, "Whether the elements of two arrays differ.")
power = binary(jnp.power, "`a` to the power of `b`.")
remainder = binary(jnp.remainder, "The remainder of a division, with the sign of `b`.")
right_shift = binary(jnp.right_shift, "The bits of `a` moved down by `b` places.")
subtract = binary(jnp.subtract, "The difference of two arrays.")
true_divide = binary(jnp.true_divide, "The quotient of two arrays, as a float.")


@documented(
    jnp.divmod,
    {
        "a": "An array with any axes, or a scalar.",
        "b": "An array whose axes contain those of `a` or are among them, or a scalar.",
    },
    "The quotients and the remainders, each with the axes of the operand that has more of them.",
)
def divmod(a: N, b: N | ArrayLike) -> tuple[N, N]:
    """The quotient of two arrays, rounded down, and the remainder, with the sign of `b`."""
    return separate(apply_binary("divmod", jnp.divmod, a, b))
