"""ConvertTensorToTileOps: functions of one core work on tiles, and return what they were given.

An op on whole tensors becomes loads, the op on tiles, and stores. A fresh tensor that a function
returned becomes an output parameter of its own, under the name that it was returned under, else
`out`; who calls the function makes the tensor and hands it over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..binding import SCRATCH_OUTPUTS
from ..core import (
    Function,
    FunctionType,
    ParamDirection,
    Program,
    SpmdScopeStmt,
    Stmt,
    flatten_to_stmts,
)
from ..errors import IRValueError
from ..expr import Call, Expr, GlobalVar, Submit, Var, frozen_mapping, replace
from ..ops import create_op_call, deduce_type
from ..properties import IRProperty
from ..types import TensorLayout, TensorType
from ..verification.structure import CORE_TYPES
from ..verification.walk import all_calls, calls, own_exprs, statements
from .base import Pass
from .inserting import InsertingMutator
from .made_tensors import CREATE, LOWERED
from .tensor_ops_to_tiles import flat_row, on_tiles

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

#: Functions that hand their own parameters on to the kernel that they launch.
_WRAPPERS = (FunctionType.Spmd, FunctionType.Group)


@dataclass(frozen=True)
class ConvertTensorToTileOps(Pass):
    """Lower the ops on whole tensors, and give functions and their callers the outputs needed."""

    name = "ConvertTensorToTileOps"
    required = frozenset(
        {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.NoNestedCalls}
    )
    produced = frozenset({IRProperty.IncoreTileOps})

    def transform(self, program: Program) -> Program:
        """Lower every function of one core, then adapt who calls it.

        Raises:
            IRValueError: For such an op in a function that no core runs, and for a result that has
                no place.
        """
        _check_calls(program)
        lowered = {name: _lowered(function) for name, function in program.functions.items()}
        _refuse_shared_scratch(lowered.values())
        grown: dict[str, _Grown] = {}
        for name, function in lowered.items():
            before = len(program.functions[name].params)
            if len(function.params) > before:
                grown[name.name] = _Grown(before, function.params[before:])
        if grown:
            for name, function in lowered.items():
                if function.func_type in _WRAPPERS:
                    lowered[name] = _handing_on(function, grown)
            for name, function in lowered.items():
                if function.func_type not in (*CORE_TYPES, *_WRAPPERS):
                    lowered[name] = _Callers(grown).rewrite(function)
        if all(f is program.functions[name] for name, f in lowered.items()):
            return program
        return Program(lowered.values(), program.name, program.span)


@dataclass(frozen=True)
class _Grown:
    """How many parameters a function had before, and which it has got since."""

    before: int
    params: tuple[Var, ...]


def _check_calls(program: Program) -> None:
    """Refuse a malformed call, which raw IR may hold, and one in a function that no core runs."""
    for function in program.functions.values():
        for call in all_calls(function):
            if not isinstance(call, Call) or call.op.name not in LOWERED:
                continue
            deduce_type(call)
            if function.func_type not in CORE_TYPES:
                message = (
                    f"{call.op.name} must stand in an InCore function to be compiled, but "
                    f"{function.name!r} is of type {function.func_type.name}"
                )
                hint = "move it into a kernel and call that; scalebox.interpret runs it as it is"
                raise IRValueError(message, call.span, hint=hint)


def _lowered(function: Function) -> Function:
    names = {call.op.name for call in all_calls(function)}
    if function.func_type not in CORE_TYPES or not names & {*LOWERED, CREATE}:
        return function
    done, places = on_tiles(function)
    if places.hidden:
        hidden = list(places.hidden)
        done = replace(done, attrs=frozen_mapping({**done.attrs, SCRATCH_OUTPUTS: hidden}))
    return _with_outputs(done, places.params)


def _refuse_shared_scratch(functions: Collection[Function]) -> None:
    """Refuse a grid of a kernel that keeps a tensor of its own in global memory.

    All blocks would be handed the same one.
    """
    hiding = {f.name: f.attrs[SCRATCH_OUTPUTS] for f in functions if SCRATCH_OUTPUTS in f.attrs}
    if not hiding:
        return
    for function in functions:
        for stmt in statements(function.body):
            in_grid = isinstance(stmt, SpmdScopeStmt) or function.func_type is FunctionType.Spmd
            found = calls(own_exprs(stmt.body if isinstance(stmt, SpmdScopeStmt) else stmt))
            for call in found:
                grid = in_grid or (isinstance(call, Submit) and call.core_num is not None)
                if grid and call.op.name in hiding:
                    name = hiding[call.op.name][0].removesuffix("_scratch")
                    message = (
                        f"{call.op.name!r} must not need {name!r} in global memory, where it would "
                        "read it again, to be run as a grid: its blocks would share that tensor"
                    )
                    hint = (
                        "shapes whose last extent is a multiple of 32 stay on the core; or hand each "
                        "block a tensor to write into"
                    )
                    raise IRValueError(message, call.span, hint=hint)


def _with_outputs(function: Function, params: tuple[Var, ...]) -> Function:
    if not params:
        return function
    return replace(
        function,
        params=(*function.params, *params),
        param_directions=(*function.param_directions, *(ParamDirection.Out for _ in params)),
    )


def _handing_on(function: Function, grown: dict[str, _Grown]) -> Function:
    """Return a wrapper with the outputs of the kernel that it launches; note them in `grown`."""
    extra = [
        param
        for call in all_calls(function)
        if isinstance(call.op, GlobalVar)
        if call.op.name in grown
        for param in grown[call.op.name].params
    ]
    if not extra:
        return function
    taken = {param.name_hint for param in function.params}
    own = tuple(
        Var(f"{p.name_hint}_out" if p.name_hint in taken else p.name_hint, p.type, p.span)
        for p in extra
    )
    grown[function.name] = _Grown(len(function.params), own)
    return _with_outputs(_Callers(grown, own).rewrite(function), own)


class _Callers(InsertingMutator):
    """Hands the outputs over that callees have grown.

    Args:
        grown: Callee to its new parameters.
        own: What is handed over, call by call; without it, fresh tensors.
    """

    def __init__(self, grown: Mapping[str, _Grown], own: tuple[Var, ...] | None = None) -> None:
        super().__init__()
        self._grown = grown
        self._own = None if own is None else list(own)

    def visit_call(self, op: Call) -> Call:
        done = self.visit_children(op)
        if not isinstance(op.op, GlobalVar) or op.op.name not in self._grown:
            return done
        return replace(done, args=(*done.args, *self._outputs(op)))

    def visit_submit(self, op: Submit) -> Submit:
        done = self.visit_children(op)
        if op.op.name not in self._grown or len(op.args) < self._grown[op.op.name].before:
            return done  # outputs that a launch leaves out are made by the runtime
        return replace(done, args=(*done.args, *self._outputs(op)))

    def visit_spmd_scope_stmt(self, op: SpmdScopeStmt) -> Stmt:
        # A grid holds one call and nothing else: tensors for it are made before it.
        done = self.visit_children(op)
        if done.body is op.body:
            return done
        *before, last = flatten_to_stmts(done.body)
        for stmt in before:
            self.insert(stmt)
        return replace(done, body=last)

    def _outputs(self, op: Call | Submit) -> list[Expr]:
        params = self._grown[op.op.name].params
        if self._own is not None:
            return [self._own.pop(0) for _ in params]
        return [self._fresh(param, op) for param in params]

    def _fresh(self, param: Var, op: Call | Submit) -> Var:
        type_ = param.type
        assert isinstance(type_, TensorType), type_
        name = f"{param.name_hint}_buffer"
        kwargs = {"dtype": type_.dtype}
        if not type_.layout.is_mx:
            made = create_op_call("tensor.create", [list(type_.shape)], kwargs, op.span)
            return self._assigned(name, made)
        row = create_op_call("tensor.create", [flat_row(type_)], kwargs, op.span)
        flat = self._assigned(f"{name}_row", row)
        layout: TensorLayout = type_.layout
        args = [flat, list(type_.shape)]
        return self._assigned(
            name, create_op_call("tensor.view", args, {"layout": layout}, op.span)
        )

    def _assigned(self, name: str, call: Call) -> Var:
        return self.assign(name, call, call.span)
