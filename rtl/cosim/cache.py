"""Compiled models, kept between runs.

A build costs seconds, its use milliseconds. Each is a folder below the user's cache, named after a
hash of everything that went into it, so it never has to be invalidated. Set `SCALEBOX_CACHE_DIR` to
keep it elsewhere.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...ir.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


_LISTENER: Final[ContextVar[Callable[[str], None] | None]] = ContextVar("_LISTENER", default=None)


class CacheError(UserError):
    """The cache folder cannot be used."""


@contextmanager
def builds_announced(tell: Callable[[str], None]) -> Generator[None]:
    """Within, call `tell` with the name of each build that is about to be made, not of kept ones."""
    token = _LISTENER.set(tell)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def cache_root() -> Path:
    """Return the folder of all compiled models, which may not exist yet."""
    named = os.environ.get("SCALEBOX_CACHE_DIR")
    if named:
        return Path(named) / "rtl"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "scalebox" / "rtl"


def cached_build(name: str, ingredients: tuple[str, ...], build: Callable[[Path], None]) -> Path:
    """Return the folder of a build, building it first where it is absent.

    Processes that want the same build wait for the one that makes it. A build that fails leaves
    nothing.

    Args:
        name: What the folder's name begins with.
        ingredients: Texts and versions; any change of one makes another build.
        build: Fills the folder that it is given.

    Raises:
        CacheError: If the cache folder cannot be written.
    """
    digest = hashlib.sha256("\0".join(ingredients).encode()).hexdigest()[:20]
    root = cache_root()
    folder = root / f"{name}-{digest}"
    if folder.is_dir():
        return folder
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = (root / f"{folder.name}.lock").open("w")
    except OSError as error:
        message = f"The cache folder must be one that can be written, not {str(root)!r}: {error}"
        hint = "Set SCALEBOX_CACHE_DIR to a folder of your own."
        raise CacheError(message, hint=hint) from error
    with lock, _held(lock.fileno()):
        if not folder.is_dir():
            tell = _LISTENER.get()
            if tell is not None:
                tell(name)
            _build_into(folder, build)
    return folder


def _build_into(folder: Path, build: Callable[[Path], None]) -> None:
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        build(unfinished)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _held(descriptor: int) -> Generator[None]:
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
