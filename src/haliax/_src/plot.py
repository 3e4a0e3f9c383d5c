"""Layouts as pictures: what `visualize_shardings` and `visualize_named_sharding` print, drawn with matplotlib.

Figures are made without pyplot, so that nothing global keeps them and no display is needed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from haliax._src.axis import AxisSpec
from haliax._src.errors import bad_value, problem
from haliax._src.repr import describe_layout
from haliax._src.shard_grid import ShardGrid, shard_grid
from haliax._src.visualize import PlacedLeaf, describe_ids, named_grid, placed_leaves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PER_LINE = 3  # pictures side by side
_MAX_ROWS, _MAX_COLUMNS = 24, 6  # that have labels; more would overlap
_COLOURS = 20  # of matplotlib's biggest map of distinct ones
_INCHES = (5.0, 3.5)


def plot_shardings(tree: Any) -> Figure:
    """Draw how the arrays of a pytree are laid out: for each array, the devices that hold each part.

    Args:
        tree: A pytree of named or raw arrays, or of ShapeDtypeStructs with shardings; other leaves are left out.

    Returns:
        A matplotlib figure with one picture for each array. A notebook shows it, `savefig` writes it to a file.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If there is no array that has a sharding.
    """
    leaves = [leaf for leaf in placed_leaves(tree) if leaf.sharding is not None]
    if not leaves:
        remedy = "Inside jax.jit use visualize_shardings, which waits for the compiler."
        raise bad_value("plot_shardings", "no array has a known sharding", "expected at least one", remedy)
    return _figure("plot_shardings", [(_title(leaf), _grid(leaf)) for leaf in leaves])


def plot_named_sharding(axes: AxisSpec, sharding: Any) -> Figure:
    """Draw which device holds which part of an array with these axes.

    Args:
        axes: The axes with their sizes.
        sharding: A sharding, a PartitionSpec or a mapping, as for `visualize_named_sharding`.

    Returns:
        A matplotlib figure.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If there is no mesh, or an axis does not divide over its mesh axes.
    """
    grid, layout = named_grid("plot_named_sharding", axes, sharding)
    return _figure("plot_named_sharding", [(layout, grid)])


def _grid(leaf: PlacedLeaf) -> ShardGrid:
    return shard_grid(leaf.names, leaf.array.shape, leaf.sharding)  # pyright: ignore[reportArgumentType]  (it has one)


def _title(leaf: PlacedLeaf) -> str:
    layout = describe_layout(leaf.sharding, leaf.names) or leaf.where(())
    return f"{leaf.path}  {leaf.type}\n{layout}".strip()


def _figure(op: str, pictures: list[tuple[str, ShardGrid]]) -> Figure:
    """A figure with the pictures line by line."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  (optional)
    except ImportError as e:
        remedy = "Install it with pip install 'haliax[plot]'."
        raise ImportError(problem(op, "matplotlib is not installed", remedy=remedy)) from e
    across = min(len(pictures), _PER_LINE)
    down = math.ceil(len(pictures) / across)
    figure = Figure(figsize=(_INCHES[0] * across, _INCHES[1] * down), layout="constrained")
    for i, (title, grid) in enumerate(pictures, 1):
        _draw(figure.add_subplot(down, across, i), title, grid)
    return figure


def _draw(ax: Any, title: str, grid: ShardGrid) -> None:
    """Draw one grid: a cell for each part, in the colour of the first device that holds it."""
    first = [[min(devices, default=0) for devices in row] for row in grid.cells]
    few = max(map(max, first)) < _COLOURS
    scale: dict[str, Any] = {"cmap": "tab20", "vmin": 0, "vmax": _COLOURS - 1} if few else {"cmap": "viridis"}
    ax.imshow(first, aspect="auto", alpha=0.6, **scale)
    ax.set_title(title, fontsize="small")
    _label(ax.set_xticks, grid.columns, _MAX_COLUMNS)
    _label(ax.set_yticks, grid.rows, _MAX_ROWS)
    if len(grid.rows) <= _MAX_ROWS and len(grid.columns) <= _MAX_COLUMNS:
        for i, row in enumerate(grid.cells):
            for j, devices in enumerate(row):
                ax.text(j, i, f"{grid.unit} {describe_ids(devices)}", ha="center", va="center", fontsize="small")


def _label(set_ticks: Any, labels: tuple[str, ...], limit: int) -> None:
    """Label the rows or columns, or some of them if there are many; none if no axis is split in this direction."""
    places = range(0, len(labels), math.ceil(len(labels) / limit)) if any(labels) else ()
    set_ticks(list(places), [labels[i] for i in places], fontsize="small")
