"""`NamedArray`: the data of `NamedArrayBase` and a table of the operations that are methods.

Each entry is the function itself, so `x.sum("batch")` is `haliax.sum(x, "batch")`.
"""

from __future__ import annotations

from typing import Any

import jax
from jax.tree_util import GetAttrKey

from haliax._src import (
    annotations,
    axiswise,
    broadcasting,
    dot,
    elementwise,
    indexing,
    matrices,
    quantiles,
    rearrange,
    reductions,
    reshape,
    selection,
    slicing,
)
from haliax._src.array_base import A, NamedArrayBase, wrap
from haliax._src.array_protocols import ArrayProtocols
from haliax._src.at import At
from haliax._src.families import Binary
from haliax._src.operators import equality, no_matmul, operator, power, reflected


class NamedArray(ArrayProtocols):
    """An array whose axes have names; operations find axes by name and broadcast by name.

    Args:
        array: The array, of any rank.
        axis_names: One name, or Axis whose size must fit, for each axis.

    Raises:
        ValueError: If names repeat, or their number or a given size does not fit the array.
    """

    __slots__ = ()

    # annotations
    __class_getitem__ = classmethod(annotations.class_getitem)
    matches_axes = annotations.matches_axes

    # operators
    __invert__ = elementwise.invert
    __neg__ = elementwise.negative
    __pos__ = elementwise.positive

    __add__, __radd__ = operator(elementwise.add), reflected(elementwise.add)
    __sub__, __rsub__ = operator(elementwise.subtract), reflected(elementwise.subtract)
    __mul__, __rmul__ = operator(elementwise.multiply), reflected(elementwise.multiply)
    __truediv__, __rtruediv__ = operator(elementwise.true_divide), reflected(elementwise.true_divide)
    __floordiv__, __rfloordiv__ = operator(elementwise.floor_divide), reflected(elementwise.floor_divide)
    __mod__, __rmod__ = operator(elementwise.mod), reflected(elementwise.mod)
    __divmod__, __rdivmod__ = operator(elementwise.divmod), reflected(elementwise.divmod)
    __pow__, __rpow__ = power(elementwise.power), reflected(elementwise.power)
    __matmul__, __rmatmul__ = no_matmul, no_matmul
    __lshift__, __rlshift__ = operator(elementwise.left_shift), reflected(elementwise.left_shift)
    __rshift__, __rrshift__ = operator(elementwise.right_shift), reflected(elementwise.right_shift)
    __and__, __rand__ = operator(elementwise.bitwise_and), reflected(elementwise.bitwise_and)
    __or__, __ror__ = operator(elementwise.bitwise_or), reflected(elementwise.bitwise_or)
    __xor__, __rxor__ = operator(elementwise.bitwise_xor), reflected(elementwise.bitwise_xor)

    # elementwise, as for arrays
    __eq__: Binary = equality(elementwise.equal)  # pyright: ignore[reportIncompatibleMethodOverride]
    __ne__: Binary = equality(elementwise.not_equal)  # pyright: ignore[reportIncompatibleMethodOverride]
    __lt__ = operator(elementwise.less)
    __le__ = operator(elementwise.less_equal)
    __gt__ = operator(elementwise.greater)
    __ge__ = operator(elementwise.greater_equal)
    __hash__ = None  # pyright: ignore[reportAssignmentType]  (equality says nothing about identity)

    # elementwise
    astype = elementwise.astype
    conj = elementwise.conj
    conjugate = elementwise.conjugate
    copy = elementwise.copy
    round = elementwise.round

    # reductions
    all = reductions.all
    any = reductions.any
    argmax = reductions.argmax
    argmin = reductions.argmin
    max = reductions.max
    mean = reductions.mean
    median = quantiles.median
    min = reductions.min
    prod = reductions.prod
    product = reductions.product
    ptp = reductions.ptp
    quantile = quantiles.quantile
    std = reductions.std
    sum = reductions.sum
    var = reductions.var

    # along axes
    argsort = axiswise.argsort
    cumprod = axiswise.cumprod
    cumsum = axiswise.cumsum
    sort = axiswise.sort

    # contraction
    dot = dot.dot

    # parts and triangles
    __getitem__ = indexing.getitem
    clip = selection.clip
    slice = slicing.slice
    take = indexing.take
    updated_slice = slicing.updated_slice
    trace = matrices.trace

    # names and shapes
    broadcast_axis = broadcasting.broadcast_axis
    broadcast_to = broadcasting.broadcast_to
    flatten = reshape.flatten
    flatten_axes = reshape.flatten_axes
    ravel = reshape.ravel
    rearrange = rearrange.rearrange
    rename = reshape.rename
    split = reshape.split
    unbind = reshape.unbind
    unflatten_axis = reshape.unflatten_axis

    # what type checkers take only from a definition

    def __abs__(self) -> NamedArray:
        return elementwise.abs(self)

    @property
    def at(self: A) -> At[A]:
        """Elements to update: `x.at["batch", 0].set(1.0)` is a new array; see `At`."""
        return At(self)

    @property
    def imag(self) -> NamedArray:
        """The imaginary part of each element."""
        return elementwise.imag(self)

    @property
    def real(self) -> NamedArray:
        """The real part of each element."""
        return elementwise.real(self)

    # as a pytree

    def tree_flatten(self) -> tuple[tuple[Any], tuple[str, ...]]:
        """The array, as the one child, and the axis names."""
        return (self.array,), self.axis_names

    @classmethod
    def tree_unflatten(cls, aux: tuple[str, ...], tree: Any) -> NamedArray:
        """The inverse of `tree_flatten`."""
        (array,) = tree
        # no check: a transformation may put anything in place of the array
        return wrap(array, aux)


NamedArrayMeta = type
"""The class of the class `NamedArray`."""

NamedArrayBase.concrete = NamedArray


def _flatten_with_keys(x: NamedArray) -> tuple[tuple[tuple[Any, Any]], tuple[str, ...]]:
    return ((_ARRAY_KEY, x.array),), x.axis_names


_ARRAY_KEY = GetAttrKey("array")

jax.tree_util.register_pytree_with_keys(
    NamedArray, _flatten_with_keys, NamedArray.tree_unflatten, NamedArray.tree_flatten
)
