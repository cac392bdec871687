"""The shipped benches hold units to their cycles: one that is right, but slow, must fail.

The units here are not ours: they know the answers, and give them when a test says.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from math import prod
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Fragment

from scalebox.app.rtl_vectors import document, vectors
from scalebox.app.rtl_vectors.products import cube_cases
from scalebox.rtl.cosim import shipped_bench
from scalebox.rtl.cube.cube import Cube
from scalebox.rtl.dot.unit import UNIT_LATENCY_CYCLES, DotUnit
from scalebox.rtl.emit import Choice
from scalebox.rtl.emit.convert import to_verilog
from scalebox.rtl.emit.ports import ports
from scalebox.rtl.emit.units import Built

BENCH = Path(shipped_bench.__file__)
CUBE_LATENCY_CYCLES = 9
SINGLE = ("E5M2 by E5M2, 1 x 1 x 1, onto acc", "E5M2 by E4M3, 1 x 161 x 1, onto acc")
"""Mads that a cube of one dot unit can do, of 1 step and of 6."""


def told_of(unit: str, component: Any, names: tuple[str, ...], patch: pytest.MonkeyPatch) -> Any:
    """Return some cases of the vectors of a unit, whose own Verilog is not written for that."""

    Fragment.get(component, None)  # Amaranth minds components that nobody uses

    def not_written(*_: object) -> Built:
        return Built("", {}, component.latency_cycles, ports(component))

    patch.setattr(document, "built", not_written)
    told = json.loads(vectors(unit, Choice()))
    told["cases"] = [case for case in told["cases"] if case["name"] in names]
    assert len(told["cases"]) == len(names)
    return told


def ran(folder: Path, told: Any, verilog: str) -> str:
    """Run the bench of a unit, and return what it says."""
    unit = told["unit"]
    (folder / f"{unit}.v").write_text(verilog)
    (folder / f"{unit}_vectors.json").write_text(json.dumps(told))
    bench = shutil.copy(BENCH, folder / f"{unit}_bench.py")
    command = [sys.executable, bench]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout


def module(told: Any, body: str) -> str:
    """Return a Verilog module with the ports of a unit."""
    lines = ["input clk", "input rst"]
    for port in told["ports"]:
        name, is_input = port["name"], port["input"]
        bits = {each["name"]: each["bits"] * prod(each["shape"]) for each in port["fields"]}
        if port["kind"] == "stream":
            width = sum(bits.values())
            lines += declared(
                name, {"payload": width, "valid": 1}, "input" if is_input else "output"
            )
            lines += declared(name, {"ready": 1}, "output" if is_input else "input")
        elif port["kind"] == "memory":
            read = {"data": bits.pop("data")} if is_input else {}
            lines += [*declared(name, read, "input"), *declared(name, bits, "output")]
        else:
            lines += [f"output {name}"]
    return f"module {told['unit']}({', '.join(lines)});\n{body}\nendmodule\n"


def declared(port: str, wires: dict[str, int], direction: str) -> list[str]:
    return [f"{direction} [{bits - 1}:0] {port}__{wire}" for wire, bits in wires.items()]


def other_dot(told: Any, *, latency: int, bubble: bool) -> str:
    """Return a dot unit that gives the sums of a case so many cycles after their last steps."""
    words = told["cases"][0]["words"]
    lasts = sum(step["last"] << place for place, step in enumerate(words["i"]))
    sums = "".join(f"{bits:08x}" for bits in reversed(words["o"]))
    ready = "count != 7" if bubble else "1'b1"
    return module(
        told,
        f"""
  wire [{len(words["i"]) - 1}:0] lasts = {len(words["i"])}'d{lasts};
  wire [{len(words["o"]) * 32 - 1}:0] sums = {len(words["o"]) * 32}'h{sums};
  reg [15:0] steps, given, waiting;
  reg [2:0] count;
  reg [{latency - 2}:0] due;
  wire taken = i__valid & i__ready, left = o__valid & o__ready;
  assign i__ready = {ready};
  assign o__valid = waiting != 0;
  assign o__payload = sums[given * 32 +: 32];
  always @(posedge clk) begin
    count <= rst ? 0 : count + 1;
    steps <= rst ? 0 : steps + taken;
    given <= rst ? 0 : given + left;
    due <= rst ? 0 : {{due, taken & lasts[steps]}};
    waiting <= rst ? 0 : waiting + due[{latency - 2}] - left;
  end""",
    )


def other_cube(told: Any, *, cycles: int, late: int = 0) -> str:
    """Return a cube that writes the result of a mad of one word in so many cycles.

    Args:
        told: The vectors.
        cycles: From that which takes the mad to that of the write, both counted.
        late: Cycles after the write in which it says that it is done.
    """
    [word] = told["cases"][0]["memories_after"]["l0c"]
    result = int.from_bytes(bytes.fromhex(word), "little")
    idle = "".join(
        f"  assign {port['name']}__enable = 1'b0;\n"
        for port in told["ports"]
        if port["kind"] == "memory" and port["input"]
    )
    return module(
        told,
        f"""
{idle}
  reg [15:0] count;
  assign mad__ready = count == 0;
  assign l0c_write__enable = count == {cycles - 1};
  assign l0c_write__address = 0;
  assign l0c_write__rows = 1;
  assign l0c_write__columns = 1;
  assign l0c_write__data = {16 * 16 * 32}'h{result:x};
  assign done = count == {cycles - 1 + late};
  always @(posedge clk)
    count <= rst | done ? 0 : count + (count != 0 | mad__valid);
""",
    )


@pytest.mark.parametrize(
    ("latency", "bubble", "fault"),
    [
        (UNIT_LATENCY_CYCLES, False, None),
        (
            UNIT_LATENCY_CYCLES + 1,
            False,
            r"o, word 0, must come 6 cycles after word \d+ of i, not 7",
        ),
        (
            UNIT_LATENCY_CYCLES - 1,
            False,
            r"o, word 0, must come 6 cycles after word \d+ of i, not 5",
        ),
        (UNIT_LATENCY_CYCLES, True, "i must take a word every cycle; word "),
    ],
)
def test_a_sum_comes_the_stated_cycles_after_its_last_step_and_a_step_is_taken_every_cycle(
    latency: int,
    bubble: bool,
    fault: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    icarus: str,
) -> None:
    told = told_of("dot", DotUnit(), ("E4M3 by E4M3, finite numbers",), monkeypatch)
    said = ran(tmp_path, told, other_dot(told, latency=latency, bubble=bubble))
    assert f"dot on icarus: {1 + (fault is None)} of 2 tests passed" in said, said[-2000:] + icarus
    assert fault is None or re.search(fault, said), said


@pytest.mark.parametrize(
    ("cycles", "late", "passed", "fault"),
    [
        (CUBE_LATENCY_CYCLES + 1, 0, 2, ""),
        (CUBE_LATENCY_CYCLES + 2, 0, 1, "there must be 1 cycles beside 9, not 2"),
        (CUBE_LATENCY_CYCLES, 0, 1, "there must be 1 cycles beside 9, not 0"),
        (CUBE_LATENCY_CYCLES, 1, 0, "done must come in the cycle of the last write"),
    ],
)
def test_a_mad_takes_the_stated_cycles_beside_its_steps(
    cycles: int,
    late: int,
    passed: int,
    fault: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    icarus: str,
) -> None:
    told = told_of("cube", Cube(rows=1, columns=1), SINGLE[:1], monkeypatch)
    said = ran(tmp_path, told, other_cube(told, cycles=cycles, late=late))
    assert f"cube on icarus: {passed} of 2 tests passed" in said, said[-2000:] + icarus
    assert fault in said, said


@pytest.mark.slow
def test_our_cube_keeps_its_cycles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, icarus: str
) -> None:
    """With one dot unit, which is enough for a mad of one row and column, and soon simulated."""
    small = Cube(rows=1, columns=1)
    told = told_of("cube", small, SINGLE, monkeypatch)
    assert [case["steps"] for case in told["cases"]] == [1, 6]
    said = ran(tmp_path, told, to_verilog(small, name="cube"))
    assert "cube on icarus: 2 of 2 tests passed" in said, said[-2000:] + icarus


@pytest.mark.parametrize("beat_bytes", [8, 16, 32])
def test_the_vectors_say_how_long_a_cube_waits_for_boxes(beat_bytes: int) -> None:
    """A box takes 32 / beat cycles, and brings the scales of two steps of 8-bit elements."""
    beats = 32 // beat_bytes
    cases = {case["name"]: case for case in cube_cases(Choice(beat_bytes=beat_bytes))}
    wide = cases[SINGLE[1]]
    assert (wide["steps"], wide["starved_cycles"]) == (6, 2 * max(0, beats - 2))
    narrow = cases["E1M2 by E2M1, 16 x 224 x 40, onto zero"]
    assert (narrow["steps"], narrow["starved_cycles"]) == (12, 11 * (beats - 1))
