"""Integers that name places: narrow dtypes, and 64 bits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import ds

Wide = hax.Axis("wide", 300)
X = hax.arange(Wide)
NARROW = [jnp.int8, jnp.uint8, jnp.int16, jnp.uint16]


@pytest.mark.parametrize("dtype", NARROW)
def test_places_beyond_the_range_of_their_dtype(dtype):
    start = dtype(100)
    assert X["wide", start].item() == 100
    assert X.slice("wide", start=start, length=30).array.tolist() == list(range(100, 130))
    assert X["wide", ds(start, 30)].array.tolist() == list(range(100, 130))
    update = hax.zeros(Wide.resize(150), dtype=jnp.int32)
    expected = np.r_[0:100, np.zeros(150, int), 250:300]
    assert np.array_equal(np.asarray(X.updated_slice({"wide": start}, update)), expected)
    assert np.array_equal(np.asarray(X.at["wide", ds(start, 150)].set(0)), expected)
    places = hax.named(jnp.array([1, 100], dtype), "pick")
    assert X["wide", places].array.tolist() == [1, 100] == X["wide", jnp.array([1, 100], dtype)].array.tolist()


@pytest.mark.parametrize("dtype", [jnp.int8, jnp.int16, jnp.int32])
def test_places_from_the_end(dtype):
    assert X["wide", dtype(-1)].item() == 299
    assert X.slice("wide", start=dtype(-20), length=5).array.tolist() == [280, 281, 282, 283, 284]
    assert X.updated_slice({"wide": dtype(-20)}, hax.zeros(Wide.resize(5), dtype=jnp.int32))["wide", 280].item() == 0
    rows = hax.arange(hax.Axis("row", 200)).broadcast_axis(hax.Axis("copy", 2))
    assert rows["row", hax.named(jnp.array([-1, -2], dtype), "copy")].array.tolist() == [199, 198]


@pytest.mark.parametrize("dtype", NARROW)
def test_labels_of_more_classes_than_their_dtype_has(dtype):
    labels = hax.named(jnp.array([0, 1, 44], dtype), "batch")
    encoded = hax.nn.one_hot(labels, hax.Axis("class", 300))
    assert (encoded.sum("class").array == 1).all()
    logits = hax.random.normal(jax.random.key(0), (hax.Axis("batch", 3), hax.Axis("class", 300)))
    wide = labels.astype(jnp.int32)
    narrow_loss, loss = (hax.nn.cross_entropy_loss(logits, "class", x).item() for x in (labels, wide))
    assert narrow_loss == loss
    assert hax.ops.bincount(labels, hax.Axis("count", 300)).array.sum() == 3
    assert hax.repeat(hax.arange(hax.Axis("a", 3)), dtype(100), "a", total_repeat_length=300).array[-1] == 2


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.uint8, jnp.int64])
def test_starts_with_64_bits(dtype):
    with jax.enable_x64(True):
        x = hax.named(jnp.arange(24).reshape(4, 6), ("row", "col"))
        start = dtype(1)
        expected = np.arange(24).reshape(4, 6)
        assert np.array_equal(np.asarray(x["col", ds(start, 2)]), expected[:, 1:3])
        assert np.array_equal(np.asarray(x["col", ds(5, 2)]["col", 0]), expected[:, 5])
        assert np.array_equal(np.asarray(x.slice("col", start=start, length=2)), expected[:, 1:3])
        changed = x.updated_slice({"col": start}, hax.zeros({"row": 4, "col": 2}, dtype=jnp.int32))
        assert (np.asarray(changed)[:, 1:3] == 0).all()
        assert (np.asarray(x.at["col", ds(start, 2)].set(0))[:, 1:3] == 0).all()


# placeholders and ranks --------------------------------------------------------------------------------------------


def test_structures_that_hold_placeholders_are_compared():
    nothing = hax.NamedArray(None, ("a",))
    assert (nothing == hax.NamedArray(None, ("a",))) is True and (nothing != hax.NamedArray(None, ("b",))) is True
    assert (nothing == hax.NamedArray(jnp.ones(2), ("a",))) is False
    with jax.disable_jit():
        _, out = hax.scan(lambda c, x: (c, x * 2), "wide")(0, X)
    assert np.array_equal(np.asarray(out), np.arange(300) * 2)


def test_a_rank_that_does_not_fit_the_names():
    x = hax.ones({"a": 2, "b": 3})
    for call in (lambda y: y.sum("b"), lambda y: y.max("a"), lambda y: hax.sort(y, "b"), lambda y: y.axis_size("a")):
        with pytest.raises(ValueError, match="expected one dimension for each name"):
            jax.vmap(call)(x)


def test_repr_of_derivatives():
    x = hax.ones({"a": 2, "b": 3})
    for derivative in (jax.jacrev, jax.jacfwd):
        assert repr(derivative(lambda x: x.sum("b"))(x)) == "NamedArray(NamedArray(float32[2, 2, 3] as [a, b]) as [a])"


def test_masks_are_booleans():
    x = hax.ones({"a": 2})
    with pytest.raises(TypeError) as error:
        x.sum("a", where=x)
    assert str(error.value) == (
        "sum: the mask `where` has dtype float32; expected booleans. Compare it, as in `where != 0`."
    )


def test_boolean_targets_under_strict_promotion():
    logits, targets = hax.ones({"a": 2}), hax.named(jnp.array([True, False]), "a")
    with jax.numpy_dtype_promotion("strict"):
        assert np.isfinite(hax.nn.binary_cross_entropy_loss(logits, targets).item())
