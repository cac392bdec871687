"""A run whose loops have no iteration says so, instead of how fast it is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalebox.app.cli import main

from ..shown import answer

Shown = pytest.CaptureFixture[str]

KERNEL = """from scalebox.ir import language as pl

A = pl.Tensor[[64, 64], pl.FP32]
N, TAIL = pl.param("N", 0), pl.param("TAIL", 1)


@pl.jit
def main(a: A, c: pl.Out[A]{argument}):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(a, [0, 0], [16, 64])
        c = pl.store(t, [0, 0], c)
        for i in pl.range({bounds}):
            u = pl.load(a, [i * 16, 0], [16, 64])
            c = pl.store(u, [i * 16, 0], c)
{more}    return c
"""
AROUND = """from scalebox.ir import language as pl

A = pl.Tensor[[64, 64], pl.FP32]


@pl.jit
def main(a: A, n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INDEX], c: pl.Out[A]):
{before}    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(a, [0, 0], [16, 64])
        c = pl.store(t, [0, 0], c)
        if {condition}:
            for i in pl.range(0, {stop}):
                u = pl.load(a, [i * 16, 0], [16, 64])
                c = pl.store(u, [i * 16, 0], c)
    return c
"""
MORE = """        for j in pl.range(0, TAIL):
            w = pl.load(a, [j * 16, 0], [16, 64])
            c = pl.store(w, [j * 16, 0], c)
"""
LINE = 12
SCALAR = ", n: pl.Scalar[pl.INDEX]"
NO_MEASURE = "         The cycles are no measure of speed: no loop did anything."


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(bounds: str, argument: str = "", more: str = "") -> str:
    Path("kernel.py").write_text(KERNEL.format(bounds=bounds, argument=argument, more=more))
    return "kernel.py"


def given(n: int) -> list[str]:
    inputs: dict[str, Any] = {"a": np.ones((64, 64), np.float32), "n": np.array(n)}
    np.savez("in.npz", **inputs)
    return ["--inputs", "in.npz"]


def lines(capsys: Shown) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_parameter_that_makes_a_loop_empty_is_told(capsys: Shown) -> None:
    assert main(["run", written("0, N"), "--timing-only"]) == 0
    shown = lines(capsys)
    told = " ".join(" ".join(shown).split())
    assert (
        f"loops the loop at kernel.py:{LINE} runs 0 iterations (its bounds are constants or "
        "parameters of the kernel file)" in told
    )
    assert NO_MEASURE in shown
    assert not any(line.startswith(("MACs", "pipe", "bound", "roofline")) for line in shown)


def test_an_argument_that_makes_a_loop_empty_is_told_with_its_value(capsys: Shown) -> None:
    call = ["run", written("0, n", SCALAR), *given(0), "--json"]
    assert main(call) == 0
    found = answer(capsys)
    reason = "n = 0 of the inputs"
    assert found["empty_loops"] == [
        {"source": f"kernel.py:{LINE}", "iterations": 0, "reason": reason}
    ]
    assert found["bottleneck"] is None


def test_bounds_are_worked_out(capsys: Shown) -> None:
    assert main(["run", written("4, n // 2 + 1", SCALAR), *given(6), "--json"]) == 0
    (loop,) = answer(capsys)["empty_loops"]
    assert loop["reason"] == "n = 6 of the inputs"


def test_an_executable_tells_the_line_from_its_machine_code(capsys: Shown) -> None:
    assert main(["compile", written("0, n", SCALAR), "-o", "kernel.sbx"]) == 0
    assert main(["run", "kernel.sbx", *given(0), "--json"]) == 0
    capsys_out = capsys.readouterr().out
    assert f'"source": "kernel.py:{LINE}"' in capsys_out


def test_a_loop_with_an_iteration_is_no_matter(capsys: Shown) -> None:
    assert main(["run", written("0, n", SCALAR), *given(1), "--json"]) == 0
    found = answer(capsys)
    assert found["empty_loops"] == []
    assert found["bottleneck"]


def test_beside_a_loop_that_works_an_empty_one_is_told_and_figures_stay(capsys: Shown) -> None:
    assert main(["run", written("0, n", SCALAR, MORE), *given(0)]) == 0
    shown = lines(capsys)
    assert any(f"kernel.py:{LINE} runs 0 iterations" in line for line in shown)
    assert NO_MEASURE not in shown
    assert any(line.startswith("bound ") for line in shown)


def around(stop: str, *, condition: str = "m < 1", before: str = "") -> list[str]:
    """Return the call of a kernel with a loop behind a condition, with n = 0 and m = 0."""
    Path("around.py").write_text(AROUND.format(stop=stop, condition=condition, before=before))
    inputs: dict[str, Any] = {"a": np.ones((64, 64), np.float32), "n": np.array(0)}
    np.savez("around.npz", m=np.array(0), **inputs)
    return ["run", "around.py", "--inputs", "around.npz", "--json"]


def test_an_argument_that_is_assigned_anew_says_nothing_of_a_loop(capsys: Shown) -> None:
    assert main(around("n", before="    n = n + 2\n")) == 0
    assert answer(capsys)["empty_loops"] == []


def test_a_loop_that_the_run_did_not_come_to_is_no_matter(capsys: Shown) -> None:
    assert main(around("n", condition="m > 0")) == 0
    assert answer(capsys)["empty_loops"] == []
    assert main(around("n")) == 0
    assert len(answer(capsys)["empty_loops"]) == 1


def test_a_bound_that_has_no_value_where_the_run_did_not_come_is_no_fault(capsys: Shown) -> None:
    assert main(around("4 // n", condition="m > 0")) == 0
    assert answer(capsys)["empty_loops"] == []


def test_the_report_says_so_too(capsys: Shown) -> None:
    assert main(["report", written("0, N")]) == 0
    shown = lines(capsys)
    assert shown[-1] == NO_MEASURE
