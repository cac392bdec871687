"""The units that can be written as Verilog, and the text of their files.

A row of :data:`UNITS` says all there is to say of a unit: how it is built, what can be chosen about
it, and what it does. The text depends on the unit, its parameters and our version only.
"""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

from ...codegen.isa.scale_unit import BEATS_BYTES
from ...ir.errors import IRValueError
from ..cube.cube import Cube
from ..cube.verilog import part_modules
from ..dot.unit import DotUnit
from ..scale_decode import ScaleDecode
from ..scale_pair import ScalePair
from .convert import Circuit, to_verilog
from .folder import SIGNATURE, write_files
from .lint import waived
from .ports import Port, ports

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

__all__ = [
    "UNITS",
    "Choice",
    "Unit",
    "parameters_of",
    "unit_of",
    "variants",
    "verilog",
    "write_verilog",
]


_PARAMETERS: Final = "// Parameters: "


class UnitComponent(Circuit, Protocol):
    """What a unit has beside its ports."""

    @property
    def parameters(self) -> Mapping[str, int]:
        """What the unit was built with, name to value."""
        ...

    @property
    def latency_cycles(self) -> int:
        """Clock edges from input to output."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What can be chosen about a unit.

    Attributes:
        beat_bytes: Bytes of scales that a side reads a cycle, for a unit that reads boxes.
        combined: Whether a record carries the combined exponents too, for `scale_decode`.
    """

    beat_bytes: int = max(BEATS_BYTES)
    combined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit that can be written as Verilog.

    Attributes:
        name: Its name, and that of its Verilog module.
        doc: What it does, in one line.
        factory: Makes the component.
        reads_boxes: Whether it has a width of beats to choose.
        combines: Whether it can offer combined exponents on request.
        parts: Texts of the modules that it instantiates by name, if it does.
    """

    name: str
    doc: str
    factory: Callable[[Choice], UnitComponent]
    reads_boxes: bool = False
    combines: bool = False
    parts: Callable[[], Mapping[str, str]] = dict

    @property
    def file_name(self) -> str:
        """Name of its Verilog file."""
        return f"{self.name}.v"


@dataclass(frozen=True, slots=True)
class Built:
    """A unit as it is written.

    Attributes:
        text: Its Verilog.
        parameters: What it was built with, name to value.
        latency_cycles: Clock edges from input to output.
        ports: Its ports, clock and reset left out.
    """

    text: str
    parameters: Mapping[str, int]
    latency_cycles: int
    ports: tuple[Port, ...]


UNITS: Final[Mapping[str, Unit]] = {
    unit.name: unit
    for unit in (
        Unit(
            name="scale_decode",
            doc="a mad in, requests for its scale boxes and records of decoded scales out",
            factory=lambda choice: ScaleDecode(
                beat_bytes=choice.beat_bytes, combined=choice.combined
            ),
            reads_boxes=True,
            combines=True,
        ),
        Unit(
            name="dot",
            doc="steps of a block-scaled sum of products in, the sum in FP32 out",
            factory=lambda _: DotUnit(),
        ),
        Unit(
            name="cube",
            doc="a mad of block-scaled tiles, between the memories of operands and results",
            factory=lambda choice: Cube(beat_bytes=choice.beat_bytes, instances=True),
            reads_boxes=True,
            parts=part_modules,
        ),
        Unit(
            name="scale_pair",
            doc="two scale codes in, exact sum of exponents and NaN out",
            factory=lambda _: ScalePair(),
        ),
    )
}
"""Every unit by name."""


def unit_of(name: str, choice: Choice) -> Unit:
    """Return the row of a unit that can be built as chosen.

    Raises:
        IRValueError: If there is no such unit, or it has not what is chosen.
    """
    row = UNITS.get(name)
    if row is None:
        message = f"A unit must be one of {', '.join(UNITS)}, not {name!r}"
        raise IRValueError(message)
    if choice.beat_bytes not in BEATS_BYTES:
        shown = ", ".join(map(str, BEATS_BYTES))
        message = f"The bytes of a beat must be one of {shown}, not {choice.beat_bytes}"
        raise IRValueError(message)
    if choice.beat_bytes != Choice().beat_bytes and not row.reads_boxes:
        message = f"A width of beats must go with {_those('reads_boxes')}, not with {name}"
        raise IRValueError(message)
    if choice.combined and not row.combines:
        message = f"Combined exponents must go with {_those('combines')}, not with {name}"
        raise IRValueError(message)
    return row


def variants() -> Iterator[tuple[str, Choice]]:
    """Yield every unit with everything that can be chosen about it."""
    for row in UNITS.values():
        for beat_bytes in BEATS_BYTES if row.reads_boxes else BEATS_BYTES[-1:]:
            for combined in (False, True)[: 1 + row.combines]:
                yield row.name, Choice(beat_bytes=beat_bytes, combined=combined)


def verilog(unit: str, *, beat_bytes: int = max(BEATS_BYTES), combined: bool = False) -> str:
    """Return the Verilog-2005 text of a unit and of all that it instantiates, always the same bytes.

    Args:
        unit: A name of :data:`UNITS`.
        beat_bytes: Bytes of scales that a side reads a cycle, for a unit that reads boxes.
        combined: Whether a record of `scale_decode` carries the combined exponents too.

    Raises:
        IRValueError: If there is no such unit, or it has not what is chosen.
    """
    return built(unit, Choice(beat_bytes=beat_bytes, combined=combined)).text


@cache
def built(unit: str, choice: Choice) -> Built:
    """Return a unit as it is written.

    Raises:
        IRValueError: If there is no such unit, or it has not what is chosen.
    """
    row = unit_of(unit, choice)
    component = row.factory(choice)
    version = importlib.metadata.version("scalebox")
    parameters = ", ".join(f"{key} = {value}" for key, value in component.parameters.items())
    lines = [
        f"// {SIGNATURE} {version}: do not edit.",
        f"// Unit: {row.name}: {row.doc}.",
        f"{_PARAMETERS}{parameters or 'none'}.",
        f"// Latency in clock cycles: {component.latency_cycles}.",
        waived("\n".join((to_verilog(component, name=row.name), *row.parts().values()))),
    ]
    text = "\n".join(lines)
    return Built(text, dict(component.parameters), component.latency_cycles, ports(component))


def parameters_of(text: str) -> str:
    """Return what the header of a Verilog text names as its parameters."""
    [line] = [line for line in text.splitlines()[:4] if line.startswith(_PARAMETERS)]
    return line.removeprefix(_PARAMETERS).removesuffix(".")


def write_verilog(
    directory: str | os.PathLike[str],
    *,
    unit: str = "scale_decode",
    beat_bytes: int = max(BEATS_BYTES),
    combined: bool = False,
    force: bool = False,
) -> list[Path]:
    """Write a unit's Verilog into a folder, whole or not at all.

    The folder is made if it is absent. Files of ours are replaced; nothing else is ever removed.

    Args:
        directory: The folder.
        unit: A name of :data:`UNITS`.
        beat_bytes: Bytes of scales that a side reads a cycle, for a unit that reads boxes.
        combined: Whether a record of `scale_decode` carries the combined exponents too.
        force: Write even where the folder holds files that are not ours.

    Returns:
        The files written.

    Raises:
        IRValueError: If there is no such unit, or it has not what is chosen.
        OutputFolderError: If the folder holds foreign files, or cannot be written.
    """
    choice = Choice(beat_bytes=beat_bytes, combined=combined)
    row = unit_of(unit, choice)
    return write_files(directory, {row.file_name: built(unit, choice).text}, force=force)


def _those(trait: str) -> str:
    return " or ".join(unit.name for unit in UNITS.values() if getattr(unit, trait))
