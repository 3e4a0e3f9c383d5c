"""Comparing whole arrays: whether they are equal, or as good as."""

from __future__ import annotations

from typing import Any, overload

import jax.numpy as jnp
from jax.core import Tracer
from jax.typing import ArrayLike

from haliax._src.array_base import A, NamedArrayBase, raw_array_or_scalar
from haliax._src.broadcasting import as_named
from haliax._src.families import apply_aligned

_RTOL, _ATOL = 1e-05, 1e-08


@overload
def isclose(a: A, b: Any, rtol: float = _RTOL, atol: float = _ATOL, equal_nan: bool = False) -> A: ...
@overload
def isclose(a: ArrayLike, b: Any, rtol: float = _RTOL, atol: float = _ATOL, equal_nan: bool = False) -> Any: ...
def isclose(a: Any, b: Any, rtol: float = _RTOL, atol: float = _ATOL, equal_nan: bool = False) -> Any:
    """Whether elements are equal within a tolerance.

    Args:
        a: An array with any axes, or a scalar.
        b: An array whose axes contain those of `a` or are among them, or a scalar.
        rtol: The difference allowed, relative to `b`.
        atol: The difference allowed in any case.
        equal_nan: Whether NaN equals NaN.

    Returns:
        A boolean array with the axes of the operand that has more of them.

    Raises:
        ValueError: If neither operand has all axes of the other.

    Source:
        `jax.numpy.isclose`
    """
    return apply_aligned("isclose", jnp.isclose, a, b, **_options(rtol, atol, equal_nan))


def allclose(a: Any, b: Any, rtol: float = _RTOL, atol: float = _ATOL, equal_nan: bool = False) -> Any:
    """Whether all elements are equal within a tolerance.

    Args:
        a: An array with any axes, or a scalar.
        b: An array whose axes contain those of `a` or are among them, or a scalar.
        rtol: The difference allowed, relative to `b`.
        atol: The difference allowed in any case.
        equal_nan: Whether NaN equals NaN.

    Returns:
        A bool; while tracing, a boolean array without axes.

    Raises:
        ValueError: If neither operand has all axes of the other.

    Source:
        `jax.numpy.allclose`
    """
    result = apply_aligned("allclose", jnp.allclose, a, b, **_options(rtol, atol, equal_nan))
    return _truth(raw_array_or_scalar(result))


def _options(rtol: Any, atol: Any, equal_nan: bool) -> dict[str, Any]:
    """The options that are not as usual: JAX moves every number that it is given to the device."""
    given = (("rtol", rtol, _RTOL), ("atol", atol, _ATOL), ("equal_nan", equal_nan, False))
    return {name: value for name, value, usual in given if value is not usual}


def array_equal(a: Any, b: Any) -> Any:
    """Whether arrays have the same axes, in any order, and equal elements.

    Args:
        a: An array with any axes, or a scalar.
        b: An array with any axes, or a scalar.

    Returns:
        A bool; while tracing, a boolean array without axes.

    Source:
        `jax.numpy.array_equal`
    """
    a, b = as_named("array_equal", a), as_named("array_equal", b)
    return a.shape == b.shape and _all_equal(a, b)


def array_equiv(a: Any, b: Any) -> Any:
    """Whether arrays have equal elements once one of them is broadcast to the other, by name.

    Args:
        a: An array with any axes, or a scalar.
        b: An array with any axes, or a scalar.

    Returns:
        A bool; while tracing, a boolean array without axes.

    Source:
        `jax.numpy.array_equiv`
    """
    a, b = as_named("array_equiv", a), as_named("array_equiv", b)
    larger, smaller = (a, b) if len(a.axis_names) >= len(b.axis_names) else (b, a)
    return smaller.shape.items() <= larger.shape.items() and _all_equal(larger, smaller)


def _all_equal(a: NamedArrayBase, b: NamedArrayBase) -> Any:
    """Whether all elements are equal, where `a` has all axes of `b`."""
    return _truth(jnp.all(apply_aligned("array_equal", jnp.equal, a, b).array))


def _truth(result: Any) -> Any:
    """A bool, if the result is known already."""
    return result if isinstance(result, Tracer) else bool(result)
