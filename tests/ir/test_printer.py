"""What is printed parses back to an equal program: as written, and after every pass."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebox.ir import language as pl
from scalebox.ir import scalar_ops
from scalebox.ir.core import (
    AssignStmt,
    ForKind,
    ForStmt,
    Function,
    Program,
    ReturnStmt,
    SeqStmts,
    YieldStmt,
)
from scalebox.ir.dtypes import BFloat16, DType, Float16, Index, Int64, UInt8
from scalebox.ir.dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS
from scalebox.ir.expr import (
    BINARY_OPS,
    Add,
    BinaryExpr,
    BitNot,
    Call,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    GlobalVar,
    IterArg,
    Min,
    Mul,
    Neg,
    Not,
    Op,
    ScalarType,
    Submit,
    UnknownType,
    Var,
    index,
)
from scalebox.ir.language.names import DTYPES
from scalebox.ir.passes.pipeline import default_pipeline
from scalebox.ir.printer import callees_first, python_print
from scalebox.ir.structural import assert_structural_equal
from scalebox.ir.types import (
    CompactMode,
    DistributedTensorType,
    MemorySpace,
    MemRef,
    PadValue,
    TensorLayout,
    TensorType,
    TensorView,
    TileLayout,
    TileType,
    TileView,
    TupleType,
)

ROOT = Path(__file__).resolve().parents[2]
KERNELS = sorted((ROOT / "examples").glob("*.py")) + sorted(
    (ROOT / "tests" / "cases" / "language").glob("*.py")
)
MATMULS = [path for path in KERNELS if path.parent.name == "examples"]


def check_round_trip(program: Program) -> None:
    """Assert that a program survives being printed and parsed, memory references included."""
    text = python_print(program)
    again = pl.parse(text)
    assert isinstance(again, Program)
    assert_structural_equal(program, again)
    assert python_print(again) == text


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_a_program_as_written_parses_back(path: Path) -> None:
    program = pl.loads(path)
    assert isinstance(program, Program)
    check_round_trip(program)


@pytest.mark.parametrize("path", MATMULS, ids=lambda path: path.stem)
def test_a_program_parses_back_after_every_pass(path: Path) -> None:
    program = pl.loads(path)
    assert isinstance(program, Program)
    for each in default_pipeline():
        program = each(program)
        check_round_trip(program)


# ------------------------------------------------------------------------ expressions

VARIABLES = {
    dtype: Var(dtype.name.lower(), ScalarType(dtype))
    for dtype in (Index, Int64, DType.Int32, UInt8, DType.Float32, Float16, DType.Bool)
}
INTEGERS = [d for d in VARIABLES if d in INTEGER_FORMATS]
FLOATS = [d for d in VARIABLES if d in FLOAT_FORMATS]


@st.composite
def leaves(draw: st.DrawFn) -> Expr:
    dtype = draw(st.sampled_from(list(VARIABLES)))
    if draw(st.booleans()):
        return VARIABLES[dtype]
    if dtype is DType.Bool:
        return ConstBool(draw(st.booleans()))
    if dtype in INTEGER_FORMATS:
        row = INTEGER_FORMATS[dtype]
        return ConstInt(draw(st.integers(row.min, row.max)), dtype)
    value = draw(st.floats())
    return ConstFloat(math.nan if math.isnan(value) else value, dtype)


def combined(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    @st.composite
    def build(draw: st.DrawFn) -> Expr:
        left, right = draw(parts), draw(parts)
        kind = scalar_ops.category(scalar_ops.scalar_dtype(left, "left"))
        unary = {"int": (Neg, BitNot), "float": (Neg,), "bool": (Not,)}[kind]
        wrap = draw(st.sampled_from([*unary, None]))
        if wrap is not None:
            return wrap(left, scalar_ops.scalar_dtype(left, "left"))
        if draw(st.integers(0, 4)) == 0 and kind != "bool":
            return scalar_ops.cast(left, draw(st.sampled_from([*INTEGERS, *FLOATS])))
        operators = [op for op in BINARY_OPS if fits(op, left, right)]
        return (
            scalar_ops.binary(draw(st.sampled_from(operators)), left, right) if operators else left
        )

    return build()


def fits(op: type[BinaryExpr], left: Expr, right: Expr) -> bool:
    try:
        scalar_ops.binary(op, left, right)
    except TypeError:
        return False
    return True


@given(st.recursive(leaves(), combined, max_leaves=12))
def test_any_scalar_expression_parses_back(expr: Expr) -> None:
    body = SeqStmts((AssignStmt(Var("result", expr.type), expr), ReturnStmt((expr,))))
    check_round_trip(
        Program([Function("f", list(VARIABLES.values()), [expr.type], body)], "Scalars")
    )


AT, BY = VARIABLES[Index], Var("by", ScalarType(Index))


SPELLINGS: list[tuple[Expr, str]] = [
    (Mul(Add(AT, index(1), Index), BY, Index), "(index + 1) * by"),
    (Add(AT, Mul(index(1), BY, Index), Index), "index + 1 * by"),
    (Add(AT, Add(AT, BY, Index), Index), "index + (index + by)"),
    (Add(Add(AT, AT, Index), BY, Index), "index + index + by"),
    (Add(index(1), index(2), Index), "pl.const(1, pl.INDEX) + pl.const(2, pl.INDEX)"),
    (ConstInt(7, DType.Int32), "pl.const(7, pl.INT32)"),
    (ConstFloat(0.1, DType.Float32), "0.1"),
    (ConstFloat(0.5, BFloat16), "pl.const(0.5, pl.BF16)"),
    (ConstFloat(-math.inf, DType.Float32), '-float("inf")'),
    (scalar_ops.cast(AT, DType.Int32), "pl.cast(index, pl.INT32)"),
    (Min(AT, index(4), Index), "pl.min(index, 4)"),
]


@pytest.mark.parametrize(("expr", "text"), SPELLINGS)
def test_an_expression_prints_with_the_brackets_that_it_needs(expr: Expr, text: str) -> None:
    assert python_print(expr) == text


# ------------------------------------------------------------------------ types

# A tensor of a compound dtype has no view of its own and is never returned.
SIMPLE = [dtype for dtype in DTYPES.values() if not dtype.is_compound()]
LAYOUTS = st.sampled_from(TensorLayout)
TILE_LAYOUTS = st.sampled_from(TileLayout)
EXTENTS = st.integers(1, 4).map(lambda n: 2 * n)


@st.composite
def tensor_types(draw: st.DrawFn) -> TensorType:
    shape = draw(st.lists(EXTENTS, min_size=1, max_size=5))
    dims = st.lists(EXTENTS, min_size=len(shape), max_size=len(shape))
    views = st.builds(
        TensorView, st.none() | dims, LAYOUTS, st.none() | dims, st.sampled_from(PadValue)
    )
    memref = draw(st.none() | st.builds(MemRef, st.sampled_from(["gm", "x y"]), EXTENTS, EXTENTS))
    return TensorType(shape, draw(st.sampled_from(SIMPLE)), memref, draw(st.none() | views))


@st.composite
def tile_types(draw: st.DrawFn) -> TileType:
    shape = draw(st.lists(EXTENTS, min_size=1, max_size=3))
    dims = st.none() | st.lists(EXTENTS, min_size=len(shape), max_size=len(shape))
    view = st.builds(
        TileView,
        dims,
        dims,
        st.none() | EXTENTS,
        TILE_LAYOUTS,
        TILE_LAYOUTS,
        st.sampled_from([32, 512, 1024]),
        st.sampled_from(PadValue),
        st.sampled_from(CompactMode),
    )
    space = draw(st.none() | st.sampled_from(MemorySpace))
    memrefs = st.builds(MemRef, st.just("buffer_0"), st.integers(-1, 64), EXTENTS, EXTENTS)
    memref = draw(st.none() | memrefs) if space is not None else None
    return TileType(shape, draw(st.sampled_from([DType.E4M3, DType.E2M1])), memref,
                    draw(st.none() | view), space)  # fmt: skip


@given(st.lists(tensor_types() | tile_types(), min_size=1, max_size=3))
def test_any_type_parses_back(types: list[TensorType | TileType]) -> None:
    params = [Var(f"p{i}", type_) for i, type_ in enumerate(types)]
    local = [AssignStmt(Var(f"v{i}", p.type), p) for i, p in enumerate(params)]
    body = SeqStmts((*local, ReturnStmt(tuple(params))))
    program = Program([Function("f", params, types, body)], "Types")
    check_round_trip(program)
    again = pl.parse(python_print(program))
    assert isinstance(again, Program)
    function = again.get_function("f")
    assert function is not None
    assert [getattr(p.type, "memref", None) for p in function.params] == [t.memref for t in types]


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_every_dtype_is_printed_by_a_name_that_reads_as_it(name: str) -> None:
    text = python_print(TensorType([2, 2], DTYPES[name]))
    printed = text.removeprefix("pl.Tensor[[2, 2], pl.").removesuffix("]")
    assert DTYPES[printed] is DTYPES[name]


def test_a_dtype_without_a_name_is_refused() -> None:
    with pytest.raises(TypeError, match="must have a name in the language"):
        python_print(TensorType([2], DType.Floating))


def test_types_that_the_language_does_not_read_still_print() -> None:
    assert python_print(DistributedTensorType([4], DType.Float32)) == (
        "pl.DistributedTensor[[4], pl.FP32]"
    )
    assert python_print(TupleType([UnknownType()])) == "pl.Tuple[pl.Unknown]"


# ------------------------------------------------------------------------ names and statements


def test_variables_of_one_name_are_told_apart() -> None:
    first, second, third = (Var("x", ScalarType(Index)) for _ in range(3))
    clash = Var("x_1", ScalarType(Index))
    odd = Var("in", ScalarType(Index))
    body = SeqStmts(
        (
            AssignStmt(first, index(1)),
            AssignStmt(second, Add(first, index(1), Index)),
            AssignStmt(clash, second),
            AssignStmt(odd, clash),
            AssignStmt(third, Add(odd, second, Index)),
        )
    )
    text = python_print(body, concise=True)
    assert text.splitlines() == [
        "x = 1",
        "x_1 = x + 1",
        "x_1_1 = x_1",
        "_in = x_1_1",
        "x_2 = _in + x_1",
    ]
    check_round_trip(Program([Function("f", [], [], body)], "Names"))


def test_an_undefined_variable_is_marked() -> None:
    body = ReturnStmt((Var("lost", ScalarType(Index)),))
    text = python_print(Function("f", [], [ScalarType(Index)], body))
    assert "return lost__FREE_VAR" in text


def test_a_variable_called_like_the_language_gets_another_name() -> None:
    pl_var, self_var = Var("pl", ScalarType(Index)), Var("self", ScalarType(Index))
    body = ReturnStmt((Add(pl_var, self_var, Index),))
    check_round_trip(
        Program([Function("f", [pl_var, self_var], [ScalarType(Index)], body)], "Clash")
    )


def test_concise_leaves_out_the_types_of_targets_only() -> None:
    program = pl.loads(ROOT / "examples" / "mx_accumulate.py")
    text = python_print(program, concise=True)
    assert "        product = pl.tile.matmul_mx(a_l0, as_l0, b_l0, bs_l0)\n" in text
    assert "a: pl.Tensor[[64, 128], pl.FP8E4M3FN]" in text


def test_another_prefix_stands_everywhere() -> None:
    program = pl.loads(ROOT / "examples" / "mx_matmul.py")
    text = python_print(program, prefix="dsl")
    assert "from scalebox.ir import language as dsl\n" in text
    assert "pl." not in text
    assert_structural_equal(program, pl.parse(text))


def test_a_lone_function_prints_and_parses_back() -> None:
    text = "@pl.function(type=pl.FunctionType.InCore)\ndef f(x: pl.Scalar[pl.INDEX]):\n    return x + 1"
    function = pl.parse(text)
    assert isinstance(function, Function)
    assert_structural_equal(function, pl.parse(python_print(function)))


def test_a_loop_carries_a_type_that_its_value_does_not_imply() -> None:
    narrow = TileView(valid_shape=[8, 16])
    whole, part = TileType([16, 16], Float16), TileType([16, 16], Float16, None, narrow)
    start, i = Var("start", whole), Var("i", ScalarType(Index))
    carried, other = IterArg("t", part, start), IterArg("u", whole, start)
    results = (Var("t_out", part), Var("u_out", part))
    loop = ForStmt(
        i, index(0), index(4), index(1), (carried, other), YieldStmt((carried, other)), results
    )
    body = SeqStmts((loop, ReturnStmt(results)))
    program = Program([Function("f", [start], [part, part], body)], "Carried")
    assert "            t: pl.Tile[[16, 16], pl.FP16, pl.TileView(valid_shape=[8, 16])]\n" in (
        python_print(program)
    )
    check_round_trip(program)


def test_forms_that_the_parser_leaves_out_still_print() -> None:
    i, x = Var("i", ScalarType(Index)), Var("x", TensorType([16], DType.Int8))
    task = Var("task", ScalarType(DTYPES["TASK_ID"]))  # pyright: ignore[reportArgumentType]
    launch = Submit(GlobalVar("k"), [x], [task], core_num=4, sync_start=True)
    loop = ForStmt(
        i, index(0), index(4), index(1), (), AssignStmt(Var("r", UnknownType()), launch), (),
        kind=ForKind.Parallel,
    )  # fmt: skip
    assert python_print(loop).splitlines() == [
        "for i in pl.parallel(4):",
        "    r = pl.spmd_submit(self.k, x, core_num=4, deps=[task], sync_start=True)",
    ]


def test_callees_come_before_callers_and_else_by_name() -> None:
    def calling(name: str, *callees: str) -> Function:
        stmts = [AssignStmt(Var("v", UnknownType()), Call(GlobalVar(c), [])) for c in callees]
        return Function(name, [], [], SeqStmts(tuple(stmts)))

    program = Program([calling("a", "z", "a"), calling("b"), calling("z", "b")])
    assert [f.name for f in callees_first(program)] == ["b", "z", "a"]


def test_an_internal_op_prints_in_full() -> None:
    x = Var("x", TensorType([16], DType.Int8))
    call = Call(Op("tile.secret"), [x], {"space": MemorySpace.Mat, "names": ["a", 1, None]})
    assert python_print(call) == 'pl.tile.secret(x, space=pl.Mem.Mat, names=["a", 1, None])'


def test_layouts_of_scale_tiles_print_what_differs_from_their_memory() -> None:
    row = TileView(blayout=TileLayout.row_major, slayout=TileLayout.row_major, fractal=32)
    assert python_print(TileType([16, 2], DType.E8M0, None, row, MemorySpace.Mat)) == (
        "pl.Tile[[16, 2], pl.FP8E8M0, pl.Mem.Mat, "
        "pl.TileView(blayout=pl.TileLayout.row_major, fractal=32)]"
    )
    assert python_print(TensorType([64, 4], DType.E8M0, None, TensorLayout.MX_A_ZZ)) == (
        "pl.Tensor[[64, 4], pl.FP8E8M0, pl.TensorView(stride=[], layout=pl.TensorLayout.MX_A_ZZ)]"
    )
