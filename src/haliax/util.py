"""Small helpers."""

from ._src.tree import is_jax_or_hax_array_like as is_jax_or_hax_array_like, is_named_array as is_named_array
from ._src.util import (
    UNSPECIFIED as UNSPECIFIED,
    StringHolderEnum as StringHolderEnum,
    T as T,
    Unspecified as Unspecified,
    ensure_tuple as ensure_tuple,
    maybe_untuple as maybe_untuple,
    safe_update_wrapper as safe_update_wrapper,
    safe_wraps as safe_wraps,
)
