"""The header of an executable: all of it but the instructions, as records that become JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from ...ir.errors import ExecutableError, Span
from ..host.program import HostProgram, Launch
from ..isa.encoding import decode_program
from ..isa.vocabulary import CoreKind
from ..kernel import Kernel

# Annotations of records are read at run time.
from ..tensors import Param, View  # noqa: TC001
from ..tile_records import TileRecords  # noqa: TC001
from .records import MAX_DEPTH, TAG, JsonReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from ..isa.program import Instruction
    from .container import Content
    from .records import Json

_WORD_BYTES = 16
_SINCE: tuple[tuple[str, int, Json], ...] = (
    ("core", 1, CoreKind.AIC.value),
    ("mate", 2, None),
    ("tiles", 3, {"names": [], "uses": []}),
)
"""Keys of a kernel that older files lack: the minor version that brought them, and what holds before."""
_SINCE_OF_MATE = _SINCE[2:]
"""The same for its mate."""
_LAUNCH_SINCE: tuple[tuple[str, int, Json], ...] = (("sync_start", 3, False),)
"""The same of a launch."""


@dataclass(frozen=True, slots=True)
class _MateHeader:
    """What the header holds of a kernel's mate beyond what both share."""

    instructions: int
    span_table: tuple[Span, ...]
    span_indices: tuple[int, ...]
    notes: tuple[tuple[int, str], ...]
    tiles: TileRecords

    @classmethod
    def of(cls, mate: Kernel) -> _MateHeader:
        program = len(mate.program)
        return cls(program, mate.span_table, mate.span_indices, mate.notes, mate.tiles)


@dataclass(frozen=True, slots=True)
class KernelHeader:
    """A kernel as the header holds it: its words stand in the payload, then those of its mate."""

    name: str
    params: tuple[Param, ...]
    views: tuple[View, ...]
    instructions: int
    span_table: tuple[Span, ...]
    span_indices: tuple[int, ...]
    notes: tuple[tuple[int, str], ...]
    core: CoreKind
    mate: _MateHeader | None
    tiles: TileRecords

    @classmethod
    def of(cls, kernel: Kernel) -> KernelHeader:
        """Return that of a kernel."""
        return cls(
            kernel.name,
            kernel.params,
            kernel.views,
            len(kernel.program),
            kernel.span_table,
            kernel.span_indices,
            kernel.notes,
            kernel.core,
            None if kernel.mate is None else _MateHeader.of(kernel.mate),
            kernel.tiles,
        )

    @property
    def counts(self) -> tuple[int, ...]:
        """How many instructions each of its programs has."""
        mate = () if self.mate is None else (self.mate.instructions,)
        return (self.instructions, *mate)

    def kernel(self, pieces: Iterator[npt.NDArray[np.uint64]]) -> Kernel:
        """Return the kernel, its words the next of `pieces`."""
        program = self._decode(next(pieces))
        mate = None if self.mate is None else self._of_mate(self.mate, self._decode(next(pieces)))
        return Kernel(
            self.name,
            self.params,
            self.views,
            program,
            self.span_table,
            self.span_indices,
            self.notes,
            self.core,
            mate,
            self.tiles,
        )

    def _of_mate(self, mate: _MateHeader, program: tuple[Instruction, ...]) -> Kernel:
        return Kernel(
            self.name,
            self.params,
            self.views,
            program,
            mate.span_table,
            mate.span_indices,
            mate.notes,
            CoreKind.AIV,
            tiles=mate.tiles,
        )

    def _decode(self, words: npt.NDArray[np.uint64]) -> tuple[Instruction, ...]:
        try:
            return tuple(decode_program(words))
        except ExecutableError as error:
            message = f"Kernel {self.name!r} must hold legal instructions. {error.message}"
            raise ExecutableError(message) from error


@dataclass(frozen=True, slots=True)
class Header:
    """The header of the file; its fields are the file's keys."""

    name: str
    machine: str
    machine_digest: str
    kernels: tuple[KernelHeader, ...]
    entries: tuple[HostProgram, ...]
    default_entry: str

    def kernels_of(self, payload: bytes) -> tuple[Kernel, ...]:
        """Return the kernels, whose words are the payload.

        Raises:
            ExecutableError: If there are not as many words as instructions, or no instructions.
        """
        counts = [count for kernel in self.kernels for count in kernel.counts]
        if min(counts, default=0) < 0 or sum(counts) * _WORD_BYTES != len(payload):
            message = (
                f"An executable's kernels must have {len(payload) / _WORD_BYTES:g} instructions "
                f"together, as the payload has, not {counts}."
            )
            raise ExecutableError(message)
        words = np.frombuffer(payload, dtype="<u8").astype(np.uint64).reshape(-1, 2)
        pieces = iter(np.split(words, np.cumsum(counts)[:-1]) if counts else [])
        return tuple(header.kernel(pieces) for header in self.kernels)


def read_header(content: Content) -> Header:
    """Return the header of a file; what an older minor version does not tell yet is as it was then.

    Raises:
        ExecutableError: If it is no such header.
    """
    _complete(content.header, content.minor)
    return JsonReader(lenient=content.newer).record(content.header, Header, "the header")


def _complete(header: object, minor: int) -> None:
    """Write into a header of an older minor version what it does not tell yet."""
    if not isinstance(header, dict):
        return
    parts = cast("dict[str, object]", header)
    kernels = parts.get("kernels")
    if isinstance(kernels, list):
        for kernel in cast("list[object]", kernels):
            if isinstance(kernel, dict):
                told = cast("dict[str, object]", kernel)
                _add_missing(told, _SINCE, minor)
                mate = told.get("mate")
                if isinstance(mate, dict):
                    _add_missing(cast("dict[str, object]", mate), _SINCE_OF_MATE, minor)
    if any(minor < since for _, since, _ in _LAUNCH_SINCE):
        _complete_launches(parts.get("entries"), minor, 2 * MAX_DEPTH)


def _complete_launches(value: object, minor: int, depth: int) -> None:
    """Complete the launches in a part of a header that nests at most so deep."""
    if not depth:
        return
    if isinstance(value, list):
        for each in cast("list[object]", value):
            _complete_launches(each, minor, depth - 1)
    elif isinstance(value, dict):
        node = cast("dict[str, object]", value)
        if node.get(TAG) == Launch.__name__:
            _add_missing(node, _LAUNCH_SINCE, minor)
        for each in node.values():
            _complete_launches(each, minor, depth - 1)


def _add_missing(
    record: dict[str, object], since_when: tuple[tuple[str, int, Json], ...], minor: int
) -> None:
    for key, since, before in since_when:
        if minor < since:
            record.setdefault(key, before)
