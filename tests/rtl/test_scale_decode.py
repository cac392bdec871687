# amaranth: UnusedElaboratable=no
"""The scale-decode unit in Amaranth's own simulator: what comes, and in which cycle."""

import itertools

import numpy as np
import pytest

from scalebox.ir.errors import UserError
from scalebox.rtl.scale_decode import ScaleDecode

from .benches.scale_decode_spec import Box, Mad, Record, every_code, random_codes
from .scale_decode_runs import Run, Stalls, consecutive

BEATS = (8, 16, 32)
WIDTHS = pytest.mark.parametrize("beat_bytes", BEATS)
PAIRINGS = pytest.mark.parametrize("paired", [False, True], ids=["single", "paired"])


def cycles_of(records: list[tuple[int, Record]]) -> list[int]:
    return [cycle for cycle, _ in records]


# What comes out


@PAIRINGS
def test_every_code_decodes_in_every_lane_of_both_sides(paired: bool) -> None:
    # 64 boxes along K, times four tiles of the one side, are the 256 boxes of every code.
    mads = [Mad(4, 1, 128, paired), Mad(1, 4, 128, paired)]
    codes = random_codes(mads)
    tiles = itertools.product(range(4), range(64))
    for (tile, block), box in zip(tiles, every_code(), strict=True):
        codes["a", tile, block] = codes["b", tile, block] = box
    for mad in mads:
        Run([mad], codes).held_against_the_specification()


def test_a_box_by_hand() -> None:
    a, b = [127] * 32, [127] * 32
    a[:4] = [0, 254, 255, 1]  # row 0: groups 0 and 1, row 1: groups 0 and 1
    b[30:] = [128, 126]  # column 15
    run = Run([Mad(1, 1, 2)], {("a", 0, 0): a, ("b", 0, 0): b})
    (_, first), (_, second) = run.records
    assert first.halves[0][0] == (-127, 128, *[0] * 14)
    assert second.halves[0][0] == (127, -126, *[0] * 14)
    assert first.halves[0][1] == (*[0] * 15, 1)
    assert second.halves[0][1] == (*[0] * 15, -1)
    assert first.halves[0][2] == (False, True, *[False] * 14)
    assert second.halves[0][2] == first.halves[0][3] == second.halves[0][3] == (False,) * 16
    assert [record.group for record in (first, second)] == [0, 1]
    assert [record.last for record in (first, second)] == [False, True]
    assert [record.end for record in (first, second)] == [False, True]


@WIDTHS
@PAIRINGS
@pytest.mark.parametrize("groups", [1, 2, 3, 5])
def test_what_lies_beyond_an_odd_number_of_groups_makes_no_record(
    groups: int, paired: bool, beat_bytes: int
) -> None:
    mads = [Mad(2, 2, groups, paired), Mad(1, 2, groups, not paired)]
    run = Run(mads, random_codes(mads), beat_bytes=beat_bytes).held_against_the_specification()
    whole, single = (groups + 1) // 2, groups
    assert len(run.records) == (4 * whole + 2 * single if paired else 4 * single + 2 * whole)


@pytest.mark.parametrize(
    "mad",
    [
        Mad(1, 1, 1),
        Mad(1, 1, 1, True),
        Mad(256, 1, 1),
        Mad(1, 256, 1, True),
        Mad(1, 1, 128),
        Mad(1, 1, 127, True),
        Mad(3, 2, 7),
    ],
    ids=str,
)
def test_mads_from_the_smallest_to_the_ends_of_every_field(mad: Mad) -> None:
    Run([mad], random_codes([mad])).held_against_the_specification()


def test_a_record_carries_every_combined_exponent_where_asked_for() -> None:
    mad = Mad(1, 2, 3, True)
    codes = random_codes([mad])
    codes["a", 0, 0][:4] = [0, 254, 255, 255]
    codes["b", 0, 0][:4] = [0, 254, 0, 255]
    run = Run([mad], codes, combined=True, stalls=Stalls(o=0.5)).held_against_the_specification()
    assert len(run.combined) == 4
    for (_, record), (exponents, flags) in zip(run.records, run.combined, strict=True):
        for half, sums, is_nan in zip(record.halves, exponents, flags, strict=True):
            a, b, a_nan, b_nan = (np.array(part) for part in half)
            np.testing.assert_array_equal(sums.reshape(16, 16), a[:, None] + b[None, :])
            np.testing.assert_array_equal(is_nan.reshape(16, 16), a_nan[:, None] | b_nan[None, :])
    assert run.combined[0][0][0, 0] == -254  # rows and columns 0 of group 0 are both 2^-127
    assert run.combined[0][0][1, 0] == 254  # of group 1, both 2^127


# In which cycle


def test_the_first_cycles_of_a_mad_by_hand() -> None:
    mad = Mad(1, 1, 4)
    run = Run([mad], random_codes([mad]))
    assert run.starts == [0]
    for side in run.sides.values():
        assert [cycle for cycle, _ in side.requests] == [1, 2]
        assert side.beats == [2, 3]
    # Beat in cycle 2, whole from 3 on, loaded by the edge that ends cycle 3, on the wires in 4.
    assert cycles_of(run.records) == [4, 5, 6, 7]
    assert [row["start_ready"] for row in run.rows[:10]] == [True, *[False] * 7, True, True]
    assert [row["o_valid"] for row in run.rows[:9]] == [*[False] * 4, *[True] * 4, False]
    # The first box is done by the record that is loaded in cycle 4, so its slot is free from 5 on.
    assert [row["a_ready"] for row in run.rows[:9]] == [*[True] * 4, False, *[True] * 4]
    assert [row["a_request_valid"] for row in run.rows[:5]] == [False, True, True, False, False]


@pytest.mark.parametrize(
    ("beat_bytes", "paired", "first", "spacing"),
    [
        (32, False, 4, (1, 1)),
        (16, False, 5, (1, 1)),
        (8, False, 7, (1, 3)),
        (32, True, 4, (1,)),
        (16, True, 5, (2,)),
        (8, True, 7, (4,)),
    ],
)
def test_throughput_and_latency_of_every_width(
    beat_bytes: int, paired: bool, first: int, spacing: tuple[int, ...]
) -> None:
    # A side brings a box each 32 / beat cycles; a record a cycle is what the cube can take.
    mad = Mad(3, 2, 8, paired)
    run = Run([mad], random_codes([mad]), beat_bytes=beat_bytes).held_against_the_specification()
    cycles = cycles_of(run.records)
    steps = itertools.islice(itertools.cycle(spacing), len(cycles) - 1)
    assert cycles == list(itertools.accumulate(steps, initial=first))
    assert run.unit.latency_cycles == first
    if (beat_bytes, paired) != (32, False):
        for side in run.sides.values():
            assert side.beats == consecutive(2, 24 * 32 // beat_bytes), "no pause between beats"


def test_the_next_start_is_taken_in_the_cycle_after_the_end() -> None:
    mads = [Mad(1, 1, 1), Mad(1, 1, 2, True), Mad(1, 2, 1)]
    run = Run(mads, random_codes(mads)).held_against_the_specification()
    assert run.starts == [0, 5, 10]
    assert cycles_of(run.records) == [4, 9, 14, 15]


def test_requests_do_not_wait_for_room_and_beats_do() -> None:
    mad = Mad(1, 2, 6)
    run = Run([mad], random_codes([mad]), stalls=Stalls(o=1.0), cycles=40)
    for side in run.sides.values():
        assert [cycle for cycle, _ in side.requests] == consecutive(1, 6)
        assert side.beats == [2, 3]  # the record on offer is the first box's first, so it stays
    assert run.records == []
    assert run.rows[-1]["o_valid"]

    paired = Mad(1, 2, 6, paired=True)
    run = Run([paired], random_codes([paired]), stalls=Stalls(o=1.0), cycles=40)
    assert run.sides["a"].beats == [2, 3, 4]  # the first box is in the output register as a whole


@pytest.mark.parametrize("port", ["a_request", "b_request", "a", "b"])
def test_a_side_that_brings_nothing_holds_up_the_other_after_two_boxes(port: str) -> None:
    mad = Mad(1, 2, 6)
    run = Run([mad], random_codes([mad]), stalls=Stalls(**{port: 1.0}), cycles=40)
    stalled, other = run.sides[port[0]], run.sides["b" if port[0] == "a" else "a"]
    assert (stalled.beats, other.beats) == ([], [2, 3])
    assert run.records == []
    assert not run.rows[-1]["o_valid"]
    assert len(other.requests) == 6


def test_an_idle_unit_is_ready_for_a_start_and_asks_for_nothing() -> None:
    run = Run([], {}, cycles=12)
    assert all(row["start_ready"] for row in run.rows)
    assert not any(
        row[f"{port}_valid"] for port in ("a_request", "b_request", "o") for row in run.rows
    )


# Under back-pressure


@WIDTHS
@pytest.mark.parametrize("port", ["start", "a_request", "b_request", "a", "b", "o"])
def test_back_pressure_on_one_port_loses_and_doubles_nothing(port: str, beat_bytes: int) -> None:
    mads = [Mad(2, 1, 3), Mad(1, 2, 3, True)]
    stalls = Stalls(**{port: 0.7})
    Run(
        mads, random_codes(mads), beat_bytes=beat_bytes, stalls=stalls
    ).held_against_the_specification()


@WIDTHS
@pytest.mark.parametrize("seed", range(3))
def test_back_pressure_everywhere_loses_and_doubles_nothing(seed: int, beat_bytes: int) -> None:
    mads = [Mad(1, 1, 1), Mad(2, 2, 3, seed % 2 == 0), Mad(1, 3, 4, seed % 2 == 1)]
    stalls = Stalls(0.5, 0.6, 0.4, 0.5, 0.6, 0.5)
    run = Run(mads, random_codes(mads, seed), beat_bytes=beat_bytes, stalls=stalls, seed=seed)
    run.held_against_the_specification()


# Reset


@WIDTHS
@pytest.mark.parametrize("at", range(1, 10))
def test_a_reset_at_any_moment_forgets_the_mad_and_the_next_one_is_clean(
    at: int, beat_bytes: int
) -> None:
    lost, kept = Mad(1, 2, 3), Mad(2, 1, 3, paired=True)
    codes = random_codes([lost, kept])
    run = Run([lost, kept], codes, beat_bytes=beat_bytes, reset_at=at)
    after = [(cycle, record) for cycle, record in run.records if cycle > at]
    assert run.starts == [0, at + 1]
    assert [record for _, record in after] == kept.records(codes)
    assert after[0][0] == at + 1 + run.unit.latency_cycles
    assert [record for cycle, record in run.records if cycle < at] == lost.records(codes)[
        : len(run.records) - len(after)
    ]
    quiet = run.rows[at + 1]
    ports = ("o_valid", "a_request_valid", "b_request_valid", "a_ready", "b_ready")
    assert [quiet[port] for port in ports] == [False, False, False, True, True]


# Parameters


def test_a_unit_names_its_parameters() -> None:
    unit = ScaleDecode()
    assert (unit.beat_bytes, unit.combined) == (32, False)
    assert unit.parameters == {"beat_bytes": 32, "combined": 0}
    assert [ScaleDecode(beat_bytes=width).latency_cycles for width in BEATS] == [7, 5, 4]
    assert ScaleDecode(beat_bytes=8, combined=True).parameters == {"beat_bytes": 8, "combined": 1}


@pytest.mark.parametrize(
    ("parameters", "kind", "sentence"),
    [
        (
            {"beat_bytes": 12},
            ValueError,
            "ScaleDecode beat_bytes must be one of 8, 16, 32, not 12",
        ),
        ({"beat_bytes": "32"}, TypeError, "ScaleDecode beat_bytes must be an integer, not '32'"),
        ({"beat_bytes": True}, TypeError, "ScaleDecode beat_bytes must be an integer, not True"),
        ({"combined": 1}, TypeError, "ScaleDecode combined must be True or False, not 1"),
    ],
)
def test_a_unit_refuses_impossible_parameters(
    parameters: dict[str, bool], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        ScaleDecode(**parameters)
    assert str(caught.value) == sentence
    assert isinstance(caught.value, UserError)


def test_the_harness_notices_a_wrong_code() -> None:
    mad = Mad(1, 1, 2)
    codes = random_codes([mad])
    run = Run([mad], codes)
    box: Box = ("b", 0, 0)
    codes[box] = [*codes[box][:-1], codes[box][-1] ^ 1]
    with pytest.raises(AssertionError):
        run.held_against_the_specification()
