"""What the pipes of a run did, as slices and counters of a timeline.

On every pipe the slices stand apart, and of each kind they add up to what the account of the pipe
says: work, and what was waited for. A transfer whose bytes have passed is off its pipe, though they
arrive a latency later; that it was done only then is told by its `done_cycle`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...codegen.isa.vocabulary import FieldKind, Pipe
from ...traces.timeline import DEVICE, Sample, Slice
from .. import costs
from ..decode import Role, flag_text
from ..decode import transfers as gm_transfers
from .occupancy import occupancy
from .records import NONE, Cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from ...codegen.executable import Kernel
    from ...codegen.isa.program import Instruction
    from ...ir.target import Target
    from .records import Records

    Line = npt.NDArray[np.int64]
    _Ends = tuple[int | None, int | None]

CAUSES: Final = (
    Cause.BUSY,
    Cause.FLAG,
    Cause.BARRIER,
    Cause.QUEUE,
    Cause.MEMORY,
    Cause.SCALES,
)
"""What a slice can be: work, or what is waited for."""

ISSUES, FULL_QUEUE, NO_MEMORY, NO_SCALES = (
    "issues",
    "waits for a queue",
    "waits for memory",
    "waits for scales",
)
"""Names of slices that are no instruction."""

WINDOWS: Final = 1024
"""A counter of a rate has at most so many values a series: means over equal spans of time."""

READ, WRITE = "read", "write"
_OUTWARD: Final = (Pipe.FIX, Pipe.MTE3)
_SHAPES: Final = (
    ("m", "k", "n"),
    ("rows", "cols"),
    ("ni", "nj"),
    ("row_boxes", "col_boxes"),
    ("k", "n"),
    ("lines", "units"),
)
"""Fields that tell the shape of what an instruction works on; the first that it has all of."""

_WORK, _STALL, _SYNC, _FULL, _ISSUE = range(5)
"""Kinds of slices: what an instruction does; what it waits for meanwhile; a flag or a barrier; the
scalar unit before a full queue; the scalar unit's own work."""

_SLICE = np.dtype(
    [
        ("core", np.int32),
        ("part", np.int32),
        ("pipe", np.int8),
        ("cause", np.int8),
        ("kind", np.int8),
        ("start", np.int64),
        ("end", np.int64),
        ("record", np.int64),
        ("count", np.int64),
    ]
)
_TRAFFIC = np.dtype(
    [
        ("core", np.int32),
        ("outward", np.bool_),
        ("start", np.int64),
        ("end", np.int64),
        ("bytes", np.int64),
    ]
)


class Slices:
    """The slices of a run.

    Args:
        records: What its pipes did.
        cycles: How long it took, the launch included.
    """

    def __init__(self, records: Records, *, cycles: int) -> None:
        self.records = records
        self.cycles = cycles
        self._facts: dict[int, dict[int, dict[str, Any]]] = {}

    @cached_property
    def table(self) -> npt.NDArray[Any]:
        """The slices by their starts, a record array of `_SLICE`; `cause` is an index into `CAUSES`."""
        pieces = [*_of_pipes(self.records), *_of_scalar_units(self.records)]
        table = np.concatenate(pieces) if pieces else np.zeros(0, _SLICE)
        length = table["end"] - table["start"]
        return table[np.lexsort((table["record"], -length, length > 0, table["start"]))]

    def totals(self, cores: int) -> dict[Cause, npt.NDArray[np.int64]]:
        """Return the cycles of all slices by cause, core and pipe, int64 [cores, pipes] each."""
        table = self.table
        found: dict[Cause, npt.NDArray[np.int64]] = {}
        place = table["core"].astype(np.int64) * len(Pipe) + table["pipe"]
        for number, cause in enumerate(CAUSES):
            chosen = table["cause"] == number
            length = (table["end"] - table["start"])[chosen]
            sums = np.bincount(place[chosen], length, cores * len(Pipe)).astype(np.int64)
            found[cause] = sums.reshape(cores, len(Pipe))[:, : Pipe.ALL]
        return found

    def slices(self, cores: Sequence[int] | None = None) -> Iterator[Slice]:
        """Yield the slices, by their starts.

        Args:
            cores: Numbers of the cores that are shown; all if None.
        """
        table = self.table
        if cores is not None:
            table = table[np.isin(table["core"], cores)]
        rows: list[tuple[int, ...]] = table.tolist()
        for core, part, pipe, cause, kind, start, end, record, count in rows:
            if kind == _ISSUE:
                task = self.records.parts[part].run.index
                name, args, ends = ISSUES, {"task": task, "instructions": count}, (None, None)
            else:
                name, args, ends = self._told(kind, cause, record)
            category = CAUSES[cause].value
            yield Slice(core, Pipe(pipe).name, name, category, start, end, args, *ends)

    def samples(self, cores: Sequence[int] | None = None) -> Iterator[Sample]:
        """Yield the bandwidth of GM, of the device and of each core that uses it, bytes per cycle.

        Args:
            cores: Numbers of the cores that are shown; all if None. The device counts all of them.
        """
        rows = _gm_traffic(self.records)
        used = np.unique(rows["core"]).tolist()
        shown = [core for core in used if cores is None or core in cores]
        for core in (DEVICE, *shown) if used else ():
            mine = rows if core == DEVICE else rows[rows["core"] == core]
            series = {
                name: _rates(mine[mine["outward"] == outward], self.window, self.cycles)
                for name, outward in ((READ, False), (WRITE, True))
            }
            yield from self._changes(core, "GM bandwidth, bytes per cycle", series)

    def fillings(self, cores: Sequence[int], target: Target) -> Iterator[Sample]:
        """Yield how full the memories of a cluster are, in bytes.

        Args:
            cores: Numbers of the cores of the cluster.
            target: The machine on which they ran.
        """
        parts = [part.core for part in self.records.parts if part.core.number in cores]
        numbers = {part.core: part.number for part in parts}
        found = occupancy(self.records, target, cores, window=self.window, cycles=self.cycles)
        for (core, name), means in found.items():
            yield from self._changes(
                numbers.get(core, cores[0]), f"{name} in use, bytes", {"bytes": means}
            )

    @property
    def window(self) -> int:
        """Cycles over which a counter tells the mean."""
        return max(1, -(-self.cycles // WINDOWS))

    def _changes(
        self, core: int, counter: str, series: Mapping[str, npt.NDArray[np.float64]]
    ) -> Iterator[Sample]:
        """Yield the values of a counter where they are not what they were before."""
        before: dict[str, float] | None = None
        for number in range(-(-self.cycles // self.window) + 1):
            values = {
                name: float(each[number]) if number < len(each) else 0.0
                for name, each in series.items()
            }
            if values != before:
                yield Sample(core, counter, min(number * self.window, self.cycles), values)
            before = values

    def _told(self, kind: int, cause: int, record: int) -> tuple[str, dict[str, Any], _Ends]:
        """Return name and args of a slice, and the arrows that begin and end there."""
        records = self.records
        part = records.parts[int(records.part[record])]
        instruction = records.instruction(record)
        args: dict[str, Any] = {"task": part.run.index}
        if part.run.blocks > 1:
            args["block"] = f"{part.run.block} of {part.run.blocks}"
        args |= self._facts_of(part.kernel, int(records.item[record]))
        if kind == _FULL:
            args |= {"cause": Cause.QUEUE.value, "queue": Pipe(int(records.pipe[record])).name}
            return FULL_QUEUE, args | {"mnemonic": instruction.mnemonic}, (None, None)
        registers = part.core.stream.registers[record - part.first].tolist()
        names = [f.name for f in instruction.row.fields if f.kind is FieldKind.REG]
        args |= dict(zip(names, registers, strict=False))
        if records.done[record] != records.end[record]:
            args["done_cycle"] = int(records.done[record])
        if kind == _WORK:
            return instruction.mnemonic, args, (None, None)
        args["cause"] = CAUSES[cause].value
        if kind == _STALL:
            name = NO_MEMORY if CAUSES[cause] is Cause.MEMORY else NO_SCALES
            return name, args | {"mnemonic": instruction.mnemonic}, (None, None)
        role, partner = int(records.role[record]), int(records.partner[record])
        if role not in (Role.SET, Role.WAIT):
            return instruction.mnemonic, args, (None, None)
        slot = int(part.core.decoded.flags[int(records.item[record])])
        args["flag"] = flag_text(slot, part.core.core)
        if partner == NONE:
            return instruction.mnemonic, args, (None, None)
        if role == Role.SET:
            return instruction.mnemonic, args, (record, None)
        if source := records.source(partner):
            args["set_by"] = source
        return instruction.mnemonic, args, (None, partner)

    def _facts_of(self, kernel: Kernel, item: int) -> dict[str, Any]:
        """Return what is the same whenever an instruction runs."""
        facts = self._facts.setdefault(id(kernel), {})
        if not facts:
            moved = costs.moved_bytes(kernel).tolist()
            facts |= {at: _static_facts(kernel, at, size) for at, size in enumerate(moved)}
        return facts[item]


def _rows(
    records: Records,
    chosen: Line,
    *,
    pipe: Line | Pipe,
    cause: Cause,
    kind: int,
    start: Line,
    end: Line,
) -> npt.NDArray[Any]:
    """Return a slice for each of some records."""
    rows = np.zeros(len(chosen), _SLICE)
    rows["core"], rows["part"], rows["pipe"] = records.core[chosen], records.part[chosen], pipe
    rows["cause"], rows["kind"] = CAUSES.index(cause), kind
    rows["start"], rows["end"], rows["record"] = start, end, chosen
    return rows


def _of_pipes(records: Records) -> Iterator[npt.NDArray[Any]]:
    """Yield the slices of the pipes that have a queue, and what the scalar unit waits for."""

    def some(chosen: Line, cause: Cause, kind: int, start: Line, end: Line) -> npt.NDArray[Any]:
        pipe = records.pipe[chosen]
        return _rows(records, chosen, pipe=pipe, cause=cause, kind=kind, start=start, end=end)

    role, start, end = records.role, records.start, records.end
    fed = end - records.shared
    busy = fed - records.starved
    work = np.flatnonzero(role == Role.EXECUTE)
    yield some(work, Cause.BUSY, _WORK, start[work], busy[work])
    starved = work[records.starved[work] > 0]
    yield some(starved, Cause.SCALES, _STALL, busy[starved], fed[starved])
    shared = work[records.shared[work] > 0]
    yield some(shared, Cause.MEMORY, _STALL, fed[shared], end[shared])
    for roles, cause in (
        ((Role.SET, Role.WAIT), Cause.FLAG),
        ((Role.BARRIER, Role.BARRIER_ALL), Cause.BARRIER),
    ):
        chosen = np.flatnonzero(np.isin(role, roles))
        yield some(chosen, cause, _SYNC, start[chosen], end[chosen])


def _of_scalar_units(records: Records) -> Iterator[npt.NDArray[Any]]:
    """Yield the slices of scalar units at work, and before full queues."""
    for number, part in enumerate(records.parts):
        chosen = np.arange(part.first, part.last)
        issued = records.entered[chosen]
        before = np.concatenate([[part.run.start], issued])
        began = before + np.append(records.gap[chosen], part.core.stream.tail)
        is_own = records.pipe[chosen] == Pipe.S
        waits = issued > began[:-1]
        stands = np.flatnonzero(waits & ~is_own)
        yield _rows(
            records,
            chosen[stands],
            pipe=Pipe.S,
            cause=Cause.QUEUE,
            kind=_FULL,
            start=began[stands],
            end=issued[stands],
        )
        # Its work is one slice from one thing that is shown, or that takes time, to the next.
        breaks = np.flatnonzero(is_own | waits)
        firsts, lasts = np.append(0, breaks + 1), np.append(breaks, len(chosen))
        rows = np.zeros(len(firsts), _SLICE)
        rows["core"], rows["part"], rows["pipe"] = part.core.number, number, Pipe.S
        rows["cause"], rows["kind"] = CAUSES.index(Cause.BUSY), _ISSUE
        rows["start"], rows["end"] = before[firsts], began[lasts]
        rows["record"] = NONE
        rows["count"] = np.minimum(lasts + 1, len(chosen)) - firsts
        yield rows[rows["end"] > rows["start"]]


def _gm_traffic(records: Records) -> npt.NDArray[Any]:
    """Return core, direction, start, end and bytes of each transfer from or to GM."""
    pieces: list[npt.NDArray[Any]] = []
    known: dict[int, tuple[npt.NDArray[np.bool_], Line]] = {}
    for part in records.parts:
        key = id(part.kernel)
        if key not in known:
            touches = gm_transfers(part.core.decoded)[:, 0] > 0
            known[key] = touches, costs.moved_bytes(part.kernel)
        touches, moved = known[key]
        item = records.item[part.first : part.last]
        chosen = part.first + np.flatnonzero(touches[item])
        rows = np.zeros(len(chosen), _TRAFFIC)
        rows["core"], rows["bytes"] = part.core.number, moved[records.item[chosen]]
        rows["outward"] = np.isin(records.pipe[chosen], _OUTWARD)
        rows["start"] = records.start[chosen]
        # What takes no time moves its bytes in the cycle in which it starts.
        rows["end"] = np.maximum(records.end[chosen], records.start[chosen] + 1)
        pieces.append(rows)
    return np.concatenate(pieces) if pieces else np.zeros(0, _TRAFFIC)


def _rates(rows: npt.NDArray[Any], window: int, cycles: int) -> npt.NDArray[np.float64]:
    """Return the bytes per cycle of transfers, each at its own even rate, in windows of time."""
    count = -(-cycles // window)
    edges = np.minimum(np.arange(count + 1) * window, cycles)
    passed = np.zeros(count + 1)
    for times, sign in ((rows["start"], 1.0), (rows["end"], -1.0)):
        # A transfer has passed (t - start) * rate until t, which is two ramps: one up, one down.
        order = np.argsort(times, kind="stable")
        sorted_times = times[order]
        rate = (rows["bytes"] / (rows["end"] - rows["start"]))[order]
        begun = np.searchsorted(sorted_times, edges)
        rates = np.append(0.0, np.cumsum(rate))
        shifts = np.append(0.0, np.cumsum(rate * sorted_times))
        passed += sign * (edges * rates[begun] - shifts[begun])
    return np.diff(passed) / np.diff(edges)


def _static_facts(kernel: Kernel, item: int, moved: int) -> dict[str, Any]:
    instruction = kernel.program[item]
    facts: dict[str, Any] = {"kernel": kernel.name, "instruction": item}
    span, note = kernel.span(item), kernel.note(item)
    if span.is_known:
        facts["source"] = str(span)
    if note is not None:
        facts["note"] = note
    shape = shape_of(instruction)
    if shape:
        facts["shape"] = " x ".join(str(extent) for extent in shape)
    if moved:
        facts["bytes"] = moved
    for each, value in zip(instruction.row.fields, instruction.values, strict=True):
        if each.kind is not FieldKind.REG:
            facts[each.name] = value if each.enum is None else each.enum(value).name.lower()
    return facts


def shape_of(instruction: Instruction) -> tuple[int, ...]:
    """Return the extents of what an instruction works on, in its own units; none if it has none."""
    row = instruction.row
    for names in _SHAPES:
        if all(row.has(name) for name in names):
            return tuple(instruction[name] for name in names)
    return (instruction["cols"],) if row.has("cols") else ()
