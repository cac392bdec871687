"""What a run on several cores of a cluster looks like."""

import numpy as np
import pytest

import scalebox
from scalebox.app.report import RunReport
from scalebox.codegen.executable import (
    Direction,
    Executable,
    HostProgram,
    Kernel,
    Layout,
    Param,
    ParamKind,
    View,
)
from scalebox.codegen.isa.asm import parse_program
from scalebox.codegen.isa.vocabulary import CoreKind
from scalebox.sim.report import CoreName
from scalebox.traces.timeline import Timeline

CUBE = """
    gm_to_l1_nz v0, x0, x0, l1[0], rows=16, cols=16, l1_rows=16
    set_flag src=mte2, dst=mte1, id=0
    wait_flag src=mte2, dst=mte1, id=0
    l1_to_l0a l1[0], l0a[0], row_boxes=1, col_boxes=1, src_pitch=1, dst_pitch=1
    l1_to_l0b l1[0], l0b[0], bits=b16, k=16, n=16, src_k=16
    set_flag src=mte1, dst=m, id=0
    wait_flag src=mte1, dst=m, id=0
    mad l0c[0], l0a[0], l0b[0], bias[0], m=16, k=16, n=16, a_type=fp16, b_type=fp16, init=zero
    set_flag src=m, dst=fix, id=0
    wait_flag src=m, dst=fix, id=0
    l0c_to_ub l0c[0], ub[0], core=0, rows=16, cols=16, src_boxes=1, convert=fp32, relu=0, pitch=2
    set_core_flag pipe=fix, to=aiv0, id=0
    halt
"""
VECTOR = """
    wait_core_flag pipe=v, of=aic, id=0
    v_unary ub[0x400], ub[0], op=neg, type=fp32, rows=16, cols=16, dst_pitch=2, src_pitch=2
    set_flag src=v, dst=mte3, id=0
    wait_flag src=v, dst=mte3, id=0
    ub_to_gm v1, x0, x0, ub[0x400], rows=16, cols=16, pitch=2
    halt
"""


def kernel(*, core: CoreKind, text: str, mate: Kernel | None = None) -> Kernel:
    def tensor(name: str, bits: int, direction: Direction) -> Param:
        return Param(name, ParamKind.TENSOR, f"Float{bits}", bits, direction, (16, 16))

    views = [View(place, Layout.ND, bits, (16, 16), (16, 1)) for place, bits in enumerate((16, 32))]
    params = [tensor("a", 16, Direction.IN), tensor("c", 32, Direction.OUT)]
    program = parse_program(text)
    return Kernel.assemble("k", params=params, views=views, program=program, core=core, mate=mate)


def run(made: Kernel) -> scalebox.Result:
    executable = Executable("p", "a5", "", (made,), (HostProgram.of_kernel(0, made),), "k")
    return scalebox.run(executable, {"a": np.eye(16, dtype=np.float16) * 3}, machine="a5")


@pytest.fixture(scope="module")
def result() -> scalebox.Result:
    vector = kernel(core=CoreKind.AIV, text=VECTOR)
    return run(kernel(core=CoreKind.AIC, text=CUBE, mate=vector))


def report_of(result: scalebox.Result) -> RunReport:
    return RunReport(title="k.py", result=result, comparison=None, bundle=None, seed=None)


def test_the_table_names_the_cores_and_tells_their_pipes_apart(
    result: scalebox.Result,
) -> None:
    np.testing.assert_array_equal(result.outputs["c"], np.eye(16, dtype=np.float32) * -9)
    report = report_of(result)
    lines = report.lines()
    assert max(map(len, lines)) <= 80
    table = lines[lines.index("", 2) + 2 :]
    assert [line.split()[0].strip(",") for line in table[:9]] == [
        "AIC", "MTE2", "MTE1", "M", "FIX", "S", "AIV0", "V", "MTE3",
    ]  # fmt: skip
    assert table[0] == "AIC, the cube core"
    assert table[6] == "AIV0, the first vector core"
    for share in report.pipes:
        busy = result.pipes[result.simulation.cores.index(CoreName(0, share.core))][share.name]
        assert share.busy_cycles == busy
        assert share.busy == busy / report.work_cycles


def test_the_peak_is_that_of_the_cubes_on_the_operands_that_they_multiply(
    result: scalebox.Result,
) -> None:
    found = report_of(result).as_json()
    assert found["cores"] == ["0.AIC", "0.AIV0"]
    assert len(found["pipes"]) == 2
    # A step takes 16 of K where elements have 16 bits.
    assert found["peak_macs_per_cycle"] == 16 * 16 * 16


def test_a_vector_kernel_has_no_line_of_multiplications() -> None:
    text = VECTOR.replace("wait_core_flag pipe=v, of=aic, id=0", "v_fill ub[0], x0, type=fp32, dst_skip=0, rows=16, cols=16, dst_pitch=2")  # fmt: skip
    report = report_of(run(kernel(core=CoreKind.AIV, text=text)))
    assert not any(line.startswith("MACs") for line in report.lines())
    assert report.as_json()["cores"] == ["0.AIV0"]


def test_the_timeline_names_the_cores(result: scalebox.Result) -> None:
    timeline = result.bundle().timeline
    assert isinstance(timeline, Timeline)
    trace = timeline.as_trace()
    names = {
        record["pid"]: record["args"]["name"]
        for record in trace["traceEvents"]
        if record["name"] == "process_name"
    }
    assert names == {1: "0.AIC", 2: "0.AIV0", 1_000_000: "device (1 us is 1 cycle)"}
    flags = [record for record in trace["traceEvents"] if record["ph"] in ("s", "f")]
    assert {record["pid"] for record in flags} == {1, 2}


def test_an_executable_of_two_programs_runs_from_its_file(
    result: scalebox.Result,
) -> None:
    again = Executable.from_bytes(result.executable.to_bytes())
    found = scalebox.run(again, result.inputs, machine="a5")
    assert (found.cycles, found.pipes) == (result.cycles, result.pipes)
