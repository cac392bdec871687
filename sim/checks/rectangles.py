"""The bytes that one instruction touches, as rectangles: runs of bytes, equally far apart.

The formulas are those of the instruction table's documentation, to the byte. What a register says of
the place is kept as the distance of one step of it, so that a rectangle is worked out once a kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ...codegen.isa.cluster import BOX_ROWS
from ...codegen.isa.table import AT
from ...codegen.isa.vocabulary import (
    ClusterCore,
    ElementBits,
    ElementType,
    FixConvert,
    FixScale,
    MadInit,
    Pipe,
    PlainType,
    ScaleRows,
    Space,
    VectorBinary,
)
from ...ir.dtypes.boxes import BOX_BYTES as SCALE_BOX
from ...ir.dtypes.boxes import BOX_GROUPS, GROUP
from ..datapaths.kernels import UNIT as LINE
from ..vector.tiles import tiles_of
from ..windows import window_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...codegen.executable import Kernel
    from ...codegen.isa.program import Instruction

BYTE: Final = 8
BOX: Final = BOX_ROWS * LINE
"""Bytes of a box of operand elements."""
SUM_LINE: Final = BOX_ROWS * 4
"""Bytes of a row of a box of sums."""
SCALE_SHIFT: Final = 4
"""A data address shifted so is the address of its scales."""


class Rectangle(NamedTuple):
    """Bytes that an instruction reads or writes.

    Args:
        operand: What of the instruction they are: the name of the field that tells the place, or
            `a_scale` and `b_scale` for the scales that a product finds by itself.
        memory: The memory, as `Space`; `Space.UB + 1` is the UB of the second vector core.
        writes: Whether they are written.
        view: For GM the view that they are of, else -1.
        start: Bit address of the first byte with both registers at zero; in GM from the beginning
            of the buffer.
        steps: Bits that one step of either register moves it.
        runs: How many runs there are.
        pitch: Bytes from run to run.
        size: Bytes of a run.
    """

    operand: str
    memory: int
    writes: bool
    view: int
    start: int
    steps: tuple[int, int]
    runs: int
    pitch: int
    size: int


def rectangles(kernel: Kernel, index: int, core: ClusterCore) -> tuple[Rectangle, ...]:
    """Return what instruction `index` of a program touches; nothing for what moves no data.

    Args:
        kernel: The program.
        index: The instruction.
        core: The core that runs it.
    """
    each = kernel.program[index]
    local = _local_of(each, kernel, core)
    if not each.row.has("view"):
        return tuple(local)
    return (*local, *_window(each, kernel))


def _window(each: Instruction, kernel: Kernel) -> Iterator[Rectangle]:
    """Yield what is touched of GM."""
    number, writes = each["view"], Space.GM in each.row.writes
    view = kernel.views[number]
    window = window_of(each, view)
    steps, unit = window.step_bits, window.unit_bits
    (outer, rows), (inner, cols) = sorted(
        zip(steps, (window.rows, window.cols), strict=True), reverse=True
    )
    start = view.offset * view.bits
    if inner == unit or cols == 1:
        size = -(-cols * unit // BYTE)
        yield _run("view", Space.GM, writes, start, rows, outer // BYTE, size, number, steps)
        return
    for row in range(rows):
        first = start + row * outer
        yield _run(
            "view", Space.GM, writes, first, cols, inner // BYTE, unit // BYTE, number, steps
        )


def _run(
    operand: str,
    memory: int,
    writes: bool,
    start: int,
    count: int,
    pitch: int,
    size: int,
    view: int = -1,
    steps: tuple[int, int] = (0, 0),
) -> Rectangle:
    """Return a rectangle; what has no gaps, or lies on itself, is one run."""
    if count == 1 or pitch == size:
        count, pitch, size = 1, 0, count * size
    elif pitch == 0:
        count = 1
    return Rectangle(operand, memory, writes, view, start, steps, count, pitch, size)


class _Maker:
    """Makes the rectangles of one instruction."""

    def __init__(self, steps: tuple[int, int] = (0, 0)) -> None:
        self.steps = steps

    def read(
        self, operand: str, memory: int, address: int, size: int, count: int = 1, pitch: int = 0
    ) -> Rectangle:
        return _run(operand, memory, False, address * BYTE, count, pitch, size, steps=self.steps)

    @staticmethod
    def write(
        operand: str, memory: int, address: int, size: int, count: int = 1, pitch: int = 0
    ) -> Rectangle:
        return _run(operand, memory, True, address * BYTE, count, pitch, size)


def _local_of(each: Instruction, kernel: Kernel, core: ClusterCore) -> Iterator[Rectangle]:
    """Yield what is touched of the memories of the cluster."""
    row, f = each.row, each.fields
    if Space.UB in (*row.reads, *row.writes):
        yield from _around_ub(each, f, kernel, core)
    elif row.pipe is Pipe.MTE2:
        yield from _into_l1(each.mnemonic, f, kernel)
    elif row.pipe is Pipe.MTE1:
        moved = _Maker((LINE * BYTE, 0) if row.has("xo") else (0, 0))
        yield from _from_l1(each.mnemonic.removesuffix(AT), f, moved)
    elif row.pipe is Pipe.M:
        yield from _product(each.mnemonic, f)
    elif row.pipe is Pipe.FIX:
        yield from _by_fixpipe(each.mnemonic, f)


def _into_l1(mnemonic: str, f: Mapping[str, int], kernel: Kernel) -> Iterator[Rectangle]:
    write, l1 = _Maker.write, f["l1"]
    match mnemonic:
        case "gm_to_l1_nz":
            columns = _up(f["cols"] * kernel.views[f["view"]].bits, LINE * BYTE)
            yield write("l1", Space.L1, l1, f["rows"] * LINE, columns, f["l1_rows"] * LINE)
        case "gm_to_l1_row":
            size = _whole(_up(f["cols"] * kernel.views[f["view"]].bits, BYTE))
            yield write("l1", Space.L1, l1, size)
        case "gm_to_l1_boxes":
            pitch = f["l1_nj"] * SCALE_BOX
            yield write("l1", Space.L1, l1, f["nj"] * SCALE_BOX, f["ni"], pitch)
        case "gm_to_l1_nz_boxes":
            pitch = f["dst_pitch"] * BOX
            yield write("l1", Space.L1, l1, f["row_boxes"] * BOX, f["col_boxes"], pitch)
        case "gm_to_l1_scales":
            by_rows = ScaleRows(f["layout"]).by_rows
            rows, pairs = (f["ni"], f["nj"]) if by_rows else (f["nj"], f["ni"])
            for first in range(0, rows, BOX_ROWS):
                at = l1 + first // BOX_ROWS * f["l1_nj"] * SCALE_BOX
                size = min(BOX_ROWS, rows - first) * BOX_GROUPS
                yield write("l1", Space.L1, at, size, pairs, SCALE_BOX)
        case _:
            assert mnemonic == "l1_fill", f"{mnemonic} has no rule for the bytes it touches"
            yield write("l1", Space.L1, l1, f["units"] * LINE, f["lines"], f["pitch"] * LINE)


def _from_l1(mnemonic: str, f: Mapping[str, int], maker: _Maker) -> Iterator[Rectangle]:
    read, write, src, dst = maker.read, maker.write, f["src"], f["dst"]
    match mnemonic:
        case "l1_to_l0a" | "l1_to_l0b_boxes":
            size, columns = f["row_boxes"] * BOX, f["col_boxes"]
            space = Space.L0A if mnemonic == "l1_to_l0a" else Space.L0B
            yield read("src", Space.L1, src, size, columns, f["src_pitch"] * BOX)
            yield write("dst", space, dst, size, columns, f["dst_pitch"] * BOX)
        case "l1_to_l0a_row":
            yield read("src", Space.L1, src, f["units"] * LINE)
            yield write("dst", Space.L0A, dst, LINE, f["units"], BOX)
        case "l1_to_l0b" | "l1_to_l0a_turned":
            right = mnemonic == "l1_to_l0b"
            wide, across = LINE * BYTE // ElementBits(f["bits"]), f["n" if right else "m"]
            boxes = _up(f["k"], wide) * _up(across, BOX_ROWS)
            yield read("src", Space.L1, src, f["k"] * LINE, _up(across, wide), f["src_k"] * LINE)
            yield write("dst", Space.L0B if right else Space.L0A, dst, boxes * BOX)
        case "l1_to_scale_a" | "l1_to_scale_b":
            space = Space.SCALE_A if mnemonic.endswith("a") else Space.SCALE_B
            rows, size = f["row_boxes"], f["col_boxes"] * SCALE_BOX
            yield read("src", Space.L1, src, size, rows, f["src_pitch"] * SCALE_BOX)
            yield write("dst", space, dst, rows * size)
        case "l1_to_scale_a_row":
            yield read("src", Space.L1, src, f["groups"])
            yield from _scale_rows("dst", Space.SCALE_A, dst, 1, f["groups"], writes=True)
        case _:
            assert mnemonic == "l1_to_bias", f"{mnemonic} has no rule for the bytes it touches"
            yield read("src", Space.L1, src, f["bytes"])
            yield write("dst", Space.BIAS, dst, f["bytes"])


def _product(mnemonic: str, f: Mapping[str, int]) -> Iterator[Rectangle]:
    read, scaled = _Maker().read, mnemonic == "mad_mx"
    bits = ElementType(f["a_type"]).bits if scaled else PlainType(f["a_type"]).bits
    depth, begun = _up(f["k"] * bits, LINE * BYTE), f.get("init", int(MadInit.ACC))
    for operand, space, rows in (("a", Space.L0A, f["m"]), ("b", Space.L0B, f["n"])):
        yield read(operand, space, f[operand], rows * LINE, depth, _tall(rows) * LINE)
    if scaled:
        groups = _up(f["k"], GROUP)
        for operand, space, rows in (("a", Space.SCALE_A, f["m"]), ("b", Space.SCALE_B, f["n"])):
            address = f[operand] >> SCALE_SHIFT
            yield from _scale_rows(f"{operand}_scale", space, address, rows, groups, writes=False)
    if begun == MadInit.BIAS:
        yield read("bias", Space.BIAS, f["bias"], f["n"] * 4)
    shape = f["m"] * SUM_LINE, _up(f["n"], BOX_ROWS), _tall(f["m"]) * SUM_LINE
    if begun == MadInit.ACC:
        yield read("c", Space.L0C, f["c"], *shape)
    yield _Maker.write("c", Space.L0C, f["c"], *shape)


def _by_fixpipe(mnemonic: str, f: Mapping[str, int]) -> Iterator[Rectangle]:
    if mnemonic == "l1_to_fixp":
        yield _Maker().read("src", Space.L1, f["src"], f["bytes"])
        yield _Maker.write("dst", Space.FIXP, f["dst"], f["bytes"])
        return
    yield from _drained(f)
    if "l1" in f:
        columns = _up(f["cols"] * FixConvert(f["convert"]).bits, LINE * BYTE)
        pitch = f["l1_boxes"] * BOX
        yield _Maker.write("l1", Space.L1, f["l1"], f["rows"] * LINE, columns, pitch)


def _drained(f: Mapping[str, int]) -> Iterator[Rectangle]:
    if "scales" in f and f.get("quant", FixScale.COLUMNS) == FixScale.COLUMNS:
        yield _Maker().read("scales", Space.FIXP, f["scales"], f["cols"] * 4)
    tall = f["src_rows"] if "src_rows" in f else f["src_boxes"] * BOX_ROWS
    columns = _up(f["cols"], BOX_ROWS)
    yield _Maker().read("l0c", Space.L0C, f["l0c"], f["rows"] * SUM_LINE, columns, tall * SUM_LINE)


def _around_ub(
    each: Instruction, f: Mapping[str, int], kernel: Kernel, core: ClusterCore
) -> Iterator[Rectangle]:
    read, write = _Maker().read, _Maker.write
    own = Space.UB + max(0, core - ClusterCore.AIV0)
    match each.mnemonic:
        case "gm_to_ub" | "ub_to_gm":
            size = _up(f["cols"] * kernel.views[f["view"]].bits, BYTE)
            made = write if Space.UB in each.row.writes else read
            yield made("ub", own, f["ub"], size, f["rows"], f["pitch"] * LINE or size)
        case "ub_to_gm_boxes":
            size, pitch = f["nj"] * SCALE_BOX, f["ub_nj"] * SCALE_BOX
            yield read("ub", own, f["ub"], size, f["ni"], pitch)
        case "ub_to_l1":
            size = f["units"] * LINE
            yield read("ub", own, f["ub"], size, f["lines"], f["ub_pitch"] * LINE)
            yield write("l1", Space.L1, f["l1"], size, f["lines"], f["l1_pitch"] * LINE)
        case "ub_to_l1_nz":
            size = _up(f["cols"] * f["bits"], BYTE)
            columns = _up(size, LINE)
            yield read("ub", own, f["ub"], size, f["rows"], f["pitch"] * LINE)
            yield write("l1", Space.L1, f["l1"], f["rows"] * LINE, columns, f["l1_rows"] * LINE)
        case "l0c_to_ub" | "l0c_to_ub_quant":
            yield from _drained(f)
            size = f["cols"] * FixConvert(f["convert"]).bits // BYTE
            into = Space.UB + f["core"]
            yield write("ub", into, f["ub"], size, f["rows"], f["pitch"] * LINE)
        case _:
            yield from _vector(each, f, own)


def _vector(each: Instruction, f: Mapping[str, int], memory: int) -> Iterator[Rectangle]:
    names = ("dst", "scales") if each.mnemonic == "v_quant_mx" else ("dst",)
    moved = each.row.has("xt")
    tiles = tiles_of(each.mnemonic, f)
    if each.mnemonic == "v_expand" and f["op"] == VectorBinary.SECOND:
        tiles = tiles[:2]  # the result is the column or row alone
    for number, tile in enumerate(tiles):
        writes = number < len(names)
        steps = (0, 0) if not moved else (0, BYTE) if writes else (BYTE, 0)
        place = tile.start * BYTE, tile.rows, tile.pitch_bytes, tile.row_bytes
        operand = names[number] if writes else _operand_at(f, tile.address, number)
        yield _run(operand, memory, writes, *place, steps=steps)
        if writes and each.mnemonic == "v_select":
            yield _run(operand, memory, False, *place, steps=steps)


def _operand_at(f: Mapping[str, int], address: int, number: int) -> str:
    """Return the operand of a vector instruction that stands at an address."""
    names = [name for name in ("src", "a", "b", "mask") if f.get(name) == address]
    return names[0] if names else f"operand {number}"


def _scale_rows(
    operand: str, memory: int, address: int, rows: int, groups: int, *, writes: bool
) -> Iterator[Rectangle]:
    """Yield the scales of some rows in boxes of 16 rows by 2 groups."""
    pairs = _up(groups, BOX_GROUPS)
    whole, rest = divmod(rows, BOX_ROWS)
    if whole:
        yield _run(operand, memory, writes, address * BYTE, 1, 0, whole * pairs * SCALE_BOX)
    if not rest:
        return
    first, size = address + whole * pairs * SCALE_BOX, rest * BOX_GROUPS
    full = groups // BOX_GROUPS
    if full:
        yield _run(operand, memory, writes, first * BYTE, full, SCALE_BOX, size)
    if groups % BOX_GROUPS:
        last = (first + full * SCALE_BOX) * BYTE
        yield _run(operand, memory, writes, last, 1, 0, size - 1)


def _up(value: int, unit: int) -> int:
    """Return how many units hold `value`."""
    return -(-value // unit)


def _whole(size: int) -> int:
    """Return `size` bytes, a partial line counted whole."""
    return _up(size, LINE) * LINE


def _tall(rows: int) -> int:
    """Return the rows of whole boxes that hold `rows`."""
    return _up(rows, BOX_ROWS) * BOX_ROWS
