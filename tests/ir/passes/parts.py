"""Raw IR in few words: what the tests of passes build programs from."""

from collections.abc import Iterable, Sequence

from scalebox.ir.core import (
    AssignStmt,
    ForStmt,
    Function,
    FunctionType,
    ParamDirection,
    Program,
    SeqStmts,
    Stmt,
    flatten_to_stmts,
)
from scalebox.ir.dtypes import DType, Index, SimpleDType
from scalebox.ir.errors import Span
from scalebox.ir.expr import (
    Call,
    ConstInt,
    Expr,
    FloorDiv,
    GlobalVar,
    MakeTuple,
    Op,
    ScalarType,
    Submit,
    Type,
    UnknownType,
    Var,
    as_dim,
    index,
)
from scalebox.ir.types import (
    SCALE_ARRANGEMENT,
    MemorySpace,
    TensorLayout,
    TensorType,
    TensorView,
    TileType,
    TileView,
)

A, B = TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN
INDEX = ScalarType(Index)
Dim = Expr | int


def at(line: int) -> Span:
    """A place in a kernel file."""
    return Span("kernel.py", line, 5)


def scalar(name: str) -> Var:
    return Var(name, INDEX)


def scales_type(
    shape: Sequence[Dim] = (64, 4), layout: TensorLayout = A, dtype: SimpleDType = DType.E8M0
) -> TensorType:
    return TensorType(shape, dtype, None, TensorView(layout=layout))


def scales(
    name: str = "s", shape: Sequence[Dim] = (64, 4), layout: TensorLayout = A, line: int = 0
) -> Var:
    return Var(name, scales_type(shape, layout), at(line) if line else Span.unknown())


def tuple_of(*values: Dim) -> MakeTuple:
    return MakeTuple(tuple(as_dim(v) for v in values))


def scale_tile(
    window: Sequence[Dim], layout: TensorLayout = A, valid: Sequence[Dim] | None = None
) -> TileType:
    blayout, slayout, fractal = SCALE_ARRANGEMENT[layout]
    view = TileView(valid, blayout=blayout, slayout=slayout, fractal=fractal)
    return TileType(window, DType.E8M0, None, view, MemorySpace.Mat)


def load(
    tensor: Expr,
    offsets: Sequence[Dim],
    window: Sequence[Dim] = (16, 2),
    valid: Sequence[Dim] | None = None,
    *,
    target: MemorySpace | None = MemorySpace.Mat,
    layout: TensorLayout = A,
    line: int = 0,
) -> Call:
    """A load of scales with all four arguments, as the language makes it; its type is given."""
    args = [tensor, tuple_of(*offsets), tuple_of(*window), tuple_of(*(valid or window))]
    kwargs = {} if target is None else {"target_memory": target}
    span = at(line) if line else Span.unknown()
    return Call(Op("tile.load"), args, kwargs, scale_tile(window, layout, valid), span)


def assign(name: str, value: Expr, line: int = 0) -> AssignStmt:
    span = at(line) if line else Span.unknown()
    return AssignStmt(Var(name, value.type, span), value, span)


def loop(var: Var, start: Dim, stop: Dim, step: Dim, *body: Stmt) -> ForStmt:
    inner = body[0] if len(body) == 1 else SeqStmts(body)
    return ForStmt(var, as_dim(start), as_dim(stop), as_dim(step), (), inner, ())


def function(
    name: str,
    params: Iterable[Var | tuple[Var, ParamDirection]],
    *body: Stmt,
    returns: Sequence[Type] = (),
    kind: FunctionType = FunctionType.InCore,
) -> Function:
    inner = body[0] if len(body) == 1 else SeqStmts(body)
    return Function(name, list(params), returns, inner, Span.unknown(), type=kind)


def program(*functions: Function) -> Program:
    return Program(functions, "p")


def call(name: str, *args: Dim, type_: Type | None = None) -> Call:
    """A plain call of a function of the program."""
    given = [as_dim(a) for a in args]
    return Call(GlobalVar(name), given, type_ or UnknownType(), Span.unknown())


def submit(name: str, *args: Dim, type_: Type | None = None) -> Submit:
    given = [as_dim(a) for a in args]
    return Submit(GlobalVar(name), given, [], type_ or UnknownType(), Span.unknown())


def stmts(function_: Function) -> tuple[Stmt, ...]:
    return flatten_to_stmts(function_.body)


def only(program_: Program) -> Function:
    (found,) = program_.functions.values()
    return found


def ints(tuple_: Expr) -> list[int | None]:
    """The elements of a tuple: integers, and None for what is not constant."""
    assert isinstance(tuple_, MakeTuple)
    return [e.value if isinstance(e, ConstInt) else None for e in tuple_.elements]


def quotient(tuple_: Expr, position: int) -> tuple[Expr, int]:
    """Dividend and divisor of an element that must be a FloorDiv by a constant."""
    assert isinstance(tuple_, MakeTuple)
    found = tuple_.elements[position]
    assert isinstance(found, FloorDiv)
    assert isinstance(found.right, ConstInt)
    assert found.dtype is Index
    assert found.right.dtype is Index
    return found.left, found.right.value


def zero() -> ConstInt:
    return index(0)
