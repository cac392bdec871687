"""How a function of one core works on whole tensors: by loads, ops on tiles, and stores.

A tensor that is needed in global memory is stored right after it is made; a window of a tensor is
loaded where it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..binding import source_name
from ..core import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
)
from ..dtypes import Index
from ..errors import IRTypeError, IRValueError
from ..expr import Add, Call, ConstInt, Expr, IterArg, MakeTuple, Op, Var, index, replace
from ..ops import create_op_call
from ..types import MemorySpace, TensorLayout, TensorType, TileType, TupleType, constant_dims
from .inserting import InsertingMutator
from .made_tensors import (
    ASSEMBLE,
    QUANTISE,
    TILE_OPS,
    WINDOWS,
    Made,
    Places,
    made_tensors,
    overwritten,
    places_of,
)

if TYPE_CHECKING:
    from ..core import Function
    from ..errors import Span

_ACC = "tensor.matmul_mx_acc"


def on_tiles(function: Function) -> tuple[Function, Places]:
    """Return a function that works on tiles, and where it stores the tensors that it made.

    The new parameters of its places are used, but not among its parameters yet.

    Args:
        function: In SSA form, normalised, its calls flattened.

    Raises:
        UserError: For a tensor that has no form as a tile, or a result that has no place.
    """
    made = made_tensors(function)
    places = places_of(function, made)
    return _Lowering(function, made, places).rewrite(function), places


@dataclass(frozen=True)
class _Window:
    """A window of a tensor that is loaded where it is needed."""

    source: Expr
    offset: tuple[Expr, ...]


class _Lowering(InsertingMutator):
    """Rewrites one function that makes tensors.

    Args:
        function: In SSA form, normalised, calls flattened.
        made: What it makes.
        places: Where that is stored.
    """

    def __init__(self, function: Function, made: Made, places: Places) -> None:
        super().__init__()
        self._made = made
        self._places = places
        last = flatten_to_stmts(function.body)[-1:]
        values = last[0].value if last and isinstance(last[0], ReturnStmt) else ()
        self._slots: dict[Var, list[tuple[int | None, Var]]] = {}
        for number, (value, param) in enumerate(zip(values, places.returned, strict=False)):
            if param is not None:
                self._slots.setdefault(cast("Var", value), []).append((number, param))
        for var, param in (*places.written.items(), *places.scratch.items()):
            self._slots.setdefault(var, []).append((None, param))
        self._returned: dict[int, Var] = {}
        self._windows: dict[Var, _Window] = {}
        self._bytes, self._written = overwritten(function)
        self._tensors: dict[Var, Var] = {}

    # ------------------------------------------------------------------- variables

    def visit_var(self, op: Var) -> Var:
        if op in self._windows:
            message = (
                f"The window {source_name(op)!r} must go into a matmul, pl.assemble or pl.load of its "
                "function to be compiled, not elsewhere"
            )
            raise IRValueError(message, op.span)
        if op not in self.variables:
            tile = self._made.tiles.get(op)
            self.variables[op] = op if tile is None else replace(op, type=tile)
        return self.variables[op]

    def visit_iter_arg(self, op: IterArg) -> Var:
        if op not in self.variables:
            init = self.visit_expr(op.init_value)
            tile = self._made.tiles.get(op)
            same = init is op.init_value and tile is None
            made = op if same else replace(op, init_value=init, type=tile or op.type)
            self.variables[op] = made
        return self.variables[op]

    def _as_tensor(self, expr: Expr) -> Expr:
        """Return a tensor operand as what lies in global memory."""
        if isinstance(expr, Var) and expr in self._made.tiles:
            return self._tensors[expr]
        return self.visit_expr(expr)

    # ------------------------------------------------------------------- statements

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        stmts: list[Stmt] = []
        outer = self._inserted
        for stmt in op.stmts:
            self._inserted = []
            new = self.visit_stmt(stmt)
            before, self._inserted = self._inserted, []
            for var in _defined(stmt):
                self._store(var)
            stmts += [*before, *flatten_to_stmts(new), *self._inserted]
        self._inserted = outer
        same = len(stmts) == len(op.stmts) and all(
            a is b for a, b in zip(stmts, op.stmts, strict=True)
        )
        return op if same else replace(op, stmts=tuple(stmts))

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        window = self._window(op.value)
        if window is not None:
            self._windows[op.var] = window
            return SeqStmts((), op.span)
        value = self.visit_expr(op.value)
        if value is not op.value and isinstance(value.type, TupleType):
            self.variables[op.var] = replace(op.var, type=value.type)
        var = cast("Var", self.visit(op.var))
        same = var is op.var and value is op.value
        return op if same else replace(op, var=var, value=value)

    def _window(self, value: Expr) -> _Window | None:
        """Return the window that a value is, or another name of; None for any other value."""
        if isinstance(value, Var):
            return self._windows.get(value)
        if not isinstance(value, Call) or value.op.name not in WINDOWS:
            return None
        source, _, offset = value.args
        assert isinstance(offset, MakeTuple), offset
        if isinstance(source, Var) and self._bytes.first(source) in self._written:
            message = (
                f"A window must be cut from a tensor that its function does not write to be compiled, "
                f"not from {source_name(source)!r}"
            )
            raise IRValueError(message, value.span)
        offsets = cast("MakeTuple", self.visit_expr(offset)).elements
        return self._placed(source, offsets)

    def _placed(self, tensor: Expr, offset: tuple[Expr, ...]) -> _Window:
        """Return a window of a tensor, which may be a window itself, as one of what it is cut from."""
        outer = self._windows.get(tensor) if isinstance(tensor, Var) else None
        if outer is None:
            return _Window(tensor, offset)
        pairs = zip(outer.offset, offset, strict=True)
        return _Window(outer.source, tuple(_sum(one, other) for one, other in pairs))

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        return self._loop(op)

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        return self._loop(op)

    def _loop(self, op: ForStmt | WhileStmt) -> Stmt:
        for arg in op.iter_args:
            self.visit_expr(arg.init_value)
            self.visit(arg)
        outer, self._inserted = self._inserted, []
        for arg in op.iter_args:
            self._store(arg)
        first, self._inserted = self._inserted, outer
        done = self.visit_children(op)
        if not first:
            return done
        body = SeqStmts((*first, *flatten_to_stmts(done.body)), done.body.span)
        return replace(done, body=body)

    def visit_return_stmt(self, op: ReturnStmt) -> Stmt:
        values = tuple(
            self._returned[number] if number in self._returned else self._as_tensor(value)
            for number, value in enumerate(op.value)
        )
        same = all(a is b for a, b in zip(values, op.value, strict=True))
        return op if same else replace(op, value=values)

    def _store(self, var: Var) -> None:
        """Store a tensor that was just made wherever it is wanted."""
        for number, param in self._slots.get(var, ()):
            stored = self._stored(var, param)
            self._tensors.setdefault(var, stored)
            if number is not None:
                self._returned[number] = stored

    def _stored(self, var: Var, param: Var) -> Var:
        tile, type_, span = self.visit_var(var), var.type, var.span
        assert isinstance(type_, TensorType), type_
        if not type_.layout.is_mx:
            call = create_op_call("tile.store", [tile, [0] * len(type_.shape), param], {}, span)
            return self._assigned(param.name_hint, call)
        # Scale tiles hold boxes in order: their bytes go into the same bytes seen as a row.
        row = flat_row(type_)
        flat = self._assigned(
            f"{param.name_hint}_row",
            create_op_call("tensor.view", [param, row], {"layout": TensorLayout.ND}, span),
        )
        store = create_op_call("tile.store", [tile, [0, 0], flat, row], {}, span)
        written = self._assigned(f"{param.name_hint}_row", store)
        kwargs = {"layout": type_.layout}
        back = create_op_call("tensor.view", [written, list(type_.shape)], kwargs, span)
        return self._assigned(param.name_hint, back)

    def _assigned(self, name: str, call: Call) -> Var:
        var = Var(name, call.type, call.span)
        self.insert(AssignStmt(var, call, call.span))
        return var

    # ------------------------------------------------------------------- calls

    def visit_call(self, op: Call) -> Expr:
        match op.op:
            case Op(name) if name in TILE_OPS:
                return self._on_tiles(op)
            case Op(name) if name == ASSEMBLE:
                target, source, offset = op.args
                tile = self._tile(source, MemorySpace.Vec, op.span, is_stored=True)
                args = [tile, self.visit_expr(offset), self._as_tensor(target)]
                return replace(create_op_call("tile.store", args, {}, op.span), attrs=op.attrs)
            case Op("tile.load") if op.args[0] in self._windows:
                tensor, offset, *rest = op.args
                offsets = cast("MakeTuple", self.visit_expr(offset))
                window = self._placed(tensor, offsets.elements)
                place = MakeTuple(window.offset, offset.span)
                rest = [self.visit_expr(each) for each in rest]
                return replace(op, args=(self._as_tensor(window.source), place, *rest))
            case _:
                args = tuple(self._as_tensor(arg) for arg in op.args)
                same = all(a is b for a, b in zip(args, op.args, strict=True))
                return op if same else replace(op, args=args)

    def _on_tiles(self, op: Call) -> Call:
        name = TILE_OPS[op.op.name]
        args = list(op.args)
        done: list[Expr] = []
        if op.op.name == _ACC:
            done.append(self._acc(args.pop(0), op.span))
        space = MemorySpace.Vec if op.op.name == QUANTISE else MemorySpace.Mat
        done += [self._tile(arg, space, op.span) for arg in args]
        return replace(create_op_call(name, done, op.kwargs, op.span), attrs=op.attrs)

    def _acc(self, acc: Expr, span: Span) -> Expr:
        if isinstance(acc, Var) and acc in self._made.tiles:
            return self.visit_expr(acc)
        name = repr(source_name(acc)) if isinstance(acc, Var) else "it"
        message = (
            f"{_ACC}: acc must be a product of this function to be compiled, which {name} is not: "
            "nothing is loaded into the accumulator"
        )
        raise IRValueError(message, span, hint="pl.matmul_mx starts an accumulator")

    def _tile(
        self, tensor: Expr, space: MemorySpace, span: Span, *, is_stored: bool = False
    ) -> Expr:
        """Return a tensor as a tile, loaded to `space` or moved to it.

        A tile that is stored next may also stay in the accumulator.
        """
        type_ = tensor.type
        assert isinstance(type_, TensorType), type_
        name = tensor.name_hint if isinstance(tensor, Var) else "operand"
        if isinstance(tensor, Var) and tensor in self._made.tiles:
            tile = cast("TileType", self.visit_expr(tensor).type)
            if tile.memory_space is space or (is_stored and tile.memory_space is MemorySpace.Acc):
                return self.visit_expr(tensor)
            view = tile.get_effective_tile_view()
            kwargs: dict[str, object] = {"target_memory": space}
            if type_.layout.is_mx:
                kwargs |= {"blayout": view.blayout, "slayout": view.slayout}
            call = create_op_call("tile.move", [self.visit_expr(tensor)], kwargs, span)
            return self._assigned(f"{name}_{space.name}", call)
        if constant_dims(type_.shape) is None:
            message = f"{name!r} must have constant dimensions to be compiled, not symbolic ones"
            raise IRTypeError(message, span)
        window = self._placed(tensor, tuple(index(0) for _ in type_.shape))
        args = [self._as_tensor(window.source), list(window.offset), list(type_.shape)]
        call = create_op_call("tile.load", args, {"target_memory": space}, span)
        return self._assigned(f"{name}_tile", call)


def _sum(one: Expr, other: Expr) -> Expr:
    """Return the sum of two offsets, of which one is often zero."""
    match one, other:
        case ConstInt(0), _:
            return other
        case _, ConstInt(0):
            return one
        case ConstInt(a), ConstInt(b):
            return index(a + b, one.span)
        case _:
            return Add(one, other, Index, one.span)


def _defined(stmt: Stmt) -> tuple[Var, ...]:
    match stmt:
        case AssignStmt(var):
            return (var,)
        case ForStmt() | WhileStmt() | IfStmt():
            return stmt.return_vars
        case _:
            return ()


def flat_row(type_: TensorType) -> list[int]:
    """Return the shape of all elements of a tensor as one row."""
    shape = constant_dims(type_.shape)
    assert shape is not None, type_
    count = 1
    for dim in shape:
        count *= dim
    return [1, count]
