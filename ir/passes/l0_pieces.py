"""The loads of a sum that is cut along K are cut too, so that the cube need not wait for all of K.

An operand comes in a few pieces along K, the first pieces of all operands first: while the cube works on
them the others are on their way. Nothing is loaded twice, and what is not valid is not loaded. A row of
scales comes in a piece for each step, since a step's own must begin at a multiple of 32 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from ..core import AssignStmt, Stmt
from ..dtypes.boxes import GROUP
from ..expr import Var, index
from ..types import constant_dims
from .l0_loads import bytes_in_l1, piece_of, plain_loads
from .l0_tiles import PIECES
from .l1_arrivals import load_cycles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..expr import Call
    from ..target import Target
    from ..types import TileType
    from .l0_sums import Sum
    from .l0_tiles import Cost, Tiling


#: As many trips show how long each of very many takes.
_TRIPS = 4


@dataclass(frozen=True)
class Pieces:
    """Operands in pieces along K.

    Attributes:
        depth: Elements along K of each piece of an operand but the last.
        of: The pieces of each operand, in order.
        instead: What stands in the place of each load.
    """

    depth: Mapping[Var, int]
    of: Mapping[Var, tuple[Var, ...]]
    instead: Mapping[Stmt, list[Stmt]]


def split_loads(
    found: Sum,
    tiling: Tiling,
    price: Cost,
    stmts: Sequence[Stmt],
    uses: Mapping[Var, int],
    *,
    spare_bytes: int,
    waits: bool,
    target: Target,
) -> Pieces | None:
    """Return the operands of a sum in pieces; None where that changes what a program does.

    Of the ways to cut them the one is taken with which the cube is done first.

    Args:
        found: The sum.
        tiling: How it is cut; pieces are made of whole steps.
        price: What that costs.
        stmts: The sequence that holds it.
        uses: How often the function reads each variable.
        spare_bytes: What L1 has beside all that the function keeps there; pieces begin at multiples
            of their own.
        waits: Whether other loads wait for the room of these, as those of a loop's next trip do.
        target: The machine.
    """
    steps = -(-found.valid[1] // tiling.k)
    loads = loads_of(found, stmts, uses)
    if steps == 1 or loads is None:
        return None
    own = {each.var: each for each in loads}
    schedule = _Schedule(found, tiling, price, target, own, _TRIPS if waits else 1)
    for way in sorted(_ways(steps, tiling.k), key=schedule.done):
        made = schedule.pieces(way)
        parts = [piece for pieces in made.values() for piece in pieces]
        more = bytes_in_l1(p.var for p in parts) - bytes_in_l1(s.var for s in loads)
        if more <= max(0, spare_bytes):
            instead: dict[Stmt, list[Stmt]] = {stmt: [] for stmt in loads}
            instead[loads[-1]] = [made[each.var][each.number] for each in schedule.order(way)]
            of = {var: tuple(piece.var for piece in pieces) for var, pieces in made.items()}
            return Pieces(schedule.depths(way), of, instead)
    return None


def loads_of(found: Sum, stmts: Sequence[Stmt], uses: Mapping[Var, int]) -> list[AssignStmt] | None:
    """Return the loads of a sum's operands, that of its biases among them if it can be.

    None where they cannot stand together, or others read them too.
    """
    operands = [var for link in found.links for var in link.operands]
    names = set(operands)
    if len(names) < len(operands):
        return None
    bias = found.links[0].bias
    loads = plain_loads({*names, bias}, stmts, uses, found.stmts) if bias is not None else None
    return loads or plain_loads(names, stmts, uses, found.stmts)


# --------------------------------------------------------------------------- when what arrives


@dataclass(frozen=True)
class _Way:
    """Elements along K of a piece of either side."""

    left: int
    right: int


def _ways(steps: int, k: int) -> Iterator[_Way]:
    """Yield the ways to cut either side into a few pieces, or to leave it whole."""
    whole = steps * k
    depths = dict.fromkeys(-(-steps // count) * k for count in range(1, PIECES + 1))
    for depth in depths:
        for left, right in dict.fromkeys(((depth, depth), (whole, depth), (depth, whole))):
            yield _Way(left, right)


@dataclass(frozen=True)
class _Operand:
    """An operand of a sum: of which product, on which side, and what an index along K counts."""

    var: Var
    product: int
    axis: int
    unit: int
    in_steps: bool

    def depth(self, way: _Way, k: int) -> int:
        """Return the elements along K of a piece."""
        if self.in_steps:
            return k
        return way.left if self.axis else way.right


@dataclass(frozen=True)
class _Arrival:
    """A piece of an operand, or the biases: its number, and from where on which product needs it."""

    product: int
    first: int
    place: int
    var: Var
    number: int
    operand: _Operand | None = None


class _Schedule:
    """The pieces of a sum's operands, and when the cube is done with them."""

    def __init__(
        self,
        found: Sum,
        tiling: Tiling,
        price: Cost,
        target: Target,
        loads: Mapping[Var, AssignStmt],
        trips: int,
    ) -> None:
        self._depth, self._step = found.valid[1], tiling.k
        firsts = range(0, self._depth, tiling.k)
        self._steps = [(number, first) for number in range(len(found.links)) for first in firsts]
        self._trips = trips
        self._loads = loads
        self._target = target
        self._operands = list(_operands(found))
        self._bias = [var for var in loads if var is found.links[0].bias]
        m, _, n = found.valid
        tiles = -(-m // tiling.m) * -(-n // tiling.n)
        turns = max(price.load, price.mad) if tiling.buffers > 1 else price.load + price.mad
        self._pace = turns / (tiles * len(self._steps))

    def depths(self, way: _Way) -> dict[Var, int]:
        """Return the elements along K of the pieces of each operand."""
        return {each.var: each.depth(way, self._step) for each in self._operands}

    def order(self, way: _Way) -> list[_Arrival]:
        """Return all pieces in the order in which they are needed, the biases first."""
        found = [_Arrival(0, 0, 0, var, 0) for var in self._bias]
        for place, each in enumerate(self._operands, start=1):
            firsts = range(0, self._depth, each.depth(way, self._step))
            found += [
                _Arrival(each.product, first, place, each.var, number, each)
                for number, first in enumerate(firsts)
            ]
        return sorted(found, key=lambda each: (each.product, each.first, each.place))

    def done(self, way: _Way) -> tuple[Fraction, int]:
        """Return when the first tile of the result of the last trip is done, and the number of loads."""
        order = self.order(way)
        cycles = [self._load_cycles(each, way) for each in order]
        latency = self._target.l2_hit_cycles + self._target.l2_miss_cycles
        port = done = Fraction(0)
        free = [Fraction(0)] * len(order)
        for _ in range(self._trips):
            needed: dict[tuple[int, int], Fraction] = {}
            for number, each in enumerate(order):
                port = max(port, free[number]) + cycles[number]
                needed[each.product, each.first] = port + latency
            read: dict[tuple[int, int], Fraction] = {}
            for at in self._steps:
                done = read[at] = max(done, needed.get(at, done)) + self._pace
            free = [read[self._last_step(each, way)] for each in order]
        return done, len(order)

    def _load_cycles(self, each: _Arrival, way: _Way) -> Fraction:
        valid: dict[int, int] = {}
        if each.operand is not None:
            size = min(each.operand.depth(way, self._step), self._depth - each.first)
            valid = {each.operand.axis: -(-size // each.operand.unit)}
        return load_cycles(self._loads[each.var].value, self._target, valid)

    def _last_step(self, each: _Arrival, way: _Way) -> tuple[int, int]:
        """Return the last step that reads a piece."""
        if each.operand is None:
            return self._steps[0]
        end = min(each.first + each.operand.depth(way, self._step), self._depth)
        return each.product, (end - 1) // self._step * self._step

    def pieces(self, way: _Way) -> dict[Var, list[AssignStmt]]:
        """Return the loads of all pieces."""
        made = {var: [self._loads[var]] for var in self._bias}
        for each in self._operands:
            made[each.var] = self._cut(each, each.depth(way, self._step))
        return made

    def _cut(self, operand: _Operand, depth: int) -> list[AssignStmt]:
        stmt = self._loads[operand.var]
        if depth >= self._depth:
            return [stmt]
        load, tile = cast("Call", stmt.value), cast("TileType", stmt.var.type)
        shape = constant_dims(tile.shape)
        assert shape is not None, "the extents of operands that are cut are constants"
        size, valid = depth // operand.unit, -(-self._depth // operand.unit)
        pieces: list[AssignStmt] = []
        for first in range(0, valid, size):
            extent = min(size, shape[operand.axis] - first)
            piece = piece_of(load, operand.axis, index(first), extent, min(extent, valid - first))
            var = Var(stmt.var.name_hint, piece.type, stmt.span)
            pieces.append(AssignStmt(var, piece, stmt.span))
        return pieces


def _operands(found: Sum) -> Iterator[_Operand]:
    """Yield the operands of each product, the left ones first."""
    for number, link in enumerate(found.links):
        yield _Operand(link.lhs, number, 1, 1, in_steps=False)
        if link.scales is not None:
            in_steps = found.problem.row_scales
            yield _Operand(link.scales[0], number, 1, GROUP, in_steps=in_steps)
        yield _Operand(link.rhs, number, 0, 1, in_steps=False)
        if link.scales is not None:
            yield _Operand(link.scales[1], number, 0, GROUP, in_steps=False)
