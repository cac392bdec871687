"""Executables that serve several machines: what a compilation did not look at does not matter to it.

A compilation reads some fields of the machine, such as the sizes of buffers, and not others, such as the
bandwidth of a port. Where two machines agree in all that it read, it would make the same instructions for
both. Which fields it reads is watched, not listed, so that nobody has to keep a list.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from ...ir.target import Target, specs
from ..api import compile as compile_program

if TYPE_CHECKING:
    from ...codegen.executable import Executable
    from ...ir.core import Program
    from ...ir.target_spec import Value


class _Watched(Target):
    """A machine that remembers which of its fields were read.

    It is equal to no other one, so that no cache that an earlier compilation filled hides what this one
    would read.
    """

    def __init__(self, target: Target) -> None:
        for each in fields(Target):
            object.__setattr__(self, each.name, getattr(target, each.name))
        object.__setattr__(self, "_watches", _Watch(target))

    def __getattribute__(self, name: str) -> Any:
        if name in specs():
            object.__getattribute__(self, "_watches").seen.add(name)
        return object.__getattribute__(self, name)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def digest(self) -> str:
        """That of the machine that is watched: who asks for it looks at no field."""
        watch: _Watch = object.__getattribute__(self, "_watches")
        return watch.target.digest


class _Watch:
    def __init__(self, target: Target) -> None:
        self.target = target
        self.seen: set[str] = set()


class Compilations:
    """The executables of one program, by what its compilations read of machines.

    Args:
        program: What is compiled, without dynamic dimensions.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._made: list[tuple[dict[str, Value], Executable]] = []

    def of(self, target: Target) -> Executable:
        """Return the executable for a machine; it is compiled unless one is there that is the same.

        Raises:
            UserError: As `scalebox.compile`.
        """
        for read, executable in self._made:
            if all(getattr(target, name) == value for name, value in read.items()):
                return replace(executable, machine=target.name, machine_digest=target.digest)
        watched = _Watched(target)
        executable = compile_program(self._program, machine=watched)
        watch: _Watch = object.__getattribute__(watched, "_watches")
        read = {name: getattr(target, name) for name in sorted(watch.seen)}
        self._made.append((read, executable))
        return executable
