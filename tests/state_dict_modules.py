"""Modules of all kinds that have state dicts, for the tests of `haliax.state_dict`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import haliax as hax
import haliax.nn as hnn
from haliax.state_dict import ModuleWithStateDictSerialization, with_prefix

E, V, H, D, L, O = hax.make_axes(E=4, V=6, H=2, D=3, L=3, O=2)  # noqa: E741
KEY = jax.random.key(0)


class Holder(eqx.Module):
    a: Any
    b: Any = eqx.field(static=True, default=5)


class Pair(NamedTuple):
    first: Any
    second: Any


class Wrapped(ModuleWithStateDictSerialization):
    """A model whose parts have the names of another library."""

    transformer: Any
    head: Any

    def _state_dict_key_map(self):
        return {"transformer": None, "head": "lm_head"}


class Transposed(ModuleWithStateDictSerialization):
    """A layer that is saved in another layout than it has, by methods of its own."""

    weight: hax.NamedArray

    def to_state_dict(self, prefix=None):
        return {with_prefix(prefix, "kernel"): self.weight.array.T}

    def from_state_dict(self, state_dict, prefix=None):
        return Transposed(hax.named(state_dict[with_prefix(prefix, "kernel")].T, self.weight.axis_names))

    @staticmethod
    def init(key):
        return Transposed(hax.random.normal(key, (H, D)))


class AtOnce(ModuleWithStateDictSerialization):
    """A layer of which a stack is loaded by one call, with the arrays of all layers, as the old haliax does it."""

    weight: hax.NamedArray

    def to_state_dict(self, prefix=None):
        return {with_prefix(prefix, f"{i}.kernel"): self.weight.array[..., i, :] for i in range(H.size)}

    def from_state_dict(self, state_dict, prefix=None):
        parts = [state_dict[with_prefix(prefix, f"{i}.kernel")][..., None, :] for i in range(H.size)]
        return AtOnce(hax.named(jnp.concatenate(parts, axis=1), self.weight.axis_names))

    @staticmethod
    def init(key):
        return AtOnce(hax.random.normal(key, (H, D)))


class Swapping(AtOnce):
    """Another such layer, whose method fails for a single one."""

    def to_state_dict(self, prefix=None):
        return {with_prefix(prefix, "kernel"): self.weight.array.swapaxes(-1, -2)}

    def from_state_dict(self, state_dict, prefix=None):
        return Swapping(hax.named(state_dict[with_prefix(prefix, "kernel")].swapaxes(1, 2), self.weight.axis_names))

    @staticmethod
    def init(key):
        return Swapping(hax.random.normal(key, (H, D)))


class Parts(eqx.Module):
    """A layer with parts that are loaded in several ways."""

    linear: hnn.Linear
    once: AtOnce
    swapping: Swapping
    inference: bool = False

    @staticmethod
    def init(key):
        return Parts(hnn.Linear.init(E, (H, D), key=key), AtOnce.init(key), Swapping.init(key))


class Block(eqx.Module):
    inner: Any
    scale: jax.Array
    active: bool = True

    @staticmethod
    def init(key):
        return Block(hnn.Stacked.init(L, hnn.Linear)(E, (H, D), key=jax.random.split(key, L.size)), jnp.arange(3.0))


def make(name) -> Any:
    """A module of the table with values that differ, for which no initialisation is compiled."""

    def fill(leaf):
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.split(KEY, leaf.shape)
        return jnp.asarray(np.arange(math.prod(leaf.shape)).reshape(leaf.shape) % 100, leaf.dtype)

    return jax.tree.map(fill, eqx.filter_eval_shape(MODULES[name]))


def stacked(kind=hnn.Stacked, **options):
    return kind.init(L, hnn.Linear)(E, (H, D), key=jax.random.split(KEY, L.size), **options)


MODULES = {
    "linear": lambda: hnn.Linear.init(E, V, key=KEY),
    "linear without bias": lambda: hnn.Linear.init(E, (H, D), key=KEY, use_bias=False),
    "linear, inputs first": lambda: hnn.Linear.init((H, D), (E, V), key=KEY, out_first=False),
    "linear from nothing": lambda: hnn.Linear.init((), E, key=KEY),
    "linear to nothing": lambda: hnn.Linear.init(E, (), key=KEY),
    "linear to itself": lambda: hnn.Linear.init((E, H), (E, D), key=KEY),
    "output by muP": lambda: hnn.Linear.init((E, H), D, key=KEY, reparam_cls=hnn.mup.OutputLinearMup),
    "outputs by muP": lambda: stacked(reparam_cls=hnn.mup.OutputLinearMup),
    "layer norm": lambda: hnn.LayerNorm.init((H, D)),
    "rms norm": lambda: hnn.RmsNorm.init(E, use_bias=False),
    "embedding": lambda: hnn.Embedding.init(V, (H, D), key=KEY),
    "mlp": lambda: hnn.MLP.init(E, V, 5, 1, key=KEY),
    "dropout": lambda: hnn.Dropout(0.1),
    "stacked": stacked,
    "block seq": lambda: stacked(hnn.BlockSeq),
    "stacks in a stack": lambda: hnn.Stacked.init(O, Block)(jax.random.split(KEY, O.size)),
    "stacks in a list": lambda: hnn.BlockSeq.init(O, Block)(jax.random.split(KEY, O.size)),
    "methods of its own": lambda: hnn.Stacked.init(L, Transposed)(jax.random.split(KEY, L.size)),
    "methods for all layers at once": lambda: hnn.Stacked.init(L, Parts)(jax.random.split(KEY, L.size)),
    "other names": lambda: Wrapped(hnn.Linear.init(E, V, key=KEY), hax.ones(E)),
    "containers": lambda: Holder(
        {"x": [jnp.ones(2), (hax.ones(H),)], "y": Pair(np.ones(3, np.float32), None), "z": []}
    ),
    "numbers": lambda: Holder([1.5, 3, True, 2j, "text", abs]),
    "dtypes": lambda: Holder([jnp.ones(2, t) for t in (jnp.bfloat16, jnp.float8_e4m3fn, bool, jnp.int8)]),
    "keys": lambda: Holder([hax.NamedArray(jax.random.split(KEY, 3), ("L",))]),
    "no elements": lambda: Holder([hax.zeros(hax.Axis("none", 0)), jnp.zeros((0, 3))]),
}


def data_of(leaf):
    is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf)) if is_key else leaf


def same(have, want) -> bool:
    """Whether two modules have the same structure, and the same arrays in the same dtypes."""
    assert jax.tree.structure(have) == jax.tree.structure(want)
    for mine, theirs in zip(jax.tree.leaves(have), jax.tree.leaves(want), strict=True):
        mine, theirs = data_of(mine), data_of(theirs)
        if not hasattr(theirs, "dtype"):
            assert mine == theirs and type(mine) is type(theirs)
            continue
        assert mine.dtype == jax.dtypes.canonicalize_dtype(theirs.dtype) and np.array_equal(mine, theirs)
    return True


def shapes_of(module):
    """The module with shapes in the place of arrays."""
    return eqx.filter_eval_shape(lambda: module)
