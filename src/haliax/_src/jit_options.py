"""The options of `named_jit`: checked when a function is wrapped, and what they say of a call."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_args

import jax
from jax.sharding import AbstractMesh, Mesh

from haliax._src.errors import bad_value, nearest, problem, wrong_type
from haliax._src.mesh_mismatch import Policy
from haliax._src.resources import FrozenMapping, MeshLike, check_mapping, freeze
from haliax._src.signature import argument_names

# what `jax.jit` calls differently
_RENAMED = {
    "in_shardings": "in_axis_resources",
    "out_shardings": "out_axis_resources",
    "static_argnums": "nothing: arguments that are no arrays are static",
    "static_argnames": "nothing: arguments that are no arrays are static",
    "donate_argnums": "donate_args",
    "donate_argnames": "donate_kwargs",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class JitOptions:
    """The options of `named_jit`, with mappings in normal form."""

    axis_resources: FrozenMapping | None
    in_axis_resources: FrozenMapping | None
    out_axis_resources: FrozenMapping | None
    mesh: MeshLike | None
    donate_args: Any
    donate_kwargs: Any
    on_mesh_mismatch: Policy
    jit_kwargs: Mapping[str, Any]

    @property
    def mappings(self) -> tuple[FrozenMapping | None, ...]:
        """The mappings that were given, for inputs, computation and results."""
        return self.in_axis_resources, self.axis_resources, self.out_axis_resources


def check_options(
    *,
    mesh: Any,
    axis_resources: Any,
    in_axis_resources: Any,
    out_axis_resources: Any,
    donate_args: Any,
    donate_kwargs: Any,
    on_mesh_mismatch: Any,
    jit_kwargs: Mapping[str, Any],
) -> JitOptions:
    """Bring the options of `named_jit` to normal form.

    Raises:
        TypeError: If one has the wrong type, or is an option of `jax.jit` that has another name here.
        ValueError: If a mapping names an axis that the mesh does not have, or the policy is unknown.
    """
    if mesh is not None and not isinstance(mesh, Mesh | AbstractMesh):
        raise wrong_type("named_jit", "mesh", mesh, "a jax.sharding.Mesh or AbstractMesh")
    if on_mesh_mismatch not in get_args(Policy):
        raise bad_value("named_jit", f"on_mesh_mismatch is {on_mesh_mismatch!r}", "expected 'warn', 'move' or 'error'")
    known = [name for name in inspect.signature(jax.jit).parameters if name != "fun"]
    for name in jit_kwargs:
        if name in _RENAMED:
            raise TypeError(problem("named_jit", f"{name} is an option of jax.jit", f"here it is {_RENAMED[name]}"))
        if name not in known:
            raise TypeError(problem("named_jit", f"unknown option {name!r}", f"options: {', '.join(sorted(known))}"))
    if not (donate_args is None or isinstance(donate_args, bool | tuple | list)):
        remedy = "It says which arguments, not how many or where: (True, False) donates the first of two."
        raise wrong_type("named_jit", "donate_args", donate_args, "a bool, or one for each argument", remedy)
    return JitOptions(
        axis_resources=_checked_mapping("axis_resources", axis_resources, mesh),
        in_axis_resources=_checked_mapping("in_axis_resources", in_axis_resources, mesh),
        out_axis_resources=_checked_mapping("out_axis_resources", out_axis_resources, mesh),
        mesh=mesh,
        donate_args=donate_args,
        donate_kwargs=(donate_kwargs,) if isinstance(donate_kwargs, str) else donate_kwargs,
        on_mesh_mismatch=on_mesh_mismatch,
        jit_kwargs=jit_kwargs,
    )


def _checked_mapping(name: str, mapping: Any, mesh: MeshLike | None) -> FrozenMapping | None:
    if mapping is not None and not isinstance(mapping, Mapping):
        raise wrong_type("named_jit", name, mapping, "a mapping from axis names to mesh axes")
    if mapping is not None and mesh is not None:
        check_mapping("named_jit", mapping, mesh)
    return freeze(mapping)


def check_donated_names(fn: Callable[..., Any], name: str, donate_kwargs: Any) -> None:
    """Raise a ValueError if `donate_kwargs` names no parameter of the function."""
    if isinstance(donate_kwargs, bool) or donate_kwargs is None:
        return
    try:
        parameters = inspect.signature(fn).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    for wanted in donate_kwargs:
        if wanted not in parameters:
            raise bad_value(
                f"named_jit({name})",
                f"donate_kwargs names {wanted!r}, which is no parameter",
                f"expected one of {', '.join(parameters)}",
                nearest(wanted, parameters),
            )


def donated_leaves(
    name: str, options: JitOptions, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[bool]:
    """For each leaf of `(args, kwargs)`, whether it is donated.

    Args:
        name: The name of the function, for messages.
        options: The options, of which two say what is donated.
        fn: The function, for the names of arguments that are passed by position.
        args: The positional arguments of a call.
        kwargs: Its keyword arguments.

    Raises:
        ValueError: If there are more entries than arguments, or they do not fit their structure.
        TypeError: If an entry is no bool.
    """
    by_position, by_name = options.donate_args or (), options.donate_kwargs
    if by_position is True:
        by_position = (True,) * len(args)
    by_position = tuple(by_position)
    if len(by_position) > len(args):
        raise bad_value(
            f"named_jit({name})",
            f"donate_args has {len(by_position)} entries",
            f"expected at most one for each positional argument, of which this call has {len(args)}",
            "Arguments passed by keyword are donated with donate_kwargs; `self` counts as an argument of a method.",
        )
    if isinstance(by_name, bool) or by_name is None:
        by_name = dict.fromkeys(kwargs, bool(by_name))
    elif not isinstance(by_name, Mapping):
        by_name = dict.fromkeys(by_name, True)
    by_position += tuple(
        by_name.get(parameter, False) for parameter in argument_names(fn, len(args))[len(by_position) :]
    )
    wanted = (by_position, {key: by_name.get(key, False) for key in kwargs})
    try:
        flags = jax.tree_util.tree_leaves(jax.tree.broadcast(wanted, (args, kwargs)))
    except ValueError as error:
        raise bad_value(
            f"named_jit({name})",
            "donate_args or donate_kwargs does not fit the structure of the arguments",
            "expected a bool for each argument, or a pytree of bools that is a prefix of it",
        ) from error
    for flag in flags:
        if not isinstance(flag, bool):
            raise wrong_type(f"named_jit({name})", "an entry of donate_args or donate_kwargs", flag, "a bool")
    return flags
