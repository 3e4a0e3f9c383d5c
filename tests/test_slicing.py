"""Consecutive elements: `slice` and `updated_slice` against `jax.lax`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax.axis import Axis, make_axes
from programs import operations

H, W, D = make_axes(H=2, W=3, D=4)
X = hax.arange((H, W, D))
Q = Axis("Q", 2)


def same(array, names, expected):
    assert array.axis_names == tuple(names.split())
    np.testing.assert_array_equal(array.array, expected)


FORMS = [
    (lambda x, s: x.slice("D", start=s, length=2), "H W D"),
    (lambda x, s: x.slice(D, start=s, length=2), "H W D"),
    (lambda x, s: x.slice("D", Q, s), "H W Q"),
    (lambda x, s: x.slice("D", Q, start=s), "H W Q"),
    (lambda x, s: x.slice("D", new_axis=Q, start=s), "H W Q"),
    (lambda x, s: x.slice("D", "Q", s, 2), "H W Q"),
    (lambda x, s: x.slice("D", "Q", start=s, length=2), "H W Q"),
    (lambda x, s: x.slice({"D": s}, {"D": 2}), "H W D"),
    (lambda x, s: x.slice({D: s}, length={"D": 2}), "H W D"),
    (lambda x, s: x.slice(start={"D": s}, length={"D": Q}), "H W Q"),
    (lambda x, s: hax.slice(x, "D", start=hax.named(s, ()), length=2), "H W D"),
]


@pytest.mark.parametrize(("call", "names"), FORMS)
@pytest.mark.parametrize("start", [-4, -1, 0, 2, 3, 9])
def test_slice(call, names, start):
    expected = jax.lax.dynamic_slice_in_dim(X.array, start, 2, axis=2)
    same(call(X, start), names, expected)
    same(jax.jit(call)(X, start), names, expected)


def test_slice_of_several_axes():
    same(X.slice({"W": 1, "D": 0}, {"W": 2, "D": Q}), "H W Q", X.array[:, 1:3, 0:2])
    same(X.slice({"W": jnp.array(1), "D": 0}, {"D": 2, "W": 1}), "H W D", X.array[:, 1:2, 0:2])
    same(X.slice({}, {}), "H W D", X.array)
    same(hax.slice(X, "D", Q), "H W Q", X.array[..., :2])


U = -hax.arange((Axis("D", 2), H, W)) - 1
RAW_U = U.array.transpose(1, 2, 0)


@pytest.mark.parametrize("start", [0, 1, 2, -2, np.int32(1), jnp.array(5), hax.named(1, ())], ids=repr)
def test_updated_slice(start):
    raw = start.array if isinstance(start, hax.NamedArray) else start
    expected = jax.lax.dynamic_update_slice_in_dim(X.array, RAW_U, raw, axis=2)
    same(X.updated_slice({"D": start}, U), "H W D", expected)
    same(jax.jit(lambda x, s: hax.updated_slice(x, {D: s}, U))(X, start), "H W D", expected)


def test_an_update_is_complete_along_axes_that_it_lacks():
    update = hax.named([7, 8], "D")
    same(X.updated_slice({"D": 1}, update), "H W D", X.array.at[..., 1:3].set(update.array))
    same(X.updated_slice({}, hax.arange(W)), "H W D", jnp.broadcast_to(jnp.arange(3)[:, None], (2, 3, 4)))


def test_a_start_for_each_index_of_other_axes():
    starts = hax.named([[0, 1, 2], [2, 1, 0]], ("H", "W"))
    expected = np.array(X.array)
    for h, w in np.ndindex(2, 3):
        first = starts.array[h, w]
        expected[h, w, first : first + 2] = RAW_U[h, w]
    same(X.updated_slice({"D": starts}, U), "H W D", expected)
    same(X.updated_slice({"D": starts.rearrange(("W", "H"))}, U), "H W D", expected)
    two = X.updated_slice({"D": hax.named([0, 2], "H"), "W": hax.named([1, 2], "H")}, U["W", 0:1])
    expected = np.array(X.array)
    expected[0, 1:2, 0:2], expected[1, 2:3, 2:4] = RAW_U[0, :1], RAW_U[1, :1]
    same(two, "H W D", expected)


def test_the_dtype_is_that_of_the_array():
    x = X.astype(jnp.float32)
    assert x.updated_slice({"D": 0}, U.astype(jnp.bfloat16)).dtype == jnp.float32
    with pytest.raises(TypeError) as error:
        X.updated_slice({"D": 0}, U.astype(jnp.float32))
    message = "updated_slice: the update has dtype float32; expected what int32 can hold. Use update.astype(...)."
    assert str(error.value) == message


ERRORS = [
    (lambda: X.slice("D", start=1), "slice: no length was given; expected length, or an Axis as new_axis."),
    (
        lambda: X.slice("D", Q, length=3),
        "slice: axis 'Q' has size 2; expected 3. It must have the length of the slice.",
    ),
    (lambda: X.slice("D", length=5), "slice: length 5; expected 0 to the size of the axis, D=4."),
    (lambda: X.slice("D", "H", length=2), "slice: axis 'H' occurs more than once in (H, W, H)."),
    (lambda: X.slice("d", length=2), "slice: no axis 'd'; the array has H=2, W=3, D=4."),
    (
        lambda: X.slice({"D": 0}, {"W": 2}),
        "slice: axis 'D' has a start and no length; expected a length for each start.",
    ),
    (
        lambda: X.slice({"D": 0}, {"W": 2, "D": 2}),
        "slice: axis 'W' has a length and no start; expected a start for each length.",
    ),
    (
        lambda: X.slice("D", start=hax.arange(H), length=2),
        "slice: axis 'D' has several starts; expected one."
        " For a start at each index of another axis use array[axis, haliax.ds(start, size)].",
    ),
    (lambda: X.updated_slice({"d": 0}, U), "updated_slice: no axis 'd'; the array has H=2, W=3, D=4."),
    (
        lambda: X.updated_slice({"D": 3}, U),
        "updated_slice: an update of D=2 starts at 3; expected it to end within D=4.",
    ),
    (
        lambda: X.updated_slice({"D": 0}, hax.arange(Axis("D", 5))),
        "updated_slice: axis 'D' has size 5; expected 4. An update can not be longer than the array.",
    ),
    (lambda: X.updated_slice({"D": 0}, hax.arange(Q)), "updated_slice: no axis 'Q'; the array has H=2, W=3, D=4."),
    (
        lambda: X.updated_slice({"D": hax.arange(D)}, U),
        "updated_slice: axis 'D' occurs more than once in (D, D). A start can not have the axis that it is for.",
    ),
    (
        lambda: X.updated_slice({"D": hax.arange(Axis("H", 3))}, U),
        "updated_slice: axis 'H' has size 3; expected 2. A start must have the sizes of the array.",
    ),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message.split(";")[0] for _, message in ERRORS])
def test_errors(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message


def test_a_mapping_of_starts_needs_one_of_lengths():
    with pytest.raises(TypeError) as error:
        X.slice({"D": 0}, 2)
    assert str(error.value) == "slice: the length is an int; expected a mapping, as the start is one."


def test_a_static_slice_is_a_slice():
    assert operations(lambda x: x.slice("D", start=1, length=2), X) == ["slice"]
    assert operations(lambda x: x.slice({"W": -1, "D": 0}, {"W": 1, "D": 2}), X) == ["slice"]
    assert "dynamic_slice" in operations(lambda x, s: x.slice("D", start=s, length=2), X, 1)
