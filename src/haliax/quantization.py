"""Contractions of low precision for layers."""

from haliax._src.dot_general import DefaultDotGeneralOp as DefaultDotGeneralOp, DotGeneralOp as DotGeneralOp
