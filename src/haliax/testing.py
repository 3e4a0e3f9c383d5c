"""Decorators for tests that need something which not every machine has.

pytest is imported when a test is skipped, so that haliax needs it nowhere else.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Any, TypeVar

import jax

T = TypeVar("T", bound=Callable[..., Any])


def has_torch() -> bool:
    """Whether PyTorch is installed."""
    return importlib.util.find_spec("torch") is not None


def skip_if_no_torch(f: T) -> T:
    """Skip a test where PyTorch is not installed.

    Args:
        f: The test.

    Returns:
        A test that asks when it runs.
    """
    return _skip_unless(has_torch, "torch is not installed")(f)


def skip_if_not_enough_devices(count: int, reason: str | None = None) -> Callable[[T], T]:
    """Skip a test where JAX has too few devices.

    Args:
        count: How many devices the test needs.
        reason: What to report; the count by default.

    Returns:
        A decorator for tests. It asks for the devices when the test runs, so that importing the test starts no backend.
    """
    return _skip_unless(lambda: jax.device_count() >= count, reason or f"needs {count} devices")


def _skip_unless(condition: Callable[[], bool], reason: str) -> Callable[[T], T]:
    def decorate(f: T) -> T:
        @functools.wraps(f)
        def test(*args: Any, **kwargs: Any) -> Any:
            if not condition():
                import pytest  # noqa: PLC0415  (optional)

                pytest.skip(reason)
            return f(*args, **kwargs)

        return test  # pyright: ignore[reportReturnType]

    return decorate
