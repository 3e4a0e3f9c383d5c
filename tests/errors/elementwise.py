"""Elementwise functions and operators."""

import numpy as np

import haliax as hax
from errors.arrays import A_DTYPE, GIVE_EMBED, NAME_IT, ONE_INSIDE, OPERAND, OR_SCALAR, RAW, VECTOR, B, N, X

CASES = [
    (lambda: hax.exp("a"), TypeError, f"exp: an operand is a string; {OPERAND}"),
    (lambda: hax.exp(None), TypeError, f"exp: an operand is None; {OPERAND}"),
    (lambda: hax.exp([1, 2]), TypeError, f"exp: an operand is a list; {OPERAND}"),
    (lambda: hax.add(X, RAW), ValueError, f"add: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}"),
    (lambda: hax.add(X, None), TypeError, f"add: an operand is None; {OR_SCALAR}"),
    (lambda: hax.add(X, "a"), TypeError, f"add: an operand is a string; {OR_SCALAR}"),
    (lambda: hax.add(X, VECTOR), ValueError, f"add: axes (batch=2, time=3) and (embed=4); {ONE_INSIDE} {GIVE_EMBED}"),
    (
        lambda: hax.add(X, hax.zeros({"time": 5})),
        ValueError,
        "add: axis 'time' has size 5; expected 3. Both operands must agree on the size of a shared axis.",
    ),
    (lambda: hax.add(X, [1, 2]), TypeError, f"add: an operand is a list; {OR_SCALAR}"),
    (lambda: X - [1, 2], TypeError, f"subtract: an operand is a list; {OR_SCALAR}"),
    (
        lambda: np.ones(3) * X,
        ValueError,
        f"multiply: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: X < "a", TypeError, f"less: an operand is a string; {OR_SCALAR}"),
    (lambda: X == RAW, ValueError, f"equal: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}"),
    (lambda: ~X, TypeError, "invert: the array has dtype float32; expected booleans or integers."),
    (
        lambda: X & 1,
        TypeError,
        "bitwise_and: the operands have dtype float32 and int32; expected booleans or integers.",
    ),
    (
        lambda: X << 1,
        TypeError,
        "left_shift: the operands have dtype float32 and int32; expected booleans or integers.",
    ),
    (
        lambda: hax.bitwise_and(X, X),
        TypeError,
        "bitwise_and: the operands have dtype float32; expected booleans or integers.",
    ),
    (lambda: hax.round(X, "a"), TypeError, "round: decimals is a string; expected an integer."),
    (lambda: hax.round(X, 1.5), TypeError, "round: decimals is a float; expected an integer."),
    (lambda: X.astype("foo"), TypeError, f"astype: there is no dtype 'foo'; {A_DTYPE}"),
    (lambda: hax.frexp(None), TypeError, f"frexp: an operand is None; {OPERAND}"),
    (
        lambda: hax.divmod(X, VECTOR),
        ValueError,
        f"divmod: axes (batch=2, time=3) and (embed=4); {ONE_INSIDE} {GIVE_EMBED}",
    ),
    (
        lambda: hax.divmod(X, RAW),
        ValueError,
        f"divmod: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.gcd(X, X), TypeError, "gcd: the operands have dtype float32; expected integers."),
    (
        lambda: hax.isclose(X, VECTOR),
        ValueError,
        f"isclose: axes (batch=2, time=3) and (embed=4); {ONE_INSIDE} {GIVE_EMBED}",
    ),
    (
        lambda: hax.isclose(X, RAW),
        ValueError,
        f"isclose: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.allclose(X, RAW),
        ValueError,
        f"allclose: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.allclose(X, None), TypeError, f"allclose: an operand is None; {OR_SCALAR}"),
    (
        lambda: hax.array_equal(X, RAW),
        ValueError,
        f"array_equal: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.array_equal(X, None), TypeError, f"array_equal: an operand is None; {OR_SCALAR}"),
    (lambda: hax.array_equiv(X, "a"), TypeError, f"array_equiv: an operand is a string; {OR_SCALAR}"),
    (lambda: hax.sqrt({"a": 1}), TypeError, f"sqrt: an operand is a dict; {OPERAND}"),
    (lambda: hax.add(X, {"a": 1}), TypeError, f"add: an operand is a dict; {OR_SCALAR}"),
    (
        lambda: hax.logaddexp(X, RAW),
        ValueError,
        f"logaddexp: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: hax.arctan2(X, VECTOR),
        ValueError,
        f"arctan2: axes (batch=2, time=3) and (embed=4); {ONE_INSIDE} {GIVE_EMBED}",
    ),
    (lambda: hax.lcm(X, 2), TypeError, "lcm: the operands have dtype float32 and int32; expected integers."),
    (
        lambda: hax.left_shift(N, 1.5),
        TypeError,
        "left_shift: the operands have dtype int32 and float32; expected booleans or integers.",
    ),
    (
        lambda: hax.ceil(hax.zeros(B, complex)),
        TypeError,
        "ceil: the array has dtype complex64; expected booleans, integers or floats.",
    ),
    (
        lambda: hax.cbrt(hax.zeros(B, complex)),
        TypeError,
        "cbrt: the array has dtype complex64; expected booleans, integers or floats.",
    ),
    (
        lambda: hax.fmod(hax.zeros(B, complex), 2),
        TypeError,
        "fmod: the operands have dtype complex64 and int32; expected booleans, integers or floats.",
    ),
    (
        lambda: hax.hypot(X, VECTOR),
        ValueError,
        f"hypot: axes (batch=2, time=3) and (embed=4); {ONE_INSIDE} {GIVE_EMBED}",
    ),
    (
        lambda: hax.not_equal(X, RAW),
        ValueError,
        f"not_equal: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (
        lambda: X // RAW,
        ValueError,
        f"floor_divide: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: X ** "a", TypeError, f"power: an operand is a string; {OR_SCALAR}"),
    (lambda: X % None, TypeError, f"mod: an operand is None; {OR_SCALAR}"),
    (lambda: X > RAW, ValueError, f"greater: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}"),
    (
        lambda: X | True,
        TypeError,
        "bitwise_or: the operands have dtype float32 and bool; expected booleans or integers.",
    ),
    (
        lambda: X ^ 1,
        TypeError,
        "bitwise_xor: the operands have dtype float32 and int32; expected booleans or integers.",
    ),
    (
        lambda: X >> 2,
        TypeError,
        "right_shift: the operands have dtype float32 and int32; expected booleans or integers.",
    ),
    (
        lambda: hax.modf(hax.zeros(B, complex)),
        TypeError,
        "modf: the array has dtype complex64; expected booleans, integers or floats.",
    ),
    (lambda: hax.signbit("a"), TypeError, f"signbit: an operand is a string; {OPERAND}"),
    (lambda: hax.isclose(X, "a"), TypeError, f"isclose: an operand is a string; {OR_SCALAR}"),
    (
        lambda: hax.array_equiv(X, RAW),
        ValueError,
        f"array_equiv: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.array_equal("a", X), TypeError, f"array_equal: an operand is a string; {OR_SCALAR}"),
]
