"""The largest elements along an axis, under the name that users know."""

from haliax._src.selection import top_k as top_k
