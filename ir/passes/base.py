"""What a pass is: a function from program to program with a declared contract.

A pass says which properties it requires, produces and invalidates; inside a :class:`PassContext` the
verifier holds it to that. A program that a pass does not change comes back as the same object.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from ..errors import IRValueError
from ..properties import IRProperty, IRPropertySet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from ..core import Function, Program
    from ..target import Target


class Pass(ABC):
    """A transformation of programs; calling it runs it, checked if a context asks for that.

    Subclasses are frozen dataclasses whose fields are their options.
    """

    name: ClassVar[str]
    required: ClassVar[frozenset[IRProperty]] = frozenset()
    produced: ClassVar[frozenset[IRProperty]] = frozenset()
    invalidated: ClassVar[frozenset[IRProperty]] = frozenset()

    @abstractmethod
    def transform(self, program: Program) -> Program:
        """Return the transformed program; the same object when nothing changes."""

    def __call__(self, program: Program) -> Program:
        """Run the pass under the current context's instruments, if there is a context."""
        context = PassContext.current()
        instruments = [] if context is None else context.instruments
        for instrument in instruments:
            instrument.before_pass(self, program)
        try:
            done = self.transform(program)
        except RecursionError as error:
            message = f"The expressions and loops of {program.name!r} must not nest so deep"
            hint = "give parts of a long expression names of their own"
            raise IRValueError(message, program.span, hint=hint) from error
        for instrument in reversed(instruments):  # the last one stands closest to the pass
            instrument.after_pass(self, done)
        return done

    def get_name(self) -> str:
        """The name in CamelCase."""
        return self.name

    def get_required_properties(self) -> IRPropertySet:
        """What must hold before."""
        return IRPropertySet(self.required)

    def get_produced_properties(self) -> IRPropertySet:
        """What holds afterwards, whether or not it held before."""
        return IRPropertySet(self.produced)

    def get_invalidated_properties(self) -> IRPropertySet:
        """What may no longer hold afterwards."""
        return IRPropertySet(self.invalidated)


class FunctionPass(Pass):
    """A pass that looks at one function at a time."""

    @abstractmethod
    def transform_function(self, function: Function) -> Function:
        """Return the transformed function; the same object when nothing changes."""

    def transform(self, program: Program) -> Program:
        """Transform every function."""
        return over_functions(program, self.transform_function)


def over_functions(program: Program, change: Callable[[Function], Function]) -> Program:
    """Return `program` with every function changed; the same object when none changes."""
    from ..core import Program

    before = list(program.functions.values())
    after = [change(function) for function in before]
    if all(a is b for a, b in zip(after, before, strict=True)):
        return program
    return Program(after, program.name, program.span)


@dataclass(frozen=True)
class PassProperties:
    """The contract of a pass made by :func:`create_function_pass` or :func:`create_program_pass`."""

    required: Iterable[IRProperty] = ()
    produced: Iterable[IRProperty] = ()
    invalidated: Iterable[IRProperty] = ()


def create_program_pass(
    run: Callable[[Program], Program], name: str, properties: PassProperties | None = None
) -> Pass:
    """Return a pass called `name` that runs `run` on the program."""
    contract = properties or PassProperties()

    def transform(_self: Pass, program: Program) -> Program:
        return run(program)

    body = {
        "name": name,
        "required": frozenset(contract.required),
        "produced": frozenset(contract.produced),
        "invalidated": frozenset(contract.invalidated),
        "transform": transform,
        "__doc__": run.__doc__,
    }
    return type(name, (Pass,), body)()


def create_function_pass(
    run: Callable[[Function], Function], name: str, properties: PassProperties | None = None
) -> Pass:
    """Return a pass called `name` that runs `run` on every function."""

    def transform(program: Program) -> Program:
        return over_functions(program, run)

    transform.__doc__ = run.__doc__
    return create_program_pass(transform, name, properties)


class VerificationMode(Enum):
    """When a :class:`VerificationInstrument` looks."""

    BEFORE = "before"
    AFTER = "after"
    BEFORE_AND_AFTER = "before and after"


class Instrument:
    """Something that looks on while passes run."""

    def before_pass(self, each: Pass, program: Program) -> None:
        """Look at the program that `each` is about to get."""

    def after_pass(self, each: Pass, program: Program) -> None:
        """Look at the program that `each` has returned."""


class CallbackInstrument(Instrument):
    """Calls functions before and after every pass.

    Args:
        before_pass: Gets the pass and the program that it is about to get.
        after_pass: Gets the pass and the program that it has returned.
        name: What it is called.
    """

    def __init__(
        self,
        before_pass: Callable[[Pass, Program], None] | None = None,
        after_pass: Callable[[Pass, Program], None] | None = None,
        name: str = "Callback",
    ) -> None:
        self._before = before_pass
        self._after = after_pass
        self.name = name

    def before_pass(self, each: Pass, program: Program) -> None:
        """Call the function for before, if there is one."""
        if self._before is not None:
            self._before(each, program)

    def after_pass(self, each: Pass, program: Program) -> None:
        """Call the function for after, if there is one."""
        if self._after is not None:
            self._after(each, program)


@dataclass
class VerificationInstrument(Instrument):
    """Verifies what a pass requires before it, and what it produces after it."""

    mode: VerificationMode = VerificationMode.BEFORE_AND_AFTER

    def before_pass(self, each: Pass, program: Program) -> None:
        """Verify the structural properties and those that `each` requires."""
        if self.mode is not VerificationMode.AFTER:
            self._verify(
                program, each.required, f"Pre-verification failed before pass '{each.name}'"
            )

    def after_pass(self, each: Pass, program: Program) -> None:
        """Verify the structural properties and those that `each` produces."""
        if self.mode is not VerificationMode.BEFORE:
            title = f"Post-verification failed after pass '{each.name}'"
            self._verify(program, each.produced, title)

    def _verify(self, program: Program, properties: Iterable[IRProperty], title: str) -> None:
        from ..properties import STRUCTURAL
        from ..verifier import verify_or_throw

        verify_or_throw(program, frozenset(properties) | STRUCTURAL, title=title)


class _Stack(threading.local):
    def __init__(self) -> None:
        self.contexts: list[PassContext] = []


_stack = _Stack()


@dataclass
class PassContext:
    """What passes run under: instruments and the machine that the program is for.

    Use as `with PassContext([VerificationInstrument()]): …`; contexts nest, the inner one counts,
    and each thread has its own. Without a machine the default one is read from its file.
    """

    instruments: list[Instrument] = field(default_factory=list[Instrument])
    target: Target | None = None

    @staticmethod
    def current() -> PassContext | None:
        """Return the innermost context of this thread."""
        return _stack.contexts[-1] if _stack.contexts else None

    def __enter__(self) -> PassContext:
        _stack.contexts.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _stack.contexts.pop()


def current_target() -> Target:
    """Return the machine of the current context, or the default one."""
    from ..target import load_target

    context = PassContext.current()
    if context is not None and context.target is not None:
        return context.target
    return load_target("a5")
