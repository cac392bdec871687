"""Patience: the first run on a computer compiles the machine model, or hardware, and says so."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Generator

    from rich.console import Console

MESSAGE = (
    "Compiling the machine model for this computer: half a minute, once. Later runs start at once."
)
"""What is said when numba compiles for the first time."""

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


def message_of(is_first: bool, functions: int) -> str:
    """Return what is said when numba compiles.

    Args:
        is_first: Whether next to nothing is compiled yet.
        functions: How many functions are to be compiled.
    """
    if is_first:
        return MESSAGE
    number = f"{functions:,} functions" if functions > 1 else "1 function"
    return f"Compiling what this run needs beyond what is compiled: {number}, once."


@contextmanager
def compilation_announced(stream: TextIO) -> Generator[None]:
    """Within, say it once on `stream` when something starts that takes long.

    That is numba when it compiles, which also shows how far it has come if `stream` is a terminal, and
    Verilator when it compiles the cube or the scale-decode unit. What they find in their caches on disk
    is not compiled, so that most runs say nothing; nor is anything said to a stream in memory.
    """
    from ...rtl.cosim.cache import builds_announced
    from .compiling import compiling_shown
    from .progress import say

    if not (stream.isatty() or _is_read(stream)):
        with compiling_shown(stream, None, None):
            yield
        return
    announced: set[str] = set()

    def tell(build: str) -> None:
        message = _MESSAGES.get(build)
        if message is not None and message not in announced:
            say(message, stream)
            announced.add(message)

    with compiling_shown(stream, message_of, console_on(stream)), builds_announced(tell):
        yield


def _is_read(stream: TextIO) -> bool:
    """Return whether somebody else may read a stream as it is written."""
    try:
        stream.fileno()
    except (OSError, ValueError):
        return False
    return True


def console_on(stream: TextIO) -> Console | None:
    """Return a console on a stream; None where no line can be drawn anew."""
    if not stream.isatty():
        return None
    from rich.console import Console

    console = Console(file=stream)
    return console if console.is_terminal and not console.is_dumb_terminal else None
