"""Activations, normalisation, losses and attention."""

import haliax as hax
from errors.arrays import (
    A_DTYPE,
    A_KEY,
    ANY_FORM,
    GIVE_EMBED,
    HAS,
    KEY,
    MASK,
    NAME_IT,
    ONE_INSIDE,
    OPERAND,
    OR_SCALAR,
    RAW,
    ROW,
    SIZED,
    VECTOR,
    B,
    E,
    N,
    T,
    X,
)

CASES = [
    (lambda: hax.nn.softmax(X, "z"), ValueError, f"softmax: no axis 'z'; {HAS}."),
    (lambda: hax.nn.softmax(X, 0), TypeError, f"softmax: the axes are an int; {ANY_FORM}"),
    (
        lambda: hax.nn.softmax(RAW, "z"),
        ValueError,
        f"softmax: an axis by name, and an unnamed array of 1 dimensions; expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.softmax(X, "time", where=RAW),
        TypeError,
        (
            "softmax: where is a jax array of shape (3,); expected a NamedArray. Name its axes with "
            "haliax.named(mask, axes)."
        ),
    ),
    (
        lambda: hax.nn.log_softmax(X, ("time", "time")),
        ValueError,
        "log_softmax: axis 'time' occurs more than once in (time, time).",
    ),
    (lambda: hax.nn.logsumexp(X, "z"), ValueError, f"logsumexp: no axis 'z'; {HAS}."),
    (lambda: hax.nn.standardize(X, "z"), ValueError, f"standardize: no axis 'z'; {HAS}."),
    (
        lambda: hax.nn.standardize(RAW, "z"),
        TypeError,
        f"standardize: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.standardize(X, "time", mean=RAW),
        ValueError,
        f"standardize: mean is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.nn.standardize(X, "time", mean=VECTOR),
        ValueError,
        f"standardize: axes (batch=2, time=3) and (embed=4); {ONE_INSIDE} {GIVE_EMBED}",
    ),
    (
        lambda: hax.nn.standardize(X, "time", where=X),
        TypeError,
        "standardize: the mask `where` has dtype float32; expected booleans. Compare it, as in `where != 0`.",
    ),
    (lambda: hax.nn.relu("a"), TypeError, f"relu: an operand is a string; {OPERAND}"),
    (lambda: hax.nn.relu(None), TypeError, f"relu: an operand is None; {OPERAND}"),
    (lambda: hax.nn.gelu(None), TypeError, f"gelu: an operand is None; {OPERAND}"),
    (lambda: hax.nn.glu(X, "z"), ValueError, f"glu: no axis 'z'; {HAS}."),
    (lambda: hax.nn.glu(X, "time"), ValueError, "glu: axis time=3; expected an even size."),
    (
        lambda: hax.nn.one_hot(N, "c"),
        TypeError,
        "one_hot: class_axis is a string; expected an Axis, whose size is the number of classes.",
    ),
    (
        lambda: hax.nn.one_hot(N, T),
        ValueError,
        ("one_hot: axis 'time' occurs more than once in (batch, time, time). Rename the axis of the classes."),
    ),
    (
        lambda: hax.nn.one_hot(RAW, E),
        ValueError,
        f"one_hot: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.nn.one_hot(N, None),
        TypeError,
        "one_hot: class_axis is None; expected an Axis, whose size is the number of classes.",
    ),
    (lambda: hax.nn.cross_entropy_loss(X, "z", X), ValueError, f"cross_entropy_loss: no axis 'z'; {HAS}."),
    (
        lambda: hax.nn.cross_entropy_loss(X, "time", RAW),
        TypeError,
        f"cross_entropy_loss: the array of targets is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.cross_entropy_loss(RAW, "time", X),
        TypeError,
        f"cross_entropy_loss: the array of logits is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.cross_entropy_loss(X, "time", hax.zeros(B)),
        TypeError,
        (
            "cross_entropy_loss: 'targets' has dtype float32; expected integers, since the targets have "
            "no axis 'time'. Probabilities need the axis 'time'."
        ),
    ),
    (
        lambda: hax.nn.cross_entropy_loss(X, "time", hax.zeros(E, int)),
        ValueError,
        f"cross_entropy_loss: axes (batch=2, time=3) and (embed=4, time=3); {ONE_INSIDE} {GIVE_EMBED}",
    ),
    (
        lambda: hax.nn.cross_entropy_loss(X, "time", X, reduction="mean"),
        TypeError,
        (
            "cross_entropy_loss: reduction is a string; expected a function such as haliax.mean, or "
            "None. Pass haliax.mean, the function itself."
        ),
    ),
    (
        lambda: hax.nn.cross_entropy_loss(X, "time", X, reduction=3),
        TypeError,
        "cross_entropy_loss: reduction is an int; expected a function such as haliax.mean, or None.",
    ),
    (
        lambda: hax.nn.cross_entropy_loss(X, "time", X, where=RAW),
        TypeError,
        f"cross_entropy_loss: where is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.cross_entropy_loss(X, "time", X, where=MASK),
        ValueError,
        ("cross_entropy_loss: the mask `where` has batch=2, time=3; expected axes among those of the array: batch=2."),
    ),
    (
        lambda: hax.nn.cross_entropy_loss(X, "time", X, weight=RAW),
        TypeError,
        f"cross_entropy_loss: weight is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.cross_entropy_loss(X, "time", X, reduction_axis="z"),
        ValueError,
        "cross_entropy_loss: no axis 'z'; the array has batch=2.",
    ),
    (
        lambda: hax.nn.cross_entropy_loss(X, "time", X, reduction_axis="time"),
        ValueError,
        "cross_entropy_loss: no axis 'time'; the array has batch=2.",
    ),
    (lambda: hax.nn.cross_entropy_loss(X, None, X), TypeError, f"cross_entropy_loss: the axes are None; {ANY_FORM}"),
    (lambda: hax.nn.cross_entropy_loss(X, 0, X), TypeError, f"cross_entropy_loss: the axes are an int; {ANY_FORM}"),
    (
        lambda: hax.nn.cross_entropy_loss(X, ("batch", "time"), hax.zeros((), int)),
        ValueError,
        "cross_entropy_loss: the targets have no axes; expected all the axes 'batch', 'time'.",
    ),
    (
        lambda: hax.nn.cross_entropy_loss(X, "time", hax.zeros({"time": 5})),
        ValueError,
        ("cross_entropy_loss: axis 'time' has size 5; expected 3. The targets must have the classes of the logits."),
    ),
    (
        lambda: hax.nn.cross_entropy_loss_and_log_normalizers(X, "z", X),
        ValueError,
        f"cross_entropy_loss_and_log_normalizers: no axis 'z'; {HAS}.",
    ),
    (
        lambda: hax.nn.binary_cross_entropy_loss(X, RAW),
        ValueError,
        f"binary_cross_entropy_loss: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.nn.binary_cross_entropy_loss(X, VECTOR),
        ValueError,
        f"binary_cross_entropy_loss: axes (batch=2, time=3) and (embed=4); {ONE_INSIDE} {GIVE_EMBED}",
    ),
    (
        lambda: hax.nn.binary_cross_entropy_loss(X, X, reduction="mean"),
        TypeError,
        (
            "binary_cross_entropy_loss: reduction is a string; expected a function such as haliax.mean, "
            "or None. Pass haliax.mean, the function itself."
        ),
    ),
    (
        lambda: hax.nn.reduce_loss(X, "sum"),
        TypeError,
        (
            "reduce_loss: reduction is a string; expected a function such as haliax.mean, or None. Pass "
            "haliax.sum, the function itself."
        ),
    ),
    (
        lambda: hax.nn.loss.maybe_reduce_loss(X, "sum", None, None, None),
        TypeError,
        (
            "maybe_reduce_loss: reduction is a string; expected a function such as haliax.mean, or None. "
            "Pass haliax.sum, the function itself."
        ),
    ),
    (
        lambda: hax.nn.attention.dot_product_attention("z", "k", X, X, X),
        ValueError,
        f"dot_product_attention: no axis 'z'; {HAS}.",
    ),
    (
        lambda: hax.nn.attention.dot_product_attention("batch", "embed", X, X, X),
        ValueError,
        (
            "dot_product_attention: the query has batch=2, time=3; its axes and 'batch', the axis of the "
            "keys, must be distinct. Rename its axis of positions, as in query.rename({...})."
        ),
    ),
    (
        lambda: hax.nn.attention.dot_product_attention("time", "embed", RAW, X, X),
        TypeError,
        f"dot_product_attention: the query is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.attention.dot_product_attention_weights("embed", "time", X, X),
        ValueError,
        f"dot_product_attention_weights: no axis 'embed'; {HAS}.",
    ),
    (
        lambda: hax.nn.attention.dot_product_attention_weights("time", "batch", X, X, mask=RAW),
        TypeError,
        f"dot_product_attention_weights: the mask is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.attention.dot_product_attention_weights("time", "batch", X, X, mask=X),
        ValueError,
        (
            "dot_product_attention_weights: the mask `where` has batch=2, time=3; expected axes among "
            "those of the array: batch=2."
        ),
    ),
    (
        lambda: hax.nn.attention.dot_product_attention_weights("time", "batch", X, X, bias=RAW),
        ValueError,
        f"dot_product_attention_weights: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.nn.attention.causal_mask("a", "b"), ValueError, f"causal_mask: axis 'a' has no size; {SIZED}"),
    (
        lambda: hax.nn.attention.causal_mask(B, B),
        ValueError,
        "causal_mask: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (
        lambda: hax.nn.attention.causal_mask(3, 3),
        TypeError,
        "causal_mask: entry 0 of the axes is an int; expected an Axis or a name.",
    ),
    (
        lambda: hax.nn.attention.causal_mask(B, T, q_start=RAW),
        ValueError,
        f"causal_mask: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.nn.attention.prefix_lm_mask(B, T, "a"),
        TypeError,
        f"prefix_lm_mask: an operand is a string; {OR_SCALAR}",
    ),
    (
        lambda: hax.nn.attention.combine_masks_and(X, RAW),
        TypeError,
        f"combine_masks_and: mask2 is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.attention.combine_masks_or(None, 3),
        TypeError,
        f"combine_masks_or: mask2 is an int; expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.attention.forgetful_causal_mask(B, T, 1.5, key=KEY),
        TypeError,
        f"forgetful_causal_mask: mask_prob is an Axis; {OR_SCALAR}",
    ),
    (
        lambda: hax.nn.attention.alibi_attention_bias("h", T),
        ValueError,
        f"alibi_attention_bias: axis 'h' has no size; {SIZED}",
    ),
    (
        lambda: hax.nn.attention.mask_to_bias(RAW),
        TypeError,
        f"mask_to_bias: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.attention.dot_product_attention("time", "batch", X, X, ROW, attention_dtype="a"),
        ValueError,
        (
            "dot_product_attention: the query has batch=2, time=3; its axes and 'time', the axis of the "
            "keys, must be distinct. Rename its axis of positions, as in query.rename({...})."
        ),
    ),
    (
        lambda: hax.nn.softmax(X, "time", where=hax.zeros(E, bool)),
        ValueError,
        "softmax: the mask `where` has embed=4; expected axes among those of the array: batch=2, time=3.",
    ),
    (lambda: hax.nn.log_softmax(X, 0), TypeError, f"log_softmax: the axes are an int; {ANY_FORM}"),
    (
        lambda: hax.nn.logsumexp(RAW, "time"),
        ValueError,
        f"logsumexp: an axis by name, and an unnamed array of 1 dimensions; expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.glu(RAW, "time"),
        TypeError,
        f"glu: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.nn.silu([1]), TypeError, f"silu: an operand is a list; {OPERAND}"),
    (lambda: hax.nn.swish(None), TypeError, f"swish: an operand is None; {OPERAND}"),
    (lambda: hax.nn.one_hot(None, E), TypeError, f"one_hot: an operand is None; {OR_SCALAR}"),
    (
        lambda: hax.nn.one_hot(N, 5),
        TypeError,
        "one_hot: class_axis is an int; expected an Axis, whose size is the number of classes.",
    ),
    (
        lambda: hax.nn.cross_entropy_loss(X, "time", None),
        TypeError,
        "cross_entropy_loss: the array of targets is None; expected a NamedArray.",
    ),
    (
        lambda: hax.nn.cross_entropy_loss(X, "tiem", X),
        ValueError,
        f"cross_entropy_loss: no axis 'tiem'; {HAS}. Did you mean 'time'?",
    ),
    (
        lambda: hax.nn.cross_entropy_loss(X, "time", X, weight=VECTOR),
        ValueError,
        "cross_entropy_loss: the weights have embed=4; expected axes among those of the losses: batch=2.",
    ),
    (
        lambda: hax.nn.binary_cross_entropy_loss(RAW, X),
        TypeError,
        f"binary_cross_entropy_loss: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.binary_cross_entropy_loss(X, X, where=RAW),
        TypeError,
        f"binary_cross_entropy_loss: where is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.binary_cross_entropy_loss(X, X, reduction_axis="z"),
        ValueError,
        f"binary_cross_entropy_loss: no axis 'z'; {HAS}.",
    ),
    (
        lambda: hax.nn.reduce_loss(RAW),
        TypeError,
        f"reduce_loss: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.reduce_loss(X, "mean"),
        TypeError,
        (
            "reduce_loss: reduction is a string; expected a function such as haliax.mean, or None. Pass "
            "haliax.mean, the function itself."
        ),
    ),
    (lambda: hax.nn.reduce_loss(X, hax.sum, "z"), ValueError, f"reduce_loss: no axis 'z'; {HAS}."),
    (
        lambda: hax.nn.reduce_loss(X, where=X),
        TypeError,
        ("reduce_loss: the mask `where` has dtype float32; expected booleans. Compare it, as in `where != 0`."),
    ),
    (
        lambda: hax.nn.attention.dot_product_attention("pos", "embed", VECTOR, VECTOR, VECTOR),
        ValueError,
        "dot_product_attention: no axis 'pos'; the array has embed=4.",
    ),
    (
        lambda: hax.nn.attention.dot_product_attention("time", "embed", VECTOR, hax.ones((T, E)), RAW),
        TypeError,
        f"dot_product_attention: the value is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.attention.dot_product_attention("time", "embed", VECTOR, hax.ones((T, E)), VECTOR),
        ValueError,
        "dot_product_attention: no axis 'time'; the array has embed=4.",
    ),
    (
        lambda: hax.nn.attention.dot_product_attention("time", "embed", VECTOR, hax.ones((T, E)), ROW, mask=RAW),
        TypeError,
        f"dot_product_attention: the mask is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.attention.dot_product_attention("time", "embed", VECTOR, hax.ones((T, E)), ROW, mask=MASK),
        ValueError,
        (
            "dot_product_attention: the mask `where` has batch=2, time=3; expected axes among those of "
            "the array: time=3."
        ),
    ),
    (
        lambda: hax.nn.attention.dot_product_attention("time", "embed", VECTOR, hax.ones((T, E)), ROW, bias=RAW),
        ValueError,
        f"dot_product_attention: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.nn.attention.dot_product_attention(
            "time", "embed", VECTOR, hax.ones((T, E)), ROW, attention_dtype="half?"
        ),
        TypeError,
        f"dot_product_attention: there is no dtype 'half?'; {A_DTYPE}",
    ),
    (lambda: hax.nn.attention.prefix_lm_mask("q", T, 2), ValueError, f"prefix_lm_mask: axis 'q' has no size; {SIZED}"),
    (
        lambda: hax.nn.attention.prefix_lm_mask(B, B, 2),
        ValueError,
        "prefix_lm_mask: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (
        lambda: hax.nn.attention.combine_masks_or(3, None),
        TypeError,
        f"combine_masks_or: mask1 is an int; expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.attention.forgetful_causal_mask(T, "a", key=KEY),
        TypeError,
        f"forgetful_causal_mask: mask_prob is a string; {OR_SCALAR}",
    ),
    (
        lambda: hax.nn.attention.forgetful_causal_mask("t", 0.5, key=KEY),
        ValueError,
        f"forgetful_causal_mask: axis 't' has no size; {SIZED}",
    ),
    (
        lambda: hax.nn.attention.forgetful_causal_mask(T, 0.5, key=1),
        TypeError,
        f"forgetful_causal_mask: the key is an int; {A_KEY}",
    ),
    (
        lambda: hax.nn.attention.alibi_attention_bias(B, B),
        ValueError,
        "alibi_attention_bias: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (lambda: hax.nn.attention.mask_to_bias(None), TypeError, "mask_to_bias: the array is None; expected a NamedArray."),
    (
        lambda: hax.nn.leaky_relu(X, "a"),
        TypeError,
        "leaky_relu: negative_slope is a string; expected a number.",
    ),
    (lambda: hax.nn.celu(X, RAW), TypeError, "celu: alpha is a jax array of shape (3,); expected a number."),
    (lambda: hax.nn.elu(X, alpha=None), TypeError, "elu: alpha is None; expected a number."),
]
