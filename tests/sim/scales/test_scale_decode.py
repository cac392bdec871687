"""The unit's model: hand-counted cycles, the slow model under random stalls, the closed form."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.isa.scale_unit import BEATS_BYTES, RECORD, START, request_order
from scalebox.ir.target import load_target
from scalebox.sim import costs
from scalebox.sim.scales.feed import Surroundings, boxes_of, feed, records_of
from scalebox.sim.scales.supply import (
    starved_cycles,
    starved_with_two_boxes,
    stepped_by_boxes,
    why_no_unit,
)
from scalebox.sim.scales.wires import answer_trace, trace_of

from .slow_scale_decode import SlowUnit

Trace = dict[str, npt.NDArray[Any]]
A5 = load_target("a5")
STARTS = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 7), st.integers(0, 1))


def trace(
    mads: list[tuple[int, int, int, int]],
    around: Surroundings,
    *,
    held: npt.NDArray[np.uint8] | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> Trace:
    """Return the wires of mads whose boxes are drawn, NaN codes among them."""
    words = np.array(mads, np.uint16)
    count = int(boxes_of(words).sum())
    rng = np.random.default_rng(seed)
    boxes = rng.integers(0, 256, (2, count, 32), np.uint8)
    boxes[rng.random(boxes.shape) < 0.1] = 255
    handshakes = feed(words, around, held=held, limit=limit)
    found = trace_of(handshakes, words, *boxes, beat_bytes=around.beat_bytes)
    assert np.array_equal(found["o_valid"], handshakes.answered >> 5 & 1)
    return found


def passed(found: Trace, stream: str) -> list[int]:
    """Return the cycles in which a word of a stream passed."""
    return np.flatnonzero(found[f"{stream}_valid"] & found[f"{stream}_ready"]).tolist()


# ------------------------------------------------------------------------- by hand


def test_one_pair_of_boxes_passes_in_six_cycles() -> None:
    found = trace([(1, 1, 2, 0)], Surroundings(32, 1, 0))
    assert [passed(found, name) for name in ("start", "a_request", "a", "b")] == [
        [0],
        [1],
        [2],
        [2],
    ]
    assert passed(found, "o") == [4, 5]
    assert found["o_group"][4:6].tolist() == [0, 1]
    assert found["o_last"][4:6].tolist() == found["o_end"][4:6].tolist() == [False, True]
    assert not found["o_second"].any()
    assert len(found["a"]) == 6


@pytest.mark.parametrize(
    ("beat", "paired", "records"),
    [
        (32, 0, [4, 5, 6, 7, 8, 9]),
        (32, 1, [4, 5, 6]),
        (16, 0, [5, 6, 7, 8, 9, 10]),
        (16, 1, [5, 7, 9]),
        (8, 0, [7, 8, 11, 12, 15, 16]),
        (8, 1, [7, 11, 15]),
    ],
)
def test_records_leave_as_fast_as_beats_allow(beat: int, paired: int, records: list[int]) -> None:
    assert passed(trace([(1, 1, 6, paired)], Surroundings(beat, 1, 0)), "o") == records


def test_two_boxes_are_read_ahead_and_no_more() -> None:
    # Record 0 waits on o until cycle 10 and the first box, of two records, until its second one
    # is loaded as the first is taken; a third box then takes its beat in the next cycle.
    found = trace([(1, 1, 8, 0)], Surroundings(32, 1, 10))
    assert passed(found, "a") == [2, 3, 11, 13]
    assert passed(found, "a_request") == [1, 2, 3, 4]
    assert passed(found, "o") == list(range(10, 18))


def test_an_odd_last_group_gives_its_box_up_at_once() -> None:
    found = trace([(1, 2, 3, 0)], Surroundings(32, 1, 0))
    assert found["o_group"][passed(found, "o")].tolist() == [0, 1, 2, 0, 1, 2]
    assert passed(found, "o") == [4, 5, 6, 7, 8, 9]
    found = trace([(1, 1, 3, 1)], Surroundings(32, 1, 0))
    assert found["o_second"][passed(found, "o")].tolist() == [True, False]
    assert not found["o_a_exponent"][5, 1].any()
    assert not found["o_b_nan"][5, 1].any()


def test_the_next_start_is_taken_the_cycle_after_the_end() -> None:
    found = trace([(1, 1, 1, 0), (1, 1, 1, 1)], Surroundings(32, 1, 0))
    assert passed(found, "o") == [4, 9]
    assert passed(found, "start") == [0, 5]
    assert np.flatnonzero(found["start_ready"]).tolist() == [0, 5]


def test_a_slower_scale_buffer_delays_the_first_record_only() -> None:
    assert passed(trace([(1, 1, 4, 0)], Surroundings(32, 7, 0)), "o") == [10, 11, 12, 13]


def test_codes_become_exponents_and_nan_flags() -> None:
    codes = np.arange(256, dtype=np.uint8).reshape(-1, 32)
    words = np.array([(1, 1, 16, 1)], np.uint16)
    handshakes = feed(words, Surroundings(32, 1, 0))
    found = trace_of(handshakes, words, codes, codes[::-1].copy(), beat_bytes=32)
    at = passed(found, "o")
    decoded = found["o_a_exponent"][at].transpose(0, 2, 1).reshape(-1)
    assert decoded.tolist() == [code - 127 for code in range(256)]
    flags = found["o_a_nan"][at].transpose(0, 2, 1).reshape(-1)
    assert np.flatnonzero(flags).tolist() == [255]
    assert np.array_equal(found["o_b_exponent"][at], found["o_a_exponent"][at][::-1])


def test_requests_follow_the_order_of_the_table() -> None:
    found = trace([(2, 3, 5, 0)], Surroundings(32, 1, 0))
    asked = {
        side: list(
            zip(
                *(found[f"{side}_request_{f}"][passed(found, f"{side}_request")] for f in FIELDS),
                strict=True,
            )
        )
        for side in "ab"
    }
    order = list(request_order(2, 3, 5))
    assert asked["a"] == [(row, block) for row, _, block in order]
    assert asked["b"] == [(column, block) for _, column, block in order]


FIELDS = ("tile", "block")

# ------------------------------------------------------------------------- the slow model


@settings(max_examples=60)
@given(
    mads=st.lists(STARTS, min_size=1, max_size=4),
    beat=st.sampled_from(BEATS_BYTES),
    read=st.integers(1, 5),
    head=st.integers(0, 12),
    calm=st.integers(0, 3),
    resets=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_wire_is_that_of_the_slow_model(
    mads: list[tuple[int, int, int, int]],
    beat: int,
    read: int,
    head: int,
    calm: int,
    resets: bool,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    held: npt.NDArray[np.uint8] = rng.integers(0, 64, 509, np.uint8)
    for _ in range(calm):
        held = (held & rng.integers(0, 64, 509, np.uint8)).astype(np.uint8)
    found = trace(mads, Surroundings(beat, read, head), held=held, seed=seed % 1000)
    if resets:
        # A reset cuts the story short, wherever it was, and another begins.
        found["reset"] = rng.random(len(found["a"])) < 0.01
        first = np.flatnonzero(found["reset"])
        if len(first):
            found = {name: array[: first[0] + 1] for name, array in found.items()}
            again = trace(mads, Surroundings(beat, read, head), held=held, seed=seed % 1000 + 1)
            again["reset"] = np.zeros(len(again["a"]), np.bool_)
            found = {name: np.concatenate([found[name], again[name]]) for name in again}
    answered = answer_trace(found)
    slow = SlowUnit()
    for cycle in range(len(found["a"])):
        wires = {name: array[cycle] for name, array in found.items()}
        wires |= {"a": wires["a"].tobytes(), "b": wires["b"].tobytes()}
        wires["start"] = tuple(int(wires[f"start_{field.name}"]) for field in START)
        wires.setdefault("reset", False)
        expected = slow.cycle(wires)
        now = {name: array[cycle] for name, array in answered.items()}
        for name in ("start_ready", "a_ready", "b_ready", "o_valid"):
            assert now[name] == expected[name], (cycle, name)
        for side in "ab":
            assert now[f"{side}_request_valid"] == expected[f"{side}_request_valid"]
            if expected[f"{side}_request"] is not None:
                asked = (now[f"{side}_request_tile"], now[f"{side}_request_block"])
                assert asked == expected[f"{side}_request"]
        if expected["o"] is not None:
            for field in RECORD:
                assert now[f"o_{field.name}"] == expected["o"][field.name], (cycle, field)
            for name in ("a_exponent", "b_exponent", "a_nan", "b_nan"):
                assert now[f"o_{name}"].tolist() == expected["o"][name], (cycle, name)


@settings(max_examples=100)
@given(
    mads=st.lists(STARTS, min_size=1, max_size=4),
    beat=st.sampled_from(BEATS_BYTES),
    seed=st.integers(0, 2**32 - 1),
)
def test_stalls_lose_and_double_nothing(
    mads: list[tuple[int, int, int, int]], beat: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    held = np.minimum(rng.integers(0, 64, 251, np.uint8), rng.integers(0, 64, 251, np.uint8))
    stalled = trace(mads, Surroundings(beat, 1, 3), held=held)
    freely = trace(mads, Surroundings(beat, 1, 3))
    names = [
        name for name in freely if name.startswith("o_") and name[2:] not in ("valid", "ready")
    ]
    for name in names:
        assert np.array_equal(
            stalled[name][passed(stalled, "o")], freely[name][passed(freely, "o")]
        )
    for stream in ("start", "a_request", "b_request", "a", "b", "o"):
        waiting = stalled[f"{stream}_valid"] & ~stalled[f"{stream}_ready"]
        assert stalled[f"{stream}_valid"][1:][waiting[:-1]].all(), "a word on offer stays"
    waits = stalled["o_valid"] & ~stalled["o_ready"]
    for cycle in np.flatnonzero(waits):
        assert stalled["o_valid"][cycle + 1]
        assert all(np.array_equal(stalled[n][cycle], stalled[n][cycle + 1]) for n in names)


def test_a_limit_cuts_in_the_midst_of_a_mad() -> None:
    whole = trace([(2, 2, 4, 0)], Surroundings(16, 1, 5))
    part = trace([(2, 2, 4, 0)], Surroundings(16, 1, 5), limit=9)
    assert len(part["a"]) == 9
    assert all(np.array_equal(whole[name][:9], part[name]) for name in part)


# ------------------------------------------------------------------------- cycles of a mad


@settings(max_examples=300)
@given(
    start=STARTS,
    groups=st.integers(1, 20),
    beat=st.sampled_from(BEATS_BYTES),
    read=st.integers(1, 20),
    head=st.integers(0, 60),
)
def test_the_closed_form_is_what_stepping_gives(
    start: tuple[int, int, int, int], groups: int, beat: int, read: int, head: int
) -> None:
    rows, columns, _, paired = start
    words = np.array([(rows, columns, groups, paired)], np.uint16)
    steps = int(records_of(words)[0])
    stepped = len(feed(words, Surroundings(beat, read, head)).given) - head - steps
    beats = 32 // beat
    first = read + beats + 2
    closed = starved_with_two_boxes(
        tiles=rows * columns,
        groups=groups,
        paired=bool(paired),
        beats=beats,
        first_record=first,
        head=head,
    )
    assert closed == stepped
    step = 64 if paired else 32
    by_boxes = stepped_by_boxes(rows * columns, groups * 32, step, beats, 2, 1, first, head)
    assert by_boxes == stepped


@pytest.mark.parametrize(
    ("beat", "bits", "k", "starved"),
    [
        (32, 8, 512, 0),
        (16, 8, 512, 0),
        (32, 4, 512, 0),
        (16, 8, 96, 15),  # a beat for the odd group of each of 16 tiles, but that of the last
        (8, 8, 512, 2 * (128 - 2)),  # two beats more than records, but in the first and last box
        (16, 4, 512, 128 - 3),  # one beat more, but in the first two and the last
    ],
)
def test_a_mad_takes_longer_by_the_cycles_that_it_starves(
    beat: int, bits: int, k: int, starved: int
) -> None:
    target = A5.with_settings({"scale_beat_bytes": beat})
    mad = {"m": 64, "k": k, "n": 64, "bits": bits}
    assert costs.mad_starved_cycles(target, **mad) == starved
    steps = costs.mad_steps(target, **mad)
    assert costs.mad_cycles(target, **mad) == A5.mad_head_cycles + steps + starved


def test_a_head_shorter_than_the_way_to_the_first_record_starves() -> None:
    target = A5.with_settings({"mad_head_cycles": 1, "scale_read_cycles": 2})
    assert costs.mad_cycles(target, m=16, k=32, n=16, bits=8) == 6  # taken in cycle 5


@pytest.mark.parametrize(
    ("field", "value", "must"),
    [
        ("scale_beat_bytes", 4, "scale_beat_bytes must be one of 8, 16, 32, not 4"),
        ("scale_buffered_boxes", 3, "scale_buffered_boxes must be 2, not 3"),
        ("mad_8bit_k_elements", 128, "mad_8bit_k_elements must be 32 or 64, not 128"),
    ],
)
def test_a_machine_without_a_unit_says_why(field: str, value: int, must: str) -> None:
    assert why_no_unit(A5.with_settings({field: value}), bits=8) == must


def test_the_a5_has_a_unit() -> None:
    assert why_no_unit(A5, bits=8) is None
    assert why_no_unit(A5, bits=4) is None


@pytest.mark.parametrize("step", [8, 16, 32, 48, 64, 96, 128, 256])
def test_machines_without_a_unit_keep_their_order(step: int) -> None:
    def starved(**settings: int) -> int:
        target = A5.with_settings({"mad_8bit_k_elements": step} | settings)
        return starved_cycles(target, tiles=16, k=512, bits=8)

    by_beat = [starved(scale_beat_bytes=beat) for beat in (64, 32, 16, 8, 4, 2, 1)]
    assert by_beat == sorted(by_beat)
    assert by_beat[0] == by_beat[1]
    by_room = [starved(scale_buffered_boxes=boxes, scale_beat_bytes=8) for boxes in (8, 4, 3, 2, 1)]
    assert by_room == sorted(by_room)
    boxes = 16 * 512 // 64
    assert starved(scale_beat_bytes=1) >= 32 * (boxes - 4) - 16 * -(-512 // step)


# ------------------------------------------------------------------------- cost, by the slow unit


def slow_cycles(shape: tuple[int, int, int, int], beat: int, read: int, head: int) -> int:
    """Return the cycles of a mad on the slow unit: beats as soon as they can come, a cube that takes.

    The box of a request that is taken in cycle c comes from cycle c + `read` on, after the boxes
    before it; the cube takes what is on offer from cycle `head` on.
    """
    unit, cycle = SlowUnit(), 0
    due: dict[str, list[int]] = {"a": [], "b": []}
    while True:
        offers = {side: bool(when) and when[0] <= cycle for side, when in due.items()}
        wires: dict[str, Any] = {"reset": False, "start_valid": cycle == 0, "start": shape}
        wires |= {"o_ready": cycle >= head, "a_request_ready": True, "b_request_ready": True}
        wires |= {"a": bytes(beat), "b": bytes(beat)}
        wires |= {f"{side}_valid": offer for side, offer in offers.items()}
        found = unit.cycle(wires)
        for side, when in due.items():
            if offers[side] and found[f"{side}_ready"]:
                when.pop(0)
            if found[f"{side}_request_valid"]:
                when += [cycle + read] * (32 // beat)
        cycle += 1
        if found["o_valid"] and wires["o_ready"] and found["o"]["end"]:
            return cycle


@settings(max_examples=60)
@given(
    m=st.integers(1, 50),
    n=st.integers(1, 50),
    k=st.integers(1, 400),
    bits=st.sampled_from([4, 8]),
    beat=st.sampled_from(BEATS_BYTES),
    read=st.integers(1, 12),
    head=st.integers(1, 40),
)
def test_a_mad_costs_what_the_slow_unit_takes(
    m: int, n: int, k: int, bits: int, beat: int, read: int, head: int
) -> None:
    changes = {"scale_beat_bytes": beat, "scale_read_cycles": read, "mad_head_cycles": head}
    target = A5.with_settings(changes)
    shape = (-(-m // 16), -(-n // 16), -(-k // 32), int(bits == 4))
    cost = costs.mad_cycles(target, m=m, k=k, n=n, bits=bits)
    assert cost == slow_cycles(shape, beat, read, head)
