"""Attention against plain JAX, and its masks and biases element by element."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import Axis, NamedArray
from haliax.nn import attention

B, H, Q, K, D = Axis("batch", 2), Axis("heads", 3), Axis("pos", 4), Axis("kpos", 5), Axis("key", 6)
KEYS = jax.random.split(jax.random.key(0), 3)
QUERY = hax.random.normal(KEYS[0], (B, H, Q, D))
KEY = hax.random.normal(KEYS[1], (B, H, K, D))
VALUE = hax.random.normal(KEYS[2], (B, H, K, D))
CAUSAL = attention.causal_mask(Q, K)
BIAS = attention.alibi_attention_bias(H, K)


def plain(query, key, value, mask=None, bias=None, scale=6**-0.5, dtype=jnp.float32):
    """Weights and result of attention on raw arrays (batch, heads, position, key)."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", query.astype(dtype) * scale, key.astype(dtype))
    scores = scores if bias is None else scores + bias
    weights = jax.nn.softmax(scores, where=mask).astype(query.dtype)
    return weights, jnp.einsum("bhqk,bhkd->bhqd", weights, value)


CASES = [
    ({}, {}),
    ({"mask": CAUSAL}, {"mask": CAUSAL.array[None, None]}),
    ({"bias": BIAS}, {"bias": BIAS.array[None, :, None]}),
    ({"mask": CAUSAL, "bias": BIAS}, {"mask": CAUSAL.array[None, None], "bias": BIAS.array[None, :, None]}),
]


@pytest.mark.parametrize(("named", "raw"), CASES, ids=lambda case: "+".join(case))
def test_follows_plain_jax(named, raw):
    weights, expected = plain(QUERY.array, KEY.array, VALUE.array, **raw)
    ours = attention.dot_product_attention_weights(D, K, QUERY, KEY, **named)
    assert ours.axis_names == ("batch", "heads", "pos", "kpos")
    np.testing.assert_allclose(ours.array, weights, atol=1e-6)
    result = attention.dot_product_attention("kpos", "key", QUERY, KEY, VALUE, **named)
    assert result.axis_names == ("batch", "heads", "pos", "key")
    np.testing.assert_allclose(result.array, expected, atol=1e-5)


def test_order_of_axes_does_not_matter():
    expected = attention.dot_product_attention(K, D, QUERY, KEY, VALUE, CAUSAL)
    result = attention.dot_product_attention(
        K,
        D,
        QUERY.rearrange(("key", "pos", "heads", "batch")),
        KEY.rearrange(("kpos", "key", "batch", "heads")),
        VALUE.rearrange(("heads", "key", "kpos", "batch")),
        CAUSAL.rearrange(("kpos", "pos")),
    )
    np.testing.assert_allclose(result.rearrange(("batch", "heads", "pos", "key")).array, expected.array, atol=1e-5)


def test_one_query_and_several_axes_of_keys():
    one = attention.dot_product_attention(K, D, QUERY["pos", 2], KEY, VALUE)
    np.testing.assert_allclose(
        one.array, attention.dot_product_attention(K, D, QUERY, KEY, VALUE)["pos", 2].array, atol=1e-6
    )
    weights = attention.dot_product_attention_weights(D, ("heads", "kpos"), QUERY["heads", 0], KEY)
    np.testing.assert_allclose(weights.sum(("heads", "kpos")).array, 1, rtol=1e-5)
    flat = attention.dot_product_attention_weights(("heads", "key"), K, QUERY, KEY)
    expected = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bqk", QUERY.array, KEY.array) / np.sqrt(18))
    np.testing.assert_allclose(flat.array, expected, atol=1e-6)


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_scaling_factor(scale):
    ours = attention.dot_product_attention_weights(D, K, QUERY, KEY, scaling_factor=scale)
    np.testing.assert_allclose(ours.array, plain(QUERY.array, KEY.array, VALUE.array, scale=scale)[0], atol=1e-6)


@pytest.mark.parametrize("dtype", [None, jnp.float32])
def test_dtypes(dtype):
    query, key, value = (x.astype(jnp.bfloat16) for x in (QUERY, KEY, VALUE))
    weights = attention.dot_product_attention_weights(D, K, query, key, CAUSAL, attention_dtype=dtype)
    result = attention.dot_product_attention(K, D, query, key, value, CAUSAL, attention_dtype=dtype)
    assert weights.array.dtype == result.array.dtype == jnp.bfloat16
    if dtype is not None:
        expected = plain(query.array, key.array, value.array, CAUSAL.array[None, None], dtype=dtype)[0]
        np.testing.assert_array_equal(weights.array, expected)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
def test_masked_weights_are_zero_and_no_keys_give_zero(dtype):
    mask = CAUSAL & ~(hax.arange(Q) == 1).broadcast_axis(K)
    query, key, value = (x.astype(dtype) for x in (QUERY, KEY, VALUE))
    weights = attention.dot_product_attention_weights(D, K, query, key, mask)
    np.testing.assert_array_equal(hax.where(mask, 0, weights).array, 0)
    gradient = jax.grad(lambda q: attention.dot_product_attention(K, D, q, key, value, mask).sum().scalar())(query)
    assert jnp.isfinite(gradient.array).all()
    np.testing.assert_array_equal(attention.dot_product_attention(K, D, query, key, value, mask)["pos", 1].array, 0)


# masks --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("q_start", "k_start"), [(0, 0), (2, 0), (1, 3), (jnp.int32(2), np.int32(1))])
def test_causal_mask(q_start, k_start):
    mask = attention.causal_mask(Q, K, q_start, k_start)
    assert mask.axis_names == ("pos", "kpos")
    expected = [[q + q_start >= k + k_start for k in range(5)] for q in range(4)]
    np.testing.assert_array_equal(mask.array, expected)


def test_masks_of_several_examples():
    starts = hax.arange(B)
    for function, arguments in (
        (attention.causal_mask, (Q, K, starts)),
        (attention.causal_mask, (Q, K, 1, starts)),
        (attention.prefix_lm_mask, (Q, K, starts)),
        (attention.prefix_lm_mask, (Q, K, 2, starts, 1)),
    ):
        mask = function(*arguments)
        assert mask.axis_names == ("batch", "pos", "kpos")
        for i in range(2):
            one = function(*(i if x is starts else x for x in arguments))
            np.testing.assert_array_equal(mask["batch", i].array, one.array)


@pytest.mark.parametrize(("prefix", "q_start", "k_start"), [(2, 0, 0), (0, 0, 0), (5, 0, 0), (3, 1, 2)])
def test_prefix_lm_mask(prefix, q_start, k_start):
    mask = attention.prefix_lm_mask(Q, K, prefix, q_start, k_start)
    positions = [[(q + q_start, k + k_start) for k in range(5)] for q in range(4)]
    np.testing.assert_array_equal(mask.array, [[k < prefix or q >= k for q, k in row] for row in positions])


def test_forgetful_causal_mask():
    Long = K.resize(4000)
    for prob in (0.0, 0.3, 1.0):
        mask = attention.forgetful_causal_mask(Long, prob, sample_prob=False, key=KEYS[0])
        assert mask.axis_names == ("kpos",) and bool(mask.array[0])
        np.testing.assert_allclose(mask.array[1:].mean(), 1 - prob, atol=0.03)
        sampled = attention.forgetful_causal_mask(Long, prob, key=KEYS[0])
        assert sampled.array[1:].mean() >= 1 - prob - 0.03
    # facts: the numbers of the library that this one replaces
    mask = attention.forgetful_causal_mask(Axis("k", 8), 0.5, sample_prob=False, key=jax.random.PRNGKey(0))
    assert mask.array.tolist() == [True, False, True, True, False, True, True, False]


@pytest.mark.parametrize(
    ("combine", "fn"), [(attention.combine_masks_and, jnp.logical_and), (attention.combine_masks_or, jnp.logical_or)]
)
def test_combined_masks(combine, fn):
    some = hax.arange(K) > 2
    each = hax.named(jnp.array([True, False]), "batch")
    assert combine(None, None) is None
    assert combine(None, some) is some and combine(some, None) is some
    np.testing.assert_array_equal(combine(CAUSAL, some).array, fn(CAUSAL.array, some.array[None]))
    np.testing.assert_array_equal(combine(some, CAUSAL).array, fn(CAUSAL.array, some.array[None]))
    outer = combine(each, CAUSAL)
    assert outer.axis_names == ("batch", "pos", "kpos")
    np.testing.assert_array_equal(outer.array, fn(each.array[:, None, None], CAUSAL.array[None]))
    assert combine(each, some).axis_names == ("batch", "kpos")


# biases -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1e9, -5.0])
def test_mask_to_bias(value):
    bias = attention.mask_to_bias(CAUSAL, value)
    np.testing.assert_array_equal(bias.array, jnp.where(CAUSAL.array, 0, value))
    masked = attention.dot_product_attention_weights(D, K, QUERY, KEY, CAUSAL)
    biased = attention.dot_product_attention_weights(D, K, QUERY, KEY, bias=attention.mask_to_bias(CAUSAL))
    np.testing.assert_allclose(biased.array, masked.array, atol=1e-6)


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (1, [2**-8]),
        (2, [2**-4, 2**-8]),
        (3, [2**-4, 2**-8, 2**-2]),
        (4, [2**-2, 2**-4, 2**-6, 2**-8]),
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]),
        (8, [2**-i for i in range(1, 9)]),
    ],
)
def test_alibi_slopes(heads, slopes):
    bias = attention.alibi_attention_bias(H.resize(heads), K)
    assert bias.axis_names == ("heads", "kpos")
    np.testing.assert_allclose(bias.array, np.outer(slopes, np.arange(5)), rtol=1e-6)
    half = attention.alibi_attention_bias(H.resize(heads), K, bias_max=4, dtype=jnp.bfloat16)
    assert half.array.dtype == jnp.bfloat16
    np.testing.assert_allclose(half["kpos", 1].array.astype(float), np.sqrt(slopes), rtol=1e-2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: attention.dot_product_attention(K, D, KEY, KEY, VALUE),
            "dot_product_attention: the query has batch=2, heads=3, kpos=5, key=6; its axes and 'kpos', the axis of"
            " the keys, must be distinct. Rename its axis of positions, as in query.rename({...}).",
        ),
        (
            lambda: attention.dot_product_attention(Axis("other", 5), D, QUERY, KEY, VALUE),
            "dot_product_attention: no axis 'other'; the array has batch=2, heads=3, kpos=5, key=6.",
        ),
        (
            lambda: attention.dot_product_attention(K, "kye", QUERY, KEY, VALUE),
            "dot_product_attention: no axis 'kye'; the array has batch=2, heads=3, pos=4, key=6. Did you mean 'key'?",
        ),
        (
            lambda: attention.dot_product_attention(K, D, QUERY, KEY, VALUE, mask=hax.ones(Axis("more", 2)) > 0),
            "dot_product_attention: the mask `where` has more=2; expected axes among those of the array:"
            " batch=2, heads=3, pos=4, kpos=5.",
        ),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError) as raised:
        call()
    assert str(raised.value) == message


def test_lowers_to_two_products():
    def attend(q, k, v):
        return attention.dot_product_attention(K, D, q, k, v, CAUSAL).array

    text = jax.jit(attend).lower(QUERY, KEY, VALUE).as_text()
    assert text.count("stablehlo.dot_general") == 2
    assert text.count("stablehlo.transpose") == 0
    assert isinstance(attention.dot_product_attention(K, D, QUERY, KEY, VALUE), NamedArray)
