"""Progress: what a line says of work, where it is drawn, and how Ctrl-C ends a run."""

import io
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import typer
from rich.console import Console

from scalebox.app.cli import progress
from scalebox.app.cli.progress import ProgressLine, Tally, leave_echo, progress_shown, say


def test_a_tally_tells_how_far_work_came() -> None:
    tally = Tally()
    assert tally.interruption() == "Interrupted before the run began; nothing is saved."
    tally.phase("computing outputs", 32, cycles=300_000)
    tally.advance(7)
    assert tally.interruption() == (
        "Interrupted while computing outputs, 7 of 32 tasks done; the run takes 300,000 cycles. "
        "Nothing is saved."
    )
    tally.phase("computing golden")
    assert tally.interruption() == "Interrupted while computing golden. Nothing is saved."


def test_a_tally_tells_the_rate_and_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    tally = Tally()
    tally.phase("computing outputs", 100, cycles=8_000_000)
    assert tally.measures() == "0 of 100"
    tally.advance(25)
    now[0] += 2.0  # a quarter of 8 million cycles in 2 seconds: three times as long is left
    assert tally.measures() == "25 of 100  1M cycles/s  0:06 left"


def line_on_terminal() -> tuple[ProgressLine, io.StringIO]:
    stream = io.StringIO()
    return ProgressLine(Console(file=stream, force_terminal=True, width=60)), stream


def test_work_that_is_soon_over_shows_nothing() -> None:
    line, stream = line_on_terminal()
    line.phase("simulating", 2)
    line.advance()
    line.erase()
    assert stream.getvalue() == ""


def test_long_work_shows_one_line_which_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    line, stream = line_on_terminal()
    line.phase("simulating", 2)
    line.advance()
    line.erase()
    told = stream.getvalue()
    assert "1 of 2" in told
    assert "\n" not in told
    assert told.endswith("\r\x1b[2K")


def test_the_line_in_front_is_the_one_that_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    (back, hidden), (front, shown) = line_on_terminal(), line_on_terminal()
    front.come_to_front()
    for line in (back, front):
        line.phase("work", 2)
        line.advance()
    assert hidden.getvalue() == ""
    assert shown.getvalue() != ""
    front.erase()
    back.advance()
    assert hidden.getvalue() != ""
    back.erase()


def test_a_line_in_front_that_rests_for_long_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    (back, hidden), (front, _) = line_on_terminal(), line_on_terminal()
    for line in (back, front):
        line.phase("work", 2)
    front.come_to_front()
    now[0] += 30.0
    back.tick()
    front.rest()
    now[0] += 0.5
    back.tick()
    assert hidden.getvalue() == "", "as between two functions that are compiled"
    now[0] += 1.0
    back.tick()
    assert "0 of 2" in hidden.getvalue()
    drawn = hidden.getvalue()
    now[0] += 1.0
    front.come_to_front()
    back.tick()
    assert hidden.getvalue() == drawn
    front.erase()
    back.erase()


def test_a_sentence_takes_the_place_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    line, stream = line_on_terminal()
    line.phase("work", 2)
    line.advance()
    say("Compiling.", stream)
    assert stream.getvalue().endswith("\r\x1b[2KCompiling.\n")
    line.erase()
    assert stream.getvalue().endswith("Compiling.\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_follows_ctrl_c_begins_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    bare = Terminal()
    leave_echo(bare)
    assert bare.getvalue() == "\n"
    line, stream = line_on_terminal()
    line.phase("work", 2)
    line.advance()
    drawn = stream.getvalue()
    leave_echo(Terminal())
    assert stream.getvalue() == f"{drawn}\r\x1b[2K"
    memory = io.StringIO()
    leave_echo(memory)
    assert memory.getvalue() == ""


@pytest.mark.parametrize("watched", [False, True])
def test_a_thread_draws_while_nobody_calls_and_is_gone_before_processes_are_copied(
    watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    stream, before = Terminal(), threading.active_count()
    with progress_shown(stream, watched=watched) as line:
        line.phase("runs", 4)
        deadline = time.monotonic() + 20
        while "runs" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "0 of 4" in stream.getvalue()
        line.advance()
        assert threading.active_count() == before + watched
    assert threading.active_count() == before


def test_nothing_is_shown_without_a_terminal() -> None:
    stream = io.StringIO()
    with progress_shown(stream) as line:
        assert not line.is_shown
        line.phase("work", 1)
        line.advance()
    assert stream.getvalue() == ""


def test_ctrl_c_becomes_a_sentence_and_an_exit_status() -> None:
    stream, before = io.StringIO(), signal.getsignal(signal.SIGINT)

    def work() -> None:
        with progress_shown(stream) as line:
            line.phase("computing golden")
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(typer.Exit) as stopped:
        work()
    assert stopped.value.exit_code == 130
    assert stream.getvalue() == "Interrupted while computing golden. Nothing is saved.\n"
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_that_comes_where_nobody_can_raise_it_comes_again() -> None:
    def _raw_object_cache_notify() -> None:
        signal.raise_signal(signal.SIGINT)

    reached: list[str] = []

    def work() -> None:
        with progress_shown(io.StringIO()) as line:
            line.phase("compiling", 2)
            _raw_object_cache_notify()
            reached.append("after the callback")
            line.advance()
            reached.append("after the next task")

    with pytest.raises(typer.Exit):
        work()
    assert reached == ["after the callback"]


@pytest.mark.slow
def test_a_run_that_is_interrupted_leaves_no_bundle_and_no_traceback(examples: Path) -> None:
    sizes = [f"--param={name}=8192" for name in "MNK"]
    child = subprocess.Popen(
        [sys.executable, "-m", "scalebox", "run", "examples/mxfp8_performance.py", *sizes],
        cwd=examples,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(5)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert (child.returncode, out) == (130, "")
    assert "Interrupted " in err
    assert "Nothing is saved." in err or "nothing is saved." in err
    assert "Traceback" not in err
    assert list(examples.glob("scalebox-runs/**/*")) == []


@pytest.mark.slow
@pytest.mark.parametrize("quiet", [False, True])
def test_a_terminal_sees_progress_unless_json_is_asked_for(examples: Path, quiet: bool) -> None:
    ours, theirs = pty.openpty()
    sizes = [f"--param={name}=1024" for name in "MNK"]
    args = ["run", "examples/mxfp8_performance.py", *sizes, "--out", "bundle", "--no-timeline"]
    child = subprocess.Popen(
        [sys.executable, "-m", "scalebox", *args, *["--json"] * quiet],
        cwd=examples,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    told = b""
    try:
        while part := os.read(ours, 1 << 16):
            told += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert child.wait(120) == 0
    assert (b"simulating" in told or b"computing" in told) is not quiet
