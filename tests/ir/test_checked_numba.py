"""What the environment tells numba: a mistake there is a sentence, from a shell and from Python."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scalebox.ir.checked_numba import check_settings
from scalebox.ir.errors import InputError


@pytest.mark.parametrize("value", ["0", "-1", "abc", "1.5", " "])
def test_the_number_of_threads_is_one(value: str) -> None:
    sentence = f"NUMBA_NUM_THREADS must be a whole number from 1 on, not {value!r}"
    with pytest.raises(InputError, match=sentence):
        check_settings({"NUMBA_NUM_THREADS": value})


def test_the_place_of_compiled_code_is_no_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InputError, match=f"NUMBA_CACHE_DIR must be a folder, not '{file}'"):
        check_settings({"NUMBA_CACHE_DIR": str(file)})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NUMBA_CPU_NAME", "no-such-processor"),
        ("NUMBA_CPU_FEATURES", "avx"),
        ("NUMBA_CPU_FEATURES", "+no-such-feature"),
    ],
)
def test_a_processor_is_one_that_llvm_knows(
    name: str, value: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(
        InputError, match=f"{name} must be .* LLVM knows, .*, not '{re.escape(value)}'"
    ):
        check_settings({name: value})
    assert capfd.readouterr().err == ""


def test_settings_that_are_right_pass(tmp_path: Path) -> None:
    host = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    check_settings({})
    check_settings({"NUMBA_NUM_THREADS": "", "NUMBA_CACHE_DIR": ""})
    check_settings(
        {"NUMBA_NUM_THREADS": "64", "NUMBA_CACHE_DIR": str(tmp_path / "to be made"), **host}
    )


PYTHON = """
from pathlib import Path
import scalebox
from scalebox.ir.errors import UserError
path = {path!r}
program = scalebox.pl.parse(Path(path).read_text())
calls = [
    lambda: scalebox.run(program, functional=False),
    lambda: scalebox.sweep(path),
]
for call in calls:
    try:
        call()
    except UserError as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("name", "value"), [("NUMBA_NUM_THREADS", "0"), ("NUMBA_OPT", "7"), ("NUMBA_DISABLE_JIT", "x")]
)
def test_a_mistake_is_a_sentence_from_a_shell_and_from_python(
    name: str, value: str, root: Path
) -> None:
    environment, example = {**os.environ, name: value}, str(root / "examples" / "mx_matmul.py")
    sentence = f"{name} must "
    for command in ("run", "sweep", "report"):
        child = subprocess.run(
            [sys.executable, "-m", "scalebox", command, example],
            capture_output=True,
            text=True,
            env=environment,
        )
        assert child.returncode == 2, child.stderr
        assert child.stderr.startswith(f"Error: {sentence}")
        assert len(child.stderr.splitlines()) == 1
    child = subprocess.run(
        [sys.executable, "-c", PYTHON.format(path=example)],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert [line.startswith(sentence) for line in child.stdout.splitlines()] == [True] * 2
    assert child.stderr == ""
