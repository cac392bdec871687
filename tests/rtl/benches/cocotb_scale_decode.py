"""cocotb tests of the scale-decode unit; a simulator runs them, pytest starts the simulator.

What was exercised is counted in a file that the environment names; pytest asks that nothing is
missing there.
"""

import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles
from scale_decode_spec import Box, Half, Mad, Record, every_code, random_codes

from scalebox.rtl.cosim.bench import PORTS, ScaleDecodeBench, bench_rng, stall_coverage
from scalebox.rtl.cosim.coverage import Coverage
from scalebox.rtl.cosim.streams import bursts, sometimes

CLASSES = {
    "least": range(1),
    "below one": range(1, 127),
    "one": range(127, 128),
    "above one": range(128, 254),
    "greatest": range(254, 255),
    "NaN": range(255, 256),
}
CLASS_OF = {code: name for name, codes in CLASSES.items() for code in codes}
MADS = list(itertools.product(("single", "paired"), ("even", "odd"), ("one tile", "tiles")))

counted: dict[int, Coverage] = {}


def coverage_of(dut: Any) -> Coverage:
    """The counts of this simulation, which all its tests share."""
    beat_bytes = len(dut.a__payload) // 8
    groups: dict[str, Any] = {
        "code": [(side, code) for side in "ab" for code in range(256)],
        "pair": itertools.product(CLASSES, CLASSES),
        "mad": MADS,
    }
    return counted.setdefault(beat_bytes, Coverage(groups | stall_coverage(beat_bytes)))


def codes_of(half: Half) -> tuple[set[int], set[int]]:
    a, b, _, _ = half
    return {exponent + 127 for exponent in a}, {exponent + 127 for exponent in b}


def count(coverage: Coverage, mads: list[Mad], records: list[Record]) -> None:
    for mad in mads:
        tiles = "tiles" if mad.row_tiles * mad.column_tiles > 1 else "one tile"
        parity = "odd" if mad.groups % 2 else "even"
        coverage.hit("mad", ("paired" if mad.paired else "single", parity, tiles))
    for record in records:
        for half in record.halves[: 1 + record.second]:
            a, b = codes_of(half)
            for side, codes in (("a", a), ("b", b)):
                for code in codes:
                    coverage.hit("code", (side, code))
            classes = ({CLASS_OF[code] for code in codes} for codes in (a, b))
            for pair in itertools.product(*classes):
                coverage.hit("pair", pair)


def bench_of(dut: Any, boxes: dict[Box, list[int]], **pauses: Iterator[bool]) -> ScaleDecodeBench:
    return ScaleDecodeBench(dut, boxes, pauses=pauses, coverage=coverage_of(dut))


def send(bench: ScaleDecodeBench, mads: list[Mad]) -> None:
    for mad in mads:
        bench.send(
            row_tiles=mad.row_tiles,
            column_tiles=mad.column_tiles,
            groups=mad.groups,
            paired=mad.paired,
        )


def plain(words: list[dict[str, Any]]) -> list[Record]:
    """Records as the specification writes them."""

    def half(word: dict[str, Any], which: int) -> Half:
        names = ("o_a_exponent", "o_b_exponent", "o_a_nan", "o_b_nan")
        a, b, a_nan, b_nan = (tuple(word[name][which].tolist()) for name in names)
        return a, b, a_nan, b_nan

    return [
        Record(
            group=int(word["o_group"]),
            second=bool(word["o_second"]),
            last=bool(word["o_last"]),
            end=bool(word["o_end"]),
            halves=(half(word, 0), half(word, 1)),
        )
        for word in words
    ]


async def run(
    dut: Any, bench: ScaleDecodeBench, mads: list[Mad], boxes: dict[Box, list[int]]
) -> None:
    """Send mads, and hold whatever leaves the unit against the specification."""
    before = {port: len(bench.monitors[port].transfers) for port in PORTS}
    expected = [record for mad in mads for record in mad.records(boxes)]
    send(bench, mads)
    await bench.records(before["o"] + len(expected))
    assert plain(bench.taken("o", since=before["o"])) == expected
    assert len(bench.monitors["start"].transfers) == before["start"] + len(mads)
    for side in "ab":
        asked = [box for mad in mads for box in mad.boxes(side)]
        words = bench.taken(f"{side}_request", since=before[f"{side}_request"])
        names = (f"{side}_request_tile", f"{side}_request_block")
        assert [(side, *(int(word[name]) for name in names)) for word in words] == asked
        beats = bench.taken(side, since=before[side])
        codes = np.concatenate([beat[side] for beat in beats]).tolist()
        assert codes == [code for box in asked for code in boxes[box]]
    coverage = coverage_of(dut)
    count(coverage, mads, expected)
    if "SCALEBOX_COVERAGE" in os.environ:
        coverage.save(Path(os.environ["SCALEBOX_COVERAGE"]))


def patterns(how: str, rng: random.Random) -> Iterator[bool]:
    match how:
        case "often":
            return sometimes(0.6, rng)
        case "bursts":
            return bursts(14, rng)
        case _:
            return itertools.repeat(False)


def random_mads(rng: random.Random, number: int) -> list[Mad]:
    return [
        Mad(rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 5), rng.random() < 0.5)
        for _ in range(number)
    ]


@cocotb.test()
async def every_code_passes_in_every_lane_of_both_sides(dut: Any) -> None:
    mads = [Mad(4, 1, 128, paired=True), Mad(1, 4, 128)]
    boxes = random_codes(mads)
    for (tile, block), box in zip(
        itertools.product(range(4), range(64)), every_code(), strict=True
    ):
        boxes["a", tile, block] = boxes["b", tile, block] = box
    bench = bench_of(dut, boxes)
    await bench.start()
    await run(dut, bench, mads, boxes)


@cocotb.test()
@cocotb.parametrize(paired=[False, True])
async def nothing_pauses_where_nobody_stalls(dut: Any, paired: bool) -> None:
    mad = Mad(4, 3, 6, paired)
    boxes = random_codes([mad])
    bench = bench_of(dut, boxes)
    await bench.start()
    await run(dut, bench, [mad], boxes)
    ((began,), asked, beats, left) = (
        [transfer.cycle for transfer in bench.monitors[port].transfers]
        for port in ("start", "a_request", "a", "o")
    )
    assert asked == list(range(began + 1, began + 1 + 36))
    # A box takes 32 / beat cycles on the wires, and its records one each on theirs.
    a_box = 32 // bench.beat_bytes
    records = 1 if paired else 2
    period = max(a_box, records)
    first = began + 3 + a_box
    assert left == [first + period * box + n for box in range(36) for n in range(records)]
    if a_box >= records:
        assert beats == list(range(began + 2, began + 2 + 36 * a_box))


@cocotb.test()
@cocotb.parametrize(bring=["never", "often", "bursts"], take=["never", "often", "bursts"])
async def nothing_is_lost_or_doubled_under_back_pressure(dut: Any, bring: str, take: str) -> None:
    rng = bench_rng()
    mads = random_mads(rng, 6)
    boxes = random_codes(mads, seed=rng.randrange(1 << 30))
    given = {port: patterns(bring, rng) for port in ("start", "a", "b")}
    taken = {port: patterns(take, rng) for port in ("a_request", "b_request", "o")}
    bench = bench_of(dut, boxes, **given, **taken)
    await bench.start()
    await run(dut, bench, mads, boxes)
    stalled = bench.monitors["o"].stalled
    assert (stalled > 0) == (take != "never"), "the pattern must have been exercised"


@cocotb.test()
@cocotb.parametrize(port=list(PORTS))
async def a_single_port_that_sleeps_holds_up_the_rest_and_no_more(dut: Any, port: str) -> None:
    rng = bench_rng()
    mads = [Mad(1, 1, 1), Mad(2, 2, 4, paired=True), Mad(1, 3, 5)]
    boxes = random_codes(mads)
    bench = bench_of(dut, boxes, **{port: bursts(25, rng)})
    await bench.start()
    await run(dut, bench, mads, boxes)


@cocotb.test()
async def a_start_waits_for_the_end_of_the_mad_before_it_however_late_it_comes(dut: Any) -> None:
    mads = [Mad(1, 1, 1)] * 14
    boxes = random_codes(mads)
    late = itertools.chain.from_iterable([True] * cycles + [False] for cycles in range(14))
    bench = bench_of(dut, boxes, start=late)
    await bench.start()
    await run(dut, bench, mads, boxes)


@cocotb.test()
async def extremes_of_either_side_meet_those_of_the_other(dut: Any) -> None:
    mads = [Mad(1, 1, 6), Mad(1, 1, 6, paired=True)]
    boxes = random_codes(mads)
    ends = (0, 254, 255, 127, 1, 253)
    for block, (side, place) in itertools.product(range(3), (("a", 0), ("b", 12))):
        boxes[side, 0, block][place : place + 12] = [code for code in ends for _ in range(2)]
    bench = bench_of(dut, boxes)
    await bench.start()
    await run(dut, bench, mads, boxes)


@cocotb.test()
@cocotb.parametrize(how=["never", "often", "bursts"])
async def a_reset_in_the_midst_forgets_everything_and_the_next_mad_is_clean(
    dut: Any, how: str
) -> None:
    rng = bench_rng()
    lost, kept = Mad(2, 2, 5), Mad(1, 2, 3, paired=True)
    boxes = random_codes([lost, kept])
    bench = bench_of(dut, boxes, **{port: patterns(how, rng) for port in PORTS})
    await bench.start()
    for cycles in range(1, 30):
        before = len(bench.monitors["o"].transfers)
        send(bench, [lost])
        await ClockCycles(dut.clk, cycles)
        await bench.reset()
        quiet = [int(dut[f"{port}__valid"].value) for port in ("a_request", "b_request", "o")]
        assert quiet == [0, 0, 0]
        came = plain(bench.taken("o", since=before))
        assert came == lost.records(boxes)[: len(came)]
        await run(dut, bench, [kept], boxes)
