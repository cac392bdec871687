"""Dtypes: what a value is, how it is stored, and how its planes belong together.

* descriptors (`DType` and its kinds), which are identities in one registry; the attributes of
  `DType` are the built-in ones, and this module has the machine's further simple dtypes by name;
* representation rules and block-scaled dtypes;
* layouts and representations of tensors of these dtypes, from the modules beside this package;
* the table of number formats, in `formats`.

What stores values needs numpy and is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..layout import Layout, Shape, Stride
from .block_scaled import BlockScaledDType, Level, SymbolicBits
from .compound import CompoundDType
from .context import RepresentationValidationContext
from .descriptors import DType, DTypeCategory, SimpleDType
from .hardware import (
    E1M2,
    BFloat16,
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
from .rules import LevelExtent, RepresentationRule
from .structure import Whole, WholeExtent

if TYPE_CHECKING:
    from ..carriers import Carrier
    from ..generic_carrier import Generic
    from ..representation import RepresentationType, Subtensor, TensorRepresentation

__all__ = [
    "E1M2",
    "BFloat16",
    "BlockScaledDType",
    "Carrier",
    "CompoundDType",
    "DType",
    "DTypeCategory",
    "Float16",
    "Generic",
    "Index",
    "Int4",
    "Int16",
    "Int64",
    "Layout",
    "Level",
    "LevelExtent",
    "RepresentationRule",
    "RepresentationType",
    "RepresentationValidationContext",
    "Shape",
    "SimpleDType",
    "Stride",
    "Subtensor",
    "SymbolicBits",
    "TaskId",
    "TensorRepresentation",
    "UInt4",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Whole",
    "WholeExtent",
]

_NEEDS_NUMPY = ("Carrier", "Generic", "RepresentationType", "Subtensor", "TensorRepresentation")


def __getattr__(name: str) -> object:
    if name not in _NEEDS_NUMPY:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from ..carriers import Carrier
    from ..generic_carrier import Generic
    from ..representation import RepresentationType, Subtensor, TensorRepresentation

    loaded = (Carrier, Generic, RepresentationType, Subtensor, TensorRepresentation)
    globals().update({cls.__name__: cls for cls in loaded})
    return globals()[name]
