"""What the rows of the vector core are made of: fields and rules of the tiles in UB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .row import Field, Row, Rule, Step, addr, enum, imm
from .vocabulary import (
    ElementType,
    FloatType,
    Pipe,
    Space,
    TimingClass,
    VectorBinary,
    VectorType,
    VectorUnary,
)

if TYPE_CHECKING:
    from .row import Values

UB_UNIT = 32
"""Bytes in which addresses in UB and pitches are counted."""

FLOAT_TYPES = frozenset({VectorType.FP32, VectorType.FP16, VectorType.BF16})
"""What the functions that are computed in real numbers take."""

SIGNED_TYPES = frozenset({VectorType.INT8, VectorType.INT16, VectorType.INT32})
NUMBER_TYPES = (
    FLOAT_TYPES | SIGNED_TYPES | frozenset({VectorType.UINT8, VectorType.UINT16, VectorType.UINT32})
)
"""What the vector core computes with; the other types are cast and moved only."""

_FLOAT_UNARY = frozenset(VectorUnary) - {VectorUnary.NEG, VectorUnary.ABS, VectorUnary.RELU}
_FLOAT_BINARY = frozenset({VectorBinary.DIV, VectorBinary.EXPDIF})
QUANT_ELEMENTS = (ElementType.E4M3, ElementType.E5M2, ElementType.E2M1)
"""What can be quantised to."""

_PITCH = "Units of 32 bytes from row to row; 0 for a packed column"


def _names(types: frozenset[VectorType]) -> str:
    return ", ".join(each.name.lower() for each in sorted(types))


def type_of(op: VectorUnary | VectorBinary) -> frozenset[VectorType]:
    """Return the types that a function takes, and gives."""
    match op:
        case VectorUnary():
            return FLOAT_TYPES if op in _FLOAT_UNARY else FLOAT_TYPES | SIGNED_TYPES
        case VectorBinary():
            return FLOAT_TYPES if op in _FLOAT_BINARY else NUMBER_TYPES


def has_type(functions: type[VectorUnary] | type[VectorBinary]) -> Rule:
    """Return the rule that the function in `op` has the type in `type`."""

    def complaint(values: Values) -> str | None:
        op, kind = functions(values["op"]), VectorType(values["type"])
        if kind in type_of(op):
            return None
        wanted = _names(type_of(op))
        return f"type must be one of {wanted} for {op.name.lower()}, not {kind.name.lower()}"

    return Rule("the function has the type", complaint)


def _number(values: Values) -> str | None:
    kind = VectorType(values["type"])
    if kind in NUMBER_TYPES:
        return None
    return f"type must be one of {_names(NUMBER_TYPES)}, not {kind.name.lower()}"


def packed(pitch: str, extent: str = "cols") -> Rule:
    """Return the rule that a tile without a pitch is one column."""

    def complaint(values: Values) -> str | None:
        if values[pitch] or values[extent] == 1:
            return None
        return f"{extent} must be 1 where {pitch} is 0, not {values[extent]}"

    return Rule(f"{extent} is 1 where {pitch} is 0", complaint)


def wide_enough(pitch: str, kind: str, extent: str = "cols", other: str = "rows") -> Rule:
    """Return the rule that rows do not run into one another."""

    def complaint(values: Values) -> str | None:
        if not values[pitch] or values[other] == 1:
            return None
        size = -(-values[extent] * VectorType(values[kind]).bits // 8)
        if size <= values[pitch] * UB_UNIT:
            return None
        return f"{pitch} must be at least {-(-size // UB_UNIT)} for {size} bytes a row, not {values[pitch]}"

    return Rule(f"a row of {extent} elements of {kind} fits into {pitch}", complaint)


def whole_bytes(kind: str, extent: str = "cols", what: str = "a row") -> Rule:
    """Return the rule that so many 4-bit elements have whole bytes."""

    def complaint(values: Values) -> str | None:
        if VectorType(values[kind]).bits * values[extent] % 8 == 0:
            return None
        return f"{extent} must be even for a 4-bit {kind}, not {values[extent]}"

    return Rule(f"{what} has whole bytes", complaint)


def quantised(values: Values) -> str | None:
    """Return why a source cannot be quantised to its elements, or None."""
    source, element = FloatType(values["type"]), ElementType(values["element"])
    if element not in QUANT_ELEMENTS:
        names = ", ".join(each.name.lower() for each in QUANT_ELEMENTS)
        return f"element must be one of {names}, not {element.name.lower()}"
    if element is ElementType.E2M1 and source is FloatType.FP32:
        return "type must be one of fp16, bf16 for e2m1, not fp32"
    return None


def types_differ(values: Values) -> str | None:
    """Return why a cast is none, or None."""
    return None if values["type"] != values["to"] else "type and to must differ"


def type_field(low: int, doc: str = "Element type.", name: str = "type") -> Field:
    """Return a field for an element type."""
    return enum(name, low, 4, VectorType, doc)


def shape_fields() -> tuple[Field, Field]:
    """Return the fields of a tile's rows and columns."""
    return (
        imm("rows", 64, 16, "Rows.", least=1),
        imm("cols", 80, 15, "Columns.", least=1),
    )


def pitch_field(name: str, low: int, what: str) -> Field:
    """Return a field for the pitch of a tile."""
    return imm(name, low, 11, f"{_PITCH}; of {what}.")


def result_field() -> Field:
    """Return the field of the address of a result."""
    return addr("dst", 8, Space.UB, "Element (0, 0) of the result.")


def vector_row(
    mnemonic: str, opcode: int, doc: str, fields: tuple[Field, ...], *rules: Rule, step: Step
) -> Row:
    """Return a row of pipe V that reads and writes UB."""
    return Row(
        mnemonic,
        opcode,
        Pipe.V,
        TimingClass.VECTOR,
        doc,
        fields,
        reads=(Space.UB,),
        writes=(Space.UB,),
        rules=rules,
        step=step,
    )


ONE_TILE_STEP = Step(loads=1, operations=1, stores=1)
TWO_TILE_STEP = Step(loads=2, operations=1, stores=1)
MOVE_STEP = Step(loads=1, operations=0, stores=1)
FILL_STEP = Step(loads=0, operations=0, stores=1)
QUANT_STEP = Step(loads=1, operations=6, stores=2)
"""Sizes, the largest one of a group, its scale, the scale's inverse, products, conversions; codes
and scales are stored."""

IS_NUMBER = Rule("type is a number that the vector core computes with", _number)
IN_PLACE = "The result may stand where an operand of its shape and pitch stands."
RESULT_TILE = (packed("dst_pitch"), wide_enough("dst_pitch", "type"))
TWO_TILES = (*RESULT_TILE, packed("src_pitch"), wide_enough("src_pitch", "type"))
THREE_TILES = (
    *RESULT_TILE,
    packed("a_pitch"),
    wide_enough("a_pitch", "type"),
    packed("b_pitch"),
    wide_enough("b_pitch", "type"),
)
