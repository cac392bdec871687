"""Runs and kernels that take more than there is: cycles, buffers, cores. Each is told as what it is."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.app.cli import main
from scalebox.codegen.executable import Executable
from scalebox.ir.core import Program
from scalebox.ir.errors import InputError, IRValueError, MachineError, SimulationFault
from scalebox.ir.target import load_target

Text = Callable[..., str]
SIZES = (32, 128, 64)


@pytest.fixture(scope="module")
def made(kernel_text: Text) -> Executable:
    """The gemm of SIZES."""
    program = scalebox.pl.parse(kernel_text(*SIZES))
    assert isinstance(program, Program)
    return scalebox.compile(program)


# --------------------------------------------------------------------------- cycles


def test_a_run_that_ends_in_its_last_cycle_is_as_it_was(made: Executable) -> None:
    free = scalebox.run(made, functional=False)
    bound = scalebox.run(made, functional=False, max_cycles=free.cycles)
    assert bound.cycles == free.cycles


def test_a_run_over_its_budget_says_where_it_stood(made: Executable) -> None:
    free = scalebox.run(made, functional=False)
    launch = free.simulation.launch_cycles
    for limit in range(launch, free.cycles, 97):
        with pytest.raises(SimulationFault) as caught:
            scalebox.run(made, functional=False, max_cycles=limit)
        message = caught.value.message
        assert message.startswith(
            f"The run must end within {limit} cycles, not still be at instruction "
        )
        assert message.endswith(" on AIC then.")
        assert caught.value.note == f"in kernel 'gemm', which began in cycle {launch}"
        index = int(message.split("instruction ")[1].split(" ")[0])
        assert caught.value.span == made.kernels[0].span(index)
        # What it names had begun by then and was not done.
        (task,) = free.simulation.tasks
        assert task.timing is not None
        (core,), times = task.cores, task.timing.times(0)
        begun = (times.start <= limit - launch) & (times.done > limit - launch)
        assert not begun.any() or index in core.stream.static[begun]


def test_a_last_cycle_too_few_is_told_at_the_last_instruction(made: Executable) -> None:
    free = scalebox.run(made, functional=False)
    with pytest.raises(SimulationFault, match="l0c_to_gm") as caught:
        scalebox.run(made, functional=False, max_cycles=free.cycles - 1)
    assert caught.value.hint == "a larger max_cycles (--max-cycles), or a kernel that does less"


def test_a_budget_that_the_launch_uses_up(made: Executable) -> None:
    with pytest.raises(SimulationFault) as caught:
        scalebox.run(made, functional=False, max_cycles=1)
    launch = scalebox.run(made, functional=False).simulation.launch_cycles
    assert caught.value.message == (
        f"The run must end within 1 cycles, but the launch alone takes {launch} of them."
    )


@pytest.mark.parametrize(
    ("given", "found"),
    [(0, "0"), (-5, "-5"), (True, "True"), (1e6, "1000000.0"), ("many", "'many'")],
)
def test_a_budget_is_a_positive_number(made: Executable, given: Any, found: str) -> None:
    with pytest.raises(InputError) as caught:
        scalebox.run(made, functional=False, max_cycles=given)
    assert caught.value.message == (
        f"max_cycles must be a whole number of cycles from 1 on, not {found}"
    )


def test_a_budget_needs_cycles(made: Executable) -> None:
    with pytest.raises(InputError) as caught:
        scalebox.run(made, {}, timing=False, max_cycles=100)
    assert caught.value.message == (
        "max_cycles must go with timing, not with a run that computes no cycles"
    )


def test_the_command_line_ends_with_the_status_of_a_fault(
    kernel_text: Text,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernel.py").write_text(kernel_text(*SIZES))
    assert main(["run", "kernel.py", "--timing-only", "--max-cycles", "5000"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("Error: The run must end within 5000 cycles, not still be at ")
    assert "--> kernel.py:" in shown.err
    assert not Path("scalebox-runs").exists()
    assert main(["run", "kernel.py", "--timing-only", "--max-cycles", "1000000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"]
    assert main(["run", "kernel.py", "--max-cycles", "0"]) == 2
    assert "--max-cycles" in capsys.readouterr().err


ENDLESS = """from scalebox.ir import language as pl

A = pl.Tensor[[16, 32], pl.FP32]


@pl.jit
def main(x: A, k: pl.Scalar[pl.INT32], y: pl.Out[A]):
    with pl.at(level=pl.Level.CORE_GROUP):
        while k > 0:
            y = pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], y)
    return y
"""


def test_an_endless_loop_ends_where_its_budget_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernel.py").write_text(ENDLESS)
    inputs: dict[str, Any] = {"x": np.ones((16, 32), np.float32), "k": np.array(1)}
    np.savez("in.npz", **inputs)
    call = ["run", "kernel.py", "--inputs", "in.npz"]
    assert main([*call, "--max-cycles", "250000"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("Error: The run must end within 250000 cycles, not still be at ")
    assert "instructions, which take longer." in " ".join(said.split())
    assert "--> kernel.py:" in said


# --------------------------------------------------------------------------- buffers and cores


@pytest.mark.parametrize(
    ("field", "size", "message"),
    [
        (
            "l1_bytes",
            8192,
            "Mat buffer usage must be at most the 8192 bytes of L1, not 13312 bytes: "
            "bl (8192 bytes); al (4096 bytes); ql (256 bytes); pl_ (128 bytes)",
        ),
        (
            "l0a_bytes",
            2048,
            "Left buffer usage must be at most the 2048 bytes of L0A, not 4096 bytes: at (4096 bytes)",
        ),
        (
            "l0b_bytes",
            4096,
            "Right buffer usage must be at most the 4096 bytes of L0B, not 8192 bytes: bt (8192 bytes)",
        ),
        (
            "l0c_bytes",
            4096,
            "Acc buffer usage must be at most the 4096 bytes of L0C, not 8192 bytes: acc (8192 bytes)",
        ),
        (
            "bias_bytes",
            128,
            "Bias buffer usage must be at most the 128 bytes of the bias table, not 256 bytes: "
            "rt (256 bytes)",
        ),
    ],
)
def test_a_kernel_that_exceeds_a_buffer_names_it_and_its_tiles(
    kernel_text: Text, field: str, size: int, message: str
) -> None:
    program = scalebox.pl.parse(kernel_text(*SIZES, bias=field == "bias_bytes"))
    assert isinstance(program, Program)
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(program, machine=load_target("a5").with_settings({field: size}))
    assert caught.value.message == message
    assert caught.value.span is not None


@pytest.mark.parametrize(("size", "parts"), [(7680, 2), (4096, 2), (2560, 4), (2048, 4), (512, 16)])
def test_a_tile_that_exceeds_a_buffer_alone_is_told_with_what_would_fit(
    kernel_text: Text, size: int, parts: int
) -> None:
    """The right operand of 128 x 64 has 8,192 bytes; the left one has less than L0A."""
    program = scalebox.pl.parse(kernel_text(*SIZES))
    assert isinstance(program, Program)
    machine = load_target("a5").with_settings({"l0b_bytes": size})
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(program, machine=machine)
    assert caught.value.hint == (
        f"bt alone has 8192 bytes, of which {size} fit: work on it in tiles of at most 1/{parts} of it"
    )
    assert caught.value.span is not None


def test_tiles_that_exceed_a_buffer_together_are_not_told_to_be_cut(kernel_text: Text) -> None:
    program = scalebox.pl.parse(kernel_text(*SIZES))
    assert isinstance(program, Program)
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(program, machine=load_target("a5").with_settings({"l1_bytes": 8192}))
    assert caught.value.hint == "use smaller tiles or fewer stages"


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_machine_has_room_for_the_scales_of_whatever_its_operand_buffers_hold(side: str) -> None:
    fields = {f"l0{side}_bytes": 8192, f"scale_{side}_bytes": 256}
    with pytest.raises(MachineError) as caught:
        load_target("a5").with_settings(fields)
    assert caught.value.message == (
        f"scale_{side}_bytes must be at least a 16th of l0{side}_bytes (8192), not 256."
    )


MANY = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[320, 32], pl.FP32], y: pl.Out[pl.Tensor[[320, 32], pl.FP32]]):
        for i in pl.spmd(40):
            t = pl.load(x, [i * 8, 0], [8, 32])
            y = pl.store(pl.add(t, 1.0), [i * 8, 0], y)
        return y
"""


def test_a_kernel_that_exceeds_ub_names_it_and_its_tiles() -> None:
    program = scalebox.pl.parse(MANY)
    assert isinstance(program, Program)
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(program, machine=load_target("a5").with_settings({"ub_bytes": 992}))
    assert caught.value.message == (
        "Vec buffer usage must be at most the 992 bytes of UB, not 1024 bytes: t (1024 bytes)"
    )


@pytest.mark.parametrize("cores", [1, 3, 32])
def test_more_blocks_than_cores_wait_for_one(cores: int) -> None:
    program = scalebox.pl.parse(MANY)
    assert isinstance(program, Program)
    x = np.arange(320 * 32, dtype=np.float32).reshape(320, 32)
    target = load_target("a5").with_settings({"cores": cores})
    ran = scalebox.run(scalebox.compile(program, machine=target), {"x": x}, machine=target)
    assert np.array_equal(ran.outputs["y"], x + 1)
    tasks = ran.simulation.tasks
    assert [task.block for task in tasks] == list(range(40))
    assert [task.start for task in tasks] == sorted(task.start for task in tasks)
    # Blocks take about the same time, so no cluster does much more than its part.
    shares = Counter(task.cluster for task in tasks)
    assert set(shares) == set(range(cores))
    assert max(shares.values()) - min(shares.values()) <= 2


EMPTY = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, n: pl.Scalar[pl.INT32], x: pl.Tensor[[64, 32], pl.FP32],
          y: pl.InOut[pl.Tensor[[64, 32], pl.FP32]]):
        for i in pl.range(0, n, 8):
            t = pl.load(x, [i, 0], [8, 32])
            y = pl.store(pl.add(t, 1.0), [i, 0], y)
        return y
"""


@pytest.mark.parametrize("n", [0, -8, 16])
def test_a_loop_without_an_iteration_changes_nothing(n: int) -> None:
    program = scalebox.pl.parse(EMPTY)
    assert isinstance(program, Program)
    x = np.ones((64, 32), np.float32)
    y = np.full((64, 32), 7, np.float32)
    ran = scalebox.run(program, {"n": n, "x": x, "y": y})
    expected = y.copy()
    expected[: max(n, 0)] = 2
    assert np.array_equal(ran.outputs["y"], expected)
    assert scalebox.compare(ran.outputs, scalebox.interpret(program, {"n": n, "x": x, "y": y}))
