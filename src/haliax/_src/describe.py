"""Docstrings of the operations that follow `jax.numpy`, put together from the parts that many of them share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp

F = TypeVar("F", bound=Callable[..., Any])


_ARRAY = "A named array with any axes, a raw array (then `axis` is a number), or a pytree of them."
PARAMETERS = {
    "array": _ARRAY,
    "a": _ARRAY,
    "q": "A number, or a named array with at most one axis, which then leads the result.",
    "where": "A mask with axes among those of the array; only elements where it is true count.",
    "dtype": "The dtype in which to compute, and of the result; that of `jax.numpy` if None.",
    "ddof": "The divisor is the number of elements less this.",
    "method": "How to interpolate: `linear`, `lower`, `higher`, `midpoint` or `nearest`.",
    "stable": "Whether equal elements keep their order.",
    "n": "How many times to take differences.",
}
"""What the parameters are that many operations along axes share."""


def documented(fn: Callable[..., Any], parameters: Mapping[str, str], returns: str) -> Callable[[F], F]:
    """A decorator that extends a docstring of one sentence, and links the operation to the JAX function behind it.

    Args:
        fn: The function on raw arrays.
        parameters: What each parameter of the operation is, by name; it may tell of more than the operation has.
        returns: What the operation returns.

    Returns:
        A decorator that sets `__doc__`, and `__jax__` to `fn`.
    """

    def decorate(op: F) -> F:
        names = inspect.signature(op).parameters
        args = [f"    {name}: {parameters[name]}" for name in names]
        made = cast(Any, op)
        lines = ["Args:", *args, "", "Returns:", f"    {returns}", "", "Source:", f"    `{public_name(fn)}`"]
        made.__doc__ = "\n".join([op.__doc__ or "", "", *lines])
        made.__jax__ = fn
        return op

    return decorate


def public_name(fn: Callable[..., Any]) -> str:
    """Where users find a JAX function, whose own `__module__` is often private."""
    name = fn.__name__
    for module in (jnp, jnp.fft, jax.nn, jax.lax):
        if getattr(module, name, None) is fn:
            return f"{module.__name__}.{name}"
    return f"{fn.__module__}.{name}"
