"""When each buffer of a function is in use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core import AssignStmt, ForStmt, IfStmt, Stmt, WhileStmt, flatten_to_stmts
from ..expr import Call, Expr, Var
from ..slots import slot_of
from ..types import MemorySpace
from .in_place import overwritable
from .liveness import used_vars
from .lower_pipeline_loops import STAGE
from .lower_slots import value_of
from .memrefs import SCALE_SPACES, base_name, tile_of

if TYPE_CHECKING:
    from ..core import Function
    from ..errors import Span

_DATA_SPACE = {MemorySpace.LeftScale: MemorySpace.Left, MemorySpace.RightScale: MemorySpace.Right}


@dataclass
class Buffer:
    """A buffer of a function: its memory, its size, and the stretch of positions that it serves.

    Attributes:
        name: The name that its memory references share.
        space: The memory that it lies in.
        span: Where it is written first.
        size_bytes: The size of its largest tile.
        scale_bytes: The size of the largest tile of scales that goes with it.
        first: Position of the statement that writes it first.
        last: Position of the last statement that needs it, the end of a loop included.
        stages: Copies of a pipelined body that use it, as (loop position, stage).
        slots: The slots that its tiles were given by hand, as (name, which).
        tiles: Its tiles' names and bytes, for reports.
        over: The buffers that may be overwritten by what writes it first, as that reads them, with
            the bytes that it reads of each.
    """

    name: str
    space: MemorySpace
    span: Span
    size_bytes: int = 0
    scale_bytes: int = 0
    first: int = -1
    last: int = -1
    stages: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    slots: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    tiles: dict[str, int] = field(default_factory=dict[str, int])
    over: dict[str, int] = field(default_factory=dict[str, int])

    def may_follow(self, other: Buffer) -> bool:
        """Whether this buffer may lie where `other` lay before: in use later, or made in its place.

        What was given a slot by hand shares it with nothing else.
        """
        if self.slots != other.slots:
            return False
        if other.last < self.first:
            return True
        return other.last == self.first and self.over.get(other.name) == other.size_bytes


class Lifetimes:
    """The buffers of a function in order of first use; scales count into their data tile's buffer."""

    def __init__(self, function: Function) -> None:
        self.buffers: dict[str, Buffer] = {}
        self._position = 0
        self._defined_at: dict[Var, int] = {}
        self._loops: list[tuple[int, dict[Var, None]]] = []
        self._walk(function.body)

    def by_space(self) -> dict[MemorySpace, list[Buffer]]:
        """Return the buffers of each memory, in order of first use."""
        found: dict[MemorySpace, list[Buffer]] = {}
        for buffer in self.buffers.values():
            found.setdefault(buffer.space, []).append(buffer)
        return found

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
        self._loops.append((begin, {}))
        for arg in stmt.iter_args:
            self._define(arg)
        self._walk(stmt.body)
        self._position += 1
        _, from_outside = self._loops.pop()
        for var in from_outside:
            self._touch(var)
        for var in stmt.return_vars:
            self._define(var)

    def _use(self, node: Stmt | Expr) -> None:
        for var in used_vars(node):
            self._touch(var)
            defined = self._defined_at.get(var, 0)
            for begin, from_outside in self._loops:
                if defined < begin:
                    from_outside[var] = None

    def _define(self, var: Var, value: Expr | None = None) -> None:
        self._defined_at[var] = self._position
        buffer = self._touch(var)
        if buffer is not None and value is not None and buffer.first == self._position:
            buffer.over = _overwritten(value, var)
        if buffer is None or not isinstance(value, Call):
            return
        slot = slot_of(value)
        if slot is not None:
            number = None if slot.index is None else value_of(slot.index, {})
            assert number is not None, "a copy of a pipelined body settles its slots"
            buffer.slots.add((slot.name, number))
        if STAGE not in value.attrs:
            return
        loop = self._loops[-1][0] if self._loops else -1
        buffer.stages.add((loop, value.attrs[STAGE]))

    def _touch(self, var: Var) -> Buffer | None:
        tile = tile_of(var)
        if tile is None or tile.memref is None:
            return None
        assert tile.memory_space is not None
        name = base_name(tile.memref)
        buffer = self.buffers.get(name)
        if buffer is None:
            space = _DATA_SPACE.get(tile.memory_space, tile.memory_space)
            buffer = self.buffers[name] = Buffer(name, space, var.span, first=self._position)
        buffer.last = max(buffer.last, self._position)
        if tile.memory_space in SCALE_SPACES:
            buffer.scale_bytes = max(buffer.scale_bytes, tile.memref.size)
        else:
            buffer.size_bytes = max(buffer.size_bytes, tile.memref.size)
            buffer.tiles.setdefault(var.name_hint, tile.memref.size)
        return buffer


def _overwritten(value: Expr, var: Var) -> dict[str, int]:
    """Return the buffers in whose place a tile may be computed, with the bytes that are read there."""
    in_place = overwritable(value, var)
    found: dict[str, int] = {}
    kept: set[str] = set()
    for operand in used_vars(value):
        tile = tile_of(operand)
        if tile is None or tile.memref is None:
            continue
        name = base_name(tile.memref)
        if operand in in_place:
            found[name] = tile.memref.size
        else:
            kept.add(name)
    return {name: size for name, size in found.items() if name not in kept}
