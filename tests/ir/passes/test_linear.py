"""No pass takes more than its share of a longer program: calls are counted, not seconds."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from scalebox.ir.core import Program, Stmt
from scalebox.ir.expr import Add, Mul, index
from scalebox.ir.passes import default_pipeline
from scalebox.ir.passes.base import Pass

from .kernels import OPERANDS, kernel
from .parts import INDEX, assign, function, load, loop, program, scalar, scales


def loads(count: int) -> Program:
    """Loads of scales at offsets that have to be proved, each used by nobody."""
    s, i = scales("s", (1 << 20, 4)), scalar("i")
    row = assign("row", Mul(i, index(16), INDEX.dtype))
    body: list[Stmt] = [row]
    for number in range(count):
        offset = Add(row.var, index(16 * number), INDEX.dtype)
        body.append(assign(f"t{number}", load(s, [offset, 0])))
    return program(function("k", [s], loop(i, 0, 4, 1, *body)))


def sums(count: int) -> Program:
    """A chain of sums in one accumulator."""
    return kernel(OPERANDS + "x = pl.matmul_mx_acc(x, l, p, r, q)\n" * count)


def branches(count: int) -> Program:
    """Branches and loops one behind the other, each of which adds to the accumulator."""
    one = "if n > 0:\n    x = pl.matmul_mx_acc(x, l, p, r, q)\n"
    other = "for k in pl.range(2):\n    x = pl.matmul_mx_acc(x, l, p, r, q)\n"
    return kernel(OPERANDS + (one + other) * (count // 4))


def calls_in(each: Pass, made: Program) -> tuple[int, Program]:
    """How many Python functions a pass calls, and its program."""
    count = 0

    def counting(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event == "call"

    previous = sys.getprofile()
    sys.setprofile(counting)
    try:
        done = each(made)
    finally:
        sys.setprofile(previous)
    return count, done


@pytest.mark.parametrize("build", [loads, sums, branches])
def test_twice_the_program_takes_twice_the_calls(build: Callable[[int], Program]) -> None:
    small, large = build(60), build(120)
    for each in default_pipeline():
        few, small = calls_in(each, small)
        many, large = calls_in(each, large)
        assert many < 2.3 * few + 500, each.name
