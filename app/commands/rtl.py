"""The rtl command: a unit's Verilog, test vectors for it, and a bench that holds it to them."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import TYPE_CHECKING

from ...ir.errors import IRValueError
from ...rtl.emit.folder import SIGNATURE, check_folder, write_files
from ...rtl.emit.units import UNITS, Choice, unit_of, verilog
from ..rtl_vectors import vectors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...rtl.emit.units import Unit

__all__ = ["rtl_files", "write_rtl"]

_BENCH = Path(__file__).parents[2] / "rtl" / "cosim" / "shipped_bench.py"


def rtl_files(unit: str, choice: Choice) -> Mapping[str, str]:
    """Return the files of a unit, text by name, always the same bytes.

    Args:
        unit: A name of `UNITS`.
        choice: How it is built.

    Raises:
        IRValueError: If there is no such unit, or it has not what is chosen.
    """
    row = unit_of(unit, choice)
    version = importlib.metadata.version("scalebox")
    bench = _BENCH.read_text(encoding="utf-8")
    text = verilog(unit, beat_bytes=choice.beat_bytes, combined=choice.combined)
    texts = (text, vectors(unit, choice), f"# {SIGNATURE} {version}: do not edit.\n{bench}")
    return dict(zip(_file_names(row), texts, strict=True))


def _file_names(row: Unit) -> tuple[str, str, str]:
    return row.file_name, f"{row.name}_vectors.json", f"{row.name}_bench.py"


def write_rtl(
    directory: Path,
    unit: str,
    *,
    beat_bytes: int | None = None,
    combined: bool = False,
    force: bool = False,
) -> list[Path]:
    """Write the files of a unit into a folder, all of them or none.

    Args:
        directory: The folder, which is made if it is absent.
        unit: A name of `UNITS`.
        beat_bytes: Bytes of scales that a side reads a cycle, for a unit that reads boxes.
        combined: Whether a record of `scale_decode` carries the combined exponents too.
        force: Write even where the folder holds files that are not ours.

    Returns:
        The files written.

    Raises:
        IRValueError: If there is no such unit, or it has not what is chosen.
        OutputFolderError: If the folder holds foreign files, or cannot be written.
    """
    beat = Choice().beat_bytes if beat_bytes is None else beat_bytes
    if beat_bytes is not None and unit in UNITS and not UNITS[unit].reads_boxes:
        message = f"A width of beats must go with a unit that reads scale boxes, not with {unit}"
        raise IRValueError(message)
    choice = Choice(beat_bytes=beat, combined=combined)
    # What there is to write takes seconds, so whether it can be written is looked at before.
    check_folder(directory, _file_names(unit_of(unit, choice)), force=force)
    return write_files(directory, rtl_files(unit, choice), force=force)
