"""Every op of the table runs on the machine, by instructions that cost cycles, as it is interpreted.

What has no instruction is named here with the reason; an op that is in none of the lists fails.
"""

from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox import pl
from scalebox.app.drawn_inputs import draw_inputs
from scalebox.ir.core import Program
from scalebox.ir.interp import select_entry
from scalebox.ir.mx_uses import CompoundUses
from scalebox.ir.ops import ROWS
from scalebox.ir.passes import default_pipeline
from scalebox.ir.verification.walk import all_calls

from .op_kernels import KERNELS, MADE_BY_PASSES, OpKernel

WITHOUT_INSTRUCTION = {
    **dict.fromkeys(("tile.slice", "tile.set_validshape"), "a look at a part of a tile"),
    "tile.reshape": "a look at the same bytes",
    "tensor.view": "a look at the same bytes",
    "tensor.dim": "a number",
    "tensor.create": "the launcher does it",
    **{f"tile.get_{what}": "a scalar" for what in ("block_idx", "block_num", "subblock_idx")},
    **{f"system.task_{what}": "the launcher does it" for what in ("invalid", "dummy")},
}
"""Why the line of an op may leave no instruction of a pipe."""


def parsed(kernel: OpKernel) -> Program:
    made = pl.parse(kernel.text)
    assert isinstance(made, Program)
    return made


def inputs_of(program: Program) -> dict[str, Any]:
    entry = select_entry(program)
    return draw_inputs(entry, 5, grouped_axes=CompoundUses(program).grouped_axes(entry))


def ops_of(program: Program) -> set[str]:
    return {call.op.name for each in program.functions.values() for call in all_calls(each)}


def agreed(program: Program) -> scalebox.Result:
    """Return the run of a program, once it is known that the interpreter makes the same bytes."""
    given = inputs_of(program)
    ran = scalebox.run(program, given)
    golden = scalebox.interpret(program, given)
    assert list(ran.outputs) == list(golden)
    for name, array in golden.items():
        assert ran.outputs[name].dtype == array.dtype
        assert ran.outputs[name].tobytes() == np.ascontiguousarray(array).tobytes(), name
    return ran


def test_every_op_has_a_kernel() -> None:
    assert set(ROWS) == KERNELS.keys() | MADE_BY_PASSES.keys()
    assert {name for name, row in ROWS.items() if not row.public} == MADE_BY_PASSES.keys()


@pytest.mark.parametrize("name", KERNELS)
def test_an_op_runs_as_it_is_interpreted_by_instructions_with_a_cost(name: str) -> None:
    kernel = KERNELS[name]
    program = parsed(kernel)
    assert name in ops_of(program)
    ran = agreed(program)
    assert ran.cycles
    busy = [
        event
        for event in ran.timeline
        if event.source and int(event.source.split(":")[-2]) in kernel.marked
        if event.end > event.start and event.name not in ("set_flag", "wait_flag")
    ]
    assert busy or name in WITHOUT_INSTRUCTION


@pytest.mark.parametrize("name", MADE_BY_PASSES)
def test_an_op_that_passes_make_is_made_and_the_kernel_runs(name: str) -> None:
    program = parsed(MADE_BY_PASSES[name])
    seen, made = set[str](), program
    for each in default_pipeline():
        made = each(made)
        seen |= ops_of(made)
    assert name in seen
    agreed(program)
