"""`haliax.util` and `haliax.wrap`: helpers, and functions of raw arrays made functions of named ones."""

import functools
import inspect
import pickle

import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax._src.util import IdentityMap, StringHolderEnum, Unspecified, index_where, renamed, safe_update_wrapper
from haliax.util import UNSPECIFIED, ensure_tuple, maybe_untuple, safe_wraps
from haliax.wrap import (
    unwrap_namedarrays,
    wrap_axiswise_call,
    wrap_elemwise_binary,
    wrap_elemwise_unary,
    wrap_reduction_call,
)

A, B = hax.make_axes(a=2, b=3)
X = hax.arange((A, B), dtype=float)


@pytest.mark.parametrize(("x", "expected"), [((1, 2), (1, 2)), ([1], (1,)), (1, (1,)), ("ab", ("ab",)), ((), ())])
def test_ensure_tuple(x, expected):
    assert ensure_tuple(x) == expected


@pytest.mark.parametrize(("x", "expected"), [((1,), 1), ((1, 2), (1, 2)), ((), ()), ([1], [1]), (1, 1)])
def test_maybe_untuple(x, expected):
    assert maybe_untuple(x) == expected


def test_index_where():
    assert index_where(lambda x: x > 1, [0, 2, 3]) == 1
    assert index_where(lambda x: x > 1, [0, 2, 3], start=2) == 2
    with pytest.raises(ValueError) as error:
        index_where(lambda x: x > 3, [0, 2, 3], start=1)
    assert str(error.value) == "index_where: no element from index 1 on fulfils the condition."


def test_identity_map():
    x, y = [1], [1]
    found = IdentityMap([(x, "x")])
    found[y] = "y"
    assert found[x], found[y] == ("x", "y")
    assert (len(found), x in found, [1] in found) == (2, True, False)
    assert next(iter(found)) is x
    del found[x]
    assert x not in found
    assert repr(found) == "IdentityMap([([1], 'y')])"
    with pytest.raises(KeyError):
        found[x]


def test_string_holder_enum():
    class Colour(metaclass=StringHolderEnum):
        RED = "red"
        number = 3

    assert Colour.RED == "red"
    assert Colour.__members__ == {"RED": "red"}


def test_unspecified():
    assert isinstance(UNSPECIFIED, Unspecified)
    assert repr(UNSPECIFIED) == "UNSPECIFIED"


def scaled(x: float, by: float = 2.0) -> float:
    """A product."""
    return x * by


def test_a_wrapper_has_name_docstring_and_signature():
    @safe_wraps(scaled)
    def wrapper(*args, **kwargs):
        return scaled(*args, **kwargs)

    assert (wrapper.__name__, wrapper.__doc__) == ("scaled", "A product.")
    assert inspect.signature(wrapper) == inspect.signature(scaled)
    of_partial = safe_update_wrapper(lambda x: x, functools.partial(scaled, by=3))
    assert inspect.signature(of_partial) == inspect.signature(functools.partial(scaled, by=3))


scaled_too = renamed(scaled, "scaled_too")


def test_a_second_name():
    assert (scaled_too(3), scaled_too(3, by=1), scaled_too.__name__) == (6, 3, "scaled_too")
    assert inspect.signature(scaled_too) == inspect.signature(scaled)
    assert pickle.loads(pickle.dumps(hax.amax)) is hax.amax
    assert scaled.__name__ == "scaled"


# haliax.wrap ----------------------------------------------------------------------------------------------------------


def test_wrapped_elementwise_functions():
    assert np.array_equal(wrap_elemwise_unary(jnp.square, X).array, X.array**2)
    assert wrap_elemwise_unary(jnp.square, 3.0) == 9
    add = wrap_elemwise_binary(jnp.add)
    assert np.array_equal(add(X, hax.arange(B)).array, np.asarray(X.array) + np.arange(3))
    assert add(X, hax.arange(B)).axes == (A, B)


def test_wrapped_functions_along_axes():
    total = wrap_axiswise_call(jnp.cumsum, X, "b", single_axis_only=True)
    assert np.array_equal(total.array, np.cumsum(X.array, 1))
    assert total.axes == (A, B)


def test_wrapped_reductions():
    mask = hax.arange(B) > 0
    result = wrap_reduction_call(jnp.sum, X, "b", where=mask, single_axis_only=False, supports_where=True)
    assert np.array_equal(result.array, X.array[:, 1:].sum(1))
    result = wrap_reduction_call(jnp.argmax, X, "a", single_axis_only=True, supports_where=False)
    assert (result.axes, result.array.tolist()) == ((B,), [1, 1, 1])


def test_unwrapped_arrays():
    assert unwrap_namedarrays(X, 2, "c") == (X.array, 2, "c")
