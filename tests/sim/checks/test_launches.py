"""Global memory between the blocks of a grid, and between tasks that do not depend on each other."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from scalebox.codegen.executable import Executable, HostProgram, Kernel, Output, Task
from scalebox.codegen.host.program import Launch
from scalebox.codegen.isa.vocabulary import CoreKind
from scalebox.codegen.scalars.exprs import Const
from scalebox.ir.errors import SimulationFault
from scalebox.sim.checks import LaunchCheck
from scalebox.sim.cluster import prepare
from scalebox.sim.device import simulate
from scalebox.sim.report import SimResult

COPY = """
block_idx x1
muli x2, x1, {read}
muli x3, x1, {write}
gm_to_ub v0, x2, x0, ub[0], rows={rows}, cols=64, pitch=2
set_flag src=mte2, dst=mte3, id=0
wait_flag src=mte2, dst=mte3, id=0
ub_to_gm v1, x3, x0, ub[0], rows={rows}, cols=64, pitch=2
"""


def copier(bench: Any, read: int, write: int, rows: int) -> Kernel:
    params = [bench.tensor("x", "E4M3", (64, 64)), bench.tensor("y", "E4M3", (64, 64), "inout")]
    views = [bench.plain(0, 8, 64, 64), bench.plain(1, 8, 64, 64)]
    text = COPY.format(read=read, write=write, rows=rows)
    return bench.kernel(text, params, views, core=CoreKind.AIV)


def launched(
    bench: Any, kernel: Kernel, blocks: int, *, same: bool = False, **options: Any
) -> SimResult:
    buffers = ("y", "y") if same else ("x", "y")
    launch = Launch(0, buffers, (), Const(blocks))
    main = HostProgram("main", kernel.tensors, (launch,), (Output("y", "y"),))
    executable = Executable("p", "a5", "", (kernel,), (main,), "main")
    given = dict.fromkeys("xy", np.zeros(4096, np.uint8))
    return simulate(executable, given, target=bench.target, **options)


def test_blocks_with_a_part_each_are_right(bench: Any) -> None:
    assert launched(bench, copier(bench, 0, 16, 16), 4).warnings == ()
    assert launched(bench, copier(bench, 16, 16, 16), 4, same=True).warnings == ()


@pytest.mark.parametrize("options", [{}, {"timing": False}, {"functional": False}])
@pytest.mark.parametrize("write", [0, 8, 15])
def test_blocks_that_write_the_same_rows(bench: Any, write: int, options: dict[str, bool]) -> None:
    with pytest.raises(SimulationFault) as caught:
        launched(bench, copier(bench, 0, write, 16), 2, **options)
    fault = caught.value
    assert "in no order must not touch bytes that one of them writes" in fault.message
    assert "block 0 of task 0" in fault.message
    assert f"touches byte {write * 64} of 'y' by instruction 6 (ub_to_gm" in fault.message
    assert "block 1 of task 0" in fault.message
    assert "by its block index" in (fault.hint or "")


def test_a_block_that_reads_what_another_one_writes(bench: Any) -> None:
    with pytest.raises(SimulationFault, match=r"instruction 3 \(gm_to_ub"):
        launched(bench, copier(bench, 0, 16, 16), 2, same=True)


def test_checks_say_what_becomes_of_it(bench: Any) -> None:
    kernel = copier(bench, 0, 0, 16)
    (warning,) = launched(bench, kernel, 4, checks="warn").warnings
    assert "in no order" in warning.message
    assert launched(bench, kernel, 4, checks="off").warnings == ()


@pytest.mark.parametrize(("depends", "count"), [((), 1), ((0,), 0)])
def test_tasks_must_depend_on_each_other_to_be_in_order(
    bench: Any, depends: tuple[int, ...], count: int
) -> None:
    kernel = copier(bench, 0, 0, 16)
    tasks = [Task(0, ("x", "y"), (), ()), Task(0, ("x", "y"), (), depends)]
    assert len(found(bench, kernel, tasks)) == count


def test_an_order_may_lead_over_a_third_task(bench: Any) -> None:
    kernel = copier(bench, 0, 0, 16)
    chain = [
        Task(0, ("x", "y"), (), ()),
        Task(0, ("x", "z"), (), (0,)),
        Task(0, ("x", "y"), (), (1,)),
    ]
    assert found(bench, kernel, chain) == []
    loose = [*chain[:1], dataclasses.replace(chain[1], depends=()), chain[2]]
    (fault,) = found(bench, kernel, loose)
    assert "task 0 touches" in fault.message
    assert "task 2 by" in fault.message
    assert "depend on the earlier one" in (fault.hint or "")


def found(bench: Any, kernel: Kernel, tasks: list[Task]) -> list[SimulationFault]:
    check = LaunchCheck(bench.executable(kernel), tasks)
    address = {"x": 512, "y": 8192, "z": 16384}
    for index, task in enumerate(tasks):
        (prepared,) = prepare(kernel, bench.target)
        places = [address[name] for name in task.buffers]
        check.add(index, [prepared.program(task, places, max_instructions=1000)])
    return list(check.faults())
