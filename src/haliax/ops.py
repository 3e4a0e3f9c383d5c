"""Functions of arrays that are neither elementwise nor reductions (see their modules in `haliax._src`)."""

from haliax._src.array_base import raw_array_or_scalar as raw_array_or_scalar
from haliax._src.bits import packbits as packbits, unpackbits as unpackbits
from haliax._src.comparison import (
    allclose as allclose,
    array_equal as array_equal,
    array_equiv as array_equiv,
    isclose as isclose,
)
from haliax._src.matrices import trace as trace, tril as tril, triu as triu
from haliax._src.padding import pad as pad, pad_left as pad_left
from haliax._src.selection import clip as clip, nonzero as nonzero, where as where
from haliax._src.sets import (
    bincount as bincount,
    searchsorted as searchsorted,
    unique as unique,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
)
