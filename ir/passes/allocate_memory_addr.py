"""AllocateMemoryAddr: every buffer gets an address, and what does not fit is refused.

Addresses count up from 0 in each memory in order of first use. A scale tile's address is its data
tile's L0 byte address >> 4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..binding import written_name
from ..errors import IRValueError
from ..properties import IRProperty
from ..tile_bytes import ALIGNMENT, round_up
from ..types import MemorySpace
from ..verification.structure import CORE_TYPES
from .base import FunctionPass, current_target
from .lifetimes import Buffer, Lifetimes
from .memory_sizes import MEMORIES, memory_bytes
from .memrefs import SCALE_SPACES, base_name, tile_of, tile_vars, with_memrefs

if TYPE_CHECKING:
    from ..core import Function
    from ..expr import Var
    from ..types import MemRef

#: Right shift from a data tile's L0 byte address to its scales' address.
SCALE_ADDRESS_SHIFT = 4
#: What comes first in one statement: what it writes is there before what it reads is gone.
_START, _END, _START_IN_PLACE = range(3)
_SCALES_OF = {MemorySpace.Left: MemorySpace.LeftScale, MemorySpace.Right: MemorySpace.RightScale}

#: What the name of a tile ends in that belongs to one copy of a pipelined body.
_STAGE = re.compile(r"_s\d+$")


@dataclass(frozen=True)
class AllocateMemoryAddr(FunctionPass):
    """Lay the buffers of each memory one behind the other."""

    name = "AllocateMemoryAddr"
    required = frozenset({IRProperty.SSAForm, IRProperty.HasMemRefs})
    produced = frozenset({IRProperty.HasMemRefs, IRProperty.AllocatedMemoryAddr})

    def transform_function(self, function: Function) -> Function:
        """Allocate the buffers of one function.

        Raises:
            IRValueError: When a memory is too small; it names the memory, its size, what is wanted
                and the tiles that want it.
        """
        if function.func_type not in CORE_TYPES:
            return function
        address: dict[str, int] = {}
        for space, buffers in Lifetimes(function).by_space().items():
            address.update(_addresses(space, buffers))
        refs: dict[Var, MemRef] = {}
        for var in tile_vars(function):
            tile = tile_of(var)
            if tile is not None and tile.memref is not None:
                shift = SCALE_ADDRESS_SHIFT if tile.memory_space in SCALE_SPACES else 0
                place = address[base_name(tile.memref)] >> shift
                refs[var] = replace(tile.memref, byte_offset=place)
        return with_memrefs(function, refs)


def _addresses(space: MemorySpace, buffers: list[Buffer]) -> dict[str, int]:
    address: dict[str, int] = {}
    limit, end = memory_bytes(current_target(), space), 0
    for buffer in buffers:
        address[buffer.name] = end
        if end + buffer.size_bytes > limit:
            raise _too_much(space, buffers, buffer)
        end = round_up(end + buffer.size_bytes, ALIGNMENT[space])
    for buffer in buffers:
        scales_end = (address[buffer.name] >> SCALE_ADDRESS_SHIFT) + buffer.scale_bytes
        if buffer.scale_bytes and scales_end > memory_bytes(current_target(), _SCALES_OF[space]):
            raise _scales_too_far(_SCALES_OF[space], buffer, scales_end)
    return address


def _too_much(space: MemorySpace, buffers: list[Buffer], beyond: Buffer) -> IRValueError:
    """Return the error for a memory that is too small; it lists what is in use at the worst moment."""
    unit, limit = ALIGNMENT[space], memory_bytes(current_target(), space)
    crowd = _at_worst_moment(buffers)
    if sum(round_up(b.size_bytes, unit) for b in crowd) <= limit:
        crowd = buffers  # gaps between buffers of different sizes are what does not fit
    else:
        beyond = max(crowd, key=lambda b: b.first)
    wanted = sum(round_up(b.size_bytes, unit) for b in crowd)
    listed = "; ".join(
        f"{_names(b)} ({b.size_bytes} bytes)" for b in sorted(crowd, key=lambda b: -b.size_bytes)
    )
    message = (
        f"{space.name} buffer usage must be at most the {limit} bytes of {MEMORIES[space][0]}, not "
        f"{wanted} bytes: {listed}"
    )
    largest = max(crowd, key=lambda b: b.size_bytes)
    if largest.size_bytes <= limit:
        return IRValueError(message, beyond.span, hint="use smaller tiles or fewer stages")
    parts = -(-largest.size_bytes // limit)
    hint = (
        f"{_names(largest)} alone has {largest.size_bytes} bytes, of which {limit} fit: work on it in "
        f"tiles of at most 1/{parts} of it"
    )
    return IRValueError(message, largest.span, hint=hint)


def _names(buffer: Buffer) -> str:
    """Return the tiles of a buffer as the kernel's text calls them, each once."""
    tiles = [_STAGE.sub("", name) if buffer.stages else name for name in buffer.tiles]
    named = dict.fromkeys(filter(None, map(written_name, tiles)))
    line = f" of line {buffer.span.line}" if buffer.span.is_known else ""
    return ", ".join(named) or f"a tile without a name{line}"


def _at_worst_moment(buffers: list[Buffer]) -> list[Buffer]:
    """Return the buffers that are in use together when they take the most bytes."""
    spans = {b.name: (_begin(b, buffers), (b.last, _END)) for b in buffers}
    changes = [(spans[b.name][0], b.size_bytes) for b in buffers]
    changes += [(spans[b.name][1], -b.size_bytes) for b in buffers]
    total, most, moment = 0, 0, (0, _START)
    for position, change in sorted(changes):
        total += change
        if total > most:
            most, moment = total, position
    return [b for b in buffers if spans[b.name][0] <= moment <= spans[b.name][1]]


def _begin(buffer: Buffer, buffers: list[Buffer]) -> tuple[int, int]:
    """Return when a buffer is needed first: behind the end of one in whose place it is made."""
    replaced = any(b.last == buffer.first and buffer.may_follow(b) for b in buffers)
    return buffer.first, _START_IN_PLACE if replaced else _START


def _scales_too_far(space: MemorySpace, buffer: Buffer, end: int) -> IRValueError:
    limit = memory_bytes(current_target(), space)
    message = (
        f"The scales of {_names(buffer)} must end within the {limit} bytes of "
        f"{MEMORIES[space][0]}, not at byte {end}: they lie at their data tile's address >> "
        f"{SCALE_ADDRESS_SHIFT}"
    )
    return IRValueError(message, buffer.span, hint="use smaller tiles or fewer stages")
