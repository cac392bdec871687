"""All wires of the scale-decode unit as arrays, an entry a cycle.

A trace maps names to arrays: of every stream `<stream>_valid` and `<stream>_ready`, bool [cycles], and
an array for each field of its word, `<stream>_<field>`, after the tables of
`codegen.isa.scale_unit`; the beats are `a` and `b`, uint8 [cycles, beat bytes]. The halves of a
record lie beside its fields, as `o_a_exponent`, int16 [cycles, 2, 16], and so on. `reset` may be
among them. A word that is not on offer is zero where the unit drives it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...codegen.isa.scale_unit import RECORD, REQUEST, START
from ...ir.dtypes import DType
from ...ir.dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ...ir.dtypes.formats import format_of
from ...ir.jit import compiled
from .unit import (
    END,
    FLAG_BITS,
    LAST,
    RECORD_WORDS,
    RESET,
    SECOND,
    STREAMS,
    TILE_SHIFT,
    A,
    Answer,
    B,
    O,
    step,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from .feed import Handshakes

    Array = npt.NDArray[Any]
    Bits = npt.NDArray[np.uint8]
    Pairs = npt.NDArray[np.uint16]
    Exponents = npt.NDArray[np.int16]
    Flags = npt.NDArray[np.bool_]
    Line = npt.NDArray[np.int32]
    Trace = dict[str, Array]

_BIAS, _NAN = format_of(DType.E8M0).bias, format_of(DType.E8M0).nan_code
assert _NAN is not None, "E8M0 has a NaN"
_NAN_EXPONENT: Final = _NAN - _BIAS
assert BOX_GROUPS == 2, "the groups of a row are the bytes of a 16-bit word"
_INPUTS: Final = ("start", "a", "b")
"""Streams whose words flow into the unit."""

_FLAGS: Final = {"second": SECOND, "last": LAST, "end": END}


def answer_trace(inputs: Mapping[str, Array]) -> Trace:
    """Return what stands on the wires that the unit drives, from what stands on the others.

    Args:
        inputs: Arrays of every wire into the unit, which comes out of reset before the first cycle.
    """
    given = _given(inputs)
    start = np.stack([inputs[f"start_{field.name}"] for field in START], axis=1, dtype=np.uint16)
    beat_bytes = inputs["a"].shape[1]
    answer = step(given, start, beat_bytes=beat_bytes)
    passed = np.where(given & RESET, 0, given & answer.answered)
    came = [inputs[name][passed & bit != 0] for name, bit in (("a", A), ("b", B))]
    return _driven(answer, *came)


def trace_of(
    handshakes: Handshakes,
    mads: npt.NDArray[np.uint16],
    a_boxes: Bits,
    b_boxes: Bits,
    *,
    beat_bytes: int,
) -> Trace:
    """Return all wires of a unit that works through mads from its reset on.

    Handshakes are as recorded, words as the unit drives them now. What is not on offer into the unit
    is the complement of what comes next, so that whoever takes it is found out.

    Args:
        handshakes: What `feed.feed` makes of the mads.
        mads: Their start words.
        a_boxes: The boxes of the left side in the order of the requests, uint8 [boxes, BOX_BYTES].
        b_boxes: Those of the right side.
        beat_bytes: Width of a beat.
    """
    given, answered = handshakes.given, handshakes.answered
    trace: Trace = {}
    for place, name in enumerate(STREAMS):
        ours, theirs = ("valid", "ready") if name in _INPUTS else ("ready", "valid")
        trace[f"{name}_{ours}"] = (given >> place & 1).astype(np.bool_)
        trace[f"{name}_{theirs}"] = (answered >> place & 1).astype(np.bool_)
    words = np.vstack([mads, np.zeros((1, mads.shape[1]), np.uint16)])
    at = _next(trace, "start", len(mads))
    for column, field in enumerate(START):
        word: Array = words[at, column]
        idle = word ^ ((1 << field.bits) - 1)
        kind = np.bool_ if field.bits == 1 else np.uint16
        trace[f"start_{field.name}"] = np.where(trace["start_valid"], word, idle).astype(kind)
    for name, boxes in (("a", a_boxes), ("b", b_boxes)):
        beats = np.vstack([boxes.reshape(-1, beat_bytes), np.zeros((1, beat_bytes), np.uint8)])
        word = beats[_next(trace, name, len(beats) - 1)]
        word[~trace[f"{name}_valid"]] ^= 0xFF
        trace[name] = word
    return answer_trace(trace) | trace


def _next(trace: Trace, name: str, count: int) -> npt.NDArray[np.int64]:
    """Return the number of the word of a stream that comes next, int64 [cycles], at most `count`."""
    passed = trace[f"{name}_valid"] & trace[f"{name}_ready"]
    return np.minimum(np.cumsum(passed, dtype=np.int64) - passed, count)


def _given(inputs: Mapping[str, Array]) -> Bits:
    """Return the handshake words of the wires into the unit."""
    cycles = len(inputs["a_valid"])
    given = np.zeros(cycles, np.uint8)
    for place, name in enumerate(STREAMS):
        wire = inputs[f"{name}_valid" if name in _INPUTS else f"{name}_ready"]
        given |= wire.astype(np.uint8) << np.uint8(place)
    if "reset" in inputs:
        given |= inputs["reset"].astype(np.uint8) * np.uint8(RESET)
    return given


def _driven(answer: Answer, a_beats: Bits, b_beats: Bits) -> Trace:
    """Return the arrays of the wires that the unit drives; the arguments of `record_trace`."""
    trace: Trace = {}
    for place, name in enumerate(STREAMS):
        wire = f"{name}_ready" if name in _INPUTS else f"{name}_valid"
        trace[wire] = (answer.answered >> place & 1).astype(np.bool_)
    for name, words in (("a_request", answer.a_request), ("b_request", answer.b_request)):
        shown = np.where(trace[f"{name}_valid"], words, 0)
        tile, block = REQUEST
        trace[f"{name}_{tile.name}"] = (shown >> TILE_SHIFT).astype(np.uint8)
        trace[f"{name}_{block.name}"] = (shown & ((1 << TILE_SHIFT) - 1)).astype(np.uint8)
    return trace | record_trace(answer, a_beats, b_beats)


def record_trace(
    answer: Answer, a_beats: Bits, b_beats: Bits, *, room: Trace | None = None
) -> Trace:
    """Return every field of the record on offer in each cycle, zeros where none is.

    Args:
        answer: What the registers say.
        a_beats: The beats of the left side that passed, uint8 [beats, beat bytes].
        b_beats: Those of the right side.
        room: What an earlier call returned for as many cycles, to be written over; new arrays by
            default.
    """
    offered = answer.answered & O != 0
    # The line behind the last record stands for none.
    line = np.where(offered, answer.record, len(answer.records))
    records = np.vstack([answer.records, np.zeros((1, RECORD_WORDS), np.int32)])
    names = records[:, 0][line]
    flags = {f"o_{name}": names & flag != 0 for name, flag in _FLAGS.items()}
    trace: Trace = {"o_group": (names >> FLAG_BITS).astype(np.uint8), **flags}
    assert trace.keys() == {f"o_{field.name}" for field in RECORD}, "a field is missing"
    for column, (side, beats) in enumerate((("a", a_beats), ("b", b_beats)), start=1):
        exponent, nan = f"o_{side}_exponent", f"o_{side}_nan"
        shape = len(offered), BOX_GROUPS, BOX_ROWS
        trace[exponent] = np.empty(shape, np.int16) if room is None else room[exponent]
        trace[nan] = np.empty(shape, np.bool_) if room is None else room[nan]
        pairs = np.ascontiguousarray(beats).reshape(-1).view("<u2")
        first = records[:, column] * (beats.shape[1] // BOX_GROUPS)
        _decode(offered, names, first[line], pairs, trace[exponent].reshape(-1))
        np.equal(trace[exponent], _NAN_EXPONENT, out=trace[nan])
    return trace


@compiled
def _decode(offered: Flags, names: Line, first: Line, pairs: Pairs, exponent: Exponents) -> None:
    """Write the exponents of one side; unsigned places as in `kernels`.

    Args:
        offered: Whether a record is on offer in a cycle, bool [cycles].
        names: Its name, int32 [cycles].
        first: The first of its pairs, int32 [cycles].
        pairs: The codes of the groups of a row in the low and the high byte, uint16 [rows].
        exponent: Where they go, int16 [cycles * BOX_GROUPS * BOX_ROWS].
    """
    rows, high, low, bias = np.uintp(BOX_ROWS), np.uint16(8), np.uint16(0xFF), np.int16(_BIAS)
    for cycle in range(np.uintp(len(offered))):
        here = np.uintp(first[cycle])
        for half in range(np.uintp(BOX_GROUPS)):
            there = (cycle * np.uintp(BOX_GROUPS) + half) * rows
            if not (names[cycle] & SECOND if half else offered[cycle]):
                for row in range(rows):
                    exponent[there + row] = 0
            elif half or names[cycle] >> FLAG_BITS & 1:
                for row in range(rows):
                    exponent[there + row] = np.int16(pairs[here + row] >> high) - bias
            else:
                for row in range(rows):
                    exponent[there + row] = np.int16(pairs[here + row] & low) - bias
