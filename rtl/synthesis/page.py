"""The synthesis report as a document."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..cube.verilog import part_modules
from ..emit.units import UNITS, parameters_of, variants, verilog
from .measure import DEVICE, GATES, PLACED_LUTS, measured
from .tools import SynthesisTool, tool_version

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["COMMAND", "PAGE", "Subject", "page", "stale", "subjects"]

PAGE: Final = "docs/rtl-synthesis.md"
"""Where the document lies, from the root of the project."""

COMMAND: Final = "python -m scalebox.rtl.synthesis"
"""What writes it anew."""

_ELEMENT: Final = "dot_core"

_COLUMNS: Final = (
    *("unit", "parameters", "gates", "levels", "flip-flops"),
    *("LUT4", "CCU2C", "MULT18", "TRELLIS_FF", "MHz", "Verilog"),
)
_DIGEST: Final = re.compile(r"^\| (.+?) \| (.+?) \|.* `([0-9a-f]+)` \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Subject:
    """A line of the report.

    Attributes:
        name: Of the unit.
        parameters: What it is built with, as text.
        top: Its top module.
        text: Its Verilog.
    """

    name: str
    parameters: str
    top: str
    text: str

    @property
    def digest(self) -> str:
        """What changes when the circuit does; the lines of comment before it do not count."""
        circuit = self.text[self.text.index("\nmodule ") :]
        return hashlib.sha256(circuit.encode()).hexdigest()[:12]


def subjects() -> Iterator[Subject]:
    """Yield every line: each unit with everything that can be chosen, and an element of the cube."""
    for name, choice in variants():
        if UNITS[name].parts is not dict:
            continue
        text = verilog(name, beat_bytes=choice.beat_bytes, combined=choice.combined)
        yield Subject(name, parameters_of(text), name, text)
    core = f"\n{part_modules()[_ELEMENT]}"
    yield Subject(f"{_ELEMENT}, of which the cube has 256", "none", _ELEMENT, core)


def page() -> str:
    """Return the document, taking the figures that were never taken before.

    Raises:
        MissingToolError: If Yosys or nextpnr is not installed.
        CacheError: If the cache folder cannot be written.
    """
    versions = " and ".join(f"{tool.package} {tool_version(tool)}" for tool in SynthesisTool)
    lines = [
        "# What the RTL costs",
        "",
        f"Written by `{COMMAND}` with {versions}; do not edit.",
        "",
        f"* **gates, levels, flip-flops**: Yosys `synth -flatten`, then `abc -g {','.join(GATES)}`: "
        "two-input gates, multiplexers and inverters. Levels are the gates on the longest path "
        "between registers or ports (`ltp -noff`).",
        "* **LUT4, CCU2C, MULT18, TRELLIS_FF**: Yosys `synth_ecp5 -noiopad`: lookup tables, carry "
        "cells of two bits, 18 x 18 multipliers and registers of a Lattice ECP5.",
        f"* **MHz**: the clock that nextpnr reaches for `{' '.join(DEVICE)}`, out of context, one "
        f"seed; a unit without a register has none, and one of more than {PLACED_LUTS:,} LUT4 is not "
        "placed. One placement is one throw of dice: differences of some tens of MHz between lines say nothing.",
        f"* **cube**: 256 times `{_ELEMENT}`, beside which the rest is small; the whole is not "
        "synthesised flat, nor placed.",
        "* **Verilog**: the first digits of the SHA-256 of the modules.",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        f"|{' --- |' * 2}{' ---: |' * (len(_COLUMNS) - 3)} --- |",
        *(_line(subject) for subject in subjects()),
        "",
    ]
    return "\n".join(lines)


def stale(document: str) -> list[str]:
    """Return the lines of the report that a document lacks, or has of another circuit."""
    found = {(name, parameters): digest for name, parameters, digest in _DIGEST.findall(document)}
    return [
        f"{subject.name} ({subject.parameters})"
        for subject in subjects()
        if found.get((subject.name, subject.parameters)) != subject.digest
    ]


def _line(subject: Subject) -> str:
    figures = measured(subject.text, top=subject.top)
    clock = "-" if figures.megahertz is None else f"{figures.megahertz:.0f}"
    numbers = (
        *(figures.gates, figures.levels, figures.flip_flops),
        *(figures.luts, figures.carries, figures.multipliers, figures.ecp5_flip_flops),
    )
    cells = (
        subject.name,
        subject.parameters,
        *(f"{number:,}" for number in numbers),
        clock,
        f"`{subject.digest}`",
    )
    return f"| {' | '.join(cells)} |"
