"""Annotations with dtypes: `ht.Float[NamedArray, "batch embed"]`, and for raw arrays those of `jaxtyping`.

To a static type checker each name is `typing.Annotated`, so that an annotation is the array type itself. At run time it
is what `NamedArray["batch embed"]` is, with a dtype; for any other array type it is jaxtyping's annotation.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from types import EllipsisType, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, Union, get_args, get_origin

import jax
import jax.numpy as jnp
import jaxtyping

from haliax._src.annotations import DTypeCategory as DTypeCategory, annotate
from haliax._src.array_base import NamedArrayBase
from haliax._src.errors import problem
from haliax._src.named_array import NamedArray

if TYPE_CHECKING:
    from typing import (
        Annotated as Bool,
        Annotated as Complex,
        Annotated as Float,
        Annotated as Int,
        Annotated as Key,
        Annotated as Named,
        Annotated as UInt,
        Annotated as bf16,
        Annotated as bool_,
        Annotated as complex64,
        Annotated as complex128,
        Annotated as f16,
        Annotated as f32,
        Annotated as f64,
        Annotated as i8,
        Annotated as i16,
        Annotated as i32,
        Annotated as i64,
        Annotated as u8,
        Annotated as u16,
        Annotated as u32,
        Annotated as u64,
    )


class _Annotation:
    """What makes annotations of one kind of dtype: `f32[NamedArray, "batch embed"]`, or for short `f32["batch embed"]`.

    The axes come in any form that `NamedArray[...]` takes. Unions and type variables stand for their members.

    Raises:
        TypeError: If axes are missing or malformed.
    """

    dtype: ClassVar[Any]
    raw: ClassVar[Any]

    def __class_getitem__(cls, item: Any) -> Any:
        array_type, *axes = (item or [item]) if isinstance(item, tuple) else [item]
        if isinstance(array_type, str | Sequence | Set | EllipsisType):
            return cls._of(NamedArray, item)
        if not axes:
            given = "an array type without axes"
            raise TypeError(
                problem(cls.__name__, given, f'expected both, as in {cls.__name__}[NamedArray, "batch ..."]')
            )
        return cls._of(array_type, axes[0] if len(axes) == 1 else tuple(axes))

    @classmethod
    def _of(cls, array_type: Any, axes: Any) -> Any:
        if isinstance(array_type, TypeVar):
            members = array_type.__constraints__ or (array_type.__bound__ or Any,)
        elif get_origin(array_type) in (Union, UnionType):
            members = get_args(array_type)
        elif isinstance(array_type, type) and issubclass(array_type, NamedArrayBase):
            return annotate(cls.__name__, array_type, axes, cls.dtype)
        else:
            return None if array_type is NoneType else cls._of_raw(array_type, axes)
        return Union[tuple(cls._of(member, axes) for member in members)]  # noqa: UP007 (of a computed tuple)

    @classmethod
    def _of_raw(cls, array_type: Any, axes: Any) -> Any:
        if get_origin(array_type) is Annotated:
            raise TypeError(problem(cls.__name__, "an annotation inside another", "expected an array type and axes"))
        if not isinstance(axes, str):
            given = "the axes of an array type without names are no string"
            raise TypeError(problem(cls.__name__, given, "expected a string as jaxtyping takes it"))
        return cls.raw[array_type, axes]


def _annotation(name: str, dtype: Any, raw: Any) -> Any:
    namespace = {"dtype": dtype, "raw": raw, "__module__": __name__, "__doc__": _Annotation.__doc__}
    return type(name, (_Annotation,), namespace)


if not TYPE_CHECKING:
    Named = _annotation("Named", None, jaxtyping.Shaped)

    Bool = _annotation("Bool", DTypeCategory("Bool", jnp.bool_), jaxtyping.Bool)
    Complex = _annotation("Complex", DTypeCategory("Complex", jnp.complexfloating), jaxtyping.Complex)
    Float = _annotation("Float", DTypeCategory("Float", jnp.floating), jaxtyping.Float)
    Int = _annotation("Int", DTypeCategory("Int", jnp.signedinteger), jaxtyping.Int)
    Key = _annotation("Key", DTypeCategory("Key", jax.dtypes.prng_key), jaxtyping.Key)
    UInt = _annotation("UInt", DTypeCategory("UInt", jnp.unsignedinteger), jaxtyping.UInt)

    bf16 = _annotation("bf16", jnp.bfloat16, jaxtyping.BFloat16)
    bool_ = _annotation("bool_", jnp.bool_, jaxtyping.Bool)
    complex64 = _annotation("complex64", jnp.complex64, jaxtyping.Complex64)
    complex128 = _annotation("complex128", jnp.complex128, jaxtyping.Complex128)
    f16 = _annotation("f16", jnp.float16, jaxtyping.Float16)
    f32 = _annotation("f32", jnp.float32, jaxtyping.Float32)
    f64 = _annotation("f64", jnp.float64, jaxtyping.Float64)
    i8 = _annotation("i8", jnp.int8, jaxtyping.Int8)
    i16 = _annotation("i16", jnp.int16, jaxtyping.Int16)
    i32 = _annotation("i32", jnp.int32, jaxtyping.Int32)
    i64 = _annotation("i64", jnp.int64, jaxtyping.Int64)
    u8 = _annotation("u8", jnp.uint8, jaxtyping.UInt8)
    u16 = _annotation("u16", jnp.uint16, jaxtyping.UInt16)
    u32 = _annotation("u32", jnp.uint32, jaxtyping.UInt32)
    u64 = _annotation("u64", jnp.uint64, jaxtyping.UInt64)
