"""Axes and selections of them."""

import haliax as hax
from errors.arrays import A_MAPPING, ANY_FORM, HAS, SIZED, B, E, T, X
from haliax import Axis

CASES = [
    (lambda: hax.axis_name(3), TypeError, f"axis_name: the axes are an int; {ANY_FORM}"),
    (lambda: hax.axis_name(None), TypeError, f"axis_name: the axes are None; {ANY_FORM}"),
    (lambda: hax.axis_name((B, 3)), TypeError, "axis_name: entry 1 of the axes is an int; expected an Axis or a name."),
    (lambda: hax.axis_size("a"), ValueError, f"axis_size: axis 'a' has no size; {SIZED}"),
    (lambda: hax.axis_size(None), TypeError, f"axis_size: the axes are None; {ANY_FORM}"),
    (lambda: hax.to_jax_shape("a"), ValueError, f"to_jax_shape: axis 'a' has no size; {SIZED}"),
    (lambda: hax.to_jax_shape(None), TypeError, f"to_jax_shape: the axes are None; {ANY_FORM}"),
    (lambda: hax.axis_spec_to_tuple(None), TypeError, f"axis_spec_to_tuple: the axes are None; {ANY_FORM}"),
    (
        lambda: hax.axis.axis_spec_to_shape_dict((B, Axis("batch", 5))),
        ValueError,
        "axis_spec_to_shape_dict: axis 'batch' has size 5; expected 2.",
    ),
    (lambda: hax.concat_axes(B, B), ValueError, "concat_axes: axis 'batch' occurs more than once in (batch, batch)."),
    (lambda: hax.concat_axes(B, None), TypeError, f"concat_axes: the axes are None; {ANY_FORM}"),
    (
        lambda: hax.concat_axes((B, T), (T,)),
        ValueError,
        "concat_axes: axis 'time' occurs more than once in (batch, time, time).",
    ),
    (
        lambda: hax.eliminate_axes((B, T), "tiem"),
        ValueError,
        "eliminate_axes: no axis 'tiem'; the axes are batch=2, time=3. Did you mean 'time'?",
    ),
    (
        lambda: hax.eliminate_axes((B, T), Axis("time", 7)),
        ValueError,
        "eliminate_axes: axis 'time' has size 7; expected 3.",
    ),
    (lambda: hax.eliminate_axes((B, T), None), TypeError, f"eliminate_axes: the axes are None; {ANY_FORM}"),
    (lambda: hax.replace_axis((B, T), "x", E), ValueError, "replace_axis: no axis 'x'; the axes are batch=2, time=3."),
    (
        lambda: hax.replace_axis((B, T), ("batch", "time"), E),
        TypeError,
        "replace_axis: old is a tuple; expected an Axis or a name.",
    ),
    (
        lambda: hax.replace_axis((B, T), "batch", T),
        ValueError,
        "replace_axis: axis 'time' occurs more than once in (time, time).",
    ),
    (lambda: hax.replace_axis((B, T), "batch", None), TypeError, f"replace_axis: the axes are None; {ANY_FORM}"),
    (lambda: hax.resolve_axis((B, T), "x"), ValueError, "resolve_axis: no axis 'x'; the axes are batch=2, time=3."),
    (
        lambda: hax.resolve_axis((B, T), Axis("time", 7)),
        ValueError,
        "resolve_axis: axis 'time' has size 7; expected 3.",
    ),
    (lambda: hax.resolve_axis(("batch",), "batch"), ValueError, f"resolve_axis: axis 'batch' has no size; {SIZED}"),
    (lambda: hax.resolve_axis(None, "batch"), TypeError, f"resolve_axis: the axes are None; {ANY_FORM}"),
    (lambda: hax.selects_axis(None, "a"), TypeError, f"selects_axis: the axes are None; {ANY_FORM}"),
    (lambda: hax.axis.union_axes(B, Axis("batch", 3)), ValueError, "union_axes: axis 'batch' has size 3; expected 2."),
    (
        lambda: hax.axis.intersect_axes((B, T), Axis("batch", 3)),
        ValueError,
        "intersect_axes: axis 'batch' has size 3; expected 2.",
    ),
    (
        lambda: hax.axis.without_axes((B, T), Axis("batch", 3)),
        ValueError,
        "without_axes: axis 'batch' has size 3; expected 2.",
    ),
    (lambda: hax.axis.unsize_axes((B, T), "z"), ValueError, "unsize_axes: no axis 'z'; the axes are batch=2, time=3."),
    (
        lambda: hax.axis.is_axis_compatible((B,), B),
        TypeError,
        "is_axis_compatible: ax1 is a tuple; expected an Axis or a name.",
    ),
    (
        lambda: hax.axis.rearrange_for_partial_order(("a", "b"), (..., "c")),
        TypeError,
        "rearrange_for_partial_order: entry 0 of the axes is `...`; expected an Axis or a name.",
    ),
    (
        lambda: hax.axis.axis_spec_to_shape_dict(3),
        TypeError,
        f"axis_spec_to_shape_dict: the axes are an int; {ANY_FORM}",
    ),
    (lambda: hax.ds(0, -1), ValueError, "dslice: length is -1; expected at least 0."),
    (
        lambda: hax.ds(0, "a"),
        TypeError,
        (
            "dslice: length is a string; expected an int or an Axis. The size of a slice is a part of "
            "the shape: it can not be traced."
        ),
    ),
    (lambda: hax.ds("a", 2), TypeError, "dslice: start is a string; expected an integer or an array of integers."),
    (
        lambda: hax.dblock(0, 1.5),
        TypeError,
        (
            "dslice: size is a float; expected an int or an Axis. The size of a slice is a part of the "
            "shape: it can not be traced."
        ),
    ),
    (lambda: hax.ds(0.5, 2), TypeError, "dslice: start is a float; expected an integer or an array of integers."),
    (lambda: X.resolve_axis("tiem"), ValueError, f"resolve_axis: no axis 'tiem'; {HAS}. Did you mean 'time'?"),
    (lambda: X.resolve_axis(0), TypeError, f"resolve_axis: the axes are an int; {ANY_FORM}"),
    (lambda: X.resolve_axis(("batch", "z")), ValueError, f"resolve_axis: no axis 'z'; {HAS}."),
    (lambda: X.axis_size("tiem"), ValueError, f"axis_size: no axis 'tiem'; {HAS}. Did you mean 'time'?"),
    (lambda: X.axis_size(0), TypeError, f"axis_size: the axes are an int; {ANY_FORM}"),
    (lambda: X.has_axis(None), TypeError, f"has_axis: the axes are None; {ANY_FORM}"),
    (lambda: X.has_axis(0), TypeError, f"has_axis: the axes are an int; {ANY_FORM}"),
    (lambda: X.axis_indices(None), TypeError, f"axis_indices: the axes are None; {ANY_FORM}"),
    (lambda: X.axis_indices(0), TypeError, f"axis_indices: the axes are an int; {ANY_FORM}"),
    (lambda: hax.axis_mapping(3).__enter__(), TypeError, f"axis mapping: the mapping is an int; {A_MAPPING}"),
    (
        lambda: hax.axis_mapping({3: "data"}).__enter__(),
        TypeError,
        "axis mapping: a key is an int; expected the name of an axis.",
    ),
    (lambda: hax.axis_mapping(None).__enter__(), TypeError, f"axis_mapping: mapping is None; {A_MAPPING}"),
]
