"""Operators from elementwise operations.

An operation refuses an operand that it can not use, with an error that says why. An operator first lets such an operand
speak for itself, by the rule of numpy: a class with `__array_ufunc__ = None` takes operators over.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Never, NoReturn, TypeVar, cast

from haliax._src.array_base import NamedArrayBase, is_scalar
from haliax._src.errors import bad_value, problem

F = TypeVar("F", bound=Callable[..., Any])


def operator(op: F) -> F:
    """The operator of a binary operation."""
    return _operator(op, op, _takes_over)


def reflected(op: F) -> F:
    """The operator of a binary operation whose left operand is not ours."""
    return _operator(op, lambda a, b: op(b, a), _takes_over)


def equality(op: F) -> F:
    """The operator `==` or `!=`: what is no array is just not equal to one.

    Placeholders that a transformation has put in place of an array are compared as they are: structures that hold them
    are compared too.
    """
    compare, equal = _operator(op, op, _is_foreign), op.__name__ == "equal"

    @functools.wraps(op)
    def method(a: Any, b: Any) -> Any:
        if isinstance(b, NamedArrayBase) and not (hasattr(a.array, "shape") and hasattr(b.array, "shape")):
            return (a.axis_names == b.axis_names and a.array is b.array) is equal
        return compare(a, b)

    return cast(F, method)


def _operator(op: F, apply: Callable[[Any, Any], Any], yields_to: Callable[[Any], bool]) -> F:
    @functools.wraps(op)
    def method(a: Any, b: Any) -> Any:
        try:
            return apply(a, b)
        except TypeError:
            if yields_to(b):
                return NotImplemented
            raise

    return cast(F, method)


def _takes_over(x: Any) -> bool:
    """Whether an operand is of a class that takes operators over."""
    return not isinstance(x, NamedArrayBase) and getattr(x, "__array_ufunc__", x) is None and x is not None


def _is_foreign(x: Any) -> bool:
    """Whether an operand is no array at all."""
    return not (isinstance(x, NamedArrayBase) or is_scalar(x) or hasattr(x, "shape"))


def power(op: F) -> F:
    """The operator `**`, which Python gives a modulus too: pow(x, 2, 3)."""
    method = operator(op)

    @functools.wraps(op)
    def with_modulus(a: Any, b: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            raise TypeError(problem("pow", "a modulus was given", "expected none", "Write (a ** b) % modulus."))
        return method(a, b)

    return cast(F, with_modulus)


def no_matmul(a: Any, b: Never) -> NoReturn:
    """The operator `@`, which does not say which axes to contract; a type checker takes no operand for it."""
    raise bad_value(
        "matmul", "`@` was used", "expected the axes to contract, by name", "Use haliax.dot(a, b, axis=...)."
    )
