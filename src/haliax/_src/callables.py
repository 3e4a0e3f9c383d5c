"""Callables as types, and as pytrees, so that transformations see the arrays that a function holds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar

import equinox as eqx

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class WrappedCallable(Protocol[P, R]):
    """What `named_jit` returns, as a type."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        ...

    def lower(self, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Lower the program without running it."""
        ...


class _Partial(eqx.Module):
    """A partial of which all parts are children, the function too if that is a pytree."""

    func: Callable[..., Any]
    args: tuple[Any, ...]
    keywords: dict[str, Any]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.func(*self.args, *args, **{**self.keywords, **kwargs})


def callable_as_pytree(fn: Callable[..., Any]) -> Any:
    """`fn` such that its arrays are leaves: a module is a pytree already, partials and bound methods become one."""
    if isinstance(fn, functools.partial):
        return _Partial(callable_as_pytree(fn.func), fn.args, fn.keywords)
    # methods, and what wrappers of functions bind likewise; a method of a module is a pytree already
    inner, instance = getattr(fn, "__func__", None), getattr(fn, "__self__", None)
    # a static method has a function and is bound to nothing
    if inner is not None and instance is not None and not isinstance(fn, eqx.Module):
        return _Partial(callable_as_pytree(inner), (instance,), {})
    return fn
