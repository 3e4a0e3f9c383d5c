"""One comparison for all layers: values and gradients of a function of raw arrays, in JAX and in torch."""

import jax
import jax.numpy as jnp
import numpy as np
import torch

import haliax as hax

RNG = np.random.default_rng(0)


def normal(*shape):
    """Random numbers of a shape; each call gives others."""
    return RNG.normal(size=shape).astype(np.float32)


def agree(ours, theirs, *arrays, rtol=2e-4, atol=2e-5):
    """Check that both functions give the same result, and the same gradients for all arrays of floats."""
    is_float = [np.issubdtype(a.dtype, np.floating) for a in arrays]

    def of_floats(*floats):
        left = iter(floats)
        return ours(*(next(left) if f else jnp.asarray(a) for f, a in zip(is_float, arrays, strict=True)))

    result, backward = jax.vjp(of_floats, *(jnp.asarray(a) for f, a in zip(is_float, arrays, strict=True) if f))
    tensors = [torch.tensor(a, requires_grad=f) for f, a in zip(is_float, arrays, strict=True)]
    expected = theirs(*tensors)
    np.testing.assert_allclose(result, expected.detach().numpy(), rtol=rtol, atol=atol)

    cotangent = np.cos(np.arange(result.size, dtype=np.float32)).reshape(result.shape)
    wanted = torch.autograd.grad(expected, [t for t in tensors if t.requires_grad], torch.tensor(cotangent))
    for ours_, theirs_ in zip(backward(jnp.asarray(cotangent)), wanted, strict=True):
        np.testing.assert_allclose(ours_, theirs_.numpy(), rtol=rtol, atol=10 * atol)


def named(array, names):
    """A named array whose axes are single letters."""
    return hax.named(array, tuple(names))
