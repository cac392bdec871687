"""Instruction selection: a kernel after all passes becomes a tree of machine code.

A rule an op. Tiles are where their memory references say; tensors become views; scalars stay
expressions until emission.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from ..ir.dtypes.boxes import BOX_GROUPS, BOX_ROWS, GROUP
from ..ir.core import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    Function,
    IfStmt,
    ReturnStmt,
    Stmt,
    YieldStmt,
    flatten_to_stmts,
)
from ..ir.dtypes import BFloat16, DType, Float16
from ..ir.errors import IRTypeError, IRValueError
from ..ir.expr import Call, ConstInt, Expr, Op, ScalarType, Var
from ..ir.tile_bytes import round_up, tile_bytes
from ..ir.types import MemorySpace, TensorLayout, TensorType, TileLayout, TileType, static_dims
from .isa.vocabulary import Convert, ElementBits, ElementType, MadInit, Space
from .kernel import Layout, View
from .tree import Block, Branch, Let, Loop, Region, Step, whole_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..ir.dtypes import SimpleDType
    from ..ir.errors import Span

_SPACES = {
    MemorySpace.Mat: Space.L1,
    MemorySpace.Left: Space.L0A,
    MemorySpace.Right: Space.L0B,
    MemorySpace.Acc: Space.L0C,
    MemorySpace.Bias: Space.BIAS,
    MemorySpace.LeftScale: Space.SCALE_A,
    MemorySpace.RightScale: Space.SCALE_B,
    MemorySpace.Vec: Space.UB,
}
_CONVERT = {DType.Float32: Convert.FP32, BFloat16: Convert.BF16, Float16: Convert.FP16}
_MATRIX_RANK = 2


@dataclass(frozen=True)
class Place:
    """A placed tile: address and byte size in a memory, physical and valid extents."""

    space: Space
    address: int
    size_bytes: int
    rows: int
    cols: int
    valid_rows: int
    valid_cols: int
    dtype: SimpleDType

    @property
    def region(self) -> Region:
        """The bytes of the tile."""
        return Region(self.space, self.address, self.address + self.size_bytes)


def place_of(var: Expr) -> Place:
    """Return where a tile variable lies, after AllocateMemoryAddr."""
    tile = var.type
    assert isinstance(tile, TileType)
    assert tile.memory_space is not None
    assert tile.memref is not None, "tiles have memory references after InitMemRef"
    rows, cols = static_dims(tile.shape, "A tile that is compiled")
    valid = static_dims(tile.valid_shape, "The valid shape of a tile that is compiled")
    return Place(
        _SPACES[tile.memory_space],
        tile.memref.byte_offset,
        tile_bytes(tile),
        rows,
        cols,
        valid[0],
        valid[1],
        cast("SimpleDType", tile.dtype),
    )


@dataclass
class Selection:
    """What selection makes of a kernel: its tree of instructions and the views they use."""

    block: Block
    views: tuple[View, ...]


def select(function: Function) -> Selection:
    """Return the instructions of an InCore function after all passes.

    Raises:
        IRValueError: For a construct that the cube core has no instruction for.
        IRTypeError: For a tile or tensor that no instruction takes.
    """
    selector = _Selector(function)
    block = selector.body(function.body)
    return Selection(block, tuple(selector.views))


@dataclass
class _Selector:
    function: Function
    views: list[View] = field(default_factory=list[View])
    _view_index: dict[View, int] = field(default_factory=dict[View, int])
    _tensors: dict[Var, int] = field(default_factory=dict[Var, int])
    _data_of: dict[Var, Var] = field(default_factory=dict[Var, Var])

    def __post_init__(self) -> None:
        for number, param in enumerate(self.function.params):
            if isinstance(param.type, TensorType):
                self._tensors[param] = number
        self._find_binds(self.function.body)

    def _find_binds(self, body: Stmt) -> None:
        for stmt in flatten_to_stmts(body):
            match stmt:
                case AssignStmt(value=Call(op=Op(name="tile.tget_scale_addr")) as bind):
                    scale, data = cast("tuple[Var, Var]", bind.args)
                    self._data_of[scale] = self._data_of[stmt.var] = data
                case ForStmt():
                    self._find_binds(stmt.body)
                case IfStmt():
                    self._find_binds(stmt.then_body)
                    if stmt.else_body is not None:
                        self._find_binds(stmt.else_body)
                case _:
                    continue

    # ----------------------------------------------------------------- statements

    def body(self, body: Stmt) -> Block:
        block = Block()
        for stmt in flatten_to_stmts(body):
            match stmt:
                case AssignStmt():
                    self._assign(stmt, block)
                case EvalStmt(expr=Call() as call):
                    self._call(None, call, block)
                case ForStmt():
                    self._for(stmt, block)
                case IfStmt():
                    self._if(stmt, block)
                case YieldStmt() | ReturnStmt():
                    continue
                case _:
                    message = (
                        f"A kernel must not contain a {type(stmt).__name__} when it is compiled"
                    )
                    raise IRValueError(message, stmt.span)
        return block

    def _assign(self, stmt: AssignStmt, block: Block) -> None:
        if isinstance(stmt.var.type, ScalarType):
            block.items.append(Let(stmt.var, stmt.value, stmt.span))
        elif isinstance(stmt.value, Call):
            self._call(stmt.var, stmt.value, block)
        elif isinstance(stmt.value, Var) and isinstance(stmt.var.type, TensorType):
            self._tensors[stmt.var] = self._tensors[stmt.value]
        else:
            # Another name of a tile: both have one memory reference.
            assert isinstance(stmt.value, Var)

    def _for(self, stmt: ForStmt, block: Block) -> None:
        if not isinstance(stmt.step, ConstInt) or stmt.step.value == 0:
            message = "The step of a loop that is compiled must be a constant other than 0"
            raise IRValueError(message, stmt.span)
        for arg in stmt.iter_args:
            self._same_tensor(arg, arg.init_value)
        inner = self.body(stmt.body)
        yielded = _yielded(stmt.body)
        carried = [
            (arg, arg.init_value, value, result)
            for arg, value, result in zip(stmt.iter_args, yielded, stmt.return_vars, strict=True)
        ]
        for arg, _, value, result in carried:
            self._check_carried(arg, value, stmt.span)
            self._same_tensor(result, arg)
        scalars = tuple(c for c in carried if isinstance(c[0].type, ScalarType))
        block.items.append(
            Loop(stmt.loop_var, stmt.start, stmt.stop, stmt.step.value, inner, stmt.span, scalars)
        )

    def _if(self, stmt: IfStmt, block: Block) -> None:
        then_body = self.body(stmt.then_body)
        else_body = self.body(stmt.else_body) if stmt.else_body is not None else Block()
        then_values, else_values = _yielded(stmt.then_body), _yielded(stmt.else_body)
        results = list(zip(stmt.return_vars, then_values, else_values, strict=True))
        for var, first, second in results:
            self._same_tensor(var, first)
            self._check_carried(var, second, stmt.span)
        scalars = tuple(r for r in results if isinstance(r[0].type, ScalarType))
        block.items.append(Branch(stmt.condition, then_body, else_body, stmt.span, scalars))

    def _same_tensor(self, var: Var, value: Expr) -> None:
        if isinstance(var.type, TensorType):
            self._tensors[var] = self._tensors[cast("Var", value)]

    def _check_carried(self, var: Var, value: Expr, span: Span) -> None:
        if isinstance(var.type, TensorType):
            if self._tensors[var] != self._tensors[cast("Var", value)]:
                message = (
                    f"{var.name_hint!r} must stand for one tensor on every way to it, not for two"
                )
                raise IRValueError(message, span)
        elif isinstance(var.type, TileType):
            assert place_of(var).address == place_of(value).address, "carried tiles share a buffer"

    # ----------------------------------------------------------------- ops

    def _call(self, var: Var | None, call: Call, block: Block) -> None:
        rule = _RULES.get(call.op.name) if isinstance(call.op, Op) else None
        if rule is None:
            message = f"A kernel for the cube core must not use {call.op.name}"
            raise IRValueError(message, call.span, hint=f"it can use {', '.join(sorted(_RULES))}")
        for step in rule(self, var, call):
            step.note = step.note or (var.name_hint if var is not None else "")
            block.items.append(step)

    def _view(self, tensor: Expr, type_: TensorType) -> int:
        number = self._tensors[cast("Var", tensor)]
        view = View(
            number,
            Layout(type_.layout.value.lower()),
            cast("SimpleDType", type_.dtype).bits,
            static_dims(type_.shape, "A tensor that is compiled"),
            static_dims(type_.stride, "The strides of a tensor that is compiled"),
        )
        if view not in self._view_index:
            self._view_index[view] = len(self.views)
            self.views.append(view)
        return self._view_index[view]

    def _matrix(self, call: Call, position: int) -> tuple[int, Region]:
        """Return the view of a rank-2 row-major tensor operand and the bytes it may touch."""
        tensor = call.args[position]
        type_ = cast("TensorType", tensor.type)
        if type_.layout is not TensorLayout.ND or len(type_.shape) != _MATRIX_RANK:
            message = (
                f"{call.op.name} of the cube core must take a rank-2 tensor in ND, not one of rank "
                f"{len(type_.shape)} in {type_.layout.name}"
            )
            raise IRTypeError(message, call.span)
        return self._view(tensor, type_), whole_tensor(self._tensors[cast("Var", tensor)])

    def load(self, var: Var | None, call: Call) -> list[Step]:
        if var is None:
            return []
        place = place_of(var)
        if place.space is not Space.L1:
            message = (
                f"A load of the cube core must go to Mat, not to {_space_name(var)}: "
                "the vector core is not part of this machine yet"
            )
            raise IRValueError(message, call.span)
        type_ = cast("TensorType", call.args[0].type)
        if type_.layout.is_mx:
            return [self._load_boxes(place, call)]
        view, source = self._matrix(call, 0)
        row, col = _coordinates(call, 1)
        tile = cast("TileType", var.type)
        fields: dict[str, int | Expr] = {"view": view, "xr": row, "xc": col, "l1": place.address}
        if tile.get_effective_tile_view().slayout is TileLayout.none_box:
            fields |= {"cols": place.valid_cols}
            name = "gm_to_l1_row"
        else:
            fields |= {
                "rows": place.valid_rows,
                "cols": place.valid_cols,
                "l1_rows": round_up(place.rows, BOX_ROWS),
            }
            name = "gm_to_l1_nz"
        return [Step(name, fields, call.span, (source,), (place.region,))]

    def _load_boxes(self, place: Place, call: Call) -> Step:
        tensor = call.args[0]
        view = self._view(tensor, cast("TensorType", tensor.type))
        _, row, col, *_ = _coordinates(call, 1)
        window = static_dims(tuple(_coordinates(call, 2)), "The window of a load")
        fields: dict[str, int | Expr] = {
            "view": view,
            "xi": row,
            "xj": col,
            "l1": place.address,
            "ni": window[1],
            "nj": window[2],
            "l1_nj": window[2],
        }
        source = whole_tensor(self._tensors[cast("Var", tensor)])
        return Step("gm_to_l1_boxes", fields, call.span, (source,), (place.region,))

    def move(self, var: Var | None, call: Call) -> list[Step]:
        if var is None:
            return []
        source, place = place_of(call.args[0]), place_of(var)
        fields: dict[str, int | Expr] = {"src": source.address, "dst": place.address}
        written = place.region
        match source.space, place.space:
            case Space.L1, Space.L0A:
                name = "l1_to_l0a"
                row_boxes = -(-source.valid_rows // BOX_ROWS)
                fields |= {
                    "row_boxes": row_boxes,
                    "col_boxes": -(-source.valid_cols * source.dtype.bits // 256),
                    "src_pitch": -(-source.rows // BOX_ROWS),
                    "dst_pitch": row_boxes,
                }
            case Space.L1, Space.L0B:
                name = "l1_to_l0b"
                fields |= {
                    "bits": ElementBits(source.dtype.bits),
                    "k": source.valid_rows,
                    "n": source.valid_cols,
                    "src_k": round_up(source.rows, BOX_ROWS),
                }
            case Space.L1, Space.SCALE_A | Space.SCALE_B:
                return [self._fill_scale(var, call, source, place)]
            case Space.L1, Space.BIAS:
                name = "l1_to_bias"
                fields |= {"bytes": source.valid_cols * source.dtype.bits // 8}
            case _:
                message = (
                    f"The cube core must move tiles from Mat to Left, Right, LeftScale, RightScale or "
                    f"Bias, not from {_space_name(call.args[0])} to {_space_name(var)}"
                )
                raise IRValueError(message, call.span)
        return [Step(name, fields, call.span, (source.region,), (written,))]

    def _fill_scale(self, var: Var, call: Call, source: Place, place: Place) -> Step:
        data = place_of(self._data_of[var])
        left = place.space is Space.SCALE_A
        rows, k = (data.valid_rows, data.valid_cols) if left else (data.valid_cols, data.valid_rows)
        source_groups = source.cols if left else source.rows
        row_boxes, col_boxes = -(-rows // BOX_ROWS), _group_boxes(k)
        fields: dict[str, int | Expr] = {
            "src": source.address,
            "dst": place.address,
            "row_boxes": row_boxes,
            "col_boxes": col_boxes,
            "src_pitch": -(-source_groups // BOX_GROUPS),
        }
        name = "l1_to_scale_a" if left else "l1_to_scale_b"
        return Step(name, fields, call.span, (source.region,), (place.region,))

    def bind_scale(self, _var: Var | None, _call: Call) -> list[Step]:
        """No instruction: the address of a scale tile follows from its data tile's."""
        return []

    def matmul_mx(self, var: Var | None, call: Call) -> list[Step]:
        return self._mad(var, call, call.args, MadInit.ZERO)

    def matmul_mx_acc(self, var: Var | None, call: Call) -> list[Step]:
        return self._mad(var, call, call.args[1:], MadInit.ACC)

    def matmul_mx_bias(self, var: Var | None, call: Call) -> list[Step]:
        return self._mad(var, call, call.args[:4], MadInit.BIAS)

    def _mad(
        self, var: Var | None, call: Call, operands: Sequence[Expr], init: MadInit
    ) -> list[Step]:
        if var is None:
            return []
        a, a_scale, b, b_scale = (place_of(each) for each in operands)
        c = place_of(var)
        m, k, n = a.valid_rows, a.valid_cols, b.valid_cols
        bias = place_of(call.args[4]) if init is MadInit.BIAS else None
        fields: dict[str, int | Expr] = {
            "c": c.address,
            "a": a.address,
            "b": b.address,
            "bias": bias.address if bias is not None else 0,
            "m": m,
            "k": k,
            "n": n,
            "a_type": ElementType[a.dtype.name],
            "b_type": ElementType[b.dtype.name],
            "init": init,
        }
        reads = [a.region, b.region, a_scale.region, b_scale.region]
        if init is MadInit.ACC:
            reads.append(c.region)
        if bias is not None:
            reads.append(bias.region)
        return [Step("mad_mx", fields, call.span, tuple(reads), (c.region,))]

    def store(self, var: Var | None, call: Call) -> list[Step]:
        source = place_of(call.args[0])
        if source.space is not Space.L0C:
            message = (
                f"A store of the cube core must come from Acc, not from {_space_name(call.args[0])}"
            )
            raise IRValueError(message, call.span)
        view, target = self._matrix(call, 2)
        if var is not None:
            self._same_tensor(var, call.args[2])
        row, col = _coordinates(call, 1)
        dtype = cast("TensorType", call.args[2].type).dtype
        fields: dict[str, int | Expr] = {
            "view": view,
            "xr": row,
            "xc": col,
            "l0c": source.address,
            "rows": source.valid_rows,
            "cols": source.valid_cols,
            "src_rows": round_up(source.valid_rows, BOX_ROWS),
            "convert": _CONVERT[cast("SimpleDType", dtype)],
        }
        return [Step("l0c_to_gm", fields, call.span, (source.region,), (target,))]

    def view(self, var: Var | None, call: Call) -> list[Step]:
        if var is not None:
            self._same_tensor(var, call.args[0])
        return []


_RULES: dict[str, Callable[[_Selector, Var | None, Call], list[Step]]] = {
    "tile.load": _Selector.load,
    "tile.move": _Selector.move,
    "tile.store": _Selector.store,
    "tile.tget_scale_addr": _Selector.bind_scale,
    "tile.matmul_mx": _Selector.matmul_mx,
    "tile.matmul_mx_acc": _Selector.matmul_mx_acc,
    "tile.matmul_mx_bias": _Selector.matmul_mx_bias,
    "tensor.view": _Selector.view,
}


def _group_boxes(k: int) -> int:
    groups = -(-k // GROUP)
    return -(-groups // BOX_GROUPS)


def _coordinates(call: Call, position: int) -> tuple[Expr, ...]:
    from ..ir.expr import MakeTuple

    return cast("MakeTuple", call.args[position]).elements


def _yielded(body: Stmt | None) -> tuple[Expr, ...]:
    stmts = flatten_to_stmts(body)
    return stmts[-1].value if stmts and isinstance(stmts[-1], YieldStmt) else ()


def _space_name(value: Expr) -> str:
    space = cast("TileType", value.type).memory_space
    return space.name if space is not None else "no memory"
