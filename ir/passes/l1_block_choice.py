"""Which blocks a product is cut into whose operands L1 cannot hold.

All that fit are priced: by the cycles in which their loads keep the port to global memory, each row of a
part at its price, or by those of the cube, whichever is longer. A block of few columns has many short
rows; one of all columns and a little of K has few long ones, and its sums stay near the cube. Of blocks
that are about as fast those are taken that load the fewest elements.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from dataclasses import replace as with_fields
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from ..dtypes.boxes import BOX_GROUPS, GROUP
from ..tile_bytes import ALIGNMENT, FRACTAL_BYTES, FRACTAL_ROWS, c0_elements, round_up
from ..types import MemorySpace
from .l0_loops import STRAIGHT
from .l0_tiles import M_UNIT, SUM_BYTES, Tiling, choose, drain_cycles, even, fits, mad_cycles
from .l1_arrivals import load_cycles
from .loop_writer import stretches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..core import AssignStmt
    from ..expr import Var
    from ..target import Target
    from .l0_sums import Sum
    from .l0_tiles import Problem

#: The axes of a product, in the order in which its extents stand.
_M, _K, _N = range(3)
#: Sums that wait near the cube from step to step of K leave it less room: loads must be so much faster.
_CUT_K = Fraction(5, 4)

#: Prices tell two blocks apart whose times differ by more.
_ABOUT = Fraction(33, 32)


@dataclass(frozen=True)
class Block:
    """Rows, depth and columns of a block."""

    m: int
    k: int
    n: int

    @property
    def extents(self) -> tuple[int, int, int]:
        """The same in a row."""
        return self.m, self.k, self.n


def choose_block(
    found: Sum, room: int, target: Target, loads: Mapping[Var, AssignStmt]
) -> Block | None:
    """Return the blocks that are about the fastest; None if none fit.

    Two of them at once should fit, so that one is loaded while the other is multiplied.

    Args:
        found: The product.
        room: Bytes of L1 for its operands.
        target: The machine.
        loads: The loads of its operands.
    """
    prices = Prices(found, target, loads)
    for budget in (room // 2, room):
        blocks = list(candidates(found, budget, target))
        if blocks:
            return _best(blocks, prices)
    return None


def _best(blocks: list[Block], prices: Prices) -> Block:
    """Return the block that loads the fewest elements of those that are about the fastest."""
    by_loads = sorted(((prices.port(each), each) for each in blocks), key=lambda pair: pair[0])
    ranks: list[tuple[tuple[Fraction, Fraction, int], Block]] = []
    least = None
    for port, each in by_loads:
        if least is not None and port > least * _ABOUT:
            break
        ranks.append((prices.rank(each), each))
        least = min(rank[0] for rank, _ in ranks)
    assert least is not None, "there are blocks"
    fast = [(rank, each) for rank, each in ranks if rank[0] <= least * _ABOUT]
    return min(fast, key=lambda pair: (prices.elements(pair[1]), pair[0]))[1]


# --------------------------------------------------------------------------- what fits


def block_bytes(found: Sum, block: Block) -> int:
    """Return the bytes of L1 that the operands of a block take."""
    bits, c0 = found.bits, c0_elements(found.bits)
    depth, columns = round_up(block.k, FRACTAL_ROWS), round_up(block.n, c0)
    rows, elements = round_up(block.m, FRACTAL_ROWS), round_up(block.k, c0)
    sizes = [
        (1 if found.of_a_row else rows) * elements * bits // 8,
        depth * columns * bits // 8,
    ]
    if found.scaled:
        groups = round_up(-(-block.k // GROUP), BOX_GROUPS)
        row_scales = found.problem.row_scales
        sizes += [round_up(groups, FRACTAL_BYTES) if row_scales else rows * groups]
        sizes += [groups * round_up(block.n, FRACTAL_ROWS)]
    if found.links[0].bias is not None:
        sizes.append(SUM_BYTES * columns)
    return sum(round_up(size, ALIGNMENT[MemorySpace.Mat]) for size in sizes)


def candidates(found: Sum, budget: int, target: Target) -> Iterator[Block]:
    """Yield blocks of which the operands fit into some bytes, each with as few steps of K as it can."""
    problem = found.problem
    rows, depth, columns = problem.extents
    for m in [1] if found.of_a_row else even(rows, M_UNIT):
        for size in even(columns, problem.n_unit):
            n = min(size, columns)
            if block_bytes(found, Block(m, depth, n)) <= budget:
                yield Block(m, depth, n)
                continue
            blocks = [Block(m, k, n) for k in _depths(problem, m, n, target)]
            fitting = bisect_right(blocks, budget, key=lambda each: _bytes_in_steps(found, each))
            if fitting:
                yield _evened(blocks[:fitting], depth) if found.of_a_row else blocks[fitting - 1]


def _evened(blocks: Sequence[Block], depth: int) -> Block:
    """Return the shallowest of blocks that cuts K into as few steps as the deepest one, the last.

    The loads of a row's matrix take longer than the cube does, and overlap it best in equal steps.
    """
    fewest = -(-depth // blocks[-1].k)
    return next(each for each in blocks if -(-depth // each.k) == fewest)


def _depths(problem: Problem, m: int, n: int, target: Target) -> Iterator[int]:
    """Yield what K of blocks of some rows and columns can be cut to."""
    steps, depth = _steps(problem, m, n), problem.extents[_K]
    straight = depth
    if problem.row_scales:
        # A row of scales comes in pieces for steps that are not looped over, or is cut in its units.
        straight = min(depth, STRAIGHT * problem.k_tail)
    for unit, first, last in ((problem.k_tail, 0, straight), (problem.k_unit, straight, depth)):
        if fits(steps, Tiling(round_up(m, M_UNIT), unit, n, buffers=1), target):
            yield from range(round_up(first + 1, unit), last + 1, unit)


def _steps(problem: Problem, m: int, n: int) -> Problem:
    """Return the sums of a block where K is cut: they stay near the cube until it is done."""
    rows = round_up(m, M_UNIT)
    return with_fields(problem, row_scales=False, whole=True, rows=rows, columns=n, products=2)


def _bytes_in_steps(found: Sum, block: Block) -> int:
    """Return the bytes of the operands with each piece of a row of scales in a place of its own."""
    steps, row_scales = block.k // found.problem.k_tail, found.problem.row_scales
    pieces = steps if row_scales and steps <= STRAIGHT else 0
    return block_bytes(found, block) + pieces * ALIGNMENT[MemorySpace.Mat]


# --------------------------------------------------------------------------- what is fast


class Prices:
    """How long the blocks of a product take.

    Args:
        found: The product.
        target: The machine.
        loads: The loads of its operands.
    """

    def __init__(self, found: Sum, target: Target, loads: Mapping[Var, AssignStmt]) -> None:
        link, self._problem = found.links[0], found.problem
        self._valid, self._target, self._loads = found.valid, target, loads
        self._units = (1 if found.of_a_row else M_UNIT, self._problem.k_tail, self._problem.n_tail)
        # The axes of the product that those of an operand are, and how many elements an index counts.
        self._operands: list[tuple[Var, tuple[int, ...], tuple[int, ...]]] = [
            (link.lhs, (_M, _K), (1, 1)),
            (link.rhs, (_K, _N), (1, 1)),
        ]
        if link.scales is not None:
            left, right = link.scales
            self._operands += [(left, (_M, _K), (1, GROUP)), (right, (_K, _N), (GROUP, 1))]
        if link.bias is not None:
            self._operands.append((link.bias, (_N,), (1,)))
        self._known: dict[tuple[Var, tuple[int, ...]], Fraction] = {}

    def rank(self, block: Block) -> tuple[Fraction, Fraction, int]:
        """Return the cycles of the slower pipe, those of the loads, and the number of steps."""
        port = self.port(block)
        steps = (-(-valid // size) for valid, size in zip(self._valid, block.extents, strict=True))
        return max(port, self.cube(block)), port, prod(steps)

    def port(self, block: Block) -> Fraction:
        """Return the cycles of the loads, a quarter more where K is cut."""
        return self.loads(block) * self._more(block)

    def _more(self, block: Block) -> Fraction:
        return Fraction(1) if block.k >= self._valid[_K] else _CUT_K

    def elements(self, block: Block) -> Fraction:
        """Return the elements of either operand that all blocks load, a quarter more where K is cut."""
        m, k, n = self._valid
        loaded = (-(-n // block.n) * m + -(-m // block.m) * n) * k
        return loaded * self._more(block)

    def loads(self, block: Block) -> Fraction:
        """Return the cycles in which the loads of all blocks keep the port."""
        axes = zip(self._valid, block.extents, self._units, strict=True)
        parts = [_parts(valid, size, unit) for valid, size, unit in axes]
        total = Fraction(0)
        for var, of, per in self._operands:
            # The biases start the first step of K alone.
            others = {_M} if of == (_N,) else {_M, _K, _N}.difference(of)
            again = prod(sum(count for count, _ in parts[axis]) for axis in others)
            for part in product(*(parts[axis] for axis in of)):
                often = prod(count for count, _ in part)
                sizes = (-(-size // unit) for (_, size), unit in zip(part, per, strict=True))
                total += again * often * self._load(var, *sizes)
        return total

    def _load(self, var: Var, *sizes: int) -> Fraction:
        if (var, sizes) not in self._known:
            valid = dict(enumerate(sizes, start=_K if len(sizes) == 1 else _M))
            cycles = load_cycles(self._loads[var].value, self._target, valid)
            self._known[var, sizes] = cycles
        return self._known[var, sizes]

    def cube(self, block: Block) -> Fraction:
        """Return about the cycles of all blocks near the cube, once their operands are in L1.

        Where K is not cut, a block is cut into tiles of the result later on: it takes this at least.
        """
        m, k, n = self._valid
        problem, target = self._problem, self._target
        if block.k >= k:
            bits, scaled = problem.bits, problem.scaled
            cycles = Fraction(
                mad_cycles(target, m=block.m, k=block.k, n=block.n, bits=bits, scaled=scaled)
            )
        else:
            steps = _steps(problem, block.m, block.n)
            steps = with_fields(steps, m=block.m, k=block.k, n=block.n, bias=False)
            chosen = choose(steps, target)
            assert chosen is not None, "a step of a candidate fits"
            _, price = chosen
            cycles = (price.wall - price.drain) / steps.products * Fraction(k, block.k)
        drain = drain_cycles(target, m=min(m, block.m), n=block.n)
        return (cycles + drain) * Fraction(m * n, block.m * block.n)


def _parts(valid: int, size: int, unit: int) -> list[tuple[int, int]]:
    """Return how many parts an axis is cut into, of how many valid elements."""
    return [
        (each.count, min(each.size, valid - each.first))
        for each in stretches(valid, size, unit, looped=True)
    ]
