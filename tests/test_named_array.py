"""NamedArray: its data, its look-ups, what Python and numpy make of it, and its life as a pytree."""

import copy
import operator
import pickle
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax.core import NamedArrayMeta, check_shape
from strategies import assert_same

A, B = hax.Axis("a", 2), hax.Axis("b", 3)
X = hax.named(jnp.arange(6.0).reshape(2, 3), (A, B))
SCALAR = hax.named(jnp.float32(2.5), ())
ABSTRACT = hax.NamedArray(jax.ShapeDtypeStruct((2, 3), jnp.float32), (A, B))


# making one


@pytest.mark.parametrize("names", [("a", "b"), ["a", B], (A, B), {"a": 2, "b": 3}])
def test_forms_of_axes(names):
    x = hax.NamedArray(jnp.ones((2, 3)), names)
    assert x.axis_names == ("a", "b")
    assert x.axes == (A, B)
    assert x.shape == {"a": 2, "b": 3}


def test_one_axis():
    assert hax.NamedArray(jnp.ones(2), "a").axes == hax.NamedArray(jnp.ones(2), A).axes == (A,)


BAD = [
    ((2, 3), ("a", "a"), ValueError, "NamedArray: axis 'a' occurs more than once in (a, a). Rename one of them."),
    (
        (2, 3),
        ("a",),
        ValueError,
        "NamedArray: an array of shape (2, 3) and 1 names (a); expected one name for each dimension.",
    ),
    ((2, 3), (A, A), ValueError, "NamedArray: axis 'a' occurs more than once in (a, a). Rename one of them."),
    (
        (2, 4),
        (A, B),
        ValueError,
        "NamedArray: axis 'b' has size 3; expected 4. The array has shape (2, 4).",
    ),
    (
        (2,),
        None,
        TypeError,
        "NamedArray: the axes are None; expected an Axis, a name, "
        "a sequence of those, or a mapping from names to sizes.",
    ),
]


@pytest.mark.parametrize(("shape", "names", "kind", "message"), BAD)
def test_axes_must_fit(shape, names, kind, message):
    with pytest.raises(kind) as e:
        hax.NamedArray(jnp.ones(shape), names)
    assert str(e.value) == message


def test_checks_can_be_switched_off():
    assert hax.are_shape_checks_enabled()
    with hax.enable_shape_checks(False) as previous:
        assert previous is True
        assert not hax.are_shape_checks_enabled()
        assert hax.NamedArray(jnp.ones(2), (B,)).axis_names == ("b",)
        with hax.enable_shape_checks(True) as previous:
            assert previous is False
    assert hax.are_shape_checks_enabled()


def test_checks_are_switched_off_for_one_thread():
    seen = []
    with hax.enable_shape_checks(False):
        thread = threading.Thread(target=lambda: seen.append(hax.are_shape_checks_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_check_shape():
    assert check_shape((2, 3), ("a", B)) == (A, B)
    assert check_shape((2,), "a") == check_shape((2,), A) == check_shape((2,), {"a": 2}) == (A,)
    with pytest.raises(ValueError, match="check_shape: axis 'b' has size 3; expected 4"):
        check_shape((2, 4), (A, B))


@pytest.mark.parametrize("name", ["array", "axis_names", "other"])
def test_arrays_do_not_change(name):
    message = f"NamedArray: the attribute {name!r} can not change. Make another array, as operations do."
    for change in (lambda: setattr(X, name, 1), lambda: delattr(X, name)):
        with pytest.raises(AttributeError) as e:
            change()
        assert str(e.value) == message


# looking up axes


def test_look_ups():
    assert X.resolve_axis("a") == A
    assert X.resolve_axis(("b", A)) == (B, A)
    assert X.axis_size("b") == 3
    assert X.axis_size(("b", "a")) == (3, 2)
    assert X.axis_indices("b") == 1
    assert X.axis_indices(("b", "c")) == (1, None)


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ("a", True),
        ("c", False),
        (A, True),
        (hax.Axis("a", 3), False),
        (("a", "b"), True),
        (("a", "c"), False),
        ((), True),
    ],
)
def test_has_axis(axes, expected):
    assert X.has_axis(axes) is expected


@pytest.mark.parametrize("method", ["resolve_axis", "axis_size"])
def test_look_ups_of_other_axes(method):
    with pytest.raises(ValueError, match=f"{method}: no axis 'c'; the array has a=2, b=3"):
        getattr(X, method)("c")
    with pytest.raises(ValueError, match=f"{method}: axis 'a' has size 3; expected 2"):
        getattr(X, method)(hax.Axis("a", 3))


def test_properties():
    assert (X.dtype, X.ndim, X.size, X.nbytes) == (jnp.float32, 2, 6, 24)
    assert (ABSTRACT.dtype, ABSTRACT.ndim, ABSTRACT.size, ABSTRACT.nbytes) == (jnp.float32, 2, 6, 24)
    z = hax.named(jnp.array([1 + 2j, 3]), A)
    assert (z.real.tolist(), z.imag.tolist()) == ([1, 3], [2, 0])
    assert X.real.axes == X.imag.axes == X.conj().axes == X.copy().axes == (A, B)
    assert X.astype(jnp.int8).dtype == jnp.int8
    assert isinstance(hax.NamedArray, NamedArrayMeta)


# numbers, numpy, sequences


@pytest.mark.parametrize("convert", [bool, int, float, complex])
def test_numbers(convert):
    assert convert(SCALAR) == convert(2.5)
    assert type(convert(SCALAR)) is convert
    with pytest.raises((TypeError, ValueError), match=f"{convert.__name__}: the array has a=2, b=3; expected"):
        convert(X)


def test_index():
    assert range(10)[hax.named(jnp.array(3), ())] == 3
    with pytest.raises(TypeError, match="index: the array has a=2, b=3; expected no axes"):
        operator.index(X)
    with pytest.raises(TypeError, match="integer"):
        operator.index(SCALAR)


def test_one_element():
    one = hax.ones(hax.Axis("a", 1))
    assert bool(one) is True
    assert one.item() == 1
    with pytest.raises(ValueError) as e:
        X.item()
    assert str(e.value) == "item: the array has a=2, b=3; expected one element. Use tolist() for all of them."


def test_numpy():
    assert_same(np.asarray(X), np.arange(6, dtype=np.float32).reshape(2, 3))
    assert np.asarray(X, dtype=np.int8).dtype == np.int8
    copied = np.array(X, copy=True)
    copied[:] = 0
    assert X.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert X.tobytes() == np.asarray(X).tobytes()
    assert X.tobytes("F") == np.asarray(X).tobytes("F")
    with pytest.raises(TypeError, match="does not support ufuncs"):
        np.add(np.ones(3), X)


def test_no_sequence():
    with pytest.raises(TypeError) as e:
        len(X)
    assert str(e.value) == "len: the array has a, b; which one counts is not said. Use size, or axis_size(axis)."
    with pytest.raises(TypeError) as e:
        list(X)
    assert str(e.value) == (
        "iter: the array has a, b; along which one to go is not said. Use unbind(axis) for the arrays along one axis."
    )
    with pytest.raises(TypeError, match="unhashable"):
        hash(X)


def test_scalar():
    assert SCALAR.scalar() is SCALAR.array
    with pytest.raises(ValueError, match="scalar: the array has a=2, b=3; expected no axes"):
        X.scalar()


# pytrees and copies


def test_pytree():
    (leaf,), treedef = jax.tree.flatten(X)
    assert leaf is X.array
    assert jax.tree.unflatten(treedef, [leaf]).axes == (A, B)
    ((path, _),) = jax.tree_util.tree_leaves_with_path({"x": X})
    assert jax.tree_util.keystr(path) == "['x'].array"
    assert X.tree_flatten() == ((X.array,), ("a", "b"))
    assert hax.NamedArray.tree_unflatten(("a", "b"), [X.array]).axes == (A, B)
    assert treedef != jax.tree.structure(X.rename({"a": "c"}))


@pytest.mark.parametrize(
    "leaf", [None, object(), lambda: 0, "text", 0, jax.ShapeDtypeStruct((5,), jnp.float32), np.ones(7)]
)
def test_anything_may_take_the_place_of_the_array(leaf):
    treedef = jax.tree.structure(X)
    x = treedef.unflatten([leaf])
    assert x.array is leaf
    assert x.axis_names == ("a", "b")
    assert repr(x).startswith("NamedArray(")
    assert jax.tree.structure(x, is_leaf=lambda y: y is None or y is leaf) == treedef


def test_names_that_no_longer_fit():
    with pytest.raises(ValueError) as e:
        _ = jax.tree.map(lambda a: a[0], X).axes
    assert str(e.value) == (
        "NamedArray: an array with axes (a, b) holds an array of shape (3,); expected one dimension for each name. "
        "A transformation of pytrees (jax.vmap, jax.lax.scan) may have changed its rank; "
        "haliax.vmap and haliax.scan keep names and dimensions together."
    )
    with pytest.raises(ValueError, match=r"an array with axes \(a, b\) holds None"):
        _ = hax.NamedArray(None, ("a", "b")).shape


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies(copied):
    x = copied(X)
    assert type(x) is hax.NamedArray
    assert x.axes == (A, B)
    assert_same(x, X)


def test_weak_references():
    x = hax.ones(A)
    reference = weakref.ref(x)
    assert reference() is x
    del x
    assert reference() is None


def test_transformations():
    assert jax.jit(lambda x: x + 1)(X).axes == (A, B)
    assert jax.grad(lambda x: (x * x).sum().scalar())(X).axes == (A, B)
    assert jax.eval_shape(lambda x: x.sum("a"), ABSTRACT).axes == (B,)
    assert jax.lax.cond(True, lambda x: x, lambda x: -x, X).axes == (A, B)


def test_numpy_functions_see_the_array_without_names():
    x = hax.named(np.arange(6.0).reshape(2, 3), ("a", "b"))
    assert np.sum(x) == 15 and np.ndim(x) == 2 and np.shape(x) == (2, 3)
    np.testing.assert_array_equal(np.mean(x, axis=0), [1.5, 2.5, 3.5])
    assert np.concatenate([x, x], axis=1).shape == (2, 6)
    assert jax.jit(lambda x: np.sum(x))(x) == 15
