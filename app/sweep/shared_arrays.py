"""Arrays that several processes look at, in a file that each maps into its memory: one copy for all."""

from __future__ import annotations

import mmap
import os
import pickle
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_ALIGNMENT = 64
_FROM_ELSEWHERE = 2
"""What numpy's `isbuiltin` is for a dtype that another package has registered."""


class NamelessFile:
    """A file that no folder has, on Linux: it is gone with this process and those that map it.

    That is so however they end, so that there is nothing to clean up.

    Raises:
        OSError: If none can be made.

    Attributes:
        path: Where other processes find it, as long as this one keeps it open.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 - it is open as long as it is needed
        self.path = Path(f"/proc/{os.getpid()}/fd/{self._file.fileno()}")

    def close(self) -> None:
        """Let nobody find it any more."""
        self._file.close()


def write_shared(path: Path, value: object) -> None:
    """Write plain values with arrays in them to a file, for :func:`read_shared` in another process.

    Args:
        path: Where the file goes; nobody may read it before this returns.
        value: What is written. The file is for processes of one program, not to be kept.
    """
    buffers: list[pickle.PickleBuffer] = []
    with path.open("wb") as stream:
        pickler = _Pickler(stream, protocol=5, buffer_callback=buffers.append)
        pickler.dump(value)
        ends = [stream.tell()]
        for buffer in buffers:
            stream.write(bytes(-ends[-1] % _ALIGNMENT))
            stream.write(buffer.raw())
            ends.append(stream.tell())
        table = np.array([*ends, len(ends)], np.int64)
        stream.write(table.tobytes())


def read_shared(path: Path) -> Any:
    """Return what a file of :func:`write_shared` holds; its arrays are read-only and in the file."""
    with path.open("rb") as stream:
        memory = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    (count,) = np.frombuffer(memory[-8:], np.int64)
    ends = np.frombuffer(memory[-8 * int(count) - 8 : -8], np.int64).tolist()
    starts = [end + -end % _ALIGNMENT for end in ends]
    parts = [memory[a:b] for a, b in zip(starts, ends[1:], strict=False)]
    return pickle.loads(memory[: ends[0]], buffers=parts)


class _Pickler(pickle.Pickler):
    """Pickles arrays of the formats that numpy has from elsewhere as their bytes, which are not copied."""

    def reducer_override(self, value: object) -> Any:
        if not isinstance(value, np.ndarray):
            return NotImplemented
        array = cast("npt.NDArray[Any]", value)
        if array.dtype.isbuiltin != _FROM_ELSEWHERE:
            return NotImplemented
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return _viewed, (raw, array.dtype, array.shape)


def _viewed(raw: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    return raw.view(dtype).reshape(shape)
