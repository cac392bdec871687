"""Kernel files and executables, as the command line names them."""

from __future__ import annotations

import sys
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

from ..codegen.executable import Executable
from ..ir.errors import ExecutableError, InputError, ParserError
from ..ir.language.text import KernelFile, load_file
from ..ir.target import load_target, machine_names
from ..traces.bundle import is_bundle, load_bundle
from ..traces.containers import is_container

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from ..ir.target import Target

__all__ = [
    "SETTING_SOURCE",
    "KernelFile",
    "executable_of_bundle",
    "load_executable_or_kernel",
    "load_kernel_file",
    "machine_of_kernel",
    "target_of_kernel",
]

SETTING_SOURCE = "set on the command line"
"""What a machine field says of itself when the command line has changed it."""


def load_kernel_file(path: Path, params: Mapping[str, str] | None = None) -> KernelFile:
    """Read a kernel file as `python` would run it: it may import its neighbours.

    What the file prints goes to standard error, so that the command's own output stays clean.

    Args:
        path: A Python file with one program, or one function, at module level.
        params: Name to value for its `pl.param` calls.

    Raises:
        ParserError: When the file is no Python, does not run, or holds a kernel that the language
            refuses; with its place.
        InputError: When there is no such file, it has no such parameter, or it holds no program or
            several.
    """
    if not path.is_file():
        message = f"A kernel must be a Python file, and there is none at {str(path)!r}"
        raise InputError(message)
    with _beside(path), redirect_stdout(sys.stderr):
        try:
            return load_file(path, params=params)
        except SystemExit as error:
            message = f"{path.name} must run to its end, but it exits with {error.code!r}"
            raise ParserError(message) from error


def load_executable_or_kernel(
    path: Path, params: Mapping[str, str] | None = None
) -> KernelFile | Executable:
    """Read a kernel file, or an executable if the name does not end in `.py`.

    Raises:
        UserError: As :func:`load_kernel_file` and `Executable.load`.
    """
    if path.suffix == ".py":
        return load_kernel_file(path, params)
    if not path.is_file():
        message = f"A kernel or an executable must be a file, and there is none at {str(path)!r}"
        raise InputError(message)
    if params:
        message = f"--param must go with a kernel file, and {str(path)!r} is an executable"
        raise InputError(message)
    return Executable.load(path)


def executable_of_bundle(path: Path, params: Mapping[str, str] | None = None) -> Executable | None:
    """Return the executable inside of a bundle; None where nothing claims to be a bundle.

    Raises:
        UserError: The bundle cannot be read, holds no executable, or one that cannot be read; or
            there are `params`, which a kernel file takes only.
    """
    if not is_bundle(path) and not is_container(path):
        return None
    if params:
        message = f"--param must go with a kernel file, and {str(path)!r} is a bundle"
        raise InputError(message)
    data = load_bundle(path).executable
    if data is None:
        message = f"The bundle {str(path)!r} must hold an executable, and it holds none"
        hint = "a bundle that `scalebox run` leaves holds one; else name a kernel file (.py)"
        raise InputError(message, hint=hint)
    try:
        return Executable.from_bytes(data)
    except ExecutableError as error:
        note = f"the executable is that of the bundle {str(path)!r}"
        raise ExecutableError(error.message, hint=error.hint, note=note) from error


def machine_of_kernel(kernel: KernelFile) -> str:
    """Return what `load_target` takes: the file that `MACHINE` names beside the kernel, or a name."""
    named = kernel.machine
    if named is None or named in machine_names():
        return named or "a5"
    beside = kernel.path.parent / named
    return str(beside) if beside.is_file() or beside.suffix == ".toml" else named


def target_of_kernel(
    kernel: KernelFile, machine: str | None, settings: Mapping[str, str]
) -> Target:
    """Return the machine that a kernel file is compiled for.

    Args:
        kernel: The kernel file.
        machine: The machine by name or file; None for that of the kernel file.
        settings: What is changed of it, by field.

    Raises:
        UserError: There is no such machine, or a field is refused.
    """
    target = load_target(machine_of_kernel(kernel) if machine is None else machine)
    return target.with_settings(settings, source=SETTING_SOURCE)


@contextmanager
def _beside(path: Path) -> Generator[None]:
    """Let imports find what lies in the folder of `path`."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
