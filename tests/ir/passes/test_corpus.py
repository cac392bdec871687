"""Every pass keeps what a program computes: the interpreter after each pass, and the machine at the end.

The data's scales differ per row and group, so that a box in the wrong place changes a result. Along the
way every pass is held to its contract, and the printed program must read back as the same program.
"""

import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.passes import (
    PassContext,
    VerificationInstrument,
    default_pipeline,
    insert_mx_scale_addr,
)
from scalebox.ir.printer import python_print
from scalebox.ir.properties import STRUCTURAL, IRProperty
from scalebox.ir.structural import first_difference
from scalebox.ir.verifier import verify

from .corpus import CASES, FOLDER, INTERPRETED, Case, assert_same_bits, entry_and_inputs, interpret


def test_every_program_of_the_corpus_is_used() -> None:
    assert {case.name for case in (*CASES, *INTERPRETED)} == {p.stem for p in FOLDER.glob("*.py")}


@pytest.mark.parametrize("case", [*CASES, *INTERPRETED], ids=str)
def test_every_pass_keeps_the_numbers_and_its_contract(case: Case) -> None:
    made = case.program()
    entry, inputs = entry_and_inputs(made, case.scalars)
    golden = interpret(made, entry, inputs)
    held: set[IRProperty] = set()
    with PassContext([VerificationInstrument()]):
        for each in default_pipeline():
            before, made = made, each(made)
            held = (held - each.invalidated) | each.produced
            assert not verify(made, held | STRUCTURAL), each.name
            if made is before:
                continue
            assert_same_bits(interpret(made, entry, inputs), golden)
            again = pl.parse(python_print(made))
            whole = again if isinstance(again, Program) else Program([again], again.name)
            assert first_difference(made, whole) is None, each.name


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_machine_computes_what_the_interpreter_does(case: Case) -> None:
    made = case.program()
    entry, inputs = entry_and_inputs(made, case.scalars)
    assert_same_bits(
        scalebox.run(made, inputs, timing=False).outputs, interpret(made, entry, inputs)
    )


@pytest.mark.parametrize("case", [*CASES, *INTERPRETED], ids=str)
def test_a_second_run_of_a_pass_returns_the_same_program(case: Case) -> None:
    made = case.program()
    for each in default_pipeline():
        made = each(made)
        if not isinstance(each, insert_mx_scale_addr):
            assert each(made) is made, each.name
