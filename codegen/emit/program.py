"""Emission: a tree of machine code becomes a list of instructions with registers and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...ir.errors import IRValueError, Span
from ...ir.expr import ConstInt, Expr
from ..isa.program import Label, ProgramBuilder, row_of
from ..isa.vocabulary import FieldKind
from ..scalars.exprs import Const, Scalar, Variable
from ..scalars.lower import lower_scalar
from ..tree import Block, Branch, Let, Loop, Step, While
from ..uses import used, variables
from .arithmetic import IDENTITIES, Arithmetic, Tag
from .registers import Registers, RegistersExhausted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...ir.expr import Var
    from ..isa.program import Instruction
    from ..tree import AnyLoop, Item


@dataclass(frozen=True)
class Thrift:
    """How registers are spent on what could be made anew.

    Args:
        constants: Registers that constants may occupy for later use.
        params: Whether scalar parameters have registers of their own, rather than being read at
            each use.
    """

    constants: int
    params: bool


#: What a block can ask for; of the vector cores of a cluster only the first one works.
_PLACE: dict[str, Scalar] = {
    **{name: Variable(name) for name in IDENTITIES},
    "tile.get_subblock_idx": Const(0),
}

#: The first that needs no more registers than there are is taken.
THRIFT = (Thrift(12, params=True), Thrift(2, params=True), Thrift(0, params=False))


def emit(block: Block, scalar_params: Sequence[Var]) -> tuple[list[Instruction], list[Tag]]:
    """Return the instructions of `block`, ending in a halt, and a tag for each.

    Args:
        block: The kernel's tree, flags included.
        scalar_params: The kernel's scalar parameters in order.

    Raises:
        IRTypeError: For a scalar that is not an integer of the machine.
        IRValueError: For a scalar operation without an instruction, or too many live scalars.
    """
    *generous, last = THRIFT
    for thrift in generous:
        try:
            return _Emitter(scalar_params, thrift).program(block)
        except RegistersExhausted:
            continue
    return _Emitter(scalar_params, last).program(block)


class _Emitter:
    def __init__(self, scalar_params: Sequence[Var], thrift: Thrift) -> None:
        self._thrift = thrift
        self._names: dict[Var, str] = {}
        self._builder = ProgramBuilder[Tag]()
        self._registers = Registers(thrift.constants)
        params = {self._name(var): number for number, var in enumerate(scalar_params)}
        self._params = list(scalar_params)
        self._math = Arithmetic(self._builder, self._registers, params)
        self._homes = self._math.homes
        self._labels = 0

    def program(self, block: Block) -> tuple[list[Instruction], list[Tag]]:
        """Return the instructions of a kernel and their tags."""
        if self._thrift.params:
            self._read_params(block)
        self._block(block)
        self._builder.emit("halt", Tag(Span.unknown()))
        return self._builder.build()

    def _read_params(self, block: Block) -> None:
        """Read the scalar parameters that the kernel uses into registers, for good."""
        wanted: dict[Var, None] = {}
        for item in block.items:
            wanted |= used(item)
        for number, var in enumerate(self._params):
            if var in wanted:
                register = self._registers.take(var.span)
                tag = Tag(var.span, var.name_hint)
                self._builder.emit("ldparam", tag, xd=register, index=number)
                self._homes[self._name(var)] = register

    def _name(self, var: Var) -> str:
        """Return a name for a variable that no other one has."""
        return self._names.setdefault(var, f"{var.name_hint}#{len(self._names)}")

    def _scalar(self, expr: Expr, span: Span) -> Scalar:
        return lower_scalar(expr, span, lambda var: Variable(self._name(var)), _PLACE)

    # ----------------------------------------------------------------- items

    def _block(
        self, block: Block, tail: Sequence[Expr] = (), finish: Callable[[], None] | None = None
    ) -> None:
        """Emit the items in order; a scalar's register is free after its last use here.

        `finish` emits what reads the expressions `tail` at the block's end.
        """
        last: dict[Var, int] = {}
        for index, item in enumerate(block.items):
            last |= dict.fromkeys(used(item), index)
        last |= dict.fromkeys(variables(tail), len(block.items))
        own: dict[Var, None] = {}  # in order, so that the same program gets the same registers
        for index, item in enumerate(block.items):
            for var in self._item(item):
                own[var] = None
                last.setdefault(var, index)
            for var in [v for v in own if last[v] <= index]:
                del own[var]
                self._end(var)
        if finish is not None:
            finish()
        for var in own:
            self._end(var)

    def _end(self, var: Var) -> None:
        self._registers.give(self._homes.pop(self._name(var)))

    def _item(self, item: Item) -> tuple[Var, ...]:
        """Emit one item and return the scalars that it defines for what follows."""
        match item:
            case Step():
                self._step(item)
                return ()
            case Let():
                value = self._scalar(item.value, item.span)
                register = self._math.fresh(value, Tag(item.span, item.var.name_hint))
                self._homes[self._name(item.var)] = register
                return (item.var,)
            case Loop():
                return self._loop(item)
            case While():
                return self._while(item)
            case Branch():
                return self._branch(item)

    def _step(self, step: Step) -> None:
        scalars, tag = Tag(step.span, step.note), Tag(step.span, step.note, step.tiles)
        held: list[int] = []
        fields = dict[str, int]()
        for each in row_of(step.mnemonic).fields:
            value = step.fields[each.name]
            if each.kind is FieldKind.REG:
                assert isinstance(value, Expr)
                fields[each.name] = self._math.value(self._scalar(value, step.span), scalars, held)
            else:
                assert not isinstance(value, Expr)
                fields[each.name] = value
        try:
            self._builder.emit(step.mnemonic, tag, label=None, **fields)
        except IRValueError as error:
            error.span = error.span or step.span
            raise
        self._math.release(held)

    # ----------------------------------------------------------------- control flow

    def _label(self, what: str) -> Label:
        self._labels += 1
        return Label(f"{what}{self._labels}")

    def _keep_constants(self, loop: AnyLoop, tag: Tag) -> None:
        """Put the constants that the loop's instructions need into registers before it."""
        for step in loop.body.steps():
            for value in step.fields.values():
                if isinstance(value, ConstInt):
                    self._math.keep(value.value, tag)

    def _loop(self, loop: Loop) -> tuple[Var, ...]:
        tag = Tag(loop.span, loop.var.name_hint)
        if loop.trips != 0:
            self._keep_constants(loop, tag)
        self._take_in(loop)
        held: list[int] = []
        stop = self._math.value(self._scalar(loop.stop, loop.span), tag, held)
        step = self._math.value(Const(loop.step), tag, held) if _is_wide(loop.step) else None
        counter = self._math.fresh(self._scalar(loop.start, loop.span), tag)
        self._homes[self._name(loop.var)] = counter
        ahead, limit = (counter, stop) if loop.step > 0 else (stop, counter)
        top, end = self._label("loop"), self._label("end")
        if not loop.trips:
            self._builder.emit("blt", tag, label=top, xa=ahead, xb=limit)
            self._builder.emit("jump", tag, label=end)
        self._builder.place(top)
        self._registers.enter()
        self._trip(loop)
        if step is None:
            self._builder.emit("addi", tag, xd=counter, xa=counter, imm=loop.step)
        else:
            self._builder.emit("add", tag, xd=counter, xa=counter, xb=step)
        self._builder.emit("blt", tag, label=top, xa=ahead, xb=limit)
        self._registers.leave()
        self._builder.place(end)
        self._end(loop.var)
        self._math.release(held)
        return self._leave(loop)

    def _while(self, loop: While) -> tuple[Var, ...]:
        tag = Tag(loop.span)
        self._keep_constants(loop, tag)
        self._take_in(loop)
        top, end = self._label("while"), self._label("end")
        self._builder.place(top)
        self._registers.enter()
        held: list[int] = []
        condition = self._math.value(self._scalar(loop.condition, loop.span), tag, held)
        self._builder.emit("beqz", tag, label=end, xa=condition)
        self._math.release(held)
        self._trip(loop)
        self._builder.emit("jump", tag, label=top)
        self._registers.leave()
        self._builder.place(end)
        return self._leave(loop)

    def _take_in(self, loop: AnyLoop) -> None:
        """Give the arguments of a loop registers with their first values."""
        for arg, first, _, _ in loop.carried:
            value = self._scalar(first, loop.span)
            register = self._math.fresh(value, Tag(loop.span, arg.name_hint))
            self._homes[self._name(arg)] = register

    def _trip(self, loop: AnyLoop) -> None:
        """Emit a loop's body, and what hands its values on."""
        self._block(
            loop.body, [value for _, _, value, _ in loop.carried], lambda: self._hand_on(loop)
        )

    def _leave(self, loop: AnyLoop) -> tuple[Var, ...]:
        """Name the arguments of a loop as they are called behind it."""
        for arg, _, _, result in loop.carried:
            self._homes[self._name(result)] = self._homes.pop(self._name(arg))
        return tuple(result for *_, result in loop.carried)

    def _hand_on(self, loop: AnyLoop) -> None:
        """Move what a trip yields into the arguments; all are computed before the first moves."""
        tag = Tag(loop.span)
        moved = [
            (arg, self._math.fresh(self._scalar(value, loop.span), tag))
            for arg, _, value, _ in loop.carried
            if value is not arg
        ]
        for arg, register in moved:
            self._builder.emit("addi", tag, xd=self._homes[self._name(arg)], xa=register, imm=0)
            self._registers.give(register)

    def _branch(self, branch: Branch) -> tuple[Var, ...]:
        tag = Tag(branch.span)
        targets = {var: self._registers.take(branch.span) for var, _, _ in branch.results}
        held: list[int] = []
        condition = self._math.value(self._scalar(branch.condition, branch.span), tag, held)
        otherwise, end = self._label("else"), self._label("end")
        self._builder.emit("beqz", tag, label=otherwise, xa=condition)
        self._math.release(held)
        self._arm(branch.then_body, [(targets[v], a) for v, a, _ in branch.results], branch.span)
        if branch.else_body.items or branch.results:
            self._builder.emit("jump", tag, label=end)
        self._builder.place(otherwise)
        self._arm(branch.else_body, [(targets[v], b) for v, _, b in branch.results], branch.span)
        self._builder.place(end)
        self._homes.update({self._name(var): register for var, register in targets.items()})
        return tuple(targets)

    def _arm(self, body: Block, results: list[tuple[int, Expr]], span: Span) -> None:
        def finish() -> None:
            for target, value in results:
                self._math.into(target, self._scalar(value, span), Tag(span))

        self._registers.enter()
        self._block(body, [value for _, value in results], finish)
        self._registers.leave()


def _is_wide(number: int) -> bool:
    """Whether a number is too large for an instruction to hold."""
    row = row_of("addi")
    return row.fields[row.column("imm")].complaint(number) is not None
