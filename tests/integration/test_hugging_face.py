"""Weights of Hugging Face, there and back: the same logits in torch and through Levanter, on any mesh.

The other side of each test is `reference.py`, in a process with torch: `HALIAX_REFERENCE_PYTHON` is its Python.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec
from levanter.compat.hf_checkpoints import HFCheckpointConverter
from levanter.layers.attention import AttentionMask

import haliax as hax
from haliax.partitioning import MeshMismatchWarning, forced_host_shim
from haliax.state_dict import from_torch_compatible_state_dict, save_state_dict, to_torch_compatible_state_dict
from haliax.util import is_named_array
from integration.models import MODELS, tiny

HERE = Path(__file__).parent
PYTHON = os.environ.get("HALIAX_REFERENCE_PYTHON", str(HERE.parents[1] / ".venv-reference" / "bin" / "python"))

PARAMETERS = {"embed": "data", "mlp": "model", "heads": "model"}
COMPUTE = {"batch": "data", "mlp": "model", "heads": "model"}

FLAT = hax.make_mesh({"data": 4, "model": 2})
# two slices of four devices, over which 'model' is split too: the devices are in another order
HYBRID = hax.make_mesh({"data": 2, "model": 2}, {"model": 2})
EXPLICIT = hax.make_mesh({"data": 2, "model": 2}, {"model": 2}, axis_types=AxisType.Explicit)

Load = Callable[[str], Any]

pytestmark = pytest.mark.xdist_group("hugging face")  # which share what takes long to make


def reference(do: str, folder: Path) -> None:
    """Run `reference.py`."""
    command = [PYTHON, str(HERE / "reference.py"), do, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def converter_of(name: str, folder: Path) -> HFCheckpointConverter:
    """Levanter's converter for a model whose files are in `folder`."""
    config: Any = tiny(name)
    return config.hf_checkpoint_converter(str(folder))


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """Models that transformers has written, each in a folder, with tokens and the logits that torch makes of them."""
    folder = tmp_path_factory.mktemp("written")
    reference("write", folder)
    return folder


@pytest.fixture(scope="module")
def load(written) -> Load:
    """A function that loads a model onto a mesh by Levanter's converter, which reads by best-effort layouts."""

    @functools.cache
    def load(name: str) -> Any:
        # Levanter asks the configuration of Gemma for names that transformers 5 has no more
        config: Any = tiny(name) if name == "gemma" else None
        with hax.set_mesh(FLAT):
            converter = converter_of(name, written / name)
            model = converter.load_pretrained(tiny(name).model_type, config=config, axis_mapping=PARAMETERS)
        return eqx.nn.inference_mode(model)

    return load


def named_arrays(model: Any) -> list[hax.NamedArray]:
    return [x for x in jax.tree.leaves(model, is_leaf=is_named_array) if is_named_array(x)]


# there ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_laid_out_as_mapped(name, load):
    for array in named_arrays(load(name)):
        expected = PartitionSpec(*map(PARAMETERS.get, array.axis_names))
        assert array.array.sharding.is_equivalent_to(jax.NamedSharding(FLAT, expected), array.ndim)


@hax.named_jit(axis_resources=COMPUTE)
def logits(model: Any, tokens: hax.NamedArray) -> hax.NamedArray:
    return model(tokens, AttentionMask.causal())


def check_logits(found: hax.NamedArray, folder: Path) -> None:
    """They are where the call was, and those of torch."""
    assert found.axis_names == ("batch", "position", "vocab") and found.array.sharding.mesh == HYBRID
    np.testing.assert_allclose(found.array, np.load(folder / "logits.npy"), atol=2e-3)


@pytest.mark.parametrize("name", MODELS)
def test_logits_on_another_mesh_are_those_of_torch(name, load, written):
    model, tokens = load(name), hax.named(np.load(written / "tokens.npy"), ("batch", "position"))
    with hax.set_mesh(HYBRID), pytest.warns(MeshMismatchWarning, match="in another device order"):
        check_logits(logits(model, tokens), written / name)


def test_logits_with_the_shim_for_forced_hosts(load, written):
    """It puts arguments in the layout of the mapping, so that none is on another mesh."""
    model, tokens = load("llama"), hax.named(np.load(written / "tokens.npy"), ("batch", "position"))
    with hax.set_mesh(HYBRID), forced_host_shim("on"):
        check_logits(logits(model, tokens), written / "llama")


@pytest.mark.parametrize("name", MODELS)
def test_files_are_read_onto_a_mesh_without_levanter(name, load, written):
    """The same arrays as through Levanter, of which each device's part is read from the files."""
    model = load(name)
    template = eqx.filter_eval_shape(lambda: model)
    prefix = "transformer" if name == "gpt2" else None
    read = from_torch_compatible_state_dict(template, written / name, prefix=prefix, mesh=HYBRID, sharding=PARAMETERS)
    for mine, theirs in zip(named_arrays(read), named_arrays(model), strict=True):
        assert mine.array.sharding.mesh == HYBRID and mine.axes == theirs.axes
        np.testing.assert_array_equal(mine.array, theirs.array)


# and back -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exported(written, load, tmp_path_factory) -> Path:
    """The models, exported by Levanter and by haliax, with the logits that torch makes of them."""
    folder = tmp_path_factory.mktemp("exported")
    np.save(folder / "tokens.npy", np.load(written / "tokens.npy"))
    for name in MODELS:
        model = load(name)
        # with other axes than explicit ones, Levanter writes the part that the first device has
        with hax.set_mesh(EXPLICIT):
            sharded = hax.shard(model, PARAMETERS, mesh=EXPLICIT)
            # Levanter gives Qwen a token for padding behind the last one
            converter = converter_of(name, written / name).with_config_overrides({"pad_token_id": None})
            converter.save_pretrained(sharded, str(folder / f"{name}.levanter"))
        path = folder / f"{name}.haliax"
        path.mkdir()
        shutil.copy(written / name / "config.json", path)
        save_state_dict(to_torch_compatible_state_dict(model), path, max_shard_size=40_000)
    reference("read", folder)
    return folder


@pytest.mark.parametrize("by", ["levanter", "haliax"])
@pytest.mark.parametrize("name", MODELS)
def test_exported_weights_give_the_same_logits_in_torch(name, by, exported, written):
    found, expected = (np.load(path / "logits.npy") for path in (exported / f"{name}.{by}", written / name))
    np.testing.assert_allclose(found, expected, atol=2e-3)
