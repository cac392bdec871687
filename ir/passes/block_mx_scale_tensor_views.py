"""BlockMxScaleTensorViews: logical MX scale tensors become rows of 32-byte scale boxes.

    MX_A_ZZ [M, G]  ->  [1, M/16, G/2, 16, 2]
    MX_B_NN [G, N]  ->  [1, N/16, G/2, 16, 2]

Row-major strides over the new shape are the strides in memory, so that MaterializeTensorStrides can
treat the result like any packed tensor. Loads address boxes; their tiles stay logical and rank 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..core import AssignStmt, Function, Program
from ..dtypes import Index
from ..errors import IRValueError
from ..expr import (
    Call,
    ConstInt,
    Expr,
    FloorDiv,
    GlobalVar,
    MakeTuple,
    Submit,
    Type,
    Var,
    frozen_mapping,
    index,
    replace,
)
from ..properties import IRProperty
from ..types import (
    DistributedTensorType,
    MemorySpace,
    TensorLayout,
    TensorType,
    TensorView,
    TupleType,
)
from ..visitor import IRMutator, rewrite_type
from .base import Pass
from .mx_box_layout import assert_boxes_are_dense
from .mx_offset_proof import PROVABLE_FORMS, OffsetFacts, is_multiple, is_non_negative

if TYPE_CHECKING:
    from ..errors import Span
    from ..types import Dims

STAMP = "mx_tensor_views_blocked"

#: Which axis of the logical shape is cut into boxes of 16, and which into boxes of 2 groups.
_BLOCK_AXIS = {TensorLayout.MX_A_ZZ: 0, TensorLayout.MX_B_NN: 1}


@dataclass(frozen=True)
class BlockMxScaleTensorViews(Pass):
    """Rewrite MX scale tensors, and every operation whose coordinates depend on their form.

    `allow_mx_store` also accepts a store into an MX tensor, from a scale tile of the matching
    orientation. Every function is stamped; a stamped function is returned as it is.
    """

    allow_mx_store: bool = False

    name = "BlockMxScaleTensorViews"
    required = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})

    def transform(self, program: Program) -> Program:
        """Block every function that does not carry the stamp."""
        if all(STAMP in function.attrs for function in program.functions.values()):
            return program
        facts = OffsetFacts.of(program)
        done = [self._function(f, facts) for f in program.functions.values()]
        return Program(done, program.name, program.span)

    def _function(self, function: Function, facts: OffsetFacts) -> Function:
        if STAMP in function.attrs:
            return function
        blocked = _Blocker(facts, allow_store=self.allow_mx_store).visit_function(function)
        return replace(blocked, attrs=frozen_mapping({**function.attrs, STAMP: True}))


def layout_of(type_: Type) -> TensorLayout | None:
    """Return the MX layout of a tensor type, or None for any other type."""
    if isinstance(type_, TensorType) and type_.layout.is_mx:
        return type_.layout
    return None


def blocked_shape(shape: Dims, layout: TensorLayout, span: Span) -> tuple[Expr, ...]:
    """Return `[1, block/16, group/2, 16, 2]` for a logical rank-2 shape.

    Raises:
        IRValueError: For another rank, a symbolic extent, or one that does not fill its boxes.
    """
    block, group = _axes(shape, layout, "shape", span)
    counts: list[Expr] = []
    for extent, unit, axis in ((block, BOX_ROWS, "block"), (group, BOX_GROUPS, "group")):
        if not isinstance(extent, ConstInt):
            message = (
                f"An {layout.value} tensor must have a static {axis} dimension, not a symbolic one: "
                "dynamic MX tensors are not supported yet"
            )
            raise IRValueError(message, span)
        if extent.value <= 0 or extent.value % unit:
            message = (
                f"The {axis} dimension of an {layout.value} tensor must be a positive multiple of "
                f"{unit}, not {extent.value}"
            )
            raise IRValueError(message, span)
        counts.append(index(extent.value // unit))
    return (index(1), *counts, index(BOX_ROWS), index(BOX_GROUPS))


def _axes(dims: Dims, layout: TensorLayout, what: str, span: Span) -> tuple[Expr, Expr]:
    if len(dims) != 2:
        message = (
            f"An {layout.value} tensor must have a rank-2 logical {what}, not rank {len(dims)}"
        )
        raise IRValueError(message, span)
    axis = _BLOCK_AXIS[layout]
    return dims[axis], dims[1 - axis]


def blocked_type(type_: Type, span: Span) -> Type:
    """Return `type_` with every MX tensor in it blocked; the same object when there is none."""
    match type_:
        case TupleType():
            types = tuple(blocked_type(t, span) for t in type_.types)
            same = all(a is b for a, b in zip(types, type_.types, strict=True))
            return type_ if same else TupleType(types)
        case DistributedTensorType() if type_.layout.is_mx:
            message = (
                f"A distributed tensor must have layout ND, not {type_.layout.value}: MX layouts are "
                "not supported on distributed tensors yet"
            )
            raise IRValueError(message, span)
        case TensorType() if type_.layout.is_mx:
            shape = blocked_shape(type_.shape, type_.layout, span)
            if type_.valid_shape:
                message = (
                    f"An {type_.layout.value} tensor must be valid as a whole: a partial tensor "
                    "valid_shape is not supported yet; narrow the load's valid_shape instead"
                )
                raise IRValueError(message, span)
            assert type_.tensor_view is not None
            assert_boxes_are_dense(shape, type_.shape, type_.layout)
            view = TensorView((), type_.layout, (), type_.tensor_view.pad)
            return TensorType(shape, type_.dtype, type_.memref, view)
        case _:
            return type_


class _Blocker(IRMutator):
    def __init__(self, facts: OffsetFacts, *, allow_store: bool) -> None:
        super().__init__()
        self._facts = facts
        self._allow_store = allow_store
        self._span: Span | None = None

    def visit_function(self, op: Function) -> Function:
        self._span = op.span
        return super().visit_function(op)

    def visit_type(self, type_: Type) -> Type:
        assert self._span is not None
        return blocked_type(rewrite_type(type_, self.visit_expr), self._span)

    def visit_var(self, op: Var) -> Var:
        if op.span.is_known:
            self._span = op.span
        return super().visit_var(op)

    def visit_assign_stmt(self, op: AssignStmt) -> AssignStmt:
        self._span = op.span
        var = cast("Var", self.visit(op.var))
        value = self.visit_expr(op.value)
        if var is op.var and value is op.value:
            return op
        return replace(op, var=var, value=value)

    def visit_submit(self, op: Submit) -> Submit:
        self._span = op.span
        return self.visit_children(op)

    def visit_call(self, op: Call) -> Call:
        self._span = op.span
        mx: list[int] = [
            i for i, arg in enumerate(op.args) if isinstance(arg, Var) and layout_of(arg.type)
        ]
        if isinstance(op.op, GlobalVar):
            return self.visit_children(op)
        if op.op.name == "tile.load" and mx == [0]:
            return self._load(op)
        if op.op.name == "tile.store" and mx == [2]:
            return self._store(op)
        if op.op.name == "tensor.view" and set(mx) <= {0}:
            return self._view(op)
        if mx:
            message = (
                f"An MX tensor must be used only by tile.load and by shaped FP8E8M0 tensor.view "
                f"aliases, not by {op.op.name} (argument {mx[0]})"
            )
            raise IRValueError(message, op.span)
        if layout_of(op.type):
            message = (
                f"{op.op.name} must not make an MX tensor: make it ND in box order and give it the "
                "MX layout by tensor.view"
            )
            raise IRValueError(message, op.span)
        return self.visit_children(op)

    def _load(self, op: Call) -> Call:
        target = op.kwargs.get("target_memory")
        if target is not MemorySpace.Mat:
            found = f'"{target.name}"' if isinstance(target, MemorySpace) else "no target_memory"
            message = (
                "A load of an MX scale tensor must have target_memory=MemorySpace.Mat, not "
                f"{found}: only cube scale loads are supported"
            )
            raise IRValueError(message, op.span)
        layout = layout_of(op.args[0].type)
        assert layout is not None
        offsets, window = _coordinates(op, 1), _coordinates(op, 2)
        blocked = (
            self._blocked_offsets(offsets, layout, op.span),
            MakeTuple(blocked_shape(window.elements, layout, window.span), window.span),
        )
        _refuse_overhang(op, layout, offsets, window)
        physical = (blocked[1],) if len(op.args) > 3 else ()
        return self._rebuilt(op, (self.visit_expr(op.args[0]), *blocked, *physical), op.type)

    def _store(self, op: Call) -> Call:
        layout = layout_of(op.args[2].type)
        assert layout is not None
        if not self._allow_store:
            message = (
                f"A tile must not be stored into an {layout.value} tensor: store its bytes into an ND "
                "tensor and view that as MX in the next kernel"
            )
            raise IRValueError(message, op.span)
        _check_stored_tile(op, layout)
        offsets = self._blocked_offsets(_coordinates(op, 1), layout, op.span)
        shapes = tuple(
            MakeTuple(blocked_shape(_coordinates(op, i).elements, layout, op.span), op.span)
            for i in range(3, len(op.args))
        )
        args = (self.visit_expr(op.args[0]), offsets, self.visit_expr(op.args[2]), *shapes)
        return self._rebuilt(op, args, self.visit_type(op.type))

    def _view(self, op: Call) -> Call:
        new = self.visit_children(op)
        layout = layout_of(op.type)
        if layout is None or len(op.args) < 2:
            return new
        shape = _coordinates(op, 1)
        blocked = MakeTuple(blocked_shape(shape.elements, layout, op.span), shape.span)
        return self._rebuilt(new, (new.args[0], blocked, *new.args[2:]), new.type)

    def _rebuilt(self, op: Call, args: tuple[Expr, ...], type_: Type) -> Call:
        attrs = self._visit_call_parts(op).get("attrs", op.attrs)
        return replace(op, args=args, attrs=attrs, type=type_)

    def _blocked_offsets(self, offsets: MakeTuple, layout: TensorLayout, span: Span) -> MakeTuple:
        block, group = _axes(offsets.elements, layout, "offset", span)
        quotients = (
            self._quotient(block, BOX_ROWS, "block", span),
            self._quotient(group, BOX_GROUPS, "group", span),
        )
        return MakeTuple((index(0), *quotients, index(0), index(0)), offsets.span)

    def _quotient(self, offset: Expr, divisor: int, axis: str, span: Span) -> Expr:
        if isinstance(offset, ConstInt):
            if offset.value < 0 or offset.value % divisor:
                message = (
                    f"The MX slice offset on the {axis} axis must be a non-negative multiple of "
                    f"{divisor}, not {offset.value}"
                )
                raise IRValueError(message, span)
            return index(offset.value // divisor, offset.span)
        if not is_multiple(self._facts, offset, divisor):
            message = (
                f"The MX slice offset on the {axis} axis must be a multiple of {divisor}, which cannot "
                "be proven here"
            )
            raise IRValueError(message, span, hint=f"provable are {PROVABLE_FORMS}")
        if not is_non_negative(self._facts, offset):
            message = (
                f"The MX slice offset on the {axis} axis must be non-negative, which cannot be proven "
                "here: a negative offset would read the wrong box"
            )
            raise IRValueError(message, span, hint=f"provable are {PROVABLE_FORMS}")
        return FloorDiv(self.visit_expr(offset), index(divisor), Index, offset.span)


def _coordinates(op: Call, position: int) -> MakeTuple:
    if position >= len(op.args) or not isinstance(op.args[position], MakeTuple):
        found = type(op.args[position]).__name__ if position < len(op.args) else "nothing"
        message = f"Argument {position} of {op.op.name} must be a tuple of coordinates, not {found}"
        raise IRValueError(message, op.span)
    return cast("MakeTuple", op.args[position])


def _refuse_overhang(op: Call, layout: TensorLayout, offsets: MakeTuple, window: MakeTuple) -> None:
    """Refuse a window that provably leaves the tensor: its boxes would be read from elsewhere."""
    source = cast("TensorType", op.args[0].type)
    for axis, (offset, extent, whole) in enumerate(
        zip(offsets.elements, window.elements, source.shape, strict=True)
    ):
        known = (offset, extent, whole)
        if not all(isinstance(e, ConstInt) for e in known):
            continue
        first, count, limit = (e.value for e in known if isinstance(e, ConstInt))
        if first + count > limit:
            message = (
                f"The window of a load from an {layout.value} tensor must lie within the tensor: on "
                f"axis {axis} it covers {first}..{first + count - 1} of {limit}"
            )
            raise IRValueError(message, op.span)


def _check_stored_tile(op: Call, layout: TensorLayout) -> None:
    from ..dtypes import DType
    from ..types import SCALE_ARRANGEMENT, TileType

    tile = op.args[0].type
    if not isinstance(tile, TileType) or tile.dtype is not DType.E8M0:
        message = f"Only an FP8E8M0 tile can be stored into an {layout.value} tensor"
        raise IRValueError(message, op.span)
    found = tile.get_effective_tile_view().arrangement
    if found != SCALE_ARRANGEMENT[layout]:
        wanted = SCALE_ARRANGEMENT[layout]
        message = (
            f"A tile stored into an {layout.value} tensor must be arranged "
            f"{wanted[0].value}/{wanted[1].value}/{wanted[2]}, not "
            f"{found[0].value}/{found[1].value}/{found[2]}"
        )
        raise IRValueError(message, op.span)
