"""Flag protocols that people write by hand: the right ones give no report, whatever is taken out does."""

from collections.abc import Iterator
from typing import Any

import pytest

from scalebox.codegen.executable import Kernel
from scalebox.codegen.isa.vocabulary import Pipe

from .seeded import FLAGS, faults_of, instructions, messages, without

M, K, N = 32, 64, 32
"""A step: the tile that one product takes."""


def flag(verb: str, src: str, dst: str, number: int) -> str:
    return f"{verb}_flag src={src}, dst={dst}, id={number}"


def loads(side: str, slot: int, steps: int) -> Iterator[str]:
    """Load data and scales of some steps of one operand into a slot of L1."""
    at, scales = slot * 0x8000, 0x20000 + slot * 0x2000
    if side == "a":
        yield f"gm_to_l1_nz v0, x0, x1, l1[{at}], rows={M}, cols={K * steps}, l1_rows={M}"
        yield f"gm_to_l1_boxes v1, x0, x2, l1[{scales}], ni={M // 16}, nj={steps}, l1_nj={steps}"
    else:
        yield f"gm_to_l1_nz v2, x1, x0, l1[{0x10000 + at}], rows={K * steps}, cols={N}, l1_rows={K * steps}"
        yield f"gm_to_l1_boxes v3, x0, x2, l1[{0x4000 + scales}], ni={N // 16}, nj={steps}, l1_nj={steps}"


def moves(side: str, slot: int, steps: int, step: int, l0: int) -> Iterator[str]:
    """Move data and scales of a step to a slot of L0."""
    at, scales = slot * 0x8000, 0x20000 + slot * 0x2000 + step * 32
    to = l0 * 0x4000
    pitch = f"src_pitch={steps}"
    if side == "a":
        source = at + step * 2 * M * 32
        yield f"l1_to_l0a l1[{source}], l0a[{to}], row_boxes={M // 16}, col_boxes=2, src_pitch={M // 16}, dst_pitch={M // 16}"
        yield f"l1_to_scale_a l1[{scales}], scale_a[{to >> 4}], row_boxes={M // 16}, col_boxes=1, {pitch}"
    else:
        source = 0x10000 + at + step * K * 32
        yield f"l1_to_l0b l1[{source}], l0b[{to}], bits=b8, k={K}, n={N}, src_k={K * steps}"
        yield f"l1_to_scale_b l1[{0x4000 + scales}], scale_b[{to >> 4}], row_boxes={N // 16}, col_boxes=1, {pitch}"


def product(l0: int, init: str) -> str:
    to = l0 * 0x4000
    return (
        f"mad_mx l0c[0], l0a[{to}], l0b[{to}], bias[0], m={M}, k={K}, n={N}, a_type=e4m3, "
        f"b_type=e4m3, init={init}"
    )


DRAIN = f"l0c_to_gm v4, x0, x0, l0c[0], rows={M}, cols={N}, src_rows={M}, convert=fp32"


def small() -> Iterator[str]:
    """One step: each of the four pipes waits for the one before it."""
    yield from (*loads("a", 0, 1), *loads("b", 0, 1))
    yield from (flag("set", "mte2", "mte1", 0), flag("wait", "mte2", "mte1", 0))
    yield from (*moves("a", 0, 1, 0, 0), *moves("b", 0, 1, 0, 0))
    yield from (flag("set", "mte1", "m", 0), flag("wait", "mte1", "m", 0))
    yield product(0, "zero")
    yield from (flag("set", "m", "fix", 0), flag("wait", "m", "fix", 0))
    yield DRAIN


def split_k(steps: int) -> Iterator[str]:
    """One buffer of each kind; a load waits until the product before has been made."""
    yield f"movi x3, {K * steps}"
    for name in ("first", "loop"):
        yield from () if name == "first" else ("loop:", flag("wait", "m", "mte2", 0))
        yield from (*loads("a", 0, 1), *loads("b", 0, 1))
        yield from (flag("set", "mte2", "mte1", 0), flag("wait", "mte2", "mte1", 0))
        yield from (*moves("a", 0, 1, 0, 0), *moves("b", 0, 1, 0, 0))
        yield from (flag("set", "mte1", "m", 0), flag("wait", "mte1", "m", 0))
        yield product(0, "zero" if name == "first" else "acc")
        yield from (flag("set", "m", "mte2", 0), f"addi x1, x1, {K}", "addi x2, x2, 1")
    yield from ("blt x1, x3, loop", flag("wait", "m", "mte2", 0))
    yield from (flag("set", "m", "fix", 0), flag("wait", "m", "fix", 0))
    yield DRAIN


def double_buffered(panels: int, steps: int, tiles: int) -> Iterator[str]:
    """Two slots in L1 for panels and two in L0 for steps; flags back say that a slot is free again."""
    reverse = [("mte1", "mte2"), ("m", "mte1")]
    yield from (flag("set", *pair, slot) for pair in reverse for slot in (0, 1))
    for _ in range(tiles):
        yield from ("movi x1, 0", "movi x2, 0")
        for panel in range(panels):
            slot = panel % 2
            yield flag("wait", "mte1", "mte2", slot)
            yield from (*loads("a", slot, steps), flag("set", "mte2", "mte1", 0))
            yield from (*loads("b", slot, steps), flag("set", "mte2", "mte1", 1))
            for step in range(steps):
                l0 = step % 2
                yield flag("wait", "m", "mte1", l0)
                yield from [flag("wait", "mte2", "mte1", 0)] if step == 0 else []
                yield from moves("a", slot, steps, step, l0)
                yield from [flag("wait", "mte2", "mte1", 1)] if step == 0 else []
                yield from moves("b", slot, steps, step, l0)
                yield from [flag("set", "mte1", "mte2", slot)] if step == steps - 1 else []
                yield from (flag("set", "mte1", "m", l0), flag("wait", "mte1", "m", l0))
                yield product(l0, "zero" if panel == step == 0 else "acc")
                yield flag("set", "m", "mte1", l0)
            yield from (f"addi x1, x1, {K * steps}", f"addi x2, x2, {steps}")
        yield from (flag("set", "m", "fix", 0), flag("wait", "m", "fix", 0), DRAIN)
        yield from (flag("set", "fix", "m", 0), flag("wait", "fix", "m", 0))
    yield from (flag("wait", *pair, slot) for pair in reverse for slot in (0, 1))


def kernel_of(bench: Any, lines: Iterator[str], steps: int) -> Kernel:
    k = K * steps
    params = [
        bench.tensor("a", "E4M3", (M, k)),
        bench.tensor("a_scale", "E8M0", (M, k // 32)),
        bench.tensor("b", "E4M3", (k, N)),
        bench.tensor("b_scale", "E8M0", (k // 32, N)),
        bench.tensor("c", "FP32", (M, N), "out"),
    ]
    views = [
        bench.plain(0, 8, M, k),
        bench.boxes(1, M, k // 32),
        bench.plain(2, 8, k, N),
        bench.boxes(3, N, k // 32),
        bench.plain(4, 32, M, N),
    ]
    text = "movi x1, 0\nmovi x2, 0\n" + "\n".join(lines)
    return bench.kernel(text, params, views)


PROTOCOLS = {
    "small": (small, (), 1),
    "split k": (split_k, (4,), 4),
    "double buffered": (double_buffered, (4, 4, 1), 16),
    "double buffered, two tiles": (double_buffered, (3, 2, 3), 6),
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_that_keeps_every_order_gives_no_report(bench: Any, name: str) -> None:
    make, arguments, steps = PROTOCOLS[name]
    assert faults_of(kernel_of(bench, make(*arguments), steps)) == []


@pytest.mark.parametrize("name", PROTOCOLS)
def test_without_any_set_or_wait_it_gives_one(bench: Any, name: str) -> None:
    make, arguments, steps = PROTOCOLS[name]
    kernel = kernel_of(bench, make(*arguments), steps)
    for index, each in enumerate(instructions(kernel)):
        if each.mnemonic in FLAGS:
            assert faults_of(without(kernel, {index})), f"{each} at {index} is not missed"


def all_of(kernel: Kernel, src: str, dst: str, number: int) -> set[int]:
    """Return all sets and waits of a flag."""
    wanted = (Pipe[src.upper()], Pipe[dst.upper()], number)
    return {
        index
        for index, each in enumerate(instructions(kernel))
        if each.mnemonic in FLAGS and (each["src"], each["dst"], each["id"]) == wanted
    }


@pytest.mark.parametrize(
    "which",
    [
        ("mte1", "mte2", 0), ("mte1", "mte2", 1), ("m", "mte1", 0), ("m", "mte1", 1),
        ("mte2", "mte1", 0), ("mte2", "mte1", 1), ("mte1", "m", 0), ("mte1", "m", 1),
        ("m", "fix", 0), ("fix", "m", 0),
    ],
)  # fmt: skip
def test_without_one_of_its_flags_the_double_buffered_protocol_races(
    bench: Any, which: tuple[str, str, int]
) -> None:
    # With an odd number of panels or steps one flag of a pair would imply the other.
    kernel = kernel_of(bench, double_buffered(4, 4, 2), 16)
    found = messages(without(kernel, all_of(kernel, *which)))
    assert found
    assert all("nothing orders" in each or "scales" in each for each in found)
