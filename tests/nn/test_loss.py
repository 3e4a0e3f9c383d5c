"""Losses against formulas: labels and probabilities, masks, weights, reductions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import Axis, NamedArray

B, T, V = Axis("batch", 2), Axis("time", 4), Axis("vocab", 3)
RNG = np.random.default_rng(0)
LOGITS = NamedArray(jnp.asarray(RNG.normal(size=(2, 4, 3)), jnp.float32), ("batch", "time", "vocab"))
LABELS = NamedArray(jnp.asarray(RNG.integers(0, 3, (2, 4))), ("batch", "time"))
SOFT = hax.nn.softmax(LOGITS * -2 + 0.3, "vocab")
ONE_HOT = hax.nn.one_hot(LABELS, V)

LOG_PROBABILITIES = np.asarray(jax.nn.log_softmax(LOGITS.array, -1))
LOSS_OF_LABELS = -np.take_along_axis(LOG_PROBABILITIES, np.asarray(LABELS.array)[..., None], -1)[..., 0]
LOSS_OF_SOFT = -np.sum(np.asarray(SOFT.array) * LOG_PROBABILITIES, -1)


@pytest.mark.parametrize(
    ("targets", "expected"),
    [(LABELS, LOSS_OF_LABELS), (ONE_HOT, LOSS_OF_LABELS), (SOFT, LOSS_OF_SOFT), (ONE_HOT.astype(int), LOSS_OF_LABELS)],
    ids=["labels", "one-hot", "soft", "integer one-hot"],
)
@pytest.mark.parametrize("label", ["vocab", V, ("vocab",)])
def test_cross_entropy(targets, expected, label):
    loss = hax.nn.cross_entropy_loss(LOGITS, label, targets, reduction=None)
    assert loss.axis_names == ("batch", "time")
    np.testing.assert_allclose(loss.array, expected, rtol=1e-5)
    np.testing.assert_allclose(hax.nn.cross_entropy_loss(LOGITS, label, targets).array, expected.mean(), rtol=1e-5)


def test_log_normalizers():
    for targets in (LABELS, SOFT):
        loss, log_normalizers = hax.nn.cross_entropy_loss_and_log_normalizers(LOGITS, V, targets)
        np.testing.assert_array_equal(log_normalizers.array, jax.nn.logsumexp(LOGITS.array, -1))
        assert loss.axis_names == log_normalizers.axis_names == ("batch", "time")


def test_order_of_axes_does_not_matter():
    moved = LOGITS.rearrange(("vocab", "time", "batch"))
    for targets in (LABELS, ONE_HOT):
        loss = hax.nn.cross_entropy_loss(moved, "vocab", targets, reduction=None)
        np.testing.assert_allclose(loss.rearrange(("batch", "time")).array, LOSS_OF_LABELS, rtol=1e-5)


def test_several_axes_are_one_set_of_classes():
    targets = hax.nn.softmax(LOGITS * 3, ("time", "vocab"))
    loss = hax.nn.cross_entropy_loss(LOGITS, ("time", "vocab"), targets, reduction=None)
    expected = -(targets.array * jax.nn.log_softmax(LOGITS.array, (1, 2))).sum((1, 2))
    np.testing.assert_allclose(loss.array, expected, rtol=1e-5)


def test_labels_survive_classes_of_probability_zero():
    logits = hax.named(jnp.array([[0.0, -jnp.inf, 1.0]]), ("batch", "vocab"))
    loss = hax.nn.cross_entropy_loss(logits, "vocab", hax.named(jnp.array([2]), "batch"), reduction=None)
    np.testing.assert_allclose(loss.array, [np.log(1 + np.exp(-1))], rtol=1e-6)


@pytest.mark.parametrize("targets", [LABELS, ONE_HOT])
def test_gradient_is_probabilities_less_targets(targets):
    gradient = jax.grad(lambda x: hax.nn.cross_entropy_loss(x, V, targets, reduction=hax.sum).scalar())(LOGITS)
    np.testing.assert_allclose(gradient.array, jax.nn.softmax(LOGITS.array) - ONE_HOT.array, atol=1e-5)


def test_binary_cross_entropy():
    targets = hax.nn.sigmoid(LOGITS * -2)
    x, t = np.asarray(LOGITS.array), np.asarray(targets.array)
    expected = -(t * np.log(1 / (1 + np.exp(-x))) + (1 - t) * np.log(1 / (1 + np.exp(x))))
    loss = hax.nn.binary_cross_entropy_loss(LOGITS, targets, reduction=None)
    np.testing.assert_allclose(loss.array, expected, rtol=1e-5)
    np.testing.assert_allclose(hax.nn.binary_cross_entropy_loss(LOGITS, targets).array, expected.mean(), rtol=1e-5)


@pytest.mark.parametrize("dtype", [bool, int, float])
def test_binary_targets_of_any_dtype(dtype):
    targets = (LABELS > 0).astype(dtype)
    loss = hax.nn.binary_cross_entropy_loss(LOGITS, targets, reduction=None)
    sign = np.where(np.asarray(LABELS.array) > 0, -1, 1)[..., None]
    np.testing.assert_allclose(loss.array, np.log1p(np.exp(sign * np.asarray(LOGITS.array))), rtol=1e-4)


def test_binary_cross_entropy_of_certain_logits():
    logits = hax.named(jnp.array([-200.0, 200.0]), "x")
    np.testing.assert_array_equal(hax.nn.binary_cross_entropy_loss(logits, logits > 0, reduction=None).array, [0, 0])
    np.testing.assert_array_equal(
        hax.nn.binary_cross_entropy_loss(logits, logits < 0, reduction=None).array, [200, 200]
    )


LOSSES = NamedArray(jnp.asarray(RNG.normal(size=(2, 4)), jnp.float32), ("batch", "time"))
VALUES = np.asarray(LOSSES.array)
# a whole row of `time` is masked out for the second of `batch`
MASK = NamedArray(jnp.array([[True, False, True, True], [False] * 4]), ("batch", "time"))
WEIGHT = NamedArray(jnp.array([1.0, 3.0, 0.0, 2.0]), ("time",))
RAW_MASK, RAW_WEIGHT = np.asarray(MASK.array), np.broadcast_to(np.asarray(WEIGHT.array), (2, 4))


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("where", [None, MASK])
@pytest.mark.parametrize(("axis", "dims"), [(None, (0, 1)), ("time", 1), (("batch",), 0), ((), ())])
@pytest.mark.parametrize("reduction", [{}, {"reduction": hax.mean}])
def test_mean(reduction, axis, dims, where, weight):
    weights = (RAW_WEIGHT if weight is not None else 1.0) * (RAW_MASK if where is not None else np.ones((2, 4)))
    total, count = np.sum(VALUES * weights, dims), np.sum(weights, dims)
    expected = np.where(count == 0, 0, total / np.where(count == 0, 1, count))
    result = hax.nn.reduce_loss(LOSSES, **reduction, reduction_axis=axis, where=where, weight=weight)
    np.testing.assert_allclose(result.array, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("where", [None, MASK])
def test_other_reductions(where, weight):
    expected = VALUES * (RAW_WEIGHT if weight is not None else 1.0)
    keep = RAW_MASK if where is not None else True
    unreduced = hax.nn.reduce_loss(LOSSES, None, where=where, weight=weight)
    np.testing.assert_allclose(unreduced.array, np.where(keep, expected, 0))
    total = hax.nn.reduce_loss(LOSSES, hax.sum, "time", where=where, weight=weight)
    np.testing.assert_allclose(total.array, np.sum(expected, 1, where=keep), rtol=1e-5)
    largest = hax.nn.reduce_loss(LOSSES, hax.max, where=where, weight=weight)
    np.testing.assert_allclose(largest.array, np.max(expected, where=keep, initial=-np.inf))


def test_masked_losses_do_not_matter_even_if_nan():
    bad = hax.named(jnp.array([1.0, jnp.nan, 3.0]), "x")
    ok = ~hax.named(jnp.array([False, True, False]), "x")
    for reduction, expected in (({}, 2), ({"reduction": hax.sum}, 4), ({"reduction": None}, [1, 0, 3])):
        np.testing.assert_array_equal(hax.nn.reduce_loss(bad, **reduction, where=ok).array, expected)


@pytest.mark.parametrize("dtype", [None, jnp.bfloat16, bool])
def test_one_hot(dtype):
    labels = hax.named(jnp.array([0, 2, 5, -1]), "x")
    result = hax.nn.one_hot(labels, V, dtype=dtype)
    assert result.axis_names == ("x", "vocab")
    expected = jax.nn.one_hot(labels.array, 3, dtype=dtype)
    assert result.array.dtype == expected.dtype
    np.testing.assert_array_equal(result.array, expected)
    assert hax.nn.one_hot(1, V).array.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: hax.nn.cross_entropy_loss(LOGITS, "vocav", LABELS),
            ValueError,
            "cross_entropy_loss: no axis 'vocav'; the array has batch=2, time=4, vocab=3. Did you mean 'vocab'?",
        ),
        (
            lambda: hax.nn.cross_entropy_loss(LOGITS, V, LABELS.astype(float)),
            TypeError,
            "cross_entropy_loss: 'targets' has dtype float32; expected integers,"
            " since the targets have no axis 'vocab'. Probabilities need the axis 'vocab'.",
        ),
        (
            lambda: hax.nn.cross_entropy_loss(LOGITS, ("time", "vocab"), LABELS),
            ValueError,
            "cross_entropy_loss: the targets have batch=2, time=4; expected all the axes 'time', 'vocab'.",
        ),
        (
            lambda: hax.nn.cross_entropy_loss(LOGITS, "vocab", hax.ones((B, Axis("vocab", 5)))),
            ValueError,
            "cross_entropy_loss: axis 'vocab' has size 5; expected 3. The targets must have the classes of the logits.",
        ),
        (
            lambda: hax.nn.one_hot(LOGITS, V),
            ValueError,
            "one_hot: axis 'vocab' occurs more than once in (batch, time, vocab, vocab)."
            " Rename the axis of the classes.",
        ),
        (
            lambda: hax.nn.one_hot(LABELS, "vocab"),
            TypeError,
            "one_hot: class_axis is a string; expected an Axis, whose size is the number of classes.",
        ),
    ],
)
def test_messages(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message
