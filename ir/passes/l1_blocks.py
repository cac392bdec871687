"""A product whose operands L1 cannot hold is cut into blocks of the result, and of K, that it can.

That is done to what the kernel loaded to no named memory, for one product that is only stored: each
block loads its own part of the operands and stores its own part of the result. K ascends, and is cut
between steps of the cube, so no bit changes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from dataclasses import replace as with_fields
from functools import partial
from typing import TYPE_CHECKING, cast

from ..core import AssignStmt, EvalStmt, ForKind, Function, SeqStmts
from ..dtypes.boxes import GROUP
from ..expr import Expr, Var, index, replace
from ..ops import create_op_call
from ..verification.structure import STAGES
from ..visitor import IRVisitor
from .inserting import InsertingMutator
from .l0_loads import is_still, piece_of, plain_loads
from .l0_sums import ADD, BIAS, find_sums
from .l0_tiles import M_UNIT
from .l1_block_choice import Block, block_bytes, choose_block
from .loop_writer import LoopWriter, Stretch, stretches
from .memrefs import tile_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..core import ForStmt, Stmt
    from ..expr import Call
    from ..target import Target
    from .l0_sums import Sum


class Blocker(InsertingMutator):
    """Cuts the products of a function whose operands do not fit into L1.

    Args:
        target: The machine.
    """

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target
        self._uses: Counter[Var] = Counter()
        self._copies = 1

    def visit_function(self, op: Function) -> Function:
        """Look at what each variable is used for, then at the body."""
        uses = Uses()
        uses.visit_function(op)
        self._uses = uses.count
        return super().visit_function(op)

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        """Count the copies that pipelined loops make of a body."""
        outer = self._copies
        if op.kind is ForKind.Pipeline:
            self._copies *= op.attrs.get(STAGES, 1)
        done = self.visit_children(op)
        self._copies = outer
        return done

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        """Put blocks where products stood."""
        instead: dict[Stmt, list[Stmt]] = {}
        room = self._target.l1_bytes // self._copies
        for found in find_sums(op.stmts, self._uses, lambda sum_, _: len(sum_.links) == 1):
            loads = _cuttable_loads(found, op.stmts, self._uses)
            if loads is None or block_bytes(found, Block(*found.shape)) <= room:
                continue
            block = choose_block(found, room, self._target, loads)
            if block is not None:
                assert found.store is not None, "what is cut is stored"
                instead.update((stmt, []) for stmt in (*loads.values(), *found.stmts))
                instead[found.store] = _Blocks(found, block, loads).stmts()
        if not instead:
            return super().visit_seq_stmts(op)
        stmts = tuple(new for old in op.stmts for new in instead.get(old, [old]))
        return replace(op, stmts=stmts)


class Uses(IRVisitor):
    """How often each variable is read."""

    def __init__(self) -> None:
        self.count: Counter[Var] = Counter()

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        """Look at what is assigned only."""
        self.visit_expr(op.value)

    def visit_var_like(self, op: Var) -> None:
        """Count a use."""
        self.count[op] += 1


# --------------------------------------------------------------------------- what can be cut


def _cuttable_loads(
    found: Sum, stmts: Sequence[Stmt], uses: Mapping[Var, int]
) -> dict[Var, AssignStmt] | None:
    """Return the loads of a product's operands, if they can be cut and moved to its store."""
    link = found.links[0]
    if found.store is None or found.whole or link.anew is not None:
        return None
    if any(_is_placed(each) for each in (link.lhs, link.rhs)):
        return None
    operands = link.operands if link.bias is None else (*link.operands, link.bias)
    loads = plain_loads(operands, stmts, uses)
    if loads is None:
        return None
    first, last = stmts.index(loads[0]), stmts.index(found.store)
    between = (stmt for stmt in stmts[first:last] if stmt not in found.stmts)
    return {each.var: each for each in loads} if all(map(is_still, between)) else None


def _is_placed(operand: Var) -> bool:
    tile = tile_of(operand)
    return tile is not None and tile.memory_space is not None


# --------------------------------------------------------------------------- the blocks


@dataclass(frozen=True)
class _Window:
    """A part of an axis: where it begins, its elements, the valid ones, and those of an index."""

    first: Expr
    size: int
    valid: int
    per: int = 1


class _Blocks(LoopWriter):
    """Writes the blocks of one product."""

    def __init__(self, found: Sum, block: Block, loads: Mapping[Var, AssignStmt]) -> None:
        super().__init__()
        self._sum = found
        self._block = block
        self._loads = loads
        self._link = found.links[0]

    def stmts(self) -> list[Stmt]:
        """Return the statements that take the place of the loads, the product and the store."""
        self._rows(self._sum.stored_into)
        if isinstance(self._sum.store, AssignStmt):
            self.name_last(self._sum.store.var)
        return self.out

    def _rows(self, tensor: Expr | None) -> Expr | None:
        unit = 1 if self._sum.of_a_row else M_UNIT
        return self._walk("m", 0, self._block.m, unit, tensor, self._columns)

    def _columns(self, rows: _Window, tensor: Expr | None) -> Expr | None:
        unit = self._sum.problem.n_tail
        body = partial(self._store, rows)
        return self._walk("n", 2, self._block.n, unit, tensor, body)

    def _walk(
        self,
        name: str,
        axis: int,
        size: int,
        unit: int,
        carried: Expr | None,
        body: Callable[[_Window, Expr | None], Expr | None],
    ) -> Expr | None:
        """Write the windows of an extent of the product, in loops where there are several."""
        total = self._sum.valid[axis]
        for each in stretches(total, size, unit, looped=True):
            carried = self._windows(name, each, total, carried, body)
        return carried

    def _windows(
        self,
        name: str,
        each: Stretch,
        total: int,
        carried: Expr | None,
        body: Callable[[_Window, Expr | None], Expr | None],
    ) -> Expr | None:
        if each.count == 1:
            valid = min(each.size, total - each.first)
            return body(_Window(index(each.first), each.size, valid), carried)

        def looped(place: Expr, arg: Expr | None) -> Expr | None:
            return body(_Window(place, each.size, each.size), arg)

        return self.loop(name, each, carried, looped, self._sum.result.span, pipelined=False)

    def _store(self, rows: _Window, columns: _Window, tensor: Expr | None) -> Expr | None:
        """Write one block."""
        acc = self._product(rows, columns)
        stored = self._sum.stored(acc, rows.first, columns.first, tensor)
        if tensor is None:
            self.out.append(EvalStmt(stored, stored.span))
            return None
        name = tensor.name_hint if isinstance(tensor, Var) else "out"
        return self.assign(name, stored)

    def _product(self, rows: _Window, columns: _Window) -> Var:
        """Write the steps of K of a block; the first one, by itself, starts the sum."""
        depth, acc = self._sum.valid[1], None
        step = partial(self._step, rows, columns)
        for each in stretches(depth, self._block.k, self._sum.problem.k_tail, looped=True):
            rest = each
            if acc is None:
                valid = min(each.size, depth - each.first)
                acc = step(_Window(index(each.first), each.size, valid), None)
                rest = Stretch(each.first + each.size, each.count - 1, each.size)
            if rest.count:
                acc = self._windows("k", rest, depth, acc, step)
        assert isinstance(acc, Var)
        return acc

    def _step(
        self, rows: _Window, columns: _Window, depth: _Window, acc: Expr | None
    ) -> Expr | None:
        link = self._link
        groups = with_fields(depth, per=GROUP)
        operands: list[Expr] = [self._loaded(link.lhs, rows, depth)]
        if link.scales is not None:
            operands.append(self._loaded(link.scales[0], rows, groups))
        operands.append(self._loaded(link.rhs, depth, columns))
        if link.scales is not None:
            operands.append(self._loaded(link.scales[1], groups, columns))
        way = "" if link.bias is None else BIAS
        if acc is not None:
            way, operands = ADD, [acc, *operands]
        elif link.bias is not None:
            operands.append(self._loaded(link.bias, _Window(index(0), 1, 1), columns))
        call = create_op_call(f"{self._sum.family}{way}", operands, {}, link.span)
        return self.assign(self._sum.result.name_hint, call)

    def _loaded(self, var: Var, *windows: _Window) -> Var:
        """Write the load of a part of an operand."""
        load = cast("Call", self._loads[var].value)
        for axis, each in enumerate(windows):
            size, valid = -(-each.size // each.per), -(-each.valid // each.per)
            load = piece_of(load, axis, each.first, size, valid, per=each.per)
        return self.assign(var.name_hint, load)
