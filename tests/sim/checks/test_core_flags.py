"""Core flags that several pipes set or wait for: only what every matching gives is an order."""

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest

from scalebox.codegen.executable import Kernel

from .seeded import faults_of, overruns_of

STORE = "l0c_to_gm v0, x0, x0, l0c[0], rows=16, cols=16, src_rows=16, convert=fp32"
LOAD = "gm_to_ub v0, x0, x0, ub[0], rows=16, cols=16, pitch=2"
FROM_FIX_TO_MTE2 = "set_flag src=fix, dst=mte2, id=0\nwait_flag src=fix, dst=mte2, id=0"


def ready(pipe: str, number: int = 0) -> str:
    return f"set_core_flag pipe={pipe}, to=aiv0, id={number}"


def wait(pipe: str, number: int = 0) -> str:
    return f"wait_core_flag pipe={pipe}, of=aic, id={number}"


def back(pipe: str, number: int = 1) -> str:
    return f"set_core_flag pipe={pipe}, to=aic, id={number}"


def wait_back(pipe: str, number: int = 1) -> str:
    return f"wait_core_flag pipe={pipe}, of=aiv0, id={number}"


def handed(bench: Any, cube: Sequence[str], vector: Sequence[str]) -> Kernel:
    """Return a kernel whose cores share a tensor in GM."""
    params = [bench.tensor("c", "FP32", (16, 16), "inout")]
    return bench.mixed("\n".join(cube), "\n".join(vector), params, [bench.plain(0, 32, 16, 16)])


def races(kernel: Kernel) -> int:
    return sum("must not race" in fault.message for fault in faults_of(kernel))


@pytest.mark.parametrize(
    ("cube", "vector"),
    [
        ([STORE, ready("fix"), ready("mte2")], [wait("mte2"), LOAD, wait("mte2")]),
        ([ready("mte2"), STORE, ready("fix")], [wait("mte2"), LOAD, wait("mte2")]),
        ([ready("fix"), STORE, ready("fix")], [wait("v"), wait("mte2"), LOAD]),
        ([ready("fix"), STORE, ready("fix")], [wait("mte2"), LOAD, wait("v")]),
        ([STORE, ready("fix"), ready("m"), ready("mte2")], [wait("mte2"), wait("mte2"), LOAD, wait("v")]),
    ],
)  # fmt: skip
def test_a_wait_that_may_take_the_set_of_another_pipe_orders_nothing(
    bench: Any, cube: list[str], vector: list[str]
) -> None:
    (fault,) = faults_of(handed(bench, cube, vector))
    assert "on FIX of AIC the first writes, on MTE2 of AIV0 the second reads" in fault.message


@pytest.mark.parametrize(
    ("cube", "vector"),
    [
        ([STORE, ready("fix"), ready("mte2")], [wait("mte2"), wait("mte2"), LOAD]),
        ([ready("mte2"), STORE, ready("fix")], [wait("mte2"), wait("mte2"), LOAD]),
        ([STORE, ready("fix"), ready("fix")], [wait("v"), wait("mte2"), LOAD]),
        ([STORE, ready("fix"), FROM_FIX_TO_MTE2, ready("mte2")], [wait("mte2"), LOAD, wait("mte2")]),
        ([STORE, ready("fix"), ready("mte2", 1)], [wait("mte2"), LOAD, wait("mte2", 1)]),
    ],
    ids=["join", "join the other way", "either set will do", "sets in order", "two flags"],
)  # fmt: skip
def test_an_order_that_every_matching_gives_is_one(
    bench: Any, cube: list[str], vector: list[str]
) -> None:
    assert faults_of(handed(bench, cube, vector)) == []


def test_a_join_in_a_loop_needs_an_answer_before_the_next_trip(bench: Any) -> None:
    join = [STORE, ready("fix"), ready("mte2")]
    use = [wait("mte2"), wait("mte2"), LOAD]
    answered = [wait_back("fix", 1), wait_back("mte2", 2)]
    answer = [back("mte2", 1), back("mte2", 2)]
    assert faults_of(handed(bench, (join + answered) * 20, (use + answer) * 20)) == []
    assert races(handed(bench, (join + answered[:1]) * 3, (use + answer[:1]) * 3)) > 0
    assert races(handed(bench, join * 3, use * 3)) > 0


# --------------------------------------------------------------------------- against all runs

Lanes = tuple[tuple[str, ...], ...]
_CUBE, _VECTOR = ("fix", "mte2", "m"), ("mte2", "v")


def firsts(lanes: Lanes) -> frozenset[str]:
    """Return which of the store and the load may come first, over all runs; nothing if one hangs.

    A lane is what a pipe does: "+a" sets the flag a, "-a" waits for it.
    """
    hangs: list[tuple[int, ...]] = []

    @cache
    def after(at: tuple[int, ...]) -> frozenset[str]:
        done = [step for lane, place in zip(lanes, at, strict=True) for step in lane[:place]]
        found: set[str] = set()
        moved = False
        for number, place in enumerate(at):
            step = lanes[number][place] if place < len(lanes[number]) else ""
            if not step or (step[0] == "-" and done.count(f"+{step[1]}") <= done.count(step)):
                continue
            moved = True
            rest = after((*at[:number], place + 1, *at[number + 1 :]))
            found |= {step} if step in ("load", "store") else rest
        if not moved and at != tuple(map(len, lanes)):
            hangs.append(at)
        return frozenset(found)

    found = after((0,) * len(lanes))
    return frozenset() if hangs else found


def random_lanes(draw: random.Random, flags: str) -> Lanes:
    """Return what three pipes of the cube and two of the vector core do; flag b goes back."""
    lanes: list[list[str]] = [[], [], [], [], []]
    for flag in flags:
        ends = (range(3), range(3, 5)) if flag == "a" else (range(3, 5), range(3))
        sets = draw.randint(1, 4)
        for sign, end, times in (
            ("+", ends[0], sets),
            ("-", ends[1], sets - draw.choice((0, 0, sets // 2))),
        ):
            for _ in range(times):
                lane = lanes[draw.choice(end)]
                lane.insert(draw.randint(0, len(lane)), sign + flag)
    lanes[0].insert(draw.choice((0, 0, 0, len(lanes[0]))), "store")
    lanes[3].insert(len(lanes[3]) - draw.choice((0, 0, 0, len(lanes[3]))), "load")
    return tuple(map(tuple, lanes))


def kernel_of(bench: Any, lanes: Lanes) -> Kernel:
    words: dict[str, Callable[[str], str]] = {
        "store": lambda _: STORE,
        "load": lambda _: LOAD,
        "+a": ready,
        "-a": wait,
        "+b": back,
        "-b": wait_back,
    }
    sides = [
        [words[step](pipe) for pipe, lane in zip(pipes, of, strict=True) for step in lane]
        for pipes, of in ((_CUBE, lanes[:3]), (_VECTOR, lanes[3:]))
    ]
    return handed(bench, *sides)


@pytest.mark.parametrize("flags", ["a", "ab"])
def test_a_race_is_told_where_runs_differ_in_what_comes_first(bench: Any, flags: str) -> None:
    draw = random.Random(7)
    found = {(one, other): 0 for one in (False, True) for other in (False, True)}
    while sum(found.values()) < 200:
        lanes = random_lanes(draw, flags)
        first = firsts(lanes)
        if first:
            found[len(first) > 1, races(kernel_of(bench, lanes)) > 0] += 1
    assert found[True, False] == 0, "none may be missed"
    assert found[False, True] <= (0 if flags == "a" else 10)
    assert min(found[True, True], found[False, False]) >= 15


# --------------------------------------------------------------------------- overruns


@pytest.mark.parametrize(
    ("sets", "count"),
    [
        (["fix"] * 15, 0),
        (["fix"] * 16, 1),
        (["fix"] * 20, 1),
        (["fix"] * 8 + ["mte2"] * 7, 0),
        (["fix"] * 8 + ["mte2"] * 8, 1),
    ],
)
def test_a_core_flag_may_be_set_fifteen_times_ahead_and_no_further(
    bench: Any, sets: list[str], count: int
) -> None:
    kernel = bench.mixed("\n".join(map(ready, sets)), "\n".join([wait("mte2")] * len(sets)))
    found = overruns_of(kernel)
    assert len(found) == count
    assert len(bench.run(kernel, timing=False).warnings) == count
    if found:
        assert "but core flag 0 from AIC to AIV0 can be set once more by instruction" in found[0]


def test_an_answer_keeps_a_core_flag_from_overrunning(bench: Any) -> None:
    cube, vector = [ready("fix"), wait_back("fix", 1)], [wait("mte2"), back("mte2", 1)]
    assert overruns_of(handed(bench, cube * 40, vector * 40)) == []
    late = [*vector * 40, *[wait("mte2")] * 20]
    assert len(overruns_of(handed(bench, [*cube * 40, *[ready("fix")] * 20], late))) == 1
    cube, vector = [ready("fix"), ready("mte2"), *cube[1:], wait_back("mte2", 2)], [
        wait("mte2"), *vector, back("mte2", 2)]  # fmt: skip
    assert overruns_of(handed(bench, cube * 40, vector * 40)) == []
