"""Layers."""

import jax

import haliax as hax
from errors.arrays import A_KEY, ANY_FORM, HAS, INDICES, KEY, KEYS, NAME_IT, OR_SCALAR, RAW, SIZED, VECTOR, B, E, T, X

CASES = [
    (lambda: hax.nn.Linear.init("s", B, key=KEY), ValueError, f"Linear.init: axis 's' has no size; {SIZED}"),
    (lambda: hax.nn.Linear.init(3, 4, key=KEY), TypeError, f"Linear.init: the axes are an int; {ANY_FORM}"),
    (lambda: hax.nn.Linear.init(B, T, key=None), TypeError, f"Linear.init: the key is None; {A_KEY}"),
    (
        lambda: hax.nn.Linear.init((B, B), T, key=KEY),
        ValueError,
        "Linear.init: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (
        lambda: hax.nn.Linear.init(B, (T, T), key=KEY),
        ValueError,
        "Linear.init: axis 'time' occurs more than once in (time, time).",
    ),
    (lambda: hax.nn.Linear.init(None, T, key=KEY), TypeError, f"Linear.init: the axes are None; {ANY_FORM}"),
    (
        lambda: hax.nn.Linear.init(T, E, key=KEY)(RAW),
        TypeError,
        f"Linear: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.nn.Linear.init(T, E, key=KEY)(VECTOR), ValueError, "Linear: no axis 'time'; the array has embed=4."),
    (
        lambda: hax.nn.Linear.init(T, E, key=KEY)(hax.zeros({"time": 5})),
        ValueError,
        "Linear: axis 'time' has size 5; expected 3. The layer was made with time=3.",
    ),
    (lambda: hax.nn.Linear.init(T, E, key=KEY)(None), TypeError, "Linear: the array is None; expected a NamedArray."),
    (lambda: hax.nn.Embedding.init("v", E, key=KEY), TypeError, "Embedding.init: Vocab is a string; expected an Axis."),
    (lambda: hax.nn.Embedding.init(B, "e", key=KEY), ValueError, f"Embedding.init: axis 'e' has no size; {SIZED}"),
    (
        lambda: hax.nn.Embedding.init((B, T), E, key=KEY),
        TypeError,
        "Embedding.init: Vocab is a tuple; expected an Axis.",
    ),
    (
        lambda: hax.nn.Embedding.init(B, B, key=KEY),
        ValueError,
        "Embedding.init: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (lambda: hax.nn.Embedding.init(B, E, key=None), TypeError, f"Embedding.init: the key is None; {A_KEY}"),
    (
        lambda: hax.nn.Embedding.init(B, E, key=KEY)(X),
        TypeError,
        "Embedding: the index of axis 'batch' has dtype float32; expected integers.",
    ),
    (
        lambda: hax.nn.Embedding.init(B, E, key=KEY)(None),
        TypeError,
        f"Embedding: the index of axis 'batch' is None; {INDICES}",
    ),
    (
        lambda: hax.nn.Embedding.init(B, E, key=KEY)(1.5),
        TypeError,
        f"Embedding: the index of axis 'batch' is a float; {INDICES}",
    ),
    (
        lambda: hax.nn.Embedding.init(B, E, key=KEY).unembed(X),
        ValueError,
        f"Embedding.unembed: no axis 'embed'; {HAS}.",
    ),
    (
        lambda: hax.nn.Embedding.init(B, E, key=KEY).unembed(RAW),
        TypeError,
        f"Embedding.unembed: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.Embedding.init(B, E, key=KEY).resize_embeddings(-1),
        ValueError,
        "resize_axis: the new size is -1; expected 0 or more.",
    ),
    (
        lambda: hax.nn.Embedding.init(B, E, key=KEY).resize_embeddings(5, "a"),
        TypeError,
        f"resize_axis: the key is a string; {A_KEY}",
    ),
    (lambda: hax.nn.LayerNorm.init("s"), ValueError, f"LayerNorm.init: axis 's' has no size; {SIZED}"),
    (lambda: hax.nn.LayerNorm.init(None), TypeError, f"LayerNorm.init: the axes are None; {ANY_FORM}"),
    (
        lambda: hax.nn.LayerNorm.init((B, B)),
        ValueError,
        "LayerNorm.init: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (
        lambda: hax.nn.LayerNorm.init(T)(RAW),
        TypeError,
        f"LayerNorm: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.nn.LayerNorm.init(T)(VECTOR), ValueError, "LayerNorm: no axis 'time'; the array has embed=4."),
    (
        lambda: hax.nn.LayerNorm.init(T)(hax.zeros({"time": 5})),
        ValueError,
        "LayerNorm: axis 'time' has size 5; expected 3. The layer was made with time=3.",
    ),
    (lambda: hax.nn.RmsNorm.init(T)(VECTOR), ValueError, "RmsNorm: no axis 'time'; the array has embed=4."),
    (
        lambda: hax.nn.RmsNorm.init(T)(RAW),
        TypeError,
        f"RmsNorm: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.nn.Dropout(1.5)(X, key=KEY), ValueError, "dropout: pdrop is 1.5; expected a probability from 0 to 1."),
    (lambda: hax.nn.Dropout("a")(X, key=KEY), TypeError, f"dropout: pdrop is a string; {OR_SCALAR}"),
    (lambda: hax.nn.Dropout(0.5)(X), RuntimeError, "dropout: there is no key. Pass key=..., or inference=True."),
    (
        lambda: hax.nn.Dropout(0.5)(RAW, key=KEY),
        TypeError,
        f"dropout: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.nn.Dropout(0.5, broadcast_axes=3)(X, key=KEY), TypeError, f"dropout: the axes are an int; {ANY_FORM}"),
    (
        lambda: hax.nn.dropout(X, -0.1, inference=False, key=KEY),
        ValueError,
        "dropout: pdrop is -0.1; expected a probability from 0 to 1.",
    ),
    (lambda: hax.nn.dropout(X, None, inference=False, key=KEY), TypeError, f"dropout: pdrop is None; {OR_SCALAR}"),
    (
        lambda: hax.nn.MLP.init(T, E, "w", 1, key=KEY),
        TypeError,
        "MLP.init: width is a string; expected an Axis or a size.",
    ),
    (lambda: hax.nn.MLP.init(T, E, 3, -1, key=KEY), ValueError, "MLP.init: depth is -1; expected 0 or more."),
    (lambda: hax.nn.MLP.init(T, E, 3, 1.5, key=KEY), TypeError, "MLP.init: depth is a float; expected an integer."),
    (lambda: hax.nn.MLP.init(T, E, 3, 1, key=None), TypeError, f"MLP.init: the key is None; {A_KEY}"),
    (
        lambda: hax.nn.MLP.init(T, E, 3, 1, activation="relu", key=KEY)(X),
        TypeError,
        "MLP.init: activation is a string; expected a callable.",
    ),
    (
        lambda: hax.nn.MLP.init(T, E, -3, 1, key=KEY),
        ValueError,
        "Linear.init: axis 'mlp' has size -3; expected 0 or more.",
    ),
    (lambda: hax.nn.MLP.init("t", E, 3, 1, key=KEY), ValueError, f"Linear.init: axis 't' has no size; {SIZED}"),
    (
        lambda: hax.nn.Stacked.init(B, hax.nn.Linear)(T, E, key=KEY),
        TypeError,
        (
            "vmap: key is a single random key; expected one for each place along axis 'batch'. Split it "
            "with jax.random.split."
        ),
    ),
    (
        lambda: hax.nn.Stacked.init(B, hax.nn.Linear)(T, T, key=jax.random.split(KEY, 5)),
        ValueError,
        "vmap: axis 'batch' has size 5; expected 2. key has leading dimension 5: its shape is (5,).",
    ),
    (
        lambda: hax.nn.Stacked.init(B, hax.nn.Linear)(T, T, key=jax.random.split(KEY, 2)).fold(RAW),
        TypeError,
        f"Linear: the array is a traced array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.nn.Linear.init(T, E, key=KEYS),
        TypeError,
        (
            "Linear.init: the key is an array of random keys of shape (3,); expected a single random "
            "key. Map over keys with haliax.vmap."
        ),
    ),
    (lambda: hax.nn.Linear.init(T, E, key=7), TypeError, f"Linear.init: the key is an int; {A_KEY}"),
    (
        lambda: hax.nn.Linear.init((2, 3), E, key=KEY),
        TypeError,
        "Linear.init: entry 0 of the axes is an int; expected an Axis or a name.",
    ),
    (lambda: hax.nn.RmsNorm.init("s"), ValueError, f"RmsNorm.init: axis 's' has no size; {SIZED}"),
    (
        lambda: hax.nn.RmsNorm.init(T)(hax.zeros({"time": 5})),
        ValueError,
        "RmsNorm: axis 'time' has size 5; expected 3. The layer was made with time=3.",
    ),
    (
        lambda: hax.nn.Embedding.init(B, E, key=KEY).unembed(None),
        TypeError,
        "Embedding.unembed: the array is None; expected a NamedArray.",
    ),
    (lambda: hax.nn.Dropout(0.5)(X, key=3), TypeError, f"dropout: the key is an int; {A_KEY}"),
    (
        lambda: hax.nn.Dropout(0.5)(X, key=KEYS),
        TypeError,
        (
            "dropout: the key is an array of random keys of shape (3,); expected a single random key. "
            "Map over keys with haliax.vmap."
        ),
    ),
    (
        lambda: hax.nn.dropout(X, RAW, inference=False, key=KEY),
        ValueError,
        f"dropout: pdrop is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
]
