"""A picture of one scale box going through the unit, drawn from its Verilog under Verilator.

`python -m scalebox.rtl.cosim.picture` writes it anew.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...codegen.isa.scale_unit import START
from ...ir.dtypes.boxes import BOX_BYTES
from ...ir.errors import UserError
from ...traces.whole import written_whole
from .verilated_unit import VerilatedUnit

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

__all__ = ["PICTURE", "picture"]

PICTURE: Final = "docs/rtl-box.svg"
"""Where the picture lies, from the root of the project."""

_BEAT_BYTES: Final = 8
_BEATS: Final = BOX_BYTES // _BEAT_BYTES
_CYCLES: Final = 11
_START: Final = 1
_MAD: Final = {"row_tiles": 1, "column_tiles": 1, "groups": 2, "paired": 0}

_LEFT, _TOP, _CYCLE, _ROW, _HIGH = 110, 30, 60, 34, 18


@dataclass(frozen=True, slots=True)
class _Lane:
    """A line of the picture: a wire that is up or down, or a word shown while it counts."""

    title: str
    wire: str
    word: str = ""


_LANES: Final = (
    _Lane("start valid", "start_valid"),
    _Lane("start ready", "start_ready"),
    _Lane("a_request", "a_request_valid", "tile {a_request_tile}, block {a_request_block}"),
    _Lane("a valid", "a_valid"),
    _Lane("a", "a_valid", "{a}"),
    _Lane("a ready", "a_ready"),
    _Lane("o valid", "o_valid"),
    _Lane("o group", "o_valid", "group {o_group}"),
    _Lane("o end", "o_end"),
)


def picture() -> str:
    """Return the picture as SVG, always the same bytes.

    Raises:
        MissingSimulatorError: If Verilator, or a tool that it needs, is not installed.
    """
    given = _inputs()
    with VerilatedUnit(beat_bytes=_BEAT_BYTES) as unit:
        trace = {**given, **unit.record(given)}
    width, height = _LEFT + _CYCLES * _CYCLE + 10, _TOP + len(_LANES) * _ROW + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for cycle in range(_CYCLES):
        x = _LEFT + cycle * _CYCLE
        lines.append(f'<path d="M{x} {_TOP - 8}V{height - 10}" stroke="#ddd"/>')
        shown = cycle - _START
        if shown >= 0:
            lines.append(f'<text x="{x + 24}" y="{_TOP - 14}" fill="#666">{shown}</text>')
    lines.append(f'<text x="6" y="{_TOP - 14}" fill="#666">cycle</text>')
    for number, lane in enumerate(_LANES):
        lines += _drawn(lane, _TOP + number * _ROW, trace)
    return "\n".join([*lines, "</svg>", ""])


def _inputs() -> dict[str, npt.NDArray[Any]]:
    """Return the wires into the unit: one mad of a single pair of boxes, and nobody stalls."""
    names = ("start_valid", "a_request_ready", "b_request_ready", "a_valid", "b_valid", "o_ready")
    given: dict[str, npt.NDArray[Any]] = {name: np.zeros(_CYCLES, np.bool_) for name in names}
    for name in ("a_request_ready", "b_request_ready", "o_ready"):
        given[name][:] = True
    given["start_valid"][_START] = True
    for field in START:
        given[f"start_{field.name}"] = np.full(_CYCLES, _MAD[field.name], np.uint16)
    codes = np.arange(BOX_BYTES, dtype=np.uint8).reshape(_BEATS, _BEAT_BYTES) + np.uint8(120)
    first = _START + 2
    for side in ("a", "b"):
        given[f"{side}_valid"][first : first + _BEATS] = True
        given[side] = np.zeros((_CYCLES, _BEAT_BYTES), np.uint8)
        given[side][first : first + _BEATS] = codes
    return given


def _drawn(lane: _Lane, y: int, trace: Mapping[str, npt.NDArray[Any]]) -> list[str]:
    """Return a lane as SVG."""
    middle = y + _HIGH - 5
    lines = [f'<text x="6" y="{middle}">{lane.title}</text>']
    wire = trace[lane.wire]
    if not lane.word:
        path = f"M{_LEFT} {y if wire[0] else y + _HIGH}"
        for cycle in range(_CYCLES):
            path += f"V{y if wire[cycle] else y + _HIGH}h{_CYCLE}"
        return [*lines, f'<path d="{path}" fill="none" stroke="#06c" stroke-width="1.5"/>']
    for cycle in np.flatnonzero(wire).tolist():
        x = _LEFT + cycle * _CYCLE
        values = {name: array[cycle] for name, array in trace.items()}
        values["a"] = f"{values['a'][0]}..{values['a'][-1]}"
        text = lane.word.format(**values)
        lines += [
            f'<rect x="{x + 1}" y="{y}" width="{_CYCLE - 2}" height="{_HIGH}" fill="#e8f0fb" '
            'stroke="#06c"/>',
            f'<text x="{x + _CYCLE // 2}" y="{middle}" text-anchor="middle" font-size="8">'
            f"{text}</text>",
        ]
    return lines


def main() -> int:
    """Write the picture and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m scalebox.rtl.cosim.picture",
        description="Draw one box going through the scale-decode unit, from the Verilog as it is.",
    )
    parser.add_argument(
        "file", metavar="FILE", type=Path, nargs="?", default=Path(PICTURE), help=f"else {PICTURE}"
    )
    path: Path = parser.parse_args().file
    try:
        text = picture()
        with written_whole(path) as new:
            new.write_text(text, encoding="utf-8")
    except UserError as error:
        print(error.render(), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
