"""The variables that a function's text can see, and where they end."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..expr import Var
from ..types import TensorType, TupleType, one_place

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from ..errors import Span
    from ..expr import Type


class Scope:
    """Variables by name.

    As in Python, a name that is assigned in a loop or a branch lives on after it; the variable of a
    loop and its carried values do not.

    Attributes:
        variables: What can be seen here.
        loop_names: Names that belong to a loop and may not be assigned.
        hidden: Name -> why it cannot be seen any more.
        outer: Inside a region, the names around it that are no tensors: they cannot be assigned.
        blocks: The blocks that are being read, outermost first.
        twins: What other branches of the same `if` define; a definition of the same type, or one that
            differs in that it is not placed yet, joins it.
    """

    def __init__(self) -> None:
        self.variables: dict[str, Var] = {}
        self.loop_names: set[str] = set()
        self.hidden: dict[str, str] = {}
        self.outer: frozenset[str] = frozenset()
        self.blocks: list[object] = []
        self._homes: dict[Var, object] = {}
        self.twins: dict[str, Var] = {}

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    def define(self, name: str, type_: Type, span: Span) -> Var:
        """Return a new variable under `name`, or the one of the other branch if it is the same."""
        twin = self.twins.get(name)
        same = twin is not None and (twin.type == type_ or one_place(twin.type, type_))
        var = twin if twin is not None and same else Var(name, type_, span)
        if self.blocks:
            self._homes[var] = self.blocks[-1]
        self.bind(name, var)
        return var

    def is_from_here(self, var: Var) -> bool:
        """Return whether a variable was defined in the block at hand, not around or inside it."""
        return bool(self.blocks) and self._homes.get(var) is self.blocks[-1]

    def bind(self, name: str, var: Var) -> None:
        """Make `name` mean `var`."""
        self.variables[name] = var
        self.hidden.pop(name, None)

    @contextmanager
    def loop(self, names: Iterable[tuple[str, Var]], reason: str) -> Generator[None]:
        """Bind a loop's own names for the time of its body."""
        pairs = list(names)
        before = {name: self.variables.get(name) for name, _ in pairs}
        added = [name for name, _ in pairs if name not in self.loop_names]
        for name, var in pairs:
            self.bind(name, var)
        self.loop_names.update(added)
        yield
        self.loop_names.difference_update(added)
        for name, old in before.items():
            del self.variables[name]
            if old is None:
                self.hidden[name] = reason
            else:
                self.variables[name] = old

    @contextmanager
    def region(self, reason: str) -> Generator[None]:
        """Read a region: of what it defines only tensors are seen behind it."""
        before, outer = dict(self.variables), self.outer
        self.outer = frozenset(n for n, v in before.items() if not _is_tensor(v))
        yield
        self.outer = outer
        for name, var in list(self.variables.items()):
            if before.get(name) is var or _is_tensor(var):
                continue
            del self.variables[name]
            self.hidden[name] = reason
            if name in before:
                self.bind(name, before[name])

    @contextmanager
    def branches(self) -> Generator[Branches]:
        """Keep the branches of an `if` apart and join their names at the end."""
        branches = Branches(self)
        yield branches
        branches.join()


def _is_tensor(var: Var) -> bool:
    """Whether a variable stands for a tensor, or for the several tensors that a launch returns."""
    parts = var.type.types if isinstance(var.type, TupleType) else (var.type,)
    return all(isinstance(part, TensorType) for part in parts)


class Branches:
    """The arms of one `if`."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._before = dict(scope.variables)
        self._outer_twins = scope.twins
        self._ends: list[dict[str, Var]] = []

    @contextmanager
    def arm(self) -> Generator[None]:
        """Read one arm: it sees what was there before the `if`, not the other arms."""
        scope = self._scope
        scope.variables = dict(self._before)
        ends = {name: var for end in self._ends for name, var in end.items()}
        scope.twins = {**self._outer_twins, **ends}
        yield
        self._ends.append(
            {n: v for n, v in scope.variables.items() if self._before.get(n) is not v}
        )

    def join(self) -> None:
        """Make visible what the arms defined, unless two of them disagree on what it is."""
        joined: dict[str, Var] = {}
        for end in self._ends:
            for name, var in end.items():
                if joined.setdefault(name, var) is not var:
                    self._scope.hidden[name] = "the branches of an if give it different types"
        self._scope.twins = self._outer_twins
        self._scope.variables = dict(self._before)
        for name, var in joined.items():
            if name not in self._scope.hidden:
                self._scope.variables[name] = var
