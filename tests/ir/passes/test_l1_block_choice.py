"""Blocks in L1 are chosen by the cycles of their loads: rows of a part cost as well as its bytes."""

from fractions import Fraction
from itertools import product
from unittest import mock

import numpy as np
import pytest

import scalebox
from scalebox.ir.core import Program
from scalebox.ir.errors import IRValueError
from scalebox.ir.language import parse
from scalebox.ir.passes import l1_blocks
from scalebox.ir.passes.l0_sums import Sum
from scalebox.ir.passes.l1_block_choice import Block, Prices, block_bytes, candidates, choose_block
from scalebox.ir.target import load_target

from .corpus import assert_same_bits, interpret

A5 = load_target("a5")
#: Cycles of a row, and bytes of a cycle.
ROW, RATE = Fraction("1.7"), 128

PLAIN = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[{m}, {k}], pl.{dtype}], b: pl.Tensor[[{k}, {n}], pl.{dtype}],
          z: pl.Tensor[[1, {n}], pl.FP32], c: pl.Out[pl.Tensor[[{m}, {n}], pl.FP32]]):
        l = pl.load(a, [0, 0], [{m}, {k}])
        r = pl.load(b, [0, 0], [{k}, {n}])
        y = pl.load(z, [0, 0], [1, {n}])
        x = pl.{product}_bias(l, r, y)
        c = pl.store(x, [0, 0], c)
        return c
"""
ROW_WITH_SCALES = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[1, {k}], pl.FP8E4M3FN], sa: pl.Tensor[[1, {groups}], pl.FP8E8M0],
          b: pl.Tensor[[{k}, {n}], pl.FP8E4M3FN],
          sb: pl.Tensor[[{groups}, {n}], pl.FP8E8M0, pl.MX_B_NN],
          c: pl.Out[pl.Tensor[[1, {n}], pl.FP32]]):
        l = pl.load(a, [0, 0], [1, {k}]{place})
        p = pl.load(sa, [0, 0], [1, {groups}], target_memory=pl.Mem.Mat)
        r = pl.load(b, [0, 0], [{k}, {n}]{place})
        q = pl.load(sb, [0, 0], [{groups}, {n}], target_memory=pl.Mem.Mat)
        x = pl.gemv_mx(l, p, r, q)
        c = pl.store(x, [0, 0], c)
        return c
"""


def plain(m: int, k: int, n: int, dtype: str) -> Program:
    kind = "gemv" if m == 1 else "matmul"
    made = parse(PLAIN.format(m=m, k=k, n=n, dtype=dtype, product=kind))
    assert isinstance(made, Program)
    return made


def row_with_scales(k: int, n: int, place: str = "") -> Program:
    made = parse(ROW_WITH_SCALES.format(k=k, n=n, groups=k // 32, place=place))
    assert isinstance(made, Program)
    return made


def choice(program: Program) -> tuple[Sum, Prices, Block]:
    """Return the product that is cut, the prices of its blocks and the block that is chosen."""
    with mock.patch.object(l1_blocks, "choose_block", wraps=choose_block) as spy:
        scalebox.compile(program)
    (call,) = spy.call_args_list
    found, room, target, loads = call.args
    block = choose_block(found, room, target, loads)
    assert block is not None
    return found, Prices(found, target, loads), block


def part(height: int, width: int, columns: int, size_bytes: int) -> Fraction:
    """Return the cycles of a part of a matrix that lies row by row: whole rows are one run together."""
    runs = 1 if width == columns else height
    return runs * ROW + Fraction(height * width * size_bytes, RATE)


def cut(extent: int, size: int) -> list[int]:
    return [min(size, extent - first) for first in range(0, extent, size)]


@pytest.mark.parametrize(
    ("m", "k", "n", "dtype", "block"),
    [
        (1, 1056, 4096, "FP16", Block(1, 80, 1376)),
        (1, 1056, 4096, "FP16", Block(1, 1056, 112)),
        (1040, 512, 1024, "BF16", Block(256, 240, 256)),
        (1040, 512, 1024, "FP32", Block(304, 512, 1024)),
    ],
)
def test_the_price_of_blocks_is_that_of_each_of_their_loads(
    m: int, k: int, n: int, dtype: str, block: Block
) -> None:
    _, prices, _ = choice(plain(m, k, n, dtype))
    size = 4 if dtype == "FP32" else 2
    expected = Fraction(0)
    for height, width in product(cut(m, block.m), cut(n, block.n)):
        expected += part(1, width, n, 4)
        for depth in cut(k, block.k):
            expected += part(height, depth, k, size) + part(depth, width, n, size)
    assert prices.loads(block) == expected


def test_the_scales_of_a_row_and_of_its_matrix_are_priced_too() -> None:
    _, prices, _ = choice(row_with_scales(4096, 2048))
    # 2 x 22 blocks. A row of the matrix is two parts of 1024 bytes; its scales lie in strips of 16
    # columns, 64 of them in a block. The row itself and its scales are one run in each block.
    matrix = 4096 * 2 * (ROW + Fraction(1024, RATE))
    scales = 2 * 22 * 64 * ROW + Fraction(128 * 2048, RATE)
    row = 2 * 22 * ROW + Fraction(2 * 4096, RATE)
    row_scales = 2 * 22 * ROW + Fraction(2 * 128, RATE)
    assert matrix + scales + row + row_scales == Fraction("86513.2")
    assert prices.loads(Block(1, 192, 1024)) == Fraction("86513.2")


@pytest.mark.parametrize(
    "program",
    [
        row_with_scales(4096, 2048),
        row_with_scales(1024, 4096),
        plain(1, 1056, 4096, "FP16"),
        plain(1, 1056, 4096, "FP32"),
        plain(512, 512, 512, "BF16"),
        plain(1024, 1024, 512, "FP32"),
    ],
)
def test_no_other_block_that_fits_is_clearly_faster(program: Program) -> None:
    found, prices, block = choice(program)
    budget = A5.l1_bytes // 2
    every = list(candidates(found, budget, A5))
    assert block in every
    assert block_bytes(found, block) <= budget
    least = min(prices.rank(each)[0] for each in every)
    fast = [each for each in every if 32 * prices.rank(each)[0] <= 33 * least]
    assert block in fast
    assert prices.elements(block) == min(map(prices.elements, fast))


def test_blocks_of_a_row_have_long_rows() -> None:
    program = row_with_scales(4096, 2048)
    *_, block = choice(program)
    assert block.n >= 1024
    # The loads above, and what is neither loaded nor multiplied while the first and last blocks are.
    work = scalebox.run(program, {}, functional=False).cycles
    work -= round(A5.launch_seconds * A5.clock_hz)
    assert work < 1.2 * 86513


def test_a_row_that_is_the_longest_of_all_is_cut_where_its_scales_can_be() -> None:
    # Columns are as few as they can be, so that K is deep: its steps are more than come in pieces.
    *_, block = choice(row_with_scales(20480, 32))
    assert block.k > 32 * 64
    assert block.k % 1024 == 0


@pytest.mark.parametrize(("k", "n"), [(1024, 1504), (1984, 480)])
def test_steps_of_a_row_with_scales_keep_their_bits(k: int, n: int) -> None:
    program = row_with_scales(k, n)
    found, _, block = choice(program)
    assert block.k < k
    assert found.problem.row_scales
    rng = np.random.default_rng(k)
    inputs = {
        "a": rng.standard_normal((1, k)).astype("float8_e4m3fn"),
        "sa": rng.integers(120, 135, (1, k // 32)).astype(np.uint8),
        "b": rng.standard_normal((k, n)).astype("float8_e4m3fn"),
        "sb": rng.integers(120, 135, (k // 32, n)).astype(np.uint8),
    }
    assert_same_bits(scalebox.run(program, inputs).outputs, interpret(program, "k", inputs))


def test_two_rows_in_one_kernel_are_both_cut() -> None:
    text = ROW_WITH_SCALES.format(k=4096, n=1024, groups=128, place="")
    body = text.splitlines()
    first = next(at for at, each in enumerate(body) if "l = pl.load" in each)
    last = next(at for at, each in enumerate(body) if "return" in each)
    twice = [*body[:last], *body[first:last], *body[last:]]
    made = parse("\n".join(twice))
    assert isinstance(made, Program)
    with mock.patch.object(l1_blocks, "choose_block", wraps=choose_block) as spy:
        scalebox.compile(made)
    assert len(spy.call_args_list) == 2


def test_a_row_that_the_kernel_placed_and_nothing_holds_is_refused() -> None:
    with pytest.raises(IRValueError, match="Mat buffer usage must be at most the 524288 bytes"):
        scalebox.compile(row_with_scales(4096, 2048, place=", target_memory=pl.Mem.Mat"))
