"""Dynamic slices: what they hold, that their size is static, and what they refuse."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from haliax.axis import Axis, dblock, ds, dslice
from helpers import count_traces

LENGTHS = [3, Axis("a", 3), np.int64(3), np.array(3), jnp.int32(3)]


@pytest.mark.parametrize("length", LENGTHS, ids=lambda x: type(x).__name__)
def test_length(length):
    for made in (dslice(4, length), ds(start=4, length=length)):
        assert (made.start, made.size) == (4, 3)
        assert type(made.size) is int
    assert dblock(2, length) == dslice.block(idx=2, size=length) == dslice(6, 3)


@pytest.mark.parametrize("start", [4, -1, np.int8(4), np.arange(3), jnp.int32(4), jnp.arange(2)], ids=str)
def test_start(start):
    assert dslice(start, 3).start is start
    np.testing.assert_array_equal(dslice(start, 3).to_slice().start, start)
    np.testing.assert_array_equal(dslice(start, 3).to_slice().stop, start + 3)
    np.testing.assert_array_equal(dblock(start, 3).start, start * 3)


def test_names_are_of_one_class():
    assert ds is dslice
    assert repr(ds(1, 2)) == "dslice(start=1, size=2)"
    assert ds(1, 2) == ds(1, 2) != ds(1, 3)
    assert hash(ds(1, 2)) == hash(ds(1, 2))
    assert pickle.loads(pickle.dumps(ds(1, 2))) == ds(1, 2)


def test_a_slice_can_not_be_changed():
    with pytest.raises(AttributeError):
        ds(1, 2).size = 3


def test_only_the_start_is_a_leaf():
    leaves, treedef = jax.tree.flatten(ds(7, 2))
    assert leaves == [7]
    assert jax.tree.unflatten(treedef, ["anything"]).start == "anything"
    assert jax.tree.structure(ds(7, 2)) == jax.tree.structure(ds(8, 2)) != jax.tree.structure(ds(7, 3))
    [(path, leaf)] = jax.tree_util.tree_leaves_with_path(ds(7, 2))
    assert (jax.tree_util.keystr(path), leaf) == (".start", 7)


def test_jit_traces_once_for_all_starts_and_sees_the_size():
    x = jnp.arange(10)

    @count_traces
    def take(s):
        return jax.lax.dynamic_slice(x, (s.start,), (s.size,)), dblock(s.start, s.size)

    jitted = jax.jit(take)
    for start in (0, 3, 7):
        taken, block = jitted(ds(start, 3))
        np.testing.assert_array_equal(taken, np.arange(10)[start : start + 3])
        assert (int(block.start), block.size) == (start * 3, 3)
    assert take.traces == 1


def test_vmap_over_starts():
    starts = jnp.array([0, 4])
    taken = jax.vmap(lambda s: jax.lax.dynamic_slice(jnp.arange(10), (s.start,), (s.size,)))(ds(starts, 3))
    np.testing.assert_array_equal(taken, [[0, 1, 2], [4, 5, 6]])


class NamedLike:
    """What a NamedArray shows of itself here."""

    dtype = jnp.dtype("int32")

    def __add__(self, other):
        return ("sum", other)

    def __mul__(self, other):
        return self


def test_a_start_with_named_axes():
    start = NamedLike()
    assert ds(start, 3).start is start
    assert ds(start, 3).to_slice() == slice(start, ("sum", 3))
    assert dblock(start, 3).start is start


STATIC = "expected an int or an Axis. The size of a slice is a part of the shape: it can not be traced."
INTEGERS = "expected an integer or an array of integers."

ERRORS = [
    (TypeError, lambda: ds("a", 2), "dslice: start is a string; " + INTEGERS),
    (TypeError, lambda: ds(None, 2), "dslice: start is None; " + INTEGERS),
    (TypeError, lambda: ds(1.5, 2), "dslice: start is a float; " + INTEGERS),
    (TypeError, lambda: ds(Axis("a", 2), 2), "dslice: start is an Axis; " + INTEGERS),
    (TypeError, lambda: ds(jnp.ones(()), 2), "dslice: start has dtype float32; expected integers."),
    (TypeError, lambda: ds(np.array([True]), 2), "dslice: start has dtype bool; expected integers."),
    (TypeError, lambda: dblock(1.5, 2), "dslice: idx is a float; " + INTEGERS),
    (TypeError, lambda: dblock(jnp.ones(3), 2), "dslice: idx has dtype float32; expected integers."),
    (TypeError, lambda: ds(1, "a"), "dslice: length is a string; " + STATIC),
    (TypeError, lambda: ds(1, None), "dslice: length is None; " + STATIC),
    (TypeError, lambda: ds(1, 2.5), "dslice: length is a float; " + STATIC),
    (TypeError, lambda: dblock(1, 2.5), "dslice: size is a float; " + STATIC),
    (ValueError, lambda: ds(1, -2), "dslice: length is -2; expected at least 0."),
    (ValueError, lambda: dblock(1, -2), "dslice: size is -2; expected at least 0."),
]


@pytest.mark.parametrize(("kind", "make", "message"), ERRORS, ids=[message for _, _, message in ERRORS])
def test_errors(kind, make, message):
    with pytest.raises(kind) as error:
        make()
    assert str(error.value) == message


def test_a_traced_length_is_refused():
    with pytest.raises(TypeError) as error:
        jax.jit(lambda n: jnp.zeros(ds(0, n).size))(3)
    assert str(error.value).startswith("dslice: length is a ")
    assert str(error.value).endswith(STATIC)
