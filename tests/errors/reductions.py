"""Reductions, and functions along axes."""

import jax.numpy as jnp

import haliax as hax
from errors.arrays import A_DTYPE, ANY_FORM, EMPTY, HAS, MASK, NAME_IT, OR_SCALAR, RAW, SAME_SIZE, E, N, X
from haliax import Axis

CASES = [
    (lambda: hax.nan_to_num(X, nan="a"), TypeError, f"nan_to_num: nan is a string; {OR_SCALAR}"),
    (
        lambda: hax.maximum(X, RAW),
        ValueError,
        f"maximum: an operand is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.sum(X, "tiem"), ValueError, f"sum: no axis 'tiem'; {HAS}. Did you mean 'time'?"),
    (lambda: hax.sum(X, 0), TypeError, f"sum: the axes are an int; {ANY_FORM}"),
    (lambda: hax.sum(X, (0, 1)), TypeError, "sum: the axis is an int; expected an Axis or a name."),
    (lambda: hax.sum(X, Axis("time", 5)), ValueError, f"sum: axis 'time' has size 5; expected 3. {SAME_SIZE}"),
    (lambda: hax.sum(X, ("time", "time")), ValueError, "sum: axis 'time' occurs more than once in (time, time)."),
    (lambda: hax.sum(X, ("time", "z")), ValueError, f"sum: no axis 'z'; {HAS}."),
    (
        lambda: hax.sum(X, where=RAW),
        TypeError,
        (
            "sum: where is a jax array of shape (3,); expected a NamedArray. Name its axes with "
            "haliax.named(mask, axes)."
        ),
    ),
    (
        lambda: hax.sum(X, where=X),
        TypeError,
        "sum: the mask `where` has dtype float32; expected booleans. Compare it, as in `where != 0`.",
    ),
    (
        lambda: hax.sum(X, where=hax.zeros(E, bool)),
        ValueError,
        "sum: the mask `where` has embed=4; expected axes among those of the array: batch=2, time=3.",
    ),
    (
        lambda: hax.sum(X, where=hax.zeros({"time": 5}, bool)),
        ValueError,
        "sum: the mask `where` has time=5; expected axes among those of the array: batch=2, time=3.",
    ),
    (
        lambda: hax.sum(X, where=True),
        TypeError,
        "sum: where is a bool; expected a NamedArray. Name its axes with haliax.named(mask, axes).",
    ),
    (
        lambda: hax.sum(RAW, "time"),
        ValueError,
        f"sum: an axis by name, and an unnamed array of 1 dimensions; expected a NamedArray. {NAME_IT}",
    ),
    (
        lambda: hax.sum(RAW, where=MASK),
        TypeError,
        f"sum: where is a NamedArray; expected an unnamed mask, as the array has no names. {NAME_IT}",
    ),
    (
        lambda: hax.sum("a"),
        TypeError,
        "sum: an operand is a string; expected a NamedArray, an array, a number or a pytree of them.",
    ),
    (lambda: hax.sum(X, dtype="foo"), TypeError, f"sum: there is no dtype 'foo'; {A_DTYPE}"),
    (lambda: X.sum(axis={"time": 7}), ValueError, f"sum: axis 'time' has size 7; expected 3. {SAME_SIZE}"),
    (lambda: hax.max(EMPTY), ValueError, "max: there is no element along axis 'time'; expected at least one."),
    (lambda: hax.min(EMPTY, "time"), ValueError, "min: there is no element along axis 'time'; expected at least one."),
    (
        lambda: hax.argmax(EMPTY, "time"),
        ValueError,
        "argmax: there is no element along axis 'time'; expected at least one.",
    ),
    (lambda: hax.argmax(X, ("batch", "time")), ValueError, "argmax: 2 axes were given; expected one axis."),
    (lambda: hax.argmax(X, "z"), ValueError, f"argmax: no axis 'z'; {HAS}."),
    (lambda: hax.argmin(X, 0), TypeError, f"argmin: the axes are an int; {ANY_FORM}"),
    (
        lambda: hax.nanargmax(EMPTY),
        ValueError,
        "nanargmax: there is no element along axis 'time'; expected at least one.",
    ),
    (lambda: hax.std(X, ddof="a"), TypeError, "std: ddof is a string; expected a number."),
    (
        lambda: hax.var(X, "time", where=RAW),
        TypeError,
        (
            "var: where is a jax array of shape (3,); expected a NamedArray. Name its axes with "
            "haliax.named(mask, axes)."
        ),
    ),
    (lambda: hax.all(X, "z"), ValueError, f"all: no axis 'z'; {HAS}."),
    (
        lambda: hax.any(RAW, "z"),
        ValueError,
        f"any: an axis by name, and an unnamed array of 1 dimensions; expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.ptp(EMPTY, "time"), ValueError, "ptp: there is no element along axis 'time'; expected at least one."),
    (
        lambda: hax.nanmax(EMPTY, "time"),
        ValueError,
        "nanmax: there is no element along axis 'time'; expected at least one.",
    ),
    (lambda: hax.median(X, "z"), ValueError, f"median: no axis 'z'; {HAS}."),
    (lambda: hax.median(X, 0), TypeError, f"median: the axes are an int; {ANY_FORM}"),
    (lambda: hax.quantile(X, 2.0, "time"), ValueError, "quantile: q is 2.0; expected a number from 0 to 1."),
    (
        lambda: hax.quantile(X, RAW, "time"),
        ValueError,
        f"quantile: q is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.quantile(X, "a", "time"), TypeError, f"quantile: q is a string; {OR_SCALAR}"),
    (lambda: hax.quantile(X, 0.5, "z"), ValueError, f"quantile: no axis 'z'; {HAS}."),
    (
        lambda: hax.quantile(N, 0.5, "time", method="foo"),
        ValueError,
        ("quantile: method is 'foo'; expected 'linear', 'lower', 'higher', 'midpoint', 'nearest' or 'inverted_cdf'."),
    ),
    (lambda: hax.percentile(X, 50, "z"), ValueError, f"percentile: no axis 'z'; {HAS}."),
    (lambda: hax.percentile(X, None, "time"), TypeError, f"percentile: q is None; {OR_SCALAR}"),
    (
        lambda: hax.median(EMPTY, "time"),
        ValueError,
        "median: there is no element along axis 'time'; expected at least one.",
    ),
    (lambda: hax.cumsum(X, "z"), ValueError, f"cumsum: no axis 'z'; {HAS}."),
    (lambda: hax.cumsum(X, 0), TypeError, f"cumsum: the axes are an int; {ANY_FORM}"),
    (lambda: hax.cumsum(X, ("batch", "time")), ValueError, "cumsum: 2 axes were given; expected one axis."),
    (
        lambda: hax.cumsum(RAW, "time"),
        ValueError,
        f"cumsum: an axis by name, and an unnamed array of 1 dimensions; expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.sort(X, "z"), ValueError, f"sort: no axis 'z'; {HAS}."),
    (lambda: hax.sort(X, ("batch", "time")), ValueError, "sort: 2 axes were given; expected one axis."),
    (lambda: hax.argsort(X, 0), TypeError, f"argsort: the axes are an int; {ANY_FORM}"),
    (lambda: hax.argsort(X, "time", stable="a"), TypeError, "argsort: stable is a string; expected a number."),
    (lambda: hax.flip(X, "z"), ValueError, f"flip: no axis 'z'; {HAS}."),
    (lambda: hax.flip(X, ("time", "time")), ValueError, "flip: axis 'time' occurs more than once in (time, time)."),
    (lambda: hax.diff(X, "z"), ValueError, f"diff: no axis 'z'; {HAS}."),
    (lambda: hax.diff(X, None), TypeError, "diff: the axis is None; expected an Axis or a name."),
    (lambda: hax.diff(X, "time", n=-1), ValueError, "diff: n is -1; expected 0 or more."),
    (lambda: hax.diff(X, "time", n="a"), TypeError, "diff: n is a string; expected an integer."),
    (lambda: hax.diff(X, ("batch", "time")), ValueError, "diff: 2 axes were given; expected one axis."),
    (lambda: hax.prod(X, "z"), ValueError, f"prod: no axis 'z'; {HAS}."),
    (lambda: hax.std(X, 0), TypeError, f"std: the axes are an int; {ANY_FORM}"),
    (lambda: hax.var(X, ("batch", "batch")), ValueError, "var: axis 'batch' occurs more than once in (batch, batch)."),
    (
        lambda: hax.nanmean(X, where=RAW),
        TypeError,
        (
            "nanmean: where is a jax array of shape (3,); expected a NamedArray. Name its axes with "
            "haliax.named(mask, axes)."
        ),
    ),
    (lambda: hax.nansum(X, "tmie"), ValueError, f"nansum: no axis 'tmie'; {HAS}. Did you mean 'time'?"),
    (lambda: hax.count_nonzero(X, 1), TypeError, f"count_nonzero: the axes are an int; {ANY_FORM}"),
    (lambda: hax.nanargmin(X, ("batch", "time")), ValueError, "nanargmin: 2 axes were given; expected one axis."),
    (lambda: hax.nanmin(EMPTY), ValueError, "nanmin: there is no element along axis 'time'; expected at least one."),
    (lambda: hax.nanquantile(X, -1, "time"), ValueError, "nanquantile: q is -1; expected a number from 0 to 1."),
    (
        lambda: hax.nanpercentile(X, 101, "time"),
        ValueError,
        "nanpercentile: q is 101; expected a number from 0 to 100.",
    ),
    (
        lambda: hax.percentile(X, RAW, "time"),
        ValueError,
        f"percentile: q is an unnamed array of shape (3,); {OR_SCALAR} {NAME_IT}",
    ),
    (lambda: hax.quantile(X, N, "time"), ValueError, "quantile: q has batch=2, time=3; expected at most one axis."),
    (
        lambda: hax.quantile(X, hax.named(jnp.array([0.1, 0.2]), "batch"), "time"),
        ValueError,
        "quantile: axis 'batch' occurs more than once in (batch, batch). Rename the axis of q.",
    ),
    (lambda: hax.nanmedian(X, "z"), ValueError, f"nanmedian: no axis 'z'; {HAS}."),
    (lambda: hax.nancumsum(X, "z"), ValueError, f"nancumsum: no axis 'z'; {HAS}."),
    (lambda: hax.nancumprod(X, ("batch", "time")), ValueError, "nancumprod: 2 axes were given; expected one axis."),
    (
        lambda: hax.cumsum("a", "time"),
        TypeError,
        "cumsum: an operand is a string; expected a NamedArray, an array, a number or a pytree of them.",
    ),
    (lambda: hax.cumsum(X, "time", dtype="foo"), TypeError, f"cumsum: there is no dtype 'foo'; {A_DTYPE}"),
    (
        lambda: hax.sort(RAW, "time"),
        ValueError,
        f"sort: an axis by name, and an unnamed array of 1 dimensions; expected a NamedArray. {NAME_IT}",
    ),
    (lambda: hax.argsort(X, ("batch", "time")), ValueError, "argsort: 2 axes were given; expected one axis."),
    (lambda: hax.flip(X, 0), TypeError, f"flip: the axes are an int; {ANY_FORM}"),
    (
        lambda: hax.flip(RAW, "time"),
        ValueError,
        f"flip: an axis by name, and an unnamed array of 1 dimensions; expected a NamedArray. {NAME_IT}",
    ),
]
