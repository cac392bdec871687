"""How a program uses tensors of compound dtypes: which axis is grouped, and what cannot be."""

from typing import Any

import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import (
    AssignStmt,
    EvalStmt,
    Function,
    ParamDirection,
    Program,
    ReturnStmt,
    SeqStmts,
    Stmt,
)
from scalebox.ir.dtypes import DType
from scalebox.ir.errors import IRValueError, ParserTypeError, Span, VerificationError
from scalebox.ir.expr import Call, Expr, GlobalVar, MakeTuple, Op, Type, Var
from scalebox.ir.mx_types import Side
from scalebox.ir.mx_uses import CompoundUses, Use, compound_params
from scalebox.ir.ops import create_op_call
from scalebox.ir.passes import convert_to_ssa, run_verifier
from scalebox.ir.properties import STRUCTURAL, IRProperty
from scalebox.ir.types import MemorySpace, TensorLayout, TensorType, TensorView, TileType, TupleType
from scalebox.ir.verifier import verify

MX = DType.MXFP8_E4M3
SQUARE = TensorType([64, 64], MX)
SPAN = Span("k.py", 3, 5)
HEAD = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def multiply(self, x: pl.Tensor[[64, 64], pl.MXFP8_E4M3], y: pl.Tensor[[64, 64], pl.MXFP8_E4M3]):
        z = pl.matmul(x, y)
        return z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[64, 64], pl.MXFP8_E4M3], b: pl.Tensor[[64, 64], pl.MXFP8_E4M3],
             c: pl.Tensor[[64, 64], pl.MXFP8_E4M3], n: pl.Scalar[pl.INDEX]):
"""


def program(*lines: str) -> Program:
    made = pl.parse(HEAD + "".join(f"        {line}\n" for line in lines))
    assert isinstance(made, Program)
    return made


def axes(made: Program, name: str = "main") -> dict[str, int]:
    function = made.get_function(name)
    assert function is not None
    found = CompoundUses(made).grouped_axes(function)
    return {var.name_hint: axis for var, axis in found.items()}


class TestAxes:
    """The grouped axis follows from use: the last one on the left, the first one on the right."""

    def test_a_matmul(self) -> None:
        made = program("d = pl.matmul(b, a)", "return d")
        assert axes(made) == {"b": 1, "a": 0}
        assert axes(made, "multiply") == {"x": 1, "y": 0}

    def test_a_call(self) -> None:
        assert axes(program("d = self.multiply(c, a)", "return d")) == {"c": 1, "a": 0}

    def test_another_name(self) -> None:
        made = program("d = a", "e = d", "f = pl.matmul(e, b)", "return f")
        assert axes(made) == {"a": 1, "b": 0}
        assert axes(convert_to_ssa()(made)) == {"a": 1, "b": 0}

    def test_branches_and_loops(self) -> None:
        lines = (
            "if n > 0:",
            "    d = a",
            "else:",
            "    d = b",
            "e = pl.matmul(a, c)",
            "for i in pl.range(3):",
            "    e = pl.matmul(d, c)",
            "return e",
        )
        made = program(*lines)
        assert axes(made) == {"a": 1, "b": 1, "c": 0}
        assert axes(convert_to_ssa()(made)) == {"a": 1, "b": 1, "c": 0}

    def test_what_a_loop_carries(self) -> None:
        made = program(
            "for i, (s, t) in pl.range(3, init_values=(a, b)):",
            "    u, v = pl.yield_(s, c)",
            "d = pl.matmul(v, u)",
            "return d",
        )
        assert axes(made) == {"a": 0, "b": 1, "c": 1}

    def test_no_use_is_no_axis(self) -> None:
        made = program("return n")
        assert axes(made) == {}
        function = made.get_function("main")
        assert function is not None
        assert [p.name_hint for p in compound_params(function)] == ["a", "b", "c"]

    def test_the_same_side_twice_is_no_conflict(self) -> None:
        made = program("d = pl.matmul(a, b)", "e = self.multiply(a, c)", "return d, e")
        assert axes(made) == {"a": 1, "b": 0, "c": 0}

    def test_uses_are_seen_where_the_function_has_them(self) -> None:
        made = program("d = self.multiply(a, b)", "return d")
        function = made.get_function("main")
        assert function is not None
        body = function.body
        assert isinstance(body, SeqStmts)
        call = body.stmts[0]
        assert isinstance(call, AssignStmt)
        assert CompoundUses(made).uses(function.params[0]) == [Use(Side.LEFT, call.value.span)]


class TestConflicts:
    @pytest.mark.parametrize(
        "lines",
        [
            ("d = pl.matmul(a, a)", "return d"),
            ("d = pl.matmul(a, b)", "e = pl.matmul(b, c)", "return d, e"),
            ("d = self.multiply(a, a)", "return d"),
            ("d = self.multiply(a, b)", "e = pl.matmul(c, a)", "return d, e"),
            ("x = a", "d = pl.matmul(x, b)", "y = a", "e = pl.matmul(c, y)", "return d, e"),
            (
                "for i, (s,) in pl.range(2, init_values=(a,)):",
                "    t = pl.yield_(b)",
                "d = pl.matmul(t, b)",
                "return d",
            ),
        ],
    )
    def test_both_sides_are_refused(self, lines: tuple[str, ...]) -> None:
        with pytest.raises(ParserTypeError, match="must be used on one side of matmuls") as caught:
            program(*lines)
        assert caught.value.hint == "make it two parameters, one quantized along each axis"

    def test_the_error_names_the_other_place(self) -> None:
        with pytest.raises(ParserTypeError) as caught:
            program("d = pl.matmul(a, b)", "e = self.multiply(c, a)", "return d, e")
        error = caught.value
        assert error.message == (
            "'a' must be used on one side of matmuls, which decides the axis of its groups, not as "
            "left and as right operand"
        )
        assert error.span is not None
        assert error.note is not None
        assert error.note.startswith("it is the left operand at ")
        assert "e = self.multiply(c, a)" in error.render()

    def test_a_conflict_is_told_once_in_the_function_that_has_it(self) -> None:
        x, a = Var("x", SQUARE, SPAN), Var("a", SQUARE, SPAN)
        product = create_op_call("tensor.matmul", [x, x], {}, SPAN)
        inner = Function("inner", [x], [], AssignStmt(Var("z", product.type), product), SPAN)
        outer = Function("outer", [a], [], EvalStmt(Call(GlobalVar("inner"), [a], SPAN)), SPAN)
        made = Program([inner, outer])
        found = [d.message for d in verify(made, [IRProperty.TypeChecked])]
        assert len(found) == 1
        assert found[0].startswith("'x' must be used on one side")
        with pytest.raises(IRValueError, match=r"^'a' must be used on one side"):
            CompoundUses(made).grouped_axes(outer)


def raw(
    *stmts: Stmt,
    params: list[Any],
    returns: tuple[Type, ...] = (),
) -> list[tuple[int, str]]:
    """Return what the verifier finds in a function made of nodes."""
    body = stmts[0] if len(stmts) == 1 else SeqStmts(stmts, SPAN)
    made = Program([Function("f", params, returns, body, SPAN)])
    return [(d.error_code, d.message) for d in verify(made, STRUCTURAL)]


def let(name: str, value: Expr) -> AssignStmt:
    return AssignStmt(Var(name, value.type, SPAN), value, SPAN)


class TestVerifier:
    """Node by node, what the language would have refused."""

    A, B = Var("a", SQUARE, SPAN), Var("b", TensorType([64, 32], DType.MXFP4), SPAN)

    def test_a_good_program(self) -> None:
        made = program("d = self.multiply(a, b)", "e = pl.matmul(a, c)", "return d, e")
        assert verify(made, STRUCTURAL) == []
        assert run_verifier()(made) is made
        assert verify(convert_to_ssa()(made), [*STRUCTURAL, IRProperty.SSAForm]) == []

    def test_a_tile(self) -> None:
        tile = Var("t", TileType([64, 64], MX, None, None, MemorySpace.Mat), SPAN)
        assert raw(ReturnStmt((), SPAN), params=[tile]) == [
            (112, "'t' must be of a simple dtype as every tile is, not of MXFP8_E4M3")
        ]

    def test_an_output(self) -> None:
        out = (Var("o", SQUARE, SPAN), ParamDirection.Out)
        assert raw(ReturnStmt((), SPAN), params=[out]) == [
            (112, "'o' must be of a simple dtype to be written, not of MXFP8_E4M3")
        ]

    def test_a_result(self) -> None:
        found = raw(ReturnStmt((self.A,), SPAN), params=[self.A], returns=(SQUARE,))
        assert found == [(112, "'f' must return tensors of simple dtypes, not of MXFP8_E4M3")]

    def test_a_tuple(self) -> None:
        pair = let("p", MakeTuple((self.A, self.A), SPAN))
        assert isinstance(pair.var.type, TupleType)
        assert raw(pair, params=[self.A]) == [
            (112, "'p' must hold no tensor of MXFP8_E4M3 in a tuple")
        ]

    @pytest.mark.parametrize(
        ("view", "found"),
        [
            (TensorView(layout=TensorLayout.MX_A_ZZ), "in MX_A_ZZ"),
            (TensorView([1, 64], TensorLayout.DN), "in DN"),
            (TensorView([128, 1], TensorLayout.ND), "of stride [128, 1]"),
            (TensorView(None, TensorLayout.ND, [64, 32]), "valid in [64, 32] only"),
        ],
    )
    def test_a_view_in_which_blocks_do_not_follow_one_another(
        self, view: TensorView, found: str
    ) -> None:
        placed = Var("a", TensorType([64, 64], MX, None, view), SPAN)
        sentence = (
            "must be row-major, packed and valid as a whole, as blocks of MXFP8_E4M3 are contiguous "
            f"along K, not {found}"
        )
        assert raw(ReturnStmt((), SPAN), params=[placed]) == [(112, f"'a' {sentence}")]
        with pytest.raises(IRValueError) as caught:
            create_op_call("tensor.matmul", [placed, self.B], {}, SPAN)
        assert caught.value.message == f"tensor.matmul: lhs {sentence}"

    def test_the_packed_strides_that_a_pass_writes_down(self) -> None:
        view = TensorView([64, 1], TensorLayout.ND)
        placed = Var("a", TensorType([64, 64], MX, None, view), SPAN)
        product = let("c", create_op_call("tensor.matmul", [placed, self.B], {}, SPAN))
        assert raw(product, params=[placed, self.B]) == []

    def test_a_k_that_is_not_made_of_blocks(self) -> None:
        a, b = (Var(n, TensorType(s, MX), SPAN) for n, s in (("a", [64, 48]), ("b", [48, 32])))
        call = Call(Op("tensor.matmul"), [a, b], TensorType([64, 32], DType.Float32), SPAN)
        sentence = "K must be a multiple of 32, the elements of a block of MXFP8_E4M3, not 48"
        assert raw(let("c", call), params=[a, b]) == [(110, f"tensor.matmul: {sentence}")]

    def test_an_op_that_cannot_take_it(self) -> None:
        plain = Var("a", TensorType([64, 64], DType.E4M3), SPAN)
        load = create_op_call("tile.load", [plain, [0, 0], [64, 64]], {}, SPAN)
        call = Call(Op("tile.load"), [self.A, *load.args[1:]], load.type, SPAN)
        assert raw(let("t", call), params=[self.A]) == [
            (
                110,
                "tile.load: tensor must be of a simple dtype, not of MXFP8_E4M3, of which only "
                "pl.matmul and pl.slice take tensors",
            )
        ]

    def test_a_result_of_another_dtype(self) -> None:
        call = Call(Op("tensor.matmul"), [self.A, self.B], TensorType([64, 32], DType.Int32), SPAN)
        assert raw(let("c", call), params=[self.A, self.B]) == [
            (102, "tensor.matmul must give a tensor of Float32, not of Int32")
        ]

    def test_the_report_is_an_error_of_the_users(self) -> None:
        out = (Var("o", SQUARE, SPAN), ParamDirection.InOut)
        made = Program([Function("f", [out], (), ReturnStmt((), SPAN), SPAN)])
        with pytest.raises(VerificationError, match="must be of a simple dtype to be written"):
            run_verifier()(made)

    def test_whole_tensors_are_gone_once_a_kernel_works_on_tiles(self) -> None:
        made = program("d = self.multiply(a, b)", "return d")
        found = verify(made, [IRProperty.IncoreTileOps])
        assert [d.message for d in found] == [
            "multiply must work on tiles, not on whole tensors by tensor.matmul"
        ]
