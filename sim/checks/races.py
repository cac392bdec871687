"""Data races in words: two accesses of the same bytes that nothing puts in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...codegen.isa.vocabulary import Pipe, Space
from ...ir.errors import SimulationFault
from ..datapaths.kernels import BASE
from ..diagnosis import Words
from . import overlaps as columns
from .footprints import Shapes, stretch
from .overlaps import first_common

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..pipes.timing import Program
    from .order import Order
    from .rectangles import Rectangle

_SECOND_UB = Space.UB + 1


def races(programs: Sequence[Program], order: Order) -> Iterator[SimulationFault]:
    """Yield a fault for each pair of instructions that race, as the walk met them.

    Args:
        programs: What ran.
        order: The order of its records, in which the pairs stand.
    """
    words = Words(programs, order)
    told: set[tuple[int, int]] = set()
    for pair in order.races:
        items = tuple(sorted(int(order.static[record]) for record in pair))
        if items not in told:
            told.add((items[0], items[1]))
            yield _race(programs, words, order, *_in_program_order(order, pair))


def _in_program_order(order: Order, pair: tuple[int, int]) -> tuple[int, int]:
    """Return a pair as one core has it; those of two cores stay as they are."""
    one, other = pair
    if order.place(one)[0] == order.place(other)[0]:
        return min(pair), max(pair)
    return one, other


def _race(
    programs: Sequence[Program], words: Words, order: Order, one: int, other: int
) -> SimulationFault:
    first, then = order.place(one), order.place(other)
    mine, theirs, begin, size = _common(programs, first, then)
    where = f"{size} bytes from byte {begin} on of {memory_name(mine.memory)}"
    if mine.view >= 0:
        program = programs[first[0]]
        kernel = program.decoded.kernel
        name = kernel.params[kernel.views[mine.view].param].name
        begin -= int(program.views[mine.view, BASE])
        where = f"{size} bytes from byte {begin} on of {name!r} in GM"
    sides = [_side(programs, words, place) for place in (first, then)]
    does = [("writes" if part.writes else "reads") for part in (mine, theirs)]
    message = (
        f"Two instructions must not race for the same bytes, but nothing orders {sides[0][0]} and "
        f"{sides[1][0]}: on {sides[0][1]} the first {does[0]}, on {sides[1][1]} the second {does[1]} "
        f"{where}."
    )
    hint = f"{_flag(programs, first, then)} set behind the first and waited for before the second"
    return SimulationFault(message, words.span(*then), hint=hint, note=_note(programs, first, then))


def _side(programs: Sequence[Program], words: Words, place: tuple[int, int]) -> tuple[str, str]:
    core, record = place
    pipe = Pipe(_pipe(programs[core], record)).name
    return words.instruction(core, record), words.of(core, pipe)


def _flag(programs: Sequence[Program], first: tuple[int, int], then: tuple[int, int]) -> str:
    """Name the flag that would put two records in order."""
    ends = [Pipe(_pipe(programs[core], record)).name for core, record in (first, then)]
    if first[0] == then[0]:
        return f"a flag from {ends[0]} to {ends[1]}"
    cores = [programs[core].core.name for core, _ in (first, then)]
    return f"a core flag from {cores[0]} ({ends[0]}) to {cores[1]} ({ends[1]})"


def _note(programs: Sequence[Program], first: tuple[int, int], then: tuple[int, int]) -> str:
    names = [programs[core].decoded.kernel for core, _ in (first, then)]
    spans = [
        kernel.span(int(programs[core].stream.static[record]))
        for kernel, (core, record) in zip(names, (first, then), strict=True)
    ]
    lines = " and ".join(str(span) for span in spans if span.is_known)
    return f"in kernel {names[0].name!r}" + (f", lines {lines}" if lines else "")


def _pipe(program: Program, record: int) -> int:
    return int(program.decoded.pipe[program.stream.static[record]])


def _common(
    programs: Sequence[Program], first: tuple[int, int], then: tuple[int, int]
) -> tuple[Rectangle, Rectangle, int, int]:
    """Return what two records touch alike, the first byte of it, and how many there are in a run."""
    for one, here in _placed(programs, first):
        for other, there in _placed(programs, then):
            if one.memory != other.memory or not (one.writes or other.writes):
                continue
            byte = first_common(here, there)
            if byte >= 0:
                end = min(_run_end(here, byte), _run_end(there, byte))
                return one, other, int(byte), int(end - byte)
    message = "the walk compares only what overlaps"
    raise AssertionError(message)


def _placed(
    programs: Sequence[Program], place: tuple[int, int]
) -> Iterator[tuple[Rectangle, columns.Line]]:
    core, record = place
    program = programs[core]
    r0, r1 = program.stream.registers[record].tolist()
    for part in Shapes.kept(program).of[int(program.stream.static[record])]:
        base = int(program.views[part.view, BASE]) if part.view >= 0 else 0
        yield part, np.array(stretch(part, r0, r1, base), np.int64)


def _run_end(place: columns.Line, byte: int) -> int:
    """Return the end of the run of a stretch that holds a byte."""
    start, pitch, size = (int(place[n]) for n in (columns.START, columns.PITCH, columns.SIZE))
    return start + (byte - start) // pitch * pitch + size if pitch else start + size


def memory_name(memory: int) -> str:
    """Return a memory of the cluster for a message."""
    if memory == _SECOND_UB:
        return "UB of AIV1"
    return Space(memory).name
