"""The loads of a matmul that is cut along K are cut too, so that the cube need not wait for all of K.

Each operand comes in a few pieces along K, the first pieces of all operands first: while the cube works on
them the others are on their way. Nothing is loaded twice, and what is not valid is not loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..collapsing import plus
from ..core import AssignStmt, Stmt
from ..dtypes import Index
from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS, GROUP
from ..expr import Call, ConstInt, Expr, FloorDiv, MakeTuple, Op, ScalarType, Var, index, replace
from ..ops import create_op_call
from ..ops.checks import is_mx_blocked
from ..ops.rules_memory import view_with_valid
from ..tile_bytes import ALIGNMENT, round_up, tile_bytes
from ..types import MemorySpace, TensorLayout, TensorType, TileType, constant_dims
from .memrefs import tile_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from .l0_sums import Sum
    from .l0_tiles import Tiling

_LOAD = "tile.load"
#: In how many pieces an operand comes at most.
PIECES = 4
_RANK = 2
#: The axes of a blocked scale tensor that count boxes of 16 rows, and pairs of groups.
_BLOCKED_ROWS, _BLOCKED_GROUPS = 1, 2


@dataclass(frozen=True)
class Pieces:
    """Operands in pieces along K.

    Attributes:
        depth: Elements along K of each piece but the last.
        of: The pieces of each operand, in order.
        instead: What stands in the place of each load.
    """

    depth: int
    of: Mapping[Var, tuple[Var, ...]]
    instead: Mapping[Stmt, list[Stmt]]


def split_loads(
    found: Sum, tiling: Tiling, stmts: Sequence[Stmt], uses: Mapping[Var, int], spare_bytes: int
) -> Pieces | None:
    """Return the operands of a product in pieces; None where that changes what a program does.

    Args:
        found: The sum.
        tiling: How it is cut; pieces are made of whole steps.
        stmts: The sequence that holds it.
        uses: How often the function reads each variable.
        spare_bytes: What L1 has beside all that the function keeps there; pieces begin at multiples
            of their own.
    """
    steps = -(-found.valid[1] // tiling.k)
    if len(found.links) > 1 or steps == 1:
        return None
    link = next(iter(found.links))
    operands = {link.lhs: 1, link.rhs: 0}
    if link.scales is not None:
        left, right = link.scales
        operands = {link.lhs: 1, left: 1, link.rhs: 0, right: 0}
    loads = plain_loads(operands, stmts, uses)
    if loads is None:
        return None
    depth = -(-steps // PIECES) * tiling.k
    made: dict[Var, list[AssignStmt]] = {}
    for stmt in loads:
        unit = GROUP if stmt.var in (link.scales or ()) else 1
        made[stmt.var] = _cut(stmt, operands[stmt.var], depth // unit, -(-found.valid[1] // unit))
    pieces = [piece for parts in made.values() for piece in parts]
    if bytes_in_l1(p.var for p in pieces) - bytes_in_l1(s.var for s in loads) > max(0, spare_bytes):
        return None
    instead: dict[Stmt, list[Stmt]] = {stmt: [] for stmt in loads}
    rounds = zip(*(made[var] for var in operands), strict=True)
    instead[loads[-1]] = [piece for each in rounds for piece in each]
    return Pieces(depth, {var: tuple(s.var for s in parts) for var, parts in made.items()}, instead)


def plain_loads(
    operands: Collection[Var], stmts: Sequence[Stmt], uses: Mapping[Var, int]
) -> list[AssignStmt] | None:
    """Return the loads of the operands, if each is for this product alone and they can stand together."""
    places = [
        n for n, stmt in enumerate(stmts) if isinstance(stmt, AssignStmt) and stmt.var in operands
    ]
    if len(places) < len(operands):
        return None
    between = stmts[places[0] : places[-1] + 1]
    if not all(is_still(stmt) for stmt in between):
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


def _cut(stmt: AssignStmt, axis: int, size: int, valid: int) -> list[AssignStmt]:
    """Return the loads of the pieces of `size` along an axis of which `valid` elements are needed."""
    load, tile = cast("Call", stmt.value), cast("TileType", stmt.var.type)
    shape = constant_dims(tile.shape)
    assert shape is not None, "the extents of operands that are cut are constants"
    pieces: list[AssignStmt] = []
    for first in range(0, valid, size):
        extent = min(size, shape[axis] - first)
        piece = piece_of(load, axis, index(first), extent, min(extent, valid - first))
        pieces.append(AssignStmt(Var(stmt.var.name_hint, piece.type, stmt.span), piece, stmt.span))
    return pieces


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
    of_groups = axis == (1 if source.layout is TensorLayout.MX_A_ZZ else 0)
    at, unit = (_BLOCKED_GROUPS, BOX_GROUPS) if of_groups else (_BLOCKED_ROWS, BOX_ROWS)
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
