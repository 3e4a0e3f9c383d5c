"""Ragged products as plain loops, and operands whose rows of no group are nan: no result may depend on them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

RNG = np.random.default_rng(0)


class Sizes(NamedTuple):
    """Of a ragged product."""

    m: int
    k: int
    n: int
    groups: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.m}x{self.k}x{self.n}-{'+'.join(map(str, self.groups))}"

    def operands(self, dtype):
        """The rows, the matrices, the sizes of the groups, and a cotangent of the result."""
        m, k, n, groups = self
        lhs, rhs, cotangent = (
            jnp.asarray(RNG.normal(size=shape), dtype) for shape in ((m, k), (len(groups), k, n), (m, n))
        )
        used = sum(groups)
        return lhs.at[used:].set(jnp.nan), rhs, jnp.array(groups), cotangent.at[used:].set(jnp.nan)


def loop(lhs, rhs, groups):
    """The rows of each group times its matrix; 0 for the rows of no group."""
    parts, start = [], 0
    for matrix, size in zip(rhs, groups, strict=True):
        parts.append(lhs[start : start + int(size)] @ matrix)
        start += int(size)
    return jnp.concatenate([*parts, jnp.zeros((len(lhs) - start, rhs.shape[2]), lhs.dtype)])


def with_gradients(product):
    """The product and its gradients by the rows and by the matrices."""

    def fn(lhs, rhs, groups, cotangent):
        result, pullback = jax.vjp(lambda lhs, rhs: product(lhs, rhs, groups), lhs, rhs)
        return result, *pullback(cotangent)

    return fn


def expected(fn, lhs, rhs, groups, *others):
    """What a function of loops gives, in 32 bits."""
    lhs, rhs, *others = (x.astype("float32") for x in (lhs, rhs, *others))
    return fn(lhs, rhs, tuple(map(int, groups)), *others)


def assert_close(actual, wanted):
    """Compare pytrees, by what the largest element of each array can be off by in its dtype."""

    def check(a, b):
        tolerance = 1e-5 if a.dtype == "float32" else 2e-2
        np.testing.assert_allclose(a.astype("float32"), b, rtol=0, atol=tolerance * max(1, float(jnp.abs(b).max())))

    jax.tree.map(check, actual, wanted)
