"""Calls of jitted functions that add one to each of N named arrays of 8 floats: nearly all of a call is overhead."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

import haliax as hax

Width = hax.Axis("width", 8)
MAPPING = {"width": "data"}
SIZES = [1, 16, 150, 600]

# the haliax of before takes no mesh; `benchmarks/compare_upstream.py` runs these files with it
TAKES_MESH = "mesh" in inspect.signature(hax.named_jit).parameters

Call = tuple[Callable[..., Any], tuple[Any, ...]]


class Weights(eqx.Module):
    """A model of N named arrays."""

    arrays: list[hax.NamedArray]


def mesh_of(devices: int) -> Mesh:
    """The first devices, along 'data'."""
    return Mesh(np.array(jax.devices()[:devices]), ("data",))


def weights_of(n: int) -> Weights:
    """N arrays on the first device."""
    return Weights([hax.named(jnp.zeros(8) + i, Width) for i in range(n)])


def at_most(n: int, variant: str = "named_jit") -> float:
    """How many times as long as `jax.jit` a call of `named_jit` may take.

    More for what `jax.jit` does not do: to find the mesh that the arguments are on and to enter it, or to compare their
    layouts with an input mapping.
    """
    if variant == "named_jit, sharded":
        return 1.7 if n == 1 else 1.3
    if variant == "named_jit, inputs mapped":
        return 1.6 if n == 1 else 1.25
    return 1.5 if n == 1 else 1.2


def add_one(weights: Any) -> Any:
    """The work: one addition for each leaf."""
    return jax.tree.map(lambda x: x + 1, weights)


def with_flag(weights: Any, flag: str) -> Any:
    """The same with a static argument."""
    return add_one(weights)


def plain_calls(n: int) -> dict[str, Call]:
    """Where no mesh takes part: for each variant a function to measure, and its arguments."""
    weights = weights_of(n)
    return {
        "baseline": (jax.jit(add_one), (weights,)),
        "jax.jit on raw leaves": (jax.jit(add_one), (jax.tree.leaves(weights),)),
        "equinox.filter_jit": (eqx.filter_jit(add_one), (weights,)),
        "named_jit": (hax.named_jit(add_one), (weights,)),
    }


def static_calls(n: int) -> dict[str, Call]:
    """With a static argument."""
    arguments = (weights_of(n), "flag")
    return {
        "baseline": (jax.jit(with_flag, static_argnums=1), arguments),
        "named_jit, static": (hax.named_jit(with_flag), arguments),
    }


def mesh_calls(n: int, devices: int) -> dict[str, Call]:
    """On a mesh, which is in force around the calls too."""
    mesh = mesh_of(devices)
    weights = hax.shard(weights_of(n), MAPPING, mesh)
    calls = {
        "baseline": (jax.jit(add_one), (weights,)),
        "named_jit, mapped": (hax.named_jit(add_one, MAPPING), (weights,)),
    }
    if TAKES_MESH:
        calls["named_jit, mesh="] = (hax.named_jit(add_one, mesh=mesh), (weights,))
        calls["named_jit, mapped, mesh="] = (hax.named_jit(add_one, MAPPING, mesh=mesh), (weights,))
    calls["named_jit, inputs mapped"] = (hax.named_jit(add_one, MAPPING, in_axis_resources=MAPPING), (weights,))
    return calls


def sharded_calls(n: int) -> dict[str, Call]:
    """On arrays that live on a mesh, which is not in force around the calls."""
    mesh = mesh_of(1)
    arguments = (hax.shard(weights_of(n), MAPPING, mesh),)
    calls = {"baseline": (jax.jit(add_one), arguments), "named_jit, sharded": (hax.named_jit(add_one), arguments)}
    if TAKES_MESH:
        calls["named_jit, mesh="] = (hax.named_jit(add_one, mesh=mesh), arguments)
        calls["named_jit, mapped, mesh="] = (hax.named_jit(add_one, MAPPING, mesh=mesh), arguments)
    return calls


def donating(variant: str, devices: int) -> Callable[[Any], Any]:
    """A function that takes its argument's memory for its result."""
    if variant == "baseline":
        return jax.jit(add_one, donate_argnums=0)
    mapping = MAPPING if devices > 1 else None
    return hax.named_jit(add_one, mapping, donate_args=(True,))
