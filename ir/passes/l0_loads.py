"""Loads of operands that can be cut, and their parts.

A plain load takes a matrix, or boxes of scales, as far as they are valid, for one sum alone. Its parts load
the same elements to tiles of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..collapsing import plus
from ..core import AssignStmt, Stmt
from ..dtypes import Index
from ..expr import Call, ConstInt, Expr, FloorDiv, MakeTuple, Op, ScalarType, Var, index, replace
from ..ops import create_op_call
from ..ops.checks import is_mx_blocked
from ..ops.rules_memory import view_with_valid
from ..tile_bytes import ALIGNMENT, round_up, tile_bytes
from ..types import MemorySpace, TensorType, TileType, constant_dims
from .l1_arrivals import blocked_axis
from .memrefs import tile_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

_LOAD = "tile.load"
_RANK = 2


def plain_loads(
    operands: Collection[Var],
    stmts: Sequence[Stmt],
    uses: Mapping[Var, int],
    products: Collection[Stmt] = (),
) -> list[AssignStmt] | None:
    """Return the loads of the operands, if each is for this sum alone and they can stand together.

    Args:
        operands: Tiles.
        stmts: The sequence that holds the sum.
        uses: How often the function reads each variable.
        products: Statements that will stand behind all of the loads, where they are.
    """
    places = [
        n for n, stmt in enumerate(stmts) if isinstance(stmt, AssignStmt) and stmt.var in operands
    ]
    if len(places) < len(operands):
        return None
    between = stmts[places[0] : places[-1] + 1]
    if not all(is_still(stmt) for stmt in between if stmt not in products):
        return None
    found = [cast("AssignStmt", stmts[place]) for place in places]
    alone = all(uses.get(stmt.var, 0) == 1 and _is_plain(stmt.value) for stmt in found)
    return found if alone else None


def is_still(stmt: Stmt) -> bool:
    """Whether a load may stand before or behind a statement: it writes no tensor."""
    if not isinstance(stmt, AssignStmt):
        return False
    value = stmt.value
    names = isinstance(value, Call) and isinstance(value.op, Op) and value.op.name
    return isinstance(stmt.var.type, ScalarType) or names in (_LOAD, "tensor.view", "tile.move")


def _is_plain(value: Expr) -> bool:
    """Whether a value is loaded from a matrix, or from boxes of scales, as far as it is valid."""
    if not isinstance(value, Call) or value.op.name != _LOAD or value.kwargs.get("clamp"):
        return False
    source = value.args[0].type
    assert isinstance(source, TensorType), source
    return len(source.shape) == _RANK or (source.layout.is_mx and is_mx_blocked(source))


def piece_of(load: Call, axis: int, first: Expr, extent: int, valid: int, *, per: int = 1) -> Call:
    """Return the load of a part of what a plain load takes.

    Args:
        load: The load of a matrix, or of boxes of scales.
        axis: The axis of its tile that is cut.
        first: Where the part begins, in elements of which `per` share an index of the tile.
        extent: Indices of the part.
        valid: How many of them are valid.
        per: As above: 32 for an axis of groups whose place is told in elements.
    """
    tensor, offsets, window, has = load.args
    source = cast("TensorType", tensor.type)
    if not is_mx_blocked(source):
        begin = _with(offsets, axis, plus(_element(offsets, axis), _divided(first, per)))
        window = _with(window, axis, index(extent))
        args = [tensor, begin, window, _with(has, axis, index(valid))]
        made = create_op_call(_LOAD, args, load.kwargs, load.span)
        return replace(made, attrs=load.attrs)
    at, unit = blocked_axis(source, axis)
    begin = _with(offsets, at, plus(_element(offsets, at), _divided(first, per * unit)))
    window = _with(window, at, index(-(-extent // unit)))
    tile = cast("TileType", load.type)
    view = view_with_valid(
        tile.get_effective_tile_view(), _changed(tile.valid_shape, axis, index(valid))
    )
    shape = _changed(tile.shape, axis, index(extent))
    type_ = TileType(shape, tile.dtype, None, view, tile.memory_space)
    return replace(load, args=(tensor, begin, window, window), type=type_)


def _divided(place: Expr, by: int) -> Expr:
    if isinstance(place, ConstInt):
        return index(place.value // by)
    return place if by == 1 else FloorDiv(place, index(by), Index, place.span)


def _element(tuple_: Expr, at: int) -> Expr:
    return cast("MakeTuple", tuple_).elements[at]


def _with(tuple_: Expr, at: int, element: Expr) -> MakeTuple:
    elements = cast("MakeTuple", tuple_).elements
    return MakeTuple(_changed(elements, at, element), tuple_.span)


def _changed(elements: tuple[Expr, ...], at: int, element: Expr) -> tuple[Expr, ...]:
    return (*elements[:at], element, *elements[at + 1 :])


def bytes_in_l1(variables: Iterable[Var]) -> int:
    """Return the bytes of those tiles that lie in L1, or will as no other place was named."""
    total = 0
    for var in variables:
        tile = tile_of(var)
        if tile is None or tile.memory_space not in (None, MemorySpace.Mat):
            continue
        if tile.memory_space is None:
            tile = TileType(tile.shape, tile.dtype, memory_space=MemorySpace.Mat)
        if constant_dims(tile.shape) is not None and len(tile.shape) == _RANK:
            total += round_up(tile_bytes(tile), ALIGNMENT[MemorySpace.Mat])
    return total
