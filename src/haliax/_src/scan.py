"""Loops along an axis by name: `scan`, `fold` and `map` are `jax.lax.scan` on arrays with that axis in front.

What runs along the axis is sliced in each step and loses it; all else is shared by the steps; outputs are stacked along
the axis, in front.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.tree_util import keystr

from haliax._src.along import Along, along, with_axis
from haliax._src.array_base import NamedArrayBase
from haliax._src.axis import AxisSelector
from haliax._src.checkpointing import (
    ScanCheckpointPolicy,
    find_closest_divisible_int_to_sqrt as find_closest_divisible_int_to_sqrt,
)
from haliax._src.errors import check_callable, check_integer, kind, problem, wrong_type
from haliax._src.explicit_axes import explicit_mesh
from haliax._src.explicit_loops import CarryLayout, keep_layouts
from haliax._src.jax_helpers import Static, is_jax_array_like, multilevel_scan
from haliax._src.tree import is_jax_or_hax_array_like, is_named_array, tree_flatten, tree_leaves
from haliax._src.util import safe_wraps

Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")
Args = ParamSpec("Args")
Remat = bool | str | ScanCheckpointPolicy
IsScanned = bool | Callable[[Any], bool]


class ScanFn(Protocol[Carry, Args, Y]):  # pyright: ignore[reportInvalidTypeVarUse]  (Y is invariant elsewhere)
    """A loop: from an initial carry and inputs to the last carry and stacked outputs."""

    def __call__(self, carry: Carry, *args: Args.args, **kwargs: Args.kwargs) -> tuple[Carry, Y]:
        """Run all steps."""
        ...


def is_named_or_shaped_array_like(x: Any) -> bool:
    """Whether `x` is a NamedArray, or a raw array with at least one dimension."""
    return is_named_array(x) or (is_jax_array_like(x) and len(x.shape) > 0)


def scan(
    f: Callable[Concatenate[Carry, Args], tuple[Carry, Y]],
    axis: AxisSelector,
    *,
    remat: Remat = False,
    reverse: bool = False,
    unroll: int | bool = 1,
    is_scanned: IsScanned = is_named_or_shaped_array_like,
) -> ScanFn[Carry, Args, Y]:
    """Loop along an axis with a carry, and stack what each step gives.

    Args:
        f: The step, from carry and inputs to a pair of the next carry and an output.
        axis: The axis to loop along. A name suffices where an input has the axis.
        remat: What to keep for the backward pass: a `ScanCheckpointPolicy` or a short form of one.
        reverse: Whether to begin at the end.
        unroll: How many steps the compiled loop does at once; True for all.
        is_scanned: Which of the input's leaves may be sliced: a condition, or a bool for all. Of these, named arrays
            are if they have the axis, raw arrays along their first dimension.

    Returns:
        A function of the initial carry and of the inputs, which are all other arguments. It returns the last carry
        and the outputs, whose arrays have the axis in front.

    Raises:
        ValueError: When called, if sizes differ or nothing gives the size of the axis.
        TypeError: When called, if `f` changes the structure, names, shapes or dtypes of the carry.

    Source:
        `jax.lax.scan`
    """
    check_callable("scan", f)

    @safe_wraps(f)
    def scanned(init: Any, *args: Any, **kwargs: Any) -> Any:
        return _scan("scan", f, axis, remat, reverse, unroll, is_scanned, init, args, kwargs)

    return scanned  # pyright: ignore[reportReturnType]


def fold(
    fn: Callable[Concatenate[Carry, Args], Carry],
    axis: AxisSelector,
    *,
    remat: Remat = False,
    reverse: bool = False,
    unroll: int | bool = 1,
    is_scanned: IsScanned = is_named_or_shaped_array_like,
) -> Callable[Concatenate[Carry, Args], Carry]:
    """Loop along an axis with a carry: `scan` without outputs.

    Args:
        fn: The step, from carry and inputs to the next carry.
        axis: The axis to loop along. A name suffices where an input has the axis.
        remat: What to keep for the backward pass: a `ScanCheckpointPolicy` or a short form of one.
        reverse: Whether to begin at the end.
        unroll: How many steps the compiled loop does at once; True for all.
        is_scanned: Which of the input's leaves may be sliced; see `scan`.

    Returns:
        A function of the initial carry and of the inputs, which returns the last carry.

    Raises:
        ValueError: When called, if sizes differ or nothing gives the size of the axis.
        TypeError: When called, if `fn` changes the structure, names, shapes or dtypes of the carry.

    Source:
        `jax.lax.scan`
    """
    check_callable("fold", fn)

    @safe_wraps(fn)
    def step(carry: Carry, *args: Any, **kwargs: Any) -> tuple[Carry, None]:
        return fn(carry, *args, **kwargs), None

    @safe_wraps(fn)
    def folded(init: Any, *args: Any, **kwargs: Any) -> Any:
        return _scan("fold", step, axis, remat, reverse, unroll, is_scanned, init, args, kwargs)[0]

    return folded


def map(
    fn: Callable[Args, Y],
    axis: AxisSelector,
    *,
    remat: Remat = False,
    reverse: bool = False,
    unroll: int | bool = 1,
    is_mapped: IsScanned = is_jax_or_hax_array_like,
) -> Callable[Args, Y]:
    """Apply a function at each place along an axis, one after the other: `scan` without a carry.

    Args:
        fn: A function of the inputs.
        axis: The axis to loop along. A name suffices where an input has the axis.
        remat: What to keep for the backward pass: a `ScanCheckpointPolicy` or a short form of one.
        reverse: Whether to begin at the end.
        unroll: How many steps the compiled loop does at once; True for all.
        is_mapped: Which of the input's leaves may be sliced; see `scan`.

    Returns:
        A function of the inputs. Its arrays have the axis in front.

    Raises:
        ValueError: When called, if sizes differ or nothing gives the size of the axis.

    Source:
        `jax.lax.map`
    """
    check_callable("map", fn)

    def step(_: None, *args: Any, **kwargs: Any) -> tuple[None, Y]:
        return None, fn(*args, **kwargs)

    @safe_wraps(fn)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        return _scan("map", step, axis, remat, reverse, unroll, is_mapped, None, args, kwargs)[1]

    return mapped


# --- The one engine ---


def _scan(
    op: str,
    f: Callable[..., Any],
    axis: AxisSelector,
    remat: Remat,
    reverse: bool,
    unroll: int | bool,
    is_scanned: IsScanned,
    init: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, Any]:
    plan = plan_inputs(op, axis, is_scanned, args, kwargs, f)
    name, length = plan.axis.name, plan.axis.size
    policy = ScanCheckpointPolicy.from_bool_or_str(remat)
    check_unroll(op, unroll)
    if unroll is True or unroll >= length:
        # no loop is left that would keep the compiler from merging both computations
        policy = dataclasses.replace(policy, prevent_cse=True)
    carry, static = eqx.partition(init, is_traceable)

    def step(carry: Any, slices: dict[int, Any]) -> tuple[Any, Any]:
        before = eqx.combine(carry, static)
        args, kwargs = plan.fill(slices)
        after, y = as_pair(op, f(before, *args, **kwargs))
        check_carry(op, before, after)
        after = _with_layouts_of(op, before, after)
        arrays, rest = eqx.partition(y, is_traceable)
        return eqx.filter(after, is_traceable), (arrays, Static(rest))

    step = policy.checkpoint(f"scan({name})__carry", f"scan({name})__input", step)
    inner_scans = policy.inner_scans(length)
    xs = plan.leading()

    def loop(carry: Any) -> Any:
        if inner_scans is None:
            return jax.lax.scan(step, carry, xs, length=length, reverse=reverse, unroll=unroll)
        return multilevel_scan(step, carry, xs, inner_scans, length, reverse=reverse, unroll=unroll)

    try:
        carry, (arrays, rest) = loop(carry)
    except CarryLayout as change:
        carry, (arrays, rest) = loop(_laid_out(carry, change, explicit_mesh(list(xs.values()))))
    return eqx.combine(carry, static), with_axis(op, name, eqx.combine(arrays, rest.value))


def check_unroll(op: str, unroll: int | bool) -> None:
    """Raise unless `unroll` is a bool or a number of steps."""
    if not isinstance(unroll, bool):
        check_integer(op, "unroll", unroll, least=0)


def plan_inputs(
    op: str,
    axis: AxisSelector,
    is_scanned: IsScanned,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    f: Callable[..., Any] | None = None,
) -> Along:
    """Which leaves of the inputs of a loop are sliced; `f` has names for them, for error messages."""
    leaves = tree_leaves((args, kwargs))
    if not (isinstance(is_scanned, bool) or callable(is_scanned)):
        raise wrong_type(op, "is_mapped" if op == "map" else "is_scanned", is_scanned, "a condition, or a bool for all")
    chosen = [is_scanned if isinstance(is_scanned, bool) else is_scanned(leaf) for leaf in leaves]
    labels = functools.partial(_input_path, f)
    return along(op, axis, labels, (args, kwargs), [0 if yes else None for yes in chosen])


def _input_path(f: Callable[..., Any] | None, path: tuple[Any, ...]) -> str:
    """How to write a leaf of `(args, kwargs)`: by the parameter of `f(carry, *args, **kwargs)` that gets it."""
    part, argument, *rest = path
    if part.idx == 1:
        return argument.key + keystr(tuple(rest))
    try:
        parameters = list(inspect.signature(f).parameters.values()) if f is not None else []
    except ValueError:  # some callables of C have none
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][1:]
    name = names[argument.idx] if argument.idx < len(names) else f"args[{argument.idx - len(names)}]"
    return name + keystr(tuple(rest))


def is_traceable(x: Any) -> bool:
    """Whether a leaf of a carry or an output is data, rather than a part of the structure such as a function."""
    return isinstance(x, bool | int | float | complex) or is_jax_array_like(x)


def as_pair(op: str, result: Any) -> tuple[Any, Any]:
    """The carry and the output that a step returned."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        given = f"the result of the function is {kind(result)}"
        raise ValueError(problem(op, given, "expected a pair of the next carry and an output"))
    return result[0], result[1]


# --- The carry ---


def _with_layouts_of(op: str, before: Any, after: Any) -> Any:
    """The carry after a step, laid out on explicit mesh axes as before it."""
    leaves, treedef = tree_flatten(after)
    return treedef.unflatten(keep_layouts(op, tree_leaves(before), leaves))


def _laid_out(carry: Any, change: CarryLayout, mesh: Any) -> Any:
    """The first carry, laid out as its steps need it, on the mesh of the inputs if they tell it."""
    leaves, treedef = tree_flatten(carry)
    for i, sharding in enumerate(change.shardings):
        if sharding is not None:
            target = NamedSharding(mesh or sharding.mesh, sharding.spec)
            leaves[i] = jax.tree.map(lambda a, target=target: jax.sharding.reshard(a, target), leaves[i])
    return treedef.unflatten(leaves)


def check_carry(op: str, before: Any, after: Any) -> None:
    """Raise a TypeError that names the leaf in which a step changed what the carry is.

    Args:
        op: The operation, for error messages.
        before: The carry that the step got.
        after: The carry that it returned.
    """
    was, now = _leaves_by_path(before), _leaves_by_path(after)
    for path in was | now:
        if path in was and path in now and _fits(was[path], now[path]):
            continue
        expected = _kind(was[path]) if path in was else "nothing"
        given = _kind(now[path]) if path in now else "nothing"
        raise TypeError(
            problem(
                op,
                f"carry{path} is {'another value' if given == expected else given} after a step",
                f"it was {expected} before",
                "A step must return a carry of the structure, names, shapes and dtypes that it gets.",
            )
        )


def _leaves_by_path(tree: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_named_array)[0]
    return {keystr(path): leaf for path, leaf in leaves}


def _fits(was: Any, now: Any) -> bool:
    """Whether a leaf may follow another one in a carry."""
    if is_named_array(was) and is_named_array(now):
        return was.axis_names == now.axis_names and _fits(was.array, now.array)
    if is_named_array(was) or is_named_array(now):
        return False
    if not (is_traceable(was) and is_traceable(now)):
        return was is now or (type(was) is type(now) and was == now)
    if jnp.shape(was) != jnp.shape(now):
        return False
    # jax.lax.scan itself promotes an initial carry whose type is weak
    return jnp.result_type(was) == jnp.result_type(now) or getattr(jax.typeof(was), "weak_type", False)


def _kind(leaf: Any) -> str:
    """What a leaf is: `float32[3]`, `float32[3] with axes (y)`, `a str`."""
    if isinstance(leaf, NamedArrayBase):
        return f"{_kind(leaf.array)} with axes ({', '.join(leaf.axis_names)})"
    if is_traceable(leaf):
        return f"{jnp.result_type(leaf)}[{', '.join(str(n) for n in jnp.shape(leaf))}]"
    return kind(leaf)
