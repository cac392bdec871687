"""The figures of one netlist."""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..cosim.cache import cached_build
from .tools import SynthesisTool, run_tool, tool_version

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEVICE", "GATES", "PLACED_LUTS", "Figures", "measured"]

GATES: Final = ("AND", "OR", "XOR", "MUX")
"""What the gates of the generic netlist are, inverters beside."""

DEVICE: Final = ("--85k", "--speed", "8", "--package", "CABGA756")
"""The ECP5 that nextpnr places for."""

PLACED_LUTS: Final = 5000
"""Units of more LUT4 are not placed, which would take many minutes."""

_FIGURES: Final = "figures.json"
_GENERIC: Final = (
    "read_verilog unit.v; synth -flatten -top {top}; abc -g {gates}; opt_clean; "
    "tee -q -o cells.json stat -json; tee -q -o depth.txt ltp -noff"
)
_ECP5: Final = (
    "read_verilog unit.v; synth_ecp5 -noiopad -top {top} -json netlist.json; "
    "tee -q -o cells.json stat -json"
)
_PLACE: Final = (
    *DEVICE,
    *("--out-of-context", "--timing-allow-fail", "-q"),
    *("--json", "netlist.json", "--report", "report.json"),
)
_FLIP_FLOP: Final = re.compile(r"\$_\w*DFF\w*_")
_DEPTH: Final = re.compile(r"Longest topological path in \w+ \(length=(\d+)\)")


@dataclass(frozen=True, slots=True)
class Figures:
    """What a unit takes.

    Attributes:
        gates: Two-input gates, multiplexers and inverters of the generic netlist.
        levels: Gates on its longest path between registers or ports.
        flip_flops: Its registers, in bits.
        luts: LUT4 on ECP5.
        carries: CCU2C, two bits of a carry chain each.
        multipliers: MULT18X18D.
        ecp5_flip_flops: TRELLIS_FF.
        megahertz: What nextpnr reaches, or None for a unit without a clock, or one too large.
    """

    gates: int
    levels: int
    flip_flops: int
    luts: int
    carries: int
    multipliers: int
    ecp5_flip_flops: int
    megahertz: float | None


def measured(text: str, *, top: str) -> Figures:
    """Return the figures of a netlist, taking them where that was never done before.

    Args:
        text: The Verilog.
        top: Its top module.

    Raises:
        MissingToolError: If Yosys or nextpnr is not installed.
        CacheError: If the cache folder cannot be written.
    """
    ingredients = (
        text,
        top,
        _GENERIC,
        _ECP5,
        *GATES,
        *_PLACE,
        str(PLACED_LUTS),
        *map(tool_version, SynthesisTool),
    )

    def take(folder: Path) -> None:
        figures = _measure(text, top)
        (folder / _FIGURES).write_text(json.dumps(asdict(figures)), encoding="utf-8")

    folder = cached_build(f"synthesis-{top}", ingredients, take)
    return Figures(**json.loads((folder / _FIGURES).read_text(encoding="utf-8")))


def _measure(text: str, top: str) -> Figures:
    with tempfile.TemporaryDirectory(prefix="scalebox-synthesis-") as name:
        folder = Path(name)
        (folder / "unit.v").write_text(text, encoding="utf-8")
        _yosys(_GENERIC.format(top=top, gates=",".join(GATES)), folder)
        generic = _cells(folder)
        depth = _DEPTH.search((folder / "depth.txt").read_text(encoding="utf-8"))
        assert depth is not None, "ltp names a longest path"
        _yosys(_ECP5.format(top=top), folder)
        ecp5 = _cells(folder)
        is_placed = "TRELLIS_FF" in ecp5 and ecp5.get("LUT4", 0) <= PLACED_LUTS
        return Figures(
            gates=sum(generic.get(f"$_{gate}_", 0) for gate in (*GATES, "NOT")),
            levels=int(depth[1]),
            flip_flops=sum(n for cell, n in generic.items() if _FLIP_FLOP.fullmatch(cell)),
            luts=ecp5.get("LUT4", 0),
            carries=ecp5.get("CCU2C", 0),
            multipliers=ecp5.get("MULT18X18D", 0),
            ecp5_flip_flops=ecp5.get("TRELLIS_FF", 0),
            megahertz=_clock(folder) if is_placed else None,
        )


def _yosys(script: str, folder: Path) -> None:
    run_tool(SynthesisTool.YOSYS, "-q", "-p", script, folder=folder)


def _cells(folder: Path) -> Mapping[str, int]:
    """Return the count of every type of cell."""
    report: dict[str, Any] = json.loads((folder / "cells.json").read_text(encoding="utf-8"))
    return report["design"]["num_cells_by_type"]


def _clock(folder: Path) -> float | None:
    """Place and route; return the clock in MHz that paths between registers allow, if any."""
    run_tool(SynthesisTool.NEXTPNR, *_PLACE, folder=folder)
    report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    clocks = [float(clock["achieved"]) for clock in report["fmax"].values()]
    return min(clocks, default=None)
