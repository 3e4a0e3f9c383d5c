"""What `f.explain(...)` returns: the layouts, collectives and traces of a program, as data, as text and as HTML."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from jax.sharding import NamedSharding, PartitionSpec, Sharding

from haliax._src.axis import Axis
from haliax._src.differences import describe_mapping
from haliax._src.errors import format_shape
from haliax._src.hlo_collectives import Collective
from haliax._src.kernels import Kernel
from haliax._src.layout_text import describe_mesh, describe_sharding, table
from haliax._src.resources import FrozenMapping, MeshLike
from haliax._src.retraces import abridged

Verdict: TypeAlias = Literal["preserved", "moved", "refused", "placed", "constrained", "unused"]
"""What becomes of the layout of an array.

It is kept; changed; refused, as the array lives on another mesh; given by JAX or a mapping, as there was none; given to
a result by a constraint; or of no matter, since the function does not use the array.
"""


Table: TypeAlias = list[tuple[str, ...]]


@dataclasses.dataclass(frozen=True)
class ArrayLayout:
    """One array among the arguments or results of a program.

    Args:
        path: Where it is, such as `params['w']`.
        axes: Its axes; None if it is no NamedArray's.
        shape: Its global shape.
        dtype: The name of its dtype.
        nbytes: Its size as a whole.
        before: The sharding it comes with; None for a result, and for an array that is committed to none.
        after: The sharding it has in the program; None if only the compiler can tell.
        bytes_per_device: Its size on one device, 0 if the program does not take it; None if `after` is not known.
        verdict: What becomes of its layout.
        reason: Why.
    """

    path: str
    axes: tuple[Axis, ...] | None
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    before: Sharding | None
    after: Sharding | None
    bytes_per_device: int | None
    verdict: Verdict
    reason: str

    @property
    def spec_in(self) -> PartitionSpec | None:
        """The PartitionSpec of `before`, if it has one."""
        return self.before.spec if isinstance(self.before, NamedSharding) else None

    @property
    def spec_out(self) -> PartitionSpec | None:
        """The PartitionSpec of `after`, if it has one."""
        return self.after.spec if isinstance(self.after, NamedSharding) else None


@dataclasses.dataclass(frozen=True, repr=False)
class Explanation:
    """What `f.explain(...)` found out about one program; `print` it, or read its attributes.

    Args:
        name: The name of the function.
        mesh: The mesh it runs on, if there is one.
        axis_mapping: The mapping in force inside.
        input_mapping: The mapping that lays out arguments; None if they keep their shardings.
        output_mapping: The mapping that lays out results.
        shim_active: Whether the forced-host shim made the axis mapping the input mapping.
        arguments: The arrays among the arguments, those of the function itself first.
        results: The arrays of the result.
        collectives: The collectives of the compiled program; None where none can be compiled.
        traces: How often the function has been traced, for this report included.
        compilations: The compiled programs that JAX keeps for calls: one for each combination of shapes, dtypes and
            layouts seen, where numpy and JAX arrays count apart. That of this report does not count.
        changes: What differs between the last two signatures, one sentence each; None if there was only one.
        kernels: Which kernels compute the operations for which there are several, such as `ragged_dot`, and why.
    """

    name: str
    mesh: MeshLike | None
    axis_mapping: FrozenMapping | None
    input_mapping: FrozenMapping | None
    output_mapping: FrozenMapping | None
    shim_active: bool
    arguments: tuple[ArrayLayout, ...]
    results: tuple[ArrayLayout, ...]
    collectives: tuple[Collective, ...] | None
    traces: int
    compilations: int
    changes: tuple[str, ...] | None
    kernels: tuple[Kernel, ...] = ()

    def __str__(self) -> str:
        blocks = [self._heading(), *map(table, self._tables()), self._footing()]
        return "\n\n".join("\n".join(lines) for lines in blocks)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [_html_lines(self._heading()), *map(_html_table, self._tables()), _html_lines(self._footing())]
        return f"<div>{''.join(parts)}</div>"

    def _heading(self) -> list[str]:
        keep = "none, so arguments keep their shardings"
        active = "active, so the axis mapping lays out the arguments too"
        lines = [
            f"named_jit({self.name})",
            f"mesh: {'none' if self.mesh is None else describe_mesh(self.mesh)}",
            f"axis mapping: {describe_mapping(self.axis_mapping)}",
            f"input mapping: {keep if self.input_mapping is None else describe_mapping(self.input_mapping)}",
            f"forced-host shim: {active if self.shim_active else 'not active'}",
        ]
        if self.output_mapping != self.axis_mapping:
            lines.insert(4, f"output mapping: {describe_mapping(self.output_mapping)}")
        return lines

    def _tables(self) -> Iterator[Table]:
        """The rows of each table, of which the first is its header."""
        if self.arguments:
            yield _array_table("argument", self.arguments, self.mesh, ("from", "to"))
        if self.results:
            yield _array_table("result", self.results, self.mesh, ("layout",))
        if self.collectives:
            rows = [(found.kind, f"{found.count:,}", f"{found.bytes:,}") for found in self.collectives]
            yield [("collective", "count", "bytes/device"), *rows]

    def _footing(self) -> list[str]:
        lines = [f"traces: {self.traces}; programs compiled for calls: {self.compilations}"]
        if self.collectives is None:
            lines.insert(0, "collectives: not known, for there are no devices to compile for")
        elif not self.collectives:
            lines.insert(0, "collectives: none")
        if self.kernels:
            lines.append(f"kernels: {'; '.join(map(str, self.kernels))}")
        if self.changes is not None:
            lines.append("between the last two signatures:")
            lines += [f"  {line}" for line in abridged(self.changes)]
        return lines


def _array_table(kind: str, arrays: Sequence[ArrayLayout], mesh: MeshLike | None, layouts: tuple[str, ...]) -> Table:
    """A row for each array, with its layout before and after or after alone, and the sum of their bytes."""
    rows: Table = [(kind, "axes", "dtype", *layouts, "bytes/device", "verdict", "why")]
    for array in arrays:
        shown = [_layout(sharding, mesh) for sharding in (array.before, array.after)][-len(layouts) :]
        size = f"at most {array.nbytes:,}" if array.bytes_per_device is None else f"{array.bytes_per_device:,}"
        rows.append((array.path, _axes(array), array.dtype, *shown, size, array.verdict, array.reason))
    known = all(array.bytes_per_device is not None for array in arrays)
    most = sum(array.nbytes if array.bytes_per_device is None else array.bytes_per_device for array in arrays)
    total = f"{most:,}" if known else f"at most {most:,}"
    return [*rows, ("total", "", "", *[""] * len(layouts), total, "", "")]


def _axes(array: ArrayLayout) -> str:
    if array.axes is None:
        return str(array.shape)
    return format_shape({axis.name: axis.size for axis in array.axes})


def _layout(sharding: Sharding | None, mesh: MeshLike | None) -> str:
    return "-" if sharding is None else describe_sharding(sharding, mesh)


def _html_lines(lines: Sequence[str]) -> str:
    return f"<p>{'<br>'.join(map(html.escape, lines))}</p>"


def _html_table(rows: Table) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"

    return f"<table>{row(rows[0], 'th')}{''.join(row(cells, 'td') for cells in rows[1:])}</table>"
