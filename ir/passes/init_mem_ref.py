"""InitMemRef: every tile gets a buffer, not yet an address.

An op that works in place keeps its operand's buffer. A scale tile gets none of its own: it lies where
its data tile's address says, in the buffer `<data>.scale`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..core import AssignStmt, Function, FunctionType
from ..errors import IRValueError
from ..expr import Call, Op, Var
from ..ops import ROWS
from ..properties import IRProperty
from ..tile_bytes import tile_bytes
from ..types import MemRef
from ..visitor import IRVisitor
from .base import FunctionPass
from .memrefs import SCALE_SPACES, SCALE_SUFFIX, tile_of, tile_vars, with_memrefs


@dataclass(frozen=True)
class InitMemRef(FunctionPass):
    """Give each tile of an InCore function a memory reference with a name and a size."""

    name = "InitMemRef"
    required = frozenset(
        {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.TileMemoryInferred}
    )
    produced = frozenset({IRProperty.HasMemRefs, IRProperty.NormalizedStmtStructure})

    def transform_function(self, function: Function) -> Function:
        """Name the buffers of one function."""
        if function.func_type not in (FunctionType.InCore, FunctionType.AIC):
            return function
        values = _Values()
        values.visit_function(function)
        names = _Names(values)
        refs = {var: names.of(var) for var in tile_vars(function)}
        return with_memrefs(function, refs)


class _Values(IRVisitor):
    """The expression that defines each tile, and the data tile of each scale."""

    def __init__(self) -> None:
        self.of: dict[Var, object] = {}
        self.data_of: dict[Var, Var] = {}

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self.of[op.var] = op.value
        value = op.value
        if isinstance(value, Call) and value.op.name == "tile.tget_scale_addr":
            scale, data = value.args
            assert isinstance(scale, Var)
            assert isinstance(data, Var)
            self.data_of[scale] = self.data_of[op.var] = data
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
        assert tile is not None
        assert tile.memory_space is not None
        size = tile_bytes(tile)
        if tile.memory_space in SCALE_SPACES:
            data = self._values.data_of.get(var)
            if data is None:
                message = (
                    f"The scale tile {var.name_hint!r} must be an operand of a matmul in this "
                    "function, since its address follows from its data tile"
                )
                raise IRValueError(message, var.span)
            return MemRef(self.of(data).name + SCALE_SUFFIX, -1, size)
        source = self._in_place(var)
        if source is not None:
            return self.of(source)
        space = tile.memory_space.name.lower()
        number = self._counts.get(space, 0)
        self._counts[space] = number + 1
        return MemRef(f"{space}_{number}", -1, size)

    def _in_place(self, var: Var) -> Var | None:
        value = self._values.of.get(var)
        if isinstance(value, Var):
            return value
        if not isinstance(value, Call) or not isinstance(value.op, Op):
            return None
        reuses = ROWS[value.op.name].reuses
        source = value.args[reuses] if reuses is not None else None
        return source if isinstance(source, Var) and tile_of(source) is not None else None
