"""Which values of the steps of a scan are kept for the backward pass, which moved to the host, which recomputed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import jax

from haliax._src.errors import bad_value, problem, wrong_type
from haliax._src.jax_helpers import F, filter_checkpoint, tree_checkpoint_name

RematName = Literal["offload", "recompute", "full", "save_all", "nested"]
"""The policies that have a name; see `ScanCheckpointPolicy.from_bool_or_str`."""


@dataclasses.dataclass(frozen=True)
class ScanCheckpointPolicy:
    """What to keep of each step of a scan, or each layer of a stack, for the backward pass.

    Args:
        save_carries: Whether to keep the carry of each step; "offload" keeps it in host memory.
        save_inputs: Whether to keep the inputs of each step. They are part of what the scan runs over, and read from
            there; only "offload" makes a copy, in host memory.
        save_block_internals: Whether to keep what a step computes: all of it, or the values of these names, given by
            `haliax.tree_checkpoint_name`.
        offload_block_internals: Names of values to keep in host memory.
        prevent_cse: Whether to keep the compiler from merging the first with the second computation, which it can not
            do in the loop of a scan anyway.
        disable: Whether to keep everything, as without a checkpoint.
        simple: Whether to use plain `jax.checkpoint`, which keeps the arguments of a step and nothing else. The fields
            above are of no account then.
        nested: Whether to scan over scans, so that only carries between inner scans are kept: memory for the square
            root of the number of steps, for one more forward pass. A number is the number of inner scans; True is the
            divisor of the number of steps that is closest to its root, which saves nothing for a prime.

    Source:
        `jax.checkpoint`, `jax.checkpoint_policies`
    """

    save_carries: bool | Literal["offload"] = True
    save_inputs: bool | Literal["offload"] = False
    save_block_internals: bool | Sequence[str] = False
    offload_block_internals: Sequence[str] = ()
    prevent_cse: bool = False
    disable: bool = False
    simple: bool = False
    nested: bool | int = False

    def __post_init__(self) -> None:
        # a policy is static in the modules that have one, hence hashable
        for field in ("save_block_internals", "offload_block_internals"):
            value = getattr(self, field)
            if isinstance(value, str):
                raise wrong_type("ScanCheckpointPolicy", field, value, "a sequence of names", "Put it in a list.")
            if not isinstance(value, bool):
                object.__setattr__(self, field, tuple(value))
        if self.save_block_internals is True and self._offloads("", ""):
            raise ValueError(
                problem(
                    "ScanCheckpointPolicy",
                    "save_block_internals=True together with something to offload",
                    "expected one or the other",
                    "List the names to keep in save_block_internals.",
                )
            )

    @staticmethod
    def from_bool_or_str(remat_policy: bool | str | ScanCheckpointPolicy) -> ScanCheckpointPolicy:
        """The policy that a short form stands for.

        Args:
            remat_policy: True keeps the arguments of each step; False keeps everything; "full" and "recompute" keep
                nothing that can be recomputed; "offload" keeps carries and inputs in host memory; "save_all" keeps all
                in a checkpoint; "nested" is a scan of scans. A policy is itself.

        Returns:
            The policy.

        Raises:
            ValueError: If there is no policy of that name.
        """
        if isinstance(remat_policy, ScanCheckpointPolicy):
            return remat_policy
        if isinstance(remat_policy, bool | str) and remat_policy in _POLICIES:
            return _POLICIES[remat_policy]
        raise bad_value(
            "ScanCheckpointPolicy",
            f"no policy {remat_policy!r}",
            f"expected a policy, a bool, or one of {', '.join(repr(p) for p in _POLICIES if isinstance(p, str))}",
        )

    _mk = from_bool_or_str  # the name by which Levanter calls it

    def checkpoint(self, carry_name: str, input_name: str, callable: F) -> F:
        """The step of a scan under this policy, which does not know of `nested`.

        Args:
            carry_name: The name of the carry among the values to keep.
            input_name: The name of the inputs.
            callable: The step, a function of the carry and inputs.

        Returns:
            A function with the same results.
        """
        if self.disable:
            return callable

        def step(carry: Any, *args: Any, **kwargs: Any) -> Any:
            carry = tree_checkpoint_name(carry, carry_name)
            if self.save_inputs == "offload":  # a name makes a copy, which nothing else needs
                args, kwargs = tree_checkpoint_name((args, kwargs), input_name)
            return callable(carry, *args, **kwargs)

        policy = self._jax_policy(carry_name, input_name)
        named = callable if policy is None else step
        return filter_checkpoint(named, prevent_cse=self.prevent_cse, policy=policy)  # pyright: ignore[reportReturnType]

    def inner_scans(self, length: int) -> int | None:
        """The number of inner scans that `nested` makes of so many steps, None without it or without steps."""
        if self.nested is False or self.disable or length == 0:
            return None
        return find_closest_divisible_int_to_sqrt(length) if self.nested is True else self.nested

    def _offloads(self, carry_name: str, input_name: str) -> list[str]:
        chosen = [(self.save_carries, carry_name), (self.save_inputs, input_name)]
        return [name for save, name in chosen if save == "offload"] + list(self.offload_block_internals)

    def _jax_policy(self, carry_name: str, input_name: str) -> Callable[..., bool] | None:
        """The policy for `jax.checkpoint`; None keeps nothing but the arguments."""
        if self.simple:
            return None
        policies = jax.checkpoint_policies
        if self.save_block_internals is True:
            return policies.save_anything_except_these_names(*([] if self.save_carries else [carry_name]))
        saved = ([carry_name] if self.save_carries is True else []) + list(self.save_block_internals or ())
        offloaded = self._offloads(carry_name, input_name)
        if offloaded:
            return policies.save_and_offload_only_these_names(
                names_which_can_be_saved=saved,
                names_which_can_be_offloaded=offloaded,
                offload_src="device",
                offload_dst="pinned_host",
            )
        return policies.save_only_these_names(*saved) if saved else None


ScanCheckpointSpec: TypeAlias = bool | RematName | ScanCheckpointPolicy
"""A policy, or a short form of one."""

_POLICIES: dict[bool | str, ScanCheckpointPolicy] = {
    True: ScanCheckpointPolicy(simple=True),
    False: ScanCheckpointPolicy(save_carries=True, save_inputs=True, save_block_internals=True, disable=True),
    "offload": ScanCheckpointPolicy(save_carries="offload", save_inputs="offload"),
    "recompute": ScanCheckpointPolicy(save_carries=False),
    "full": ScanCheckpointPolicy(save_carries=False),
    "save_all": ScanCheckpointPolicy(save_carries=True, save_inputs=True, save_block_internals=True),
    "nested": ScanCheckpointPolicy(nested=True),
}


def find_closest_divisible_int_to_sqrt(n: int) -> int:
    """The divisor of `n` that is closest to its square root: the largest one not above it.

    Args:
        n: A positive number.

    Returns:
        The divisor.

    Raises:
        ValueError: If `n` is not positive.
    """
    if n < 1:
        raise bad_value("find_closest_divisible_int_to_sqrt", f"n is {n}", "expected a positive number")
    # d and n / d lie on both sides of the root, and the smaller one is the closer
    return next(d for d in range(math.isqrt(n), 0, -1) if n % d == 0)
