"""Typed usages of the public interface that a type checker must accept, with the types that it must see.

`check.py` has pyright read them; `test_typing.py` runs them, and compares what comes out with the same types.
"""

from collections.abc import Mapping, Sequence
from typing import assert_type

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import PartitionSpec

import haliax as hax
import haliax.haxtyping as ht
import haliax.nn as hnn
import haliax.partitioning as hp
from haliax import Axis, AxisSpec, Named, NamedArray
from haliax.jax_utils import filter_checkpoint, named_call
from haliax.nn.scan import BlockSeq, Stacked

Batch, Embed = hax.make_axes(batch=2, embed=3)
Layers, Head = Axis("layers", 2), Axis("head", 1)
x = hax.ones((Batch, Embed))
i = hax.arange(Batch)
raw = jnp.ones(2)
key = jax.random.key(0)


def making() -> None:
    assert_type(hax.make_axes(batch=2), tuple[Axis, ...])
    assert_type(hax.named(raw, "batch"), NamedArray)
    assert_type(hax.named([1, 2], Batch), NamedArray)
    assert_type(hax.zeros({"batch": 2}), NamedArray)
    assert_type(hax.full((Batch,), x["embed", 0]), NamedArray)
    assert_type(hax.linspace(Batch, start=0, stop=1), NamedArray)
    assert_type(hax.zeros_like(x), NamedArray)
    assert_type(hax.zeros_like(raw), Array)
    assert_type(hax.stack("layers", [x, x]), NamedArray)
    assert_type(hax.concatenate("batch", (x, x)), NamedArray)
    assert_type(hax.random.normal(key, (Batch, Embed)), NamedArray)
    assert_type(hax.random.categorical(key, x, "embed"), NamedArray)
    assert_type(NamedArray(raw, (Batch,)), NamedArray)


def parts() -> None:
    assert_type(x.array, Array)
    assert_type(x.axes, tuple[Axis, ...])
    assert_type(x.axis_names, tuple[str, ...])
    assert_type(x.shape, Mapping[str, int])
    assert_type(x.ndim, int)
    assert_type(x.size, int)
    assert_type(x.real, NamedArray)
    assert_type(x.sum().scalar(), Array)
    assert_type(float(x.sum()), float)
    assert_type(x.resolve_axis("batch"), Axis)
    assert_type(x.resolve_axis(("batch", Embed)), tuple[Axis, ...])
    assert_type(x.axis_size(Batch), int)
    assert_type(x.axis_size(("batch",)), tuple[int, ...])
    assert_type(x.axis_indices("time"), int | None)
    assert_type(x.has_axis("batch"), bool)
    assert_type(hax.is_named_array(x), bool)


def axes() -> None:
    assert_type(hax.axis_name(Batch), str)
    assert_type(hax.axis_name((Batch, Embed)), tuple[str, ...])
    assert_type(hax.axis_size((Batch, Embed)), int)
    assert_type(hax.concat_axes((Batch,), Embed), AxisSpec)
    assert_type(hax.eliminate_axes(x.axes, "batch"), AxisSpec)
    assert_type(hax.zeros(hax.replace_axis(x.axes, "batch", Head)), NamedArray)
    assert_type(hax.resolve_axis((Batch, Embed), "batch"), Axis)
    assert_type(hax.selects_axis(Batch, "batch"), bool)
    assert_type(Batch.resize(3).alias("time"), Axis)


def elementwise() -> None:
    assert_type(x + x, NamedArray)
    assert_type(1 - x, NamedArray)
    assert_type(2.0**x, NamedArray)
    assert_type(np.float32(2) * x, NamedArray)
    assert_type(raw[0] * x, NamedArray)
    assert_type(-x, NamedArray)
    assert_type(abs(x), NamedArray)
    assert_type(x == 1, NamedArray)
    assert_type((x < 1) & (x >= 0), NamedArray)
    assert_type(divmod(x, 2), tuple[NamedArray, NamedArray])
    assert_type(hax.exp(x), NamedArray)
    assert_type(hax.exp(raw), Array)
    assert_type(hax.maximum(x, 0), NamedArray)
    assert_type(hax.frexp(x), tuple[NamedArray, NamedArray])
    assert_type(x.astype(jnp.int32), NamedArray)
    assert_type(x.clip(0, 1), NamedArray)
    assert_type(hax.where(x > 0, x, 0), NamedArray)
    assert_type(hax.where(x > 0, fill_value=0, new_axis=Axis("found", 2)), tuple[NamedArray, ...])
    assert_type(hax.isclose(x, 1.0), NamedArray)


def along_axes() -> None:
    assert_type(x.sum(), NamedArray)
    assert_type(x.mean("batch", where=x > 0), NamedArray)
    assert_type(hax.max(x, ("batch", Embed)), NamedArray)
    assert_type(x.argmax("embed"), NamedArray)
    assert_type(hax.quantile(x, 0.5, "batch"), NamedArray)
    assert_type(x.cumsum("batch"), NamedArray)
    assert_type(hax.sort(x, Batch), NamedArray)
    assert_type(hax.top_k(x, "embed", 2), tuple[NamedArray, NamedArray])
    assert_type(hax.dot(x, x, axis="embed"), NamedArray)
    assert_type(hax.dot("embed", x, x), NamedArray)
    assert_type(x.dot(x, axis=Embed, out_axes=(..., "batch")), NamedArray)
    assert_type(hax.einsum("batch embed, batch embed -> batch", x, x), NamedArray)
    assert_type(hnn.softmax(x, "embed"), NamedArray)
    assert_type(hax.fft(x, "embed"), NamedArray)
    assert_type(hax.fftfreq(Embed), NamedArray)
    assert_type(hax.polyval(i, x), NamedArray)
    assert_type(hax.polyval(i, raw), Array)


def choosing() -> None:
    assert_type(x["batch", 0], NamedArray)
    assert_type(x[{"batch": i, "embed": slice(0, 2)}], NamedArray)
    assert_type(x["batch", hax.ds(0, 1)], NamedArray)
    assert_type(x.take("batch", i), NamedArray)
    assert_type(x.slice("embed", start=1, length=2), NamedArray)
    assert_type(x.at["batch", 0].set(1.0), NamedArray)
    assert_type(x.at[{"batch": i}].add(x, mode="drop"), NamedArray)
    assert_type(x.updated_slice({"batch": 0}, x), NamedArray)
    ref = hax.new_ref(x)
    assert_type(ref["batch", 0], NamedArray)
    assert_type(ref.slice({"batch": hax.ds(0, 1)}).value(), NamedArray)


def reshaping() -> None:
    assert_type(x.rename({"batch": "time"}), NamedArray)
    assert_type(x.rearrange((..., "batch")), NamedArray)
    assert_type(x.rearrange("batch embed -> (all: batch embed)"), NamedArray)
    assert_type(x.flatten_axes(("batch", "embed"), "all"), NamedArray)
    assert_type(x.unflatten_axis("batch", (Head, Axis("rest", 2))), NamedArray)
    assert_type(x.split("batch", [Axis("batch", 1)] * 2), Sequence[NamedArray])
    assert_type(x.unbind("batch"), Sequence[NamedArray])
    assert_type(x.broadcast_axis(Head), NamedArray)
    assert_type(hax.broadcast_to(x, (Head, Batch, Embed)), NamedArray)
    assert_type(hax.broadcast_arrays(x, x), tuple[NamedArray, ...])


def half(a: NamedArray, by: int = 2) -> NamedArray:
    """Half of it."""
    return a / by


class Layer(eqx.Module):
    """A layer with annotated fields, whose methods are compiled."""

    weight: ht.Float[NamedArray, "... embed"]
    scale: ht.f32[Array, ""] | None = None

    @staticmethod
    def init(*, key: Array) -> "Layer":
        """A random layer."""
        return Layer(hax.random.normal(key, Embed))

    def __call__(self, a: NamedArray) -> NamedArray:
        """The scaled input."""
        return a * self.weight

    @hax.named_jit
    def compiled(self, a: NamedArray, *, by: float = 1.0) -> tuple[NamedArray, float]:
        """The same, compiled."""
        return self(a) * by, by

    @hax.named_jit(axis_resources={})
    def mapped(self, a: NamedArray) -> NamedArray:
        """The same, compiled under a mapping."""
        return self(a)


def compiling() -> None:
    compiled = hax.named_jit(half)
    assert_type(compiled(x, by=3), NamedArray)
    assert_type(hp.named_jit(axis_resources={}, donate_args=(False,))(half)(x), NamedArray)
    assert_type(hax.fsdp(half, {}, {})(x, 3), NamedArray)
    assert_type(hp.fsdp({}, {})(half)(x), NamedArray)
    layer = Layer.init(key=key)
    assert_type(layer.compiled(x, by=2.0), tuple[NamedArray, float])
    assert_type(layer.mapped(x), NamedArray)
    assert_type(named_call(half)(x), NamedArray)
    assert_type(named_call(name="half")(half)(x), NamedArray)
    assert_type(filter_checkpoint(half)(x), NamedArray)


def loops() -> None:
    def carry_on(carry: NamedArray, a: NamedArray, by: float = 1.0) -> NamedArray:
        return carry + a * by

    def emit(carry: NamedArray, a: NamedArray) -> tuple[NamedArray, dict[str, NamedArray]]:
        return carry + a, {"seen": a}

    start = hax.zeros(Embed)
    assert_type(hax.vmap(half, Batch)(x), NamedArray)
    assert_type(hax.vmap(Layer.init, Layers)(key=jax.random.split(key, 2)), Layer)
    assert_type(hax.fold(carry_on, "batch")(start, x), NamedArray)
    assert_type(hax.scan(emit, Batch)(start, x), tuple[NamedArray, dict[str, NamedArray]])
    assert_type(hax.map(half, "batch")(x), NamedArray)
    layers = Stacked.init(Layers, Layer)(key=jax.random.split(key, 2))
    assert_type(layers, Stacked[Layer])
    assert_type(layers.stacked, Layer)
    assert_type(layers.unstacked(), Sequence[Layer])
    assert_type(layers.fold(x), NamedArray)
    assert_type(BlockSeq.init(Layers, Layer)(key=jax.random.split(key, 2)), BlockSeq[Layer])


def layers() -> None:
    linear = hnn.Linear.init(Embed, Head, key=key)
    assert_type(linear, hnn.Linear)
    assert_type(linear(x), NamedArray)
    assert_type(linear.bias, NamedArray | None)
    assert_type(hnn.LayerNorm.init(Embed)(x), NamedArray)
    assert_type(hnn.Embedding.init(Batch, Embed, key=key).embed(i), NamedArray)
    assert_type(hnn.MLP.init(Embed, Head, 4, 1, key=key)(x), NamedArray)
    assert_type(hnn.Dropout(0.5)(x, key=key), NamedArray)
    assert_type(hnn.gelu(raw), Array)
    assert_type(hnn.one_hot(i, Axis("class", 3)), NamedArray)
    assert_type(hnn.attention.causal_mask(Batch, Axis("past", 2)), NamedArray)


def placing() -> None:
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    linear = hnn.Linear.init(Embed, Head, key=key)
    with hax.set_mesh(mesh), hax.axis_mapping({"batch": "data"}):
        assert_type(hax.shard(x), NamedArray)
        assert_type(hax.auto_sharded(linear), hnn.Linear)
        assert_type(hp.pspec_for_axis(x.axes), PartitionSpec)
        assert_type(hp.physical_axis_size(Batch), int | None)
        assert_type(hp.round_axis_for_partitioning(Batch), Axis)


def annotated(
    a: ht.Float[NamedArray, "batch embed"],
    b: ht.f32[NamedArray, {"batch", ...}],
    c: NamedArray["batch ..."],
    d: NamedArray["batch", ...],
    e: Named[NamedArray, "batch embed"] | None,
    f: ht.Float[Array, "batch"],
    g: ht.Int[NamedArray | Array, "batch"],
) -> ht.Float[NamedArray, "..."]:
    """Annotations, each of which is the array type itself."""
    assert_type(a, NamedArray)
    assert_type(b, NamedArray)
    assert_type(c, NamedArray)
    assert_type(d, NamedArray)
    assert_type(e, NamedArray | None)
    assert_type(f, Array)
    assert_type(g, NamedArray | Array)
    return a


def annotations() -> None:
    assert_type(annotated(x, x, x, x, None, raw, i), NamedArray)
    assert_type(x.matches_axes("batch embed"), bool)
    assert_type(x.matches_axes(ht.Float[NamedArray, "{embed ...}"]), bool)
    assert_type(hax.NamedArrayAxes(("batch",), subset=True).agree_with(x), bool)


USAGES = [
    making,
    parts,
    axes,
    elementwise,
    along_axes,
    choosing,
    reshaping,
    compiling,
    loops,
    layers,
    placing,
    annotations,
]
