"""Element types and the simple dtypes of the intermediate representation, each as the other.

E1M2 has no public tag: it is the private one :data:`E1M2_TAG`, with the extension section that its
number format implies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ...ir.dtypes import (
    E1M2,
    BFloat16,
    DType,
    Float16,
    Int4,
    Int16,
    Int64,
    SimpleDType,
    UInt4,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
)
from ...ir.dtypes.formats import format_of
from ...ir.numerics.arguments import as_codes
from . import dtype as types
from .elements import Dtype
from .errors import UnsupportedError
from .extension import ExtensionType
from .packing import pack_codes
from .tensor import Tensor

if TYPE_CHECKING:
    import numpy.typing as npt

    from .quantization import Quantization

E1M2_TAG: Final = 0xF1
"""The private tag of E1M2 elements in our files."""

_BYTE = 8

# fmt: off
_ROWS: Final[tuple[tuple[Dtype, SimpleDType], ...]] = (
    # element type       simple dtype
    (types.bool,         DType.Bool),
    (types.float16,      Float16),
    (types.bfloat16,     BFloat16),
    (types.float32,      DType.Float32),
    (types.float64,      DType.Float64),
    (types.int8,         DType.Int8),
    (types.uint8,        UInt8),
    (types.int16,        Int16),
    (types.uint16,       UInt16),
    (types.int32,        DType.Int32),
    (types.uint32,       UInt32),
    (types.int64,        Int64),
    (types.uint64,       UInt64),
    (types.float8_e4m3,  DType.E4M3),
    (types.float8_e5m2,  DType.E5M2),
    (types.float8_e8m0,  DType.E8M0),
    (types.float4_e2m1,  DType.E2M1),
    (types.float6_e2m3,  DType.E2M3),
    (types.float6_e3m2,  DType.E3M2),
    (types.int4,         Int4),
    (types.uint4,        UInt4),
)
# fmt: on

_IR_OF: Final = dict(_ROWS)
_DTYPE_OF: Final = {ir_dtype: dtype for dtype, ir_dtype in _ROWS}


def _section_of(ir_dtype: SimpleDType) -> ExtensionType:
    form = format_of(ir_dtype)
    return ExtensionType(
        form.bits,
        is_float=True,
        sign_bits=int(form.signed),
        exponent_bits=form.exponent_bits,
        mantissa_bits=form.mantissa_bits,
        exponent_bias=form.bias,
        has_nan=form.has_nan,
        has_inf=form.has_infinity,
    )


E1M2_TYPE: Final = _section_of(E1M2)
"""The extension section of E1M2 elements."""


def to_ir(dtype: Dtype, extension_type: ExtensionType | None = None) -> SimpleDType:
    """Return the simple dtype of elements.

    Bool is 1 bit in a file and 8 bits as a descriptor; the values are the same.

    Raises:
        UnsupportedError: There is none, or the type is private and not ours.
    """
    if dtype.is_private:
        if dtype.tag == E1M2_TAG and extension_type == E1M2_TYPE:
            return E1M2
        sentence = (
            f"A private element type must be 0x{E1M2_TAG:02X} with the section of E1M2 to be "
            f"understood here, not 0x{dtype.tag:02X} with {extension_type!r}"
        )
        raise UnsupportedError(sentence)
    found = _IR_OF.get(dtype)
    if found is None:
        valid = ", ".join(known.name for known in _IR_OF)
        sentence = f"The element type must be one that a simple dtype exists for, not {dtype.name}"
        raise UnsupportedError(sentence, hint=f"Valid are: {valid}.")
    return found


def from_ir(ir_dtype: DType) -> tuple[Dtype, ExtensionType | None]:
    """Return the element type of a simple dtype, and its extension section if it is private.

    Raises:
        UnsupportedError: There is none.
    """
    if ir_dtype is E1M2:
        return Dtype.from_tag(E1M2_TAG), E1M2_TYPE
    found = _DTYPE_OF.get(cast("SimpleDType", ir_dtype))
    if found is None:
        valid = ", ".join(known.name for known in _DTYPE_OF)
        name = getattr(ir_dtype, "name", repr(ir_dtype))
        sentence = f"The dtype must be one that an element type exists for, not {name}"
        raise UnsupportedError(sentence, hint=f"Valid are: {valid}, E1M2.")
    return found, None


def tensor_of_codes(
    codes: npt.ArrayLike,
    ir_dtype: SimpleDType,
    *,
    aux_buffers: tuple[Any, ...] = (),
    quantization: Quantization | None = None,
) -> Tensor:
    """Return a tensor whose elements have the given bit patterns.

    Args:
        codes: One code an item, as :func:`Tensor.codes` gives them, or an array of the matching
            ml_dtypes type. They are stored in row-major order.
        ir_dtype: What the codes are of: a number format that float32 holds.
        aux_buffers: Further buffers.
        quantization: The scheme.

    Raises:
        UnsupportedError: There is no such element type.
        IRTypeError: The items cannot be codes.
        IRValueError: A code does not fit its width.
    """
    dtype, extension = from_ir(ir_dtype)
    array = np.asarray(as_codes(codes, ir_dtype))
    return Tensor(
        code_bytes(array, ir_dtype.bits),
        dtype,
        array.shape,
        aux_buffers=aux_buffers,
        quantization=quantization,
        extension_type=extension,
    )


def code_bytes(codes: npt.NDArray[Any], bits: int) -> npt.NDArray[np.uint8]:
    """Return codes as the bytes that a row-major tensor stores."""
    if bits < _BYTE:
        return pack_codes(codes.astype(np.uint8, copy=False), bits)
    little = np.ascontiguousarray(codes).astype(codes.dtype.newbyteorder("<"), copy=False)
    return little.reshape(-1).view(np.uint8)
