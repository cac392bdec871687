"""Raw IR with launches that are none: compiled, interpreted, verified or printed, an error names the node."""

from collections.abc import Callable
from typing import Any

import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import InCoreScopeStmt, Program, ScopeStmt, SpmdScopeStmt
from scalebox.ir.dtypes import DType, Index
from scalebox.ir.errors import IRTypeError, IRValueError, Span
from scalebox.ir.expr import (
    ConstFloat,
    MakeTuple,
    ScalarType,
    Submit,
    Var,
    index,
    set_fields,
)
from scalebox.ir.printer import python_print
from scalebox.ir.properties import IRProperty
from scalebox.ir.verification.walk import all_calls, statements
from scalebox.ir.verifier import verify

SPAN = Span.unknown()
FREE = Var("free", ScalarType(Index), SPAN)
TEXT = """
from scalebox.ir import language as pl
X = pl.Tensor[[64, 32], pl.FP32]
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def block(self, x: X, out: pl.InOut[X]):
        i = pl.get_block_idx()
        out = pl.store(pl.load(x, [i * 16, 0], [16, 32]), [i * 16, 0], out)
        return out

    @pl.function
    def main(self, x: X, out: pl.InOut[X], n: pl.Scalar[pl.INDEX]):
        out, t = pl.spmd_submit(self.block, x, out, core_num=n, predicate=n > 1)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[t]) as u:
            out = pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], out)
        for i in pl.spmd(2):
            out = pl.store(pl.load(x, [i * 16, 0], [16, 32]), [i * 16, 0], out)
        return out
"""


def broken(kind: type[Submit | ScopeStmt], name: str, value: Any) -> Program:
    made = pl.parse(TEXT)
    assert isinstance(made, Program)
    (main,) = (f for f in made.functions.values() if f.name == "main")
    launches = [*all_calls(main), *statements(main.body)]
    launch = next(each for each in launches if type(each) is kind)
    set_fields(launch, **{name: value})
    return made


def interpreted(program: Program) -> object:
    return scalebox.interpret(program, {}, entry="main")


def verified(program: Program) -> object:
    return verify(program, IRProperty)


USES: list[Callable[[Program], object]] = [scalebox.compile, interpreted, verified, python_print]
FIELDS: list[tuple[type[Submit | ScopeStmt], str, Any, str]] = [
    (InCoreScopeStmt, "body", None, "body of an InCoreScopeStmt must be Stmt, not None"),
    (InCoreScopeStmt, "body", FREE, "body of an InCoreScopeStmt must be Stmt, not Var"),
    (
        InCoreScopeStmt,
        "task_id",
        index(3),
        "task_id of an InCoreScopeStmt must be Var, not ConstInt",
    ),
    (InCoreScopeStmt, "deps", [FREE], "deps of an InCoreScopeStmt must be a tuple, not list"),
    (InCoreScopeStmt, "deps", ("t",), "deps[0] of an InCoreScopeStmt must be Expr, not str"),
    (InCoreScopeStmt, "name_hint", 3, "name_hint of an InCoreScopeStmt must be a string, not int"),
    (SpmdScopeStmt, "core_num", 4, "core_num of a SpmdScopeStmt must be Expr, not int"),
    (SpmdScopeStmt, "dumps", (None,), "dumps[0] of a SpmdScopeStmt must be Expr, not None"),
    (
        SpmdScopeStmt,
        "sync_start",
        None,
        "sync_start of a SpmdScopeStmt must be True or False, not None",
    ),
    (Submit, "args", (1,), "args[0] of the Submit of block must be Expr, not int"),
    (Submit, "core_num", "n", "core_num of the Submit of block must be Expr, not str"),
    (Submit, "predicate", True, "predicate of the Submit of block must be Expr, not bool"),
    (Submit, "attrs", [], "attrs of the Submit of block must be a mapping, not list"),
    (Submit, "op", "block", "op of the Submit of nothing must be Op or GlobalVar, not str"),
]


@pytest.mark.parametrize(("kind", "name", "value", "message"), FIELDS)
@pytest.mark.parametrize("use", USES)
def test_a_field_of_a_launch_that_holds_something_else_is_named(
    use: Callable[[Program], object],
    kind: type[Submit | ScopeStmt],
    name: str,
    value: object,
    message: str,
) -> None:
    with pytest.raises(IRValueError) as caught:
        use(broken(kind, name, value))
    assert caught.value.message.startswith(message)
    assert caught.value.message.endswith("(in function main)")
    assert caught.value.span is not None
    assert caught.value.span.line in (14, 15, 17)


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        (InCoreScopeStmt, "deps", (FREE,), "A launch must depend on scalars of TASK_ID"),
        (
            InCoreScopeStmt,
            "task_id",
            FREE,
            "The name of a launch, 'free', must be a scalar of TASK_ID",
        ),
        (
            SpmdScopeStmt,
            "core_num",
            ConstFloat(2.0, DType.Float32, SPAN),
            "The number of blocks of a launch must be an integer scalar",
        ),
        (
            Submit,
            "core_num",
            MakeTuple((), SPAN),
            "The number of blocks of a launch must be an integer scalar",
        ),
        (
            Submit,
            "predicate",
            FREE,
            "The condition of 'predicate' must be a scalar of Bool, such as a comparison",
        ),
    ],
)
def test_a_launch_of_the_wrong_types_is_refused(
    kind: type[Submit | ScopeStmt], name: str, value: object, message: str
) -> None:
    for use in (scalebox.compile, interpreted):
        with pytest.raises(IRTypeError) as caught:
            use(broken(kind, name, value))
        assert caught.value.message == message
