"""Clearing the cache of builds that nobody uses, and of what killed builds left.

A build has a lock beside it from before it is begun until after it is dropped, and everything here
goes by the locks: what has another name, or no lock, is somebody else's.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from .locks import LOCK, locked

__all__ = ["DIGEST_DIGITS", "KEPT_DAYS", "LEFT_DAYS", "drop_unused", "workshop"]

DIGEST_DIGITS: Final = 20
"""Hexadecimal digits at the end of the name of a build."""

KEPT_DAYS: Final = 30
"""How long a build is kept after its last use."""

LEFT_DAYS: Final = 1
"""How long an unfinished build is left alone that nobody is at work on."""

_DAY_SECONDS: Final = 86_400
_NAME: Final = rf"([a-z][\w-]*-[0-9a-f]{{{DIGEST_DIGITS}}})"
_LOCK_NAME: Final = re.compile(_NAME + re.escape(LOCK))
_WORKSHOP_NAME: Final = re.compile(rf"\.{_NAME}\.[a-z0-9_]{{8}}")


def workshop(build: Path) -> Path:
    """Return a new folder in which a build is made, or taken apart, out of everybody's sight."""
    return Path(tempfile.mkdtemp(dir=build.parent, prefix=f".{build.name}."))


def drop_unused(root: Path) -> None:
    """Remove builds that were not used for long, their locks, and unfinished ones left behind.

    A build's modification time is that of its last use. What is in use, what another process is at
    work on, and what cannot be removed, stays.

    Args:
        root: The folder of all builds.
    """
    locks: list[str] = []
    unfinished: dict[str, list[Path]] = {}
    for entry in sorted(root.iterdir()):
        if lock := _LOCK_NAME.fullmatch(entry.name):
            locks.append(lock[1])
        elif began := _WORKSHOP_NAME.fullmatch(entry.name):
            unfinished.setdefault(began[1], []).append(entry)
    for name in locks:
        # Others tidy up, too: what is gone is gone.
        with suppress(OSError):
            _drop(root / name, unfinished.get(name, []))


def _drop(build: Path, unfinished: list[Path]) -> None:
    """Remove a build, or what was left of attempts at it, if that is due."""
    lock = build.with_name(build.name + LOCK)
    left = [path for path in unfinished if _is_folder(path) and _is_older(path, LEFT_DAYS)]
    last_use = build if build.exists() else lock
    if not left and not _is_older(last_use, KEPT_DAYS):
        return
    with locked(build, wait=False) as held:
        if not held:
            return
        for path in left:
            shutil.rmtree(path, ignore_errors=True)
        # It may have been used since it was looked at; while the lock is held nobody begins to.
        if _is_folder(build) and _is_older(build, KEPT_DAYS):
            taken = workshop(build)
            build.rename(taken)
            shutil.rmtree(taken, ignore_errors=True)
            unfinished = [*unfinished, taken]
        if not any(path.exists() for path in (build, *unfinished)):
            lock.unlink()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_older(path: Path, days: int) -> bool:
    return time.time() - path.lstat().st_mtime > days * _DAY_SECONDS
