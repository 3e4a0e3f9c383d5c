"""How treescope, where it is installed, shows a named array: names, sizes, layout, statistics, and pictures by name.

Nothing here is imported before treescope asks: it calls the methods of `NamedArray` that stand for these functions.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from haliax._src.array_base import NamedArrayBase
from haliax._src.repr import describe_array


def render(x: NamedArrayBase, path: str | None, subtree_renderer: Any) -> Any:
    """The node of a tree that shows one array, as `__treescope_repr__` gives it.

    Args:
        x: A named array, or one with something else in the place of its array.
        path: Where it is in the tree.
        subtree_renderer: What renders the array inside, when the node is unfolded.

    Returns:
        A rendering: one line with the statistics of the values, which unfolds to the array that treescope shows.

    Source:
        `treescope.rendering_parts`
    """
    from treescope import lowering, rendering_parts as parts  # noqa: PLC0415

    def inside() -> Any:
        if getattr(x.array, "size", None) == 0:  # treescope's pictures fail on these
            return parts.text(repr(x.array))
        return subtree_renderer(x.array, path=None if path is None else f"{path}.array")

    def node(statistics: str, expand_state: Any) -> Any:
        return parts.build_custom_foldable_tree_node(
            label=parts.abbreviation_color(
                parts.comment_color_when_expanded(
                    parts.siblings(
                        parts.fold_condition(expanded=parts.text("# "), collapsed=parts.text("<")),
                        parts.text(_heading(x)),
                        parts.fold_condition(collapsed=parts.text(f"{statistics}>")),
                    )
                )
            ),
            contents=parts.fold_condition(expanded=parts.indented_children([inside()])),
            path=path,
            expand_state=expand_state or parts.ExpandState.WEAKLY_EXPANDED,
        ).renderable

    # statistics wait for the array to be computed, so a notebook shows the tree first
    deferred = lowering.maybe_defer_rendering(
        main_thunk=lambda expand_state: node(_statistics(x.array), expand_state),
        placeholder_thunk=lambda: parts.deferred_placeholder_style(parts.text(f"<{_heading(x)}>")),
    )
    return parts.RenderableAndLineAnnotations(renderable=deferred, annotations=parts.build_copy_button(path))


def adapter(x: NamedArrayBase) -> NamedArrayAdapter | None:
    """What `__treescope_ndarray_adapter__` gives for one array; None if treescope can not look into it."""
    from treescope import type_registries  # noqa: PLC0415

    if isinstance(x.array, NamedArrayBase) or getattr(x.array, "ndim", None) != len(x.axis_names):
        return None
    inner = type_registries.lookup_ndarray_adapter(x.array)
    return None if inner is None else NamedArrayAdapter(inner)


class NamedArrayAdapter:
    """A named array as treescope reads it to draw it: the axes by name, the rest as of the array inside.

    It has the methods of `treescope.ndarray_adapters.NDArrayAdapter`, which can not be its base while treescope is
    optional.

    Args:
        inner: The adapter for the array inside.
    """

    def __init__(self, inner: Any):
        """Keep the adapter for the array inside."""
        self.inner = inner

    def get_axis_info_for_array_data(self, array: NamedArrayBase) -> tuple[Any, ...]:
        """Name and size of each axis."""
        from treescope import ndarray_adapters  # noqa: PLC0415

        return tuple(ndarray_adapters.NamedPositionlessAxisInfo(axis.name, axis.size) for axis in array.axes)

    def get_array_data_with_truncation(
        self, array: NamedArrayBase, mask: Any, edge_items_per_axis: tuple[int | None, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The elements and the mask, with long axes cut down to their ends; a named mask may lack axes."""
        if isinstance(mask, NamedArrayBase):
            mask = _aligned(mask, array.axis_names)
        return self.inner.get_array_data_with_truncation(array.array, mask, edge_items_per_axis)

    def get_array_summary(self, array: NamedArrayBase, fast: bool) -> str:
        """One line about the array, with the statistics of its values unless it has to be `fast`."""
        return _heading(array) + ("" if fast else _statistics(array.array))

    def get_numpy_dtype(self, array: NamedArrayBase) -> np.dtype | None:
        """The dtype, if numpy has it."""
        return self.inner.get_numpy_dtype(array.array)

    def get_sharding_info_for_array_data(self, array: NamedArrayBase) -> Any:
        """Which device holds which part."""
        return self.inner.get_sharding_info_for_array_data(array.array)

    def should_autovisualize(self, array: NamedArrayBase) -> bool:
        """Whether its values may be drawn; treescope fails on arrays without any."""
        return 0 not in array.shape.values() and self.inner.should_autovisualize(array.array)


def _heading(x: NamedArrayBase) -> str:
    """`NamedArray float32[a=2]`, with angle brackets around it in place of parentheses."""
    return describe_array(x)[:-1].replace("(", " ", 1)


def _statistics(array: Any) -> str:
    """Mean, deviation and extremes as treescope gives them; empty where there are no values to look at."""
    from treescope.external import jax_support  # noqa: PLC0415

    readable = isinstance(array, jax.Array) and not isinstance(array, Tracer) and not array.is_deleted()
    return jax_support.summarize_array_data(array) if readable and array.size else ""


def _aligned(mask: NamedArrayBase, names: tuple[str, ...]) -> np.ndarray:
    """A mask with one dimension for each of `names`, of size 1 where it lacks the axis."""
    order = [name for name in names if name in mask.axis_names]
    array = np.transpose(np.asarray(mask.array), [mask.axis_names.index(name) for name in order])
    return array[tuple(slice(None) if name in order else None for name in names)]
