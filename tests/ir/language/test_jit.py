"""`@pl.jit` and templates: the programs that they make."""

import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import FunctionType, Program
from scalebox.ir.errors import (
    InvalidOperationError,
    ParserTypeError,
    SSAViolationError,
    UnsupportedFeatureError,
)
from scalebox.ir.interp import interpret_program
from scalebox.ir.language import JITFunction
from scalebox.ir.printer import python_print
from scalebox.ir.structural import assert_structural_equal
from scalebox.ir.visitor import collect_def_vars

ROWS = 32

TEMPLATES = """
@pl.inline
def both(a, b):
    total = a + b
    return total, a - b

@pl.jit.inline
def twice(a):
    a = a + a
    return a
"""


@pl.jit
def entry(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
    return later(n) + 1


@pl.jit.opaque
def later(n: pl.INDEX) -> pl.Scalar[pl.INDEX]:
    return n * ROWS


def program(text: str) -> Program:
    """The program of a text, after a check that it reads back as it is printed."""
    made = pl.parse(text)
    assert isinstance(made, Program)
    assert_structural_equal(made, pl.parse(python_print(made)))
    return made


def test_an_entry_is_an_orchestration_with_what_it_calls() -> None:
    made = entry.specialize()
    kinds = {f.name: f.func_type for f in made.functions.values()}
    assert kinds == {"entry": FunctionType.Orchestration, "later": FunctionType.Opaque}
    assert made.name == "entry"
    assert_structural_equal(made, pl.parse(python_print(made)))
    assert interpret_program(made, {"n": 2})["out"] == 65


def test_every_program_of_an_entry_holds_the_same_functions() -> None:
    first, second = entry.specialize(), entry.specialize()
    assert list(first.functions.values()) == list(second.functions.values())


def test_a_name_that_gets_another_value_changes_the_next_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`ROWS` stands in what the entry calls, not in the entry."""
    before = entry.specialize()
    monkeypatch.setitem(globals(), "ROWS", 48)
    assert interpret_program(entry.specialize(), {"n": 2})["out"] == 97
    assert interpret_program(before, {"n": 2})["out"] == 65
    monkeypatch.undo()
    assert interpret_program(entry.specialize(), {"n": 2})["out"] == 65


def test_shapes_are_constants() -> None:
    text = python_print(
        program(
            """
@pl.jit()
def of_shape(x: pl.Tensor[[48, 32], pl.FP32], out: pl.Out[pl.Tensor[[48, 32], pl.FP32]]):
    m, k = x.shape
    both = x.shape
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [m // 3, both[1]], target_memory=pl.Mem.Mat)
        out = pl.store(t, [x.shape[0] - 16, k - k], out)
    return out
"""
        )
    )
    assert "pl.tile.load(x, [0, 0], [16, 32], [16, 32]" in text
    assert "[32, 0], out)" in text


def test_a_template_takes_the_place_of_its_call_and_leaves_the_callers_names_alone() -> None:
    made = program(
        f"""{TEMPLATES}
@pl.jit
def main(n: pl.Scalar[pl.INDEX]):
    total, difference = both(n, 3)
    for i in pl.range(2):
        total = twice(total)
    return total, difference, n
"""
    )
    assert [f.name for f in made.functions.values()] == ["main"]
    found = interpret_program(made, {"n": 5})
    assert [int(v) for v in found.values()] == [32, 2, 5]


def test_a_template_works_in_a_class_too() -> None:
    made = program(
        f"""{TEMPLATES}
@pl.program
class Made:
    @pl.function
    def main(self, n: pl.Scalar[pl.INDEX]):
        doubled = twice(n)
        return doubled
"""
    )
    assert int(interpret_program(made, {"n": 21})["doubled"]) == 42


def test_a_function_of_jit_can_be_called_from_a_class() -> None:
    made = program(
        """
@pl.jit.opaque
def later(n: pl.INDEX):
    return n + 1

@pl.program
class Made:
    @pl.function
    def main(self, n: pl.Scalar[pl.INDEX]):
        found = later(n)
        return found
"""
    )
    assert [f.name for f in made.functions.values()] == ["later", "main"]


def test_a_lone_kernel_of_jit_is_a_program_of_its_own() -> None:
    made = program("@pl.jit.incore\ndef k(n: pl.INDEX):\n    return n\n")
    assert [f.func_type for f in made.functions.values()] == [FunctionType.InCore]


def test_what_cannot_be_run_by_itself_says_so() -> None:
    template = pl.inline(later.python)
    assert isinstance(template, JITFunction)
    with pytest.raises(InvalidOperationError, match=r"^'later' must be called by an entry"):
        template.specialize()
    with pytest.raises(InvalidOperationError, match=r"must be run by scalebox\.run"):
        entry(3)
    with pytest.raises(ParserTypeError, match="must decorate a def"):
        pl.jit(3)  # pyright: ignore[reportArgumentType]


def test_in_a_class_a_shape_is_not_known() -> None:
    text = "@pl.function\ndef f(x: pl.Tensor[[4, 8], pl.FP32]):\n    m, k = x.shape\n    return m\n"
    with pytest.raises(UnsupportedFeatureError, match="has no attributes"):
        pl.parse(text)


@pytest.mark.parametrize("line", ["m = m + 1", "m = y.shape[0]", "for i in pl.range(n): m = i"])
def test_a_constant_of_a_shape_is_assigned_only_once(line: str) -> None:
    text = (
        "@pl.jit\ndef f(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Tensor[[8, 8], pl.FP32], n: pl.INDEX):"
        f"\n    m = x.shape[0]\n    m, k = x.shape\n    {line}\n    return m\n"
    )
    with pytest.raises(SSAViolationError, match=r"^'m' must not be assigned twice: it is a const"):
        pl.parse(text)


def test_a_name_can_be_given_to_a_value_of_another_type_in_its_own_block() -> None:
    head = "@pl.jit.incore\ndef f(x: pl.Tensor[[64, 64], pl.FP8E4M3FN], n: pl.INDEX):\n"
    load = "t = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)"
    move = "t = pl.move(t, target_memory=pl.Mem.Left)"
    inner = f"        {load}\n        {move}\n".replace(" t ", " u ").replace("(t,", "(u,")
    made = program(f"{head}    {load}\n    {move}\n    for i in pl.range(n):\n{inner}")
    (function,) = made.functions.values()
    assert [v.name_hint for v in collect_def_vars(function.body)] == ["t", "t", "i", "u", "u"]
    with pytest.raises(ParserTypeError, match="'t' is assigned a second time and must be"):
        pl.parse(f"{head}    {load}\n    for i in pl.range(n):\n        {move}\n")
