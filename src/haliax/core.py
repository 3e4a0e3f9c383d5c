"""Named arrays, and the operations on their names and shapes."""

from ._src.array_base import are_shape_checks_enabled as are_shape_checks_enabled
from ._src.array_base import check_shape as check_shape
from ._src.array_base import enable_shape_checks as enable_shape_checks
from ._src.broadcasting import broadcast_arrays as broadcast_arrays
from ._src.broadcasting import broadcast_arrays_and_return_axes as broadcast_arrays_and_return_axes
from ._src.broadcasting import broadcast_axis as broadcast_axis
from ._src.broadcasting import broadcast_to as broadcast_to
from ._src.creation import named as named
from ._src.indexing import index as index
from ._src.indexing import take as take
from ._src.named_array import NamedArray as NamedArray
from ._src.named_array import NamedArrayMeta as NamedArrayMeta
from ._src.reshape import flatten as flatten
from ._src.reshape import flatten_all_axes_but as flatten_all_axes_but
from ._src.reshape import flatten_axes as flatten_axes
from ._src.reshape import ravel as ravel
from ._src.reshape import rename as rename
from ._src.reshape import roll as roll
from ._src.reshape import split as split
from ._src.reshape import unbind as unbind
from ._src.reshape import unflatten_axis as unflatten_axis
from ._src.slicing import slice as slice
from ._src.slicing import updated_slice as updated_slice
