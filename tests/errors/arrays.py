"""Arrays of all kinds, for the tables of errors, and what many messages have in common."""

import jax
import jax.numpy as jnp

import haliax as hax

B, T, E = hax.make_axes(batch=2, time=3, embed=4)

X = hax.named(jnp.arange(6.0).reshape(2, 3), (B, T))
N = hax.named(jnp.arange(6).reshape(2, 3), (B, T))
MASK = N > 2
ROW = hax.named(jnp.arange(3.0), T)
VECTOR = hax.named(jnp.arange(4.0), E)
SCALAR = hax.named(jnp.zeros(()), ())
EMPTY = hax.zeros({"time": 0})
RAW = jnp.arange(3.0)
RAW2 = jnp.zeros((2, 3))
KEY = jax.random.key(0)
KEYS = hax.named(jax.random.split(KEY, 3), T)
MESH = jax.make_mesh((2,), ("data",))

HAS = "the array has batch=2, time=3"
NAME_IT = "Name its axes with haliax.named(array, axes)."
OR_SCALAR = "expected a NamedArray or a scalar."
OPERAND = "expected a NamedArray, an array or a number."
ANY_FORM = "expected an Axis, a name, a sequence of those, or a mapping from names to sizes."
SIZED = "expected an Axis, or a mapping from name to size."
SAME_SIZE = "An Axis must have the size that the array has."
ONE_INSIDE = "expected the axes of one to contain those of the other."
GIVE_EMBED = "Use broadcast_axis to give the first operand 'embed' explicitly."
PAIRS = 'expected pairs of an axis and what to take of it, or a mapping. Write x["batch", 0] or x[{"batch": 0}].'
INDICES = "expected an integer, a slice, a dslice, a NamedArray of integers or an unnamed one of rank 1."
A_KEY = "expected a random key. Make one with jax.random.key(seed)."
A_DTYPE = 'expected one such as jnp.float32 or "int8".'
A_MESH = "expected a jax.sharding.Mesh or AbstractMesh."
GIVE_A_MESH = "Pass mesh=..., or call it under `with haliax.set_mesh(mesh):`."
A_MAPPING = "expected a mapping from axis names to mesh axes."
A_CARRY = "A step must return a carry of the structure, names, shapes and dtypes that it gets."
A_PRECISION = 'expected a jax.lax.Precision, the name of one such as "highest", or one for each operand.'
