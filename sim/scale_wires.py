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

from ..codegen.isa.scale_unit import HALF, RECORD, REQUEST, START, Field
from ..ir.dtypes import DType
from ..ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS
from ..ir.dtypes.formats import format_of
from .scale_decode import (
    A_REQUEST,
    B_REQUEST,
    END,
    FLAG_BITS,
    LAST,
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

    from .scale_feed import Handshakes

    Array = npt.NDArray[Any]
    Bits = npt.NDArray[np.uint8]
    Trace = dict[str, Array]

_E8M0 = format_of(DType.E8M0)
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
    return _driven(answer, came[0], came[1], beat_bytes)


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
        handshakes: What `scale_feed.feed` makes of the mads.
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


def _driven(answer: Answer, a_beats: Bits, b_beats: Bits, beat_bytes: int) -> Trace:
    """Return the arrays of the wires that the unit drives.

    Args:
        answer: What the registers say.
        a_beats: The beats of the left side that passed, uint8 [beats, beat bytes].
        b_beats: Those of the right side.
        beat_bytes: Width of a beat.
    """
    trace: Trace = {}
    for place, name in enumerate(STREAMS):
        wire = f"{name}_ready" if name in _INPUTS else f"{name}_valid"
        trace[wire] = (answer.answered >> place & 1).astype(np.bool_)
    for name, bit, words in (
        ("a_request", A_REQUEST, answer.a_request),
        ("b_request", B_REQUEST, answer.b_request),
    ):
        shown = np.where(answer.answered & bit, words, 0)
        tile, block = REQUEST
        trace[f"{name}_{tile.name}"] = (shown >> TILE_SHIFT).astype(np.uint8)
        trace[f"{name}_{block.name}"] = (shown & ((1 << TILE_SHIFT) - 1)).astype(np.uint8)
    # The line behind the last record stands for none.
    at = np.where(answer.answered & O, answer.record, len(answer.records))
    for name, words in _words(answer.records, a_beats, b_beats, beat_bytes).items():
        trace[f"o_{name}"] = words[at]
    return trace


def _words(records: Array, a_beats: Bits, b_beats: Bits, beat_bytes: int) -> Trace:
    """Return every field of every record, and behind them zeros for none."""
    names, count = records[:, 0], len(records)
    words: Trace = {}
    for field in RECORD:
        is_flag = field.name in _FLAGS
        words[field.name] = np.zeros(count + 1, np.bool_ if is_flag else np.uint8)
        found = names & _FLAGS[field.name] if is_flag else names >> FLAG_BITS
        words[field.name][:count] = found != 0 if is_flag else found
    group, second = words["group"][:count] % BOX_GROUPS, words["second"][:count]
    for side, beats, first in (("a", a_beats, records[:, 1]), ("b", b_beats, records[:, 2])):
        parts = np.arange(BOX_BYTES // beat_bytes)
        boxes = beats[first[:, None] + parts].reshape(count, BOX_ROWS, BOX_GROUPS)
        codes = np.zeros((count, 2, BOX_ROWS), np.uint8)
        codes[:, 0] = boxes[np.arange(count), :, group]
        codes[:, 1] = boxes[:, :, 1]
        present = np.stack([np.ones_like(second), second], axis=1)[:, :, None]
        exponent, nan = (_of(f"{side}_{what}") for what in ("exponent", "nan"))
        words[exponent.name] = np.zeros((count + 1, 2, BOX_ROWS), np.int16)
        words[exponent.name][:count] = np.where(present, codes.astype(np.int16) - _E8M0.bias, 0)
        words[nan.name] = np.zeros((count + 1, 2, BOX_ROWS), np.bool_)
        words[nan.name][:count] = (codes == _E8M0.nan_code) & present
    return words


def _of(name: str) -> Field:
    """Return the field of a half that is called `name`."""
    return next(field for field in HALF if field.name == name)
