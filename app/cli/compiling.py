"""How far numba has come when it compiles: a line on the terminal, with a second process that helps."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO
from warnings import catch_warnings, simplefilter

from numba.core import event as compiler_events

from ...ir.jit import (
    UNKEPT,
    CodeCacheWarning,
    can_keep,
    is_kept,
    is_ours,
    name_of,
    needs,
    written_elsewhere,
)
from .compile_ahead import Ahead
from .progress import ProgressLine, say, stop_if_asked

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from pathlib import Path

    from rich.console import Console

_events: Any = compiler_events
_ROOM = f"{__name__.split('.')[0]}.sim."
_CLOCK = "pipes.loop", "simulate_pipes"

FIRST = (
    ("scalar", "run_scalar"),
    ("movements", "new_accesses"),
    ("movements", "run_movements"),
    ("checks.footprints", "number_places"),
    ("checks.footprints", "_renamed"),
    ("checks.overlaps", "find_conflicts"),
    ("checks.walk", "walk"),
    ("checks.holders", "walk_bytes"),
    _CLOCK,
    ("account.occupancy", "follow"),
    ("account.critical_walk", "walk"),
    ("pipes.l2", "warm_up"),
)
"""Modules and names of what Python calls in the first run of a matmul, be the cache cold or warm; with
what these call in turn it is all that is compiled then."""


class Compilation(compiler_events.Listener):
    """Hears from numba what it compiles; used by `compiling_shown`.

    Args:
        stream: Where what is to be said goes.
        message: Tells what is said first, of whether next to nothing is compiled yet, and of how many
            functions are to be; None to say nothing.
        line: The line on which the number of functions is drawn.
    """

    def __init__(
        self, stream: TextIO, message: Callable[[bool, int], str] | None, line: ProgressLine
    ) -> None:
        super().__init__()
        self._stream = stream
        self._message = message
        self._line = line
        self._ahead = Ahead(self._draw)
        self._process = os.getpid()
        self._depth = 0
        self._has_begun = self._is_first = self._has_told = False
        self._done: set[str] = set()
        self._planned: set[str] = set()

    def on_start(self, event: Any) -> None:
        """Take note of a function that is about to be compiled."""
        if os.getpid() != self._process:  # a copy of us, which says nothing
            return
        dispatcher = event.data["dispatcher"]
        self._begin()
        if self._depth == 0:
            self._plan([dispatcher])
            self._tell()
            self._line.come_to_front()
            self._draw()
        self._depth += 1
        stop_if_asked()

    def on_end(self, event: Any) -> None:
        """Count a function that has been compiled."""
        if os.getpid() != self._process:
            return
        self._depth -= 1
        self._done.add(name_of(event.data["dispatcher"]))
        self._ahead.listen()
        self._draw()
        if self._depth == 0:
            self._line.rest()

    def wait_for(self, module: str, path: Path) -> bool:
        """Return whether code that was missing has been written meanwhile."""
        if os.getpid() != self._process:
            return False
        self._begin()
        self._line.come_to_front()
        is_there = self._ahead.wait_for(module, path)
        stop_if_asked()
        if self._depth == 0:
            self._line.rest()
        return is_there

    def end(self) -> None:
        """Say no more."""
        if os.getpid() == self._process:
            self._ahead.end()
            self._line.erase()

    def _begin(self) -> None:
        if self._has_begun:
            return
        self._has_begun = True
        first = list(_first())
        if first and not can_keep(first[0]):
            say(f"{UNKEPT}.", self._stream)
            self._has_told = True
        self._plan(first)
        clock = getattr(sys.modules.get(f"{_ROOM}{_CLOCK[0]}"), _CLOCK[1], None)
        self._is_first = clock is None or not is_kept(clock)
        self._tell()
        if clock is not None and can_keep(clock) and self._is_first:
            self._ahead.begin()
        self._line.phase("compiling", len(self._planned))

    def _tell(self) -> None:
        """Say it, once it is known how much is to be compiled."""
        if self._planned and not self._has_told:
            self._has_told = True
            if self._message is not None:
                say(self._message(self._is_first, len(self._planned)), self._stream)

    def _plan(self, functions: Iterable[Any]) -> None:
        self._planned |= {name_of(each) for each in needs(functions) if not is_kept(each)}

    def _draw(self) -> None:
        done = (self._done | self._ahead.compiled) & self._planned
        self._line.total, self._line.done = len(self._planned), len(done)
        self._line.tick()


@contextmanager
def compiling_shown(
    stream: TextIO, message: Callable[[bool, int], str] | None, console: Console | None
) -> Generator[None]:
    """Within, say once when numba begins to compile, and show how far it has come.

    What it finds among the code that is kept is not compiled, so that most runs say nothing. Where there
    is much to compile, a second process helps.

    Args:
        stream: Where to.
        message: Tells what is said, as for :class:`Compilation`.
        console: A terminal on which a line may be drawn; None for none.
    """
    compilation = Compilation(stream, message, ProgressLine(console))
    with (
        catch_warnings(),
        _events.install_listener("numba:compile", compilation),
        written_elsewhere(compilation.wait_for),
    ):
        simplefilter("ignore", CodeCacheWarning)  # it is said in a sentence of ours
        try:
            yield
        finally:
            compilation.end()


def _first() -> Iterator[Any]:
    """Yield the functions of the table that there are."""
    for module, name in FIRST:
        found = getattr(sys.modules.get(f"{_ROOM}{module}"), name, None)
        if found is not None and is_ours(found):
            yield found
