"""The package as a whole: its version, its marker for type checkers, what its import brings along."""

import json
import os
import re
import subprocess
import sys
from importlib import resources

import jax
import numpy as np
from jax.sharding import AxisType

import haliax
from helpers import count_traces

# What haliax may import beyond JAX, Equinox and the standard library; the rest is optional and imported where used.
LIGHT_DEPENDENCIES = {"haliax", "safetensors", "_safetensors_rust"}


def top_level_modules(program: str) -> set[str]:
    """The top-level modules, without the standard library, that a fresh interpreter holds after `program`."""
    report = "import json, sys; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    process = subprocess.run([sys.executable, "-c", f"{program}\n{report}"], capture_output=True, check=True, text=True)
    return set(json.loads(process.stdout)) - sys.stdlib_module_names


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", haliax.__version__)


def test_type_checkers_find_the_annotations():
    assert resources.files("haliax").joinpath("py.typed").is_file()


def test_import_brings_no_heavy_module():
    plain = top_level_modules("import jax, equinox, jaxtyping")
    assert top_level_modules("import haliax") - plain <= LIGHT_DEPENDENCIES


def test_devices_can_still_be_configured_after_the_import():
    program = "import haliax, jax; jax.config.update('jax_num_cpu_devices', 3); assert jax.device_count() == 3"
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_meshes(mesh, explicit_mesh, flat_mesh):
    assert len(jax.devices()) == 8
    assert mesh.shape == explicit_mesh.shape == {"data": 4, "model": 2}
    assert set(mesh.axis_types) == {AxisType.Auto}
    assert set(explicit_mesh.axis_types) == {AxisType.Explicit}
    assert flat_mesh.shape == {"data": 8}


def test_count_traces():
    counted = count_traces(lambda x: x + 1)
    jitted = jax.jit(counted)
    for size in [2, 2, 3]:
        jitted(np.ones(size))
    assert counted.traces == 2
