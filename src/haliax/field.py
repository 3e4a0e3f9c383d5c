"""Fields of Equinox modules that know the names of their axes."""

from __future__ import annotations

from typing import Any

import equinox as eqx


def field(*, converter: Any = None, static: bool = False, axis_names: Any = None, **kwargs: Any) -> Any:
    """An Equinox module field that also records axis names in its metadata.

    Args:
        converter: Applied to the value when the module is made.
        static: Whether the field is part of the structure rather than a leaf.
        axis_names: Names for the axes of the value, kept as `metadata["axis_names"]`.
        **kwargs: Passed to `equinox.field`.

    Returns:
        A dataclass field.

    Raises:
        ValueError: If a static field is given axis names.

    Source:
        `equinox.field`
    """
    if static and axis_names is not None:
        raise ValueError("field: static=True and axis_names were given; expected one of them. Only arrays have axes.")
    metadata = dict(kwargs.pop("metadata", None) or {})
    if axis_names is not None:
        metadata["axis_names"] = axis_names
    if converter is not None:
        kwargs["converter"] = converter
    return eqx.field(static=static, metadata=metadata, **kwargs)
