"""The collectives of a compiled program, read from its HLO text."""

from __future__ import annotations

import dataclasses
import math
import re

COLLECTIVES = (
    "all-gather",
    "all-reduce",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "collective-broadcast",
)

# `%name = shape opcode(`: a shape may be a tuple, but before the opcode there is no further `=`. Of an asynchronous
# pair the second half counts, since its shape is that of the result alone.
_INSTRUCTION = re.compile(rf"^\s*(?:ROOT )?\S+ = ([^=]*?) ({'|'.join(COLLECTIVES)})(?:-done)?\(", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/")
_ARRAY = re.compile(r"\b(pred|[a-z]+(\d+)\w*)\[([\d,]*)\]")


@dataclasses.dataclass(frozen=True)
class Collective:
    """All collectives of one kind in a program.

    Args:
        kind: Their operation, such as `all-reduce`.
        count: How often it stands in the program; one in a loop counts once, and an asynchronous pair too.
        bytes: The bytes of their results on one device.
    """

    kind: str
    count: int
    bytes: int


def find_collectives(hlo: str) -> tuple[Collective, ...]:
    """The collectives of a compiled program.

    Args:
        hlo: The text of the program after partitioning, as `compiled.as_text()` gives it.

    Returns:
        One entry for each kind that occurs, in the order of `COLLECTIVES`.
    """
    sizes: dict[str, list[int]] = {kind: [] for kind in COLLECTIVES}
    for shape, kind in _INSTRUCTION.findall(_COMMENT.sub("", hlo)):
        sizes[kind].append(_bytes(shape))
    return tuple(Collective(kind, len(found), sum(found)) for kind, found in sizes.items() if found)


def _bytes(shape: str) -> int:
    """The bytes of an HLO shape: of an array, or of all arrays of a tuple."""
    total = 0
    for name, bits, dimensions in _ARRAY.findall(shape):
        size = math.prod(map(int, filter(None, dimensions.split(","))))
        total += -(-size * (8 if name == "pred" else int(bits)) // 8)
    return total
