"""Operations on a mesh with explicit axes: the values of one device, in the layout that the names tell."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec as P

import haliax as hax
import haliax.nn as hnn
from haliax import Axis

Batch, Embed, Out = Axis("batch", 8), Axis("embed", 4), Axis("out", 4)
VALUES = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
IDS = hax.named(np.array([1, 3, 2, 0]), "pos")
COLUMN = hax.named(np.arange(8) % 4, "batch")
MASK = hax.named(np.arange(8) % 3 > 0, "batch")
KEY = np.array([0, 7], np.uint32)


def on(mesh, *spec, names=("batch", "embed")):
    """VALUES in a layout, or on one device if there is no mesh."""
    array = jnp.asarray(VALUES) if mesh is None else jax.device_put(VALUES, NamedSharding(mesh, P(*spec)))
    return hax.NamedArray(array, names)


def layouts(tree) -> list[str]:
    """The types of all arrays, such as `8@data,4`."""
    return [str(jax.typeof(leaf)).split("[", 1)[1].rsplit("]", 1)[0] for leaf in jax.tree.leaves(tree)]


def assert_close(got, want):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(np.asarray(a), np.asarray(b), 1e-4, 1e-5), got, want)


# each with the layout of its result for an array that is laid out as (batch@data, embed@model)
OPERATIONS = {
    "negative": (lambda x: -x, "8@data,4@model"),
    "created": (lambda x: x + hax.arange(Batch) * hax.ones((Batch, Embed)), "8@data,4@model"),
    "where": (lambda x: hax.where(MASK, x, hax.arange(Embed, dtype=jnp.float32)), "8@data,4@model"),
    "clip": (lambda x: hax.clip(x, hax.arange(Embed) * -0.1, 1.0), "8@data,4@model"),
    "sum": (lambda x: x.sum("batch"), "4@model"),
    "sum where": (lambda x: hax.sum(x, "embed", where=MASK), "8@data"),
    "max where": (lambda x: hax.max(x, "embed", where=MASK), "8@data"),
    "var": (lambda x: x.var("batch"), "4@model"),
    "argmax": (lambda x: x.argmax("embed"), "8@data"),
    "median": (lambda x: hax.median(x, "batch"), "4@model"),
    "cumsum": (lambda x: hax.cumsum(x, "batch"), "8@data,4@model"),
    "sort": (lambda x: hax.sort(x, "batch"), "8@data,4@model"),
    "roll": (lambda x: hax.roll(x, 3, "batch"), "8@data,4@model"),
    "diff": (lambda x: hax.diff(x, "batch"), "7,4@model"),
    "pad": (lambda x: hax.pad(x, {"batch": (1, 3)}), "12@data,4@model"),
    "top_k": (lambda x: hax.top_k(x, "embed", 2)[0], "8@data,2@model"),
    "tile": (lambda x: hax.tile(x, {"batch": 2}), "16@data,4@model"),
    "trace": (lambda x: hax.trace(x, "batch", "embed"), ""),
    "stack": (lambda x: hax.stack("n", [x, hax.zeros((Batch, Embed))]), "2,8@data,4@model"),
    "concatenate": (lambda x: hax.concatenate("batch", [x, x["batch", 0:4]]), "12@data,4@model"),
    "rename": (lambda x: x.rename({"batch": "b"}), "8@data,4@model"),
    "rearrange": (lambda x: x.rearrange(("embed", "batch")), "4@model,8@data"),
    "flatten": (lambda x: x.flatten("flat"), "32@(data,model)"),
    "flatten_axes": (lambda x: x.flatten_axes(("embed", "batch"), "flat"), "32@(model,data)"),
    "unflatten": (lambda x: x.unflatten_axis("batch", (Axis("a", 4), Axis("b", 2))), "4@data,2,4@model"),
    "unflatten, second": (lambda x: x.unflatten_axis("batch", (Axis("a", 2), Axis("b", 4))), "2,4@data,4@model"),
    "split": (lambda x: x.split("batch", (Axis("a", 4), Axis("b", 4)))[1], "4@data,4@model"),
    "split, uneven": (lambda x: x.split("batch", (Axis("a", 3), Axis("b", 5)))[1], "5,4@model"),
    "unbind": (lambda x: x.unbind("batch")[2], "4@model"),
    "index": (lambda x: x["batch", 3], "4@model"),
    "slice": (lambda x: x["batch", 2:5], "3,4@model"),
    "window": (lambda x: x["batch", hax.ds(jnp.asarray(1), 3)], "3,4@model"),
    "windows": (lambda x: x["embed", hax.ds(COLUMN, 2)], "8@data,2@model"),
    "gather": (lambda x: x["batch", IDS], "4,4@model"),
    "gather, paired": (lambda x: x["embed", COLUMN], "8@data"),
    "take": (lambda x: x.take("embed", IDS), "8@data,4"),
    "at": (lambda x: x.at["batch", 3].set(0.0), "8@data,4@model"),
    "at, gathered": (lambda x: x.at["batch", IDS].add(x["batch", IDS]), "8@data,4@model"),
    "at, paired": (lambda x: x.at["embed", COLUMN].set(7.0), "8@data,4@model"),
    "at, window": (lambda x: x.at["batch", hax.ds(jnp.asarray(2), 3)].set(5.0), "8@data,4@model"),
    "haliax.slice": (lambda x: hax.slice(x, {"batch": jnp.asarray(1)}, {"batch": 3}), "3,4@model"),
    "updated_slice": (
        lambda x: hax.updated_slice(x, {"batch": 1}, hax.ones((Axis("batch", 3), Embed))),
        "8@data,4@model",
    ),
    "dot": (lambda x: x.dot(hax.arange(Embed, dtype=jnp.float32), axis="embed"), "8@data"),
    "dot, both split": (lambda x: x.dot(x, axis="embed"), "8@data"),
    "dot, all": (lambda x: hax.dot(x, x, axis=None), ""),
    "dot of three": (lambda x: hax.dot(x, x, hax.ones((Embed, Out)), axis=("batch", "embed")), "4"),
    "vmap": (lambda x: hax.vmap(lambda row, m: row * m - row["embed", 1], "batch")(x, MASK), "8@data,4@model"),
    "fold": (lambda x: hax.fold(lambda c, row: c + row, "batch")(hax.zeros(Embed), x), "4@model"),
    "scan": (lambda x: hax.scan(lambda c, row: (c + row, c), "batch")(hax.zeros(Embed), x)[1], "8,4@model"),
    "softmax": (lambda x: hnn.softmax(x, "batch", where=MASK), "8@data,4@model"),
    "LayerNorm": (lambda x: hnn.LayerNorm.init(Embed)(x), "8@data,4@model"),
    "Linear": (lambda x: hnn.Linear.init(Embed, Out, key=KEY)(x), "8@data,4"),
    "Embedding": (lambda x: hnn.Embedding.init(Axis("v", 3), Out, key=KEY)((x > 0).astype(int)), "8@data,4@model,4"),
    "loss": (lambda x: hnn.cross_entropy_loss(x, "embed", COLUMN, where=MASK), ""),
    "attention": (
        lambda x: hnn.attention.dot_product_attention(
            "kpos", "embed", x, *2 * (hax.ones((Axis("kpos", 2), Embed)) * x["batch", 0],)
        ),
        "8@data,4@model",
    ),
}
GRADIENTS = ["where", "sum where", "cumsum", "flatten", "split, uneven", "gather", "gather, paired", "take"]
GRADIENTS += ["at, gathered", "at, window", "dot, both split", "fold", "softmax", "LayerNorm", "Linear", "loss"]
each_operation = pytest.mark.parametrize("name", OPERATIONS)


@each_operation
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
def test_values_and_layouts(name, jitted, explicit_mesh):
    fn, layout = OPERATIONS[name]
    with contextlib.nullcontext() if jitted else jax.set_mesh(explicit_mesh):
        run = hax.named_jit(fn, mesh=explicit_mesh) if jitted else fn
        got = run(on(explicit_mesh, "data", "model"))
    assert_close(got, fn(on(None)))
    assert layouts(got) == [layout]


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, explicit_mesh):
    gradient = jax.grad(lambda x: (OPERATIONS[name][0](x) ** 2).sum().scalar())
    got = hax.named_jit(gradient, mesh=explicit_mesh)(on(explicit_mesh, "data", "model"))
    assert_close(got, gradient(on(None)))
    assert layouts(got) == ["8@data,4@model"], "a gradient is laid out as its array"
