"""Which parameter a returned tensor is: through stores, views, loops, branches, regions and calls."""

import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.tensor_roots import returned_params

TEXT = """
from scalebox.ir import language as pl
T = pl.Tensor[[16, 32], pl.FP32]
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def swap(self, x: pl.Out[T], y: pl.Out[T]) -> pl.Tuple[T, T]:
        return y, x

    @pl.function(type=pl.FunctionType.Spmd)
    def grid(self, x: pl.Out[T], y: pl.Out[T]) -> pl.Tuple[T, T]:
        with pl.spmd(2):
            x, y = self.swap(x, y)
        return x, y

    @pl.function(type=pl.FunctionType.Orchestration)
    def f(self, n: pl.Scalar[pl.INDEX], x: pl.Out[T], y: pl.Out[T], s: pl.Tensor[[1, 32], pl.FP32]):
"""


@pytest.mark.parametrize(
    ("lines", "numbers"),
    [
        (["return y, x"], (2, 1)),
        (["z = y", "return z"], (2,)),
        (["z = pl.tensor.view(x, [1, 512])", "return z"], (1,)),
        (["z = pl.create_tensor([16, 32], dtype=pl.FP32)", "return z, x"], (None, 1)),
        (
            ["for i, (z,) in pl.range(n, init_values=(y,)):", "    w = pl.yield_(z)", "return w"],
            (2,),
        ),
        (["if n > 0:", "    w = pl.yield_(x)", "else:", "    w = pl.yield_(x)", "return w"], (1,)),
        (["a, b = self.swap(x, y)", "return a, b"], (2, 1)),
        (["a, b = self.grid(x, y)", "return b"], (1,)),
        (["(a, b), t = pl.submit(self.grid, y, x)", "return a, b"], (1, 2)),
        (["return n"], (None,)),
    ],
)
def test_a_returned_tensor_is_traced_to_the_parameter_that_it_is(
    lines: list[str], numbers: tuple[int | None, ...]
) -> None:
    made = pl.parse(TEXT + "".join(f"        {line}\n" for line in lines))
    assert isinstance(made, Program)
    function = made.get_function("f")
    assert function is not None
    assert returned_params(function, made) == numbers


def test_without_the_program_a_call_is_not_followed() -> None:
    made = pl.parse(TEXT + "        a, b = self.swap(x, y)\n        return a, y\n")
    assert isinstance(made, Program)
    function = made.get_function("f")
    assert function is not None
    assert returned_params(function) == (None, 2)


def test_functions_that_call_each_other_come_to_an_end() -> None:
    made = pl.parse("""
from scalebox.ir import language as pl
T = pl.Tensor[[16, 32], pl.FP32]
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def f(self, x: pl.Out[T]) -> T:
        y = self.f(x)
        return y
""")
    assert isinstance(made, Program)
    function = made.get_function("f")
    assert function is not None
    assert returned_params(function, made) == (None,)
