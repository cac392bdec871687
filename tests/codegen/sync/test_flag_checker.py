"""The judge of flags is itself judged: programs whose faults are known, and one that has none."""

from scalebox.codegen.isa.asm import parse_program
from scalebox.codegen.isa.program import Instruction

from ..emit.scalar_machine import run_scalar_unit
from .flag_checker import Verdict, gets_through, judge, judge_cores, local_bytes
from .random_trees import VIEWS

LOAD = "gm_to_l1_row v0, x0, x0, l1[0x0], cols=32\n"
MOVE = "l1_to_bias l1[0x0], bias[0x0], bytes=32\n"
SET = "set_flag src=mte2, dst=mte1, id=0\n"
WAIT = "wait_flag src=mte2, dst=mte1, id=0\n"
BACK = "set_flag src=mte1, dst=mte2, id=0\n"
WAIT_BACK = "wait_flag src=mte1, dst=mte2, id=0\n"


def program(body: str) -> list[Instruction]:
    return parse_program(f"movi x0, 0\n{body}halt\n")


def verdict(body: str) -> Verdict:
    return judge(program(body), VIEWS)


def test_a_flag_orders_a_load_before_the_move_that_reads_it():
    found = verdict(LOAD + SET + WAIT + MOVE)
    assert found.sound
    assert found.pairs == {(2, 3)}


def test_without_the_flag_they_race():
    assert verdict(LOAD + MOVE).races == [(1, 2)]


def test_a_flag_set_before_the_load_orders_nothing():
    assert verdict(SET + LOAD + WAIT + MOVE).races == [(2, 4)]


def test_a_reader_races_with_the_next_write_into_its_bytes():
    assert verdict(LOAD + SET + WAIT + MOVE + LOAD).races == [(4, 5)]


def test_a_barrier_orders_everything():
    assert verdict(LOAD + "pipe_barrier pipe=all\n" + MOVE).sound


def test_an_order_against_the_program_is_a_race():
    # The move waits for nothing, the load waits for the move: ordered, but the wrong way round.
    swapped = WAIT_BACK + LOAD + MOVE + BACK
    assert verdict(swapped).races == [(2, 3)]


def test_a_wait_without_a_set_is_stuck():
    assert verdict(LOAD + WAIT + MOVE).stuck == [2]


def test_two_pipes_that_wait_for_each_other_are_stuck():
    assert sorted(verdict(WAIT + BACK + WAIT_BACK + SET).stuck) == [1, 3]


def test_a_set_that_nobody_takes_is_left_up():
    assert verdict(LOAD + SET).left_up == [(4, 3, 0)]


def test_a_flag_may_not_be_set_before_its_setter_knows_that_it_was_taken():
    twice = LOAD + SET + WAIT + MOVE + SET + WAIT
    assert verdict(twice).raised_twice == [5]
    answered = LOAD + SET + WAIT + MOVE + BACK + WAIT_BACK + SET + WAIT
    assert not verdict(answered).raised_twice


def test_a_wait_takes_the_oldest_set():
    found = verdict(SET + SET + WAIT + WAIT)
    assert found.pairs == {(1, 3), (2, 4)}


def test_short_queues_stop_a_wait_whose_set_comes_later():
    late = run_scalar_unit(program(WAIT + MOVE + MOVE + SET))
    assert not gets_through(late, 2)
    assert gets_through(late, 3)


def test_the_published_protocol_of_a_double_buffered_loop_is_sound():
    """Two slots; per trip wait for the slot, load, hand over, move, give the slot back."""
    trip = "".join(
        f"wait_flag src=mte1, dst=mte2, id={slot}\n"
        f"gm_to_l1_row v0, x0, x0, l1[{32 * slot:#x}], cols=32\n"
        f"set_flag src=mte2, dst=mte1, id={slot}\n"
        f"wait_flag src=mte2, dst=mte1, id={slot}\n"
        f"l1_to_bias l1[{32 * slot:#x}], bias[0x0], bytes=32\n"
        f"set_flag src=mte1, dst=mte2, id={slot}\n"
        for slot in (0, 1)
    )
    ends = [
        "".join(f"{verb}_flag src=mte1, dst=mte2, id={slot}\n" for slot in (0, 1))
        for verb in ("set", "wait")
    ]
    count = "movi x1, 0\nmovi x2, 3\nL0:\n", "addi x1, x1, 1\nblt x1, x2, L0\n"
    assert verdict(ends[0] + count[0] + trip + count[1] + ends[1]).sound


def test_bytes_follow_the_manuals_formulas():
    # Three columns of boxes of 16 rows, of which 5 are valid, in a tile of 32 rows.
    (load,) = parse_program("gm_to_l1_nz v0, x0, x0, l1[0x200], rows=5, cols=65, l1_rows=32")
    ((space, addresses, writes),) = local_bytes(load, VIEWS)
    assert (space, writes) == ("l1", True)
    expected = {0x200 + column * 1024 + row * 32 for column in range(3) for row in range(5)}
    assert addresses == frozenset(expected)


# --------------------------------------------------------------------------- two cores

HAND = "ub_to_l1 ub[0x0], l1[0x0], lines=1, units=1, ub_pitch=1, l1_pitch=1\n"
RAISE = "set_core_flag pipe=mte3, to=aic, id=4\n"
AWAIT = "wait_core_flag pipe=mte1, of=aiv0, id=4\n"


def both(cube: str, vector: str, order: list[int]) -> Verdict:
    return judge_cores([program(cube), program(vector)], VIEWS, order=order)


def test_a_core_flag_orders_what_one_core_hands_to_the_other():
    found = both(AWAIT + MOVE, HAND + RAISE, [1, 0])
    assert found.sound
    assert found.pairs == {(6, 1)}


def test_without_the_core_flag_they_race():
    assert both(MOVE, HAND, [1, 0]).races == [(4, 1)]


def test_a_core_flag_of_another_pipe_orders_nothing():
    on_fetch = AWAIT.replace("mte1", "mte2")
    assert both(on_fetch + MOVE, HAND + RAISE, [1, 0]).races == [(5, 2)]
    early = RAISE.replace("mte3", "mte2")
    assert both(AWAIT + MOVE, HAND + early, [1, 0]).races == [(5, 2)]


def test_an_order_of_cores_against_the_program_is_a_race():
    assert both(AWAIT + MOVE, HAND + RAISE, [0, 1]).races == [(2, 5)]


def test_a_core_flag_that_nobody_sets_leaves_its_core_stuck():
    assert both(AWAIT + MOVE, HAND, [1, 0]).stuck == [1]
    assert both(MOVE, HAND + RAISE, [1, 0]).left_up == [(1, 0, 4, -1)]


def test_a_pipe_may_not_take_a_core_flag_that_another_one_waits_for():
    # MTE1 waits for the first, MTE2 for the second; nothing tells which of them comes first.
    waits = AWAIT + MOVE + AWAIT.replace("mte1", "mte2") + LOAD
    assert both(waits, HAND + RAISE + RAISE, [1, 0, 0]).raised_twice != []
    told = AWAIT + MOVE + BACK + WAIT_BACK + AWAIT.replace("mte1", "mte2") + LOAD
    answer = "set_core_flag pipe=mte2, to=aiv0, id=0\n", "wait_core_flag pipe=mte3, of=aic, id=0\n"
    told = told.replace(WAIT_BACK, WAIT_BACK + answer[0])
    assert both(told, HAND + RAISE + answer[1] + RAISE, [1, 0, 0]).sound


def test_core_flags_between_two_pipes_count():
    assert both(AWAIT + MOVE + AWAIT, HAND + RAISE + RAISE, [1, 0]).sound


def test_a_scalar_unit_that_waits_issues_nothing():
    joined = "pipe_barrier pipe=all\nset_core_flag pipe=s, to={}, id=15\nwait_core_flag pipe=s, of={}, id=15\n"
    cube, vector = joined.format("aiv0", "aiv0"), joined.format("aic", "aic")
    assert both(cube + MOVE, HAND + vector, [1, 0]).sound
    without = vector.partition("\n")[2]
    assert both(cube + MOVE, HAND + without, [1, 0]).races == [(7, 4)]
