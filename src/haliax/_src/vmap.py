"""`vmap` by name: what has the axis is mapped along it, what has not is shared."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, NamedTuple, ParamSpec, TypeVar

import jax

from haliax._src.along import Rule, along, with_axis
from haliax._src.array_base import selectors, wrap
from haliax._src.axis import Axis, AxisSelection, AxisSelector
from haliax._src.callables import callable_as_pytree
from haliax._src.errors import bad_value, check_callable, duplicate_axes, problem, wrong_type
from haliax._src.explicit_loops import is_split
from haliax._src.jax_compat import DuplicateSpecError
from haliax._src.jax_helpers import Static, is_jax_array_like
from haliax._src.rearrange import permute
from haliax._src.tree import is_named_array, tree_flatten, tree_leaves
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
    out_axes: Rules = 0,
    axis_name: Any = None,
    spmd_axis_name: Any = None,
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
        out_axes: Where the axes go in the arrays of the result, named ones too: a dimension, None for an array that is
            the same at each place, a function from a raw array to one of these, or a prefix of the result with these.
        axis_name: What collectives in `fn`, such as `jax.lax.psum`, call the axis; for several axes, a sequence of
            names, each of which may be None.
        spmd_axis_name: The mesh axes over which the axis is split, for sharding constraints in `fn`; for several axes,
            a sequence with an item for each.

    Returns:
        A function of the same arguments. Its arrays have the axes in front, or where `out_axes` says; results that are
        no arrays stay as is.

    Raises:
        ValueError: When called, if sizes differ or nothing gives the size of an axis; or if an array that `out_axes`
            shares is not the same at each place.
        TypeError: If there are rules for arguments that `fn` does not have.

    Source:
        `jax.vmap`
    """
    if isinstance(fn, classmethod | staticmethod):
        options = {"out_axes": out_axes, "axis_name": axis_name, "spmd_axis_name": spmd_axis_name}
        inner = vmap(fn.__func__, axis, default=default, args=args, kwargs=kwargs, **options)
        return type(fn)(inner)  # pyright: ignore[reportReturnType]
    check_callable("vmap", fn)
    axes = selectors("vmap", axis)
    names = [ax.name if isinstance(ax, Axis) else ax for ax in axes]
    if len(set(names)) < len(names):
        raise duplicate_axes("vmap", map(str, names))
    bound_names = _for_each("axis_name", axis_name, len(axes))
    levels = tuple(map(_Level, axes, bound_names, _for_each("spmd_axis_name", spmd_axis_name, len(axes))))
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
            return _apart(target(*given.args, **given.kwargs), out_axes)

        # what `fn` itself holds is mapped by name only: a dimension that no leaf of it can have shares the raw arrays
        leaf_rules = [0 if is_named_array(leaf) else None for leaf in tree_leaves(target)]
        for name, value in bound.arguments.items():
            kind = signature.parameters[name].kind
            leaf_rules.extend(_leaf_rules(kind, value, rules.get(name, _MISSING), default))
        return _together(len(levels), *_map_along(levels, call, ("fn", *names), (target, *values), leaf_rules))

    return mapped


class _Level(NamedTuple):
    """One axis to map along, and what it is called inside."""

    axis: AxisSelector
    axis_name: Any
    spmd_axis_name: Any


def _for_each(option: str, given: Any, count: int) -> Sequence[Any]:
    """An option as one value for each axis."""
    if given is None:
        return [None] * count
    if count == 1:
        return [given]
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != count:
        raise wrong_type("vmap", option, given, f"a sequence with one item for each of {count} axes")
    return given


def _map_along(
    levels: Sequence[_Level],
    call: Callable[..., _Parts],
    labels: Sequence[str],
    values: Sequence[Any],
    rules: Sequence[Rule],
) -> _Parts:
    """Call with the values mapped along all axes, one `jax.vmap` for each."""
    if not levels:
        return call(*values)
    axis, axis_name, spmd_axis_name = levels[0]
    plan = along("vmap", axis, labels, values, rules)
    options = {"axis_size": plan.axis.size, "axis_name": axis_name, "spmd_axis_name": spmd_axis_name}

    returned: list[bool] = []

    @functools.partial(jax.vmap, in_axes=(plan.dims,), out_axes=(0, None, None), **options)
    def run(slices: dict[int, Any]) -> _Parts:
        parts = _map_along(levels[1:], call, labels, plan.fill(slices), rules)
        returned.append(True)
        return parts

    arrays = plan.mapped("vmap")
    try:
        mapped, shared, rest = run(arrays)
    except DuplicateSpecError as error:
        if not is_split(arrays.values(), plan.dims.values()):
            raise
        given = f"axis {plan.axis.name!r} and an axis that it meets in the function are split over the same mesh axis"
        raise bad_value("vmap", given, "expected distinct ones", "Map one of them to another mesh axis.") from error
    except ValueError as error:
        if not returned or "out_axes" not in str(error):
            raise
        given = f"a result that out_axes shares depends on axis {plan.axis.name!r}"
        expected = "expected one that is the same at each place"
        raise bad_value("vmap", given, expected, "Give it a dimension in out_axes.") from None
    return with_axis("vmap", plan.axis.name, mapped), shared, rest


# --- Results ---

_Parts = tuple[Any, Any, Static[Any]]
"""The arrays of a result that are mapped, those that are shared, and the rest: structure, other leaves, rules."""


def _apart(result: Any, out_axes: Rules) -> _Parts:
    """The parts of what the function returns at one place."""
    leaves, treedef = tree_flatten(result)
    rules = _out_rules(out_axes, result, len(leaves))
    arrays = [
        is_jax_array_like(leaf.array) or leaf.array is None if is_named_array(leaf) else is_jax_array_like(leaf)
        for leaf in leaves
    ]

    def part(wanted: Callable[[Any], bool]) -> Any:
        chosen = zip(leaves, arrays, rules, strict=True)
        return treedef.unflatten([leaf if array and wanted(rule) else None for leaf, array, rule in chosen])

    rest = [None if array else leaf for leaf, array in zip(leaves, arrays, strict=True)]
    return part(lambda rule: rule is not None), part(lambda rule: rule is None), Static((treedef, rest, rules))


def _out_rules(out_axes: Rules, result: Any, count: int) -> list[Any]:
    """The rule of each leaf of a result, from rules that are a prefix of it."""
    if type(out_axes) is int:
        return [out_axes] * count
    rules: list[Any] = []

    def collect(rule: Any, part: Any) -> None:
        rules.extend(_called(rule, leaf) for leaf in tree_leaves(part))

    try:
        jax.tree.map(collect, out_axes, result, is_leaf=lambda x: x is None)
    except ValueError:
        raise bad_value("vmap", "out_axes has another structure than the result", "expected a prefix of it") from None
    return rules


def _together(count: int, mapped: Any, shared: Any, rest: Static[Any]) -> Any:
    """The result, in which the mapped arrays have `count` axes in front until they go where their rules say."""
    treedef, leaves, rules = rest.value
    parts = zip(treedef.flatten_up_to(mapped), treedef.flatten_up_to(shared), leaves, rules, strict=True)
    return treedef.unflatten(
        [
            other if m is None and s is None else s if m is None else _moved(m, count, rule)
            for m, s, other, rule in parts
        ]
    )


def _moved(leaf: Any, count: int, rule: Any) -> Any:
    """An array whose first `count` axes go to the dimension that a rule gives."""
    if rule == 0 and type(rule) is int:
        return leaf
    if isinstance(rule, bool) or not isinstance(rule, int):
        raise wrong_type("vmap", "a rule of out_axes", rule, "the number of a dimension, or None")
    named = leaf if is_named_array(leaf) else wrap(leaf, tuple(map(str, range(leaf.ndim))))
    rank = len(named.axis_names) - count
    if not -rank - 1 <= rule <= rank:
        raise bad_value("vmap", f"a rule of out_axes is dimension {rule}", f"expected {-rank - 1} to {rank}")
    place = (rule + rank + 1 if rule < 0 else rule) + count
    moved = permute(named, (*range(count, place), *range(count), *range(place, rank + count)))
    return moved if is_named_array(leaf) else moved.array


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
    """The rule of one leaf of the arguments; functions leave named arrays to their names."""
    return 0 if callable(rule) and is_named_array(leaf) else _called(rule, leaf)


def _called(rule: Any, leaf: Any) -> Any:
    """A rule, or what it says of a raw array if it is a function; other leaves are never mapped."""
    if not callable(rule):
        return rule
    data = leaf.array if is_named_array(leaf) else leaf
    return rule(data) if is_jax_array_like(data) else None
