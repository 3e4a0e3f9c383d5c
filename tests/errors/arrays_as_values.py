"""What Python asks of an array; annotations."""

import haliax as hax
from errors.arrays import HAS, ROW, X

CASES = [
    (lambda: pow(X, 2, 3), TypeError, "pow: a modulus was given; expected none. Write (a ** b) % modulus."),
    (
        lambda: len(X),
        TypeError,
        "len: the array has batch, time; which one counts is not said. Use size, or axis_size(axis).",
    ),
    (
        lambda: list(X),
        TypeError,
        (
            "iter: the array has batch, time; along which one to go is not said. Use unbind(axis) for "
            "the arrays along one axis."
        ),
    ),
    (lambda: X.item(), ValueError, f"item: {HAS}; expected one element. Use tolist() for all of them."),
    (
        lambda: bool(X),
        ValueError,
        f"bool: {HAS}; expected one element. Reduce it with any() or all(), or choose elements with haliax.where.",
    ),
    (lambda: int(X), TypeError, f"int: {HAS}; expected no axes. Reduce it, or take one element."),
    (lambda: float(ROW), TypeError, "float: the array has time=3; expected no axes. Reduce it, or take one element."),
    (
        lambda: complex(ROW),
        TypeError,
        "complex: the array has time=3; expected no axes. Reduce it, or take one element.",
    ),
    (lambda: range(ROW), TypeError, "index: the array has time=3; expected no axes. Reduce it, or take one element."),
    (
        lambda: "a" in X,
        TypeError,
        (
            "in: the array has batch, time; an axis or an element is not said. Use has_axis(name) for an "
            "axis, and any(x == value) for an element."
        ),
    ),
    (lambda: X.scalar(), ValueError, f"scalar: {HAS}; expected no axes."),
    (
        lambda: hax.NamedArray[3],
        TypeError,
        (
            'NamedArray[...]: the annotation is an int; expected a string such as "batch ... embed" or '
            '"{batch embed}", or a sequence or set of names and `...`.'
        ),
    ),
    (
        lambda: hax.Named[3],
        TypeError,
        'Named: an array type without axes; expected both, as in Named[NamedArray, "batch ..."].',
    ),
    (
        lambda: hax.haxtyping.f32[hax.NamedArray, 3],
        TypeError,
        (
            'f32: the annotation is an int; expected a string such as "batch ... embed" or "{batch '
            'embed}", or a sequence or set of names and `...`.'
        ),
    ),
    (
        lambda: hax.haxtyping.f32[hax.NamedArray, "... ..."],
        TypeError,
        "f32: `...` occurs 2 times in the annotation; expected at most one.",
    ),
    (
        lambda: X.matches_axes(3),
        TypeError,
        (
            'matches_axes: the annotation is an int; expected a string such as "batch ... embed" or '
            '"{batch embed}", or a sequence or set of names and `...`.'
        ),
    ),
    (
        lambda: hax.NamedArray[None],
        TypeError,
        (
            'NamedArray[...]: the annotation is None; expected a string such as "batch ... embed" or '
            '"{batch embed}", or a sequence or set of names and `...`.'
        ),
    ),
    (
        lambda: X.matches_axes(None),
        TypeError,
        (
            'matches_axes: the annotation is None; expected a string such as "batch ... embed" or '
            '"{batch embed}", or a sequence or set of names and `...`.'
        ),
    ),
]
