"""What linters say about the Verilog: nothing, and no more is waived than must be."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from scalebox.codegen.isa.scale_unit import BEATS_BYTES
from scalebox.rtl.cosim import toolchain
from scalebox.rtl.cosim.toolchain import Simulator
from scalebox.rtl.emit import LINT_WAIVERS, UNITS, Choice, variants, verilog, write_verilog
from scalebox.rtl.synthesis.tools import SynthesisTool, run_tool

MODULE = re.compile(r"^module (\w+)\(.*?^endmodule$", re.MULTILINE | re.DOTALL)
PORT = re.compile(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);$", re.MULTILINE)
OF_THE_CUBE = ("CASEOVERLAP", "UNSIGNED")
VARIANTS = {
    f"{unit}-{each.beat_bytes}-{each.combined:d}": (unit, each) for unit, each in variants()
}
LINTED = pytest.mark.parametrize(
    ("unit", "choice"),
    [
        pytest.param(*each, marks=[pytest.mark.slow] if each[0] == "cube" else [], id=name)
        for name, each in VARIANTS.items()
    ],
)


def written(folder: Path, unit: str, choice: Choice) -> Path:
    [path] = write_verilog(
        folder, unit=unit, beat_bytes=choice.beat_bytes, combined=choice.combined
    )
    return path


def boxed(unit: str, text: str, *, top: str) -> str:
    """Return a unit's Verilog in which every part that is instantiated by name, but `top`, is a box.

    Verilator would flatten the cube's 256 cores, for most of a minute. A box has the ports of its
    module, and all its outputs hang on all its inputs but clock and reset: a loop that the module
    could be part of is one through the box.
    """
    boxes = UNITS[unit].parts().keys() - {top}

    def box(module: re.Match[str]) -> str:
        if module[1] not in boxes:
            return module[0]
        ports = PORT.findall(module[0])
        inputs = [name for way, _, name in ports if way == "input" and name not in ("clk", "rst")]
        lines = [module[0].partition("\n")[0]]
        for way, high, name in ports:
            width = int(high or 0) + 1
            lines.append(f"  {way} [{width - 1}:0] {name};" if high else f"  {way} {name};")
            if way == "output":
                lines.append(f"  assign {name} = {{{width}{{^{{{', '.join(inputs)}}}}}}};")
        return "\n".join((*lines, "endmodule"))

    return MODULE.sub(box, text)


def verilator_says(path: Path, top: str) -> str:
    toolchain.require(Simulator.VERILATOR)
    command = ["verilator", "--lint-only", "-Wall", "--language", "1364-2005", "--quiet"]
    child = subprocess.run(
        [*command, "--top-module", top, path.name],
        cwd=path.parent,
        env=toolchain.environment(Simulator.VERILATOR),
        capture_output=True,
        text=True,
    )
    said = child.stdout + child.stderr
    assert bool(child.returncode) == bool(said)
    return said


@pytest.mark.parametrize(("unit", "choice"), VARIANTS.values(), ids=VARIANTS)
def test_verilator_finds_nothing_to_say(unit: str, choice: Choice, tmp_path: Path) -> None:
    path = written(tmp_path, unit, choice)
    text = path.read_text()
    for top in (unit, *UNITS[unit].parts()):
        path.write_text(boxed(unit, text, top=top))
        assert verilator_says(path, top) == ""


@pytest.mark.slow
@pytest.mark.formal
@pytest.mark.parametrize("beat_bytes", BEATS_BYTES)
def test_verilator_finds_nothing_to_say_of_the_cube_in_one_piece(
    beat_bytes: int, tmp_path: Path
) -> None:
    path = written(tmp_path, "cube", Choice(beat_bytes=beat_bytes))
    assert verilator_says(path, "cube") == ""


@pytest.mark.parametrize(
    ("link", "loop"),
    [
        (".line(line_a_0)", ".line(operand_a_0[255:0])"),
        (".start(start[511:0])", ".start(sums[511:0])"),
    ],
    ids=["line_decode", "cube_row"],
)
def test_a_loop_through_a_box_is_seen(link: str, loop: str, tmp_path: Path) -> None:
    text = boxed("cube", verilog("cube"), top="cube")
    assert text.count(link) == 1
    path = tmp_path / "loop.v"
    path.write_text(text.replace(link, loop))
    assert "%Warning-UNOPTFLAT" in verilator_says(path, "cube")


@LINTED
def test_icarus_finds_nothing_to_say(
    unit: str, choice: Choice, tmp_path: Path, icarus: str
) -> None:
    path = written(tmp_path, unit, choice)
    command = [icarus, "-g2005", "-Wall", "-o", os.devnull, str(path)]
    child = subprocess.run(command, capture_output=True, text=True)
    assert (child.returncode, child.stdout + child.stderr) == (0, "")


@LINTED
def test_yosys_finds_no_loop_no_conflict_and_no_wire_without_a_driver(
    unit: str, choice: Choice, tmp_path: Path
) -> None:
    path = written(tmp_path, unit, choice)
    script = f"read_verilog {path.name}; hierarchy -check -top {unit}; proc; check -assert"
    assert run_tool(SynthesisTool.YOSYS, "-q", "-p", script, folder=tmp_path) == ""


def test_no_waiver_hides_a_class_that_means_a_broken_circuit() -> None:
    assert not {"LATCH", "UNOPTFLAT", "MULTIDRIVEN", "CASEINCOMPLETE"} & LINT_WAIVERS.keys()
    assert all(LINT_WAIVERS.values())


@pytest.mark.parametrize("name", LINT_WAIVERS)
def test_every_waiver_is_needed(name: str, tmp_path: Path) -> None:
    unit = "cube" if name in OF_THE_CUBE else "scale_decode"
    path = tmp_path / "alone.v"
    path.write_text(
        boxed(unit, verilog(unit), top=unit).replace(f"lint_off {name} ", f"lint_on {name} ")
    )
    said = verilator_says(path, unit)
    assert set(re.findall(r"^%Warning-(\w+):", said, re.MULTILINE)) == {name}


def test_the_waivers_end_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "after.v"
    after = "module after(input a, output [1:0] b);\n  assign b = a;\nendmodule\n"
    path.write_text(verilog("scale_pair") + after)
    assert "%Warning-WIDTHEXPAND" in verilator_says(path, "after")
