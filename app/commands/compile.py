"""`scalebox compile`: a kernel to an executable, and the view of its passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...codegen.lower import lower
from ...ir.errors import InputError, UserError
from .pass_view import PassOptions, PassView

if TYPE_CHECKING:
    from pathlib import Path

    from ...codegen.executable import Executable
    from ...ir.target import Target
    from ..kernel_file import KernelFile


@dataclass(frozen=True)
class Compiled:
    """What a command has to tell.

    Attributes:
        text: For people.
        values: For programs.
    """

    text: str
    values: dict[str, Any] = field(default_factory=dict[str, Any])

    def as_json(self) -> dict[str, Any]:
        """Return the answer as plain values."""
        return {"ok": True, **self.values}


def compile_kernel(
    kernel: KernelFile, target: Target, output: Path | None, options: PassOptions
) -> Compiled:
    """Compile a kernel file, and write the executable if `output` says where to.

    Args:
        kernel: What is compiled.
        target: For which machine.
        output: The executable's file; None only looks at the passes.
        options: What to show of them.

    Raises:
        InputError: For a place that an executable must not take, or an unknown pass.
        UserError: As `lower` raises it; what was to be shown of the passes before is printed first.
    """
    _check_output(kernel, output)
    view = PassView(options)
    try:
        if view.last is not None:
            view.run(kernel.program, target)
            return Compiled(view.show(), view.as_json())
        executable = lower(kernel.program, target, instruments=view.instruments).executable
    except UserError:
        print(view.show(), end="")
        raise
    text, values = view.show(), view.as_json()
    if output is None:
        return Compiled(text, values)
    executable.save(output)
    sizes = {
        each.name: sum(len(part.program) for part in each.programs) for each in executable.kernels
    }
    values |= {"executable": str(output), "instructions": sizes}
    return Compiled(text + _summary(output, executable, sizes), values)


def _check_output(kernel: KernelFile, output: Path | None) -> None:
    if output is not None and output.suffix == ".py":
        message = f"An executable must not take the place of a kernel file (.py), as {str(output)!r} would"
        raise InputError(message, hint=f"for example -o {kernel.path.stem}.sbx")


def _summary(output: Path, executable: Executable, sizes: dict[str, int]) -> str:
    listed = ", ".join(f"{name} ({count} instructions)" for name, count in sizes.items())
    return f"{output}: {executable.name} for {executable.machine}: {listed}\n"
