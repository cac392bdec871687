"""From a host program and its scalar arguments to the tasks that a device runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...ir import limits
from ...ir.errors import InputError
from ...ir.suggest import near
from ..scalars.exprs import Binary, BinaryOp, Const, Scalar, Variable
from .program import (
    Alias,
    Allocate,
    Assign,
    Buffer,
    For,
    HostProgram,
    If,
    Join,
    Launch,
    Require,
    Statement,
    While,
    as_buffer,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..kernel import Kernel
    from ..tensors import Param

MAX_DEPENDENCES = 1 << 22
"""Tasks that those of one launch may have to wait for, each counted as often as it is waited for by a
launch of its own."""

_WRAP = 1 << 64
_SIGN = 1 << 63


@dataclass(frozen=True, slots=True)
class Task:
    """One run of a kernel, for one block of its grid.

    Args:
        kernel: Index among the executable's kernels.
        buffers: Name of a buffer per tensor parameter, in order.
        scalars: A signed 64-bit integer per scalar parameter, in order.
        depends: Ascending indices of the earlier tasks that must be done first.
        block: Number of the block.
        blocks: Blocks of the grid.
        sync_start: Whether all blocks of the grid must begin together.
    """

    kernel: int
    buffers: tuple[str, ...]
    scalars: tuple[int, ...]
    depends: tuple[int, ...]
    block: int = 0
    blocks: int = 1
    sync_start: bool = False


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """A launch, expanded.

    Args:
        tasks: In program order, which respects every dependence.
        buffers: Every tensor in device memory, the entry's parameters first.
        outputs: Output name to buffer name.
    """

    tasks: tuple[Task, ...]
    buffers: tuple[Buffer, ...]
    outputs: dict[str, str]


def expand(
    host: HostProgram, kernels: Sequence[Kernel], scalars: Mapping[str, int] | None = None
) -> TaskGraph:
    """Return the tasks of one launch.

    Args:
        host: A checked entry of the executable.
        kernels: The executable's kernels.
        scalars: A signed 64-bit integer per scalar parameter of the entry, by name.

    Raises:
        InputError: If a scalar is missing, unknown or too large, a requirement does not hold, a
            loop has step zero, something is divided by zero, or there are too many tasks.
    """
    state = _Expansion(host, kernels, _check_scalars(host, scalars or {}))
    state.run(host.body)
    outputs = {output.name: state.names[output.buffer] for output in host.outputs}
    return TaskGraph(tuple(state.tasks), tuple(state.buffers), outputs)


def _check_scalars(host: HostProgram, scalars: Mapping[str, int]) -> dict[str, int]:
    wanted = [param.name for param in host.params if not param.is_tensor]
    for name, value in scalars.items():
        if name not in wanted:
            message = f"A scalar of {host.name!r} must be one of its parameters, not {name!r}."
            raise InputError(message, hint=near(name, wanted) if wanted else None)
        if not -_SIGN <= value < _SIGN:
            message = f"Scalar {name!r} must be a signed 64-bit integer, not {value}."
            raise InputError(message)
    for name in wanted:
        if name not in scalars:
            message = f"Scalar {name!r} of {host.name!r} must be given, not left out."
            raise InputError(message)
    return dict(scalars)


@dataclass(slots=True)
class _Expansion:
    host: HostProgram
    kernels: Sequence[Kernel]
    scalars: dict[str, int]
    tasks: list[Task] = field(default_factory=list[Task])
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    names: dict[str, str] = field(default_factory=dict[str, str])
    steps: int = 0
    _made: dict[str, int] = field(default_factory=dict[str, int])
    _dependences: int = 0
    _tasks_of: list[Sequence[int]] = field(default_factory=lambda: [()])
    """The tasks of each launch by its number; number 0 is no launch."""
    _writer: dict[str, int] = field(default_factory=dict[str, int])
    _readers: dict[str, list[int]] = field(default_factory=dict[str, "list[int]"])

    def __post_init__(self) -> None:
        for param in self.host.params:
            if param.is_tensor:
                self.buffers.append(as_buffer(param))
                self.names[param.name] = param.name

    def run(self, body: Sequence[Statement]) -> None:
        for statement in body:
            self._step()
            match statement:
                case Assign(name, value):
                    self.scalars[name] = self.value(value)
                case Require(condition, message):
                    if not self.value(condition):
                        raise InputError(message)
                case Allocate(name):
                    self._allocate(name, statement)
                case Alias(name, source):
                    self.names[name] = self.names[source]
                case Launch():
                    self._launch(statement)
                case Join():
                    self._join(statement)
                case For():
                    self._loop(statement)
                case While():
                    self._while(statement)
                case If(condition, then, otherwise):
                    self.run(then if self.value(condition) else otherwise)

    def value(self, expression: Scalar) -> int:
        match expression:
            case Const(value):
                return value
            case Variable(name):
                return self.scalars[name]
            case Binary(op, left, right):
                a, b = self.value(left), self.value(right)
                if op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD) and b == 0:
                    message = f"A divisor in {self.host.name!r} must not be zero."
                    raise InputError(message)
                return _wrapped(_compute(op, a, b))

    def _step(self) -> None:
        self.steps += 1
        if self.steps > limits.MAX_STEPS:
            raise InputError(limits.too_many_steps(self.host.name))

    def _allocate(self, name: str, tensor: Allocate) -> None:
        count = self._made.get(name, 0) + 1
        self._made[name] = count
        fresh = name if count == 1 else f"{name}#{count}"
        self.buffers.append(as_buffer(tensor, name=fresh))
        self.names[name] = fresh

    def _loop(self, loop: For) -> None:
        start, stop, step = (self.value(each) for each in (loop.start, loop.stop, loop.step))
        if step == 0:
            message = f"The step of loop {loop.variable!r} in {self.host.name!r} must not be zero."
            raise InputError(message)
        for value in range(start, stop, step):
            self._step()
            self.scalars[loop.variable] = value
            self.run(loop.body)

    def _while(self, loop: While) -> None:
        while self.value(loop.condition):
            self._step()
            self.run(loop.body)

    def _launch(self, launch: Launch) -> None:
        kernel = self.kernels[launch.kernel]
        blocks = self.value(launch.blocks)
        if blocks < 1:
            message = f"A launch of {kernel.name!r} must have at least 1 block, not {blocks}."
            raise InputError(message)
        first = len(self.tasks)
        if first + blocks > limits.MAX_TASKS:
            raise InputError(limits.too_many_tasks(self.host.name))
        buffers = tuple(self.names[name] for name in launch.buffers)
        scalars = tuple(self.value(each) for each in launch.scalars)
        earlier = {self._number(each) for each in launch.deps}
        number = len(self._tasks_of)
        earlier |= self._follow_data(number, buffers, kernel.tensors)
        depends = self._tasks(earlier)
        self.tasks += (
            Task(launch.kernel, buffers, scalars, depends, block, blocks, launch.sync_start)
            for block in range(blocks)
        )
        self._tasks_of.append(range(first, first + blocks))
        if launch.name:
            self.scalars[launch.name] = number

    def _join(self, join: Join) -> None:
        tasks = self._tasks({self._number(each) for each in join.deps})
        self.scalars[join.name] = len(self._tasks_of)
        self._tasks_of.append(tasks)

    def _number(self, expression: Scalar) -> int:
        """Return the number of an earlier launch, or that of none."""
        number = self.value(expression)
        if not 0 <= number < len(self._tasks_of):
            message = (
                f"A launch of {self.host.name!r} must depend on earlier ones, 0 to "
                f"{len(self._tasks_of) - 1}, not on {number}."
            )
            hint = "launches that wait for later ones, or for themselves, could wait in a circle"
            raise InputError(message, hint=hint)
        return number

    def _tasks(self, launches: set[int]) -> tuple[int, ...]:
        """Return the tasks of several launches, in order."""
        found = sorted({task for number in launches for task in self._tasks_of[number]})
        self._dependences += len(found)
        if self._dependences > MAX_DEPENDENCES:
            message = (
                f"The tasks of {self.host.name!r} must wait for each other at most "
                f"{MAX_DEPENDENCES} times."
            )
            raise InputError(message, hint="launch fewer blocks, or fewer kernels that share data")
        return tuple(found)

    def _follow_data(
        self, number: int, buffers: Sequence[str], params: Sequence[Param]
    ) -> set[int]:
        """Return the launches whose data launch `number` uses or overwrites, and note its own use."""
        earlier: set[int] = set()
        used = list(zip(buffers, params, strict=True))
        for name, param in used:
            if name in self._writer:
                earlier.add(self._writer[name])
            if param.direction.writes:
                earlier.update(self._readers.get(name, ()))
        for name, param in used:
            if param.direction.writes:
                self._writer[name] = number
                self._readers[name] = []
        for name, param in used:
            if not param.direction.writes:
                self._readers.setdefault(name, []).append(number)
        return earlier


def _wrapped(value: int) -> int:
    return (value + _SIGN) % _WRAP - _SIGN


def _compute(op: BinaryOp, a: int, b: int) -> int:
    match op:
        case BinaryOp.ADD:
            return a + b
        case BinaryOp.SUB:
            return a - b
        case BinaryOp.MUL:
            return a * b
        case BinaryOp.FLOORDIV:
            return a // b
        case BinaryOp.FLOORMOD:
            return a % b
        case BinaryOp.MIN:
            return min(a, b)
        case BinaryOp.MAX:
            return max(a, b)
        case BinaryOp.AND:
            return a & b
        case BinaryOp.OR:
            return a | b
        case BinaryOp.XOR:
            return a ^ b
        case BinaryOp.SHL:
            return a << (b & 63)
        case BinaryOp.SHR:
            return a >> (b & 63)
        case BinaryOp.EQ:
            return int(a == b)
        case BinaryOp.NE:
            return int(a != b)
        case BinaryOp.LT:
            return int(a < b)
        case BinaryOp.LE:
            return int(a <= b)
        case BinaryOp.GT:
            return int(a > b)
        case BinaryOp.GE:
            return int(a >= b)
