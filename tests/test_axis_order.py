"""Partial orders: the rule against a brute-force definition, and the table of errors."""

import itertools

import pytest
from hypothesis import given, strategies as st

from haliax.axis import Axis, make_axes, rearrange_for_partial_order, replace_missing_with_ellipsis

A, B, C, D = AXES = make_axes(a=2, b=3, c=4, d=5)


def order(text):
    """The partial order in a string, where "." is an ellipsis: "a.c" for ("a", ..., "c")."""
    return tuple(... if char == "." else char for char in text)


@pytest.mark.parametrize(
    ("partial", "expected"),
    [
        (".", "abcd"),
        ("..", "abcd"),
        ("abcd", "abcd"),
        ("dbca", "dbca"),
        ("dbca.", "dbca"),
        ("a.", "abcd"),
        (".a", "bcda"),
        ("b.", "bacd"),
        (".bc", "adbc"),
        ("c.a", "cbda"),
        ("a.c", "abdc"),
        (".c.", "abcd"),
        ("b.c.", "bacd"),
        (".b.a.", "bacd"),
        (".d.a.", "dabc"),
        (".d.b", "acdb"),
        ("c.b.", "cabd"),
        ("a.b.c", "abdc"),
        (".a.b.c.d.", "abcd"),
        (".d.c.b.a.", "dcba"),
        ("b.d.", "badc"),
        ("c.d.b", "cadb"),
        ("ab.c.d", "abcd"),
    ],
)
def test_table(partial, expected):
    assert "".join(rearrange_for_partial_order(order(partial), tuple("abcd"))) == expected
    by_name = {axis.name: axis for axis in AXES}
    assert rearrange_for_partial_order(list(order(partial)), AXES) == tuple(by_name[name] for name in expected)


def test_no_axes():
    assert rearrange_for_partial_order((), ()) == rearrange_for_partial_order((...,), ()) == ()


def test_entries_may_be_axes_and_the_result_has_the_axes_given():
    assert rearrange_for_partial_order((C, ..., A), ("a", B, "c")) == ("c", B, "a")
    assert rearrange_for_partial_order((..., "a"), [A, "b"]) == ("b", A)
    assert rearrange_for_partial_order((..., "a"), {"a": 2, "b": 3}) == (B, A)


# --- Against a brute-force definition ---


def every_partial_order(names):
    """Each choice of named axes in each order, with and without an ellipsis at each place."""
    for k in range(len(names) + 1):
        for named in itertools.permutations(names, k):
            for places in itertools.product((False, True), repeat=k + 1):
                if any(places):
                    entries = [[..., name] if here else [name] for here, name in zip(places, named, strict=False)]
                    yield (*itertools.chain(*entries), *([...] if places[-1] else []))


def admissible(partial, result):
    """Whether `result` is `partial` with any axes in the place of each ellipsis."""
    if not partial:
        return not result
    if partial[0] is ...:
        return any(admissible(partial[1:], result[i:]) for i in range(len(result) + 1))
    return bool(result) and partial[0] == result[0] and admissible(partial[1:], result[1:])


def in_original_order(axes, result):
    return all(axes.index(x) < axes.index(y) for x, y in itertools.combinations(result, 2))


def by_definition(partial, axes):
    """The module's rule, word for word, on the entries of `partial`."""
    ellipses = [i for i, entry in enumerate(partial) if entry is ...]

    def group_before(i):
        return partial[max((e + 1 for e in ellipses if e < i), default=0) : i]

    def place(name):
        before = axes[: axes.index(name)]
        least = max((i for i in ellipses if set(group_before(i)) & set(before)), default=ellipses[0])
        others = [n for n in before if n not in partial]
        if not others:
            return least
        last = place(others[-1])
        between = before[before.index(others[-1]) + 1 :]
        later = [i for i in ellipses if i > last] if set(between) & set(partial[:last]) else []
        return max(least, *later[:1], last)

    def entries(i):
        return [partial[i]] if partial[i] is not ... else [n for n in axes if n not in partial and place(n) == i]

    return tuple(name for i in range(len(partial)) for name in entries(i))


@pytest.mark.parametrize("axes", ["", "a", "ab", "abc", "abcd"])
def test_every_partial_order(axes):
    axes = tuple(axes)
    for partial in every_partial_order(axes):
        result = rearrange_for_partial_order(partial, axes)
        assert result == by_definition(partial, axes)
        assert sorted(result) == sorted(axes)
        assert admissible(partial, result)
        # If the original order agrees with the partial order, nothing moves.
        if admissible(partial, axes):
            assert result == axes
        # Neighbours without a name in the partial order keep their order.
        for is_named, run in itertools.groupby(result, key=partial.__contains__):
            assert is_named or in_original_order(axes, list(run))


@given(st.permutations("abcdef"), st.integers(0, 6), st.sets(st.integers(0, 6), min_size=1))
def test_the_result_is_a_fixed_point(permutation, count, places):
    named = permutation[:count]
    partial = []
    for i, name in enumerate(named):
        partial += [..., name] if i in places else [name]
    partial = (*partial, ...)
    result = rearrange_for_partial_order(partial, tuple("abcdef"))
    assert rearrange_for_partial_order(partial, result) == result


# --- replace_missing_with_ellipsis ---


@pytest.mark.parametrize(
    ("ax1", "ax2", "expected"),
    [
        (A, A, (A,)),
        (A, "a", ("a",)),
        ("a", A, (A,)),
        (A, (), (...,)),
        ((), (A,), ()),
        ((A, B, C), "b", (..., "b", ...)),
        ((A, "b"), {"c": 4, "b": 3}, (..., B)),
        ({"a": 2, "b": None}, (B, "a"), ("a", B)),
    ],
    ids=str,
)
def test_replace_missing_with_ellipsis(ax1, ax2, expected):
    assert replace_missing_with_ellipsis(ax1, ax2) == expected


@given(st.lists(st.sampled_from("abcd"), unique=True), st.permutations("abcd"))
def test_what_is_missing_is_filled_in_again(kept, axes):
    partial = replace_missing_with_ellipsis(axes, kept)
    assert rearrange_for_partial_order(partial, tuple(axes)) == tuple(axes)


# --- Errors ---

NOT_AN_ORDER = "expected a sequence of axes, names and `...`."
NAME_ALL = "expected all axes to be named. Name them, or put `...` where they go."

ERRORS = [
    (ValueError, (), "the order () has no place for a=2, b=3, c=4, d=5; " + NAME_ALL),
    (ValueError, ("b", "a"), "the order (b, a) has no place for c=4, d=5; " + NAME_ALL),
    (ValueError, ("z", ...), "no axis 'z'; the axes are a=2, b=3, c=4, d=5."),
    (ValueError, ("a", "a", ...), "axis 'a' occurs more than once in (a, a)."),
    (ValueError, ("a", ..., "b", A), "axis 'a' occurs more than once in (a, b, a)."),
    (ValueError, (..., Axis("a", 9)), "axis 'a' has size 9; expected 2."),
    (TypeError, "abcd", "the order is a string; " + NOT_AN_ORDER),
    (TypeError, ..., "the order is `...`; " + NOT_AN_ORDER),
    (TypeError, A, "the order is an Axis; " + NOT_AN_ORDER),
    (TypeError, {"a": 2}, "the order is a dict; " + NOT_AN_ORDER),
    (TypeError, (..., 5), "entry 1 of the order is an int; expected an Axis, a name or `...`."),
    (TypeError, (None, ...), "entry 0 of the order is None; expected an Axis, a name or `...`."),
]


@pytest.mark.parametrize(("kind", "partial", "message"), ERRORS, ids=lambda x: str(x)[:20])
def test_errors(kind, partial, message):
    with pytest.raises(kind) as error:
        rearrange_for_partial_order(partial, AXES)
    assert str(error.value) == f"rearrange_for_partial_order: {message}"


@pytest.mark.parametrize(
    ("kind", "axes", "message"),
    [
        (ValueError, (A, A), "axis 'a' occurs more than once in (a, a)."),
        (ValueError, (A, Axis("a", 9)), "axis 'a' has size 9; expected 2."),
        (ValueError, (B, C), "no axis 'a'; the axes are b=3, c=4."),
        (TypeError, (A, 5), "entry 1 of the axes is an int; expected an Axis or a name."),
    ],
    ids=str,
)
def test_errors_in_the_axes(kind, axes, message):
    with pytest.raises(kind) as error:
        rearrange_for_partial_order(("a", ...), axes)
    assert str(error.value) == f"rearrange_for_partial_order: {message}"
