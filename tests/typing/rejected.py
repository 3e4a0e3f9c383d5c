"""Wrong usages that a type checker must reject, each on the line that names the rule that it breaks.

Nothing here is run. `check.py` has pyright read it: it must find these errors and no others.
"""

from typing import assert_type

import equinox as eqx
import jax
import jax.numpy as jnp

import haliax as hax
import haliax.haxtyping as ht
import haliax.nn as hnn
from haliax import Axis, NamedArray
from haliax.nn.scan import Stacked

Batch, Embed = hax.make_axes(batch=2, embed=3)
x = hax.ones((Batch, Embed))
key = jax.random.key(0)

# making
hax.zeros("batch")  # error: reportArgumentType
hax.zeros(2)  # error: reportArgumentType
hax.make_axes(batch="2")  # error: reportArgumentType
hax.full((Batch,), "1")  # error: reportArgumentType
hax.stack(0, [x, x])  # error: reportArgumentType
Axis("batch")  # error: reportCallIssue
Axis(2, "batch")  # error: reportArgumentType, reportArgumentType
Batch.size = 3  # error: reportAttributeAccessIssue
hax.zeros(hax.concat_axes(("batch",), Embed))  # error: reportArgumentType
hax.random.normal(Batch, key)  # error: reportArgumentType, reportArgumentType

# parts
x.array = jnp.ones(2)  # error: reportAttributeAccessIssue
x.axis("batch")  # error: reportAttributeAccessIssue
x.resolve_axis(0)  # error: reportArgumentType, reportCallIssue
x.has_axis(1)  # error: reportArgumentType

# operations
x @ x  # error: reportOperatorIssue
x + "1"  # error: reportOperatorIssue
hax.exp("1")  # error: reportArgumentType, reportCallIssue
hax.exp(x, x)  # error: reportCallIssue
hax.sine(x)  # error: reportAttributeAccessIssue
x.sum(0)  # error: reportArgumentType
x.sum(axes="batch")  # error: reportCallIssue
x.sum("batch", x > 0)  # error: reportCallIssue
x.cumsum(("batch", "embed"))  # error: reportArgumentType
hax.dot(jnp.ones(2), x, axis="batch")  # error: reportArgumentType
x.dot(jnp.ones(2), axis="batch")  # error: reportArgumentType
assert_type(x.sum(), float)  # error: reportAssertTypeFailure
if x.unbind("batch").axes:  # error: reportAttributeAccessIssue
    pass

# choosing and reshaping
x.take("batch")  # error: reportCallIssue
x.at["batch", 0].put(1.0)  # error: reportAttributeAccessIssue
x.at["batch", 0].set(1.0, modes="drop")  # error: reportCallIssue
x.rename("batch", "time")  # error: reportCallIssue
x.rename({"batch": 2})  # error: reportArgumentType
x.flatten_axes(("batch", "embed"))  # error: reportCallIssue
x.unflatten_axis("batch", 2)  # error: reportArgumentType
x.broadcast_axis(2)  # error: reportArgumentType


# functions


@hax.named_jit
def half(a: NamedArray, by: int = 2) -> NamedArray:
    return a / by


half(x, by="2")  # error: reportArgumentType
half(x, 2, 3)  # error: reportCallIssue
half(1.0)  # error: reportArgumentType
half(x).at_once  # error: reportAttributeAccessIssue
hax.named_jit(half, axis_resources="batch")  # error: reportArgumentType, reportCallIssue
hax.named_jit(half, on_mesh_mismatch="ignore")  # error: reportArgumentType, reportCallIssue
hax.fsdp(half, {}, {})(x, by="2")  # error: reportArgumentType
hax.vmap(half, 0)  # error: reportArgumentType
hax.vmap(half, Batch)("x")  # error: reportArgumentType
hax.fold(half, Batch)(x, "2")  # error: reportArgumentType
hax.scan(half, Batch)  # error: reportArgumentType


class Layer(eqx.Module):
    weight: ht.Float[NamedArray, "embed"]

    @staticmethod
    def init(*, key: jax.Array) -> "Layer":
        return Layer(hax.random.normal(key, Embed))

    @hax.named_jit
    def compiled(self, a: NamedArray) -> NamedArray:
        return a * self.weight

    def __call__(self, a: NamedArray) -> NamedArray:
        return a


Layer(jnp.ones(3))  # error: reportArgumentType
Layer(x).compiled(1.0)  # error: reportArgumentType
Layer(x).compiled(x, x)  # error: reportCallIssue
Stacked.init("layers", Layer)  # error: reportArgumentType
Stacked.init(Batch, NamedArray)  # error: reportArgumentType
Stacked.init(Batch, Layer)(key=key).stacked.bias  # error: reportAttributeAccessIssue

# layers and placement
hnn.Linear.init(Embed, Batch)  # error: reportCallIssue
hnn.Linear.init("embed", Batch, key=key)  # error: reportArgumentType
hnn.Dropout(0.5)(jnp.ones(2), key=key)  # error: reportArgumentType
hnn.LayerNorm.init(Embed)(jnp.ones(2))  # error: reportArgumentType
hax.shard(x, {"batch": 2})  # error: reportArgumentType
hax.axis_mapping({"batch": 2})  # error: reportArgumentType


# annotations


def annotated(a: ht.Float[NamedArray, "batch"], b: NamedArray["batch ..."], c: ht.i32[jax.Array, "2"]) -> None:
    a.axis  # error: reportAttributeAccessIssue
    b.axis  # error: reportAttributeAccessIssue


annotated(1.0, x, jnp.ones(2))  # error: reportArgumentType
annotated(x, jnp.ones(2), jnp.ones(2))  # error: reportArgumentType
annotated(x, x, x)  # error: reportArgumentType
