"""From the units in Amaranth to Verilog files that stand on their own.

`convert` turns a component into text, `units` lists what can be written, `lint` holds the text to
the linters, `folder` puts files into a folder whole or not at all.

Nothing is imported until it is used, so that a unit may use `to_verilog` for a module of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .convert import to_verilog
    from .folder import OutputFolderError, write_files
    from .lint import LINT_WAIVERS
    from .units import UNITS, Choice, Unit, variants, verilog, write_verilog

__all__ = [
    "LINT_WAIVERS",
    "UNITS",
    "Choice",
    "OutputFolderError",
    "Unit",
    "to_verilog",
    "variants",
    "verilog",
    "write_files",
    "write_verilog",
]


def __getattr__(name: str) -> object:
    match name:
        case "to_verilog":
            from . import convert as home
        case "OutputFolderError" | "write_files":
            from . import folder as home
        case "LINT_WAIVERS":
            from . import lint as home
        case "UNITS" | "Choice" | "Unit" | "variants" | "verilog" | "write_verilog":
            from . import units as home
        case _:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
    return getattr(home, name)
