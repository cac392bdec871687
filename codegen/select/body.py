"""Instruction selection: a kernel after all passes becomes a tree of machine code.

Statements are walked here, ops are selected by the rules in :mod:`.select_rules`. Tiles are where
their memory references say; tensors become views; scalars stay expressions until emission.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ...ir.binding import source_name
from ...ir.core import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    Function,
    IfStmt,
    ReturnStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from ...ir.errors import IRValueError
from ...ir.expr import Call, ConstInt, Expr, Op, ScalarType, Var
from ...ir.ranges import Ranges
from ...ir.types import TensorType, TileType
from ..tree import Block, Branch, Let, Loop, While
from .operands import Operands
from .padding import scaled_buffers
from .places import place_of
from .rules import select_call
from .tile_names import TileNames
from .vector.scratch import wanted

if TYPE_CHECKING:
    from ...ir.errors import Span
    from ..tensors import View
    from ..tree import Carried
    from .tile_names import Buffers

ONE_TENSOR = "write into one tensor on all of these ways, by pl.store or pl.assemble"
"""What to do where a name stands for several tensors."""


@dataclass
class Selection:
    """What selection makes of a kernel: its tree of instructions and the views they use."""

    block: Block
    views: tuple[View, ...]


def select(function: Function, buffers: Buffers = ()) -> Selection:
    """Return the instructions of an InCore function after all passes.

    Args:
        function: The function.
        buffers: The buffers that its tiles had of their own before they shared places.

    Raises:
        IRValueError: For a construct that no core has an instruction for.
        IRTypeError: For a tile or tensor that no instruction takes.
    """
    selector = _Selector(function, TileNames(function, buffers))
    block = selector.body(function.body)
    return Selection(block, tuple(selector.operands.views))


class _Selector:
    def __init__(self, function: Function, tiles: TileNames) -> None:
        self.tiles = tiles
        self.operands = Operands(
            ranges=Ranges(function.body),
            scaled=scaled_buffers(function.body),
            wanted=wanted(function.body),
        )
        for number, param in enumerate(function.params):
            if isinstance(param.type, TensorType):
                self.operands.tensors[param] = number
        self._find_binds(function.body)

    def _find_binds(self, body: Stmt | None) -> None:
        for stmt in flatten_to_stmts(body):
            match stmt:
                case AssignStmt(value=Call(op=Op(name="tile.tget_scale_addr")) as bind):
                    scale, data = cast("tuple[Var, Var]", bind.args)
                    self.operands.data_of[scale] = data
                case ForStmt() | WhileStmt():
                    self._find_binds(stmt.body)
                case IfStmt():
                    self._find_binds(stmt.then_body)
                    self._find_binds(stmt.else_body)
                case _:
                    continue

    def body(self, body: Stmt | None) -> Block:
        """Return the tree of a body."""
        block = Block()
        for stmt in flatten_to_stmts(body):
            match stmt:
                case AssignStmt():
                    self._assign(stmt, block)
                case EvalStmt(expr=Call() as call):
                    self._call(None, call, block)
                case ForStmt():
                    self._for(stmt, block)
                case WhileStmt():
                    inner, scalars = self._carrying(stmt)
                    block.items.append(While(stmt.condition, inner, stmt.span, scalars))
                case IfStmt():
                    self._if(stmt, block)
                case YieldStmt() | ReturnStmt():
                    continue
                case _:
                    kind = type(stmt).__name__.removesuffix("Stmt").lower()
                    message = (
                        "A kernel that is compiled must be made of assignments, loops and "
                        f"branches, not of {kind!r}"
                    )
                    raise IRValueError(message, stmt.span)
        return block

    def _assign(self, stmt: AssignStmt, block: Block) -> None:
        if isinstance(stmt.var.type, ScalarType):
            block.items.append(Let(stmt.var, stmt.value, stmt.span))
        elif isinstance(stmt.value, Call):
            self._call(stmt.var, stmt.value, block)
        else:
            self._same(stmt.var, stmt.value)
            if stmt.value in self.operands.made_by:
                self.operands.made_by[stmt.var] = self.operands.made_by[cast("Var", stmt.value)]

    def _call(self, var: Var | None, call: Call, block: Block) -> None:
        if var is not None:
            self.operands.made_by[var] = call
        steps = select_call(self.operands, var, call)
        self.tiles.name(steps, var, call)
        for step in steps:
            step.note = var.name_hint if var is not None else ""
            block.items.append(step)

    def _for(self, stmt: ForStmt, block: Block) -> None:
        if not isinstance(stmt.step, ConstInt) or stmt.step.value == 0:
            found = "0" if isinstance(stmt.step, ConstInt) else "a variable"
            message = (
                f"The step of a loop that is compiled must be a constant other than 0, not {found}"
            )
            hint = "a while loop may add a variable to a number of its own in each trip"
            raise IRValueError(message, stmt.span, hint=hint)
        body, scalars = self._carrying(stmt)
        block.items.append(
            Loop(stmt.loop_var, stmt.start, stmt.stop, stmt.step.value, body, stmt.span, scalars)
        )

    def _carrying(self, stmt: ForStmt | WhileStmt) -> tuple[Block, Carried]:
        """Return a loop's body, and the scalars among what its trips hand on."""
        for arg in stmt.iter_args:
            self._same(arg, arg.init_value)
        inner = self.body(stmt.body)
        carried = [
            (arg, arg.init_value, value, result)
            for arg, value, result in zip(
                stmt.iter_args, yielded(stmt.body), stmt.return_vars, strict=True
            )
        ]
        for arg, _, value, result in carried:
            self._check_carried(arg, value, stmt.span)
            self._same(result, arg)
        return inner, tuple(c for c in carried if isinstance(c[0].type, ScalarType))

    def _if(self, stmt: IfStmt, block: Block) -> None:
        then_body, else_body = self.body(stmt.then_body), self.body(stmt.else_body)
        results: list[tuple[Var, Expr, Expr]] = []
        if stmt.return_vars:
            values = (yielded(stmt.then_body), yielded(stmt.else_body))
            results = list(zip(stmt.return_vars, *values, strict=True))
        for var, first, second in results:
            self._same(var, first)
            self._check_carried(var, second, stmt.span)
        scalars = tuple(r for r in results if isinstance(r[0].type, ScalarType))
        block.items.append(Branch(stmt.condition, then_body, else_body, stmt.span, scalars))

    def _same(self, var: Var, value: Expr) -> None:
        """Note that `var` is another name of `value`; tiles share a memory reference already."""
        if isinstance(var.type, TensorType):
            self.operands.tensors[var] = self.operands.tensors[cast("Var", value)]

    def _check_carried(self, var: Var, value: Expr, span: Span) -> None:
        if isinstance(var.type, TensorType):
            tensors = self.operands.tensors
            if tensors[var] != tensors[cast("Var", value)]:
                message = f"{source_name(var)!r} must stand for one tensor on every way to it, not for two"
                raise IRValueError(message, span, hint=ONE_TENSOR)
        elif isinstance(var.type, TileType):
            same = place_of(var, span).address == place_of(value, span).address
            assert same, "carried tiles share a buffer"


def yielded(body: Stmt | None) -> tuple[Expr, ...]:
    """Return what a body hands on at its end."""
    last = flatten_to_stmts(body)[-1:]
    return last[0].value if last and isinstance(last[0], YieldStmt) else ()
