"""The result of compilation: a file with a binary per kernel and the host program of each entry.

This file is the face of `codegen` for those who run programs: what they need of the kernels and
of the host program can be imported from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..ir.errors import ExecutableError, InputError, IRValueError
from ..ir.suggest import near
from .file import container
from .file.header import Header, KernelHeader, read_header
from .file.records import to_json
from .host.check import check_host
from .host.program import Buffer, HostProgram, Output
from .host.tasks import Task, TaskGraph, expand
from .kernel import Kernel
from .listing import kernel_text
from .tensors import Direction, Layout, Param, ParamKind, View

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping


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
        return "\n".join(kernel_text(kernel) for kernel in self.kernels)

    def to_bytes(self) -> bytes:
        """Return the file as bytes."""
        header = Header(
            self.name,
            self.machine,
            self.machine_digest,
            tuple(KernelHeader.of(kernel) for kernel in self.kernels),
            self.entries,
            self.default_entry,
        )
        words = [
            program.words.astype("<u8").tobytes()
            for kernel in self.kernels
            for program in kernel.programs
        ]
        return container.pack(to_json(header, Header), b"".join(words))

    @classmethod
    def from_bytes(cls, data: bytes) -> Executable:
        """Return the executable that `data` holds.

        Raises:
            ExecutableError: If the bytes are no executable, damaged, or inconsistent.
        """
        content = container.unpack(data)
        try:
            header = read_header(content)
            return cls(
                header.name,
                header.machine,
                header.machine_digest,
                header.kernels_of(content.payload),
                header.entries,
                header.default_entry,
            )
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
