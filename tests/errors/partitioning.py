"""Meshes, mappings and compiled functions."""

import haliax as hax
from errors.arrays import A_MAPPING, A_MESH, ANY_FORM, GIVE_A_MESH, MESH, B, X

CASES = [
    (
        lambda: hax.named_jit(3),
        TypeError,
        "named_jit: fn is an int; expected a callable. Pass a mapping as axis_resources=...",
    ),
    (
        lambda: hax.named_jit(lambda a: a, axis_resources=3),
        TypeError,
        f"named_jit: axis_resources is an int; {A_MAPPING}",
    ),
    (
        lambda: hax.named_jit(lambda a: a, axis_resources={"batch": 3})(X),
        TypeError,
        "axis mapping: the entry of axis 'batch' is an int; expected a mesh axis, several, or None.",
    ),
    (
        lambda: hax.named_jit(lambda a: a, axis_resources={"batch": "data"})(X),
        ValueError,
        f"named_jit(<lambda>): the axis mapping names mesh axes (data) and there is no mesh. {GIVE_A_MESH}",
    ),
    (
        lambda: hax.named_jit(lambda a: a, axis_resources={"batch": "zz"}, mesh=MESH)(X),
        ValueError,
        "named_jit: axis 'batch' is mapped to mesh axis 'zz'; the mesh has data=2.",
    ),
    (
        lambda: hax.named_jit(lambda a: a, axis_resources={"time": "data"}, mesh=MESH)(X),
        ValueError,
        (
            "named_jit(<lambda>): result: axis time=3 can not be split over mesh axes (data=2); expected "
            "a multiple of 2. The nearest sizes that fit are 2 or 4; see "
            "haliax.partitioning.round_axis_for_partitioning."
        ),
    ),
    (
        lambda: hax.named_jit(lambda a: a, foo=3),
        TypeError,
        (
            "named_jit: unknown option 'foo'; options: backend, compiler_options, device, "
            "donate_argnames, donate_argnums, in_shardings, inline, keep_unused, out_shardings, "
            "static_argnames, static_argnums."
        ),
    ),
    (
        lambda: hax.named_jit(lambda a: a, donate_argnums="a")(X),
        TypeError,
        "named_jit: donate_argnums is an option of jax.jit; here it is donate_args.",
    ),
    (
        lambda: hax.named_jit(lambda a: a, in_axis_resources="data")(X),
        TypeError,
        f"named_jit: in_axis_resources is a string; {A_MAPPING}",
    ),
    (lambda: hax.named_jit(lambda a: a, mesh=3)(X), TypeError, f"named_jit: mesh is an int; {A_MESH}"),
    (
        lambda: hax.named_jit(lambda a: a, donate_args=3)(X),
        TypeError,
        (
            "named_jit: donate_args is an int; expected a bool, or one for each argument. It says which "
            "arguments, not how many or where: (True, False) donates the first of two."
        ),
    ),
    (
        lambda: hax.named_jit(lambda a: a, static_argnums=3)(X),
        TypeError,
        (
            "named_jit: static_argnums is an option of jax.jit; here it is nothing: arguments that are "
            "no arrays are static."
        ),
    ),
    (lambda: hax.fsdp(3), TypeError, f"fsdp: parameter_mapping is an int; {A_MAPPING}"),
    (
        lambda: hax.shard(X, {"batch": "zz"}, MESH),
        ValueError,
        "shard: axis 'batch' is mapped to mesh axis 'zz'; the mesh has data=2.",
    ),
    (
        lambda: hax.shard(X, {"time": "data"}, MESH),
        ValueError,
        (
            "shard: x: axis time=3 can not be split over mesh axes (data=2); expected a multiple of 2. "
            "The nearest sizes that fit are 2 or 4; see haliax.partitioning.round_axis_for_partitioning."
        ),
    ),
    (
        lambda: hax.shard(X, {"batch": "data", "time": "data"}, MESH),
        ValueError,
        (
            "shard: x: axes 'batch' and 'time' are both mapped to mesh axis 'data'; expected distinct "
            "mesh axes. Map one of them to another mesh axis; the mesh has data=2."
        ),
    ),
    (lambda: hax.shard(X, {"batch": "data"}, 3), TypeError, f"shard: mesh is an int; {A_MESH}"),
    (lambda: hax.set_mesh(3), TypeError, "set_mesh: mesh is an int; expected a jax.sharding.Mesh."),
    (
        lambda: hax.partitioning.round_axis_for_partitioning("a", {"a": "data"}),
        TypeError,
        "round_axis_for_partitioning: the axis is a string; expected an Axis.",
    ),
    (
        lambda: hax.partitioning.round_axis_for_partitioning(B, {"batch": "data"}),
        ValueError,
        f"round_axis_for_partitioning: there is no mesh. {GIVE_A_MESH}",
    ),
    (
        lambda: hax.partitioning.physical_axis_size(B, {"batch": "data"}),
        ValueError,
        f"physical_axis_size: there is no mesh. {GIVE_A_MESH}",
    ),
    (
        lambda: hax.partitioning.physical_axis_name(3, {"batch": "data"}),
        TypeError,
        "physical_axis_name: the axis is an int; expected an Axis or a name.",
    ),
    (
        lambda: hax.partitioning.pspec_for_axis(3, {"batch": "data"}),
        TypeError,
        f"pspec_for_axis: the axes are an int; {ANY_FORM}",
    ),
    (
        lambda: hax.partitioning.sharding_for_axis("a", {"batch": "data"}),
        ValueError,
        f"sharding_for_axis: there is no mesh. {GIVE_A_MESH}",
    ),
    (
        lambda: hax.partitioning.infer_resource_partitions(X, {"batch": "data"}),
        ValueError,
        f"infer_resource_partitions: there is no mesh. {GIVE_A_MESH}",
    ),
    (lambda: hax.shard_map(lambda a: a)(X), ValueError, f"shard_map: there is no mesh. {GIVE_A_MESH}"),
    (lambda: hax.shard_map(3), TypeError, "shard_map: f is an int; expected a callable."),
    (lambda: hax.shard_map(lambda a: a, mesh=3)(X), TypeError, f"shard_map: mesh is an int; {A_MESH}"),
    (
        lambda: hax.shard_map(lambda a: a, in_specs=3, out_specs=3, mesh=MESH)(X),
        TypeError,
        "shard_map: a leaf of in_specs is an int; expected a PartitionSpec, or None for the axis mapping.",
    ),
    (lambda: hax.shard(X, "data"), TypeError, f"axis mapping: the mapping is a string; {A_MAPPING}"),
    (lambda: hax.shard(X, {"batch": "data"}, "data"), TypeError, f"shard: mesh is a string; {A_MESH}"),
    (
        lambda: hax.partitioning.physical_axis_size("batch", {"batch": "data"}, 3),
        TypeError,
        f"physical_axis_size: mesh is an int; {A_MESH}",
    ),
    (
        lambda: hax.partitioning.physical_axis_size("batch", {"batch": "dtaa"}, MESH),
        ValueError,
        ("physical_axis_size: axis 'batch' is mapped to mesh axis 'dtaa'; the mesh has data=2. Did you mean 'data'?"),
    ),
    (
        lambda: hax.partitioning.round_axis_for_partitioning(B, {"batch": "model"}, MESH),
        ValueError,
        "round_axis_for_partitioning: axis 'batch' is mapped to mesh axis 'model'; the mesh has data=2.",
    ),
    (
        lambda: hax.partitioning.pspec_for_axis("batch", ("batch", "data")),
        TypeError,
        f"axis mapping: the mapping is a tuple; {A_MAPPING}",
    ),
    (
        lambda: hax.partitioning.pspec_for(X, {"batch": ("data", "data")}),
        ValueError,
        "axis mapping: axis 'batch' is mapped to (data, data); expected distinct mesh axes.",
    ),
    (
        lambda: hax.partitioning.sharding_for_axis("batch", {"batch": "data"}, "mesh"),
        TypeError,
        f"sharding_for_axis: mesh is a string; {A_MESH}",
    ),
    (
        lambda: hax.partitioning.infer_resource_partitions(X, {"batch": "data"}, 3),
        TypeError,
        f"infer_resource_partitions: mesh is an int; {A_MESH}",
    ),
    (
        lambda: hax.shard_map(lambda a: a, in_specs="data", out_specs=None, mesh=MESH),
        TypeError,
        ("shard_map: a leaf of in_specs is a string; expected a PartitionSpec, or None for the axis mapping."),
    ),
    (
        lambda: hax.named_jit(lambda a: a, axis_resources={"batch": "model"}, mesh=MESH)(X),
        ValueError,
        "named_jit: axis 'batch' is mapped to mesh axis 'model'; the mesh has data=2.",
    ),
    (
        lambda: hax.named_jit(lambda a: a, axis_resources={"batch": "data", "time": "data"}, mesh=MESH)(X),
        ValueError,
        (
            "named_jit(<lambda>): result: axes 'batch' and 'time' are both mapped to mesh axis 'data'; "
            "expected distinct mesh axes. Map one of them to another mesh axis; the mesh has data=2."
        ),
    ),
    (
        lambda: hax.named_jit(lambda a: a, donate_args="a"),
        TypeError,
        (
            "named_jit: donate_args is a string; expected a bool, or one for each argument. It says "
            "which arguments, not how many or where: (True, False) donates the first of two."
        ),
    ),
    (
        lambda: hax.named_jit("f"),
        TypeError,
        "named_jit: fn is a string; expected a callable. Pass a mapping as axis_resources=...",
    ),
]
