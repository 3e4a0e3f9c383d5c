"""Patterns of `rearrange` and `einsum`: what they are read as, what names stand for, and every message about them."""

import pytest
from hypothesis import given, strategies as st

import haliax as hax
from haliax import Axis
from haliax._src.parsing import AliasTable, Capture, Expression, parse_einsum, parse_rearrangement, raise_parse_error


def name(text: str, begin: int) -> Capture:
    return Capture(text, (text,), (begin, begin + len(text)))


def test_rearrangement():
    assert parse_rearrangement("a ... (b: c  d)->{d ...}") == (
        Expression((name("a", 0), ..., Capture("b", ("c", "d"), (6, 15))), True),
        Expression((name("d", 18), ...), False),
    )
    left, right = parse_rearrangement("{(a: b) c} -> (x: 'b c' c)")
    assert left == Expression((Capture("a", ("b",), (1, 7)), name("c", 8)), False)
    assert right == Expression((Capture("x", ("b c", "c"), (14, 26)),), True)
    assert parse_rearrangement("(a b) (c) -> ")[0].captures == (
        Capture(None, ("a", "b"), (0, 5)),
        Capture("c", ("c",), (6, 9)),
    )
    assert parse_rearrangement("->") == (Expression((), True), Expression((), True))


def test_einsum():
    assert parse_einsum("a b, ... -> b") == (
        [Expression((name("a", 0), name("b", 2)), True), Expression((...,), True)],
        Expression((name("b", 12),), True),
    )
    assert parse_einsum("{a ...} -> ") == ([Expression((name("a", 1), ...), False)], Expression((), True))
    assert parse_einsum("-> a") == ([Expression((), True)], Expression((name("a", 3),), True))


WORDS = st.sampled_from(["a", "b", "...", "(", ")", "{", "}", ":", ",", "->", " ", "'q'", "!", "1"])


@given(st.lists(WORDS, max_size=12).map("".join))
def test_any_text_is_a_pattern_or_a_message(text):
    for parse, op in ((parse_rearrangement, "rearrange"), (parse_einsum, "einsum")):
        try:
            parse(text)
        except ValueError as error:
            message, pattern, carets = str(error).split("\n")
            assert message.startswith(f"{op}: ")
            assert message.endswith(".")
            assert pattern == f"    {text}"
            assert set(carets) <= {" ", "^"}
            assert len(carets) <= len(pattern) + 1


@pytest.mark.parametrize(
    ("pos", "carets"), [(2, "\n      ^"), ((2, 4), "\n      ^^"), ((2, 2), "\n      ^"), (None, "")]
)
def test_raise_parse_error(pos, carets):
    with pytest.raises(ValueError) as error:
        raise_parse_error("op: wrong.", "a\tbc", pos)
    assert str(error.value) == f"op: wrong.\n    a bc{carets}"


def test_alias_table():
    table = AliasTable({"a": "x", "b": Axis("y", 2), "c": 3})
    assert [table.dealias_binding(alias) for alias in "abcd"] == ["x", Axis("y", 2), None, None]
    assert [table.name_of(alias) for alias in "abcd"] == ["x", "y", "c", "d"]
    assert [table.size_of(alias) for alias in "abcd"] == [None, 2, 3, None]
    assert table.size_of("a", {"x": 7}) == 7
    table.bind_alias("c", Axis("z", 3), "a b c", (4, 5))
    table.bind_alias("d", Axis("w", 1), "d", 0)
    assert [table.dealias_binding(alias) for alias in "cd"] == [Axis("z", 3), Axis("w", 1)]


@pytest.mark.parametrize(
    ("alias", "axis", "message"),
    [
        ("a", Axis("y", 2), "'a' is axis y=2 here; it stands for 'x'."),
        ("b", Axis("x", 2), "'b' is axis x=2 here; it stands for y=2."),
        ("b", Axis("y", 3), "'b' has size 3 here; expected 2."),
        ("c", Axis("y", 2), "'c' has size 2 here; expected 3."),
    ],
)
def test_alias_table_conflicts(alias, axis, message):
    with pytest.raises(ValueError) as error:
        AliasTable({"a": "x", "b": Axis("y", 2), "c": 3}).bind_alias(alias, axis, "a b", (2, 3))
    assert str(error.value) == f"pattern: {message}\n    a b\n      ^"


# messages ------------------------------------------------------------------------------------------------------------

X = hax.arange({"heads": 4, "width": 6, "depth": 2})
M, N = hax.arange({"time": 4, "embed": 6}), hax.arange({"embed": 6, "mlp": 3})

# (pattern, keywords, message, carets)
REARRANGE = [
    ("", {}, "the pattern ends too early; expected an axis or '->'.", "^"),
    ("a b c", {}, "the pattern ends too early; expected an axis or '->'.", "     ^"),
    (
        "a b c ->",
        {},
        "the right side has no place for a=4, b=6, c=2. Name them, or put `...` where they go.",
        "        ^",
    ),
    ("-> a", {}, "0 axes are named; the array has heads=4, width=6, depth=2. Put `...` where the others are.", None),
    ("a b c - > a", {}, "unexpected '-'.", "      ^"),
    ("a b c => a", {}, "unexpected '='.", "      ^"),
    ("a, b c -> a", {}, "unexpected ','; expected an axis or '->'.", " ^"),
    ("a b c -> c b a -> a", {}, "unexpected '->'; expected an axis or the end.", "               ^^"),
    ("a b c -> c b a)", {}, "unexpected ')'; expected an axis or the end.", "              ^"),
    ("a b c -> c b a}", {}, "unexpected '}'; expected an axis or the end.", "              ^"),
    ("{heads -> heads", {}, "unexpected '->'; expected an axis or '}'.", "       ^^"),
    ("a b} c -> a", {}, "unexpected '}'; expected an axis or '->'.", "   ^"),
    ("{heads {width}} -> heads", {}, "unexpected '{'; expected an axis or '}'.", "       ^"),
    ("{heads: width} -> heads", {}, "unexpected ':'; expected an axis or '}'.", "      ^"),
    ("a: b c d -> a", {}, "unexpected ':'; expected an axis or '->'.", " ^"),
    ("(a b c -> a", {}, "unexpected '->'; expected an axis or ')'.", "       ^^"),
    ("a) b c -> a", {}, "unexpected ')'; expected an axis or '->'.", " ^"),
    ("((a b) c) d e -> a", {}, "'(' can not stand in parentheses.", " ^"),
    ("() a b c -> a b c", {}, "expected the name of an axis in the parentheses.", " ^"),
    ("a b c -> (x:) a b c", {}, "expected the name of an axis in the parentheses.", "            ^"),
    ("a b c -> (x: a ...) b", {}, "'...' can not stand in parentheses.", "               ^^^"),
    ("(: a b) c d -> a", {}, "expected the name of an axis in the parentheses.", " ^"),
    ("a b c -> (a b) c", {}, "parentheses on the right need a name; write (name: a b).", "         ^^^^^"),
    ("{(p q)} -> p q ...", {"p": 2}, "parentheses in braces need a name; write (name: p q).", " ^^^^^"),
    ("... a ... -> a ...", {}, "`...` occurs more than once; expected it at most once for each array.", "      ^^^"),
    ("a .. -> .. a", {}, "unexpected '.'.", "  ^"),
    ("a b c.d -> a", {}, "unexpected '.'.", "     ^"),
    ("1 b c -> b c", {}, "a name can not begin with a digit; quote it: '1'.", "^"),
    ("2d b c -> b c", {}, "a name can not begin with a digit; quote it: '2d'.", "^"),
    ("a 'b c -> a", {}, "the quotes are never closed.", "  ^"),
    ("a '' c -> a", {}, "there is no name in the quotes.", "  ^"),
    ("a é! c -> a", {}, "unexpected '!'.", "   ^"),
    ("a\tb\nc\t! -> a", {}, "unexpected '!'.", "      ^"),
    ("a a b -> a b", {}, "'a' occurs more than once.", "  ^"),
    ("(a b) b c -> a b c", {}, "'b' occurs more than once.", "      ^"),
    ("a b c -> a b c a", {}, "'a' occurs more than once.", "               ^"),
    (
        "a b -> b a",
        {},
        "2 axes are named; the array has heads=4, width=6, depth=2. Put `...` where the others are.",
        "^^^",
    ),
    ("a b c d -> a", {}, "4 axes are named; the array has heads=4, width=6, depth=2.", "^^^^^^^"),
    ("a ... b c d -> a ...", {}, "4 axes are named; the array has heads=4, width=6, depth=2.", "^^^^^^^^^^^"),
    ("a -> a", {}, "1 axis is named; the array has heads=4, width=6, depth=2. Put `...` where the others are.", "^"),
    (
        "{head} -> head ...",
        {},
        "no axis 'head'; the array has heads=4, width=6, depth=2. Did you mean 'heads'?",
        " ^^^^",
    ),
    ("{heads h} -> h ...", {"h": "heads"}, "axis 'heads' occurs more than once.", "       ^"),
    ("{w} -> w ...", {"w": "weight"}, "no axis 'weight'; the array has heads=4, width=6, depth=2.", " ^"),
    ("{heads} -> head ...", {}, "no 'head' on the left; it has heads. Did you mean 'heads'?", "           ^^^^"),
    ("{heads} -> width ...", {}, "no 'width' on the left; it has heads.", "           ^^^^^"),
    ("a b c -> a d ...", {}, "no 'd' on the left; it has a, b, c.", "           ^"),
    ("{heads} -> heads h ...", {"h": "heads"}, "'h' stands for an axis used before.", "                 ^"),
    ("{heads} -> (x: heads h) ...", {"h": "heads"}, "'x' stands for an axis used before.", "           ^^^^^^^^^^^^"),
    ("a b c -> c a", {}, "the right side has no place for b=6. Name them, or put `...` where they go.", "         ^^^"),
    (
        "{heads} -> heads",
        {},
        "the right side has no place for width=6, depth=2. Name them, or put `...` where they go.",
        "           ^^^^^",
    ),
    (
        "a ... -> a",
        {},
        "the right side has no place for width=6, depth=2. Name them, or put `...` where they go.",
        "         ^",
    ),
    (
        "(a b) c d -> a b c d",
        {},
        "axis heads=4 can be split into (a b) in many ways. Give the sizes of all parts but one as keywords.",
        "^^^^^",
    ),
    (
        "(a b c) ... -> a b c ...",
        {"b": 2},
        "axis heads=4 can be split into (a b c) in many ways. Give the sizes of all parts but one as keywords.",
        "^^^^^^^",
    ),
    ("(a b) ... -> a b ...", {"a": 3}, "axis heads=4 can not be split into parts of sizes a=3.", "^^^^^"),
    ("(a b) ... -> a b ...", {"a": 3, "b": 2}, "axis heads=4 can not be split into parts of sizes a=3, b=2.", "^^^^^"),
    ("(a b) ... -> a b ...", {"a": 0}, "axis heads=4 can not be split into parts of sizes a=0.", "^^^^^"),
    (
        "{(heads: a b)} -> (x: a b) ...",
        {"a": Axis("p", 8)},
        "axis heads=4 can not be split into parts of sizes a=8.",
        " ^^^^^^^^^^^^",
    ),
    ("a b c -> c b a", {"a": 5}, "'a' has size 4 here; expected 5.", "^"),
    ("a b c -> c b a", {"a": "width"}, "'a' is axis heads=4 here; it stands for 'width'.", "^"),
    ("a b c -> c b a", {"a": Axis("heads", 5)}, "'a' has size 4 here; expected 5.", "^"),
    ("a b c -> c b a", {"a": Axis("width", 6)}, "'a' is axis heads=4 here; it stands for width=6.", "^"),
    ("{heads} -> heads ...", {"heads": 5}, "'heads' has size 4 here; expected 5.", " ^^^^^"),
    ("a b c -> (x: a b) c", {"x": 25}, "'x' has size 24 here; expected 25.", "         ^^^^^^^^"),
    ("a b c -> (x: a b) c", {"x": Axis("y", 25)}, "'x' has size 24 here; expected 25.", "         ^^^^^^^^"),
    ("(x: a b) ... -> a b ...", {"a": 2, "x": 5}, "'x' has size 4 here; expected 5.", "^^^^^^^^"),
    (
        "(head size) ... -> head size ...",
        {"heads": 2},
        "keyword 'heads' is no name in the pattern. Did you mean 'head'?",
        None,
    ),
]
EINSUM = [
    ("", {}, "the pattern ends too early; expected an axis, ',' or '->'.", "^"),
    ("time embed", {}, "the pattern ends too early; expected an axis, ',' or '->'.", "          ^"),
    ("i j, j k", {}, "the pattern ends too early; expected an axis, ',' or '->'.", "        ^"),
    ("i j, j k -> i k -> i", {}, "unexpected '->'; expected an axis or the end.", "                ^^"),
    ("i j, j k -> i, k", {}, "unexpected ','; expected an axis or the end.", "             ^"),
    ("i j; j k -> i k", {}, "unexpected ';'.", "   ^"),
    ("{time, embed} -> time", {}, "unexpected ','; expected an axis or '}'.", "     ^"),
    ("{time embed} {mlp} -> time", {}, "unexpected '{'; expected '->'.", "             ^"),
    ("{time embed}, {embed mlp} -> time", {}, "braces stand for all arrays at once; expected '->'.", "            ^"),
    ("i j, {embed mlp} -> i", {}, "braces stand for all arrays at once; expected axes in order.", "     ^"),
    ("(i j), j k -> i k", {}, "parentheses have no meaning in einsum; merge and split axes with rearrange.", "^"),
    (
        "i j, j k -> (x: i k)",
        {},
        "parentheses have no meaning in einsum; merge and split axes with rearrange.",
        "            ^",
    ),
    ("{(time embed)} -> ", {}, "parentheses have no meaning in einsum; merge and split axes with rearrange.", " ^"),
    ("i i, j k -> i k", {}, "'i' occurs more than once.", "  ^"),
    ("i j, j k -> i i", {}, "'i' occurs more than once.", "              ^"),
    ("{embed embed} -> ", {}, "'embed' occurs more than once.", "       ^^^^^"),
    ("-> time time", {}, "'time' occurs more than once.", "        ^^^^"),
    ("... i ..., j k -> i", {}, "`...` occurs more than once; expected it at most once for each array.", "      ^^^"),
    ("{... ...} -> ", {}, "`...` occurs more than once; expected it at most once for each array.", "     ^^^"),
    ("i j -> i", {}, "the number of arrays is 2; expected 1.", None),
    ("i j, j k, k l -> i", {}, "the number of arrays is 2; expected 3.", None),
    ("i j, j k, -> i", {}, "the number of arrays is 2; expected 3.", None),
    ("i j k, j k -> i", {}, "3 axes are named; operand 0 has time=4, embed=6.", "^^^^^"),
    ("i, j k -> i", {}, "1 axis is named; operand 0 has time=4, embed=6. Put `...` where the others are.", "^"),
    ("i j, j k l ... -> i", {}, "3 axes are named; operand 1 has embed=6, mlp=3.", "     ^^^^^"),
    ("i j, i k -> j k", {}, "'i' is axis embed=6 here; it stands for time=4.", "     ^"),
    ("i j, j k -> i l", {}, "no 'l' on the left; it has i, j, k.", "              ^"),
    ("i j, j k -> tim", {}, "no 'tim' on the left; it has i, j, k.", "            ^^^"),
    (
        "inner j, j k -> iner k",
        {},
        "no 'iner' on the left; it has inner, j, k. Did you mean 'inner'?",
        "                ^^^^",
    ),
    ("{tiem} -> ", {}, "no axis 'tiem'; the arrays have time=4, embed=6, mlp=3. Did you mean 'time'?", " ^^^^"),
    (
        "{time} -> mlp",
        {},
        "axis 'mlp' is kept in front, as it is not in the braces. Name it there, too.",
        "          ^^^",
    ),
    ("{time} -> x", {}, "no axis 'x'; the arrays have time=4, embed=6, mlp=3.", "          ^"),
    ("-> t time", {"t": "time"}, "axis 'time' occurs more than once.", "     ^^^^"),
    ("-> tiem mlp", {}, "no axis 'tiem'; the arrays have time=4, embed=6, mlp=3. Did you mean 'time'?", "   ^^^^"),
    ("{t} -> ", {"t": "tiem"}, "no axis 'tiem'; the arrays have time=4, embed=6, mlp=3. Did you mean 'time'?", " ^"),
    ("i j, j k -> i k", {"i": "embed"}, "'i' is axis time=4 here; it stands for 'embed'.", "^"),
    ("i j, j k -> i k", {"i": 5}, "'i' has size 4 here; expected 5.", "^"),
    ("{embed} -> ", {"embed": 7}, "'embed' has size 6 here; expected 7.", " ^^^^^"),
    ("-> t", {"t": Axis("time", 5)}, "'t' has size 4 here; expected 5.", "   ^"),
    ("i j, j k -> i k", {"ij": 5}, "keyword 'ij' is no name in the pattern. Did you mean 'j'?", None),
    ("{time embed} ->", {"tim": "mlp"}, "keyword 'tim' is no name in the pattern. Did you mean 'time'?", None),
]


def expected_message(op: str, pattern: str, message: str, carets: str | None) -> str:
    shown = pattern.replace("\t", " ").replace("\n", " ")
    return f"{op}: {message}\n    {shown}" + ("" if carets is None else f"\n    {carets}")


@pytest.mark.parametrize(("pattern", "keywords", "message", "carets"), REARRANGE, ids=[case[0] for case in REARRANGE])
def test_wrong_patterns_of_rearrange(pattern, keywords, message, carets):
    with pytest.raises(ValueError) as error:
        X.rearrange(pattern, **keywords)
    assert str(error.value) == expected_message("rearrange", pattern, message, carets)


@pytest.mark.parametrize(("pattern", "keywords", "message", "carets"), EINSUM, ids=[case[0] for case in EINSUM])
def test_wrong_equations(pattern, keywords, message, carets):
    with pytest.raises(ValueError) as error:
        hax.einsum(pattern, M, N, **keywords)
    assert str(error.value) == expected_message("einsum", pattern, message, carets)


AXES = [
    (
        lambda: X.rearrange("a b c -> (depth: a b) c"),
        "rearrange: axis 'depth' occurs more than once in (depth, depth)."
        " Give a new axis another name: (name: ...) on the right, or a keyword.",
    ),
    (
        lambda: hax.einsum("i j, k l -> i j k l", M, N),
        "einsum: axis 'embed' occurs more than once in (time, embed, embed, mlp)."
        " Rename one of them with haliax.rename.",
    ),
    (
        lambda: hax.einsum("{embed} -> ", M, hax.ones({"embed": 5})),
        "einsum: axis 'embed' has size 5; expected 6. Arrays must agree on the size of a shared axis.",
    ),
    (
        lambda: hax.einsum("i ..., ... -> i", M, hax.ones({"embed": 5})),
        "einsum: axis 'embed' has size 5; expected 6. Arrays must agree on it.",
    ),
    (
        lambda: hax.einsum("i j, j -> i", M, hax.ones({"embed": 5})),
        "einsum: 'j' has size 5 here; expected 6.\n    i j, j -> i\n         ^",
    ),
    (lambda: hax.einsum("->"), "einsum: no array was given; expected at least one NamedArray."),
    (lambda: X.rearrange("(a b) ... -> a b ...", a=-2), "rearrange: a is negative; expected a size."),
    (
        lambda: hax.zeros({"a": 0}).rearrange("(p q) -> p q", p=0),
        "rearrange: axis a=0 can be split into (p q) in many ways. Give the sizes of all parts but one as keywords."
        "\n    (p q) -> p q\n    ^^^^^",
    ),
]


@pytest.mark.parametrize(("call", "message"), AXES)
def test_wrong_axes(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message


TYPES = [
    (lambda: hax.einsum(3, M), "einsum: the equation is an int; expected a string."),
    (
        lambda: hax.einsum("->", M, N.array),
        "einsum: operand 1 is a jax array of shape (6, 3); expected a NamedArray."
        " Name its axes with haliax.named(array, axes).",
    ),
    (lambda: hax.einsum("->", 2.0), "einsum: operand 0 is a float; expected a NamedArray."),
    (lambda: hax.einsum("->", M, time=None), "einsum: time is None; expected an Axis, a name or a size."),
    (lambda: X.rearrange("a ... -> a ...", a=1.5), "rearrange: a is a float; expected an Axis, a name or a size."),
    (lambda: X.rearrange("a ... -> a ...", a=True), "rearrange: a is a bool; expected an Axis, a name or a size."),
    (lambda: X.rearrange("a ... -> a ...", a=["b"]), "rearrange: a is a list; expected an Axis, a name or a size."),
    (
        lambda: hax.rearrange(X.array, "a b -> b a"),
        "rearrange: the array is a jax array of shape (4, 6, 2); expected a NamedArray."
        " Name its axes with haliax.named(array, axes).",
    ),
    (lambda: parse_einsum(b"a -> a"), "einsum: the pattern is a bytes; expected a string."),
    (lambda: parse_rearrangement(None), "rearrange: the pattern is None; expected a string."),
]


@pytest.mark.parametrize(("call", "message"), TYPES)
def test_wrong_types(call, message):
    with pytest.raises(TypeError) as error:
        call()
    assert str(error.value) == message
