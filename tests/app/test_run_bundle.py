"""What a run leaves on disk: everything to run it again, and a timeline that a viewer can open."""

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import scalebox
from scalebox.app.cli import main
from scalebox.app.result import Result
from scalebox.codegen.isa.vocabulary import Pipe
from scalebox.ir.core import Program
from scalebox.ir.errors import InputError
from scalebox.sim.account.records import COLUMNS
from scalebox.traces.bundle import load_bundle

Array = npt.NDArray[Any]
Gemm = Callable[..., Program]
Inputs = Callable[..., dict[str, Array]]


@pytest.fixture
def result(gemm: Gemm, mx_inputs: Inputs) -> Result:
    rng = np.random.default_rng(3)
    a = rng.standard_normal((32, 512)).astype(ml_dtypes.float8_e4m3fn)
    b = rng.standard_normal((512, 64)).astype(ml_dtypes.float8_e4m3fn)
    inputs = mx_inputs(a, rng.integers(120, 130, (32, 16)), b, rng.integers(120, 130, (16, 64)))
    return scalebox.run(gemm(32, 512, 64, step=128), inputs)


def test_a_run_is_saved_with_all_that_it_takes_to_run_it_again(
    result: Result, tmp_path: Path
) -> None:
    place = tmp_path / "run"
    result.save(place)
    bundle = load_bundle(place)
    assert set(bundle.inputs) == {"a", "b", "sa", "sb"}
    assert bundle.outputs is not None
    assert bundle.golden is None
    assert scalebox.compare(bundle.outputs, result.outputs)
    assert bundle.options["entry"] == "gemm"
    assert bundle.options["sum"] == "group"
    assert set(bundle.options["versions"]) == {"python", "scalebox", "numpy", "numba", "ml_dtypes"}

    executable = scalebox.Executable.load(place / "executable.bin")
    again = scalebox.run(executable, bundle.inputs, machine=place / "machine.toml")
    assert scalebox.compare(again.outputs, bundle.outputs)
    assert (again.cycles, again.pipes) == (result.cycles, result.pipes)


def test_the_arrays_are_plain_npz_files(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "run")
    with np.load(tmp_path / "run" / "outputs.npz") as outputs:
        assert np.array_equal(outputs["c"], result.outputs["c"])


def test_the_command_adds_golden_and_how_it_was_called(
    kernel_text: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = kernel_text(32, 128, 64).replace("M, K, N = 32", 'M, K, N = pl.param("M", 32)')
    Path("kernel.py").write_text(text)
    assert main(["run", "kernel.py", "--seed", "4", "--out", "run"]) == 0
    bundle = load_bundle(Path("run"))
    assert bundle.golden is not None
    assert bundle.outputs is not None
    assert scalebox.compare(bundle.outputs, bundle.golden)
    about = {name: bundle.options[name] for name in ("kernel", "seed", "params", "settings")}
    assert about == {"kernel": "kernel.py", "seed": 4, "params": {"M": 32}, "settings": {}}


def test_a_place_where_something_else_stands_is_left_alone(result: Result, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"not files such as 'notes\.txt'"):
        result.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.fixture
def trace(result: Result, tmp_path: Path) -> dict[str, Any]:
    result.save(tmp_path / "run")
    return json.loads((tmp_path / "run" / "timeline.json").read_text())


def test_the_slices_of_a_lane_nest_or_stand_apart(trace: dict[str, Any]) -> None:
    lanes: defaultdict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for each in trace["traceEvents"]:
        if each["ph"] == "X":
            lanes[each["pid"], each["tid"]].append(each)
    assert len(lanes) >= 4
    for slices in lanes.values():
        ends: list[float] = []
        for each in sorted(slices, key=lambda one: (one["ts"], -one["dur"])):
            while ends and ends[-1] <= each["ts"]:
                ends.pop()
            assert not ends or each["ts"] + each["dur"] <= ends[-1]
            ends.append(each["ts"] + each["dur"])


def test_the_slices_tell_whole_cycles_and_where_they_come_from(
    trace: dict[str, Any], result: Result
) -> None:
    (kernel,) = result.executable.kernels
    for each in (each for each in trace["traceEvents"] if each["ph"] == "X"):
        args = each["args"]
        assert all(type(args[key]) is int for key in ("start_cycle", "end_cycle", "cycles", "task"))
        assert 0 <= args["start_cycle"] <= args["end_cycle"] <= result.cycles
        assert args["start_cycle"] <= each["ts"] < args["start_cycle"] + 1
        assert args["ns"] == pytest.approx(args["cycles"] / result.target.clock_hz * 1e9, abs=1e-3)
        if each["name"] == "issues":
            assert args["instructions"] >= 0
            continue
        told = args["mnemonic"] if each["name"].startswith("waits for ") else each["name"]
        assert kernel.program[int(args["instruction"])].mnemonic == told
        assert args["source"] == str(kernel.span(args["instruction"]))


def test_a_transfer_tells_the_tensor_that_it_is_of(trace: dict[str, Any], result: Result) -> None:
    slices = [each for each in trace["traceEvents"] if each["ph"] == "X"]
    told = {each["name"]: set[str]() for each in slices}
    for each in slices:
        assert "view" not in each["args"]
        if "tensor" in each["args"]:
            told[each["name"]].add(each["args"]["tensor"])
    assert told["gm_to_l1_nz"] == {"a", "b"}
    assert told["gm_to_l1_boxes"] == {"sa", "sb"}
    assert told["l0c_to_gm"] == {"c"}
    assert told["mad_mx"] == set()
    events = {each.name: each.args for each in result.timeline}
    assert events["l0c_to_gm"]["tensor"] == "c"
    assert not any("view" in args for args in events.values())


def test_the_slices_add_up_to_the_accounts(trace: dict[str, Any], result: Result) -> None:
    names = {
        (each["pid"], each["tid"]): each["args"]["name"]
        for each in trace["traceEvents"]
        if each["name"] == "thread_name"
    }
    sums: defaultdict[tuple[str, str], int] = defaultdict(int)
    for each in trace["traceEvents"]:
        if each["ph"] == "X":
            sums[names[each["pid"], each["tid"]], each["cat"]] += each["args"]["cycles"]
    (account,) = result.simulation.accounts
    for cause, column in COLUMNS.items():
        for name in set(names.values()):
            assert sums[name, cause.value] == account[Pipe[name], column], (name, cause)


def test_every_flag_is_an_arrow_from_its_set_to_its_wait(trace: dict[str, Any]) -> None:
    arrows: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for each in trace["traceEvents"]:
        if each["ph"] in ("s", "f"):
            arrows[each["id"]][each["ph"]] = each["ts"]
    waits = sum(each["name"] == "wait_flag" for each in trace["traceEvents"])
    assert len(arrows) == waits > 0
    assert all(ends["s"] <= ends["f"] for ends in arrows.values())


def test_the_lanes_are_named_after_their_pipes_in_the_order_of_the_data(
    trace: dict[str, Any],
) -> None:
    names = [each["args"]["name"] for each in trace["traceEvents"] if each["name"] == "thread_name"]
    pipes = list(dict.fromkeys(name.split(" ")[0] for name in names))
    assert pipes == ["MTE2", "MTE1", "M", "FIX", "S"]


def test_without_timing_there_is_no_timeline(gemm: Gemm, mx_inputs: Inputs, tmp_path: Path) -> None:
    ones = np.ones((16, 64), ml_dtypes.float8_e4m3fn), np.ones((64, 32), ml_dtypes.float8_e4m3fn)
    inputs = mx_inputs(ones[0], np.full((16, 2), 127), ones[1], np.full((2, 32), 127))
    result = scalebox.run(gemm(16, 64, 32), inputs, timing=False)
    assert (result.cycles, result.microseconds, result.timeline) == (0, 0.0, [])
    result.save(tmp_path / "run")
    assert not (tmp_path / "run" / "timeline.json").exists()
    assert np.array_equal(result.outputs["c"], np.full((16, 32), 64))
