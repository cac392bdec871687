"""AutoTileMatmulL0: a matmul of tiles in L1 is cut into tiles that the cube's buffers hold.

What the kernel left in Mat or unplaced is cut where that is faster or nothing else fits: along K always,
along M and N where the result's only use is a store, whose tiles are then stored one by one. Products
that are added up into one such result are cut alike. K is cut between steps of the cube, of block-
scaled operands at multiples of 64, so no bit changes. Operands that are loaded for one sum alone come in
pieces along K, and how long they take counts where tiles are chosen.
Operands that the kernel moved itself are left alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from dataclasses import replace as with_fields
from fractions import Fraction
from typing import TYPE_CHECKING

from ..binding import source_name
from ..core import ForKind, Function, SeqStmts
from ..errors import IRValueError
from ..expr import replace
from ..properties import IRProperty
from ..tile_bytes import round_up
from ..types import MemorySpace
from ..verification.structure import CORE_TYPES, STAGES
from .base import FunctionPass, current_target
from .inserting import InsertingMutator
from .l0_loads import bytes_in_l1
from .l0_loops import Nest
from .l0_pieces import loads_of, split_loads
from .l0_room import Bytes, Neighbours
from .l0_sums import find_sums
from .l0_tiles import M_UNIT, Tiling, choose, cost, fits
from .l1_arrivals import load_cycles
from .l1_blocks import Blocker, Uses
from .memory_sizes import MEMORIES, memory_bytes
from .memrefs import tile_vars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core import ForStmt, Stmt, WhileStmt
    from ..expr import Var
    from ..target import Target
    from .l0_sums import Sum
    from .l0_tiles import Cost, Problem


@dataclass(frozen=True)
class AutoTileMatmulL0(FunctionPass):
    """Cut the matmuls of an InCore function whose operands lie in L1."""

    name = "AutoTileMatmulL0"
    required = frozenset(
        {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.NoNestedCalls}
    )
    produced = required

    def transform_function(self, function: Function) -> Function:
        """Cut the matmuls of one function.

        Raises:
            IRValueError: For a matmul that fits neither as it is nor in any tiles.
        """
        if function.func_type not in CORE_TYPES:
            return function
        target = current_target()
        return _Cutter(target).rewrite(Blocker(target).rewrite(function))


class _Cutter(InsertingMutator):
    def __init__(self, target: Target) -> None:
        super().__init__()
        self._uses: Counter[Var] = Counter()
        self._neighbours = Neighbours(SeqStmts(()))
        self._in_l1 = 0
        self._target = target
        self._copies = 1
        self._looped = False

    def visit_function(self, op: Function) -> Function:
        uses = Uses()
        uses.visit_function(op)
        self._uses, self._neighbours = uses.count, Neighbours(op.body)
        self._in_l1 = bytes_in_l1(tile_vars(op))
        return super().visit_function(op)

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        outer = self._copies
        if op.kind is ForKind.Pipeline:
            self._copies *= op.attrs.get(STAGES, 1)
        done = self._again(op)
        self._copies = outer
        return done

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        return self._again(op)

    def _again(self, op: ForStmt | WhileStmt) -> Stmt:
        outer, self._looped = self._looped, True
        done = self.visit_children(op)
        self._looped = outer
        return done

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        instead: dict[Stmt, list[Stmt]] = {}
        sums = list(find_sums(op.stmts, self._uses, self._may_join))
        # What does not fit as a whole moves to its store: nobody else has to make room for it.
        moved = {
            each.result
            for each in sums
            if not each.whole and _cycles_alone(each, each.problem, 1, self._target) is None
        }
        for found in sums:
            last = found.store or found.stmts[-1]
            taken = self._neighbours.taken(last, {*moved, found.result})
            nest = self._nest(found, taken, op.stmts)
            if nest is not None:
                instead.update((stmt, []) for stmt in found.stmts)
                instead.update(nest.pieces.instead if nest.pieces is not None else {})
                instead[last] = nest.stmts()
        if not instead:
            return super().visit_seq_stmts(op)
        stmts = tuple(new for old in op.stmts for new in instead.get(old, [old]))
        return super().visit_seq_stmts(replace(op, stmts=stmts))

    def _nest(self, found: Sum, taken: Bytes, stmts: Sequence[Stmt]) -> Nest | None:
        """Return how a sum is computed in tiles; None where it is best left alone."""
        spare = self._target.l1_bytes - self._copies * self._in_l1
        loads = Fraction(0)
        # Nothing waits for them while another copy is computed, nor for the end of a sum that goes on.
        if self._copies == 1 and found.store is not None:
            own = loads_of(found, stmts, self._uses) or ()
            loads += sum(load_cycles(each.value, self._target, {}) for each in own)
        # A row of scales that is loaded in a piece for each step is cut anywhere.
        ways = [(False, spare)]
        if found.problem.row_scales:
            # Where no steps keep to the units of a row in L1, its pieces get room whatever else lies there.
            if choose(found.problem, self._target) is None:
                ways.append((False, self._target.l1_bytes))
            ways.append((True, spare))
        for row_scales, room in ways:
            problem = with_fields(found.problem, taken=taken, row_scales=row_scales, loads=loads)
            chosen = _tiling(found, problem, self._copies, self._target)
            if chosen is None:
                return None
            tiling, price = chosen
            nest = Nest(found, tiling)
            if nest.is_straight:
                nest.pieces = split_loads(
                    found,
                    tiling,
                    price,
                    stmts,
                    self._uses,
                    spare_bytes=room,
                    waits=self._looped or spare < 0,
                    target=self._target,
                )
            if nest.pieces is not None or _is_aligned(found, tiling):
                return nest
        message = "tiles that keep to the units of a row of scales need no pieces"
        raise AssertionError(message)

    def _may_join(self, together: Sum, first: Sum) -> bool:
        """Whether L1 holds all operands of a sum at once, as it must where they are used together."""
        if len(together.links) == 1 or self._copies * self._in_l1 <= self._target.l1_bytes:
            return True
        operands = bytes_in_l1({var for link in together.links for var in link.operands})
        # Half of it, since other tiles of the function lie there too.
        if 2 * self._copies * operands <= self._target.l1_bytes:
            return True
        alone = _cycles_alone(first, first.problem, 1, self._target)
        return alone is None and choose(first.problem, self._target) is None


def _is_aligned(found: Sum, tiling: Tiling) -> bool:
    """Whether each step of K begins where a row of scales in L1 can be cut."""
    return tiling.k >= found.valid[1] or tiling.k % found.problem.k_unit == 0


def _tiling(
    found: Sum, problem: Problem, copies: int, target: Target
) -> tuple[Tiling, Cost] | None:
    """Return how a sum is to be cut, and what it costs; None where it is best left alone.

    Args:
        found: The sum.
        problem: What is to be cut of it.
        copies: How many copies pipelined loops around it make of its body.
        target: The machine.
    """
    alone = _cycles_alone(found, problem, copies, target)
    chosen = choose(problem, target)
    if chosen is None:
        if alone is None and any(problem.taken):  # then the allocation says who needs what
            return _tiling(found, with_fields(problem, taken=(0, 0, 0, 0)), copies, target)
        if alone is None:
            raise _refusal(found, target)
        return None
    return None if alone is not None and alone <= chosen[1].wall else chosen


def _cycles_alone(found: Sum, problem: Problem, copies: int, target: Target) -> Fraction | None:
    """Return the cycles of a sum that is not cut; None when it does not fit so."""
    rows, depth, columns = found.shape
    rows = round_up(rows, M_UNIT)  # a row takes the room of 16
    whole = with_fields(problem, whole=True, rows=rows, columns=columns, products=1)
    tiling = Tiling(rows, depth, columns)
    if not fits(whole, tiling, target):
        return None
    in_turn = with_fields(whole, products=max(2, len(found.links)))
    if not fits(in_turn, tiling, target):
        tiling = with_fields(tiling, buffers=1)
    elif copies > 1:
        return Fraction(0)  # the copies overlap already
    return cost(with_fields(whole, products=len(found.links)), tiling, target).wall


def _refusal(found: Sum, target: Target) -> IRValueError:
    """Return the error for a sum that no tiles make fit: what the smallest ones need, and where."""
    rows, _, columns = found.shape
    problem = found.problem
    m, n = (rows, columns) if problem.whole else (M_UNIT, min(problem.n_unit, columns))
    k = min(problem.k_unit, problem.extents[1])
    left, right = m * k * problem.bits // 8, n * k * problem.bits // 8
    first = found.links[0]
    needs = [
        (MemorySpace.Acc, 4 * m * n, found.result, f"[{m}, {n}]"),
        (MemorySpace.Left, left, first.lhs, f"[{m}, {k}]"),
        (MemorySpace.Right, right, first.rhs, f"[{k}, {n}]"),
        (MemorySpace.Bias, 4 * n if problem.bias else 0, first.bias or first.rhs, f"[1, {n}]"),
    ]
    if first.scales is not None:
        ours, theirs = first.scales
        needs += [
            (MemorySpace.LeftScale, left // 32, ours, f"[{m}, {k // 32}]"),
            (MemorySpace.RightScale, right // 32, theirs, f"[{k // 32}, {n}]"),
        ]
    space, size, var, shape = max(needs, key=lambda n: n[1] / memory_bytes(target, n[0]))
    limit = memory_bytes(target, space)
    message = (
        f"{space.name} buffer usage must be at most the {limit} bytes of {MEMORIES[space][0]}, not "
        f"{size} bytes: {source_name(var)} cannot be cut below {shape}"
    )
    hint = "use smaller tiles"
    if problem.whole:
        hint = "let a store be the only use of the result: M and N are then cut too"
    return IRValueError(message, found.result.span, hint=hint)
