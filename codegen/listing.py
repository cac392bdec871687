"""Kernels as assembler text, with their parameters, views and source lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .isa.asm import format_program
from .isa.vocabulary import CoreKind
from .tensors import Layout

if TYPE_CHECKING:
    from .kernel import Kernel
    from .tensors import Param


def kernel_text(kernel: Kernel) -> str:
    """Return a kernel, and its mate if it has one, as assembler text under a heading of comments."""
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
