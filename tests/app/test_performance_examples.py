"""The two performance kernels: right at any size, loops that stay loops, loads as far ahead as published."""

import json
from collections import Counter
from pathlib import Path

import pytest

import scalebox
from scalebox.app.cli import main
from scalebox.app.kernel_file import machine_of_kernel
from scalebox.app.result import Result
from scalebox.codegen.isa.vocabulary import Pipe
from scalebox.ir.errors import InputError
from scalebox.ir.language.text import load_file
from scalebox.sim.pipes.tables import BUSY

FP8, FP4 = "mxfp8_performance", "mxfp4_performance"
ONE = {"GRID_M": 1, "GRID_N": 1}
TILE = {FP8: {"M": 128, "N": 256}, FP4: {"M": 256, "N": 256}}
SCALED = {FP8: 4096, FP4: 2048}
"""How much of K a load of scales is for: eight panels, and four."""

SMALL = (
    (FP8, {"M": 100, "K": 200, "N": 300, "GRID_M": 2, "GRID_N": 2}),
    (FP8, {"M": 144, "K": 1160, "N": 264, **ONE}),
    (FP8, {"M": 144, "K": 640, "N": 40, "E4M3": 1, **ONE}),
    (FP8, {"M": 20, "K": 9000, "N": 30, **ONE}),
    (FP8, {"M": 1, "K": 1, "N": 1}),
    (FP4, {"M": 100, "K": 200, "N": 300, "GRID_M": 2, "GRID_N": 2}),
    (FP4, {"M": 272, "K": 840, "N": 40, **ONE}),
    (FP4, {"M": 20, "K": 4398, "N": 30, **ONE}),
    (FP4, {"M": 1, "K": 2, "N": 2}),
    (FP4, {"M": 144, "K": 2, "N": 256, **ONE}),  # a tile of more than half of L0C, a single step
)
LARGE = (
    (FP8, {"M": 512, "K": 1024, "N": 2048}),
    (FP8, {"M": 300, "K": 200, "N": 520}),
    (FP8, {"M": 520, "K": 1160, "N": 2100}),
    (FP4, {"M": 1024, "K": 512, "N": 2048}),
    (FP4, {"M": 1100, "K": 840, "N": 2100}),
)


def disassembled(root: Path, name: str, **params: int) -> Counter[str]:
    """How often each instruction stands in the kernel, but for numbers in registers."""
    program = load_file(root / "examples" / f"{name}.py", params=params).program
    (kernel,) = scalebox.compile(program).kernels
    found = Counter(each.mnemonic for each in kernel.program)
    del found["movi"]
    return found


def timed(root: Path, name: str, **params: int) -> Result:
    """The times of a tile, or of several, on one core."""
    kernel = load_file(root / "examples" / f"{name}.py", params=ONE | TILE[name] | params)
    return scalebox.run(kernel.program, {}, machine=machine_of_kernel(kernel), functional=False)


def check(
    capsys: pytest.CaptureFixture[str], root: Path, name: str, params: dict[str, int]
) -> None:
    given = [word for key, value in params.items() for word in ("--param", f"{key}={value}")]
    assert main(["run", str(root / "examples" / f"{name}.py"), "--json", *given]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is True
    assert found["warnings"] == []
    assert found["outputs"]["c"]["equal"] is True


@pytest.mark.parametrize("name", ["mxfp8_performance", "mxfp4_performance"])
@pytest.mark.parametrize("param", ["M", "K", "N", "GRID_M", "GRID_N"])
def test_a_size_of_nothing_is_refused_in_our_words(name: str, param: str, root: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_file(root / "examples" / f"{name}.py", params={param: "0"})
    assert caught.value.message == f"The parameter {param} must be at least 1, not 0"


@pytest.mark.parametrize(("name", "params"), SMALL)
@pytest.mark.usefixtures("examples")
def test_sizes_of_all_kinds_are_right_bit_for_bit(
    root: Path, capsys: pytest.CaptureFixture[str], name: str, params: dict[str, int]
) -> None:
    check(capsys, root, name, params)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "params"), LARGE)
@pytest.mark.usefixtures("examples")
def test_sizes_for_all_cores_are_right_bit_for_bit(
    root: Path, capsys: pytest.CaptureFixture[str], name: str, params: dict[str, int]
) -> None:
    check(capsys, root, name, params)


@pytest.mark.parametrize(
    ("name", "m", "n", "grid"),
    [
        (FP8, 4096, 4096, (4, 8)),  # regions of 8 x 2 tiles; turned they would be whole as well
        (FP8, 3072, 3072, (8, 4)),  # of 3 x 3 tiles, where 4 x 8 has 6 x 1.5
        (FP8, 3072, 2048, (4, 8)),
        (FP8, 300, 1320, (4, 8)),  # whole in neither
        (FP4, 4096, 4096, (4, 8)),
        (FP4, 2048, 3072, (8, 4)),
        (FP4, 3072, 3072, (4, 8)),
    ],
)
def test_the_grid_is_the_one_that_cuts_c_into_whole_tiles(
    root: Path, name: str, m: int, n: int, grid: tuple[int, int]
) -> None:
    params = load_file(root / "examples" / f"{name}.py", params={"M": m, "N": n}).params
    assert (params["GRID_M"], params["GRID_N"]) == grid


@pytest.mark.parametrize("name", [FP8, FP4])
def test_loops_stay_loops(root: Path, name: str) -> None:
    scaled = SCALED[name]
    one, other = (disassembled(root, name, M=4096, K=k, N=4096) for k in (scaled // 2, scaled))
    assert one == other
    one, other = (disassembled(root, name, M=4096, K=k * scaled, N=4096) for k in (3, 5))
    assert one == other
    one, other = (disassembled(root, name, M=m, K=scaled, N=4096) for m in (4096, 8192))
    assert one == other
    assert one.total() < 400
    assert one["pipe_barrier"] == 0


@pytest.mark.parametrize("name", [FP8, FP4])
def test_scales_are_loaded_once_for_their_panels(root: Path, name: str) -> None:
    events = Counter(event.name for event in timed(root, name, K=2 * SCALED[name]).timeline)
    panels = 2 * SCALED[name] // 512
    assert events["gm_to_l1_nz"] == 2 * panels
    assert events["gm_to_l1_boxes"] == 2 * 2
    steps = 2 * SCALED[name] // (128 if name == FP8 else 256)
    assert events["mad_mx"] == events["l1_to_scale_a_at"] == events["l1_to_l0b_at"] == steps
    assert events["l0c_to_gm"] == 1


@pytest.mark.parametrize("name", [FP8, FP4])
def test_pipes_work_as_far_ahead_as_slots_allow(root: Path, name: str) -> None:
    """Two tiles: neither the panels nor the steps of the second one wait for the end of the first."""
    m = 2 * TILE[name]["M"]
    result = timed(root, name, M=m, K=SCALED[name])
    mads = [event for event in result.timeline if event.name == "mad_mx"]
    loads = [event for event in result.timeline if event.name == "gm_to_l1_nz"][1::2]  # of B
    moves = [event for event in result.timeline if event.name == "l1_to_scale_b_at"]
    per_panel = len(mads) // len(loads)
    for panel, load in enumerate(loads):
        if panel >= 2:  # its slot is free when the last step of the panel before last was moved
            assert load.start >= moves[(panel - 1) * per_panel - 1].end
        if panel:
            assert load.start < mads[panel * per_panel - 1].end
    for step, move in enumerate(moves[2:], start=2):
        assert move.start >= mads[step - 2].end
        assert move.start < mads[step].start
    store = next(event for event in result.timeline if event.name == "l0c_to_gm")
    half = len(mads) // 2
    assert mads[half].start >= store.end > mads[half - 1].end  # a single accumulator
    assert moves[half].start < store.end


@pytest.mark.parametrize("name", [FP8, FP4])
def test_a_pipe_is_hardly_ever_free(root: Path, name: str) -> None:
    """What remains beside the busiest pipe is a few per cent, as in the published times."""
    result = timed(root, name, M=4 * TILE[name]["M"], K=4 * SCALED[name])
    sim = result.simulation
    busiest = max(int(sim.accounts[0, pipe, BUSY]) for pipe in (Pipe.MTE2, Pipe.MTE1, Pipe.M))
    assert 0.9 < busiest / (sim.cycles - sim.launch_cycles) <= 1


def test_the_machine_of_the_4_bit_kernel_is_a5_at_half_the_clock(root: Path) -> None:
    kernel = load_file(root / "examples" / f"{FP4}.py")
    assert kernel.machine == f"{FP4}.toml"
    result = timed(root, FP4, K=512)
    assert 2 * result.target.clock_hz == timed(root, FP8, K=512).target.clock_hz
