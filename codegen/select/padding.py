"""Zeros where the cube multiplies more than what is valid: along K of block-scaled 8-bit operands.

A block-scaled mad takes whole steps of 64 along K, so that a device multiplies what stands in L0 from the
valid K on up to a multiple of 64. Loads and moves write zeros to the end of a box of 32 bytes. Elements of
4 bits have 64 in a box, those of 8 bits have 32: where K ends in the first box of a step, the second one
is filled in L1, beside the load, and moved with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ...ir.core import AssignStmt
from ...ir.expr import Call, Op
from ...ir.tile_bytes import FRACTAL_BYTES, FRACTAL_ROWS, c0_elements, round_up
from ...ir.types import MemorySpace, TileLayout, TileType
from ...ir.verification.walk import statements

if TYPE_CHECKING:
    from ...ir.core import Stmt
    from ...ir.expr import Expr
    from ..tree import Fields
    from .places import Place

K_STEP = 64
"""Elements along K that a block-scaled mad multiplies at once."""

_MOVES = ("tile.move", "tile.extract")


@dataclass(frozen=True)
class ScaledBuffers:
    """The buffers, by the names of their memory references, of data tiles that have scales.

    Attributes:
        l0: Those in L0A and L0B.
        left: Those in L1 from which the ones in L0A are filled.
        right: The same for L0B.
    """

    l0: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    right: frozenset[str] = frozenset()


def scaled_buffers(body: Stmt | None) -> ScaledBuffers:
    """Return the buffers of block-scaled data of a function after AllocateMemoryAddr."""
    made = [
        (stmt.var, stmt.value)
        for stmt in statements(body)
        if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call)
    ]
    calls = [(var, call) for var, call in made if isinstance(call.op, Op)]
    l0 = frozenset(
        buffer_name(call.args[1]) for _, call in calls if call.op.name == "tile.tget_scale_addr"
    )
    sources: dict[MemorySpace | None, set[str]] = {}
    for var, call in calls:
        if call.op.name in _MOVES and buffer_name(var) in l0:
            space = cast("TileType", var.type).memory_space
            sources.setdefault(space, set()).add(buffer_name(call.args[0]))
    left, right = (sources.get(space, ()) for space in (MemorySpace.Left, MemorySpace.Right))
    return ScaledBuffers(l0, frozenset(left), frozenset(right))


def buffer_name(tile: Expr) -> str:
    """Return the name of a tile's memory reference."""
    type_ = tile.type
    assert isinstance(type_, TileType), "only tiles have buffers"
    assert type_.memref is not None, "tiles have memory references after InitMemRef"
    return type_.memref.name


def padded_k(valid: int, physical: int, bits: int) -> int:
    """Return how much of K an operand brings to the cube: a whole last box, where its tile has one."""
    wide = c0_elements(bits)
    end = min(round_up(valid, K_STEP), physical)
    return end if -(-end // wide) > -(-valid // wide) else valid


def fills(buffers: ScaledBuffers, tile: Expr, place: Place) -> list[Fields]:
    """Return what to set to zero in L1 beyond what is loaded of a tile, as fields of `l1_fill`."""
    name, bits = buffer_name(tile), place.dtype.bits
    made: list[Fields] = []
    if name in buffers.left:
        made += _beyond_columns(cast("TileType", tile.type), place)
    if name in buffers.right:
        end = padded_k(place.valid_rows, place.rows, bits)
        if end > place.valid_rows:
            made.append(
                {
                    "l1": place.address + place.valid_rows * FRACTAL_BYTES,
                    "lines": -(-place.valid_cols // c0_elements(bits)),
                    "units": end - place.valid_rows,
                    "pitch": round_up(place.rows, FRACTAL_ROWS),
                }
            )
    return made


def beyond(tile: TileType, place: Place) -> list[Fields]:
    """Return what of a tile in L1 lies beyond its valid part, as fields of `l1_fill`.

    A line of 32 bytes that is valid in part is left alone: what brought it has filled it up.
    """
    wide = c0_elements(place.dtype.bits)
    first, end = -(-place.valid_cols // wide), -(-place.cols // wide)
    one_row = tile.get_effective_tile_view().slayout is TileLayout.none_box
    pitch = 1 if one_row else round_up(place.rows, FRACTAL_ROWS)
    made: list[Fields] = []
    if end > first:
        at = place.address + first * pitch * FRACTAL_BYTES
        made.append({"l1": at, "lines": end - first, "units": place.rows, "pitch": pitch})
    if place.rows > place.valid_rows and first:
        at = place.address + place.valid_rows * FRACTAL_BYTES
        units = place.rows - place.valid_rows
        made.append({"l1": at, "lines": first, "units": units, "pitch": pitch})
    return made


def _beyond_columns(tile: TileType, place: Place) -> list[Fields]:
    wide = c0_elements(place.dtype.bits)
    first = -(-place.valid_cols // wide)
    count = -(-padded_k(place.valid_cols, place.cols, place.dtype.bits) // wide) - first
    if count == 0:
        return []
    one_row = tile.get_effective_tile_view().slayout is TileLayout.none_box
    pitch = 1 if one_row else round_up(place.rows, FRACTAL_ROWS)
    units = 1 if one_row else place.valid_rows
    at = place.address + first * pitch * FRACTAL_BYTES
    return [{"l1": at, "lines": count, "units": units, "pitch": pitch}]
