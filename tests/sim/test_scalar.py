"""The scalar unit: 64-bit arithmetic that wraps, branches, and an end to every loop."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebox.ir.errors import SimulationFault
from scalebox.ir.limits import MAX_INSTRUCTIONS
from scalebox.sim.decode import decode
from scalebox.sim.faultcodes import FaultCode
from scalebox.sim.scalar import DEFAULT_MAX_INSTRUCTIONS, ScalarFault, resolve

WORD = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.sampled_from([0, 1, -1, 7, -7, 63, 64, -64, (1 << 63) - 1, -(1 << 63)]),
)


def wrap(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


MEANING: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "floormod": lambda a, b: a % b,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << (b & 63),
    "shr": lambda a, b: a >> (b & 63),
    "cmpeq": lambda a, b: int(a == b),
    "cmpne": lambda a, b: int(a != b),
    "cmplt": lambda a, b: int(a < b),
    "cmple": lambda a, b: int(a <= b),
    "cmpgt": lambda a, b: int(a > b),
    "cmpge": lambda a, b: int(a >= b),
}


def values_of(bench: Any, text: str, arguments: tuple[int, ...] = ()) -> list[int]:
    """Run `text`, then return what x10, x11 and so on hold, by using them as window offsets."""
    used = sorted({f"x{i}" for i in range(10, 32) if f"x{i}," in text})
    probes = "\n".join(f"gm_to_l1_row v0, {name}, {name}, l1[0], cols=1" for name in used)
    kernel = bench.kernel(
        f"{text}\n{probes}\nhalt",
        [
            bench.tensor("a", "E4M3", (1, 1)),
            *(bench.scalar(f"s{i}") for i in range(len(arguments))),
        ],
        [bench.plain(0, 8, 1, 1)],
    )
    stream = resolve(decode(kernel), arguments)
    assert len(stream) == len(used)
    assert (stream.registers[:, 0] == stream.registers[:, 1]).all()
    return stream.registers[:, 0].tolist()


@pytest.mark.parametrize("name", list(MEANING))
@given(a=WORD, b=WORD)
def test_arithmetic_is_python_arithmetic_wrapped_to_64_bits(
    bench: Any, name: str, a: int, b: int
) -> None:
    if name in ("floordiv", "floormod") and b == 0:
        b = 3
    text = f"movi x1, {a}\n movi x2, {b}\n {name} x10, x1, x2"
    assert values_of(bench, text) == [wrap(MEANING[name](a, b))]


@pytest.mark.parametrize("name", list(MEANING))
@given(a=WORD, b=st.integers(-(1 << 31), (1 << 31) - 1))
def test_the_immediate_form_means_the_same(bench: Any, name: str, a: int, b: int) -> None:
    if name in ("shl", "shr"):
        b %= 64
    elif name in ("floordiv", "floormod") and b == 0:
        b = -5
    text = f"movi x1, {a}\n {name}i x10, x1, {b}"
    assert values_of(bench, text) == [wrap(MEANING[name](a, b))]


def test_division_rounds_down() -> None:
    assert [MEANING["floordiv"](-3, 16), MEANING["floormod"](-3, 16)] == [-1, 13]


@pytest.mark.parametrize("name", ["floordiv", "floormod"])
def test_a_zero_divisor_is_a_fault_with_its_line(bench: Any, name: str) -> None:
    kernel = bench.kernel(f"movi x1, 5\n {name} x2, x1, x3")
    with pytest.raises(SimulationFault) as caught:
        bench.run(kernel)
    assert str(caught.value) == (
        f"Instruction 1 ({name}) must have a divisor other than zero, not 0. [kernel.py:2:1]"
    )


def test_scalar_arguments_arrive_in_order(bench: Any) -> None:
    text = "ldparam x10, p1\n ldparam x11, p0"
    probe = f"{text}\n add x10, x10, x0\n add x11, x11, x0"
    assert values_of(bench, probe, (-(1 << 63), 42)) == [42, -(1 << 63)]


def test_loops_and_branches_run_as_written(bench: Any) -> None:
    # for i in range(0, 5): x10 += i if i != 3 else 100
    text = """
        movi x1, 0
        movi x2, 5
    loop:
        cmpeqi x3, x1, 3
        beqz x3, small
        addi x10, x10, 100
        jump next
    small:
        add x10, x10, x1
    next:
        addi x1, x1, 1
        blt x1, x2, loop
        movi x4, 1
        bnez x4, end
        movi x10, 0
    end:
        add x10, x10, x0
    """
    assert values_of(bench, text) == [0 + 1 + 2 + 100 + 4]


def test_records_carry_the_scalar_cycles_before_them(bench: Any) -> None:
    kernel = bench.kernel(
        """
        movi x1, 0
        movi x2, 2
    loop:
        pipe_barrier pipe=m
        addi x1, x1, 1
        blt x1, x2, loop
        nop
        """
    )
    stream = resolve(decode(kernel), ())
    # movi, movi, issue; addi, taken branch (2), issue; addi, branch not taken (1), nop, halt.
    assert stream.static.tolist() == [2, 2]
    assert stream.gap.tolist() == [3, 4]
    assert stream.tail == 4
    assert stream.executed == 10


@pytest.mark.parametrize("rounds", [1, 4095, 4096, 4097, 100_000])
def test_a_long_stream_is_the_same_whatever_pieces_it_is_resolved_in(
    bench: Any, rounds: int
) -> None:
    kernel = bench.kernel(
        f"movi x1, 0\n movi x2, {rounds}\nloop:\n pipe_barrier pipe=m\n addi x1, x1, 1\n"
        "blt x1, x2, loop"
    )
    stream = resolve(decode(kernel), ())
    assert len(stream) == rounds
    assert stream.gap.tolist() == [3] + [4] * (rounds - 1)
    assert stream.executed == 2 + 3 * rounds + 1


def test_an_endless_loop_ends_at_the_budget(bench: Any) -> None:
    kernel = bench.kernel("nop\nloop:\n pipe_barrier pipe=m\n jump loop\n halt")
    with pytest.raises(ScalarFault) as caught:
        resolve(decode(kernel), (), max_instructions=10_000)
    assert caught.value.record[:3].tolist() == [FaultCode.BUDGET, 2, 10_000]
    with pytest.raises(SimulationFault, match=r"must end within 10000 instructions") as fault:
        bench.run(kernel, max_instructions=10_000)
    assert fault.value.span is not None
    assert fault.value.span.line == 3


def test_a_budget_that_just_suffices_is_enough(bench: Any) -> None:
    kernel = bench.kernel("nop\n nop\n halt")
    assert resolve(decode(kernel), (), max_instructions=3).executed == 3
    with pytest.raises(ScalarFault):
        resolve(decode(kernel), (), max_instructions=2)


def test_registers_start_at_zero(bench: Any) -> None:
    assert values_of(bench, "add x10, x20, x0\n add x20, x20, x0") == [0, 0]


def test_a_kernel_without_pipe_instructions_has_an_empty_stream(bench: Any) -> None:
    stream = resolve(decode(bench.kernel("nop")), ())
    assert len(stream) == 0
    assert stream.registers.shape == (0, 2)
    assert stream.tail == 2
    assert stream.static.dtype == np.int64


def test_a_block_reads_its_number_and_that_of_all_behind_its_arguments(bench: Any) -> None:
    text = "block_idx x1\nblock_num x2\nldparam x3, p1"
    probes = "gm_to_l1_row v0, x1, x2, l1[0], cols=1\ngm_to_l1_row v0, x3, x3, l1[0], cols=1"
    params = [bench.tensor("a", "E4M3", (1, 1)), bench.scalar("s"), bench.scalar("t")]
    kernel = bench.kernel(f"{text}\n{probes}\nhalt", params, [bench.plain(0, 8, 1, 1)])
    stream = resolve(decode(kernel), (8, 9), block=3, blocks=7)
    assert stream.registers.tolist() == [[3, 7], [9, 9]]
    alone = resolve(decode(kernel), (8, 9))
    assert alone.registers.tolist() == [[0, 1], [9, 9]]


def test_the_machine_and_golden_end_a_kernel_at_the_same_number_of_instructions() -> None:
    assert DEFAULT_MAX_INSTRUCTIONS == MAX_INSTRUCTIONS
