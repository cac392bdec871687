"""The disasm command: the instructions of an executable, a bundle or a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.errors import InputError
from ..api import compile as compile_program
from ..kernel_file import (
    KernelFile,
    executable_of_bundle,
    load_executable_or_kernel,
    target_of_kernel,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def disassembly(
    file: Path, params: Mapping[str, str], settings: Mapping[str, str], machine: str | None
) -> str:
    """Return the instructions of an executable, of a bundle's, or of a kernel that is compiled for it.

    Args:
        file: The executable, the bundle that holds it, or the kernel file (.py).
        params: Name to value for the kernel file's `pl.param` calls.
        settings: What is changed of the machine, by field.
        machine: The machine by name or file; None for that of the kernel file.

    Raises:
        UserError: There is no such file, the kernel or a setting is refused, or an executable is
            given a machine: it has been compiled for one.
    """
    loaded = executable_of_bundle(file, params) or load_executable_or_kernel(file, params)
    if isinstance(loaded, KernelFile):
        target = target_of_kernel(loaded, machine, settings)
        return compile_program(loaded.program, machine=target).disassemble()
    if machine is not None or settings:
        message = (
            f"--machine and --set must go with a kernel file; {str(file)!r} is compiled already"
        )
        raise InputError(message)
    return loaded.disassemble()
