"""Whole launches of hand-written kernels, against the reference matmul."""

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.codegen.executable import Executable, HostProgram, Kernel, Output
from scalebox.codegen.host.program import Allocate, For, Launch
from scalebox.codegen.isa.program import make
from scalebox.codegen.scalars.exprs import Binary, BinaryOp, Const, Variable
from scalebox.ir.dtypes import DType
from scalebox.ir.errors import InputError, SimulationFault
from scalebox.ir.numerics import pack, reference, scales
from scalebox.sim.device import simulate
from scalebox.sim.report import SimResult

TILE = """
    ldparam x1, p0
    ldparam x2, p1
    floordivi x3, x2, 16
    floordivi x4, x1, 16
    gm_to_l1_nz v0, x1, x0, l1[0x0], rows=16, cols={k}, l1_rows=16
    gm_to_l1_boxes v1, x4, x0, l1[0x10000], ni=1, nj={pairs}, l1_nj={pairs}
    gm_to_l1_nz v2, x0, x2, l1[0x20000], rows={k}, cols=32, l1_rows={l1_k}
    gm_to_l1_boxes v3, x3, x0, l1[0x30000], ni=2, nj={pairs}, l1_nj={pairs}
    set_flag src=mte2, dst=mte1, id=0
    wait_flag src=mte2, dst=mte1, id=0
    l1_to_l0a l1[0x0], l0a[0x8000], row_boxes=1, col_boxes={boxes}, src_pitch=1, dst_pitch=1
    l1_to_scale_a l1[0x10000], scale_a[0x800], row_boxes=1, col_boxes={pairs}, src_pitch={pairs}
    l1_to_l0b l1[0x20000], l0b[0x4000], bits=b{bits}, k={k}, n=32, src_k={l1_k}
    l1_to_scale_b l1[0x30000], scale_b[0x400], row_boxes=2, col_boxes={pairs}, src_pitch={pairs}
    set_flag src=mte1, dst=m, id=0
    wait_flag src=mte1, dst=m, id=0
    mad_mx l0c[0x1000], l0a[0x8000], l0b[0x4000], bias[0x0], m=16, k={k}, n=32, a_type={dtype}, b_type={dtype}, init=zero
    set_flag src=m, dst=fix, id=0
    wait_flag src=m, dst=fix, id=0
    l0c_to_gm v4, x1, x2, l0c[0x1000], rows=16, cols=32, src_rows=16, convert={out}
"""


class Matmul:
    """C[m, n] in tiles of 16 x 32, a tile a launch, with random operands."""

    def __init__(
        self, bench: Any, rng: Any, m: int = 16, k: int = 64, n: int = 32,
        dtype: str = "E4M3", out: str = "fp32",
    ) -> None:  # fmt: skip
        self.m, self.k, self.n, self.out = m, k, n, out
        self.dtype = getattr(DType, dtype)
        bits = self.dtype.bits
        groups = -(-k // 64) * 2
        text = TILE.format(
            k=k, pairs=groups // 2, l1_k=-(-k // 16) * 16, boxes=-(-k * bits // 256), bits=bits,
            dtype=dtype.lower(), out=out,
        )  # fmt: skip
        params = [
            bench.tensor("a", dtype, (m, k)),
            bench.tensor("a_scale", "E8M0", (m, groups)),
            bench.tensor("b", dtype, (k, n)),
            bench.tensor("b_scale", "E8M0", (groups, n)),
            bench.tensor("c", out.upper(), (m, n), "out"),
            bench.scalar("row"),
            bench.scalar("col"),
        ]
        views = [
            bench.plain(0, bits, m, k),
            bench.boxes(1, m, groups),
            bench.plain(2, bits, k, n),
            bench.boxes(3, n, groups),
            bench.plain(4, 32 if out == "fp32" else 16, m, n),
        ]
        self.text = text
        self.kernel: Kernel = bench.kernel(text, params, views, "tile")
        top = 0x77 if bits == 8 else 0xF
        self.a = rng.integers(0, top + 1, (m, k)).astype(np.uint8)
        self.b = rng.integers(0, top + 1, (k, n)).astype(np.uint8)
        self.a_scales = rng.integers(115, 140, (m, groups)).astype(np.uint8)
        self.b_scales = rng.integers(115, 140, (groups, n)).astype(np.uint8)

    @property
    def buffers(self) -> dict[str, np.ndarray]:
        return {
            "a": np.asarray(pack(self.a, self.dtype)).reshape(-1),
            "a_scale": scales.pack_scales_a(self.a_scales),
            "b": np.asarray(pack(self.b, self.dtype)).reshape(-1),
            "b_scale": scales.pack_scales_b(self.b_scales),
        }

    def executable(self, *, tasks: bool = True) -> Executable:
        """All tiles as an entry `main`, row by row, or the kernel alone."""
        tensors = tuple(param.name for param in self.kernel.tensors)
        launch = Launch(0, tensors, (Variable("i"), Variable("j")))
        inner = For("j", Const(0), Const(self.n), Const(32), (launch,))
        body = (For("i", Const(0), Const(self.m), Const(16), (inner,)),)
        main = HostProgram("main", self.kernel.tensors, body, (Output("c", "c"),))
        alone = HostProgram.of_kernel(0, self.kernel)
        return Executable("p", "a5", "", (self.kernel,), (main, alone), "main" if tasks else "tile")

    def golden(self, **options: Any) -> np.ndarray:
        return reference.matmul_mx(
            self.a, self.a_scales, self.b, self.b_scales,
            a_dtype=self.dtype, b_dtype=self.dtype, **options,
        )  # fmt: skip

    def assert_golden(self, image: np.ndarray, **options: Any) -> None:
        golden = self.golden(**options)
        if self.out == "bf16":
            want = golden.astype(ml_dtypes.bfloat16).view(np.uint16)
            np.testing.assert_array_equal(image.view(np.uint16).reshape(self.m, self.n), want)
        else:
            got = image.view(np.uint32).reshape(self.m, self.n)
            np.testing.assert_array_equal(got, golden.view(np.uint32))


@pytest.fixture
def matmul(bench: Any, rng: Any) -> Matmul:
    """One 16 x 64 x 32 tile."""
    return Matmul(bench, rng)


@pytest.mark.parametrize(
    ("m", "k", "n", "dtype", "out"),
    [
        (16, 64, 32, "E4M3", "fp32"),
        (48, 128, 64, "E5M2", "bf16"),
        (32, 96, 96, "E4M3", "fp32"),
        (16, 40, 32, "E4M3", "fp32"),
        (16, 128, 32, "E2M1", "fp32"),
        (16, 98, 32, "E2M1", "bf16"),
    ],
)
def test_a_launch_computes_the_reference_bit_for_bit(
    bench: Any, rng: Any, m: int, k: int, n: int, dtype: str, out: str
) -> None:
    case = Matmul(bench, rng, m, k, n, dtype, out)
    result = simulate(case.executable(), case.buffers, target=bench.target)
    case.assert_golden(result.outputs["c"])
    assert result.macs == m * k * n
    tiles = (m // 16) * (n // 32)
    assert len(result.tasks) == tiles
    assert result.moved["L0C->GM"] == m * n * (4 if out == "fp32" else 2)
    assert result.instructions == tiles * len(case.kernel.program)
    assert result.warnings == ()


def test_the_sum_can_be_sequential(bench: Any, matmul: Matmul) -> None:
    result = simulate(matmul.executable(), matmul.buffers, target=bench.target, sum="sequential")
    matmul.assert_golden(result.outputs["c"], sum="sequential")


def test_scalars_choose_the_tile(bench: Any, rng: Any) -> None:
    case = Matmul(bench, rng, 32, 64, 64)
    image = np.zeros(32 * 64 * 4, np.uint8)
    result = simulate(
        case.executable(tasks=False), case.buffers | {"c": image}, target=bench.target,
        scalars={"row": 16, "col": 32},
    )  # fmt: skip
    got = result.outputs["c"].view(np.float32).reshape(32, 64)
    np.testing.assert_array_equal(got[16:, 32:], case.golden()[16:, 32:])
    assert not got[:16].any()
    assert not got[:, :32].any()
    assert not image.any(), "the caller's buffers are not written"


def test_tasks_follow_one_another_and_add_up(bench: Any, rng: Any) -> None:
    case = Matmul(bench, rng, 32, 64, 64)
    result = simulate(case.executable(), case.buffers, target=bench.target)
    starts = [run.start for run in result.tasks]
    ends = [run.start + run.cycles for run in result.tasks]
    assert starts == [result.launch_cycles, *ends[:-1]]
    assert ends[-1] == result.cycles
    assert (result.accounts[0].sum(axis=1) == result.cycles - result.launch_cycles).all()
    assert {event.task for event in result.timeline} == {0, 1, 2, 3}
    assert result.pipes[0]["M"] == 4 * (25 + 2 * 2)
    flows = [event.args["flow"] for event in result.timeline if "flow" in event.args]
    assert len(flows) == 2 * len(set(flows)) == 4 * 2 * 3
    # Only the first task meets a cold cache.
    assert result.tasks[0].cycles - result.tasks[1].cycles == 300


def test_cycles_do_not_depend_on_data_and_data_not_on_cycles(bench: Any, rng: Any) -> None:
    case = Matmul(bench, rng, 32, 64, 64)
    both = simulate(case.executable(), case.buffers, target=bench.target)
    timing_only = simulate(case.executable(), {}, target=bench.target, functional=False)
    assert timing_only.cycles == both.cycles
    assert timing_only.outputs == {}
    assert (timing_only.events == both.events).all()
    data_only = simulate(case.executable(), case.buffers, target=bench.target, timing=False)
    assert data_only.cycles == 0
    assert data_only.timeline == []
    np.testing.assert_array_equal(data_only.outputs["c"], both.outputs["c"])
    slow = bench.target.with_settings(
        {"gm_port_bytes_per_cycle": 1.5, "queue_entries": 1, "flag_cycles": 0, "l2_hit_cycles": 0}
    )
    other = simulate(case.executable(), case.buffers, target=slow)
    np.testing.assert_array_equal(other.outputs["c"], both.outputs["c"])
    assert other.cycles != both.cycles


def without_line(kernel: Kernel, line: int) -> Kernel:
    """Return the kernel with one instruction turned into a nop."""
    program = [make("nop") if index == line else each for index, each in enumerate(kernel.program)]
    return dataclasses.replace(kernel, program=tuple(program))


@pytest.mark.parametrize("pair", [(8, 9), (14, 15), (17, 18)])
def test_a_missing_flag_shows(bench: Any, matmul: Matmul, pair: tuple[int, int]) -> None:
    kernel = matmul.kernel
    for line in pair:
        assert kernel.program[line].mnemonic in ("set_flag", "wait_flag")
        kernel = without_line(kernel, line)
    case = {"scalars": {"row": 0, "col": 0}}
    for timing in (True, False):
        with pytest.raises(SimulationFault, match="nothing orders"):
            bench.run(kernel, matmul.buffers, timing=timing, **case)
    lenient = bench.run(kernel, matmul.buffers, checks="warn", **case)
    assert any("must use only what was written" in each.message for each in lenient.warnings)
    in_order = bench.run(kernel, matmul.buffers, timing=False, checks="off", **case)
    matmul.assert_golden(in_order.outputs["c"])


def test_a_missing_wait_leaves_its_flag_and_a_missing_set_a_deadlock(
    bench: Any, matmul: Matmul
) -> None:
    with pytest.raises(SimulationFault, match="flag 0 from MTE1 to M is still set once"):
        bench.run(without_line(matmul.kernel, 15), matmul.buffers, scalars={"row": 0, "col": 0})
    with pytest.raises(SimulationFault, match="M waits at instruction 15"):
        bench.run(without_line(matmul.kernel, 14), matmul.buffers, scalars={"row": 0, "col": 0})


def test_a_fault_names_instruction_line_window_and_limits(bench: Any, matmul: Matmul) -> None:
    with pytest.raises(SimulationFault) as caught:
        bench.run(matmul.kernel, matmul.buffers, scalars={"row": 1, "col": 0})
    assert str(caught.value) == (
        "Instruction 4 (gm_to_l1_nz) must stay inside its view of 'a' (16 x 64), not use indices "
        "1 to 16 of axis 0, which has 16. [kernel.py:5:1]"
    )
    assert caught.value.note is not None
    assert caught.value.note.endswith("; its registers hold 1 and 0")
    assert caught.value.hint is not None
    assert "a narrower valid_shape" in caught.value.hint


@pytest.mark.parametrize("scalars", [{"row": -16, "col": 0}, {"row": -1, "col": 0}])
def test_a_negative_window_is_found_before_anything_runs(
    bench: Any, matmul: Matmul, scalars: dict[str, int]
) -> None:
    for functional in (True, False):
        with pytest.raises(SimulationFault, match=f"indices {scalars['row']} to"):
            bench.run(matmul.kernel, matmul.buffers, scalars=scalars, functional=functional)


def test_a_local_memory_fault_names_its_size(bench: Any) -> None:
    kernel = bench.kernel(
        "l1_to_l0a l1[0], l0a[65024], row_boxes=1, col_boxes=2, src_pitch=1, dst_pitch=1"
    )
    with pytest.raises(SimulationFault) as caught:
        bench.run(kernel)
    assert str(caught.value) == (
        "Instruction 0 (l1_to_l0a) must stay inside the 65536 bytes of L0A, not reach 1024 bytes "
        "from byte 65024 on. [kernel.py:1:1]"
    )


def test_a_split_byte_is_told_with_what_would_be_right(bench: Any) -> None:
    kernel = bench.kernel(
        "movi x1, 1\n gm_to_l1_row v0, x0, x1, l1[0], cols=2",
        [bench.tensor("a", "E2M1", (2, 16))],
        [bench.plain(0, 4, 2, 16)],
    )
    with pytest.raises(SimulationFault) as caught:
        bench.run(kernel, {"a": np.zeros(16, np.uint8)})
    assert caught.value.message == (
        "Instruction 1 (gm_to_l1_row) must read whole bytes in every row of its 4-bit window, not "
        "2 elements from element 1 on in row 0."
    )
    assert caught.value.hint is not None


def test_a_never_written_read_is_a_fault_a_warning_or_nothing(bench: Any, matmul: Matmul) -> None:
    kernel = without_line(matmul.kernel, 11)  # the A scales never reach their buffer

    def run(checks: str) -> SimResult:
        return bench.run(kernel, matmul.buffers, scalars={"row": 0, "col": 0}, checks=checks)

    with pytest.raises(SimulationFault) as caught:
        run("error")
    sentence = (
        "Instruction 16 (mad_mx) must use only what was written, not byte 2048 of SCALE_A (row 0, "
        "group 0), which never was."
    )
    assert caught.value.message == sentence
    assert [warning.message for warning in run("warn").warnings] == [sentence]
    assert run("off").warnings == ()
    # Bytes that were never written hold 0, the scale 2^-127.
    matmul.a_scales[:] = 0
    matmul.assert_golden(run("off").outputs["c"])
    matmul.assert_golden(run("warn").outputs["c"])


def test_padding_that_a_device_would_multiply_is_a_warning(bench: Any, rng: Any) -> None:
    case = Matmul(bench, rng, 16, 64, 32)
    program = list(case.kernel.program)
    mad = program[16]
    k = mad.row.column("k")
    values = (*mad.values[:k], 40, *mad.values[k + 1 :])
    program[16] = dataclasses.replace(mad, values=values)
    kernel = dataclasses.replace(case.kernel, program=tuple(program))
    result = bench.run(kernel, case.buffers, scalars={"row": 0, "col": 0})
    assert [warning.span.line for warning in result.warnings if warning.span] == [17]
    assert "zeros from its valid K on up to a multiple of 64" in result.warnings[0].message
    case.assert_golden(result.outputs["c"], valid_k=40)


def test_a_task_does_not_see_what_another_left_in_the_core(bench: Any, matmul: Matmul) -> None:
    # The second task skips its loads and would find the first one's operands.
    silent = matmul.kernel
    for line in (4, 5, 6, 7):
        silent = without_line(silent, line)
    silent = dataclasses.replace(silent, name="silent")
    names = tuple(param.name for param in silent.tensors)
    zeros = (Const(0), Const(0))
    body = (Launch(0, names, zeros), Launch(1, names, zeros))
    host = HostProgram("main", silent.tensors, body, (Output("c", "c"),))
    executable = Executable("p", "a5", "", (matmul.kernel, silent), (host,), "main")
    with pytest.raises(SimulationFault, match="which never was"):
        simulate(executable, matmul.buffers, target=bench.target)


def test_a_buffer_that_the_launch_allocates_must_be_written_before_it_is_read(
    bench: Any, matmul: Matmul
) -> None:
    allocate = Allocate("scratch", "E4M3", 8, (16, 64))
    names = ("scratch", "a_scale", "b", "b_scale", "c")
    launch = Launch(0, names, (Const(0), Const(0)))
    host = HostProgram("main", matmul.kernel.tensors, (allocate, launch), (Output("c", "c"),))
    executable = Executable("p", "a5", "", (matmul.kernel,), (host,), "main")
    with pytest.raises(SimulationFault, match="not byte 32768 of L0A"):
        simulate(executable, matmul.buffers, target=bench.target)


def test_host_arithmetic_reaches_the_kernel(bench: Any, rng: Any) -> None:
    case = Matmul(bench, rng, 32, 64, 32)
    tensors = tuple(param.name for param in case.kernel.tensors)
    row = Binary(BinaryOp.MUL, Variable("i"), Const(16))
    loop = For("i", Const(0), Const(2), Const(1), (Launch(0, tensors, (row, Const(0))),))
    host = HostProgram("main", case.kernel.tensors, (loop,), (Output("result", "c"),))
    executable = Executable("p", "a5", "", (case.kernel,), (host,), "main")
    result = simulate(executable, case.buffers, target=bench.target)
    case.assert_golden(result.outputs["result"])


@pytest.mark.parametrize("clusters", [1, 2, 32])
def test_blocks_run_on_as_many_clusters_as_there_are_each_with_its_own_number(
    bench: Any, rng: Any, clusters: int
) -> None:
    case = Matmul(bench, rng, 48, 64, 32)
    text = case.text.replace("ldparam x1, p0", "block_idx x1\nmuli x1, x1, 16")
    kernel = bench.kernel(text, case.kernel.params, case.kernel.views, "tile")
    tensors = tuple(param.name for param in kernel.tensors)
    launch = Launch(0, tensors, (Const(0), Const(0)), Const(3))
    host = HostProgram("main", kernel.tensors, (launch,), (Output("c", "c"),))
    executable = Executable("p", "a5", "", (kernel,), (host,), "main")
    target = bench.target.with_settings({"cores": clusters})
    result = simulate(executable, case.buffers, target=target)
    case.assert_golden(result.outputs["c"])
    assert [(run.index, run.block, run.blocks) for run in result.tasks] == [
        (0, 0, 3), (1, 1, 3), (2, 2, 3),
    ]  # fmt: skip
    first, second, third = result.tasks
    assert first.start == result.launch_cycles
    assert [run.cluster for run in result.tasks] == [
        0,
        min(1, clusters - 1),
        2 if clusters > 2 else 0,
    ]
    assert second.start == (first.start if clusters > 1 else first.start + first.cycles)
    idle = {1: second, 2: first}.get(clusters)
    assert third.start == (first.start if idle is None else idle.start + idle.cycles)
    assert {event.args["block"] for event in result.timeline} == {f"{b} of 3" for b in range(3)}


def test_a_kernel_that_runs_alone_is_block_0_of_1(bench: Any) -> None:
    text = "block_idx x1\nblock_num x2\ngm_to_l1_row v0, x1, x2, l1[0x0], cols=1"
    params, views = [bench.tensor("a", "E4M3", (1, 2))], [bench.plain(0, 8, 1, 2)]
    result = bench.run(bench.kernel(text, params, views), {"a": np.zeros(2, np.uint8)})
    (run,) = result.tasks
    (part,) = run.cores
    assert part.stream.registers.tolist() == [[0, 1]]
    assert all("block" not in event.args for event in result.timeline)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"a": None}, "The buffer 'a' of 'tile' must be given, since it is read."),
        (
            {"a": np.zeros(1023, np.uint8)},
            "The buffer 'a' of 'tile' must be 1024 bytes of uint8, not 1023 of uint8.",
        ),
        (
            {"a": np.zeros(1024, np.int8)},
            "The buffer 'a' of 'tile' must be 1024 bytes of uint8, not 1024 of int8.",
        ),
        (
            {"d": np.zeros(1, np.uint8)},
            "A buffer must be for a tensor of 'tile' (a, a_scale, b, b_scale, c), not 'd'.",
        ),
    ],
)
def test_a_buffer_that_does_not_fit_is_refused(
    bench: Any, matmul: Matmul, change: dict[str, Any], sentence: str
) -> None:
    buffers = {k: v for k, v in (matmul.buffers | change).items() if v is not None}
    with pytest.raises(InputError) as caught:
        bench.run(matmul.kernel, buffers, scalars={"row": 0, "col": 0})
    assert caught.value.message == sentence


def test_an_unknown_choice_of_checks_is_refused(bench: Any) -> None:
    with pytest.raises(InputError, match="checks must be 'error', 'warn' or 'off', not 'no'"):
        bench.run(bench.kernel("nop"), checks="no")
