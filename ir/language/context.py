"""What the parts of the parser share while they read one function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from ..errors import Span, UserError

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping

    from ..core import Function, FunctionType, Level, ParamDirection, Role
    from ..expr import Type, Var
    from .capture import Capture
    from .source import Source
    from .variables import Scope

E = TypeVar("E", bound=UserError)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 value`, `2 values`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@dataclass(frozen=True)
class Options:
    """What stood between the brackets of `@pl.function(...)`; `jit` for a function of `@pl.jit`."""

    type: FunctionType
    level: Level | None = None
    role: Role | None = None
    attrs: Mapping[str, object] = field(default_factory=dict[str, object])
    strict_ssa: bool = False
    jit: bool = False


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function."""

    var: Var
    direction: ParamDirection

    @property
    def name(self) -> str:
        """Its name in the text."""
        return self.var.name_hint

    @property
    def type(self) -> Type:
        """Its type."""
        return self.var.type


@dataclass(frozen=True)
class Signature:
    """What a caller knows of a function; `results` is None where the text does not say."""

    name: str
    params: tuple[Parameter, ...]
    results: tuple[Type, ...] | None
    span: Span


class Callees(Protocol):
    """The functions that a body can call."""

    def signature(self, name: str) -> Signature | None:
        """Return the signature of a function of the program, or None."""
        ...

    def names(self) -> list[str]:
        """Return the names of the program's functions."""
        ...

    def results(self, name: str) -> tuple[Type, ...] | None:
        """Return the result types of a function, or None while its own body is being read."""
        ...

    def returned_at(self, name: str) -> Span | None:
        """Return where a function of this file that has been read returns; None for others."""
        ...

    def adopt(self, function: Function) -> bool:
        """Take a function from outside into the program; return whether its name was free."""
        ...


@dataclass(frozen=True)
class Context:
    """One function being read.

    Attributes:
        source: Its file.
        scope: Its variables.
        capture: The Python values around it.
        callees: The functions that it can call.
        function: Its name.
        strict_ssa: Whether a name may be assigned only once.
        kind: On which plane it runs.
        jit: Whether it is a function of `@pl.jit`, where `M, N = x.shape` is understood.
        tagged: The tensors that `pl.dump_tag` has named so far.
    """

    source: Source
    scope: Scope
    capture: Capture
    callees: Callees
    function: str
    strict_ssa: bool
    kind: FunctionType
    jit: bool = False
    tagged: set[Var] = field(default_factory=set["Var"])

    def span(self, node: ast.AST) -> Span:
        """Return where `node` stands."""
        return self.source.span(node)

    def error(
        self,
        kind: type[E],
        message: str,
        where: ast.AST | Span | None,
        *,
        hint: str | None = None,
        note: str | None = None,
    ) -> E:
        """Return an error that shows the line of `where`."""
        return self.source.error(kind, message, where, hint=hint, note=note)
