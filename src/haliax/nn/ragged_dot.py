"""Products of the rows of a matrix, in groups, with a matrix for each group: what a mixture of experts computes."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from haliax._src.array_base import NamedArrayBase
from haliax._src.errors import bad_value, wrong_dtype, wrong_type
from haliax._src.kernels import XLA, choose_kernel

Implementation = Literal["auto", "megablox", "triton", "triton_group_grid", "triton_tile_map", "xla"]
"""What computes a ragged product; see `ragged_dot`."""

# what tokamax calls them
_TOKAMAX = {"megablox": "mosaic", "triton": "triton", "triton_group_grid": "triton", "triton_tile_map": "triton"}


def ragged_dot(
    lhs_: jax.Array,
    rhs_: jax.Array,
    group_sizes_: jax.Array,
    ar: bool = False,
    implementation: Implementation = "auto",
) -> jax.Array:
    """Multiply each row of a matrix by the matrix of its group.

    It can be differentiated in reverse mode any number of times, and mapped by `vmap` over any of its arguments.

    Args:
        lhs_: The rows, of shape (m, k), those of a group side by side and the groups in order.
        rhs_: A matrix for each group, of shape (g, k, n).
        group_sizes_: How many rows each group has: integers of shape (g,). Rows that are left over give 0.
        ar: Whether to sum the result over the mesh axis `model`, inside `shard_map`.
        implementation: `xla` for `jax.lax.ragged_dot`; `megablox` or `triton` (in any variant) for that kernel of
            tokamax; `auto` for the best one of tokamax, if that is installed. A kernel is only used on a GPU or TPU,
            and only if the compiler does not split the rows over several devices. `f.explain(...)` of a `named_jit`
            function shows which one was chosen.

    Returns:
        An array of shape (m, n).

    Raises:
        ValueError: If shapes do not fit, or there is no such implementation.
        TypeError: If an argument is a NamedArray, or group sizes are no integers.
        ImportError: If a kernel of tokamax was asked for, and tokamax is not installed.

    Source:
        `jax.lax.ragged_dot`
    """
    _check(lhs_, rhs_, group_sizes_)
    kernel = choose_kernel("ragged_dot", implementation, _TOKAMAX, (lhs_, rhs_))
    dtype = jnp.result_type(lhs_, rhs_)
    with kernel.scope():
        operands = jnp.asarray(lhs_, dtype), jnp.asarray(rhs_, dtype), jnp.asarray(group_sizes_)
        result: Any = grouped_rows(*operands) if kernel.name == XLA else _by_tokamax(kernel.name, *operands)
    return jax.lax.psum(result, "model") if ar else result


def _check(lhs: Any, rhs: Any, group_sizes: Any) -> None:
    """Raise unless the arguments are raw arrays of fitting shapes."""
    for argument, array, ndim in (("lhs_", lhs, 2), ("rhs_", rhs, 3), ("group_sizes_", group_sizes, 1)):
        if isinstance(array, NamedArrayBase) or not hasattr(array, "dtype"):
            remedy = "Named arrays go through haliax.nn.MoELinear." if isinstance(array, NamedArrayBase) else ""
            raise wrong_type("ragged_dot", argument, array, "an array without names", remedy)
        if len(array.shape) != ndim:
            raise bad_value("ragged_dot", f"{argument} has shape {array.shape}", f"expected {ndim} dimensions")
    if (lhs.shape[1], group_sizes.shape[0]) != (rhs.shape[1], rhs.shape[0]):
        given = f"the shapes are {lhs.shape}, {rhs.shape} and {group_sizes.shape}"
        raise bad_value("ragged_dot", given, "expected (m, k), (g, k, n) and (g,)")
    if not jnp.issubdtype(group_sizes.dtype, jnp.integer):
        raise wrong_dtype("ragged_dot", "group_sizes_", group_sizes.dtype, "integers")


# by XLA -------------------------------------------------------------------------------------------------------------
#
# JAX maps `ragged_dot` over its batch only if all operands have one, in front; so it is given one here. What maps can
# not be differentiated through, so derivatives are written out: those of the two products are the two products again.


def _mapped(fn: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """A function of arrays with any number of leading batch dimensions that `vmap` gives one more."""
    mapped = jax.custom_batching.custom_vmap(fn)

    @mapped.def_vmap
    def with_batch(size: int, is_batched: Sequence[bool], *operands: jax.Array) -> tuple[jax.Array, bool]:
        pairs = zip(operands, is_batched, strict=True)
        return mapped(*(x if batched else jnp.broadcast_to(x, (size, *x.shape)) for x, batched in pairs)), True

    return mapped


@_mapped
def _rows(lhs: jax.Array, rhs: jax.Array, group_sizes: jax.Array) -> jax.Array:
    n = lhs.ndim - 2
    batch = tuple(range(n))
    numbers = jax.lax.RaggedDotDimensionNumbers((((n + 1,), (n + 1,)), (batch, batch)), (n,), (n,))
    return jax.lax.ragged_dot_general(lhs, rhs, group_sizes, numbers)


@_mapped
def _matrices(lhs: jax.Array, rhs: jax.Array, group_sizes: jax.Array) -> jax.Array:
    n = lhs.ndim - 2
    batch = tuple(range(n))
    numbers = jax.lax.RaggedDotDimensionNumbers((((n,), (n,)), (batch, batch)), (n,), ())
    # JAX puts the groups in front of the batch
    return jnp.moveaxis(jax.lax.ragged_dot_general(lhs, rhs, group_sizes, numbers), 0, n)


@jax.custom_vjp
def grouped_rows(lhs: jax.Array, rhs: jax.Array, group_sizes: jax.Array) -> jax.Array:
    """The rows of (m, k) times the matrix of their group in (g, k, n); shape (m, n).

    Args:
        lhs: Rows in the order of their groups, of shape (m, k).
        rhs: One matrix for each group, of shape (g, k, n).
        group_sizes: How many rows each group has, of shape (g,).

    Returns:
        An array of shape (m, n).

    Source:
        `jax.lax.ragged_dot`
    """
    return _rows(lhs, rhs, group_sizes)


@jax.custom_vjp
def grouped_matrices(lhs: jax.Array, rhs: jax.Array, group_sizes: jax.Array) -> jax.Array:
    """The products of (m, k) transposed and (m, n) over the rows of each group; shape (g, k, n).

    Args:
        lhs: Rows in the order of their groups, of shape (m, k).
        rhs: Rows in the same order, of shape (m, n).
        group_sizes: How many rows each group has, of shape (g,).

    Returns:
        An array of shape (g, k, n).

    Source:
        `jax.lax.ragged_dot_general`
    """
    return _matrices(lhs, rhs, group_sizes)


def _rows_forward(*operands: jax.Array) -> Any:
    return grouped_rows(*operands), operands


def _rows_backward(operands: Any, cotangent: jax.Array) -> Any:
    lhs, rhs, group_sizes = operands
    to_lhs = grouped_rows(cotangent, jnp.swapaxes(rhs, -1, -2), group_sizes)
    return to_lhs, grouped_matrices(lhs, cotangent, group_sizes), _no_cotangent(group_sizes)


def _matrices_forward(*operands: jax.Array) -> Any:
    return grouped_matrices(*operands), operands


def _matrices_backward(operands: Any, cotangent: jax.Array) -> Any:
    lhs, rhs, group_sizes = operands
    to_lhs = grouped_rows(rhs, jnp.swapaxes(cotangent, -1, -2), group_sizes)
    return to_lhs, grouped_rows(lhs, cotangent, group_sizes), _no_cotangent(group_sizes)


grouped_rows.defvjp(_rows_forward, _rows_backward)
grouped_matrices.defvjp(_matrices_forward, _matrices_backward)


def _no_cotangent(integers: jax.Array) -> np.ndarray:
    return np.zeros(integers.shape, jax.dtypes.float0)


# by tokamax ---------------------------------------------------------------------------------------------------------
#
# Its kernels have a first derivative and, in general, no rule for `vmap`: a batch is computed one by one, and further
# derivatives by XLA.


def _kernel(name: str, lhs: jax.Array, rhs: jax.Array, group_sizes: jax.Array) -> jax.Array:
    import tokamax  # noqa: PLC0415  # pyright: ignore[reportMissingImports]  (optional)

    # a kernel leaves the rows of no group as they are in memory, in the result and in the gradient alike
    is_in_group = (jnp.arange(lhs.shape[0]) < jnp.sum(group_sizes))[:, None]
    lhs = jnp.where(is_in_group, lhs, 0)
    result = tokamax.ragged_dot(lhs, rhs, group_sizes, implementation=None if name == "tokamax" else name)
    return jnp.where(is_in_group, result, 0)


def _gradients(rows: Callable[..., jax.Array], operands: Any, cotangent: jax.Array) -> Any:
    lhs, rhs, group_sizes = operands
    return jax.vjp(lambda lhs, rhs: rows(lhs, rhs, group_sizes), lhs, rhs)[1](cotangent)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _by_tokamax(name: str, lhs: jax.Array, rhs: jax.Array, group_sizes: jax.Array) -> jax.Array:
    """The product by a kernel of tokamax, or by the best one it has."""
    return jax.custom_batching.sequential_vmap(functools.partial(_kernel, name))(lhs, rhs, group_sizes)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _gradients_by_tokamax(name: str, operands: Any, cotangent: jax.Array) -> Any:
    gradients = functools.partial(_gradients, functools.partial(_kernel, name))
    return jax.custom_batching.sequential_vmap(gradients)(operands, cotangent)


def _by_tokamax_forward(name: str, *operands: jax.Array) -> Any:
    return _by_tokamax(name, *operands), operands


def _by_tokamax_backward(name: str, operands: Any, cotangent: jax.Array) -> Any:
    gradients: Any = _gradients_by_tokamax(name, operands, cotangent)
    return *gradients, _no_cotangent(operands[2])


def _gradients_by_tokamax_forward(name: str, operands: Any, cotangent: jax.Array) -> Any:
    return _gradients_by_tokamax(name, operands, cotangent), (operands, cotangent)


def _gradients_by_tokamax_backward(name: str, residuals: Any, cotangents: Any) -> Any:
    return jax.vjp(functools.partial(_gradients, grouped_rows), *residuals)[1](cotangents)


_by_tokamax.defvjp(_by_tokamax_forward, _by_tokamax_backward)
_gradients_by_tokamax.defvjp(_gradients_by_tokamax_forward, _gradients_by_tokamax_backward)


# names of the library that this one replaces ------------------------------------------------------------------------


class RaggedLayout(enum.StrEnum):
    """Which of three products a ragged one is: that of a layer, or its derivative by the rows or by the matrices."""

    FWD = "fwd"
    DLHS = "dlhs"
    DRHS = "drhs"


class TritonKernelFamily(enum.StrEnum):
    """How a kernel goes over its groups; tokamax makes this choice itself."""

    GROUP_GRID = "group_grid"
    TILE_MAP = "tile_map"


@dataclasses.dataclass(frozen=True)
class TritonBlockConfig:
    """The sizes of the blocks of a kernel; tokamax tunes its own.

    Args:
        block_m: Rows of a block.
        block_n: Columns of a block.
        block_k: Contracted elements of a step.
        num_warps: Warps of a program.
        num_stages: Stages of the pipeline.
        num_xcds: Chiplets to spread over.
        group_m: Blocks of rows that share their columns.
    """

    block_m: int
    block_n: int
    block_k: int
    num_warps: int
    num_stages: int
    num_xcds: int
    group_m: int

    def fit(self, m: int, k: int, n: int) -> TritonBlockConfig:
        """The same with blocks that are not larger than a problem needs: powers of two, and 16 at least."""
        blocks = {"block_m": (self.block_m, m), "block_k": (self.block_k, k), "block_n": (self.block_n, n)}
        return dataclasses.replace(self, **{name: min(block, _block(size)) for name, (block, size) in blocks.items()})


def _block(size: int) -> int:
    """The smallest power of two that holds `size` elements; 16 at least."""
    return max(16, 1 << max(size - 1, 0).bit_length())
