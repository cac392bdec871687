"""What an opened timeline of a run must show, whoever opens it."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import scalebox
from scalebox.app.account.core_places import labels
from scalebox.app.account.trace import SHOWN, timeline_of
from scalebox.app.kernel_file import machine_of_kernel
from scalebox.app.result import Result
from scalebox.codegen.isa.vocabulary import Pipe
from scalebox.ir.language.text import load_file
from scalebox.sim.account.records import COLUMNS, NONE, Records, records_of
from scalebox.sim.decode import Role

from ...traces.importer import Opened, assert_nested_or_apart

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SMALL: dict[str, dict[str, int | str]] = {
    "mxfp8_performance": {"M": 144, "K": 1160, "N": 264, "GRID_M": 2, "GRID_N": 1},
    "mxfp4_performance": {"M": 272, "K": 840, "N": 40, "GRID_M": 1, "GRID_N": 1},
}
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


class Drawn(NamedTuple):
    """A run and its timeline, a Chrome trace."""

    result: Result
    records: Records
    trace: dict[str, Any]


def drawn(result: Result) -> Drawn:
    """Return a run with its timeline."""
    records = records_of(result.simulation, result.target)
    timeline = timeline_of(result.simulation, result.target, records)
    assert SHOWN not in timeline.notes
    return Drawn(result, records, timeline.as_trace())


@cache
def of_example(name: str) -> Drawn:
    """Return the run of an example, at a small size."""
    kernel = load_file(EXAMPLES / f"{name}.py", params=SMALL.get(name))
    run = scalebox.run(kernel.program, {}, machine=machine_of_kernel(kernel), functional=False)
    return drawn(run)


def assert_kept(run: Drawn, found: Opened) -> None:
    """Everything in the file is understood and shown, where and when the file says."""
    assert not found.errors
    assert_nested_or_apart(found)
    written = [record for record in run.trace["traceEvents"] if record["ph"] == "X"]
    assert len(found.slices) == len(written) > 0
    for each in found.slices:
        start, end = each.args["start_cycle"], each.args["end_cycle"]
        assert each.depth == 0, "what happens on a pipe stands apart"
        assert each.ts // 1000 == start
        assert each.end == (each.ts if end == start else end * 1000)
        assert each.args["cycles"] == end - start


def assert_adds_up(run: Drawn, found: Opened) -> None:
    """Cycles by core, pipe and cause are those of the report; on a thread, so do the lengths."""
    sums: dict[tuple[str, str, str], int] = {}
    lengths: dict[tuple[str, str, str], int] = {}
    for each in found.slices:
        key = each.process, each.thread.split(" ")[0], each.category
        sums[key] = sums.get(key, 0) + each.args["cycles"]
        # What begins behind what takes no time is shown so much shorter.
        lengths[key] = lengths.get(key, 0) + -(-each.dur // 1000)
    simulation = run.result.simulation
    assert sums == lengths
    for core, account in zip(labels(simulation.cores), simulation.accounts, strict=True):
        for pipe in set(Pipe) - {Pipe.ALL}:
            for cause, column in COLUMNS.items():
                told = sums.pop((core, pipe.name, cause.value), 0)
                assert told == account[pipe, column], (core, pipe, cause)
    assert not sums


def assert_arrows(run: Drawn, found: Opened) -> None:
    """Every wait that took a set has one arrow, from that set and not back in time."""
    records = run.records
    waits = np.flatnonzero((records.role == Role.WAIT) & (records.partner != NONE)).tolist()
    shown = {(tail.args["arrow"], head.args["arrow"]): (tail, head) for tail, head in found.arrows}
    assert len(found.arrows) == len(shown) == len(waits)
    assert len([each for each in found.slices if "arrow" in each.args]) == 2 * len(waits)
    for wait in waits:
        number = int(records.partner[wait])
        ends = shown[number, number]
        assert ends[0].ts <= ends[1].ts
        assert ends[0].args["flag"] == ends[1].args["flag"]
        for each, record in zip(ends, (number, wait), strict=True):
            assert each.name == records.instruction(record).mnemonic
            assert each.args["instruction"] == records.item[record]
            assert each.args["start_cycle"] == each.args["end_cycle"] == records.end[record]
            assert each.thread.split(" ")[0] == Pipe(int(records.pipe[record])).name
            assert each.process == labels(run.result.simulation.cores)[int(records.core[record])]


def assert_counters(found: Opened) -> None:
    """Counters tell what they count and in which unit, once."""
    ways = {f"GM bandwidth {way}, bytes per cycle" for way in ("read", "write")}
    memories = {
        f"{name} in use, bytes"
        for name in ("L1", "L0A", "L0B", "L0C", "SCALE_A", "SCALE_B", "UB", "BIAS")
    }
    assert ways < found.counters <= ways | memories
