"""What a kernel's text becomes: nodes, variables, types, and the places that they carry."""

from pathlib import Path

import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import (
    AssignStmt,
    EvalStmt,
    ForKind,
    ForStmt,
    Function,
    FunctionType,
    IfStmt,
    Level,
    ParamDirection,
    Program,
    ReturnStmt,
    Role,
    SeqStmts,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
)
from scalebox.ir.dtypes import DType, Index, Int64
from scalebox.ir.errors import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    SSAViolationError,
    UndefinedVariableError,
    UserError,
)
from scalebox.ir.expr import (
    Add,
    Call,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    FloorDiv,
    GlobalVar,
    MakeTuple,
    Mul,
    Op,
    ScalarType,
    TupleGetItemExpr,
    Var,
    index,
)
from scalebox.ir.language import Tensor
from scalebox.ir.structural import assert_structural_equal
from scalebox.ir.types import MemorySpace, TensorLayout, TensorType, TileType, TupleType

HERE = Path(__file__)


def function_of(body: str, params: str = "", **decorator: str) -> Function:
    """Return the function with these lines and parameters."""
    options = ", ".join(f"{key}={value}" for key, value in decorator.items())
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    made = pl.parse(f"@pl.function({options})\ndef f({params}):\n{lines}\n")
    assert isinstance(made, Function)
    return made


def statements(body: str, params: str = "") -> tuple[Stmt, ...]:
    return flatten_to_stmts(function_of(body, params).body)


def value_of(body: str, params: str = "") -> Expr:
    """Return what the last assignment of a body assigns."""
    last = [s for s in statements(body, params) if isinstance(s, AssignStmt)][-1]
    return last.value


X = "x: pl.Tensor[[64, 64], pl.FP32]"
N = "n: pl.Scalar[pl.INDEX]"

# ------------------------------------------------------------------------ places


@pl.program
class Placed:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX]):
        tile = pl.load(
            x,
            [n, 0],
            [16, 64],
        )
        for i in pl.range(4):
            tile = pl.load(x, [i, 0], [16, 64])
        return tile


def line_of(text: str) -> int:
    lines = HERE.read_text().splitlines()
    return next(n for n, line in enumerate(lines, start=1) if text in line)


def test_every_node_carries_its_place_in_the_kernels_file() -> None:
    assert isinstance(Placed, Program)
    kernel = Placed.get_function("kernel")
    assert kernel is not None
    load, loop, _ = flatten_to_stmts(kernel.body)
    assert isinstance(load, AssignStmt)
    assert isinstance(load.value, Call)
    first = line_of("tile = pl.load(")
    assert (load.var.span.line, load.var.span.column) == (first, 9)
    span = load.value.span
    assert (span.begin_line, span.begin_column) == (first, 16)
    assert (span.end_line, span.end_column) == (first + 4, 10)
    offsets = load.value.args[1]
    assert isinstance(offsets, MakeTuple)
    assert (offsets.span.line, offsets.span.column) == (first + 2, 13)
    assert isinstance(loop, ForStmt)
    assert loop.span.begin_line == first + 5
    assert loop.loop_var.span.column == 13
    assert all(Path(s.filename) == HERE for s in (span, loop.span, kernel.span, Placed.span))
    assert kernel.params[1].span.line == line_of("def kernel(self, x")
    assert Placed.span.line == line_of("class Placed:")


def test_columns_count_characters_not_bytes() -> None:
    call = value_of('"äöü"; t = pl.load(x, [0, 0], [16, 64])', X)
    assert call.span.column == 16


# ------------------------------------------------------------------------ programs and functions


def test_a_class_becomes_a_program_of_its_name() -> None:
    assert isinstance(Placed, Program)
    assert Placed.name == "Placed"
    kernel = Placed.get_function("kernel")
    assert kernel is not None
    assert kernel.func_type is FunctionType.InCore
    assert (kernel.level, kernel.role) == (Level.CHIP_DIE, Role.SubWorker)
    assert [p.name_hint for p in kernel.params] == ["x", "n"]


def test_directions_of_parameters() -> None:
    made = function_of(
        "return", "a: pl.Tensor[[4], pl.INT8], b: pl.Out[pl.Tensor[[4], pl.INT8]], "
        "c: pl.InOut[pl.Tensor[[4], pl.INT8]]",
    )  # fmt: skip
    assert made.param_directions == (ParamDirection.In, ParamDirection.Out, ParamDirection.InOut)


def test_a_method_may_call_one_that_stands_below_it() -> None:
    made = pl.parse("""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX]):
        twice = self.double(n)
        return twice

    @pl.function
    def double(self, n: pl.Scalar[pl.INDEX]):
        return n * 2
""")
    assert isinstance(made, Program)
    main = made.get_function("main")
    assert main is not None
    call = flatten_to_stmts(main.body)[0]
    assert isinstance(call, AssignStmt)
    assert isinstance(call.value, Call)
    assert call.value.op == GlobalVar("double")
    assert call.value.type == ScalarType(Index)
    assert main.return_types == (ScalarType(Index),)


def test_a_function_that_calls_itself_needs_an_annotation() -> None:
    text = """
@pl.program
class P:
    @pl.function
    def f(self, n: pl.Scalar[pl.INDEX]):
        {}
        return n
"""
    with pytest.raises(ParserTypeError, match="is not known here, because it calls itself"):
        pl.parse(text.format("m = self.f(n)"))
    made = pl.parse(text.format("m: pl.Scalar[pl.INDEX] = self.f(n)"))
    assert isinstance(made, Program)
    assert isinstance(pl.parse(text.format("self.f(n)")), Program)


@pl.function
def double(n: pl.Scalar[pl.INDEX]):
    return n * 2


@pl.function
def quadruple(n: pl.Scalar[pl.INDEX]):
    return double(double(n))


def test_a_standalone_function_joins_the_program_that_calls_it() -> None:
    @pl.program
    class Caller:
        @pl.function
        def main(self, n: pl.Scalar[pl.INDEX]):
            return quadruple(n)

    assert isinstance(Caller, Program)
    assert [g.name for g in Caller.functions] == ["double", "main", "quadruple"]
    assert Caller.get_function("quadruple") is quadruple


def test_two_functions_of_one_name_do_not_fit_into_a_program() -> None:
    with pytest.raises(ParserTypeError, match="another function called 'double'"):

        @pl.program
        class Caller:
            @pl.function
            def double(self, n: pl.Scalar[pl.INDEX]):
                return n

            @pl.function
            def main(self, n: pl.Scalar[pl.INDEX]):
                return double(n)


def test_results_come_from_the_arrow_or_from_the_first_return() -> None:
    implied = function_of("return n, n + 1", N)
    assert implied.return_types == (ScalarType(Index), ScalarType(Index))
    assert function_of("return", N).return_types == ()
    arrow = pl.parse("@pl.function\ndef f(n: pl.Scalar[pl.INDEX]) -> None:\n    return")
    assert isinstance(arrow, Function)
    assert arrow.return_types == ()


def test_a_call_has_the_callers_scalars_in_its_result_type() -> None:
    made = pl.parse("""
@pl.program
class P:
    @pl.function
    def part(self, x: pl.Tensor[[64, 64], pl.FP32], rows: pl.Scalar[pl.INDEX]):
        return pl.load(x, [0, 0], [64, 64], [rows, 64], target_memory=pl.Mem.Vec)

    @pl.function
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX]):
        few = self.part(x, n + 1)
        return few
""")
    assert isinstance(made, Program)
    main = made.get_function("main")
    assert main is not None
    (result,) = main.return_types
    assert isinstance(result, TileType)
    rows = result.valid_shape[0]
    assert isinstance(rows, Add)
    assert rows.left is main.params[1]


# ------------------------------------------------------------------------ captured values


def test_captured_numbers_fold_and_variables_do_not() -> None:
    size, name = 1024, "K"
    made = pl.parse(
        f"{name} = {size}\n@pl.function\ndef f({N}):\n    a = K // 32\n    b = n // (K // 64)\n"
    )
    assert isinstance(made, Function)
    first, second = flatten_to_stmts(made.body)
    assert isinstance(first, AssignStmt)
    assert isinstance(first.value, ConstInt)
    assert (first.value.value, first.value.dtype) == (32, Index)
    assert isinstance(second, AssignStmt)
    assert isinstance(second.value, FloorDiv)
    assert_structural_equal(second.value.right, index(16))


@pytest.mark.parametrize(
    ("literal", "kind", "dtype"),
    [
        ("3", ConstInt, Index),
        ("-3", ConstInt, Index),
        ("0.5", ConstFloat, DType.Float32),
        ("True", ConstBool, DType.Bool),
        ("1 < 2", ConstBool, DType.Bool),
        ("7 / 2", ConstFloat, DType.Float32),
        ("2 ** 10", ConstInt, Index),
        ("pl.min(3, 4)", ConstInt, Index),
        ("pl.const(3, pl.INT8)", ConstInt, DType.Int8),
    ],
)
def test_what_python_can_evaluate_becomes_one_constant(
    literal: str, kind: type[Expr], dtype: DType
) -> None:
    made = value_of(f"a = {literal}")
    assert isinstance(made, kind)
    assert made.type == ScalarType(dtype)  # pyright: ignore[reportArgumentType]


def test_a_kernel_sees_closures_and_its_own_names_come_first() -> None:
    def build(rows: int, spare: list[int]) -> Program:
        n = 99

        @pl.program
        class Closure:
            @pl.function
            def f(self, x: pl.Tensor[[rows, 64], pl.FP32], n: pl.Scalar[pl.INDEX]):
                return n + spare[1]

        assert n == 99
        assert isinstance(Closure, Program)
        return Closure

    function = build(32, [1, 2]).get_function("f")
    assert function is not None
    shape = function.params[0].type
    assert isinstance(shape, TensorType)
    assert_structural_equal(shape.shape[0], index(32))
    (result,) = flatten_to_stmts(function.body)
    assert isinstance(result, ReturnStmt)
    (value,) = result.value
    assert isinstance(value, Add)
    assert value.left is function.params[1]
    assert_structural_equal(value.right, index(2))


def test_a_captured_expression_is_used_as_it_is() -> None:
    seven = pl.const(7, DType.Int32)

    @pl.function
    def f(n: pl.Scalar[pl.INT32]):
        return n + seven

    assert isinstance(f, Function)
    (stmt,) = flatten_to_stmts(f.body)
    assert isinstance(stmt, ReturnStmt)
    (value,) = stmt.value
    assert isinstance(value, Add)
    assert value.right is seven


def test_the_language_is_known_by_any_name() -> None:
    from scalebox.ir import language

    dsl = scalebox.pl
    read = language.load

    @dsl.function(type=language.FunctionType.InCore)
    def f(x: Tensor[[64, 64], language.FP32]):
        return read(x, [0, 0], [16, 64], target_memory=scalebox.pl.Mem.Vec)

    assert isinstance(f, Function)
    (result,) = f.return_types
    assert isinstance(result, TileType)
    assert result.memory_space is MemorySpace.Vec


# ------------------------------------------------------------------------ ops


def test_a_call_is_an_op_call_with_its_type() -> None:
    call = value_of("t = pl.load(x, [0, 16], [16, 32], target_memory=pl.Mem.Mat)", X)
    assert isinstance(call, Call)
    assert call.op == Op("tile.load")
    assert dict(call.kwargs) == {"target_memory": MemorySpace.Mat}
    assert call.type == TileType([16, 32], DType.Float32, memory_space=MemorySpace.Mat)
    assert len(call.args) == 4  # the valid shape is filled in
    in_full = value_of("t = pl.tile.load(x, [0, 16], [16, 32], None, pl.Mem.Mat)", X)
    assert_structural_equal(call, in_full, enable_auto_mapping=True)


def test_nested_calls_stay_nested() -> None:
    call = value_of(
        "t = pl.move(pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)", X
    )
    assert isinstance(call, Call)
    assert isinstance(call.args[0], Call)


def test_a_load_of_scales_goes_to_mat_unless_it_says_otherwise() -> None:
    scales = "s: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ]"
    call = value_of("t = pl.load(s, [0, 0], [64, 4])", scales)
    assert isinstance(call, Call)
    assert call.kwargs["target_memory"] is MemorySpace.Mat
    with pytest.raises(InvalidOperationError, match=r"pl operation 'load': .*Mat"):
        value_of("t = pl.load(s, [0, 0], [64, 4], target_memory=pl.Mem.Vec)", scales)


def test_a_tensor_view_goes_both_ways() -> None:
    boxes = value_of(
        "t = pl.tensor.view(s, [64, 4], layout=pl.MX_A_ZZ)", "s: pl.Tensor[[1, 256], pl.FP8E8M0]"
    )
    assert boxes.type == TensorType([64, 4], DType.E8M0, None, TensorLayout.MX_A_ZZ)
    flat = value_of(
        "t = pl.tensor.view(s, [1, 256], layout=pl.ND)",
        "s: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ]",
    )
    assert flat.type == TensorType([1, 256], DType.E8M0)


def test_an_error_of_an_op_keeps_its_cause_and_its_hint() -> None:
    with pytest.raises(
        InvalidOperationError, match=r"^pl operation 'load': what is loaded"
    ) as caught:
        value_of("t = pl.load(x, [60, 0], [16, 64])", X)
    assert isinstance(caught.value.__cause__, ValueError)
    assert isinstance(caught.value.__cause__, UserError)
    assert caught.value.hint == caught.value.__cause__.hint


# ------------------------------------------------------------------------ scalars


def test_the_narrower_side_is_cast_and_index_and_int64_are_one() -> None:
    params = "a: pl.Scalar[pl.INT32], b: pl.Scalar[pl.INDEX], c: pl.Scalar[pl.INT64]"
    mixed = value_of("r = a * b", params)
    assert isinstance(mixed, Mul)
    assert isinstance(mixed.left, Cast)
    assert mixed.dtype is Index
    same = value_of("r = c + b", params)
    assert isinstance(same, Add)
    assert isinstance(same.right, Var)
    assert same.dtype is Int64


def test_a_literal_takes_the_dtype_that_is_written() -> None:
    made = value_of("r: pl.Scalar[pl.INT32] = 4")
    assert isinstance(made, ConstInt)
    assert made.dtype is DType.Int32
    half = value_of("r: pl.Scalar[pl.FP16] = 0.5")
    assert isinstance(half, ConstFloat)
    with pytest.raises(ParserTypeError, match=r"must be pl\.Scalar"):
        value_of("r: pl.Scalar[pl.INT8] = 300")


@pytest.mark.parametrize("value", ["True", "1.5", "pl.FP32", "'text'", "1 << 64"])
def test_an_offset_must_be_an_integer(value: str) -> None:
    with pytest.raises(UserError):
        value_of(f"t = pl.load(x, [{value}, 0], [16, 64])", X)


# ------------------------------------------------------------------------ assignments and flow


def test_a_name_assigned_again_is_the_same_variable() -> None:
    first, second = statements("a = 1\na = a + 1")
    assert isinstance(first, AssignStmt)
    assert isinstance(second, AssignStmt)
    assert second.var is first.var


def test_an_out_parameter_is_rebound_by_a_store() -> None:
    made = function_of(
        "t = pl.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Vec)\no = pl.store(t, [0, 0], o)\nreturn o",
        f"{X}, o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]",
    )
    _, store, result = flatten_to_stmts(made.body)
    assert isinstance(store, AssignStmt)
    assert store.var is made.params[1]
    assert isinstance(result, ReturnStmt)
    assert result.value == (made.params[1],)


def test_results_are_taken_apart_through_one_tuple() -> None:
    made = pl.parse("""
@pl.program
class P:
    @pl.function
    def two(self, n: pl.Scalar[pl.INDEX]):
        return n, n + 1

    @pl.function
    def main(self, n: pl.Scalar[pl.INDEX]):
        a, b = self.two(n)
        a, b = self.two(b)
        both = self.two(a)
        return both[1]
""")
    assert isinstance(made, Program)
    main = made.get_function("main")
    assert main is not None
    stmts = flatten_to_stmts(main.body)
    whole, first = stmts[:2]
    assert isinstance(whole, AssignStmt)
    assert whole.var.name_hint == "_tuple_tmp"
    assert whole.var.type == TupleType([ScalarType(Index), ScalarType(Index)])
    assert isinstance(first, AssignStmt)
    assert isinstance(first.value, TupleGetItemExpr)
    assert first.value.tuple is whole.var
    assert isinstance(stmts[3], AssignStmt)
    assert stmts[3].var is whole.var


def test_an_annotation_places_a_tile_and_inference_does_the_rest() -> None:
    made = value_of(
        "t: pl.Tile[[16, 64], pl.FP32, pl.Mem.Mat] = pl.load(x, [0, 0], [16, 64], [10, 64])", X
    )
    assert isinstance(made.type, TileType)
    assert made.type.memory_space is MemorySpace.Mat
    inferred = value_of("t: pl.Tile[[16, 64], pl.FP32] = pl.load(x, [0, 0], [16, 64], [10, 64])", X)
    assert isinstance(inferred.type, TileType)
    assert inferred.type.memory_space is None
    assert_structural_equal(inferred.type.valid_shape[0], index(10))


def test_loops() -> None:
    plain, pipelined = statements(
        "for i in pl.range(n):\n    a = i\nfor j in pl.pipeline(0, 8, 2, stage=3):\n    b = j", N
    )
    assert isinstance(plain, ForStmt)
    assert plain.kind is ForKind.Sequential
    assert not plain.attrs
    assert_structural_equal(plain.start, index(0))
    assert_structural_equal(plain.step, index(1))
    assert isinstance(pipelined, ForStmt)
    assert pipelined.kind is ForKind.Pipeline
    assert pipelined.attrs == {"pipeline_stages": 3}
    assert pipelined.loop_var.type == ScalarType(Index)
    (typed,) = statements(
        "for i in pl.range(pl.const(0, pl.INT64), n, pl.const(1, pl.INT64)):\n    a = i", N
    )
    assert isinstance(typed, ForStmt)
    assert typed.loop_var.type == ScalarType(Int64)


def test_a_loop_with_carried_values() -> None:
    before, loop, result = statements(
        "s0 = 0\nfor i, (s,) in pl.range(4, init_values=(s0,)):\n    s1 = pl.yield_(s + i)\nreturn s1"
    )
    assert isinstance(before, AssignStmt)
    assert isinstance(loop, ForStmt)
    (carried,), (after,) = loop.iter_args, loop.return_vars
    assert carried.init_value is before.var
    assert isinstance(result, ReturnStmt)
    assert result.value == (after,)


def test_a_carried_name_ends_with_its_loop_and_the_older_one_comes_back() -> None:
    text = "s = 5\nfor i, (s,) in pl.range(4, init_values=(0,)):\n    t = pl.yield_(s + 1)\nu = s"
    first, _, last = statements(text)
    assert isinstance(first, AssignStmt)
    assert isinstance(last, AssignStmt)
    assert last.value is first.var
    with pytest.raises(UndefinedVariableError, match="'s'"):
        statements(text.removeprefix("s = 5\n"))


def test_branches() -> None:
    stmt, after = statements(
        "if n > 0:\n    a = 1\nelif n == 0:\n    a = 2\nelse:\n    if n < 5:\n        a = 3\n    else:\n        a = 4\nb = a",
        N,
    )
    assert isinstance(stmt, IfStmt)
    assert isinstance(stmt.else_body, IfStmt)
    assert isinstance(stmt.then_body, AssignStmt)
    assert isinstance(after, AssignStmt)
    assert after.value is stmt.then_body.var  # one variable in all branches


def test_a_while_loop_and_empty_bodies() -> None:
    loop, branch = statements("while n > 4:\n    break\nif n > 0:\n    pass", N)
    assert isinstance(loop, WhileStmt)
    assert isinstance(branch, IfStmt)
    assert branch.else_body is None
    assert isinstance(branch.then_body, SeqStmts)
    assert branch.then_body.stmts == ()


def test_a_call_may_stand_alone_and_strings_are_comments() -> None:
    stmts = statements('"A note."\npl.load(x, [0, 0], [16, 64])\n"Another."', X)
    assert len(stmts) == 1
    assert isinstance(stmts[0], EvalStmt)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y = pl.yield_(1)", "must end a branch of an if, or a loop"),
        ("if n > 0:\n    y = pl.yield_(1)\n    z = 2\nelse:\n    y = pl.yield_(1)", "must be the last statement"),
        ("for i, (s,) in pl.range(2, init_values=(0,)):\n    pl.yield_(s)", "must name what it hands on"),
        ("for i, (s,) in pl.range(2, init_values=(0,)):\n    t = pl.yield_(n > 0)", "yielded for 's' must be"),
        ("if n > 0:\n    y = pl.yield_(1)\nelse:\n    y = pl.yield_(1.5)", "from the else branch"),
        ("for i, (s,) in pl.range(2):\n    t = pl.yield_(s)", "as many init_values, not 0"),
        ("for i in pl.range(2, init_values=(0,)):\n    t = pl.yield_(i)", "0 values"),
        ("for i in pl.range(0, 4, 0):\n    a = i", "must not be 0"),
        ("for i in pl.range():\n    a = i", "1 to 3 bounds, not 0"),
        ("for i in pl.range(1.5):\n    a = i", "must be integers"),
        ("for i, j in pl.range(4):\n    a = i", "must be written for i in"),
        ("for i in pl.pipeline(0, 8, n, stage=2):\n    a = i", "must be a constant"),
        ("for i in pl.pipeline(8, stage=0):\n    a = i", "constant of 1 or more, not 0"),
        ("for i in pl.range(4):\n    a = i\nelse:\n    a = 1", "else after a loop"),
        ("for (x,) in pl.while_(init_values=(0,)):\n    y = pl.yield_(x)", "must begin with pl.cond"),
        ("a = b = 1", "chained assignment"),
        ("a, b = 1, 2", "from a call with as many results"),
        ("x = n[0]", "must follow a tensor, a tile or a tuple"),
        ("x = n.load()", "has no methods"),
        ("x = (lambda: 1)()", "cannot be called in a kernel"),
        ("x = lambda: 1", "A lambda"),
        ("x = 1 if n > 0 else 2", "A conditional expression"),
        ("x = n ** 2", "is not part of this language"),
        ("x = n & 3", "is not part of this language"),
        ("x = pl.load", "must be called"),
        ("x = pl.range(4)", "must not stand here"),
        ("x = pl.min(n)", "must have two arguments, not 1"),
        ("x = pl.const(1.5, pl.INT32)", "must be a number of that kind"),
        ("x = pl.cast(n, 32)", "must be a dtype"),
        ("x = pl.cast(n, pl.MXFP4)", "dtype of one plane"),
        ("x = n / 2", "must have operands of kind float"),
        ("x = not n", "must have operands of kind bool"),
        ("x = self.g(n)", "has no function 'g'"),
        ("x = self", "must be used to call a function"),
        ("n = 1.5", "is assigned a second time"),
        ("global m", "is not part of this language"),
        ("def g():\n    pass", "A function inside a function"),
        ("assert n > 0", "is not part of this language"),
        ("import math", "import at the top"),
        ("pl.static_assert(n > 0)", "known when the kernel is parsed"),
        ("return n\nreturn n, n", "must return 1 value, not 2"),
        ("pl.func_attr(3)", "must have a dict"),
        ('pl.func_attr({"a": 1, "a": 2})', "each once"),
    ],
)  # fmt: skip
def test_what_the_language_refuses(body: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        statements(body, N)
    assert message in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.span is not None


def test_strict_ssa_allows_one_assignment_a_name() -> None:
    with pytest.raises(SSAViolationError, match="only once under strict_ssa"):
        function_of("a = 1\na = 2", strict_ssa="True")
    with pytest.raises(SSAViolationError):
        pl.parse(
            "@pl.program(strict_ssa=True)\nclass P:\n    @pl.function\n    def f(self):\n        a = 1\n        a = 2\n"
        )


def test_a_deep_expression_is_an_error_not_a_crash() -> None:
    chain = " + ".join(["n"] * 3000)
    with pytest.raises(ParserSyntaxError, match="nested too deeply"):
        statements(f"x = {chain}", N)
    assert isinstance(value_of(f"x = {' + '.join(['n'] * 129)}", N), Add)


def test_static_assert_leaves_nothing_behind() -> None:
    (only,) = statements("pl.static_assert(64 % 32 == 0, 'fits')\nreturn n", N)
    assert isinstance(only, ReturnStmt)


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("pl.Tensor[[64, 64], pl.FP32, pl.TensorView(layout=True)]", "layout of a view must be"),
        ("pl.Tensor[[64, 64], pl.FP32, pl.TensorView(stride=[1], layout=pl.ND)]", "2 elements"),
        ("pl.Tensor[[64, 64], pl.FP32, pl.TensorView(stride=[1, 64])]", "must name its layout"),
        ("pl.Tensor[[64, 64], pl.FP32, pl.TensorView(order=pl.ND)]", "the argument order="),
        ("pl.Tensor[[64, 64], pl.FP32, pl.ND, pl.ND]", "not a second one"),
        ("pl.Tensor[[64, 64], pl.FP32, pl.Mem.Mat]", "third slot must be a layout"),
        ("pl.Tensor[[64, 64], pl.FP32, pl.MemRef(3, 0, 1)]", "must hold a name and integers"),
        ("pl.Tensor[[64, 64]]", "must hold a shape and a dtype"),
        ("pl.Tensor[[64, 0], pl.FP32]", "must be positive, not 0"),
        ("pl.Tensor[[64, 1.5], pl.FP32]", "must be an integer"),
        ("pl.Tensor[[64, 64], pl.HF8]", "pl.HF8 is not part"),
        ("pl.Tensor[[64, 64], 32]", "must hold a dtype"),
        ("pl.Tensor", "must say more, in square brackets"),
        ("pl.DistributedTensor[[64], pl.FP32]", "is not part of this language"),
        ("pl.Tile[[64, 64], pl.FP32, pl.MemRef('m', 0, 4)]", "must name its memory"),
        ("pl.Tile[[64, 64], pl.FP32, pl.ND]", "each once, not pl.ND"),
        ("pl.Tile[[64, 64], pl.FP32, pl.Mem.Mat, pl.TileView(fractal='x')]", "fractal of a view"),
        ("pl.Tile[[64, 64], pl.FP32, pl.TileView(valid_shape=[1.5, 2])]", "list of integers"),
        ("pl.Scalar[pl.MXFP4]", "dtype of one plane"),
        ("pl.Scalar[pl.INDEX, pl.INDEX]", "must hold one dtype"),
        ("pl.Out[pl.Tensor[[4], pl.FP32], 3]", "must hold one type"),
        ("pl.Out[pl.Out[pl.Tensor[[4], pl.FP32]]]", "around the type of a parameter only"),
        ("'pl.Tensor'", "must be a type"),
        ("int", "must be a type"),
        ("pl.load", "must be a type"),
    ],
)
def test_what_an_annotation_must_not_be(annotation: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        function_of("return", f"x: {annotation}")
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.line == 2
