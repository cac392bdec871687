"""Patience: the first run on a computer compiles the machine model, and says so."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Generator

MESSAGE = (
    "Compiling the machine model for this computer: half a minute, once. Later runs start at once."
)


@contextmanager
def compilation_announced(stream: TextIO) -> Generator[None]:
    """Within, say it once on `stream` when numba starts to compile, if `stream` is a terminal.

    What numba finds in its cache on disk is not compiled, so that most runs say nothing.
    """
    if not stream.isatty():
        yield
        return
    from numba.core import event as compiler_events

    class Announcer(compiler_events.Listener):
        said = False

        def on_start(self, event: object) -> None:
            if not self.said:
                print(MESSAGE, file=stream, flush=True)
            self.said = True

        def on_end(self, event: object) -> None:
            pass

    untyped: Any = compiler_events
    with untyped.install_listener("numba:compile", Announcer()):
        yield
