"""The inside of a cocotb replay: a recording onto the wires, and the wires against the recording.

A difference is a result, which `replay` reads from a file; what makes this test fail is trouble of
another kind.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from .replay import RESULT_VARIABLE, TRACE_VARIABLE, first_difference
from .wires import RESET, flows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from .wires import Flow

_PERIOD_NS = 10
_RESET_CYCLES = 2


class _Driven:
    """A wire into the unit and what it carries, cycle by cycle; written only when it changes."""

    def __init__(self, handle: Any, words: Sequence[int]) -> None:
        self._handle = handle
        self._words = words
        self._before: int | None = None

    def put(self, cycle: int) -> None:
        word = self._words[cycle]
        if word != self._before:
            self._handle.value = word
            self._before = word


class _Compared:
    """The answering wire of a stream, and its word where it flows out of the unit.

    Bits are compared as text, which is what a simulator tells of them.
    """

    def __init__(self, dut: Any, flow: Flow, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.flow = flow
        wire = flow.ready if flow.is_input else flow.valid
        self.name = wire.name
        self.answer = getattr(dut, f"{flow.name}__{'ready' if flow.is_input else 'valid'}")
        self.word = None if flow.is_input else getattr(dut, f"{flow.name}__payload")
        self._answers = ["01"[answer] for answer in arrays[wire.name].tolist()]
        words = [] if flow.is_input else flow.pack(arrays)
        self._words = [format(word, f"0{flow.bits}b") for word in words]

    def same(self, cycle: int) -> bool:
        expected = self._answers[cycle]
        if str(self.answer.value) != expected:
            return False
        if self.word is None or expected == "0":
            return True
        return str(self.word.value) == self._words[cycle]

    def found(self) -> dict[str, npt.NDArray[Any]]:
        """Return the entries that stand on these wires now."""
        entries = {self.name: np.array(_number(self.answer))}
        return entries if self.word is None else entries | self.flow.unpack(_number(self.word))


def _number(handle: Any) -> int:
    bits = str(handle.value)
    assert not set(bits) - {"0", "1"}, f"a wire must be 0 or 1 in every bit, not {bits}"
    return int(bits, 2)


@cocotb.test()
async def the_wires_carry_what_was_recorded(dut: Any) -> None:
    """Replay the trace that the environment names, and write what came of it."""
    with np.load(os.environ[TRACE_VARIABLE]) as file:
        arrays = {name: file[name] for name in file.files}
    streams = flows(arrays["a"].shape[1])
    driven = [_Driven(dut.rst, arrays[RESET].astype(int).tolist())]
    for flow in streams:
        wire, role = (flow.valid, "valid") if flow.is_input else (flow.ready, "ready")
        handle = getattr(dut, f"{flow.name}__{role}")
        driven.append(_Driven(handle, arrays[wire.name].astype(int).tolist()))
        if flow.is_input:
            driven.append(_Driven(getattr(dut, f"{flow.name}__payload"), flow.pack(arrays)))
    compared = [_Compared(dut, flow, arrays) for flow in streams]

    dut.rst.value = 1
    Clock(dut.clk, _PERIOD_NS, "ns").start()
    await ClockCycles(dut.clk, _RESET_CYCLES)
    cycles = len(arrays[RESET])
    difference = None
    edge = RisingEdge(dut.clk)
    for cycle in range(cycles):
        for wire in driven:
            wire.put(cycle)
        # Right after the edge the wires still hold what the edge saw.
        await edge
        if not all(wire.same(cycle) for wire in compared):
            expected = {name: array[cycle] for name, array in arrays.items()}
            found = {name: entry for wire in compared for name, entry in wire.found().items()}
            difference = first_difference(streams, cycle, expected, found)
            assert difference is not None, "words that differ must differ in a field"
            cycles = cycle + 1
            break
    told = {
        "cycles": cycles,
        "difference": None if difference is None else asdict(difference),
    }
    Path(os.environ[RESULT_VARIABLE]).write_text(json.dumps(told), encoding="utf-8")
