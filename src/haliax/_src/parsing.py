"""The grammar of patterns: what `rearrange` and `einsum` read, without any knowledge of arrays.

    rearrangement = side "->" side                        einsum = [side {"," side}] "->" side
    side          = {entry} | "{" {entry} "}"             entry  = name | "..." | group
    group         = "(" [name ":"] name {name} ")"        name   = an identifier, or anything in quotes

The names of a side without braces stand for axes in order, those in braces for the axes that have these names. A
message about a pattern shows it, with carets under the place.
"""

from __future__ import annotations

import dataclasses
import numbers
import re
from collections.abc import Iterator, Mapping, Sequence
from types import EllipsisType
from typing import Any, NamedTuple, NoReturn

from haliax._src.axis import Axis, AxisSelector, axis_name
from haliax._src.errors import bad_value, format_shape, nearest, problem, wrong_type

Place = tuple[int, int]
"""Where something begins and ends in a pattern."""

Bindings = tuple[tuple[str, AxisSelector | int], ...]
"""What names of a pattern stand for: an axis, the name of one, or a size; hashable."""


class Capture(NamedTuple):
    """One name of a pattern, or several in parentheses."""

    name: str | None
    """What the whole is called; None for parentheses without a name."""
    parts: tuple[str, ...]
    """The names in parentheses; the name itself if there are none."""
    place: Place


@dataclasses.dataclass(frozen=True)
class Expression:
    """One side of a pattern, or what it says of one array.

    Args:
        captures: The entries in order, `...` among them.
        is_ordered: Whether they stand for axes in order; otherwise, in braces, for axes by name.
    """

    captures: Sequence[Capture | EllipsisType]
    is_ordered: bool

    @property
    def named(self) -> tuple[Capture, ...]:
        """The entries without `...`."""
        return tuple(capture for capture in self.captures if isinstance(capture, Capture))

    @property
    def has_ellipsis(self) -> bool:
        """Whether `...` is among the entries."""
        return ... in self.captures

    @property
    def place(self) -> Place | None:
        """From the first name to the last; None without names."""
        named = self.named
        return (named[0].place[0], named[-1].place[1]) if named else None


def parse_rearrangement(expression: str) -> tuple[Expression, Expression]:
    """Parse a pattern of `rearrange`, such as `"{(embed: heads size) ...} -> heads ... size"`.

    Args:
        expression: The pattern.

    Returns:
        Its left and its right side. Parentheses on the right have a name, and so have those in braces.

    Raises:
        ValueError: If it is no such pattern; the message shows the place.
        TypeError: If it is no string.
    """
    parser = _Parser("rearrange", expression)
    left = parser.side(ellipses=1)
    parser.expect("->", "expected an axis or '->'")
    right = parser.side()
    parser.expect("end", "expected an axis or the end")
    for side, needs_names in ((left, not left.is_ordered), (right, True)):
        for capture in side.named:
            if needs_names and capture.name is None:
                where = "on the right" if side is right else "in braces"
                given = expression[capture.place[0] + 1 : capture.place[1] - 1].strip()
                parser.fail(f"parentheses {where} need a name; write (name: {given})", capture.place)
    return left, right


def parse_einsum(expression: str) -> tuple[Sequence[Expression], Expression]:
    """Parse a pattern of `einsum`, such as `"batch time, time embed -> batch embed"`.

    Args:
        expression: The pattern.

    Returns:
        What it says of each array, and its right side. Braces are the only entry on the left, and so is an empty
        expression, if there is nothing on the left.

    Raises:
        ValueError: If it is no such pattern; the message shows the place.
        TypeError: If it is no string.
    """
    parser = _Parser("einsum", expression, groups=False)
    left = [parser.side(ellipses=1)]
    while comma := parser.accept(","):
        if not left[-1].is_ordered:
            parser.fail("braces stand for all arrays at once; expected '->'", comma.place)
        if parser.token.kind == "{":
            parser.fail("braces stand for all arrays at once; expected axes in order")
        left.append(parser.side(ellipses=1))
    parser.expect("->", "expected an axis, ',' or '->'" if left[-1].is_ordered else "expected '->'")
    right = parser.side()
    parser.expect("end", "expected an axis or the end")
    return left, right


def raise_parse_error(message: str, expression: str, pos: int | Place | None) -> NoReturn:
    """Raise an error about a pattern, which it shows with carets under a place.

    Args:
        message: The operation and what is wrong.
        expression: The pattern.
        pos: Where: the number of a character, or where the place begins and ends; None for no carets.

    Raises:
        ValueError: Always.
    """
    lines = [message, "    " + re.sub(r"\s", " ", expression)]
    if pos is not None:
        begin, end = (pos, pos + 1) if isinstance(pos, int) else pos
        lines.append(f"    {' ' * begin}{'^' * max(end - begin, 1)}")
    raise ValueError("\n".join(lines))


# what names stand for ------------------------------------------------------------------------------------------------


class AliasTable:
    """What each name of a pattern stands for.

    Args:
        bindings: What the user says of names: an axis, the name of one, or a size.
        op: The operation, for error messages.
    """

    def __init__(self, bindings: Mapping[str, AxisSelector | int] | None = None, op: str = "pattern"):
        """Start with what the user says."""
        self.bindings: dict[str, AxisSelector | int] = dict(bindings or {})
        self.op = op

    def bind_alias(self, alias: str, axis: Axis, expr: str, char_range: Place | int) -> None:
        """Let a name stand for an axis.

        Args:
            alias: The name.
            axis: The axis.
            expr: The pattern, for an error message.
            char_range: The place in it, for an error message.

        Raises:
            ValueError: If the name stands for another axis, or for one of another size.
        """
        bound, size = self.dealias_binding(alias), self.size_of(alias)
        if bound is not None and axis_name(bound) != axis.name:
            stands_for = repr(bound) if isinstance(bound, str) else format_shape({bound.name: bound.size})
            given = f"{alias!r} is axis {format_shape({axis.name: axis.size})} here; it stands for {stands_for}"
            raise_parse_error(f"{self.op}: {given}.", expr, char_range)
        if size not in (None, axis.size):
            given = f"{alias!r} has size {axis.size} here; expected {size}"
            raise_parse_error(f"{self.op}: {given}.", expr, char_range)
        self.bindings[alias] = axis

    def dealias_binding(self, binding: str) -> AxisSelector | None:
        """The axis, or the name of one, that a name stands for; None if that is not known."""
        bound = self.bindings.get(binding)
        return None if isinstance(bound, int) else bound

    def name_of(self, alias: str) -> str:
        """The name of the axis that a name stands for; by default the name itself."""
        bound = self.dealias_binding(alias)
        return alias if bound is None else axis_name(bound)

    def size_of(self, alias: str, shape: Mapping[str, int] | None = None) -> int | None:
        """The size that is known of a name, which may be that of an axis in `shape`."""
        bound = self.bindings.get(alias)
        if isinstance(bound, str):
            return None if shape is None else shape.get(bound)
        return bound.size if isinstance(bound, Axis) else bound


def check_bindings(op: str, bindings: Mapping[str, Any]) -> Bindings:
    """The keywords of a pattern in a form that can be hashed, once they are sure to be axes, names or sizes.

    Raises:
        TypeError: If one is neither an axis, a name nor a size.
        ValueError: If a size is negative.
    """
    return tuple([(alias, _checked_binding(op, alias, bound)) for alias, bound in bindings.items()])


def _checked_binding(op: str, alias: str, bound: Any) -> AxisSelector | int:
    if isinstance(bound, str | Axis):
        return bound
    if not isinstance(bound, numbers.Integral) or isinstance(bound, bool):
        raise wrong_type(op, alias, bound, "an Axis, a name or a size")
    if bound < 0:
        raise bad_value(op, f"{alias} is negative", "expected a size")
    return int(bound)


def check_all_used(op: str, bindings: Bindings, expression: str, sides: Sequence[Expression]) -> None:
    """Raise a ValueError if a keyword is no name of the pattern."""
    names = [name for side in sides for capture in side.named for name in (capture.name, *capture.parts) if name]
    for alias, _ in bindings:
        if alias not in names:
            given = f"keyword {alias!r} is no name in the pattern"
            raise_parse_error(problem(op, given, remedy=nearest(alias, names)), expression, None)


def by_position(
    op: str, expression: str, side: Expression, axes: Sequence[Axis], owner: str = "the array"
) -> dict[int, Capture]:
    """The capture of each dimension of an array that has one, where a pattern names axes in order.

    Args:
        op: The operation, for error messages.
        expression: The pattern.
        side: What it says of the array.
        axes: The axes of the array.
        owner: What to call the array in error messages.

    Raises:
        ValueError: If there are more names than axes, or fewer without `...`.
    """
    named, count = side.named, len(axes)
    if len(named) > count or (len(named) < count and not side.has_ellipsis):
        named_axes = "1 axis is" if len(named) == 1 else f"{len(named)} axes are"
        given = f"{named_axes} named; {owner} has {format_shape({axis.name: axis.size for axis in axes})}"
        remedy = "" if len(named) > count else "Put `...` where the others are."
        raise_parse_error(problem(op, given, remedy=remedy), expression, side.place)
    front = side.captures.index(...) if side.has_ellipsis else len(named)
    return {i if i < front else i + count - len(named): capture for i, capture in enumerate(named)}


def not_on_the_left(op: str, expression: str, name: str, known: Sequence[str], place: Place) -> NoReturn:
    """Raise the error about a name on the right that the left side does not have."""
    given = f"no {name!r} on the left"
    raise_parse_error(
        problem(op, given, f"it has {', '.join(known) or '...'}", nearest(name, known)), expression, place
    )


# the parser ----------------------------------------------------------------------------------------------------------


class _Token(NamedTuple):
    kind: str
    """`name`, `end`, or the symbol itself."""
    text: str
    place: Place


_TOKEN = re.compile(
    r"""(?P<name>[^\W\d]\w*) | (?P<quoted>'(?:[^'\\]|\\.)+' | "(?:[^"\\]|\\.)+") | \.\.\. | -> | [(){}:,]""",
    re.VERBOSE,
)


def _tokens(op: str, expression: str) -> Iterator[_Token]:
    """The words of a pattern, and its end."""
    if not isinstance(expression, str):
        raise wrong_type(op, "the pattern", expression, "a string")
    at = 0
    while rest := expression[at:].lstrip():
        at = len(expression) - len(rest)
        match = _TOKEN.match(rest)
        if match is None:
            raise_parse_error(f"{op}: {_no_word(rest)}.", expression, at)
        place = at, at + len(match[0])
        if match["quoted"]:
            yield _Token("name", re.sub(r"\\(.)", r"\1", match[0][1:-1]), place)
        else:
            yield _Token("name" if match["name"] else match[0], match[0], place)
        at = place[1]
    yield _Token("end", "", (at, at))


def _no_word(rest: str) -> str:
    """Why no word of a pattern begins here."""
    if rest[0] in "'\"":
        return "there is no name in the quotes" if rest[1:2] == rest[0] else "the quotes are never closed"
    if rest[0].isdigit():
        word = re.match(r"\w+", rest)
        return f"a name can not begin with a digit; quote it: '{word[0] if word else rest[0]}'"
    return f"unexpected {rest[0]!r}"


class _Parser:
    """Reads a pattern from left to right, one method for each rule of the grammar."""

    def __init__(self, op: str, expression: str, groups: bool = True):
        """Cut the pattern in words; `groups` says whether there may be parentheses."""
        self.op, self.expression, self.groups = op, expression, groups
        self.tokens = list(_tokens(op, expression))
        self.at = 0

    @property
    def token(self) -> _Token:
        """The word that comes."""
        return self.tokens[self.at]

    def fail(self, message: str, place: Place | None = None) -> NoReturn:
        raise_parse_error(f"{self.op}: {message}.", self.expression, place or self.token.place)

    def accept(self, kind: str) -> _Token | None:
        """Step over a word of this kind, if that is what comes."""
        token = self.token
        if token.kind != kind:
            return None
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def expect(self, kind: str, expected: str) -> _Token:
        """Step over a word of this kind, which must come."""
        token = self.accept(kind)
        if token is None:
            given = f"unexpected {self.token.text!r}" if self.token.text else "the pattern ends too early"
            self.fail(f"{given}; {expected}")
        return token

    def side(self, ellipses: int | None = None) -> Expression:
        """Entries in order or in braces; `ellipses` limits the number of `...`."""
        braces = self.accept("{")
        captures: list[Capture | EllipsisType] = []
        seen: set[str] = set()
        while self.token.kind in ("name", "...", "("):
            if self.token.kind == "...":
                if captures.count(...) == ellipses:
                    self.fail("`...` occurs more than once; expected it at most once for each array")
                self.accept("...")
                captures.append(...)
            else:
                captures.append(self.group(seen) if self.token.kind == "(" else self.name(seen))
        if braces:
            self.expect("}", "expected an axis or '}'")
        return Expression(tuple(captures), not braces)

    def name(self, seen: set[str]) -> Capture:
        """A name that has not been seen before."""
        _, text, place = self.expect("name", "expected the name of an axis")
        if text in seen:
            self.fail(f"{text!r} occurs more than once", place)
        seen.add(text)
        return Capture(text, (text,), place)

    def group(self, seen: set[str]) -> Capture:
        """Names in parentheses; a single one without a colon is as without parentheses."""
        opening = self.expect("(", "expected '('")
        if not self.groups:
            self.fail(f"parentheses have no meaning in {self.op}; merge and split axes with rearrange", opening.place)
        name = None
        if self.token.kind == "name" and self.tokens[self.at + 1].kind == ":":
            name = self.expect("name", "expected a name").text
            self.accept(":")
        parts = []
        while self.token.kind == "name":
            parts.append(self.name(seen).parts[0])
        if self.token.kind in ("(", "..."):
            self.fail(f"{self.token.text!r} can not stand in parentheses")
        if not parts:
            self.fail("expected the name of an axis in the parentheses")
        closing = self.expect(")", "expected an axis or ')'")
        place = opening.place[0], closing.place[1]
        return Capture(name or (parts[0] if len(parts) == 1 else None), tuple(parts), place)
