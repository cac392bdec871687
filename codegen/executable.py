"""The result of compilation: a file with a binary per kernel and the host program of each entry.

This file is the face of `codegen` for those who run programs: what they need of the kernels and
of the host program can be imported from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from ..ir.errors import ExecutableError, InputError, IRValueError, Span
from ..ir.suggest import near
from .file import container
from .file.records import MAX_DEPTH, TAG, JsonReader, to_json
from .host.check import check_host
from .host.program import Buffer, HostProgram, Launch, Output
from .host.tasks import Task, TaskGraph, expand
from .isa.asm import format_program
from .isa.encoding import decode_program
from .isa.vocabulary import CoreKind
from .kernel import Direction, Kernel, Layout, Param, ParamKind, View
from .tile_records import TileRecords  # noqa: TC001 - annotations of records are read at run time

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from .file.records import Json
    from .isa.program import Instruction

__all__ = [
    "Buffer",
    "Direction",
    "Executable",
    "HostProgram",
    "Kernel",
    "Layout",
    "Output",
    "Param",
    "ParamKind",
    "Task",
    "TaskGraph",
    "View",
]

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


@dataclass(frozen=True)
class Executable:
    """A compiled program.

    Args:
        name: Name of the program.
        machine: Name of the machine that it was compiled for.
        machine_digest: Digest of that machine's record.
        kernels: Its kernels; host programs launch them by index.
        entries: What can be run, by different names.
        default_entry: The entry that runs when none is named; empty if one must be named.

    Raises:
        IRValueError: If the parts do not fit each other.
    """

    name: str
    machine: str
    machine_digest: str
    kernels: tuple[Kernel, ...]
    entries: tuple[HostProgram, ...]
    default_entry: str = ""

    def __post_init__(self) -> None:
        for what, names in (
            ("kernels", [kernel.name for kernel in self.kernels]),
            ("entries", [entry.name for entry in self.entries]),
        ):
            if len(set(names)) != len(names):
                message = f"An executable must have {what} of different names, not {names}."
                raise IRValueError(message)
        for entry in self.entries:
            check_host(entry, self.kernels)
        known = [entry.name for entry in self.entries]
        if self.default_entry and self.default_entry not in known:
            message = (
                f"The default entry must be one of {', '.join(known) or 'none'}, "
                f"not {self.default_entry!r}."
            )
            raise IRValueError(message)

    def __repr__(self) -> str:
        kernels, entries = (
            ", ".join(each.name for each in parts) for parts in (self.kernels, self.entries)
        )
        return (
            f"<executable {self.name!r} for {self.machine}: kernels {kernels}; entries {entries}>"
        )

    def entry(self, name: str | None = None) -> HostProgram:
        """Return an entry, the default one if no name is given.

        Raises:
            InputError: If there is no such entry, or no default.
        """
        known = [entry.name for entry in self.entries]
        if name is None and not self.default_entry:
            message = f"An entry of {self.name!r} must be named, since it has no single one."
            raise InputError(message, hint=f"valid here: {', '.join(known)}")
        wanted = self.default_entry if name is None else name
        for entry in self.entries:
            if isinstance(wanted, str) and entry.name == wanted:  # pyright: ignore[reportUnnecessaryIsInstance]
                return entry
        message = f"An entry of {self.name!r} must be one that it has, not {wanted!r}."
        raise InputError(message, hint=near(wanted, known))

    def expand(
        self, entry: str | None = None, scalars: Mapping[str, int] | None = None
    ) -> TaskGraph:
        """Return the tasks of one launch of an entry.

        Args:
            entry: Its name, or None for the default one.
            scalars: A signed 64-bit integer per scalar parameter, by name.

        Raises:
            InputError: If the entry or a scalar is wrong, or the launch is impossible.
        """
        return expand(self.entry(entry), self.kernels, scalars)

    def disassemble(self) -> str:
        """Return the kernels as assembler text, with their parameters, views and source lines."""
        return "\n".join(_kernel_text(kernel) for kernel in self.kernels)

    def to_bytes(self) -> bytes:
        """Return the file as bytes."""
        header = _Header(
            self.name,
            self.machine,
            self.machine_digest,
            tuple(_KernelHeader.of(kernel) for kernel in self.kernels),
            self.entries,
            self.default_entry,
        )
        words = [
            program.words.astype("<u8").tobytes()
            for kernel in self.kernels
            for program in kernel.programs
        ]
        return container.pack(to_json(header, _Header), b"".join(words))

    @classmethod
    def from_bytes(cls, data: bytes) -> Executable:
        """Return the executable that `data` holds.

        Raises:
            ExecutableError: If the bytes are no executable, damaged, or inconsistent.
        """
        content = container.unpack(data)
        _complete(content.header, content.minor)
        try:
            header = JsonReader(lenient=content.newer).record(content.header, _Header, "the header")
            return header.executable(content.payload)
        except IRValueError as error:
            message = f"The executable must be consistent, which it is not. {error.message}"
            raise ExecutableError(message) from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the executable to `path`, whole or not at all.

        Raises:
            ExecutableError: If the file cannot be written.
        """
        container.write_file(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Executable:
        """Return the executable at `path`.

        Raises:
            ExecutableError: If the file cannot be read, or as in :meth:`from_bytes`.
        """
        data = container.read_file(path)
        try:
            return cls.from_bytes(data)
        except ExecutableError as error:
            raise ExecutableError(
                error.message, hint=error.hint, note=f"the file is {str(path)!r}"
            ) from error


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
class _KernelHeader:
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
    def of(cls, kernel: Kernel) -> _KernelHeader:
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
class _Header:
    """The header of the file; its fields are the file's keys."""

    name: str
    machine: str
    machine_digest: str
    kernels: tuple[_KernelHeader, ...]
    entries: tuple[HostProgram, ...]
    default_entry: str

    def executable(self, payload: bytes) -> Executable:
        counts = [count for kernel in self.kernels for count in kernel.counts]
        if min(counts, default=0) < 0 or sum(counts) * _WORD_BYTES != len(payload):
            message = (
                f"An executable's kernels must have {len(payload) / _WORD_BYTES:g} instructions "
                f"together, as the payload has, not {counts}."
            )
            raise ExecutableError(message)
        words = np.frombuffer(payload, dtype="<u8").astype(np.uint64).reshape(-1, 2)
        pieces = iter(np.split(words, np.cumsum(counts)[:-1]) if counts else [])
        kernels = tuple(header.kernel(pieces) for header in self.kernels)
        return Executable(
            self.name,
            self.machine,
            self.machine_digest,
            kernels,
            self.entries,
            self.default_entry,
        )


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


def _kernel_text(kernel: Kernel) -> str:
    text = f"{_heading(kernel)}{_program_text(kernel)}"
    if kernel.mate is None:
        return text
    return f"{text}; mate of {kernel.name} ({kernel.mate.core.value})\n{_program_text(kernel.mate)}"


def _heading(kernel: Kernel) -> str:
    alone = kernel.core is CoreKind.AIC and kernel.mate is None
    heading = [
        f"kernel {kernel.name}" + ("" if alone else f" ({kernel.core.value})"),
        *(f"{_param_text(each)} {each.name}" for each in kernel.tensors),
        *(f"p{index} {each.dtype} {each.name}" for index, each in enumerate(kernel.scalars)),
        *(
            f"v{index} {kernel.params[each.param].name}: extents {list(each.dims)}, "
            f"strides {list(each.strides)}, offset {each.offset}, {each.bits} bits"
            for index, each in enumerate(kernel.views)
        ),
    ]
    return "".join(f"; {' '.join(line.split())}\n" for line in heading)


def _program_text(kernel: Kernel) -> str:
    comments = [_comment(kernel, index) for index in range(len(kernel.program))]
    return format_program(kernel.program, comments)


def _param_text(param: Param) -> str:
    layout = "" if param.layout is Layout.ND else f" {param.layout.value}"
    return f"{param.direction.value} {param.dtype} {list(param.shape)}{layout}"


def _comment(kernel: Kernel, index: int) -> str:
    span, note = kernel.span(index), kernel.note(index)
    return " ".join(filter(None, (str(index), str(span) if span.is_known else None, note)))
