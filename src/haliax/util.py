"""Small helpers."""

from ._src.tree import is_jax_or_hax_array_like as is_jax_or_hax_array_like
from ._src.tree import is_named_array as is_named_array
from ._src.util import UNSPECIFIED as UNSPECIFIED
from ._src.util import StringHolderEnum as StringHolderEnum
from ._src.util import T as T
from ._src.util import Unspecified as Unspecified
from ._src.util import ensure_tuple as ensure_tuple
from ._src.util import maybe_untuple as maybe_untuple
from ._src.util import safe_update_wrapper as safe_update_wrapper
from ._src.util import safe_wraps as safe_wraps
