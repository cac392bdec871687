"""Whether a host program can run: every name defined before its use, every launch well bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from ...ir.errors import IRValueError
from ..scalars.exprs import Binary, Const, Scalar, Variable
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
    from collections.abc import Sequence

    from ..kernel import Kernel

MAX_DEPTH = 64
"""How deeply loops, branches and expressions may nest."""


def check_host(host: HostProgram, kernels: Sequence[Kernel]) -> None:
    """Check one entry against the executable's kernels.

    Args:
        host: The entry.
        kernels: The executable's kernels.

    Raises:
        IRValueError: If a name is used where nothing is sure to have defined it, a launch does
            not fit its kernel, an alias changes the number of bytes, or nesting is too deep.
    """
    tensors = {param.name: as_buffer(param) for param in host.params if param.is_tensor}
    scalars = frozenset(param.name for param in host.params if not param.is_tensor)
    checker = _Checker(host, kernels)
    scope = checker.body(host.body, _Scope(tensors, scalars), depth=0)
    for output in host.outputs:
        checker.tensor(output.buffer, scope)


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is sure to be defined at a place in the program."""

    tensors: dict[str, Buffer]
    scalars: frozenset[str]

    def common(self, other: _Scope) -> _Scope:
        tensors = {
            name: buffer
            for name, buffer in self.tensors.items()
            if other.tensors.get(name) == buffer
        }
        return _Scope(tensors, self.scalars & other.scalars)


@dataclass(frozen=True, slots=True)
class _Checker:
    host: HostProgram
    kernels: Sequence[Kernel]

    def body(self, statements: Sequence[Statement], scope: _Scope, *, depth: int) -> _Scope:
        if depth > MAX_DEPTH:
            self._refuse(f"nest at most {MAX_DEPTH} deep, not more")
        for statement in statements:
            scope = self._statement(statement, scope, depth)
        return scope

    def tensor(self, name: str, scope: _Scope) -> Buffer:
        if name not in scope.tensors:
            self._refuse(f"use tensors that are defined ({_listed(scope.tensors)}), not {name!r}")
        return scope.tensors[name]

    def _statement(self, statement: Statement, scope: _Scope, depth: int) -> _Scope:
        match statement:
            case Assign(name, value):
                self._scalar(value, scope, depth)
                return replace(scope, scalars=scope.scalars | {name})
            case Require(condition):
                self._scalar(condition, scope, depth)
                return scope
            case Allocate(name):
                if any(param.name == name for param in self.host.params):
                    self._refuse(f"allocate tensors under names of their own, not {name!r}")
                return replace(scope, tensors={**scope.tensors, name: as_buffer(statement)})
            case Alias():
                return self._alias(statement, scope)
            case Launch(name=name):
                self._launch(statement, scope, depth)
                return replace(scope, scalars=scope.scalars | {name}) if name else scope
            case Join(name, deps):
                for value in deps:
                    self._scalar(value, scope, depth)
                return replace(scope, scalars=scope.scalars | {name})
            case While(condition, body):
                self._scalar(condition, scope, depth)
                after = self.body(body, scope, depth=depth + 1)
                return scope.common(after)
            case For(variable, start, stop, step, body):
                for value in (start, stop, step):
                    self._scalar(value, scope, depth)
                inside = replace(scope, scalars=scope.scalars | {variable})
                after = self.body(body, inside, depth=depth + 1)
                return scope.common(after)
            case If(condition, then, otherwise):
                self._scalar(condition, scope, depth)
                first = self.body(then, scope, depth=depth + 1)
                return first.common(self.body(otherwise, scope, depth=depth + 1))

    def _scalar(self, expression: Scalar, scope: _Scope, depth: int) -> None:
        if depth > MAX_DEPTH:
            self._refuse(f"nest at most {MAX_DEPTH} deep, not more")
        match expression:
            case Const():
                pass
            case Variable(name):
                if name not in scope.scalars:
                    known = _listed(scope.scalars)
                    self._refuse(f"use scalars that are defined ({known}), not {name!r}")
            case Binary(_, left, right):
                self._scalar(left, scope, depth + 1)
                self._scalar(right, scope, depth + 1)

    def _alias(self, alias: Alias, scope: _Scope) -> _Scope:
        source = self.tensor(alias.source, scope)
        if any(param.name == alias.name for param in self.host.params):
            self._refuse(f"alias tensors under names of their own, not {alias.name!r}")
        buffer = as_buffer(alias)
        if buffer.size_bytes != source.size_bytes:
            self._refuse(
                f"give alias {alias.name!r} the {source.size_bytes} bytes of {source.name!r}, "
                f"not {buffer.size_bytes}"
            )
        return replace(scope, tensors={**scope.tensors, alias.name: buffer})

    def _launch(self, launch: Launch, scope: _Scope, depth: int) -> None:
        if not 0 <= launch.kernel < len(self.kernels):
            self._refuse(f"launch one of the {len(self.kernels)} kernels, not {launch.kernel}")
        kernel = self.kernels[launch.kernel]
        if len(launch.buffers) != len(kernel.tensors):
            self._refuse(
                f"bind the {len(kernel.tensors)} tensors of {kernel.name!r}, "
                f"not {len(launch.buffers)}"
            )
        if len(launch.scalars) != len(kernel.scalars):
            self._refuse(
                f"give the {len(kernel.scalars)} scalars of {kernel.name!r}, "
                f"not {len(launch.scalars)}"
            )
        for name, param in zip(launch.buffers, kernel.tensors, strict=True):
            size = self.tensor(name, scope).size_bytes
            if size != param.size_bytes:
                self._refuse(
                    f"bind {param.size_bytes} bytes to {param.name!r} of {kernel.name!r}, "
                    f"not the {size} of {name!r}"
                )
        for value in (*launch.scalars, launch.blocks, *launch.deps):
            self._scalar(value, scope, depth)

    def _refuse(self, clause: str) -> NoReturn:
        message = f"Entry {self.host.name!r} must {clause}."
        raise IRValueError(message)


def _listed(names: dict[str, Buffer] | frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "none"
