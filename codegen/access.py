"""Which bytes an instruction touches, from its fields.

The formulas are those of the instruction table's documentation. Data moves in units of 32 bytes, so a
partial unit counts as a whole one; the cube touches whole boxes. Of a tensor in GM an instruction may
touch any part, since its window depends on registers; so may one of L1 whose place in it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.dtypes.boxes import BOX_BYTES as SCALE_BOX_BYTES
from ..ir.dtypes.boxes import BOX_GROUPS, GROUP
from ..ir.expr import Expr
from ..ir.tile_bytes import FRACTAL_BYTES, FRACTAL_ROWS, c0_elements, round_up
from .access_ub import AROUND_UB, ub_accesses
from .isa.table import AT, BY_MNEMONIC
from .isa.vocabulary import (
    ADDRESS_BITS,
    ElementType,
    FixConvert,
    FixScale,
    MadInit,
    PlainType,
    ScaleRows,
    Space,
)
from .tree import Region, whole_tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .tensors import View

BOX_BYTES = FRACTAL_ROWS * FRACTAL_BYTES
"""Bytes of a box of operand elements."""
SUM_BYTES = 4
SUM_BOX_BYTES = FRACTAL_ROWS * FRACTAL_ROWS * SUM_BYTES
"""Bytes of a box of FP32 sums."""

Regions = tuple[Region, ...]
_DRAINS = frozenset(
    {"l0c_to_gm", "l0c_to_gm_fix", "l0c_to_gm_quant", "l0c_to_gm_columns", "l0c_to_gm_nz"}
)
_ALL_OF_L1 = (Region(Space.L1, 0, 1 << ADDRESS_BITS[Space.L1]),)


def accesses(
    mnemonic: str, fields: Mapping[str, int | Expr], views: Sequence[View]
) -> tuple[Regions, Regions]:
    """Return what an instruction reads and what it writes.

    Args:
        mnemonic: A row of the instruction table that moves or multiplies data.
        fields: Its fields; those in registers may be anything.
        views: What its view field indexes.
    """
    f = {name: value for name, value in fields.items() if not isinstance(value, Expr)}
    if mnemonic in AROUND_UB:
        return ub_accesses(mnemonic, f, views)
    if mnemonic.endswith(AT):
        _, writes = accesses(mnemonic.removesuffix(AT), f, views)
        return _ALL_OF_L1, writes
    match mnemonic:
        case "gm_to_l1_nz":
            view = views[f["view"]]
            columns = _up(f["cols"], c0_elements(view.bits))
            pitch, size = f["l1_rows"] * FRACTAL_BYTES, f["rows"] * FRACTAL_BYTES
            tile = _runs(Space.L1, f["l1"], columns, pitch, size)
            return (whole_tensor(view.param),), tile
        case "gm_to_l1_row":
            view = views[f["view"]]
            size = _whole(_up(f["cols"] * view.bits, 8))
            return (whole_tensor(view.param),), _runs(Space.L1, f["l1"], 1, 0, size)
        case "gm_to_l1_boxes":
            pitch, size = f["l1_nj"] * SCALE_BOX_BYTES, f["nj"] * SCALE_BOX_BYTES
            tile = _runs(Space.L1, f["l1"], f["ni"], pitch, size)
            return (whole_tensor(views[f["view"]].param),), tile
        case "gm_to_l1_nz_boxes":
            pitch, size = f["dst_pitch"] * BOX_BYTES, f["row_boxes"] * BOX_BYTES
            tile = _runs(Space.L1, f["l1"], f["col_boxes"], pitch, size)
            return (whole_tensor(views[f["view"]].param),), tile
        case "gm_to_l1_scales":
            by_rows = ScaleRows(f["layout"]).by_rows
            rows, pairs = (f["ni"], f["nj"]) if by_rows else (f["nj"], f["ni"])
            pitch, size = f["l1_nj"] * SCALE_BOX_BYTES, pairs * SCALE_BOX_BYTES
            tile = _runs(Space.L1, f["l1"], _up(rows, FRACTAL_ROWS), pitch, size)
            return (whole_tensor(views[f["view"]].param),), tile
        case "l1_fill":
            pitch, size = f["pitch"] * FRACTAL_BYTES, f["units"] * FRACTAL_BYTES
            return (), _runs(Space.L1, f["l1"], f["lines"], pitch, size)
        case "l1_to_l0a_row":
            units = f["units"]
            return (
                _runs(Space.L1, f["src"], 1, 0, units * FRACTAL_BYTES),
                _runs(Space.L0A, f["dst"], units, BOX_BYTES, FRACTAL_BYTES),
            )
        case "l1_to_scale_a_row":
            boxes = _up(f["groups"], BOX_GROUPS)
            return (
                _runs(Space.L1, f["src"], 1, 0, _whole(f["groups"])),
                _runs(Space.SCALE_A, f["dst"], 1, 0, boxes * SCALE_BOX_BYTES),
            )
        case "l1_to_l0a" | "l1_to_l0b_boxes":
            size = f["row_boxes"] * BOX_BYTES
            columns, space = f["col_boxes"], BY_MNEMONIC[mnemonic].writes[0]
            return (
                _runs(Space.L1, f["src"], columns, f["src_pitch"] * BOX_BYTES, size),
                _runs(space, f["dst"], columns, f["dst_pitch"] * BOX_BYTES, size),
            )
        case "l1_to_l0b" | "l1_to_l0a_turned":
            wide, across = c0_elements(f["bits"]), f["n" if "n" in f else "m"]
            pitch, size = f["src_k"] * FRACTAL_BYTES, f["k"] * FRACTAL_BYTES
            boxes = _up(f["k"], wide) * _up(across, FRACTAL_ROWS)
            space = BY_MNEMONIC[mnemonic].writes[0]
            return (
                _runs(Space.L1, f["src"], _up(across, wide), pitch, size),
                _runs(space, f["dst"], 1, 0, boxes * BOX_BYTES),
            )
        case "l1_to_scale_a" | "l1_to_scale_b":
            space = Space.SCALE_A if mnemonic.endswith("a") else Space.SCALE_B
            rows, size = f["row_boxes"], f["col_boxes"] * SCALE_BOX_BYTES
            return (
                _runs(Space.L1, f["src"], rows, f["src_pitch"] * SCALE_BOX_BYTES, size),
                _runs(space, f["dst"], 1, 0, rows * size),
            )
        case "l1_to_bias" | "l1_to_fixp":
            size, space = _whole(f["bytes"]), BY_MNEMONIC[mnemonic].writes[0]
            return _runs(Space.L1, f["src"], 1, 0, size), _runs(space, f["dst"], 1, 0, size)
        case "mad_mx":
            return _mad(f, ElementType(f["a_type"]).bits, scaled=True)
        case "mad":
            return _mad(f, PlainType(f["a_type"]).bits, scaled=False)
        case "mad_if":
            begun = {**f, "init": MadInit.ACC}
            return _mad(begun, PlainType(f["a_type"]).bits, scaled=False)
        case "l0c_to_l1" | "l0c_to_l1_quant":
            width = FixConvert(f["convert"]).bits // 8
            columns, pitch = _up(f["cols"] * width, FRACTAL_BYTES), f["l1_boxes"] * BOX_BYTES
            tile = _runs(Space.L1, f["l1"], columns, pitch, f["rows"] * FRACTAL_BYTES)
            return _drained(f), tile
        case _:
            assert mnemonic in _DRAINS, f"{mnemonic} has no rule for the bytes it touches"
            return _drained(f), (whole_tensor(views[f["view"]].param),)


def _drained(f: Mapping[str, int]) -> Regions:
    """Return the sums that the fixpipe reads, and the numbers of their columns."""
    columns, row = _up(f["cols"], FRACTAL_ROWS), FRACTAL_ROWS * SUM_BYTES
    tall = f["src_rows"] if "src_rows" in f else f["src_boxes"] * FRACTAL_ROWS
    sums = _runs(Space.L0C, f["l0c"], columns, tall * row, f["rows"] * row)
    if "scales" not in f or f.get("quant", FixScale.COLUMNS) != FixScale.COLUMNS:
        return sums
    return (*sums, *_runs(Space.FIXP, f["scales"], 1, 0, _whole(f["cols"] * SUM_BYTES)))


def _mad(f: Mapping[str, int], bits: int, *, scaled: bool) -> tuple[Regions, Regions]:
    rows, columns = _up(f["m"], FRACTAL_ROWS), _up(f["n"], FRACTAL_ROWS)
    depth = _up(f["k"], c0_elements(bits))
    sums = _runs(Space.L0C, f["c"], 1, 0, rows * columns * SUM_BOX_BYTES)
    reads = (
        *_runs(Space.L0A, f["a"], 1, 0, rows * depth * BOX_BYTES),
        *_runs(Space.L0B, f["b"], 1, 0, columns * depth * BOX_BYTES),
    )
    if scaled:
        groups = _up(_up(f["k"], GROUP), BOX_GROUPS)
        reads = (
            *reads,
            *_runs(Space.SCALE_A, f["a"] >> 4, 1, 0, rows * groups * SCALE_BOX_BYTES),
            *_runs(Space.SCALE_B, f["b"] >> 4, 1, 0, columns * groups * SCALE_BOX_BYTES),
        )
    match f["init"]:
        case MadInit.ACC:
            reads = (*reads, *sums)
        case MadInit.BIAS:
            reads = (*reads, *_runs(Space.BIAS, f["bias"], 1, 0, _whole(f["n"] * SUM_BYTES)))
        case _:
            pass
    return reads, sums


def _up(value: int, unit: int) -> int:
    """Return how many units hold `value`."""
    return -(-value // unit)


def _whole(size: int) -> int:
    """Return `size` bytes, a partial unit counted whole."""
    return round_up(size, FRACTAL_BYTES)


def _runs(space: Space, base: int, count: int, pitch: int, size: int) -> Regions:
    """Return `count` stretches of `size` bytes, `pitch` apart, as few regions as possible."""
    return tuple(_joined(space, base, count, pitch, size))


def _joined(space: Space, base: int, count: int, pitch: int, size: int) -> Iterator[Region]:
    if count == 1 or pitch == size:
        yield Region(space, base, base + count * size)
        return
    for number in range(count):
        yield Region(space, base + number * pitch, base + number * pitch + size)
