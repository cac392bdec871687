"""Instruction selection for what pipe MTE1 does: whole tiles, or windows of them, go from L1 on.

A move is a window that begins at (0, 0). Where a window begins at a constant place, its address is a
constant too; where a loop moves it, the instruction takes the distance from a register.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, cast

from ...ir.collapsing import plus
from ...ir.dtypes import Index
from ...ir.dtypes.boxes import BOX_GROUPS, BOX_ROWS, GROUP
from ...ir.errors import IRValueError
from ...ir.expr import ConstInt, FloorDiv, Mul, index
from ...ir.ops.rules_window import steps_into
from ...ir.tile_bytes import FRACTAL_BYTES, FRACTAL_ROWS, c0_elements, round_up, tile_bytes
from ...ir.types import TileLayout
from ..access import BOX_BYTES
from ..isa.table import AT
from ..isa.vocabulary import ElementBits, Space
from ..tree import Region
from .padding import buffer_name, padded_k
from .places import place_of, space_name

if TYPE_CHECKING:
    from ...ir.expr import Call, Expr, Var
    from ...ir.types import TileType
    from ..tree import Fields, Step
    from .operands import Operands
    from .places import Place

    Pitches: TypeAlias = tuple[Fraction, Fraction]

_AXES = ("row", "column")


@dataclass(frozen=True)
class _Copy:
    """A transfer from L1.

    Attributes:
        mnemonic: The instruction for a constant address.
        fields: Its fields beside the source address.
        pitches: Units of 32 bytes from one row, and from one column, of the source to the next.
    """

    mnemonic: str
    fields: Fields
    pitches: Pitches


def select_move(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Return the transfer of a whole tile.

    Raises:
        IRValueError: For a way that this core does not have.
    """
    if var is None:
        return ()
    copy = _copy(operands, var, call)
    source = place_of(call.args[0], call.span)
    return (operands.step(copy.mnemonic, {"src": source.address, **copy.fields}, call),)


def select_extract(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Return the transfer of a window of a tile.

    Raises:
        IRValueError: For a window that may begin inside a box or reach beyond what is valid.
    """
    if var is None:
        return ()
    copy, (row, col) = _copy(operands, var, call), call.args[1:3]
    source, place = place_of(call.args[0], call.span), place_of(var, call.span)
    _check_window(operands, call, source, place)
    if isinstance(row, ConstInt) and isinstance(col, ConstInt):
        along_rows, along_cols = copy.pitches
        units = int(along_rows * row.value + along_cols * col.value)
        fields = {"src": source.address + units * FRACTAL_BYTES, **copy.fields}
        return (operands.step(copy.mnemonic, fields, call),)
    down, across = (
        times_pitch(at, pitch) for at, pitch in zip((row, col), copy.pitches, strict=True)
    )
    units = plus(down, across)
    fields = {"src": source.address, "xo": units, **copy.fields}
    size = tile_bytes(cast("TileType", call.args[0].type))
    whole = Region(Space.L1, source.address, source.address + round_up(size, FRACTAL_BYTES))
    return (operands.step(copy.mnemonic + AT, fields, call, within=whole),)


def _copy(operands: Operands, var: Var, call: Call) -> _Copy:
    source, place = place_of(call.args[0], call.span), place_of(var, call.span)
    one, bits = Fraction(1), source.dtype.bits
    fields: Fields = {"dst": place.address}
    match source.space, place.space:
        case Space.L1, Space.L0A:
            depth = place.valid_cols
            if buffer_name(var) in operands.scaled.l0:
                depth = padded_k(depth, place.cols, bits)
            boxes = -(-depth // c0_elements(bits))
            if _is_plain_row(call.args[0]):
                fields |= {"units": boxes}
                return _Copy("l1_to_l0a_row", fields, (Fraction(0), Fraction(1, c0_elements(bits))))
            pitch = -(-source.rows // FRACTAL_ROWS)
            row_boxes = -(-place.valid_rows // FRACTAL_ROWS)
            fields |= {
                "row_boxes": row_boxes,
                "col_boxes": boxes,
                "src_pitch": pitch,
                "dst_pitch": row_boxes,
            }
            column = Fraction(pitch * BOX_BYTES, FRACTAL_BYTES * c0_elements(bits))
            return _Copy("l1_to_l0a", fields, (one, column))
        case Space.L1, Space.L0B:
            src_k, depth = round_up(source.rows, FRACTAL_ROWS), place.valid_rows
            if buffer_name(var) in operands.scaled.l0:
                depth = padded_k(depth, place.rows, bits)
            fields |= {
                "bits": ElementBits(bits),
                "k": depth,
                "n": place.valid_cols,
                "src_k": src_k,
            }
            return _Copy("l1_to_l0b", fields, (one, Fraction(src_k, c0_elements(bits))))
        case Space.L1, Space.SCALE_A | Space.SCALE_B:
            return _fill_scale(operands, var, source, place, call)
        case Space.L1, Space.BIAS:
            if not _is_plain_row(call.args[0]):
                message = "A tile must move to Bias as a plain row, not from boxes in Mat"
                hint = (
                    "a row of sums goes there by way of Vec: pl.move it to pl.Mem.Vec, then to Mat"
                )
                raise IRValueError(message, call.span, hint=hint)
            fields |= {"bytes": place.valid_cols * bits // 8}
            return _Copy("l1_to_bias", fields, (Fraction(0), Fraction(bits, FRACTAL_BYTES * 8)))
        case _:
            message = (
                "The cube core must move tiles from Mat to Left, Right, LeftScale, RightScale or "
                f"Bias, not from {space_name(call.args[0])} to {space_name(var)}"
            )
            raise IRValueError(message, call.span)


def _is_plain_row(tile: Expr) -> bool:
    """Whether a tile in L1 is one row, its elements one after the other."""
    return cast("TileType", tile.type).get_effective_tile_view().slayout is TileLayout.none_box


def _fill_scale(operands: Operands, var: Var, source: Place, place: Place, call: Call) -> _Copy:
    """Fill a scale buffer as far as the data tile's valid region needs it."""
    assert var in operands.data_of, "a scale tile has a place only through its data tile"
    data = place_of(operands.data_of[var], call.span)
    left = place.space is Space.SCALE_A
    rows, k = (data.valid_rows, data.valid_cols) if left else (data.valid_cols, data.valid_rows)
    if left and _is_plain_row(call.args[0]):
        groups = -(-k // GROUP)
        pitches = Fraction(0), Fraction(1, FRACTAL_BYTES)
        return _Copy("l1_to_scale_a_row", {"dst": place.address, "groups": groups}, pitches)
    pitch = -(-(source.cols if left else source.rows) // BOX_GROUPS)
    fields: Fields = {
        "dst": place.address,
        "row_boxes": -(-rows // BOX_ROWS),
        "col_boxes": -(-k // (GROUP * BOX_GROUPS)),
        "src_pitch": pitch,
    }
    along_rows, along_groups = Fraction(pitch, BOX_ROWS), Fraction(1, BOX_GROUPS)
    if left:
        return _Copy("l1_to_scale_a", fields, (along_rows, along_groups))
    return _Copy("l1_to_scale_b", fields, (along_groups, along_rows))


def _check_window(operands: Operands, call: Call, source: Place, place: Place) -> None:
    """Refuse a window that is not known to begin between boxes and to end within the valid tile."""
    tile = cast("TileType", call.args[0].type)
    steps = steps_into(tile, call.kwargs["target_memory"])
    sizes = (place.valid_rows, place.valid_cols)
    limits = (source.valid_rows, source.valid_cols)
    for axis, at, step, size, limit in zip(
        _AXES, call.args[1:3], steps, sizes, limits, strict=True
    ):
        found = operands.ranges.of(at)
        if found is not None and found.is_multiple_of(step):
            if found.low >= 0 and found.high + size <= limit:
                continue
            what = f"takes {size} from {found.low} to {found.high} on"
        else:
            what = "begins where no constant tells" if found is None else "may begin inside a box"
        message = (
            f"The {axis} of a window must be known to be a multiple of {step} and to end within the "
            f"{limit} valid elements of the tile, but it {what}"
        )
        hint = "let it follow from constants and loops with constant bounds"
        raise IRValueError(message, call.span, hint=hint)


def times_pitch(value: Expr, pitch: Fraction) -> Expr:
    """Return value * pitch, a whole number as windows begin between boxes and bytes."""
    if isinstance(value, ConstInt):
        return index(int(value.value * pitch), value.span)
    if pitch.numerator != 1:
        value = Mul(value, index(pitch.numerator), Index, value.span)
    if pitch.denominator != 1:
        value = FloorDiv(value, index(pitch.denominator), Index, value.span)
    return value
