"""Small helpers with no knowledge of axes or arrays."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
U = TypeVar("U")


class Unspecified:
    """The type of `UNSPECIFIED`: an argument that was not given, where None is a value."""

    def __repr__(self) -> str:
        return "UNSPECIFIED"


UNSPECIFIED = Unspecified()
"""Default of a parameter for which None means something."""


def ensure_tuple(x: Sequence[T] | T) -> tuple[T, ...]:
    """A sequence as a tuple; anything else, a string too, as a tuple of one.

    Args:
        x: A sequence, or one element.

    Returns:
        A tuple.
    """
    if isinstance(x, str):
        return (x,)  # pyright: ignore[reportReturnType]  (T is str)
    return tuple(x) if isinstance(x, Sequence) else (x,)


def maybe_untuple(x: tuple[T, ...] | T) -> tuple[T, ...] | T:
    """The element of a tuple of one; anything else as it is.

    Args:
        x: Anything.

    Returns:
        The element of a tuple of one; otherwise `x`.
    """
    return x[0] if isinstance(x, tuple) and len(x) == 1 else x


def index_where(pred: Callable[[T], bool], xs: Sequence[T], start: int = 0) -> int:
    """The index of the first element, from `start` on, for which `pred` holds.

    Args:
        pred: The condition.
        xs: The elements.
        start: Where to begin.

    Returns:
        The index in `xs`.

    Raises:
        ValueError: If it holds for none.
    """
    for i in range(start, len(xs)):
        if pred(xs[i]):
            return i
    raise ValueError(f"index_where: no element from index {start} on fulfils the condition.")


class IdentityMap(MutableMapping[T, U]):
    """A dictionary whose keys are compared by identity, so that unhashable objects may be keys."""

    def __init__(self, iterable: Iterable[tuple[T, U]] | None = None):
        """Start with the (key, value) pairs of `iterable`."""
        # the key is kept beside the value: its id is unique only as long as it lives
        self._entries: dict[int, tuple[T, U]] = {}
        for key, value in iterable or ():
            self[key] = value

    def __getitem__(self, key: T) -> U:
        """The value stored for this very object."""
        return self._entries[id(key)][1]

    def __setitem__(self, key: T, value: U) -> None:
        """Store a value for this very object."""
        self._entries[id(key)] = (key, value)

    def __delitem__(self, key: T) -> None:
        """Forget this very object."""
        del self._entries[id(key)]

    def __contains__(self, key: object) -> bool:
        """Whether this very object is a key."""
        return id(key) in self._entries

    def __iter__(self) -> Iterator[T]:
        """The keys in the order in which they came."""
        return (key for key, _ in self._entries.values())

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._entries)

    def __repr__(self) -> str:
        return f"IdentityMap({list(self._entries.values())!r})"


class StringHolderEnum(type):
    """Metaclass for a class that only holds string constants: its members are plain `str`."""

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> type:
        """Collect the string attributes into `__members__`."""
        members["__members__"] = {k: v for k, v in members.items() if isinstance(v, str) and not k.startswith("_")}
        return super().__new__(cls, name, bases, members)


def safe_update_wrapper(wrapper: Any, wrapped: Callable) -> Any:
    """`functools.update_wrapper` for any callable: what `wrapped` lacks (a partial has no name) is left out.

    Args:
        wrapper: The object that gets name, docstring and signature.
        wrapped: The callable that has them.

    Returns:
        `wrapper`.

    Source:
        `functools.update_wrapper`
    """
    # the attributes of a function are its own; those of a callable object (a module's fields) are not the wrapper's
    updated = functools.WRAPPER_UPDATES if inspect.isfunction(wrapped) else ()
    functools.update_wrapper(wrapper, wrapped, updated=updated)
    if getattr(wrapper, "__name__", None) is None:
        inner = wrapped.func if isinstance(wrapped, functools.partial) else wrapped
        wrapper.__name__ = getattr(inner, "__name__", type(inner).__name__)
        wrapper.__qualname__ = getattr(inner, "__qualname__", wrapper.__name__)
    return wrapper


def safe_wraps(fn: Callable) -> Callable[[T], T]:
    """Decorator form of `safe_update_wrapper`: give a wrapper the name, docstring and signature of `fn`.

    Args:
        fn: The function that is wrapped, or any callable.

    Returns:
        A decorator for the wrapper.

    Source:
        `functools.wraps`
    """
    return functools.partial(safe_update_wrapper, wrapped=fn)


def renamed(fn: F, name: str, module: str | None = None) -> F:
    """A function under a second name, by which it goes everywhere: in its `__name__`, in `help`, and for pickle.

    Args:
        fn: A function.
        name: The second name.
        module: Where it has that name; the module of `fn` by default.

    Returns:
        A function with the same code.
    """
    made: Any = types.FunctionType(fn.__code__, fn.__globals__, name, fn.__defaults__, fn.__closure__)
    for attribute in ("__kwdefaults__", "__annotations__", "__doc__"):
        setattr(made, attribute, getattr(fn, attribute))
    made.__dict__.update(fn.__dict__)
    made.__qualname__, made.__module__ = name, module or fn.__module__
    return made
