"""An operation on a raw array at an index of `jax.numpy`, mapped over the axes that the index shares with the array.

Shared axes are batch axes: the operation is mapped over them with `jax.vmap`, so that it lowers to a batched gather or
scatter and they stay as they are laid out. A mapped operation is compiled as a whole, inside a trace too, as tracing it
anew takes milliseconds; everything but arrays is in its two static arguments.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from haliax._src.array_base import NamedArrayBase
from haliax._src.broadcasting import alignment
from haliax._src.index_items import ALL, Items
from haliax._src.index_plan import Names, Plan


class Step(NamedTuple):
    """What to do at an index: `take` the elements as `x[...]` does, or a method of `x.at[...]` with its options."""

    method: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def reads(self) -> bool:
        """Whether the result is the elements, not the array with them updated."""
        return self.method in ("take", "get")

    @property
    def has_mode(self) -> bool:
        """Whether it says what happens out of bounds."""
        return bool(self.options) and dict(self.options).get("mode") is not None

    @property
    def is_static(self) -> bool:
        """Whether it can be compiled; a function to apply may be a new one each time, and be kept each time."""
        if not self.options:
            return True
        return self.method != "apply" and all(isinstance(value, Hashable) for _, value in self.options)

    def __call__(self, x: Any, at: tuple[Any, ...], update: Any) -> Any:
        """Do it with a raw array, an index of `jax.numpy`, and an update, which not all methods take."""
        if self.method == "take":
            return x[at]
        if self.method == "set" and all(item is ALL for item in at) and jnp.result_type(x, update) == x.dtype:
            return jnp.broadcast_to(jnp.asarray(update, x.dtype), x.shape)  # no scatter to replace a window as a whole
        updates = () if self.method in ("get", "apply") else (update,)
        return getattr(x.at[at], self.method)(*updates, **dict(self.options))


TAKE = Step("take")


def step(method: str, options: Mapping[str, Any]) -> Step:
    """The step for a method of `x.at[...]`."""
    return Step(method, tuple(sorted(options.items())))


def or_zero(reading: Step) -> Step:
    """The step that reads what another one does, and zero out of bounds."""
    return step("get", {**dict(reading.options), "mode": "fill", "fill_value": 0})


class Frame(NamedTuple):
    """The names and the static items around a step."""

    names: Names
    """The axes of the array."""
    paired: Names
    """Those of them that are mapped over."""
    out: Names
    """The axes of the result."""
    static: tuple[tuple[int, Any], ...]
    """The dimensions indexed by an integer, or by a slice as the tuple of its bounds."""
    dynamic: tuple[tuple[int, Names], ...]
    """The dimensions indexed by an array, and its axes."""
    update: Names
    """The axes of the update."""


def at_index(step: Step, x: Any, names: Names, items: Items, plan: Plan, out: Names, update: Any = None) -> Any:
    """Do a step with a raw array, mapped over its paired axes.

    Args:
        step: What to do.
        x: The raw array.
        names: Its axes.
        items: What to take of each dimension; no windows.
        plan: The plan for these items.
        out: The axes of the result.
        update: A scalar, or a named array with axes among those of the elements.

    Returns:
        A raw array with axes `out`.
    """
    paired, block, inner = plan.paired, plan.block, plan.inner
    compiled = bool(paired) and step.is_static
    static: list[tuple[int, Any]] = []
    dynamic: list[tuple[int, Names]] = []
    indices: list[Any] = []
    for dim, item in items.items():
        if isinstance(item, NamedArrayBase):
            dynamic.append((dim, item.axis_names))
            indices.append(_batch_first(item, paired, block))
        elif isinstance(item, slice):
            static.append((dim, (item.start, item.stop, item.step)))
        elif isinstance(item, int) and not compiled:
            static.append((dim, item))
        else:  # compiled once for all integers
            dynamic.append((dim, ()))
            indices.append(item)
    update_axes = ()
    if isinstance(update, NamedArrayBase):
        update_axes, update = update.axis_names, _batch_first(update, paired, inner)
    frame = Frame(names, paired, out, tuple(static), tuple(dynamic), update_axes)
    run = _run_compiled if compiled else _run
    return run(step, frame, x, indices, update)


def _batch_first(array: NamedArrayBase, paired: Names, names: Names) -> Any:
    """The data of an array: the paired axes that it has, then all of `names`, with size 1 for those that it lacks."""
    batch = tuple(name for name in paired if name in array.axis_names)
    return alignment(array.axis_names, (*batch, *names))(array.array)


def _run(step: Step, frame: Frame, x: Any, indices: list[Any], update: Any) -> Any:
    static = {dim: slice(*item) if isinstance(item, tuple) else item for dim, item in frame.static}
    dims = [dim for dim, name in enumerate(frame.names) if name not in frame.paired]
    last = max((dim for dim, _ in (*frame.static, *frame.dynamic)), default=-1)

    def mapped(x: Any, indices: list[Any], update: Any) -> Any:
        items = {**static, **{dim: index for (dim, _), index in zip(frame.dynamic, indices, strict=True)}}
        return step(x, tuple(items.get(dim, ALL) for dim in dims if dim <= last), update)

    fn = mapped
    for level in reversed(range(len(frame.paired))):
        name, outer = frame.paired[level], frame.paired[:level]
        here, there = ([n for n in names if n not in outer].index(name) for names in (frame.names, frame.out))
        shared = [0 if name in axes else None for _, axes in frame.dynamic]
        fn = jax.vmap(fn, in_axes=(here, shared, 0 if name in frame.update else None), out_axes=there)
    return fn(x, indices, update)


_run_compiled = jax.jit(_run, static_argnums=(0, 1), inline=True)
