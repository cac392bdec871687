"""Verilog files: what stands in them, that they never change by chance, and where they may go."""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scalebox.ir.errors import UserError
from scalebox.rtl.emit import (
    UNITS,
    Choice,
    OutputFolderError,
    variants,
    verilog,
    write_verilog,
)

VARIANTS = list(variants())
UNIT = pytest.mark.parametrize("unit", list(UNITS))
VARIANT = pytest.mark.parametrize(
    ("unit", "choice"),
    VARIANTS,
    ids=[f"{unit}-{choice.beat_bytes}-{choice.combined:d}" for unit, choice in VARIANTS],
)
PARAMETERS: dict[str, Callable[[Choice], str]] = {
    "scale_decode": lambda choice: (
        f"beat_bytes = {choice.beat_bytes}, combined = {choice.combined:d}"
    ),
    "dot": lambda _: "none",
    "cube": lambda choice: f"beat_bytes = {choice.beat_bytes}, rows = 16, columns = 16",
    "scale_pair": lambda _: "none",
}


def text_of(unit: str, choice: Choice) -> str:
    return verilog(unit, beat_bytes=choice.beat_bytes, combined=choice.combined)


def written(folder: Path, unit: str, choice: Choice) -> Path:
    [path] = write_verilog(
        folder, unit=unit, beat_bytes=choice.beat_bytes, combined=choice.combined
    )
    return path


def test_every_choice_about_every_unit_is_among_the_variants() -> None:
    assert [(unit, choice.beat_bytes, choice.combined) for unit, choice in VARIANTS] == [
        *(("scale_decode", beat, combined) for beat in (8, 16, 32) for combined in (False, True)),
        ("dot", 32, False),
        *(("cube", beat, False) for beat in (8, 16, 32)),
        ("scale_pair", 32, False),
    ]


@VARIANT
def test_the_header_names_unit_parameters_version_and_latency(unit: str, choice: Choice) -> None:
    first, second, third, fourth = text_of(unit, choice).splitlines()[:4]
    assert re.fullmatch(r"// Written by Scalebox \d+\.\d+\.\d+: do not edit\.", first)
    assert second == f"// Unit: {unit}: {UNITS[unit].doc}."
    assert third == f"// Parameters: {PARAMETERS[unit](choice)}."
    latency = re.fullmatch(r"// Latency in clock cycles: (\d+)\.", fourth)
    assert latency is not None
    scales = 3 + 32 // choice.beat_bytes
    known = {"scale_decode": scales, "scale_pair": 0, "dot": 6, "cube": None}[unit]
    # The head of a mad, which the cube's latency must not exceed, is 25 cycles.
    assert int(latency[1]) == known if known is not None else scales < int(latency[1]) <= 25


@VARIANT
def test_the_text_holds_the_unit_and_every_module_it_instantiates(
    unit: str, choice: Choice
) -> None:
    text = text_of(unit, choice)
    modules = re.findall(r"^module (\w+)\(", text, flags=re.MULTILINE)
    instances = re.findall(r"^  (?!module)(\w+) \w+ \($", text, flags=re.MULTILINE)
    assert len(modules) == len(set(modules))
    assert set(modules) == {unit, *instances}
    assert text.isascii()


@VARIANT
def test_every_name_is_a_plain_identifier(unit: str, choice: Choice) -> None:
    assert "\\" not in text_of(unit, choice)


@UNIT
def test_nothing_is_promised_to_some_tools_only(unit: str) -> None:
    text = verilog(unit)
    assert not re.search(r"synopsys|parallel_case|full_case|translate_off", text)


def test_ports_are_those_of_the_streams() -> None:
    found = re.findall(
        r"(input|output) (?:\[(\d+):0\] )?(\w+);",
        verilog("scale_decode", beat_bytes=16).partition("endmodule")[0],
    )
    ports = {name: (way, width) for way, width, name in found}
    # A record is 7 + 1 + 1 + 1 bits and two halves of 2 x 16 x (9 + 1).
    widths = {"start": "26", "a_request": "13", "b_request": "13", "a": "127", "b": "127"}
    into = ("start", "a", "b")
    expected = {"clk": ("input", ""), "rst": ("input", "")}
    for name, width in {**widths, "o": "649"}.items():
        forth, back = ("input", "output") if name in into else ("output", "input")
        expected |= {
            f"{name}__payload": (forth, width),
            f"{name}__valid": (forth, ""),
            f"{name}__ready": (back, ""),
        }
    assert ports == expected


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
        f"The output folder {str(tmp_path)!r} must hold only files of ours, not notes.txt"
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


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_in_the_place_of_a_file_keeps_all_that_it_holds(
    tmp_path: Path, *, force: bool
) -> None:
    kept = tmp_path / "scale_decode.v" / "mine.txt"
    kept.parent.mkdir()
    kept.write_text("mine")
    with pytest.raises(OutputFolderError, match="must be a place for a file, not a folder"):
        write_verilog(tmp_path, force=force)
    assert kept.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["scale_decode.v"]


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


@pytest.mark.parametrize(
    ("unit", "choice", "message"),
    [
        ("x", Choice(), f"A unit must be one of {', '.join(UNITS)}, not 'x'"),
        (
            "scale_decode",
            Choice(beat_bytes=4),
            "The bytes of a beat must be one of 8, 16, 32, not 4",
        ),
        (
            "scale_pair",
            Choice(beat_bytes=8),
            "A width of beats must go with scale_decode or cube, not with scale_pair",
        ),
        (
            "scale_pair",
            Choice(combined=True),
            "Combined exponents must go with scale_decode, not with scale_pair",
        ),
    ],
)
def test_what_there_is_not_is_refused_by_name_before_anything_is_written(
    unit: str, choice: Choice, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$") as caught:
        written(tmp_path / "new", unit, choice)
    assert isinstance(caught.value, UserError)
    assert not (tmp_path / "new").exists()
