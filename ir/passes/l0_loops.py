"""The loops of a matmul that is cut into L0 tiles.

The tiles of the result are walked one after another; K goes round in a pipelined loop whose first step
is peeled, since it starts the sums. Tails have constant places, so that their valid extents are
constants: what a loop takes is always valid as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core import AssignStmt, EvalStmt, Stmt
from ..dtypes import Index
from ..dtypes.boxes import GROUP
from ..expr import ConstInt, Expr, FloorDiv, Var
from ..expr import index as constant
from ..ops import create_op_call
from ..tile_bytes import round_up
from ..types import MemorySpace
from .l0_sums import ADD, BIAS, Link
from .l0_tiles import M_UNIT, Stays
from .loop_writer import LoopWriter, Stretch, stretches

if TYPE_CHECKING:
    from ..errors import Span
    from .l0_pieces import Pieces
    from .l0_sums import Sum
    from .l0_tiles import Problem, Tiling

_STAGES = 2
#: As many products are written one after another rather than in a loop: at the border of a loop the pipes
#: wait for each other, inside of it they do not.
STRAIGHT = 32


@dataclass
class Nest(LoopWriter):
    """Writes the loops for one sum.

    Args:
        sum: What is computed.
        tiling: How it is cut.
        pieces: Its operands in pieces along K, if they are loaded so.
    """

    sum: Sum
    tiling: Tiling
    pieces: Pieces | None = None
    problem: Problem = field(init=False)
    _steps: int = field(init=False)
    _tiles: int = field(init=False)
    _kept: list[Expr] = field(default_factory=list[Expr])

    @property
    def is_straight(self) -> bool:
        """Whether no step of K is looped over."""
        return self._steps <= STRAIGHT

    def __post_init__(self) -> None:
        problem = self.problem = self.sum.problem
        self._steps = -(-problem.k // self.tiling.k) * problem.products
        self._tiles = -(-problem.m // self.tiling.m) * -(-problem.n // self.tiling.n)

    def stmts(self) -> list[Stmt]:
        """Return the statements that take the place of the products and of the store."""
        store = self.sum.store
        if store is None:
            assert self.problem.whole, "a sum that is not stored is whole"
            self._products(constant(0), constant(0), self.tiling.m, self.tiling.n)
            self.name_last(self.sum.result)
            return self.out
        tensor = self.sum.stored_into
        self._walk(0, {}, tensor)
        if isinstance(store, AssignStmt):
            self.name_last(store.var)
        return self.out

    # ------------------------------------------------------------------- tiles of the result

    def _walk(
        self, level: int, at: dict[str, tuple[Expr, int]], tensor: Expr | None
    ) -> Expr | None:
        """Walk the tiles along the outer axis, then the inner one; return the tensor afterwards."""
        stays = self.tiling.stays
        order = "nm" if stays is Stays.RIGHT else "mn"
        if level == len(order):
            return self._tile(at, tensor)
        if level == 1 and stays is not Stays.NEITHER:
            place, size = at[order[0]]
            self._keep(place, size)
        axis = order[level]
        for each in self._along(axis):
            if each.count == 1:
                placed = {**at, axis: (constant(each.first), each.size)}
                tensor = self._walk(level + 1, placed, tensor)
            else:
                tensor = self._loop_over(axis, level, each, at, tensor)
        return tensor

    def _along(self, axis: str) -> list[Stretch]:
        looped = self._steps * self._tiles > STRAIGHT
        if axis == "m":
            return list(stretches(self.problem.m, self.tiling.m, M_UNIT, looped=looped))
        return list(stretches(self.problem.n, self.tiling.n, self.problem.n_tail, looped=looped))

    def _loop_over(
        self,
        axis: str,
        level: int,
        each: Stretch,
        at: dict[str, tuple[Expr, int]],
        tensor: Expr | None,
    ) -> Expr | None:
        other = "n" if axis == "m" else "m"
        inner = level == 1 or sum(s.count for s in self._along(other)) == 1
        several = self.tiling.accumulators > 1 or self.tiling.stays is not Stays.NEITHER
        turns = several and self.tiling.buffers > 1

        def body(place: Var, carried: Expr | None) -> Expr | None:
            return self._walk(level + 1, {**at, axis: (place, each.size)}, carried)

        span = self.sum.result.span
        return self.loop(axis, each, tensor, body, span, pipelined=inner and turns)

    def _tile(self, at: dict[str, tuple[Expr, int]], tensor: Expr | None) -> Expr | None:
        """Compute one tile of the result and store it."""
        (row, m), (col, n) = at["m"], at["n"]
        stored = self.sum.stored(self._products(row, col, m, n), row, col, tensor)
        if tensor is None:
            self.out.append(EvalStmt(stored, stored.span))
            return None
        name = tensor.name_hint if isinstance(tensor, Var) else "out"
        return self.assign(name, stored)

    # ------------------------------------------------------------------- K

    def _products(self, row: Expr, col: Expr, m: int, n: int) -> Var:
        acc = self.sum.start
        for link in self.sum.links:
            acc = self._product(link, acc, row, col, m, n)
        assert acc is not None
        return acc

    def _product(self, link: Link, acc: Var | None, row: Expr, col: Expr, m: int, n: int) -> Var:
        """Add the steps of K of one product; the first one starts the sum where there is none.

        Where a condition says whether it does, the first one asks it.
        """
        looped, begun = not self.is_straight, acc is not None and link.anew is None
        for each in stretches(self.problem.k, self.tiling.k, self.problem.k_tail, looped=looped):
            rest = each
            if not begun:
                begun, acc = True, self._first(link, acc, row, col, m, n, each.size)
                rest = Stretch(each.first + each.size, each.count - 1, each.size)
            assert acc is not None
            if rest.count == 1:
                acc = self._step(link, acc, row, col, constant(rest.first), m, n, rest.size)
            elif rest.count > 1:

                def body(place: Var, carried: Expr | None, size: int = rest.size) -> Expr:
                    assert isinstance(carried, Var)
                    return self._step(link, carried, row, col, place, m, n, size)

                pipelined = self.tiling.buffers > 1
                done = self.loop("k", rest, acc, body, self.sum.result.span, pipelined=pipelined)
                assert isinstance(done, Var)
                acc = done
        assert acc is not None
        return acc

    def _first(
        self, link: Link, acc: Var | None, row: Expr, col: Expr, m: int, n: int, k: int
    ) -> Var:
        operands = self._operands(link, row, col, constant(0), m, n, k)
        if acc is not None:
            assert link.anew is not None, "a sum that goes on asks whether it begins anew"
            return self._multiply(link, ADD, [acc, *operands, link.anew])
        if link.bias is None:
            return self._multiply(link, "", operands)
        bias: Expr = link.bias
        if not self.problem.whole:
            bias = self._extract(link.bias, constant(0), col, (1, n), MemorySpace.Bias, link.span)
        return self._multiply(link, BIAS, [*operands, bias])

    def _step(
        self, link: Link, acc: Var, row: Expr, col: Expr, at: Expr, m: int, n: int, k: int
    ) -> Var:
        operands = self._operands(link, row, col, at, m, n, k)
        return self._multiply(link, ADD, [acc, *operands])

    def _multiply(self, link: Link, way: str, operands: list[Expr]) -> Var:
        call = create_op_call(f"{self.sum.family}{way}", operands, {}, link.span)
        return self.assign(self.sum.result.name_hint, call)

    def _operands(
        self, link: Link, row: Expr, col: Expr, at: Expr, m: int, n: int, k: int
    ) -> list[Expr]:
        stays = self.tiling.stays
        left = self._left(link, row, at, m, k) if stays is not Stays.LEFT else self._kept
        right = self._right(link, at, col, k, n) if stays is not Stays.RIGHT else self._kept
        return [*left, *right]

    def _left(self, link: Link, row: Expr, at: Expr, m: int, k: int) -> list[Expr]:
        m = 1 if self.sum.of_a_row else m
        lhs, place = self._piece(link.lhs, at)
        data = self._extract(lhs, row, place, (m, k), MemorySpace.Left, link.span)
        if link.scales is None:
            return [data]
        scales, place = self._piece(link.scales[0], at)
        shape, space = (m, k // GROUP), MemorySpace.LeftScale
        return [data, self._extract(scales, row, _group(place), shape, space, link.span)]

    def _right(self, link: Link, at: Expr, col: Expr, k: int, n: int) -> list[Expr]:
        rhs, place = self._piece(link.rhs, at)
        data = self._extract(rhs, place, col, (k, n), MemorySpace.Right, link.span)
        if link.scales is None:
            return [data]
        scales, place = self._piece(link.scales[1], at)
        shape, space = (k // GROUP, n), MemorySpace.RightScale
        return [data, self._extract(scales, _group(place), col, shape, space, link.span)]

    def _piece(self, operand: Var, at: Expr) -> tuple[Var, Expr]:
        """Return the tile that holds an operand from an element of K on, and the place of it there."""
        if self.pieces is None:
            return operand, at
        assert isinstance(at, ConstInt), "steps that are looped over are not in pieces"
        number, place = divmod(at.value, self.pieces.depth[operand])
        return self.pieces.of[operand][number], constant(place, at.span)

    def _keep(self, place: Expr, size: int) -> None:
        """Move the operand that stays while the inner axis is walked."""
        (link,) = self.sum.links
        depth = round_up(self.problem.k, self.problem.k_tail)
        if self.tiling.stays is Stays.LEFT:
            pair = self._left(link, place, constant(0), size, depth)
        else:
            pair = self._right(link, constant(0), place, depth, size)
        self._kept = pair

    # ------------------------------------------------------------------- statements

    def _extract(
        self,
        source: Var,
        row: Expr,
        col: Expr,
        shape: tuple[int, int],
        target: MemorySpace,
        span: Span,
    ) -> Var:
        kwargs = {"target_memory": target}
        call = create_op_call("tile.extract", [source, row, col, shape], kwargs, span)
        return self.assign(f"{source.name_hint}_{target.name}", call)


def _group(at: Expr) -> Expr:
    """Return the group of 32 that begins at an element along K."""
    if isinstance(at, ConstInt):
        return constant(at.value // GROUP, at.span)
    return FloorDiv(at, constant(GROUP), Index, at.span)
