"""Transforms, polynomials, references, trees."""

import haliax as hax
from errors.arrays import ANY_FORM, HAS, NAME_IT, PAIRS, RAW, ROW, SAME_SIZE, VECTOR, X
from haliax import Axis

CASES = [
    (lambda: hax.fft(X, "z"), ValueError, f"fft: no axis 'z'; {HAS}."),
    (lambda: hax.fft(X, 0), TypeError, f"fft: the axes are an int; {ANY_FORM}"),
    (
        lambda: hax.fft(RAW, "time"),
        ValueError,
        f"fft: an axis by name, and an unnamed array of 1 dimensions; expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.fft(X, "time", norm="foo"),
        ValueError,
        "fft: norm is 'foo'; expected 'backward', 'ortho' or 'forward'.",
    ),
    (
        lambda: hax.rfft(X.astype(complex), "time"),
        TypeError,
        "rfft: the array has dtype complex64; expected booleans, integers or floats.",
    ),
    (
        lambda: hax.fftfreq("a"),
        TypeError,
        "fftfreq: axis is a string; expected an Axis. Its size is the number of points.",
    ),
    (lambda: hax.fftshift(X, "z"), ValueError, f"fftshift: no axis 'z'; {HAS}."),
    (
        lambda: hax.polyval(X, ROW),
        ValueError,
        "polyval: p has batch=2, time=3; expected one axis, that of the coefficients.",
    ),
    (
        lambda: hax.polyfit(ROW, VECTOR, 1),
        ValueError,
        "polyfit: axis 'time' has size 4; expected 3. y must have as many points as x.",
    ),
    (
        lambda: hax.polyadd(X, ROW),
        ValueError,
        "polyadd: p1 has batch=2, time=3; expected one axis, that of the coefficients.",
    ),
    (lambda: hax.roots(X), ValueError, "roots: p has batch=2, time=3; expected one axis, that of the coefficients."),
    (lambda: hax.vander(X, "a"), ValueError, "vander: x has batch=2, time=3; expected one axis."),
    (
        lambda: hax.vander(ROW, "time"),
        ValueError,
        "vander: axis 'time' occurs more than once in (time, time). Give the powers another axis.",
    ),
    (lambda: hax.polyfit(ROW, ROW, -1), ValueError, "polyfit: deg is -1; expected at least 0."),
    (lambda: hax.trim_zeros(X), ValueError, "trim_zeros: f has batch=2, time=3; expected one axis."),
    (
        lambda: hax.polyder(X, 1),
        ValueError,
        "polyder: p has batch=2, time=3; expected one axis, that of the coefficients.",
    ),
    (lambda: hax.new_ref(3), TypeError, f"new_ref: the array is an int; expected a NamedArray. {NAME_IT}"),
    (lambda: hax.new_ref("a"), TypeError, "new_ref: the array is a string; expected a NamedArray."),
    (lambda: hax.new_ref(X)["z", 0], ValueError, f"NamedRef: no axis 'z'; {HAS}."),
    (
        lambda: hax.get(X),
        TypeError,
        "get: ref is a NamedArray; expected a NamedRef or a jax.Ref. Make one with haliax.new_ref(array).",
    ),
    (lambda: hax.swap(hax.new_ref(X), None, RAW), TypeError, f"NamedRef: the index is None; {PAIRS}"),
    (
        lambda: hax.freeze(X),
        TypeError,
        ("freeze: ref is a NamedArray; expected a NamedRef or a jax.Ref. Make one with haliax.new_ref(array)."),
    ),
    (
        lambda: hax.tree_util.resize_axis(X, "time", 1.5),
        TypeError,
        "resize_axis: the new size is a float; expected an integer.",
    ),
    (
        lambda: hax.fft(X, "time", norm="none"),
        ValueError,
        "fft: norm is 'none'; expected 'backward', 'ortho' or 'forward'.",
    ),
    (
        lambda: hax.irfft(X, ("batch", "batch")),
        ValueError,
        "irfft: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (
        lambda: hax.rfftfreq("a"),
        TypeError,
        "rfftfreq: axis is a string; expected an Axis. Its size is the number of points.",
    ),
    (
        lambda: hax.ifftshift(RAW, "time"),
        ValueError,
        f"ifftshift: an axis by name, and an unnamed array of 1 dimensions; expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.fftshift(X, 0), TypeError, f"fftshift: the axes are an int; {ANY_FORM}"),
    (lambda: hax.polyval(None, X), TypeError, "polyval: p is None; expected an array with one axis."),
    (
        lambda: hax.polymul(ROW, X),
        ValueError,
        "polymul: p2 has batch=2, time=3; expected one axis, that of the coefficients.",
    ),
    (lambda: hax.polyfit(X, ROW, 1), ValueError, "polyfit: x has batch=2, time=3; expected one axis."),
    (
        lambda: hax.new_ref(RAW),
        TypeError,
        f"new_ref: the array is a jax array of shape (3,); expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.new_ref(X)["batch"], TypeError, f"NamedRef: the index is a string; {PAIRS}"),
    (
        lambda: hax.swap(X, ..., X),
        TypeError,
        ("swap: ref is a NamedArray; expected a NamedRef or a jax.Ref. Make one with haliax.new_ref(array)."),
    ),
    (
        lambda: hax.tree_util.resize_axis(X, Axis("time", 5), 3),
        ValueError,
        f"resize_axis: axis 'time' has size 5; expected 3. {SAME_SIZE}",
    ),
    (
        lambda: hax.jax_utils.ensure_scalar(X),
        TypeError,
        "ensure_scalar: value is a NamedArray; expected a scalar. It has batch=2, time=3.",
    ),
    (lambda: hax.fftfreq(Axis("t", 4), d="a"), TypeError, "fftfreq: d is a string; expected a number."),
    (
        lambda: hax.rfftfreq(Axis("t", 4), d=X),
        TypeError,
        "rfftfreq: d is a jax array of shape (2, 3); expected a number.",
    ),
    (lambda: hax.tree.map(3, X), TypeError, "tree.map: the function is an int; expected a callable."),
    (
        lambda: hax.tree.scan_aware_map("f", X),
        TypeError,
        "tree.scan_aware_map: the function is a string; expected a callable.",
    ),
]
