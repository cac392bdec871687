"""The sentence on what bounds a run follows from its critical path and from how busy pipes are."""

import pytest

from scalebox.app.account.bottleneck import bottleneck
from scalebox.app.account.pipe_shares import WAITS, PipeShare
from scalebox.codegen.isa.vocabulary import ClusterCore, Pipe
from scalebox.sim.account.critical import PathShare
from scalebox.sim.account.records import Cause

WORK = 1000


def on_path(cause: Cause, pipe: Pipe | None, cycles: int) -> PathShare:
    return PathShare(cause, pipe, "x", "kernel.py:1:1", cycles, 1)


def pipe_share(pipe: Pipe, busy: float) -> PipeShare:
    waits = dict.fromkeys(WAITS, 0.0)
    return PipeShare(
        ClusterCore.AIC, pipe, "what it does", 1, round(busy * WORK), busy, waits, 1 - busy,
        (busy, 0), (busy, 0),
    )  # fmt: skip


PIPES = (pipe_share(Pipe.MTE2, 0.96), pipe_share(Pipe.M, 0.5))


def test_a_pipe_that_is_always_busy_bounds_the_run() -> None:
    path = [on_path(Cause.BUSY, Pipe.MTE2, 930), on_path(Cause.BUSY, Pipe.M, 70)]
    assert bottleneck(path, PIPES, WORK) == (
        "MTE2 bounds this run (what it does): it is busy for 96% of the work cycles and makes up "
        "93% of the critical path."
    )


def test_a_second_pipe_that_is_nearly_as_busy_is_named() -> None:
    pipes = (pipe_share(Pipe.MTE2, 0.95), pipe_share(Pipe.M, 0.91), pipe_share(Pipe.FIX, 0.7))
    shown = bottleneck([on_path(Cause.BUSY, Pipe.MTE2, 930)], pipes, WORK)
    assert shown.endswith("However fast it were, M alone would take 91% of the cycles.")


def test_lines_of_one_pipe_count_together_and_the_launch_not_at_all() -> None:
    path = [
        on_path(Cause.LAUNCH, None, 5000),
        on_path(Cause.BUSY, Pipe.M, 500),
        *[on_path(Cause.BUSY, Pipe.MTE2, 250)] * 2,
    ]
    shown = bottleneck([*path, on_path(Cause.BUSY, Pipe.MTE2, 1)], PIPES, WORK + 1)
    assert shown.startswith("MTE2 bounds this run")
    assert "50% of the critical path" in shown


@pytest.mark.parametrize(
    ("cause", "pipe", "begin"),
    [
        (Cause.LATENCY, Pipe.MTE2, "The latency of global memory bounds this run: 70% "),
        (Cause.MEMORY, Pipe.MTE2, "Bandwidth that is shared bounds this run: 70% "),
        (Cause.SCALES, Pipe.M, "The scale buffers bound this run: 70% "),
        (Cause.FLAG, Pipe.M, "Flags bound this run: 70% "),
        (Cause.ISSUE, Pipe.S, "The scalar unit bounds this run: 70% "),
        (Cause.TASK, None, "The tasks bound this run: 70% "),
    ],
)
def test_what_most_of_the_path_is_bounds_the_run(
    cause: Cause, pipe: Pipe | None, begin: str
) -> None:
    path = [on_path(cause, pipe, 700), on_path(Cause.BUSY, Pipe.M, 300)]
    assert bottleneck(path, PIPES, WORK).startswith(begin)


def test_where_pipes_take_turns_they_are_all_named() -> None:
    path = [
        on_path(Cause.BUSY, Pipe.FIX, 350),
        on_path(Cause.LATENCY, Pipe.MTE2, 330),
        on_path(Cause.BUSY, Pipe.M, 320),
    ]
    shown = bottleneck(path, [pipe_share(Pipe.M, 0.32), pipe_share(Pipe.FIX, 0.35)], WORK)
    assert shown == (
        "No pipe alone bounds this run (FIX is the busiest, 35%): on the critical path are FIX at "
        "work 35%, latency of global memory 33%, M at work 32%, one after the other; what lets "
        "them overlap shortens it."
    )


def test_a_pipe_that_leads_the_path_without_being_full_is_not_blamed_alone() -> None:
    path = [on_path(Cause.BUSY, Pipe.M, 600), on_path(Cause.BUSY, Pipe.FIX, 400)]
    pipes = [pipe_share(Pipe.M, 0.6), pipe_share(Pipe.FIX, 0.4)]
    assert bottleneck(path, pipes, WORK).startswith("No pipe alone bounds this run (M ")


def test_a_run_without_work_is_bound_by_nothing() -> None:
    path = [on_path(Cause.LAUNCH, None, 4950)]
    assert bottleneck(path, (), 1) == "Nothing bounds this run, which does no work."
