"""Contractions of low precision for layers."""

from haliax._src.dot_general import DefaultDotGeneralOp as DefaultDotGeneralOp
from haliax._src.dot_general import DotGeneralOp as DotGeneralOp
