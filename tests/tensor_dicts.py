"""Tensors by name, for the tests of files of them."""

from __future__ import annotations

import numpy as np


def values(shape, dtype=np.float32) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 100 + 1).reshape(shape).astype(dtype)


def equal(have, want) -> bool:
    """Whether two state dicts have the same arrays, bit by bit."""
    assert have.keys() == want.keys()
    for name, array in want.items():
        mine, theirs = np.asarray(have[name]), np.asarray(array)
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape and mine.tobytes() == theirs.tobytes(), name
    return True


PARTS = {"a": values((4, 4)), "b": values((2, 4)), "c": values((8, 4)), "d": values(())}
