"""The machine in hardware: units in Amaranth, their Verilog, and the benches that check them.

Nothing is imported until it is used: Amaranth for the units and their Verilog, and an HDL simulator
for running it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cosim.pairs import evaluate_scale_pairs
    from .emit import UNITS, verilog, write_verilog
    from .scale_decode import ScaleDecode
    from .scale_pair import ScalePair

__all__ = [
    "UNITS",
    "ScaleDecode",
    "ScalePair",
    "evaluate_scale_pairs",
    "verilog",
    "write_verilog",
]


def __getattr__(name: str) -> object:
    match name:
        case "evaluate_scale_pairs":
            from .cosim import pairs as home
        case "UNITS" | "verilog" | "write_verilog":
            from . import emit as home
        case "ScaleDecode":
            from . import scale_decode as home
        case "ScalePair":
            from . import scale_pair as home
        case _:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
    return getattr(home, name)
