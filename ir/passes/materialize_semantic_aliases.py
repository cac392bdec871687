"""MaterializeSemanticAliases: what is one value over time lies in one buffer.

A loop's initial value, its iteration argument, what a trip yields and the result share a buffer, as do
both arms' yields of a branch and its result. Sharing must not overwrite a value that is still needed:
the machine has no copy between accumulators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..binding import source_name
from ..core import AssignStmt, Function
from ..errors import IRValueError
from ..expr import Call, Op
from ..properties import IRProperty
from ..types import MemorySpace
from ..verification.structure import CORE_TYPES
from .base import FunctionPass
from .in_place import renamed
from .liveness import Live, buffer_name, walk_backwards
from .memrefs import base_name, tile_of, with_buffers
from .ties import Ties, ties_of

if TYPE_CHECKING:
    from ..core import Stmt
    from ..expr import Expr, Var


@dataclass(frozen=True)
class MaterializeSemanticAliases(FunctionPass):
    """Join the buffers of carried tiles, and refuse a program that needs a copy for it."""

    name = "MaterializeSemanticAliases"
    required = frozenset({IRProperty.SSAForm, IRProperty.HasMemRefs})
    produced = frozenset({IRProperty.HasMemRefs})

    def transform_function(self, function: Function) -> Function:
        """Join the buffers of one function.

        Raises:
            IRValueError: When a write would hit a value that is still needed.
        """
        if function.func_type not in CORE_TYPES:
            return function
        joined: Ties[str] = Ties()
        for one, other in ties_of(function.body):
            mine, theirs = _base(one), _base(other)
            if mine is not None and theirs is not None:
                joined.tie(mine, theirs)
        done = with_buffers(function, joined.first)
        walk_backwards(done.body, Live(), _check_overwritten)
        return done


def _base(value: Expr) -> str | None:
    tile = tile_of(value)
    return None if tile is None or tile.memref is None else base_name(tile.memref)


def _check_overwritten(stmt: Stmt, live: Live) -> None:
    """Check that a write into a buffer hits no value that is needed later."""
    if not isinstance(stmt, AssignStmt):
        return
    name = buffer_name(stmt.var)
    if name is None or not _writes(stmt.value):
        return
    for other in live.in_buffer(name) - {stmt.var}:
        message = (
            f"The tile {source_name(other)!r} must not be needed after this statement, which writes "
            f"{source_name(stmt.var)!r} into the same buffer"
        )
        raise IRValueError(message, stmt.span, hint=_way_out(other))


def _way_out(tile: Var) -> str:
    type_ = tile_of(tile)
    if type_ is not None and type_.memory_space is MemorySpace.Acc:
        return "store it before, or compute it again: accumulators cannot be copied"
    return "load or move it again where it is used"


def _writes(value: Expr) -> bool:
    """Whether a right-hand side writes its result's buffer, rather than naming it again."""
    return isinstance(value, Call) and isinstance(value.op, Op) and renamed(value) is None
