"""torch's layers load what we save and we load what they save, and both compute the same."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import safetensors.torch
import torch

import haliax as hax
import haliax.nn as hnn
from haliax.state_dict import (
    from_torch_compatible_state_dict,
    load_state_dict,
    save_state_dict,
    to_torch_compatible_state_dict,
)

Batch, In, Out, H, D, Vocab, Layers = hax.make_axes(batch=5, i=4, o=6, h=2, d=3, v=7, l=3)
KEY = jax.random.key(0)
X = np.linspace(-1, 1, 5 * 4, dtype=np.float32).reshape(5, 4)
Y = np.linspace(-1, 1, 5 * 6, dtype=np.float32).reshape(5, 6)
TOKENS = np.array([0, 6, 3, 3, 1])


def named(array: np.ndarray, *axes) -> hax.NamedArray:
    return hax.NamedArray(array.reshape([axis.size for axis in axes]), tuple(axis.name for axis in axes))


class TwoLayers(torch.nn.Module):
    """Layers in a list, as torch names them."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Stack(hax.state_dict.ModuleWithStateDictSerialization):
    """The same as a stack."""

    layers: hnn.Stacked

    @staticmethod
    def init():
        return Stack(hnn.Stacked.init(Layers, hnn.Linear)(In, In, key=jax.random.split(KEY, 3)))

    def __call__(self, x):
        return self.layers.fold(x)


LAYERS = {
    "linear": (
        lambda: hnn.Linear.init(In, Out, key=KEY),
        lambda: torch.nn.Linear(4, 6),
        named(X, Batch, In),
        X,
    ),
    "linear without bias": (
        lambda: hnn.Linear.init(In, Out, key=KEY, use_bias=False),
        lambda: torch.nn.Linear(4, 6, bias=False),
        named(X, Batch, In),
        X,
    ),
    "linear to several axes": (
        lambda: hnn.Linear.init(In, (H, D), key=KEY),
        lambda: torch.nn.Linear(4, 6),
        named(X, Batch, In),
        X,
    ),
    "linear from several axes": (
        lambda: hnn.Linear.init((H, D), In, key=KEY),
        lambda: torch.nn.Linear(6, 4),
        named(Y, Batch, H, D),
        Y,
    ),
    "linear from nothing": (
        lambda: hnn.Linear.init((), Out, key=KEY),
        lambda: torch.nn.Linear(1, 6),
        named(X[:, 0], Batch),
        X[:, :1],
    ),
    "layer norm": (
        lambda: hnn.LayerNorm.init((H, D)),
        lambda: torch.nn.LayerNorm(6),
        named(Y, Batch, H, D),
        Y,
    ),
    "rms norm": (
        lambda: hnn.RmsNorm.init(In, use_bias=False, eps=1e-6),
        lambda: torch.nn.RMSNorm(4, eps=1e-6),
        named(X, Batch, In),
        X,
    ),
    "embedding": (
        lambda: hnn.Embedding.init(Vocab, (H, D), key=KEY),
        lambda: torch.nn.Embedding(7, 6),
        named(TOKENS, Batch),
        TOKENS,
    ),
    "stack": (Stack.init, TwoLayers, named(X, Batch, In), X),
    "convolution": (
        lambda: hnn.Conv.init((hax.Axis("x", 4),), hax.Axis("c", 1), Out, 3, key=KEY, padding=1),
        lambda: torch.nn.Conv1d(1, 6, 3, padding=1),
        named(X, Batch, hax.Axis("c", 1), hax.Axis("x", 4)),
        X[:, None],
    ),
    "transposed convolution": (
        lambda: hnn.ConvTranspose.init(
            (hax.Axis("x", 2), hax.Axis("y", 1)), In.resize(2), In, (3, 2), groups=2, key=KEY
        ),
        lambda: torch.nn.ConvTranspose2d(2, 4, (3, 2), groups=2),
        named(X, Batch, In.resize(2), hax.Axis("x", 2), hax.Axis("y", 1)),
        X.reshape(5, 2, 2, 1),
    ),
}


def results(ours, theirs, x, theirs_x) -> tuple[np.ndarray, np.ndarray]:
    with torch.no_grad():
        expected = theirs(torch.from_numpy(theirs_x)).numpy()
    y = ours(x)
    return np.asarray(y.array).reshape(5, -1), expected.reshape(5, -1)


@pytest.mark.parametrize("name", LAYERS)
def test_torch_loads_what_we_save(tmp_path, name):
    make, make_theirs, *inputs = LAYERS[name]
    ours, theirs = make(), make_theirs()
    save_state_dict(to_torch_compatible_state_dict(ours), tmp_path / "file.safetensors")
    theirs.load_state_dict(safetensors.torch.load_file(tmp_path / "file.safetensors"))
    assert np.allclose(*results(ours, theirs, *inputs), atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_we_load_what_torch_saves(tmp_path, name):
    make, make_theirs, *inputs = LAYERS[name]
    template, theirs = make(), make_theirs()
    safetensors.torch.save_file(theirs.state_dict(), tmp_path / "file.safetensors")
    for mesh in (None, hax.make_mesh({"data": 4, "model": 2})):
        ours = from_torch_compatible_state_dict(template, tmp_path / "file.safetensors", mesh=mesh)
        assert np.allclose(*results(ours, theirs, *inputs), atol=1e-5)
    numpy = {key: value.numpy() for key, value in theirs.state_dict().items()}
    assert np.allclose(*results(from_torch_compatible_state_dict(template, numpy), theirs, *inputs), atol=1e-5)


def test_small_floats(tmp_path):
    state = {
        "bf16": torch.arange(6).reshape(2, 3).to(torch.bfloat16),
        "fp8": torch.arange(4).to(torch.float8_e4m3fn),
        "half": torch.arange(4).half(),
        "flags": torch.tensor([True, False]),
        "wide": torch.tensor([2**40]),
    }
    safetensors.torch.save_file(state, tmp_path / "file")
    loaded = load_state_dict(tmp_path / "file")
    save_state_dict(loaded, tmp_path / "again")
    for name, tensor in safetensors.torch.load_file(tmp_path / "again").items():
        assert tensor.dtype == state[name].dtype and torch.equal(tensor.double(), state[name].double())
        assert np.array_equal(loaded[name].astype(np.float64), state[name].double().numpy())
