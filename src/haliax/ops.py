"""Functions of arrays that are neither elementwise nor reductions (see their modules in `haliax._src`)."""

from haliax._src.array_base import raw_array_or_scalar as raw_array_or_scalar
from haliax._src.bits import packbits as packbits
from haliax._src.bits import unpackbits as unpackbits
from haliax._src.comparison import allclose as allclose
from haliax._src.comparison import array_equal as array_equal
from haliax._src.comparison import array_equiv as array_equiv
from haliax._src.comparison import isclose as isclose
from haliax._src.matrices import trace as trace
from haliax._src.matrices import tril as tril
from haliax._src.matrices import triu as triu
from haliax._src.padding import pad as pad
from haliax._src.padding import pad_left as pad_left
from haliax._src.selection import clip as clip
from haliax._src.selection import nonzero as nonzero
from haliax._src.selection import where as where
from haliax._src.sets import bincount as bincount
from haliax._src.sets import searchsorted as searchsorted
from haliax._src.sets import unique as unique
from haliax._src.sets import unique_all as unique_all
from haliax._src.sets import unique_counts as unique_counts
from haliax._src.sets import unique_inverse as unique_inverse
from haliax._src.sets import unique_values as unique_values
