"""How a function of one core works on whole tensors: by loads, ops on tiles, and stores.

A tensor that is needed in global memory is stored right after it is made; a window of a tensor is
loaded where it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..collapsing import plus, times
from ..core import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from ..expr import Call, Expr, Var, replace
from ..ops import create_op_call
from ..types import TensorLayout, TensorType, TupleType, constant_dims
from .made_tensors import CREATE, WINDOWS, Made, made_tensors
from .tensor_calls import CallLowering
from .tensor_operands import Window, elements
from .tensor_places import Places, places_of

if TYPE_CHECKING:
    from ..core import Function


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


class _Lowering(CallLowering):
    """Rewrites one function that makes tensors.

    Args:
        function: In SSA form, normalised, calls flattened.
        made: What it makes.
        places: Where that is stored.
    """

    def __init__(self, function: Function, made: Made, places: Places) -> None:
        super().__init__(made, places)
        last = flatten_to_stmts(function.body)[-1:]
        values = last[0].value if last and isinstance(last[0], ReturnStmt) else ()
        self._slots: dict[Var, list[tuple[int | None, Var]]] = {}
        for number, (value, param) in enumerate(zip(values, places.returned, strict=False)):
            if param is not None:
                self._slots.setdefault(cast("Var", value), []).append((number, param))
        for var, param in (*places.written.items(), *places.scratch.items()):
            self._slots.setdefault(var, []).append((None, param))
        self._returned: dict[int, Var] = {}
        self._targets: list[tuple[Var, ...]] = []
        for var, (param, _) in places.created.items():
            self.variables[var] = param

    # ------------------------------------------------------------------- statements

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        stmts: list[Stmt] = []
        outer, moved = self._inserted, self._in_vec_now
        self._in_vec_now = {}
        for stmt in op.stmts:
            self._inserted = []
            new = self.visit_stmt(stmt)
            before, self._inserted = self._inserted, []
            for var in _defined(stmt):
                self._store(var)
            stmts += [*before, *flatten_to_stmts(new), *self._inserted]
        self._inserted, self._in_vec_now = outer, moved
        same = len(stmts) == len(op.stmts) and all(
            a is b for a, b in zip(stmts, op.stmts, strict=True)
        )
        return op if same else replace(op, stmts=tuple(stmts))

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        if op.var in self._places.created:
            return SeqStmts((), op.span)
        window = self._window(op.var, op.value)
        if window is not None:
            self._windows[op.var] = window
            return SeqStmts((), op.span)
        if op.var in self._made.cut:
            value = self._cut(cast("Call", op.value))
        elif (
            op.var in self._made.tiles and isinstance(op.value, Call) and op.value.op.name == CREATE
        ):
            value = self._begun(op.value, self._made.tiles[op.var])
        else:
            value = self.visit_expr(op.value)
        is_tile = op.var in self._made.tiles or isinstance(value.type, TupleType)
        if value is not op.value and is_tile:
            self.variables[op.var] = replace(op.var, type=value.type)
        var = cast("Var", self.visit(op.var))
        same = var is op.var and value is op.value
        return op if same else replace(op, var=var, value=value)

    def _window(self, var: Var, value: Expr) -> Window | None:
        """Return the window that a value is, or another name of; None for any other value."""
        if isinstance(value, Var):
            return self._windows.get(value)
        if not isinstance(value, Call) or value.op.name not in WINDOWS or var in self._made.cut:
            return None
        source, shape, offset, *_ = value.args
        dropped: tuple[int, ...] = value.kwargs.get("drop_dims", ())
        window = self._placed(source, elements(self.visit_expr(offset)))
        if not dropped:
            return window
        return self._folded(window, elements(shape), dropped)

    def _folded(self, window: Window, shape: tuple[Expr, ...], dropped: tuple[int, ...]) -> Window:
        """Return a window of a view of its source in which each dropped axis is one with the next."""
        type_ = cast("TensorType", window.source.type)
        dims = list(constant_dims(type_.shape) or ())
        offset, kept = list(window.offset), [axis not in dropped for axis in range(len(shape))]
        for axis in reversed(range(len(dims) - 1)):
            if kept[axis]:
                continue
            offset[axis + 1] = plus(times(offset[axis], dims[axis + 1]), offset[axis + 1])
            dims[axis + 1] *= dims[axis]
            del dims[axis], offset[axis]
        source = self._as_tensor(window.source)
        name = source.name_hint if isinstance(source, Var) else "source"
        view = self._made_by("tensor.view", [source, dims], window.source.span, f"{name}_folded")
        return Window(view, tuple(offset))

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        return self._loop(op)

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        return self._loop(op)

    def _loop(self, op: ForStmt | WhileStmt) -> Stmt:
        for arg in op.iter_args:
            self.visit(arg)
        outer, self._inserted = self._inserted, []
        for arg in op.iter_args:
            self._store(arg)
        first, self._inserted = self._inserted, outer
        self._targets.append(op.iter_args)
        done = self.visit_children(op)
        self._targets.pop()
        if not first:
            return done
        body = SeqStmts((*first, *flatten_to_stmts(done.body)), done.body.span)
        return replace(done, body=body)

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        self._targets.append(op.return_vars)
        done = self.visit_children(op)
        self._targets.pop()
        return done

    def visit_yield_stmt(self, op: YieldStmt) -> Stmt:
        pairs = zip(op.value, self._targets[-1], strict=True)
        values = tuple(self._handed_on(value, target) for value, target in pairs)
        same = all(a is b for a, b in zip(values, op.value, strict=True))
        return op if same else replace(op, value=values)

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
            call = self._store_into(tile, [0] * len(type_.shape), param, span)
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
