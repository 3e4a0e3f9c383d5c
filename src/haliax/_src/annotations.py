"""What an annotation says of a named array: `NamedArray["batch ... embed"]`.

All forms are parsed to one `NamedArrayAxes`, which knows whether an array agrees. An annotation is
`Annotated[C, axes]`: who reads annotations finds the axes, and who checks arguments (beartype, typeguard, jaxtyping's
import hook) asks whether they are instances of the class C, of which the arrays that agree are the instances.
"""

from __future__ import annotations

import copyreg
import dataclasses
import functools
import re
from collections.abc import Sequence, Set
from types import EllipsisType
from typing import Annotated, Any, TypeAlias, get_args, get_origin

import jax.numpy as jnp

from haliax._src.array_base import NamedArrayBase
from haliax._src.axis import Axis
from haliax._src.errors import duplicate_axes, problem, wrong_type

_FORMS = 'a string such as "batch ... embed" or "{batch embed}", or a sequence or set of names and `...`'
# what else jaxtyping allows in a string would be taken for part of a name
_NAME = re.compile(r"[^\s{},=*#?]+")


@dataclasses.dataclass(frozen=True)
class DTypeCategory:
    """A set of dtypes.

    Args:
        name: What annotations call it.
        category: Any dtype or abstract dtype that `jax.numpy.issubdtype` takes, such as `jnp.floating`.
    """

    name: str
    category: Any

    def __repr__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True, repr=False)
class NamedArrayAxes:
    """The axes, and perhaps the dtype, that an annotation asks of a named array.

    Args:
        before: The names of the axes; if there may be others, those in front of them.
        after: The names of the axes behind the others.
        ordered: Whether the axes must come in this order.
        subset: Whether there may be other axes.
        dtype: A dtype, an abstract one such as `jnp.floating`, or a `DTypeCategory`; None for any.

    Raises:
        TypeError: If something else than a name is given.
        ValueError: If a name repeats.
    """

    before: tuple[str, ...]
    after: tuple[str, ...] = ()
    ordered: bool = True
    subset: bool = False
    dtype: Any = None

    def __post_init__(self):
        """Check the names, and bring specifications that mean the same into the same form, so that they are equal."""
        before = _checked_names("NamedArrayAxes", "before", self.before)
        after = _checked_names("NamedArrayAxes", "after", self.after)
        if len({*before, *after}) < len(before) + len(after):
            raise duplicate_axes("NamedArrayAxes", (*before, *after))
        if not self.subset or not self.ordered:
            before, after = (*before, *after), ()
        object.__setattr__(self, "before", before if self.ordered else tuple(sorted(before)))
        object.__setattr__(self, "after", after)

    def agree_with(self, array: NamedArrayBase) -> bool:
        """Whether an array has these axes and this dtype; what a transformation put in the place of one has not."""
        raw, names = array.array, array.axis_names
        shape = getattr(raw, "shape", None)
        if not isinstance(shape, tuple) or len(shape) != len(names):
            return False
        return self._allow_names(names) and self._allow_dtype(getattr(raw, "dtype", None))

    def _allow_names(self, names: tuple[str, ...]) -> bool:
        if not self.ordered:
            return set(self.before) <= set(names) if self.subset else set(self.before) == set(names)
        if not self.subset:
            return names == self.before
        rest = len(names) - len(self.after)
        return rest >= len(self.before) and names[: len(self.before)] == self.before and names[rest:] == self.after

    def _allow_dtype(self, dtype: Any) -> bool:
        if self.dtype is None:
            return True
        wanted = self.dtype.category if isinstance(self.dtype, DTypeCategory) else self.dtype
        return dtype is not None and bool(jnp.issubdtype(dtype, wanted))

    def describe(self, array_type: str = "NamedArray") -> str:
        """The annotation of an array class as it is written, such as `f32[NamedArray, "batch ..."]`."""
        names = [*self.before, *["..."] * self.subset, *self.after]
        if all(map(_NAME.fullmatch, names)):
            axes = " ".join(names)
            axes = f'"{axes}"' if self.ordered else f'"{{{axes}}}"'
        else:
            # a string would be split at the space in a name
            axes = ", ".join("..." if name == "..." else repr(name) for name in names)
            comma = "," if len(names) == 1 else ""
            axes = f"({axes}{comma})" if self.ordered else f"{{{axes}}}"
        return f"{array_type}[{axes}]" if self.dtype is None else f"{_dtype_name(self.dtype)}[{array_type}, {axes}]"

    def __repr__(self) -> str:
        return self.describe()


NamedArrayAxesSpec: TypeAlias = NamedArrayAxes | str | Sequence[str | EllipsisType] | Set[str | EllipsisType]
"""The forms in which an annotation gives axes: a string, names in order, or a set of names; `...` for any others."""


# --- Parsing ---


def parse_axes(op: str, spec: Any) -> NamedArrayAxes:
    """The axes that any of the forms of an annotation asks for.

    Args:
        op: The operation that a message names.
        spec: One of the forms of `NamedArrayAxesSpec`, `...` for any axes, or an annotation made from one.

    Returns:
        The axes.

    Raises:
        TypeError: If it is none of these, or has more than one `...`.
        ValueError: If a name repeats.
    """
    if isinstance(spec, NamedArrayAxes):
        return spec
    if isinstance(spec, ArrayClass):
        return spec.requirement
    if get_origin(spec) is Annotated:
        for found in get_args(spec)[1:]:
            if isinstance(found, NamedArrayAxes):
                return found
    if spec is ...:
        return NamedArrayAxes((), subset=True)
    if isinstance(spec, str):
        return _from_entries(op, *_read(op, spec))
    if isinstance(spec, Sequence | Set):
        return _from_entries(op, list(spec), ordered=not isinstance(spec, Set))
    raise wrong_type(op, "the annotation", spec, _FORMS, _use_name(spec))


def _read(op: str, spec: str) -> tuple[list[str], bool]:
    """The words of a string, and whether their order matters: within braces it does not."""
    text = spec.strip()
    ordered = not (text.startswith("{") and text.endswith("}"))
    words = (text if ordered else text[1:-1]).split()
    for word in words:
        if word != "..." and ("..." in word or not _NAME.fullmatch(word)):
            given = f"{word!r} in {spec!r} is no axis name"
            expected = "expected names between spaces, and `...` for any others, all within braces if in any order"
            remedy = "Sizes are left out; a name with other characters goes into a tuple of names."
            raise TypeError(problem(op, given, expected, remedy))
    return words, ordered


def _from_entries(op: str, entries: list[Any], ordered: bool) -> NamedArrayAxes:
    dots = [i for i, entry in enumerate(entries) if entry is ... or (isinstance(entry, str) and entry == "...")]
    if len(dots) > 1:
        raise TypeError(problem(op, f"`...` occurs {len(dots)} times in the annotation", "expected at most one"))
    parts = entries, []
    if dots:
        parts = entries[: dots[0]], entries[dots[0] + 1 :]
    before, after = (_checked_names(op, "the annotation", part) for part in parts)
    return NamedArrayAxes(before, after, ordered, subset=bool(dots))


def _checked_names(op: str, where: str, names: Any) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise wrong_type(op, where, names, "a sequence of axis names")
    for name in names:
        if not isinstance(name, str):
            raise wrong_type(op, f"an entry of {where}", name, "an axis name", _use_name(name))
    return tuple(names)


def _use_name(given: Any) -> str:
    return f"Use its name, {given.name!r}: sizes are left out." if isinstance(given, Axis) else ""


def _dtype_name(dtype: Any) -> str:
    """The name in `haxtyping` of a dtype: `f32` for float32."""
    if isinstance(dtype, DTypeCategory):
        return dtype.name
    name = getattr(dtype, "__name__", str(dtype))
    return re.sub(r"^(bf|f|u|i)(?:loat|int|nt)(?=\d+$)", r"\1", {"bool": "bool_"}.get(name, name))


# --- Annotations ---


class ArrayClass(type):
    """The class of a class whose instances are the arrays of `array_type` that agree with `requirement`."""

    array_type: type
    requirement: NamedArrayAxes

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.array_type) and cls.requirement.agree_with(x)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """An array of the class without requirements, which alone is known to JAX."""
        return cls.array_type(*args, **kwargs)

    def __eq__(cls, other: object) -> bool:
        if not isinstance(other, ArrayClass):
            return NotImplemented
        return (cls.array_type, cls.requirement) == (other.array_type, other.requirement)

    def __hash__(cls) -> int:
        return hash((cls.array_type, cls.requirement))


# to make a class takes 40 us, and a program writes few different annotations many times
@functools.lru_cache(maxsize=256)
def array_class(array_type: type, requirement: NamedArrayAxes) -> ArrayClass:
    """The class of those arrays of a class that agree with a requirement."""
    name = requirement.describe(array_type.__name__)
    namespace = {"__slots__": (), "__module__": "haliax", "array_type": array_type, "requirement": requirement}
    return ArrayClass(name, (array_type,), namespace)


copyreg.pickle(ArrayClass, lambda cls: (array_class, (cls.array_type, cls.requirement)))  # pyright: ignore[reportArgumentType]


def annotate(op: str, array_type: type, spec: Any, dtype: Any = None) -> Any:
    """The annotation for arrays of a class with these axes and this dtype.

    Args:
        op: The operation that a message names.
        array_type: `NamedArray` or a class below it.
        spec: Any of the forms that `parse_axes` takes.
        dtype: A dtype or `DTypeCategory`; None to keep that of `spec`, if it has one.

    Returns:
        `Annotated[C, axes]`, of which C is a class with the arrays that agree as its instances.

    Raises:
        TypeError: If `spec` is malformed.
    """
    axes = parse_axes(op, spec)
    axes = axes if dtype is None else dataclasses.replace(axes, dtype=dtype)
    return Annotated[array_class(array_type, axes), axes]  # pyright: ignore[reportInvalidTypeForm]


def class_getitem(cls: type, axes: NamedArrayAxesSpec | EllipsisType) -> Any:
    """The annotation for named arrays with these axes, as in `x: NamedArray["batch ... embed"]`.

    Args:
        cls: The class of the arrays.
        axes: The names in order, in a string or each by itself, where one `...` stands for any others; or, for any
            order, a set of them or a string in braces.

    Returns:
        `Annotated[...]`, which runtime type checkers check and static ones take for the class itself.

    Raises:
        TypeError: If `axes` is malformed.
    """
    return annotate(f"{cls.__name__}[...]", cls, axes)


def matches_axes(array: NamedArrayBase, spec: Any) -> bool:
    """Whether an array has the axes, and the dtype, that an annotation asks for.

    Args:
        array: The array.
        spec: The axes in any form that an annotation takes, or an annotation, such as `Float[NamedArray, "batch ..."]`.

    Returns:
        A bool, known while tracing.

    Raises:
        TypeError: If `spec` is malformed.
    """
    return parse_axes("matches_axes", spec).agree_with(array)
