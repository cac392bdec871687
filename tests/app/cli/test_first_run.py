"""A long wait is announced where somebody waits, and only when there is one."""

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from numba import njit
from rich.console import Console

from scalebox.app.cli import compiling, progress
from scalebox.app.cli.first_run import (
    CUBE_MESSAGE,
    MESSAGE,
    UNIT_MESSAGE,
    compilation_announced,
)
from scalebox.app.cli.progress import ProgressLine
from scalebox.rtl.cosim.cache import cached_build


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


CLEARED = "\r\x1b[2K"


def successor(number: int) -> int:
    return number + 1


def unkept(_: object) -> bool:
    return False


MORE = "Compiling what this run needs beyond what is compiled: 1 function, once."


@pytest.mark.parametrize(
    ("stream", "is_kept", "said"),
    [
        (Terminal(), False, MESSAGE),
        (Terminal(), True, MORE),
        (io.StringIO(), False, ""),
        (io.StringIO(), True, ""),
    ],
)
def test_a_terminal_is_told_once_that_something_is_compiled(
    stream: io.StringIO, is_kept: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clock() -> None:
        """Stand for what the first run compiles, which may be kept or not."""

    def kept(function: object) -> bool:
        return is_kept and function is clock

    monkeypatch.setattr(compiling, "FIRST", ())
    monkeypatch.setattr(compiling, "is_kept", kept)
    monkeypatch.setattr(compiling, "can_keep", unkept)
    monkeypatch.setattr("scalebox.sim.pipes.loop.simulate_pipes", clock)
    with compilation_announced(stream):
        assert [njit(successor)(number) for number in (1, 2)] == [2, 3]
    first, _, line = stream.getvalue().partition("\n")
    assert first == said
    assert not line or line.endswith(CLEARED)


def test_while_something_is_compiled_no_other_line_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=60)
    run, line = ProgressLine(console), ProgressLine(console)
    compilation = compiling.Compilation(stream, None, line)
    run.phase("checking tasks", 1)
    event = SimpleNamespace(data={"dispatcher": njit(successor)})

    def later(seconds: float) -> str:
        before = len(stream.getvalue())
        now[0] += seconds
        run.tick()
        return stream.getvalue()[before:]

    assert "checking tasks" in later(1)
    now[0] += 1
    compilation.on_start(event)
    assert "compiling" in stream.getvalue()
    assert later(30) == ""
    compilation.on_end(event)
    assert later(0.5) == ""
    compilation.on_start(event)
    assert later(30) == ""
    compilation.on_end(event)
    assert "checking tasks" in later(2), "what runs for long after it shows again"
    compilation.end()
    run.erase()


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
