"""Bytes are in use from their write until their last read, or until they are written anew."""

import itertools
from typing import Any

import numpy as np
import pytest

from scalebox.codegen.isa.vocabulary import ClusterCore
from scalebox.sim.account.occupancy import occupancy
from scalebox.sim.account.records import Records, records_of
from scalebox.sim.account.slices import Slices
from scalebox.sim.report import SimResult

from .random_streams import kernel_of

AIC, AIV0 = ClusterCore.AIC, ClusterCore.AIV0
BIAS = "l1_to_bias l1[{}], bias[0], bytes=32"
LOAD = "gm_to_l1_row v0, x0, x0, l1[{}], cols=64"
FLAG = "set_flag src={0}, dst={1}, id=0\nwait_flag src={0}, dst={1}, id=0"


def run(bench: Any, *texts: str) -> tuple[SimResult, Records]:
    result = bench.run(kernel_of(bench, texts), functional=False, checks="off")
    return result, records_of(result, bench.target)


def in_use(
    bench: Any, result: SimResult, records: Records, window: int = 1
) -> dict[tuple[ClusterCore, str], Any]:
    cores = range(len(result.cores))
    return occupancy(records, bench.target, cores, window=window, cycles=result.cycles)


def spans(values: Any) -> list[tuple[int, int, int]]:
    """Return from when to when a counter had which value, where it was not 0."""
    edges = np.flatnonzero(np.diff(values, prepend=0, append=0)).tolist()
    pieces = itertools.pairwise(edges)
    return [(a, b, int(values[a])) for a, b in pieces if values[a]]


def test_what_nobody_reads_is_in_use_until_it_is_there(bench: Any) -> None:
    result, records = run(bench, LOAD.format(0))
    found = in_use(bench, result, records)
    assert set(found) == {(AIC, "L1")}
    assert spans(found[AIC, "L1"]) == [(int(records.start[0]), int(records.done[0]), 64)]


def test_what_is_read_is_in_use_until_its_reader_has_left_the_pipe(bench: Any) -> None:
    text = "\n".join([LOAD.format(0), FLAG.format("mte2", "mte1"), BIAS.format(0)])
    result, records = run(bench, text)
    found = in_use(bench, result, records)
    load, move = 0, 3
    middle = int(records.done[load])
    # The move reads the first half of the row.
    assert spans(found[AIC, "L1"]) == [
        (int(records.start[load]), middle, 64),
        (middle, int(records.end[move]), 32),
    ]
    assert spans(found[AIC, "BIAS"]) == [(int(records.start[move]), int(records.done[move]), 32)]


def test_what_is_written_anew_counts_once(bench: Any) -> None:
    result, records = run(bench, f"{LOAD.format(0)}\n{LOAD.format(0)}")
    values = in_use(bench, result, records)[AIC, "L1"]
    assert max(values) == 64
    assert spans(values) == [(int(records.start[0]), int(records.done[1]), 64)]


def test_two_buffers_add_up(bench: Any) -> None:
    result, records = run(bench, f"{LOAD.format(0)}\n{LOAD.format(64)}")
    assert max(in_use(bench, result, records)[AIC, "L1"]) == 128


def test_a_vector_core_has_its_own_memory(bench: Any) -> None:
    vector = "gm_to_ub v0, x0, x0, ub[0], rows=1, cols=64, pitch=2"
    result, records = run(bench, LOAD.format(0), vector)
    found = in_use(bench, result, records)
    assert set(found) == {(AIC, "L1"), (AIV0, "UB")}
    assert max(found[AIV0, "UB"]) == 64


@pytest.mark.parametrize("window", [2, 7, 1000])
def test_a_wider_window_tells_the_mean(bench: Any, window: int) -> None:
    text = "\n".join([LOAD.format(0), FLAG.format("mte2", "mte1"), BIAS.format(0)])
    result, records = run(bench, text)
    exact = in_use(bench, result, records)[AIC, "L1"]
    means = in_use(bench, result, records, window)[AIC, "L1"]
    for number, mean in enumerate(means):
        piece = exact[number * window : (number + 1) * window]
        assert mean == pytest.approx(piece.mean())


def test_the_timeline_has_the_counters_of_each_memory(bench: Any) -> None:
    result, records = run(bench, LOAD.format(0))
    slices = Slices(records, cycles=result.cycles)
    samples = list(slices.fillings([0], bench.target))
    assert {(each.core, each.counter) for each in samples} == {(0, "L1")}
    assert samples[0].values == samples[-1].values == {"in use, bytes": 0.0}
    assert max(each.values["in use, bytes"] for each in samples) == 64
