"""What the pipes of a run did, as slices and counters of a timeline.

On every pipe the slices stand apart, and of each kind they add up to what the account of the pipe
says: work, and what was waited for. That a flag is set or taken takes no time: a wait that must wait
is a slice of the cause, with the `wait_flag` at its end. A transfer whose bytes have passed is off its
pipe, though they arrive a latency later; that it was done only then is told by its `done_cycle`.
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
from .slice_table import CAUSES, Kind, slice_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from ...codegen.executable import Kernel
    from ...codegen.isa.program import Instruction
    from ...ir.target import Target
    from .records import Records

    Line = npt.NDArray[np.int64]
    _Ends = tuple[int | None, int | None]

ISSUES, FULL_QUEUE = "issues", "waits for a queue"
STALLS: Final = {
    Cause.FLAG: "waits for a flag",
    Cause.MEMORY: "waits for memory",
    Cause.SCALES: "waits for scales",
}
"""Names of slices that are no instruction: `ISSUES`, `FULL_QUEUE`, and these by what is waited for."""

WINDOWS: Final = 1024
"""A counter of a rate has at most so many values a series: means over equal spans of time."""

READ, WRITE = "read, bytes per cycle", "write, bytes per cycle"
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
        """The slices by their starts, a record array as `slice_table` makes it."""
        return slice_table(self.records)

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
            if kind == Kind.ISSUE:
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
            yield from self._changes(core, "GM bandwidth", series)

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
            owner = numbers.get(core, cores[0])
            yield from self._changes(owner, name, {"in use, bytes": means})

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
        if kind == Kind.FULL:
            args |= {"cause": Cause.QUEUE.value, "queue": Pipe(int(records.pipe[record])).name}
            return FULL_QUEUE, args | {"mnemonic": instruction.mnemonic}, (None, None)
        registers = part.core.stream.registers[record - part.first].tolist()
        names = [f.name for f in instruction.row.fields if f.kind is FieldKind.REG]
        args |= dict(zip(names, registers, strict=False))
        if records.done[record] != records.end[record]:
            args["done_cycle"] = int(records.done[record])
        if kind == Kind.WORK:
            return instruction.mnemonic, args, (None, None)
        args["cause"] = CAUSES[cause].value
        name = instruction.mnemonic
        if kind == Kind.STALL:
            name, args["mnemonic"] = STALLS[CAUSES[cause]], name
        role, partner = int(records.role[record]), int(records.partner[record])
        if role not in (Role.SET, Role.WAIT):
            return name, args, (None, None)
        slot = int(part.core.decoded.flags[int(records.item[record])])
        args["flag"] = flag_text(slot, part.core.core)
        if role == Role.WAIT and partner != NONE and (source := records.source(partner)):
            args["set_by"] = source
        if kind == Kind.STALL or partner == NONE:
            return name, args, (None, None)
        return name, args, (record, None) if role == Role.SET else (None, partner)

    def _facts_of(self, kernel: Kernel, item: int) -> dict[str, Any]:
        """Return what is the same whenever an instruction runs."""
        facts = self._facts.setdefault(id(kernel), {})
        if not facts:
            moved = costs.moved_bytes(kernel).tolist()
            facts |= {at: _static_facts(kernel, at, size) for at, size in enumerate(moved)}
        return facts[item]


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
        if each.kind is FieldKind.VIEW:
            facts["tensor"] = kernel.params[kernel.views[value].param].name
        elif each.kind is not FieldKind.REG:
            facts[each.name] = value if each.enum is None else each.enum(value).name.lower()
    return facts


def shape_of(instruction: Instruction) -> tuple[int, ...]:
    """Return the extents of what an instruction works on, in its own units; none if it has none."""
    row = instruction.row
    for names in _SHAPES:
        if all(row.has(name) for name in names):
            return tuple(instruction[name] for name in names)
    return (instruction["cols"],) if row.has("cols") else ()
