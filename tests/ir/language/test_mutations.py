"""A kernel with a part replaced by another: accepted or refused with a sentence, never a crash."""

import ast
from functools import cache
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.errors import UserError
from scalebox.ir.printer import python_print
from scalebox.ir.structural import assert_structural_equal

ROOT = Path(__file__).resolve().parents[3]
TEXTS = [path.read_text() for path in sorted((ROOT / "tests/cases/language").glob("*.py"))]
STRANGERS = (
    "None",
    "True",
    "1.5",
    "-1",
    "1j",
    "...",
    "(1,2)",
    "[1]",
    "{}",
    '"s"',
    "1/0",
    "10**30",
    "self",
    "self.kernel",
    "pl",
    "pl.tile",
    "pl.Tensor",
    "pl.FP32",
    "pl.jit",
    "pl.load",
    "pl.range(3)",
    "pl.yield_(1)",
    "pl.func_attr({})",
    "pl.const(1,pl.INT8)",
    "pl.Out",
    "print(1)",
    "0<1<2",
    "*x",
    "x[0]",
    "x.shape",
    "pl.Mem.Mat",
    "pl.Tensor[[4],pl.FP32]",
    "pl.min(1,2)",
    "pl.max",
    "int",
    'f"{x}"',
    "not(x)",
)


@cache
def parts_of(text: str) -> list[tuple[int, int, int]]:
    """Return line, begin and end (in bytes) of every expression in the functions of a kernel."""
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    return [
        (part.lineno, part.col_offset, part.end_col_offset or 0)
        for function in functions
        for part in ast.walk(function)
        if isinstance(part, ast.expr) and part.lineno == part.end_lineno
    ]


@st.composite
def mutated_kernels(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(TEXTS))
    line, begin, end = draw(st.sampled_from(parts_of(text)))
    other = draw(st.sampled_from(TEXTS))
    donor_line, donor_begin, donor_end = draw(st.sampled_from(parts_of(other)))
    donor = other.splitlines()[donor_line - 1].encode()[donor_begin:donor_end].decode()
    new = draw(st.sampled_from(STRANGERS) | st.just(donor))
    lines = text.splitlines()
    old = lines[line - 1].encode()
    lines[line - 1] = (old[:begin] + new.encode() + old[end:]).decode()
    return "\n".join(lines) + "\n"


def parsed(text: str) -> object:
    try:
        return pl.parse(text)
    except UserError as error:
        return error


@given(mutated_kernels())
def test_a_mistake_is_a_sentence_and_what_is_accepted_prints_and_parses_back(text: str) -> None:
    made = parsed(text)
    match made:
        case UserError():
            assert made.render().startswith("Error: ")
        case Program():
            assert_structural_equal(made, pl.parse(python_print(made)))
        case _:
            pass
