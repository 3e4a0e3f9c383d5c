"""Operations outside a trace: for each a named call, the plain one that does the same, and the ratio allowed.

The arrays are small, so that nearly all of a call is overhead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

import haliax as hax


class Op(NamedTuple):
    """A named call, the plain call, and how many times as long the first may take."""

    named: Callable[[], Any]
    plain: Callable[[], Any]
    at_most: float


Batch, Embed, Mlp = hax.Axis("batch", 8), hax.Axis("embed", 16), hax.Axis("mlp", 4)
x_raw, y_raw = jnp.ones((8, 16)), jnp.ones((8, 16))
bias_raw, scale_raw, weight_raw = jnp.ones(16), jnp.ones(8), jnp.ones((16, 4))
index_raw = jnp.array([1, 2, 3])

x, y = hax.named(x_raw, (Batch, Embed)), hax.named(y_raw, (Batch, Embed))
bias, scale, weight = hax.named(bias_raw, Embed), hax.named(scale_raw, Batch), hax.named(weight_raw, (Embed, Mlp))
index = hax.named(index_raw, "choice")

OPS = {
    "x + y": Op(lambda: x + y, lambda: x_raw + y_raw, 1.5),
    "x + 1": Op(lambda: x + 1.0, lambda: x_raw + 1.0, 1.5),
    "x + y, broadcast in front": Op(lambda: x + bias, lambda: x_raw + bias_raw, 1.8),
    "x + y, broadcast behind": Op(lambda: x + scale, lambda: x_raw + scale_raw[:, None], 1.8),
    "exp": Op(lambda: hax.exp(x), lambda: jnp.exp(x_raw), 1.6),
    "-x": Op(lambda: -x, lambda: -x_raw, 1.6),
    "sum": Op(lambda: hax.sum(x, "batch"), lambda: jnp.sum(x_raw, axis=0), 1.5),
    "mean": Op(lambda: hax.mean(x, "batch"), lambda: jnp.mean(x_raw, axis=0), 1.5),
    "dot": Op(lambda: hax.dot(x, weight, axis="embed"), lambda: jnp.dot(x_raw, weight_raw), 2.5),
    "dot, by Axis": Op(lambda: hax.dot(x, weight, axis=Embed), lambda: jnp.dot(x_raw, weight_raw), 2.5),
    "index by a number": Op(lambda: x["batch", 2], lambda: x_raw[2], 1.3),
    "index by a slice": Op(lambda: x["batch", 2:5], lambda: x_raw[2:5], 1.3),
    "index by an array": Op(lambda: x["batch", index], lambda: x_raw[index_raw], 1.3),
    "update at an array": Op(lambda: x.at["batch", index].set(0.0), lambda: x_raw.at[index_raw].set(0.0), 1.3),
    "rearrange": Op(lambda: x.rearrange(("embed", "batch")), lambda: jnp.transpose(x_raw, (1, 0)), 1.3),
    "rearrange with ...": Op(lambda: x.rearrange(("embed", ...)), lambda: jnp.transpose(x_raw, (1, 0)), 1.3),
    "rearrange by a pattern": Op(
        lambda: x.rearrange("b (h d) -> h b d", h=4),
        lambda: jnp.transpose(jnp.reshape(x_raw, (8, 4, 4)), (1, 0, 2)),
        1.3,
    ),
    "einsum": Op(
        lambda: hax.einsum("b e, e m -> b m", x, weight), lambda: jnp.einsum("be,em->bm", x_raw, weight_raw), 1.0
    ),
    "einsum, by name": Op(
        lambda: hax.einsum("{embed} ->", x, weight), lambda: jnp.einsum("be,em->bm", x_raw, weight_raw), 1.0
    ),
}
