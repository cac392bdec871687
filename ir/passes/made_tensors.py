"""The tensors that a function of one core makes itself, and where they are stored.

Such a tensor is a tile as long as nobody asks for it as a tensor. One that is returned goes into an output
parameter of its own, under the name that it is returned under; one that is only read again goes into one
that is no output.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from ..binding import result_name, source_name
from ..core import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ParamDirection,
    ReturnStmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from ..dtypes import DType
from ..errors import IRValueError
from ..expr import Call, Expr, Op, TupleGetItemExpr, Var
from ..mx_uses import SLICE
from ..ops import ROWS, create_op_call
from ..types import MemorySpace, TensorType, TileType
from ..verification.walk import calls, own_exprs, statements, uses
from .ties import Ties, ties_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core import Function
    from ..types import Dims

ASSEMBLE = "tensor.assemble"
QUANTISE = "tensor.quant_mx"
#: The op on tiles that does what an op on tensors does.
TILE_OPS = {
    "tensor.matmul_mx": "tile.matmul_mx",
    "tensor.matmul_mx_acc": "tile.matmul_mx_acc",
    "tensor.matmul_mx_bias": "tile.matmul_mx_bias",
    QUANTISE: "tile.quant_mx",
}
WINDOWS = (SLICE, "tensor.slice_scales")
LOWERED = frozenset({*TILE_OPS, *WINDOWS, ASSEMBLE})
_INTO_A_PARAMETER = "assemble it and what is written into an output parameter, one after the other"


@dataclass
class Made:
    """The tensors that a function makes itself.

    Attributes:
        tiles: For each variable of such a tensor, the tile type that it gets.
        wanted: Those that somebody asks for as tensors.
    """

    tiles: dict[Var, TileType] = field(default_factory=dict[Var, TileType])
    wanted: set[Var] = field(default_factory=set[Var])


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
    names: list[Var] = []
    quantised: dict[Expr, Sequence[TileType]] = {}
    for stmt in statements(function.body):
        match stmt:
            case AssignStmt(var, Call(op=Op(name)) as call) if name == QUANTISE:
                quantised[var] = _quantised(call)
            case AssignStmt(var, value) if isinstance(var.type, TensorType):
                names.append(var)
                tile = _tile_type(value, quantised)
                if tile is not None:
                    _refuse_two(ties.first(var), var, tiles, tile)
                    tiles[ties.first(var)] = tile
                elif not isinstance(value, Var):
                    others[ties.first(var)] = var
            case ForStmt() | WhileStmt() | IfStmt():
                names += [*getattr(stmt, "iter_args", ()), *stmt.return_vars]
            case _:
                pass
    for first in tiles.keys() & others.keys():
        raise _mixed(others[first])
    made = Made({v: tiles[ties.first(v)] for v in names if ties.first(v) in tiles})
    made.wanted = _wanted(function, made)
    return made


def _tile_type(value: Expr, quantised: dict[Expr, Sequence[TileType]]) -> TileType | None:
    match value:
        case Call(op=Op(name), type=TensorType(shape=shape)) if name in TILE_OPS:
            return _accumulator(shape)
        case TupleGetItemExpr() if value.tuple in quantised:
            return quantised[value.tuple][value.index]
        case _:
            return None


def _accumulator(shape: Dims) -> TileType:
    return TileType(shape, DType.Float32, None, None, MemorySpace.Acc)


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
                read: Iterable[Expr] = () if name in TILE_OPS else call.args[:1]
            case _:
                read = own_exprs(stmt)
        found.update(var for var in uses(read) if var in made.tiles)
    return found


def overwritten(function: Function) -> tuple[Ties[Var], set[Var]]:
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


@dataclass(frozen=True)
class Places:
    """Where the tensors that a function makes are stored.

    Attributes:
        returned: A new output parameter for each returned value; None for one that the function
            does not make itself.
        written: A new output parameter for each tensor that is returned after some op has written
            into it.
        scratch: A new output parameter for each tensor that is only read again.
    """

    returned: tuple[Var | None, ...] = ()
    written: dict[Var, Var] = field(default_factory=dict[Var, Var])
    scratch: dict[Var, Var] = field(default_factory=dict[Var, Var])

    @property
    def params(self) -> tuple[Var, ...]:
        """The new parameters in order."""
        fresh = (p for p in self.returned if p is not None)
        return (*fresh, *self.written.values(), *self.scratch.values())


def places_of(function: Function, made: Made) -> Places:
    """Return the output parameters that a function needs for the tensors that it makes.

    Raises:
        IRValueError: When the function returns before its end, or a result has the name of an input.
    """
    last = flatten_to_stmts(function.body)[-1:]
    same_bytes, _ = overwritten(function)
    values: tuple[Expr, ...] = ()
    held = {same_bytes.first(var) for var in made.tiles if var in made.wanted}
    for stmt in statements(function.body):
        if isinstance(stmt, ReturnStmt) and any(
            v in made.tiles or same_bytes.first(v) in held for v in stmt.value if isinstance(v, Var)
        ):
            if stmt is not last[0]:
                message = (
                    f"A return must be the last statement of {function.name!r} to be compiled, and "
                    "stand in no branch and no loop"
                )
                raise IRValueError(message, stmt.span)
            values = stmt.value
    homes = _shared_tensors(function, made, values)
    written = [
        param
        for param, direction in zip(function.params, function.param_directions, strict=True)
        if direction is not ParamDirection.In
    ]
    known = {same_bytes.first(param) for param in written}
    outputs = {param.name_hint for param in written}
    inputs = {param.name_hint for param in function.params} - outputs
    returned: list[Var | None] = []
    changed: dict[Var, Var] = {}
    for value in values:
        is_made = isinstance(value, Var) and value in made.tiles
        if not is_made and isinstance(value, Var) and same_bytes.first(value) in known:
            returned.append(None)
            continue
        name = _free(result_name(value) or "out", outputs)
        outputs.add(name)
        home = homes.get(same_bytes.first(value)) if isinstance(value, Var) else None
        if not isinstance(value, Var) or not (is_made or home):
            returned.append(None)
            continue
        if name in inputs:
            message = (
                f"The result {name!r} of {function.name!r} must have a name of its own to be "
                "compiled, not that of a parameter"
            )
            raise IRValueError(message, value.span, hint="give the result another name")
        param = Var(name, value.type, value.span)
        returned.append(param if is_made else None)
        if home is not None and not is_made:
            if home.type != value.type:
                message = (
                    f"{name!r} must be returned in the shape in which {source_name(home)!r} was made to "
                    "be compiled, not as a view of it"
                )
                raise IRValueError(message, value.span, hint=_INTO_A_PARAMETER)
            changed[home] = param
    taken = outputs | inputs
    scratch: dict[Var, Var] = {}
    for var in made.tiles:
        if var in made.wanted and var not in values and var not in changed:
            name = _free(f"{result_name(var) or 'result'}_scratch", taken)
            taken.add(name)
            scratch[var] = Var(name, var.type, var.span)
    return Places(tuple(returned), changed, scratch)


def _shared_tensors(function: Function, made: Made, values: Sequence[Expr]) -> dict[Var, Var]:
    """Return the tensors made here that have a life of their own in global memory.

    Some op writes into such a tensor, or it is returned under another name.

    Returns:
        Each by the first variable of those that share its bytes.

    Raises:
        IRValueError: When one would have several places in global memory, or is used as a tile: what
            is written goes into one place, and not into the tile.
    """
    same_bytes, targets = overwritten(function)
    names = [v for v in values if isinstance(v, Var)]
    renamed = {same_bytes.first(v) for v in names if v not in made.tiles}
    homes: dict[Var, Var] = {}
    for var in made.tiles:
        part = same_bytes.first(var)
        if part not in targets | renamed or not (var in made.wanted or var in values):
            continue
        if part in homes or sum(same_bytes.first(v) == part for v in names) > 1:
            message = (
                f"{source_name(var)!r} must have one name, under which it is returned at most once, to "
                "be compiled, since several would be one tensor, which its function writes or views"
            )
            raise IRValueError(message, var.span, hint=_INTO_A_PARAMETER)
        homes[part] = var
    for stmt in statements(function.body):
        for call in calls(own_exprs(stmt)):
            if call.op.name not in (*TILE_OPS, ASSEMBLE):
                continue
            for arg in call.args if call.op.name in TILE_OPS else call.args[1:2]:
                if isinstance(arg, Var) and same_bytes.first(arg) in homes.keys() & targets:
                    message = (
                        f"{source_name(arg)!r} must not be an operand to be compiled, since its "
                        "function writes into it after making it"
                    )
                    raise IRValueError(message, call.span, hint=_INTO_A_PARAMETER)
    return homes


def _free(name: str, taken: set[str]) -> str:
    free, count = name, 1
    while free in taken:
        free, count = f"{name}_{count}", count + 1
    return free
