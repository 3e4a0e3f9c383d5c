"""Random arrays by axes: each function is the one of `jax.random` of its name, with axes in place of a shape.

The same key gives the same numbers as `jax.random` for the sizes of the axes. A parameter of a distribution may be a
named array; it is broadcast by name. The result is laid out by the axis mapping in force, if there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import jax.random as jrandom

from haliax._src.array_base import A, NamedArrayBase, NamedOrNumeric, is_scalar, require_named, wrap
from haliax._src.axis import Axis, AxisSelector, AxisSpec
from haliax._src.broadcasting import alignment, as_scalar, not_a_scalar
from haliax._src.creation import names_and_sizes
from haliax._src.errors import bad_value, duplicate_axes, format_shape, problem, size_mismatch, wrong_dtype, wrong_type
from haliax._src.jax_helpers import as_key
from haliax._src.named_array import NamedArray
from haliax._src.sharding import auto_sharded
from haliax.types import DTypeLike

PRNGKey: TypeAlias = jax.Array
"""A key: typed, of `jax.random.key`, or raw, of `jax.random.PRNGKey`."""


def _sample(
    fn: Callable[..., jax.Array], key: PRNGKey, shape: AxisSpec, params: dict[str, Any] | None = None, **options: Any
) -> NamedArray:
    """Draw from a distribution of `jax.random`, each of whose parameters is aligned with the axes of the result."""
    op = fn.__name__
    key = as_key(op, key)
    names, sizes = names_and_sizes(op, shape, options.get("dtype"))
    raw = {name: _aligned(op, name, value, names, sizes) for name, value in (params or {}).items()}
    try:
        return auto_sharded(wrap(fn(key, shape=sizes, **raw, **options), names))
    except (TypeError, ValueError) as refusal:
        _explain_dtypes(op, fn, key, raw, options)
        raise refusal


def _explain_dtypes(op: str, fn: Callable[..., Any], key: Any, raw: dict[str, Any], options: dict[str, Any]) -> None:
    """Raise an error about the dtypes of the result and of the parameters, if those are what `jax.random` refuses."""
    try:
        jax.eval_shape(lambda key: fn(key, shape=(), **dict.fromkeys(raw, 0.5), **options), key)
    except (TypeError, ValueError) as refusal:
        if "dtype" in options:
            given = f"the dtype is {jnp.dtype(options['dtype'])}"
            raise TypeError(problem(op, given, f"jax.random.{op} gives no such numbers")) from refusal
        return
    for name, value in raw.items():
        if not jnp.issubdtype(jnp.result_type(value), jnp.floating):
            raise wrong_dtype(op, name, jnp.result_type(value), "a float")


def _aligned(op: str, param: str, value: Any, names: tuple[str, ...], sizes: tuple[int, ...]) -> Any:
    """A parameter as a raw array that broadcasts against an array with the given axes."""
    if not isinstance(value, NamedArrayBase):
        if not is_scalar(value):
            raise not_a_scalar(op, value, param)
        return value
    shape = dict(zip(names, sizes, strict=True))
    for name, size in value.shape.items():
        if shape.get(name) != size:
            given = f"{param!r} has {format_shape(value.shape)}"
            raise bad_value(op, given, f"expected axes among those of the result: {format_shape(shape)}")
    return alignment(value.axis_names, names)(value.array)


# without parameters -------------------------------------------------------------------------------------------------


class Sampler(Protocol):
    """A distribution without parameters."""

    __name__: str

    def __call__(self, key: PRNGKey, shape: AxisSpec, dtype: DTypeLike = float) -> NamedArray:
        """Draw an array with the axes of `shape`."""
        ...


def _standard(fn: Callable[..., jax.Array], sentence: str) -> Sampler:
    """The named form of a distribution without parameters."""

    def sampler(key: PRNGKey, shape: AxisSpec, dtype: DTypeLike = float) -> NamedArray:
        return _sample(fn, key, shape, dtype=dtype)

    sampler.__name__ = sampler.__qualname__ = fn.__name__
    sampler.__doc__ = f"""{sentence}

    Args:
        key: The key.
        shape: The axes of the result.
        dtype: The dtype of the result.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.random.{fn.__name__}`
    """
    return sampler


normal = _standard(jrandom.normal, "Standard normal values, real or complex.")
rademacher = _standard(jrandom.rademacher, "Values of -1 and 1 with equal probability.")
exponential = _standard(jrandom.exponential, "Exponentially distributed values with mean 1.")
cauchy = _standard(jrandom.cauchy, "Cauchy distributed values with location 0 and scale 1.")
gumbel = _standard(jrandom.gumbel, "Gumbel distributed values with location 0 and scale 1.")
laplace = _standard(jrandom.laplace, "Laplace distributed values with location 0 and scale 1.")
logistic = _standard(jrandom.logistic, "Logistically distributed values with location 0 and scale 1.")


# with parameters ----------------------------------------------------------------------------------------------------


def uniform(
    key: PRNGKey,
    shape: AxisSpec,
    dtype: DTypeLike = float,
    minval: NamedOrNumeric = 0.0,
    maxval: NamedOrNumeric = 1.0,
) -> NamedArray:
    """Uniformly distributed values in the interval from `minval` (included) to `maxval` (excluded).

    Args:
        key: The key.
        shape: The axes of the result.
        dtype: A float dtype.
        minval: The lower bounds: a scalar, or an array with axes among those of the result.
        maxval: The upper bounds, likewise.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.random.uniform`
    """
    return _sample(jrandom.uniform, key, shape, {"minval": minval, "maxval": maxval}, dtype=dtype)


def randint(
    key: PRNGKey, shape: AxisSpec, minval: NamedOrNumeric, maxval: NamedOrNumeric, dtype: DTypeLike = int
) -> NamedArray:
    """Uniformly distributed integers from `minval` (included) to `maxval` (excluded).

    Args:
        key: The key.
        shape: The axes of the result.
        minval: The lower bounds: a scalar, or an array with axes among those of the result.
        maxval: The upper bounds, likewise.
        dtype: An integer dtype.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.random.randint`
    """
    return _sample(jrandom.randint, key, shape, {"minval": minval, "maxval": maxval}, dtype=dtype)


def truncated_normal(
    key: PRNGKey, shape: AxisSpec, lower: NamedOrNumeric, upper: NamedOrNumeric, dtype: DTypeLike = float
) -> NamedArray:
    """Standard normal values that lie between `lower` and `upper`.

    Args:
        key: The key.
        shape: The axes of the result.
        lower: The lower bounds: a scalar, or an array with axes among those of the result.
        upper: The upper bounds, likewise.
        dtype: A float dtype.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.random.truncated_normal`
    """
    return _sample(jrandom.truncated_normal, key, shape, {"lower": lower, "upper": upper}, dtype=dtype)


def bernoulli(key: PRNGKey, shape: AxisSpec, p: NamedOrNumeric) -> NamedArray:
    """Booleans that are true with probability `p`.

    Args:
        key: The key.
        shape: The axes of the result.
        p: The probabilities: a scalar, or an array with axes among those of the result.

    Returns:
        A boolean array with the axes of `shape`.

    Source:
        `jax.random.bernoulli`
    """
    return _sample(jrandom.bernoulli, key, shape, {"p": p})


def beta(key: PRNGKey, shape: AxisSpec, a: NamedOrNumeric, b: NamedOrNumeric, dtype: DTypeLike = float) -> NamedArray:
    """Beta distributed values.

    Args:
        key: The key.
        shape: The axes of the result.
        a: The first shape parameters: a scalar, or an array with axes among those of the result.
        b: The second shape parameters, likewise.
        dtype: A float dtype.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.random.beta`
    """
    return _sample(jrandom.beta, key, shape, {"a": a, "b": b}, dtype=dtype)


def gamma(key: PRNGKey, shape: AxisSpec, a: NamedOrNumeric, dtype: DTypeLike = float) -> NamedArray:
    """Gamma distributed values with scale 1.

    Args:
        key: The key.
        shape: The axes of the result.
        a: The shape parameters: a scalar, or an array with axes among those of the result.
        dtype: A float dtype.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.random.gamma`
    """
    return _sample(jrandom.gamma, key, shape, {"a": a}, dtype=dtype)


def loggamma(key: PRNGKey, shape: AxisSpec, a: NamedOrNumeric, dtype: DTypeLike = float) -> NamedArray:
    """Logarithms of gamma distributed values with scale 1, exact where `a` is small.

    Args:
        key: The key.
        shape: The axes of the result.
        a: The shape parameters: a scalar, or an array with axes among those of the result.
        dtype: A float dtype.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.random.loggamma`
    """
    return _sample(jrandom.loggamma, key, shape, {"a": a}, dtype=dtype)


def pareto(key: PRNGKey, shape: AxisSpec, b: NamedOrNumeric, dtype: DTypeLike = float) -> NamedArray:
    """Pareto distributed values with scale 1.

    Args:
        key: The key.
        shape: The axes of the result.
        b: The shape parameters: a scalar, or an array with axes among those of the result.
        dtype: A float dtype.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.random.pareto`
    """
    return _sample(jrandom.pareto, key, shape, {"b": b}, dtype=dtype)


def poisson(key: PRNGKey, shape: AxisSpec, lam: NamedOrNumeric, dtype: DTypeLike = int) -> NamedArray:
    """Poisson distributed integers.

    Args:
        key: The key, of the threefry implementation.
        shape: The axes of the result.
        lam: The means: a scalar, or an array with axes among those of the result.
        dtype: An integer dtype.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.random.poisson`
    """
    return _sample(jrandom.poisson, key, shape, {"lam": lam}, dtype=dtype)


def t(key: PRNGKey, shape: AxisSpec, df: NamedOrNumeric, dtype: DTypeLike = float) -> NamedArray:
    """Values of Student's t distribution.

    Args:
        key: The key.
        shape: The axes of the result.
        df: The degrees of freedom: a scalar, or an array with axes among those of the result.
        dtype: A float dtype.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.random.t`
    """
    return _sample(jrandom.t, key, shape, {"df": df}, dtype=dtype)


def weibull_min(
    key: PRNGKey, shape: AxisSpec, scale: NamedOrNumeric, concentration: NamedOrNumeric, dtype: DTypeLike = float
) -> NamedArray:
    """Weibull distributed values.

    Args:
        key: The key.
        shape: The axes of the result.
        scale: The scale parameters: a scalar, or an array with axes among those of the result.
        concentration: The shape parameters, likewise.
        dtype: A float dtype.

    Returns:
        An array with the axes of `shape`.

    Source:
        `jax.random.weibull_min`
    """
    return _sample(jrandom.weibull_min, key, shape, {"scale": scale, "concentration": concentration}, dtype=dtype)


# along an axis ------------------------------------------------------------------------------------------------------


def ball(key: PRNGKey, shape: AxisSpec, D: Axis, p: float = 2.0, dtype: DTypeLike = float) -> NamedArray:
    """Points that are uniformly distributed in the unit ball of the p-norm.

    Args:
        key: The key.
        shape: The axes of the result, without that of the coordinates.
        D: The axis of the coordinates.
        p: The norm.
        dtype: A float dtype.

    Returns:
        An array with the axes of `shape`, then `D`.

    Raises:
        ValueError: If `D` is one of the axes of `shape`.

    Source:
        `jax.random.ball`
    """
    key = as_key("ball", key)
    names, sizes = names_and_sizes("ball", shape, dtype)
    if not isinstance(D, Axis):
        raise wrong_type("ball", "D", D, "an Axis")
    p = as_scalar("ball", p, "p")
    if D.name in names:
        raise duplicate_axes("ball", (*names, D.name))
    return wrap(jrandom.ball(key, D.size, p, sizes, dtype), (*names, D.name))


def categorical(key: PRNGKey, logits: A, axis: AxisSelector, shape: AxisSpec | None = None) -> A:
    """Indices along an axis, with probabilities given by logits.

    Args:
        key: The key.
        logits: Unnormalised logarithms of probabilities, with `axis` and any other axes.
        axis: The axis of the categories.
        shape: The axes of the result: all axes of `logits` but `axis`, and any others. If None, only the former.

    Returns:
        An integer array with the axes of `shape`.

    Raises:
        ValueError: If an axis is missing or has another size.

    Source:
        `jax.random.categorical`
    """
    key = as_key("categorical", key)
    dim = require_named("categorical", logits).require_axis("categorical", axis)
    batch = tuple(name for i, name in enumerate(logits.axis_names) if i != dim)
    if shape is None:
        return logits.like(jrandom.categorical(key, logits.array, dim), batch)

    names, sizes = names_and_sizes("categorical", shape)
    given = dict(zip(names, sizes, strict=True))
    for name in batch:
        size = logits.shape[name]
        if name not in given:
            what = f"the result has {format_shape(given)}"
            raise bad_value("categorical", what, f"expected axis {name!r} of the logits, too")
        if given[name] != size:
            raise size_mismatch("categorical", name, given[name], size, "The result has the size of the logits.")
    if names[len(names) - len(batch) :] == batch:
        return logits.like(jrandom.categorical(key, logits.array, dim, sizes), names)
    # in an order that `jax.random` does not know, the categories come last
    array = alignment(logits.axis_names, (*names, logits.axis_names[dim]))(logits.array)
    return logits.like(jrandom.categorical(key, array, -1, sizes), names)


def choice(
    key: PRNGKey,
    shape: AxisSpec,
    a: A,
    axis: AxisSelector,
    replace: bool = True,
    p: NamedArrayBase | None = None,
) -> A:
    """Elements, or slices, of an array, chosen at random along an axis.

    Args:
        key: The key.
        shape: The axes that take the place of `axis`.
        a: The array to choose from.
        axis: The axis of `a` along which to choose.
        replace: Whether an element may be chosen more than once.
        p: The probabilities, with the axis `axis` only; equal ones if None.

    Returns:
        An array with the axes of `shape` in the place of `axis`.

    Raises:
        ValueError: If an axis is missing, has another size or would occur twice; or if there are too few elements to
            choose from without replacement.

    Source:
        `jax.random.choice`
    """
    key = as_key("choice", key)
    dim = require_named("choice", a).require_axis("choice", axis)
    names, sizes = names_and_sizes("choice", shape)
    result = (*a.axis_names[:dim], *names, *a.axis_names[dim + 1 :])
    if len(set(result)) != len(result):
        raise duplicate_axes("choice", result, "Rename one of them.")
    if p is not None:
        chosen = {a.axis_names[dim]: a.array.shape[dim]}
        if not isinstance(p, NamedArrayBase):
            raise wrong_type("choice", "p", p, f"a NamedArray with {format_shape(chosen)}")
        if p.shape != chosen:
            raise bad_value("choice", f"'p' has {format_shape(p.shape)}", f"expected {format_shape(chosen)}")
    if not replace and math.prod(sizes) > a.array.shape[dim]:
        given = f"{math.prod(sizes)} elements of {format_shape({a.axis_names[dim]: a.array.shape[dim]})}"
        raise bad_value("choice", given, "expected no more than there are without replacement")
    return a.like(jrandom.choice(key, a.array, sizes, replace, None if p is None else p.array, axis=dim), result)


def permutation(key: PRNGKey, x: A, axis: AxisSelector, independent: bool = False) -> A:
    """The elements, or slices, of an array in a random order along an axis.

    Args:
        key: The key.
        x: The array.
        axis: The axis along which to permute.
        independent: Whether each line along `axis` has an order of its own.

    Returns:
        An array with the axes of `x`.

    Raises:
        ValueError: If `x` has no such axis.

    Source:
        `jax.random.permutation`
    """
    key = as_key("permutation", key)
    dim = require_named("permutation", x).require_axis("permutation", axis)
    return x.like(jrandom.permutation(key, x.array, dim, independent), x.axis_names)
