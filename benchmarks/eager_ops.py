"""Operations outside a trace: for each a named call, the plain one that does the same, and the ratio allowed.

The arrays are small, so that nearly all of a call is overhead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import haliax as hax


class Op(NamedTuple):
    """A named call, the plain call, and how many times as long the first may take."""

    named: Callable[[], Any]
    plain: Callable[[], Any]
    at_most: float


Batch, Embed, Mlp = hax.Axis("batch", 8), hax.Axis("embed", 16), hax.Axis("mlp", 4)
Head, Part = hax.Axis("head", 4), hax.Axis("part", 4)
x_raw, y_raw = jnp.ones((8, 16)), jnp.ones((8, 16))
bias_raw, scale_raw, weight_raw = jnp.ones(16), jnp.ones(8), jnp.ones((16, 4))
mask_raw, row_mask_raw, sorted_raw, rows_raw = x_raw > 0, scale_raw > 0, jnp.arange(16.0), jnp.ones((3, 16))
index_raw, labels_raw, three = jnp.array([1, 2, 3]), jnp.arange(8), jnp.int32(3)

x, y = hax.named(x_raw, (Batch, Embed)), hax.named(y_raw, (Batch, Embed))
bias, scale, weight = hax.named(bias_raw, Embed), hax.named(scale_raw, Batch), hax.named(weight_raw, (Embed, Mlp))
mask, row_mask, increasing = x > 0, scale > 0, hax.named(sorted_raw, Embed)
rows, index = hax.named(rows_raw, ("batch", Embed)), hax.named(index_raw, "choice")
labels = hax.named(labels_raw, Batch)

OPS = {
    "x + y": Op(lambda: x + y, lambda: x_raw + y_raw, 1.5),
    "x + 1": Op(lambda: x + 1.0, lambda: x_raw + 1.0, 1.5),
    "x + y, broadcast in front": Op(lambda: x + bias, lambda: x_raw + bias_raw, 1.8),
    "x + y, broadcast behind": Op(lambda: x + scale, lambda: x_raw + scale_raw[:, None], 1.8),
    "where": Op(lambda: hax.where(mask, x, y), lambda: jnp.where(mask_raw, x_raw, y_raw), 1.5),
    "where, broadcast": Op(lambda: hax.where(mask, x, bias), lambda: jnp.where(mask_raw, x_raw, bias_raw), 1.8),
    "where, a condition broadcast": Op(
        lambda: hax.where(row_mask, x, bias), lambda: jnp.where(row_mask_raw[:, None], x_raw, bias_raw), 1.8
    ),
    "clip": Op(lambda: hax.clip(x, 0.0, 1.0), lambda: jnp.clip(x_raw, 0.0, 1.0), 1.8),
    "clip, broadcast": Op(lambda: hax.clip(x, None, bias), lambda: jnp.clip(x_raw, None, bias_raw), 1.8),
    "isclose": Op(lambda: hax.isclose(x, y), lambda: jnp.isclose(x_raw, y_raw), 1.8),
    "exp": Op(lambda: hax.exp(x), lambda: jnp.exp(x_raw), 1.6),
    "-x": Op(lambda: -x, lambda: -x_raw, 1.6),
    "sum": Op(lambda: hax.sum(x, "batch"), lambda: jnp.sum(x_raw, axis=0), 1.5),
    "mean": Op(lambda: hax.mean(x, "batch"), lambda: jnp.mean(x_raw, axis=0), 1.5),
    "argmax": Op(lambda: hax.argmax(x, "embed"), lambda: jnp.argmax(x_raw, axis=1), 1.5),
    "cumsum": Op(lambda: hax.cumsum(x, "embed"), lambda: jnp.cumsum(x_raw, axis=1), 1.5),
    "sort": Op(lambda: hax.sort(x, "embed"), lambda: jnp.sort(x_raw, axis=1), 1.5),
    "top_k": Op(lambda: hax.top_k(x, "embed", 3), lambda: jax.lax.top_k(x_raw, 3), 1.5),
    "softmax": Op(lambda: hax.nn.softmax(x, "embed"), lambda: jax.nn.softmax(x_raw, axis=1), 1.5),
    "one_hot": Op(lambda: hax.nn.one_hot(labels, Embed), lambda: jax.nn.one_hot(labels_raw, 16), 1.5),
    "searchsorted": Op(lambda: hax.searchsorted(increasing, x), lambda: jnp.searchsorted(sorted_raw, x_raw), 1.8),
    "dot": Op(lambda: hax.dot(x, weight, axis="embed"), lambda: jnp.dot(x_raw, weight_raw), 2.5),
    "dot, by Axis": Op(lambda: hax.dot(x, weight, axis=Embed), lambda: jnp.dot(x_raw, weight_raw), 2.5),
    "index by a number": Op(lambda: x["batch", 2], lambda: x_raw[2], 1.3),
    "index by a number, behind": Op(lambda: x["embed", 2], lambda: x_raw[:, 2], 1.3),
    "index by a traced number": Op(lambda: x["batch", three], lambda: x_raw[three], 1.3),
    "index by a mapping": Op(lambda: x[{"batch": 2, "embed": 3}], lambda: x_raw[2, 3], 1.3),
    "index by a slice": Op(lambda: x["batch", 2:5], lambda: x_raw[2:5], 1.3),
    "index by a dslice": Op(
        lambda: x["batch", hax.ds(2, 3)], lambda: jax.lax.dynamic_slice_in_dim(x_raw, 2, 3, axis=0), 1.3
    ),
    "index by an array": Op(lambda: x["batch", index], lambda: x_raw[index_raw], 1.3),
    "index along a shared axis": Op(lambda: x["embed", labels], lambda: x_raw[jnp.arange(8), labels_raw], 1.3),
    "take": Op(lambda: hax.take(x, "batch", index), lambda: jnp.take(x_raw, index_raw, axis=0), 2.2),
    "slice": Op(
        lambda: hax.slice(x, "batch", start=2, length=3), lambda: jax.lax.slice_in_dim(x_raw, 2, 5, axis=0), 1.8
    ),
    "updated_slice": Op(
        lambda: hax.updated_slice(x, {"batch": 2}, rows),
        lambda: jax.lax.dynamic_update_slice(x_raw, rows_raw, (2, 0)),
        1.3,
    ),
    "update at a number": Op(lambda: x.at["batch", 2].add(bias), lambda: x_raw.at[2].add(bias_raw), 1.3),
    "update at a slice": Op(lambda: x.at["batch", 2:5].set(0.0), lambda: x_raw.at[2:5].set(0.0), 1.3),
    "update at an array": Op(lambda: x.at["batch", index].set(0.0), lambda: x_raw.at[index_raw].set(0.0), 1.3),
    "concatenate": Op(lambda: hax.concatenate("batch", [x, y]), lambda: jnp.concatenate([x_raw, y_raw]), 1.8),
    "stack": Op(lambda: hax.stack("layer", [x, y]), lambda: jnp.stack([x_raw, y_raw]), 1.8),
    "split": Op(lambda: x.split("batch", [Part, Part]), lambda: jnp.split(x_raw, 2), 1.8),
    "flatten_axes": Op(lambda: x.flatten_axes(("batch", "embed"), "all"), lambda: jnp.reshape(x_raw, (128,)), 1.8),
    "unflatten_axis": Op(lambda: x.unflatten_axis("embed", (Head, Part)), lambda: jnp.reshape(x_raw, (8, 4, 4)), 1.8),
    "broadcast_axis": Op(lambda: x.broadcast_axis(Mlp), lambda: jnp.broadcast_to(x_raw, (4, 8, 16)), 1.3),
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
