"""What a region of a function uses from around it, what it writes, and what it leaves behind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..binding import source_name
from ..core import (
    InCoreScopeStmt,
    ParamDirection,
    Program,
    Stmt,
    WhileStmt,
)
from ..errors import IRValueError
from ..expr import Call, GlobalVar, ScalarType, Submit, Var
from ..ops.row import describe_type
from ..ops.table import ROWS
from ..tensor_roots import TensorRoots
from ..types import TensorType
from ..verification.walk import calls, defined_vars, own_exprs, statements, type_uses, uses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..core import Function
    from ..expr import Expr


@dataclass(frozen=True)
class Region:
    """A region, ready to become a function.

    Attributes:
        body: Its statements.
        inputs: The variables that it uses from around it, in the order of their definitions.
        directions: Whether a tensor among them is read, written or both.
        returned: The tensors that it leaves behind and returns.
        aliases: Other names of its inputs that are used behind it, each with the input.
    """

    body: Stmt
    inputs: tuple[Var, ...]
    directions: Mapping[Var, ParamDirection]
    returned: tuple[Var, ...]
    aliases: tuple[tuple[Var, Var], ...]

    def with_inputs(self, more: Iterable[Var], defined: Mapping[Var, int]) -> Region:
        """Return the region with further inputs: those of `more` that are variables around it."""
        wanted = set(more) - set(self.inputs)
        added = sorted((var for var in wanted if var in defined), key=defined.__getitem__)
        return replace(self, inputs=(*self.inputs, *added))

    def parameters(self) -> Iterator[tuple[str, Var, ParamDirection]]:
        """Yield a name, unique and without marks of the compiler, and a direction for each input."""
        taken: set[str] = set()
        for var in self.inputs:
            base = source_name(var)
            name, count = base, 1
            while name in taken:
                name, count = f"{base}_{count}", count + 1
            taken.add(name)
            yield name, var, self.directions.get(var, ParamDirection.In)


def variable_counts(node: Function | Stmt | Expr) -> Counter[Var]:
    """Return how often each variable is used in a node, types included."""
    from ..core import Function

    if isinstance(node, Function):
        node = node.body
    if not isinstance(node, Stmt):
        return Counter(uses((node,)))
    counts: Counter[Var] = Counter()
    for stmt in statements(node):
        exprs = own_exprs(stmt)
        if isinstance(stmt, WhileStmt):
            exprs = (*exprs, stmt.condition)
        counts.update(uses(exprs))
        for call in calls(exprs):
            counts.update(type_uses(call.type))
        for var in defined_vars(stmt):
            counts.update(type_uses(var.type))
    return counts


def region_of(
    scope: InCoreScopeStmt,
    defined: Mapping[Var, int],
    counts: Counter[Var],
    program: Program,
    *,
    grid: bool,
) -> Region:
    """Return what a region is as a function.

    Args:
        scope: The region.
        defined: The variables of the function around it, with their order.
        counts: How often that function uses each of them.
        program: Where functions are looked up.
        grid: Whether it runs once a block, so that it cannot leave a tensor of its own behind.

    Raises:
        IRValueError: If it uses a tile from around it, or leaves anything but tensors behind.
    """
    own = {var for stmt in statements(scope.body) for var in defined_vars(stmt)}
    inside = variable_counts(scope.body)
    used = (var for var in inside if var in defined and var not in own)
    inputs = tuple(sorted(used, key=defined.__getitem__))
    for var in inputs:
        if not isinstance(var.type, ScalarType | TensorType):
            message = (
                f"A region must use tensors and scalars from around it, not {var.name_hint!r}, which "
                f"is {describe_type(var)}"
            )
            raise IRValueError(message, scope.span)
    left = [
        var
        for stmt in statements(scope.body)
        for var in defined_vars(stmt)
        if counts[var] > inside[var]
    ]
    access = _Access(inputs, program)
    access.follow(scope.body)
    for var in left:
        _check_left(var, access, grid=grid)
    rebound = {access.roots[var] for var in left if var in access.roots}
    aliases: tuple[tuple[Var, Var], ...] = ()
    returned = tuple(left)
    if not access.written <= rebound:
        # What is written without a new name keeps its name: then all do.
        aliases = tuple((var, access.roots[var]) for var in left if var in access.roots)
        returned = tuple(var for var in left if var not in access.roots)
    return Region(scope.body, inputs, access.directions(), returned, aliases)


def _check_left(var: Var, access: _Access, *, grid: bool) -> None:
    if not isinstance(var.type, TensorType):
        message = (
            f"{source_name(var)!r} must be used inside of its region only, since a region hands on "
            f"tensors, not {describe_type(var)}"
        )
        hint = "compute it before the region, or store it into a tensor"
        raise IRValueError(message, var.span, hint=hint)
    if grid and var not in access.roots:
        message = (
            f"The blocks of a grid must write into a tensor from around it, not each make "
            f"{var.name_hint!r}"
        )
        hint = "make the tensor before the grid: out = pl.create_tensor([...], dtype=pl.FP32)"
        raise IRValueError(message, var.span, hint=hint)


class _Access(TensorRoots):
    """Follows the tensors from around a region through it.

    Attributes:
        written: The inputs that are written.
        read: The inputs that are read.
    """

    def __init__(self, inputs: Iterable[Var], program: Program) -> None:
        super().__init__(inputs, program)
        self.written: set[Var] = set()
        self.read: set[Var] = set()

    def directions(self) -> dict[Var, ParamDirection]:
        """Return the direction of each input that is a tensor."""
        return {
            var: ParamDirection.In
            if var not in self.written
            else ParamDirection.InOut
            if var in self.read
            else ParamDirection.Out
            for var in self.roots
            if self.roots[var] is var
        }

    def see(self, call: Call | Submit) -> None:
        """Note what a call reads and writes."""
        for number, arg in enumerate(call.args):
            root = self.root(arg)
            direction = None if root is None else self._direction(call, number)
            if root is None or direction is None:
                continue
            if direction is not ParamDirection.In:
                self.written.add(root)
            if direction is not ParamDirection.Out:
                self.read.add(root)

    def _direction(self, call: Call | Submit, number: int) -> ParamDirection | None:
        """Return whether a call reads or writes an argument; None if it only looks at it anew."""
        if isinstance(call.op, GlobalVar):
            callee = self.program.get_function(call.op.name) if self.program else None
            known = callee is not None and number < len(callee.params)
            return callee.param_directions[number] if callee and known else ParamDirection.InOut
        row = ROWS.get(call.op.name)
        if row is None or row.reuses != number:
            return ParamDirection.In
        return ParamDirection.Out if row.has_effect else None
