"""Pytrees in which a named array is a leaf."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import tree_util
from haliax.nn.scan import Stacked

X, B = hax.Axis("x", 3), hax.Axis("b", 2)
NAMED = hax.arange(X)
TREE = {"named": NAMED, "raw": jnp.ones(2), "rest": (3, None, "s")}


def test_named_arrays_are_leaves():
    leaves, treedef = tree_util.tree_flatten(TREE)
    assert leaves[0] is NAMED
    assert leaves[2:] == [3, "s"]
    assert treedef == tree_util.tree_structure(TREE)
    assert [a is b for a, b in zip(tree_util.tree_leaves(TREE), leaves, strict=True)] == [True] * 4
    assert tree_util.tree_unflatten(treedef, "abcd") == {"named": "a", "raw": "b", "rest": ("c", None, "d")}


def test_map_sees_names():
    names = tree_util.tree_map(lambda leaf: getattr(leaf, "axis_names", None), TREE)
    assert names == {"named": ("x",), "raw": None, "rest": (None, None, None)}


def test_map_over_several_trees():
    sums = tree_util.tree_map(lambda a, b: a + b, [NAMED, 3], [NAMED, 4])
    assert sums[0].axes == (X,)
    assert (sums[0].array == 2 * NAMED.array).all()
    assert sums[1] == 7
    pairs = tree_util.tree_map(lambda a, b: b, [NAMED, 3], [NAMED.array, (4, 5)])
    assert pairs[1] == (4, 5)


def test_map_refuses_other_structures():
    with pytest.raises(ValueError, match=r"length|arity"):
        tree_util.tree_map(lambda a, b: a, [NAMED, 3], [NAMED, 4, 5])


def is_tuple(x):
    return isinstance(x, tuple)


@pytest.mark.parametrize(
    "leaves",
    [
        lambda tree: tree_util.tree_leaves(tree, is_leaf=is_tuple),
        lambda tree: tree_util.tree_leaves(tree, is_tuple),
        lambda tree: tree_util.tree_flatten(tree, is_leaf=is_tuple)[0],
        lambda tree: hax.tree.leaves(tree, is_leaf=is_tuple),
        lambda tree: hax.tree.flatten(tree, is_leaf=is_tuple)[0],
    ],
)
def test_is_leaf_adds_leaves(leaves):
    assert leaves([(1, 2), NAMED, [3]]) == [(1, 2), NAMED, 3]


def test_is_leaf_in_structure_and_map():
    tree = [(1, 2), [3]]
    assert tree_util.tree_structure(tree, is_leaf=is_tuple).num_leaves == 2
    assert hax.tree.structure(tree, is_leaf=is_tuple).num_leaves == 2
    assert hax.tree.map(lambda x: type(x).__name__, tree, is_leaf=is_tuple) == ["tuple", ["int"]]


def test_hax_tree_is_tree_util():
    leaves, treedef = hax.tree.flatten(TREE)
    assert hax.tree.unflatten(treedef, leaves) == TREE


KINDS = {"named": (NAMED, True, True), "raw": (np.ones(2), False, True), "number": (2.0, False, False)}


@pytest.mark.parametrize(("x", "named", "array_like"), KINDS.values(), ids=KINDS)
def test_kinds(x, named, array_like):
    assert hax.is_named_array(x) is hax.util.is_named_array(x) is named
    assert hax.util.is_jax_or_hax_array_like(x) is array_like


def test_hashable_partition():
    dynamic, static = tree_util.hashable_partition(TREE, eqx.is_array)
    _, again = tree_util.hashable_partition(TREE, eqx.is_array)
    assert hash(static) == hash(again)
    assert static == again
    assert dynamic["rest"] == (None, None, None)
    combined = tree_util.hashable_combine(dynamic, static)
    assert jax.tree.structure(combined) == jax.tree.structure(TREE)
    assert combined["rest"] == TREE["rest"]


# --- Stacks of layers ---


class Layer(eqx.Module):
    weight: hax.NamedArray
    raw: jax.Array
    inner: Stacked | None = None

    @staticmethod
    def init(axis, *, key, depth=None):
        inner = None
        if depth is not None:
            inner = Stacked.init(depth, Layer)(axis, key=jax.random.split(key, depth.size))
        return Layer(hax.random.normal(key, axis), jnp.ones(2), inner)


def stack(depth=None):
    keys = jax.random.split(jax.random.key(0), 4)
    return Stacked.init(hax.Axis("layers", 4), Layer)(X, key=keys, depth=depth)


def test_scan_aware_map_sees_layers():
    seen = []

    def look(leaf):
        seen.append(leaf.axis_names if hax.is_named_array(leaf) else leaf.shape)
        return leaf * 2

    doubled = hax.tree.scan_aware_map(look, [stack(), NAMED])
    assert seen == [("x",), (2,), ("x",)]
    assert doubled[0].stacked.weight.axis_names == ("layers", "x")
    np.testing.assert_array_equal(doubled[0].stacked.weight.array, 2 * stack().stacked.weight.array)
    np.testing.assert_array_equal(doubled[1].array, 2 * NAMED.array)


def test_scan_aware_map_sees_layers_of_layers():
    ranks = []

    def look(leaf):
        ranks.append(leaf.ndim)
        return leaf

    nested = stack(hax.Axis("sublayers", 5))
    same = tree_util.scan_aware_tree_map(look, nested)
    assert ranks == [1, 1, 1, 1]
    assert same.stacked.inner.stacked.weight.axis_names == ("layers", "sublayers", "x")
    assert jax.tree.structure(same) == jax.tree.structure(nested)


def test_scan_aware_map_over_two_stacks():
    total = tree_util.scan_aware_tree_map(lambda a, b: a + b, stack(), stack())
    np.testing.assert_array_equal(total.stacked.raw, 2 * stack().stacked.raw)


def test_scan_aware_map_stops_at_leaves():
    assert tree_util.scan_aware_tree_map(type, [stack()], is_leaf=lambda x: isinstance(x, Stacked)) == [Stacked]
    per_layer = tree_util.scan_aware_tree_map(type, stack(), is_leaf=lambda x: isinstance(x, Layer))
    assert per_layer.stacked is Layer


# --- Resizing ---

TABLE = hax.named(jnp.array([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]]), ("x", "b"))
# drawn by the library that this one replaces, so that resized embeddings are the same
DRAWN = [[2.1887858, 24.000866], [0.66305196, 9.387355]]


@pytest.mark.parametrize("axis", ["x", X], ids=["name", "Axis"])
def test_resize_axis_cuts(axis):
    cut = tree_util.resize_axis({"table": TABLE, "raw": jnp.ones(3), "number": 3}, axis, 2)
    np.testing.assert_array_equal(cut["table"].array, TABLE.array[:2])
    assert cut["raw"].shape == (3,)
    assert cut["number"] == 3


@pytest.mark.parametrize("transposed", [False, True])
def test_resize_axis_draws(transposed):
    table = hax.rearrange(TABLE, ("b", "x")) if transposed else TABLE
    new = tree_util.resize_axis(table, "x", 5, key=jax.random.PRNGKey(0))
    assert new.axis_names == table.axis_names
    new = new.array.T if transposed else new.array
    np.testing.assert_array_equal(new[:3], TABLE.array)
    drawn = np.asarray(DRAWN)
    if transposed:  # the numbers are drawn in the order of the array
        drawn[0, 1], drawn[1, 0] = 10 + 10 * (drawn[1, 0] - 1), 1 + (drawn[0, 1] - 10) / 10
    np.testing.assert_allclose(new[3:], drawn, rtol=1e-5)


def test_resize_axis_without_a_key_takes_the_mean():
    new = tree_util.resize_axis(TABLE, "x", 4)
    np.testing.assert_allclose(new.array[3], [1.0, 10.0])


def test_resize_axis_draws_differently_for_each_leaf():
    new = tree_util.resize_axis([TABLE, 3, TABLE], "x", 5, key=jax.random.PRNGKey(0))
    np.testing.assert_allclose(new[0].array[3:], [[1.7686138, 3.0353103], [0.4222331, 1.1048632]], rtol=1e-5)
    np.testing.assert_allclose(new[2].array[3:], [[1.9764724, 20.169794], [0.6815922, 4.0430994]], rtol=1e-5)


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.bfloat16, jnp.float32])
def test_resize_axis_keeps_the_dtype(dtype):
    assert tree_util.resize_axis(TABLE.astype(dtype), "x", 5, key=jax.random.key(0)).dtype == dtype


def test_resize_axis_checks_the_size():
    message = "resize_axis: axis 'x' has size 7; expected 3. An Axis must have the size that the array has."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        tree_util.resize_axis(TABLE, hax.Axis("x", 7), 5)
