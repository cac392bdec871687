"""Dimensions that a launch decides."""

from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.errors import InputError, IRValueError
from scalebox.ir.interp import interpret_program
from scalebox.ir.passes import run_verifier
from scalebox.ir.printer import python_print
from scalebox.ir.structural import first_difference

TEXT = """
M = pl.dynamic("M")
N = pl.dynamic("N")

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def add(self, a: pl.Tensor[[M, N], pl.FP32], b: pl.Tensor[[2 * M, N], pl.FP32],
            c: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
        for i in pl.range(0, M, 16):
            x = pl.load(a, [i, 0], [16, 64], valid_shape=[pl.min(16, M - i), N])
            y = pl.load(b, [M + i, 0], [16, 64], valid_shape=[pl.min(16, M - i), N])
            c = pl.store(pl.add(x, y), [i, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[M, N], pl.FP32], b: pl.Tensor[[M * 2, N], pl.FP32],
             c: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
        c = self.add(a, b, c)
        return c
"""


@pytest.fixture(name="program")
def _program() -> Program:
    made = pl.parse(TEXT)
    assert isinstance(made, Program)
    return made


def draw(m: int, n: int, *, more: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((m, n)), rng.standard_normal((2 * m + more, n))
    return {"a": a.astype(np.float32), "b": b.astype(np.float32)}


@pytest.mark.parametrize(("m", "n"), [(16, 64), (1, 1), (50, 33)])
def test_one_program_runs_on_arrays_of_any_size(program: Program, m: int, n: int) -> None:
    given = draw(m, n)
    found = interpret_program(program, given)["c"]
    assert (found == given["a"] + given["b"][m:]).all()


def test_the_text_names_the_dimensions_and_reads_back(program: Program) -> None:
    text = python_print(program)
    assert 'M = pl.dynamic("M")\nN = pl.dynamic("N")\n\n\n@pl.program' in text
    again = pl.parse(text)
    assert isinstance(again, Program)
    assert first_difference(program, again) is None
    run_verifier()(program)


def test_a_function_alone_names_them_too(program: Program) -> None:
    function = program.get_function("add")
    assert function is not None
    again = pl.parse(python_print(function))
    assert first_difference(function, again) is None


def test_a_variable_of_that_name_gets_another_one() -> None:
    made = pl.parse(
        """
size = pl.dynamic("n")

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[size, 8], pl.FP32], c: pl.Out[pl.Tensor[[size, 8], pl.FP32]]):
        n = size - 1
        c = pl.store(pl.load(a, [n, 0], [1, 8]), [n, 0], c)
        return c
"""
    )
    assert isinstance(made, Program)
    again = pl.parse(python_print(made))
    assert isinstance(again, Program)
    assert first_difference(made, again) is None
    found = interpret_program(again, {"a": np.ones((5, 8), np.float32)})["c"]
    assert found.sum(axis=1).tolist() == [0, 0, 0, 0, 8]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {**draw(4, 8), "b": np.zeros((8, 9), np.float32)},
            "The dimension 'N' must be 8, as in 'a', not 9 in 'b'",
        ),
        (
            {"b": np.zeros((8, 9), np.float32)},
            "The dimension 'M' must be an extent of an array that is given, but none has it",
        ),
        (
            {**draw(4, 8), "a": np.zeros(8, np.float32)},
            "a must be an array of rank 2, which has the dimension 'M', not of rank 1",
        ),
        (
            {**draw(4, 8), "a": np.zeros((0, 8), np.float32)},
            "The dimension 'M' must be a positive integer, not 0 in 'a'",
        ),
    ],
)
def test_extents_that_do_not_agree_are_refused(
    program: Program, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        interpret_program(program, given)
    assert caught.value.message == message


def test_what_is_made_of_a_dimension_is_checked_like_any_extent(program: Program) -> None:
    with pytest.raises(InputError, match=r"b.*\[8, 8\]"):
        interpret_program(program, draw(4, 8, more=1))


def test_compile_refuses_it_and_says_how_to_give_it() -> None:
    made = pl.parse(TEXT.replace("pl.store(pl.add(x, y)", "pl.store(x"))
    assert isinstance(made, Program)
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(made)
    assert caught.value.message == (
        "All dimensions must be constant to be compiled, but 'M' is a dynamic one"
    )
    assert caught.value.hint == (
        'scalebox.run binds it from its inputs; bind={"M": 64} gives it, on the command line '
        "--param M=64"
    )


@pytest.mark.parametrize("name", ["", "2m", "a b", 3])
def test_a_dimension_has_the_name_of_a_variable(name: Any) -> None:
    with pytest.raises(IRValueError) as caught:
        pl.dynamic(name)
    assert caught.value.message == (
        f"The name of a dynamic dimension must be an identifier, not {name!r}"
    )
