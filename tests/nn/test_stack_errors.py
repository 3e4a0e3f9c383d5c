"""What stacks and lists of layers refuse, and what they say."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import haliax as hax
from haliax import ScanCheckpointPolicy
from haliax.axis import make_axes
from haliax.nn.scan import BlockSeq, Stacked

L, E = make_axes(layers=3, e=2)
X = hax.ones(E)


class Layer(eqx.Module):
    weight: hax.NamedArray

    @staticmethod
    def init(axis, *, key):
        return Layer(hax.random.normal(key, axis))

    def __call__(self, x, extra=0.0):
        return x + self.weight * extra


def make(kind, **options):
    return kind.init(L, Layer, **options)(E, key=jax.random.split(jax.random.PRNGKey(0), 3))


ERRORS = {
    "one raw key": (
        lambda: Stacked.init(L, Layer)(E, key=jax.random.PRNGKey(0)),
        ValueError,
        "vmap: axis 'layers' has size 2; expected 3. key has leading dimension 2: its shape is (2,).",
    ),
    "one typed key": (
        lambda: Stacked.init(L, Layer)(E, key=jax.random.key(0)),
        TypeError,
        "vmap: key is a single random key; expected one for each place along axis 'layers'. Split it with"
        " jax.random.split.",
    ),
    "one typed key for a list": (
        lambda: BlockSeq.init(L, Layer)(E, key=jax.random.key(0)),
        TypeError,
        "BlockSeq.init: key is a single random key; expected one for each place along axis 'layers'. Split it"
        " with jax.random.split.",
    ),
    "no such layer": (lambda: make(Stacked).get_layer(3), IndexError, "get_layer: index 3; there are 3 layers."),
    "no such layer in a list": (
        lambda: make(BlockSeq).get_layer(-4),
        IndexError,
        "get_layer: index -4; there are 3 layers.",
    ),
    "a scan without outputs": (
        lambda: make(Stacked).scan(X),
        ValueError,
        "scan: the result of the function is a NamedArray; expected a pair of the next carry and an output.",
    ),
    "a scan without outputs of a list": (
        lambda: make(BlockSeq).scan(X),
        ValueError,
        "scan: the result of the function is a NamedArray; expected a pair of the next carry and an output.",
    ),
    "an argument of another size": (
        lambda: make(BlockSeq).fold(X, jnp.ones(5)),
        ValueError,
        "scan: axis 'layers' has size 5; expected 3. args[0] has leading dimension 5: its shape is (5,).",
    ),
    "an argument of a stack, of another size": (
        lambda: make(Stacked).fold(X, jnp.ones(5)),
        ValueError,
        "scan: axis 'layers' has size 5; expected 3. args[0] has leading dimension 5: its shape is (5,).",
    ),
    "numpy's integers are checked": (
        lambda: make(Stacked).get_layer(np.int64(3)),
        IndexError,
        "get_layer: index 3; there are 3 layers.",
    ),
    "groups that do not divide": (
        lambda: make(BlockSeq, gradient_checkpointing=ScanCheckpointPolicy(nested=2)).fold(X),
        ValueError,
        "scan: nested is 2; expected a divisor of the length 3.",
    ),
}


OF_BOTH = {
    "no axis": (
        lambda kind: kind.init(3, Layer),
        TypeError,
        "{}.init: the axis is an int; expected an Axis or a name.",
    ),
    "a module without init": (
        lambda kind: kind.init(L, 3),
        TypeError,
        "{}.init: module is an int; expected a class with a function init, which makes a layer.",
    ),
    "no policy": (
        lambda kind: kind.init(L, Layer, gradient_checkpointing="none"),
        ValueError,
        "ScanCheckpointPolicy: no policy 'none'; expected a policy, a bool, or one of 'offload', 'recompute', 'full',"
        " 'save_all', 'nested'.",
    ),
    "fold of nothing": (
        lambda kind: make(kind).fold_via(None),
        TypeError,
        "fold_via: the function is None; expected a callable.",
    ),
    "scan of a layer": (
        lambda kind: make(kind).scan_via(X),
        TypeError,
        "scan_via: the function is a NamedArray; expected a callable.",
    ),
    "vmap of a number": (
        lambda kind: make(kind).vmap_via(3),
        TypeError,
        "vmap_via: the function is an int; expected a callable.",
    ),
    "unroll a half": (
        lambda kind: make(kind).fold(X, unroll=0.5),
        TypeError,
        "scan: unroll is a float; expected an integer.",
    ),
    "unroll backwards": (
        lambda kind: make(kind).fold(X, unroll=-1),
        ValueError,
        "scan: unroll is -1; expected 0 or more.",
    ),
    "half a layer": (
        lambda kind: make(kind).get_layer(0.5),
        TypeError,
        "get_layer: index is a float; expected an integer.",
    ),
    "some layers": (
        lambda kind: make(kind).get_layer(slice(2)),
        TypeError,
        "get_layer: index is a slice; expected an integer.",
    ),
}


@pytest.mark.parametrize("kind", [Stacked, BlockSeq])
@pytest.mark.parametrize(("call", "error", "message"), OF_BOTH.values(), ids=OF_BOTH)
def test_errors_of_both(kind, call, error, message):
    with pytest.raises(error) as raised:
        call(kind)
    assert str(raised.value) == message.format(kind.__name__)


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message
