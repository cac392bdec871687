"""Emission: a tree of machine code becomes a list of instructions with registers and labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..ir.errors import IRValueError, Span
from ..ir.expr import (
    Add,
    And,
    BitNot,
    BitShiftLeft,
    BitShiftRight,
    Cast,
    ConstBool,
    ConstInt,
    Eq,
    Expr,
    FloorDiv,
    FloorMod,
    Ge,
    Gt,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Neg,
    Not,
    Or,
    Sub,
    Var,
)
from ..ir.visitor import IRVisitor
from .isa.program import Label, ProgramBuilder, row_of
from .isa.vocabulary import FieldKind
from .registers import Registers
from .tree import Block, Branch, Let, Loop, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..ir.expr import BinaryExpr
    from .isa.program import Instruction
    from .tree import Item

#: The instruction of each scalar operator; `<name>i` takes a constant on the right.
MNEMONICS: dict[type[BinaryExpr], str] = {
    Add: "add",
    Sub: "sub",
    Mul: "mul",
    FloorDiv: "floordiv",
    FloorMod: "floormod",
    Min: "min",
    Max: "max",
    And: "and",
    Or: "or",
    BitShiftLeft: "shl",
    BitShiftRight: "shr",
    Eq: "cmpeq",
    Ne: "cmpne",
    Lt: "cmplt",
    Le: "cmple",
    Gt: "cmpgt",
    Ge: "cmpge",
}


@dataclass(frozen=True)
class Tag:
    """What goes with an instruction into the executable: its source and a remark."""

    span: Span
    note: str = ""


def emit(block: Block, scalar_params: Sequence[Var]) -> tuple[list[Instruction], list[Tag]]:
    """Return the instructions of `block`, ending in a halt, and a tag for each.

    Args:
        block: The kernel's tree, flags included.
        scalar_params: The kernel's scalar parameters in order; each is read where it is needed.

    Raises:
        IRValueError: For a scalar operation without an instruction, or too many live scalars.
    """
    emitter = _Emitter({var: number for number, var in enumerate(scalar_params)})
    emitter.params(block)
    emitter.block(block)
    emitter.builder.emit("halt", Tag(Span.unknown()))
    return emitter.builder.build()


class _Uses(IRVisitor):
    def __init__(self) -> None:
        self.found: dict[Var, None] = {}

    def visit_var_like(self, op: Var) -> None:
        self.found.setdefault(op)


def _expressions(item: Item) -> Iterator[Expr]:
    """Yield every scalar expression that an item evaluates, those inside it included."""
    match item:
        case Step():
            yield from (value for value in item.fields.values() if isinstance(value, Expr))
        case Let():
            yield item.value
        case Loop():
            yield from (item.start, item.stop)
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


def _variables(expressions: Iterable[Expr]) -> dict[Var, None]:
    uses = _Uses()
    for expression in expressions:
        uses.visit_expr(expression)
    return uses.found


def _used(item: Item) -> dict[Var, None]:
    return _variables(_expressions(item))


@dataclass
class _Emitter:
    param_index: dict[Var, int]
    builder: ProgramBuilder[Tag] = field(default_factory=ProgramBuilder[Tag])
    registers: Registers = field(default_factory=Registers)
    values: dict[Var, int] = field(default_factory=dict[Var, int])
    labels: int = 0

    def params(self, block: Block) -> None:
        """Read the scalar parameters that the kernel uses into registers, for good."""
        used: dict[Var, None] = {}
        for item in block.items:
            used |= _used(item)
        for var in self.param_index:
            if var in used:
                register = self.registers.take(var.span)
                tag = Tag(var.span, var.name_hint)
                self.builder.emit("ldparam", tag, xd=register, index=self.param_index[var])
                self.values[var] = register

    def block(
        self, block: Block, tail: Sequence[Expr] = (), finish: Callable[[], None] | None = None
    ) -> None:
        """Emit the items in order; a scalar's register is free after its last use here.

        `finish` emits what reads the expressions `tail` at the block's end.
        """
        last: dict[Var, int] = {}
        for index, item in enumerate(block.items):
            last |= dict.fromkeys(_used(item), index)
        last |= dict.fromkeys(_variables(tail), len(block.items))
        own: set[Var] = set()
        for index, item in enumerate(block.items):
            for var in self._item(item):
                own.add(var)
                last.setdefault(var, index)
            for var in [v for v in own if last[v] <= index]:
                own.discard(var)
                self.registers.give(self.values.pop(var))
        if finish is not None:
            finish()
        for var in own:
            self.registers.give(self.values.pop(var))

    def _item(self, item: Item) -> tuple[Var, ...]:
        """Emit one item and return the scalars that it defines for what follows."""
        match item:
            case Step():
                self._step(item)
                return ()
            case Let():
                self.values[item.var] = self._into_new(
                    item.value, Tag(item.span, item.var.name_hint)
                )
                return (item.var,)
            case Loop():
                return self._loop(item)
            case Branch():
                return self._branch(item)

    # ----------------------------------------------------------------- instructions

    def _step(self, step: Step) -> None:
        tag = Tag(step.span, step.note)
        held: list[int] = []
        fields = dict[str, int]()
        for each in row_of(step.mnemonic).fields:
            value = step.fields[each.name]
            if each.kind is FieldKind.REG:
                assert isinstance(value, Expr)
                fields[each.name] = self._value(value, tag, held)
            else:
                assert not isinstance(value, Expr)
                fields[each.name] = value
        self.builder.emit(step.mnemonic, tag, to=None, **fields)
        self._release(held)

    def _release(self, held: list[int]) -> None:
        for register in held:
            self.registers.give(register)
        held.clear()

    # ----------------------------------------------------------------- scalars

    def _value(self, expr: Expr, tag: Tag, held: list[int]) -> int:
        """Return a register with the value of `expr`; one that must be given back joins `held`."""
        match expr:
            case Var():
                return self.values[expr]
            case ConstInt() | ConstBool():
                return self._constant(int(expr.value), tag, held)
            case _:
                register = self._into_new(expr, tag)
                held.append(register)
                return register

    def _constant(self, value: int, tag: Tag, held: list[int]) -> int:
        known = self.registers.constant(value)
        if known is not None:
            return known
        register = self.registers.take(tag.span)
        self.builder.emit("movi", tag, xd=register, imm=value)
        if not self.registers.keep_constant(value, register):
            held.append(register)
        return register

    def _into_new(self, expr: Expr, tag: Tag) -> int:
        """Return a register of its own that gets the value of `expr`."""
        target = self.registers.take(tag.span)
        self._into(target, expr, tag)
        return target

    def _into(self, target: int, expr: Expr, tag: Tag) -> None:
        held: list[int] = []
        match expr:
            case ConstInt() | ConstBool():
                self.builder.emit("movi", tag, xd=target, imm=int(expr.value))
            case Var():
                self.builder.emit("addi", tag, xd=target, xa=self.values[expr], imm=0)
            case Cast():
                self._into(target, expr.operand, tag)
            case Neg():
                zero = self._constant(0, tag, held)
                operand = self._value(expr.operand, tag, held)
                self.builder.emit("sub", tag, xd=target, xa=zero, xb=operand)
            case Not():
                operand = self._value(expr.operand, tag, held)
                self.builder.emit("cmpeqi", tag, xd=target, xa=operand, imm=0)
            case BitNot():
                operand = self._value(expr.operand, tag, held)
                self.builder.emit("xori", tag, xd=target, xa=operand, imm=-1)
            case _ if type(expr) in MNEMONICS:
                self._binary(target, expr, tag, held)  # pyright: ignore[reportArgumentType]
            case _:
                message = (
                    f"A scalar that is compiled must be integer arithmetic, a comparison or logic, "
                    f"not {type(expr).__name__}"
                )
                raise IRValueError(message, tag.span)
        self._release(held)

    def _binary(self, target: int, expr: BinaryExpr, tag: Tag, held: list[int]) -> None:
        name = MNEMONICS[type(expr)]
        left = self._value(expr.left, tag, held)
        if isinstance(expr.right, ConstInt):
            row = row_of(f"{name}i")
            number = next(f for f in row.fields if f.name == "imm")
            if number.complaint(expr.right.value) is None:
                self.builder.emit(row.mnemonic, tag, xd=target, xa=left, imm=expr.right.value)
                return
        right = self._value(expr.right, tag, held)
        self.builder.emit(name, tag, xd=target, xa=left, xb=right)

    # ----------------------------------------------------------------- control flow

    def _label(self, what: str) -> Label:
        self.labels += 1
        return Label(f"{what}{self.labels}")

    def _hoist_constants(self, loop: Loop, tag: Tag) -> None:
        """Put the constants that the loop's instructions need into registers before it."""
        for step in loop.body.steps():
            for value in step.fields.values():
                if isinstance(value, ConstInt):
                    spare: list[int] = []
                    self._constant(value.value, tag, spare)
                    self._release(spare)

    def _loop(self, loop: Loop) -> tuple[Var, ...]:
        tag = Tag(loop.span, loop.var.name_hint)
        self._hoist_constants(loop, tag)
        for arg, first, _, _ in loop.carried:
            self.values[arg] = self._into_new(first, Tag(loop.span, arg.name_hint))
        held: list[int] = []
        stop = self._value(loop.stop, tag, held)
        counter = self._into_new(loop.start, tag)
        self.values[loop.var] = counter
        top, end = self._label("loop"), self._label("end")
        if not loop.trips:
            self._leave_if_done(counter, stop, loop.step, end, tag)
        self.builder.place(top)
        self.registers.enter()
        self.block(
            loop.body, [value for _, _, value, _ in loop.carried], lambda: self._hand_on(loop)
        )
        self.builder.emit("addi", tag, xd=counter, xa=counter, imm=loop.step)
        if loop.step > 0:
            self.builder.emit("blt", tag, to=top, xa=counter, xb=stop)
        else:
            self.builder.emit("blt", tag, to=top, xa=stop, xb=counter)
        self.registers.leave()
        self.builder.place(end)
        self.registers.give(self.values.pop(loop.var))
        self._release(held)
        for arg, _, _, result in loop.carried:
            self.values[result] = self.values.pop(arg)
        return tuple(result for *_, result in loop.carried)

    def _leave_if_done(self, counter: int, stop: int, step: int, end: Label, tag: Tag) -> None:
        test = self.registers.take(tag.span)
        name = "cmplt" if step > 0 else "cmpgt"
        self.builder.emit(name, tag, xd=test, xa=counter, xb=stop)
        self.builder.emit("beqz", tag, to=end, xa=test)
        self.registers.give(test)

    def _hand_on(self, loop: Loop) -> None:
        """Move what a trip yields into the arguments; all are computed before the first moves."""
        tag = Tag(loop.span)
        moved = [
            (arg, self._into_new(value, tag))
            for arg, _, value, _ in loop.carried
            if value is not arg
        ]
        for arg, register in moved:
            self.builder.emit("addi", tag, xd=self.values[arg], xa=register, imm=0)
            self.registers.give(register)

    def _branch(self, branch: Branch) -> tuple[Var, ...]:
        tag = Tag(branch.span)
        targets = {var: self.registers.take(branch.span) for var, _, _ in branch.results}
        held: list[int] = []
        condition = self._value(branch.condition, tag, held)
        otherwise, end = self._label("else"), self._label("end")
        self.builder.emit("beqz", tag, to=otherwise, xa=condition)
        self._release(held)
        self._arm(branch.then_body, [(targets[v], a) for v, a, _ in branch.results], tag)
        self.builder.emit("jump", tag, to=end)
        self.builder.place(otherwise)
        self._arm(branch.else_body, [(targets[v], b) for v, _, b in branch.results], tag)
        self.builder.place(end)
        self.values.update(targets)
        return tuple(targets)

    def _arm(self, body: Block, results: list[tuple[int, Expr]], tag: Tag) -> None:
        def finish() -> None:
            for target, value in results:
                self._into(target, value, tag)

        self.registers.enter()
        self.block(body, [value for _, value in results], finish)
        self.registers.leave()
