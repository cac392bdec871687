"""Which bytes the instructions around UB touch: those of the vector core, and the ways in and out.

A tile counts as one stretch from its first byte to its last one, the gaps between its rows included;
a partial unit of 32 bytes counts as a whole one. That is never too little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ..ir.dtypes.boxes import BOX_BYTES as SCALE_BOX_BYTES
from ..ir.dtypes.boxes import BOX_GROUPS, BOX_ROWS, GROUP
from ..ir.tile_bytes import FRACTAL_BYTES, FRACTAL_ROWS, c0_elements, round_up
from .isa.table import ROWS
from .isa.vector_rules import UB_UNIT
from .isa.vocabulary import (
    ADDRESS_BITS,
    Axis,
    ElementType,
    FixConvert,
    FixScale,
    Space,
    VectorBinary,
    VectorType,
)
from .tree import Region, whole_tensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .tensors import View

    Values: TypeAlias = Mapping[str, int]
    Regions: TypeAlias = tuple[Region, ...]

_BYTE = 8
_SUM_BYTES = 4
_ALL_OF_UB = (Region(Space.UB, 0, 1 << ADDRESS_BITS[Space.UB]),)

AROUND_UB = frozenset(
    row.mnemonic for row in ROWS if Space.UB in row.reads or Space.UB in row.writes
)
"""The instructions that this module knows."""


def ub_accesses(mnemonic: str, f: Values, views: Sequence[View]) -> tuple[Regions, Regions]:
    """Return what an instruction of `AROUND_UB` reads and what it writes.

    Args:
        mnemonic: The instruction.
        f: Its fields, those in registers left out.
        views: What its view field indexes.
    """
    match mnemonic:
        case "gm_to_ub" | "ub_to_gm":
            view = views[f["view"]]
            tensor = (whole_tensor(view.param),)
            tile = _tile(f["ub"], f["rows"], f["cols"], f["pitch"], view.bits)
            return (tensor, tile) if mnemonic == "gm_to_ub" else (tile, tensor)
        case "ub_to_gm_boxes":
            size = ((f["ni"] - 1) * f["ub_nj"] + f["nj"]) * SCALE_BOX_BYTES
            return _stretch(f["ub"], size), (whole_tensor(views[f["view"]].param),)
        case "ub_to_l1":
            last = f["lines"] - 1
            source = (last * f["ub_pitch"] + f["units"]) * UB_UNIT
            target = (last * f["l1_pitch"] + f["units"]) * UB_UNIT
            return _stretch(f["ub"], source), (Region(Space.L1, f["l1"], f["l1"] + target),)
        case "ub_to_l1_nz":
            columns = -(-f["cols"] // c0_elements(f["bits"]))
            size = ((columns - 1) * f["l1_rows"] + f["rows"]) * FRACTAL_BYTES
            source = _tile(f["ub"], f["rows"], f["cols"], f["pitch"], f["bits"])
            return source, (Region(Space.L1, f["l1"], f["l1"] + size),)
        case "l0c_to_ub" | "l0c_to_ub_quant":
            columns = -(-f["cols"] // FRACTAL_ROWS)
            rows = (columns - 1) * f["src_boxes"] * FRACTAL_ROWS + f["rows"]
            sums = Region(Space.L0C, f["l0c"], f["l0c"] + rows * FRACTAL_ROWS * _SUM_BYTES)
            bits = FixConvert(f["convert"]).bits
            reads = (sums,)
            if f.get("quant") == FixScale.COLUMNS:
                numbers = round_up(f["cols"] * _SUM_BYTES, FRACTAL_BYTES)
                reads = (sums, Region(Space.FIXP, f["scales"], f["scales"] + numbers))
            return reads, _tile(f["ub"], f["rows"], f["cols"], f["pitch"], bits)
        case "v_move_at":
            return _ALL_OF_UB, _ALL_OF_UB
        case _:
            return _vector(mnemonic, f)


def _vector(mnemonic: str, f: Values) -> tuple[Regions, Regions]:
    rows, cols = f["rows"], f["cols"]
    bits = VectorType(f["type"]).bits if "type" in f else _BYTE
    match mnemonic:
        case "v_unary":
            return _operand(f, "src", bits), _operand(f, "dst", bits)
        case "v_binary":
            return (*_operand(f, "a", bits), *_operand(f, "b", bits)), _operand(f, "dst", bits)
        case "v_scalar":
            return _operand(f, "a", bits), _operand(f, "dst", bits)
        case "v_compare":
            return (*_operand(f, "a", bits), *_operand(f, "b", bits)), _operand(f, "dst", _BYTE)
        case "v_compare_scalar":
            return _operand(f, "a", bits), _operand(f, "dst", _BYTE)
        case "v_select":
            changed = _operand(f, "dst", bits)
            chosen = (*_operand(f, "src", bits), *_operand(f, "mask", _BYTE))
            return (*changed, *chosen), changed
        case "v_reduce":
            return _operand(f, "src", bits), _line(f["dst"], f, bits)
        case "v_expand":
            line = _line(f["b"], f, bits)
            left = () if f["op"] == VectorBinary.SECOND else _operand(f, "a", bits)
            return (*left, *line), _operand(f, "dst", bits)
        case "v_cast":
            return _operand(f, "src", bits), _operand(f, "dst", VectorType(f["to"]).bits)
        case "v_fill":
            return (), _operand(f, "dst", bits)
        case "v_transpose":
            turned = _tile(f["dst"], cols, rows, f["dst_pitch"], bits)
            return _operand(f, "src", bits), turned
        case "v_move":
            return _operand(f, "src", bits), _operand(f, "dst", bits)
        case "v_quant_mx":
            codes = _operand(f, "dst", ElementType(f["element"]).bits)
            scales = _tile(f["scales"], rows, cols // GROUP, f["scale_pitch"], _BYTE)
            return _operand(f, "src", bits), (*codes, *scales)
        case _:
            assert mnemonic == "v_scale_boxes", f"{mnemonic} has no rule for the bytes it touches"
            boxes = -(-rows // BOX_ROWS) * -(-cols // BOX_GROUPS)
            return _operand(f, "src", _BYTE), _stretch(f["dst"], boxes * SCALE_BOX_BYTES)


def _operand(f: Values, name: str, bits: int) -> Regions:
    """Return the tile of rows x cols at a field's address, with the pitch and the skip that it has."""
    skipped = f.get(f"{name}_skip", 0) * bits // _BYTE
    return _tile(f[name], f["rows"], f["cols"], f[f"{name}_pitch"], bits, skipped)


def _line(address: int, f: Values, bits: int) -> Regions:
    """Return the packed line that has an element for each row, or for each column."""
    count = f["rows"] if f["axis"] == Axis.ROW else f["cols"]
    return _stretch(address, -(-count * bits // _BYTE))


def _tile(address: int, rows: int, cols: int, pitch: int, bits: int, skipped: int = 0) -> Regions:
    row = -(-cols * bits // _BYTE)
    apart = pitch * UB_UNIT if pitch else row
    return _stretch(address, skipped + (rows - 1) * apart + row)


def _stretch(address: int, size: int) -> Regions:
    return (Region(Space.UB, address, address + round_up(size, UB_UNIT)),)
