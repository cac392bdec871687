"""The simple dtypes that the machine and its language have beside the built-in ones.

They are registered by the same machinery and found by `DType.from_name`; they are no attributes
of DType, for those are exactly the built-ins.
"""

from __future__ import annotations

from . import builtins as _builtins  # the categories must be registered first
from .descriptors import DType, SimpleDType

assert _builtins

# fmt: off
Float16  = SimpleDType("Float16",  bits=16, supertype=DType.Floating)
BFloat16 = SimpleDType("BFloat16", bits=16, supertype=DType.Floating)
E1M2     = SimpleDType("E1M2",     bits=4,  supertype=DType.Floating)
Int4     = SimpleDType("Int4",     bits=4,  supertype=DType.Integer)
UInt4    = SimpleDType("UInt4",    bits=4,  supertype=DType.Integer)
UInt8    = SimpleDType("UInt8",    bits=8,  supertype=DType.Integer)
Int16    = SimpleDType("Int16",    bits=16, supertype=DType.Integer)
UInt16   = SimpleDType("UInt16",   bits=16, supertype=DType.Integer)
UInt32   = SimpleDType("UInt32",   bits=32, supertype=DType.Integer)
Int64    = SimpleDType("Int64",    bits=64, supertype=DType.Integer)
UInt64   = SimpleDType("UInt64",   bits=64, supertype=DType.Integer)
Index    = SimpleDType("Index",    bits=64, supertype=DType.Integer)
TaskId   = SimpleDType("TaskId",   bits=64, supertype=DType.Any)
# fmt: on
