"""Functions of type Inline: expanded where they are called, with variables of their own."""

import numpy as np
import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import Function, FunctionType, Program, ReturnStmt
from scalebox.ir.errors import IRValueError
from scalebox.ir.expr import Call, GlobalVar, Var, replace
from scalebox.ir.passes import inline_functions
from scalebox.ir.verification.walk import all_calls, statements

HEAD = "@pl.program\nclass P:\n"
TILE = "pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec]"
KERNEL = """
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        x = pl.load(a, [0, 0], [16, 32], target_memory=pl.Mem.Vec)
        x = {call}
        o = pl.store(x, [0, 0], o)
        return o
"""


def program(inline: str, call: str) -> Program:
    made = pl.parse(HEAD + inline + KERNEL.format(call=call))
    assert isinstance(made, Program)
    return made


def inline(name: str, params: str, *lines: str) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    decorator = "    @pl.function(type=pl.FunctionType.Inline)\n"
    return f"{decorator}    def {name}(self, {params}):\n{body}"


TWICE = inline("twice", f"t: {TILE}", "u = pl.add(t, t)", "return u")


def test_no_call_and_no_such_function_is_left() -> None:
    done = inline_functions()(program(TWICE, "self.twice(self.twice(x))"))
    assert [function.name for function in done.functions.values()] == ["k"]
    function = done.get_function("k")
    assert function is not None
    assert not [call for call in all_calls(function) if isinstance(call.op, GlobalVar)]
    assert inline_functions()(done) is done


@pytest.mark.parametrize(
    ("text", "call", "factor"),
    [
        (TWICE, "self.twice(x)", 2),
        (TWICE, "pl.add(self.twice(x), self.twice(self.twice(x)))", 6),
        (  # a parameter that is assigned again is a variable of its own
            inline("f", f"t: {TILE}, n: pl.Scalar[pl.INDEX]", "n = n + 1", "t = pl.mul(t, 3.0)",
                   "for i in pl.range(n):", "    t = pl.add(t, t)", "return t"),
            "self.f(x, 1)", 12,
        ),
        (TWICE + inline("f", f"t: {TILE}", "return self.twice(t)"), "self.f(x)", 2),
    ],
)  # fmt: skip
def test_the_kernel_computes_what_the_function_did(text: str, call: str, factor: int) -> None:
    made = program(text, call)
    a = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    for found in (
        scalebox.interpret(made, {"a": a}),
        scalebox.interpret(inline_functions()(made), {"a": a}),
        scalebox.run(made, {"a": a}, timing=False).outputs,
    ):
        np.testing.assert_array_equal(found["o"], factor * a)


def test_a_program_of_such_functions_alone_is_left_as_it_is() -> None:
    made = pl.parse(HEAD + TWICE)
    assert isinstance(made, Program)
    assert inline_functions()(made) is made


def refusal(made: Program) -> IRValueError:
    with pytest.raises(IRValueError) as caught:
        inline_functions()(made)
    assert caught.value.span is not None
    return caught.value


def test_a_function_must_not_call_itself_through_others() -> None:
    decorator = "    @pl.function(type=pl.FunctionType.Inline)\n"
    text = "".join(
        f"{decorator}    def {name}(self, t: {TILE}) -> {TILE}:\n        return self.{other}(t)\n"
        for name, other in ("fg", "gf")
    )
    error = refusal(program(text, "self.f(x)"))
    assert error.message.endswith(
        "must not call itself, neither here nor through others, to be expanded"
    )
    assert error.hint == "a loop repeats statements"


def test_a_function_must_return_once_at_its_end() -> None:
    text = inline(
        "f", f"t: {TILE}, n: pl.Scalar[pl.INDEX]", "if n > 0:", "    return t", "return pl.neg(t)"
    )
    assert refusal(program(text, "self.f(x, 1)")).message == (
        "'f' must return once, at its end, to be expanded where it is called"
    )


def test_the_condition_of_a_loop_must_not_call() -> None:
    made = pl.parse(
        HEAD + inline("f", "n: pl.Scalar[pl.INDEX]", "return n < 4")
        + "    @pl.function(type=pl.FunctionType.InCore)\n"
        "    def k(self, n: pl.Scalar[pl.INDEX]):\n"
        "        while self.f(n):\n            n = n + 1\n        return n\n"
    )  # fmt: skip
    assert isinstance(made, Program)
    assert refusal(made).message.startswith("'f' must not be called in the condition of a loop")


def test_a_call_with_too_few_arguments_is_refused() -> None:
    made = program(TWICE, "self.twice(x)")
    functions = list(made.functions.values())

    def shortened(function: Function) -> Function:
        calls = [call for call in all_calls(function) if call.op.name == "twice"]
        stmts = [s for s in statements(function.body) if getattr(s, "value", None) in calls]
        if not stmts:
            return function
        (stmt,) = stmts
        call = getattr(stmt, "value", None)
        assert isinstance(call, Call)
        body = replace(function.body, stmts=tuple(
            replace(s, value=replace(call, args=())) if s is stmt else s
            for s in getattr(function.body, "stmts", ())
        ))  # fmt: skip
        return replace(function, body=body)

    assert refusal(Program(map(shortened, functions), "P")).message == (
        "'twice' must be called with 1 arguments, not 0"
    )


def test_the_only_other_function_is_the_entry() -> None:
    made = program(TWICE, "self.twice(x)")
    kinds = {function.func_type for function in made.functions.values()}
    assert kinds == {FunctionType.Inline, FunctionType.InCore}
    assert scalebox.run(made, {"a": np.ones((16, 32), np.float32)}).entry == "k"


def test_a_body_may_be_empty() -> None:
    body = ReturnStmt(())
    nothing = Function(
        "nothing", [Var("x", pl.dynamic("M").type)], [], body, type=FunctionType.Inline
    )
    kernel = program(TWICE, "self.twice(x)").get_function("k")
    assert kernel is not None
    done = inline_functions()(Program([nothing, kernel], "P"))
    assert [function.name for function in done.functions.values()] == ["k"]
