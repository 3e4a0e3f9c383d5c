"""Reductions, quantiles and functions along axes, each against numpy or jax.numpy, with every option."""

import inspect
import pickle

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

import haliax as hax
from strategies import FLOATS, INTEGERS, assert_same, named_arrays, sub_arrays, values

ORDERED = [np.bool_, *INTEGERS, *FLOATS]

MASKED = """
    all any max min amax amin ptp sum prod product mean std var nanmax nanmin nansum nanprod nanmean nanstd nanvar
""".split()
UNMASKED = ["count_nonzero", "median", "nanmedian"]
QUANTILES = ["quantile", "nanquantile", "percentile", "nanpercentile"]
SEARCHES = ["argmax", "argmin", "nanargmax", "nanargmin"]
ALONG_ONE = ["cumsum", "cumprod", "nancumsum", "nancumprod", "sort", "argsort"]
JAX_NAMES = {"amax": "max", "amin": "min", "product": "prod"}

A, B, C = (hax.Axis(name, size) for name, size in [("a", 2), ("b", 3), ("c", 4)])
X = hax.named(jnp.arange(24.0).reshape(2, 3, 4), (A, B, C))


def jax_function(name):
    return getattr(jnp, JAX_NAMES.get(name, name))


@st.composite
def axes_of(draw, x):
    """None, or some axes of an array in any order."""
    order = tuple(draw(st.permutations(x.axis_names)))
    return draw(st.sampled_from([None, order[:1], order[:2], order]))


def positions(x, axes):
    return None if axes is None else tuple(x.axis_names.index(name) for name in axes)


def without(x, axes):
    return () if axes is None else tuple(name for name in x.axis_names if name not in axes)


# what the functions look like


@pytest.mark.parametrize("name", [*MASKED, *UNMASKED, *QUANTILES, *SEARCHES, *ALONG_ONE, "flip", "diff"])
def test_docstrings_have_all_sections(name):
    op = getattr(hax, name)
    _, *sections = op.__doc__.split("\n\n")
    assert [section.split("\n")[0] for section in sections] == ["Args:", "Returns:", "Source:"]
    documented = [line.split(":")[0].strip() for line in sections[0].split("\n")[1:]]
    assert documented == list(inspect.signature(op).parameters)
    assert sections[2] == f"Source:\n    `jax.numpy.{jax_function(name).__name__}`"
    assert pickle.loads(pickle.dumps(op)) is op


# reductions


@pytest.mark.parametrize("name", [*MASKED, *UNMASKED])
def test_one_axis_several_all(name):
    op, fn = getattr(hax, name), jax_function(name)
    for axis, position, names in [
        ("b", 1, ("a", "c")),
        (B, 1, ("a", "c")),
        (("c", A), (2, 0), ("b",)),
        ({"a": 2, "c": None}, (0, 2), ("b",)),
        (None, None, ()),
    ]:
        result = op(X, axis)
        assert result.axis_names == names
        np.testing.assert_allclose(np.asarray(result), fn(X.array, axis=position), rtol=1e-6)
    assert_same(op(X.array, 1), fn(X.array, axis=1))
    assert_same(op(X.array), fn(X.array))


@given(st.data(), st.sampled_from(["sum", "prod", "all", "any", "count_nonzero"]))
def test_reductions_with_an_identity(data, name):
    x = data.draw(named_arrays(tame=True))
    axes = data.draw(axes_of(x))
    result = getattr(hax, name)(x, axes)
    assert result.axis_names == without(x, axes)
    assert_same(result, jax_function(name)(x.array, axis=positions(x, axes)))


@given(st.data(), st.sampled_from(["max", "min", "ptp", "mean", "argmax"]))
def test_reductions_without_an_identity(data, name):
    x = data.draw(named_arrays(ORDERED, min_axes=1))
    axes = data.draw(axes_of(x))
    assume(x.size)
    if name == "argmax" and axes is not None:
        axes = axes[:1]
    if name == "ptp":
        assume(x.dtype != bool)
    position = positions(x, axes)
    result = getattr(hax, name)(x, axes)
    assert result.axis_names == without(x, axes)
    expected = jax_function(name)(x.array, axis=position[0] if name == "argmax" and position else position)
    assert_same(result, expected)


@given(st.data())
def test_no_axes_reduce_nothing(data):
    x = data.draw(named_arrays(ORDERED))
    assert_same(hax.max(x, ()), x)
    assert hax.max(x, ()).axis_names == x.axis_names


@pytest.mark.parametrize("name", [prefix + name for prefix in ("", "nan") for name in "sum prod mean std var".split()])
def test_dtype(name):
    x = X.astype(jnp.bfloat16)
    assert getattr(hax, name)(x, "b", dtype=jnp.float32).dtype == jnp.float32
    assert getattr(hax, name)(x, "b").dtype == jnp.bfloat16


@pytest.mark.parametrize("name", ["std", "var", "nanstd", "nanvar"])
def test_ddof(name):
    assert_same(getattr(hax, name)(X, "b", ddof=1), jax_function(name)(X.array, axis=1, ddof=1))


def test_var_takes_dtype_and_ddof_by_position():
    assert_same(X.var("b", jnp.float32, 1), jnp.var(X.array, axis=1, ddof=1))


def test_imaginary_numbers_are_true():
    x = hax.named(jnp.array([1j, 2]), B.resize(2))
    assert hax.any(x).item() is hax.all(x).item() is True
    assert hax.any(x.array[:1]).item() is True


# masks


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("mask_names", [("b", "a"), ("b",), ()])
@pytest.mark.parametrize("axis", ["a", None])
def test_every_masked_reduction(name, mask_names, axis):
    raw = values(np.random.default_rng(0), (2, 3), np.float32, tame=True)
    x = hax.named(jnp.asarray(raw), ("a", "b"))
    shape = tuple(x.axis_size(n) for n in mask_names)
    mask = hax.named(jnp.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2 == 0), mask_names)

    full = np.asarray(hax.broadcast_to(mask, x.axes).array)
    initial = {"max": -np.inf, "min": np.inf}.get(JAX_NAMES.get(name, name).removeprefix("nan"))
    options = {} if initial is None else {"initial": initial}
    position = positions(x, (axis,) if isinstance(axis, str) else axis)
    if name == "ptp":
        highest = np.max(raw, position, where=full, initial=-np.inf)
        expected = highest - np.min(raw, position, where=full, initial=np.inf)
    else:
        expected = jax_function(name)(jnp.asarray(raw), axis=position, where=jnp.asarray(full), **options)
    result = getattr(hax, name)(x, axis, where=mask)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)


@given(st.data(), st.sampled_from(["max", "min"]))
def test_extremes_under_a_mask(data, name):
    x = data.draw(named_arrays(ORDERED))
    mask = data.draw(sub_arrays(x, [np.bool_]))
    axes = data.draw(axes_of(x))
    lowest, highest = limits(x.dtype)
    full = np.asarray(hax.broadcast_to(mask, x.axes).array)
    chosen = np.where(full, np.asarray(x), lowest if name == "max" else highest)

    ufunc = np.maximum if name == "max" else np.minimum
    axis = tuple(range(x.ndim)) if axes is None else positions(x, axes)
    with np.errstate(invalid="ignore"):  # numpy warns of NaN in bfloat16
        expected = ufunc.reduce(chosen, axis, initial=lowest if name == "max" else highest)
    assert_same(getattr(hax, name)(x, axes, where=mask), np.asarray(expected, x.dtype))


def limits(dtype):
    if np.issubdtype(dtype, np.bool_):
        return np.bool_(False), np.bool_(True)
    if np.issubdtype(dtype, np.integer):
        return np.asarray(np.iinfo(dtype).min, dtype), np.asarray(np.iinfo(dtype).max, dtype)
    return np.asarray(-np.inf, dtype), np.asarray(np.inf, dtype)


@pytest.mark.parametrize("dtype", [jnp.float8_e4m3fn, jnp.uint32, jnp.complex64, *ORDERED])
def test_extremes_of_every_dtype(dtype):
    x = hax.named(jnp.asarray([1, 0, 1]).astype(dtype), B)
    mask = hax.named(jnp.array([True, False, False]), B)
    assert hax.max(x, where=mask).item() == hax.min(x, where=mask).item() == 1
    assert hax.max(x, where=mask).dtype == dtype


def test_nan_under_a_mask():
    x = hax.named(jnp.array([1, jnp.nan, 3]), B)
    mask = hax.named(jnp.array([True, False, True]), B)
    assert hax.max(x, where=mask).item() == 3
    assert np.isnan(hax.max(x).item())
    assert hax.nanmin(x).item() == 1


def test_masks_of_raw_arrays():
    raw, mask = jnp.arange(6).reshape(2, 3), jnp.arange(6).reshape(2, 3) > 2
    assert_same(hax.max(raw, 0, where=mask), jnp.array([3, 4, 5]))
    assert_same(hax.sum(raw, where=mask), jnp.sum(raw, where=mask))


# trees


def test_trees():
    tree = {"x": X, "raw": jnp.ones((2, 3)), "number": 2.0, "none": None}
    sums = hax.sum(tree)
    assert (sums["x"].item(), float(sums["raw"]), float(sums["number"]), sums["none"]) == (276, 6, 2, None)
    assert hax.max({"x": X, "y": [X]}, "a")["y"][0].axis_names == ("b", "c")
    assert hax.cumsum([X], "a")[0].axes == X.axes
    assert hax.quantile([X], 0.5, "a")[0].axis_names == ("b", "c")


def test_each_leaf_aligns_the_mask():
    mask = hax.named(jnp.array([True, False, True]), B)
    tree = [X, X.rearrange(("c", "b", "a")), hax.sum(X, "a")]
    for leaf, reduced in zip(tree, hax.sum(tree, "b", where=mask), strict=True):
        assert_same(reduced, hax.sum(leaf * mask, "b"))


def test_each_leaf_has_the_extreme_of_its_dtype():
    mask = hax.named(jnp.array([False, False, False]), B)
    tree = [hax.zeros(B, dtype) for dtype in ORDERED]
    assert [x.array for x in hax.max(tree, where=mask)] == [limits(np.dtype(dtype))[0] for dtype in ORDERED]


# positions


@pytest.mark.parametrize("name", SEARCHES)
def test_searches(name):
    op, fn = getattr(hax, name), jax_function(name)
    x = hax.named(jnp.array([[1, jnp.nan, 3], [5, 2, 0]]), ("a", "b"))
    assert_same(op(x, "b"), fn(x.array, axis=1))
    assert_same(op(x), fn(x.array))
    assert op(x).axis_names == ()
    assert_same(op(x.array, 0), fn(x.array, axis=0))


# quantiles


@pytest.mark.parametrize("name", QUANTILES)
@pytest.mark.parametrize("method", ["linear", "nearest", "lower"])
def test_quantiles(name, method):
    op, fn = getattr(hax, name), jax_function(name)
    q = jnp.array([0.1, 0.5])
    assert_same(op(X, 0.3, "b", method=method), fn(X.array, 0.3, axis=1, method=method))
    assert_same(op(X, 0.3, method=method), fn(X.array, 0.3, method=method))
    several = op(X, hax.named(q, "q"), ("a", "c"), method=method)
    assert several.axis_names == ("q", "b")
    assert_same(several, fn(X.array, q, axis=(0, 2), method=method))
    assert_same(op(X.array, q, 1, method=method), fn(X.array, q, axis=1, method=method))


# along axes


@pytest.mark.parametrize("name", ALONG_ONE)
def test_functions_along_one_axis(name):
    op, fn = getattr(hax, name), jax_function(name)
    raw = values(np.random.default_rng(0), (2, 3), np.float32)
    x = hax.named(jnp.asarray(raw), ("a", "b"))
    for axis, position in [("a", 0), ("b", 1), (hax.Axis("b", 3), 1)]:
        assert op(x, axis).axes == x.axes
        assert_same(op(x, axis), fn(raw, axis=position))
    assert_same(op(x, None), fn(raw, axis=None))
    assert_same(op(raw, 0), fn(raw, axis=0))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_dtype_of_cumulative_functions(name):
    assert getattr(hax, name)(X.astype(jnp.bfloat16), "a", dtype=jnp.float32).dtype == jnp.float32


def test_argsort_stable():
    x = hax.named(jnp.array([1, 0, 1, 0]), C)
    assert hax.argsort(x, C, stable=True).tolist() == [1, 3, 0, 2]


@given(st.data())
def test_flip(data):
    x = data.draw(named_arrays())
    axes = data.draw(axes_of(x))
    result = hax.flip(x, axes)
    assert result.axis_names == x.axis_names
    assert_same(result, np.flip(np.asarray(x), positions(x, axes)))


def test_diff():
    assert hax.diff(X, "b").axes == (A, B.resize(2), C)
    assert_same(hax.diff(X, "b", n=2), jnp.diff(X.array, n=2, axis=1))


# errors

x23 = hax.ones((A, B))
ERRORS = [
    (lambda: hax.sum(x23, "bb"), ValueError, "sum: no axis 'bb'; the array has a=2, b=3. Did you mean 'b'?"),
    (
        lambda: hax.sum(x23, hax.Axis("b", 4)),
        ValueError,
        "sum: axis 'b' has size 4; expected 3. An Axis must have the size that the array has.",
    ),
    (lambda: hax.max(x23, ("a", "a")), ValueError, "max: axis 'a' occurs more than once in (a, a)."),
    (
        lambda: hax.sum(x23, 0),
        TypeError,
        "sum: the axes are an int; expected an Axis, a name, a sequence of those, or a mapping from names to sizes.",
    ),
    (
        lambda: hax.sum(x23, where=hax.ones(hax.Axis("b", 4)) > 0),
        ValueError,
        "sum: the mask `where` has b=4; expected axes among those of the array: a=2, b=3.",
    ),
    (
        lambda: hax.sum(x23, where=jnp.ones(3) > 0),
        TypeError,
        "sum: where is a jax array of shape (3,); expected a NamedArray. Name its axes with haliax.named(mask, axes).",
    ),
    (
        lambda: hax.sum(jnp.ones(3), where=hax.ones(B) > 0),
        TypeError,
        "sum: where is a NamedArray; expected an unnamed mask, as the array has no names. "
        "Name its axes with haliax.named(array, axes).",
    ),
    (
        lambda: hax.sum(jnp.ones(3), "a"),
        ValueError,
        "sum: an axis by name, and an unnamed array of 1 dimensions; expected a NamedArray. "
        "Name its axes with haliax.named(array, axes).",
    ),
    (
        lambda: hax.sum({"x": "text"}),
        TypeError,
        "sum: an operand is a string; expected a NamedArray, an array, a number or a pytree of them.",
    ),
    (lambda: hax.argmax(x23, ("a", "b")), ValueError, "argmax: 2 axes were given; expected one axis."),
    (lambda: hax.cumsum(x23, ("a", "b")), ValueError, "cumsum: 2 axes were given; expected one axis."),
    (lambda: hax.sort(x23, "c"), ValueError, "sort: no axis 'c'; the array has a=2, b=3."),
    (lambda: hax.quantile(x23, x23), ValueError, "quantile: q has a=2, b=3; expected at most one axis."),
    (
        lambda: hax.quantile(x23, hax.ones(B), "a"),
        ValueError,
        "quantile: axis 'b' occurs more than once in (b, b). Rename the axis of q.",
    ),
    (
        lambda: hax.quantile(x23, jnp.ones(2)),
        ValueError,
        "quantile: q is an unnamed array of shape (2,); expected a NamedArray or a scalar. "
        "Name its axes with haliax.named(array, axes).",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_errors(call, kind, message):
    with pytest.raises(kind) as e:
        call()
    assert str(e.value) == message
