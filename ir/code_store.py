"""Where compiled code is kept between processes: one file for each function, its sources and types.

numba keeps an index beside its files and numbers them, so that two processes that start from nothing
may give two signatures the same number, and a process that dies between index and file leaves old
code under new sources. Here a file's name says all that its code depends on; it is complete or not
there, and whoever finds it can use it.
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .checked_numba import numba

if TYPE_CHECKING:
    from collections.abc import Callable

_caching = numba.core.caching
_serialize = numba.core.serialize
_CHECK_BYTES = 4
_NAME_DIGITS = 16


class CodeFiles:
    """The files of one function.

    Args:
        folder: Where they are.
        name: How their names begin.
        stamp: The digest of all sources that code may depend on.
    """

    def __init__(self, folder: Path, name: str, stamp: str) -> None:
        self.folder = folder
        self._name = name
        self._stamp = stamp[:_NAME_DIGITS]

    def path(self, key: object) -> Path:
        """Return the file of a signature on a processor; `key` is numba's."""
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:_NAME_DIGITS]
        return self.folder / f"{self._name}.{self._stamp}.{digest}.code"

    def any_kept(self) -> bool:
        """Return whether there is code of the sources as they are."""
        return any(True for _ in self.folder.glob(f"{self._name}.{self._stamp}.*.code"))

    def load(self, key: object) -> Any:
        """Return what was kept, or None; a damaged file counts as none."""
        try:
            content = self.path(key).read_bytes()
        except OSError:
            return None
        check, body = content[:_CHECK_BYTES], content[_CHECK_BYTES:]
        if not body or zlib.crc32(body).to_bytes(_CHECK_BYTES, "little") != check:
            return None
        found, kept = pickle.loads(body)
        return kept if found == key else None

    def save(self, key: object, kept: object) -> None:
        """Keep something, and drop what older sources left; where it cannot be written, nothing is."""
        body: bytes = _serialize.dumps((key, kept))
        path = self.path(key)
        unfinished = path.with_suffix(f".{uuid4().hex[:_NAME_DIGITS]}.part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(zlib.crc32(body).to_bytes(_CHECK_BYTES, "little") + body)
            unfinished.replace(path)
        except OSError:
            with suppress(OSError):
                unfinished.unlink()
            return
        for old in self.folder.glob(f"{self._name}.*.code"):
            if not old.name.startswith(f"{self._name}.{self._stamp}."):
                with suppress(OSError):
                    old.unlink()


class KeptCode:
    """What a numba dispatcher asks for compiled code before it compiles, and gives it afterwards.

    It looks for a folder when it is first asked, which most functions never are.

    Args:
        function: What is compiled.
        stamp: The digest of all sources that its code may depend on, as they were imported.
        missing: Called with the path of a file that is not there; it may have it written by others
            meanwhile, which it tells by returning True.
        unkept: Called when something is to be compiled that cannot be kept.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        stamp: str,
        missing: Callable[[Path], bool],
        unkept: Callable[[], None],
    ) -> None:
        self._function = function
        self._stamp = stamp
        self._missing = missing
        self._unkept = unkept

    @cached_property
    def _numba(self) -> Any:
        """What numba would use; None if there is no folder in which this user may keep anything."""
        try:
            return _caching.FunctionCache(self._function)
        except RuntimeError:
            return None

    @cached_property
    def files(self) -> CodeFiles | None:
        """The files, if there is a folder for them."""
        if self._numba is None:
            return None
        name: str = self._numba._impl.filename_base  # noqa: SLF001 - numba has no public way
        return CodeFiles(Path(self._numba.cache_path), name, self._stamp)

    @property
    def cache_path(self) -> str | None:
        """The folder."""
        return None if self.files is None else str(self.files.folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return numba's result of compiling for a signature, or None."""
        target_context.refresh()
        if self.files is None:
            self._unkept()
            return None
        key = self._numba._index_key(sig, target_context.codegen())  # noqa: SLF001
        kept = self.files.load(key)
        if kept is None and self._missing(self.files.path(key)):
            kept = self.files.load(key)
        return None if kept is None else self._numba._impl.rebuild(target_context, kept)  # noqa: SLF001

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep numba's result of compiling for a signature."""
        if self.files is not None and self._numba._impl.check_cachable(data):  # noqa: SLF001
            key = self._numba._index_key(sig, data.codegen)  # noqa: SLF001
            self.files.save(key, self._numba._impl.reduce(data))  # noqa: SLF001
