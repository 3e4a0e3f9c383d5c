"""Functions along an axis."""

import jax.numpy as jnp

import haliax as hax
from errors.arrays import A_CARRY, ANY_FORM, KEY, RAW, SCALAR, B, X
from haliax import Axis

CASES = [
    (
        lambda: hax.vmap(lambda a: a, "z")(X),
        ValueError,
        "vmap: no argument has axis 'z'; expected one that has it, or an Axis with a size.",
    ),
    (
        lambda: hax.vmap(lambda a: a, ("batch", "batch"))(X),
        ValueError,
        "vmap: axis 'batch' occurs more than once in (batch, batch).",
    ),
    (lambda: hax.vmap(lambda a: a, 0)(X), TypeError, f"vmap: the axes are an int; {ANY_FORM}"),
    (lambda: hax.vmap(lambda a: a, None)(X), TypeError, f"vmap: the axes are None; {ANY_FORM}"),
    (lambda: hax.vmap(3, "batch"), TypeError, "vmap: the function is an int; expected a callable."),
    (
        lambda: hax.vmap(lambda a: a, Axis("batch", 7))(X),
        ValueError,
        "vmap: axis 'batch' has size 2; expected 7. a has leading dimension 2: its shape is (2, 3).",
    ),
    (
        lambda: hax.vmap(lambda a: a, "batch")(),
        TypeError,
        "vmap: the arguments do not fit <lambda>: missing a required argument: 'a'.",
    ),
    (
        lambda: hax.vmap(lambda a: a, "batch", default=0)(RAW, RAW),
        TypeError,
        "vmap: the arguments do not fit <lambda>: too many positional arguments.",
    ),
    (
        lambda: hax.vmap(lambda a, b: a, "batch")(X, hax.zeros({"batch": 5})),
        ValueError,
        "vmap: axis 'batch' has size 5; expected 2. b has leading dimension 5: its shape is (5,).",
    ),
    (
        lambda: hax.vmap(lambda a: a, "batch", default="a")(RAW),
        TypeError,
        "vmap: the rule for a is a string; expected the number of a dimension, or None.",
    ),
    (
        lambda: hax.vmap(lambda a: a.broadcast_axis(B), "batch")(X),
        ValueError,
        (
            "vmap: axis 'batch' occurs more than once in (batch, batch, time). The result has it before "
            "this adds it in front: rename one of them."
        ),
    ),
    (
        lambda: hax.vmap(lambda k: k, B)(KEY),
        TypeError,
        (
            "vmap: k is a single random key; expected one for each place along axis 'batch'. Split it "
            "with jax.random.split."
        ),
    ),
    (
        lambda: hax.scan(lambda c, a: (c, a), "z")(0.0, X),
        ValueError,
        "scan: no argument has axis 'z'; expected one that has it, or an Axis with a size.",
    ),
    (
        lambda: hax.scan(lambda c, a: c, "batch")(0.0, X),
        ValueError,
        (
            "scan: the result of the function is a traced array of shape (); expected a pair of the next "
            "carry and an output."
        ),
    ),
    (
        lambda: hax.scan(lambda c, a: (a, c), "batch")(0.0, X),
        TypeError,
        f"scan: carry is float32[3] with axes (time) after a step; it was float32[] before. {A_CARRY}",
    ),
    (
        lambda: hax.scan(lambda c, a: (c, a), 0)(0.0, X),
        TypeError,
        "scan: the axis is an int; expected an Axis or a name.",
    ),
    (
        lambda: hax.scan(lambda c, a: (c, a), ("batch",))(0.0, X),
        TypeError,
        "scan: the axis is a tuple; expected an Axis or a name.",
    ),
    (
        lambda: hax.scan(lambda c, a: (c, a), Axis("batch", 7))(0.0, X),
        ValueError,
        "scan: axis 'batch' has size 2; expected 7. a has leading dimension 2: its shape is (2, 3).",
    ),
    (lambda: hax.scan(3, "batch"), TypeError, "scan: the function is an int; expected a callable."),
    (
        lambda: hax.scan(lambda c, a: (c, a), "batch")(0.0),
        ValueError,
        "scan: no argument has axis 'batch'; expected one that has it, or an Axis with a size.",
    ),
    (
        lambda: hax.scan(lambda c, a: (c, a), "batch", remat="foo")(0.0, X),
        ValueError,
        (
            "ScanCheckpointPolicy: no policy 'foo'; expected a policy, a bool, or one of 'offload', "
            "'recompute', 'full', 'save_all', 'nested'."
        ),
    ),
    (
        lambda: hax.scan(lambda c, a: (c, a), "batch", unroll="a")(0.0, X),
        TypeError,
        "scan: unroll is a string; expected an integer.",
    ),
    (
        lambda: hax.scan(lambda c, a: (c, a), "batch", is_scanned=3)(0.0, X),
        TypeError,
        "scan: is_scanned is an int; expected a condition, or a bool for all.",
    ),
    (
        lambda: hax.scan(lambda c, a: (c.astype(int), a), "batch")(jnp.zeros(()), X),
        TypeError,
        f"scan: carry is int32[] after a step; it was float32[] before. {A_CARRY}",
    ),
    (
        lambda: hax.scan(lambda c, a: ({"a": c}, a), "batch")(0.0, X),
        TypeError,
        f"scan: carry is nothing after a step; it was float32[] before. {A_CARRY}",
    ),
    (
        lambda: hax.fold(lambda c, a: a, "batch")(0.0, X),
        TypeError,
        f"fold: carry is float32[3] with axes (time) after a step; it was float32[] before. {A_CARRY}",
    ),
    (
        lambda: hax.fold(lambda c, a: c + a, "batch")(SCALAR, X),
        TypeError,
        f"fold: carry is float32[3] with axes (time) after a step; it was float32[] with axes () before. {A_CARRY}",
    ),
    (
        lambda: hax.fold(lambda c, a: (c, a), "batch")(SCALAR, X),
        TypeError,
        f"fold: carry is nothing after a step; it was float32[] with axes () before. {A_CARRY}",
    ),
    (
        lambda: hax.fold(lambda c, a: c, "z")(SCALAR, X),
        ValueError,
        "fold: no argument has axis 'z'; expected one that has it, or an Axis with a size.",
    ),
    (lambda: hax.fold(None, "z")(SCALAR, X), TypeError, "fold: the function is None; expected a callable."),
    (
        lambda: hax.map(lambda a: a, "z")(X),
        ValueError,
        "map: no argument has axis 'z'; expected one that has it, or an Axis with a size.",
    ),
    (lambda: hax.map(lambda a: a, None)(X), TypeError, "map: the axis is None; expected an Axis or a name."),
    (
        lambda: hax.map(lambda a: a.broadcast_axis(B), "batch")(X),
        ValueError,
        (
            "map: axis 'batch' occurs more than once in (batch, batch, time). The result has it before "
            "this adds it in front: rename one of them."
        ),
    ),
    (
        lambda: hax.map(lambda a, b: a, "batch")(X, RAW),
        ValueError,
        "map: axis 'batch' has size 3; expected 2. args[1] has leading dimension 3: its shape is (3,).",
    ),
    (
        lambda: hax.ScanCheckpointPolicy.from_bool_or_str(3),
        ValueError,
        (
            "ScanCheckpointPolicy: no policy 3; expected a policy, a bool, or one of 'offload', "
            "'recompute', 'full', 'save_all', 'nested'."
        ),
    ),
    (
        lambda: hax.vmap(lambda a: a, "batch", args=(None, None)),
        TypeError,
        "vmap: the rules do not fit the arguments of the function: too many positional arguments.",
    ),
    (
        lambda: hax.vmap(lambda a: a, "batch", args=(5,))(RAW),
        ValueError,
        "vmap: the rule for a is dimension 5; its shape is (3,).",
    ),
    (
        lambda: hax.vmap(lambda a: a, "batch")(3),
        ValueError,
        "vmap: no argument has axis 'batch'; expected one that has it, or an Axis with a size.",
    ),
    (lambda: hax.scan(None, "batch"), TypeError, "scan: the function is None; expected a callable."),
    (
        lambda: hax.scan(lambda c, a: (c, a, a), "batch")(0.0, X),
        ValueError,
        "scan: the result of the function is a tuple; expected a pair of the next carry and an output.",
    ),
    (
        lambda: hax.scan(lambda c, a: None, "batch")(0.0, X),
        ValueError,
        "scan: the result of the function is None; expected a pair of the next carry and an output.",
    ),
    (
        lambda: hax.scan(lambda c, a: (c, a), "batch", unroll=1.5)(0.0, X),
        TypeError,
        "scan: unroll is a float; expected an integer.",
    ),
    (
        lambda: hax.scan(lambda c, a: (c, a.broadcast_axis(B)), "batch")(0.0, X),
        ValueError,
        (
            "scan: axis 'batch' occurs more than once in (batch, batch, time). The result has it before "
            "this adds it in front: rename one of them."
        ),
    ),
    (lambda: hax.fold("f", "batch"), TypeError, "fold: the function is a string; expected a callable."),
    (
        lambda: hax.fold(lambda c, a: c, Axis("batch", 7))(SCALAR, X),
        ValueError,
        ("fold: axis 'batch' has size 2; expected 7. a has leading dimension 2: its shape is (2, 3)."),
    ),
    (lambda: hax.map(3, "batch"), TypeError, "map: the function is an int; expected a callable."),
    (
        lambda: hax.map(lambda a: a, "batch", is_mapped="a")(X),
        TypeError,
        "map: is_mapped is a string; expected a condition, or a bool for all.",
    ),
    (
        lambda: hax.map(lambda a: a, ("batch", "time"))(X),
        TypeError,
        "map: the axis is a tuple; expected an Axis or a name.",
    ),
]
