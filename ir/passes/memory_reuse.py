"""MemoryReuse: where a memory is too small, buffers that are never in use together become one.

Reuse makes one transfer wait for another, so none happens while everything fits, but for tiles that were
given one slot by hand. Otherwise buffers are
placed by decreasing size. At first each gets a place of its own while there is room, and then shares the
one that has been idle for longest, apart from the other copies of its pipelined body if it can. Where
that leaves no room for others, buffers share the first place that is free.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from ..properties import IRProperty
from ..tile_bytes import ALIGNMENT, round_up
from ..verification.structure import CORE_TYPES
from .base import FunctionPass, current_target
from .lifetimes import Buffer, Lifetimes
from .memory_sizes import memory_bytes
from .memrefs import with_buffers

if TYPE_CHECKING:
    from ..core import Function


@dataclass(frozen=True)
class MemoryReuse(FunctionPass):
    """Share buffers in the memories that would overflow otherwise."""

    name = "MemoryReuse"
    required = frozenset({IRProperty.SSAForm, IRProperty.HasMemRefs})
    produced = frozenset({IRProperty.HasMemRefs})

    def transform_function(self, function: Function) -> Function:
        """Share the buffers of one function."""
        if function.func_type not in CORE_TYPES:
            return function
        shared: dict[str, str] = {}
        for space, buffers in Lifetimes(function).by_space().items():
            room = memory_bytes(current_target(), space)
            for slot in _slots(buffers, ALIGNMENT[space], room):
                shared.update((buffer.name, slot.name) for buffer in slot.buffers)
        return with_buffers(function, lambda name: shared.get(name, name))


def _slots(buffers: list[Buffer], unit: int, room: int) -> list[Slot]:
    """Return places for the buffers of one memory of `room` bytes.

    The buffers of one place are never in use together. Each buffer has a place of its own, or that of
    its slot, when all fit so, and also when nothing helps: the allocation then tells what is too much.
    """
    sizes = [round_up(buffer.size_bytes, unit) for buffer in buffers]
    by_size = sorted(zip(buffers, sizes, strict=True), key=lambda b: (-b[1], b[0].first))
    own: list[Slot] = []
    for buffer, size in by_size:
        slot = _given_slot(buffer, own)
        if slot is None:
            own.append(Slot(buffer, size))
        else:
            slot.add(buffer)
    if sum(slot.size for slot in own) <= room:
        return own
    for aim in _Aim:
        slots = _packed(by_size, room, aim)
        if slots is not None:
            return slots
    return own


class _Aim(Enum):
    """What packing aims at, best first: each leaves more room than the one before."""

    SPREAD = "a place for each buffer while there is room"
    STAGES = "a place for each copy of a pipelined body while there is room"
    TIGHT = "as few places as possible"


def _packed(by_size: list[tuple[Buffer, int]], room: int, aim: _Aim) -> list[Slot] | None:
    """Return places for buffers of falling size, or None when they do not fit into `room`."""
    slots: list[Slot] = []
    for buffer, size in by_size:
        slot = _shared_slot(buffer, slots, aim, fits=size <= room)
        if slot is not None:
            slot.add(buffer)
            continue
        room -= size
        if room < 0:
            return None
        slots.append(Slot(buffer, size))
    return slots


def _shared_slot(buffer: Buffer, slots: list[Slot], aim: _Aim, *, fits: bool) -> Slot | None:
    """Return the place that `buffer` shares, or None for one of its own; `fits` says there is room."""
    if buffer.slots:
        return _given_slot(buffer, slots)
    if aim is _Aim.SPREAD and fits:
        return None
    free = [slot for slot in slots if slot.is_free(buffer)]
    if aim is _Aim.TIGHT:
        return next(iter(free), None)
    apart = [s for s in free if not s.has_other_stage(buffer)] if buffer.stages else free
    if aim is _Aim.STAGES and (apart or fits):
        return next(iter(apart), None)
    return min(apart or free, key=lambda slot: slot.last_before(buffer), default=None)


def _given_slot(buffer: Buffer, slots: list[Slot]) -> Slot | None:
    """Return the place of the slot that a buffer was given by hand, if it has one already."""
    return next((slot for slot in slots if buffer.slots and slot.is_free(buffer)), None)


@dataclass
class Slot:
    """A place in a memory, and the buffers that use it one after another, in order of first use."""

    opener: Buffer
    size: int
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    _stages: dict[int, set[int]] = field(default_factory=dict[int, set[int]])

    def __post_init__(self) -> None:
        self.add(self.opener)

    @property
    def name(self) -> str:
        """The name that all its buffers take."""
        return self.opener.name

    def add(self, buffer: Buffer) -> None:
        """Let `buffer` use the place while no other does."""
        self.buffers.insert(bisect_left(self.buffers, buffer.first, key=_first), buffer)
        for loop, stage in buffer.stages:
            self._stages.setdefault(loop, set()).add(stage)

    def is_free(self, buffer: Buffer) -> bool:
        """Whether no buffer of this place is in use in a statement in which `buffer` is.

        A statement may use both where it computes the later one in the place of the earlier one.
        """
        at = bisect_left(self.buffers, buffer.first, key=_first)
        ends_in_time = at == len(self.buffers) or self.buffers[at].may_follow(buffer)
        return ends_in_time and (at == 0 or buffer.may_follow(self.buffers[at - 1]))

    def has_other_stage(self, buffer: Buffer) -> bool:
        """Whether another copy of a pipelined body uses this place."""
        return any(self._stages.get(loop, set()) - {stage} for loop, stage in buffer.stages)

    def last_before(self, buffer: Buffer) -> int:
        """Return when the place was used last before `buffer`, -1 for never."""
        at = bisect_left(self.buffers, buffer.first, key=_first)
        return self.buffers[at - 1].last if at else -1


def _first(buffer: Buffer) -> int:
    return buffer.first
