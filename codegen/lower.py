"""From a program to an executable: passes, selection, flags, emission."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..ir.binding import SCRATCH_OUTPUTS
from ..ir.core import Function, FunctionType, Program
from ..ir.errors import IRValueError
from ..ir.mx_binding import compound_params_of
from ..ir.node_check import check_nodes
from ..ir.passes import PassContext, default_pipeline
from ..ir.passes.block_mx_scale_tensor_views import BlockMxScaleTensorViews
from ..ir.passes.block_nz_tensor_views import BlockNzTensorViews
from ..ir.passes.convert_tensor_to_tile_ops import ConvertTensorToTileOps
from ..ir.passes.memory_reuse import MemoryReuse
from ..ir.passes.mx_offset_requirements import offset_requirements
from ..ir.passes.nz_offset_requirements import nz_offset_requirements
from ..ir.passes.offset_requirements import joined
from ..ir.passes.outline_scopes import OutlineScopes
from ..ir.tensor_roots import returned_params
from .compilable import check_dims, check_returns, check_strides
from .cores import cores_of
from .emit.program import emit
from .executable import Executable
from .host.bindings import Callee, params_of
from .host.orchestrate import host_program, outputs_of
from .host.program import Allocate, Compound, HostProgram, Require, Statement
from .isa.vocabulary import CoreKind
from .kernel import Kernel
from .pairs import split
from .scalars.exprs import Binary, BinaryOp, Const, Variable
from .schedule import schedule
from .select.body import select
from .select.tile_names import buffers_of
from .sync.insert import synchronise
from .tile_records import TileRecords

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.passes.base import Instrument
    from ..ir.passes.offset_requirements import Requirement
    from ..ir.target import Target
    from .select.tile_names import Buffers
    from .tree import Block

_KERNELS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)
_CONTROL = (FunctionType.Orchestration, FunctionType.Spmd)


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
    check_nodes(program)
    check_dims(program)
    check_returns(program)
    check_strides(program)
    needs: dict[str, tuple[Requirement, ...]] = {}
    buffers: dict[str, Buffers] = {}
    final = logical = program
    with PassContext(list(instruments), target):
        for each in default_pipeline(allow_mx_store=allow_mx_store):
            before = final
            final = each(before)
            match each:
                case OutlineScopes():
                    _refuse_other_functions(final)
                case ConvertTensorToTileOps():
                    logical = final  # all parameters are there, and none is cut into boxes yet
                case BlockNzTensorViews():
                    needs = nz_offset_requirements(before)
                case BlockMxScaleTensorViews():
                    needs = joined(needs, offset_requirements(before))
                case MemoryReuse():
                    buffers = buffers_of(before)
                case _:
                    continue
    default = _default_entry(program, final)
    return Lowered(final, _executable(logical, final, target, needs, buffers, default))


def _refuse_other_functions(program: Program) -> None:
    for function in program.functions.values():
        if function.func_type not in (*_KERNELS, *_CONTROL):
            message = (
                f"The function {function.name!r} must be InCore or Orchestration to be compiled, "
                f"not {function.func_type.name}"
            )
            hint = (
                "write @pl.function(type=pl.FunctionType.InCore) for a kernel, "
                "pl.FunctionType.Orchestration for what calls kernels"
            )
            raise IRValueError(message, function.span, hint=hint)


def _executable(
    source: Program,
    final: Program,
    target: Target,
    needs: dict[str, tuple[Requirement, ...]],
    buffers: dict[str, Buffers],
    default: str,
) -> Executable:
    kernels: list[Kernel] = []
    callees: dict[str, Callee] = {}
    entries: list[HostProgram] = []
    for name, function in final.functions.items():
        if function.func_type in _KERNELS:
            callee = Callee(len(kernels), function, returned_params(function))
            kernel = _kernel(source.functions[name], function, buffers.get(function.name, ()))
            kernels.append(kernel)
            callees[function.name] = callee
            entries.append(_kernel_entry(callee, kernel, needs.get(function.name, ())))
    control = {f.name: f for f in final.functions.values() if f.func_type in _CONTROL}
    for name, function in final.functions.items():
        if function.name in control:
            params = params_of(source.functions[name])
            entry = host_program(function, params, callees, control)
            checks = _checks(function.name, needs.get(function.name, ()))
            body = (*checks, *entry.body)
            entries.append(replace(entry, body=body, compounds=_compounds(function)))
    if not entries:
        message = f"The program {source.name!r} must have at least one function to be compiled"
        raise IRValueError(message, source.span)
    return Executable(
        source.name or "program",
        target.name,
        target.digest,
        tuple(kernels),
        tuple(entries),
        default,
    )


def _default_entry(program: Program, final: Program) -> str:
    """Return the only Orchestration function, as written or as made of it, else the only function."""
    for each in (program, final):
        functions = each.functions.values()
        found = [f.name for f in functions if f.func_type is FunctionType.Orchestration]
        if found:
            return found[0] if len(found) == 1 else ""
    whole = [f for f in program.functions.values() if f.func_type is not FunctionType.Inline]
    names = [function.name for function in whole]
    return names[0] if len(names) == 1 else ""


def _kernel(source: Function, function: Function, buffers: Buffers) -> Kernel:
    selection = select(function, buffers)
    cores = cores_of(function, selection.block)
    block = synchronise(schedule(selection.block))
    params = params_of(source)
    scalars = [
        var for var, param in zip(function.params, params, strict=True) if not param.is_tensor
    ]

    def program(core: CoreKind, part: Block, mate: Kernel | None = None) -> Kernel:
        instructions, tags = emit(part, scalars)
        return Kernel.assemble(
            function.name,
            params=params,
            views=selection.views,
            program=instructions,
            spans=[tag.span for tag in tags],
            notes={index: tag.note for index, tag in enumerate(tags) if tag.note},
            core=core,
            mate=mate,
            tiles=TileRecords.of([tag.tiles for tag in tags]),
        )

    if len(cores) == 1:
        return program(cores[0], block)
    cube, vector = split(block)
    return program(CoreKind.AIC, cube, program(CoreKind.AIV, vector))


def _kernel_entry(callee: Callee, kernel: Kernel, needs: Sequence[Requirement]) -> HostProgram:
    """Return the entry that runs a kernel alone, its scalars held to what its callers promise."""
    scratch = callee.function.attrs.get(SCRATCH_OUTPUTS, ())
    written = [
        param.name
        for param in kernel.tensors
        if param.direction.writes and param.name not in scratch
    ]
    returned = [kernel.params[n].name for n in callee.returned if n is not None]
    outputs = outputs_of(written, [(name, name) for name in returned if name not in written])
    plain = HostProgram.of_kernel(callee.index, kernel, outputs=outputs)
    made = tuple(
        Allocate(param.name, param.dtype, param.bits, param.shape, param.layout)
        for param in kernel.params
        if param.name in scratch
    )
    given = tuple(param for param in plain.params if param.name not in scratch)
    body = (*made, *_checks(kernel.name, needs), *plain.body)
    return HostProgram(plain.name, given, body, outputs, _compounds(callee.function))


def _checks(name: str, needs: Sequence[Requirement]) -> tuple[Statement, ...]:
    """Return what holds the scalars of an entry to what is proved from the calls in the program."""
    checks: list[Statement] = []
    for need in needs:
        value = Variable(need.param)
        promise = f"The scalar {need.param!r} of {name!r} must be"
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
    return tuple(checks)


def _compounds(function: Function) -> tuple[Compound, ...]:
    """Return which parameters of a function are planes of one block-scaled array."""
    return tuple(
        Compound(param.name, param.scale or "", param.dtype.name)
        for param in compound_params_of(function).values()
    )
