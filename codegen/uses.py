"""Which scalar variables an item of a tree uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.expr import Expr
from ..ir.visitor import IRVisitor
from .tree import Branch, Let, Loop, Step, While

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..ir.expr import Var
    from .tree import Item


class _Uses(IRVisitor):
    def __init__(self) -> None:
        self.found: dict[Var, None] = {}

    def visit_var_like(self, op: Var) -> None:
        self.found.setdefault(op)


def variables(expressions: Iterable[Expr]) -> dict[Var, None]:
    """Return the variables in expressions, in order, each once."""
    uses = _Uses()
    for expression in expressions:
        uses.visit_expr(expression)
    return uses.found


def used(item: Item) -> dict[Var, None]:
    """Return the variables that an item reads, those inside it included."""
    return variables(_expressions(item))


def _expressions(item: Item) -> Iterator[Expr]:
    match item:
        case Step():
            yield from (value for value in item.fields.values() if isinstance(value, Expr))
        case Let():
            yield item.value
        case Loop() | While():
            heads = (item.start, item.stop) if isinstance(item, Loop) else (item.condition,)
            yield from heads
            for _, first, following, _ in item.carried:
                yield from (first, following)
            for inner in item.body.items:
                yield from _expressions(inner)
        case Branch():
            yield item.condition
            for _, first, second in item.results:
                yield from (first, second)
            for inner in (*item.then_body.items, *item.else_body.items):
                yield from _expressions(inner)
