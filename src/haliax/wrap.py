"""Making named operations of functions on raw arrays."""

from ._src.wrapping import ReductionFunction as ReductionFunction
from ._src.wrapping import SimpleReductionFunction as SimpleReductionFunction
from ._src.wrapping import unwrap_namedarrays as unwrap_namedarrays
from ._src.wrapping import wrap_axiswise_call as wrap_axiswise_call
from ._src.wrapping import wrap_elemwise_binary as wrap_elemwise_binary
from ._src.wrapping import wrap_elemwise_unary as wrap_elemwise_unary
from ._src.wrapping import wrap_reduction_call as wrap_reduction_call
