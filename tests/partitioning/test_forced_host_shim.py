"""The shim: when it is active, what it changes, and that it can be removed."""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType

import haliax as hax
from haliax._src import forced_host_shim as shim
from haliax.partitioning import forced_host_shim
from meshes import MAPPING, NAMES, PLACES, VALUES, make_mesh, on, spec_of

SOURCE = Path(hax.__file__).parent


def input_spec(f, *args):
    """The layout in which the program last used takes its only array."""
    (layouts, _) = f.lower(*args).compile().input_shardings
    entries = tuple(layouts[0].spec)
    return entries + (None,) * (2 - len(entries))


@pytest.mark.parametrize(
    ("mode", "expected"), [("off", ("model", None)), ("on", ("data", "model")), ("auto", ("data", "model"))]
)
@pytest.mark.parametrize("how", ["argument", "ambient"])
def test_a_mapping_lays_out_inputs_while_it_is_active(mesh, mode, expected, how):
    f = hax.named_jit(lambda x: x + 1, MAPPING if how == "argument" else None, mesh=mesh)
    with forced_host_shim(mode), hax.axis_mapping(MAPPING if how == "ambient" else {}):
        assert input_spec(f, on(mesh, "model")) == expected
        assert np.array_equal(np.asarray(f(on(mesh, "model"))), VALUES + 1)


@pytest.mark.parametrize("mode", ["on", "auto"])
def test_it_changes_nothing_else(mesh, mode):
    x = on(mesh, "model")
    with forced_host_shim(mode):
        assert input_spec(hax.named_jit(lambda x: x + 1, mesh=mesh), x) == ("model", None), "no mapping"
        explicit = hax.named_jit(lambda x: x + 1, MAPPING, in_axis_resources={"batch": "data"}, mesh=mesh)
        assert input_spec(explicit, x) == ("data", None), "an input mapping wins"
        raw = hax.named_jit(lambda x: x + 1, MAPPING, mesh=mesh)
        assert spec_of(raw(x.array)) == ("model", None), "raw arrays keep their layout"


@pytest.mark.parametrize("mode", ["on", "off", "auto"])
@pytest.mark.parametrize("place", PLACES)
def test_values_are_the_same_either_way(mesh, mode, place):
    f = hax.named_jit(lambda x: x * 3, MAPPING, mesh=mesh, on_mesh_mismatch="move", donate_args=True)
    with forced_host_shim(mode):
        for _ in range(2):
            out = f(PLACES[place]())
            assert np.array_equal(np.asarray(out), VALUES * 3) and spec_of(out) == ("data", "model")


def test_an_axis_that_does_not_divide_is_an_error_of_the_input(mesh):
    f = hax.named_jit(lambda x: x.sum(), {"batch": "data"}, mesh=mesh)
    x = hax.NamedArray(np.ones((6, 4)), NAMES)
    with forced_host_shim("off"):
        f(x)
    with (
        forced_host_shim("on"),
        pytest.raises(ValueError, match=r"named_jit\(<lambda>\): x: axis batch=6 can not be split"),
    ):
        f(x)


def test_when_auto_is_active(mesh):
    with forced_host_shim("auto"):
        assert shim.shim_is_active(mesh)
        assert not shim.shim_is_active(None)
        assert not shim.shim_is_active(AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2))
    with forced_host_shim("on"):
        assert shim.shim_is_active(mesh) and shim.shim_is_active(None)
    with forced_host_shim("off"):
        assert not shim.shim_is_active(mesh)


def test_scopes_nest_and_end():
    outside = shim.shim_is_active(make_mesh())
    with forced_host_shim("on"):
        with pytest.raises(KeyError), forced_host_shim("off"):
            raise KeyError
        assert shim.shim_is_active(None)
    assert shim.shim_is_active(make_mesh()) == outside


def test_an_unknown_mode():
    with pytest.raises(ValueError) as error, forced_host_shim("yes"):
        pass
    assert str(error.value) == "forced_host_shim: the mode is 'yes'; expected 'auto', 'on' or 'off'."


def test_it_says_once_that_it_is_active(mesh, caplog):
    shim._announce.cache_clear()
    f = hax.named_jit(lambda x: x, MAPPING, mesh=mesh)
    with caplog.at_level(logging.INFO, "haliax.partitioning"), forced_host_shim("on"):
        f(on(mesh)), f(on(mesh))
    (record,) = caplog.records
    assert record.levelname == "INFO" and "the forced-host shim is active" in record.getMessage()


PROBE = """
import {setup}
import jax, haliax as hax
from haliax._src.forced_host_shim import forced_device_count, shim_is_active
mesh = jax.sharding.Mesh(jax.devices(), ("data",))
print(len(jax.devices()), forced_device_count(), shim_is_active(mesh))
"""


@pytest.mark.parametrize(
    ("environment", "setup", "expected"),
    [
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}, "jax", "4 4 True"),
        ({}, "jax; jax.config.update('jax_num_cpu_devices', 3)", "3 3 True"),
        ({}, "jax", "1 1 False"),
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=1"}, "jax", "1 1 False"),
        (
            {"HALIAX_FORCED_HOST_SHIM": "off", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
            "jax",
            "4 4 False",
        ),
        ({"HALIAX_FORCED_HOST_SHIM": "on"}, "jax", "1 1 True"),
    ],
)
def test_the_environment(environment, setup, expected):
    assert run_python(PROBE.format(setup=setup), environment).strip() == expected


def test_an_unknown_mode_in_the_environment():
    message = run_python("import haliax", {"HALIAX_FORCED_HOST_SHIM": "maybe"}, fails=True)
    assert "HALIAX_FORCED_HOST_SHIM: the mode is 'maybe'; expected 'auto', 'on' or 'off'." in message


def test_without_its_file_there_is_no_shim(tmp_path):
    shutil.copytree(SOURCE, tmp_path / "haliax", ignore=shutil.ignore_patterns("forced_host_shim.py", "__pycache__"))
    script = (
        "import jax, numpy as np, haliax as hax\n"
        "assert not hasattr(hax.partitioning, 'forced_host_shim')\n"
        "mesh = jax.sharding.Mesh(np.array(jax.devices()), ('data',))\n"
        "x = jax.device_put(np.ones(8), jax.sharding.NamedSharding(mesh, jax.P()))\n"
        "f = hax.named_jit(lambda x: x * 1, {'a': 'data'}, mesh=mesh)\n"
        "print(f.lower(hax.named(x, 'a')).compile().input_shardings[0][0].spec)\n"
    )
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "PYTHONPATH": str(tmp_path)}
    assert run_python(script, flags).strip() in ("PartitionSpec()", "P()")


def test_only_named_jit_and_the_facade_know_it():
    users = [path for path in SOURCE.rglob("*.py") if "forced_host_shim" in path.read_text()]
    assert sorted(p.name for p in users) == ["forced_host_shim.py", "named_jit.py", "partitioning.py"]


def run_python(script: str, environment: dict[str, str], fails: bool = False) -> str:
    """What a fresh process prints (its errors, if it is to fail), with no forced devices but those asked for."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "HALIAX_FORCED_HOST_SHIM")}
    done = subprocess.run(
        [sys.executable, "-c", script], env=inherited | environment, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout
