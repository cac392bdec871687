"""Starting a program: which function, which inputs, which names come back."""

import subprocess
import sys

import numpy as np
import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import Function, FunctionType, Program, ReturnStmt, SeqStmts
from scalebox.ir.dtypes import DType, Index
from scalebox.ir.errors import InputError, IRTypeError, IRValueError, Span
from scalebox.ir.expr import Call, GlobalVar, ScalarType, Var, index
from scalebox.ir.interp import interpret_program, select_entry

INDEX = ScalarType(Index)
SPAN = Span("k.py", 2, 1)


def function(name: str, kind: FunctionType = FunctionType.Opaque) -> Function:
    n = Var("n", INDEX)
    return Function(name, [n], [INDEX], ReturnStmt((n,)), type=kind)


class TestEntry:
    def test_the_only_function_is_the_entry(self) -> None:
        assert select_entry(Program([function("f")])).name == "f"

    def test_the_only_orchestration_function_comes_first(self) -> None:
        program = Program(
            [function("f"), function("main", FunctionType.Orchestration), function("z")]
        )
        assert select_entry(program).name == "main"
        assert select_entry(program, "z").name == "z"

    def test_several_candidates_are_named(self) -> None:
        with pytest.raises(InputError) as caught:
            select_entry(Program([function("f"), function("g")]))
        assert caught.value.message == (
            "entry must be given when a program has not exactly one Orchestration function or one "
            "function, but 2"
        )
        assert caught.value.hint == "valid here: f, g"

    def test_an_unknown_entry_is_refused(self) -> None:
        with pytest.raises(InputError) as caught:
            select_entry(Program([function("gemm"), function("main")]), "gem")
        assert caught.value.message == "entry must name a function of the program, not 'gem'"
        assert caught.value.hint == "valid here: gemm"


class TestInputs:
    def test_a_missing_input_is_told_by_name(self) -> None:
        with pytest.raises(InputError, match=r"^n must be a scalar of Index, but"):
            interpret_program(Program([function("f")]), {})

    def test_an_unknown_order_of_summation_is_refused(self) -> None:
        expected = "^sum must be 'group' or 'sequential', not 'fast'$"
        with pytest.raises(IRValueError, match=expected):
            interpret_program(Program([function("f")]), {"n": 1}, sum="fast")

    def test_what_comes_in_and_goes_out_again_is_an_output(self) -> None:
        text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.InOut[pl.Tensor[[32, 16], pl.FP32]]):
        y = pl.store(pl.load(x, [0, 0], [16, 16]), [16, 0], y)
        return y
"""
        program = pl.parse(text)
        assert isinstance(program, Program)
        given = np.full((32, 16), 3, np.float32)
        outputs = interpret_program(program, {"x": np.ones((16, 16), np.float32), "y": given})
        assert list(outputs) == ["y"]
        assert (outputs["y"][:16] == 3).all()
        assert (outputs["y"][16:] == 1).all()
        assert (given == 3).all()


class TestCalls:
    @staticmethod
    def calling(call: Call) -> Program:
        n = Var("n", INDEX)
        main = Function("main", [n], [INDEX], ReturnStmt((call,)), type=FunctionType.Orchestration)
        return Program([main, function("f")])

    def test_a_call_gives_the_callees_result(self) -> None:
        program = self.calling(Call(GlobalVar("f"), [index(5)], INDEX, SPAN))
        assert interpret_program(program, {"n": 1})["out"].item() == 5

    def test_an_unknown_callee_is_told(self) -> None:
        with pytest.raises(IRValueError) as caught:
            interpret_program(self.calling(Call(GlobalVar("g"), [], INDEX, SPAN)), {"n": 1})
        assert caught.value.message == "'g' must name a function of the program"
        assert caught.value.span == SPAN

    def test_a_wrong_number_of_arguments_is_told(self) -> None:
        with pytest.raises(IRTypeError, match=r"^f takes 1 arguments, not 0"):
            interpret_program(self.calling(Call(GlobalVar("f"), [], INDEX, SPAN)), {"n": 1})

    def test_endless_recursion_is_told(self) -> None:
        program = self.calling(Call(GlobalVar("main"), [index(5)], INDEX, SPAN))
        expected = "^Calls must not nest deeper than 64, as those of main do"
        with pytest.raises(IRValueError, match=expected):
            interpret_program(program, {"n": 1})

    def test_a_function_without_results_gives_nothing(self) -> None:
        quiet = Function("quiet", [], [], SeqStmts(()))
        assert interpret_program(Program([quiet]), {}) == {}


def test_a_tile_cannot_be_returned() -> None:
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[16, 16], pl.FP32]):
        t = pl.load(x, [0, 0], [16, 16])
        return t
"""
    program = pl.parse(text)
    assert isinstance(program, Program)
    expected = "^A function that is launched must return tensors or scalars, not a tile"
    with pytest.raises(IRTypeError, match=expected):
        interpret_program(program, {"x": np.zeros((16, 16), np.float32)})


def test_scalars_come_back_in_their_own_type() -> None:
    x = Var("x", ScalarType(DType.Float32))
    done = interpret_program(Program([Function("f", [x], [x.type], ReturnStmt((x,)))]), {"x": 0.1})
    assert done["x"].dtype == np.float32
    assert done["x"] == np.float32(0.1)


def test_the_interpreter_compiles_nothing() -> None:
    code = (
        "import sys, scalebox.ir.interp, scalebox.ir.language; "
        "print([m for m in ('numba', 'amaranth') if m in sys.modules])"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout.strip() == "[]"
