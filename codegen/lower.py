"""From a program to an executable: passes, selection, flags, emission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..ir.core import Function, FunctionType, Program
from ..ir.errors import IRValueError
from ..ir.passes import PassContext, default_pipeline
from ..ir.passes.block_mx_scale_tensor_views import BlockMxScaleTensorViews
from ..ir.passes.mx_offset_requirements import offset_requirements
from .emit import emit
from .executable import Executable
from .host import Binary, BinaryOp, Const, HostProgram, Require, Statement, Variable
from .kernel import Kernel
from .orchestrate import Callee, host_program, params_of, returned_params
from .select import select
from .sync import synchronise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.passes.base import Instrument
    from ..ir.passes.mx_offset_requirements import Requirement
    from ..ir.target import Target

_KERNELS = (FunctionType.InCore, FunctionType.AIC)


@dataclass(frozen=True)
class Lowered:
    """What compilation makes: the program after all passes, and the executable."""

    program: Program
    executable: Executable


def lower(
    program: Program,
    target: Target,
    *,
    allow_mx_store: bool = False,
    instruments: Sequence[Instrument] = (),
) -> Lowered:
    """Compile `program` for `target`.

    Args:
        program: As written.
        target: The machine; the passes read its memory sizes.
        allow_mx_store: Whether scale tiles may be stored into MX tensors.
        instruments: What looks on while the passes run.

    Raises:
        IRValueError: For a program that a pass or the code generator refuses, and others of
            `UserError` as the passes raise them.
    """
    needs: dict[str, tuple[Requirement, ...]] = {}
    final = program
    with PassContext(list(instruments), target):
        for each in default_pipeline(allow_mx_store=allow_mx_store):
            before = final
            final = each(before)
            if isinstance(each, BlockMxScaleTensorViews):
                needs = offset_requirements(before)
    return Lowered(final, _executable(program, final, target, needs))


def _executable(
    source: Program,
    final: Program,
    target: Target,
    needs: dict[str, tuple[Requirement, ...]],
) -> Executable:
    kernels: list[Kernel] = []
    callees: dict[str, Callee] = {}
    entries: list[HostProgram] = []
    for name, function in final.functions.items():
        if function.func_type in _KERNELS:
            index = len(kernels)
            kernels.append(_kernel(source.functions[name], function))
            callees[function.name] = Callee(index, function, returned_params(function))
            entries.append(_kernel_entry(index, kernels[-1], needs.get(function.name, ())))
    orchestrations: list[str] = []
    for name, function in final.functions.items():
        if function.func_type is FunctionType.Orchestration:
            params = params_of(source.functions[name])
            entries.append(host_program(function, params, callees))
            orchestrations.append(function.name)
        elif function.func_type not in _KERNELS:
            message = (
                f"The function {function.name!r} must be InCore or Orchestration to be compiled, not "
                f"{function.func_type.name}"
            )
            raise IRValueError(message, function.span)
    if not entries:
        message = f"The program {source.name!r} must have at least one function to be compiled"
        raise IRValueError(message, source.span)
    names = orchestrations or [entry.name for entry in entries]
    default = names[0] if len(names) == 1 else ""
    return Executable(
        source.name or "program",
        target.name,
        target.digest,
        tuple(kernels),
        tuple(entries),
        default,
    )


def _kernel(source: Function, function: Function) -> Kernel:
    selection = select(function)
    block = synchronise(selection.block)
    params = params_of(source)
    scalars = [
        var for var, param in zip(function.params, params, strict=True) if not param.is_tensor
    ]
    instructions, tags = emit(block, scalars)
    return Kernel.assemble(
        function.name,
        params=params,
        views=selection.views,
        program=instructions,
        spans=[tag.span for tag in tags],
        notes={index: tag.note for index, tag in enumerate(tags) if tag.note},
    )


def _kernel_entry(index: int, kernel: Kernel, needs: Sequence[Requirement]) -> HostProgram:
    """Return the entry that runs a kernel alone, its scalars held to what its callers promise."""
    plain = HostProgram.of_kernel(index, kernel)
    checks: list[Statement] = []
    for need in needs:
        value = Variable(need.param)
        promise = f"The scalar {need.param!r} of {kernel.name!r} must be"
        if need.multiple > 1:
            rest = Binary(BinaryOp.FLOORMOD, value, Const(need.multiple))
            aligned = Binary(BinaryOp.EQ, rest, Const(0))
            message = (
                f"{promise} a multiple of {need.multiple}, as every call in the program has it"
            )
            checks.append(Require(aligned, message))
        if need.non_negative:
            positive = Binary(BinaryOp.GE, value, Const(0))
            message = f"{promise} non-negative, as every call in the program has it"
            checks.append(Require(positive, message))
    return HostProgram(plain.name, plain.params, (*checks, *plain.body), plain.outputs)
