"""What is wrong outside of the kernel: inputs, files, machines, options. Status 2, no traceback."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import scalebox
from scalebox.app.cli import main
from scalebox.ir.core import Program
from scalebox.ir.errors import ExecutableError, InputError, IRTypeError, MachineError, UserError
from scalebox.traces.arrays import save_arrays
from scalebox.traces.bundle import Bundle, save_bundle

Array = npt.NDArray[Any]
Gemm = Callable[..., Program]
Text = Callable[..., str]

E4M3 = ml_dtypes.float8_e4m3fn
SIZES = (32, 128, 64)
A_HINT = "valid are arrays of float8_e4m3fn or uint8 codes"
SCALE_HINT = (
    "valid are arrays of float8_e8m0fnu or uint8 codes, of shape [32, 4], [1, 2, 2, 16, 2], "
    "[2, 2, 16, 2], [128], in box order (numerics.pack_scales_a makes it)"
)


@pytest.fixture
def good() -> dict[str, Array]:
    """Launch inputs of a gemm of SIZES."""
    return {
        "a": np.zeros((32, 128), E4M3),
        "b": np.zeros((128, 64), E4M3),
        "sa": np.full((32, 4), 127, np.uint8),
        "sb": np.full((4, 64), 127, np.uint8),
    }


@pytest.fixture
def folder(
    kernel_text: Text,
    good: dict[str, Array],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """The current folder, with `kernel.py`, `good.npz`, `kernel.sbx` and some broken files."""
    monkeypatch.chdir(tmp_path)
    Path("kernel.py").write_text(kernel_text(*SIZES))
    Path("plain.py").write_text("x = 1\n")
    Path("two.py").write_text(kernel_text(*SIZES) * 2 + "\n@pl.program\nclass Other: ...\n")
    codes = {name: array.view(np.uint8) for name, array in good.items()}
    save_arrays(Path("good.npz"), codes)
    save_arrays(Path("wrong.npz"), {**codes, "a": codes["a"][:16]})
    program = scalebox.pl.parse(kernel_text(*SIZES))
    assert isinstance(program, Program)
    scalebox.compile(program).save("kernel.sbx")
    Path("typo.toml").write_text('inherit = "a5"\nl1_byte = 65536\n')
    Path("broken.toml").write_text("inherit = \n")
    Path("text.hrry").write_text("mine\n")
    save_bundle(Path("hollow.hrry"), Bundle(inputs=codes))
    save_bundle(Path("damaged.hrry"), Bundle(inputs=codes, executable=b"damaged"))
    return tmp_path


# --------------------------------------------------------------------------- arrays


@pytest.mark.parametrize(
    ("name", "given", "message", "hint"),
    [
        (
            "a",
            np.zeros((32, 64), E4M3),
            "a must be an E4M3 array of shape [32, 128], not of shape [32, 64]",
            A_HINT,
        ),
        (
            "a",
            np.zeros((128, 32), E4M3),
            "a must be an E4M3 array of shape [32, 128], not of shape [128, 32]",
            A_HINT,
        ),
        (
            "a",
            np.zeros((32, 128), np.float32),
            "a must be an E4M3 array of shape [32, 128], not an array of float32",
            A_HINT,
        ),
        (
            "a",
            np.zeros((32, 128), ml_dtypes.float8_e5m2),
            "a must be an E4M3 array of shape [32, 128], not an array of float8_e5m2",
            A_HINT,
        ),
        (
            "a",
            [[1.0] * 128] * 32,
            "a must be an E4M3 array of shape [32, 128], not a list",
            A_HINT,
        ),
        (
            "sa",
            np.zeros((4, 32), np.uint8),
            "sa must be an E8M0 array of shape [32, 4], not of shape [4, 32]",
            SCALE_HINT,
        ),
        (
            "sa",
            np.ones((32, 4), np.float32),
            "sa must be an E8M0 array of shape [32, 4], not an array of float32",
            SCALE_HINT,
        ),
        ("a", None, "a must be an E4M3 array of shape [32, 128], but it was not given", None),
    ],
)
def test_an_array_that_does_not_fit_its_parameter(
    name: str, given: Any, message: str, hint: str | None, gemm: Gemm, good: dict[str, Array]
) -> None:
    program, inputs = gemm(*SIZES), {**good, name: given}
    for call in (scalebox.run, scalebox.interpret):
        with pytest.raises(InputError) as caught:
            call(program, inputs)
        assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_4_bit_code_must_have_4_bits(gemm: Gemm, good: dict[str, Array]) -> None:
    inputs = {**good, "a": np.full((32, 128), 16, np.uint8), "b": np.zeros((128, 64), np.uint8)}
    with pytest.raises(InputError) as caught:
        scalebox.run(gemm(*SIZES, a="FP4", b="FP4"), inputs)
    assert caught.value.message == "a must hold E2M1 codes 0..15, one a byte, not 16"


def test_an_unknown_input_is_refused_and_the_known_ones_are_listed(
    gemm: Gemm, good: dict[str, Array]
) -> None:
    for call in (scalebox.run, scalebox.interpret):
        with pytest.raises(InputError) as caught:
            call(gemm(*SIZES), {**good, "a_scale": good["sa"]})
        assert caught.value.message == "gemm has no parameter 'a_scale'"
        assert caught.value.hint is not None
        assert "sa" in caught.value.hint


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"entry": "main"}, InputError, "An entry of 'Gemm' must be one that it has, not 'main'."),
        (
            {"checks": "strict"},
            InputError,
            "checks must be 'error', 'warn' or 'off', not 'strict'.",
        ),
        (
            {"machine": "a6"},
            MachineError,
            "A machine must be a name or the path of a TOML file, not 'a6'.",
        ),
    ],
)
def test_an_option_of_run_that_does_not_exist(
    options: dict[str, Any],
    kind: type[UserError],
    message: str,
    gemm: Gemm,
    good: dict[str, Array],
) -> None:
    with pytest.raises(kind) as caught:
        scalebox.run(scalebox.compile(gemm(*SIZES)), good, **options)
    assert caught.value.message == message


@pytest.mark.parametrize("given", [None, "k.py", int, {}])
def test_what_is_compiled_must_be_a_program(given: Any) -> None:
    wrong: Any = given
    described = "the class int" if given is int else f"a {type(given).__name__}"
    for call in (
        lambda: scalebox.compile(wrong),
        lambda: scalebox.run(wrong, {}),
        lambda: scalebox.interpret(wrong, {}),
    ):
        with pytest.raises(IRTypeError) as caught:
            call()
        assert (
            caught.value.message == f"A program must be a class under @pl.program, not {described}"
        )


# --------------------------------------------------------------------------- executables


def test_every_truncation_of_an_executable_is_refused(gemm: Gemm, tmp_path: Path) -> None:
    data = scalebox.compile(gemm(*SIZES)).to_bytes()
    path = tmp_path / "kernel.sbx"
    for length in [*range(64), *range(64, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(ExecutableError) as caught:
            scalebox.Executable.load(path)
        assert caught.value.note == f"the file is {str(path)!r}"


def test_a_changed_byte_of_an_executable_is_noticed(gemm: Gemm) -> None:
    data = scalebox.compile(gemm(*SIZES)).to_bytes()
    for place in range(0, len(data), 61):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        with pytest.raises(ExecutableError):
            scalebox.Executable.from_bytes(bytes(damaged))


def test_an_executable_for_another_machine_must_be_given_one(
    gemm: Gemm, good: dict[str, Array], tmp_path: Path
) -> None:
    path = tmp_path / "small.toml"
    path.write_text('name = "small"\ninherit = "a5"\nl1_bytes = 131072\n')
    executable = scalebox.compile(gemm(*SIZES), machine=path)
    with pytest.raises(MachineError) as caught:
        scalebox.run(executable, good)
    assert caught.value.message == (
        "The machine must be named for an executable whose own, 'small', is not known here"
    )
    assert scalebox.run(executable, good, machine=path).target.name == "small"


def test_an_executable_for_a_machine_that_has_changed_says_so(
    gemm: Gemm, good: dict[str, Array], tmp_path: Path
) -> None:
    """As one does that was saved by an earlier version, whose machine of that name was another."""
    path = tmp_path / "older.toml"
    path.write_text('name = "a5"\ninherit = "a5"\nl2_hit_cycles = 150\n')
    executable = scalebox.compile(gemm(*SIZES), machine=path)
    with pytest.raises(MachineError) as caught:
        scalebox.run(executable, good)
    assert caught.value.message == (
        "The machine 'a5' must be as it was when the executable was compiled for it, but its "
        "fields are others now"
    )
    assert "name 'a5' to run on the machine as it is now" in (caught.value.hint or "")
    assert scalebox.run(executable, good, machine="a5").target.name == "a5"


# --------------------------------------------------------------------------- command line

COMMANDS: dict[str, tuple[str, str]] = {
    "no such kernel": (
        "run nothere.py",
        "Error: A kernel must be a Python file, and there is none at 'nothere.py'",
    ),
    "a folder as kernel": (
        "run .",
        "Error: A kernel or an executable must be a file, and there is none at '.'",
    ),
    "a file without a program": (
        "run plain.py",
        "Error: The file plain.py must hold a program or a function, but holds none\n"
        "  = help: decorate a class with @pl.program and its methods with @pl.function",
    ),
    "an unknown parameter": (
        "run kernel.py --param M=3",
        "Error: The kernel file has no parameter 'M'\n"
        '  = help: M = pl.param("M", 64) in the file makes one, 64 by default',
    ),
    "an unknown machine": (
        "run kernel.py --machine a6",
        "Error: A machine must be a name or the path of a TOML file, not 'a6'.\n"
        "  = help: valid here: a5, a5-vendor-sim",
    ),
    "an unknown machine key in a file": (
        "run kernel.py --machine typo.toml",
        "Error: A machine field must be one of the record's, not 'l1_byte'.\n"
        "  --> typo.toml:2:1\n"
        "  |\n"
        '1 | inherit = "a5"\n'
        "2 | l1_byte = 65536\n"
        "  | ^^^^^^^\n"
        "  |\n"
        "    = help: the nearest are l1_bytes, l2_bytes, l0c_bytes; docs/machine.md lists all",
    ),
    "an unknown machine key on the command line": (
        "run kernel.py --set l1_byte=65536",
        "Error: A machine field must be one of the record's, not 'l1_byte'.\n"
        "  = help: the nearest are l1_bytes, l2_bytes, l0c_bytes; docs/machine.md lists all",
    ),
    "a machine key that is near to none": (
        "run kernel.py --set nosuch=1",
        "Error: A machine field must be one of the record's, not 'nosuch'.\n"
        "  = help: no name is near; docs/machine.md lists all",
    ),
    "an impossible machine value": (
        "compile kernel.py -o out.sbx --set l1_bytes=100",
        "Error: l1_bytes must be an integer, 512 to 16777216, a multiple of 32, not 100.",
    ),
    "a machine file that is no TOML": (
        "disasm kernel.py --machine broken.toml",
        "Error: The machine file 'broken.toml' must be UTF-8 TOML, which it is not: "
        "Invalid value (at line 1, column 11).\n"
        "  --> broken.toml:1:11\n"
        "  |\n"
        "1 | inherit =\n"
        "  |           ^\n"
        "  |",
    ),
    "no such inputs": (
        "run kernel.py --inputs nothere.npz",
        "Error: Inputs must be an .npz, .npy or .hrry file or a bundle, "
        "and there is no file 'nothere.npz'",
    ),
    "inputs that are no arrays": (
        "run kernel.py --inputs kernel.py",
        "Error: kernel.py must be an .npz file that can be read: it is no archive",
    ),
    "inputs of the wrong shape": (
        "run kernel.py --inputs wrong.npz",
        "Error: a must be an E4M3 array of shape [32, 128], not of shape [16, 128]\n"
        f"  = help: {A_HINT}",
    ),
    "inputs and a seed": (
        "run kernel.py --inputs good.npz --seed 1",
        "Error: Either inputs or a seed to draw them must be given, not both",
    ),
    "a negative seed": ("run kernel.py --seed -1", "Error: The seed must be 0 or more, not -1"),
    "an unknown entry": (
        "run kernel.py --entry main",
        "Error: entry must name a function of the program, not 'main'\n  = help: valid here: gemm",
    ),
    "a file where the bundle should go": (
        "run kernel.py --out good.npz",
        "Error: good.npz must be a folder or a place where nothing stands, not a file",
    ),
    "other things where the bundle should go": (
        "run kernel.py --out .",
        "Error: . must be empty or hold nothing but a bundle, not files such as 'broken.toml'",
    ),
    "an executable with parameters": (
        "run kernel.sbx --param M=3",
        "Error: --param must go with a kernel file, and 'kernel.sbx' is an executable",
    ),
    "a text file as executable": (
        "disasm typo.toml",
        "Error: An executable must begin with b'SCALEBOX', not b'inherit '.\n"
        "  = note: the file is 'typo.toml'",
    ),
    "a bundle with parameters": (
        "disasm hollow.hrry --param M=3",
        "Error: --param must go with a kernel file, and 'hollow.hrry' is a bundle",
    ),
    "a bundle without an executable": (
        "disasm hollow.hrry",
        "Error: The bundle 'hollow.hrry' must hold an executable, and it holds none\n"
        "  = help: a bundle that `scalebox run` leaves holds one; else name a kernel file (.py)",
    ),
    "a bundle with a damaged executable": (
        "disasm damaged.hrry",
        "Error: An executable must begin with b'SCALEBOX', not b'damaged'.\n"
        "  = note: the executable is that of the bundle 'damaged.hrry'",
    ),
    "a folder as place of an executable": (
        "compile kernel.py -o .",
        "Error: An executable must be written to a file, not to the folder '.'.",
    ),
    "nothing to compare": (
        "compare nothere.npz good.npz",
        "Error: What is compared must be an .npz, .npy or .hrry file or a bundle, "
        "and there is no file 'nothere.npz'",
    ),
    "a folder that is no bundle": (
        "compare . good.npz",
        "Error: What is compared must be an .npz, .npy or .hrry file or a bundle, "
        "which the folder '.' is not",
    ),
    "nothing to show": (
        "show nothere.npz",
        "Error: What is shown must be an .npz, .npy or .hrry file or a bundle, "
        "and there is no file 'nothere.npz'",
    ),
    "a kernel to show": (
        "show kernel.py",
        "Error: kernel.py must be an .npz file that can be read: it is no archive",
    ),
    "golden without outputs": (
        "run kernel.py --golden good.npz --timing-only",
        "Error: Golden must go with a run that computes outputs, not with one for timing only",
    ),
    "a text where a bundle should go": (
        "run kernel.py --out text.hrry",
        "Error: text.hrry must be a bundle or a place where nothing stands, not something else",
    ),
    "a machine for what is compiled already": (
        "disasm kernel.sbx --machine a5",
        "Error: --machine and --set must go with a kernel file; 'kernel.sbx' is compiled already",
    ),
    "a picture over a kernel": (
        "compare good.npz good.npz --plot kernel.py",
        "Error: --plot must name a file that ends in .png, not 'kernel.py'",
    ),
    "an unknown rule": (
        "compare good.npz good.npz --rule almost",
        "Error: rule must be exact, ulp:N, close:rtol,atol or fraction:tol,share, not 'almost'",
    ),
    "outputs of other names": (
        "compare good.npz other.npz",
        "Error: actual must have the outputs of golden, 'c', not 'a', 'b', 'sa', 'sb'",
    ),
}

MISUSES = {
    "an unknown option": ("run kernel.py --sed 1", "No such option: --sed"),
    "an unknown command": ("rum kernel.py", "No such command 'rum'."),
    "a missing argument": ("run", "Missing argument 'KERNEL'."),
    "a missing option": ("compile kernel.py", "-o must say where the executable goes"),
    "too many arguments": ("run kernel.py b", "Got unexpected extra argument"),
    "a seed that is no number": ("run kernel.py --seed x", "Invalid value for '--seed'"),
    "a parameter without a value": (
        "run kernel.py --param M",
        "--param must be NAME=VALUE, not 'M'",
    ),
    "an unknown kind of checks": (
        "run kernel.py --checks maybe",
        "--checks must be one of error, warn, off, not 'maybe'",
    ),
    "an unknown order of summation": (
        "run kernel.py --sum up",
        "--sum must be one of group, sequential, not 'up'",
    ),
    "an unknown unit": (
        "rtl -o out --unit alu",
        "--unit must be one of scale_decode, dot, cube, scale_pair, not 'alu'",
    ),
    "a beat that no unit has": (
        "rtl -o out --beat 12",
        "The bytes of a beat must be one of 8, 16, 32, not 12",
    ),
    "a beat for a unit that reads no boxes": (
        "rtl -o out --unit dot --beat 8",
        "A width of beats must go with a unit that reads scale boxes, not with dot",
    ),
    "combined exponents of a unit without records": (
        "rtl -o out --unit cube --combined",
        "Combined exponents must go with scale_decode, not with cube",
    ),
}


@pytest.mark.parametrize("what", COMMANDS)
def test_wrong_input_is_told_in_a_sentence(
    what: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez("other.npz", c=np.zeros(3))
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    command, expected = COMMANDS[what]
    status = main(command.split())
    shown = capsys.readouterr()
    assert (shown.out, shown.err, status) == ("", f"{expected}\n", 2)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.parametrize("what", MISUSES)
@pytest.mark.usefixtures("folder")
def test_wrong_usage_names_the_help(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, expected = MISUSES[what]
    assert main(command.split()) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert lines[0].startswith("Usage: scalebox ")
    assert lines[1].startswith("Try 'scalebox")
    assert lines[1].endswith("--help' for help.")
    assert expected in lines[-1]


@pytest.mark.parametrize(
    "command", ["run nothere.py", "run kernel.py --sed 1", "run kernel.py --set l1_byte=1", ""]
)
@pytest.mark.usefixtures("folder")
def test_a_shell_sees_status_2_and_no_traceback(command: str) -> None:
    child = subprocess.run(
        [sys.executable, "-m", "scalebox", *command.split()], capture_output=True, text=True
    )
    assert child.returncode == 2
    assert child.stdout == ""
    assert child.stderr
    assert "Traceback" not in child.stderr


def test_a_shell_sees_status_1_for_a_mistake_in_the_kernel(folder: Path) -> None:
    text = Path("kernel.py").read_text().replace("pl.matmul_mx(", "pl.matmul(")
    Path("kernel.py").write_text(text)
    child = subprocess.run(
        [sys.executable, "-m", "scalebox", "run", "kernel.py"], capture_output=True, text=True
    )
    assert child.returncode == 1
    assert "kernel.py:" in child.stderr
    assert "Traceback" not in child.stderr
    assert not (folder / "scalebox-runs").exists()
