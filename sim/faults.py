"""Fault records as sentences: the instruction, its source line, what it reached for, the limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..codegen.isa.asm import format_instruction
from ..codegen.isa.vocabulary import Space
from ..ir.errors import SimulationFault
from .faultcodes import FaultCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..codegen.executable import Kernel
    from ..codegen.isa.vocabulary import ClusterCore

_WHAT_AXES = {
    Space.L0A: ("row", "k"),
    Space.L0B: ("column", "k"),
    Space.SCALE_A: ("row", "group"),
    Space.SCALE_B: ("column", "group"),
    Space.L0C: ("row", "column"),
    Space.BIAS: ("row", "column"),
    Space.FIXP: ("row", "column"),
    Space.UB: ("row", "column"),
}
_UNWRITTEN_HINT = "what pl.create_tensor makes holds nothing until it is written; scalebox.interpret takes zeros there"
_TAIL_HINT = (
    "give the last, shorter window of a tensor a branch of its own, whose load has constant offsets and "
    "a narrower valid_shape; a store writes what is valid of its tile"
)


def describe(kernel: Kernel, index: int) -> str:
    """Return an instruction for a message: its index, text and source line."""
    span = kernel.span(index)
    where = f" [{span}]" if span.is_known else ""
    return f"instruction {index} ({text_of(kernel, index)}){where}"


def text_of(kernel: Kernel, index: int) -> str:
    """Return an instruction as assembler text."""
    return " ".join(format_instruction(kernel.program[index]).split())


def fault_of(
    kernel: Kernel,
    index: int,
    fault: Sequence[int],
    registers: Sequence[int],
    *,
    core: ClusterCore | None = None,
) -> SimulationFault:
    """Return the fault that an instruction of `kernel` raised.

    Args:
        kernel: The kernel that ran.
        index: The instruction.
        fault: The record, as `faultcodes` describes.
        registers: Values of its register operands.
        core: Where it ran, if the kernel runs on several cores.
    """
    instruction = kernel.program[index]
    name = f"Instruction {index} ({instruction.mnemonic})"
    where = "" if core is None else f" on {core.name}"
    note = f"in kernel {kernel.name!r}{where}: {text_of(kernel, index)}"
    if instruction.row.has("view"):
        note += f"; its registers hold {' and '.join(str(value) for value in registers)}"
    hint = None
    match FaultCode(fault[0]):
        case FaultCode.LOCAL_RANGE:
            _, space, address, size, limit = fault[:5]
            message = (
                f"{name} must stay inside the {limit} bytes of {Space(space).name}, "
                f"not reach {size} bytes from byte {address} on."
            )
        case FaultCode.VIEW_RANGE:
            message = f"{name} must stay inside its view of {_window(kernel, index, fault)}."
            hint = _TAIL_HINT if fault[2] >= 0 else None
        case FaultCode.SUBBYTE:
            _, row, start, count = fault[:4]
            message = (
                f"{name} must read whole bytes in every row of its 4-bit window, not {count} "
                f"elements from element {start} on in row {row}."
            )
            hint = "an even first column, an even number of columns, rows an even distance apart"
        case FaultCode.UNWRITTEN:
            _, space, address, row, column = fault[:5]
            first, second = _WHAT_AXES[Space(space)]
            message = (
                f"{name} must use only what was written, not byte {address} of "
                f"{Space(space).name} ({first} {row}, {second} {column}), which never was."
            )
            hint = _UNWRITTEN_HINT
        case FaultCode.DIVISION:
            message = f"{name} must have a divisor other than zero, not 0."
        case FaultCode.NO_RESULT if instruction.mnemonic == "v_cast":
            message = f"{name} must be given numbers only, not a NaN, which its type does not have."
        case FaultCode.NO_RESULT:
            message = f"{name} must have divisors other than zero, not a 0 among them."
        case FaultCode.BUDGET:
            message = (
                f"Kernel {kernel.name!r} must end within {fault[2]} instructions, not still be at "
                f"instruction {index} ({instruction.mnemonic})."
            )
            hint = "a loop whose condition never turns false, or a larger max_instructions"
        case FaultCode.NONE:
            message = "a fault record without a fault"
            raise AssertionError(message)
    return SimulationFault(message, kernel.span(index), hint=hint, note=note)


def padding_warning(kernel: Kernel, index: int, fault: Sequence[int]) -> SimulationFault:
    """Return the warning that a mad has a number other than zero beyond its valid K."""
    _, space, address, row, k = fault[:5]
    axis, _ = _WHAT_AXES[Space(space)]
    message = (
        f"Instruction {index} (mad_mx) should have zeros from its valid K on up to a multiple of "
        f"64, not a number at byte {address} of {Space(space).name} ({axis} {row}, k {k}): a "
        "device would multiply it."
    )
    note = f"in kernel {kernel.name!r}: {text_of(kernel, index)}"
    return SimulationFault(message, kernel.span(index), note=note)


def _window(kernel: Kernel, index: int, fault: Sequence[int]) -> str:
    _, axis, first, extent, dimension = fault[:5]
    view = kernel.views[kernel.program[index]["view"]]
    param = kernel.params[view.param]
    shape = " x ".join(str(extent) for extent in view.dims)
    last = first + extent - 1
    used = f"index {first}" if extent == 1 else f"indices {first} to {last}"
    return f"{param.name!r} ({shape}), not use {used} of axis {axis}, which has {dimension}"
