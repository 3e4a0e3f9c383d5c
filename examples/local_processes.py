"""Several processes of this machine that are one JAX, as the hosts of a cluster are; each has a few CPU devices.

On a cluster, `jax.distributed.initialize()` finds the other processes by itself, and nothing of this file is needed.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time

import jax

PLACE = "HALIAX_EXAMPLE_PROCESS"


def use_cpu_devices(count: int) -> None:
    """Make this process's CPU look like several devices; it must come before anything runs on JAX."""
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", count)


def join() -> bool:
    """Whether this process was started by `launch`; it is then one JAX with the others."""
    if PLACE not in os.environ:
        return False
    _print_only_what_python_prints()
    number, count, coordinator = os.environ[PLACE].split()
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(coordinator, int(count), int(number))
    return True


def _print_only_what_python_prints() -> None:
    """Gloo, by which the processes talk, tells on standard output whom it has found."""
    sys.stdout.flush()
    own = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdout = open(own, "w", buffering=1)


def launch(count: int) -> None:
    """Run this very command in several processes, show what each prints, and end with the first that fails."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    started = [_start(f"{number} {count} {coordinator}") for number in range(count)]
    readers = [threading.Thread(target=_show, args=numbered) for numbered in enumerate(started)]
    for reader in readers:
        reader.start()
    try:
        codes = _wait(started)
    finally:
        for process in started:
            process.kill()  # nothing happens to one that has ended
    for reader in readers:
        reader.join()
    if any(codes):
        sys.exit(f"{sys.argv[0]}: process {next(i for i, code in enumerate(codes) if code)} failed")


def _start(place: str) -> subprocess.Popen[str]:
    command = [sys.executable, *sys.argv]
    environment = os.environ | {PLACE: place, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _show(number: int, process: subprocess.Popen[str]) -> None:
    for line in process.stdout or ():
        print(f"[{number}] {line}", end="", flush=True)


def _wait(started: list[subprocess.Popen[str]]) -> list[int | None]:
    """The exit codes when all have ended well, or one has failed: the others may be waiting for it."""
    while True:
        codes = [process.poll() for process in started]
        if None not in codes or any(codes):
            return codes
        time.sleep(0.05)
