"""One tree, a program for each core: what a kernel that uses both kinds of core is made of.

Control flow and scalar code go to both cores, instructions to their own. What no instruction of a core
needs is left out of its program: loops and branches without one, and scalars that only the other core
uses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .isa.vocabulary import ClusterCore
from .tree import AnyLoop, Block, Branch, Let, Loop, Step, While
from .uses import variables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..ir.expr import Expr, Var
    from .tree import Item


def split(root: Block) -> tuple[Block, Block]:
    """Return the cube core's part of a tree, and the first vector core's.

    Args:
        root: The tree of a kernel, flags included; it is not changed.

    What neither core needs is left to the cube core, since computing it may be a fault.
    """
    vector = _Needs(root, ClusterCore.AIV0)
    cube = _Needs(root, ClusterCore.AIC, besides=vector)
    return cube.part(root), vector.part(root)


class _Needs:
    """What the program of a core consists of.

    Args:
        root: The whole tree.
        core: The core.
        besides: The program of the other core, if this one has to take what that one does not.

    Attributes:
        scalars: The variables that it computes or is given.
        alive: The items that are in it.
    """

    def __init__(self, root: Block, core: ClusterCore, besides: _Needs | None = None) -> None:
        self._core = core
        self._besides = besides
        self.scalars: dict[Var, None] = {}
        self.alive: set[Item] = set()
        before = -1
        while before != len(self.scalars) + len(self.alive):
            before = len(self.scalars) + len(self.alive)
            self._look(root)

    def part(self, block: Block) -> Block:
        """Return what the core's program has of a block."""
        return Block([self._part(item) for item in block.items if item in self.alive])

    # ----------------------------------------------------------------- what is needed

    def _look(self, block: Block) -> None:
        """Find more that is needed, from what is known to be: from the end on, uses before values."""
        for item in reversed(block.items):
            match item:
                case Step():
                    if item.core is self._core:
                        self._need(
                            item, (v for v in item.fields.values() if not isinstance(v, int))
                        )
                case Let():
                    if self._asked(item.var):
                        self._need(item, (item.value,))
                        self.scalars[item.var] = None
                case Loop() | While():
                    self._look(item.body)
                    self._loop(item)
                case Branch():
                    self._look(item.then_body)
                    self._look(item.else_body)
                    self._branch(item)

    def _loop(self, loop: Loop | While) -> None:
        results = any(self._asked(after) for *_, after in loop.carried)
        if not results and not self._any(loop.body) and not self._left_over(loop):
            return
        heads = (loop.start, loop.stop) if isinstance(loop, Loop) else (loop.condition,)
        self._need(loop, heads)
        for arg, first, following, after in loop.carried:
            if arg in self.scalars or self._asked(after):
                self._need(loop, (first, following))
                self.scalars |= {arg: None, after: None}

    def _branch(self, branch: Branch) -> None:
        needed = [each for each in branch.results if self._asked(each[0])]
        arms = branch.then_body, branch.else_body
        if not needed and not any(self._any(arm) for arm in arms) and not self._left_over(branch):
            return
        self._need(branch, (branch.condition,))
        for var, first, second in needed:
            self._need(branch, (first, second))
            self.scalars[var] = None

    def _asked(self, var: Var) -> bool:
        other = self._besides
        return var in self.scalars or (other is not None and var not in other.scalars)

    def _left_over(self, item: Item) -> bool:
        return self._besides is not None and item not in self._besides.alive

    def _any(self, block: Block) -> bool:
        return any(item in self.alive for item in block.items)

    def _need(self, item: Item, expressions: Iterable[Expr]) -> None:
        self.alive.add(item)
        self.scalars |= variables(expressions)

    # ----------------------------------------------------------------- the part

    def _part(self, item: Item) -> Item:
        match item:
            case AnyLoop():
                carried = tuple(each for each in item.carried if each[0] in self.scalars)
                return replace(item, body=self.part(item.body), carried=carried)
            case Branch():
                return replace(
                    item,
                    then_body=self.part(item.then_body),
                    else_body=self.part(item.else_body),
                    results=tuple(each for each in item.results if each[0] in self.scalars),
                )
            case _:
                return item
