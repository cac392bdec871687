"""Verilog files: what stands in them, that they never change by chance, and where they may go."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scalebox.ir.errors import UserError
from scalebox.rtl.cosim import toolchain
from scalebox.rtl.cosim.toolchain import Simulator
from scalebox.rtl.emit import LINT_WAIVERS, UNITS, OutputFolderError, verilog, write_verilog

UNIT = pytest.mark.parametrize("unit", list(UNITS))


@UNIT
def test_the_header_names_unit_parameters_and_version(unit: str) -> None:
    first, second, third = verilog(unit).splitlines()[:3]
    assert re.fullmatch(r"// Written by Scalebox \d+\.\d+\.\d+: do not edit\.", first)
    assert second == f"// Unit: {unit}: {UNITS[unit].doc}."
    assert (
        third
        == {
            "scale_decode": "// Parameters: rows = 16, groups = 2.",
            "scale_pair": "// Parameters: none.",
        }[unit]
    )


@UNIT
def test_the_text_holds_the_unit_and_every_module_it_instantiates(unit: str) -> None:
    text = verilog(unit)
    assert re.findall(r"^module (\w+)", text, flags=re.MULTILINE) == [unit]
    assert text.isascii()


def test_ports_are_those_of_the_streams() -> None:
    text = verilog("scale_decode")
    found = re.findall(r"(input|output) (?:\[(\d+):0\] )?(\w+);", text)
    ports = {name: (way, width) for way, width, name in found}
    assert ports == {
        "clk": ("input", ""),
        "rst": ("input", ""),
        "i__payload": ("input", "255"),
        "i__valid": ("input", ""),
        "i__ready": ("output", ""),
        "o__payload": ("output", "319"),
        "o__valid": ("output", ""),
        "o__ready": ("input", ""),
    }


@UNIT
def test_the_bytes_depend_on_neither_the_hash_seed_nor_a_yosys_in_the_way(
    unit: str, tmp_path: Path
) -> None:
    wrong = tmp_path / "yosys"
    wrong.write_text("#!/bin/sh\nexit 1\n")
    wrong.chmod(0o755)
    print_digest = (
        "import hashlib, sys; from scalebox.rtl.emit import verilog;"
        "print(hashlib.sha256(verilog(sys.argv[1]).encode()).hexdigest())"
    )
    digests = {hashlib.sha256(verilog(unit).encode()).hexdigest()}
    for seed in ("1", "2"):
        variables = {
            "PYTHONHASHSEED": seed,
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "AMARANTH_USE_YOSYS": "system",
        }
        child = subprocess.run(
            [sys.executable, "-c", print_digest, unit],
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        digests.add(child.stdout.strip())
    assert len(digests) == 1


@UNIT
def test_verilator_finds_nothing_to_say(unit: str, tmp_path: Path) -> None:
    [path] = write_verilog(tmp_path, unit=unit)
    command = ["verilator", "--lint-only", "-Wall", "--language", "1364-2005", "--quiet", str(path)]
    toolchain.require(Simulator.VERILATOR)
    variables = toolchain.environment(Simulator.VERILATOR)
    child = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert (child.returncode, child.stdout + child.stderr) == (0, "")


@UNIT
def test_icarus_finds_nothing_to_say(unit: str, tmp_path: Path, icarus: str) -> None:
    [path] = write_verilog(tmp_path, unit=unit)
    command = [icarus, "-g2005", "-Wall", "-o", os.devnull, str(path)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (child.returncode, child.stdout + child.stderr) == (0, "")


def test_no_waiver_hides_a_class_that_means_a_broken_circuit() -> None:
    assert not {"LATCH", "UNOPTFLAT", "MULTIDRIVEN", "CASEINCOMPLETE"} & LINT_WAIVERS.keys()
    assert all(LINT_WAIVERS.values())


def test_write_makes_the_folder_and_replaces_only_its_own_file(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    assert write_verilog(folder) == [folder / "scale_decode.v"]
    assert (folder / "scale_decode.v").read_text() == verilog("scale_decode")
    write_verilog(folder, unit="scale_pair")
    write_verilog(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["scale_decode.v", "scale_pair.v"]


def test_a_folder_with_foreign_files_is_refused_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputFolderError) as caught:
        write_verilog(tmp_path)
    assert str(caught.value) == (
        f"The output folder {str(tmp_path)!r} must hold only Verilog of ours, not notes.txt"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    write_verilog(tmp_path, force=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "scale_decode.v").read_text() == verilog("scale_decode")


def test_a_file_of_our_name_that_we_did_not_write_is_foreign(tmp_path: Path) -> None:
    (tmp_path / "scale_decode.v").write_text("module scale_decode; endmodule\n")
    with pytest.raises(OutputFolderError, match=r"not scale_decode\.v$"):
        write_verilog(tmp_path)
    assert (tmp_path / "scale_decode.v").read_text() == "module scale_decode; endmodule\n"


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(OutputFolderError, match="must be one that can be written") as caught:
        write_verilog(tmp_path / "taken")
    assert isinstance(caught.value, UserError)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [path] = write_verilog(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OutputFolderError, match="No space left"):
        write_verilog(tmp_path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == verilog("scale_decode")


def test_an_unknown_unit_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"^A unit must be one of scale_decode, scale_pair, not 'x'$"
    ):
        write_verilog(tmp_path, unit="x")
