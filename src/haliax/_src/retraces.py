"""How often a `named_jit` function was traced, and what changed from one signature to the next, in the user's terms.

A history is written only while JAX traces, so a usual call pays nothing for it.
"""

from __future__ import annotations

import dataclasses
import sys
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token

from haliax._src.differences import Signature, differences
from haliax._src.errors import bad_value
from haliax._src.jit_plan import Plan

# signatures that one wrapper remembers: enough to find the one that a retrace resembles
_REMEMBERED = 32

# lines of a message: the rest are more of the same
_MOST_LINES = 8


class RetraceWarning(UserWarning):
    """A `named_jit` function was traced more often than `haliax.debug.warn_on_retrace` allows."""


@dataclasses.dataclass(eq=False)
class _Setting:
    """One limit for the process, the one that it stands in for, and who may withdraw it."""

    limit: int | None = None
    before: _Setting | None = None
    owner: Callable[[], object] = lambda: None
    withdrawn: bool = False


class _ProcessLimit:
    """The limit of the process: it must reach threads that start later, as no ContextVar does.

    A call of `warn_on_retrace` can not know whether a `with` follows. So it sets the limit of the process, and a block
    withdraws that as it begins: whatever other threads have set in between, theirs stays, hence the lock and the chain.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = _Setting()

    @property
    def limit(self) -> int | None:
        return self._last.limit

    def set(self, limit: int | None, owner: object) -> _Setting:
        with self._lock:
            if self._last.owner() is None:
                self._last.before = None  # it can not be withdrawn any more, so nothing before it matters
            self._last = _Setting(limit, self._last, weakref.ref(owner))
            return self._last

    def withdraw(self, setting: _Setting) -> None:
        with self._lock:
            setting.withdrawn = True
            while self._last.withdrawn and self._last.before is not None:
                self._last = self._last.before


_process = _ProcessLimit()
_block: ContextVar[int | None] = ContextVar("haliax_retrace_limit")


class warn_on_retrace(AbstractContextManager[None]):
    """Warn when a `named_jit` function is traced more than `limit` times, and say what changed.

    A call holds from then on, for all threads of the process. As a context manager it holds in its block instead, for
    the thread or task that is in the block, whatever holds for the process.

    Args:
        limit: How many traces of one function are expected; None to stop warning.

    Raises:
        ValueError: If the limit is negative.
    """

    def __init__(self, limit: int | None = 1):
        if limit is not None and limit < 0:
            raise bad_value("warn_on_retrace", f"limit is {limit}", "expected at least 0, or None to stop warning")
        self._setting = _process.set(limit, self)
        self._tokens: list[Token[int | None]] = []

    def __enter__(self) -> None:
        _process.withdraw(self._setting)
        self._tokens.append(_block.set(self._setting.limit))

    def __exit__(self, *exception: object) -> None:
        _process.withdraw(self._setting)
        if self._tokens:
            _block.reset(self._tokens.pop())


class History:
    """The traces of one `named_jit` function.

    Args:
        name: The name of the function.
    """

    def __init__(self, name: str):
        self._name = name
        self._signatures: deque[Signature] = deque(maxlen=_REMEMBERED)
        self._lock = threading.Lock()
        self.traces = 0

    def traced(self, signature: Signature) -> None:
        """Record a trace, and warn if it is one too many."""
        with self._lock:
            self.traces += 1
            count, earlier = self.traces, list(self._signatures)
            self._remember(signature)
        limit = _block.get(_process.limit)
        if limit is not None and count > limit:
            message = (
                f"named_jit({self._name}): trace {count}, expected at most {limit}. {_reasons(signature, earlier)}"
            )
            warnings.warn(message, RetraceWarning, stacklevel=_depth_of_caller())

    def seen(self, signature: Signature) -> None:
        """Record a signature that is known with its layouts, whether or not it was traced just now."""
        with self._lock:
            self._remember(signature)

    def laid_out(self, plan: Plan, layouts: Sequence[str | None]) -> None:
        """Note the layouts of the first call of a program, which the trace itself does not see."""
        with self._lock:
            for i, known in enumerate(self._signatures):
                if known.plan is plan and not any(known.layouts):
                    self._signatures[i] = dataclasses.replace(known, layouts=tuple(layouts))
                    return

    def clear(self) -> None:
        """Forget all signatures, but not how many there were."""
        self._signatures.clear()

    def last_changes(self) -> list[str] | None:
        """What differs between the last two signatures; None if there are not two."""
        with self._lock:
            last = list(self._signatures)[-2:]
        return differences(*last) if len(last) == 2 else None

    def _remember(self, signature: Signature) -> None:
        """Put a signature last, in place of the one that says the same as far as both know."""
        for known in reversed(self._signatures):
            if known.agrees(signature):
                self._signatures.remove(known)
                pairs = zip(known.layouts, signature.layouts, strict=True)
                layouts = tuple(old if new is None else new for old, new in pairs)
                signature = dataclasses.replace(signature, layouts=layouts)
                break
        self._signatures.append(signature)


def abridged(lines: Sequence[str]) -> list[str]:
    """The first few lines, and how many more there are."""
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], f"... and {more} more"] if more > 0 else list(lines)


def _reasons(signature: Signature, earlier: Sequence[Signature]) -> str:
    """What changed against the signature that is most like this one; the later of two that are."""
    if not earlier:
        return "No earlier signature is known."
    changes = min((differences(known, signature) for known in reversed(earlier)), key=len)
    if not changes:
        return "The signature is one seen before: a cleared cache, another jax.config, or another transformation."
    return "\n  ".join(["Changed since the most similar one:", *abridged(changes)])


def _depth_of_caller() -> int:
    """The depth, for `warnings.warn`, of the frame that called into this package.

    From here outwards: this package, which is tracing; JAX; this package, which was called; its caller.
    """
    package = __name__.split(".")[0]
    depth, frame, changes = 1, sys._getframe(1), 0
    inside = True
    while frame.f_back is not None and changes < 3:
        frame, depth = frame.f_back, depth + 1
        now_inside = frame.f_globals.get("__name__", "").split(".")[0] == package
        changes, inside = changes + (now_inside != inside), now_inside
    return depth
