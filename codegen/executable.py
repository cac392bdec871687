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
from . import container
from .host import Buffer, HostProgram, Output
from .host_check import check_host
from .isa.asm import format_program
from .isa.encoding import decode_program
from .isa.vocabulary import CoreKind
from .kernel import Direction, Kernel, Layout, Param, ParamKind, View
from .records import JsonReader, to_json
from .tasks import Task, TaskGraph, expand

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import numpy.typing as npt

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
_CORE_SINCE = 1
"""The minor version from which on a kernel tells its kind of core."""


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
        words = [kernel.words.astype("<u8").tobytes() for kernel in self.kernels]
        return container.pack(to_json(header, _Header), b"".join(words))

    @classmethod
    def from_bytes(cls, data: bytes) -> Executable:
        """Return the executable that `data` holds.

        Raises:
            ExecutableError: If the bytes are no executable, damaged, or inconsistent.
        """
        content = container.unpack(data)
        if content.minor < _CORE_SINCE:
            _say_core(content.header)
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
class _KernelHeader:
    """A kernel as the header holds it: its words stand in the payload."""

    name: str
    params: tuple[Param, ...]
    views: tuple[View, ...]
    instructions: int
    span_table: tuple[Span, ...]
    span_indices: tuple[int, ...]
    notes: tuple[tuple[int, str], ...]
    core: CoreKind

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
        )

    def kernel(self, words: npt.NDArray[np.uint64]) -> Kernel:
        try:
            program = tuple(decode_program(words))
        except ExecutableError as error:
            message = f"Kernel {self.name!r} must hold legal instructions. {error.message}"
            raise ExecutableError(message) from error
        return Kernel(
            self.name,
            self.params,
            self.views,
            program,
            self.span_table,
            self.span_indices,
            self.notes,
            self.core,
        )


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
        counts = [kernel.instructions for kernel in self.kernels]
        if min(counts, default=0) < 0 or sum(counts) * _WORD_BYTES != len(payload):
            message = (
                f"An executable's kernels must have {len(payload) / _WORD_BYTES:g} instructions "
                f"together, as the payload has, not {counts}."
            )
            raise ExecutableError(message)
        words = np.frombuffer(payload, dtype="<u8").astype(np.uint64).reshape(-1, 2)
        pieces = np.split(words, np.cumsum(counts)[:-1]) if counts else []
        kernels = tuple(
            header.kernel(piece) for header, piece in zip(self.kernels, pieces, strict=True)
        )
        return Executable(
            self.name,
            self.machine,
            self.machine_digest,
            kernels,
            self.entries,
            self.default_entry,
        )


def _say_core(header: object) -> None:
    """Write into a header from before kernels told their kind of core that they are for the cube's."""
    if not isinstance(header, dict):
        return
    kernels = cast("dict[str, object]", header).get("kernels")
    if not isinstance(kernels, list):
        return
    for kernel in cast("list[object]", kernels):
        if isinstance(kernel, dict):
            cast("dict[str, object]", kernel).setdefault("core", CoreKind.AIC.value)


def _kernel_text(kernel: Kernel) -> str:
    heading = [
        f"kernel {kernel.name}"
        + ("" if kernel.core is CoreKind.AIC else f" ({kernel.core.value})"),
        *(f"{_param_text(each)} {each.name}" for each in kernel.tensors),
        *(f"p{index} {each.dtype} {each.name}" for index, each in enumerate(kernel.scalars)),
        *(
            f"v{index} {kernel.params[each.param].name}: extents {list(each.dims)}, "
            f"strides {list(each.strides)}, offset {each.offset}, {each.bits} bits"
            for index, each in enumerate(kernel.views)
        ),
    ]
    lines = [f"; {' '.join(line.split())}\n" for line in heading]
    comments = [_comment(kernel, index) for index in range(len(kernel.program))]
    return f"{''.join(lines)}{format_program(kernel.program, comments)}"


def _param_text(param: Param) -> str:
    layout = "" if param.layout is Layout.ND else f" {param.layout.value}"
    return f"{param.direction.value} {param.dtype} {list(param.shape)}{layout}"


def _comment(kernel: Kernel, index: int) -> str:
    span, note = kernel.span(index), kernel.note(index)
    return " ".join(filter(None, (str(index), str(span) if span.is_known else None, note)))
