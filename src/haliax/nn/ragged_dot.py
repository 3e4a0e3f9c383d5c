"""Products of the rows of a matrix, in groups, with a matrix for each group: what a mixture of experts computes."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.backend import get_default_device

from haliax._src.array_base import NamedArrayBase
from haliax._src.errors import bad_value, wrong_dtype, wrong_type
from haliax._src.kernels import InTokamax, Kernel, choose_kernels, varying_axes

Implementation = Literal["auto", "megablox", "triton", "triton_group_grid", "triton_tile_map", "xla"]
"""What computes a ragged product; see `ragged_dot`."""


# The kernels of tokamax 0.0.17. Other operands are refused while they are compiled, if not by a crash of the compiler:
# too late to compute them in another way.


def _mosaic_tpu_takes(lhs: Any, rhs: Any, group_sizes: Any) -> bool:
    (m, k), (g, _, n) = lhs.shape, rhs.shape
    return g > 0 and m > 0 and m % 128 == 0 and min(k, n) >= 128 and _dtype(lhs, rhs) in ("bfloat16", "float32")


def _mosaic_gpu_takes(lhs: Any, rhs: Any, group_sizes: Any) -> bool:
    (m, k), (g, _, n) = lhs.shape, rhs.shape
    aligned = min(g, m, k, n) > 0 and not any(size % 64 for size in (m, k, n))
    return aligned and _dtype(lhs, rhs) in ("bfloat16", "float16")


def _triton_takes(lhs: Any, rhs: Any, group_sizes: Any) -> bool:
    return 0 not in (*lhs.shape, *rhs.shape) and _dtype(lhs, rhs) in ("bfloat16", "float16", "float32")


def _dtype(lhs: Any, rhs: Any) -> str:
    return jnp.result_type(lhs, rhs).name


_MOSAIC_TPU = InTokamax("mosaic_tpu", "TPU", _mosaic_tpu_takes)
_MOSAIC_GPU = InTokamax("mosaic_gpu", "NVIDIA", _mosaic_gpu_takes)
_TRITON = InTokamax("triton", "NVIDIA", _triton_takes, ("tokamax", "jax_triton"))
_IMPLEMENTATIONS = {
    "megablox": (_MOSAIC_TPU, _MOSAIC_GPU),
    "triton": (_TRITON,),
    "triton_group_grid": (_TRITON,),
    "triton_tile_map": (_TRITON,),
}


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
            tokamax; `auto` for the best one of tokamax, if that is installed. XLA computes what no kernel can: on a
            CPU, what the compiler splits over several devices, other dtypes than floats of 16 and 32 bits, and sizes
            that do not fit (on a TPU, rows by the multiple of 128 and matrices of 128 by 128 at least; for `megablox`
            on a GPU, multiples of 64). `f.explain(...)` of a `named_jit` function shows what was chosen and why.

    Returns:
        An array of shape (m, n).

    Raises:
        ValueError: If shapes do not fit, or there is no such implementation.
        TypeError: If an argument is a NamedArray, or group sizes are no integers.
        ImportError: If a kernel of tokamax was asked for, and tokamax or what the kernel needs is not installed.

    Source:
        `jax.lax.ragged_dot`; Gale et al., "MegaBlocks: Efficient Sparse Training with Mixture-of-Experts" (2023)
    """
    _check(lhs_, rhs_, group_sizes_)
    kernels = choose_kernels("ragged_dot", implementation, _IMPLEMENTATIONS, (lhs_, rhs_, group_sizes_))
    dtype = jnp.result_type(lhs_, rhs_)
    operands = jnp.asarray(lhs_, dtype), jnp.asarray(rhs_, dtype), jnp.asarray(group_sizes_, jnp.int32)
    result: Any = _product(_Form.ROWS, kernels, *_varying_alike(*operands))
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


# the three products -------------------------------------------------------------------------------------------------


class _Form(enum.Enum):
    """A product of two arrays over groups of rows; the derivatives of each are the other two."""

    ROWS = "(m, k), (g, k, n) -> (m, n)"
    TURNED = "(m, n), (g, k, n) -> (m, k)"
    MATRICES = "(m, k), (m, n) -> (g, k, n)"


# by form: which dimensions are contracted, after those of a batch, and whether the second operand has the groups
_CONTRACTED = {_Form.ROWS: (1, 1, True), _Form.TURNED: (1, 2, True), _Form.MATRICES: (0, 0, False)}


def _dimension_numbers(form: _Form, batch: int = 0) -> jax.lax.RaggedDotDimensionNumbers:
    of_lhs, of_rhs, has_groups = _CONTRACTED[form]
    in_batch, groups = tuple(range(batch)), (batch,) if has_groups else ()
    contracted = ((batch + of_lhs,), (batch + of_rhs,))
    return jax.lax.RaggedDotDimensionNumbers((contracted, (in_batch, in_batch)), (batch,), groups)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _product(
    form: _Form, kernels: tuple[Kernel, ...], lhs: jax.Array, rhs: jax.Array, group_sizes: jax.Array
) -> jax.Array:
    """A product by the first of these kernels that does not refuse it; the last one is XLA, which refuses none."""
    for kernel in kernels[:-1]:
        with contextlib.suppress(NotImplementedError), kernel.scope():
            return jax.custom_batching.sequential_vmap(functools.partial(_by_tokamax, form, kernel.name))(
                lhs, rhs, group_sizes
            )
    with kernels[-1].scope():
        return _mapped(functools.partial(_by_xla, form))(lhs, rhs, group_sizes)


def _forward(form: _Form, kernels: tuple[Kernel, ...], *operands: jax.Array) -> Any:
    return _product(form, kernels, *operands), operands


def _backward(form: _Form, kernels: tuple[Kernel, ...], operands: Any, cotangent: jax.Array) -> Any:
    lhs, rhs, group_sizes = operands
    of_lhs, of_rhs = {
        _Form.ROWS: ((_Form.TURNED, cotangent, rhs), (_Form.MATRICES, lhs, cotangent)),
        _Form.TURNED: ((_Form.ROWS, cotangent, rhs), (_Form.MATRICES, cotangent, lhs)),
        _Form.MATRICES: ((_Form.TURNED, rhs, cotangent), (_Form.ROWS, lhs, cotangent)),
    }[form]
    gradients = (_product(other, kernels, a, b, group_sizes) for other, a, b in (of_lhs, of_rhs))
    return *gradients, np.zeros(group_sizes.shape, jax.dtypes.float0)


_product.defvjp(_forward, _backward)


def _varying_alike(*operands: jax.Array) -> Iterator[jax.Array]:
    """The operands, all of them varying over the manual mesh axes that one of them varies over.

    This is what sums their derivatives over these axes, where it has to be.
    """
    axes = [varying_axes(operand) for operand in operands]
    for operand, own in zip(operands, axes, strict=True):
        others = frozenset().union(*axes) - own
        yield jax.lax.pcast(operand, tuple(others), to="varying") if others else operand


# by XLA -------------------------------------------------------------------------------------------------------------
#
# JAX maps `ragged_dot` over its batch only if all operands have one, in front; so it is given one here.


def _mapped(fn: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """A function of arrays with any number of leading batch dimensions that `vmap` gives one more."""
    mapped = jax.custom_batching.custom_vmap(fn)

    @mapped.def_vmap
    def with_batch(size: int, is_batched: Sequence[bool], *operands: jax.Array) -> tuple[jax.Array, bool]:
        pairs = zip(operands, is_batched, strict=True)
        return mapped(*(x if batched else jnp.broadcast_to(x, (size, *x.shape)) for x, batched in pairs)), True

    return mapped


def _by_xla(form: _Form, lhs: jax.Array, rhs: jax.Array, group_sizes: jax.Array) -> jax.Array:
    batch = group_sizes.ndim - 1
    result = jax.lax.ragged_dot_general(lhs, rhs, group_sizes, _dimension_numbers(form, batch))
    # JAX puts the groups in front of the batch
    return jnp.moveaxis(result, 0, batch) if form is _Form.MATRICES else result


# by tokamax ---------------------------------------------------------------------------------------------------------
#
# Its kernels have no rule for `vmap` in general: a batch is computed one by one. Their own derivatives are not used:
# on some devices there is no kernel for them, and then nothing in its place.


def _by_tokamax(form: _Form, name: str, lhs: jax.Array, rhs: jax.Array, group_sizes: jax.Array) -> jax.Array:
    import tokamax  # noqa: PLC0415  # pyright: ignore[reportMissingImports]  (optional)

    # kernels leave the rows of no group as they are in memory, and may multiply them by 0
    is_in_group = (jnp.arange(lhs.shape[0]) < jnp.sum(group_sizes))[:, None]
    if form is _Form.MATRICES:
        lhs, rhs = jnp.where(is_in_group, lhs, 0), jnp.where(is_in_group, rhs, 0)
    result = tokamax.ragged_dot_general(
        lhs,
        rhs,
        group_sizes,
        _dimension_numbers(form),
        manual_axis_type=jax.typeof(lhs).manual_axis_type if varying_axes(lhs) else None,
        implementation=name,
        # it asks the usual device, and that is another one where programs are compiled for a GPU or TPU on a CPU
        bypass_device_check=get_default_device().platform == "cpu",
    )
    if form is not _Form.MATRICES:
        return jnp.where(is_in_group, result, 0)
    return next(_varying_alike(result, lhs))  # what some kernels do not tell


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
