"""Whether the scales of a run can be recorded, and who records them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..codegen.isa.vocabulary import ElementType
from ..ir.errors import InputError, MachineError

if TYPE_CHECKING:
    from ..codegen.executable import Executable
    from ..ir.target import Target
    from ..sim.scales.recorder import ScaleRecorder


def recorder_of(executable: Executable, target: Target, *, functional: bool) -> ScaleRecorder:
    """Return what keeps the scales of a run.

    Args:
        executable: What is run.
        target: Where it is run.
        functional: Whether the run computes outputs.

    Raises:
        InputError: If the run has no scales, since it computes cycles only.
        MachineError: If the machine has numbers for which no scale-decode unit is built.
    """
    from ..sim.scales.file import LONGEST_CYCLES
    from ..sim.scales.recorder import ScaleRecorder
    from ..sim.scales.supply import why_no_unit

    if not functional:
        message = (
            "Scales must be recorded in a run that computes outputs, not in one for timing only"
        )
        raise InputError(message)
    bits = {
        ElementType(each["a_type"]).bits
        for kernel in executable.kernels
        for each in kernel.program
        if each.row.has("a_type")
    }
    reasons = [why_no_unit(target, bits=width) for width in sorted(bits)]
    reasons += [
        f"{name} must be at most {LONGEST_CYCLES}, not {getattr(target, name)}"
        for name in ("scale_read_cycles", "mad_head_cycles")
        if getattr(target, name) > LONGEST_CYCLES
    ]
    for reason in filter(None, reasons):
        message = f"For a scale-decode unit that can be built, {reason}"
        raise MachineError(message, note="cycles of such a machine are still counted: scalebox run")
    return ScaleRecorder(target)
