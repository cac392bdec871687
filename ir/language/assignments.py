"""Assignments: which variable a name stands for, and of which type it is."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, cast

from ..core import AssignStmt, Stmt
from ..errors import (
    ParserSyntaxError,
    ParserTypeError,
    ScopeIsolationError,
    SSAViolationError,
    UnsupportedFeatureError,
)
from ..expr import (
    Call,
    Expr,
    GlobalVar,
    Submit,
    TupleGetItemExpr,
    UnknownType,
    Var,
    frozen_mapping,
    replace,
)
from ..ops import ROWS, create_op_call
from ..ops.rules_memory import LOAD_TARGETS
from ..printer_text import type_text
from ..slots import SLOT
from ..types import TensorType, TileType, TupleType, one_place
from .capture import NOT_CONSTANT
from .constants import literal_as
from .context import plural
from .expressions import kind_of
from .typecheck import merge, mismatch

if TYPE_CHECKING:
    from ..errors import Span
    from ..expr import Type
    from ..slots import Slot
    from .context import Context
    from .expressions import ExpressionParser
    from .typecheck import Written


class AssignmentParser:
    """Reads the assignments of one function."""

    def __init__(self, context: Context, expressions: ExpressionParser) -> None:
        self._context = context
        self._expressions = expressions

    def assign(
        self, target: ast.expr, written: Written | None, value: ast.expr, node: ast.stmt
    ) -> list[Stmt]:
        """Return `target = value`; `written` is what the name is annotated with."""
        self.name(target)
        made = self._expressions.parse(value, written.type if written else None)
        return self.bound(target, written, made, value, node)

    def bound(
        self,
        target: ast.expr,
        written: Written | None,
        made: Expr,
        value: ast.expr,
        node: ast.stmt,
    ) -> list[Stmt]:
        """Return the assignment of `made`, which `value` says, to `target`."""
        name = self.name(target)
        if written is not None:
            made = literal_as(made, written.type)
        type_ = self.checked_type(written, made.type, f"{name!r}", value)
        if isinstance(type_, UnknownType):
            raise self.no_result(made, value)
        if isinstance(made, Call | Submit) and type_ is not made.type:
            made = replace(made, type=type_)
        if written is not None and written.slot is not None:
            made = self._in_slot(written.slot, made, value)
        if written is None:
            made = self._where_the_name_lies(name, made)
            type_ = made.type
        self._refuse_tile_of_kernel(name, made)
        var = self.assigned(name, type_, target)
        return [AssignStmt(var, made, self._context.span(node))]

    def _refuse_tile_of_kernel(self, name: str, made: Expr) -> None:
        """Refuse a tile that a function returns to the name of a tensor, where it is returned."""
        old = self._context.scope.variables.get(name)
        if old is None or not isinstance(old.type, TensorType) or not isinstance(made, Call):
            return
        if not isinstance(made.type, TileType) or not isinstance(made.op, GlobalVar):
            return
        called = made.op.name
        where = self._context.callees.returned_at(called) or made.span
        message = f"{called!r} must return a tensor to be assigned to {name!r}, not a tile"
        hint = "store the tile and return the tensor: out = pl.store(tile, offsets, out)"
        note = f"it is called at {made.span}" if made.span.is_known else None
        raise self._context.error(ParserTypeError, message, where, hint=hint, note=note)

    def _where_the_name_lies(self, name: str, made: Expr) -> Expr:
        """Return a load that says no memory with that of its name, where the name was placed before."""
        old = self._context.scope.variables.get(name)
        if old is None or not isinstance(made, Call) or made.op.name != "tile.load":
            return made
        if not one_place(old.type, made.type) or self._context.scope.is_from_here(old):
            return made
        if not isinstance(old.type, TileType) or old.type.memory_space not in LOAD_TARGETS:
            return made
        kwargs = {**made.kwargs, "target_memory": old.type.memory_space}
        placed = create_op_call("tile.load", made.args, kwargs, made.span)
        return replace(placed, attrs=made.attrs)

    def _in_slot(self, slot: Slot, made: Expr, value: ast.expr) -> Call:
        """Return a call that says in which slot its result lies."""
        if not isinstance(made, Call):
            message = f"What lies in a slot of {slot.name!r} must be made by an op, not be {ast.unparse(value)}"
            raise self._context.error(ParserTypeError, message, value)
        attrs = {**made.attrs, SLOT: [slot.name, slot.count, slot.index]}
        return replace(made, attrs=frozen_mapping(attrs))

    def name(self, target: ast.expr) -> str:
        """Return the name that an assignment writes.

        Raises:
            UnsupportedFeatureError: When its target is something else.
        """
        if isinstance(target, ast.Name):
            return target.id
        if isinstance(target, ast.Subscript):
            message = "An assignment to a part of a tensor is not part of this language"
            hint = "what works: out = pl.store(tile, offsets, out)"
        else:
            message = f"The target of an assignment must be a name, not {ast.unparse(target)}"
            hint = "what works: x = …, or a, b = self.kernel(…)"
        raise self._context.error(UnsupportedFeatureError, message, target, hint=hint)

    def kept(self, made: Call, node: ast.expr) -> Call:
        """Return a call that is a statement of its own, if more than the value that it gives matters.

        Raises:
            ParserSyntaxError: For an op that makes one value out of another and writes nothing.
        """
        row = ROWS.get(made.op.name)
        if row is None or row.reuses is None or row.has_effect:
            return made
        message = f"{made.op.name} gives a new value, so it must not be a statement of its own"
        first = made.args[row.reuses]
        name = first.name_hint if isinstance(first, Var) else "x"
        hint = f"assign it: {name} = {ast.unparse(node)}"
        raise self._context.error(ParserSyntaxError, message, node, hint=hint)

    def no_result(self, made: Expr, node: ast.expr) -> ParserTypeError:
        """Return the error for a call that is used although it has no result, or none yet."""
        called = made.op.name if isinstance(made, Call) else ast.unparse(node)
        known = isinstance(made, Call) and isinstance(made.op, GlobalVar)
        if known and self._context.callees.results(called) is None:
            message = f"The result of {called!r} is not known here, because it calls itself"
            hint = "annotate the assigned name, or the results of the function with ->"
            return self._context.error(ParserTypeError, message, node, hint=hint)
        message = f"{called!r} returns nothing, so its call must be a statement of its own"
        return self._context.error(ParserTypeError, message, node)

    def checked_type(
        self, written: Written | None, inferred: Type, what: str, where: ast.expr
    ) -> Type:
        """Return the type of a value from its annotation and its inferred type.

        Raises:
            ParserTypeError: When the two do not fit.
        """
        if written is None:
            return inferred
        if isinstance(inferred, UnknownType):
            return written.type
        fault = mismatch(written.type, inferred, check_layout=False)
        if fault is not None:
            message = f"{what} {fault}"
            hint = "the annotation must agree with the value, or be left out"
            raise self._context.error(ParserTypeError, message, where, hint=hint)
        return merge(written, inferred)

    def assigned(self, name: str, type_: Type, where: ast.AST) -> Var:
        """Return the variable that an assignment to `name` writes.

        Raises:
            ScopeIsolationError: When it is that of a value outside of the region at hand.
            SSAViolationError: When the name belongs to a loop, or `strict_ssa` forbids a second one.
            ParserTypeError: When the name already stands for a value of another type.
        """
        scope = self._context.scope
        span = self._context.span(where)
        old = scope.variables.get(name)
        if name in self._context.capture.fixed:
            raise self._is_constant(name, where)
        if old is None:
            return scope.define(name, type_, span)
        note = f"{name!r} is defined at {old.span}" if old.span.is_known else None
        if name in scope.loop_names:
            message = f"{name!r} belongs to the loop and must not be assigned in it"
            raise self._context.error(SSAViolationError, message, where, note=note)
        if name in scope.outer:
            message = f"{name!r} must not be assigned in a region that is launched, but before it"
            hint = "a region hands out tensors only; use another name for what is its own"
            raise self._context.error(ScopeIsolationError, message, where, hint=hint, note=note)
        if self._context.strict_ssa:
            message = f"{name!r} must be assigned only once under strict_ssa"
            hint = "use another name"
            raise self._context.error(SSAViolationError, message, where, hint=hint, note=note)
        unplaced = one_place(old.type, type_)
        if old.type != type_ and (unplaced or self._context.jit) and scope.is_from_here(old):
            return scope.define(name, type_, span)
        if old.type != type_ and not (unplaced and not _lies_somewhere(old)):
            same = f"must be {type_text(old.type)}, not {type_text(type_)}"
            fault = mismatch(old.type, type_) or same
            message = f"{name!r} is assigned a second time and {fault}"
            hint = "use another name for a value of another type or memory space"
            raise self._context.error(ParserTypeError, message, where, hint=hint, note=note)
        return old

    def unpack(self, target: ast.Tuple, value: ast.expr, node: ast.stmt) -> list[Stmt]:
        """Return `a, b = value`: the tuple under a name of its own, then its elements."""
        made = self._expressions.parse(value)
        if not isinstance(made.type, TupleType) or isinstance(value, ast.Tuple | ast.List):
            message = f"Several names must be assigned from a call with as many results, not from {kind_of(made.type)}"
            hint = "one assignment a line"
            raise self._context.error(ParserTypeError, message, value, hint=hint)
        wanted, found = len(target.elts), len(made.type.types)
        if wanted != found:
            results, names = plural(found, "result"), plural(found, "name")
            message = f"{results} must be assigned to {names}, not to {wanted}"
            raise self._context.error(ParserTypeError, message, target)
        span = self._context.span(node)
        names = [self.name(element) for element in target.elts]
        whole = self.temporary(made.type, span)
        stmts: list[Stmt] = [AssignStmt(whole, made, span)]
        for position, (name, element) in enumerate(zip(names, target.elts, strict=True)):
            var = self.assigned(name, made.type.types[position], element)
            stmts.append(AssignStmt(var, TupleGetItemExpr(whole, position, span), span))
        return stmts

    def temporary(self, type_: Type, span: Span) -> Var:
        """Return a variable for a tuple that the text gives no name."""
        scope = self._context.scope
        name, number = "_tuple_tmp", 0
        while name in scope and scope.variables[name].type != type_:
            number += 1
            name = f"_tuple_tmp_{number}"
        if name in scope and not self._context.strict_ssa:
            return scope.variables[name]
        return scope.define(name, type_, span)

    def define_shape(self, target: ast.expr, value: ast.expr) -> bool:
        """Take `M, N = x.shape` and `M = x.shape[0]` as constants; return whether it is such."""
        of_shape = value.value if isinstance(value, ast.Subscript) else value
        is_shape = isinstance(of_shape, ast.Attribute) and of_shape.attr == "shape"
        dims = self._context.capture.fold(value) if is_shape and self._context.jit else NOT_CONSTANT
        if dims is NOT_CONSTANT:
            return False
        targets: list[ast.expr] = [target]
        sizes: list[object] = [dims]
        if isinstance(target, ast.Tuple):
            targets = target.elts
            sizes = list(cast("tuple[object, ...]", dims)) if isinstance(dims, tuple) else sizes
        if len(targets) != len(sizes):
            message = f"{plural(len(sizes), 'extent')} of a shape must be given as many names, not {len(targets)}"
            raise self._context.error(ParserTypeError, message, target)
        for element, size in zip(targets, sizes, strict=True):
            name = self.name(element)
            fixed = self._context.capture.fixed
            if name in self._context.scope or fixed.get(name, size) != size:
                raise self._is_constant(name, element)
            self._context.capture.define(name, size)
        return True

    def _is_constant(self, name: str, where: ast.AST) -> SSAViolationError:
        message = f"{name!r} must not be assigned twice: it is a constant, taken from a shape"
        hint = "use another name"
        return self._context.error(SSAViolationError, message, where, hint=hint)


def _lies_somewhere(var: Var) -> bool:
    return isinstance(var.type, TileType) and var.type.memory_space is not None
