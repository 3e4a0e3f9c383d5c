"""What Python and numpy ask of an array: to be a number, a numpy array, a string.

A named array of one element is a number, as in `jax.numpy`. It is no sequence, since its axes have no order to rely on.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any, NoReturn

import jax
import numpy as np
import wadler_lindig as wl
from jax.core import Tracer

from haliax._src import repr as _repr, treescope_view
from haliax._src.array_base import A, NamedArrayBase, raw_array_or_scalar
from haliax._src.errors import bad_value, format_shape, problem


class ArrayProtocols(NamedArrayBase):
    """A named array as Python and numpy see it."""

    __slots__ = ()

    # a numpy array on the left of an operator leaves the operation to us
    __array_priority__ = 1000
    __array_ufunc__ = None

    # a frozen dataclass with slots refuses changes too, but by a TypeError for subclasses (python/cpython#91126)
    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise _unchangeable(name)

    def __delattr__(self, name: str) -> NoReturn:
        raise _unchangeable(name)

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.array.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.axis_names)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._sizes())

    @property
    def nbytes(self) -> int:
        """The number of bytes that the elements take."""
        return self.size * self.array.dtype.itemsize

    # numpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.array, dtype=dtype, copy=copy)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        # numpy sees the array without its names, as in `numpy.asarray`
        raw = jax.tree.map(raw_array_or_scalar, (args, kwargs), is_leaf=lambda x: isinstance(x, NamedArrayBase))
        return func(*raw[0], **raw[1])

    def tolist(self) -> Any:
        """The elements as nested lists of numbers; a number if there are no axes."""
        return np.asarray(self.array).tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """The bytes of the elements, by default with the last axis fastest."""
        return np.asarray(self.array).tobytes(order=order)  # pyright: ignore[reportArgumentType]

    # numbers

    def item(self) -> Any:
        """The one element, as a Python number.

        Raises:
            ValueError: If there is not exactly one.
        """
        self._require_one_element("item", "Use tolist() for all of them.")
        return self.array.item()

    def __bool__(self) -> bool:
        self._require_one_element("bool", "Reduce it with any() or all(), or choose elements with haliax.where.")
        return bool(self.array)

    def __int__(self) -> int:
        return int(self._number("int"))

    def __float__(self) -> float:
        return float(self._number("float"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def __index__(self) -> int:
        return operator.index(self._number("index"))

    def __round__(self: A, ndigits: int | None = None) -> A:
        # as for a number: without digits, integers
        return self.like(round(self.array, ndigits), self.axis_names)

    def _require_one_element(self, op: str, remedy: str) -> None:
        if self.axis_names and self.size != 1:
            raise bad_value(op, f"the array has {format_shape(self.shape)}", "expected one element", remedy)

    def _number(self, op: str) -> Any:
        """The array itself, if it has no axes."""
        if self.axis_names:
            given = f"the array has {format_shape(self.shape)}"
            raise TypeError(problem(op, given, "expected no axes", "Reduce it, or take one element."))
        return self.array

    # no sequence

    def __len__(self) -> NoReturn:
        raise TypeError(problem("len", self._has(), "which one counts is not said", "Use size, or axis_size(axis)."))

    def __iter__(self) -> Iterator[NoReturn]:
        remedy = "Use unbind(axis) for the arrays along one axis."
        raise TypeError(problem("iter", self._has(), "along which one to go is not said", remedy))

    def __contains__(self, item: Any) -> NoReturn:
        remedy = "Use has_axis(name) for an axis, and any(x == value) for an element."
        raise TypeError(problem("in", self._has(), "an axis or an element is not said", remedy))

    def _has(self) -> str:
        return f"the array has {format_shape(dict.fromkeys(self.axis_names))}"

    # strings

    def __repr__(self) -> str:
        return _repr.show(self)

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        number = self._number("format")
        if isinstance(number, Tracer):
            remedy = f'Print it when the program runs: jax.debug.print("{{x:{spec}}}", x=...).'
            raise TypeError(problem("format", "the array is traced, and has no value yet", remedy=remedy))
        return format(number, spec)

    def __pdoc__(self, *, short_arrays: bool = True, **kwargs: Any) -> wl.AbstractDoc:
        """The document for `wadler_lindig`, which pretty-prints equinox modules; `short_arrays` leaves values out."""
        if not short_arrays:
            return wl.TextDoc(repr(self))
        return wl.TextDoc(f"{type(self).__name__}({_repr.describe_axes(self.array, self.axis_names, short=True)})")

    def __treescope_repr__(self, path: str | None, subtree_renderer: Any) -> Any:
        return treescope_view.render(self, path, subtree_renderer)

    def __treescope_ndarray_adapter__(self) -> treescope_view.NamedArrayAdapter | None:
        return treescope_view.adapter(self)


def _unchangeable(name: str) -> AttributeError:
    return AttributeError(
        problem("NamedArray", f"the attribute {name!r} can not change", remedy="Make another array, as operations do.")
    )
