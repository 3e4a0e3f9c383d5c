"""Higher-order functions along named axes."""

from ._src.scan import fold as fold
from ._src.scan import map as map
from ._src.scan import scan as scan
from ._src.vmap import vmap as vmap
