"""Which tiles the instructions of a call work on, told by the buffers that tiles had of their own.

Where memory is short, buffers that are never in use together become one. What tells a tile is the buffer
that it had before, which it shares with what is surely the same place: an accumulator from trip to trip,
the two ends of a branch, an operand that is worked on in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ...ir.binding import source_name
from ...ir.expr import Var
from ...ir.passes.memrefs import tile_of, tile_vars
from ..isa.program import row_of
from ..isa.vocabulary import FieldKind, Space
from .places import SPACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...ir.core import Function, Program
    from ...ir.expr import Call
    from ..isa.row import Field, Row
    from ..tree import Step

Tile: TypeAlias = "tuple[str, str]"
"""A tile's buffer, and the variable that it is."""
Buffers: TypeAlias = "tuple[tuple[str, str], ...]"
"""Name and buffer of the tile variables of a function, in the order of their definitions."""

_READ = frozenset({"src", "a", "b", "mask", "bias"})
_SCALES = {Space.SCALE_A: "a_scale", Space.SCALE_B: "b_scale"}


def buffers_of(program: Program) -> dict[str, Buffers]:
    """Return the buffers of the tile variables of each function by the function's name."""
    return {
        function.name: tuple((var.name_hint, _buffer(var)) for var in tile_vars(function))
        for function in program.functions.values()
    }


def _buffer(var: Var) -> str:
    tile = tile_of(var)
    return "" if tile is None or tile.memref is None else tile.memref.name


@dataclass(frozen=True)
class _Placed:
    """A tile, and the bytes that its buffer has now."""

    tile: Tile
    space: Space
    begin: int
    end: int


class TileNames:
    """Tells the tiles of the instructions of a function.

    Args:
        function: The function, its tiles at their places.
        buffers: The buffers that its tile variables had of their own; those that they have now where
            the function has other variables by now.
    """

    def __init__(self, function: Function, buffers: Buffers = ()) -> None:
        tiles = tile_vars(function)
        same = [var.name_hint for var in tiles] == [name for name, _ in buffers]
        names = [name for _, name in buffers] if same else [_buffer(var) for var in tiles]
        self._buffer_of = dict(zip(tiles, names, strict=True))

    def name(self, steps: Iterable[Step], var: Var | None, call: Call) -> None:
        """Note the tiles of the instructions of a call whose result is assigned to `var`."""
        made, given = self._placed([var]), self._placed(call.args)
        done: list[_Placed] = []
        for step in steps:
            row = row_of(step.mnemonic)
            found: dict[str, Tile] = {}
            written: list[_Placed] = []
            for each in row.fields:
                value = step.fields[each.name]
                if each.kind is not FieldKind.ADDR or not isinstance(value, int):
                    continue
                assert each.space is not None, "an address is one in a memory"
                writes = _is_written(row, each)
                known = [*made, *given] if writes else [*done, *given, *made]
                place = _at(known, each.space, value)
                if place is not None:
                    found[each.name] = place.tile
                    written += [place] * writes
            if step.mnemonic == "mad_mx":
                found |= {_SCALES[p.space]: p.tile for p in given if p.space in _SCALES}
            step.tiles = tuple(found.items())
            done = [*written, *done]

    def _placed(self, values: Sequence[object]) -> list[_Placed]:
        found: list[_Placed] = []
        for value in values:
            tile = tile_of(value) if isinstance(value, Var) else None
            if not isinstance(value, Var) or tile is None or tile.memref is None:
                continue
            space = None if tile.memory_space is None else SPACES.get(tile.memory_space)
            if space is None or value not in self._buffer_of:
                continue
            buffer = self._buffer_of[value]
            begin = tile.memref.byte_offset
            end = begin + tile.memref.size
            found.append(_Placed((buffer, source_name(value)), space, begin, end))
        return found


def _is_written(row: Row, each: Field) -> bool:
    return each.space in row.writes and each.name not in _READ


def _at(known: Sequence[_Placed], space: Space, address: int) -> _Placed | None:
    """Return the first tile that holds an address, one that begins there if there is such a one."""
    holding = [p for p in known if p.space is space and p.begin <= address < p.end]
    exact = [p for p in holding if p.begin == address] or holding
    return exact[0] if exact else None
