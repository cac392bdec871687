"""How full the local memories are in the course of a run.

A byte is in use from when an instruction begins to write it until the last one that reads it has left
its pipe, or until it is written anew; what nobody reads, until its write is done.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

import numpy as np

from ...codegen.isa.vocabulary import ClusterCore, Space
from ...ir.jit import compiled, inner
from ..checks.rectangles import BYTE, rectangles
from ..memory import local_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from ...ir.target import Target
    from .records import Part, Records

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

UNIT: Final = 32
"""Bytes that are told apart."""

_MEMORY, _WRITES, _START, _STEP_0, _STEP_1, _COUNT, _PITCH, _SIZE, _WORDS = range(9)
"""Columns of a rectangle: see `checks.rectangles`; its memory as a number among `_MEMORIES`."""
_STATIC, _BEGIN, _END, _DONE, _R0, _R1, _ACCESS_WORDS = range(7)
"""Columns of an access: its line among the instructions, when it came to the front of its pipe, left it
and was done, and its registers."""
_SINCE, _READ, _UNIT_WORDS = range(3)
"""Columns of a unit: since when it is in use, -1 for not at all, and until when so far."""

_VECTOR_CORES: Final = (ClusterCore.AIV0, ClusterCore.AIV1)
_MEMORIES: Final = (*(space for space in Space if space is not Space.GM), Space.UB + 1)
"""The memories of a cluster; the UB of the second vector core is last."""


def occupancy(
    records: Records, target: Target, cores: Sequence[int], *, window: int, cycles: int
) -> dict[tuple[ClusterCore, str], npt.NDArray[np.float64]]:
    """Return how many bytes are in use, the mean over each window of time.

    Args:
        records: What the pipes of the run did.
        target: The machine.
        cores: The numbers of the cores of one cluster.
        window: Cycles of a window.
        cycles: How long the run took.

    Returns:
        By core that has the memory and its name, of all that were used, float64 [windows].
    """
    parts = [part for part in records.parts if part.core.number in cores]
    lines, firsts, rects = _rectangles_of(parts)
    accesses = _accesses(records, parts, lines)
    sizes = [-(-local_size(target, _space(memory)) // UNIT) for memory in _MEMORIES]
    bases = np.array([0, *accumulate(sizes)], np.int64)
    units = np.full((int(bases[-1]), _UNIT_WORDS), -1, np.int64)
    count = -(-cycles // window) + 1
    sums, steps = (np.zeros((len(_MEMORIES), count + 1)) for _ in range(2))
    used = np.zeros(len(_MEMORIES), np.bool_)
    follow(accesses, firsts, rects, bases, units, window, sums, steps, used)
    means = (sums + np.cumsum(steps, axis=1))[:, : count - 1] * UNIT
    lengths = np.diff(np.minimum(np.arange(count) * window, cycles))
    return {
        _owner(memory): means[number] / lengths
        for number, memory in enumerate(_MEMORIES)
        if used[number]
    }


def _space(memory: int) -> Space:
    return Space.UB if memory > Space.UB else Space(memory)


def _owner(memory: int) -> tuple[ClusterCore, str]:
    """Return the core that has a memory of a cluster, and what it is called there."""
    if memory >= Space.UB:
        return _VECTOR_CORES[memory - Space.UB], Space.UB.name
    return ClusterCore.AIC, Space(memory).name


def _rectangles_of(parts: Sequence[Part]) -> tuple[Mapping[int, int], Line, Table]:
    """Return what the instructions of all programs touch.

    Returns:
        The first line of each program, by identity; the first rectangle of each line, and the number
        of all, int64 [lines + 1]; and the rectangles, int64 [rectangles, _WORDS].
    """
    lines: dict[int, int] = {}
    firsts, found = [0], list[tuple[int, ...]]()
    for part in parts:
        kernel = part.kernel
        if id(kernel) in lines:
            continue
        lines[id(kernel)] = len(firsts) - 1
        for index in range(len(kernel.program)):
            for each in rectangles(kernel, index, part.core.core):
                if each.memory != Space.GM:
                    memory, shape = _MEMORIES.index(each.memory), each[6:]
                    found.append((memory, int(each.writes), each.start, *each.steps, *shape))
            firsts.append(len(found))
    table = np.array(found, np.int64).reshape(-1, _WORDS)
    return lines, np.array(firsts, np.int64), table


def _accesses(records: Records, parts: Sequence[Part], lines: Mapping[int, int]) -> Table:
    """Return all records of the parts in the order of their times, int64 [d, _ACCESS_WORDS]."""
    pieces = [np.zeros((0, _ACCESS_WORDS), np.int64)]
    for part in parts:
        own = slice(part.first, part.last)
        table = np.zeros((part.last - part.first, _ACCESS_WORDS), np.int64)
        table[:, _STATIC] = records.item[own] + lines[id(part.kernel)]
        table[:, _BEGIN], table[:, _END] = records.start[own], records.end[own]
        table[:, _DONE] = records.done[own]
        table[:, [_R0, _R1]] = part.core.stream.registers
        pieces.append(table)
    accesses = np.concatenate(pieces)
    return accesses[np.argsort(accesses[:, _BEGIN], kind="stable")]


@compiled
def follow(
    accesses: Table,
    firsts: Line,
    rects: Table,
    bases: Line,
    units: Table,
    window: int,
    sums: npt.NDArray[np.float64],
    steps: npt.NDArray[np.float64],
    used: npt.NDArray[np.bool_],
) -> None:
    """Go through the accesses; write what the memories have in use by window, in units and cycles."""
    for number in range(len(accesses)):
        access = accesses[number]
        first, last = firsts[access[_STATIC]], firsts[access[_STATIC] + 1]
        for writes in range(2):  # what is read and written anew has been read before
            for place in range(first, last):
                rect = rects[place]
                if rect[_WRITES] != writes:
                    continue
                memory = rect[_MEMORY]
                used[memory] = True
                moved = access[_R0] * rect[_STEP_0] + access[_R1] * rect[_STEP_1]
                start = (rect[_START] + moved) // BYTE
                for run in range(rect[_COUNT]):
                    byte = start + run * rect[_PITCH]
                    begin = bases[memory] + byte // UNIT
                    end = bases[memory] + (byte + rect[_SIZE] - 1) // UNIT + 1
                    for unit in range(begin, min(end, bases[memory + 1])):
                        if not writes:
                            units[unit, _READ] = max(units[unit, _READ], access[_END])
                            continue
                        if units[unit, _SINCE] != access[_BEGIN]:
                            _count(units[unit], access[_BEGIN], window, sums[memory], steps[memory])
                        units[unit, _SINCE], units[unit, _READ] = access[_BEGIN], access[_DONE]
    for memory in range(len(used)):
        for unit in range(bases[memory], bases[memory + 1]):
            _count(units[unit], units[unit, _READ], window, sums[memory], steps[memory])


@inner
def _count(
    unit: Line,
    until: int,
    window: int,
    sums: npt.NDArray[np.float64],
    steps: npt.NDArray[np.float64],
) -> None:
    """Add the time for which a unit was in use, if it was, but no longer than `until`."""
    since = unit[_SINCE]
    end = min(int(unit[_READ]), int(until))
    if since < 0 or end <= since:
        return
    first, last = since // window, end // window
    if first == last:
        sums[first] += end - since
        return
    sums[first] += (first + 1) * window - since
    sums[last] += end - last * window
    steps[first + 1] += window
    steps[last] -= window
