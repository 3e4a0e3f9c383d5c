"""What JAX leaves to its users: splitting keys, naming scopes and values, checkpoints for any callable, nested scans.

Nothing here knows named arrays: they are pytrees and have a `shape` and a `dtype`, which is enough.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast, overload

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.core import Tracer

from haliax._src.errors import bad_value, check_integer, format_shape, wrong_type
from haliax._src.util import UNSPECIFIED, Unspecified, safe_wraps

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Carry = TypeVar("Carry")


class Static(eqx.Module, Generic[T]):
    """A value that is part of the structure of a pytree, not a leaf of it.

    Args:
        value: Anything with an equality.
    """

    value: T = eqx.field(static=True)


# --- What is it? ---


def is_in_jit() -> bool:
    """Whether operations are being traced here into a program, as under `jax.jit` or in the body of a scan.

    Returns:
        False at top level, also under `jax.vmap` or `jax.grad` alone: these run operations as they come.

    Source:
        `jax.core.Tracer`
    """
    return isinstance(jnp.zeros(()), Tracer)


def is_on_mac_metal() -> bool:
    """Whether the default device is an Apple GPU under the Metal plugin, which lacks some operations."""
    return jax.devices()[0].platform.lower() == "metal"


def is_jax_array_like(x: Any) -> bool:
    """Whether `x` has a shape and a dtype: raw and named arrays, typed keys, tracers, `jax.ShapeDtypeStruct`."""
    return hasattr(x, "shape") and hasattr(x, "dtype")


def is_typed_key(x: Any) -> bool:
    """Whether `x` is an array of typed random keys, as `jax.random.key` makes them."""
    return is_jax_array_like(x) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def struct_of(shape: Sequence[int], dtype: Any, **options: Any) -> jax.ShapeDtypeStruct:
    """An array without elements, in the dtype that it has on devices: numpy may have 64 bits where JAX has not."""
    is_key = jnp.issubdtype(dtype, jax.dtypes.prng_key)
    dtype = dtype if is_key else jax.dtypes.canonicalize_dtype(dtype)
    return jax.ShapeDtypeStruct(tuple(shape), dtype, **options)


def is_scalarish(x: Any) -> bool:
    """Whether `x` is a number or an array, raw or named, without dimensions."""
    if isinstance(x, bool | int | float | complex):
        return True
    return is_jax_array_like(x) and not isinstance(x, type) and len(x.shape) == 0


def ensure_scalar(x: Any, *, name: str = "value") -> Any:
    """A scalar without its names.

    Args:
        x: A number, a raw array of rank 0, or a named array without axes.
        name: What to call it in an error message.

    Returns:
        The array inside a named array; anything else that is no array with dimensions as it is.

    Raises:
        TypeError: If `x` is an array with dimensions.
    """
    if not is_jax_array_like(x):
        return x
    if not is_scalarish(x):
        remedy = f"It has {format_shape(x.shape)}." if isinstance(x.shape, Mapping) else ""
        raise wrong_type("ensure_scalar", name, x, "a scalar", remedy)
    return x.array if hasattr(x, "axis_names") else x


def is_pallas_dslice(x: Any) -> bool:
    """Whether `x` is a dynamic slice of `jax.experimental.pallas`."""
    # the import takes long: where nobody has made it, no such object exists
    pallas = sys.modules.get("jax.experimental.pallas")
    return pallas is not None and isinstance(x, pallas.Slice)


# --- Random keys ---


def as_key(op: str, key: Any) -> jax.Array:
    """A single random key, typed or raw, without names.

    Args:
        op: The operation, for error messages.
        key: The key; a named array without axes may hold it.

    Raises:
        TypeError: If it is no random key, or several.
    """
    raw = key.array if hasattr(key, "axis_names") and hasattr(key, "array") else key
    if is_jax_array_like(raw):
        if is_typed_key(raw):
            if len(raw.shape) == 0:
                return raw
            raise wrong_type(op, "the key", raw, "a single random key", "Map over keys with haliax.vmap.")
        if raw.dtype == jnp.uint32 and len(raw.shape) == 1:
            return raw
    raise wrong_type(op, "the key", raw, "a random key", "Make one with jax.random.key(seed).")


def maybe_rng_split(key: jax.Array | None, num: int = 2) -> Any:
    """Several keys from one; several times None from None.

    Args:
        key: A random key, typed or raw, or None.
        num: How many keys; if 1, it is the given key itself.

    Returns:
        An array of keys with leading dimension `num`, or a list of None.

    Source:
        `jax.random.split`
    """
    check_integer("maybe_rng_split", "the number of keys", num, 0)
    return [None] * num if key is None else shaped_rng_split(as_key("maybe_rng_split", key), (num,))


def shaped_rng_split(key: jax.Array, split_shape: int | Sequence[int] = 2) -> jax.Array:
    """An array of keys of any shape from one key.

    Args:
        key: A random key, typed or raw.
        split_shape: The shape, or the length, of the array of keys; if it holds one key, that is the given one.

    Returns:
        Keys with leading dimensions `split_shape`.

    Source:
        `jax.random.split`
    """
    key = as_key("shaped_rng_split", key)
    shape: tuple[Any, ...] = tuple(split_shape) if isinstance(split_shape, Sequence) else (split_shape,)
    for size in shape:
        check_integer("shaped_rng_split", "a size", size, 0)
    count = math.prod(shape)
    keys = key if count == 1 else jax.random.split(key, count)
    return keys.reshape(*shape, *key.shape)


# --- Names for people and for checkpoint policies ---


@overload
def named_call(f: F, name: str | None = None) -> F: ...
@overload
def named_call(*, name: str | None = None) -> Callable[[F], F]: ...
def named_call(f: Any = UNSPECIFIED, name: str | None = None) -> Any:
    """Run a function under a name that profilers and compiled programs show; with and without arguments.

    Args:
        f: A function, method, classmethod, staticmethod, partial or other callable.
        name: The name; that of the function if not given, of the class for `__call__`.

    Returns:
        What `f` is, running under the name; without `f`, a decorator.

    Source:
        `jax.named_scope`
    """
    if isinstance(f, Unspecified):
        return functools.partial(named_call, name=name)
    if isinstance(f, classmethod | staticmethod):
        return type(f)(named_call(f.__func__, name=name))

    @safe_wraps(f)
    def scoped(*args: Any, **kwargs: Any) -> Any:
        with jax.named_scope(scope):
            return f(*args, **kwargs)

    scope = name or _scope_name(scoped)
    return scoped


def _scope_name(f: Callable[..., Any]) -> str:
    """`Class.method` for a method, `Class` for `Class.__call__`, without the functions in which they were defined."""
    return f.__qualname__.rpartition("<locals>.")[2].removesuffix(".__call__")


def tree_checkpoint_name(x: T, name: str) -> T:
    """Give the arrays of a pytree a name by which a checkpoint policy can save or offload them.

    Args:
        x: A pytree; leaves that are no arrays stay as they are.
        name: The name.

    Returns:
        The same values.

    Source:
        `jax.ad_checkpoint.checkpoint_name`
    """
    return jax.tree.map(lambda leaf: checkpoint_name(leaf, name) if is_jax_array_like(leaf) else leaf, x)


# --- Transformations ---


def filter_checkpoint(fun: F, *, prevent_cse: bool = True, policy: Callable[..., bool] | None = None) -> F:
    """Recompute a function in the backward pass instead of keeping what it computes.

    Args:
        fun: A callable whose arguments and results are any pytrees; leaves that are no arrays are static.
        prevent_cse: Whether to keep the compiler from merging both computations; not needed in the body of a scan.
        policy: Which values to keep; see `jax.checkpoint_policies`. None are kept by default.

    Returns:
        A callable with the same results.

    Source:
        `jax.checkpoint`
    """

    @safe_wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        arrays, rest = eqx.partition((args, kwargs), is_jax_array_like)

        @functools.partial(jax.checkpoint, prevent_cse=prevent_cse, policy=policy)
        def run(arrays: Any) -> Any:
            args, kwargs = eqx.combine(arrays, rest)
            arrays_out, rest_out = eqx.partition(fun(*args, **kwargs), is_jax_array_like)
            return arrays_out, Static(rest_out)

        arrays_out, rest_out = run(arrays)
        return eqx.combine(arrays_out, rest_out.value)

    return cast(F, checkpointed)


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Repeat each leaf of a tree for all leaves of the larger tree that stands in its place.

    Args:
        prefix_tree: A pytree whose structure is a prefix of that of `full_tree`.
        full_tree: A pytree.
        is_leaf: What else to take as a leaf.

    Returns:
        A pytree with the structure of `full_tree` and the leaves of `prefix_tree`.

    Source:
        `jax.tree.broadcast`
    """
    return jax.tree.broadcast(prefix_tree, full_tree, is_leaf=is_leaf)


def multilevel_scan(
    f: Callable[[Carry, Any], tuple[Carry, Any]],
    carry: Carry,
    xs: Any,
    outer_size: int,
    length: int,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Carry, Any]:
    """`jax.lax.scan` as a scan of scans, of which the backward pass keeps only the carries between inner scans.

    It needs memory for `outer_size + length / outer_size` carries rather than `length`, at the cost of one more
    forward pass.

    Args:
        f: The step, from carry and x to carry and y.
        carry: The initial carry.
        xs: A pytree of arrays with leading dimension `length`.
        outer_size: The number of inner scans, a divisor of `length`.
        length: The number of steps.
        reverse: Whether to begin at the end.
        unroll: How many steps of the inner scans to do at once.

    Returns:
        The last carry, and the ys with leading dimension `length`.

    Raises:
        ValueError: If `outer_size` does not divide `length`.

    Source:
        Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost
    """
    if outer_size < 1 or length % outer_size:
        raise bad_value("multilevel_scan", f"outer_size is {outer_size}", f"expected a divisor of the length {length}")
    inner_size = length // outer_size

    # not only in a scan: the compiler may turn an outer loop of one step into straight code
    @functools.partial(jax.checkpoint, prevent_cse=True)
    def inner(carry: Carry, xs: Any) -> tuple[Carry, Any]:
        return jax.lax.scan(f, carry, xs, length=inner_size, reverse=reverse, unroll=unroll)

    blocks = jax.tree.map(lambda x: x.reshape(outer_size, inner_size, *x.shape[1:]), xs)
    carry, ys = jax.lax.scan(inner, carry, blocks, length=outer_size, reverse=reverse)
    return carry, jax.tree.map(lambda y: y.reshape(length, *y.shape[2:]), ys)
