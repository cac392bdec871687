"""Flags that are left over, waited for in vain, or set too often: told in every kind of run."""

from typing import Any

import pytest

from scalebox.ir.errors import SimulationFault

from .seeded import faults_of, overruns_of, run_text

KINDS: list[dict[str, bool]] = [{}, {"timing": False}, {"functional": False}]
SET, WAIT = "set_flag src=mte2, dst=mte1, id=3", "wait_flag src=mte2, dst=mte1, id=3"


def told(bench: Any, text: str, options: dict[str, bool], mate: str = "") -> SimulationFault:
    kernel = bench.mixed(text, mate) if mate else bench.kernel(text)
    with pytest.raises(SimulationFault) as caught:
        bench.run(kernel, **options)
    return caught.value


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize(
    ("text", "times", "line"),
    [(f"{SET}\nnop", "once", 1), (f"{SET}\n{SET}\n{WAIT}\n{SET}", "2 times", 4)],
)
def test_a_set_that_nobody_waits_for_is_told_with_how_often(
    bench: Any, options: dict[str, bool], text: str, times: str, line: int
) -> None:
    fault = told(bench, text, options)
    assert (
        f"flag 3 from MTE2 to MTE1 is still set {times} at the end of kernel 'k'" in fault.message
    )
    assert f"last by instruction {line - 1} (set_flag" in fault.message
    assert str(fault.span) == f"kernel.py:{line}:1"


@pytest.mark.parametrize("options", KINDS)
def test_a_core_flag_that_nobody_waits_for_is_told_with_its_cores(
    bench: Any, options: dict[str, bool]
) -> None:
    fault = told(bench, "set_core_flag pipe=m, to=aiv0, id=2", options, "nop")
    assert "core flag 2 from AIC to AIV0 is still set once" in fault.message
    assert "of AIC" in fault.message


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (WAIT, "MTE1 waits at instruction 0 (wait_flag src=mte2, dst=mte1, id=3) [kernel.py:1:1] "
         "for flag 3 from MTE2 to MTE1, which nothing sets any more"),
        (f"{SET}\n{WAIT}\n{WAIT}", "MTE1 waits at instruction 2"),
        (f"{SET.replace('id=3', 'id=2')}\n{WAIT}", "which nothing sets any more"),
    ],
)  # fmt: skip
def test_a_wait_for_what_nobody_sets_says_what_it_waits_for(
    bench: Any, options: dict[str, bool], text: str, words: str
) -> None:
    assert words in told(bench, text, options).message


@pytest.mark.parametrize("options", KINDS)
def test_pipes_that_wait_in_a_circle_are_named(bench: Any, options: dict[str, bool]) -> None:
    text = (
        "wait_flag src=m, dst=mte1, id=0\nset_flag src=mte1, dst=m, id=0\n"
        "wait_flag src=mte1, dst=m, id=0\nset_flag src=m, dst=mte1, id=0"
    )
    fault = told(bench, text, options)
    assert "MTE1 waits at instruction 0" in fault.message
    assert "M waits at instruction 2" in fault.message
    assert "it stands in the queue of MTE1" in fault.message
    assert "each of these waits for the next one: M, MTE1, M" in (fault.note or "")


@pytest.mark.parametrize("options", KINDS)
def test_a_queue_that_is_full_before_the_set_is_issued(
    bench: Any, options: dict[str, bool]
) -> None:
    full = "l1_to_bias l1[0], bias[0], bytes=32\n" * 40
    fault = told(bench, f"{WAIT}\n{full}{SET}", options)
    assert "the scalar unit waits at instruction 32" in fault.message
    assert "room in the queue of MTE1" in fault.message
    assert "the scalar unit, MTE1, the scalar unit" in (fault.note or "")


@pytest.mark.parametrize("options", KINDS)
def test_cores_that_wait_in_a_circle_are_named(bench: Any, options: dict[str, bool]) -> None:
    cube = "wait_core_flag pipe=m, of=aiv0, id=1\nset_core_flag pipe=m, to=aiv0, id=0"
    mate = "wait_core_flag pipe=v, of=aic, id=0\nset_core_flag pipe=v, to=aic, id=1"
    fault = told(bench, cube, options, mate)
    assert "M of AIC waits" in fault.message
    assert "V of AIV0 waits" in fault.message
    assert "M of AIC, V of AIV0, M of AIC" in (fault.note or "")


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize("checks", ["error", "warn", "off"])
def test_nobody_can_let_a_deadlock_pass(bench: Any, checks: str, options: dict[str, bool]) -> None:
    with pytest.raises(SimulationFault, match="must be able to go on"):
        bench.run(bench.kernel(WAIT), checks=checks, **options)


def test_a_flag_may_be_set_fifteen_times_ahead_and_no_further(bench: Any) -> None:
    for times, count in ((15, 0), (16, 1), (20, 1)):
        text = f"{SET}\n" * times + f"{WAIT}\n" * times
        found = overruns_of(bench.kernel(text))
        assert len(found) == count
        warnings = bench.run(bench.kernel(text), timing=False).warnings
        assert len(warnings) == count
    assert (
        "at most 15 times ahead of its waits, but flag 3 from MTE2 to MTE1 can be set" in found[0]
    )
    assert "instruction 15 (set_flag" in found[0]


def test_waits_that_surely_come_first_keep_a_flag_from_overrunning(bench: Any) -> None:
    back = "src=mte1, dst=mte2, id=0"
    trip = f"{SET}\n{WAIT}\nset_flag {back}\nwait_flag {back}\n"
    assert overruns_of(bench.kernel(trip * 40)) == []
    assert len(overruns_of(bench.kernel(f"{SET}\n{WAIT}\n" * 40))) == 1


def test_a_pipe_that_sets_nothing_is_at_rest(bench: Any) -> None:
    assert faults_of(run_text(bench, f"{SET}\n{WAIT}")) == []
