"""Under `jit` a named call lowers to the operations of the plain call that one would write by hand, and to no more.

Each row is the named call and the plain one. Their parameters are the arrays of `ARRAYS` by the same names: named
arrays for the one, raw ones for the other.
"""

import dataclasses
import inspect

import jax
import jax.numpy as jnp
import pytest

import haliax as hax
from haliax import Axis, nn, random
from haliax._src import elementwise
from helpers import with_numbers
from programs import counted

B, T, E, K = hax.make_axes(batch=2, time=3, embed=4, k=2)

ARRAYS = {
    "x": hax.ones((B, T)),
    "x_t": hax.ones((T, B)),
    "x3": hax.ones((B, T, E)),
    "row": hax.ones(T),
    "column": hax.ones(B),
    "w": hax.ones((T, E)),
    "vector": hax.ones(E),
    "square": hax.ones({"r": 3, "c": 3}),
    "n": hax.ones((B, T), jnp.int32),
    "m": hax.ones((B, T), jnp.int32),
    "c": hax.ones((B, T), jnp.complex64),
    "byte": hax.ones((B, T), jnp.uint8),
    "mask": hax.ones((B, T), bool),
    "row_mask": hax.ones(T, bool),
    "at": hax.ones(K, jnp.int32),
    "label": hax.ones(B, jnp.int32),
    "image": hax.ones({"batch": 2, "embed": 4, "h": 6, "w": 5}),
    "sizes": hax.ones(K, jnp.int32),
    "i": hax.ones((), jnp.int32),
    "key": hax.named(jax.random.key(0), ()),
}


def raw(x):
    return x.array


def operands(fn):
    return [ARRAYS[name] for name in inspect.signature(fn).parameters]


def check(named, plain):
    args = operands(named)
    ours, theirs = counted(named, *args), counted(plain, *map(raw, args))
    assert not ours - theirs, f"{dict(ours - theirs)} beside {dict(theirs)}"


# functions of jax.numpy by name -------------------------------------------------------------------------------------

ARGUMENTS = dict.fromkeys(
    "bitwise_count bitwise_invert bitwise_not invert bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift"
    " bitwise_xor gcd lcm left_shift right_shift".split(),
    ("n", "m"),
)
ELEMENTWISE = [name for name, op in vars(elementwise).items() if hasattr(op, "__jax__") and hasattr(hax, name)]
ELEMENTWISE.remove("round")  # with decimals
KEEPING_THE_AXIS = "cumsum cumprod nancumsum nancumprod sort flip".split()
REDUCTIONS = """
    all any count_nonzero max min ptp sum prod mean std var nanmax nanmin nansum nanprod nanmean nanstd nanvar
    argmax argmin nanargmax nanargmin median nanmedian
""".split()


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name):
    op, plain = getattr(hax, name), getattr(hax, name).__jax__
    count = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in inspect.signature(op).parameters.values())
    args = [ARRAYS[arg] for arg in ARGUMENTS.get(name, ("x", "x"))][:count]
    assert counted(op, *args) == counted(plain, *map(raw, args))


@pytest.mark.parametrize("name", [*REDUCTIONS, *KEEPING_THE_AXIS])
def test_along_an_axis(name):
    op, plain, x = getattr(hax, name), getattr(jnp, name), ARRAYS["x"]
    assert counted(lambda x: op(x, "time"), x) == counted(lambda x: plain(x, axis=1), x.array)


@pytest.mark.parametrize("name", ["relu", "relu6", "silu", "sigmoid", "softplus", "soft_sign", "selu", "celu", "elu"])
def test_activations(name):
    op, plain, x = getattr(nn, name), getattr(jax.nn, name), ARRAYS["x"]
    assert counted(op, x) == counted(plain, x.array)


SAMPLERS = "normal rademacher exponential cauchy gumbel laplace logistic uniform".split()


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name):
    op, plain = getattr(random, name), getattr(jax.random, name)
    check(lambda key: op(key, (B, T)), lambda key: plain(key, (2, 3)))


# rows ---------------------------------------------------------------------------------------------------------------

OPERANDS = [
    (lambda x, row: x + row, lambda x, row: x + row[None]),
    (lambda x, column: x * column, lambda x, column: x * column[:, None]),
    (lambda row, x: row - x, lambda row, x: row[None] - x),
    (lambda x, x_t: x / x_t, lambda x, x_t: x / x_t.T),
    (lambda x, i: x**i, lambda x, i: x**i),
    (lambda x: 2 * x + 1, lambda x: 2 * x + 1),
    (lambda x: -abs(x), lambda x: -abs(x)),
    (lambda n, m: divmod(n, m), lambda n, m: divmod(n, m)),
    (lambda x, row: hax.maximum(x, row), lambda x, row: jnp.maximum(x, row[None])),
    (lambda x: hax.round(x, 2), lambda x: jnp.round(x, 2)),
    (lambda x: x.astype(jnp.bfloat16), lambda x: x.astype(jnp.bfloat16)),
    (lambda x: hax.nan_to_num(x, nan=1.0), lambda x: jnp.nan_to_num(x, nan=1.0)),
    (lambda x: hax.frexp(x), lambda x: jnp.frexp(x)),
    (lambda x, row: hax.isclose(x, row), lambda x, row: jnp.isclose(x, row[None])),
    (lambda x, m: hax.allclose(x, m), lambda x, m: jnp.allclose(x, m)),
    (lambda n, m: hax.array_equal(n, m), lambda n, m: jnp.array_equal(n, m)),
]

ALONG = [
    (lambda x: x.sum(), lambda x: jnp.sum(x)),
    (lambda x: x.sum(("batch", "time")), lambda x: jnp.sum(x, (0, 1))),
    (lambda x, mask: x.sum("time", where=mask), lambda x, mask: jnp.sum(x, 1, where=mask)),
    (lambda x, row_mask: x.mean("time", where=row_mask), lambda x, row_mask: jnp.mean(x, 1, where=row_mask[None])),
    (lambda x, mask: x.max("time", where=mask), lambda x, mask: jnp.max(x, 1, where=mask, initial=-jnp.inf)),
    (lambda x: x.var("time", ddof=1), lambda x: jnp.var(x, 1, ddof=1)),
    (lambda x: hax.quantile(x, 0.5, "time"), lambda x: jnp.quantile(x, 0.5, 1)),
    (lambda x: hax.percentile(x, 50, "time"), lambda x: jnp.percentile(x, 50, 1)),
    (lambda x: x.argsort("time"), lambda x: jnp.argsort(x, 1, stable=False)),
    (lambda x: hax.diff(x, "time"), lambda x: jnp.diff(x, axis=1)),
    (lambda x: x.argmax(), lambda x: jnp.argmax(x)),
]

CREATION = [
    (lambda: hax.zeros((B, T)), lambda: jnp.zeros((2, 3))),
    (lambda: hax.ones((B, T), jnp.int32), lambda: jnp.ones((2, 3), jnp.int32)),
    (lambda: hax.full((B, T), 3.0), lambda: jnp.full((2, 3), 3.0)),
    (lambda row: hax.full((B, T), row), lambda row: jnp.full((2, 3), row[None])),
    (lambda x: hax.zeros_like(x), lambda x: jnp.zeros_like(x)),
    (lambda x: hax.ones_like(x), lambda x: jnp.ones_like(x)),
    (lambda x: hax.full_like(x, 2), lambda x: jnp.full_like(x, 2)),
    (lambda: hax.arange(T), lambda: jnp.arange(3)),
    (lambda i: hax.arange(T, start=i), lambda i: jnp.arange(3) + i),
    (lambda: hax.arange((B, T)), lambda: jnp.arange(6).reshape(2, 3)),
    (lambda: hax.linspace(T, start=0, stop=1), lambda: jnp.linspace(0, 1, 3)),
    (lambda: hax.logspace(T, start=0, stop=1), lambda: jnp.logspace(0, 1, 3)),
    (lambda: hax.geomspace(T, start=1, stop=2), lambda: jnp.geomspace(1, 2, 3)),
    (lambda x: hax.stack("s", [x, x]), lambda x: jnp.stack([x, x])),
    (lambda x: hax.concatenate("time", [x, x]), lambda x: jnp.concatenate([x, x], 1)),
    (lambda x: hax.repeat(x, 2, "time"), lambda x: jnp.repeat(x, 2, 1)),
    (lambda x: hax.tile(x, {"batch": 2}), lambda x: jnp.tile(x, (2, 1))),
    (lambda x: x.broadcast_axis(E), lambda x: jnp.broadcast_to(x, (4, 2, 3))),
    (lambda x: x.broadcast_to((B, T, E)), lambda x: jnp.broadcast_to(x[..., None], (2, 3, 4))),
    (lambda x: x.broadcast_axis(T), lambda x: x),
]

SHAPES = [
    (lambda x: x.rename({"time": "t"}), lambda x: x),
    (lambda x: x.flatten("f"), lambda x: x.reshape(6)),
    (lambda x3: x3.flatten_axes(("time", "embed"), "f"), lambda x3: x3.reshape(2, 12)),
    (lambda x3: x3.flatten_axes(("batch", "embed"), "f"), lambda x3: x3.transpose(0, 2, 1).reshape(8, 3)),
    (lambda x3: x3.unflatten_axis("embed", {"a": 2, "b": 2}), lambda x3: x3.reshape(2, 3, 2, 2)),
    (lambda x3: x3.split("embed", {"a": 1, "b": 3}), lambda x3: jnp.split(x3, [1], 2)),
    (lambda x: x.unbind("batch"), lambda x: [x[0], x[1]]),
    (lambda x: hax.roll(x, 1, "time"), lambda x: jnp.roll(x, 1, 1)),
    (lambda x, i: hax.roll(x, i, "time"), lambda x, i: jnp.roll(x, i, 1)),
    (lambda x: x.rearrange(("time", "batch")), lambda x: x.T),
    (lambda x: x.rearrange(("batch", "time")), lambda x: x),
    (lambda x3: x3.rearrange((..., "batch")), lambda x3: x3.transpose(1, 2, 0)),
    (lambda x: x.rearrange("a b -> b a"), lambda x: x.T),
    (lambda x3: x3.rearrange("a (b: h d) c -> (f: a h) d c", h=3), lambda x3: x3.reshape(2, 3, 1, 4).reshape(6, 1, 4)),
    (lambda x3: x3.rearrange("{embed batch} -> embed ... batch"), lambda x3: x3.transpose(2, 1, 0)),
]

CONTRACTIONS = [
    (lambda x, row: hax.dot(x, row, axis="time"), lambda x, row: x @ row),
    (lambda x, w: hax.dot(x, w, axis="time"), lambda x, w: x @ w),
    (lambda x, x_t: hax.dot(x, x_t, axis=("batch", "time")), lambda x, x_t: jnp.einsum("bt,tb->", x, x_t)),
    (lambda x3, x: hax.dot(x3, x, axis="time"), lambda x3, x: jnp.einsum("bte,bt->be", x3, x)),
    (lambda x, vector: hax.dot(x, vector, axis=()), lambda x, vector: jnp.einsum("bt,e->bte", x, vector)),
    (
        lambda x, w: hax.dot(x, w, axis="time", preferred_element_type=jnp.float32),
        lambda x, w: jnp.dot(x, w, preferred_element_type=jnp.float32),
    ),
    (lambda x, w, vector: hax.dot(x, w, vector, axis=("time", "embed")), lambda x, w, vector: x @ (w @ vector)),
    (lambda x, w: hax.einsum("b t, t e -> b e", x, w), lambda x, w: jnp.einsum("bt,te->be", x, w)),
    (lambda x, w: hax.einsum("-> batch embed", x, w), lambda x, w: jnp.einsum("bt,te->be", x, w)),
    (lambda x3: hax.einsum("{time} -> ", x3), lambda x3: jnp.einsum("bte->be", x3)),
]

PARTS = [
    (lambda x: x["batch", 0], lambda x: x[0]),
    (lambda x: x["time", 1:3], lambda x: x[:, 1:3]),
    (lambda x: x["time", ::-1], lambda x: x[:, ::-1]),
    (lambda x, i: x["time", i], lambda x, i: x[:, i]),
    (lambda x, at: x["time", at], lambda x, at: x[:, at]),
    (lambda x, at: x.take("time", at), lambda x, at: x[:, at]),
    (lambda x, i: x.slice("time", start=i, length=2), lambda x, i: jax.lax.dynamic_slice(x, (0, i), (2, 2))),
    (lambda x: x.slice("time", start=1, length=2), lambda x: x[:, 1:3]),
    (
        lambda x, i: x.updated_slice({"time": i}, hax.ones((B, K.alias("time")))),
        lambda x, i: jax.lax.dynamic_update_slice(x, jnp.ones((2, 2)), (0, i)),
    ),
    (lambda x: x.at["batch", 0].set(0), lambda x: x.at[0].set(0)),
    (lambda x, row: x.at["batch", 0].set(row), lambda x, row: x.at[0].set(row)),
    (lambda x, at: x.at["time", at].add(1), lambda x, at: x.at[:, at].add(1)),
    (lambda x, i: x.at["time", i].multiply(2), lambda x, i: x.at[:, i].multiply(2)),
    (lambda x: x.at["time", 0:2].max(0), lambda x: x.at[:, 0:2].max(0)),
    (lambda x, at: x.at["time", at].get(mode="fill"), lambda x, at: x.at[:, at].get(mode="fill")),
]

SELECTION = [
    (lambda x, row: hax.where(x > 0, x, row), lambda x, row: jnp.where(x > 0, x, row[None])),
    (lambda mask: hax.where(mask, 1.0, 0.0), lambda mask: jnp.where(mask, 1.0, 0.0)),
    (lambda mask: hax.where(mask, fill_value=0, new_axis=K), lambda mask: jnp.nonzero(mask, size=2, fill_value=0)),
    (lambda x: hax.nonzero(x, size=K), lambda x: jnp.nonzero(x, size=2, fill_value=0)),
    (lambda x: hax.clip(x, 0, 1), lambda x: jnp.clip(x, 0, 1)),
    (lambda x, row: hax.clip(x, None, row), lambda x, row: jnp.clip(x, None, row[None])),
    (lambda x: hax.top_k(x, "time", 2), lambda x: jax.lax.top_k(x, 2)),
    (lambda n: hax.unique(n, K), lambda n: jnp.unique(n, size=2)),
    (lambda n: hax.unique_counts(n, K), lambda n: jnp.unique(n, size=2, return_counts=True)),
    (lambda label: hax.bincount(label, E), lambda label: jnp.bincount(label, length=4)),
    (lambda row, x: hax.searchsorted(row, x), lambda row, x: jnp.searchsorted(row, x)),
    (lambda x: hax.tril(x, "batch", "time"), lambda x: jnp.tril(x)),
    (lambda square: hax.triu(square, "r", "c", 1), lambda square: jnp.triu(square, 1)),
    (lambda square: hax.trace(square, "r", "c"), lambda square: jnp.trace(square)),
    (lambda x: hax.pad(x, {"time": (1, 2)}), lambda x: jnp.pad(x, ((0, 0), (1, 2)))),
    (lambda x: hax.pad(x, {"time": 1}, mode="edge"), lambda x: jnp.pad(x, ((0, 0), (1, 1)), "edge")),
    (lambda x: hax.pad_left(x, "time", T.resize(5)), lambda x: jnp.pad(x, ((0, 0), (2, 0)))),
    (lambda byte: hax.packbits(byte, "time"), lambda byte: jnp.packbits(byte, 1)),
    (lambda byte: hax.unpackbits(byte, "time"), lambda byte: jnp.unpackbits(byte, 1)),
]

RANDOM = [
    (
        lambda key, row: random.uniform(key, (B, T), minval=row),
        lambda key, row: jax.random.uniform(key, (2, 3), minval=row[None]),
    ),
    (lambda key: random.randint(key, (B, T), 0, 9), lambda key: jax.random.randint(key, (2, 3), 0, 9)),
    (lambda key: random.bernoulli(key, (B, T), 0.5), lambda key: jax.random.bernoulli(key, 0.5, (2, 3))),
    (lambda key: random.truncated_normal(key, T, -1, 1), lambda key: jax.random.truncated_normal(key, -1, 1, (3,))),
    (lambda key, x: random.categorical(key, x, "time"), lambda key, x: jax.random.categorical(key, x, 1)),
    (lambda key, x: random.permutation(key, x, "time"), lambda key, x: jax.random.permutation(key, x, 1)),
    (lambda key, x: random.choice(key, K, x, "time"), lambda key, x: jax.random.choice(key, x, (2,), axis=1)),
    (lambda key: random.gamma(key, T, 2.0), lambda key: jax.random.gamma(key, 2.0, (3,))),
    (lambda key: random.poisson(key, T, 2.0), lambda key: jax.random.poisson(key, 2.0, (3,))),
    (lambda key: random.ball(key, B, T), lambda key: jax.random.ball(key, 3, 2.0, (2,))),
]

SPECTRA = [
    (lambda x: hax.fft(x, "time"), lambda x: jnp.fft.fft(x, axis=1)),
    (lambda x: hax.rfft(x, "time"), lambda x: jnp.fft.rfft(x, axis=1)),
    (lambda c: hax.ifft(c, "time"), lambda c: jnp.fft.ifft(c, axis=1)),
    (lambda x: hax.fftshift(x, "time"), lambda x: jnp.fft.fftshift(x, axes=1)),
    (lambda: hax.fftfreq(T), lambda: jnp.fft.fftfreq(3)),
    (lambda row, x: hax.polyval(row, x), lambda row, x: jnp.polyval(row, x)),
    (lambda row: hax.polymul(row, row), lambda row: jnp.polymul(row, row)),
    (lambda row: hax.polyder(row), lambda row: jnp.polyder(row)),
]


def layer_norm(x, weight, bias):
    mean = jnp.mean(x, 1, keepdims=False)[:, None]
    centred = x - mean
    variance = jnp.mean(jnp.square(centred), 1)[:, None]
    return centred * jax.lax.rsqrt(variance + 1e-5) * weight[None] + bias[None]


def rms_norm(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), 1)[:, None] + 1e-5) * weight[None]


def cross_entropy(x, label):
    chosen = jnp.sum(jnp.where(label[:, None] == jnp.arange(3)[None], x, 0), 1)
    return jnp.mean(jax.nn.logsumexp(x, 1) - chosen)


def attention(q, k, v, mask):
    weights = jax.nn.softmax((q * 0.5) @ k.T, where=mask, axis=-1)
    return weights @ v


LINEAR = nn.Linear.init(T, E, key=jax.random.key(0))
EMBEDDING = nn.Embedding.init(E, Axis("d", 5), key=jax.random.key(0))
LAYER_NORM, RMS_NORM = nn.LayerNorm.init(T), nn.RmsNorm.init(T, use_bias=False)
NETWORKS = [
    (lambda x: nn.softmax(x, "time"), lambda x: jax.nn.softmax(x, 1)),
    (lambda x, mask: nn.softmax(x, "time", where=mask), lambda x, mask: jax.nn.softmax(x, 1, where=mask)),
    (lambda x: nn.log_softmax(x, "time"), lambda x: jax.nn.log_softmax(x, 1)),
    (lambda x: nn.logsumexp(x, "time"), lambda x: jax.nn.logsumexp(x, 1)),
    (lambda x: nn.gelu(x), lambda x: jax.nn.gelu(x, approximate=True)),
    (lambda x: nn.quick_gelu(x), lambda x: x * jax.nn.sigmoid(1.702 * x)),
    (lambda x: nn.relu_squared(x), lambda x: jnp.square(jax.nn.relu(x))),
    (lambda x: nn.leaky_relu(x), lambda x: jax.nn.leaky_relu(x)),
    (lambda n: nn.one_hot(n, E), lambda n: jax.nn.one_hot(n, 4)),
    (lambda x: LINEAR(x), lambda x: x @ LINEAR.weight.array.T + LINEAR.bias.array[None]),
    (lambda n: EMBEDDING(n), lambda n: EMBEDDING.weight.array[n]),
    (
        lambda: EMBEDDING.unembed(EMBEDDING.weight["embed", 0]),
        lambda: EMBEDDING.weight.array[0] @ EMBEDDING.weight.array.T,
    ),
    (lambda x: LAYER_NORM(x), lambda x: layer_norm(x, LAYER_NORM.weight.array, LAYER_NORM.bias.array)),
    (lambda x: RMS_NORM(x), lambda x: rms_norm(x, RMS_NORM.weight.array)),
    (lambda x, label: nn.cross_entropy_loss(x, "time", label), cross_entropy),
    (
        lambda x, key: nn.dropout(x, 0.5, inference=False, key=key),
        lambda x, key: jnp.where(jax.random.bernoulli(key, 0.5, (2, 3)), x / 0.5, 0),
    ),
    (
        lambda vector, w, row, row_mask: nn.attention.dot_product_attention("time", "embed", vector, w, row, row_mask),
        lambda vector, w, row, row_mask: attention(vector, w, row, row_mask),
    ),
    (lambda: nn.attention.causal_mask(B, T), lambda: jnp.arange(2)[:, None] >= jnp.arange(3)[None]),
]

CONV = with_numbers(nn.Conv.init, ("h", "w"), E, T, 3, padding=1, key=jax.random.key(0))
STRIDED = with_numbers(nn.Conv.init, ("h", "w"), E, E, 2, stride=2, groups=2, use_bias=False, key=jax.random.key(0))
TRANSPOSED = with_numbers(nn.ConvTranspose.init, ("h", "w"), E, T, 3, stride=2, key=jax.random.key(0))
EXPERTS = with_numbers(nn.MoELinear.init, K, T, E, key=jax.random.key(0))
NO_BIAS = with_numbers(nn.MoELinear.init, K, T, E, use_bias=False, out_first=True, key=jax.random.key(0))
MLP = with_numbers(nn.MLP.init, T, E, 5, 1, key=jax.random.key(0))


def conv(image, layer, strides=(1, 1), padding="VALID", **options):
    y = jax.lax.conv_general_dilated(image, layer.weight.array, strides, padding, **options)
    return y if layer.bias is None else y + layer.bias.array[None, :, None, None]


def flipped(layer):
    """The convolution of which a transposed one is the transpose has its kernel in reverse."""
    return dataclasses.replace(layer, weight=hax.flip(layer.weight, ("h", "w")))


def pool(image, start, fn, window, strides=None, padding="VALID"):
    return jax.lax.reduce_window(image, start, fn, (1, 1, *window), (1, 1, *(strides or window)), padding)


def mlp(x):
    first, second = MLP.layers
    hidden = jax.nn.relu(x @ first.weight.array.T + first.bias.array[None])
    return hidden @ second.weight.array.T + second.bias.array[None]


SPATIAL = [
    (lambda image: CONV(image), lambda image: conv(image, CONV, padding=((1, 1), (1, 1)))),
    (lambda image: STRIDED(image), lambda image: conv(image, STRIDED, (2, 2), feature_group_count=2)),
    (
        lambda image: TRANSPOSED(image),
        lambda image: conv(image, flipped(TRANSPOSED), padding=((2, 2), (2, 2)), lhs_dilation=(2, 2)),
    ),
    (lambda image: nn.max_pool({"h": 2, "w": 2}, image), lambda image: pool(image, -jnp.inf, jax.lax.max, (2, 2))),
    (
        lambda image: nn.min_pool({"h": 3, "w": 2}, image, stride=1, padding="SAME"),
        lambda image: pool(image, jnp.inf, jax.lax.min, (3, 2), (1, 1), "SAME"),
    ),
    (
        lambda image: nn.mean_pool({"h": 2, "w": 2}, image, stride=2),
        lambda image: pool(image, 0.0, jax.lax.add, (2, 2)) / 4,
    ),
]

MIXTURES = [
    (
        lambda x, sizes: EXPERTS(x, sizes),
        lambda x, sizes: jax.lax.ragged_dot(x, EXPERTS.weight.array, sizes) + EXPERTS.bias.array[None],
    ),
    (
        lambda x, sizes: NO_BIAS(x, sizes),
        lambda x, sizes: jax.lax.ragged_dot(x, NO_BIAS.weight.array.transpose(0, 2, 1), sizes),
    ),
    (lambda x: MLP(x), mlp),
]

ROWS = [
    *OPERANDS, *ALONG, *CREATION, *SHAPES, *CONTRACTIONS, *PARTS, *SELECTION, *RANDOM, *SPECTRA, *NETWORKS, *SPATIAL,
    *MIXTURES,
]  # fmt: skip


def source(fn):
    """The body of a lambda that begins a row."""
    return inspect.getsource(fn).split("lambda", 1)[1].split(": ", 1)[1].split(", lambda")[0].strip(" ,\n")


@pytest.mark.parametrize(("named", "plain"), [pytest.param(*row, id=source(row[0])) for row in ROWS])
def test_no_more_operations_than_the_plain_call(named, plain):
    check(named, plain)
