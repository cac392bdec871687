"""Model and hardware on wires that keep no rule: whatever comes in, the same goes out."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from scalebox.codegen.isa.scale_unit import BEATS_BYTES, START
from scalebox.rtl.cosim.replay import replay, replay_cocotb
from scalebox.rtl.cosim.toolchain import Simulator
from scalebox.rtl.cosim.verilated_unit import VerilatedUnit
from scalebox.rtl.cosim.wires import flows, inputs
from scalebox.sim.scales.wires import answer_trace

Trace = dict[str, npt.NDArray[Any]]
WIDTHS = pytest.mark.parametrize("beat_bytes", BEATS_BYTES)

SPELL = 150
"""Cycles for which every wire keeps its liveliness."""


def spells(
    rng: np.random.Generator, cycles: int, moods: tuple[float, ...]
) -> npt.NDArray[np.bool_]:
    """Return a wire that is set more often in one spell than in another."""
    often = np.repeat(rng.choice(moods, -(-cycles // SPELL)), SPELL)[:cycles]
    return rng.random(cycles) < often


def any_wires(beat_bytes: int, cycles: int, seed: int) -> Trace:
    """Return wires into the unit, of which no one knows of any other.

    Beats come without requests, words on offer vanish, resets fall anywhere. Most start words are
    of small mads, so that many come to an end; the rest are of any bits, no mad's counts included.
    """
    rng = np.random.default_rng(seed)
    lively = (0.0, 0.05, 0.5, 0.95, 1.0)
    names = [wire.name for wire in inputs(flows(beat_bytes)) if wire.bits == 1]
    trace: Trace = {name: spells(rng, cycles, lively) for name in names}
    small = rng.random(cycles) < 0.8
    for field in START[:3]:
        anything = rng.integers(0, 1 << field.bits, cycles, np.uint16)
        trace[f"start_{field.name}"] = np.where(
            small, rng.integers(1, 4, cycles, np.uint16), anything
        )
    for name in ("a", "b"):
        trace[name] = rng.integers(0, 256, (cycles, beat_bytes), np.uint8)
        trace[name][rng.random(cycles) < 0.1] = 255
    trace["reset"] = spells(rng, cycles, (0.0, 0.0, 0.02))
    return trace


def answered(given: Trace) -> Trace:
    """Return all wires, those that the unit drives after the model."""
    return given | answer_trace(given)


@WIDTHS
@pytest.mark.parametrize("seed", range(3))
def test_the_hardware_answers_any_wires_as_the_model_does(beat_bytes: int, seed: int) -> None:
    trace = answered(any_wires(beat_bytes, 60_000, seed))
    for wire in ("start", "a_request", "b_request", "a", "b", "o"):
        assert (trace[f"{wire}_valid"] & trace[f"{wire}_ready"]).sum() > 400
    result = replay([trace], beat_bytes=beat_bytes)
    assert result.difference is None


def test_cocotb_says_the_same_of_any_wires(simulator: Simulator) -> None:
    assert replay_cocotb(answered(any_wires(16, 1500, 9)), simulator=simulator).difference is None


# ------------------------------------------------------------------------- by hand


def quiet(cycles: int, beat_bytes: int = 32) -> Trace:
    """Return wires into a unit that everyone would take everything from, and nobody brings any."""
    wires = inputs(flows(beat_bytes))
    trace: Trace = {wire.name: np.zeros((cycles, *wire.shape), wire.dtype) for wire in wires}
    for name in ("o_ready", "a_request_ready", "b_request_ready"):
        trace[name][:] = True
    return trace


def start(trace: Trace, cycle: int, row_tiles: int, column_tiles: int, groups: int) -> None:
    trace["start_valid"][cycle] = True
    for name, count in zip(
        ("row_tiles", "column_tiles", "groups"), (row_tiles, column_tiles, groups), strict=True
    ):
        trace[f"start_{name}"][cycle] = count


def both(trace: Trace, beat_bytes: int = 32) -> list[Trace]:
    """Return the answers of the model and of the hardware."""
    with VerilatedUnit(beat_bytes=beat_bytes) as unit:
        return [answer_trace(trace), unit.record(trace)]


def test_boxes_that_nobody_asked_for_wait_for_the_next_mad() -> None:
    trace = quiet(14)
    for cycle, code in ((0, 128), (1, 129), (2, 130)):
        trace["a_valid"][cycle] = trace["b_valid"][cycle] = True
        trace["a"][cycle] = trace["b"][cycle] = code
    start(trace, 5, 1, 1, 4)
    for found in both(trace):
        # Two boxes find room and the third does not; nothing is decoded before there is a mad.
        assert np.flatnonzero(~found["a_ready"]).tolist() == [2, 3, 4, 5, 6, 7]
        assert np.flatnonzero(found["o_valid"]).tolist() == [7, 8, 9, 10]
        assert found["o_a_exponent"][7:11, 0, 0].tolist() == [1, 1, 2, 2]
        assert found["o_end"][7:11].tolist() == [False, False, False, True]
        assert np.flatnonzero(found["start_ready"]).tolist() == [*range(6), 11, 12, 13]


def test_a_beat_is_taken_in_the_cycle_of_a_start() -> None:
    trace = quiet(8)
    start(trace, 0, 1, 1, 1)
    for side in "ab":
        trace[f"{side}_valid"][0] = True
    for found in both(trace):
        assert np.flatnonzero(found["o_valid"]).tolist() == [2]


def test_a_box_too_many_is_the_first_of_the_next_mad() -> None:
    trace = quiet(14)
    start(trace, 0, 1, 1, 1)
    start(trace, 6, 1, 1, 1)
    for side in "ab":
        trace[f"{side}_valid"][2:4] = True
        trace[side][2:4] = np.array([[130], [131]])
    for found in both(trace):
        assert np.flatnonzero(found["o_valid"]).tolist() == [4, 8]
        assert found["o_b_exponent"][[4, 8], 0, 15].tolist() == [3, 4]


def test_a_start_waits_for_requests_that_nobody_took() -> None:
    trace = quiet(20)
    start(trace, 0, 1, 1, 3)
    trace["start_valid"][:] = True
    trace["start_groups"][1:] = 1
    trace["start_row_tiles"][:] = trace["start_column_tiles"][:] = 1
    trace["b_request_ready"][:12] = False
    for side in "ab":
        trace[f"{side}_valid"][0:2] = True
    for found in both(trace):
        assert np.flatnonzero(found["o_valid"] & found["o_end"]).tolist() == [4]
        assert np.flatnonzero(found["b_request_valid"]).tolist() == [*range(1, 14), 15]
        assert found["b_request_block"][[1, 12, 13, 15]].tolist() == [0, 0, 1, 0]
        assert np.flatnonzero(found["start_ready"]).tolist() == [0, 14]


@pytest.mark.parametrize(
    ("counts", "means"),
    [
        ((0, 1, 1), (256, 1, 1)),
        ((1, 0, 1), (1, 256, 1)),
        ((1, 1, 0), (1, 1, 128)),
        ((257, 258, 129), (1, 2, 1)),
        ((511, 511, 255), (255, 255, 127)),
    ],
)
def test_counts_of_no_mad_count_modulo_the_most(
    counts: tuple[int, int, int], means: tuple[int, int, int]
) -> None:
    trace, meant = quiet(700), quiet(700)
    for each, shape in ((trace, counts), (meant, means)):
        start(each, 0, *shape)
        each["a_valid"][:] = each["b_valid"][:] = True
    right = both(meant)[1]
    for found in both(trace):
        for name, array in right.items():
            assert np.array_equal(array, found[name]), name
