"""Patience: the first run on a computer compiles the machine model, or hardware, and says so."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Generator

MESSAGE = (
    "Compiling the machine model for this computer: half a minute, once. Later runs start at once."
)

CUBE_MESSAGE = "Compiling the cube's Verilog for this computer: about 40 seconds, once. Later runs start at once."
UNIT_MESSAGE = (
    "Compiling the scale-decode unit's Verilog for this computer: up to a minute, once. "
    "Later runs start at once."
)

_MESSAGES = {
    "library-cube": CUBE_MESSAGE,
    "library-scale_decode": UNIT_MESSAGE,
    "cocotb-verilator-scale_decode": UNIT_MESSAGE,
}
"""What to say of a build, by its name."""


@contextmanager
def compilation_announced(stream: TextIO) -> Generator[None]:
    """Within, say it once on `stream` when something starts that takes long, if it is a terminal.

    That is numba when it compiles, and Verilator when it compiles the cube or the scale-decode unit.
    What they find in their caches on disk is not compiled, so that most runs say nothing.
    """
    if not stream.isatty():
        yield
        return
    from numba.core import event as compiler_events

    from ..rtl.cosim.cache import builds_announced

    announced: set[str] = set()

    def tell(build: str) -> None:
        message = _MESSAGES.get(build)
        if message is not None and message not in announced:
            print(message, file=stream, flush=True)
            announced.add(message)

    class Announcer(compiler_events.Listener):
        said = False

        def on_start(self, event: object) -> None:
            if not self.said:
                print(MESSAGE, file=stream, flush=True)
            self.said = True

        def on_end(self, event: object) -> None:
            pass

    untyped: Any = compiler_events
    with untyped.install_listener("numba:compile", Announcer()), builds_announced(tell):
        yield
