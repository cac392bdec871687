"""What the memory passes share: buffers by name, and when each is in use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from ..core import AssignStmt, ForStmt, IfStmt, Stmt, WhileStmt, flatten_to_stmts
from ..expr import Call, Expr, IterArg, Type, Var, replace
from ..types import MemorySpace, TileType
from ..visitor import IRMutator
from .liveness import used_vars
from .lower_pipeline_loops import STAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core import Function
    from ..errors import Span
    from ..types import MemRef

SCALE_SUFFIX = ".scale"
SCALE_SPACES = (MemorySpace.LeftScale, MemorySpace.RightScale)


def tile_of(value: Var | Expr) -> TileType | None:
    """Return the type of a tile value, or None for any other value."""
    return value.type if isinstance(value.type, TileType) else None


class _Refs(IRMutator):
    def __init__(self, refs: Mapping[Var, MemRef]) -> None:
        super().__init__()
        self._refs = refs

    def _with_ref(self, op: Var, type_: Type) -> Type:
        ref = self._refs.get(op)
        if ref is None or not isinstance(type_, TileType) or type_.memref == ref:
            return type_
        return replace(type_, memref=ref)

    def visit_var(self, op: Var) -> Var:
        if op not in self.variables:
            new = self._with_ref(op, op.type)
            self.variables[op] = op if new is op.type else replace(op, type=new)
        return self.variables[op]

    def visit_iter_arg(self, op: IterArg) -> Var:
        if op not in self.variables:
            init = self.visit_expr(op.init_value)
            new = self._with_ref(op, op.type)
            same = init is op.init_value and new is op.type
            self.variables[op] = op if same else replace(op, init_value=init, type=new)
        return self.variables[op]

    def visit_assign_stmt(self, op: AssignStmt) -> AssignStmt:
        value = self.visit_expr(op.value)
        var = cast("Var", self.visit(op.var))
        if isinstance(value, Call) and tile_of(var) is not None and value.type is not var.type:
            value = replace(value, type=var.type)
        same = value is op.value and var is op.var
        return op if same else replace(op, value=value, var=var)


def with_memrefs(function: Function, refs: Mapping[Var, MemRef]) -> Function:
    """Return `function` with the given memory references on its tile variables' types."""
    return _Refs(refs).visit_function(function)


@dataclass
class Buffer:
    """A buffer of a function: its memory, its size, and the stretch of positions that it serves.

    Attributes:
        name: The name that its memory references share.
        space: The memory that it lies in.
        size_bytes: The size of its largest tile.
        first: Position of the statement that writes it first.
        last: Position of the last statement that needs it, the end of a loop included.
        stages: Copies of a pipelined body that use it, as (loop position, stage).
        tiles: Its tiles' names and bytes, for reports.
        span: Where it is written first.
    """

    name: str
    space: MemorySpace
    span: Span
    size_bytes: int = 0
    first: int = -1
    last: int = -1
    stages: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    tiles: dict[str, int] = field(default_factory=dict[str, int])

    def overlaps(self, other: Buffer) -> bool:
        """Whether both are in use at some moment; one may begin where the other ends."""
        return self.first < other.last and other.first < self.last

    def kept_apart(self, other: Buffer) -> bool:
        """Whether the two belong to different copies of one pipelined body."""
        return any(
            mine[0] == theirs[0] and mine[1] != theirs[1]
            for mine in self.stages
            for theirs in other.stages
        )


class Lifetimes:
    """The buffers of a function in order of first use; scales count into their data tile's buffer."""

    def __init__(self, function: Function) -> None:
        self.buffers: dict[str, Buffer] = {}
        self._position = 0
        self._defined_in: dict[Var, int] = {}
        self._loops: list[tuple[int, list[Var]]] = []
        self._walk(function.body)

    def _walk(self, body: Stmt) -> None:
        for stmt in flatten_to_stmts(body):
            self._position += 1
            match stmt:
                case AssignStmt():
                    self._use(stmt.value)
                    self._define(stmt.var, stmt.value)
                case ForStmt() | WhileStmt():
                    self._loop(stmt)
                case IfStmt():
                    self._use(stmt.condition)
                    self._walk(stmt.then_body)
                    if stmt.else_body is not None:
                        self._walk(stmt.else_body)
                    self._position += 1
                    for var in stmt.return_vars:
                        self._define(var)
                case _:
                    self._use(stmt)

    def _loop(self, stmt: ForStmt | WhileStmt) -> None:
        for arg in stmt.iter_args:
            self._use(arg.init_value)
        begin = self._position
        self._loops.append((begin, []))
        for arg in stmt.iter_args:
            self._define(arg)
        self._walk(stmt.body)
        self._position += 1
        _, from_outside = self._loops.pop()
        for var in from_outside:
            self._touch(var)
        for arg in stmt.iter_args:
            self._touch(arg)
        for var in stmt.return_vars:
            self._define(var)

    def _use(self, node: Stmt | Expr) -> None:
        for var in used_vars(node):
            self._touch(var)
            defined = self._defined_in.get(var, 0)
            for begin, from_outside in self._loops:
                if defined <= begin:
                    from_outside.append(var)

    def _define(self, var: Var, value: Expr | None = None) -> None:
        self._defined_in[var] = self._position
        buffer = self._touch(var)
        if buffer is None or not isinstance(value, Call) or STAGE not in value.attrs:
            return
        loop = self._loops[-1][0] if self._loops else -1
        buffer.stages.add((loop, value.attrs[STAGE]))

    def _touch(self, var: Var) -> Buffer | None:
        tile = tile_of(var)
        if tile is None or tile.memref is None:
            return None
        assert tile.memory_space is not None
        name = tile.memref.name.removesuffix(SCALE_SUFFIX)
        space = _DATA_SPACE.get(tile.memory_space, tile.memory_space)
        buffer = self.buffers.get(name)
        if buffer is None:
            buffer = self.buffers[name] = Buffer(name, space, var.span, first=self._position)
        buffer.last = max(buffer.last, self._position)
        if tile.memory_space not in SCALE_SPACES:
            buffer.size_bytes = max(buffer.size_bytes, tile.memref.size)
            buffer.tiles.setdefault(var.name_hint, tile.memref.size)
        return buffer


_DATA_SPACE = {
    MemorySpace.LeftScale: MemorySpace.Left,
    MemorySpace.RightScale: MemorySpace.Right,
}


def tile_vars(function: Function) -> list[Var]:
    """Return the tile variables that a function defines, in order."""
    from ..visitor import collect_def_vars

    return [var for var in collect_def_vars(function.body) if tile_of(var) is not None]
