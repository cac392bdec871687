"""Data races: whatever two instructions touch alike without an order between them is told, no more."""

from typing import Any

import numpy as np
import pytest

from scalebox.codegen.isa.vocabulary import CoreKind
from scalebox.ir.errors import SimulationFault

from .seeded import faults_of, messages, run_text

LOAD = "gm_to_l1_nz v0, x0, x0, l1[{at}], rows=16, cols=64, l1_rows={tall}"
MOVE = "l1_to_l0a l1[{at}], l0a[0], row_boxes=1, col_boxes=2, src_pitch=1, dst_pitch=1"
BIAS = "l1_to_bias l1[{at}], bias[0], bytes=64"
TURN = "l1_to_l0b l1[0x8000], l0b[0], bits=b8, k=64, n=16, src_k=64"
MAD = "mad l0c[0], l0a[0], l0b[0], bias[0], m=16, k=64, n=16, a_type=e4m3, b_type=e4m3, init={init}"
DRAIN = "l0c_to_gm_fix v1, x0, x0, l0c[0], rows=16, cols=16, src_boxes=1, convert=e4m3, relu=0"


def flag(src: str, dst: str, number: int = 0) -> str:
    ends = f"src={src}, dst={dst}, id={number}"
    return f"set_flag {ends}\nwait_flag {ends}"


def load(at: int = 0, tall: int = 16) -> str:
    return LOAD.format(at=at, tall=tall)


def move(at: int = 0) -> str:
    return MOVE.format(at=at)


PRODUCT = (
    load(), load(0x8000, 64).replace("rows=16", "rows=64").replace("cols=64", "cols=16"),
    flag("mte2", "mte1"), move(), TURN, flag("mte1", "m"), MAD.format(init="zero"),
    flag("m", "fix"), DRAIN,
)  # fmt: skip


def test_a_product_in_order_races_nowhere(bench: Any) -> None:
    assert faults_of(run_text(bench, "\n".join(PRODUCT))) == []


@pytest.mark.parametrize(
    ("left_out", "memory", "first", "then"),
    [
        (2, "1024 bytes from byte 0 on of L1", "MTE2 the first writes", "MTE1 the second reads"),
        (5, "1024 bytes from byte 0 on of L0A", "MTE1 the first writes", "M the second reads"),
        (7, "1024 bytes from byte 0 on of L0C", "M the first writes", "FIX the second reads"),
    ],
)
def test_a_read_before_the_write_is_done_races(
    bench: Any, left_out: int, memory: str, first: str, then: str
) -> None:
    text = [part for number, part in enumerate(PRODUCT) if number != left_out]
    found = messages(run_text(bench, "\n".join(text)))
    assert any(memory in each and first in each and then in each for each in found)


def test_a_race_names_both_instructions_their_lines_bytes_and_the_flag(bench: Any) -> None:
    (fault,) = faults_of(run_text(bench, f"{load()}\nnop\n{move()}"))
    assert fault.message == (
        "Two instructions must not race for the same bytes, but nothing orders instruction 0 "
        "(gm_to_l1_nz v0, x0, x0, l1[0x0], rows=16, cols=64, l1_rows=16) [kernel.py:1:1] and "
        "instruction 2 (l1_to_l0a l1[0x0], l0a[0x0], row_boxes=1, col_boxes=2, src_pitch=1, "
        "dst_pitch=1) [kernel.py:3:1]: on MTE2 the first writes, on MTE1 the second reads 1024 bytes "
        "from byte 0 on of L1."
    )
    assert str(fault.span) == "kernel.py:3:1"
    assert (
        fault.hint
        == "a flag from MTE2 to MTE1 set behind the first and waited for before the second"
    )


@pytest.mark.parametrize(
    "text",
    [
        f"{load()}\n{flag('mte2', 'mte1')}\n{move()}\n{load()}",  # a load over what is being moved
        f"{move()}\n{MAD.format(init='zero')}\n{flag('mte1', 'm', 1)}",  # a set behind is too late
        f"{MAD.format(init='acc')}\n{DRAIN}",
        f"{BIAS.format(at=0)}\n{MAD.format(init='bias')}",
    ],
)
def test_other_orders_that_are_missing_race(bench: Any, text: str) -> None:
    assert any("nothing orders" in each for each in messages(run_text(bench, text)))


def test_the_scales_of_a_product_race_like_its_data(bench: Any) -> None:
    text = (
        "l1_to_scale_a l1[0], scale_a[0x20], row_boxes=1, col_boxes=1, src_pitch=1\n"
        "mad_mx l0c[0], l0a[0x200], l0b[0], bias[0], m=16, k=64, n=16, a_type=e4m3, b_type=e4m3, init=zero"
    )
    assert any(
        "32 bytes from byte 32 on of SCALE_A" in each for each in messages(run_text(bench, text))
    )


def test_issue_alone_orders_nothing_but_a_barrier_of_all_pipes_does(bench: Any) -> None:
    assert len(faults_of(run_text(bench, f"{load()}\npipe_barrier pipe=mte2\n{move()}"))) == 1
    assert faults_of(run_text(bench, f"{load()}\npipe_barrier pipe=all\n{move()}")) == []


def test_a_wait_of_the_scalar_unit_orders_what_it_issues_later(bench: Any) -> None:
    signal = "set_flag src=mte2, dst=s, id=0\nwait_flag src=mte2, dst=s, id=0"
    assert faults_of(run_text(bench, f"{load()}\n{signal}\n{move()}")) == []
    assert len(faults_of(run_text(bench, f"{load()}\n{move()}\n{signal}"))) == 1


def test_an_order_may_lead_over_a_third_pipe(bench: Any) -> None:
    way = f"{flag('mte2', 'm')}\n{flag('m', 'mte1')}"
    assert faults_of(run_text(bench, f"{load()}\n{way}\n{move()}")) == []


def test_the_second_wait_takes_the_second_set(bench: Any) -> None:
    first, second = load(), load(0x4000)
    signal, wait = flag("mte2", "mte1").split("\n")
    text = [first, signal, second, signal, wait, move(), move(0x4000)]
    (fault,) = faults_of(run_text(bench, "\n".join([*text, wait])))
    assert "from byte 16384 on of L1" in fault.message
    text.insert(6, wait)
    assert faults_of(run_text(bench, "\n".join(text))) == []


def test_tiles_between_the_rows_of_another_one_are_apart(bench: Any) -> None:
    """Two columns of boxes, 64 rows apart: what fills the rows between them is no race."""
    tall = load(tall=64)  # bytes 0 to 511 and 2048 to 2559
    between = "l1_to_bias l1[{at}], bias[0], bytes=64"
    for at in (512, 1984, 2560):
        assert faults_of(run_text(bench, f"{tall}\n{between.format(at=at)}")) == []
    for at in (0, 480, 2016, 2048, 2528):
        assert len(faults_of(run_text(bench, f"{tall}\n{between.format(at=at)}"))) == 1


def test_two_readers_do_not_race(bench: Any) -> None:
    text = f"{load()}\n{flag('mte2', 'mte1')}\n{flag('mte2', 'fix')}\n{move()}\nl1_to_fixp l1[0], fixp[0], bytes=64"
    assert faults_of(run_text(bench, text)) == []


VECTOR_LOAD = "gm_to_ub v0, {row}, x0, ub[0], rows=16, cols=64, pitch=2"
ADD = "v_unary ub[{to}], ub[0], op=relu, type=fp16, rows=16, cols=16, dst_pitch=2, src_pitch=2"
STORE = "ub_to_gm v1, x0, x0, ub[{at}], rows=16, cols=32, pitch=2"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (f"{VECTOR_LOAD}\n{ADD}", 1),
        (f"{VECTOR_LOAD}\n{flag('mte2', 'v')}\n{ADD}\n{STORE}", 1),
        (f"{VECTOR_LOAD}\n{flag('mte2', 'v')}\n{ADD}\n{flag('v', 'mte3')}\n{STORE}", 0),
        (
            f"{VECTOR_LOAD}\n{flag('mte2', 'v')}\n{ADD}\n{flag('v', 'mte3')}\n{STORE}\n{VECTOR_LOAD}",
            1,
        ),
    ],
)
def test_a_vector_core_is_held_to_the_same(bench: Any, text: str, count: int) -> None:
    text = text.format(row="x0", to=0x4000, at=0x4000)
    assert len(faults_of(run_text(bench, text, core=CoreKind.AIV))) == count


def test_bytes_between_the_columns_of_a_pitch_are_apart(bench: Any) -> None:
    """A tile of 32 bytes a row, 64 apart, and one in the other halves of the rows."""
    text = f"{ADD.format(to=0x4000)}\n{STORE.format(at=0x4020)}"
    assert faults_of(run_text(bench, text, core=CoreKind.AIV)) == []
    text = f"{ADD.format(to=0x4000)}\n{STORE.format(at=0x4000)}"
    assert len(faults_of(run_text(bench, text, core=CoreKind.AIV))) == 1


@pytest.mark.parametrize(("row", "count"), [(0, 1), (15, 1), (16, 0)])
def test_global_memory_within_a_task_races_too(bench: Any, row: int, count: int) -> None:
    text = f"movi x1, {row}\n{STORE.format(at=0x4000)}\n{VECTOR_LOAD.format(row='x1')}"
    text = text.replace("gm_to_ub v0", "gm_to_ub v1")
    found = messages(run_text(bench, text, core=CoreKind.AIV))
    assert len(found) == count
    if found:
        assert f"from byte {64 * row} on of 'b' in GM" in found[0]


CUBE = "wait_core_flag pipe=mte1, of=aiv0, id=0\nl1_to_bias l1[0], bias[0], bytes=64"
MATE = "ub_to_l1 ub[0], l1[0], lines=1, units=2, ub_pitch=2, l1_pitch=2\nset_core_flag pipe=mte3, to=aic, id=0"


def test_what_one_core_hands_the_other_is_held_to_the_same(bench: Any) -> None:
    assert faults_of(bench.mixed(CUBE, MATE)) == []
    late = "\n".join(reversed(MATE.split("\n")))
    (fault,) = faults_of(bench.mixed(CUBE, late))
    assert "on MTE3 of AIV0" in fault.message
    assert "mate.py:2:1" in fault.message
    assert "kernel.py:2:1" in fault.message
    assert "core flag from" in (fault.hint or "")


@pytest.mark.parametrize("options", [{}, {"timing": False}, {"functional": False}])
def test_a_race_is_a_fault_in_every_kind_of_run(bench: Any, options: dict[str, bool]) -> None:
    kernel = run_text(bench, f"{load()}\n{move()}")
    buffers = dict.fromkeys("abc", np.zeros(64 * 64, np.uint8))
    with pytest.raises(SimulationFault, match="nothing orders"):
        bench.run(kernel, buffers, **options)
    lenient = bench.run(kernel, buffers, checks="warn", **options)
    assert any("nothing orders" in each.message for each in lenient.warnings)
    quiet = bench.run(kernel, buffers, checks="off", **options)
    assert not any("nothing orders" in each.message for each in quiet.warnings)
