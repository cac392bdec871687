"""The timeline of a run: whole where a viewer can hold it, else the first clusters, and it says so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.app.account import trace as run_trace
from scalebox.app.account.trace import shown_clusters, timeline_of
from scalebox.app.cli import main
from scalebox.ir.core import Program

from ...traces.importer import opened
from ..shown import answer

Gemm = Callable[..., Program]


@pytest.mark.parametrize(
    ("clusters", "counts", "expected"),
    [
        ([0, 0, 1, 1], [10, 10, 10, 10], {0, 1}),
        ([0, 0, 1, 1, 2], [10, 10, 10, 10, 10], {0, 1}),
        ([0, 1], [1000, 1], {0}),
        ([3, 5], [41, 1], {3}),
        ([], [], set[int]()),
    ],
)
def test_as_many_clusters_are_shown_as_have_so_many_slices(
    clusters: list[int], counts: list[int], expected: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_trace, "MOST_SLICES", 40)
    assert shown_clusters(clusters, counts) == expected


def test_a_timeline_has_bandwidth_and_buffers_as_counters(gemm: Gemm) -> None:
    result = scalebox.run(gemm(32, 512, 64, step=128), functional=False)
    timeline = timeline_of(result.simulation, result.target)
    trace = timeline.as_trace()
    memories = {"L1", "L0A", "L0B", "L0C", "SCALE_A", "SCALE_B"}
    assert opened(trace).counters == {f"{name} in use, bytes" for name in memories} | {
        "GM bandwidth read, bytes per cycle",
        "GM bandwidth write, bytes per cycle",
    }
    assert trace["otherData"] == {
        "clock_hz": result.target.clock_hz,
        "ruler": "1 us of the ruler is 1 cycle of the machine, 0.6061 ns",
        "cycles": result.cycles,
        "machine": "a5",
    }


def test_no_buffer_holds_more_than_it_has(gemm: Gemm) -> None:
    result = scalebox.run(gemm(32, 512, 64, step=128), functional=False)
    most: dict[str, float] = {}
    for sample in timeline_of(result.simulation, result.target).samples():
        value = max(sample.values.values())
        most[sample.counter] = max(most.get(sample.counter, 0.0), value)
    sizes: dict[str, Any] = {
        "L1": result.target.l1_bytes,
        "L0A": result.target.l0a_bytes,
        "L0B": result.target.l0b_bytes,
        "L0C": result.target.l0c_bytes,
    }
    for name, size in sizes.items():
        assert 0 < most[name] <= size
    assert most["L0C"] == pytest.approx(32 * 64 * 4)


def test_a_vector_kernel_has_a_timeline_of_its_core() -> None:
    program = scalebox.pl.parse(
        """from scalebox.ir import language as pl

A = pl.Tensor[[16, 64], pl.FP32]


@pl.jit
def main(a: A, c: pl.Out[A]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c = pl.store(pl.add(pl.load(a, [0, 0], [16, 64]), 1.0), [0, 0], c)
    return c
"""
    )
    assert isinstance(program, Program)
    result = scalebox.run(program, {"a": np.ones((16, 64), np.float32)})
    trace = timeline_of(result.simulation, result.target).as_trace()
    names = {
        each["args"]["name"] for each in trace["traceEvents"] if each["name"] == "process_name"
    }
    assert names == {"0.AIV0", "device (1 us is 1 cycle)"}


def test_a_run_says_when_its_timeline_shows_only_some_clusters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, examples: Path
) -> None:
    command = ["run", str(examples / "examples" / "mx_spmd.py"), "--out", "saved"]
    assert main(command) == 0
    assert "its timeline.json opens in https://ui.perfetto.dev" in capsys.readouterr().out
    monkeypatch.setattr(run_trace, "MOST_SLICES", 1)
    assert main(command) == 0
    assert "its timeline.json (1 of 4 clusters) opens in" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    assert answer(capsys)["timeline_clusters"] == "1 of 4"


def test_a_run_without_a_timeline_is_replayed_without_one(
    capsys: pytest.CaptureFixture[str], kernel: Callable[..., str]
) -> None:
    assert main(["run", kernel(32, 512, 64), "--no-timeline", "--out", "saved"]) == 0
    shown = capsys.readouterr().out
    assert "bundle   saved" in shown
    assert "timeline" not in shown
    assert not Path("saved/timeline.json").exists()
    assert main(["run", "saved", "--out", "again"]) == 0
    assert not Path("again/timeline.json").exists()
    assert main(["run", "saved", "--no-timeline"]) == 2
    assert "--no-timeline must go with a kernel or an executable" in capsys.readouterr().err
