"""Making named operations of functions on raw arrays."""

from ._src.wrapping import (
    ReductionFunction as ReductionFunction,
    SimpleReductionFunction as SimpleReductionFunction,
    unwrap_namedarrays as unwrap_namedarrays,
    wrap_axiswise_call as wrap_axiswise_call,
    wrap_elemwise_binary as wrap_elemwise_binary,
    wrap_elemwise_unary as wrap_elemwise_unary,
    wrap_reduction_call as wrap_reduction_call,
)
