"""InitMemRef: every tile gets a buffer, not yet an address.

An op that works in place keeps its operand's buffer. A scale tile gets none of its own: it lies where
its data tile's address says, in the buffer `<data>.scale`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..binding import source_name
from ..errors import IRValueError
from ..expr import Call, Expr, Op, Var
from ..ops import ROWS
from ..properties import IRProperty
from ..tile_bytes import tile_bytes
from ..types import MemRef
from ..verification.structure import CORE_TYPES
from ..visitor import IRVisitor
from .base import FunctionPass
from .memrefs import BIND, SCALE_SPACES, SCALE_SUFFIX, tile_of, tile_vars, with_memrefs

if TYPE_CHECKING:
    from ..core import AssignStmt, Function


@dataclass(frozen=True)
class InitMemRef(FunctionPass):
    """Give each tile of a core's function a memory reference with a name and a size."""

    name = "InitMemRef"
    required = frozenset(
        {
            IRProperty.SSAForm,
            IRProperty.NormalizedStmtStructure,
            IRProperty.TileOps2D,
            IRProperty.TileMemoryInferred,
        }
    )
    produced = frozenset({IRProperty.HasMemRefs, IRProperty.NormalizedStmtStructure})

    def transform_function(self, function: Function) -> Function:
        """Name the buffers of one function; tiles that have one keep it.

        Raises:
            IRValueError: For a tile of scales that no matmul uses, or whose bytes are not constant.
        """
        if function.func_type not in CORE_TYPES:
            return function
        tiles = tile_vars(function)
        if all((tile := tile_of(var)) is None or tile.memref is not None for var in tiles):
            return function
        values = _Values()
        values.visit_function(function)
        names = _Names(values)
        return with_memrefs(function, {var: names.of(var) for var in tiles})


class _Values(IRVisitor):
    """The expression that defines each tile, and the data tiles of each scale."""

    def __init__(self) -> None:
        self.of: dict[Var, Expr] = {}
        self.data_of: dict[Var, list[Var]] = {}

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self.of[op.var] = op.value
        value = op.value
        if isinstance(value, Call) and value.op.name == BIND:
            scale, data = value.args
            assert isinstance(scale, Var), "the scale of a bind is a variable"
            assert isinstance(data, Var), "the data of a bind is a variable"
            self.data_of.setdefault(scale, []).append(data)
            self.data_of[op.var] = [data]
        self.visit_children(op)


class _Names:
    def __init__(self, values: _Values) -> None:
        self._values = values
        self._refs: dict[Var, MemRef] = {}
        self._counts: dict[str, int] = {}

    def of(self, var: Var) -> MemRef:
        """Return the reference of `var`, that of the operand it works in place on included."""
        if var not in self._refs:
            self._refs[var] = self._made(var)
        return self._refs[var]

    def _made(self, var: Var) -> MemRef:
        tile = tile_of(var)
        assert tile is not None, "only tiles have memory references"
        assert tile.memory_space is not None, "InferTileMemorySpace has placed every tile"
        if tile.memref is not None:
            return tile.memref
        size = tile_bytes(tile)
        if tile.memory_space in SCALE_SPACES:
            return MemRef(self._data_buffer(var) + SCALE_SUFFIX, -1, size)
        source = self._in_place(var)
        if source is not None:
            return self.of(source)
        space = tile.memory_space.name.lower()
        number = self._counts.get(space, 0)
        self._counts[space] = number + 1
        return MemRef(f"{space}_{number}", -1, size)

    def _data_buffer(self, scale: Var) -> str:
        data = self._values.data_of.get(scale, [])
        buffers = {self.of(tile).name: tile for tile in data}
        if len(buffers) == 1:
            return next(iter(buffers))
        found = " and ".join(repr(source_name(tile)) for tile in buffers.values())
        message = (
            f"The scale tile {source_name(scale)!r} must serve one data tile of this function, since its "
            f"address follows from it, but it serves {found or 'none'}"
        )
        raise IRValueError(message, scale.span)

    def _in_place(self, var: Var) -> Var | None:
        value = self._values.of.get(var)
        if isinstance(value, Var):
            return value
        if not isinstance(value, Call) or not isinstance(value.op, Op):
            return None
        reuses = ROWS[value.op.name].reuses
        source = value.args[reuses] if reuses is not None else None
        return source if isinstance(source, Var) and tile_of(source) is not None else None
