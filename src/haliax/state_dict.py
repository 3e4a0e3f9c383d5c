"""State dicts: modules as arrays by name, in files that torch and Hugging Face read too."""

from haliax._src.best_effort import best_effort_sharding as best_effort_sharding
from haliax._src.state_dict import (
    ModuleWithStateDictSerialization as ModuleWithStateDictSerialization,
    StateDict as StateDict,
    StateDictError as StateDictError,
    T as T,
    TensorFileError as TensorFileError,
    flatten_modules_for_export as flatten_modules_for_export,
    from_state_dict as from_state_dict,
    from_torch_compatible_state_dict as from_torch_compatible_state_dict,
    load_state_dict as load_state_dict,
    save_state_dict as save_state_dict,
    to_numpy_state_dict as to_numpy_state_dict,
    to_state_dict as to_state_dict,
    to_torch_compatible_state_dict as to_torch_compatible_state_dict,
    unflatten_modules_from_export as unflatten_modules_from_export,
    with_prefix as with_prefix,
)
