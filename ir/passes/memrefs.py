"""What the memory passes share: buffers by name, and how tiles are put into them."""

from __future__ import annotations

from dataclasses import replace as replace_fields
from typing import TYPE_CHECKING, cast

from ..expr import Call, Expr, IterArg, Type, Var, replace
from ..types import MemorySpace, TileType
from ..visitor import IRMutator, collect_def_vars

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..core import AssignStmt, Function
    from ..types import MemRef

#: The op that binds a scale tile to the address that its data tile implies.
BIND = "tile.tget_scale_addr"
#: A scale tile lies in the buffer of this suffix after its data tile's buffer.
SCALE_SUFFIX = ".scale"
SCALE_SPACES = (MemorySpace.LeftScale, MemorySpace.RightScale)


def tile_of(value: Expr) -> TileType | None:
    """Return the type of a tile value, or None for any other value."""
    return value.type if isinstance(value.type, TileType) else None


def tile_vars(function: Function) -> list[Var]:
    """Return the tile variables that a function defines, in order."""
    return [var for var in collect_def_vars(function.body) if tile_of(var) is not None]


def base_name(memref: MemRef) -> str:
    """Return the name of the buffer that decides where a reference lies: a scale's is its data's."""
    return memref.name.removesuffix(SCALE_SUFFIX)


def with_buffers(function: Function, rename: Callable[[str], str]) -> Function:
    """Return `function` with its buffers renamed; scales follow their data."""
    refs: dict[Var, MemRef] = {}
    for var in tile_vars(function):
        tile = tile_of(var)
        if tile is not None and tile.memref is not None:
            base = base_name(tile.memref)
            suffix = tile.memref.name[len(base) :]
            refs[var] = replace_fields(tile.memref, name=rename(base) + suffix)
    return with_memrefs(function, refs)


def with_memrefs(function: Function, refs: Mapping[Var, MemRef]) -> Function:
    """Return `function` with the given memory references on its tile variables' types."""
    return _Refs(refs).visit_function(function)


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
