"""`vmap` by name: what has the axis is mapped along it, what has not is shared."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, ParamSpec, TypeVar

import equinox as eqx
import jax

from haliax._src.along import Rule, along, with_axis
from haliax._src.array_base import selectors
from haliax._src.axis import Axis, AxisSelection, AxisSelector
from haliax._src.callables import callable_as_pytree
from haliax._src.errors import check_callable, duplicate_axes, problem
from haliax._src.jax_helpers import Static, is_jax_array_like
from haliax._src.tree import is_named_array, tree_leaves
from haliax._src.util import safe_wraps

P = ParamSpec("P")
R = TypeVar("R")

Rules = Any
"""A dimension, None, a function from a leaf to one of these, or a pytree of them that is a prefix of the argument."""


def _zero_if_array_else_none(x: Any) -> Rule:
    """The usual rule for what is no named array."""
    return 0 if is_jax_array_like(x) else None


def vmap(
    fn: Callable[P, R],
    axis: AxisSelection,
    *,
    default: Rules = _zero_if_array_else_none,
    args: Sequence[Rules] = (),
    kwargs: Mapping[str, Rules] | None = None,
) -> Callable[P, R]:
    """Map a function along one or more axes, found by name.

    Every NamedArray that has the axis, in the arguments or in `fn` itself if that is a module, a bound method or a
    partial, is mapped along it, wherever it is; one that lacks it is shared. Raw arrays in the arguments are mapped
    along their first dimension unless a rule says otherwise; numbers, arrays of rank 0 and all other leaves are shared.

    Args:
        fn: A function, method, classmethod, staticmethod, module, partial or other callable.
        axis: The axes, the outermost first. A name suffices where an argument has the axis.
        default: The rule for raw arrays that have no other: a dimension, None to share, or a function from the leaf to
            one of these.
        args: Rules for the positional arguments, in order; each may be a pytree that is a prefix of its argument. None
            shares the argument, named arrays too.
        kwargs: Rules by the names of the arguments.

    Returns:
        A function of the same arguments. Its arrays have the axes in front; results that are no arrays stay as is.

    Raises:
        ValueError: When called, if sizes differ or nothing gives the size of an axis.
        TypeError: If there are rules for arguments that `fn` does not have.

    Source:
        `jax.vmap`
    """
    if isinstance(fn, classmethod | staticmethod):
        return type(fn)(vmap(fn.__func__, axis, default=default, args=args, kwargs=kwargs))  # pyright: ignore[reportReturnType]
    check_callable("vmap", fn)
    axes = selectors("vmap", axis)
    names = [ax.name if isinstance(ax, Axis) else ax for ax in axes]
    if len(set(names)) < len(names):
        raise duplicate_axes("vmap", map(str, names))
    signature = _signature(fn)
    try:
        rules = signature.bind_partial(*args, **(kwargs or {})).arguments
    except TypeError as error:
        raise TypeError(problem("vmap", f"the rules do not fit the arguments of the function: {error}")) from None

    @safe_wraps(fn)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            name = getattr(fn, "__name__", type(fn).__name__)
            raise TypeError(problem("vmap", f"the arguments do not fit {name}: {error}")) from None
        bound.apply_defaults()
        names, values = tuple(bound.arguments), tuple(bound.arguments.values())
        target = callable_as_pytree(fn)

        def call(target: Callable[..., Any], *values: Any) -> Any:
            given = inspect.BoundArguments(signature, dict(zip(names, values, strict=True)))  # pyright: ignore[reportArgumentType]
            return target(*given.args, **given.kwargs)

        # what `fn` itself holds is mapped by name only: a dimension that no leaf of it can have shares the raw arrays
        leaf_rules = [0 if is_named_array(leaf) else None for leaf in tree_leaves(target)]
        for name, value in bound.arguments.items():
            kind = signature.parameters[name].kind
            leaf_rules.extend(_leaf_rules(kind, value, rules.get(name, _MISSING), default))
        return _map_along(axes, call, ("fn", *names), (target, *values), leaf_rules)

    return mapped


def _map_along(
    axes: Sequence[AxisSelector],
    call: Callable[..., Any],
    labels: Sequence[str],
    values: Sequence[Any],
    rules: Sequence[Rule],
) -> Any:
    """Call with the values mapped along all axes, one `jax.vmap` for each."""
    if not axes:
        return call(*values)
    plan = along("vmap", axes[0], labels, values, rules)

    @functools.partial(jax.vmap, in_axes=(plan.dims,), axis_size=plan.axis.size)
    def run(slices: dict[int, Any]) -> Any:
        result = _map_along(axes[1:], call, labels, plan.fill(slices), rules)
        arrays, rest = eqx.partition(result, is_jax_array_like)
        return arrays, Static(rest)

    arrays, rest = run(plan.mapped("vmap"))
    return with_axis("vmap", plan.axis.name, eqx.combine(arrays, rest.value))


# --- Rules for arguments ---

_MISSING: Any = object()


def _signature(fn: Callable[..., Any]) -> Signature:
    """The signature of `fn`; that of a function which takes anything, if it has none."""
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError):
        return inspect.signature(lambda *args, **kwargs: None)


def _leaf_rules(kind: Any, value: Any, rules: Rules, default: Rules) -> Iterator[Rule]:
    """The rule of each leaf of one argument, or of all those that a `*args` or `**kwargs` of the function collects."""
    if kind is Parameter.VAR_POSITIONAL:
        given = () if rules is _MISSING else rules
        for i, item in enumerate(value):
            yield from _spread(given[i] if i < len(given) else _MISSING, item, default)
    elif kind is Parameter.VAR_KEYWORD:
        given = {} if rules is _MISSING else rules
        for name in sorted(value):  # the order in which JAX flattens a dict
            yield from _spread(given.get(name, _MISSING), value[name], default)
    else:
        yield from _spread(rules, value, default)


def _spread(rules: Rules, value: Any, default: Rules) -> Iterator[Rule]:
    """The rule of each leaf of `value`, from rules that are a prefix of it."""
    if rules is _MISSING:
        # a default is for raw arrays: it leaves named arrays to their names
        yield from (0 if is_named_array(leaf) else _rule(default, leaf) for leaf in tree_leaves(value))
        return
    spread: list[Rule] = []

    def collect(rule: Rules, part: Any) -> None:
        spread.extend(_rule(rule, leaf) for leaf in tree_leaves(part))

    jax.tree.map(collect, rules, value, is_leaf=lambda x: x is None)
    yield from spread


def _rule(rule: Any, leaf: Any) -> Any:
    if not callable(rule):
        return rule
    return 0 if is_named_array(leaf) else rule(leaf)
