"""The words of the language that stand for something else: one table each.

Parser and printer both read these tables, so what is printed can be read back.
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from ..core import ForKind, FunctionType, Level, ParamDirection, Role
from ..dtypes import (
    E1M2,
    BFloat16,
    DType,
    Float16,
    Index,
    Int4,
    Int16,
    Int64,
    TaskId,
    UInt4,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
)
from ..errors import IRTypeError
from ..expr import Expr
from ..types import (
    AccPhase,
    CompactMode,
    MemorySpace,
    MemRef,
    PadValue,
    TensorLayout,
    TileLayout,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Name in the language -> descriptor. Where two names mean one dtype, the first is printed.
DTYPES: Final[Mapping[str, DType]] = MappingProxyType(
    {
        "FP8E4M3FN": DType.E4M3,
        "FP8E5M2": DType.E5M2,
        "FP8E8M0": DType.E8M0,
        "FP6E3M2": DType.E3M2,
        "FP6E2M3": DType.E2M3,
        "FP4": DType.E2M1,
        "FP4E2M1X2": DType.E2M1,
        "FP4E1M2": E1M2,
        "FP16": Float16,
        "BF16": BFloat16,
        "FP32": DType.Float32,
        "FP64": DType.Float64,
        "INT4": Int4,
        "UINT4": UInt4,
        "INT8": DType.Int8,
        "UINT8": UInt8,
        "INT16": Int16,
        "UINT16": UInt16,
        "INT32": DType.Int32,
        "UINT32": UInt32,
        "INT64": Int64,
        "UINT64": UInt64,
        "INDEX": Index,
        "BOOL": DType.Bool,
        "TASK_ID": TaskId,
        "MXFP8_E4M3": DType.MXFP8_E4M3,
        "MXFP8_E5M2": DType.MXFP8_E5M2,
        "MXFP6_E3M2": DType.MXFP6_E3M2,
        "MXFP6_E2M3": DType.MXFP6_E2M3,
        "MXFP4": DType.MXFP4,
        "MXINT8": DType.MXINT8,
        "NVFP4": DType.NVFP4,
    }
)

#: Name in the language -> enumeration. Where two names mean one, the first is printed.
ENUMS: Final[Mapping[str, type[Enum]]] = MappingProxyType(
    {
        "FunctionType": FunctionType,
        "Mem": MemorySpace,
        "MemorySpace": MemorySpace,
        "TensorLayout": TensorLayout,
        "TileLayout": TileLayout,
        "PadValue": PadValue,
        "CompactMode": CompactMode,
        "AccPhase": AccPhase,
        "ForKind": ForKind,
        "ParamDirection": ParamDirection,
        "Level": Level,
        "Role": Role,
    }
)

#: Op of the language whose name differs from the op's own.
OP_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"create_tile": "tile.create", "create_tensor": "tensor.create"}
)

#: Words that PyPTO has and this language has not -> what does the job here.
UNSUPPORTED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cluster": "a method with @pl.function(type=pl.FunctionType.InCore)",
        "split_aiv": "a method with @pl.function(type=pl.FunctionType.InCore)",
        "manual_scope": "plain calls, which run in order",
        "scope": "plain calls, which run in order",
        "no_dep": "a plain argument",
        "array": "several variables of pl.TASK_ID, named in deps=[a, b]",
        "split": "a region without optimizations=",
        "cross_core_slot": "a region without optimizations=",
        "Array": "several pl.Scalar variables",
        "DistributedTensor": "pl.Tensor, a tensor of this device",
        "CommCtx": "nothing: a program runs on one device",
        "HF4": "pl.FP4 and pl.FP4E1M2",
        "HF8": "pl.FP8E4M3FN and pl.FP8E5M2",
    }
)

_DTYPE_NAMES: Final[Mapping[DType, str]] = {
    dtype: name for name, dtype in reversed(list(DTYPES.items()))
}
_ENUM_NAMES: Final[Mapping[type[Enum], str]] = {
    kind: name for name, kind in reversed(list(ENUMS.items()))
}


def dtype_name(dtype: DType) -> str:
    """Return the name of a descriptor in the language, without the prefix.

    Raises:
        IRTypeError: If the language has no name for it.
    """
    name = _DTYPE_NAMES.get(dtype)
    if name is None:
        message = f"A dtype in a kernel must have a name in the language, which {dtype!r} has not"
        raise IRTypeError(message, hint=f"its dtypes are {', '.join(DTYPES)}")
    return name


def enum_name(kind: type[Enum]) -> str | None:
    """Return the name of an enumeration in the language, or None if it has none."""
    return _ENUM_NAMES.get(kind)


def is_attribute_value(value: object) -> bool:
    """Return whether a Python value can be an attribute, and so be printed and read back."""
    match value:
        case Enum():
            return enum_name(type(value)) is not None
        case DType():
            return value in DTYPES.values()
        case None | bool() | int() | float() | str() | MemRef() | Expr():
            return True
        case list() | tuple():
            return all(is_attribute_value(v) for v in cast("Sequence[object]", value))
        case dict():
            pairs = cast("dict[object, object]", value).items()
            return all(isinstance(k, str) and is_attribute_value(v) for k, v in pairs)
        case _:
            return False
