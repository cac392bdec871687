"""Cases of the units that handle scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...codegen.isa.scale_unit import HALF, RECORD, REQUEST, START
from ...ir.dtypes import DType
from ...ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS
from ...ir.numerics import decode
from ...sim.scales.feed import Surroundings, boxes_of, feed
from ...sim.scales.wires import trace_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from ...rtl.emit.units import Choice

__all__ = ["scale_decode_cases", "scale_pair_cases"]

_CODES: Final = 256
_CORNERS: Final = (0, 1, 126, 127, 128, 253, 254, 255)
_READ_CYCLES: Final = 1
_SEED: Final = 5


def scale_pair_cases() -> list[dict[str, Any]]:
    """Return every code beside the codes at the corners, on either side."""
    codes = np.arange(_CODES).repeat(len(_CORNERS))
    corners = np.tile(_CORNERS, _CODES)
    cases: list[dict[str, Any]] = []
    for name, a, b in (
        ("every left code beside the corners", codes, corners),
        ("every right code beside the corners", corners, codes),
    ):
        product = decode(a.astype(np.uint8), DType.E8M0).astype(np.float64)
        product *= decode(b.astype(np.uint8), DType.E8M0)
        is_nan = np.isnan(product)
        # A product of two scales is a power of two: half of it has the exponent that frexp gives.
        exponent = np.frexp(np.where(is_nan, 1.0, product))[1] - 1
        words = {
            "a": a.tolist(),
            "b": b.tolist(),
            "is_nan": is_nan.astype(int).tolist(),
            "exponent": [None if nan else int(e) for nan, e in zip(is_nan, exponent, strict=True)],
        }
        cases.append({"name": name, "words": words})
    return cases


@dataclass(frozen=True, slots=True)
class _Plan:
    """Mads of a case, each (row tiles, column tiles, groups, paired), and their scale codes."""

    name: str
    mads: tuple[tuple[int, int, int, int], ...]
    every_code: bool = False


_PLANS: Final = (
    _Plan("every code, a group a record", ((1, 1, 16, 0),), every_code=True),
    _Plan("every code, two groups a record", ((1, 1, 16, 1),), every_code=True),
    _Plan("one group", ((1, 1, 1, 0), (1, 1, 1, 1))),
    _Plan("an odd number of groups", ((2, 3, 3, 0),)),
    _Plan("an odd number of groups, two a record", ((3, 2, 5, 1),)),
    _Plan("one mad after another", ((1, 2, 4, 0), (2, 1, 2, 1), (1, 1, 3, 0))),
)


def scale_decode_cases(choice: Choice) -> list[dict[str, Any]]:
    """Return mads with all the words that pass, and the cycles in which they do.

    Args:
        choice: Width of a beat, and whether records carry combined exponents.
    """
    return [_case(plan, choice) for plan in _PLANS]


def _case(plan: _Plan, choice: Choice) -> dict[str, Any]:
    mads = np.array(plan.mads, np.uint16)
    around = Surroundings(choice.beat_bytes, _READ_CYCLES, head_cycles=0)
    a_boxes, b_boxes = _boxes(plan, int(boxes_of(mads).sum()))
    trace = trace_of(feed(mads, around), mads, a_boxes, b_boxes, beat_bytes=choice.beat_bytes)
    words: dict[str, list[Any]] = {}
    cycles: dict[str, list[int]] = {}
    for name, fields in (
        ("start", [field.name for field in START]),
        ("a_request", [field.name for field in REQUEST]),
        ("b_request", [field.name for field in REQUEST]),
    ):
        cycles[name] = _passes(trace, name)
        columns = {field: trace[f"{name}_{field}"][cycles[name]] for field in fields}
        words[name] = list(_words(columns))
    for name in ("a", "b"):
        cycles[name] = _passes(trace, name)
        words[name] = trace[name][cycles[name]].tolist()
    cycles["o"] = _passes(trace, "o")
    words["o"] = list(_words(_record_columns(trace, cycles["o"], combined=choice.combined)))
    begin = cycles["start"][0]
    counted = {name: [cycle - begin for cycle in each] for name, each in cycles.items()}
    return {"name": plan.name, "words": words, "cycles": counted}


def _boxes(plan: _Plan, count: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return the boxes of both sides, in the order of the requests, uint8 [count, BOX_BYTES]."""
    rng = np.random.default_rng(_SEED)
    if plan.every_code:
        codes = np.arange(_CODES, dtype=np.uint8).reshape(count, BOX_BYTES)
        return codes, rng.permutation(codes.reshape(-1)).reshape(count, BOX_BYTES)
    a, b = rng.integers(0, _CODES, (2, count, BOX_BYTES), np.uint8)
    return a, b


def _passes(trace: Mapping[str, npt.NDArray[Any]], name: str) -> list[int]:
    """Return the cycles in which a word of a stream passes."""
    return np.flatnonzero(trace[f"{name}_valid"] & trace[f"{name}_ready"]).tolist()


def _record_columns(
    trace: Mapping[str, npt.NDArray[Any]], cycles: list[int], *, combined: bool
) -> dict[str, npt.NDArray[Any]]:
    columns = {field.name: trace[f"o_{field.name}"][cycles] for field in RECORD}
    halves = {field.name: trace[f"o_{field.name}"][cycles] for field in HALF}
    columns |= {f"halves.{name}": column for name, column in halves.items()}
    if combined:
        pairs = (len(cycles), BOX_GROUPS, BOX_ROWS * BOX_ROWS)
        exponents = halves["a_exponent"][..., None] + halves["b_exponent"][..., None, :]
        flags = halves["a_nan"][..., None] | halves["b_nan"][..., None, :]
        columns["combined.exponent"] = exponents.reshape(pairs)
        columns["combined.is_nan"] = flags.reshape(pairs)
    return columns


def _words(columns: Mapping[str, npt.NDArray[Any]]) -> Iterator[dict[str, Any]]:
    """Yield a word an entry, from arrays of its fields."""
    lists = {
        name: (column.astype(int) if column.dtype == np.bool_ else column).tolist()
        for name, column in columns.items()
    }
    for entries in zip(*lists.values(), strict=True):
        yield dict(zip(lists, entries, strict=True))
