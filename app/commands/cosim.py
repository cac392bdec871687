"""The cosim command: the scales of a run through the scale-decode unit in hardware."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.errors import InputError
from ...traces.bundle import is_bundle, load_bundle
from .run import RunOptions, refuse_options, run_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from ...rtl.cosim.replay import Difference, Replay
    from ...sim.scales.stream import ScaleStream

_MAD = "mad_mx"
_STREAMS = {
    "start": ("mad", ""),
    "a_request": ("request", " A"),
    "b_request": ("request", " B"),
    "a": ("beat", " A"),
    "b": ("beat", " B"),
    "o": ("record", ""),
}
"""What passes on each stream of the unit, in prose."""


@dataclass(frozen=True, kw_only=True)
class CosimReport:
    """What a co-simulation came to.

    Attributes:
        title: What ran, or the bundle from which the scales come.
        stream: What was replayed.
        replays: One an engine.
        run_ok: Whether the outputs of the run are golden; None where nothing ran.
        bundle: Where the run was saved, or was before.
        waves: Where the waves were written, if they were.
    """

    title: str
    stream: ScaleStream
    replays: tuple[Replay, ...]
    run_ok: bool | None
    bundle: Path
    waves: Path | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing differs anywhere."""
        return self.run_ok is not False and all(each.equal for each in self.replays)

    @property
    def first(self) -> Difference | None:
        """The first difference that any engine found."""
        found = [each.difference for each in self.replays if each.difference is not None]
        return min(found, key=lambda difference: difference.cycle, default=None)

    def where(self, difference: Difference) -> dict[str, int]:
        """Return the mad of a difference, its task and instruction, and the cycle since its start."""
        from ...sim.scales.stream import INSTRUCTION, TASK

        mad, cycle = self.stream.mad_at(difference.cycle)
        line = self.stream.mads[mad].tolist()
        return {
            "mad": mad,
            "task": line[TASK],
            "instruction": line[INSTRUCTION],
            "cycle_of_mad": cycle,
        }

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        first, whole = self.first, self.replays[0]
        return {
            "ok": self.ok,
            "kernel": self.title,
            "beat_bytes": self.stream.around.beat_bytes,
            "mads": len(self.stream.mads),
            "cycles": self.stream.cycles,
            "beats": whole.transfers["a"] + whole.transfers["b"],
            "records": whole.transfers["o"],
            "replays": [
                {
                    "engine": each.engine,
                    "cycles": each.cycles,
                    "transfers": dict(each.transfers),
                    "equal": each.equal,
                }
                for each in self.replays
            ],
            "first_difference": None
            if first is None
            else {
                **self.where(first),
                "cycle": first.cycle,
                "wire": first.wire,
                "expected": first.expected,
                "found": first.found,
            },
            "outputs_equal": self.run_ok,
            "bundle": str(self.bundle),
            "waves": None if self.waves is None else str(self.waves),
        }

    def lines(self) -> Iterator[str]:
        """Yield the report as text for a terminal of 80 columns."""
        stream = self.stream
        mads = _counted(len(stream.mads), "mad")
        beat = f"beats of {stream.around.beat_bytes} bytes"
        yield f"{self.title}: {mads}, {stream.cycles:,} cycles of the scale-decode unit, {beat}"
        yield ""
        for each in self.replays:
            verdict = "equal" if each.equal else "DIFFERENT"
            share = "" if each.cycles == stream.cycles else f" of {stream.cycles:,}"
            yield f"{verdict}   {each.cycles:,}{share} cycles, {each.engine}:"
            passed = (
                _counted(each.transfers[name], noun) + side
                for name, (noun, side) in _STREAMS.items()
            )
            yield f"        {', '.join(passed)}"
        if (first := self.first) is not None:
            place = self.where(first)
            yield ""
            yield f"first   {first}"
            yield (
                f"        that is cycle {place['cycle_of_mad']:,} of mad {place['mad']:,} "
                f"(task {place['task']}, instruction {place['instruction']})"
            )
        if self.run_ok is False:
            yield ""
            yield "golden  DIFFERENT: the outputs of the run are not golden; scalebox run tells where"
        yield ""
        yield f"bundle  {self.bundle}"
        if self.waves is not None:
            yield f"waves   {self.waves}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def cosimulate(options: RunOptions, *, limit: int, waves: Path | None = None) -> CosimReport:
    """Run a kernel, and replay the scales that its mads consumed through the hardware.

    All of them go through the unit as Verilator compiles it, the first cycles also through cocotb.
    A bundle that holds recorded scales is not run again.

    Args:
        options: As for `scalebox run`.
        limit: Cycles that cocotb replays.
        waves: Where to write what cocotb saw.

    Raises:
        MissingSimulatorError: If a simulator is missing.
        UserError: As for `scalebox run`; also if the machine has no unit that can be built, the
            kernel no mad, a bundle comes with an option of a run, or the waves cannot be written,
            which is looked at before anything runs.
    """
    from ...rtl.cosim.replay import replay, replay_cocotb
    from ...rtl.cosim.toolchain import Simulator, require, require_cocotb

    if waves is not None:
        _check_waves(waves)
    require(Simulator.VERILATOR)
    require_cocotb()
    stream, run_ok, bundle = _recorded(options)
    beat_bytes = stream.around.beat_bytes
    whole = replay((chunk.trace for chunk in stream.chunks()), beat_bytes=beat_bytes)
    beginning = replay_cocotb(_beginning(stream, limit), limit_cycles=limit, waves=waves)
    return CosimReport(
        title=str(options.kernel),
        stream=stream,
        replays=(whole, beginning),
        run_ok=run_ok,
        bundle=bundle,
        waves=waves,
    )


def _check_waves(waves: Path) -> None:
    """Refuse waves of another kind, or where no file can be written; leave nothing there."""
    from ...rtl.emit.folder import check_folder

    if waves.suffix != ".vcd":
        message = f"The file of the waves must end in .vcd, not be called {waves.name!r}"
        raise InputError(message)
    check_folder(waves.parent, [waves.name], force=True)


def _recorded(options: RunOptions) -> tuple[ScaleStream, bool | None, Path]:
    """Return the scales of a run, whether its outputs are golden, and its bundle."""
    if is_bundle(options.kernel):
        reason = "of a bundle, nothing is run, and its scales are replayed as they were recorded"
        refuse_options(options, reason, hint="scalebox cosim KERNEL.py takes it")
        return _of_bundle(options.kernel), None, options.kernel
    report = run_kernel(replace(options, record_scales=True))
    stream = report.result.scales
    assert stream is not None, "scales are recorded where that is asked for"
    assert report.bundle is not None, "a run leaves a bundle"
    if not len(stream.mads):
        message = (
            f"{options.kernel} must multiply with scales to be co-simulated, but it ran no {_MAD}"
        )
        raise InputError(message)
    return stream, report.ok, report.bundle


def _of_bundle(path: Path) -> ScaleStream:
    from ...sim.scales.file import stream_from_bytes

    scales = load_bundle(path).scales
    if scales is None:
        message = f"The bundle {str(path)!r} must hold recorded scales; it has none"
        raise InputError(message, hint="scalebox cosim KERNEL.py --out DIR makes one that does")
    stream = stream_from_bytes(scales)
    if not len(stream.mads):
        message = f"The scales of {str(path)!r} must be those of at least one mad, not of none"
        raise InputError(message)
    return stream


def _beginning(stream: ScaleStream, limit: int) -> dict[str, npt.NDArray[Any]]:
    """Return the wires of the first mads, up to the one that brings them to `limit` cycles."""
    traces: list[dict[str, npt.NDArray[Any]]] = []
    for chunk in stream.chunks():
        traces.append(chunk.trace)
        if chunk.first_cycle + len(chunk.trace["a"]) >= limit:
            break
    return {name: np.concatenate([trace[name] for trace in traces]) for name in traces[0]}
