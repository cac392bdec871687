"""Which bytes an instruction touches, from its fields.

The formulas are those of the instruction table's documentation. Data moves in units of 32 bytes, so a
partial unit counts as a whole one; the cube touches whole boxes. Of a tensor in GM an instruction may
touch any part, since its window depends on registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.expr import Expr
from .isa.vocabulary import ElementType, MadInit, Space
from .tree import Region, whole_tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .kernel import View

UNIT = 32
BOX_ROWS = 16
BOX_BYTES = 512
SUM_BOX_BYTES = 1024
"""Bytes of a box of 16 x 16 FP32 sums."""
GROUP = 32
BOX_GROUPS = 2

Regions = tuple[Region, ...]


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
    match mnemonic:
        case "gm_to_l1_nz":
            view = views[f["view"]]
            columns = _up(f["cols"] * view.bits, 8 * UNIT)
            pitch = f["l1_rows"] // BOX_ROWS * BOX_BYTES
            tile = _runs(Space.L1, f["l1"], columns, pitch, f["rows"] * UNIT)
            return (whole_tensor(view.param),), tile
        case "gm_to_l1_row":
            view = views[f["view"]]
            size = _up(f["cols"] * view.bits, 8 * UNIT) * UNIT
            return (whole_tensor(view.param),), _runs(Space.L1, f["l1"], 1, 0, size)
        case "gm_to_l1_boxes":
            pitch, size = f["l1_nj"] * UNIT, f["nj"] * UNIT
            tile = _runs(Space.L1, f["l1"], f["ni"], pitch, size)
            return (whole_tensor(views[f["view"]].param),), tile
        case "l1_to_l0a":
            size = f["row_boxes"] * BOX_BYTES
            columns = f["col_boxes"]
            return (
                _runs(Space.L1, f["src"], columns, f["src_pitch"] * BOX_BYTES, size),
                _runs(Space.L0A, f["dst"], columns, f["dst_pitch"] * BOX_BYTES, size),
            )
        case "l1_to_l0b":
            wide = 8 * UNIT // f["bits"]
            pitch = f["src_k"] // BOX_ROWS * BOX_BYTES
            boxes = _up(f["k"], wide) * _up(f["n"], BOX_ROWS)
            return (
                _runs(Space.L1, f["src"], _up(f["n"], wide), pitch, f["k"] * UNIT),
                _runs(Space.L0B, f["dst"], 1, 0, boxes * BOX_BYTES),
            )
        case "l1_to_scale_a" | "l1_to_scale_b":
            space = Space.SCALE_A if mnemonic.endswith("a") else Space.SCALE_B
            rows, size = f["row_boxes"], f["col_boxes"] * UNIT
            return (
                _runs(Space.L1, f["src"], rows, f["src_pitch"] * UNIT, size),
                _runs(space, f["dst"], 1, 0, rows * size),
            )
        case "l1_to_bias":
            size = _up(f["bytes"], UNIT) * UNIT
            return _runs(Space.L1, f["src"], 1, 0, size), _runs(Space.BIAS, f["dst"], 1, 0, size)
        case "mad_mx":
            return _mad(f)
        case _:
            assert mnemonic == "l0c_to_gm", f"{mnemonic} has no rule for the bytes it touches"
            pitch = f["src_rows"] // BOX_ROWS * SUM_BOX_BYTES
            columns, size = _up(f["cols"], BOX_ROWS), f["rows"] * SUM_BOX_BYTES // BOX_ROWS
            target = whole_tensor(views[f["view"]].param)
            return _runs(Space.L0C, f["l0c"], columns, pitch, size), (target,)


def _mad(f: Mapping[str, int]) -> tuple[Regions, Regions]:
    wide = 8 * UNIT // ElementType(f["a_type"]).bits
    rows, columns, depth = _up(f["m"], BOX_ROWS), _up(f["n"], BOX_ROWS), _up(f["k"], wide)
    groups = _up(_up(f["k"], GROUP), BOX_GROUPS)
    sums = _runs(Space.L0C, f["c"], 1, 0, rows * columns * SUM_BOX_BYTES)
    reads = (
        *_runs(Space.L0A, f["a"], 1, 0, rows * depth * BOX_BYTES),
        *_runs(Space.L0B, f["b"], 1, 0, columns * depth * BOX_BYTES),
        *_runs(Space.SCALE_A, f["a"] >> 4, 1, 0, rows * groups * UNIT),
        *_runs(Space.SCALE_B, f["b"] >> 4, 1, 0, columns * groups * UNIT),
    )
    match f["init"]:
        case MadInit.ACC:
            reads = (*reads, *sums)
        case MadInit.BIAS:
            reads = (*reads, *_runs(Space.BIAS, f["bias"], 1, 0, _up(f["n"] * 4, UNIT) * UNIT))
        case _:
            pass
    return reads, sums


def _up(value: int, unit: int) -> int:
    """Return how many units hold `value`."""
    return -(-value // unit)


def _runs(space: Space, base: int, count: int, pitch: int, size: int) -> Regions:
    """Return `count` stretches of `size` bytes, `pitch` apart, as few regions as possible."""
    return tuple(_joined(space, base, count, pitch, size))


def _joined(space: Space, base: int, count: int, pitch: int, size: int) -> Iterator[Region]:
    if count == 1 or pitch == size:
        yield Region(space, base, base + count * size)
        return
    for number in range(count):
        yield Region(space, base + number * pitch, base + number * pitch + size)
