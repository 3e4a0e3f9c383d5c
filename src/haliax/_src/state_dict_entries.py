"""What is known of the entries of a state dict while a module is loaded from it: looked up, missing, not fitting."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

import jax
from jax.sharding import NamedSharding, PartitionSpec

from haliax._src.errors import nearest
from haliax._src.state_dict_layouts import Layout
from haliax._src.tensor_parts import as_tensor, everything, put, stack

Strict: TypeAlias = bool | Literal["missing"]
"""What is an error: missing and extra entries, missing ones alone, neither."""


class StateDictError(ValueError, KeyError):
    """Entries of a state dict are missing, extra, or do not fit; a KeyError too, as it was for missing ones."""

    __str__ = ValueError.__str__  # that of KeyError shows a repr


@dataclasses.dataclass(frozen=True, eq=False)
class Loaded:
    """What stands in the place of an array of a template.

    Args:
        name: Its name in the state dict; layers of a stack have `*` in the place of their number.
        tensor: What can be read, or an array that is on devices already.
        key: Of typed keys, which the tensor has as numbers, the kind.
    """

    name: str
    tensor: Any
    key: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return tuple(self.tensor.shape) if self.key is None else tuple(self.tensor.shape[:-1])

    def reshape(self, shape: tuple[int, ...]) -> Loaded:
        """The same elements, row by row, in another shape."""
        end = () if self.key is None else tuple(self.tensor.shape[-1:])
        return dataclasses.replace(self, tensor=self.tensor.reshape((*shape, *end)))

    def put(self, layout: Layout | None) -> jax.Array:
        """The array, in its layout."""
        if self.key is None:
            return put(self.tensor, layout, self.name)
        sharding = getattr(self.tensor, "sharding", None)
        if layout is None and isinstance(sharding, NamedSharding):
            # the numbers of one key must be together
            layout = NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec[: len(self.shape)]))
        return jax.random.wrap_key_data(put(self.tensor, layout, self.name), impl=self.key)


@dataclasses.dataclass(frozen=True)
class Loading:
    """What is found out on the walk.

    Args:
        used: The names looked up.
        missing: What the state dict lacks: the names, and what follows them in an error message.
        unfit: What does not fit, in words.
        partly: What some layers of a stack lack, and others do not, in words.
    """

    used: set[str]
    missing: dict[str, str]
    unfit: list[str]
    partly: list[str]

    @property
    def problems(self) -> int:
        """How many have been found."""
        return len(self.missing) + len(self.unfit) + len(self.partly)

    def copy(self) -> Loading:
        """What is known by now."""
        return Loading(set(self.used), dict(self.missing), list(self.unfit), list(self.partly))

    def go_back(self, before: Loading) -> None:
        """Forget what was found after a copy was made, but for the names that were looked up."""
        self.missing.clear()
        self.missing.update(before.missing)
        self.unfit[:], self.partly[:] = before.unfit, before.partly


_current: ContextVar[Loading | None] = ContextVar("haliax_state_dict_loading", default=None)


class Entries(Mapping[str, Any]):
    """The entries of a state dict, which notes what is looked up; those in files are read then."""

    def __init__(self, entries: Mapping[str, Any], loading: Loading):
        """Note the names that are looked up in `loading`."""
        self._entries, self._loading = entries, loading

    def unread(self, name: str) -> Any:
        """An entry as it is, not read yet if it is in a file."""
        self._loading.used.add(name)
        return self.peek(name)

    def peek(self, name: str) -> Any:
        """The same for one that may not be used."""
        return peek(self._entries, name)

    def __getitem__(self, name: str) -> Any:
        """An entry as an array."""
        if name not in self:
            self._loading.missing[name] = ""
        value = self.unread(name)
        return value.read(everything(value.shape)) if hasattr(value, "read") else value

    def get(self, key: str, default: Any = None) -> Any:
        """An entry as an array, or `default`: what is asked for in this way may be missing."""
        return self[key] if key in self else default

    def copy(self) -> dict[str, Any]:
        """All entries, read."""
        return dict(self)

    def __contains__(self, name: object) -> bool:
        """Whether there is an entry of this name."""
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._entries)

    def __len__(self) -> int:
        """The number of entries."""
        return len(self._entries)


class LayersAtOnce(Entries):
    """The entries of a state dict, and for all layers of a stack together, with `*` for the number of the layer.

    Args:
        entries: The state dict.
        loading: What is known of it.
        prefix: What the names of the stack begin with, with the dot.
        count: The number of layers.
    """

    def __init__(self, entries: Mapping[str, Any], loading: Loading, prefix: str, count: int):
        """Find out which entries belong together; nothing is read."""
        super().__init__(entries, loading)
        first = f"{prefix}0."
        rests = [name.removeprefix(first) for name in entries if name.startswith(first)]
        layers = {f"{prefix}*.{rest}": [f"{prefix}{i}.{rest}" for i in range(count)] for rest in rests}
        self._layers = {name: parts for name, parts in layers.items() if self._can_be_stacked(parts)}

    def _can_be_stacked(self, names: Sequence[str]) -> bool:
        """Whether there are entries of these names, of one shape and dtype."""
        if not all(name in self._entries for name in names):
            return False
        tensors = [as_tensor(peek(self._entries, name)) for name in names]
        return len({(tuple(tensor.shape), str(tensor.dtype)) for tensor in tensors}) == 1

    def unread(self, name: str) -> Any:
        """An entry as it is, or those of all layers, stacked; not read yet if in files."""
        if name not in self._layers:
            return unread(self._entries, name)
        return stack([as_tensor(unread(self._entries, part)) for part in self._layers[name]])

    def of_first_layer(self, name: str) -> Any:
        """An entry as it is, that of the first layer in the place of all."""
        self.unread(name)
        return peek(self._entries, self._layers.get(name, [name])[0])

    def peek(self, name: str) -> Any:
        """The same for one that may not be used."""
        if name not in self._layers:
            return peek(self._entries, name)
        return stack([as_tensor(peek(self._entries, part)) for part in self._layers[name]])

    def __contains__(self, name: object) -> bool:
        """Whether there is an entry of this name."""
        return name in self._layers or name in self._entries

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter([*self._layers, *self._entries])

    def __len__(self) -> int:
        """The number of entries."""
        return len(self._layers) + len(self._entries)


def unread(entries: Mapping[str, Any], name: str) -> Any:
    """An entry of any state dict as it is, not read yet if it is in a file."""
    return entries.unread(name) if isinstance(entries, Entries) else entries[name]


def peek(entries: Mapping[str, Any], name: str) -> Any:
    """The same for one that may not be used."""
    return entries.peek(name) if isinstance(entries, Entries) else entries[name]


@contextlib.contextmanager
def loading_scope(loading: Loading) -> Iterator[None]:
    """A context in which a walk notes what it finds in `loading`."""
    token = _current.set(loading)
    try:
        yield
    finally:
        _current.reset(token)


def loading_now() -> Loading:
    """What is known in the walk that is going on."""
    loading = _current.get()
    assert loading is not None, "a walk begins in `load`"
    return loading


def check(op: str, what: str, loading: Loading, entries: Mapping[str, Any], prefix: str | None, strict: Strict) -> None:
    """Raise one error for all that is missing, extra, or does not fit.

    Args:
        op: The operation.
        what: What was to be loaded.
        loading: What the walk has found out.
        entries: The state dict.
        prefix: Names that begin otherwise are left alone.
        strict: What is an error.
    """
    begin = "" if prefix is None else f"{prefix}."
    extra = [name for name in entries if str(name).startswith(begin) and name not in loading.used]
    # a stack can not take from the template what is missing in some layers alone
    lines = [f"does not fit: {line}" for line in loading.unfit + ([] if strict else loading.partly)]
    if strict:
        missing = loading.missing
        near = nearest if len(missing) * len(extra) <= _MANY else lambda name, names: ""
        lines += [f"missing: {name!r}{shape}{near(name, extra)}" for name, shape in missing.items()]
        if strict is True or lines:  # what is extra may be what is missing, under another name
            lines += [f"extra: {name!r}{near(name, missing)}" for name in extra]
    if not lines:
        return
    places = "1 place" if len(lines) == 1 else f"{len(lines)} places"
    given = f"the state dict and {what} differ in {places}"
    remedy = ""
    if strict and loading.missing:
        remedy = "\nPass strict=False to leave what is missing or extra."
    elif strict is True and extra:
        remedy = '\nPass strict="missing" to leave what is extra.'
    raise StateDictError(f"{op}: {given}:\n  " + "\n  ".join(lines) + remedy)


_MANY = 100_000
"""Pairs of names, beyond which comparing all takes seconds."""


def is_loading() -> bool:
    """Whether this is called within a walk, by a method of a module."""
    return _current.get() is not None
