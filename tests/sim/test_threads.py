"""Whatever the number of threads of the host, a launch finds the same."""

import threading
from typing import Any

import numpy as np
import pytest

from scalebox.codegen.executable import Executable, HostProgram, Kernel, Output
from scalebox.codegen.host.program import Launch
from scalebox.codegen.scalars.exprs import Const
from scalebox.ir.dtypes import DType
from scalebox.ir.errors import SimulationFault
from scalebox.ir.numerics import reference, scales
from scalebox.sim import device, execution
from scalebox.sim.device import simulate
from scalebox.sim.matmul import MadTile, NumericsCube
from scalebox.sim.progress import Silent
from scalebox.sim.report import SimResult

THREADS = [1, 2, 5]
BLOCKS, M, K, N = 12, 16, 64, 32

# A block makes the 16 rows of C that its index tells. Some of them may load no scales of A, and so read
# what nobody wrote.
BLOCK = """
    block_idx x5
    muli x1, x5, {apart}
    floordivi x4, x1, 16
    floormodi x6, x5, {every}
    cmpeqi x6, x6, {bare}
    gm_to_l1_nz v0, x1, x0, l1[0x0], rows=16, cols={k}, l1_rows=16
    bnez x6, without
    gm_to_l1_boxes v1, x4, x0, l1[0x10000], ni=1, nj=1, l1_nj=1
without:
    gm_to_l1_nz v2, x0, x0, l1[0x20000], rows={k}, cols=32, l1_rows={k}
    gm_to_l1_boxes v3, x0, x0, l1[0x30000], ni=2, nj=1, l1_nj=1
    set_flag src=mte2, dst=mte1, id=0
    wait_flag src=mte2, dst=mte1, id=0
    l1_to_l0a l1[0x0], l0a[0x0], row_boxes=1, col_boxes=2, src_pitch=1, dst_pitch=1
    l1_to_scale_a l1[0x10000], scale_a[0x0], row_boxes=1, col_boxes=1, src_pitch=1
    l1_to_l0b l1[0x20000], l0b[0x0], bits=b8, k={k}, n=32, src_k={k}
    l1_to_scale_b l1[0x30000], scale_b[0x0], row_boxes=2, col_boxes=1, src_pitch=1
    set_flag src=mte1, dst=m, id=0
    wait_flag src=mte1, dst=m, id=0
    mad_mx l0c[0x0], l0a[0x0], l0b[0x0], bias[0x0], m=16, k={valid}, n=32, a_type=e4m3, b_type=e4m3, init=zero
    set_flag src=m, dst=fix, id=0
    wait_flag src=m, dst=fix, id=0
    l0c_to_gm v4, x1, x0, l0c[0x0], rows=16, cols=32, src_rows=16, convert=fp32
"""


class Grid:
    """A grid of blocks on random operands."""

    def __init__(
        self,
        bench: Any,
        rng: np.random.Generator,
        *,
        apart: int = M,
        every: int = BLOCKS,
        bare: int = -1,
        valid: int = K,
    ) -> None:
        self.target = bench.target
        rows = BLOCKS * M
        params = [
            bench.tensor("a", "E4M3", (rows, K)),
            bench.tensor("a_scale", "E8M0", (rows, 2)),
            bench.tensor("b", "E4M3", (K, N)),
            bench.tensor("b_scale", "E8M0", (2, N)),
            bench.tensor("c", "FP32", (rows, N), "out"),
        ]
        views = [
            bench.plain(0, 8, rows, K),
            bench.boxes(1, rows, 2),
            bench.plain(2, 8, K, N),
            bench.boxes(3, N, 2),
            bench.plain(4, 32, rows, N),
        ]
        text = BLOCK.format(k=K, valid=valid, apart=apart, every=every, bare=bare)
        self.kernel: Kernel = bench.kernel(text, params, views, "block")
        self.a = rng.integers(0, 0x78, (rows, K)).astype(np.uint8)
        self.b = rng.integers(0, 0x78, (K, N)).astype(np.uint8)
        self.a_scales = rng.integers(115, 140, (rows, 2)).astype(np.uint8)
        self.b_scales = rng.integers(115, 140, (2, N)).astype(np.uint8)

    def run(self, threads: int | None, **options: Any) -> SimResult:
        tensors = tuple(param.name for param in self.kernel.tensors)
        launch = Launch(0, tensors, (), blocks=Const(BLOCKS))
        main = HostProgram("main", self.kernel.tensors, (launch,), (Output("c", "c"),))
        buffers = {
            "a": self.a.reshape(-1),
            "a_scale": scales.pack_scales_a(self.a_scales),
            "b": self.b.reshape(-1),
            "b_scale": scales.pack_scales_b(self.b_scales),
        }
        executable = Executable("p", "a5", "", (self.kernel,), (main,), "main")
        return simulate(executable, buffers, target=self.target, threads=threads, **options)

    def golden(self) -> np.ndarray:
        return reference.matmul_mx(
            self.a, self.a_scales, self.b, self.b_scales, a_dtype=DType.E4M3, b_dtype=DType.E4M3
        )


def told(result: SimResult) -> list[tuple[str, str | None]]:
    return [(each.message, each.note) for each in result.warnings]


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Notes how many threads each launch was given."""
    found: list[int] = []
    done = execution.Work.done

    def noted(self: Any, order: Any, new_core: Any, threads: int, scales: Any) -> Any:
        found.append(threads)
        return done(self, order, new_core, threads, scales)

    monkeypatch.setattr(execution.Work, "done", noted)
    return found


@pytest.mark.parametrize("checks", ["error", "warn", "off"])
@pytest.mark.parametrize("timing", [False, True])
@pytest.mark.parametrize("threads", THREADS)
def test_blocks_on_several_threads_compute_the_reference(
    bench: Any, rng: Any, used: list[int], threads: int, timing: bool, checks: str
) -> None:
    grid = Grid(bench, rng)
    result = grid.run(threads, timing=timing, checks=checks)
    got = result.outputs["c"].view(np.uint32).reshape(BLOCKS * M, N)
    np.testing.assert_array_equal(got, grid.golden().view(np.uint32))
    assert result.warnings == ()
    assert used == [threads]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(("every", "bare", "first"), [(BLOCKS, 7, 7), (5, 2, 2), (1, 0, 0)])
def test_the_first_fault_in_the_order_of_tasks_is_told(
    bench: Any, rng: Any, used: list[int], threads: int, every: int, bare: int, first: int
) -> None:
    with pytest.raises(SimulationFault, match="which never was") as caught:
        Grid(bench, rng, every=every, bare=bare).run(threads)
    assert f"it happens in block {first} of {BLOCKS}" in (caught.value.note or "")
    assert used == [threads]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("timing", [False, True])
def test_warnings_of_several_blocks_come_in_the_order_of_tasks(
    bench: Any, rng: Any, used: list[int], threads: int, timing: bool
) -> None:
    grid = Grid(bench, rng, every=5, bare=2, valid=40)
    alone = grid.run(1, checks="warn", timing=timing)
    assert len(alone.warnings) == 2
    assert "which never was" in alone.warnings[1].message
    result = grid.run(threads, checks="warn", timing=timing)
    assert told(result) == told(alone)
    np.testing.assert_array_equal(result.outputs["c"], alone.outputs["c"])
    assert used == [1, threads]


@pytest.mark.parametrize("checks", ["warn", "off"])
def test_blocks_that_write_the_same_rows_take_turns(
    bench: Any, rng: Any, used: list[int], checks: str
) -> None:
    grid = Grid(bench, rng, apart=0)
    alone, together = (grid.run(threads, checks=checks) for threads in (1, 5))
    assert used == [1, 1]
    assert told(together) == told(alone)
    np.testing.assert_array_equal(together.outputs["c"], alone.outputs["c"])


def test_an_engine_of_ones_own_sees_one_task_after_the_other(
    bench: Any, rng: Any, used: list[int]
) -> None:
    class Other:
        """Some engine, of which nobody knows whether it may be called at once."""

        def multiply(self, tile: MadTile) -> np.ndarray:
            return NumericsCube().multiply(tile)

    grid = Grid(bench, rng)
    result = grid.run(5, cube=Other())
    got = result.outputs["c"].view(np.uint32).reshape(BLOCKS * M, N)
    np.testing.assert_array_equal(got, grid.golden().view(np.uint32))
    assert used == [1]


def test_by_default_small_work_has_one_thread_and_large_work_those_of_the_host(
    bench: Any, rng: Any, used: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    Grid(bench, rng).run(None)
    monkeypatch.setattr(device, "LARGE", 0)
    monkeypatch.setattr(device, "threads_of_host", lambda: 3)
    Grid(bench, rng).run(None)
    assert used == [1, 3]


def test_an_interrupt_ends_the_threads_and_is_passed_on(bench: Any, rng: Any) -> None:
    class Interrupting(Silent):
        def advance(self, tasks: int = 1) -> None:
            if self.is_computing:
                raise KeyboardInterrupt

        def phase(self, name: str, total: int = 0, *, cycles: int = 0) -> None:
            self.is_computing = name == "computing outputs"

    with pytest.raises(KeyboardInterrupt):
        Grid(bench, rng).run(2, progress=Interrupting())
    assert not [each for each in threading.enumerate() if each.name.startswith("scalebox")]
