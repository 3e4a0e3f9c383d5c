"""One builder for each kind of user error.

A message says the operation, what was given, what was expected and what to do. Builders take names and sizes, never
arrays, so a message can not leak (or wait for) array values. Where a value has the wrong type, only its kind is shown.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer


def nearest(name: str, known: Iterable[str]) -> str:
    """A "Did you mean ...?" sentence for a misspelt `name`, or an empty string if nothing is close."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def format_shape(shape: Mapping[str, int | None]) -> str:
    """Axes as `batch=8, time=128`; an axis without a size is shown by name; `no axes` if there are none."""
    return ", ".join(name if size is None else f"{name}={size}" for name, size in shape.items()) or "no axes"


_WORDS = {
    str: "a string",
    types.FunctionType: "a function",
    types.BuiltinFunctionType: "a function",
    types.MethodType: "a method",
}


def kind(value: object) -> str:
    """What a value is, in people's words: `None`, `a float`, `a jax array of shape (3,)`; never the value itself."""
    if value is None or value is ...:
        return "None" if value is None else "`...`"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    word = _WORDS.get(type(value)) or _array_kind(value)
    if word:
        return word
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIO' else 'a'} {name}"


def _array_kind(value: object) -> str | None:
    """What an array without names is; None for anything else."""
    if isinstance(value, np.generic):
        return f"a numpy {value.dtype}"
    if not isinstance(value, jax.Array | np.ndarray):
        return None
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return f"an array of random keys of shape {value.shape}" if value.shape else "a random key"
    origin = "traced" if isinstance(value, Tracer) else "jax" if isinstance(value, jax.Array) else "numpy"
    return f"a {origin} array of shape {value.shape}"


def problem(op: str, given: str, expected: str = "", remedy: str = "") -> str:
    """The common form of a message: `op: given; expected. remedy`."""
    sentence = f"{op}: {given}"
    if expected:
        sentence += f"; {expected}"
    if not sentence.endswith((".", "?", "!")):
        sentence += "."
    return f"{sentence} {remedy.strip()}" if remedy.strip() else sentence


def axis_not_found(op: str, name: str, shape: Mapping[str, int | None], owner: str = "the array has") -> ValueError:
    """An axis was named that the array (or axis specification) does not have."""
    return ValueError(problem(op, f"no axis {name!r}", f"{owner} {format_shape(shape)}", nearest(name, shape)))


def size_mismatch(op: str, name: str, given: int, expected: int, remedy: str = "") -> ValueError:
    """One axis name stands for two sizes."""
    return ValueError(problem(op, f"axis {name!r} has size {given}", f"expected {expected}", remedy))


def duplicate_axes(op: str, names: Iterable[str], remedy: str = "") -> ValueError:
    """An axis name occurs more than once where names must be distinct."""
    names = list(names)
    repeated = [n for i, n in enumerate(names) if n in names[:i]]
    which = ", ".join(repr(n) for n in dict.fromkeys(repeated))
    return ValueError(problem(op, f"axis {which} occurs more than once in ({', '.join(names)})", remedy=remedy))


def wrong_type(op: str, argument: str, value: object, expected: str, remedy: str = "") -> TypeError:
    """An argument has a type that the operation can not use; only its kind is shown, never the value."""
    verb = "are" if argument in ("the axes", "the arrays") else "is"
    return TypeError(problem(op, f"{argument} {verb} {kind(value)}", f"expected {expected}", remedy))


def not_an_axis(op: str, value: object, argument: str = "the axis") -> TypeError:
    """What should name one axis does not."""
    return wrong_type(op, argument, value, "an Axis or a name")


def not_axes(op: str, value: object) -> TypeError:
    """What should name any number of axes does not."""
    return wrong_type(op, "the axes", value, "an Axis, a name, a sequence of those, or a mapping from names to sizes")


def wrong_dtype(op: str, argument: str, dtype: object, expected: str, remedy: str = "") -> TypeError:
    """An array has a dtype that the operation can not use."""
    return TypeError(problem(op, f"{argument} has dtype {dtype}", f"expected {expected}", remedy))


def check_choice(op: str, argument: str, value: object, choices: Iterable[str]) -> None:
    """Raise a ValueError unless `value` is one of some words."""
    choices = list(choices)
    if value not in choices:
        given = f"{argument} is {value!r}" if isinstance(value, str) else f"{argument} is {kind(value)}"
        remedy = nearest(value, choices) if isinstance(value, str) else ""
        raise ValueError(
            problem(op, given, f"expected {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}", remedy)
        )


def check_callable(op: str, fn: object, argument: str = "the function") -> None:
    """Raise a TypeError unless `fn` can be called."""
    if not callable(fn):
        raise wrong_type(op, argument, fn, "a callable")


def check_integer(op: str, argument: str, value: object, least: int | None = None) -> None:
    """Raise unless `value` is an integer, as Python knows it, and not less than `least`."""
    # symbolic sizes of `jax.export` are no integers, and become arrays
    if isinstance(value, bool) or not (isinstance(value, int | np.integer) or hasattr(value, "__jax_array__")):
        raise wrong_type(op, argument, value, "an integer")
    if least is not None and isinstance(value, int | np.integer) and value < least:
        raise ValueError(problem(op, f"{argument} is {value}", f"expected {least} or more"))


def bad_value(op: str, given: str, expected: str, remedy: str = "") -> ValueError:
    """An argument has the right type and a value that makes no sense here."""
    return ValueError(problem(op, given, expected, remedy))
