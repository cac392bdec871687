"""Machine code before it is a list: instructions in a tree of loops and branches.

Selection makes the tree, synchronisation puts flags into it, emission turns it into a program with
registers and labels. An instruction here is a :class:`Step`; it says which bytes it reads and writes,
which is all that synchronisation looks at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..ir.expr import ConstInt
from .isa.program import row_of
from .isa.vocabulary import ClusterCore, Pipe, Space

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..ir.errors import Span
    from ..ir.expr import Expr, Var


_PIPES = len(Pipe)
Fields: TypeAlias = "dict[str, int | Expr]"
"""The fields of an instruction; one in a register is the scalar whose value it must carry."""


@dataclass(frozen=True)
class Region:
    """Bytes `begin` to `end` (exclusive) of a memory; in GM, all of the tensor parameter `owner`."""

    space: Space
    begin: int
    end: int
    owner: int = 0

    def overlaps(self, other: Region) -> bool:
        """Whether the two share a byte."""
        return (
            self.space is other.space
            and self.owner == other.owner
            and self.begin < other.end
            and other.begin < self.end
        )


def whole_tensor(owner: int) -> Region:
    """Return the region of the tensor parameter number `owner`."""
    return Region(Space.GM, 0, 1, owner)


class Lane(NamedTuple):
    """A pipe of a core of the cluster; what is on one lane runs in order."""

    core: ClusterCore
    pipe: Pipe

    @property
    def number(self) -> int:
        """A number that no other lane has."""
        return self.core * _PIPES + self.pipe


@dataclass(eq=False)
class Step:
    """One instruction.

    `note` is a remark for the disassembly, such as the tile that the instruction makes. `on` is the core
    of an instruction that both kinds of core have. `tiles` are buffer and variable of the tiles that its
    operands are, by operand, as far as they are known.
    """

    mnemonic: str
    fields: Fields
    span: Span
    reads: tuple[Region, ...] = ()
    writes: tuple[Region, ...] = ()
    note: str = ""
    on: ClusterCore | None = None
    tiles: tuple[tuple[str, tuple[str, str]], ...] = ()

    @property
    def core(self) -> ClusterCore:
        """The core that runs it: of the vector cores the first one, since the second one idles."""
        if self.on is not None:
            return self.on
        kind = row_of(self.mnemonic).core
        assert kind is not None, f"{self.mnemonic} must be told its core: both kinds have it"
        return kind.first

    @property
    def lane(self) -> Lane:
        """The pipe of a core that runs it."""
        return Lane(self.core, self.pipe)

    @property
    def pipe(self) -> Pipe:
        """The pipe whose queue takes the instruction."""
        row = row_of(self.mnemonic)
        if row.pipe_field is None:
            return row.pipe
        return Pipe(int(self.fields[row.pipe_field]))  # pyright: ignore[reportArgumentType]


@dataclass(eq=False)
class Let:
    """A scalar variable gets the value of an expression."""

    var: Var
    value: Expr
    span: Span


Carried: TypeAlias = "tuple[tuple[Var, Expr, Expr, Var], ...]"
"""The scalars that a trip of a loop hands to the next one, each as (argument, first value, what a trip
yields, name after the loop)."""


class AnyLoop:
    """What runs its body again and again."""

    body: Block
    span: Span
    carried: Carried

    @property
    def trips(self) -> int | None:
        """The number of trips, where it is known."""
        return None


@dataclass(eq=False)
class Loop(AnyLoop):
    """A counted loop with a constant step."""

    var: Var
    start: Expr
    stop: Expr
    step: int
    body: Block
    span: Span
    carried: Carried = ()

    @property
    def trips(self) -> int | None:
        """The number of trips, where constants tell it."""
        if not isinstance(self.start, ConstInt) or not isinstance(self.stop, ConstInt):
            return None
        return len(range(self.start.value, self.stop.value, self.step))


@dataclass(eq=False)
class While(AnyLoop):
    """A loop that goes on as long as a condition over its carried scalars holds."""

    condition: Expr
    body: Block
    span: Span
    carried: Carried = ()


@dataclass(eq=False)
class Branch:
    """Two bodies of which one runs; `results` are scalars as (variable, then value, else value)."""

    condition: Expr
    then_body: Block
    else_body: Block
    span: Span
    results: tuple[tuple[Var, Expr, Expr], ...] = ()


Item: TypeAlias = "Step | Let | Loop | While | Branch"


@dataclass(eq=False)
class Block:
    """Items that run one after another."""

    items: list[Item] = field(default_factory=list["Item"])

    def steps(self) -> Iterator[Step]:
        """Yield every instruction of the tree, in program order."""
        for item in self.items:
            match item:
                case Step():
                    yield item
                case AnyLoop():
                    yield from item.body.steps()
                case Branch():
                    yield from item.then_body.steps()
                    yield from item.else_body.steps()
                case _:
                    continue
