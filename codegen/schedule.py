"""The order in which instructions are issued: the loads of one product stand together.

Pipes run at once, so the order between instructions of different pipes is the program's to choose
where no byte is shared. With its loads side by side, one flag can hand all operands of a product on,
and the loads do not wait in line behind moves. Scalars are computed just before they are used, so that
few need a register at the same time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .isa.vocabulary import Pipe
from .tree import Block, Branch, Let, Loop, Step, While
from .uses import used

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..ir.expr import Var
    from .tree import Item


def schedule(block: Block) -> Block:
    """Return `block` with loads ahead of the moves of each stretch, and scalars where they are used.

    A stretch ends at an instruction that neither loads nor moves, at a loop, at a branch, and at a load
    into bytes that a move of the stretch still reads. Nothing overtakes what it depends on.
    """
    out: list[Item] = []
    scalars: list[Item] = []
    loads: list[Item] = []
    moves: list[Step] = []

    def flush() -> None:
        out.extend((*scalars, *loads, *moves))
        for each in (scalars, loads, moves):
            each.clear()

    for item in block.items:
        match item:
            case Let():
                scalars.append(item)
            case Step() if item.pipe is Pipe.MTE2:
                if any(_share(item, move) for move in moves):
                    flush()
                loads.append(item)
            case Step() if item.pipe is Pipe.MTE1:
                moves.append(item)
            case Step():
                flush()
                out.append(item)
            case Loop() | While():
                flush()
                out.append(replace(item, body=schedule(item.body)))
            case Branch():
                flush()
                arms = schedule(item.then_body), schedule(item.else_body)
                out.append(replace(item, then_body=arms[0], else_body=arms[1]))
    flush()
    return Block(_late_scalars(out))


def _late_scalars(items: list[Item]) -> list[Item]:
    """Move each scalar down to the item that uses it first; what only the block's end uses, there."""
    out: list[Item] = []
    waiting: dict[Var, Let] = {}

    def compute(wanted: Iterable[Var]) -> None:
        for var in wanted:
            let = waiting.pop(var, None)
            if let is not None:
                compute(used(let))
                out.append(let)

    for item in items:
        if isinstance(item, Let):
            waiting[item.var] = item
        else:
            compute(used(item))
            out.append(item)
    compute(list(waiting))
    return out


def _share(load: Step, move: Step) -> bool:
    return any(a.overlaps(b) for a in load.writes for b in (*move.reads, *move.writes))
