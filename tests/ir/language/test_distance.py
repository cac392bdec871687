"""How far apart two ends of a window are: constants, whatever the variables in them."""

import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import AssignStmt, Program, flatten_to_stmts
from scalebox.ir.dtypes import DType, Int64, UInt64
from scalebox.ir.errors import ParserTypeError
from scalebox.ir.expr import Cast, ScalarType, Var, index
from scalebox.ir.language.distance import constant_distance
from scalebox.ir.types import TensorType, constant_dims

KERNEL = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[64, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
          i: pl.Scalar[pl.INDEX], j: pl.Scalar[pl.INDEX]):
        w = x[{window}, :]
        o[:, :] = w
        return o
"""


@pytest.mark.parametrize(
    "window",
    [
        "i:i + 16",
        "i + 1:i + 17",
        "i * 16:(i + 1) * 16",
        "16 * i - 16:i * 16",
        "48 - 16 * i:64 - 16 * i",
        "i * 8 + j:j + 8 * (i + 2)",
        "i // 2 + j:(j + i // 2) + 16",
        "i * j:16 + i * j",
    ],
)
def test_a_window_is_as_long_as_its_ends_are_apart(window: str) -> None:
    made = pl.parse(KERNEL.format(window=window))
    assert isinstance(made, Program)
    (function,) = made.functions.values()
    cut = flatten_to_stmts(function.body)[0]
    assert isinstance(cut, AssignStmt)
    assert isinstance(cut.var.type, TensorType)
    assert constant_dims(cut.var.type.shape) == (16, 32)


@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "INT32", "UINT32", "INT64"])
@pytest.mark.parametrize("window", ["i:i + 16", "i - 1:15 + i"])
def test_a_narrower_variable_counts_as_itself_where_it_is_widened(window: str, dtype: str) -> None:
    made = pl.parse(
        KERNEL.format(window=window).replace("i: pl.Scalar[pl.INDEX", f"i: pl.Scalar[pl.{dtype}")
    )
    assert isinstance(made, Program)
    (function,) = made.functions.values()
    cut = flatten_to_stmts(function.body)[0]
    assert isinstance(cut, AssignStmt)
    assert isinstance(cut.var.type, TensorType)
    assert constant_dims(cut.var.type.shape) == (16, 32)


def test_a_cast_that_changes_values_is_another_variable() -> None:
    n = Var("n", ScalarType(DType.Int32))
    for dtype, distance in ((Int64, 0), (DType.Int8, None), (UInt64, None)):
        assert constant_distance(Cast(n, dtype), n) == distance


@pytest.mark.parametrize("window", ["i:j + 16", "i:2 * i", "i:i // 2 + 16", "i * j:i + 16"])
def test_ends_whose_variables_do_not_cancel_are_refused(window: str) -> None:
    with pytest.raises(ParserTypeError, match="must have a constant extent"):
        pl.parse(KERNEL.format(window=window))


def test_the_distance_of_constants_may_be_anything() -> None:
    assert constant_distance(index(3), index(7)) == -4
