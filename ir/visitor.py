"""Walking and rewriting programs.

`IRVisitor` looks, `IRMutator` rewrites; both call `visit_<snake_case node>` where a subclass has it,
else the group hook (`visit_binary_expr`, `visit_unary_expr`), else go through the node's children.
A mutator copies on write: what does not change is handed back as the same object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .core import Function, Program, SeqStmts, Stmt, flatten_to_stmts
from .expr import (
    BinaryExpr,
    Call,
    Expr,
    IterArg,
    Node,
    Submit,
    Type,
    UnaryExpr,
    Var,
    frozen_mapping,
    replace,
)
from .node_exprs import attribute_exprs, type_exprs
from .types import TensorType, TensorView, TileType, TileView, TupleType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

NodeT = TypeVar("NodeT", bound=Node)
_hook_names: dict[type, str] = {}


def _hook_name(kind: type) -> str:
    name = _hook_names.get(kind)
    if name is None:
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind.__name__).lower()
        name = _hook_names[kind] = f"visit_{snake}"
    return name


def _hook(owner: object, node: Node) -> Callable[[Any], Any] | None:
    return getattr(owner, _hook_name(type(node)), None)


def _visit_binary(self: IRVisitor | IRMutator, op: BinaryExpr) -> Any:
    return self.visit_binary_expr(op)


def _visit_unary(self: IRVisitor | IRMutator, op: UnaryExpr) -> Any:
    return self.visit_unary_expr(op)


def _visit_plain(self: IRVisitor | IRMutator, op: Node) -> Any:
    return self.visit_children(op)


def _give_every_node_a_hook(owner: type) -> None:
    """Add a `visit_x` for each class of nodes, so that `super().visit_x(op)` goes on everywhere."""
    kinds: list[type[Node]] = [Node]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
        name = _hook_name(kind)
        if hasattr(owner, name):
            continue
        if issubclass(kind, BinaryExpr):
            setattr(owner, name, _visit_binary)
        elif issubclass(kind, UnaryExpr):
            setattr(owner, name, _visit_unary)
        else:
            setattr(owner, name, _visit_plain)


class IRVisitor:
    """Looks at every node once, in program order; override hooks and call `super()` to go on."""

    def visit_program(self, program: Program) -> None:
        """Visit every function."""
        for function in program.functions.values():
            self.visit_function(function)

    def visit_function(self, op: Function) -> None:
        """Visit the parameters, then the body."""
        for param in op.params:
            self.visit(param)
        self.visit_stmt(op.body)

    def visit_stmt(self, op: Stmt) -> None:
        """Visit a statement."""
        self.visit(op)

    def visit_expr(self, op: Expr) -> None:
        """Visit an expression."""
        self.visit(op)

    def visit_type(self, type_: Type) -> None:
        """Visit the expressions in a type."""
        for expr in type_exprs(type_):
            self.visit_expr(expr)

    def visit_var_like(self, op: Var) -> None:
        """Visit a variable, be it defined or used here."""

    def visit_var(self, op: Var) -> None:
        """Visit a plain variable."""
        self.visit_var_like(op)

    def visit_iter_arg(self, op: IterArg) -> None:
        """Visit a loop-carried variable; its initial value is visited by its loop only."""
        self.visit_var_like(op)

    def visit_binary_expr(self, op: BinaryExpr) -> None:
        """Visit a scalar operator of two operands that has no hook of its own."""
        self.visit_children(op)

    def visit_unary_expr(self, op: UnaryExpr) -> None:
        """Visit a scalar operator of one operand that has no hook of its own."""
        self.visit_children(op)

    def visit(self, node: Node) -> None:
        """Dispatch on the class of `node`."""
        hook = _hook(self, node)
        if hook is not None:
            hook(node)
        else:
            self.visit_children(node)

    def visit_children(self, node: Node) -> None:
        """Visit what `node` holds."""
        if isinstance(node, Call | Submit):
            for expr in (
                *attribute_exprs(node.kwargs.values()),
                *attribute_exprs(node.attrs.values()),
            ):
                self.visit_expr(expr)
        for name in node.children:
            value: Node | tuple[Node, ...] | None = getattr(node, name)
            if value is None:
                continue
            for child in value if isinstance(value, tuple) else (value,):
                if isinstance(child, IterArg) and name == "iter_args":
                    self.visit_expr(child.init_value)
                self.visit(child)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[[Any], None]:
            """Declare the hooks that :func:`_give_every_node_a_hook` adds."""
            ...


_give_every_node_a_hook(IRVisitor)


class IRMutator:
    """Rewrites bottom-up; a hook returns the new node, or the same one when nothing changes.

    A variable whose type changes is replaced once, and every use follows (`self.variables`).
    """

    def __init__(self) -> None:
        self.variables: dict[Var, Var] = {}

    def visit_program(self, program: Program) -> Program:
        """Rewrite every function; the same program is returned when none changed."""
        done = [self.visit_function(f) for f in program.functions.values()]
        if all(a is b for a, b in zip(done, program.functions.values(), strict=True)):
            return program
        return Program(done, program.name, program.span)

    def visit_function(self, op: Function) -> Function:
        """Rewrite parameters, result types and body."""
        params = tuple(cast("Var", self.visit(p)) for p in op.params)
        return_types = tuple(self.visit_type(t) for t in op.return_types)
        body = self.visit_stmt(op.body)
        changes: dict[str, object] = {}
        if _differ(params, op.params):
            changes["params"] = params
        if _differ(return_types, op.return_types):
            changes["return_types"] = return_types
        if body is not op.body:
            changes["body"] = body
        return replace(op, **changes) if changes else op

    def visit_stmt(self, op: Stmt) -> Stmt:
        """Rewrite a statement."""
        return cast("Stmt", self.visit(op))

    def visit_expr(self, op: Expr) -> Expr:
        """Rewrite an expression."""
        return cast("Expr", self.visit(op))

    def visit_type(self, type_: Type) -> Type:
        """Rewrite the expressions in a type."""
        return rewrite_type(type_, self.visit_expr)

    def visit_var(self, op: Var) -> Var:
        """Return the variable that stands for `op`, made once when its type changes."""
        known = self.variables.get(op)
        if known is None:
            new_type = self.visit_type(op.type)
            known = op if new_type is op.type else replace(op, type=new_type)
            self.variables[op] = known
        return known

    def visit_iter_arg(self, op: IterArg) -> Var:
        """Return the variable for `op`; its initial value is rewritten first."""
        known = self.variables.get(op)
        if known is None:
            init = self.visit_expr(op.init_value)
            new_type = self.visit_type(op.type)
            same = init is op.init_value and new_type is op.type
            known = op if same else replace(op, init_value=init, type=new_type)
            self.variables[op] = known
        return known

    def visit_binary_expr(self, op: BinaryExpr) -> Expr:
        """Rewrite a scalar operator of two operands that has no hook of its own."""
        return self.visit_children(op)

    def visit_unary_expr(self, op: UnaryExpr) -> Expr:
        """Rewrite a scalar operator of one operand that has no hook of its own."""
        return self.visit_children(op)

    def visit(self, node: Node) -> Node:
        """Dispatch on the class of `node`."""
        hook = _hook(self, node)
        return hook(node) if hook is not None else self.visit_children(node)

    def visit_children(self, node: NodeT) -> NodeT:
        """Rewrite what `node` holds and return it, copied only when something changed."""
        changes: dict[str, object] = {}
        for name in node.children:
            old = getattr(node, name)
            if old is None:
                continue
            if isinstance(old, tuple):
                items = cast("tuple[Node, ...]", old)
                new = tuple(self.visit(child) for child in items)
                if _differ(new, items):
                    changes[name] = new
            else:
                done = self.visit(old)
                if done is not old:
                    changes[name] = done
        if isinstance(node, Call | Submit):
            changes.update(self._visit_call_parts(node))
        return replace(node, **changes) if changes else node

    def _visit_call_parts(self, node: Call | Submit) -> dict[str, object]:
        changes: dict[str, object] = {}
        for name in ("kwargs", "attrs"):
            old: Mapping[str, Any] = getattr(node, name)
            new = {key: self._visit_value(value) for key, value in old.items()}
            if any(new[key] is not old[key] for key in old):
                changes[name] = frozen_mapping(new)
        new_type = self.visit_type(node.type)
        if new_type is not node.type:
            changes["type"] = new_type
        return changes

    def _visit_value(self, value: object) -> object:
        if isinstance(value, Expr):
            return self.visit_expr(value)
        if isinstance(value, list | tuple):
            items = cast("Sequence[object]", value)
            new = [self._visit_value(v) for v in items]
            if not _differ(new, items):
                return cast("object", value)
            return new if isinstance(value, list) else tuple(new)
        if isinstance(value, Mapping):
            entries = cast("Mapping[str, object]", value)
            changed = {key: self._visit_value(v) for key, v in entries.items()}
            return changed if any(changed[k] is not entries[k] for k in entries) else entries
        return value

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        """Rewrite a sequence; those in it are opened, and of several one left stands alone."""
        new = tuple(self.visit_stmt(s) for s in op.stmts)
        if not _differ(new, op.stmts):
            return op
        flat = tuple(i for s in new for i in flatten_to_stmts(s))
        return flat[0] if len(flat) == 1 < len(op.stmts) else replace(op, stmts=flat)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[[Any], Any]:
            """Declare the hooks that :func:`_give_every_node_a_hook` adds."""
            ...


_give_every_node_a_hook(IRMutator)


def _differ(new: Sequence[object], old: Sequence[object]) -> bool:
    return len(new) != len(old) or any(a is not b for a, b in zip(new, old, strict=True))


def rewrite_type(type_: Type, change: Callable[[Expr], Expr]) -> Type:
    """Return `type_` with `change` applied to its expressions; the same object if none changed."""

    def dims(old: tuple[Expr, ...]) -> tuple[Expr, ...]:
        new = tuple(change(e) for e in old)
        return new if _differ(new, old) else old

    match type_:
        case TensorType():
            shape, view = dims(type_.shape), type_.tensor_view
            new_view = view and _rebuilt(
                view, stride=dims(view.stride), valid=dims(view.valid_shape)
            )
            if shape is type_.shape and new_view is view:
                return type_
            return type(type_)(shape, type_.dtype, type_.memref, new_view)
        case TileType():
            shape, tile_view = dims(type_.shape), type_.tile_view
            new_tile = tile_view and _rebuilt_tile(tile_view, dims, change)
            if shape is type_.shape and new_tile is tile_view:
                return type_
            return TileType(shape, type_.dtype, type_.memref, new_tile, type_.memory_space)
        case TupleType():
            types = tuple(rewrite_type(t, change) for t in type_.types)
            return TupleType(types) if _differ(types, type_.types) else type_
        case _:
            return type_


def _rebuilt(view: TensorView, *, stride: tuple[Expr, ...], valid: tuple[Expr, ...]) -> TensorView:
    if stride is view.stride and valid is view.valid_shape:
        return view
    return TensorView(stride, view.layout, valid, view.pad)


def _rebuilt_tile(
    view: TileView,
    dims: Callable[[tuple[Expr, ...]], tuple[Expr, ...]],
    change: Callable[[Expr], Expr],
) -> TileView:
    valid, stride = dims(view.valid_shape), dims(view.stride)
    start = None if view.start_offset is None else change(view.start_offset)
    if valid is view.valid_shape and stride is view.stride and start is view.start_offset:
        return view
    return replace(view, valid_shape=valid, stride=stride, start_offset=start)


class _Substitution(IRMutator):
    def __init__(self, pairs: Iterable[tuple[Var, Expr]]) -> None:
        super().__init__()
        self._pairs = dict(pairs)

    def visit_var(self, op: Var) -> Any:
        return self._pairs[op] if op in self._pairs else super().visit_var(op)

    def visit_iter_arg(self, op: IterArg) -> Any:
        return self._pairs[op] if op in self._pairs else super().visit_iter_arg(op)


def substitute_expr(node: Expr, pairs: Iterable[tuple[Var, Expr]]) -> Expr:
    """Return `node` with each variable of `pairs` replaced by its expression."""
    return _Substitution(pairs).visit_expr(node)


def substitute_stmt(node: Stmt, pairs: Iterable[tuple[Var, Expr]]) -> Stmt:
    """Return `node` with each variable of `pairs` replaced by its expression."""
    return _Substitution(pairs).visit_stmt(node)


def collect_def_vars(body: Stmt) -> tuple[Var, ...]:
    """Return the variables that `body` defines, in order of definition, each once."""
    found: dict[Var, None] = {}

    class Definitions(IRVisitor):
        def visit_assign_stmt(self, op: Any) -> None:
            found.setdefault(op.var)

        def visit_for_stmt(self, op: Any) -> None:
            for var in (op.loop_var, *op.iter_args):
                found.setdefault(var)
            self.visit_children(op)
            for var in op.return_vars:
                found.setdefault(var)

        def visit_in_core_scope_stmt(self, op: Any) -> None:
            self._scope(op)

        def visit_spmd_scope_stmt(self, op: Any) -> None:
            self._scope(op)

        def _scope(self, op: Any) -> None:
            self.visit_children(op)
            if op.task_id is not None:
                found.setdefault(op.task_id)

        def visit_while_stmt(self, op: Any) -> None:
            self._branching(op)

        def visit_if_stmt(self, op: Any) -> None:
            self._branching(op)

        def _branching(self, op: Any) -> None:
            for var in getattr(op, "iter_args", ()):
                found.setdefault(var)
            self.visit_children(op)
            for var in op.return_vars:
                found.setdefault(var)

    Definitions().visit_stmt(body)
    return tuple(found)


def set_call_attrs(call: Call, attrs: Mapping[str, Any]) -> Call:
    """Return `call` with `attrs` as its compiler metadata."""
    return replace(call, attrs=frozen_mapping(attrs))
