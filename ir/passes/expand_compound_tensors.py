"""ExpandCompoundTensors: a tensor of a compound dtype becomes the tensors of its planes.

Parameters, local names, what loops and branches carry, and arguments of calls are replaced one for two,
and a matmul of two such tensors becomes `tensor.matmul_mx`. What a caller gives stays one block-scaled
array under the parameter's name: an attribute of the function says which parameters are its planes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from ..binding import source_name
from ..core import (
    AssignStmt,
    ForStmt,
    Function,
    IfStmt,
    ParamDirection,
    Program,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ..dtypes import Index
from ..dtypes.boxes import GROUP
from ..errors import IRTypeError, IRValueError
from ..expr import (
    Call,
    Expr,
    FloorDiv,
    GlobalVar,
    IterArg,
    MakeTuple,
    Submit,
    Var,
    frozen_mapping,
    index,
    replace,
)
from ..mx_binding import CompoundParam, axis_of_scales, compound_params_attr
from ..mx_uses import MATMULS, SLICE, CompoundUses, compound_faults, is_compound
from ..ops import create_op_call, deduce_type
from ..ops.cube_formats import OPERAND_SETS
from ..properties import IRProperty
from ..types import TensorType, constant_dim
from ..verification.walk import all_calls, all_vars
from ..visitor import IRMutator
from .base import Pass
from .compound_planes import INTERPRETS, planes_of
from .normalize_stmt_structure import NormalizeStmtStructure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..dtypes import BlockScaledDType, DType
    from .compound_planes import Planes

CallT = TypeVar("CallT", Call, Submit)

#: What a matmul of compound tensors is on their planes.
_ON_PLANES = {
    "tensor.matmul": "tensor.matmul_mx",
    "tensor.matmul_acc": "tensor.matmul_mx_acc",
}
assert _ON_PLANES.keys() == MATMULS.keys()
_SUFFIX = re.compile(r"__(ssa|iter|idx|rv|phi)_v\d+$")


@dataclass(frozen=True)
class ExpandCompoundTensors(Pass):
    """Replace every tensor of a compound dtype by its planes."""

    name = "ExpandCompoundTensors"
    required = frozenset(
        {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.NoNestedCalls}
    )

    def transform(self, program: Program) -> Program:
        """Expand the tensors of all functions at once, since a use decides the grouped axis.

        Raises:
            IRValueError: For a tensor that is used on both sides of matmuls, written, or returned, and
                for scales that do not fill their boxes.
            IRTypeError: For a dtype, or a pair of dtypes, that the machine does not multiply.
        """
        functions = list(program.functions.values())
        if not any(is_compound(var.type) for f in functions for var in _all_vars(f)):
            return program
        for function in functions:
            for fault in compound_faults(function, program):
                raise IRValueError(fault.message, fault.span, hint=fault.hint, note=fault.note)
            for call in all_calls(function):
                if call.op.name in (*MATMULS, SLICE):
                    deduce_type(cast("Call", call))  # raw IR may hold anything
        uses = CompoundUses(program)
        expanded = [_Expander(function, program, uses).run() for function in functions]
        return Program(expanded, program.name, program.span)


def _all_vars(function: Function) -> list[Var]:
    return [*function.params, *all_vars(function)]


class _Expander(IRMutator):
    def __init__(self, function: Function, program: Program, uses: CompoundUses) -> None:
        super().__init__()
        self._function = function
        self._program = program
        self._uses = uses
        self._planes: dict[Var, tuple[Var, ...]] = {}
        self._yields: list[list[int]] = []
        self._taken = {source_name(var) for var in _all_vars(function)}

    def run(self) -> Function:
        """Return the function with planes; the same object when it has no compound tensor."""
        function = self._function
        if not any(is_compound(var.type) for var in _all_vars(function)):
            return function
        params: list[Var] = []
        directions: list[ParamDirection] = []
        notes: dict[str, CompoundParam] = {}
        for param, direction in zip(function.params, function.param_directions, strict=True):
            planes = self._planes_of(param)
            params += planes
            directions += [direction] * len(planes)
            if is_compound(param.type):
                scale = planes[1].name_hint if len(planes) > 1 else None
                dtype = cast("TensorType", param.type).dtype
                notes[param.name_hint] = CompoundParam(param.name_hint, scale, dtype)
        done = replace(
            function,
            params=tuple(params),
            param_directions=tuple(directions),
            body=self.visit_stmt(function.body),
            attrs=frozen_mapping({**function.attrs, **compound_params_attr(notes)}),
        )
        return NormalizeStmtStructure().transform_function(done)

    # ------------------------------------------------------------------- variables

    def _planes_of(self, var: Var) -> tuple[Var, ...]:
        """Return the variables that stand for `var`: itself, or its planes."""
        if not is_compound(var.type):
            return (cast("Var", self.visit(var)),)
        if var not in self._planes:
            self._planes[var] = self._made(var, self._types(var))
        return self._planes[var]

    def _types(self, var: Var) -> Planes:
        assert isinstance(var.type, TensorType), var.type
        uses = self._uses.uses(var)
        what = f"{source_name(var)!r} of {self._function.name!r}"
        return planes_of(what, var.type, uses[0].side if uses else None, var.span)

    def _made(self, var: Var, types: Planes) -> tuple[Var, ...]:
        inits = self._values(var.init_value) if isinstance(var, IterArg) else ()
        first = {"init_value": inits[0]} if inits else {}
        elements = replace(var, type=types.elements, **first)
        if types.scales is None:
            return (elements,)
        name = self._free(_scale_name(var.name_hint))
        if inits:
            return elements, IterArg(name, types.scales, inits[-1], var.span)
        return elements, Var(name, types.scales, var.span)

    def _free(self, name: str) -> str:
        free, count = name, 1
        while free in self._taken:
            free, count = f"{name}_{count}", count + 1
        self._taken.add(free)
        return free

    def _values(self, value: Expr, count: int | None = None) -> tuple[Expr, ...]:
        """Return what stands for a value: itself, or the first `count` of its planes."""
        if isinstance(value, Var) and is_compound(value.type):
            return self._planes_of(value)[:count]
        if isinstance(value, Call) and value.op.name == SLICE and is_compound(value.type):
            return self._windows(value)[:count]
        return (self.visit_expr(value),)

    def _windows(self, op: Call) -> tuple[Expr, ...]:
        """Return a window of each plane: that of the scales counts blocks along the grouped axis."""
        tensor, shape, offset = op.args
        planes = self._values(tensor)
        shape, offset = self.visit_expr(shape), self.visit_expr(offset)
        made = create_op_call(SLICE, [planes[0], shape, offset], {}, op.span)
        if len(planes) < 2:
            return (made,)
        assert isinstance(planes[1].type, TensorType), planes[1]
        axis = axis_of_scales(planes[1].type.layout)
        args = [planes[1], _in_groups(shape, axis), _in_groups(offset, axis)]
        return made, create_op_call("tensor.slice_scales", args, {}, op.span)

    def visit_var(self, op: Var) -> Var:
        return self._planes_of(op)[0] if is_compound(op.type) else super().visit_var(op)

    def visit_iter_arg(self, op: IterArg) -> Var:
        return self._planes_of(op)[0] if is_compound(op.type) else super().visit_iter_arg(op)

    # ------------------------------------------------------------------- statements

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        if not is_compound(op.var.type):
            return self.visit_children(op)
        targets = self._planes_of(op.var)
        values = self._values(op.value, len(targets))
        pairs = zip(targets, values, strict=True)
        return SeqStmts(tuple(AssignStmt(var, value, op.span) for var, value in pairs), op.span)

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        return self._carrying(op, op.iter_args)

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        return self._carrying(op, op.iter_args)

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        return self._carrying(op, op.return_vars)

    def _carrying(self, op: ForStmt | WhileStmt | IfStmt, carried: Sequence[Var]) -> Stmt:
        """Rewrite a statement that hands on values; its bodies yield as many as it takes."""
        self._yields.append([len(self._planes_of(var)) for var in carried])
        changes: dict[str, object] = {}
        for name in op.children:
            old = getattr(op, name)
            if name in ("iter_args", "return_vars"):
                new = tuple(plane for var in old for plane in self._planes_of(var))
                if not _same(new, old):
                    changes[name] = new
            elif old is not None and (new := self.visit(old)) is not old:
                changes[name] = new
        self._yields.pop()
        return replace(op, **changes) if changes else op

    def visit_yield_stmt(self, op: YieldStmt) -> Stmt:
        pairs = zip(op.value, self._yields[-1], strict=True)
        values = tuple(plane for value, count in pairs for plane in self._values(value, count))
        return op if _same(values, op.value) else replace(op, value=values)

    # ------------------------------------------------------------------- calls

    def visit_call(self, op: Call) -> Expr:
        if isinstance(op.op, GlobalVar):
            return self._handing_on(op)
        first = MATMULS.get(op.op.name)
        if first is None or not all(is_compound(arg.type) for arg in op.args[first:]):
            return self.visit_children(op)
        _check_pair(op, first)
        args = [plane for arg in op.args for plane in self._values(arg)]
        made = create_op_call(_ON_PLANES[op.op.name], args, {}, op.span)
        return replace(made, attrs=op.attrs)

    def visit_submit(self, op: Submit) -> Submit:
        return self._handing_on(op)

    def _handing_on(self, op: CallT) -> CallT:
        callee = self._program.get_function(op.op.name)
        params = () if callee is None else callee.params
        args: list[Expr] = []
        for position, arg in enumerate(op.args):
            param = params[position] if position < len(params) else None
            used = param is not None and bool(self._uses.uses(param))
            args += self._values(arg, None if used else 1)
        done = self.visit_children(op)
        return done if _same(args, done.args) else replace(done, args=tuple(args))


def _same(new: Sequence[object], old: Sequence[object]) -> bool:
    return len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))


def _in_groups(dims: Expr, axis: int) -> MakeTuple:
    """Return extents or offsets of elements as those of their scales."""
    assert isinstance(dims, MakeTuple), dims
    parts = list(dims.elements)
    along = parts[axis]
    known = constant_dim(along)
    parts[axis] = (
        index(known // GROUP, along.span)
        if known is not None
        else FloorDiv(along, index(GROUP), Index, along.span)
    )
    return MakeTuple(tuple(parts), dims.span)


def _scale_name(name: str) -> str:
    """Return the name of the scales of a tensor, before the suffix of an SSA version."""
    suffix = _SUFFIX.search(name)
    base = name[: suffix.start()] if suffix else name
    return f"{base}_scale{suffix.group() if suffix else ''}"


def _check_pair(op: Call, first: int) -> None:
    names: list[str] = []
    elements: list[DType] = []
    for arg in op.args[first:]:
        assert isinstance(arg.type, TensorType), arg.type
        names.append(arg.type.dtype.name)
        elements.append(cast("BlockScaledDType", arg.type.dtype).element)
    if not any(all(e in legal for e in elements) for legal in OPERAND_SETS):
        message = (
            "A matmul must have two operands of MXFP8, or two of MXFP4, to be compiled, not "
            f"{' and '.join(names)}"
        )
        raise IRTypeError(message, op.span, hint=INTERPRETS)
