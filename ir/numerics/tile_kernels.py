"""The product of a left and a right panel, in registers: where all the time of a matmul goes.

A tile of the output is `LEFT_LANES` rows by `RIGHT_LANES` columns. A block of it, as large as the
registers allow, holds its sums over a group of 32 there, one multiplication with addition a number
and k. Then they are rounded to float32 and added to the accumulator, which stays in registers over
all groups.

The numbers of the panels make every partial sum exact, in whatever order and whether fused or not,
so the bits depend neither on the block nor on the processor. Only where formats are wide (E5M2) a
sum may need more than float64's 53 bits. Its error is bounded there: a partial sum of i products
is at most i * peak, peak being the product of the largest magnitudes of either side, so that 31
roundings stay below 2^-44 * peak together. If sum and bound leave a doubt what the rounding to
float32 gives, the row is added up again in two exact halves.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from numba import types as numba_types
from numba.extending import intrinsic as numba_intrinsic

from .vectors import (
    F32,
    F64,
    I8,
    I32,
    I64,
    Emitter,
    cgutils,
    constant,
    ir,
    of,
    register_bits,
)

if TYPE_CHECKING:
    from collections.abc import Callable

types: Any = numba_types
intrinsic: Any = numba_intrinsic

ROWS: Final = 8
COLUMNS: Final = 16
DEPTH: Final = 32
LINES: Final = DEPTH + 1
"""The geometry of the panels, as `panels` has it."""
STEP: Final = 4
"""Lines that are taken in one step."""

_NAN = 0x7FC00000
_ERROR = 2.0**-43
# Products from peak * 2^-26 on are multiples of peak * 2^-33 at least, their sum below 2^5 * peak;
# those below are multiples of peak * 2^-64, their sum below peak * 2^-21: 53 bits hold either.
_HALF = 2.0**-26


class _Block(NamedTuple):
    """The part of a tile that is held in registers: so many rows of so many vectors."""

    rows: int
    vectors: int
    lanes: int

    @classmethod
    def of(cls, real: Any) -> _Block:
        """Return the block for the processor's registers: 32 of 512 bits, or 16 narrower ones."""
        bits = register_bits()
        lanes = bits // (64 if real is F64 else 32)
        return cls(ROWS, COLUMNS // lanes, lanes) if bits == 512 else cls(ROWS // 2, 2, lanes)


def _tile_kernel(*, wide: bool) -> Callable[..., None]:
    @intrinsic
    def add_tile(
        _typing: Any,
        left: Any,
        left_at: Any,
        right: Any,
        right_at: Any,
        acc: Any,
        acc_at: Any,
        row_step: Any,
        groups: Any,
    ) -> Any:
        signature = types.void(left, left_at, right, right_at, acc, acc_at, row_step, groups)
        real = F64 if left.dtype == types.float64 else F32

        def generate(context: Any, builder: Any, called: Any, args: Any) -> Any:
            if not wide or real is F64:
                emit = Emitter(context, builder, called, args)
                (_WideTile if wide else _Tile)(emit, real).add()
            return context.get_dummy_value()

        return signature, generate

    return add_tile


add_tile = _tile_kernel(wide=False)
"""(left, left_at, right, right_at, acc, acc_at, row_step, groups): add the product of two panels.

`acc` holds float32 patterns, 16 of a row side by side, a row every `row_step` words.
"""
add_wide_tile = _tile_kernel(wide=True)
"""The same where sums may need more than 53 bits; for float64 panels alone."""


@intrinsic
def add_scaled_tile(
    _typing: Any,
    left: Any,
    left_at: Any,
    right: Any,
    right_at: Any,
    acc: Any,
    acc_at: Any,
    row_step: Any,
    groups: Any,
    steps: Any,
    upper: Any,
    lower: Any,
) -> Any:
    """Add the product of two float64 panels, each group's sum times one more scale.

    Compiled signature: that of `add_tile`, then steps, upper, lower. In a group all lines from four
    times `steps` on are zero. The scale is `upper + lower`; the product of a sum with either is exact.
    """
    signature = types.void(
        left, left_at, right, right_at, acc, acc_at, row_step, groups, steps, upper, lower
    )

    def generate(context: Any, builder: Any, called: Any, args: Any) -> Any:
        _ScaledTile(Emitter(context, builder, called, args), F64).add()
        return context.get_dummy_value()

    return signature, generate


class _Tile:
    """Emits the kernel for one type of panel."""

    def __init__(self, emit: Emitter, real: Any) -> None:
        self.emit = emit
        self.builder = emit.builder
        self.real = real
        self.steps: Any = I64(DEPTH // STEP)
        self.block = _Block.of(real)
        self.kind = of(real, self.block.lanes)
        self.singles = of(F32, self.block.lanes)
        self.left = emit.pointer(0, 1)
        self.right = emit.pointer(2, 3)
        self.acc = emit.builder.bitcast(emit.pointer(4, 5), F32.as_pointer())

    def add(self) -> None:
        """Emit the whole tile, block by block."""
        width = self.block.vectors * self.block.lanes
        for row, column in product(range(0, ROWS, self.block.rows), range(0, COLUMNS, width)):
            self._add_block(row, column)

    def _add_block(self, row: int, column: int) -> None:
        emit, builder = self.emit, self.builder
        cells = [*product(range(self.block.rows), range(self.block.vectors))]
        place = {
            (r, v): emit.at(
                self.acc,
                builder.add(emit.times(emit.args[6], row + r), I64(column + v * self.block.lanes)),
            )
            for r, v in cells
        }
        accs = {
            cell: emit.variable(self.singles, emit.load(place[cell], F32, self.block.lanes))
            for cell in cells
        }
        totals = {cell: cgutils.alloca_once(builder, self.kind) for cell in cells}
        with emit.loop(emit.args[7]) as loop:
            left = emit.at(self.left, emit.times(loop.index, LINES * ROWS))
            right = emit.at(self.right, emit.times(loop.index, LINES * COLUMNS))
            left, right = emit.at(left, row), emit.at(right, column)
            for cell in cells:
                builder.store(ir.Constant(self.kind, None), totals[cell])
            with emit.loop(self.steps) as inner:
                for number in range(STEP):
                    k = builder.add(emit.times(inner.index, STEP), I64(number))
                    self._multiply(left, right, k, totals)
            terms = self._terms(left, right, totals)
            for cell in cells:
                builder.store(builder.fadd(builder.load(accs[cell]), terms[cell]), accs[cell])
        nan = builder.bitcast(constant(_NAN, I32, self.block.lanes), self.singles)
        for cell in cells:
            value = builder.load(accs[cell])
            is_nan = builder.fcmp_unordered("uno", value, value)
            emit.store(builder.select(is_nan, nan, value), place[cell])

    def _multiply(self, left: Any, right: Any, k: Any, totals: dict[tuple[int, int], Any]) -> None:
        """Add the products of one k to the sums."""
        emit, lanes = self.emit, self.block.lanes
        line = emit.at(right, emit.times(k, COLUMNS))
        columns = [
            emit.load(emit.at(line, v * lanes), self.real, lanes) for v in range(self.block.vectors)
        ]
        rows = emit.at(left, emit.times(k, ROWS))
        for r in range(self.block.rows):
            number = emit.splat(self.builder.load(emit.at(rows, r)), lanes)
            for v, numbers in enumerate(columns):
                total = totals[r, v]
                self.builder.store(
                    emit.multiply_add(number, numbers, self.builder.load(total)), total
                )

    def _single(self, value: Any) -> Any:
        return value if self.real is F32 else self.builder.fptrunc(value, self.singles)

    def _terms(
        self, _left: Any, _right: Any, totals: dict[tuple[int, int], Any]
    ) -> dict[tuple[int, int], Any]:
        """Return what a group adds to the accumulator: its sums, rounded to float32."""
        return {cell: self._single(self.builder.load(total)) for cell, total in totals.items()}

    def _to_odd(self, upper: Any, lower: Any) -> Any:
        """Return the sum of two numbers, rounded to odd.

        That keeps the one later rounding to float32 right: a set last bit stands for "and a little
        more".
        """
        builder, lanes = self.builder, self.block.lanes
        zero, words = constant(0.0, F64, lanes), of(I64, lanes)
        whole = builder.fadd(upper, lower)
        rest = builder.fsub(whole, upper)
        error = builder.fadd(
            builder.fsub(upper, builder.fsub(whole, rest)), builder.fsub(lower, rest)
        )
        pattern = builder.bitcast(whole, words)
        one = constant(1, I64, lanes)
        is_even = builder.icmp_unsigned("==", builder.and_(pattern, one), constant(0, I64, lanes))
        is_off = builder.and_(is_even, builder.fcmp_ordered("!=", error, zero))
        outward = builder.icmp_unsigned(
            "==",
            builder.fcmp_ordered(">", error, zero),
            builder.fcmp_ordered(">", whole, zero),
        )
        moved = builder.add(pattern, builder.select(outward, one, constant(-1, I64, lanes)))
        return builder.bitcast(builder.select(is_off, moved, pattern), self.kind)


class _ScaledTile(_Tile):
    """The kernel with one more scale, which is as wide as two float32 significands."""

    def __init__(self, emit: Emitter, real: Any) -> None:
        super().__init__(emit, real)
        self.steps = emit.args[8]
        self.halves = [emit.splat(half, self.block.lanes) for half in emit.args[9:11]]

    def _terms(
        self, _left: Any, _right: Any, totals: dict[tuple[int, int], Any]
    ) -> dict[tuple[int, int], Any]:
        builder = self.builder
        zero = constant(0.0, F64, self.block.lanes)
        terms: dict[tuple[int, int], Any] = {}
        for cell, total in totals.items():
            value = builder.load(total)
            upper, lower = (builder.fmul(value, half) for half in self.halves)
            upper = builder.fadd(upper, zero)  # an exact zero is +0, whatever the scale's sign
            terms[cell] = self._single(self._to_odd(upper, lower))
        return terms


class _WideTile(_Tile):
    """The kernel where a sum may need more than 53 bits."""

    def _terms(
        self, left: Any, right: Any, totals: dict[tuple[int, int], Any]
    ) -> dict[tuple[int, int], Any]:
        """Return the sums rounded to float32, those in doubt after a second, exact summation."""
        emit, builder, block = self.emit, self.builder, self.block
        width = block.vectors * block.lanes
        terms = cgutils.alloca_once(builder, F32, size=block.rows * width)
        doubts = cgutils.alloca_once(builder, I8, size=block.rows)
        left_peaks = emit.at(left, DEPTH * ROWS)
        right_peaks = emit.at(right, DEPTH * COLUMNS)
        bounds = [
            builder.fmul(
                emit.load(emit.at(right_peaks, v * block.lanes), F64, block.lanes),
                constant(_ERROR, F64, block.lanes),
            )
            for v in range(block.vectors)
        ]
        some = I8(0)
        for r in range(block.rows):
            peak = emit.splat(builder.load(emit.at(left_peaks, r)), block.lanes)
            unsure = constant(0, ir.IntType(1), block.lanes)
            for v in range(block.vectors):
                total = builder.load(totals[r, v])
                bound = builder.fmul(peak, bounds[v])
                low = builder.fptrunc(builder.fsub(total, bound), self.singles)
                high = builder.fptrunc(builder.fadd(total, bound), self.singles)
                words = of(I32, block.lanes)
                # By patterns, since -0 and +0 are two results.
                differ = builder.icmp_unsigned(
                    "!=", builder.bitcast(low, words), builder.bitcast(high, words)
                )
                infinity = constant(float("inf"), F64, block.lanes)
                is_finite = builder.fcmp_ordered("<", emit.call("fabs", total), infinity)
                unsure = builder.or_(unsure, builder.and_(differ, is_finite))
                emit.store(self._single(total), emit.at(terms, r * width + v * block.lanes))
            bits = builder.bitcast(unsure, ir.IntType(block.lanes))
            doubt = builder.zext(builder.icmp_unsigned("!=", bits, bits.type(0)), I8)
            builder.store(doubt, emit.at(doubts, r))
            some = builder.or_(some, doubt)
        with (
            builder.if_then(builder.icmp_unsigned("!=", some, I8(0)), likely=False),
            emit.loop(block.rows) as loop,
        ):
            doubt = builder.load(emit.at(doubts, loop.index))
            with builder.if_then(builder.icmp_unsigned("!=", doubt, I8(0))):
                self._sum_halves(
                    emit.at(left, loop.index), right, emit.at(terms, emit.times(loop.index, width))
                )
        return {
            (r, v): emit.load(emit.at(terms, r * width + v * block.lanes), F32, block.lanes)
            for r, v in product(range(block.rows), range(block.vectors))
        }

    def _sum_halves(self, left: Any, right: Any, terms: Any) -> None:
        """Write the terms of one row: large and small products apart, then both rounded to odd."""
        emit, builder, lanes = self.emit, self.builder, self.block.lanes
        zero = constant(0.0, F64, lanes)
        peak = emit.splat(builder.load(emit.at(left, DEPTH * ROWS)), lanes)
        for v in range(self.block.vectors):
            column = emit.at(right, v * lanes)
            edge = builder.fmul(peak, emit.load(emit.at(column, DEPTH * COLUMNS), F64, lanes))
            edge = builder.fmul(edge, constant(_HALF, F64, lanes))
            upper, lower = emit.variable(self.kind, zero), emit.variable(self.kind, zero)
            with emit.loop(DEPTH) as loop:
                number = builder.load(emit.at(left, emit.times(loop.index, ROWS)))
                numbers = emit.load(emit.at(column, emit.times(loop.index, COLUMNS)), F64, lanes)
                value = builder.fmul(emit.splat(number, lanes), numbers)
                is_large = builder.fcmp_ordered(">=", emit.call("fabs", value), edge)
                for total, part in (
                    (upper, builder.select(is_large, value, zero)),
                    (lower, builder.select(is_large, zero, value)),
                ):
                    builder.store(builder.fadd(builder.load(total), part), total)
            both = self._to_odd(builder.load(upper), builder.load(lower))
            emit.store(self._single(both), emit.at(terms, v * lanes))
