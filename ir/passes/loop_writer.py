"""Writes loops over the windows along an axis; tails have constant places, outside of the loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core import AssignStmt, ForKind, ForStmt, SeqStmts, Stmt, YieldStmt
from ..dtypes import Index
from ..expr import Call, Expr, IterArg, ScalarType, Var, index, replace
from ..tile_bytes import round_up
from ..verification.structure import STAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..errors import Span

_STAGES = 2


@dataclass(frozen=True)
class Stretch:
    """Windows of one size along an axis: the first one's place, how many, how large each."""

    first: int
    count: int
    size: int


def stretches(valid: int, size: int, unit: int, *, looped: bool) -> Iterator[Stretch]:
    """Yield the windows that are valid as a whole, together if they are looped over, then the tail.

    Args:
        valid: Valid elements along the axis.
        size: Those of a window.
        unit: What the tail is rounded up to a multiple of.
        looped: Whether whole windows are looped over.
    """
    whole = valid // size
    if whole and looped:
        yield Stretch(0, whole, size)
    elif whole:
        yield from (Stretch(number * size, 1, size) for number in range(whole))
    if valid % size:
        yield Stretch(whole * size, 1, round_up(valid % size, unit))


@dataclass
class LoopWriter:
    """Writes statements one after another.

    Attributes:
        out: What was written.
    """

    out: list[Stmt] = field(default_factory=list[Stmt], init=False)

    def assign(self, name: str, value: Call) -> Var:
        """Write the assignment of a value to a new variable, and return that."""
        var = Var(name, value.type, value.span)
        self.out.append(AssignStmt(var, value, value.span))
        return var

    def name_last(self, var: Var) -> None:
        """Let the last statement define `var`."""
        last = self.out[-1]
        if isinstance(last, ForStmt):
            self.out[-1] = replace(last, return_vars=(var,))
        else:
            self.out[-1] = replace(last, var=var)

    def loop(
        self,
        axis: str,
        each: Stretch,
        carried: Expr | None,
        body: Callable[[Var, Expr | None], Expr | None],
        span: Span,
        *,
        pipelined: bool,
    ) -> Expr | None:
        """Write a loop over the windows of a stretch; return what it carries, after it."""
        place = Var(axis, ScalarType(Index), span)
        name = carried.name_hint if isinstance(carried, Var) else axis
        arg = None if carried is None else IterArg(name, carried.type, carried, span)
        outer, self.out = self.out, []
        handed_on = body(place, arg)
        if handed_on is not None:
            self.out.append(YieldStmt((handed_on,), span))
        inside, self.out = self.out, outer
        after = None if carried is None else Var(name, carried.type, span)
        stop = each.first + each.count * each.size
        self.out.append(
            ForStmt(
                place,
                index(each.first),
                index(stop),
                index(each.size),
                () if arg is None else (arg,),
                SeqStmts(tuple(inside), span),
                () if after is None else (after,),
                span,
                ForKind.Pipeline if pipelined else ForKind.Sequential,
                {STAGES: _STAGES} if pipelined else {},
            )
        )
        return after
