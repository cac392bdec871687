"""Which matmuls of a sequence can be cut, and which belong together.

A product whose operands all lie in L1, or will, can be cut along K. Products that are added up one
after another, each used by the next one alone, and then only stored, make one sum: its result need never
stand in L0C as a whole, so it can be cut along M and N as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..collapsing import plus
from ..core import AssignStmt, EvalStmt, Stmt
from ..expr import Call, Expr, MakeTuple, Op, Var, replace
from ..ops import create_op_call
from ..tile_bytes import FRACTAL_ROWS, round_up
from ..types import MemorySpace, TileLayout, constant_dims
from .l0_tiles import Problem
from .memrefs import tile_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..errors import Span
    from ..types import TileType

#: What a product of each family is called; a bias starts it, an accumulator is added to, by name.
_SCALED, _PLAIN = ("tile.matmul_mx", "tile.gemv_mx"), ("tile.matmul", "tile.gemv")
_OF_ROWS = ("tile.gemv_mx", "tile.gemv")
BIAS, ADD = "_bias", "_acc"
_NAMES = {f"{each}{way}": (each, way) for each in (*_SCALED, *_PLAIN) for way in ("", BIAS, ADD)}
_STORE = "tile.store"
#: How many arguments a store has that names no shapes.
_STORED_AS_IT_IS = 3
_Extents = tuple[int, int, int]


@dataclass(frozen=True)
class Link:
    """A product of a sum.

    Attributes:
        lhs: The left operand in L1.
        rhs: The right one.
        span: Where the product stands.
        scales: Those of the left and of the right operand in L1, if they are block-scaled.
        bias: The row of biases that the sum starts from, or None.
        anew: The condition that the sum begins anew with this product, or None.
    """

    lhs: Var
    rhs: Var
    span: Span
    scales: tuple[Var, Var] | None = None
    bias: Var | None = None
    anew: Expr | None = None

    @property
    def operands(self) -> tuple[Var, ...]:
        """What is multiplied: the data of either side, and the scales if there are any."""
        return self.lhs, self.rhs, *(self.scales or ())


@dataclass(frozen=True)
class Sum:
    """Products that are added up one after another, and where the sum goes.

    Attributes:
        links: The products, of the same extents.
        stmts: The statements of the products.
        shape: Physical M, K and N of a product.
        valid: What of them is valid.
        bits: Bits of an element.
        family: What its products are called.
        start: The accumulator that the first product is added to, or None.
        store: The statement that stores the result and is its only use, or None.
    """

    links: tuple[Link, ...]
    stmts: tuple[AssignStmt, ...]
    shape: _Extents
    valid: _Extents
    bits: int
    family: str
    start: Var | None = None
    store: AssignStmt | EvalStmt | None = None

    @property
    def scaled(self) -> bool:
        """Whether the operands are block-scaled."""
        return self.family in _SCALED

    @property
    def of_a_row(self) -> bool:
        """Whether the left operand is one row, which takes the room of 16 near the cube."""
        return self.family in _OF_ROWS

    @property
    def result(self) -> Var:
        """The variable of the last sum."""
        return self.stmts[-1].var

    @property
    def stored_into(self) -> Expr | None:
        """The tensor that the result is stored into, where the store's own result is used."""
        return self._store_call.args[2] if isinstance(self.store, AssignStmt) else None

    @property
    def _store_call(self) -> Call:
        assert self.store is not None, "only what is stored is cut into tiles"
        call = self.store.value if isinstance(self.store, AssignStmt) else self.store.expr
        assert isinstance(call, Call), call
        return call

    def stored(self, acc: Var, row: Expr, col: Expr, tensor: Expr | None) -> Call:
        """Return the store of a tile of the result that stands `row` and `col` further on in it.

        Args:
            acc: The tile.
            row: The row of the result with which it begins.
            col: The column.
            tensor: What it is stored into; None for what the store of the result names.
        """
        call = self._store_call
        *matrix, down, across = cast("MakeTuple", call.args[1]).elements
        args: list[object] = [
            acc,
            [*matrix, plus(down, row), plus(across, col)],
            call.args[2] if tensor is None else tensor,
        ]
        if len(call.args) > len(args):  # shapes: rows and columns of one matrix of a tensor
            args.append([*(1 for _ in matrix), *cast("TileType", acc.type).valid_shape])
        stored = create_op_call(_STORE, args, call.kwargs, call.span)
        return replace(stored, attrs=call.attrs)

    @property
    def whole(self) -> bool:
        """Whether the accumulator is needed as a whole."""
        bias = self.links[0].bias
        return self.store is None or self.start is not None or not (bias is None or _in_l1(bias))

    @property
    def problem(self) -> Problem:
        """What is to be cut."""
        rows, _, columns = self.shape
        m, k, n = self.valid
        rows = round_up(rows, FRACTAL_ROWS)
        scales = [link.scales[0] for link in self.links if link.scales is not None]
        return Problem(
            m,
            k,
            n,
            self.bits,
            whole=self.whole,
            rows=rows if self.whole else 0,
            columns=columns if self.whole else 0,
            bias=self.links[0].bias is not None,
            products=len(self.links),
            scaled=self.scaled,
            of_a_row=self.of_a_row,
            row_scales=self.of_a_row and any(_is_plain_row(each) for each in scales),
        )


def find_sums(
    stmts: Sequence[Stmt], uses: Mapping[Var, int], may_join: Callable[[Sum, Sum], bool]
) -> Iterator[Sum]:
    """Yield the sums of one sequence of statements.

    Args:
        stmts: The sequence.
        uses: How often the function reads each variable.
        may_join: Whether several products may be computed together, where their sum is stored. It
            gets the sum and the first product alone.
    """
    reader: dict[Var, Stmt] = {}
    for stmt in stmts:
        for var in _arguments(stmt):
            reader.setdefault(var, stmt)

    def only_use(of: Var) -> Stmt | None:
        return reader.get(of) if uses.get(of, 0) == 1 else None

    done: set[Stmt] = set()
    for stmt in stmts:
        first = _product(stmt)
        if first is None or stmt in done:
            continue
        chain = [first]
        while True:
            after = only_use(chain[-1].result)
            added = None if after is None else _product(after)
            if added is None or not _continues(chain[-1], added):
                break
            chain.append(added)
        store = _store_of(only_use(chain[-1].result), chain[-1].result)
        together = _together(chain, store)
        if together is not None and not together.whole and may_join(together, first):
            done.update(together.stmts)
            yield together
        else:
            yield first


def _together(chain: Sequence[Sum], store: AssignStmt | EvalStmt | None) -> Sum | None:
    if store is None:
        return None
    first = chain[0]
    return Sum(
        tuple(each.links[0] for each in chain),
        tuple(each.stmts[0] for each in chain),
        first.shape,
        first.valid,
        first.bits,
        first.family,
        first.start,
        store,
    )


def _continues(before: Sum, after: Sum) -> bool:
    one, other = ((each.shape, each.valid, each.bits, each.family) for each in (before, after))
    return one == other and after.start is before.result


def _product(stmt: Stmt) -> Sum | None:
    """Return the sum of one product that a statement makes, if it can be cut."""
    if not isinstance(stmt, AssignStmt) or not isinstance(stmt.value, Call):
        return None
    call = stmt.value
    if not isinstance(call.op, Op) or call.op.name not in _NAMES:
        return None
    family, way = _NAMES[call.op.name]
    scaled, args = family in _SCALED, list(call.args)
    start = args.pop(0) if way == ADD else None
    count = 4 if scaled else 2
    operands, more = args[:count], args[count:]
    bias = more.pop() if way == BIAS else None
    tiles = [each for each in operands if isinstance(each, Var) and _in_l1(each)]
    others = [each for each in (start, bias) if each is not None]
    named = [each for each in others if isinstance(each, Var)]
    if len(tiles) != len(operands) or len(named) != len(others):
        return None
    lhs, rhs = (tiles[0], tiles[2]) if scaled else tiles
    extents = _extents(lhs, rhs)
    if extents is None:
        return None
    link = Link(
        lhs,
        rhs,
        call.span,
        (tiles[1], tiles[3]) if scaled else None,
        bias if isinstance(bias, Var) else None,
        more[0] if more else None,
    )
    shape, valid, bits = extents
    begin = start if isinstance(start, Var) else None
    return Sum((link,), (stmt,), shape, valid, bits, family, begin)


def _in_l1(value: Expr) -> bool:
    """Whether a tile lies in Mat, or will: what a load placed nowhere and feeds the cube goes there."""
    tile = tile_of(value)
    return tile is not None and tile.memory_space in (None, MemorySpace.Mat)


def _is_plain_row(scales: Var) -> bool:
    """Whether scales are one row, byte after byte, rather than boxes."""
    tile = tile_of(scales)
    return tile is not None and tile.get_effective_tile_view().slayout is TileLayout.none_box


def _extents(lhs: Var, rhs: Var) -> tuple[_Extents, _Extents, int] | None:
    """Return physical and valid M, K, N and the bits of an element; None for symbolic extents."""
    left, right = tile_of(lhs), tile_of(rhs)
    if left is None or right is None:
        return None
    shape = constant_dims((*left.shape, right.shape[1]))
    valid = constant_dims((*left.valid_shape, right.valid_shape[1]))
    if shape is None or valid is None:
        return None
    (rows, depth, columns), (m, k, n) = shape, valid
    return (rows, depth, columns), (m, k, n), left.dtype.bits


def _store_of(stmt: Stmt | None, tile: Var) -> AssignStmt | EvalStmt | None:
    """Return the statement if it stores the tile, and its rows into one matrix of a tensor."""
    match stmt:
        case AssignStmt(value=Call(op=Op(name)) as call) | EvalStmt(expr=Call(op=Op(name)) as call):
            plain = name == _STORE and call.args[0] is tile and _is_one_matrix(call, tile)
            return stmt if plain else None
        case _:
            return None


def _is_one_matrix(store: Call, tile: Var) -> bool:
    """Whether a store takes the tile as it is: in no shapes, or in its own after axes of 1."""
    if len(store.args) == _STORED_AS_IT_IS:
        return True
    type_, shapes = tile_of(tile), store.args[_STORED_AS_IT_IS]
    if type_ is None or not isinstance(shapes, MakeTuple):
        return False
    known, valid = constant_dims(shapes.elements), constant_dims(type_.valid_shape)
    if known is None or valid is None:
        return False
    return known == (*(1,) * (len(known) - len(valid)), *valid)


def _arguments(stmt: Stmt) -> tuple[Var, ...]:
    """Return the variables that a statement hands to an op."""
    match stmt:
        case AssignStmt(value=Call() as call) | EvalStmt(expr=Call() as call):
            return tuple(arg for arg in call.args if isinstance(arg, Var))
        case _:
            return ()
