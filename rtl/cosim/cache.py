"""Compiled models, kept between runs.

A build costs seconds, its use milliseconds. Each is a folder below the user's cache, named after a
hash of everything that went into it, so it never has to be invalidated; whoever removes one only
waits for it again. Storing a new one drops those that nobody has used for long, see `tidy`. Set
`SCALEBOX_CACHE_DIR` to keep them elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...ir.errors import UserError
from .locks import locked
from .tidy import DIGEST_DIGITS, drop_unused, workshop

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


_LISTENER: Final[ContextVar[Callable[[str], None] | None]] = ContextVar("_LISTENER", default=None)

_ELSEWHERE: Final = "Set SCALEBOX_CACHE_DIR to a folder of your own."


class CacheError(UserError):
    """The cache folder, or a build in it, cannot be used."""


def damaged(folder: Path, error: OSError) -> CacheError:
    """Return what to raise where a kept build is not whole any more, as after a cleaning of caches."""
    message = f"A build that is kept must be whole, but that in {str(folder)!r} is not: {error}"
    return CacheError(message, hint="Remove that folder; what it held is then compiled anew.")


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
    nothing. A use is noted as the build's modification time; after a new build, those without a use
    for long are dropped.

    Args:
        name: What the folder's name begins with: small letters, digits, `-` and `_`.
        ingredients: Texts and versions; any change of one makes another build.
        build: Fills the folder that it is given.

    Raises:
        CacheError: If the cache folder cannot be written, or has a space in its path, with which
            make, which builds there, cannot cope.
    """
    digest = hashlib.sha256("\0".join(ingredients).encode()).hexdigest()[:DIGEST_DIGITS]
    root = cache_root()
    folder = root / f"{name}-{digest}"
    if any(character.isspace() for character in str(root.absolute())):
        message = f"The cache folder must have a path without spaces, not {str(root.absolute())!r}"
        raise CacheError(message, hint=_ELSEWHERE, note="make compiles there, and cannot with them")
    with ExitStack() as stack:
        try:
            root.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder))
        except OSError as error:
            if folder.is_dir():  # a cache that others keep is read, too
                return folder
            message = (
                f"The cache folder must be one that can be written, not {str(root)!r}: {error}"
            )
            raise CacheError(message, hint=_ELSEWHERE) from error
        if folder.is_dir():
            with suppress(OSError):
                os.utime(folder)
            return folder
        tell = _LISTENER.get()
        if tell is not None:
            tell(name)
        _build_into(folder, build)
    with suppress(OSError):
        drop_unused(root)
    return folder


def _build_into(folder: Path, build: Callable[[Path], None]) -> None:
    unfinished = workshop(folder)
    try:
        build(unfinished)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
