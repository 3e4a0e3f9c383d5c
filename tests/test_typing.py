"""Annotations: which arrays they ask for, what they tell, how they read."""

import copy
import pickle
import typing
from dataclasses import replace
from typing import Annotated, Any, Optional, TypeVar, Union

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from hypothesis import given, strategies as st

import haliax as hax
import haliax.haxtyping as ht
from haliax import Axis, Named, NamedArray, NamedArrayAxes

X = hax.zeros({"a": 2, "b": 3, "c": 1})
SCALAR = hax.named(jnp.zeros(()), ())


class Special(NamedArray):
    """A class of the user's own."""

    __slots__ = ()


def axes_of(annotation) -> NamedArrayAxes:
    return typing.get_args(annotation)[1]


# --- The forms and what they mean ---

FORMS = [
    (("a b c", ("a", "b", "c"), ["a", "b", "c"]), NamedArrayAxes(("a", "b", "c"))),
    (("", (), []), NamedArrayAxes(())),
    (("a ...", ("a", ...), ["a", "..."], "  a   ... "), NamedArrayAxes(("a",), subset=True)),
    (("... c", (..., "c")), NamedArrayAxes((), ("c",), subset=True)),
    (("a ... c", ("a", ..., "c")), NamedArrayAxes(("a",), ("c",), subset=True)),
    (("...", (...,), ...), NamedArrayAxes((), subset=True)),
    (
        ("{c a}", {"a", "c"}, frozenset("ac"), "{ a c }", dict.fromkeys("ac").keys()),
        NamedArrayAxes(("a", "c"), ordered=False),
    ),
    (("{c ... a}", {"a", "c", ...}, {"a", "c", "..."}), NamedArrayAxes(("a", "c"), ordered=False, subset=True)),
    (("{}", set()), NamedArrayAxes((), ordered=False)),
    (("{...}", {...}), NamedArrayAxes((), ordered=False, subset=True)),
    ((("a b", "{"),), NamedArrayAxes(("a b", "{"))),
    (("layer.0 head-dim x/y π",), NamedArrayAxes(("layer.0", "head-dim", "x/y", "π"))),
]
EVERY_FORM = [(form, axes) for forms, axes in FORMS for form in forms]


@pytest.mark.parametrize(("form", "axes"), EVERY_FORM)
def test_each_form_is_parsed_to_the_same_axes(form, axes):
    annotation = NamedArray[form]
    assert typing.get_origin(annotation) is Annotated
    assert annotation.__metadata__ == (axes,)
    assert annotation == NamedArray[axes] == Named[NamedArray, form] == Named[NamedArray, annotation]
    assert hash(annotation) == hash(NamedArray[axes])
    assert issubclass(typing.get_args(annotation)[0], NamedArray)
    assert axes_of(ht.Float[NamedArray, form]) == replace(axes, dtype=axes_of(ht.Float["a"]).dtype)


MATCHES = {
    "a b c": True,
    "a b": False,
    "b a c": False,
    "a b c d": False,
    "": False,
    "...": True,
    "a ...": True,
    "a b c ...": True,
    "b ...": False,
    "... c": True,
    "... b c": True,
    "... b": False,
    "a ... c": True,
    "a b ... c": True,
    "c ... a": False,
    "a b c ... d": False,
    "{c b a}": True,
    "{c b}": False,
    "{a b c d}": False,
    "{c a ...}": True,
    "{c d ...}": False,
    "{...}": True,
    "{}": False,
}


@pytest.mark.parametrize(("spec", "expected"), MATCHES.items())
def test_matching(spec, expected):
    annotation = NamedArray[spec]
    for form in (spec, annotation, axes_of(annotation), typing.get_args(annotation)[0]):
        assert X.matches_axes(form) is expected
    assert isinstance(X, typing.get_args(annotation)[0]) is expected
    assert jax.jit(lambda x: x.matches_axes(spec))(X) == expected


@pytest.mark.parametrize("spec", ["", (), "...", ..., "{}", "{...}", set()])
def test_no_axes_match(spec):
    assert SCALAR.matches_axes(spec)


def test_overlapping_ends_do_not_match():
    assert not X.matches_axes(NamedArrayAxes(("a", "b"), ("c", "d"), subset=True))
    assert not hax.zeros({"a": 1}).matches_axes(NamedArrayAxes((), ("b", "a"), subset=True))


@given(st.lists(st.sampled_from("abcde"), unique=True), st.lists(st.sampled_from("abcde"), unique=True), st.data())
def test_matching_is_what_it_says(names, wanted, data):
    array = hax.named(np.zeros([1] * len(names)), tuple(names))
    cut = data.draw(st.integers(0, len(wanted)))
    before, after = wanted[:cut], wanted[cut:]
    middles = [names[i:j] for i in range(len(names) + 1) for j in range(i, len(names) + 1)]
    assert array.matches_axes(wanted) == (names == wanted)
    assert array.matches_axes([*before, ..., *after]) == any(before + middle + after == names for middle in middles)
    assert array.matches_axes(set(wanted)) == (set(names) == set(wanted))
    assert array.matches_axes({*wanted, ...}) == (set(wanted) <= set(names))


def test_equal_meaning_is_equal():
    assert NamedArrayAxes(("a",), ("b",)) == NamedArrayAxes(("a", "b"))
    assert NamedArrayAxes(("b", "a"), ordered=False) == NamedArrayAxes(("a",), ("b",), ordered=False)
    assert NamedArrayAxes(["a"]) == NamedArrayAxes(("a",))
    assert NamedArrayAxes(("a",), subset=True) != NamedArrayAxes((), ("a",), subset=True)


# --- Dtypes ---

DTYPES = {
    "f16": jnp.float16,
    "bf16": jnp.bfloat16,
    "f32": jnp.float32,
    "f64": np.float64,
    "i8": jnp.int8,
    "i16": jnp.int16,
    "i32": jnp.int32,
    "i64": np.int64,
    "u8": jnp.uint8,
    "u16": jnp.uint16,
    "u32": jnp.uint32,
    "u64": np.uint64,
    "complex64": jnp.complex64,
    "complex128": np.complex128,
    "bool_": np.bool_,
}
OTHERS = {"f8": jnp.float8_e4m3fn, "i4": jnp.int4, "key": jax.random.key(0).dtype}
CATEGORIES = {
    "Float": {"f16", "bf16", "f32", "f64", "f8"},
    "Int": {"i8", "i16", "i32", "i64", "i4"},
    "UInt": {"u8", "u16", "u32", "u64"},
    "Complex": {"complex64", "complex128"},
    "Bool": {"bool_"},
    "Key": {"key"},
    "Named": {*DTYPES, *OTHERS},
} | {name: {name} for name in DTYPES}


@pytest.mark.parametrize("name", CATEGORIES)
def test_dtypes(name):
    kind = getattr(ht, name)
    for dtype_name, dtype in (DTYPES | OTHERS).items():
        raw = jax.ShapeDtypeStruct((2,), dtype)
        assert NamedArray(raw, ("a",)).matches_axes(kind[NamedArray, "a"]) == (dtype_name in CATEGORIES[name])
        assert not NamedArray(raw, ("a",)).matches_axes(kind[NamedArray, "b"])


RAW = {
    "Float": jaxtyping.Float,
    "Int": jaxtyping.Int,
    "UInt": jaxtyping.UInt,
    "Complex": jaxtyping.Complex,
    "Bool": jaxtyping.Bool,
    "Key": jaxtyping.Key,
    "Named": jaxtyping.Shaped,
    "f32": jaxtyping.Float32,
    "bf16": jaxtyping.BFloat16,
    "i32": jaxtyping.Int32,
    "u8": jaxtyping.UInt8,
    "bool_": jaxtyping.Bool,
    "complex64": jaxtyping.Complex64,
}


@pytest.mark.parametrize("name", RAW)
@pytest.mark.parametrize("array_type", [jax.Array, np.ndarray, Any])
def test_raw_arrays_have_the_annotations_of_jaxtyping(name, array_type):
    annotation = getattr(ht, name)[array_type, "a 2"]
    assert repr(annotation) == repr(RAW[name][array_type, "a 2"])


def test_raw_arrays_are_checked():
    assert isinstance(jnp.zeros((3, 2)), ht.Float[jax.Array, "a 2"])
    assert not isinstance(jnp.zeros((3, 2), int), ht.Float[jax.Array, "a 2"])
    assert isinstance(jnp.zeros(2, int), ht.i32[jax.Array, "2"])
    assert not isinstance(jnp.zeros(2), ht.i32[jax.Array, "2"])


ANY_NAMED = TypeVar("ANY_NAMED", bound=NamedArray)
EITHER = TypeVar("EITHER", NamedArray, jax.Array)
BOTH = Union[ht.Float[NamedArray, "a"], ht.Float[jax.Array, "a"]]


@pytest.mark.parametrize(
    ("array_type", "expected"),
    [
        (NamedArray | jax.Array, BOTH),
        (Union[NamedArray, jax.Array], BOTH),
        (NamedArray | None, Optional[ht.Float[NamedArray, "a"]]),
        (ANY_NAMED, ht.Float[NamedArray, "a"]),
        (EITHER, BOTH),
    ],
)
def test_unions_and_type_variables_stand_for_their_members(array_type, expected):
    assert repr(ht.Float[array_type, "a"]) == repr(expected)  # jaxtyping's are not equal to themselves


@pytest.mark.parametrize("short", ["a b", {"a", "b"}, ("a", ...), ..., ["a", "b"], (), ""])
def test_axes_alone_are_of_a_named_array(short):
    assert ht.Float[short] == ht.Float[NamedArray, short]


def test_axes_may_follow_one_by_one():
    assert ht.Float[NamedArray, "a", ..., "b"] == ht.Float[NamedArray, "a ... b"]
    assert ht.Float["a", ..., "b"] == ht.Float[NamedArray, "a ... b"]
    assert NamedArray["a", ..., "b"] == NamedArray["a ... b"]


def test_dtypes_in_axes():
    assert X.matches_axes(NamedArrayAxes((), subset=True, dtype=jnp.floating))
    assert X.matches_axes(NamedArrayAxes((), subset=True, dtype="float32"))
    assert not X.matches_axes(NamedArrayAxes((), subset=True, dtype=np.dtype("int32")))
    assert X.matches_axes(NamedArrayAxes((), subset=True, dtype=ht.DTypeCategory("inexact", jnp.inexact)))


# --- What is no array, and what is only one later ---


@pytest.mark.parametrize(
    "inner", [None, object(), 1.0, "ab", jnp.zeros(2), jnp.zeros((2, 3, 1, 1)), hax.zeros({"a": 2})]
)
def test_what_does_not_fit_the_names_does_not_match(inner):
    broken = NamedArray.tree_unflatten(("a", "b", "c"), (inner,))
    for spec in ("a b c", "...", ht.Float["..."]):
        assert not broken.matches_axes(spec)


def test_what_stands_for_an_array_matches():
    shape = jax.eval_shape(lambda: X)
    assert shape.matches_axes(ht.f32["a b c"])
    assert NamedArray(np.zeros((2, 3)), ("a", "b")).matches_axes(ht.f64["a b"])
    assert hax.named(jax.random.split(jax.random.key(0), 2), "a").matches_axes(ht.Key["a"])


def test_while_tracing():
    seen = []

    def look(x):
        seen.append((x.matches_axes(ht.f32["a b c"]), x.matches_axes(ht.f32["b c"])))
        return x.sum().scalar()

    jax.make_jaxpr(look)(X)
    jax.make_jaxpr(jax.grad(look))(X)
    jax.make_jaxpr(lambda: hax.vmap(look, "a")(X))()
    assert seen == [(True, False), (True, False), (False, True)]


def test_on_explicit_meshes(explicit_mesh):
    with jax.set_mesh(explicit_mesh):
        x = hax.named(jax.device_put(np.zeros((8, 2), "float32"), jax.P("data", "model")), ("a", "b"))
    assert x.matches_axes(ht.f32["a b"])


def test_a_class_of_ones_own():
    special, plain = (typing.get_args(kind["a b"])[0] for kind in (Special, NamedArray))
    x = Special(jnp.zeros((2, 3)), ("a", "b"))
    assert isinstance(x, special)
    assert isinstance(x, plain)
    assert not isinstance(NamedArray(x.array, ("a", "b")), special)
    assert not isinstance(x.sum("a"), special)
    assert ht.Float[Special, "a"] != ht.Float[NamedArray, "a"]
    assert repr(ht.Float[Special, "a"].__origin__) == "<class 'haliax.Float[Special, \"a\"]'>"


# --- Annotations as objects ---

WRITTEN = {
    'NamedArray["a b"]': NamedArray["a b"],
    'NamedArray[""]': NamedArray[()],
    'NamedArray["a ... b"]': NamedArray["a", ..., "b"],
    'NamedArray["{a b}"]': NamedArray[{"b", "a"}],
    'NamedArray["{a ...}"]': NamedArray[{"a", ...}],
    "NamedArray[('a b', 'c')]": NamedArray["a b", "c"],
    "NamedArray[('a b',)]": NamedArray[("a b",)],
    "NamedArray[('a=1', ...)]": NamedArray["a=1", ...],
    "NamedArray[{'a b', ...}]": NamedArray[{"a b", ...}],
    'Float[NamedArray, "a"]': ht.Float[NamedArray, "a"],
    'float32[NamedArray, "a"]': NamedArray[NamedArrayAxes(("a",), dtype=np.dtype("float32"))],
} | {f'{name}[NamedArray, "..."]': getattr(ht, name)[...] for name in CATEGORIES if name != "Named"}
WRITTEN['f32[NamedArray, "a"]'] = WRITTEN.pop('float32[NamedArray, "a"]')


@pytest.mark.parametrize(("text", "annotation"), WRITTEN.items())
def test_an_annotation_reads_as_it_was_written(text, annotation):
    assert repr(axes_of(annotation)) == text
    assert repr(annotation) == f"typing.Annotated[haliax.{text}, {text}]"
    scope = {name: getattr(ht, name) for name in CATEGORIES} | {"NamedArray": NamedArray}
    assert eval(text, scope) == annotation


@pytest.mark.parametrize("annotation", [NamedArray["a ..."], ht.f32["{a b}"], ht.Float[Special, "a"]])
def test_annotations_can_be_copied_and_pickled(annotation):
    assert pickle.loads(pickle.dumps(annotation)) == annotation
    assert copy.deepcopy(annotation) == annotation
    assert pickle.loads(pickle.dumps(axes_of(annotation))) == axes_of(annotation)


def test_type_hints():
    def f(x: ht.Float[NamedArray, "a b"], y: "NamedArray['a']" = None) -> Optional[NamedArray["a"]]: ...

    hints = typing.get_type_hints(f, include_extras=True)
    assert hints == {"x": ht.Float["a b"], "y": NamedArray["a"], "return": Optional[NamedArray["a"]]}
    assert issubclass(typing.get_type_hints(f)["x"], NamedArray)
    assert hax.zeros({"a": 1, "b": 0}).matches_axes(typing.get_type_hints(f)["x"])


def test_an_annotation_makes_plain_arrays():
    made = NamedArray["a b"](jnp.zeros((2, 3)), ("a", "b"))
    assert type(made) is NamedArray


def test_kinds_are_classes_with_names():
    for name in CATEGORIES:
        assert getattr(ht, name).__name__ == name
        assert pickle.loads(pickle.dumps(getattr(ht, name))) is getattr(ht, name)
    assert hax.Named is ht.Named


# --- Malformed annotations ---

_FORMS = 'a string such as "batch ... embed" or "{batch embed}", or a sequence or set of names and `...`'
_NAMES = "expected names between spaces, and `...` for any others, all within braces if in any order."
_OTHER = "Sizes are left out; a name with other characters goes into a tuple of names."
MALFORMED = [
    (1, f"NamedArray[...]: the annotation is an int; expected {_FORMS}."),
    (None, f"NamedArray[...]: the annotation is None; expected {_FORMS}."),
    ({"a": 2}, f"NamedArray[...]: the annotation is a dict; expected {_FORMS}."),
    (
        Axis("a", 2),
        f"NamedArray[...]: the annotation is an Axis; expected {_FORMS}. Use its name, 'a': sizes are left out.",
    ),
    (
        ("b", Axis("a", 2)),
        "NamedArray[...]: an entry of the annotation is an Axis; expected an axis name."
        " Use its name, 'a': sizes are left out.",
    ),
    ({"a", 1}, "NamedArray[...]: an entry of the annotation is an int; expected an axis name."),
    ("a ... b ...", "NamedArray[...]: `...` occurs 2 times in the annotation; expected at most one."),
    ((..., ...), "NamedArray[...]: `...` occurs 2 times in the annotation; expected at most one."),
] + [
    (text, f"NamedArray[...]: {word!r} in {text!r} is no axis name; {_NAMES} {_OTHER}")
    for text, word in {
        "a=2 b": "a=2",
        "a, b": "a,",
        "{a b": "{a",
        "a b}": "b}",
        "{a} b": "{a}",
        "{{a}}": "{a}",
        "a *b": "*b",
        "#a": "#a",
        "a ?b": "?b",
        "a ...b": "...b",
    }.items()
]


@pytest.mark.parametrize(("form", "message"), MALFORMED)
def test_malformed_annotations(form, message):
    with pytest.raises(TypeError) as error:
        NamedArray[form]
    assert str(error.value) == message
    for op, use in (("matches_axes", X.matches_axes), ("Float", lambda form: ht.Float[NamedArray, form])):
        with pytest.raises(TypeError) as error:
            use(form)
        assert str(error.value) == message.replace("NamedArray[...]", op)


@pytest.mark.parametrize("form", ["a b a", ("a", "a"), "a ... a"])
def test_repeated_names(form):
    with pytest.raises(ValueError, match=r"^NamedArrayAxes: axis 'a' occurs more than once in \(a(, b)?, a\)\.$"):
        NamedArray[form]


MISUSED = {
    "an array type without axes": (
        lambda: ht.Float[NamedArray],
        'Float: an array type without axes; expected both, as in Float[NamedArray, "batch ..."].',
    ),
    "axes of raw arrays in a tuple": (
        lambda: ht.Float[jax.Array, ("a", "b")],
        "Float: the axes of an array type without names are no string; expected a string as jaxtyping takes it.",
    ),
    "one annotation in another": (
        lambda: ht.Float[NamedArray["a"], "b"],
        "Float: an annotation inside another; expected an array type and axes.",
    ),
    "a string for names": (
        lambda: NamedArrayAxes("ab"),
        "NamedArrayAxes: before is a string; expected a sequence of axis names.",
    ),
    "no names": (
        lambda: NamedArrayAxes((), ("a", 1)),
        "NamedArrayAxes: an entry of after is an int; expected an axis name.",
    ),
}


@pytest.mark.parametrize("case", MISUSED)
def test_misuse(case):
    make, message = MISUSED[case]
    with pytest.raises(TypeError) as error:
        make()
    assert str(error.value) == message
