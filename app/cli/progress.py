"""How far long work has come: a line on the terminal, and a sentence when somebody stops it."""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager
from threading import Event, Lock, Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Any, TextIO

import typer

from .options import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

    from rich.console import Console

PATIENCE_SECONDS = 0.5
"""Work that is over sooner shows nothing."""

_REDRAW_SECONDS = 0.2
_HOLD_SECONDS = 1.0
"""How long a line in front stays there that rests: others would only flicker between its parts."""
_BAR_WIDTH = 24
_FULL, _EMPTY = ("━", "╌"), ("=", "-")
_CLEAR = "\r\x1b[2K"
_DEAF = "_raw_object_cache"
"""What LLVM calls back in the midst of compiling: an exception there would be lost."""
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


class Tally:
    """A :class:`~scalebox.sim.progress.Progress` that counts.

    Attributes:
        name: What is done now; empty before anything.
        total: Of how many tasks it consists; 0 if nobody knows.
        done: How many of them are done.
        cycles: The cycles of the machine that all of them stand for; 0 if they are not known.
    """

    def __init__(self) -> None:
        self.name = ""
        self.total = self.done = self.cycles = 0
        self._began = time.monotonic()

    def phase(self, name: str, total: int = 0, *, cycles: int = 0) -> None:
        """Begin a part of the work."""
        self.name, self.total, self.done, self.cycles = name, total, 0, cycles
        self._began = time.monotonic()

    def advance(self, tasks: int = 1) -> None:
        """Count tasks that are done."""
        self.done += tasks

    @property
    def seconds(self) -> float:
        """For how long this part has been under way."""
        return time.monotonic() - self._began

    def interruption(self) -> str:
        """Return how far the work came, as a sentence."""
        if not self.name:
            return "Interrupted before the run began; nothing is saved."
        how_far = f"Interrupted while {self.name}"
        if self.total:
            how_far += f", {self.done:,} of {self.total:,} tasks done"
        if self.cycles:
            how_far += f"; the run takes {self.cycles:,} cycles"
        return f"{how_far}. Nothing is saved."

    def measures(self) -> str:
        """Return how many tasks are done, how fast, and how long the others will take."""
        if not self.total:
            return ""
        parts = [f"{self.done:,} of {self.total:,}"]
        seconds = self.seconds
        if self.done and seconds > 0:
            share = self.done / self.total
            if self.cycles:
                parts.append(f"{_short(self.cycles * share / seconds)} cycles/s")
            parts.append(f"{_clock(seconds / share - seconds)} left")
        return "  ".join(parts)


_front: list[ProgressLine] = []
_shown: list[ProgressLine] = []
"""The line that stands on the terminal, if one does."""
_lock = Lock()
_stop = Event()
"""Whether Ctrl-C has come; what came to nothing, as it did where nobody could raise it, comes again."""


class ProgressLine(Tally):
    """A tally that is drawn as one line of a terminal, which is gone at the end.

    Args:
        console: Where it is drawn; None for nowhere.
    """

    def __init__(self, console: Console | None) -> None:
        super().__init__()
        self._console = console
        self._start = time.monotonic()
        self._drawn = 0.0
        self._rests_since: float | None = None
        self._watch: _Watch | None = None

    def phase(self, name: str, total: int = 0, *, cycles: int = 0) -> None:
        """Begin a part of the work, unless somebody wants it to stop."""
        stop_if_asked()
        super().phase(name, total, cycles=cycles)

    def advance(self, tasks: int = 1) -> None:
        """Count tasks that are done, and draw that, unless somebody wants the work to stop."""
        super().advance(tasks)
        if self._watch is not None:
            self._watch.end()
            self._watch = None
        self.tick()
        stop_if_asked()

    def tick(self) -> None:
        """Draw the line, unless that was done a moment ago, or the work has only begun."""
        now = time.monotonic()
        if self._console is None or not self.name:
            return
        if now - self._start >= PATIENCE_SECONDS and now - self._drawn >= _REDRAW_SECONDS:
            with _lock:
                if any(line.is_before(self, now) for line in _front):
                    return
                self._draw(self._console)
                _shown[:] = [self]
            self._drawn = now

    @property
    def is_shown(self) -> bool:
        """Whether there is a terminal on which it is drawn."""
        return self._console is not None

    def come_to_front(self) -> None:
        """Be the one that is drawn, though work around it may have a line, too.

        That is until `erase`, or until a moment after `rest`.
        """
        with _lock:
            self._rests_since = None
            if self not in _front:
                _front.append(self)

    def rest(self) -> None:
        """Let other lines be drawn if this one does not come to the front again in a moment."""
        self._rests_since = time.monotonic()

    def is_before(self, other: ProgressLine, now: float) -> bool:
        """Return whether this line, which came to the front, hides another one."""
        if self is other:
            return False
        return self._rests_since is None or now - self._rests_since < _HOLD_SECONDS

    def end_with_first_task(self, watch: _Watch) -> None:
        """End a thread that draws the line as soon as a task is done."""
        self._watch = watch

    def erase(self) -> None:
        """Take the line away, so that something else can be written there."""
        with _lock:
            if self in _front:
                _front.remove(self)
            if self in _shown:
                _clear()
            self._drawn = 0.0

    def clear(self) -> None:
        """Empty the line of the terminal that it is drawn on."""
        assert self._console is not None, "a line without a terminal is never shown"
        self._console.file.write(_CLEAR)
        self._console.file.flush()

    def _draw(self, console: Console) -> None:
        from rich.text import Text

        full, empty = _FULL if console.encoding.lower().startswith("utf") else _EMPTY
        filled = _BAR_WIDTH * self.done // self.total if self.total else 0
        bar = (full * filled, empty * (_BAR_WIDTH - filled)) if self.total else ("", "…")
        parts = [(self.name, ""), ("  ", ""), (bar[0], "cyan"), (bar[1], "dim"), ("  ", "")]
        text = Text.assemble(*parts, self.measures())
        text.truncate(max(1, console.width - 1))
        console.file.write(_CLEAR)
        console.print(text, end="", soft_wrap=True)
        console.file.flush()


@contextmanager
def progress_shown(
    stream: TextIO, *, quiet: bool = False, watched: bool = True
) -> Generator[ProgressLine]:
    """Within, show progress on `stream` if it is a terminal; Ctrl-C ends the command with a sentence.

    Args:
        stream: Where to.
        quiet: Whether nothing is shown at all.
        watched: Whether a thread draws the line to the end while nobody calls; else only until the
            first task is done, as where processes are copied afterwards.

    Raises:
        typer.Exit: With the exit status of what was interrupted.
    """
    line = ProgressLine(None if quiet else _console(stream))
    before = _listen()
    watch = _Watch(line)
    if not watched:
        line.end_with_first_task(watch)
    try:
        if line.is_shown:
            watch.begin()
        yield line
    except KeyboardInterrupt:
        leave_echo(stream)
        say(line.interruption(), stream)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        watch.end()
        line.erase()
        if before is not None:
            signal.signal(signal.SIGINT, before)
        _stop.clear()


def say(text: str, stream: TextIO) -> None:
    """Write a sentence where a line of progress may stand, which gives way to it."""
    with _lock:
        _clear()
        print(text, file=stream, flush=True)


def leave_echo(stream: TextIO) -> None:
    """Begin a new line after Ctrl-C, of which a terminal shows `^C`, or take it away with the progress."""
    if not stream.isatty():
        return
    with _lock:
        if _shown:
            _clear()
        else:
            print(file=stream, flush=True)


def _clear() -> None:
    """Take away the line that stands on the terminal; the lock is held."""
    for line in _shown:
        line.clear()
    _shown.clear()


class _Watch:
    """A thread that draws a line now and then.

    Args:
        line: What is drawn.
    """

    def __init__(self, line: ProgressLine) -> None:
        self._line = line
        self._over = Event()
        self._thread = Thread(target=self._draw, daemon=True)

    def begin(self) -> None:
        """Draw from now on."""
        self._thread.start()

    def end(self) -> None:
        """Draw no more; the thread is gone then."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _draw(self) -> None:
        while not self._over.wait(_REDRAW_SECONDS):
            self._line.tick()


def _listen() -> Any:
    """Take note of Ctrl-C from now on; return what has listened until now, if that can be changed here."""
    _stop.clear()
    if current_thread() is not main_thread():
        return None
    return signal.signal(signal.SIGINT, _on_interrupt)


def _on_interrupt(_number: int, frame: FrameType | None) -> None:
    _stop.set()
    while frame is not None:
        if frame.f_code.co_name.startswith(_DEAF):
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def stop_if_asked() -> None:
    """Raise the KeyboardInterrupt of a Ctrl-C that came where nobody could raise it."""
    if _stop.is_set() and current_thread() is main_thread():
        _stop.clear()
        raise KeyboardInterrupt


def _console(stream: TextIO) -> Console | None:
    """Return a console on a stream; None where no line can be drawn anew."""
    if not stream.isatty():
        return None
    from rich.console import Console

    console = Console(file=stream)
    return console if console.is_terminal and not console.is_dumb_terminal else None


def _short(number: float) -> str:
    """Return a number of three digits or so."""
    for unit, letter in _UNITS:
        if number >= unit:
            return f"{number / unit:.3g}{letter}"
    return f"{number:.3g}"


def _clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, with hours if there are any."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
