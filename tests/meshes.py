"""Arrays in known places, for the tests of `haliax.partitioning`."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import haliax as hax

MAPPING = {"batch": "data", "embed": "model"}
VALUES = np.arange(32, dtype=np.float32).reshape(8, 4)
NAMES = ("batch", "embed")


def make_mesh(order=slice(None), shape=(4, 2), types=(AxisType.Auto, AxisType.Auto)) -> Mesh:
    """A mesh over the devices picked by `order`, with axes 'data' and 'model'."""
    return Mesh(np.array(jax.devices())[order].reshape(shape), ("data", "model"), axis_types=types)


def on(mesh: Mesh, *spec) -> hax.NamedArray:
    """VALUES with axes batch=8, embed=4, committed to a layout."""
    return hax.NamedArray(jax.device_put(VALUES, NamedSharding(mesh, PartitionSpec(*spec))), NAMES)


PLACES = {
    "in place": lambda: on(make_mesh(), "data"),
    "permuted": lambda: on(make_mesh(slice(None, None, -1)), "data"),
    "half": lambda: on(make_mesh(slice(4), (2, 2)), "data"),
    "one device": lambda: hax.NamedArray(jax.device_put(VALUES, jax.devices()[3]), NAMES),
    "explicit": lambda: on(make_mesh(types=(AxisType.Explicit, AxisType.Explicit)), "data"),
    "uncommitted": lambda: hax.NamedArray(jnp.asarray(VALUES), NAMES),
    "host": lambda: hax.NamedArray(VALUES.copy(), NAMES),
}
ELSEWHERE = ["permuted", "half", "one device", "explicit"]
"""The places from which JAX refuses an array in a computation on the mesh of 4 x 2 devices."""


def spec_of(array) -> tuple:
    """The PartitionSpec of an array, named or raw, with an entry for each dimension."""
    raw = array.array if isinstance(array, hax.NamedArray) else array
    entries = tuple(raw.sharding.spec)
    return entries + (None,) * (raw.ndim - len(entries))
