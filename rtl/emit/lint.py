"""What linters may say about our Verilog: nothing, but for the classes that are waived here.

The waivers stand in every file, so that it passes as it is, and hold up to its end only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LINT_WAIVERS", "waived"]

LINT_WAIVERS: Final[Mapping[str, str]] = {
    "CASEOVERLAP": "a choice by priority is a casez, of which the first match counts",
    "DECLFILENAME": "one file holds every module that it instantiates",
    "PROCASSINIT": "registers have a power-on value beside their synchronous reset",
    "UNSIGNED": "of a row of comparisons with each index, that with 0 is always true",
    "UNUSEDSIGNAL": "sums and products stand at their full width, of which a part may be in use",
    "WIDTHEXPAND": "operands stand at their own width; Verilog extends them as their sign says",
}
"""Classes of Verilator's `-Wall` that the generator cannot avoid, each with its reason."""


def waived(text: str) -> str:
    """Return Verilog within the comments by which Verilator knows the waivers."""
    lines = ["/* verilator lint_save */"]
    lines += [f"/* verilator lint_off {name} */ // {why}" for name, why in LINT_WAIVERS.items()]
    return "\n".join([*lines, text.rstrip("\n"), "/* verilator lint_restore */", ""])
