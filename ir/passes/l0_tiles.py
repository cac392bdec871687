"""The L0 tile chooser: how a matmul that starts in L1 is best cut for the cube's buffers.

The cost model is that of the published PyPTO compiler, with the scale moves and the time of an
instruction that its constants leave out: MTE1 moves operands one after another, the cube has a head and
then a step a cycle, the fixpipe drains a tile row by row. All arithmetic is exact.

Two pipes that share work in n equal pieces, double buffered, take the longer one's time and one piece
of the shorter one's, before the first overlap or after the last one. The loads of the operands, where
they are this product's own, share it so with its first tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from ..dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS, GROUP
from ..tile_bytes import ALIGNMENT, FRACTAL_BYTES, FRACTAL_ROWS, c0_elements, round_up
from ..types import MemorySpace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..target import Target

#: What M of a tile is a multiple of.
M_UNIT = 16
#: What K of a block-scaled tile is a multiple of, and N of its tail.
_SCALED_K_UNIT, _SCALED_N_UNIT = 64, 32
#: The largest extent of a multiplication.
MAD_LIMIT = 4095
#: In how many pieces along K an operand comes to L1 at most.
PIECES = 4
_CUBE = 16
#: What a sum takes of L0C, and a bias of its buffer.
SUM_BYTES = 4
_OPERAND_BOX_BYTES = FRACTAL_ROWS * FRACTAL_BYTES
_SCALE_SHIFT = 4


class Stays(Enum):
    """Which operand stays in L0 while the tiles of the other one pass by."""

    NEITHER = "neither: both are moved for each step of K"
    LEFT = "the left one, while N is walked"
    RIGHT = "the right one, while M is walked"


@dataclass(frozen=True)
class Problem:
    """A matmul with all its operands in L1.

    Attributes:
        m: Valid rows of the result.
        k: Valid elements of each sum.
        n: Valid columns of the result.
        bits: Bits of an element.
        whole: Whether the result must stay one tile, so that only K is cut.
        rows: Rows of the accumulator where it stays whole; m rounded up otherwise.
        columns: Columns of the accumulator where it stays whole; n rounded up otherwise.
        bias: Whether the sums start from a row of biases.
        products: How many products with operands of these extents are added up.
        taken: Bytes of L0A, L0B, L0C and the bias table that others need meanwhile.
        scaled: Whether the operands are block-scaled, of 4 or 8 bits; others have 8 to 32.
        of_a_row: Whether the left operand is a row, which is moved as it is, without rows beside it.
        row_scales: Whether the left scales are a row of bytes, which is cut between units of 32.
        loads: Cycles in which the operands come to L1, in pieces along K; 0 where they are there.
    """

    m: int
    k: int
    n: int
    bits: int
    whole: bool = False
    rows: int = 0
    columns: int = 0
    bias: bool = False
    products: int = 1
    taken: tuple[int, int, int, int] = (0, 0, 0, 0)
    scaled: bool = True
    of_a_row: bool = False
    row_scales: bool = False
    loads: Fraction = Fraction(0)

    @property
    def k_unit(self) -> int:
        """What K of a tile is a multiple of: whole steps of the cube, and whole boxes in L1."""
        return GROUP * FRACTAL_BYTES if self.row_scales else self.k_tail

    @property
    def k_tail(self) -> int:
        """What K of the last tile is a multiple of."""
        return _SCALED_K_UNIT if self.scaled else max(FRACTAL_ROWS, c0_elements(self.bits))

    @property
    def n_unit(self) -> int:
        """What N of a tile is a multiple of: that of a tail, and whole boxes of the operand in L1."""
        return max(self.n_tail, c0_elements(self.bits))

    @property
    def n_tail(self) -> int:
        """What N of the last tile is a multiple of."""
        return _SCALED_N_UNIT if self.scaled else FRACTAL_ROWS

    @property
    def extents(self) -> tuple[int, int, int]:
        """The physical extents that the tiles cover."""
        rows = self.rows or round_up(self.m, M_UNIT)
        columns = self.columns or round_up(self.n, self.n_tail)
        return rows, round_up(self.k, self.k_tail), columns


@dataclass(frozen=True)
class Tiling:
    """How a matmul is cut.

    Attributes:
        m: Rows of a tile of the result.
        k: Elements of a step of K.
        n: Columns of a tile of the result.
        stays: Which operand stays in its buffer.
        accumulators: How many accumulators are in turn.
        buffers: How many buffers the operands that move have in turn.
    """

    m: int
    k: int
    n: int
    stays: Stays = Stays.NEITHER
    accumulators: int = 1
    buffers: int = 2


@dataclass(frozen=True)
class Cost:
    """Cycles of a matmul cut into tiles.

    Attributes:
        load: Busy cycles of MTE1.
        mad: Busy cycles of the cube.
        drain: Busy cycles of the fixpipe.
        wall: From the first move to the end of the last store.
    """

    load: Fraction
    mad: Fraction
    drain: Fraction
    wall: Fraction


# --------------------------------------------------------------------------- one tile


def mad_cycles(target: Target, *, m: int, k: int, n: int, bits: int, scaled: bool = True) -> int:
    """Return the cycles of an m x k x n mad: head and steps."""
    depth, passes = _steps_of_k(target, bits, scaled=scaled)
    steps = passes * -(-m // _CUBE) * -(-n // _CUBE) * -(-k // depth)
    return target.mad_head_cycles + steps


def _steps_of_k(target: Target, bits: int, *, scaled: bool) -> tuple[int, int]:
    """Return the elements of K of a step, and how many cycles it takes."""
    match bits:
        case 16:
            return target.mad_16bit_k_elements, 1
        case 32:
            return target.mad_32bit_k_elements, target.mad_32bit_passes
        case _:
            return target.mad_k_elements(bits) if scaled else target.mad_8bit_k_elements, 1


def load_cycles(
    target: Target, *, m: int, k: int, n: int, bits: int, scaled: bool = True
) -> Fraction:
    """Return the cycles of moving both operands of a mad, and scales, one after another."""
    rates = _Rates(target, scaled=scaled)
    return rates.left(m, k, bits, pieces=1) + rates.right(k, n, bits, pieces=1)


def drain_cycles(target: Target, *, m: int, n: int) -> Fraction:
    """Return the cycles of storing an m x n accumulator."""
    units = -(-SUM_BYTES * n // target.drain_c0_bytes)
    odd = units // (units & -units)
    row = max(_exact(target.drain_row_cycles), SUM_BYTES * n / _exact(target.drain_bytes_per_cycle))
    row += _exact(target.drain_misalignment_cycles) * (odd - 1)
    return _exact(target.drain_fixed_cycles) + m * row


def overlapped(one: Fraction, other: Fraction, pieces: int) -> Fraction:
    """Return the time of two pipes that share work in equal pieces, double buffered."""
    return max(one, other) + min(one, other) / pieces


def _exact(number: float) -> Fraction:
    """Return the number that a machine file writes, not its nearest binary one."""
    return Fraction(repr(number))


class _Rates:
    """Cycles of the moves of one operand; `pieces` counts the instructions of each of its planes."""

    def __init__(self, target: Target, *, scaled: bool) -> None:
        self._planes = 2 if scaled else 1
        self._left = 1 / _exact(target.l1_to_l0a_bytes_per_cycle)
        self._right = 1 / _exact(target.l1_to_l0b_bytes_per_cycle)
        self._scale = 1 / _exact(target.l1_to_scale_bytes_per_cycle)
        self._bias = 1 / _exact(target.l1_to_bias_bytes_per_cycle)
        self._instruction = target.mte1_instruction_cycles

    def left(self, m: int, k: int, bits: int, pieces: int) -> Fraction:
        return self._operand(m, k, bits, self._left) + self._planes * pieces * self._instruction

    def row(self, k: int, bits: int, pieces: int) -> Fraction:
        cycles = round_up(k * bits // 8, FRACTAL_BYTES) * self._left
        if self._planes > 1:
            cycles += -(-k // GROUP) * self._scale
        return cycles + self._planes * pieces * self._instruction

    def right(self, k: int, n: int, bits: int, pieces: int) -> Fraction:
        return self._operand(n, k, bits, self._right) + self._planes * pieces * self._instruction

    def bias(self, n: int, pieces: int) -> Fraction:
        return SUM_BYTES * n * self._bias + pieces * self._instruction

    def _operand(self, rows: int, k: int, bits: int, per_byte: Fraction) -> Fraction:
        data = -(-rows // FRACTAL_ROWS) * -(-k // c0_elements(bits)) * _OPERAND_BOX_BYTES
        if self._planes == 1:
            return data * per_byte
        scales = -(-rows // BOX_ROWS) * -(-k // (GROUP * BOX_GROUPS)) * BOX_BYTES
        return data * per_byte + scales * self._scale


# --------------------------------------------------------------------------- a matmul in tiles


@lru_cache(maxsize=4096)
def cost(problem: Problem, tiling: Tiling, target: Target) -> Cost:
    """Return what a matmul costs in tiles of some extents."""
    m, k, n, bits = problem.m, problem.k, problem.n, problem.bits
    rows, steps, columns = -(-m // tiling.m), -(-k // tiling.k), -(-n // tiling.n)
    tiles, rates = rows * columns, _Rates(target, scaled=problem.scaled)
    left_passes = 1 if tiling.stays is Stays.LEFT else columns
    right_passes = 1 if tiling.stays is Stays.RIGHT else rows
    of_left = rates.row if problem.of_a_row else partial(rates.left, m)
    left = left_passes * of_left(k, bits, pieces=rows * steps) * problem.products
    right = right_passes * rates.right(k, n, bits, pieces=steps * columns) * problem.products
    bias = rows * rates.bias(n, columns) if problem.bias else Fraction(0)
    mad = Fraction(_mads(problem, tiling, target) * problem.products)
    drain = Fraction(0)
    for width, count in _pieces(n, tiling.n):
        fixed = drain_cycles(target, m=0, n=width)
        drain += count * (rows * fixed + drain_cycles(target, m=m, n=width) - fixed)
    staying = {Stays.LEFT: left, Stays.RIGHT: right}.get(tiling.stays, Fraction(0))
    moving = left + right + bias - staying
    # What stays is moved between two rounds of the inner loop, when the cube has nothing to do.
    pieces = tiles * steps * problem.products if tiling.buffers > 1 else 1
    compute = staying + overlapped(moving, mad, pieces)
    # The first tile waits for all of K, but not for all at once.
    first = compute / tiles
    arrivals = min(steps, PIECES) * problem.products
    wait = overlapped(problem.loads, first, arrivals) - first
    wall = compute + drain if tiling.accumulators == 1 else overlapped(compute, drain, tiles)
    return Cost(left + right + bias, mad, drain, wait + wall)


def _mads(problem: Problem, tiling: Tiling, target: Target) -> int:
    return sum(
        at_m
        * at_k
        * at_n
        * mad_cycles(target, m=m, k=k, n=n, bits=problem.bits, scaled=problem.scaled)
        for m, at_m in _pieces(problem.m, tiling.m)
        for k, at_k in _pieces(problem.k, tiling.k)
        for n, at_n in _pieces(problem.n, tiling.n)
    )


def _pieces(extent: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the sizes that an extent is cut into, and how often each comes."""
    if extent // size:
        yield size, extent // size
    if extent % size:
        yield extent % size, 1


def fits(problem: Problem, tiling: Tiling, target: Target) -> bool:
    """Return whether the buffers hold what a tiling has in them at the same time."""
    rows, depth, columns = problem.extents
    single = depth <= tiling.k and problem.products == 1
    left = right = tiling.buffers
    if single and (tiling.stays is Stays.LEFT or rows <= tiling.m):
        left = 1
    if single and (tiling.stays is Stays.RIGHT or columns <= tiling.n):
        right = 1
    left_bytes = tiling.m * tiling.k * problem.bits // 8
    right_bytes = tiling.n * tiling.k * problem.bits // 8
    sums = round_up(tiling.m * tiling.n * SUM_BYTES, ALIGNMENT[MemorySpace.Acc])
    # One row of biases is enough: the cube reads it with the first product of a tile.
    bias = tiling.n * SUM_BYTES if problem.bias else 0
    taken = problem.taken
    return (
        taken[0] + left * left_bytes <= target.l0a_bytes
        and taken[1] + right * right_bytes <= target.l0b_bytes
        and taken[2] + tiling.accumulators * sums <= target.l0c_bytes
        and taken[3] + bias <= target.bias_bytes
        and (
            not problem.scaled or _scales_fit(tiling, target, left_bytes, left, right_bytes, right)
        )
        and max(tiling.m, tiling.k, tiling.n) <= MAD_LIMIT
    )


def _scales_fit(
    tiling: Tiling, target: Target, left_bytes: int, left: int, right_bytes: int, right: int
) -> bool:
    """Return whether the scales of so many buffers of so many bytes each lie in their own."""
    return (
        _scales_end(tiling.m, tiling.k, left_bytes, left) <= target.scale_a_bytes
        and _scales_end(tiling.n, tiling.k, right_bytes, right) <= target.scale_b_bytes
    )


def _scales_end(rows: int, k: int, size: int, buffers: int) -> int:
    """Return where the scales of the last of some data buffers end: they lie at its address >> 4."""
    scales = -(-rows // BOX_ROWS) * -(-k // (GROUP * BOX_GROUPS)) * BOX_BYTES
    return ((buffers - 1) * size >> _SCALE_SHIFT) + scales


# --------------------------------------------------------------------------- the choice


@lru_cache(maxsize=256)
def choose(problem: Problem, target: Target) -> tuple[Tiling, Cost] | None:
    """Return the fastest tiling that fits and its cost; None when nothing fits.

    Operands have two buffers in turn if that fits at all. Among equally fast tilings the one with fewer
    moves, then with fewer steps, is taken.
    """
    for buffers in (2, 1):
        fitting = [
            tiling for tiling in candidates(problem, buffers) if fits(problem, tiling, target)
        ]
        if fitting:
            priced = [(tiling, cost(problem, tiling, target)) for tiling in fitting]
            return min(priced, key=lambda pair: _rank(problem, *pair))
    return None


def _rank(problem: Problem, tiling: Tiling, price: Cost) -> tuple[Fraction, Fraction, int, int]:
    tiles = -(-problem.m // tiling.m) * -(-problem.n // tiling.n)
    return price.wall, price.load, tiles * -(-problem.k // tiling.k), tiling.accumulators


def candidates(problem: Problem, buffers: int = 2) -> Iterator[Tiling]:
    """Yield the tilings that can be best.

    Costs depend on how many pieces M and K are cut into, so of the sizes that give the same number the
    smallest stands for all.
    """
    rows, depth, columns = problem.extents
    heights = [rows] if problem.whole else list(even(rows, M_UNIT))
    widths = (
        [columns] if problem.whole else [*range(problem.n_unit, columns, problem.n_unit), columns]
    )
    for m in heights:
        for n in widths:
            several = rows > m or columns > n
            for k in (min(depth, size) for size in even(depth, problem.k_unit)):
                single = k == depth and problem.products == 1
                stays = [Stays.LEFT, Stays.RIGHT] if single and several else [Stays.NEITHER]
                for each in stays:
                    for accumulators in range(1, 1 + (buffers if several else 1)):
                        yield Tiling(m, k, n, each, accumulators, buffers)


def even(extent: int, unit: int) -> Iterator[int]:
    """Yield the smallest size of each number of pieces that an extent can be cut into."""
    last = 0
    units = -(-extent // unit)
    for count in range(1, units + 1):
        size = -(-units // count)
        if size != last:
            yield size * unit
        last = size
