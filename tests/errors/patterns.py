"""Patterns: the message shows the place."""

import jax

import haliax as hax
from errors.arrays import A_DTYPE, NAME_IT, RAW, ROW, VECTOR, X
from haliax import Axis

CASES = [
    (
        lambda: X.rearrange("batch time -> time batc"),
        ValueError,
        (
            "rearrange: no 'batc' on the left; it has batch, time. Did you mean 'batch'?\n"
            "    batch time -> time batc\n"
            "                       ^^^^"
        ),
    ),
    (
        lambda: X.rearrange("batch time -> time"),
        ValueError,
        (
            "rearrange: the right side has no place for batch=2. Name them, or put `...` where they go.\n"
            "    batch time -> time\n"
            "                  ^^^^"
        ),
    ),
    (
        lambda: X.rearrange("batch time"),
        ValueError,
        ("rearrange: the pattern ends too early; expected an axis or '->'.\n    batch time\n              ^"),
    ),
    (
        lambda: X.rearrange("a b c -> a b c"),
        ValueError,
        ("rearrange: 3 axes are named; the array has batch=2, time=3.\n    a b c -> a b c\n    ^^^^^"),
    ),
    (
        lambda: X.rearrange("a -> a"),
        ValueError,
        (
            "rearrange: 1 axis is named; the array has batch=2, time=3. Put `...` where the others are.\n"
            "    a -> a\n"
            "    ^"
        ),
    ),
    (lambda: X.rearrange("a a -> a"), ValueError, ("rearrange: 'a' occurs more than once.\n    a a -> a\n      ^")),
    (
        lambda: X.rearrange("(a: b c) d -> b c d"),
        ValueError,
        (
            "rearrange: axis batch=2 can be split into (b c) in many ways."
            " Give the sizes of all parts but one as keywords.\n"
            "    (a: b c) d -> b c d\n"
            "    ^^^^^^^^"
        ),
    ),
    (
        lambda: X.rearrange("(a: b c) d -> b c d", b=3),
        ValueError,
        ("rearrange: axis batch=2 can not be split into parts of sizes b=3.\n    (a: b c) d -> b c d\n    ^^^^^^^^"),
    ),
    (
        lambda: X.rearrange("a b -> (a b)"),
        ValueError,
        ("rearrange: parentheses on the right need a name; write (name: a b).\n    a b -> (a b)\n           ^^^^^"),
    ),
    (
        lambda: X.rearrange("a b -> (a: b c)"),
        ValueError,
        ("rearrange: no 'c' on the left; it has a, b.\n    a b -> (a: b c)\n           ^^^^^^^^"),
    ),
    (
        lambda: X.rearrange("a b -> b a", z=3),
        ValueError,
        ("rearrange: keyword 'z' is no name in the pattern.\n    a b -> b a"),
    ),
    (
        lambda: X.rearrange("a b -> b a", a="q", b="q"),
        ValueError,
        ("rearrange: 'a' is axis batch=2 here; it stands for 'q'.\n    a b -> b a\n    ^"),
    ),
    (
        lambda: X.rearrange("a b -> b a", a=1.5),
        TypeError,
        "rearrange: a is a float; expected an Axis, a name or a size.",
    ),
    (lambda: X.rearrange("a b -> b a", a=-2), ValueError, "rearrange: a is negative; expected a size."),
    (
        lambda: X.rearrange("a b -> b a", a=7),
        ValueError,
        ("rearrange: 'a' has size 2 here; expected 7.\n    a b -> b a\n    ^"),
    ),
    (
        lambda: X.rearrange("{z} -> z"),
        ValueError,
        ("rearrange: no axis 'z'; the array has batch=2, time=3.\n    {z} -> z\n     ^"),
    ),
    (
        lambda: X.rearrange("{batch ... -> batch"),
        ValueError,
        ("rearrange: unexpected '->'; expected an axis or '}'.\n    {batch ... -> batch\n               ^^"),
    ),
    (
        lambda: X.rearrange("... ... -> ..."),
        ValueError,
        (
            "rearrange: `...` occurs more than once; expected it at most once for each array.\n"
            "    ... ... -> ...\n"
            "        ^^^"
        ),
    ),
    (
        lambda: X.rearrange("1a b -> b"),
        ValueError,
        ("rearrange: a name can not begin with a digit; quote it: '1a'.\n    1a b -> b\n    ^"),
    ),
    (lambda: X.rearrange("a + b -> b"), ValueError, ("rearrange: unexpected '+'.\n    a + b -> b\n      ^")),
    (lambda: X.rearrange("'a b -> b"), ValueError, ("rearrange: the quotes are never closed.\n    'a b -> b\n    ^")),
    (
        lambda: X.rearrange(""),
        ValueError,
        ("rearrange: the pattern ends too early; expected an axis or '->'.\n    \n    ^"),
    ),
    (
        lambda: X.rearrange("->"),
        ValueError,
        ("rearrange: 0 axes are named; the array has batch=2, time=3. Put `...` where the others are.\n    ->"),
    ),
    (
        lambda: X.rearrange(None),
        TypeError,
        "rearrange: the order is None; expected a pattern, or a sequence of axes, names and `...`.",
    ),
    (
        lambda: X.rearrange(3),
        TypeError,
        "rearrange: the order is an int; expected a pattern, or a sequence of axes, names and `...`.",
    ),
    (lambda: X.rearrange(("time", "z")), ValueError, "rearrange: no axis 'z'; the axes are batch=2, time=3."),
    (
        lambda: X.rearrange(("time",)),
        ValueError,
        (
            "rearrange: the order (time) has no place for batch=2; expected all axes to be named. Name "
            "them, or put `...` where they go."
        ),
    ),
    (
        lambda: X.rearrange(("time", "time")),
        ValueError,
        "rearrange: axis 'time' occurs more than once in (time, time).",
    ),
    (
        lambda: X.rearrange(("time", 3)),
        TypeError,
        "rearrange: entry 1 of the order is an int; expected an Axis, a name or `...`.",
    ),
    (lambda: X.rearrange(("time", Axis("batch", 7))), ValueError, "rearrange: axis 'batch' has size 7; expected 2."),
    (
        lambda: hax.rearrange(RAW, "a -> a"),
        TypeError,
        f"rearrange: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.einsum("batch time, time embed -> batch embed", X),
        ValueError,
        ("einsum: the number of arrays is 1; expected 2.\n    batch time, time embed -> batch embed"),
    ),
    (
        lambda: hax.einsum("batch time, time -> batch embed", X, ROW),
        ValueError,
        (
            "einsum: no 'embed' on the left; it has batch, time.\n"
            "    batch time, time -> batch embed\n"
            "                              ^^^^^"
        ),
    ),
    (
        lambda: hax.einsum("batch time, time -> batch", X, VECTOR),
        ValueError,
        (
            "einsum: 'time' is axis embed=4 here; it stands for time=3.\n"
            "    batch time, time -> batch\n"
            "                ^^^^"
        ),
    ),
    (
        lambda: hax.einsum("batch time -> batch", ROW),
        ValueError,
        ("einsum: 2 axes are named; operand 0 has time=3.\n    batch time -> batch\n    ^^^^^^^^^^"),
    ),
    (
        lambda: hax.einsum("batch time", X),
        ValueError,
        ("einsum: the pattern ends too early; expected an axis, ',' or '->'.\n    batch time\n              ^"),
    ),
    (
        lambda: hax.einsum("batch (time e) -> batch", X),
        ValueError,
        (
            "einsum: parentheses have no meaning in einsum; merge and split axes with rearrange.\n"
            "    batch (time e) -> batch\n"
            "          ^"
        ),
    ),
    (
        lambda: hax.einsum("{batch tiem} -> batch", X),
        ValueError,
        (
            "einsum: no axis 'tiem'; the arrays have batch=2, time=3. Did you mean 'time'?\n"
            "    {batch tiem} -> batch\n"
            "           ^^^^"
        ),
    ),
    (
        lambda: hax.einsum("{batch}, {time} -> ", X, X),
        ValueError,
        ("einsum: braces stand for all arrays at once; expected '->'.\n    {batch}, {time} -> \n           ^"),
    ),
    (
        lambda: hax.einsum("-> tiem", X),
        ValueError,
        ("einsum: no axis 'tiem'; the arrays have batch=2, time=3. Did you mean 'time'?\n    -> tiem\n       ^^^^"),
    ),
    (lambda: hax.einsum("-> batch"), ValueError, "einsum: no array was given; expected at least one NamedArray."),
    (
        lambda: hax.einsum("-> batch", RAW),
        TypeError,
        f"einsum: operand 0 is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.einsum(X, "-> batch"), TypeError, "einsum: operand 0 is a string; expected a NamedArray."),
    (lambda: hax.einsum(None, X), TypeError, "einsum: the equation is None; expected a string."),
    (
        lambda: hax.einsum("-> batch batch", X),
        ValueError,
        ("einsum: 'batch' occurs more than once.\n    -> batch batch\n             ^^^^^"),
    ),
    (
        lambda: hax.einsum("a b -> a", X, c=3),
        ValueError,
        ("einsum: keyword 'c' is no name in the pattern.\n    a b -> a"),
    ),
    (lambda: hax.einsum("a b -> a", X, a=1.5), TypeError, "einsum: a is a float; expected an Axis, a name or a size."),
    (
        lambda: hax.einsum("a b -> a", X, a=7),
        ValueError,
        ("einsum: 'a' has size 2 here; expected 7.\n    a b -> a\n    ^"),
    ),
    (
        lambda: hax.einsum("... -> ...", X, hax.zeros({"time": 5})),
        ValueError,
        ("einsum: the number of arrays is 2; expected 1.\n    ... -> ..."),
    ),
    (
        lambda: hax.einsum("-> batch", X, hax.zeros({"time": 5})),
        ValueError,
        "einsum: axis 'time' has size 5; expected 3. Arrays must agree on the size of a shared axis.",
    ),
    (
        lambda: hax.einsum("-> batch", X, preferred_element_type="foo"),
        TypeError,
        f"einsum: there is no dtype 'foo'; {A_DTYPE}",
    ),
    (
        lambda: hax.einsum("-> batch", X, out_sharding="a"),
        TypeError,
        "einsum: out_sharding is a string; expected a NamedSharding or a PartitionSpec.",
    ),
    (
        lambda: hax.einsum("-> batch", X, out_sharding=jax.sharding.PartitionSpec("data")),
        ValueError,
        "einsum: out_sharding is a PartitionSpec and there is no mesh; expected a NamedSharding.",
    ),
]
