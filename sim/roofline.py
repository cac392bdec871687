"""Bounds that no run can beat: what it must do of each kind, at the best rate that the machine has.

Every bound is a closed form of counts. A pipe, or a port to global memory, is one of its core: what it
does is summed over the cores of one kind that do any of it and divided by their number, and of the two
kinds the larger need counts. What the cores share is summed over all of them. Heads of mads, start-ups,
latencies and waiting are in no bound, nor is the launch. Bytes of global memory count twice: at the port
that loads and stores share, and on the pipe that moves them, one transfer after the other, where each of
their rows takes a while beside its bytes.

Why no run beats them: a core whose pipe or port has w cycles of work at the best rate takes at least w,
since that does no more at a time, and the run takes as long as any of its cores. Of the cores of a kind that
have some, the busiest has at least their mean, so the run takes at least that mean, of either kind and so
of the kind where it is larger. The mean over both kinds would hold as well, but lies between the two: it
would spread loads into L1 over the ports of vector cores, which have no L1. What all share does no more than
its bandwidth in a cycle, whoever asks.

A run takes whole cycles, so a bound is rounded up. Before that it is made smaller by a part of itself.
For what a core has for itself that is `ROUNDING`, far more than sums of floats can be wrong by. For what is
shared it is `SLACK`: a transfer counts as done when less than a millionth of a cycle is left of it. Those
that end in the same cycle had no more than the whole bandwidth, so that all of them together gain at most
a millionth of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from math import ceil
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from ..codegen.isa.vocabulary import CoreKind, ElementType, Pipe, PlainType, TimingClass
from . import costs
from .vector.costs import all_steps_cycles
from .windows import window_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from ..codegen.executable import Kernel
    from ..codegen.isa.program import Instruction
    from ..ir.target import Target

    Line = npt.NDArray[np.int64]
    Work = npt.NDArray[np.float64]

ROUNDING: Final = 1e-9
SLACK: Final = 2e-6


class Bound(Enum):
    """What can limit a run."""

    CUBE = "cube"
    MTE1 = "MTE1"
    DRAIN = "drain"
    VECTOR = "vector"
    LOADS = "GM loads"
    STORES = "UB stores"
    PORT = "GM port"
    L2 = "L2"
    HBM = "HBM"


class Column(IntEnum):
    """What is counted of the work of a core."""

    CUBE_CYCLES = 0
    """Steps of mads, one a cycle, as often as operands of 32 bits pass."""
    MTE1_CYCLES = 1
    """Bytes out of L1 over the bandwidth of their way."""
    DRAIN_CYCLES = 2
    """Rows of L0C, each at its least time or that of its bytes."""
    VECTOR_CYCLES = 3
    """Steps of vector instructions."""
    LOAD_CYCLES = 4
    """Bytes from global memory over the port's bandwidth, and what their rows take."""
    STORE_CYCLES = 5
    """The same of bytes from UB to global memory."""
    GM_BYTES = 6
    """Bytes from and to global memory."""


_OF_A_CORE: Final = {
    Bound.CUBE: Column.CUBE_CYCLES,
    Bound.MTE1: Column.MTE1_CYCLES,
    Bound.DRAIN: Column.DRAIN_CYCLES,
    Bound.VECTOR: Column.VECTOR_CYCLES,
    Bound.LOADS: Column.LOAD_CYCLES,
    Bound.STORES: Column.STORE_CYCLES,
}


_MOVES: Final = {
    TimingClass.GM_LOAD: Column.LOAD_CYCLES,
    TimingClass.UB_STORE: Column.STORE_CYCLES,
}


@dataclass(frozen=True, slots=True)
class Roofline:
    """The bounds of a run.

    Attributes:
        bounds: Name to the cycles that a run takes at least, without the launch. What a run does
            nothing of has no bound.
    """

    bounds: Mapping[str, int]

    @property
    def binding(self) -> str | None:
        """The name of the largest bound, the first of equals; None where nothing is bound."""
        return max(self.bounds, key=self.bounds.__getitem__, default=None)

    @property
    def cycles(self) -> int:
        """The largest bound, 0 where there is none."""
        return max(self.bounds.values(), default=0)


def instruction_work(kernel: Kernel, target: Target) -> Work:
    """Return what each instruction of a kernel does when it is executed once.

    Returns:
        float64 [n, len(Column)].
    """
    table = np.zeros((len(kernel.program), len(Column)))
    moved = costs.moved_bytes(kernel)
    for index, each in enumerate(kernel.program):
        column, amount = _work_of(each, int(moved[index]), target)
        if column is not None:
            table[index, column] = amount
        if each.row.has("view"):
            table[index, Column.GM_BYTES] = moved[index]
        if each.row.timing in _MOVES:
            rows = window_of(each, kernel.views[each["view"]]).runs
            time = costs.gm_transfer_time(target, size_bytes=int(moved[index]), rows=rows)
            table[index, _MOVES[each.row.timing]] = time
    return table


def executed_work(parts: Iterable[tuple[int, Kernel, Line]], target: Target, *, cores: int) -> Work:
    """Return what each core of a run does.

    Args:
        parts: Number of a core, a kernel that it runs, and the instruction of each record of its
            stream, int64 [d], for everything that any core runs.
        target: The machine.
        cores: How many cores are numbered.

    Returns:
        float64 [cores, len(Column)].
    """
    work = np.zeros((cores, len(Column)))
    tables: dict[int, Work] = {}
    for core, kernel, static in parts:
        if id(kernel) not in tables:
            tables[id(kernel)] = instruction_work(kernel, target)
        table = tables[id(kernel)]
        work[core] += np.bincount(static, minlength=len(table)) @ table
    return work


def roofline(
    work: Work, kinds: Sequence[CoreKind], target: Target, *, hbm_bytes: int = 0
) -> Roofline:
    """Return the bounds of a run.

    Args:
        work: What each core did, float64 [cores, len(Column)] (`executed_work`).
        kinds: Which kind each core is of, as many as there are cores.
        target: The machine.
        hbm_bytes: Bytes that device memory moved, those that it must at least: what was not in the
            second-level cache before, once.
    """
    need = _of_the_busier_kind(work, kinds)
    moved = float(work[:, Column.GM_BYTES].sum())
    own = {bound: float(need[column]) for bound, column in _OF_A_CORE.items()}
    shared = {
        Bound.PORT: float(need[Column.GM_BYTES]) / target.gm_port_bytes_per_cycle,
        Bound.L2: moved / target.l2_bytes_per_cycle,
        Bound.HBM: hbm_bytes / target.hbm_bytes_per_cycle,
    }
    bounds = {bound.value: ceil(each * (1 - ROUNDING)) for bound, each in own.items()}
    bounds |= {bound.value: ceil(each * (1 - SLACK)) for bound, each in shared.items()}
    return Roofline(MappingProxyType({name: each for name, each in bounds.items() if each}))


def _of_the_busier_kind(work: Work, kinds: Sequence[CoreKind]) -> Work:
    """Return of each column the mean over the cores of a kind that have some, of the larger kind.

    Returns:
        float64 [len(Column)], 0 where no core has any.
    """
    assert len(kinds) == len(work), "every core is of a kind"
    means: list[Work] = []
    for kind in CoreKind:
        of_kind = work[[each is kind for each in kinds]]
        means.append(of_kind.sum(axis=0) / np.maximum(1, (of_kind > 0).sum(axis=0)))
    return np.max(means, axis=0)


def _work_of(each: Instruction, size: int, target: Target) -> tuple[Column | None, float]:
    row = each.row
    match row.timing:
        case TimingClass.MAD:
            bits = ElementType(each["a_type"]).bits
            steps = costs.mad_steps(target, m=each["m"], k=each["k"], n=each["n"], bits=bits)
            return Column.CUBE_CYCLES, steps
        case TimingClass.PLAIN_MAD:
            bits = PlainType(each["a_type"]).bits
            steps = costs.plain_mad_steps(target, m=each["m"], k=each["k"], n=each["n"], bits=bits)
            return Column.CUBE_CYCLES, steps
        case TimingClass.DRAIN:
            cycles = costs.drain_row_cycles(target, cols=each["cols"])
            return Column.DRAIN_CYCLES, each["rows"] * cycles
        case TimingClass.VECTOR:
            return Column.VECTOR_CYCLES, all_steps_cycles(target, each)
        case _ if row.pipe is Pipe.MTE1:
            return Column.MTE1_CYCLES, size / costs.l1_rate(target, row.writes[0])
        case _:
            return None, 0.0
