"""The cube as Verilog in modules: the array names its lines and processing elements, told once each.

Amaranth itself shares no modules between submodules; 256 copies would be megabytes that take
minutes.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ...ir.dtypes.boxes import BOX_BYTES
from ..emit.convert import to_verilog
from .array import MODULES
from .cube import Cube

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CubeVerilog", "cube_verilog", "part_modules"]


class CubeVerilog(NamedTuple):
    """The Verilog of a cube.

    Attributes:
        modules: Module name to text, `cube` first. Each text holds all that its module contains but
            for the modules of the other texts.
        latency_cycles: `Cube.latency_cycles`.
    """

    modules: Mapping[str, str]
    latency_cycles: int


@cache
def cube_verilog(*, beat_bytes: int = BOX_BYTES) -> CubeVerilog:
    """Return the Verilog of the cube.

    Args:
        beat_bytes: Bytes of a beat of scales.

    Raises:
        IRTypeError: If `beat_bytes` is not an integer.
        IRValueError: If a beat cannot have so many bytes.
    """
    cube = Cube(beat_bytes=beat_bytes, instances=True)
    modules = {"cube": to_verilog(cube, name="cube"), **part_modules()}
    return CubeVerilog(MappingProxyType(modules), cube.latency_cycles)


@cache
def part_modules() -> Mapping[str, str]:
    """Return the Verilog of what the array repeats, by module."""
    parts = {name: to_verilog(part(), name=name) for name, part in MODULES.items()}
    return MappingProxyType(parts)
