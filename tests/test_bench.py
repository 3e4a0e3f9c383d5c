"""`python -m haliax.bench`: what it takes, what it prints, and what it says about what it can not use."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import haliax
from haliax import bench

EXPECTED = "(fn, args) or (fn, args, kwargs), of a callable, a tuple and a dictionary"
MODULE = '''
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import haliax as hax

Width = hax.Axis("width", 8)
mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


class Model(eqx.Module):
    weights: list
    name: str = "tiny"

    def __call__(self, x):
        return x + sum(self.weights)

    def scaled(self, x, scale=1.0):
        return {"y": self(x) * scale, "name": self.name}


def model():
    return Model([hax.ones(Width) for _ in range(3)])


def add(tree, other):
    return jax.tree.map(lambda x: x + 1, eqx.filter(tree, eqx.is_array)), other


def plain():
    return add, (model(), "static")


def keywords():
    return add, (model(),), {"other": np.ones(2)}


def module():
    return model(), (hax.ones(Width),)


def method():
    return model().scaled, (hax.ones(Width),), {"scale": 2.0}


def partial():
    return functools.partial(add, model()), (jax.random.key(0),)


def donating():
    return hax.named_jit(add, donate_args=(True,)), (model(), None)


def on_a_mesh():
    """Only inside these contexts can it be called."""
    with jax.set_mesh(mesh), hax.axis_mapping({"width": "data"}):
        yield hax.named_jit(lambda x: hax.auto_sharded(x) * 2), (hax.shard(hax.ones(Width)),)


def list_of_two():
    return [add, (1, 2)]


def no_tuple():
    return add, model()


def failing():
    raise RuntimeError("of the user")


number = 3
'''

STEPS = {
    "one call, until its result is there",
    "the same arguments, nothing computed",
    "trace and lower",
    "compile",
}


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """A folder with the module, in which Python runs."""
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "needs.py").write_text("import not_there\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("mine", None)


def rows(output: str) -> dict[str, list[str]]:
    """The cells of each step, of a table that is printed."""
    cells = [re.split(r"\s{2,}", line) for line in output.splitlines()]
    return {first: others for first, *others in cells if first in STEPS}


@pytest.mark.parametrize(
    ("function", "arrays", "size", "donates"),
    [
        ("plain", 3, 96, False),
        ("keywords", 4, 112, False),
        ("module", 4, 128, False),
        ("method", 4, 128, False),
        ("partial", 4, 96 + 8, False),
        ("donating", 3, 96, True),
        ("on_a_mesh", 1, 32, False),
    ],
)
def test_what_is_printed(in_folder, capsys, function, arrays, size, donates):
    bench.main([f"mine:{function}", "--seconds", "0"])
    out, err = capsys.readouterr()
    first, head, *_ = out.splitlines()
    told = re.fullmatch(rf"mine:{function}: (\d+) arrays, ([\d,]+) bytes, on 8 cpu devices", first)
    assert told is not None and err == ""
    assert (int(told[1]), int(told[2])) == (arrays, size)
    assert head.split() == ["jax.jit", "named_jit", "ratio"]
    assert rows(out).keys() == STEPS
    for plain, ours, ratio in rows(out).values():
        assert all(re.fullmatch(r"\d+\.\d+ (us|ms|s)", cell) for cell in (plain, ours)) and float(ratio) > 0
    assert f"new: haliax {haliax.__version__}\n" in out
    assert ("Arguments are donated: each call gets copies, which are made before it." in out) == donates


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine"], "'mine' is no module:function"),
        (["mine:"], "'mine:' is no module:function"),
        (["nowhere:plain"], "there is no module 'nowhere' in this folder or on the path"),
        (["mine.deeper:plain"], "there is no module 'mine.deeper' in this folder or on the path"),
        (["mine:nothing"], "mine has no function 'nothing'"),
        (["mine:number"], "mine has no function 'number'"),
        (["mine:plain", "--seconds", "-1"], "--seconds -1.0: must not be negative"),
        (["mine:plain", "--seconds", "nan"], "--seconds nan: must not be negative"),
        (["mine:plain", "--old", "no-such-python"], "--old no-such-python: No such file or directory"),
        (["mine:list_of_two"], f"list_of_two must return or yield {EXPECTED}"),
        (["mine:no_tuple"], f"no_tuple must return or yield {EXPECTED}"),
    ],
)
def test_what_can_not_be_used_is_one_line(in_folder, capsys, arguments, message):
    with pytest.raises(SystemExit) as exit:
        bench.main(arguments)
    assert exit.value.code == 2 and capsys.readouterr() == ("", f"haliax.bench: {message}\n")


def test_errors_of_the_user_are_shown_as_they_are(in_folder):
    with pytest.raises(RuntimeError, match="of the user"):
        bench.main(["mine:failing"])
    with pytest.raises(ModuleNotFoundError, match="not_there"):
        bench.main(["needs:anything"])


# Another haliax -------------------------------------------------------------------------------------------------------

# A library that has a `named_jit`, and nothing else that is asked for.
OLDER = """
import equinox as eqx


def named_jit(fn):
    return eqx.filter_jit(fn)
"""
OLD_MODULE = """
import jax.numpy as jnp


def plain():
    return (lambda x: x + 1), (jnp.ones(3),)


def failing():
    raise ValueError("not with this one")
"""


def interpreter(folder: Path, path: str) -> str:
    """A Python with another PYTHONPATH, as one of another environment is."""
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{path}${{PYTHONPATH:+:$PYTHONPATH}}" exec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    return str(script)


@pytest.fixture
def with_older(in_folder):
    """The interpreter that has an older haliax, and a module that runs with both."""
    older = in_folder / "site" / "haliax"
    older.mkdir(parents=True)
    (older / "__init__.py").write_text('__version__ = "1.3"\n')
    (older / "partitioning.py").write_text(OLDER)
    (in_folder / "both.py").write_text(OLD_MODULE)
    yield interpreter(in_folder, str(older.parent))
    sys.modules.pop("both", None)


def test_an_older_haliax_side_by_side(with_older):
    """As a user runs it, in a process."""
    environment = os.environ | {"PYTHONPATH": str(Path(haliax.__file__).parents[1])}
    command = [sys.executable, "-m", "haliax.bench", "both:plain", "--seconds", "0", "--old", with_older]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)
    head = done.stdout.splitlines()[1]
    assert re.split(r"\s{2,}", head.strip()) == ["jax.jit", "named_jit", "ratio", "old named_jit", "old / new"]
    assert {len(cells) for cells in rows(done.stdout).values()} == {5}
    assert done.stdout.endswith(f"new: haliax {haliax.__version__}; old: haliax 1.3\n")


def test_an_interpreter_that_fails(with_older, capsys):
    with pytest.raises(SystemExit):
        bench.main(["both:failing", "--old", with_older])
    assert capsys.readouterr().err == f"haliax.bench: --old {with_older}: it failed: ValueError: not with this one\n"


def test_an_interpreter_with_this_haliax(in_folder, capsys):
    python = interpreter(in_folder, str(Path(haliax.__file__).parents[1]))
    with pytest.raises(SystemExit):
        bench.main(["mine:plain", "--seconds", "0", "--old", python])
    folder = Path(haliax.__file__).parent
    assert capsys.readouterr().err == f"haliax.bench: --old {python}: its haliax is this one, in {folder}\n"
