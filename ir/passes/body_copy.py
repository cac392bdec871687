"""A copy of statements in which the variables that they assign are new."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..expr import IterArg, Var
from ..visitor import IRMutator, collect_def_vars

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core import Stmt
    from ..expr import Expr


class BodyCopy(IRMutator):
    """Copies a body; it is made for one copy only.

    Args:
        body: What is copied.
        values: What stands for variables that are given from outside: parameters, or what a loop
            hands on.
        suffix: What the names of the new variables end with.
    """

    def __init__(self, body: Stmt, values: Mapping[Var, Expr], *, suffix: str = "") -> None:
        super().__init__()
        self._values = values
        self._suffix = suffix
        self._own = set(collect_def_vars(body))

    def visit_var(self, op: Var) -> Var:
        """Return what stands for a variable: a value, a new variable, or itself if it is not assigned."""
        if op in self._values:
            return cast("Var", self._values[op])
        if op not in self._own:
            return op
        if op not in self.variables:
            name = f"{op.name_hint}{self._suffix}"
            self.variables[op] = Var(name, self.visit_type(op.type), op.span)
        return self.variables[op]

    def visit_iter_arg(self, op: IterArg) -> Var:
        """Return the same for what a loop carries, whose name stays."""
        if op in self._values or op not in self._own:
            return self.visit_var(op)
        if op not in self.variables:
            init = self.visit_expr(op.init_value)
            self.variables[op] = IterArg(op.name_hint, self.visit_type(op.type), init, op.span)
        return self.variables[op]
