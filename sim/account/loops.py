"""The loops of the kernels of a run, and which of them had no iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...codegen.isa.vocabulary import FieldKind, Flow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from ...codegen.executable import Kernel
    from ...ir.errors import Span
    from ..report import SimResult

    Bits = npt.NDArray[np.bool_]


class Loops(NamedTuple):
    """The loops that a run came to.

    Attributes:
        empty: The lines of those that had no iteration at all.
        running: How many had one or more.
    """

    empty: tuple[Span, ...]
    running: int


def loops_of(result: SimResult) -> Loops:
    """Return the loops that the kernels of a run came to, in any of their tasks."""
    reached: dict[int, tuple[Kernel, Bits]] = {}
    for run in result.tasks:
        for part in run.cores:
            kernel = part.decoded.kernel
            _, bits = reached.setdefault(
                id(kernel), (kernel, np.zeros(len(part.decoded), np.bool_))
            )
            bits |= part.stream.reached
    empty: dict[Span, None] = {}
    running = 0
    for kernel, bits in reached.values():
        for head, last in _back_edges(kernel):
            if bits[last]:
                running += 1
            elif _is_asked_for(kernel, bits, head, last):
                empty[kernel.span(last)] = None
    return Loops(tuple(empty), running)


def _back_edges(kernel: Kernel) -> Iterator[tuple[int, int]]:
    """Yield the first instruction of each loop, and the one that goes back to it."""
    for last, target in _branches(kernel, range(len(kernel.program))):
        if target <= last:
            yield target, last


def _branches(kernel: Kernel, places: Iterable[int]) -> Iterator[tuple[int, int]]:
    for place in places:
        instruction = kernel.program[place]
        for each, value in zip(instruction.row.fields, instruction.values, strict=True):
            if each.kind is FieldKind.TARGET:
                yield place, place + value


def _is_asked_for(kernel: Kernel, bits: Bits, head: int, last: int) -> bool:
    """Whether a loop whose end was not reached was come to: its head, or what decides on it."""
    if bits[head]:
        return True
    before = head - 1
    falls_through = before >= 0 and kernel.program[before].row.flow in (Flow.NEXT, Flow.BRANCH)
    outside = (place for place in range(len(bits)) if not head <= place <= last)
    enters = [place for place, target in _branches(kernel, outside) if target == head]
    return bool((falls_through and bits[before]) or bits[enters].any())
