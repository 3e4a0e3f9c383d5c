"""Polynomials in one variable: each function is the `jax.numpy` function of its name.

A polynomial is an array with one axis, its coefficients from the highest power down. A result is along the axis of the
first named argument; that of unnamed arrays is called "degree". No coefficients at all are the polynomial zero.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, overload

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.typing import ArrayLike

from haliax._src.array_base import A, NamedArrayBase, is_scalar, raw_array_or_scalar, require_named, wrap
from haliax._src.axis import Axis, AxisSelector, axis_name
from haliax._src.errors import bad_value, duplicate_axes, format_shape, problem, size_mismatch, wrong_type
from haliax._src.families import is_raw
from haliax._src.named_array import NamedArray
from haliax._src.rearrange import permute

_DEGREE = "degree"
_COEFFICIENTS = "expected one axis, that of the coefficients"


# --- Arithmetic ---


def polyadd(p1: Any, p2: Any) -> NamedArray:
    """The sum of two polynomials.

    Args:
        p1: The coefficients, an array with one axis; a scalar is a constant polynomial.
        p2: The same; its axis may have another name and another size.

    Returns:
        The coefficients of the sum, along the axis of the first named argument.

    Source:
        `jax.numpy.polyadd`
    """
    return _arithmetic(jnp.polyadd, p1, p2)


def polysub(p1: Any, p2: Any) -> NamedArray:
    """The difference of two polynomials.

    Args:
        p1: The coefficients, an array with one axis; a scalar is a constant polynomial.
        p2: The same; its axis may have another name and another size.

    Returns:
        The coefficients of the difference, along the axis of the first named argument.

    Source:
        `jax.numpy.polysub`
    """
    return _arithmetic(jnp.polysub, p1, p2)


def polymul(p1: Any, p2: Any) -> NamedArray:
    """The product of two polynomials.

    Args:
        p1: The coefficients, an array with one axis; a scalar is a constant polynomial.
        p2: The same; its axis may have another name and another size.

    Returns:
        The coefficients of the product, along the axis of the first named argument.

    Source:
        `jax.numpy.polymul`
    """
    return _arithmetic(jnp.polymul, p1, p2)


def polydiv(p1: Any, p2: Any) -> tuple[NamedArray, NamedArray]:
    """The quotient of two polynomials, and the remainder.

    Args:
        p1: The coefficients of the dividend, an array with one axis; a scalar is a constant polynomial.
        p2: Those of the divisor; its axis may have another name and another size.

    Returns:
        The coefficients of both, along the axis of the first named argument. The remainder is as long as the dividend:
        its leading coefficients are zero.

    Source:
        `jax.numpy.polydiv`
    """
    name = _name_of(p1, p2)
    quotient, remainder = jnp.polydiv(_coefficients("polydiv", "p1", p1), _coefficients("polydiv", "p2", p2))
    return wrap(quotient, (name,)), wrap(remainder, (name,))


def polyder(p: Any, m: int = 1) -> NamedArray:
    """The derivative of a polynomial.

    Args:
        p: The coefficients, an array with one axis.
        m: How many times to differentiate.

    Returns:
        The coefficients of the derivative, along the same axis.

    Source:
        `jax.numpy.polyder`
    """
    return wrap(jnp.polyder(_coefficients("polyder", "p", p), _count("polyder", "m", m)), (_name_of(p),))


def polyint(p: Any, m: int = 1, k: Any = None) -> NamedArray:
    """The integral of a polynomial.

    Args:
        p: The coefficients, an array with one axis.
        m: How many times to integrate.
        k: The constants of integration, one for each time or one for all; zero if None.

    Returns:
        The coefficients of the integral, along the same axis.

    Source:
        `jax.numpy.polyint`
    """
    times = _count("polyint", "m", m)
    constants = None if k is None else jnp.asarray(raw_array_or_scalar(k))
    if constants is not None and constants.shape not in ((), (1,), (times,)):
        given = f"k has shape {constants.shape}"
        raise bad_value("polyint", given, f"expected one constant, or one for each of {times} times")
    return wrap(jnp.polyint(_coefficients("polyint", "p", p), times, constants), (_name_of(p),))


# --- Values and roots ---


@overload
def polyval(p: Any, x: A) -> A: ...
@overload
def polyval(p: Any, x: ArrayLike) -> jax.Array: ...
def polyval(p: Any, x: Any) -> Any:
    """The values of a polynomial.

    Args:
        p: The coefficients, an array with one axis.
        x: Where to evaluate it: a named array with any axes, a raw array or a number.

    Returns:
        An array with the axes of `x`.

    Source:
        `jax.numpy.polyval`
    """
    coefficients = _coefficients("polyval", "p", p)
    if isinstance(x, NamedArrayBase):
        return x.like(jnp.polyval(coefficients, x.array), x.axis_names)
    return jnp.polyval(coefficients, x)


def roots(p: Any) -> NamedArray:
    """The roots of a polynomial.

    Args:
        p: The coefficients, an array with one axis.

    Returns:
        The complex roots along the same axis. Leading coefficients of zero do not count; where the array is traced,
        they can not be told, and there are as many roots as coefficients but one.

    Source:
        `jax.numpy.roots`
    """
    coefficients = _coefficients("roots", "p", p)
    return wrap(jnp.roots(coefficients, strip_zeros=not isinstance(coefficients, Tracer)), (_name_of(p),))


def poly(seq_of_zeros: Any) -> NamedArray:
    """The polynomial that has given roots, or the characteristic polynomial of a matrix.

    Args:
        seq_of_zeros: The roots, an array with one axis; or a square matrix, an array with two.

    Returns:
        The coefficients, along the axis of the roots; those of a matrix along "degree".

    Raises:
        ValueError: If there are more axes, or the matrix is not square.

    Source:
        `jax.numpy.poly`
    """
    if not isinstance(seq_of_zeros, NamedArrayBase) and not hasattr(seq_of_zeros, "shape"):
        raise wrong_type("poly", "the argument", seq_of_zeros, "an array of roots, or a square matrix")
    raw = raw_array_or_scalar(seq_of_zeros)
    if raw.ndim == 2 and raw.shape[0] == raw.shape[1] > 0:
        return wrap(jnp.poly(raw), (_DEGREE,))
    if raw.ndim != 1:
        raise bad_value("poly", _describe("the array", seq_of_zeros), "expected one axis, or a square matrix")
    return wrap(jnp.reshape(jnp.poly(raw), (raw.shape[0] + 1,)), (_name_of(seq_of_zeros),))


def trim_zeros(f: Any, trim: str = "fb") -> NamedArray:
    """The coefficients without zeros at the ends.

    Args:
        f: An array with one axis.
        trim: Which ends: `f` for the front, `b` for the back, `fb` for both.

    Returns:
        A shorter array along the same axis.

    Raises:
        TypeError: If the array is traced, as the size of the result depends on its elements.

    Source:
        `jax.numpy.trim_zeros`
    """
    raw = _one_axis("trim_zeros", "f", f)
    if trim.lower().strip("fb"):
        raise bad_value("trim_zeros", f"trim is {trim!r}", "expected 'f', 'b' or 'fb'")
    if isinstance(raw, Tracer):
        given = "the array is traced, and the size of the result depends on its elements"
        raise TypeError(problem("trim_zeros", given, "expected an array with values", "Call it outside of jit."))
    return wrap(jnp.trim_zeros(raw, trim), (_name_of(f),))


# --- Fitting ---


def vander(x: A, degree: AxisSelector) -> A:
    """The powers of each element, from the highest down: the Vandermonde matrix.

    Args:
        x: A named array with one axis.
        degree: The axis of the powers; a name alone makes as many as `x` has elements.

    Returns:
        An array with the axis of `x` and then `degree`.

    Raises:
        ValueError: If `x` has not one axis, or that is called the same.

    Source:
        `jax.numpy.vander`
    """
    raw = _one_axis("vander", "x", require_named("vander", x))
    if not isinstance(degree, str | Axis):
        raise wrong_type("vander", "degree", degree, "an Axis, or a name")
    names = (_name_of(x), axis_name(degree))
    if names[0] == names[1]:
        raise duplicate_axes("vander", names, "Give the powers another axis.")
    return x.like(jnp.vander(raw, degree.size if isinstance(degree, Axis) else None), names)


def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: bool | str = False
) -> Any:
    """The polynomial that fits points best, by least squares.

    Args:
        x: The places, an array with one axis.
        y: The values there: an array with that axis, and perhaps another one, for a fit at each index of it. If it has
            one axis, that may have another name; the other axis of an unnamed array is called "other".
        deg: The degree of the polynomial.
        rcond: Singular values less than this part of the largest one count as zero.
        full: Whether to return the residuals, the rank, the singular values and `rcond` too.
        w: The weight of each point, an array with one axis.
        cov: Whether to return the covariance of the coefficients too; "unscaled" for weights that are 1/sigma.

    Returns:
        The coefficients, along the axis of `x` (of `y`, if only that has names); then the other axis of `y`. With
        `full` a tuple of them and four raw arrays; with `cov` a pair of them and their covariance, whose second axis
        has `_cov` after its name.

    Raises:
        ValueError: If the arrays have more axes than these, or other sizes.

    Source:
        `jax.numpy.polyfit`
    """
    places = _one_axis("polyfit", "x", x)
    name, count = _name_of(x, y), places.shape[0]
    values, others = _values(x, y)
    _check_size("y", name, values, count)
    weights = None if w is None else _one_axis("polyfit", "w", w)
    if weights is not None:
        _check_size("w", name, weights, count)
    fitted = jnp.polyfit(places, values, _count("polyfit", "deg", deg), rcond, full, weights, cov)  # pyright: ignore[reportArgumentType]
    if full:
        return wrap(fitted[0], (name, *others)), *fitted[1:]
    if cov:
        return wrap(fitted[0], (name, *others)), wrap(fitted[1], (name, f"{name}_cov", *others))
    return wrap(fitted, (name, *others))


def _values(x: Any, y: Any) -> tuple[Any, tuple[str, ...]]:
    """The raw array of the values to fit, the axis of the points first, and the name of the other axis, if any."""
    if not (isinstance(y, NamedArrayBase) or is_raw(y)):
        raise wrong_type("polyfit", "y", y, "an array")
    if len(jnp.shape(raw_array_or_scalar(y))) != 2:
        return _one_axis("polyfit", "y", y, "expected the axis of x, and at most one other"), ()
    if not isinstance(y, NamedArrayBase):
        return y, ("other",)
    dim = y.require_axis("polyfit", x.axis_names[0]) if isinstance(x, NamedArrayBase) else 0
    return permute(y, (dim, 1 - dim)).array, (y.axis_names[1 - dim],)


def _check_size(argument: str, name: str, array: Any, count: int) -> None:
    """Raise unless an array has as many points as there are places."""
    if array.shape[0] != count:
        raise size_mismatch("polyfit", name, array.shape[0], count, f"{argument} must have as many points as x.")


# --- The parts ---


def _arithmetic(fn: Callable[[Any, Any], Any], p1: Any, p2: Any) -> Any:
    """Apply a function of two arrays of coefficients."""
    op = fn.__name__
    return wrap(fn(_coefficients(op, "p1", p1), _coefficients(op, "p2", p2)), (_name_of(p1, p2),))


def _coefficients(op: str, argument: str, p: Any) -> Any:
    """The raw array of the coefficients of a polynomial, at least one."""
    raw = _one_axis(op, argument, p, _COEFFICIENTS)
    return raw if raw.shape[0] else jnp.zeros((1,), raw.dtype)


def _one_axis(op: str, argument: str, p: Any, expected: str = "expected one axis") -> Any:
    """The raw array of an argument that has one axis; a scalar becomes one."""
    if not (isinstance(p, NamedArrayBase) or is_raw(p)):
        raise wrong_type(op, argument, p, "an array with one axis")
    if is_scalar(raw_array_or_scalar(p)):
        return jnp.reshape(raw_array_or_scalar(p), (1,))
    if len(p.shape) != 1:
        raise bad_value(op, _describe(argument, p), expected)
    return raw_array_or_scalar(p)


def _count(op: str, argument: str, value: Any) -> int:
    """An argument that is a number in Python, zero at least."""
    try:
        count = operator.index(value)
    except TypeError:
        raise wrong_type(op, argument, value, "an int") from None
    if count < 0:
        raise bad_value(op, f"{argument} is {count}", "expected at least 0")
    return count


def _describe(argument: str, p: Any) -> str:
    """The shape of an argument, for an error message."""
    if isinstance(p, NamedArrayBase):
        return f"{argument} has {format_shape(p.shape)}"
    return f"{argument} has shape {jnp.shape(p)}"


def _name_of(*arrays: Any) -> str:
    """The name of the axis of the first named array."""
    names = (p.axis_names[0] for p in arrays if isinstance(p, NamedArrayBase) and p.axis_names)
    return next(names, _DEGREE)
