"""Who wrote the bytes that an instruction reads: clobbered tiles, and scales of other data, in words."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final
from zlib import crc32

import numpy as np

from ...codegen.isa.vocabulary import FieldKind, Space
from ...ir.errors import SimulationFault
from ..datapaths.kernels import BASE
from ..diagnosis import Words
from . import holders as tables
from .footprints import Shapes
from .overlaps import START
from .rectangles import BYTE, SCALE_SHIFT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from ...codegen.isa.program import Instruction
    from ..pipes.timing import Program
    from .footprints import Footprints, Parts
    from .order import Order

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

_SIDES: Final = {"a_scale": 1, "b_scale": 2}
_MOVED: Final = {int(Space.SCALE_A): -1, int(Space.SCALE_B): -2}
_DATA: Final = {1: ("a", "left", "L0A", "SCALE_A"), 2: ("b", "right", "L0B", "SCALE_B")}


class _Operands:
    """What the operands of the programs of a kernel are, worked out once.

    Attributes:
        tiles: For each program the tile of an instruction and operand, as buffer and variable.
        part: Where the parts of each instruction begin; see `holders.Program`.
        parts: The parts.
        buffers: How many buffers tiles have.
    """

    def __init__(self, programs: Sequence[Program], parts: tuple[Parts, ...]) -> None:
        self._made_of = parts
        self._buffers: dict[str, int] = {}
        self.tiles = [_tiles(program) for program in programs]
        lines: list[tuple[int, int, int, int]] = []
        counts: list[int] = []
        for tiles, of_program in zip(self.tiles, parts, strict=True):
            for index, each in enumerate(of_program):
                operands = [part.operand for part in each]
                counts.append(len(each))
                for part in each:
                    side = 0 if part.writes else _SIDES.get(part.operand, 0)
                    if part.writes:
                        side = _MOVED.get(part.memory, 0)
                    data = operands.index(_DATA[side][0]) if side > 0 else 0
                    tile = self._buffer(tiles.get((index, part.operand)))
                    lines.append((int(part.writes), tile, side, data))
        self.part = np.array([*accumulate(counts, initial=0)], np.int64)
        self.parts = np.array(lines, np.int64).reshape(-1, tables.PART_WORDS)
        self.buffers = len(self._buffers)
        self.is_told = bool(self._buffers) or bool((self.parts[:, tables.SIDE] > 0).any())
        """Whether there is anything to look for."""

    def _buffer(self, tile: tuple[str, str] | None) -> int:
        if tile is None:
            return tables.NONE
        return self._buffers.setdefault(tile[0], len(self._buffers))

    def are_of(self, parts: tuple[Parts, ...]) -> bool:
        """Return whether they were made of these very rectangles."""
        mine = self._made_of
        return len(mine) == len(parts) and all(a is b for a, b in zip(mine, parts, strict=True))

    @classmethod
    def kept(cls, programs: Sequence[Program], parts: tuple[Parts, ...]) -> _Operands:
        """Return the operands of the programs, which stay with their kernel."""
        kept = programs[0].decoded.kernel.kept
        found = kept.get(cls)
        if isinstance(found, _Operands) and found.are_of(parts):
            return found
        made = kept[cls] = cls(programs, parts)
        return made


def _tiles(program: Program) -> dict[tuple[int, str], tuple[str, str]]:
    records = program.decoded.kernel.tiles
    return {(index, operand): records.names[tile] for index, operand, tile in records.uses}


class Holders:
    """Who holds which bytes when, for one task.

    Args:
        programs: What ran.
        order: The order of its records.
        prints: What they touch.
    """

    def __init__(self, programs: Sequence[Program], order: Order, prints: Footprints) -> None:
        self._programs = programs
        self._order = order
        self._words = Words(programs, order)
        self._parts = prints.parts
        self._operands = _Operands.kept(programs, prints.parts)
        self.found = self._walk(prints)

    def faults(self) -> Iterator[SimulationFault]:
        """Yield a fault for each finding, in the order of the walk."""
        for kind, record, part, other, third in self.found.tolist():
            if kind == tables.CLOBBERED:
                if self._is_meant(other, record):
                    yield self._clobbered(record, part, other)
            else:
                yield self._scales(kind, record, part, other, third)

    # ----------------------------------------------------------------- the walk

    def _walk(self, prints: Footprints) -> Table:
        if not self._operands.is_told:
            return np.zeros((0, tables.FINDING_WORDS), np.int64)
        walked = tables.Program(
            self._order.ran,
            self._order.static,
            _one([program.stream.registers for program in self._programs]),
            prints.of,
            prints.first,
            prints.cells.begin,
            prints.cells.of,
            prints.cells.head,
            prints.cells.size,
            np.ascontiguousarray(prints.places[:, START]),
            self._operands.part,
            self._operands.parts,
            _one([_kinds(program) for program in self._programs]),
            _one([_sources(program) for program in self._programs]),
        )
        return tables.walk_bytes(walked, prints.cells.count, self._operands.buffers)

    def _is_meant(self, writer: int, reader: int) -> bool:
        """Return whether a core has a write before a read; if only the walk has, they race."""
        one, other = self._order.place(writer), self._order.place(reader)
        return one[0] != other[0] or one[1] < other[1]

    # ----------------------------------------------------------------- words

    def _clobbered(self, record: int, part: int, other: int) -> SimulationFault:
        reader, writer = self._order.place(record), self._order.place(other)
        read = self._parts[reader[0]][self._item(*reader)][part]
        mine = self._tile(reader, read.operand)
        theirs = next(
            tile
            for each in self._parts[writer[0]][self._item(*writer)]
            if each.writes and (tile := self._tile(writer, each.operand)) != mine
        )
        memory = Space(min(read.memory, Space.UB)).name
        message = (
            f"Two tiles that are in use must not lie on the same bytes, but "
            f"{self._words.instruction(*reader)} reads the tile {mine[1]!r} in {memory}, over which "
            f"{self._words.instruction(*writer)} wrote the tile {theirs[1]!r} before."
        )
        note = f"the buffers are {mine[0]!r} and {theirs[0]!r}"
        return SimulationFault(message, self._words.span(*reader), note=note)

    def _scales(self, kind: int, record: int, part: int, other: int, third: int) -> SimulationFault:
        place = self._order.place(record)
        read = self._parts[place[0]][self._item(*place)][part]
        field, side, data, memory = _DATA[_SIDES[read.operand]]
        address = self._programs[place[0]].decoded.kernel.program[self._item(*place)][field]
        message = (
            f"The scales of a product must be those of its data, at the data's address shifted right "
            f"by {SCALE_SHIFT}, but {self._words.instruction(*place)} has its {side} operand at byte "
            f"{address:#x} of {data} and finds at byte {address >> SCALE_SHIFT:#x} of {memory} "
        )
        message += self._what(kind, place, read.operand, other, third)
        return SimulationFault(
            message, self._words.span(*place), note=self._moved(place, other, memory)
        )

    def _what(self, kind: int, place: tuple[int, int], operand: str, other: int, third: int) -> str:
        """Say what a product finds in place of its scales."""
        if kind == tables.MISSING:
            return "nothing that was put there."
        mover = self._order.place(other)
        moved = self._words.instruction(*mover)
        if kind == tables.FOREIGN:
            mine, theirs = self._tile(place, operand), self._tile(mover, "dst")
            return f"the scales {theirs[1]!r} that {moved} put there, not {mine[1]!r}."
        before = self._words.instruction(*self._order.place(third))
        return (
            f"what {moved} put there for the data before, with which {before} used it; other data "
            "stands there now."
        )

    def _moved(self, place: tuple[int, int], other: int, memory: str) -> str:
        """Say where the scales went that were moved last."""
        name = self._programs[place[0]].decoded.kernel.name
        if other < 0:
            return f"in kernel {name!r}, which moves no scales to {memory}"
        core, record = self._order.place(other)
        address = self._programs[core].decoded.kernel.program[self._item(core, record)]["dst"]
        return (
            f"in kernel {name!r}; {self._words.instruction(core, record)} put scales at byte "
            f"{address:#x}, for data at byte {address << SCALE_SHIFT:#x}"
        )

    def _tile(self, place: tuple[int, int], operand: str) -> tuple[str, str]:
        return self._operands.tiles[place[0]].get((self._item(*place), operand), ("", ""))

    def _item(self, core: int, record: int) -> int:
        return int(self._programs[core].stream.static[record])


def _one(tables_of: list[Table]) -> Table:
    return tables_of[0] if len(tables_of) == 1 else np.concatenate(tables_of)


def _kinds(program: Program) -> Line:
    """Return a number that instructions share which differ in addresses and registers only."""
    kept = program.decoded.kernel.kept
    found = kept.get(_kinds)
    if not isinstance(found, np.ndarray):
        kinds = [_kind(each) for each in program.decoded.kernel.program]
        found = kept[_kinds] = np.array(kinds, np.int64)
    return found  # pyright: ignore[reportUnknownVariableType]


def _kind(each: Instruction) -> int:
    told = [
        value
        for field, value in zip(each.row.fields, each.values, strict=True)
        if field.kind not in (FieldKind.ADDR, FieldKind.REG, FieldKind.VIEW)
    ]
    return crc32(f"{each.mnemonic} {told}".encode()) + 1


def _sources(program: Program) -> Table:
    """Return where instructions read GM: bit address, and the steps of the registers, int64 [n, 3]."""
    shapes = Shapes.kept(program)
    table = np.zeros((len(shapes.of), 3), np.int64)
    item, view = shapes.read[:, 0], shapes.read[:, 1]
    table[item] = shapes.read[:, 2:]
    table[item, 0] += program.views[view, BASE] * BYTE
    return table
