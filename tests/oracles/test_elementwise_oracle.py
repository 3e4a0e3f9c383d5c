"""Elementwise operations against numpy: all of them, over random axes, sizes, orders, dtypes and scalars."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

import haliax as hax
import strategies
from oracles.bunches import Case, agrees, dtype_of, in_order
from strategies import named_arrays, sub_arrays
from test_elementwise import BINARY, UNARY

# numpy warns where a result is NaN or infinite, which JAX does not
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

DTYPES = [np.dtype(dtype) for dtype in [*strategies.DTYPES, np.int16, np.uint32]]
REAL = [dtype for dtype in DTYPES if dtype.kind != "c"]

# where numpy has another name for it, or none
NUMPY = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "bitwise_invert": np.invert,
    "bitwise_not": np.invert,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "fix": np.trunc,
    "positive": np.array,
    "deg2rad": lambda x: x * (np.pi / 180),
    "radians": lambda x: x * (np.pi / 180),
    "rad2deg": lambda x: x * (180 / np.pi),
    "degrees": lambda x: x * (180 / np.pi),
}
SHIFTS = {"left_shift", "right_shift", "bitwise_left_shift", "bitwise_right_shift"}
DIVISIONS = {"divide", "floor_divide", "fmod", "mod", "remainder", "true_divide"}
POWERS = {"power", "float_power"}
REAL_ONLY = {"arctan2", "logaddexp", "logaddexp2"}  # in numpy
# where infinity and NaN have no agreed result
TAME = {"i0", "sinc", "floor_divide", "fmod", "mod", "remainder", "power", "float_power", "logaddexp2"}
TAME_IF_COMPLEX = {"minimum", "maximum"}  # with NaN, JAX orders complex numbers otherwise than numpy
SCALARS = [2, 0, -1, True, 2.5, 1j, np.float32(2), np.int8(3), np.float64(1), np.array(3), jnp.array(2)]


def is_tame(name, common):
    """Whether the operands, of this dtype in common, should have neither infinity nor NaN."""
    return name in TAME or (name in TAME_IF_COMPLEX and common.kind == "c")


def numpy_of(name):
    return NUMPY.get(name) or getattr(np, name)


def exactly(name, result_dtype, operand_dtype, *operands):
    """What numpy makes of the operands: in their common dtype if that is of integers, else in the widest."""
    fn = numpy_of(name)
    if np.dtype(operand_dtype).kind in "biu" and result_dtype.kind in "biu":
        operands = [np.asarray(x).astype(operand_dtype) for x in operands]
    elif name == "nextafter":
        operands = [np.asarray(x, result_dtype) for x in operands]
    else:
        kind = np.complex128 if operand_dtype.kind == "c" else np.float64
        operands = [np.asarray(x).astype(kind) for x in operands]
    return np.asarray(fn(*operands)).astype(result_dtype)


def taken_by(op, *operands):
    """The dtypes (and scalars), if the operation takes them; else the first of the usual dtypes that it takes."""
    usual = [[np.dtype(d) if isinstance(x, np.dtype) else 2 for x in operands] for d in (np.float32, np.int32, bool)]
    return next(choice for choice in (operands, *usual) if dtype_of(op.__jax__, *choice) is not None)


@st.composite
def unary_cases(draw):
    name = draw(st.sampled_from(UNARY))
    op = getattr(hax, name)
    (operand,) = taken_by(op, draw(st.sampled_from(DTYPES)))
    x = draw(named_arrays([operand], tame=name in TAME))
    dtype = dtype_of(op.__jax__, x.array)
    return Case(f"hax.{name}(x)", (x,), op, lambda x: (x.axis_names, exactly(name, dtype, x.dtype, x.array)))


@st.composite
def operand_pairs(draw, dtypes, tame):
    """Two arrays of which the axes of one are among those of the other, and these axes."""
    x = draw(named_arrays(dtypes[:1], tame=tame))
    y = draw(sub_arrays(x, dtypes[1:], tame=tame))
    swapped = draw(st.booleans()) and dtypes[0] == dtypes[1]
    x, y = (y, x) if swapped else (x, y)
    return x, y, x.axis_names if len(x.axis_names) >= len(y.axis_names) else y.axis_names


def in_domain(name, operand_dtype):
    """What to make of the second operand, so that numpy and JAX agree on what the operation is."""
    if name in SHIFTS:
        return np.abs
    if name in POWERS and operand_dtype.kind in "iu":
        return np.abs
    if name in DIVISIONS:
        return lambda y: np.where(y == 0, np.ones_like(y), y)
    return lambda y: y


def within(x, change):
    """A named array with its elements changed in numpy."""
    return x.like(change(np.asarray(x.array)).astype(x.dtype), x.axis_names)


@st.composite
def binary_cases(draw):
    name = draw(st.sampled_from(BINARY))
    op = getattr(hax, name)
    choices = st.sampled_from(REAL if name in REAL_ONLY else DTYPES)
    dtypes = taken_by(op, draw(choices), draw(choices))
    common, dtype = np.dtype(jnp.promote_types(*dtypes)), dtype_of(op.__jax__, *dtypes)
    x, y, names = draw(operand_pairs(dtypes, is_tame(name, common)))
    y = within(y, in_domain(name, common))

    def expect(x, y):
        return names, exactly(name, dtype, common, in_order(x, names), in_order(y, names))

    return Case(f"hax.{name}(x, y)", (x, y), op, expect)


@st.composite
def scalar_cases(draw):
    """One of the operands is a number, a scalar of numpy or an array of rank 0, on either side."""
    name = draw(st.sampled_from(BINARY))
    op, first = getattr(hax, name), draw(st.booleans())
    safe, real = name in SHIFTS | POWERS | DIVISIONS, name in REAL_ONLY
    scalars = [s for s in SCALARS if not ((safe and s in (0, -1)) or (real and s == 1j))]
    operands = draw(st.sampled_from(REAL if real else DTYPES)), draw(st.sampled_from(scalars))
    operands = taken_by(op, *(operands[::-1] if first else operands))
    operand, scalar = operands[::-1] if first else operands

    def ordered(x, number):
        return (number, x) if first else (x, number)

    common, dtype = np.dtype(jnp.result_type(operand, scalar)), dtype_of(op.__jax__, *operands)
    x = draw(named_arrays([operand], tame=is_tame(name, common)))
    x = within(x, in_domain(name, common)) if first else x
    return Case(
        f"hax.{name}({', '.join(ordered('x', repr(scalar)))})",
        (x,),
        lambda x: op(*ordered(x, scalar)),
        lambda x: (x.axis_names, exactly(name, dtype, common, *ordered(x.array, scalar))),
    )


@agrees(unary_cases(), binary_cases(), scalar_cases())
def test_elementwise():
    """One array keeps its axes; two are broadcast by name; numbers promote as in `jax.numpy`."""
