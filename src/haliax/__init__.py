"""Named tensors for legible, scalable deep learning in JAX."""

import haliax._src.installation as _installation
from haliax import (
    axis as axis,
    core as core,
    debug as debug,
    haxtyping as haxtyping,
    hof as hof,
    jax_utils as jax_utils,
    nn as nn,
    ops as ops,
    partitioning as partitioning,
    quantization as quantization,
    random as random,
    ref as ref,
    specialized_fns as specialized_fns,
    state_dict as state_dict,
    tree as tree,
    tree_util as tree_util,
    util as util,
    wrap as wrap,
)
from haliax.__about__ import __version__ as __version__
from haliax._src.annotations import NamedArrayAxes as NamedArrayAxes, NamedArrayAxesSpec as NamedArrayAxesSpec
from haliax._src.array_base import (
    A as A,
    NamedOrNumeric as NamedOrNumeric,
    are_shape_checks_enabled as are_shape_checks_enabled,
    enable_shape_checks as enable_shape_checks,
)
from haliax._src.axis import (
    Axis as Axis,
    AxisSelection as AxisSelection,
    AxisSelector as AxisSelector,
    AxisSpec as AxisSpec,
    axis_name as axis_name,
    axis_size as axis_size,
    axis_spec_to_tuple as axis_spec_to_tuple,
    make_axes as make_axes,
    to_jax_shape as to_jax_shape,
)
from haliax._src.axis_sets import (
    concat_axes as concat_axes,
    concat_axis_specs as concat_axis_specs,
    eliminate_axes as eliminate_axes,
    replace_axis as replace_axis,
    resolve_axis as resolve_axis,
    selects_axis as selects_axis,
)
from haliax._src.axiswise import (
    argsort as argsort,
    cumprod as cumprod,
    cumsum as cumsum,
    diff as diff,
    flip as flip,
    nancumprod as nancumprod,
    nancumsum as nancumsum,
    sort as sort,
)
from haliax._src.best_effort import best_effort_sharding as best_effort_sharding
from haliax._src.bits import packbits as packbits, unpackbits as unpackbits
from haliax._src.broadcasting import (
    broadcast_arrays as broadcast_arrays,
    broadcast_axis as broadcast_axis,
    broadcast_to as broadcast_to,
)
from haliax._src.checkpointing import ScanCheckpointPolicy as ScanCheckpointPolicy
from haliax._src.comparison import (
    allclose as allclose,
    array_equal as array_equal,
    array_equiv as array_equiv,
    isclose as isclose,
)
from haliax._src.creation import (
    arange as arange,
    full as full,
    full_like as full_like,
    geomspace as geomspace,
    linspace as linspace,
    logspace as logspace,
    named as named,
    ones as ones,
    ones_like as ones_like,
    zeros as zeros,
    zeros_like as zeros_like,
)
from haliax._src.dot import dot as dot
from haliax._src.dslice import dblock as dblock, ds as ds, dslice as dslice
from haliax._src.einsum import einsum as einsum
from haliax._src.elementwise import (
    abs as abs,
    absolute as absolute,
    add as add,
    angle as angle,
    arccos as arccos,
    arccosh as arccosh,
    arcsin as arcsin,
    arcsinh as arcsinh,
    arctan as arctan,
    arctan2 as arctan2,
    arctanh as arctanh,
    around as around,
    bitwise_and as bitwise_and,
    bitwise_count as bitwise_count,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
    cbrt as cbrt,
    ceil as ceil,
    conj as conj,
    conjugate as conjugate,
    copy as copy,
    copysign as copysign,
    cos as cos,
    cosh as cosh,
    deg2rad as deg2rad,
    degrees as degrees,
    divide as divide,
    divmod as divmod,
    equal as equal,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    fabs as fabs,
    fix as fix,
    float_power as float_power,
    floor as floor,
    floor_divide as floor_divide,
    fmax as fmax,
    fmin as fmin,
    fmod as fmod,
    frexp as frexp,
    gcd as gcd,
    greater as greater,
    greater_equal as greater_equal,
    heaviside as heaviside,
    hypot as hypot,
    i0 as i0,
    imag as imag,
    invert as invert,
    iscomplex as iscomplex,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    isneginf as isneginf,
    isposinf as isposinf,
    isreal as isreal,
    lcm as lcm,
    left_shift as left_shift,
    less as less,
    less_equal as less_equal,
    log as log,
    log1p as log1p,
    log2 as log2,
    log10 as log10,
    logaddexp as logaddexp,
    logaddexp2 as logaddexp2,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    mod as mod,
    modf as modf,
    multiply as multiply,
    nan_to_num as nan_to_num,
    ndim as ndim,
    negative as negative,
    nextafter as nextafter,
    not_equal as not_equal,
    positive as positive,
    power as power,
    rad2deg as rad2deg,
    radians as radians,
    real as real,
    reciprocal as reciprocal,
    remainder as remainder,
    right_shift as right_shift,
    rint as rint,
    round as round,
    rsqrt as rsqrt,
    sign as sign,
    signbit as signbit,
    sin as sin,
    sinc as sinc,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    tan as tan,
    tanh as tanh,
    true_divide as true_divide,
    trunc as trunc,
)
from haliax._src.indexing import index as index, take as take
from haliax._src.jax_helpers import tree_checkpoint_name as tree_checkpoint_name
from haliax._src.joining import concatenate as concatenate, repeat as repeat, stack as stack, tile as tile
from haliax._src.make_mesh import make_mesh as make_mesh
from haliax._src.matrices import trace as trace, tril as tril, triu as triu
from haliax._src.named_array import NamedArray as NamedArray
from haliax._src.named_jit import fsdp as fsdp, named_jit as named_jit
from haliax._src.padding import pad as pad, pad_left as pad_left
from haliax._src.quantiles import (
    median as median,
    nanmedian as nanmedian,
    nanpercentile as nanpercentile,
    nanquantile as nanquantile,
    percentile as percentile,
    quantile as quantile,
)
from haliax._src.rearrange import rearrange as rearrange
from haliax._src.reductions import (
    all as all,
    amax as amax,
    amin as amin,
    any as any,
    argmax as argmax,
    argmin as argmin,
    count_nonzero as count_nonzero,
    max as max,
    mean as mean,
    min as min,
    nanargmax as nanargmax,
    nanargmin as nanargmin,
    nanmax as nanmax,
    nanmean as nanmean,
    nanmin as nanmin,
    nanprod as nanprod,
    nanstd as nanstd,
    nansum as nansum,
    nanvar as nanvar,
    prod as prod,
    product as product,
    ptp as ptp,
    std as std,
    sum as sum,
    var as var,
)
from haliax._src.reshape import (
    flatten as flatten,
    flatten_axes as flatten_axes,
    ravel as ravel,
    rename as rename,
    roll as roll,
    split as split,
    unbind as unbind,
    unflatten_axis as unflatten_axis,
)
from haliax._src.resources import axis_mapping as axis_mapping
from haliax._src.scan import fold as fold, map as map, scan as scan
from haliax._src.selection import clip as clip, nonzero as nonzero, top_k as top_k, where as where
from haliax._src.sets import (
    bincount as bincount,
    searchsorted as searchsorted,
    unique as unique,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from haliax._src.shard_map import shard_map as shard_map
from haliax._src.sharding import (
    auto_sharded as auto_sharded,
    set_mesh as set_mesh,
    shard as shard,
    shard_with_axis_mapping as shard_with_axis_mapping,
)
from haliax._src.slicing import slice as slice, updated_slice as updated_slice
from haliax._src.tree import is_named_array as is_named_array
from haliax._src.util import T as T
from haliax._src.vmap import vmap as vmap
from haliax._src.wrapping import (
    ReductionFunction as ReductionFunction,
    SimpleReductionFunction as SimpleReductionFunction,
    wrap_axiswise_call as wrap_axiswise_call,
    wrap_elemwise_binary as wrap_elemwise_binary,
    wrap_elemwise_unary as wrap_elemwise_unary,
    wrap_reduction_call as wrap_reduction_call,
)
from haliax.fft import (
    fft as fft,
    fftfreq as fftfreq,
    fftshift as fftshift,
    hfft as hfft,
    ifft as ifft,
    ifftshift as ifftshift,
    ihfft as ihfft,
    irfft as irfft,
    rfft as rfft,
    rfftfreq as rfftfreq,
)
from haliax.field import field as field
from haliax.haxtyping import Named as Named
from haliax.poly import (
    poly as poly,
    polyadd as polyadd,
    polyder as polyder,
    polydiv as polydiv,
    polyfit as polyfit,
    polyint as polyint,
    polymul as polymul,
    polysub as polysub,
    polyval as polyval,
    roots as roots,
    trim_zeros as trim_zeros,
    vander as vander,
)
from haliax.ref import NamedRef as NamedRef, freeze as freeze, get as get, new_ref as new_ref, swap as swap
from haliax.types import DTypeLike as DTypeLike, Scalar as Scalar

_installation.warn_if_mixed(__path__[0])

# fmt: off
__all__ = [
    "A", "Axis", "AxisSelection", "AxisSelector", "AxisSpec", "DTypeLike", "Named", "NamedArray", "NamedArrayAxes",
    "NamedArrayAxesSpec", "NamedOrNumeric", "NamedRef", "ReductionFunction", "Scalar", "ScanCheckpointPolicy",
    "SimpleReductionFunction", "T",
    "abs", "absolute", "add", "all", "allclose", "amax", "amin", "angle", "any", "arange", "arccos", "arccosh",
    "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "are_shape_checks_enabled", "argmax", "argmin", "argsort",
    "around", "array_equal", "array_equiv", "auto_sharded", "axis", "axis_mapping", "axis_name", "axis_size",
    "axis_spec_to_tuple", "best_effort_sharding", "bincount", "bitwise_and", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "broadcast_arrays",
    "broadcast_axis", "broadcast_to", "cbrt", "ceil", "clip", "concat_axes", "concat_axis_specs", "concatenate",
    "conj", "conjugate", "copy", "copysign", "core", "cos", "cosh", "count_nonzero", "cumprod", "cumsum", "dblock",
    "debug", "deg2rad", "degrees", "diff", "divide", "divmod", "dot", "ds", "dslice", "einsum", "eliminate_axes",
    "enable_shape_checks", "equal", "exp", "exp2", "expm1", "fabs", "fft", "fftfreq", "fftshift", "field", "fix",
    "flatten", "flatten_axes", "flip", "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "fold",
    "freeze", "frexp", "fsdp", "full", "full_like", "gcd", "geomspace", "get", "greater", "greater_equal", "haxtyping",
    "heaviside", "hfft", "hof", "hypot", "i0", "ifft", "ifftshift", "ihfft", "imag", "index", "invert", "irfft",
    "is_named_array", "isclose", "iscomplex", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal",
    "jax_utils", "lcm", "left_shift", "less", "less_equal", "linspace", "log", "log1p", "log2", "log10", "logaddexp",
    "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logspace", "make_axes", "make_mesh",
    "map", "max", "maximum", "mean", "median", "min", "minimum", "mod", "modf", "multiply", "named", "named_jit",
    "nan_to_num", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin",
    "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "ndim", "negative", "new_ref",
    "nextafter", "nn", "nonzero", "not_equal", "ones", "ones_like", "ops", "packbits", "pad", "pad_left",
    "partitioning", "percentile", "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub",
    "polyval", "positive", "power", "prod", "product", "ptp", "quantile", "quantization", "rad2deg", "radians",
    "random", "ravel", "real", "rearrange", "reciprocal", "ref", "remainder", "rename", "repeat", "replace_axis",
    "resolve_axis", "rfft", "rfftfreq", "right_shift", "rint", "roll", "roots", "round", "rsqrt", "scan",
    "searchsorted", "selects_axis", "set_mesh", "shard", "shard_map", "shard_with_axis_mapping", "sign", "signbit",
    "sin", "sinc", "sinh", "slice", "sort", "specialized_fns", "split", "sqrt", "square", "stack", "state_dict", "std",
    "subtract", "sum", "swap", "take", "tan", "tanh", "tile", "to_jax_shape", "top_k", "trace", "tree",
    "tree_checkpoint_name", "tree_util", "tril", "trim_zeros", "triu", "true_divide", "trunc", "unbind",
    "unflatten_axis", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unpackbits",
    "updated_slice", "util", "vander", "var", "vmap", "where", "wrap", "wrap_axiswise_call", "wrap_elemwise_binary",
    "wrap_elemwise_unary", "wrap_reduction_call", "zeros", "zeros_like",
]
# fmt: on
