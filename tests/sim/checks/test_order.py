"""An order that is kept with its kernel is found anew where anything differs that it depends on."""

from dataclasses import replace
from typing import Any

import pytest

from scalebox.codegen.executable import Executable, HostProgram
from scalebox.codegen.host.program import Launch
from scalebox.codegen.scalars.exprs import Const
from scalebox.ir.errors import SimulationFault
from scalebox.sim.device import simulate

BIAS = "l1_to_bias l1[0], bias[0], bytes=32"
BEHIND = f"""
    wait_flag src=m, dst=mte1, id=0
    {BIAS}
    {BIAS}
    set_flag src=m, dst=mte1, id=0
"""


def test_for_another_depth_of_queues_the_same_kernel_is_walked_again(bench: Any) -> None:
    kernel = bench.kernel(BEHIND)
    narrow = bench.target.with_settings({"queue_entries": 1})
    for _ in range(2):
        bench.run(kernel, functional=False)
        with pytest.raises(SimulationFault, match="room in the queue of MTE1"):
            bench.run(kernel, target=narrow, functional=False)


@pytest.mark.parametrize("guilty", [0, 1, 2])
def test_a_block_that_goes_another_way_than_the_one_before_is_walked_by_itself(
    bench: Any, guilty: int
) -> None:
    text = f"""
        block_idx x1
        movi x2, {guilty}
        sub x2, x2, x1
        bnez x2, good
        nop
        set_flag src=m, dst=mte1, id=0
        halt
    good:
        nop
        set_flag src=m, dst=mte1, id=0
        wait_flag src=m, dst=mte1, id=0
        halt
    """
    host = HostProgram("main", (), (Launch(0, (), (), Const(3)),), ())
    executable = Executable("p", "a5", "", (bench.kernel(text),), (host,), "main")
    with pytest.raises(SimulationFault, match="is still set once") as caught:
        simulate(executable, {}, target=bench.target, functional=False)
    assert caught.value.note == f"it happens in block {guilty} of 3"


def test_blocks_that_touch_other_bytes_are_looked_at_anew(bench: Any) -> None:
    """Block 0 writes the first row and reads the third; block 1 reads the second, which it writes."""
    text = """
        block_idx x1
        movi x2, 2
        sub x2, x2, x1
        l0c_to_gm v0, x1, x0, l0c[0], rows=1, cols=16, src_rows=16, convert=fp32
        gm_to_l1_row v0, x2, x0, l1[0], cols=16
        halt
    """
    kernel = bench.kernel(
        text, [bench.tensor("c", "FP32", (3, 16), "inout")], [bench.plain(0, 32, 3, 16)]
    )
    host = HostProgram.of_kernel(0, kernel)
    grid = Launch(0, ("c",), blocks=Const(2))
    whole = Executable("p", "a5", "", (kernel,), (replace(host, body=(grid,)),), host.name)
    bench.run(kernel, functional=False)
    with pytest.raises(SimulationFault, match="must not race") as caught:
        simulate(whole, {}, target=bench.target, functional=False)
    assert "block 1 of 2" in str(caught.value.note)
