"""Locks between processes, one a name, which may be removed while others wait for them."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

__all__ = ["LOCK", "locked"]

LOCK: Final = ".lock"
"""What the name of a lock's file ends with, after the name of what it guards."""


@contextmanager
def locked(guarded: Path, *, wait: bool = True) -> Generator[bool]:
    """Hold the lock beside a path within, alone among all processes and threads.

    Args:
        guarded: The path, which need not exist; its folder must.
        wait: Whether to wait for whoever holds it; else nothing is held where somebody does.

    Yields:
        Whether the lock is held.

    Raises:
        OSError: If the file of the lock cannot be opened for writing.
    """
    path = guarded.with_name(guarded.name + LOCK)
    descriptor = _opened(path, wait=wait)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _opened(path: Path, *, wait: bool) -> int | None:
    """Return the locked file, which gives the lock back when it is closed; None if it is taken."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            # Whoever held it may have removed the file; then the next one locks another.
            if _is(descriptor, path):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
