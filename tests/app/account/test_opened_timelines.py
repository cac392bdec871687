"""The timelines of runs, opened by the rules of Perfetto's importer: nothing is lost or moved.

`test_perfetto.py` asks the same of the real one, where there is one.
"""

from collections.abc import Callable

import pytest

from scalebox.ir.core import Program

from ...traces.importer import opened
from .timeline_promises import (
    NAMES,
    assert_adds_up,
    assert_arrows,
    assert_counters,
    assert_kept,
    of_example,
)

Gemm = Callable[..., Program]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_shown_whole(name: str) -> None:
    run = of_example(name)
    found = opened(run.trace)
    assert_kept(run, found)
    assert_adds_up(run, found)
    assert_arrows(run, found)
    assert_counters(found)


def test_a_wait_that_must_wait_is_its_cause_and_then_the_wait() -> None:
    found = opened(of_example("mx_matmul").trace)
    stalls = [each for each in found.slices if each.name == "waits for a flag"]
    assert stalls
    for each in stalls:
        assert each.args["mnemonic"] == "wait_flag"
        (wait,) = [
            other
            for other in found.slices
            if (other.process, other.thread) == (each.process, each.thread)
            if (other.name, other.ts) == ("wait_flag", each.end)
        ]
        told = "flag", "set_by", "source", "instruction"
        assert [wait.args[name] for name in told] == [each.args[name] for name in told]
