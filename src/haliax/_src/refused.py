"""Why JAX refuses arrays and options, said in the words of the operation that was called.

An operation hands its arrays to `jax.numpy` unseen, since looking costs time. Only once JAX has refused them does this
module look for the reason: a dtype that the function has no meaning for, or an option that is none.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from haliax._src.errors import kind, problem, wrong_type

_KINDS = {
    "booleans": jnp.bool_,
    "integers": jnp.int32,
    "floats": jnp.float32,
    "complex numbers": jnp.complex64,
}
"""The kinds of elements, each with a dtype to try a function with."""


def explain(
    op: str,
    fn: Callable[..., Any],
    refusal: Exception,
    arrays: Sequence[Any],
    options: Mapping[str, Any] | None = None,
) -> None:
    """Raise an error that says why a function of `jax.numpy` has refused arrays, if that is known.

    Args:
        op: The operation, for the error message.
        fn: The function.
        refusal: What it has raised.
        arrays: Its arguments, raw arrays or numbers.
        options: Its options.

    Raises:
        TypeError: If an option or a dtype is the reason.
    """
    if isinstance(refusal, jax.errors.JAXTypeError):
        return
    for name, value in (options or {}).items():
        if name == "dtype":
            check_dtype(op, value)
        elif value is not None and not hasattr(value, "shape") and not isinstance(value, bool | int | float | complex):
            raise wrong_type(op, name, value, "a number") from refusal
    dtypes = [jnp.result_type(x) for x in arrays]
    if _takes(fn, dtypes, options):
        return  # then something else is the reason
    accepted = [kind for kind, dtype in _KINDS.items() if _takes(fn, [dtype] * len(arrays), options)]
    if not accepted:
        return
    distinct = " and ".join(dict.fromkeys(map(str, dtypes)))
    given = f"the array has dtype {distinct}" if len(dtypes) == 1 else f"the operands have dtype {distinct}"
    expected = (
        "numbers"
        if len(accepted) == len(_KINDS)
        else " or ".join(filter(None, [", ".join(accepted[:-1]), accepted[-1]]))
    )
    raise TypeError(problem(op, given, f"expected {expected}")) from refusal


def _takes(fn: Callable[..., Any], dtypes: Sequence[Any], options: Mapping[str, Any] | None) -> bool:
    """Whether a function has a meaning for numbers of these dtypes."""
    numbers = [jax.ShapeDtypeStruct((), dtype) for dtype in dtypes]
    try:
        with warnings.catch_warnings(action="ignore"):
            jax.eval_shape(lambda *x: fn(*x, **(options or {})), *numbers)
    except (TypeError, ValueError):
        return False
    return True


def check_precision(op: str, precision: Any) -> None:
    """Raise a ValueError if JAX does not know a precision; it is asked only after it has refused something."""
    vector = jax.ShapeDtypeStruct((1,), jnp.float32)
    try:
        jax.eval_shape(lambda x: jax.lax.dot(x, x, precision=precision), vector)
    except (TypeError, ValueError) as error:
        given = f"precision is {precision!r}" if isinstance(precision, str) else f"precision is {kind(precision)}"
        expected = 'a jax.lax.Precision, the name of one such as "highest", or one for each operand'
        raise ValueError(problem(op, given, f"expected {expected}")) from error


def check_dtype(op: str, dtype: Any) -> None:
    """Raise a TypeError if `dtype` is neither None nor a dtype."""
    if dtype is None or isinstance(dtype, np.dtype):
        return
    try:
        jnp.dtype(dtype)
    except TypeError as error:
        if isinstance(dtype, str):
            raise TypeError(
                problem(op, f"there is no dtype {dtype!r}", 'expected one such as jnp.float32 or "int8"')
            ) from error
        if not hasattr(dtype, "dtype"):
            raise wrong_type(op, "the dtype", dtype, 'one such as jnp.float32 or "int8"') from error
