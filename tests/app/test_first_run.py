"""A long wait is announced where somebody waits, and only when there is one."""

import io
from pathlib import Path

import pytest
from numba import njit

from scalebox.app.first_run import (
    CUBE_MESSAGE,
    MESSAGE,
    UNIT_MESSAGE,
    compilation_announced,
)
from scalebox.rtl.cosim.cache import cached_build


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


CLEARED = "\r\x1b[2K"


def successor(number: int) -> int:
    return number + 1


@pytest.mark.parametrize(("stream", "said"), [(Terminal(), MESSAGE), (io.StringIO(), "")])
def test_a_terminal_is_told_once_that_something_is_compiled(stream: io.StringIO, said: str) -> None:
    with compilation_announced(stream):
        assert [njit(successor)(number) for number in (1, 2)] == [2, 3]
    first, _, line = stream.getvalue().partition("\n")
    assert first == said
    assert not line or line.endswith(CLEARED)


def test_nothing_is_said_when_nothing_is_compiled() -> None:
    compiled = njit(successor)
    compiled(1)
    stream = Terminal()
    with compilation_announced(stream):
        assert compiled(2) == 3
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("stream", "said"), [(Terminal(), CUBE_MESSAGE), (io.StringIO(), "")])
def test_a_terminal_is_told_when_the_cube_is_compiled(
    stream: io.StringIO, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEBOX_CACHE_DIR", str(tmp_path))
    with compilation_announced(stream):
        for name in ("library-unit", "library-cube", "library-cube"):
            cached_build(name, ("text",), lambda folder: None)
    assert stream.getvalue().strip() == said


def test_the_two_builds_of_a_cosimulation_are_one_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEBOX_CACHE_DIR", str(tmp_path))
    stream = Terminal()
    with compilation_announced(stream):
        for name in ("library-scale_decode", "cocotb-verilator-scale_decode"):
            cached_build(name, ("text",), lambda folder: None)
    assert stream.getvalue().strip() == UNIT_MESSAGE
