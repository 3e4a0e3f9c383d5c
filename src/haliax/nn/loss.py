"""Losses: of logits against labels or probabilities, and how to reduce them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp

from haliax._src import creation, elementwise, reductions
from haliax._src.array_base import NamedArrayBase, as_places, is_scalar, require_named, wrap
from haliax._src.axis import Axis, AxisSelection
from haliax._src.broadcasting import as_named
from haliax._src.dot import dot
from haliax._src.errors import bad_value, duplicate_axes, format_shape, size_mismatch, wrong_dtype, wrong_type
from haliax._src.families import apply_aligned, check_mask
from haliax._src.named_array import NamedArray
from haliax._src.util import UNSPECIFIED, Unspecified
from haliax.nn.normalization import logsumexp
from haliax.types import DTypeLike

Reduction = Callable[..., Any]
"""A reduction such as `haliax.sum`, which takes an array, `axis` and `where`."""


def one_hot(x: NamedArrayBase | int, class_axis: Axis, *, dtype: DTypeLike | None = None) -> NamedArray:
    """Vectors that are 1 at a label and 0 elsewhere; all 0 if the label is no class.

    Args:
        x: Integer labels, with any axes but that of the classes; or one integer, which counts from the end if it is
            negative.
        class_axis: The axis of the classes.
        dtype: The dtype of the result, the default float dtype if None.

    Returns:
        An array with the axes of `x`, then `class_axis`.

    Raises:
        ValueError: If `x` has the axis of the classes.
        TypeError: If `x` is neither a named array nor an integer.

    Source:
        `jax.nn.one_hot`
    """
    if not isinstance(class_axis, Axis):
        raise wrong_type("one_hot", "class_axis", class_axis, "an Axis, whose size is the number of classes")
    labels = as_named("one_hot", x)
    if class_axis.name in labels.axis_names:
        raise duplicate_axes("one_hot", (*labels.axis_names, class_axis.name), "Rename the axis of the classes.")
    places = as_places(labels.array)
    if not isinstance(x, NamedArrayBase):  # an index, which counts from the end if it is negative
        places = places + (places < 0) * class_axis.size
    encoded = jax.nn.one_hot(places, class_axis.size, dtype=dtype)
    return wrap(encoded, (*labels.axis_names, class_axis.name))


def cross_entropy_loss(
    logits: NamedArrayBase,
    Label: AxisSelection,
    targets: NamedArrayBase,
    reduction: Reduction | Unspecified | None = UNSPECIFIED,
    where: NamedArrayBase | None = None,
    weight: NamedArrayBase | None = None,
    reduction_axis: AxisSelection | None = None,
) -> NamedArray:
    """Cross entropy of the softmax of logits over `Label`, against labels or probabilities.

    Args:
        logits: Unnormalised logarithms of probabilities, with the axes `Label` and any others.
        Label: The axis of the classes; several axes are one set of classes.
        targets: Probabilities with the axes `Label`, such as one-hot vectors; or integer labels without it.
        reduction: How to reduce the losses: the mean if not given, not at all if None.
        where: A mask; losses where it is false do not count.
        weight: Weights of the losses; the mean is then weighted.
        reduction_axis: The axes to reduce; all of them if None.

    Returns:
        The losses with the axes that are not reduced. The loss of a label that is no class (-1, or the number of
        classes) is that of a class whose logit is 0: mask such labels with `where`.

    Raises:
        ValueError: If an axis is missing.
        TypeError: If labels without the axis `Label` are no integers.

    Source:
        `optax.softmax_cross_entropy`, `optax.softmax_cross_entropy_with_integer_labels`
    """
    op = "cross_entropy_loss"
    loss, _ = _cross_entropies(op, logits, Label, targets)
    return _reduced(op, loss, reduction, reduction_axis, where, weight)


def cross_entropy_loss_and_log_normalizers(
    pred_y: NamedArrayBase, Label: AxisSelection, target_y: NamedArrayBase
) -> tuple[NamedArray, NamedArray]:
    """Cross entropies, and the logarithms of the sums of exponentials of the logits.

    Args:
        pred_y: Unnormalised logarithms of probabilities, with the axes `Label` and any others.
        Label: The axis of the classes; several axes are one set of classes.
        target_y: Probabilities with the axes `Label`, such as one-hot vectors; or integer labels without it.

    Returns:
        The losses and the logarithms of the normalisers, both with the axes of `pred_y` except `Label`.

    Raises:
        ValueError: If an axis is missing.
        TypeError: If labels without the axis `Label` are no integers.

    Source:
        `optax.softmax_cross_entropy`, `jax.scipy.special.logsumexp`
    """
    return _cross_entropies("cross_entropy_loss_and_log_normalizers", pred_y, Label, target_y)


def _cross_entropies(
    op: str, pred_y: NamedArrayBase, Label: AxisSelection, target_y: NamedArrayBase
) -> tuple[NamedArray, NamedArray]:
    dims = require_named(op, pred_y, "the array of logits").require_axes(op, Label)
    names = [pred_y.axis_names[d] for d in dims]
    log_normalizers: Any = logsumexp(pred_y, names)
    return log_normalizers - _log_likelihood(
        op, pred_y, names, require_named(op, target_y, "the array of targets")
    ), log_normalizers


def _log_likelihood(op: str, logits: NamedArrayBase, Label: list[str], targets: NamedArrayBase) -> Any:
    """The expectation of the logits under the targets."""
    if set(Label) <= set(targets.axis_names):
        for name in Label:
            if targets.shape[name] != logits.shape[name]:
                remedy = "The targets must have the classes of the logits."
                raise size_mismatch(op, name, targets.shape[name], logits.shape[name], remedy)
        return dot(logits, targets, axis=Label)
    if len(Label) == 1 and jnp.issubdtype(targets.array.dtype, jnp.integer):
        return _at_label(logits, Label[0], targets)
    raise _no_targets(op, Label, targets)


def _at_label(logits: NamedArrayBase, Label: str, labels: NamedArrayBase) -> Any:
    """The logits of the labels; 0 where a label is no class.

    A comparison and a sum, which a compiler fuses and splits over devices; a gather would collect all classes, and in a
    product with one-hot vectors zero times minus infinity is nan.
    """
    is_label = one_hot(labels, logits.resolve_axis(Label), dtype=jnp.bool_)
    chosen = apply_aligned("cross_entropy_loss", lambda x, m: jnp.where(m, x, 0), logits, is_label)
    return reductions.sum(chosen, Label)


def _no_targets(op: str, Label: list[str], targets: NamedArrayBase) -> ValueError | TypeError:
    """The error for targets that are neither probabilities nor labels."""
    classes = ", ".join(map(repr, Label))
    if len(Label) == 1 and Label[0] not in targets.axis_names:
        expected = f"integers, since the targets have no axis {classes}"
        return wrong_dtype(op, "'targets'", targets.array.dtype, expected, f"Probabilities need the axis {classes}.")
    return bad_value(op, f"the targets have {format_shape(targets.shape)}", f"expected all the axes {classes}")


def binary_cross_entropy_loss(
    logits: NamedArrayBase,
    targets: NamedArrayBase,
    reduction: Reduction | Unspecified | None = UNSPECIFIED,
    where: NamedArrayBase | None = None,
    weight: NamedArrayBase | None = None,
    reduction_axis: AxisSelection | None = None,
) -> NamedArray:
    """Cross entropy of the sigmoid of logits, against probabilities.

    Args:
        logits: Logarithms of the odds, with any axes.
        targets: Probabilities, integers 0 and 1, or booleans; broadcast by name against the logits.
        reduction: How to reduce the losses: the mean if not given, not at all if None.
        where: A mask; losses where it is false do not count.
        weight: Weights of the losses; the mean is then weighted.
        reduction_axis: The axes to reduce; all of them if None.

    Returns:
        The losses with the axes that are not reduced.

    Source:
        `optax.sigmoid_binary_cross_entropy`
    """
    # log(1 - sigmoid(x)) is log_sigmoid(-x), without cancellation
    loss = apply_aligned(
        "binary_cross_entropy_loss",
        lambda x, t: -t * jax.nn.log_sigmoid(x) - (1 - t) * jax.nn.log_sigmoid(-x),
        require_named("binary_cross_entropy_loss", logits),
        _as_probabilities(as_named("binary_cross_entropy_loss", targets), logits),
    )
    return _reduced("binary_cross_entropy_loss", loss, reduction, reduction_axis, where, weight)


def _as_probabilities(targets: NamedArrayBase, logits: NamedArrayBase) -> NamedArrayBase:
    """Integers and booleans as numbers of the dtype of the logits; other targets as they are."""
    if jnp.issubdtype(targets.array.dtype, jnp.inexact):
        return targets
    return elementwise.astype(targets, jnp.result_type(logits.array))


def reduce_loss(
    arr: NamedArrayBase,
    reduction: Reduction | Unspecified | None = UNSPECIFIED,
    reduction_axis: AxisSelection | None = None,
    *,
    where: NamedArrayBase | None = None,
    weight: NamedArrayBase | None = None,
) -> NamedArray:
    """Reduce losses, some of which may not count or count for more than others.

    Args:
        arr: The losses, with any axes.
        reduction: How to reduce them: the mean if not given, not at all if None.
        reduction_axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of `arr`; losses where it is false do not count. Without a reduction they
            are 0.
        weight: Weights with axes among those of `arr`. The mean is the weighted one; any other reduction is that of
            losses times weights.

    Returns:
        The losses with the axes that are not reduced. A mean over nothing is 0.

    Source:
        `jax.numpy.mean`
    """
    return _reduced("reduce_loss", require_named("reduce_loss", arr), reduction, reduction_axis, where, weight)


def maybe_reduce_loss(
    arr: NamedArrayBase,
    reduction: Reduction | Unspecified | None,
    reduction_axis: AxisSelection | None,
    where: NamedArrayBase | None,
    weight: NamedArrayBase | None,
) -> Any:
    """`reduce_loss` with all arguments by position.

    Args:
        arr: The losses, with any axes.
        reduction: As in `reduce_loss`.
        reduction_axis: The axes to reduce; all of them if None.
        where: A mask with axes among those of `arr`.
        weight: Weights with axes among those of `arr`.

    Returns:
        What `reduce_loss` returns.

    Source:
        `jax.numpy.mean`
    """
    op = "maybe_reduce_loss"
    return _reduced(op, require_named(op, arr), reduction, reduction_axis, where, weight)


def _reduced(op: str, arr: NamedArrayBase, reduction: Any, reduction_axis: Any, where: Any, weight: Any) -> Any:
    """The reduction of losses, once its arguments are known to fit them."""
    if reduction is not None and reduction is not UNSPECIFIED and not callable(reduction):
        remedy = "" if not isinstance(reduction, str) else f"Pass haliax.{reduction}, the function itself."
        raise wrong_type(op, "reduction", reduction, "a function such as haliax.mean, or None", remedy)
    if reduction_axis is not None:
        arr.require_axes(op, reduction_axis)
    for argument, value in (("where", where), ("weight", weight)):
        if value is not None and (argument == "where" or not is_scalar(value)):
            require_named(op, value, argument)
    if where is not None:
        check_mask(op, where, arr)
    if isinstance(weight, NamedArrayBase) and not weight.shape.items() <= arr.shape.items():
        expected = f"expected axes among those of the losses: {format_shape(arr.shape)}"
        raise bad_value(op, f"the weights have {format_shape(weight.shape)}", expected)
    if reduction is UNSPECIFIED or reduction is reductions.mean:
        return _mean(arr, reduction_axis, where, weight)
    if weight is not None:
        arr = elementwise.multiply(arr, weight)
    if reduction is None:
        masked = lambda x, m: jnp.where(m, x, 0)  # noqa: E731
        return arr if where is None else apply_aligned("reduce_loss", masked, arr, where)
    options = {} if where is None else {"where": where}
    return cast(Reduction, reduction)(arr, reduction_axis, **options)


def _mean(arr: NamedArrayBase, axis: AxisSelection | None, where: Any, weight: Any) -> Any:
    """The weighted mean, 0 where all weights are."""
    if where is None and weight is None:
        return reductions.mean(arr, axis)
    weights = elementwise.multiply(creation.ones_like(arr), 1 if weight is None else weight)
    total = reductions.sum(elementwise.multiply(arr, weights), axis, where=where)
    count = reductions.sum(weights, axis, where=where)
    return apply_aligned("reduce_loss", lambda t, n: jnp.where(n == 0, 0, t / jnp.where(n == 0, 1, n)), total, count)
