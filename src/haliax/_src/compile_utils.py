"""Caches of compiled functions by name, for libraries that make one compiled function for many equal callables."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from haliax._src.errors import wrong_type
from haliax._src.util import safe_wraps

_LARGEST = 256

# only what is alive can be cleared: the set keeps no cache, and a cache goes with its function
_caches: weakref.WeakSet[Any] = weakref.WeakSet()


def compile_cache(cacheable_fn: Callable[..., Any]) -> Callable[..., Any]:
    """Keep what a function makes for a callable of some name.

    Args:
        cacheable_fn: A function of the name and the qualified name of a callable, as a pair, and of further arguments.

    Returns:
        A function of the callable itself and the further arguments. It gives the same object again for the same names
        and equal arguments, of the last 256 calls; with arguments that can not be hashed it makes a new one.
    """
    cached = functools.lru_cache(maxsize=_LARGEST, typed=True)(cacheable_fn)
    _caches.add(cached)

    @safe_wraps(cacheable_fn)
    def for_callable(user_fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        names = _names(user_fn)
        try:
            hash((args, tuple(kwargs.items())))
        except TypeError:
            return cacheable_fn(names, *args, **kwargs)
        return cached(names, *args, **kwargs)

    return for_callable


def clear_caches() -> None:
    """Forget everything that functions made by `compile_cache` have kept."""
    for cached in list(_caches):
        cached.cache_clear()


def _names(fn: Callable[..., Any]) -> tuple[str, str]:
    """The name and the qualified name of a callable; a partial has those of its function, an object of its class."""
    if not callable(fn):
        raise wrong_type("compile_cache", "the first argument", fn, "a callable")
    while isinstance(fn, functools.partial):
        fn = fn.func
    named: Any = fn if hasattr(fn, "__qualname__") else type(fn)
    return named.__name__, named.__qualname__
