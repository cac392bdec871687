"""Waves for a reader: the wires of a dump, with every field of every word by its name.

A simulator dumps a word as one flat vector. Here each stream becomes a scope of its own, with its
handshake and an entry of each field; clock and reset stand beside them.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Any, Final, TextIO

from vcd import VCDWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vcd.writer import Variable

    from .wires import Flow, Wire

__all__ = ["write_fields"]

_VARIABLE: Final = re.compile(r"\$var\s+\w+\s+\d+\s+(\S+)\s+(\S+)")
_COMMON: Final = ("clk", "rst")


def write_fields(dump: Iterable[str], waves: TextIO, flows: Sequence[Flow]) -> None:
    """Write the streams of a value change dump with their fields apart.

    Args:
        dump: Lines of a VCD that has the unit's ports, `<stream>__valid`, `__ready` and
            `__payload`, in a time unit of 1 ps.
        waves: Where the new VCD goes.
        flows: The streams and their words.
    """
    lines = iter(dump)
    names = _names(lines)
    with VCDWriter(waves, timescale="1 ps") as writer:
        plain: dict[str, Variable[Any]] = {
            name: writer.register_var("unit", name, "wire", 1) for name in _COMMON
        }
        words: dict[str, list[tuple[int, Wire, Variable[Any]]]] = {}
        for flow in flows:
            scope = f"unit.{flow.name}"
            for role in ("valid", "ready"):
                plain[f"{flow.name}__{role}"] = writer.register_var(scope, role, "wire", 1)
            words[f"{flow.name}__payload"] = [
                (int(lowest), wire, writer.register_var(scope, label, "wire", wire.bits))
                for wire in flow.fields
                for label, lowest in zip(
                    _labels(flow, wire), wire.offsets().reshape(-1), strict=True
                )
            ]
        now = 0
        for line in lines:
            if line.startswith("#"):
                now = int(line[1:])
                continue
            value, code = _change(line)
            for name in names.get(code, ()):
                if name in plain:
                    writer.change(plain[name], now, value[-1])
                for lowest, wire, variable in words.get(name, ()):
                    writer.change(variable, now, _part(value, lowest, wire.bits))


def _names(lines: Iterator[str]) -> dict[str, set[str]]:
    """Read the head of a dump: the names that stand for each of its codes."""
    names: dict[str, set[str]] = {}
    for line in lines:
        found = _VARIABLE.search(line)
        if found:
            names.setdefault(found[1], set()).add(found[2])
        if "$enddefinitions" in line:
            break
    return names


def _change(line: str) -> tuple[str, str]:
    """Return the bits and the code of a line; no code where it tells no change."""
    if line[:1] in ("b", "B"):
        bits, code = line[1:].split()
        return bits, code
    return (line[0], line[1:].strip()) if line[:1] in ("0", "1", "x", "z") else ("", "")


def _part(bits: str, lowest: int, width: int) -> str:
    """Return some bits of a vector, which a dump writes without its upper zeros."""
    filled = bits.rjust(lowest + width, bits[0] if bits[0] in "xz" else "0")
    return filled[len(filled) - lowest - width : len(filled) - lowest]


def _labels(flow: Flow, wire: Wire) -> list[str]:
    """Return the names of a field's entries within the scope of its stream."""
    name = wire.name.removeprefix(f"{flow.name}_") if wire.name != flow.name else "byte"
    labels: list[str] = []
    for flat in range(prod(wire.shape)):
        places: list[str] = []
        for extent in reversed(wire.shape):
            flat, place = divmod(flat, extent)
            places.append(f"_{place}")
        labels.append(name + "".join(reversed(places)))
    return labels
