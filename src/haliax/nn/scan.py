"""Many layers of one kind: `Stacked` keeps them as one layer whose arrays have one more axis, `BlockSeq` as a list.

A stack compiles one layer, whatever their number; a list compiles each, and its layers may differ.
"""

from __future__ import annotations

import abc
import dataclasses
import operator
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

from haliax._src.along import Along, along, with_axis
from haliax._src.axis import Axis
from haliax._src.checkpointing import ScanCheckpointPolicy, ScanCheckpointSpec as ScanCheckpointSpec
from haliax._src.errors import check_callable, not_an_axis, problem, wrong_type
from haliax._src.jax_helpers import ensure_scalar, filter_checkpoint, is_jax_array_like
from haliax._src.scan import as_pair, check_unroll, is_named_or_shaped_array_like, is_traceable, plan_inputs, scan
from haliax._src.state_dict import ModuleWithStateDictSerialization
from haliax._src.tree import is_jax_or_hax_array_like, tree_leaves
from haliax._src.vmap import vmap

M = TypeVar("M", bound=eqx.Module)
M_co = TypeVar("M_co", bound=eqx.Module, covariant=True)
M_contra = TypeVar("M_contra", bound=eqx.Module, contravariant=True)
LayerT = TypeVar("LayerT", bound=eqx.Module)
T = TypeVar("T")
CarryT = TypeVar("CarryT")
OutputT_co = TypeVar("OutputT_co", covariant=True)
P = ParamSpec("P")

Unroll = int | bool | None


class ModuleInit(Protocol[M_co]):
    """Makes all layers, from the arguments of one layer's `init`.

    Arguments that run along the axis of the layers, such as keys, are split among them: named arrays that have the
    axis, and raw arrays by their first dimension. All others go to every layer.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> M_co:
        """Make the layers."""
        ...


class FoldFunction(Protocol[M_contra, P, CarryT]):
    """The part of one layer in a fold."""

    def __call__(self, module: M_contra, carry: CarryT, /, *args: P.args, **kwargs: P.kwargs) -> CarryT:
        """The next carry."""
        ...


class ScanFunction(Protocol[M_contra, CarryT, P, OutputT_co]):
    """The part of one layer in a scan."""

    def __call__(
        self, module: M_contra, carry: CarryT, /, *args: P.args, **kwargs: P.kwargs
    ) -> tuple[CarryT, OutputT_co]:
        """The next carry, and an output."""
        ...


class VmapFunction(Protocol[M_contra, P, OutputT_co]):
    """What each layer does by itself."""

    def __call__(self, module: M_contra, /, *args: P.args, **kwargs: P.kwargs) -> OutputT_co:
        """The result of one layer."""
        ...


class BlockFoldable(ModuleWithStateDictSerialization, Generic[M]):
    """Layers of one kind, in an order: what `Stacked` and `BlockSeq` have in common.

    In all of these methods, arguments that run along the axis of the layers are split among them: named arrays that
    have the axis, and raw arrays by their first dimension. All others go to every layer. The arrays of outputs have the
    axis of the layers in front.
    """

    @classmethod
    @abc.abstractmethod
    def init(
        cls,
        Block: Axis,
        module: type[LayerT],
        *,
        gradient_checkpointing: ScanCheckpointSpec = False,
        prevent_cse: bool | None = None,
    ) -> ModuleInit[BlockFoldable[LayerT]]:
        """Make a function that makes the layers, by `module.init`.

        Args:
            Block: The axis of the layers.
            module: The class of a layer.
            gradient_checkpointing: What to keep of each layer for the backward pass; see
                `haliax.ScanCheckpointPolicy.from_bool_or_str`.
            prevent_cse: Overrides that field of the policy.

        Returns:
            A function of the arguments of `module.init`.
        """

    @abc.abstractmethod
    def scan_via(
        self, fn: ScanFunction[M, CarryT, P, T], *, unroll: Unroll = None
    ) -> Callable[Concatenate[CarryT, P], tuple[CarryT, T]]:
        """Make a function that runs `fn` on one layer after the other.

        Args:
            fn: Called with a layer, the carry, and the other arguments; returns the next carry and an output.
            unroll: How many layers the compiled loop of a stack does at once; True for all.

        Returns:
            A function of the initial carry and the other arguments, which returns the last carry and the outputs.
        """

    @abc.abstractmethod
    def vmap_via(self, fn: VmapFunction[M, P, T]) -> Callable[P, T]:
        """Make a function that runs `fn` on all layers, independently of each other.

        Args:
            fn: Called with a layer and the other arguments.

        Returns:
            A function of the other arguments, which returns the outputs.
        """

    @abc.abstractmethod
    def get_layer(self, index: int | jax.Array) -> M:
        """One layer.

        Args:
            index: Its number; from the end if negative.

        Raises:
            IndexError: If there is no such layer.
        """

    @abc.abstractmethod
    def unstacked(self) -> Sequence[M]:
        """The layers, one by one."""

    def fold_via(
        self, fn: FoldFunction[M, P, CarryT], *, unroll: Unroll = None
    ) -> Callable[Concatenate[CarryT, P], CarryT]:
        """Make a function that runs `fn` on one layer after the other, without outputs.

        Args:
            fn: Called with a layer, the carry, and the other arguments; returns the next carry.
            unroll: How many layers the compiled loop of a stack does at once; True for all.

        Returns:
            A function of the initial carry and the other arguments, which returns the last carry.
        """
        check_callable("fold_via", fn)

        def step(module: M, carry: Any, /, *args: Any, **kwargs: Any) -> tuple[Any, None]:
            return fn(module, carry, *args, **kwargs), None

        def folded(init: Any, *args: Any, **kwargs: Any) -> Any:
            return self.scan_via(step, unroll=unroll)(init, *args, **kwargs)[0]

        return folded

    def fold(self, init: T, *args: Any, unroll: Unroll = None, **kwargs: Any) -> T:
        """Call one layer after the other on what the one before it returned.

        Args:
            init: The first layer's first argument.
            *args: Further arguments of the layers.
            unroll: How many layers the compiled loop of a stack does at once; True for all.
            **kwargs: Further arguments of the layers.

        Returns:
            What the last layer returned.
        """
        return self.fold_via(_call, unroll=unroll)(init, *args, **kwargs)

    def scan(self, init: T, *extra_args: Any, unroll: Unroll = None, **extra_kwargs: Any) -> tuple[T, Any]:
        """Call one layer after the other, each of which returns the next one's first argument and an output.

        Args:
            init: The first layer's first argument.
            *extra_args: Further arguments of the layers.
            unroll: How many layers the compiled loop of a stack does at once; True for all.
            **extra_kwargs: Further arguments of the layers.

        Returns:
            The last carry and the outputs.
        """
        return self.scan_via(_call, unroll=unroll)(init, *extra_args, **extra_kwargs)

    def vmap(self, *extra_args: Any, **extra_kwargs: Any) -> Any:
        """Call all layers independently.

        Args:
            *extra_args: Arguments of the layers.
            **extra_kwargs: Arguments of the layers.

        Returns:
            The outputs.
        """
        return self.vmap_via(_call)(*extra_args, **extra_kwargs)


def _call(module: Any, /, *args: Any, **kwargs: Any) -> Any:
    return module(*args, **kwargs)


class Stacked(BlockFoldable[M], Generic[M]):
    """Layers of one structure, kept as one layer whose arrays have the axis of the layers in front.

    Args:
        stacked: The layers: a module whose arrays, named and raw, have the axis in front.
        Block: The axis of the layers.
        gradient_checkpointing: What to keep of each layer for the backward pass.
    """

    stacked: M
    Block: Axis = eqx.field(static=True)
    gradient_checkpointing: ScanCheckpointPolicy = eqx.field(
        static=True, converter=ScanCheckpointPolicy.from_bool_or_str
    )

    @classmethod
    def init(
        cls,
        Block: Axis,
        module: type[LayerT],
        *,
        gradient_checkpointing: ScanCheckpointSpec = False,
        prevent_cse: bool | None = None,
    ) -> ModuleInit[Stacked[LayerT]]:
        """See `BlockFoldable.init`; the layers are made at once, by `haliax.vmap`."""
        policy = _policy(gradient_checkpointing, prevent_cse)
        init = _init_of("Stacked.init", Block, module)

        def make(*args: Any, **kwargs: Any) -> Any:
            stacked = vmap(init, Block)(*args, **kwargs)
            axis = _plan_layers("Stacked.init", Block, stacked).axis
            return cls(stacked, axis, policy)  # pyright: ignore[reportCallIssue]

        return make

    @property
    def Layers(self) -> Axis:
        """The axis of the layers."""
        return self.Block

    def scan_via(
        self, fn: ScanFunction[M, CarryT, P, T], *, unroll: Unroll = None
    ) -> Callable[Concatenate[CarryT, P], tuple[CarryT, T]]:
        """See `BlockFoldable.scan_via`; this is one `haliax.scan`."""
        check_callable("scan_via", fn)

        def step(carry: Any, module: M, /, *args: Any, **kwargs: Any) -> Any:
            return fn(module, carry, *args, **kwargs)

        def scanned(init: Any, *args: Any, **kwargs: Any) -> Any:
            loop = scan(step, self.Block, remat=self.gradient_checkpointing, unroll=1 if unroll is None else unroll)
            return loop(init, self.stacked, *args, **kwargs)

        return scanned

    def vmap_via(self, fn: VmapFunction[M, P, T]) -> Callable[P, T]:
        """See `BlockFoldable.vmap_via`; this is one `haliax.vmap`."""
        check_callable("vmap_via", fn)

        def mapped(*args: Any, **kwargs: Any) -> Any:
            return vmap(fn, self.Block)(self.stacked, *args, **kwargs)

        return mapped

    def get_layer(self, index: int | jax.Array) -> M:
        """See `BlockFoldable.get_layer`; an index that is traced is not checked."""
        number = _layer_number(index, self.Block.size)
        return _plan_layers("get_layer", self.Block, self.stacked).one(number)[0]

    def unstacked(self) -> Sequence[M]:
        """See `BlockFoldable.unstacked`; a tuple of new modules."""
        return tuple(self.get_layer(i) for i in range(self.Block.size))

    def map_layers(self, fn: Callable[..., Any], *others: Any) -> Stacked[Any]:
        """The stack of `fn(layer, *other_layers)` for each layer; `haliax.tree.scan_aware_map` looks for this method.

        Args:
            fn: Called with a layer, and those of `others` in the same place.
            *others: Stacks of as many layers.

        Returns:
            A stack of the results.
        """
        stacked = vmap(fn, self.Block)(self.stacked, *(other.stacked for other in others))
        return dataclasses.replace(self, stacked=stacked)


class BlockSeq(BlockFoldable[M], Generic[M]):
    """Layers in a list, which may differ in structure; each is compiled by itself.

    Args:
        blocks: The layers.
        Block: The axis of the layers; its size is their number.
        gradient_checkpointing: What to keep of each layer for the backward pass.
    """

    blocks: Sequence[M]
    Block: Axis = eqx.field(static=True)
    gradient_checkpointing: ScanCheckpointPolicy = eqx.field(
        static=True, converter=ScanCheckpointPolicy.from_bool_or_str
    )

    @classmethod
    def init(
        cls,
        Block: Axis,
        module: type[LayerT],
        *,
        gradient_checkpointing: ScanCheckpointSpec = False,
        prevent_cse: bool | None = None,
    ) -> ModuleInit[BlockSeq[LayerT]]:
        """See `BlockFoldable.init`; the layers are made one after the other."""
        policy = _policy(gradient_checkpointing, prevent_cse)
        init = _init_of("BlockSeq.init", Block, module)

        def make(*args: Any, **kwargs: Any) -> Any:
            plan = plan_inputs("BlockSeq.init", Block, is_jax_or_hax_array_like, args, kwargs)
            blocks = []
            for i in range(plan.axis.size):
                layer_args, layer_kwargs = plan.one(i)
                blocks.append(init(*layer_args, **layer_kwargs))
            return cls(blocks, plan.axis, policy)  # pyright: ignore[reportCallIssue]

        return make

    def scan_via(
        self, fn: ScanFunction[M, CarryT, P, T], *, unroll: Unroll = None
    ) -> Callable[Concatenate[CarryT, P], tuple[CarryT, T]]:
        """See `BlockFoldable.scan_via`; this is a Python loop, always unrolled."""
        check_callable("scan_via", fn)
        check_unroll("scan", 1 if unroll is None else unroll)
        name = self.Block.name
        # there is no loop in the compiled program that would keep the compiler from merging both computations
        policy = dataclasses.replace(self.gradient_checkpointing, prevent_cse=True)

        def one(carry: Any, module: M, args: Any, kwargs: Any) -> tuple[Any, Any]:
            return as_pair("scan", cast(Any, fn)(module, carry, *args, **kwargs))

        one = policy.checkpoint(f"scan({name})__carry", f"scan({name})__input", one)

        def some(carry: Any, layers: Sequence[Any]) -> tuple[Any, list[Any]]:
            ys = []
            for module, (args, kwargs) in layers:
                carry, y = one(carry, module, args, kwargs)
                ys.append(y)
            return carry, ys

        def scanned(init: Any, *args: Any, **kwargs: Any) -> Any:
            plan = plan_inputs("scan", self.Block, is_named_or_shaped_array_like, args, kwargs)
            layers = [(module, plan.one(i)) for i, module in enumerate(self.blocks)]
            groups = policy.inner_scans(len(layers))
            carry, ys = some(init, layers) if groups is None else _in_groups(some, init, layers, groups)
            return carry, _stack_results("scan", name, ys, is_traceable)

        return scanned

    def vmap_via(self, fn: VmapFunction[M, P, T]) -> Callable[P, T]:
        """See `BlockFoldable.vmap_via`; this is a Python loop."""
        check_callable("vmap_via", fn)

        def mapped(*args: Any, **kwargs: Any) -> Any:
            plan = plan_inputs("vmap", self.Block, is_jax_or_hax_array_like, args, kwargs)
            results = []
            for i, module in enumerate(self.blocks):
                layer_args, layer_kwargs = plan.one(i)
                results.append(cast(Any, fn)(module, *layer_args, **layer_kwargs))
            return _stack_results("vmap", self.Block.name, results, is_jax_array_like)

        return mapped

    def get_layer(self, index: int | jax.Array) -> M:
        """See `BlockFoldable.get_layer`; an index that is traced can not be used."""
        return self.blocks[_layer_number(index, len(self.blocks))]

    def unstacked(self) -> Sequence[M]:
        """See `BlockFoldable.unstacked`; the list itself."""
        return self.blocks

    def _state_dict_key_map(self) -> dict[str, str | None]:
        return {"blocks": None}


def _policy(gradient_checkpointing: ScanCheckpointSpec, prevent_cse: bool | None) -> ScanCheckpointPolicy:
    policy = ScanCheckpointPolicy.from_bool_or_str(gradient_checkpointing)
    return policy if prevent_cse is None else dataclasses.replace(policy, prevent_cse=prevent_cse)


def _init_of(op: str, Block: Any, module: Any) -> Callable[..., Any]:
    """How a layer is made, once it is known that it can be, along an axis."""
    if not isinstance(Block, str | Axis):
        raise not_an_axis(op, Block)
    if not callable(getattr(module, "init", None)):
        raise wrong_type(op, "module", module, "a class with a function init, which makes a layer")
    return module.init


def _layer_number(index: Any, count: int) -> Any:
    """The number of a layer, as Python's integer if it is known."""
    index = ensure_scalar(index, name="index")
    if isinstance(index, Tracer):
        return index
    try:
        number = operator.index(index)
    except TypeError:
        raise wrong_type("get_layer", "index", index, "an integer") from None
    if not -count <= number < count:
        raise IndexError(problem("get_layer", f"index {number}", f"there are {count} layers"))
    return number


def _plan_layers(op: str, axis: Axis, stacked: Any) -> Along:
    """How to slice the arrays of a stack."""
    return along(op, axis, ("stacked",), (stacked,), [0] * len(tree_leaves(stacked)))


def _in_groups(
    some: Callable[[Any, Sequence[Any]], tuple[Any, list[Any]]], carry: Any, layers: Sequence[Any], groups: int
) -> tuple[Any, list[Any]]:
    """Run layers group by group, keeping the carries between groups; see `haliax.jax_utils.multilevel_scan`."""
    if len(layers) % groups:
        raise ValueError(problem("scan", f"nested is {groups}", f"expected a divisor of the length {len(layers)}"))
    size, ys = len(layers) // groups, []
    for start in range(0, len(layers), size):
        carry, group = filter_checkpoint(some)(carry, layers[start : start + size])
        ys.extend(group)
    return carry, ys


def _stack_results(op: str, name: str, results: Sequence[Any], is_data: Callable[[Any], bool]) -> Any:
    """Stack the results of layers, leaf by leaf, along a new axis in front; what is no data must be the same in all."""
    if not results:
        return None
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves) if is_data(leaves[0]) else leaves[0], *results)
    return with_axis(op, name, stacked)
