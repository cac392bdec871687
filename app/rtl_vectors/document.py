"""The file of vectors of a unit: its ports and its cases, as JSON."""

from __future__ import annotations

import importlib.metadata
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from ...ir.dtypes.boxes import BOX_BYTES
from ...rtl.emit.folder import SIGNATURE
from ...rtl.emit.ports import Kind, Port
from ...rtl.emit.units import Choice, built
from .products import cube_cases, dot_cases
from .scales import scale_decode_cases, scale_pair_cases

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["SCHEMA", "vectors"]

SCHEMA: Final = 1
"""Version of the form of the file; it changes with the meaning of what is there already."""

_CASES: Final[Mapping[str, Callable[[Choice], list[dict[str, Any]]]]] = {
    "scale_decode": scale_decode_cases,
    "dot": lambda _: dot_cases(),
    "cube": cube_cases,
    "scale_pair": lambda _: scale_pair_cases(),
}

_ANSWERS: Final = {"a": "a_request", "b": "b_request"}
"""Streams of which so many words may come for each word of another, and no sooner."""


def vectors(unit: str, choice: Choice) -> str:
    """Return the text of a unit's vectors, always the same bytes.

    Args:
        unit: A name of `UNITS`.
        choice: How the unit is built.
    """
    component = built(unit, choice)
    head: dict[str, Any] = {
        "note": f"{SIGNATURE} {importlib.metadata.version('scalebox')}: do not edit.",
        "schema": SCHEMA,
        "unit": unit,
        "parameters": dict(component.parameters),
        "latency_cycles": component.latency_cycles,
    }
    lists = {
        "ports": [_told(unit, port, choice) for port in component.ports],
        "cases": _CASES[unit](choice),
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    lines += [f"{json.dumps(key)}: [\n{_lines(entries)}\n]" for key, entries in lists.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _told(unit: str, port: Port, choice: Choice) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": port.name,
        "kind": port.kind.value,
        "input": port.is_input,
        "fields": [asdict(field) for field in port.fields],
    }
    if unit == "scale_decode" and port.name in _ANSWERS:
        told["answers"] = _ANSWERS[port.name]
        told["words_an_answer"] = BOX_BYTES // choice.beat_bytes
    if port.kind is Kind.MEMORY:
        told["memory"] = port.name.removesuffix("_read").removesuffix("_write")
    return told


def _lines(entries: list[dict[str, Any]]) -> str:
    """Return entries one a line."""
    return ",\n".join(
        json.dumps(entry, separators=(",", ":"), allow_nan=False) for entry in entries
    )
