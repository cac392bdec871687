"""What the variables of an orchestration are called in its host program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.dtypes import TaskId
from ...ir.errors import IRValueError
from ...ir.expr import Call, Op, ScalarType, Var
from ...ir.types import TensorType
from ..scalars.exprs import Variable
from ..scalars.lower import lower_scalar
from .program import NO_LAUNCH

if TYPE_CHECKING:
    from ...ir.errors import Span
    from ...ir.expr import Expr
    from ..scalars.exprs import Scalar


class Names:
    """The tensors and scalars of a host program while it is made.

    Attributes:
        roots: The buffer whose bytes each tensor's name stands for.
    """

    def __init__(self) -> None:
        self.roots: dict[str, str] = {}
        self._tensors: dict[Var, str] = {}
        self._scalars: dict[Var, str] = {}
        self._tuples: dict[Var, tuple[str, ...]] = {}
        self._taken: set[str] = set()

    def fresh(self, base: str) -> str:
        """Return a name like `base` that nothing else has."""
        base = base.replace("#", "_") or "x"
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def declare(self, var: Var, source: str | None = None) -> str:
        """Return a name of its own for a tensor, which looks at the bytes of `source`, if given."""
        name = self.fresh(var.name_hint)
        self._tensors[var] = name
        self.roots[name] = name if source is None else self.roots[source]
        return name

    def scratch(self, base: str) -> str:
        """Return a name for a tensor that no variable stands for."""
        name = self.fresh(base)
        self.roots[name] = name
        return name

    def scalar_name(self, var: Var) -> str:
        """Return a name of its own for a scalar."""
        name = self._scalars[var] = self.fresh(var.name_hint)
        return name

    def bind(self, var: Var, *names: str) -> None:
        """Let `var` stand for what is known already: a tensor, a scalar, or several of them."""
        if isinstance(var.type, TensorType):
            (self._tensors[var],) = names
        elif isinstance(var.type, ScalarType):
            (self._scalars[var],) = names
        else:
            self._tuples[var] = names

    def parts(self, value: Expr) -> tuple[str, ...] | None:
        """Return what a variable of several results stands for; None for anything else."""
        return self._tuples.get(value) if isinstance(value, Var) else None

    def tensor(self, value: Expr, span: Span) -> str:
        """Return the name of a tensor.

        Raises:
            IRValueError: If the value is no variable that has one.
        """
        if not isinstance(value, Var) or value not in self._tensors:
            message = "A tensor argument must be a variable of the orchestration"
            raise IRValueError(message, span)
        return self._tensors[value]

    def has_tensor(self, value: Expr) -> bool:
        """Whether the value is a variable that stands for a tensor."""
        return isinstance(value, Var) and value in self._tensors

    def scalar(self, value: Expr, span: Span) -> Scalar:
        """Return a scalar in host arithmetic; the name of a launch is the launch's number.

        Raises:
            IRTypeError: For a scalar that is no integer.
            IRValueError: For an operator that the host lacks.
        """
        if is_task(value):
            match value:
                case Var() if value in self._scalars:
                    return Variable(self._scalars[value])
                case Call(op=Op(name="system.task_invalid")):
                    return NO_LAUNCH
                case _:
                    message = "A TASK_ID that is compiled must come from a submit or a barrier"
                    raise IRValueError(message, span)
        return lower_scalar(value, span, self._variable)

    def _variable(self, var: Var) -> Scalar:
        if var not in self._scalars:
            message = f"{var.name_hint!r} must have a value before it is used"
            raise IRValueError(message, var.span)
        return Variable(self._scalars[var])


def is_task(value: Expr) -> bool:
    """Whether a value is the name of a launch."""
    return isinstance(value.type, ScalarType) and value.type.dtype is TaskId
