"""From a program to an executable: passes, selection, flags, emission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..ir.core import Function, FunctionType, Program
from ..ir.errors import IRValueError
from ..ir.mx_uses import compound_params
from ..ir.ops.rules_matmul import planes_on_tiles
from ..ir.passes import PassContext, default_pipeline
from ..ir.passes.block_mx_scale_tensor_views import BlockMxScaleTensorViews
from ..ir.passes.mx_offset_requirements import offset_requirements
from ..ir.types import TensorType
from .bindings import Callee, params_of, returned_params
from .compilable import check_returns, check_strides
from .emit import emit
from .executable import Executable
from .host import Binary, BinaryOp, Const, HostProgram, Require, Statement, Variable
from .kernel import Kernel
from .orchestrate import host_program, outputs_of
from .schedule import schedule
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
    _refuse_other_functions(program)
    _refuse_compound_dtypes(program)
    check_returns(program)
    check_strides(program)
    needs: dict[str, tuple[Requirement, ...]] = {}
    final = program
    with PassContext(list(instruments), target):
        for each in default_pipeline(allow_mx_store=allow_mx_store):
            before = final
            final = each(before)
            if isinstance(each, BlockMxScaleTensorViews):
                needs = offset_requirements(before)
    return Lowered(final, _executable(program, final, target, needs))


def _refuse_other_functions(program: Program) -> None:
    for function in program.functions.values():
        if function.func_type not in (*_KERNELS, FunctionType.Orchestration):
            message = (
                f"The function {function.name!r} must be InCore or Orchestration to be compiled, "
                f"not {function.func_type.name}"
            )
            hint = (
                "write @pl.function(type=pl.FunctionType.InCore) for a kernel, "
                "pl.FunctionType.Orchestration for what calls kernels"
            )
            raise IRValueError(message, function.span, hint=hint)


def _refuse_compound_dtypes(program: Program) -> None:
    for function in program.functions.values():
        for param in compound_params(function):
            assert isinstance(param.type, TensorType), param
            dtype = param.type.dtype
            message = (
                f"A program must have tensors of simple dtypes to be compiled, but "
                f"{param.name_hint!r} of {function.name!r} is of {dtype.name}"
            )
            planes = planes_on_tiles(dtype)
            hint = "scalebox.interpret runs the program as it stands"
            hint += f"; what is compiled takes {planes}" if planes else ""
            raise IRValueError(message, param.span, hint=hint)


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
            callee = Callee(len(kernels), function, returned_params(function))
            kernel = _kernel(source.functions[name], function)
            kernels.append(kernel)
            callees[function.name] = callee
            entries.append(_kernel_entry(callee, kernel, needs.get(function.name, ())))
    orchestrations: list[str] = []
    for name, function in final.functions.items():
        if function.func_type is FunctionType.Orchestration:
            params = params_of(source.functions[name])
            entries.append(host_program(function, params, callees))
            orchestrations.append(function.name)
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
    block = synchronise(schedule(selection.block))
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


def _kernel_entry(callee: Callee, kernel: Kernel, needs: Sequence[Requirement]) -> HostProgram:
    """Return the entry that runs a kernel alone, its scalars held to what its callers promise."""
    written = [param.name for param in kernel.tensors if param.direction.writes]
    returned = [kernel.params[n].name for n in callee.returned if n is not None]
    outputs = outputs_of(written, [(name, name) for name in returned if name not in written])
    plain = HostProgram.of_kernel(callee.index, kernel, outputs=outputs)
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
