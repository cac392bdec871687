"""The tensors that a function of one core makes itself.

Such a tensor is a tile as long as nobody asks for it as a tensor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from ..binding import source_name
from ..core import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    WhileStmt,
    YieldStmt,
)
from ..dtypes import DType
from ..errors import IRValueError
from ..expr import Call, Expr, Op, TupleGetItemExpr, Var
from ..mx_uses import SLICE
from ..numerics.plain_matmul import result_dtype
from ..ops import ROWS, create_op_call
from ..types import MemorySpace, TensorType, TileType
from ..verification.walk import calls, own_exprs, statements, uses
from .ties import Ties, ties_of
from .tile_forms import CubeForm, cube_tile, vector_tile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core import Function

ASSEMBLE = "tensor.assemble"
QUANTISE = "tensor.quant_mx"
CREATE, READ, WRITE = "tensor.create", "tensor.read", "tensor.write"
#: The matmuls of block-scaled operands and of plain ones, each with that on tiles.
MX_PRODUCTS = {f"tensor.matmul_mx{how}": f"tile.matmul_mx{how}" for how in ("", "_acc", "_bias")}
PLAIN_PRODUCTS = {f"tensor.matmul{how}": f"tile.matmul{how}" for how in ("", "_acc", "_bias")}
#: The op on tiles that does what an op on tensors does; what a vector core runs has one of its name.
TILE_OPS = {
    **MX_PRODUCTS,
    **PLAIN_PRODUCTS,
    **{
        name: name.replace("tensor.", "tile.")
        for name, row in ROWS.items()
        if name.startswith("tensor.") and row.vector
    },
}
_SUMS = frozenset(name for name in (*MX_PRODUCTS, *PLAIN_PRODUCTS) if name.endswith("_acc"))
WINDOWS = (SLICE, "tensor.slice_scales")
LOWERED = frozenset({*TILE_OPS, *WINDOWS, ASSEMBLE, READ, WRITE})
_WINDOW_OPERANDS = 3


@dataclass
class Made:
    """The tensors that a function makes itself.

    Attributes:
        same_bytes: Which tensors of the function share their bytes.
        targets: One of each part of these that some op writes.
        tiles: For each variable of such a tensor, the tile type that it gets.
        wanted: Those that somebody asks for as tensors.
        cut: The windows that are loaded where they are cut, and are such tensors then.
        created: Those that are made in global memory, to be written into.
    """

    same_bytes: Ties[Var]
    targets: set[Var]
    tiles: dict[Var, TileType] = field(default_factory=dict[Var, TileType])
    wanted: set[Var] = field(default_factory=set[Var])
    cut: set[Var] = field(default_factory=set[Var])
    created: list[Var] = field(default_factory=list[Var])


def made_tensors(function: Function) -> Made:
    """Return the tensors that a function makes itself by the ops of :data:`LOWERED`.

    Raises:
        IRValueError: For a name that is such a tensor on one way to it and another one on another
            way, or a sum that does not start from such a tensor.
    """
    ties: Ties[Var] = Ties()
    for one, other in ties_of(function.body):
        if isinstance(one, Var) and isinstance(other, Var) and isinstance(one.type, TensorType):
            ties.tie(one, other)
    tiles: dict[Var, TileType] = {}
    others: dict[Var, Var] = {ties.first(param): param for param in function.params}
    names: list[tuple[Var, Expr | None]] = []
    quantised: dict[Expr, Sequence[TileType]] = {}
    made = Made(*_overwritten(function))
    made.cut = _loaded_windows(function, made)
    for stmt in statements(function.body):
        match stmt:
            case AssignStmt(var, Call(op=Op(name)) as call) if name == QUANTISE:
                quantised[var] = _quantised(call)
            case AssignStmt(var, value) if isinstance(var.type, TensorType):
                names.append((var, value))
                if isinstance(value, Call) and value.op.name == CREATE:
                    made.created.append(var)
                    continue
                tile = vector_tile(var.type) if var in made.cut else _tile_type(value, quantised)
                if tile is not None:
                    _refuse_two(ties.first(var), var, tiles, tile)
                    tiles[ties.first(var)] = tile
                elif not isinstance(value, Var):
                    others[ties.first(var)] = var
            case ForStmt() | WhileStmt() | IfStmt():
                carried = [*getattr(stmt, "iter_args", ()), *stmt.return_vars]
                names += [(var, None) for var in carried]
            case _:
                pass
    begun = _begun(ties, tiles, made)
    _refuse_early_reads(function, begun)
    made.created = [var for var in made.created if var not in begun]
    made.tiles = dict(begun)
    others |= {ties.first(var): var for var in made.created}
    _check_mixed(made, tiles, others)
    for var, value in names:
        first = ties.first(var)
        is_other = isinstance(value, Var) and first in others and value not in made.tiles
        if first in tiles and not is_other and not (value and _is_other(value, var, made)):
            made.tiles[var] = tiles[first]
    made.wanted = _wanted(function, made)
    return made


def _begun(ties: Ties[Var], tiles: dict[Var, TileType], made: Made) -> dict[Var, TileType]:
    """Return what is created for a loop to sum up in: an accumulator, if nothing else writes it."""
    return {
        var: tiles[ties.first(var)]
        for var in made.created
        if ties.first(var) in tiles
        and tiles[ties.first(var)].memory_space is MemorySpace.Acc
        and made.same_bytes.first(var) not in made.targets
    }


def _refuse_early_reads(function: Function, begun: Iterable[Var]) -> None:
    """Refuse to use what a loop is to sum up in, under any name, for what it holds before the loop."""
    empty = {var: var for var in begun}
    for stmt in statements(function.body):
        read: Iterable[Expr] = own_exprs(stmt)
        match stmt:
            case AssignStmt(var, Var() as value):
                if value in empty:
                    empty[var] = empty[value]
                continue
            case ForStmt() | WhileStmt() | YieldStmt():
                continue
            case AssignStmt(value=Call(op=Op(name)) as call) if name in _SUMS:
                read = call.args[1:]
            case _:
                pass
        early = next((var for var in uses(read) if var in empty), None)
        if early is not None:
            created, used = source_name(empty[early]), source_name(early)
            which = "" if used == created else f"{created!r} "
            message = (
                f"{used!r} must be written before it is used to be compiled, not still be {which}as "
                "pl.create_tensor made it: a product is summed up in it only later"
            )
            hint = "take what the loop leaves, or let pl.tensor.full make a tensor of its own"
            raise IRValueError(message, stmt.span, hint=hint)


def _is_other(value: Expr, var: Var, made: Made) -> bool:
    """Return whether a value is a tensor that no op on tensors makes, nor a name of one that does."""
    if isinstance(value, Var) or var in made.cut:
        return False
    return not (isinstance(value, Call) and value.op.name in TILE_OPS) and not isinstance(
        value, TupleGetItemExpr
    )


def _check_mixed(made: Made, tiles: dict[Var, TileType], others: dict[Var, Var]) -> None:
    """Refuse a name that is made here on one way to it and lies in global memory on another.

    A tensor that is only read is loaded where the ways meet, if the vector core works on it.
    """
    for first in tiles.keys() & others.keys():
        written = made.same_bytes.first(others[first]) in made.targets
        if written or tiles[first].memory_space is not MemorySpace.Vec:
            raise _mixed(others[first])


def _loaded_windows(function: Function, made: Made) -> set[Var]:
    """Return the windows that are loaded where they are cut.

    They are those that something else than an op on tensors, an assembly or a load takes, those of
    which only a part is valid, and those of tensors that the function writes.
    """
    windows: dict[Var, Call] = {}
    renamed: dict[Var, Var] = {}
    found: set[Var] = set()
    for stmt in statements(function.body):
        taken: Sequence[Expr] = ()
        match stmt:
            case AssignStmt(var, Call(op=Op(name)) as call) if name in WINDOWS:
                windows[var] = call
                source, elements = call.args[0], getattr(call.args[1], "elements", ())
                is_part = len(call.args) > _WINDOW_OPERANDS or call.kwargs.get("clamp")
                written = isinstance(source, Var) and made.same_bytes.first(source) in made.targets
                drops_last = len(elements) - 1 in call.kwargs.get("drop_dims", ())
                if name == SLICE and (
                    is_part or drops_last or "pad_value" in call.kwargs or written
                ):
                    found.add(var)
                continue
            case AssignStmt(var, Var() as value):
                renamed[var] = value
                continue
            case (
                AssignStmt(value=Call(op=Op(name)) as call)
                | EvalStmt(expr=Call(op=Op(name)) as call)
            ) if name in (*TILE_OPS, READ, "tile.load"):
                taken = () if name in (*TILE_OPS, READ) else call.args[1:]
            case (
                AssignStmt(value=Call(op=Op(name)) as call)
                | EvalStmt(expr=Call(op=Op(name)) as call)
            ) if name == ASSEMBLE:
                taken = call.args[:1]
            case _:
                taken = own_exprs(stmt)
        for var in uses(taken):
            while var in renamed:
                var = renamed[var]
            if var in windows and windows[var].op.name == SLICE:
                found.add(var)
    return found


def _tile_type(value: Expr, quantised: dict[Expr, Sequence[TileType]]) -> TileType | None:
    match value:
        case Call(op=Op(name), type=TensorType(shape=shape)) if name in MX_PRODUCTS:
            return TileType(shape, DType.Float32, None, None, MemorySpace.Acc)
        case Call(op=Op(name), type=TensorType(shape=shape)) if name in PLAIN_PRODUCTS:
            first = value.args[1 if name == "tensor.matmul_acc" else 0].type
            assert isinstance(first, TensorType), first
            dtype = result_dtype(first.dtype)
            return cube_tile(shape, dtype, CubeForm.LHS, MemorySpace.Acc)
        case Call(op=Op(name), type=TensorType() as type_) if name in TILE_OPS:
            return vector_tile(type_)
        case TupleGetItemExpr() if value.tuple in quantised:
            return quantised[value.tuple][value.index]
        case _:
            return None


def _quantised(call: Call) -> tuple[TileType, ...]:
    source = call.args[0].type
    assert isinstance(source, TensorType), source
    tile = Var("src", TileType(source.shape, source.dtype, None, None, MemorySpace.Vec))
    made = create_op_call(TILE_OPS[QUANTISE], [tile], call.kwargs, call.span)
    return cast("tuple[TileType, ...]", getattr(made.type, "types", ()))


def _refuse_two(first: Var, var: Var, tiles: dict[Var, TileType], tile: TileType) -> None:
    if first in tiles and tiles[first] != tile:
        raise _mixed(var)


def _mixed(var: Var) -> IRValueError:
    message = (
        f"{source_name(var)!r} must be made by ops of one kind on every way to it to be compiled, not "
        "be a fresh result on one way and another tensor on another"
    )
    hint = "pl.assemble(out, result, [0, 0]) writes a result into a tensor"
    return IRValueError(message, var.span, hint=hint)


def _wanted(function: Function, made: Made) -> set[Var]:
    """Return the tensors made here that somebody needs in global memory."""
    found: set[Var] = set()
    for stmt in statements(function.body):
        match stmt:
            case YieldStmt() | ForStmt() | WhileStmt() | AssignStmt(value=Var()):
                continue
            case (
                AssignStmt(value=Call(op=Op(name)) as call)
                | EvalStmt(expr=Call(op=Op(name)) as call)
            ) if name in LOWERED:
                read: Iterable[Expr] = () if name in (*TILE_OPS, READ) else call.args[:1]
            case _:
                read = own_exprs(stmt)
        found.update(var for var in uses(read) if var in made.tiles)
    return found


def _overwritten(function: Function) -> tuple[Ties[Var], set[Var]]:
    """Return which tensors share their bytes, and one of each part that some op writes."""
    ties: Ties[Var] = Ties()
    for one, other in ties_of(function.body):
        if isinstance(one, Var) and isinstance(other, Var):
            ties.tie(one, other)
    targets: list[Var] = []
    for stmt in statements(function.body):
        for call in calls(own_exprs(stmt)):
            row = ROWS.get(call.op.name)
            reused = None if row is None or row.reuses is None else call.args[row.reuses]
            if row is None or not isinstance(reused, Var):
                continue
            if isinstance(stmt, AssignStmt):
                ties.tie(reused, stmt.var)
            if row.has_effect:
                targets.append(reused)
    return ties, {ties.first(var) for var in targets}
