"""Set algebra on axes: tables of results, and the laws that hold for all of them."""

from types import MappingProxyType

import pytest
from hypothesis import given, strategies as st

from haliax.axis import (
    Axis,
    axis_name,
    axis_spec_to_shape_dict,
    axis_spec_to_tuple,
    concat_axes,
    concat_axis_specs,
    eliminate_axes,
    intersect_axes,
    is_axis_compatible,
    make_axes,
    replace_axis,
    resolve_axis,
    selects_axis,
    union_axes,
    unsize_axes,
    without_axes,
)

A, B, C = make_axes(a=2, b=3, c=4)
A9 = Axis("a", 9)

# --- Tables: what each function gives, and in which form ---

RESULTS = [
    (union_axes, A, A, (A,)),
    (union_axes, A, "a", (A,)),
    (union_axes, "a", A, ("a",)),
    (union_axes, (A, B), (C, B), (A, B, C)),
    (union_axes, [A], ["z"], (A, "z")),
    (union_axes, (), (A, "a"), (A,)),
    (union_axes, {"a": 2}, "z", {"a": 2, "z": None}),
    (union_axes, (A, "b"), {"b": 3}, {"a": 2, "b": None}),
    (union_axes, {}, (), {}),
    (union_axes, MappingProxyType({"a": 2}), B, {"a": 2, "b": 3}),
    (intersect_axes, (A, B), (B, A), (A, B)),
    (intersect_axes, (A, B), "b", ("b",)),
    (intersect_axes, "a", (B, A), (A,)),
    (intersect_axes, {"a": 2, "b": 3}, ("b", A), {"a": 2, "b": None}),
    (intersect_axes, (A, B), {"c": 4, "b": 3}, (B,)),
    (intersect_axes, A, (), ()),
    (intersect_axes, {"a": 2}, "z", {}),
    (concat_axes, A, B, (A, B)),
    (concat_axes, "a", [B, "c"], ("a", B, "c")),
    (concat_axes, (A,), {"c": 4, "b": None}, (A, C, "b")),
    (concat_axes, {"a": 2}, (C, "b"), {"a": 2, "c": 4, "b": None}),
    (concat_axes, (), (), ()),
    (without_axes, (A, B), "a", (B,)),
    (without_axes, (A, "b"), ("b", C), (A,)),
    (without_axes, [A, B], {}, (A, B)),
    (without_axes, A, (A, B), ()),
    (without_axes, {"a": 2, "b": 3}, (B,), {"a": 2}),
    (without_axes, "a", A9, ()),
    (eliminate_axes, (A, B), "a", (B,)),
    (eliminate_axes, [A, B], (B, "a"), ()),
    (eliminate_axes, A, A, ()),
    (eliminate_axes, {"a": 2, "b": None}, {"b": 7}, {"a": 2}),
    (eliminate_axes, (A, "a", B), "b", (A,)),
    (resolve_axis, (A, B), "b", B),
    (resolve_axis, (A, B), B, B),
    (resolve_axis, A, "a", A),
    (resolve_axis, (A, B), ["b", A], (B, A)),
    (resolve_axis, {"a": 2, "b": 3}, ("b",), (B,)),
    (resolve_axis, (A, B), {"b": None}, {"b": 3}),
    (resolve_axis, (A, B), ("a", "a"), (A,)),
    (resolve_axis, (A, "b"), "a", A),
    (resolve_axis, (A, B), (), ()),
    (resolve_axis, (A, B), {}, {}),
]


@pytest.mark.parametrize(("fn", "first", "second", "expected"), RESULTS, ids=lambda x: getattr(x, "__name__", None))
def test_results(fn, first, second, expected):
    result = fn(first, second)
    assert result == expected
    assert type(result) is type(expected)
    assert axis_name(result) == axis_name(expected)  # dicts are compared without regard to order


def test_concat_axis_specs_is_concat_axes():
    assert concat_axis_specs.__code__ is concat_axes.__code__
    assert concat_axis_specs.__name__ == "concat_axis_specs"


@pytest.mark.parametrize("axes", [A, (A, B), {"a": 2}])
def test_without_axes_may_disregard_sizes(axes):
    assert without_axes(axes, A9, allow_mismatched_sizes=True) == without_axes(axes, "a")


@pytest.mark.parametrize(
    ("axes", "old", "new", "expected"),
    [
        (A, "a", "z", ("z",)),
        ((A, B), "a", "z", ("z", B)),
        ((A, B), A, A9, (A9, B)),
        ([A, B], "b", (C, "d"), (A, C, "d")),
        ((A, B), "a", (), (B,)),
        ((A, B), "a", (C, A), (C, A, B)),
        ((A, B), "a", ("z", "z"), ("z", B)),
        (("a", B), A9, C, (C, B)),
        ({"a": 2, "b": 3}, "a", {"z": 1, "y": None}, {"z": 1, "y": None, "b": 3}),
        ({"a": 2, "b": 3}, "b", "z", {"a": 2, "z": None}),
        ({"a": 2}, "a", (), {}),
    ],
    ids=str,
)
def test_replace_axis(axes, old, new, expected):
    result = replace_axis(axes, old, new)
    assert result == expected
    assert axis_name(result) == axis_name(expected)


@pytest.mark.parametrize(
    ("selector", "selected", "expected"),
    [
        (A, A, True),
        (A, "a", True),
        ("a", A9, True),
        (A, A9, False),
        (A, (), True),
        ((), "a", False),
        ((), {}, True),
        ((A, B), (B, "a"), True),
        ((A, B), {"b": 4}, False),
        ((A, B), ("a", "missing"), False),
        ({"a": None}, A9, True),
    ],
    ids=str,
)
def test_selects_axis(selector, selected, expected):
    assert selects_axis(selector, selected) is expected


@pytest.mark.parametrize(
    ("ax1", "ax2", "expected"),
    [(A, A, True), (A, "a", True), ("a", "a", True), (A, A9, False), (A, B, False), ("a", B, False), ("a", "b", False)],
    ids=str,
)
def test_is_axis_compatible(ax1, ax2, expected):
    assert is_axis_compatible(ax1, ax2) is is_axis_compatible(ax2, ax1) is expected


# --- Laws ---

SIZES = {name: i for i, name in enumerate("abcdef", start=2)}
"""One size for each name, so that any two sets of axes agree."""

names = st.lists(st.sampled_from(sorted(SIZES)), unique=True)


@st.composite
def axes_in_any_form(draw):
    """Axes without repetitions, with or without sizes, in any form."""
    entries = [Axis(n, SIZES[n]) if draw(st.booleans()) else n for n in draw(names)]
    forms = [tuple, list, axis_spec_to_shape_dict, lambda e: MappingProxyType(axis_spec_to_shape_dict(e))]
    if len(entries) == 1:
        forms.append(lambda e: e[0])
    return draw(st.sampled_from(forms))(entries)


axes = axes_in_any_form()


def shape(axes):
    """Items and their order: what must be equal for two results to be the same axes."""
    return list(axis_spec_to_shape_dict(axes).items())


def names_of(axes):
    return list(axis_spec_to_shape_dict(axes))


@given(axes, axes)
def test_names_follow_the_algebra_of_ordered_sets(x, y):
    nx, ny = names_of(x), names_of(y)
    assert names_of(union_axes(x, y)) == nx + [n for n in ny if n not in nx]
    assert names_of(intersect_axes(x, y)) == [n for n in nx if n in ny]
    assert names_of(without_axes(x, y)) == [n for n in nx if n not in ny]
    assert selects_axis(x, y) == (set(ny) <= set(nx))


@given(axes, axes)
def test_sizes_come_from_the_documented_argument(x, y):
    sx, sy = axis_spec_to_shape_dict(x), axis_spec_to_shape_dict(y)
    assert all(size == (sx if name in sx else sy)[name] for name, size in shape(union_axes(x, y)))
    assert all(size == sy[name] for name, size in shape(intersect_axes(x, y)))
    assert all(size == sx[name] for name, size in shape(without_axes(x, y)))


@given(axes, axes, axes)
def test_union_and_intersection_are_associative(x, y, z):
    assert shape(union_axes(union_axes(x, y), z)) == shape(union_axes(x, union_axes(y, z)))
    assert shape(intersect_axes(intersect_axes(x, y), z)) == shape(intersect_axes(x, intersect_axes(y, z)))


@given(axes)
def test_idempotence_and_units(x):
    for result in (union_axes(x, x), union_axes(x, ()), union_axes((), x), intersect_axes(x, x), without_axes(x, ())):
        assert shape(result) == shape(x)
    for result in (intersect_axes(x, ()), intersect_axes((), x), without_axes(x, x), eliminate_axes(x, x)):
        assert shape(result) == []


@given(axes, axes, axes)
def test_laws_that_join_the_operations(x, y, z):
    # De Morgan: without both is without one, then the other.
    assert shape(without_axes(x, union_axes(y, z))) == shape(without_axes(without_axes(x, y), z))
    # Absorption and distribution, on names.
    assert names_of(intersect_axes(x, union_axes(x, y))) == names_of(x)
    assert names_of(union_axes(x, intersect_axes(x, y))) == names_of(x)
    distributed = union_axes(intersect_axes(x, y), intersect_axes(x, z))
    assert set(names_of(intersect_axes(x, union_axes(y, z)))) == set(names_of(distributed))
    # A set splits into what it shares with another and the rest.
    split = names_of(intersect_axes(x, y)) + names_of(without_axes(x, y))
    assert sorted(split) == sorted(names_of(x))


@given(axes, axes)
def test_concatenation_undoes_elimination(x, y):
    rest = without_axes(y, x)
    both = concat_axes(x, rest)
    assert shape(both) == shape(x) + shape(rest)
    assert shape(both) == shape(union_axes(x, y))
    assert shape(eliminate_axes(both, x)) == shape(rest)
    assert shape(eliminate_axes(both, rest)) == shape(x)


@given(axes, axes)
def test_eliminate_axes_is_without_axes_where_all_are_there(x, y):
    if selects_axis(x, y):
        assert eliminate_axes(x, y) == without_axes(x, y)
    else:
        with pytest.raises(ValueError, match="no axis"):
            eliminate_axes(x, y)


@given(axes, axes)
def test_results_have_the_form_of_the_first_argument(x, y):
    form = dict if isinstance(x, dict | MappingProxyType) else tuple
    for fn in (intersect_axes, without_axes):
        assert type(fn(x, y)) is form
    assert type(concat_axes(x, without_axes(y, x))) is form
    assert type(union_axes(x, y)) is (dict if isinstance(y, dict | MappingProxyType) else form)


@given(names, st.data())
def test_resolve_axis_inverts_unsize_axes(chosen, data):
    spec = tuple(Axis(n, SIZES[n]) for n in chosen)
    assert resolve_axis(spec, unsize_axes(spec)) == spec
    some = data.draw(st.permutations(chosen))
    assert resolve_axis(spec, some) == tuple(Axis(n, SIZES[n]) for n in some)


@given(names.filter(bool), st.data())
def test_replace_axis_puts_new_axes_where_the_old_was(chosen, data):
    old = data.draw(st.sampled_from(chosen))
    new = data.draw(st.lists(st.sampled_from("xyz"), unique=True))
    i = chosen.index(old)
    assert replace_axis(chosen, old, new) == (*chosen[:i], *new, *chosen[i + 1 :])
    assert replace_axis(chosen, old, old) == axis_spec_to_tuple(chosen)
