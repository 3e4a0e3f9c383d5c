"""Named arrays, and the operations on their names and shapes."""

from ._src.annotations import NamedArrayAxes as NamedArrayAxes, NamedArrayAxesSpec as NamedArrayAxesSpec
from ._src.array_base import (
    NamedOrNumeric as NamedOrNumeric,
    are_shape_checks_enabled as are_shape_checks_enabled,
    check_shape as check_shape,
    enable_shape_checks as enable_shape_checks,
)
from ._src.broadcasting import (
    broadcast_arrays as broadcast_arrays,
    broadcast_arrays_and_return_axes as broadcast_arrays_and_return_axes,
    broadcast_axis as broadcast_axis,
    broadcast_to as broadcast_to,
)
from ._src.creation import named as named
from ._src.index_items import NamedIndex as NamedIndex, SliceSpec as SliceSpec
from ._src.indexing import index as index, take as take
from ._src.named_array import NamedArray as NamedArray, NamedArrayMeta as NamedArrayMeta
from ._src.reshape import (
    flatten as flatten,
    flatten_all_axes_but as flatten_all_axes_but,
    flatten_axes as flatten_axes,
    ravel as ravel,
    rename as rename,
    roll as roll,
    split as split,
    unbind as unbind,
    unflatten_axis as unflatten_axis,
)
from ._src.slicing import slice as slice, updated_slice as updated_slice
from .types import GatherScatterModeStr as GatherScatterModeStr
