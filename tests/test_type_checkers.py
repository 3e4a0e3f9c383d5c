"""Annotations under runtime type checkers, and what static ones see, at run time."""

import importlib.util
import sys
from pathlib import Path
from typing import Optional

import equinox as eqx
import jax
import pytest
import typeguard
from beartype import beartype
from beartype.door import is_bearable
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import TypeCheckError, jaxtyped

import haliax as hax
import haliax.haxtyping as ht
from haliax import Axis, NamedArray

# --- Checkers ---


def beartype_accepts(annotation, value) -> bool:
    return is_bearable(value, annotation)


def typeguard_accepts(annotation, value) -> bool:
    try:
        typeguard.check_type(value, annotation)
    except typeguard.TypeCheckError:
        return False
    return True


def jaxtyped_accepts(annotation, value) -> bool:
    @jaxtyped(typechecker=beartype)
    def take(x: annotation):
        return x

    try:
        take(value)
    except TypeCheckError:
        return False
    return True


AB, BA, INTS = hax.zeros({"a": 2, "b": 3}), hax.zeros({"b": 2, "a": 3}), hax.arange(Axis("a", 2))
HINTS = [
    (ht.Float[NamedArray, "a b"], AB, BA),
    (ht.Float[NamedArray, "a ..."], AB, INTS),
    (ht.Int["a"], INTS, AB),
    (NamedArray["a b"], AB, AB.array),
    (NamedArray["{b a}"], BA, INTS),
    (Optional[NamedArray["a"]], None, AB),
    (NamedArray["a"] | None, INTS, BA),
    (NamedArray["a"] | NamedArray["b a"], BA, AB),
    (ht.Float[NamedArray | jax.Array, "a b"], AB.array, INTS),
    (list[NamedArray["a b"]], [AB, AB], [BA]),
    (dict[str, NamedArray["a b"]], {"x": AB}, {"x": BA}),
    (tuple[NamedArray["a b"], ...], (AB,), (BA,)),
]


@pytest.mark.parametrize("accepts", [beartype_accepts, typeguard_accepts, jaxtyped_accepts])
@pytest.mark.parametrize(("hint", "good", "bad"), HINTS)
def test_checkers(accepts, hint, good, bad):
    assert accepts(hint, good)
    assert not accepts(hint, bad)


def test_checked_results():
    @jaxtyped(typechecker=beartype)
    def total(x: NamedArray["a b"]) -> NamedArray["a"]:
        return x.sum("a")

    with pytest.raises(TypeCheckError):
        total(AB)


def test_checked_modules():
    @jaxtyped(typechecker=beartype)
    class Layer(eqx.Module):
        weight: ht.Float[NamedArray, "a b"]
        bias: ht.Float[NamedArray, "b"] | None = hax.field(default=None, axis_names=("b",))

    assert jax.tree.leaves(Layer(AB)) == [AB.array]
    jax.tree.map(lambda _: None, Layer(AB))  # what transformations build is not checked
    with pytest.raises(TypeCheckError):
        Layer(BA)
    with pytest.raises(TypeCheckError):
        Layer(AB, INTS)


def test_checks_hold_inside_transformations():
    @jaxtyped(typechecker=beartype)
    def square(x: ht.Float[NamedArray, "b"]) -> ht.Float[NamedArray, "b"]:
        return x * x

    assert hax.vmap(square, "a")(AB).matches_axes("a b")
    with pytest.raises(TypeCheckError):
        hax.vmap(square, "b")(AB)
    assert jax.make_jaxpr(hax.named_jit(square))(AB["a", 0])


def test_the_message_of_a_checker_says_what_was_asked():
    @beartype
    def take(x: ht.Float[NamedArray, "a b"]):
        return x

    with pytest.raises(BeartypeCallHintViolation, match=r"haliax\.Float\[NamedArray, \"a b\"\]") as error:
        take(BA)
    assert "b=2, a=3" in str(error.value)


# --- The typed usages, at run time ---


def load_usages():
    path = Path(__file__).parent / "typing" / "accepted.py"
    spec = importlib.util.spec_from_file_location("accepted_usages", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


accepted = load_usages()


@pytest.mark.parametrize("usage", accepted.USAGES, ids=lambda f: f.__name__)
def test_results_have_the_types_that_type_checkers_see(usage, monkeypatch):
    def check(value, hint):
        assert is_bearable(value, hint), f"{type(value)} is no {hint}"
        return value

    monkeypatch.setattr(accepted, "assert_type", check)
    usage()
