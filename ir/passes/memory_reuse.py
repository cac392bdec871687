"""MemoryReuse: where a memory is too small, buffers that are never in use together become one.

Reuse makes one transfer wait for another, so none happens while everything fits. Then first-fit over
decreasing size; the copies of a pipelined body stay apart unless even that does not fit.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..core import Function, FunctionType
from ..properties import IRProperty
from ..tile_bytes import ALIGNMENT, round_up
from .base import FunctionPass, current_target
from .memory_sizes import memory_bytes
from .memrefs import SCALE_SUFFIX, Buffer, Lifetimes, tile_of, tile_vars, with_memrefs

if TYPE_CHECKING:
    from ..expr import Var
    from ..types import MemRef


@dataclass(frozen=True)
class MemoryReuse(FunctionPass):
    """Share buffers in the memories that would overflow otherwise."""

    name = "MemoryReuse"
    required = frozenset({IRProperty.HasMemRefs})
    produced = frozenset({IRProperty.HasMemRefs})

    def transform_function(self, function: Function) -> Function:
        """Share the buffers of one function."""
        if function.func_type not in (FunctionType.InCore, FunctionType.AIC):
            return function
        by_space: defaultdict[object, list[Buffer]] = defaultdict(list)
        for buffer in Lifetimes(function).buffers.values():
            by_space[buffer.space].append(buffer)
        slot_of: dict[str, str] = {}
        for buffers in by_space.values():
            slot_of.update(_slots(buffers))
        if all(name == slot for name, slot in slot_of.items()):
            return function
        refs: dict[Var, MemRef] = {}
        for var in tile_vars(function):
            tile = tile_of(var)
            assert tile is not None
            if tile.memref is not None:
                base = tile.memref.name.removesuffix(SCALE_SUFFIX)
                suffix = tile.memref.name[len(base) :]
                refs[var] = replace(tile.memref, name=slot_of.get(base, base) + suffix)
        return with_memrefs(function, refs)


def _slots(buffers: list[Buffer]) -> dict[str, str]:
    """Return for each buffer the buffer whose place it takes; itself where it keeps its own."""
    space = buffers[0].space
    limit = memory_bytes(current_target(), space)
    unit = ALIGNMENT[space]
    apart = {buffer.name: buffer.name for buffer in buffers}
    if sum(round_up(b.size_bytes, unit) for b in buffers) <= limit:
        return apart
    shared = apart
    for keep_stages in (True, False):
        slots: list[list[Buffer]] = []
        for buffer in sorted(buffers, key=lambda b: (-b.size_bytes, b.first)):
            _place(buffer, slots, keep_stages=keep_stages)
        shared = {b.name: slot[0].name for slot in slots for b in slot}
        if sum(round_up(slot[0].size_bytes, unit) for slot in slots) <= limit:
            break
    return shared


def _place(buffer: Buffer, slots: list[list[Buffer]], *, keep_stages: bool) -> None:
    for slot in slots:
        if not any(
            buffer.overlaps(other) or (keep_stages and buffer.kept_apart(other)) for other in slot
        ):
            slot.append(buffer)
            return
    slots.append([buffer])
