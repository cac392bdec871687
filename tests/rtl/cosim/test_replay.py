# amaranth: UnusedElaboratable=no
"""Recordings replayed on the hardware: equal where they are, and the first difference where not."""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from scalebox.ir.errors import UserError
from scalebox.rtl.cosim.replay import Difference, replay, replay_cocotb
from scalebox.rtl.cosim.toolchain import Simulator
from scalebox.rtl.cosim.verilated_unit import VerilatedUnit
from scalebox.rtl.cosim.wires import flows, inputs, outputs
from scalebox.rtl.scale_decode import ScaleDecode

from ..benches.scale_decode_spec import Mad, random_codes
from ..scale_decode_runs import Run, Stalls

Trace = dict[str, npt.NDArray[Any]]

WIDTHS = pytest.mark.parametrize("beat_bytes", [8, 16, 32])
MADS = [Mad(2, 2, 3), Mad(1, 2, 4, True), Mad(1, 1, 1)]
STALLS = Stalls(0.3, 0.3, 0.3, 0.3, 0.3, 0.3)


def recorded(beat_bytes: int) -> Trace:
    """A run in Amaranth's simulator, with stalls at all sides and a reset in its midst."""
    codes = random_codes(MADS)
    return Run(MADS, codes, beat_bytes=beat_bytes, stalls=STALLS, reset_at=23).trace


@pytest.fixture(scope="module")
def trace() -> Trace:
    return recorded(32)


def smudged(trace: Trace, name: str, cycle: int) -> Trace:
    """The trace with one bit wrong in the last entry of one cycle."""
    array = trace[name].copy()
    array.reshape(len(array), -1)[cycle, -1] ^= 1
    return trace | {name: array}


@WIDTHS
@pytest.mark.parametrize("combined", [False, True])
def test_the_table_of_wires_has_the_widths_of_the_ports(beat_bytes: int, combined: bool) -> None:
    unit = ScaleDecode(beat_bytes=beat_bytes, combined=combined)
    found = {flow.name: flow.bits for flow in flows(beat_bytes, combined=combined)}
    ports = ("start", "a_request", "b_request", "a", "b", "o")
    assert found == {port: len(getattr(unit, port).payload.as_value()) for port in ports}


def test_words_and_arrays_are_each_others_inverse(trace: Trace) -> None:
    for flow in flows(32):
        words = flow.pack(trace)
        assert len(words) == len(trace["a"])
        for name in (wire.name for wire in flow.fields):
            again = np.array([flow.unpack(word)[name] for word in words])
            np.testing.assert_array_equal(again, trace[name])


@WIDTHS
def test_what_amaranths_simulator_recorded_is_equal_in_verilators_library(beat_bytes: int) -> None:
    trace = recorded(beat_bytes)
    result = replay([trace], beat_bytes=beat_bytes)
    assert result.equal
    assert result.cycles == len(trace["a"])
    passed = trace["o_valid"] & trace["o_ready"] & ~trace["reset"]
    assert result.transfers["o"] == int(passed.sum())
    assert list(result.transfers) == ["start", "a_request", "b_request", "a", "b", "o"]


def test_a_recording_in_pieces_is_the_same_recording(trace: Trace) -> None:
    cuts = [0, 1, 20, 24, len(trace["a"])]
    pieces = [
        {name: array[first:last] for name, array in trace.items()}
        for first, last in itertools.pairwise(cuts)
    ]
    assert replay(pieces, beat_bytes=32) == replay([trace], beat_bytes=32)
    later = [*pieces[:2], smudged(pieces[2], "a_ready", 3), *pieces[3:]]
    result = replay(later, beat_bytes=32)
    assert result.cycles == 24
    assert result.difference is not None
    assert (result.difference.cycle, result.difference.wire) == (23, "a_ready")
    assert replay([], beat_bytes=32).cycles == 0


@pytest.mark.parametrize("wire", outputs(flows(32)), ids=lambda wire: wire.name)
def test_a_bit_wrong_on_any_wire_out_of_the_unit_is_found(trace: Trace, wire: Any) -> None:
    flow = next(flow for flow in flows(32) if wire in (flow.ready, flow.valid, *flow.fields))
    cycles = range(len(trace["a"])) if flow.is_input else np.flatnonzero(trace[flow.valid.name])
    at = int(cycles[len(cycles) // 2])
    result = replay([smudged(trace, wire.name, at)], beat_bytes=32)
    assert result.difference is not None
    assert result.cycles == at + 1
    assert (result.difference.cycle, result.difference.wire.split("[")[0]) == (at, wire.name)
    right = int(trace[wire.name].reshape(len(trace["a"]), -1)[at, -1])
    assert (result.difference.expected, result.difference.found) == (right ^ 1, right)


def test_a_word_that_is_not_on_offer_may_be_anything(trace: Trace) -> None:
    for name, valid in (("o_group", "o_valid"), ("b_request_tile", "b_request_valid")):
        idle = int(np.flatnonzero(~trace[valid])[0])
        assert replay([smudged(trace, name, idle)], beat_bytes=32).equal


def test_of_several_differences_the_first_wire_of_the_first_cycle_is_told(trace: Trace) -> None:
    at = int(np.flatnonzero(trace["o_valid"])[4])
    wrong = smudged(smudged(trace, "o_b_nan", at), "a_ready", at + 1)
    wrong["o_a_exponent"] = wrong["o_a_exponent"].copy()
    wrong["o_a_exponent"][at, 0, 3] += 2
    right = int(trace["o_a_exponent"][at, 0, 3])
    expected = Difference(at, "o_a_exponent[0, 3]", right + 2, right)
    assert replay([wrong], beat_bytes=32).difference == expected
    assert str(expected) == (f"cycle {at}: o_a_exponent[0, 3] must be {right + 2}, not {right}")


def test_cocotb_finds_the_same(trace: Trace, simulator: Simulator) -> None:
    equal = replay_cocotb(trace, simulator=simulator)
    assert equal.equal
    assert equal.engine == f"cocotb on {simulator.title}"
    assert equal.transfers == replay([trace], beat_bytes=32).transfers
    at = int(np.flatnonzero(trace["o_valid"])[4])
    wrong = smudged(trace, "o_a_exponent", at)
    told = replay_cocotb(wrong, simulator=simulator)
    assert told.difference == replay([wrong], beat_bytes=32).difference
    assert told.cycles == at + 1
    limited = replay_cocotb(smudged(trace, "b_ready", 30), simulator=simulator, limit_cycles=30)
    assert (limited.equal, limited.cycles) == (True, 30)


# In bulk, where every cycle number can be written down


def decoded(codes: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]:
    """Boxes [n, 16, 2] as exponents and flags [n, 2, 16], by E8M0's definition."""
    groups = codes.transpose(0, 2, 1)
    return groups.astype(np.int16) - 127, groups == 255


def bulk(row_tiles: int, column_tiles: int, blocks: int, seed: int) -> Trace:
    """A paired mad that nobody stalls: a box a side and a record in every cycle."""
    rng = np.random.default_rng(seed)
    a_codes = rng.integers(0, 256, (row_tiles, blocks, 16, 2), dtype=np.uint8)
    b_codes = rng.integers(0, 256, (column_tiles, blocks, 16, 2), dtype=np.uint8)
    order = np.indices((row_tiles, column_tiles, blocks)).reshape(3, -1)
    rows, columns, block = order
    count = order.shape[1]
    cycles = count + 6

    def at(first: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        array = np.zeros((cycles, *values.shape[1:]), dtype=values.dtype)
        array[first : first + count] = values
        return array

    always = np.ones(cycles, dtype=np.bool_)
    under_way = at(1, np.ones(count, dtype=np.bool_))
    trace: Trace = {
        "start_valid": np.arange(cycles) == 0,
        "start_row_tiles": np.full(cycles, row_tiles),
        "start_column_tiles": np.full(cycles, column_tiles),
        "start_groups": np.full(cycles, 2 * blocks),
        "start_paired": always,
        # Busy from cycle 1 to that of the last record, 3 + count.
        "start_ready": (np.arange(cycles) == 0) | (np.arange(cycles) > 3 + count),
        "o_ready": always,
        "o_valid": at(4, np.ones(count, dtype=np.bool_)),
        "o_group": at(4, 2 * block),
        "o_second": at(4, np.ones(count, dtype=np.bool_)),
        "o_last": at(4, block == blocks - 1),
        "o_end": at(4, np.arange(count) == count - 1),
    }
    for side, tile, codes in (("a", rows, a_codes), ("b", columns, b_codes)):
        boxes = codes[tile, block]
        exponents, flags = decoded(boxes)
        trace |= {
            f"{side}_request_ready": always,
            f"{side}_request_valid": under_way,
            f"{side}_request_tile": at(1, tile),
            f"{side}_request_block": at(1, block),
            f"{side}_valid": at(2, np.ones(count, dtype=np.bool_)),
            side: at(2, boxes.reshape(count, 32)),
            f"{side}_ready": always,
            f"o_{side}_exponent": at(4, exponents),
            f"o_{side}_nan": at(4, flags),
        }
    return trace


@pytest.mark.parametrize("size", [(16, 16, 64), (256, 2, 3), (3, 256, 1)], ids=str)
def test_large_mads_without_stalls_keep_every_cycle_that_arithmetic_gives(
    size: tuple[int, int, int],
) -> None:
    trace = bulk(*size, seed=3)
    result = replay([trace], beat_bytes=32)
    assert result.difference is None
    assert result.transfers["o"] == size[0] * size[1] * size[2]


def test_every_pair_of_codes_combines_exactly_in_a_record() -> None:
    # 16 rows times 16 columns a group: 16 tiles of each side hold all 256 codes in group 0.
    count = 16 * 16
    trace = bulk(16, 16, 1, seed=4)
    for side, tiles in (("a", np.arange(count) // 16), ("b", np.arange(count) % 16)):
        lanes = tiles[:, None] * 16 + np.arange(16)
        trace[side][2 : 2 + count, 0::2] = lanes
        trace[side][2 : 2 + count, 1::2] = 255 - lanes
    with VerilatedUnit(beat_bytes=32, combined=True) as unit:
        found = unit.record({wire.name: trace[wire.name] for wire in inputs(flows(32))})
    sums = found["o_combined_exponent"][4 : 4 + count].reshape(16, 16, 2, 16, 16)
    flags = found["o_combined_is_nan"][4 : 4 + count].reshape(16, 16, 2, 16, 16)
    codes = np.arange(256)
    for half, order in ((0, codes), (1, 255 - codes)):
        # [row tile, column tile, row, column] becomes [row, column] of all 256.
        table = sums[:, :, half].transpose(0, 2, 1, 3).reshape(256, 256)
        is_nan = flags[:, :, half].transpose(0, 2, 1, 3).reshape(256, 256)
        np.testing.assert_array_equal(table, order[:, None] + order[None, :] - 254)
        np.testing.assert_array_equal(is_nan, (order[:, None] == 255) | (order[None, :] == 255))


# What is no recording


@pytest.mark.parametrize(
    ("change", "kind", "sentence"),
    [
        (
            {"o_ready": None},
            ValueError,
            r"^A trace of the unit must hold an array 'o_ready', not only \[",
        ),
        (
            {"a": np.zeros((5, 16), dtype=np.uint8)},
            ValueError,
            r"^The trace's array 'a' must have the shape \(\d+, 32\), not \(5, 16\)$",
        ),
        (
            {"start_groups": 256},
            ValueError,
            r"^The trace's array 'start_groups' must lie within 0 to 255, not 256 to 256$",
        ),
        (
            {"o_a_exponent": 1.0},
            TypeError,
            r"^The trace's array 'o_a_exponent' must hold integers, not float64$",
        ),
    ],
)
def test_a_trace_that_does_not_fit_the_unit_is_refused(
    trace: Trace, change: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    broken: Trace = dict(trace)
    for name, value in change.items():
        if value is None:
            del broken[name]
        elif isinstance(value, np.ndarray):
            broken[name] = value
        else:
            broken[name] = np.full(trace[name].shape, value)
    with pytest.raises(kind, match=sentence) as caught:
        replay([broken], beat_bytes=32)
    assert isinstance(caught.value, UserError)


def test_a_trace_without_beats_is_refused(trace: Trace) -> None:
    with pytest.raises(UserError, match=r"must hold an array 'a' of shape"):
        replay_cocotb({"start_valid": trace["start_valid"]})
    with pytest.raises(UserError, match="one of 8, 16, 32, not 12"):
        replay([trace], beat_bytes=12)
