"""Higher-order functions along named axes."""

from ._src.scan import fold as fold, map as map, scan as scan
from ._src.vmap import vmap as vmap
