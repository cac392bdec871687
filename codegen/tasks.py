"""From a host program and its scalar arguments to the tasks that a device runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..ir.errors import InputError
from ..ir.suggest import near
from .host import (
    Alias,
    Allocate,
    Assign,
    Binary,
    BinaryOp,
    Buffer,
    Const,
    For,
    HostProgram,
    If,
    Launch,
    Require,
    Scalar,
    Statement,
    Variable,
    as_buffer,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .kernel import Kernel

MAX_TASKS = 1 << 20
MAX_STEPS = 1 << 22
"""Host statements and loop rounds of one launch; a launch beyond this is a mistake."""

_WRAP = 1 << 64
_SIGN = 1 << 63


@dataclass(frozen=True, slots=True)
class Task:
    """One run of a kernel.

    Args:
        kernel: Index among the executable's kernels.
        buffers: Name of a buffer per tensor parameter, in order.
        scalars: A signed 64-bit integer per scalar parameter, in order.
        depends: Ascending indices of the earlier tasks that must be done first.
    """

    kernel: int
    buffers: tuple[str, ...]
    scalars: tuple[int, ...]
    depends: tuple[int, ...]


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
                case For():
                    self._loop(statement)
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
        if self.steps > MAX_STEPS:
            message = f"A launch of {self.host.name!r} must take at most {MAX_STEPS} host steps."
            raise InputError(message)

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

    def _launch(self, launch: Launch) -> None:
        if len(self.tasks) >= MAX_TASKS:
            message = f"A launch of {self.host.name!r} must have at most {MAX_TASKS} tasks."
            raise InputError(message)
        index = len(self.tasks)
        buffers = tuple(self.names[name] for name in launch.buffers)
        depends: set[int] = set()
        tensors = self.kernels[launch.kernel].tensors
        for name, param in zip(buffers, tensors, strict=True):
            if name in self._writer:
                depends.add(self._writer[name])
            if param.direction.writes:
                depends.update(self._readers.get(name, ()))
        for name, param in zip(buffers, tensors, strict=True):
            if param.direction.writes:
                self._writer[name] = index
                self._readers[name] = []
        for name, param in zip(buffers, tensors, strict=True):
            if not param.direction.writes:
                self._readers.setdefault(name, []).append(index)
        scalars = tuple(self.value(each) for each in launch.scalars)
        self.tasks.append(Task(launch.kernel, buffers, scalars, tuple(sorted(depends))))


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
