"""The standard streams of a command, whatever a shell has made of them: full, closed, or read by nobody."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from ...ir.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

CLOSED = "The output must be written somewhere, but standard output is closed"

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_STANDARD = range(3)
"""The numbers of standard input, output and error."""


class OutputError(UserError):
    """Standard output takes nothing, or no more."""


@contextmanager
def guarded_streams() -> Generator[bool]:
    """Within, a failure of standard output is an `OutputError`, and one of standard error is nobody's.

    What an encoding lacks is written as an escape. A stream that is closed leads nowhere, so that no file
    takes its place.

    Yields:
        Whether there is a standard output.
    """
    _fill_closed()
    before: tuple[Any, Any] = sys.stdout, sys.stderr
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        out, err = (each or nowhere for each in before)
        sys.stdout = cast("TextIO", _Guarded(out, _tell))
        sys.stderr = cast("TextIO", _Guarded(err, _keep_silent))
        try:
            with _lenient(out), _lenient(err):
                yield before[0] is not None
        finally:
            sys.stdout, sys.stderr = before


class _Guarded:
    """A stream whose failure somebody else takes care of, as often as it is written to from then on.

    Args:
        stream: What it stands for.
        fail: Called with the failure.
    """

    def __init__(self, stream: TextIO, fail: Callable[[OSError], None]) -> None:
        self._stream = stream
        self._fail = fail
        self._failure: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text; return how many characters."""
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Write what was kept back."""
        self._try(self._stream.flush)

    def _try(self, write: Callable[[], object]) -> None:
        if self._failure is None:
            try:
                write()
            except OSError as error:
                self._failure = error
                self._lead_nowhere()
        if self._failure is not None:
            self._fail(self._failure)

    def _lead_nowhere(self) -> None:
        """Let nothing be written any more: else Python's own flush at exit would fail, too."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


def _tell(error: OSError) -> None:
    if isinstance(error, BrokenPipeError):
        raise error
    what = "is full" if error.errno in _FULL else "takes nothing"
    message = f"The output must be written somewhere, but standard output {what}: {error.strerror}"
    raise OutputError(message) from error


def _keep_silent(_: OSError) -> None:
    """Tell nobody: there is nowhere to."""


def _fill_closed() -> None:
    """Let closed streams lead nowhere."""
    for number in _STANDARD:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it takes the least number that is free


@contextmanager
def _lenient(stream: TextIO) -> Generator[None]:
    """Within, let a stream write characters that its encoding lacks as escapes."""
    if not isinstance(stream, io.TextIOWrapper) or stream.errors != "strict":
        yield
        return
    stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        stream.reconfigure(errors="strict")
