"""State dicts: modules as arrays by name, in files that torch and Hugging Face read too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

import equinox as eqx

from haliax._src.jax_compat import eager_scope
from haliax._src.jax_helpers import struct_of
from haliax._src.resources import MeshLike
from haliax._src.safetensors_io import TensorFileError as TensorFileError
from haliax._src.state_dict_entries import StateDictError as StateDictError
from haliax._src.state_dict_layouts import LayoutRule, layout_rule
from haliax._src.state_dict_loading import (
    default_eqx_module_from_state_dict as default_eqx_module_from_state_dict,
    from_state_dict as from_state_dict,
)
from haliax._src.state_dict_naming import (
    Mod as Mod,
    StateDict as StateDict,
    default_eqx_module_to_state_dict as default_eqx_module_to_state_dict,
    flatten_modules_for_export as flatten_modules_for_export,
    to_state_dict as to_state_dict,
    unflatten_modules_from_export as unflatten_modules_from_export,
    usual,
    with_prefix as with_prefix,
)
from haliax._src.state_dict_torch import (
    from_torch_compatible_state_dict as from_torch_compatible_state_dict,
    to_numpy_state_dict as to_numpy_state_dict,
    to_torch_compatible_state_dict as to_torch_compatible_state_dict,
)
from haliax._src.tensor_files import PathLike, open_tensors, save_state_dict as save_state_dict
from haliax._src.tensor_parts import everything, put

T = TypeVar("T")


class ModuleWithStateDictSerialization(eqx.Module):
    """A module that has a say in its state dict; its methods, as they are here, do what is done for any module.

    Other modules need no base class. A subclass that overrides `from_state_dict` gets arrays as they are in the state
    dict, read whole, where others are read in parts.
    """

    @usual
    def to_state_dict(self, prefix: str | None = None) -> StateDict:
        """The arrays of the module by name; see `haliax.state_dict.to_state_dict`."""
        return default_eqx_module_to_state_dict(self, prefix)

    @usual
    def from_state_dict(self, state_dict: Mapping[str, Any], prefix: str | None = None) -> Self:
        """The module with the arrays of a state dict; see `haliax.state_dict.from_state_dict`."""
        return default_eqx_module_from_state_dict(self, state_dict, prefix)

    @usual
    def flatten_for_export(self) -> Self:
        """The module in the shapes that torch has for it; its parts have theirs already."""
        return self

    @usual
    def unflatten_from_export(self, template: Any) -> Self:
        """Undo `flatten_for_export`.

        Args:
            template: A module with the axes that the result is to have.

        Returns:
            A module with the arrays of this one.
        """
        return self

    def _state_dict_key_map(self) -> dict[str, str | None]:
        """Other names for some of the fields; None for a field whose parts have names without it."""
        return {}

    def _state_dict_scales(self) -> Mapping[str | None, float]:
        """Factors that the arrays of some fields have in a state dict, by the names that the fields have there."""
        return {}


@eager_scope()
def load_state_dict(path: PathLike, *, mesh: MeshLike | None = None, sharding: LayoutRule | None = None) -> StateDict:
    """Read a state dict from safetensors files.

    Args:
        path: A file; an index of several (`model.safetensors.index.json`), or the name of the file that it stands for;
            or a folder with either.
        mesh: The mesh to put the arrays on; the one in force if None, where `sharding` needs one.
        sharding: The layouts. `"best_effort"`, the default if there is a mesh, for `best_effort_sharding`; a mapping
            from names of arrays to shardings or PartitionSpecs, others not being split; or a function of the name of an
            array and its shape, as a `jax.ShapeDtypeStruct`, that returns one, or None for no split.

    Returns:
        Arrays by name. Without mesh and sharding they are numpy arrays, in the dtypes of the file. Else they are arrays
        on devices, for which each process has read what its own devices hold, and no more.

    Raises:
        FileNotFoundError: If there is no such file.
        TensorFileError: If a file is truncated, corrupt or of another kind. The error names file and tensor.
        ValueError: If a layout does not fit. Nothing has been read then.

    Source:
        `safetensors.numpy.load_file`
    """
    tensors = open_tensors(path)
    rule = layout_rule("load_state_dict", mesh, sharding, tensors)
    if rule is None:
        return {name: tensor.read(everything(tensor.shape)) for name, tensor in tensors.items()}
    layouts = {name: rule(name, struct_of(tensor.shape, tensor.dtype)) for name, tensor in tensors.items()}
    return {name: put(tensor, layouts[name], name) for name, tensor in tensors.items()}
