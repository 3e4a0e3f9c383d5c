"""Finding what is wrong with a module before it goes wrong in training, without a look at any value.

Each finder below knows one kind of mistake and yields a `Problem` for each one that it finds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from haliax._src import jax_compat
from haliax._src.array_base import NamedArrayBase, raw_array_or_scalar
from haliax._src.errors import problem
from haliax._src.layout_text import describe_devices
from haliax._src.module_contents import Contents, arrays_in, contents_of, hidden_arrays, is_array
from haliax._src.repr import describe_axes

_SHOWN = 4  # paths in one line


@dataclasses.dataclass(frozen=True)
class Problem:
    """One mistake in a module.

    Args:
        kind: A word or two for it, such as "reused array".
        paths: Where it is.
        given: What is there, and why that is a mistake.
        remedy: What to do.
        array: The array, if it is about one.
    """

    kind: str
    paths: tuple[str, ...]
    given: str
    remedy: str
    array: Any = dataclasses.field(default=None, repr=False)

    def __str__(self) -> str:
        shown = self.paths if len(self.paths) <= _SHOWN else (*self.paths[: _SHOWN - 1], f"{len(self.paths) - 3} more")
        return problem(", ".join(path or "(itself)" for path in shown), self.given, remedy=self.remedy)


class ModuleProblems(Exception):
    """What `diagnose_common_issues` found; `str` lists it.

    Args:
        problems: The mistakes.
        name: The name of the module's class.
    """

    def __init__(self, problems: Sequence[Problem] = (), name: str = "the module"):
        """Keep the problems."""
        super().__init__(problems, name)
        self.problems = tuple(problems)
        self.name = name

    @property
    def reused_arrays(self) -> list[tuple[Any, list[str]]]:
        """Each array that occurs several times, with its paths."""
        return [(found.array, list(found.paths)) for found in self.problems if found.kind == "reused array"]

    @property
    def static_arrays(self) -> list[str]:
        """The paths of arrays in static fields."""
        return [path for found in self.problems if found.kind == "static array" for path in found.paths]

    def __str__(self) -> str:
        count = len(self.problems)
        heading = f"diagnose_common_issues: {count or 'no'} problem{'s' if count != 1 else ''} in {self.name}"
        return "\n".join([f"{heading}{':' if count else '.'}", *(f"  {found}" for found in self.problems)])


def diagnose_common_issues(module: Any) -> None:
    """Look for common mistakes in a module: shared and hidden arrays, static ones, arrays that lie apart, and others.

    No array is read, so it is cheap for a model of any size, and works on traced ones.

    Args:
        module: An Equinox module, or any pytree.

    Raises:
        ModuleProblems: If there are any, with the path of each, what it leads to and what to do.

    Source:
        `equinox.tree_check`
    """
    contents = contents_of(module)
    arrays = [(path, leaf) for path, leaf in contents.leaves if is_array(raw_array_or_scalar(leaf))]
    problems = [
        *_reused(arrays),
        *_static(contents),
        *_hidden(contents),
        *_misnamed(arrays),
        *_numpy(arrays),
        *_deleted(arrays),
        *_apart(arrays),
        *_mixed_precision(arrays),
        *_weakly_typed(arrays),
    ]
    if problems:
        raise ModuleProblems(problems, type(module).__name__)


Arrays = Sequence[tuple[str, Any]]
"""The named and raw arrays among the leaves, each with its path."""


def _describe(leaf: Any) -> str:
    return describe_axes(raw_array_or_scalar(leaf), leaf.axis_names if isinstance(leaf, NamedArrayBase) else None)


def _reused(arrays: Arrays) -> Iterator[Problem]:
    """One array at several places, as when weights are tied by assignment."""
    places: dict[int, list[tuple[str, Any]]] = {}
    for path, leaf in arrays:
        places.setdefault(id(raw_array_or_scalar(leaf)), []).append((path, leaf))
    for found in places.values():
        if len(found) > 1:
            paths, (first, *_) = zip(*found, strict=True)
            given = f"the same array, {_describe(first)}, which an update makes {len(paths)} arrays that differ"
            remedy = "Keep it at one place and use it from there (see eqx.nn.Shared), or copy it."
            yield Problem("reused array", paths, given, remedy, raw_array_or_scalar(first))


def _static(contents: Contents) -> Iterator[Problem]:
    """Static fields whose values are no constants."""
    for path, value in contents.statics:
        arrays = list(arrays_in(value))
        for inner, leaf in arrays:
            given = f"an array, {_describe(leaf)}, in a static field; nothing trains or shards it"
            remedy = "Make the field a normal one; jax.lax.stop_gradient keeps it from being trained."
            yield Problem("static array", (path + inner,), given, remedy, raw_array_or_scalar(leaf))
        if not arrays and not _is_hashable(value):
            given = f"a {type(value).__name__} in a static field; jit does not see when it is changed in place"
            remedy = "Use a value that does not change: a tuple, a frozenset, a frozen dataclass."
            yield Problem("mutable static value", (path,), given, remedy)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _hidden(contents: Contents) -> Iterator[Problem]:
    """Arrays inside of leaves: in closures and partials, in objects that are no pytrees."""
    for path, leaf in contents.leaves:
        if is_array(raw_array_or_scalar(leaf)):
            continue
        holder = raw_array_or_scalar(leaf)
        for inner, array in hidden_arrays(holder):
            what = (
                "a function" if callable(holder) else f"an object that is no pytree, of class {type(holder).__name__}"
            )
            given = f"an array, {_describe(array)}, hidden in {what}; nothing trains or shards it"
            remedy = "Make it a field of a module (jax.tree_util.Partial is a functools.partial that is a pytree)."
            yield Problem("hidden array", (path + inner,), given, remedy, raw_array_or_scalar(array))


def _misnamed(arrays: Arrays) -> Iterator[Problem]:
    """Named arrays whose names do not fit, which a transformation of pytrees can make."""
    for path, leaf in arrays:
        if not isinstance(leaf, NamedArrayBase):
            continue
        if len(leaf.array.shape) != len(leaf.axis_names):
            given = f"{_describe(leaf)}, with more or fewer names than dimensions"
            remedy = "Use haliax.vmap and haliax.scan, which keep names and dimensions together."
            yield Problem("names do not fit", (path,), given, remedy)
        elif len(set(leaf.axis_names)) != len(leaf.axis_names):
            yield Problem("repeated name", (path,), f"{_describe(leaf)}, where a name occurs twice", "Rename one axis.")


def _numpy(arrays: Arrays) -> Iterator[Problem]:
    """Arrays of numpy, which eqx.is_array denies."""
    for path, leaf in arrays:
        if isinstance(raw_array_or_scalar(leaf), np.ndarray):
            given = (
                f"a numpy array, {_describe(leaf)}: eqx.is_array leaves it out, and every call copies it to the device"
            )
            yield Problem("numpy array", (path,), given, "Convert it with jnp.asarray.")


def _deleted(arrays: Arrays) -> Iterator[Problem]:
    """Arrays that are gone, most often donated."""
    for path, leaf in _on_devices(arrays):
        if raw_array_or_scalar(leaf).is_deleted():
            given = f"{_describe(leaf)}, which has been deleted, most often by donating it to a jitted function"
            yield Problem("deleted array", (path,), given, "Use what that function returned.")


def _apart(arrays: Arrays) -> Iterator[Problem]:
    """Arrays that are committed to different devices, which JAX refuses to use together."""
    groups: dict[tuple[Any, ...], list[tuple[str, Any]]] = {}
    for path, leaf in _on_devices(arrays):
        array = raw_array_or_scalar(leaf)
        if array.committed and not array.is_deleted():
            groups.setdefault(jax_compat.device_order(array.sharding), []).append((path, array.sharding))
    if len(groups) > 1:
        where = [
            f"{found[0][0] or '(itself)'}{_and_more(found)} on {describe_devices(found[0][1])}"
            for found in groups.values()
        ]
        given = f"arrays on different devices, or on the same in another order ({'; '.join(where)})"
        paths = tuple(found[0][0] for found in groups.values())
        yield Problem("arrays apart", paths, given, "Bring them to one mesh with haliax.shard(module, mapping, mesh).")


def _and_more(found: Sequence[Any]) -> str:
    return f" and {len(found) - 1} more" if len(found) > 1 else ""


def _mixed_precision(arrays: Arrays) -> Iterator[Problem]:
    """Numbers of 64 bits among smaller ones, which they make 64 bits too."""
    floats = [(path, leaf) for path, leaf in _on_devices(arrays) if jnp.issubdtype(_dtype(leaf), jnp.inexact)]
    wide = [(path, leaf) for path, leaf in floats if jnp.finfo(_dtype(leaf)).bits == 64]
    for path, leaf in wide if len(wide) < len(floats) else ():
        given = f"{_describe(leaf)} among arrays of fewer bits, whose results it widens"
        yield Problem("mixed precision", (path,), given, "Convert it with astype.")


def _weakly_typed(arrays: Arrays) -> Iterator[Problem]:
    """Arrays made of Python numbers, whose dtype gives way to others."""
    for path, leaf in _on_devices(arrays):
        if getattr(raw_array_or_scalar(leaf), "weak_type", False):  # typed keys have none
            given = (
                f"{_describe(leaf)} is weakly typed; after an update it is not, and jitted functions are traced again"
            )
            yield Problem("weak type", (path,), given, "Make it with a dtype: jnp.asarray(1.0, jnp.float32).")


def _dtype(leaf: Any) -> Any:
    return raw_array_or_scalar(leaf).dtype


def _on_devices(arrays: Arrays) -> Iterator[tuple[str, Any]]:
    """The arrays that JAX has, without traced ones."""
    for path, leaf in arrays:
        array = raw_array_or_scalar(leaf)
        if isinstance(array, jax.Array) and not isinstance(array, Tracer):
            yield path, leaf
