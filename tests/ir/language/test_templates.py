"""What the constants of a template decide: which arm of an if is read at all."""

import numpy as np
import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import Function, IfStmt, Program
from scalebox.ir.errors import ParserError
from scalebox.ir.interp import interpret_program
from scalebox.ir.printer import python_print
from scalebox.ir.verification.walk import statements

ZEROS = np.zeros((16, 64), np.float32)

HEAD = """
from scalebox.ir import language as pl

@pl.inline
def chosen(t, n, rows):
    {condition}
        t = pl.add(t, 1.0)
    else:
        t = pl.add(t, 2.0)
    return t

@pl.program
class Chooser:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX],
             out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        t = pl.load(x, [0, 0], [16, 64])
        t = chosen(t, n, {rows})
        out = pl.store(t, [0, 0], out)
        return out
"""


def program(condition: str, rows: int) -> Program:
    made = pl.parse(HEAD.format(condition=condition, rows=rows))
    assert isinstance(made, Program)
    return made


def branches(made: Program) -> list[IfStmt]:
    (function,) = made.functions.values()
    return [stmt for stmt in statements(function.body) if isinstance(stmt, IfStmt)]


@pytest.mark.parametrize(
    ("condition", "rows", "added"),
    [
        ("if rows > 8:", 16, 1.0),
        ("if rows > 8:", 8, 2.0),
        ("if rows > 8 and n == 3:", 8, 2.0),
        ("if n == 3 and rows > 8:", 8, 2.0),
        ("if rows > 8 or n == 3:", 16, 1.0),
        ("if rows > 8 and rows < 32:", 16, 1.0),
        ("if rows > 8 or rows < 4:", 8, 2.0),
        ("if (rows > 8 or n == 3) and rows < 4:", 16, 2.0),
    ],
)
def test_a_constant_condition_leaves_one_arm(condition: str, rows: int, added: float) -> None:
    made = program(condition, rows)
    assert not branches(made)
    out = interpret_program(made, {"x": ZEROS, "n": 3})["out"]
    assert (out == added).all()


@pytest.mark.parametrize(
    ("condition", "rows"),
    [("if rows > 8 and n == 3:", 16), ("if n == 3 or rows > 8:", 8), ("if n == 3:", 8)],
)
def test_what_constants_leave_open_stays_a_branch(condition: str, rows: int) -> None:
    made = program(condition, rows)
    (branch,) = branches(made)
    assert python_print(branch.condition) == "n == 3"
    for n, added in ((3, 1.0), (4, 2.0)):
        out = interpret_program(made, {"x": ZEROS, "n": n})["out"]
        assert (out == added).all()


def test_what_constants_rule_out_need_not_be_legal() -> None:
    text = HEAD.format(condition="if rows > 8:", rows=16).replace(
        "t = pl.add(t, 2.0)", "t = pl.slice(t, [rows - 16, 64], [0, 0])"
    )
    assert pl.parse(text)
    with pytest.raises(ParserError):
        pl.parse(text.replace("rows > 8", "n > 8"))


def test_an_if_whose_arms_name_a_result_stays() -> None:
    text = HEAD.format(condition="if rows > 8:", rows=16)
    text = text.replace("t = pl.add(t, 1.0)", "t = pl.yield_(pl.add(t, 1.0))")
    text = text.replace("t = pl.add(t, 2.0)", "t = pl.yield_(pl.add(t, 2.0))")
    made = pl.parse(text)
    assert isinstance(made, Program)
    assert len(branches(made)) == 1


def test_outside_of_a_template_a_constant_condition_is_a_branch() -> None:
    text = """
ROWS = 16

@pl.function(type=pl.FunctionType.InCore)
def main(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    if ROWS > 8:
        out = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)
    return out
"""
    made = pl.parse(text)
    assert isinstance(made, Function)
    assert len(branches(Program([made]))) == 1
