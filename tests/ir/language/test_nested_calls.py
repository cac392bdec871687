"""Calls within calls: an operand is parsed once, however deep it lies."""

import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.expr import Call
from scalebox.ir.verification.walk import all_calls

LEVELS = 20
"""Each with three calls: 2^60 parses of the innermost operand, if a call read its first one twice."""


@pytest.mark.parametrize("outer", ["pl.neg({})", "pl.neg(x={})"], ids=["position", "keyword"])
def test_an_operand_that_decides_on_the_op_is_parsed_once(outer: str) -> None:
    expression = "x"
    for _ in range(LEVELS):
        expression = outer.format(f"pl.cast(pl.cast({expression}, pl.FP16), pl.FP32)")
    program = pl.parse(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[16, 16], pl.FP32], c: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        x = pl.load(a, [0, 0], [16, 16])
        c = pl.store({expression}, [0, 0], c)
        return c
""")
    assert isinstance(program, Program)
    (function,) = program.functions.values()
    found = [call.op.name for call in all_calls(function) if isinstance(call, Call)]
    assert found.count("tile.neg") == LEVELS
    assert found.count("tile.cast") == 2 * LEVELS
