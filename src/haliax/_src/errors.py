"""One builder for each kind of user error.

A message says the operation, what was given, what was expected and what to do. Builders take names and sizes, never
arrays, so a message can not leak (or wait for) array values.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping


def nearest(name: str, known: Iterable[str]) -> str:
    """A "Did you mean ...?" sentence for a misspelt `name`, or an empty string if nothing is close."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def format_shape(shape: Mapping[str, int | None]) -> str:
    """Axes as `batch=8, time=128`; an axis without a size is shown by name; `no axes` if there are none."""
    return ", ".join(name if size is None else f"{name}={size}" for name, size in shape.items()) or "no axes"


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
    """An argument has a type that the operation can not use; only the type is shown, never the value."""
    kind = type(value).__name__
    article = "an" if kind[0] in "aeiouAEIO" else "a"
    return TypeError(problem(op, f"{argument} is {article} {kind}", f"expected {expected}", remedy))


def wrong_dtype(op: str, argument: str, dtype: object, expected: str, remedy: str = "") -> TypeError:
    """An array has a dtype that the operation can not use."""
    return TypeError(problem(op, f"{argument} has dtype {dtype}", f"expected {expected}", remedy))


def bad_value(op: str, given: str, expected: str, remedy: str = "") -> ValueError:
    """An argument has the right type and a value that makes no sense here."""
    return ValueError(problem(op, given, expected, remedy))
