"""`shard_map`: which shard a function sees, how its result is put together, and what it can be put on."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import haliax as hax
from haliax import Axis
from helpers import count_traces
from meshes import MAPPING, NAMES, PLACES, VALUES, make_mesh, on, spec_of

X = hax.NamedArray(jnp.asarray(VALUES), NAMES)
AUTO, EXPLICIT = (AxisType.Auto, AxisType.Auto), (AxisType.Explicit, AxisType.Explicit)

over_types = pytest.mark.parametrize("types", [AUTO, EXPLICIT], ids=["auto", "explicit"])


def sizes(tree):
    """The named or plain shape of each array."""
    is_named = lambda x: isinstance(x, hax.NamedArray)  # noqa: E731
    return jax.tree.map(lambda x: x.shape if hasattr(x, "shape") else x, tree, is_leaf=is_named)


def seen_by(*args, **options):
    """What a function sees of its arguments, and what it returns of them."""
    seen = []

    def f(*args):
        seen.append(sizes(args))
        return args

    return seen, hax.shard_map(f, **options)(*args)


# what is split, and how ---------------------------------------------------------------------------------------------


@over_types
@pytest.mark.parametrize("jit", [False, True])
def test_named_arrays_are_split_as_the_mapping_says(types, jit):
    seen = []

    @hax.shard_map(mesh=make_mesh(types=types), axis_mapping=MAPPING)
    def f(x):
        seen.append(x.shape)
        return x * 2

    out = (jax.jit(f) if jit else f)(X)
    assert seen == [{"batch": 2, "embed": 2}]
    assert out.axes == X.axes and spec_of(out) == ("data", "model")
    assert np.array_equal(out.array, VALUES * 2)


@pytest.mark.parametrize(
    ("mapping", "in_specs", "expected"),
    [
        (MAPPING, None, [{"batch": 2, "embed": 2}, (8, 4)]),
        (MAPPING, (None, P("data")), [{"batch": 2, "embed": 2}, (2, 4)]),
        (MAPPING, [P(), P(("data", "model"))], [{"batch": 8, "embed": 4}, (1, 4)]),
        (None, P("data"), [{"batch": 2, "embed": 4}, (2, 4)]),
        (None, (P(None, "model"), P("model", "data")), [{"batch": 8, "embed": 2}, (4, 1)]),
        ({"batch": ("data", "model")}, None, [{"batch": 1, "embed": 4}, (8, 4)]),
        ({}, None, [{"batch": 8, "embed": 4}, (8, 4)]),
    ],
)
def test_what_a_function_sees(mesh, mapping, in_specs, expected):
    seen, out = seen_by(
        X, X.array, mesh=mesh, axis_mapping=mapping, in_specs=in_specs, out_specs=in_specs and P("data")
    )
    assert seen == [tuple(expected)] and len(out) == 2


def test_specs_may_be_pytrees(mesh):
    tree = {"a": X, "b": X.array, "c": None, "d": "text"}
    in_specs = ({"a": None, "b": P("data"), "c": None, "d": None},)
    seen, (out,) = seen_by(tree, mesh=mesh, axis_mapping=MAPPING, in_specs=in_specs, out_specs=in_specs)
    assert seen == [({"a": {"batch": 2, "embed": 2}, "b": (2, 4), "c": None, "d": "text"},)]
    assert sizes(out) == sizes(tree)


def test_the_mapping_and_mesh_in_force(mesh):
    f = hax.shard_map(lambda x: x + 1)
    with hax.set_mesh(mesh), hax.axis_mapping(MAPPING):
        assert spec_of(f(X)) == spec_of(jax.jit(f)(X)) == spec_of(hax.named_jit(f)(X)) == ("data", "model")


@over_types
@pytest.mark.parametrize("other", [AUTO, EXPLICIT])
def test_the_given_mesh_wins_over_the_one_in_force(types, other):
    given = make_mesh(slice(None, None, -1), types=types)
    with hax.set_mesh(make_mesh(types=other)):
        out = hax.shard_map(lambda x: x + 1, mesh=given, axis_mapping=MAPPING)(X)
    assert out.array.sharding.mesh == given and np.array_equal(out.array, VALUES + 1)


@over_types
@pytest.mark.parametrize("place", PLACES)
def test_arguments_may_be_anywhere(place, types):
    out = hax.shard_map(lambda x: x + 1, mesh=make_mesh(types=types), axis_mapping=MAPPING)(PLACES[place]())
    assert spec_of(out) == ("data", "model") and np.array_equal(out.array, VALUES + 1)


def test_an_abstract_mesh_in_a_program(mesh):
    f = hax.shard_map(lambda x: x + 1, mesh=mesh.abstract_mesh, axis_mapping=MAPPING)
    assert np.array_equal(jax.jit(f)(on(mesh, "data")).array, VALUES + 1)


@pytest.mark.parametrize("check_vma", [False, True])
@pytest.mark.parametrize("jit", [False, True])
def test_over_some_mesh_axes(mesh, check_vma, jit):
    seen = []

    def f(x):
        seen.append(x.shape)
        return x * 2

    f = hax.shard_map(f, mesh=mesh, axis_mapping=MAPPING, axis_names={"data"}, check_vma=check_vma)
    out = (jax.jit(f) if jit else f)(X)
    assert seen[-1] == {"batch": 2, "embed": 4} and np.array_equal(out.array, VALUES * 2)


def test_one_inside_another(mesh):
    seen = []

    @hax.shard_map(mesh=mesh, axis_mapping=MAPPING, axis_names={"data"})
    def outer(x):
        seen.append(x.shape)
        return hax.shard_map(inner, mesh=mesh, axis_mapping=MAPPING)(x)

    def inner(x):
        seen.append(x.shape)
        return x * 2

    assert np.array_equal(jax.jit(outer)(X).array, VALUES * 2)
    assert seen == [{"batch": 2, "embed": 4}, {"batch": 2, "embed": 2}]


def test_static_values_and_keys(mesh):
    key = jax.random.key(0)
    tree = {
        "f": jnp.sin,
        "n": 3,
        "s": "text",
        "none": None,
        "key": key,
        "host": np.ones(3),
        "placeholder": hax.NamedArray(None, NAMES),
    }
    out = hax.shard_map(lambda tree: tree, mesh=mesh, axis_mapping=MAPPING)(tree)
    assert all(out[name] is tree[name] for name in ("f", "n", "s", "none"))
    assert out["key"] == key and np.array_equal(out["host"], np.ones(3)) and out["placeholder"].array is None


# the result ---------------------------------------------------------------------------------------------------------


@over_types
def test_collectives(types):
    @hax.shard_map(mesh=make_mesh(types=types), axis_mapping=MAPPING, check_rep=True)
    def f(x):
        total = x.sum("batch")
        return total.like(jax.lax.psum(total.array, "data"), total.axis_names)

    out = f(X)
    assert spec_of(out) == ("model",) and np.array_equal(out.array, VALUES.sum(0))


@over_types
def test_gather_and_scatter(types):
    @hax.shard_map(mesh=make_mesh(types=types), axis_mapping=MAPPING)
    def f(x):
        whole = jax.lax.all_gather(x.array, "data", axis=0, tiled=True)
        part = jax.lax.psum_scatter(whole, "data", scatter_dimension=0, tiled=True)
        return x.like(whole, ("rows", "embed")), x.like(part, x.axis_names), jax.lax.axis_index("model") * 0

    whole, part, zero = f(X)
    assert whole.shape == {"rows": 8, "embed": 4} and spec_of(whole) == (None, "model")
    assert np.array_equal(whole.array, VALUES) and np.array_equal(part.array, VALUES * 4) and zero == 0


def test_axes_of_the_result_follow_the_mapping(mesh):
    f = hax.shard_map(lambda x: x.rename({"batch": "other"}), mesh=mesh, axis_mapping={**MAPPING, "other": "data"})
    assert f(X).axes == (Axis("other", 8), Axis("embed", 4))


def test_unnamed_results_are_not_split_unless_a_spec_says_so(mesh):
    def f(x):
        return x.array, {"sum": x.array.sum(0)}

    options = {"mesh": mesh, "axis_mapping": MAPPING}
    rows, rest = hax.shard_map(f, out_specs=(P("data", "model"), None), **options)(X)
    assert np.array_equal(rows, VALUES) and rest["sum"].shape == (2,)
    replicated, _ = hax.shard_map(f, **options)(X)
    assert replicated.shape == (2, 2)


def test_check_rep_is_check_vma_of_jax(mesh):
    f = functools.partial(hax.shard_map, lambda x: x.array.sum(), mesh=mesh, axis_mapping=MAPPING)
    f()(X)
    for options in ({"check_rep": True}, {"check_vma": True}, {"check_rep": False, "check_vma": True}):
        with pytest.raises(ValueError, match="out_specs"):
            f(**options)(X)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_a_function_is_traced_once(mesh, transform):
    f = count_traces(lambda x: x * 2)
    transform(hax.shard_map(f, mesh=mesh, axis_mapping=MAPPING))(X)
    assert f.traces == 1


def test_gradients(mesh):
    f = hax.shard_map(lambda x: x * x, mesh=mesh, axis_mapping=MAPPING, check_rep=True)
    expected = jax.grad(lambda x: (x * x).sum().scalar())(X)
    for transform in (lambda g: g, jax.jit):
        actual = transform(jax.grad(lambda x: f(x).sum().scalar()))(X)
        assert np.array_equal(actual.array, expected.array)


def test_under_vmap_and_scan(mesh):
    f = hax.shard_map(lambda x: x * 2, mesh=mesh, axis_mapping=MAPPING)
    stacked = hax.stack("layer", [X, X + 1, X + 2])
    assert np.array_equal(hax.vmap(f, "layer")(stacked).array, stacked.array * 2)
    assert np.array_equal(hax.map(f, "layer")(stacked).array, stacked.array * 2)


def test_the_program_is_that_of_jax(mesh):
    sharding = NamedSharding(mesh, P("data", "model"))

    def lowered(f):
        argument = jax.ShapeDtypeStruct(VALUES.shape, VALUES.dtype, sharding=sharding)
        return jax.jit(f).lower(argument).as_text()

    def double(x):
        return x * 2

    named = hax.shard_map(double, mesh=mesh, axis_mapping=MAPPING)
    spec = P("data", "model")
    plain = jax.shard_map(double, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    assert lowered(lambda x: named(hax.NamedArray(x, NAMES)).array) == lowered(lambda x: plain(x))


# what it can be put on ----------------------------------------------------------------------------------------------


class Scale(eqx.Module):
    """A module that holds a named array, which is split, and a raw one, which is not."""

    weight: hax.NamedArray
    raw: jax.Array
    name: str = eqx.field(static=True, default="scale")

    def __call__(self, x):
        """Scale an array."""
        assert self.weight.shape == {"embed": 2} and self.raw.shape == (4,)
        return x * self.weight

    @hax.shard_map(axis_mapping=MAPPING)
    def method(self, x):
        return self(x)

    @hax.shard_map(axis_mapping=MAPPING)
    @classmethod
    def of_class(cls, x):
        assert cls is Scale
        return x * 2

    @hax.shard_map(axis_mapping=MAPPING)
    @staticmethod
    def of_no_one(x):
        return x * 2


SCALE = Scale(hax.full(Axis("embed", 4), 2.0), jnp.ones(4))
CALLABLES = {
    "function": lambda: hax.shard_map(lambda x: x * 2, axis_mapping=MAPPING),
    "module": lambda: hax.shard_map(SCALE, axis_mapping=MAPPING),
    "bound method": lambda: hax.shard_map(SCALE.__call__, axis_mapping=MAPPING),
    "partial": lambda: hax.shard_map(functools.partial(lambda w, x: x * w, SCALE.weight), axis_mapping=MAPPING),
    "keyword partial": lambda: hax.shard_map(functools.partial(lambda x, w: x * w, w=2), axis_mapping=MAPPING),
    "method": lambda: SCALE.method,
    "classmethod": lambda: SCALE.of_class,
    "staticmethod": lambda: Scale.of_no_one,
    "by keyword": lambda: lambda x: hax.shard_map(lambda *, x: x * 2, axis_mapping=MAPPING)(x=x),
    "bare decorator": lambda: hax.shard_map(lambda x: x * hax.full(x.axes, 2), in_specs=P("data"), out_specs=P("data")),
}


@pytest.mark.parametrize("kind", CALLABLES)
def test_callables(mesh, kind):
    f = CALLABLES[kind]()
    with hax.set_mesh(mesh):
        assert np.array_equal(jax.jit(lambda x: f(x))(X).array, VALUES * 2)


def test_specs_find_arguments_given_by_name(mesh):
    def f(x, y):
        return x * y.array.shape[0]

    f = hax.shard_map(f, mesh=mesh, in_specs=(P("data"), P()), out_specs=P("data"))
    assert np.array_equal(f(y=X, x=X).array, VALUES * 8)


def test_names_are_kept(mesh):
    @hax.shard_map(mesh=mesh)
    def double(x):
        """Twice x."""

    assert (double.__name__, double.__doc__) == ("double", "Twice x.")


# errors -------------------------------------------------------------------------------------------------------------


def call(f=lambda x: x, x=X, mesh=True, axis_mapping=MAPPING, **options):
    mesh = make_mesh() if mesh is True else mesh or None
    return hax.shard_map(f, mesh=mesh, axis_mapping=axis_mapping, **options)(x)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"mesh": False},
            ValueError,
            "shard_map: there is no mesh. Pass mesh=..., or call it under `with haliax.set_mesh(mesh):`.",
        ),
        (
            {"axis_mapping": None},
            ValueError,
            "shard_map: x is a named array; expected an axis mapping. Pass axis_mapping=..., call it under `with"
            " haliax.axis_mapping(mapping):`, or give a PartitionSpec for it.",
        ),
        (
            {"axis_mapping": None, "in_specs": P()},
            ValueError,
            "shard_map: result is a named array; expected an axis mapping. Pass axis_mapping=..., call it under `with"
            " haliax.axis_mapping(mapping):`, or give a PartitionSpec for it.",
        ),
        (
            {"x": {"a": hax.ones({"batch": 6})}},
            ValueError,
            "shard_map: x['a']: axis batch=6 can not be split over mesh axes (data=4); expected a multiple of 4. The"
            " nearest sizes that fit are 4 or 8; see haliax.partitioning.round_axis_for_partitioning.",
        ),
        (
            {"x": jnp.ones((3, 2)), "in_specs": P(None, "data")},
            ValueError,
            "shard_map: x: axis 1=2 can not be split over mesh axes (data=4); expected a multiple of 4. The"
            " nearest sizes that fit are 4 or 8; see haliax.partitioning.round_axis_for_partitioning.",
        ),
        (
            {"in_specs": P("data", None, None)},
            ValueError,
            "shard_map: x has 2 dimensions, and its PartitionSpec 3 entries; expected no more than dimensions.",
        ),
        (
            {"axis_mapping": {"batch": "dta"}},
            ValueError,
            "shard_map: axis 'batch' is mapped to mesh axis 'dta'; the mesh has data=4, model=2. Did you mean 'data'?",
        ),
        (
            {"axis_mapping": {"batch": "data", "embed": "data"}},
            ValueError,
            "shard_map: x: axes 'batch' and 'embed' are both mapped to mesh axis 'data'; expected distinct mesh axes."
            " Map one of them to another mesh axis; the mesh has data=4, model=2.",
        ),
        (
            {"f": lambda x: x.rename({"embed": "y"}), "axis_mapping": {"batch": "data", "y": "data"}},
            ValueError,
            "shard_map: result: axes 'batch' and 'y' are both mapped to mesh axis 'data'; expected distinct mesh axes."
            " Map one of them to another mesh axis; the mesh has data=4, model=2.",
        ),
        (
            {"in_specs": (P(), P())},
            ValueError,
            "shard_map: in_specs do not fit the positional arguments; expected one PartitionSpec, or a pytree of them"
            " that is a prefix.",
        ),
        (
            {"out_specs": (P(), P())},
            ValueError,
            "shard_map: out_specs do not fit the result; expected one PartitionSpec, or a pytree of them that is a"
            " prefix.",
        ),
        (
            {"in_specs": (3,)},
            TypeError,
            "shard_map: a leaf of in_specs is an int; expected a PartitionSpec, or None for the axis mapping.",
        ),
        (
            {"in_specs": P(P.UNCONSTRAINED)},
            TypeError,
            "shard_map: an entry of a PartitionSpec of in_specs is a UnconstrainedSingleton; expected mesh axes, or"
            " None.",
        ),
        (
            {"out_specs": P("dta")},
            ValueError,
            "shard_map: axis 'batch' is mapped to mesh axis 'dta'; the mesh has data=4, model=2. Did you mean 'data'?",
        ),
        (
            {"in_specs": P("model"), "axis_names": "data"},
            ValueError,
            "shard_map: the PartitionSpec of x has mesh axis 'model'; this call splits over data.",
        ),
        (
            {"axis_names": {"dta"}},
            ValueError,
            "shard_map: axis_names has 'dta'; the mesh has data=4, model=2.",
        ),
        ({"mesh": 3}, TypeError, "shard_map: mesh is an int; expected a jax.sharding.Mesh or AbstractMesh."),
        ({"f": 3}, TypeError, "shard_map: f is an int; expected a callable."),
        ({"auto": ()}, TypeError, "shard_map: unknown option 'auto'; options: axis_names, check_vma."),
    ],
)
def test_errors(options, kind, message):
    with pytest.raises(kind) as error:
        call(**options)
    assert str(error.value) == message
