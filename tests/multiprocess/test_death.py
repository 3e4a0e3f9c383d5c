"""A process that dies: the others fail, each with an error of its own, and none waits for ever."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import haliax as hax

SCENES = {
    "in_the_midst_of_steps": (4, 1, 2),
    "while_the_others_are_busy_elsewhere": (2, 2, 1),
    "the_coordinator_in_the_midst_of_steps": (2, 2, 0),
}
"""How many processes, with how many devices each, and the number of the one that dies."""


@pytest.fixture(scope="module")
def groups(group_of):
    """The processes of each scene, all at once: they mostly wait."""
    with ThreadPoolExecutor() as pool:
        started = {scene: pool.submit(group_of, *SCENES[scene][:2], f"test_death:{scene}") for scene in SCENES}
    return {scene: future.result() for scene, future in started.items()}


@pytest.mark.parametrize("scene", SCENES)
def test_the_others_fail(groups, scene):
    victim = SCENES[scene][2]
    for number, process in enumerate(groups[scene]):
        if number == victim:
            assert process.returncode == DIED
        else:
            assert process.failure(f"test_death:{scene}") is not None
            assert process.returncode not in (None, 0, SURVIVED), process.log


DIED, SURVIVED = 3, 4


def total():
    """A step that needs all processes."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    x = jax.make_array_from_callback((16,), NamedSharding(mesh, PartitionSpec("data")), lambda i: np.ones(16)[i])
    return hax.named_jit(jnp.sum, mesh=mesh)(x).block_until_ready()


def steps(victim):
    for step in range(100):
        if step == 3 and jax.process_index() == victim:
            os._exit(DIED)
        total()
    os._exit(SURVIVED)


def in_the_midst_of_steps():
    steps(2)


def the_coordinator_in_the_midst_of_steps():
    steps(0)


def while_the_others_are_busy_elsewhere():
    """The service that joins the processes ends those that do not notice by themselves."""
    total()
    if jax.process_index() == 1:
        os._exit(DIED)
    time.sleep(600)
    os._exit(SURVIVED)
