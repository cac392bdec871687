"""Recorded wires of the scale-decode unit, put onto its hardware and compared, cycle by cycle.

The replay is open: every wire into the unit gets, in every cycle, what the trace says, and every
wire out of it must carry, in that cycle, what the trace says; the words of a stream count while they
are on offer. Nothing is waited for, so equality means the same beats in the same cycles.

Whole recordings go through the unit as Verilator compiles it, a few hundred nanoseconds a cycle;
their beginning also through a simulator under cocotb, which is another way of driving it.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...ir.errors import IRValueError
from ...traces.whole import written_whole
from ..emit import verilog
from .run import build_model, run_tests
from .toolchain import Simulator, require
from .verilated_unit import TOP, VerilatedUnit
from .waves import write_fields
from .wires import RESET, checked, flows, inputs, outputs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from .wires import Flow

__all__ = ["COCOTB_LIMIT_CYCLES", "Difference", "Replay", "replay", "replay_cocotb"]

COCOTB_LIMIT_CYCLES: Final = 200_000
"""So many cycles cocotb replays, unless told otherwise: seconds with Verilator."""

_LIBRARY: Final = "Verilator's library"

TRACE_VARIABLE: Final = "SCALEBOX_REPLAY_TRACE"
RESULT_VARIABLE: Final = "SCALEBOX_REPLAY_RESULT"


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where hardware and trace say different things.

    Attributes:
        cycle: In which cycle of the trace, from 0.
        wire: Name of the array, with an index where it has several entries a cycle.
        expected: What the trace says.
        found: What stood on the wire.
    """

    cycle: int
    wire: str
    expected: int
    found: int

    def __str__(self) -> str:
        return f"cycle {self.cycle}: {self.wire} must be {self.expected}, not {self.found}"


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay came to.

    Attributes:
        engine: What ran the hardware, in prose.
        cycles: Cycles that were compared, the one that differs included.
        transfers: Words that passed on each stream in those cycles, by the stream's name, as the
            trace has it.
        difference: The first difference, if there is one.
    """

    engine: str
    cycles: int
    transfers: Mapping[str, int]
    difference: Difference | None

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return self.difference is None


def replay(chunks: Iterable[Mapping[str, npt.ArrayLike]], *, beat_bytes: int) -> Replay:
    """Replay a recording on the unit as Verilator compiles it.

    Args:
        chunks: The recording in pieces of any length, each a trace with all wires of the unit: see
            `wires`. The unit goes on from one piece to the next; it is freshly reset before the
            first.
        beat_bytes: Bytes of a beat.

    Raises:
        IRTypeError: If an array is not of integers.
        IRValueError: If an array is absent, has another shape, or does not fit its wire; or a beat
            cannot have so many bytes.
        MissingSimulatorError: If Verilator, or a tool that it needs, is not installed.
    """
    require(Simulator.VERILATOR)
    streams = flows(beat_bytes)
    transfers = {flow.name: 0 for flow in streams}
    cycles = 0
    with VerilatedUnit(beat_bytes=beat_bytes) as unit:
        for chunk in chunks:
            differs = unit.compare(chunk)
            compared = len(np.asarray(chunk[streams[0].valid.name]))
            if differs is not None:
                compared = differs[0] + 1
            _count(streams, chunk, compared, transfers)
            if differs is not None:
                at, found = differs
                expected = {
                    wire.name: np.asarray(chunk[wire.name])[at] for wire in outputs(streams)
                }
                difference = first_difference(streams, cycles + at, expected, found)
                return Replay(_LIBRARY, cycles + compared, transfers, difference)
            cycles += compared
    return Replay(_LIBRARY, cycles, transfers, None)


def replay_cocotb(
    trace: Mapping[str, npt.ArrayLike],
    *,
    simulator: Simulator | None = None,
    limit_cycles: int = COCOTB_LIMIT_CYCLES,
    waves: Path | None = None,
) -> Replay:
    """Replay the beginning of a recording on a simulator, driven by cocotb.

    Args:
        trace: All wires of the unit: see `wires`. Its beats have as many bytes as its array `a` has
            columns.
        simulator: Where to run; the fastest that is installed if not given.
        limit_cycles: How many cycles to replay at most.
        waves: Where to write what went over the wires (.vcd), each stream a scope with its fields by
            name; it takes Verilator.

    Raises:
        InputError: If the waves cannot be written there.
        IRTypeError: If an array is not of integers.
        IRValueError: If an array is absent, has another shape, or does not fit its wire; or a beat
            cannot have so many bytes.
        MissingSimulatorError: If no simulator, or not the one named, or no cocotb is installed.
        CosimError: If the simulation itself breaks down.
    """
    able = (Simulator.VERILATOR,) if waves is not None else Simulator
    chosen = require(*able) if simulator is None else require(simulator)
    beat_bytes = _beat_bytes_of(trace)
    streams = flows(beat_bytes)
    wires = [*inputs(streams), *outputs(streams)]
    arrays = checked({name: np.asarray(trace[name])[:limit_cycles] for name in trace}, wires)
    model = build_model(
        chosen, verilog(TOP, beat_bytes=beat_bytes), top=TOP, waves=waves is not None
    )
    with tempfile.TemporaryDirectory(prefix="scalebox-replay-") as name:
        given, result = Path(name) / "trace.npz", Path(name) / "result.json"
        dump = Path(name) / "dump.vcd"
        np.savez(given, **arrays)  # pyright: ignore[reportArgumentType]
        run_tests(
            model,
            f"{__package__}.replay_bench",
            search=Path(__file__).parent,
            variables={TRACE_VARIABLE: str(given), RESULT_VARIABLE: str(result)},
            waves=None if waves is None else dump,
        )
        if waves is not None:
            with (
                dump.open(encoding="ascii") as read,
                written_whole(waves) as temporary,
                temporary.open("w", encoding="ascii") as written,
            ):
                write_fields(read, written, streams)
        told = json.loads(result.read_text(encoding="utf-8"))
    difference = None if told["difference"] is None else Difference(**told["difference"])
    transfers = {flow.name: 0 for flow in streams}
    _count(streams, arrays, told["cycles"], transfers)
    return Replay(f"cocotb on {chosen.title}", told["cycles"], transfers, difference)


def first_difference(
    streams: Iterable[Flow],
    cycle: int,
    expected: Mapping[str, npt.NDArray[Any]],
    found: Mapping[str, npt.NDArray[Any]],
) -> Difference | None:
    """Return the first wire, in the order of comparison, on which two cycles differ.

    Args:
        streams: The streams of the unit.
        cycle: The number that the difference shall carry.
        expected: Entries of every output wire.
        found: The same, as the hardware has them; a stream's word may be absent where it is not on
            offer.
    """
    for flow in streams:
        answer = flow.ready if flow.is_input else flow.valid
        on_offer = not flow.is_input and expected[answer.name] and found[answer.name]
        for wire in (answer, *(flow.fields if on_offer else ())):
            left, right = np.asarray(expected[wire.name]), np.asarray(found[wire.name])
            places = np.argwhere(left != right)
            if len(places):
                place = tuple(int(index) for index in places[0])
                name = wire.name + (f"[{', '.join(map(str, place))}]" if place else "")
                return Difference(cycle, name, int(left[place]), int(right[place]))
    return None


def _count(
    streams: Iterable[Flow],
    trace: Mapping[str, npt.ArrayLike],
    cycles: int,
    transfers: dict[str, int],
) -> None:
    for flow in streams:
        valid, ready = (np.asarray(trace[wire.name])[:cycles] for wire in (flow.valid, flow.ready))
        passed = valid.astype(np.bool_) & ready.astype(np.bool_)
        if RESET in trace:
            passed &= ~np.asarray(trace[RESET])[:cycles].astype(np.bool_)
        transfers[flow.name] += int(passed.sum())


def _beat_bytes_of(trace: Mapping[str, npt.ArrayLike]) -> int:
    shape = np.shape(trace.get("a", ()))
    if len(shape) != 2:
        message = (
            f"A trace of the unit must hold an array 'a' of shape (cycles, beat bytes), not {shape}"
        )
        raise IRValueError(message)
    return shape[1]
