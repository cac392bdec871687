"""Where the tiles of the vector core stand in UB.

Rows follow one another at a pitch that instructions count in units of 32 bytes; a column [M, 1] is
packed, which they call pitch 0. Instructions name the valid part of a tile only.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from ....ir.dtypes import (
    BFloat16,
    DType,
    Float16,
    Int16,
    Int64,
    UInt8,
    UInt16,
    UInt32,
)
from ....ir.errors import IRTypeError, IRValueError
from ...isa.vector_rules import UB_UNIT, pitch_field, shape_fields
from ...isa.vocabulary import Space, VectorType
from ..places import place_of, space_name

if TYPE_CHECKING:
    from ....ir.dtypes import SimpleDType
    from ....ir.errors import Span
    from ....ir.expr import Expr
    from ...tree import Fields
    from ..places import Place

VECTOR_TYPES: dict[DType, VectorType] = {
    DType.Float32: VectorType.FP32,
    Float16: VectorType.FP16,
    BFloat16: VectorType.BF16,
    DType.Int8: VectorType.INT8,
    UInt8: VectorType.UINT8,
    DType.Bool: VectorType.UINT8,
    Int16: VectorType.INT16,
    UInt16: VectorType.UINT16,
    DType.Int32: VectorType.INT32,
    UInt32: VectorType.UINT32,
    Int64: VectorType.INT64,
    DType.E4M3: VectorType.E4M3,
    DType.E5M2: VectorType.E5M2,
    DType.E8M0: VectorType.UINT8,
    DType.E2M1: VectorType.E2M1,
}
"""What the vector core calls each dtype; a mask has a byte an element, and so have scales."""

_BYTE = 8
_ROWS, _COLS = shape_fields()
_PITCH = pitch_field("pitch", 0, "a tile")


@dataclass(frozen=True)
class UbTile:
    """The valid part of a tile in UB.

    Attributes:
        address: Byte address of element (0, 0).
        rows: Valid rows.
        cols: Valid columns.
        pitch: Units of 32 bytes from row to row; 0 where rows are one packed element each.
        type: What instructions call the element type.
        dtype: The element type of the language.
    """

    address: int
    rows: int
    cols: int
    pitch: int
    type: VectorType
    dtype: SimpleDType

    @property
    def shape(self) -> Fields:
        """The fields that say how much an instruction works on."""
        return {"rows": self.rows, "cols": self.cols}

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it is valid, so that nothing is to be done."""
        return not self.rows or not self.cols

    def operand(self, name: str) -> Fields:
        """Return the fields of the address and the pitch of an operand `name`."""
        return {name: self.address, f"{name}_pitch": self.pitch}


def tile_at(value: Expr, span: Span) -> UbTile:
    """Return where a tile stands in UB.

    Args:
        value: A tile variable, after AllocateMemoryAddr.
        span: Where it is used, for an error.

    Raises:
        IRTypeError: For a tile whose shape or valid shape is not constant, or whose dtype the
            vector core has no word for.
        IRValueError: For a tile in another memory, or one whose rows do not begin at multiples of
            32 bytes.
    """
    place = place_of(value, span)
    if place.space is not Space.UB:
        message = f"The vector core must take its tiles from Vec, not from {space_name(value)}"
        raise IRValueError(message, span)
    return ub_tile(place, span)


def ub_tile(place: Place, span: Span) -> UbTile:
    """Return how instructions see a tile that is known to be in UB; errors as of `tile_at`."""
    kind = VECTOR_TYPES.get(place.dtype)
    if kind is None:
        names = ", ".join(dtype.name for dtype in VECTOR_TYPES)
        message = f"A tile of the vector core must hold {names}, not {place.dtype.name}"
        raise IRTypeError(message, span)
    if place.valid_cols * kind.bits % _BYTE:
        message = (
            f"The valid columns of a tile of {place.dtype.name} in Vec must be even, since two of "
            f"its elements lie in a byte, not {place.valid_cols}"
        )
        raise IRValueError(message, span)
    for what, found, field in (
        ("rows", place.valid_rows, _ROWS),
        ("columns", place.valid_cols, _COLS),
    ):
        if found > field.maximum:
            message = (
                f"A tile in Vec must have at most {field.maximum} valid {what}, which is as far as an "
                f"instruction counts, not {found}"
            )
            hint = f"a loop over tiles of fewer {what}, or pl.tensor.view of the tensor in another shape"
            raise IRValueError(message, span, hint=hint)
    return UbTile(
        place.address,
        place.valid_rows,
        place.valid_cols,
        _pitch(place, kind, span),
        kind,
        place.dtype,
    )


def _pitch(place: Place, kind: VectorType, span: Span) -> int:
    if place.cols == 1 and kind.bits >= _BYTE:
        return 0
    bits = place.cols * kind.bits
    unit = UB_UNIT * _BYTE
    # A mask is made by the compiler, whose rows stand as far apart as they must.
    if bits % unit and place.rows > 1 and place.dtype is not DType.Bool:
        step = unit // gcd(unit, kind.bits)
        legal = -(-place.cols // step) * step
        message = (
            f"The rows of a tile in Vec must take a multiple of {UB_UNIT} bytes each, not "
            f"{bits / _BYTE:g} bytes for {place.cols} columns of {place.dtype.name}"
        )
        hint = (
            f"load a tile of {legal} columns, of which valid_shape says that {place.cols} are valid"
        )
        raise IRValueError(message, span, hint=hint)
    pitch = -(-bits // unit)
    if pitch > _PITCH.maximum and place.valid_rows > 1:
        message = (
            f"The rows of a tile in Vec must take at most {_PITCH.maximum * UB_UNIT} bytes each, "
            f"which is as far as an instruction steps, not {pitch * UB_UNIT} bytes for {place.cols} "
            f"columns of {place.dtype.name}"
        )
        hint = (
            "a loop over tiles of fewer columns, or pl.tensor.view of the tensor in another shape"
        )
        raise IRValueError(message, span, hint=hint)
    # Nothing steps from a single row to another one.
    return min(pitch, _PITCH.maximum)
