"""Axes: their names and sizes, set algebra on them, partial orders, and slices along them."""

from ._src.axis import (
    Ax as Ax,
    Axis as Axis,
    AxisSelection as AxisSelection,
    AxisSelector as AxisSelector,
    AxisSpec as AxisSpec,
    PartialAxisSpec as PartialAxisSpec,
    PartialShapeDict as PartialShapeDict,
    ShapeDict as ShapeDict,
    axis_name as axis_name,
    axis_size as axis_size,
    axis_spec_to_shape_dict as axis_spec_to_shape_dict,
    axis_spec_to_tuple as axis_spec_to_tuple,
    make_axes as make_axes,
    to_jax_shape as to_jax_shape,
)
from ._src.axis_order import (
    rearrange_for_partial_order as rearrange_for_partial_order,
    replace_missing_with_ellipsis as replace_missing_with_ellipsis,
)
from ._src.axis_sets import (
    concat_axes as concat_axes,
    concat_axis_specs as concat_axis_specs,
    eliminate_axes as eliminate_axes,
    intersect_axes as intersect_axes,
    is_axis_compatible as is_axis_compatible,
    replace_axis as replace_axis,
    resolve_axis as resolve_axis,
    selects_axis as selects_axis,
    union_axes as union_axes,
    unsize_axes as unsize_axes,
    without_axes as without_axes,
)
from ._src.dslice import dblock as dblock, ds as ds, dslice as dslice
