"""AllocateMemoryAddr: every buffer gets an address, and what does not fit is refused.

Addresses count up from 0 in each memory in order of first use. A scale tile's address is its data
tile's L0 byte address >> 4.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..core import Function, FunctionType
from ..errors import IRValueError
from ..properties import IRProperty
from ..tile_bytes import ALIGNMENT, round_up
from .base import FunctionPass, current_target
from .memory_sizes import MEMORIES, memory_bytes
from .memrefs import SCALE_SPACES, SCALE_SUFFIX, Buffer, Lifetimes, tile_of, tile_vars, with_memrefs

if TYPE_CHECKING:
    from ..expr import Var
    from ..types import MemorySpace, MemRef

#: Right shift from a data tile's L0 byte address to its scales' address.
SCALE_ADDRESS_SHIFT = 4


@dataclass(frozen=True)
class AllocateMemoryAddr(FunctionPass):
    """Lay the buffers of each memory one behind the other."""

    name = "AllocateMemoryAddr"
    required = frozenset({IRProperty.HasMemRefs})
    produced = frozenset({IRProperty.HasMemRefs, IRProperty.AllocatedMemoryAddr})

    def transform_function(self, function: Function) -> Function:
        """Allocate the buffers of one function.

        Raises:
            IRValueError: When a memory is too small; it names the memory, its size, what is wanted
                and the tiles that want it.
        """
        if function.func_type not in (FunctionType.InCore, FunctionType.AIC):
            return function
        by_space: defaultdict[MemorySpace, list[Buffer]] = defaultdict(list)
        for buffer in Lifetimes(function).buffers.values():
            by_space[buffer.space].append(buffer)
        address: dict[str, int] = {}
        for space, buffers in by_space.items():
            address.update(_addresses(space, buffers))
        refs: dict[Var, MemRef] = {}
        for var in tile_vars(function):
            tile = tile_of(var)
            assert tile is not None
            if tile.memref is not None:
                base = address[tile.memref.name.removesuffix(SCALE_SUFFIX)]
                shift = SCALE_ADDRESS_SHIFT if tile.memory_space in SCALE_SPACES else 0
                refs[var] = replace(tile.memref, byte_offset=base >> shift)
        return with_memrefs(function, refs)


def _addresses(space: MemorySpace, buffers: list[Buffer]) -> dict[str, int]:
    address: dict[str, int] = {}
    end = 0
    for buffer in buffers:
        address[buffer.name] = end
        end += round_up(buffer.size_bytes, ALIGNMENT[space])
    limit = memory_bytes(current_target(), space)
    if end > limit:
        name = MEMORIES[space][0]
        listed = [
            f"{', '.join(buffer.tiles)} ({buffer.size_bytes} bytes)"
            for buffer in sorted(buffers, key=lambda b: -b.size_bytes)
        ]
        message = (
            f"{space.name} buffer usage must be at most the {limit} bytes of {name}, not {end} bytes: "
            f"{'; '.join(listed)}"
        )
        first_over = next(b for b in buffers if address[b.name] + b.size_bytes > limit)
        raise IRValueError(message, first_over.span, hint="use smaller tiles or fewer stages")
    return address
