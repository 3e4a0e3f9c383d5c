"""Discrete Fourier transforms along named axes: each is the `jax.numpy.fft` function of its name.

An Axis whose size is not that of the array says how many points to transform: the array is cut or padded with zeros, as
`n=` does in `jax.numpy.fft`. Several axes make a transform of as many dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import jax.numpy as jnp

from haliax._src.array_base import NamedArrayBase, is_scalar, raw_array_or_scalar, selectors, wrap
from haliax._src.axis import Axis, AxisSelection, axis_name
from haliax._src.describe import documented
from haliax._src.errors import bad_value, wrong_dtype, wrong_type
from haliax._src.families import axiswise, check_unnamed, is_raw, map_tree
from haliax._src.named_array import NamedArray
from haliax._src.reshape import rename

T = TypeVar("T")

_PARAMETERS = {
    "a": "A named array with any axes, a raw array (then `axis` is a number), or a pytree of them.",
    "axis": "The axes to transform; the last one if None. An Axis says how many points of it to take; in a mapping from"
    " axes to sizes, an Axis also says what to call the axis of the result.",
    "norm": "Where to divide by the number of points: `backward` (the default), `ortho` or `forward`.",
}
_ONE_AXIS = {
    **_PARAMETERS,
    "axis": "The axis to transform; the last one if None. An Axis says how many points to take.",
}
_SAME = "An array with the same axes."
_SIZED = "An array with the same axes, in the sizes given."
_REAL = "A real array with the same axes; the last one transformed has the size given, or 2(n - 1)."


@documented(jnp.fft.fft, _PARAMETERS, _SIZED)
def fft(a: T, axis: AxisSelection | None = None, norm: str | None = None) -> T:
    """The discrete Fourier transform."""
    return _transform(jnp.fft.fft, jnp.fft.fftn, a, axis, norm)


@documented(jnp.fft.ifft, _PARAMETERS, _SIZED)
def ifft(a: T, axis: AxisSelection | None = None, norm: str | None = None) -> T:
    """The inverse of `fft`."""
    return _transform(jnp.fft.ifft, jnp.fft.ifftn, a, axis, norm)


@documented(jnp.fft.rfft, _PARAMETERS, "An array with the same axes; the last one transformed has size n/2 + 1.")
def rfft(a: T, axis: AxisSelection | None = None, norm: str | None = None) -> T:
    """The discrete Fourier transform of real numbers, without the half that follows from the other."""
    return _transform(jnp.fft.rfft, jnp.fft.rfftn, a, axis, norm, real=True)


@documented(jnp.fft.irfft, _PARAMETERS, _REAL)
def irfft(a: T, axis: AxisSelection | None = None, norm: str | None = None) -> T:
    """The inverse of `rfft`; an odd number of points must be given as the size of an Axis."""
    return _transform(jnp.fft.irfft, jnp.fft.irfftn, a, axis, norm, points=lambda n: 2 * (n - 1))


@documented(jnp.fft.hfft, _ONE_AXIS, _REAL)
def hfft(a: T, axis: AxisSelection | None = None, norm: str | None = None) -> T:
    """The discrete Fourier transform, which is real, of the first half of what is symmetric up to conjugation."""
    return _transform(jnp.fft.hfft, None, a, axis, norm, points=lambda n: 2 * (n - 1))


@documented(jnp.fft.ihfft, _ONE_AXIS, "An array with the same axes; the one transformed has size n/2 + 1.")
def ihfft(a: T, axis: AxisSelection | None = None, norm: str | None = None) -> T:
    """The inverse of `hfft`."""
    return _transform(jnp.fft.ihfft, None, a, axis, norm, real=True)


@documented(jnp.fft.fftshift, {"x": _PARAMETERS["a"], "axes": "The axes to shift; all of them if None."}, _SAME)
def fftshift(x: T, axes: AxisSelection | None = None) -> T:
    """Move the zero frequency from the start of each axis to its middle."""
    return _shift(jnp.fft.fftshift, x, axes)


@documented(jnp.fft.ifftshift, {"x": _PARAMETERS["a"], "axes": "The axes to shift; all of them if None."}, _SAME)
def ifftshift(x: T, axes: AxisSelection | None = None) -> T:
    """The inverse of `fftshift`."""
    return _shift(jnp.fft.ifftshift, x, axes)


def fftfreq(axis: Axis, d: Any = 1.0) -> NamedArray:
    """The frequency of each point of `fft`.

    Args:
        axis: The axis of the array that is transformed.
        d: The distance between its points.

    Returns:
        An array with this axis.

    Source:
        `jax.numpy.fft.fftfreq`
    """
    size = _points("fftfreq", axis)
    return wrap(jnp.fft.fftfreq(size, d=_spacing("fftfreq", d)), (axis.name,))


def rfftfreq(axis: Axis, d: Any = 1.0) -> NamedArray:
    """The frequency of each point of `rfft`.

    Args:
        axis: The axis of the array that is transformed, before it is halved.
        d: The distance between its points.

    Returns:
        An array with this axis, of size n/2 + 1.

    Source:
        `jax.numpy.fft.rfftfreq`
    """
    size = _points("rfftfreq", axis)
    return wrap(jnp.fft.rfftfreq(size, d=_spacing("rfftfreq", d)), (axis.name,))


def _spacing(op: str, d: Any) -> Any:
    """The distance between points, once it is sure to be a number."""
    d = raw_array_or_scalar(d)
    if not is_scalar(d):
        raise wrong_type(op, "d", d, "a number")
    return d


def _transform(
    one: Callable[..., Any],
    several: Callable[..., Any] | None,
    a: T,
    axis: Any,
    norm: str | None,
    *,
    real: bool = False,
    points: Callable[[int], int] = lambda n: n,
) -> T:
    """Transform each array of a pytree.

    Args:
        one: The function on raw arrays for one axis.
        several: The same for several axes, if there is one.
        a: A named array, a raw array, or a pytree of them.
        axis: The axes; the last one if None.
        norm: Where to divide.
        real: Whether the function takes real numbers only.
        points: From the size of the last axis to the number of points that its transform has by default.
    """
    op = one.__name__
    if norm not in (None, "backward", "ortho", "forward"):
        raise bad_value(op, f"norm is {norm!r}", "expected 'backward', 'ortho' or 'forward'")
    if is_raw(a):
        check_unnamed(op, a, axis)
        return one(_wide(op, a, real), axis=-1 if axis is None else axis, norm=norm)
    if not isinstance(a, NamedArrayBase):
        return map_tree(op, lambda x: _transform(one, several, x, axis, norm, real=real, points=points), a)
    if isinstance(axis, Mapping) and any(isinstance(size, Axis) for size in axis.values()):
        numbers = {name: size.size if isinstance(size, Axis) else size for name, size in axis.items()}
        result = _transform(one, several, a, numbers, norm, real=real, points=points)
        return rename(result, {name: size.name for name, size in axis.items() if isinstance(size, Axis)})
    names, sizes = _plan(op, a, axis, points)

    def transform(x: Any, axis: Any) -> Any:
        x = _wide(op, x, real)
        if isinstance(axis, int):
            return one(x, sizes and sizes[0], axis, norm)
        return cast(Any, several)(x, sizes, axis, norm)

    return axiswise(transform, a, names, single_axis_only=len(names) == 1 or several is None, name=op)


def _plan(
    op: str, a: NamedArrayBase, axis: Any, points: Callable[[int], int]
) -> tuple[tuple[str, ...], tuple[int, ...] | None]:
    """The axes to transform, and how many points of each, unless those are what `jax.numpy` takes by default."""
    axes = a.axis_names[-1:] if axis is None else selectors(op, axis)
    if not axes:
        given = "the array has no axes" if axis is None else "no axes were given"
        raise bad_value(op, given, "expected at least one to transform")
    names = tuple(map(axis_name, axes))
    usual = [a.array.shape[dim] for dim in a.require_axes(op, names)]
    usual[-1] = points(usual[-1])
    sizes = [ax.size if isinstance(ax, Axis) else size for ax, size in zip(axes, usual, strict=True)]
    for name, size in zip(names, sizes, strict=True):
        if size < 1:
            remedy = f"Give the number of points as Axis({name!r}, size)."
            raise bad_value(op, f"a transform of axis {name!r} would have no points", "expected at least one", remedy)
    return names, None if sizes == usual else tuple(sizes)


def _wide(op: str, x: Any, real: bool) -> Any:
    """An array of real numbers in at least float32, if the function takes these alone: it knows no narrower ones."""
    if not real:
        return x
    dtype = jnp.result_type(x)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        raise wrong_dtype(op, "the array", dtype, "real numbers", "Use fft or ifft, or take its real part first.")
    return jnp.astype(x, jnp.promote_types(dtype, jnp.float32)) if jnp.issubdtype(dtype, jnp.floating) else x


def _shift(fn: Callable[..., Any], x: T, axes: Any) -> T:
    def shift(x: Any, axis: Any) -> Any:
        return fn(x, axes=axis)

    return axiswise(shift, x, axes, single_axis_only=False, name=fn.__name__)


def _points(op: str, axis: Axis) -> int:
    """The size of the axis of a transform."""
    if not isinstance(axis, Axis):
        raise wrong_type(op, "axis", axis, "an Axis", "Its size is the number of points.")
    if axis.size < 1:
        raise bad_value(op, f"axis {axis.name!r} has no points", "expected at least one")
    return axis.size
