"""How fast the hardware runs: the scale-decode unit, its model, the pairs, the cube, and cocotb.

Run it as `python benchmarks/rtl.py [--json]`. Rates are cycles a second, the best of a few tries on
builds that are there already; the first run of a version compiles them, which takes a minute. The
unit's model takes handshakes and start words, and steps; decoding, it takes beats as well and makes
the record of every cycle, into arrays. The Verilated unit takes the same as wires, and reads and
compares every wire that it drives in every cycle, as a co-simulation does. The arrays of records are
there already on both sides; a model that also had to make them anew would lose more time to that than
to stepping. The bare array is the cube's 256 processing elements with nothing around them.
"""

import tempfile
from pathlib import Path

import numpy as np
from rows import Row, Times, report, wants_json

from scalebox.rtl import evaluate_scale_pairs
from scalebox.rtl.cosim.cube_rate import bare_array_rate, cube_rate
from scalebox.rtl.cosim.run import build_model, run_tests
from scalebox.rtl.cosim.toolchain import Simulator
from scalebox.rtl.cosim.verilated_unit import VerilatedUnit
from scalebox.rtl.emit import verilog
from scalebox.sim.scales import unit as scale_decode
from scalebox.sim.scales.feed import Surroundings, boxes_of, feed
from scalebox.sim.scales.wires import record_trace, trace_of

MODEL_TIMES = 8.0
MODEL_RATE = 1e8
PAIRS_SECONDS = 1.0
CUBE_SHARE = 0.6
CUBE_TRIES = 5
COCOTB_SECONDS = 0.6

BEAT_BYTES = 32
MADS = np.array([(16, 16, 128, 0)], np.uint16)
EMPTY_BENCH = '''"""A bench that does nothing."""
import cocotb


@cocotb.test()
async def nothing(dut):
    """Pass."""
'''


def unit_rows() -> list[Row]:
    """Return the rate of the unit's model, records decoded, beside that of the Verilated unit."""
    around = Surroundings(BEAT_BYTES, 1, 0)
    handshakes = feed(MADS, around)
    rng = np.random.default_rng(0)
    boxes = rng.integers(0, 256, (2, int(boxes_of(MADS).sum()), 32), np.uint8)
    trace = trace_of(handshakes, MADS, boxes[0], boxes[1], beat_bytes=BEAT_BYTES)
    cycles = len(handshakes.given)
    start = np.zeros((cycles, MADS.shape[1]), np.uint16)
    start[:] = MADS[0]
    beats = boxes.reshape(2, -1, BEAT_BYTES)
    room = scale_decode.Answer.room(cycles)
    records = record_trace(
        scale_decode.step(handshakes.given, start, beat_bytes=BEAT_BYTES), *beats
    )
    assert all(np.array_equal(array, trace[name]) for name, array in records.items())

    def step() -> None:
        scale_decode.step(handshakes.given, start, beat_bytes=BEAT_BYTES, room=room)

    def decode() -> None:
        found = scale_decode.step(handshakes.given, start, beat_bytes=BEAT_BYTES, room=room)
        record_trace(found, *beats, room=records)

    stepping = cycles / Times.of(step, tries=5).best
    model = cycles / Times.of(decode, tries=5).best
    with VerilatedUnit(beat_bytes=BEAT_BYTES) as unit:

        def compare() -> None:
            assert unit.compare(trace) is None, "a mad that is over leaves the unit as it was"

        hardware = cycles / Times.of(compare, tries=3).best
    return [
        Row(name="unit model, stepping", unit="1/s", target=MODEL_RATE, figure=stepping),
        Row(
            name="unit model, decoding",
            unit="1/s",
            target=MODEL_TIMES * hardware,
            figure=model,
            beside={"verilated_unit_comparing": hardware, "times": model / hardware},
        ),
    ]


def pairs_row() -> Row:
    """Return the time of all pairs of scales through the Verilated RTL."""
    codes = np.arange(256)
    seconds = Times.of(lambda: evaluate_scale_pairs(codes[:, None], codes), tries=5).best
    return Row(
        name="65,536 scale pairs",
        unit="s",
        target=PAIRS_SECONDS,
        figure=seconds,
        less_is_better=True,
    )


def cube_row() -> Row:
    """Return the rate of the Verilated cube beside that of its bare elements, the median of pairs."""
    pairs = [(bare_array_rate(), cube_rate()) for _ in range(CUBE_TRIES)]
    bare, whole = sorted(pairs, key=lambda pair: pair[1] / pair[0])[CUBE_TRIES // 2]
    return Row(
        name="verilated cube",
        unit="1/s",
        target=CUBE_SHARE * bare,
        figure=whole,
        beside={"bare_array": bare, "share": whole / bare},
    )


def cocotb_rows() -> list[Row]:
    """Return what a module of cocotb tests takes to start and end, on either simulator."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "empty_bench.py").write_text(EMPTY_BENCH)
        for simulator in Simulator:
            model = build_model(simulator, verilog("scale_pair"), top="scale_pair")
            seconds = Times.of(
                lambda model=model: run_tests(model, "empty_bench", search=Path(name)), tries=5
            ).best
            rows.append(
                Row(
                    name=f"cocotb start, {simulator.title}",
                    unit="s",
                    target=COCOTB_SECONDS,
                    figure=seconds,
                    less_is_better=True,
                )
            )
    return rows


def main() -> None:
    """Measure and print."""
    as_json = wants_json("Measure the RTL's simulation rates beside their models.")
    report([*unit_rows(), pairs_row(), cube_row(), *cocotb_rows()], as_json=as_json)


if __name__ == "__main__":
    main()
