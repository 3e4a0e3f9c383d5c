"""Named tensors for legible, scalable deep learning in JAX."""

from haliax._src.axis import Axis as Axis
from haliax._src.dot import dot as dot
from haliax._src.named_array import NamedArray as NamedArray
