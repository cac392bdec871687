"""BlockNzTensorViews: tensors in NZ become columns of boxes, and loads from them address boxes.

    [..., R, C]  ->  [B, C/c0, R/16, 16, c0]        offset [.., r, k]  ->  [b, k/c0, r/16, 0, 0]

Row-major strides over the new shape are the strides in memory. The tile of a load stays what it was:
rows and columns of the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ..collapsing import folded_offset, is_contiguous
from ..core import AssignStmt, Function, Program
from ..dtypes import Index
from ..errors import IRValueError
from ..expr import (
    Call,
    ConstInt,
    Expr,
    FloorDiv,
    GlobalVar,
    IterArg,
    MakeTuple,
    Node,
    ScalarType,
    Submit,
    Type,
    Var,
    frozen_mapping,
    index,
    replace,
)
from ..numerics.nz import NZ_ROWS, nz_columns
from ..ops.checks import same_dims, show_dims
from ..properties import IRProperty
from ..ranges import Ranges
from ..types import MemorySpace, TensorType, TileType, TupleType, constant_dim, constant_dims
from ..verification.walk import all_vars, own_exprs, statements
from ..visitor import IRMutator
from .base import Pass
from .nz_blocked_types import blocked_extents, blocked_type, is_nz
from .nz_offset_proof import PROVABLE, NzFacts, prove_boxes, prove_within

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..errors import Span
    from ..types import Dims

STAMP = "nz_tensor_views_blocked"
_WIDEST_GAP = 65535
"""Rows between two columns of boxes that a load's 16-bit field can skip."""


@dataclass(frozen=True)
class BlockNzTensorViews(Pass):
    """Rewrite tensors in NZ, and the coordinates of every load from them.

    Every function is stamped; a stamped function is returned as it is.
    """

    name = "BlockNzTensorViews"
    required = frozenset(
        {
            IRProperty.SSAForm,
            IRProperty.NormalizedStmtStructure,
            IRProperty.NoNestedCalls,
            IRProperty.TileOps2D,
        }
    )

    def transform(self, program: Program) -> Program:
        """Block every function that does not carry the stamp.

        Raises:
            IRValueError: For an NZ tensor, an offset or a window that has no blocked form, and for an
                op that must not use a tensor in NZ.
        """
        if all(STAMP in function.attrs for function in program.functions.values()):
            return program
        boxed = [function for function in program.functions.values() if _mentions_nz(function)]
        facts = NzFacts(program) if boxed else None
        done = [_stamped(function, facts, boxed) for function in program.functions.values()]
        return Program(done, program.name, program.span)


def _stamped(function: Function, facts: NzFacts | None, boxed: Sequence[Function]) -> Function:
    if STAMP in function.attrs:
        return function
    blocked = function
    if facts is not None and any(function is each for each in boxed):
        blocked = _Blocker(function, facts).visit_function(function)
    return replace(blocked, attrs=frozen_mapping({**function.attrs, STAMP: True}))


def _mentions_nz(function: Function) -> bool:
    """Return whether a tensor in NZ has a name in a function, or a call there makes or takes one."""
    types = [*function.return_types, *(var.type for var in all_vars(function))]
    if any(map(_holds_nz_type, types)):
        return True
    for stmt in statements(function.body):
        for expr in own_exprs(stmt):
            if isinstance(expr, Call | Submit) and _holds_nz_type(expr.type):
                return True
    return False


def _holds_nz_type(type_: Type) -> bool:
    if isinstance(type_, TupleType):
        return any(map(_holds_nz_type, type_.types))
    return is_nz(type_)


class _Blocker(IRMutator):
    def __init__(self, function: Function, facts: NzFacts) -> None:
        super().__init__()
        self._facts = facts
        self._ranges = Ranges(function.body)
        self._span = function.span

    # ------------------------------------------------------------------- types

    def visit_type(self, type_: Type) -> Type:
        if isinstance(type_, ScalarType):
            return type_
        return blocked_type(super().visit_type(type_), self._span)

    def visit_var(self, op: Var) -> Var:
        return self._at(op, super().visit_var)

    def visit_iter_arg(self, op: IterArg) -> Var:
        return self._at(op, super().visit_iter_arg)

    def _at(self, op: Any, visit: Callable[[Any], Var]) -> Var:
        """Visit a variable; an error in its type stands where it does."""
        outer, self._span = self._span, _place(op, self._span)
        done = visit(op)
        self._span = outer
        return done

    def visit_assign_stmt(self, op: AssignStmt) -> AssignStmt:
        self._span = _place(op, self._span)
        var, value = cast("Var", self.visit(op.var)), self.visit_expr(op.value)
        same = var is op.var and value is op.value
        return op if same else replace(op, var=var, value=value)

    # ------------------------------------------------------------------- calls

    def visit_call(self, op: Call) -> Call:
        self._span = _place(op, self._span)
        if isinstance(op.op, GlobalVar):
            return self.visit_children(op)
        used = [position for position, arg in enumerate(op.args) if _holds_nz(arg)]
        if op.op.name == "tile.load" and used == [0]:
            return self._load(op)
        if used:
            message = (
                f"A tensor in NZ must be used only by tile.load, not by {op.op.name} "
                f"(argument {used[0]})"
            )
            raise IRValueError(message, self._span)
        if is_nz(op.type):
            message = f"{op.op.name} must not make a tensor in NZ: it comes in by a parameter"
            raise IRValueError(message, self._span)
        return self.visit_children(op)

    def _load(self, op: Call) -> Call:
        tensor = op.args[0].type
        assert isinstance(tensor, TensorType), tensor
        target = op.kwargs.get("target_memory")
        if target is not MemorySpace.Mat:
            found = f'"{target.name}"' if isinstance(target, MemorySpace) else "no target_memory"
            message = (
                "A load of a tensor in NZ must have target_memory=MemorySpace.Mat, not "
                f"{found}: its boxes are those of L1"
            )
            raise IRValueError(message, self._span)
        bits = tensor.dtype.bits
        source = self.visit_expr(op.args[0])
        offsets, window = (_coordinates(op, position, self._span) for position in (1, 2))
        box = blocked_extents(
            window.elements, bits, self._span, what="The window of a load from NZ"
        )
        _check_rank(offsets, tensor, self._span)
        self._check_valid(op, window)
        self._check_window(tensor, offsets.elements, window.elements)
        places = MakeTuple(self._blocked_offsets(tensor, offsets, window), offsets.span)
        physical = MakeTuple(box, window.span)
        valid = (physical,) if len(op.args) > 3 else ()
        parts = {k: v for k, v in self._visit_call_parts(op).items() if k != "type"}
        return replace(op, args=(source, places, physical, *valid), **parts)

    def _check_valid(self, op: Call, window: MakeTuple) -> None:
        valid = _coordinates(op, 3, self._span) if len(op.args) > 3 else window
        tile = op.type
        in_part = isinstance(tile, TileType) and not same_dims(tile.valid_shape, tile.shape)
        if op.kwargs.get("clamp") or in_part or not same_dims(valid.elements, window.elements):
            message = (
                "A load of a tensor in NZ must be valid as a whole, since it takes whole boxes: its "
                f"valid_shape must be {show_dims(window.elements)}, without clamp"
            )
            raise IRValueError(message, self._span)

    def _check_window(self, tensor: TensorType, offsets: Dims, window: Dims) -> None:
        """Refuse a window that leaves the tensor, is in pieces, or skips too many rows."""
        known = constant_dims(window)
        extents = constant_dims(tensor.shape)
        assert known is not None, window
        assert extents is not None, tensor
        for axis, (offset, size, limit) in enumerate(zip(offsets, known, extents, strict=True)):
            first = constant_dim(offset) or 0
            if first + size > limit:
                message = (
                    "The window of a load must lie within the tensor in NZ: on axis "
                    f"{axis} it covers {first}..{first + size - 1} of {limit}"
                )
                raise IRValueError(message, self._span)
        if not is_contiguous(known[:-2], extents[:-2]):
            message = (
                "The matrices that a load takes of a tensor in NZ must follow one another, as those "
                f"of {list(known)} of {list(extents)} do not"
            )
            raise IRValueError(message, self._span)
        gap = extents[-2] - known[-2]
        if known[-1] > nz_columns(tensor.dtype.bits) and gap > _WIDEST_GAP:
            message = (
                f"A load of several columns of boxes must skip at most {_WIDEST_GAP} rows of the "
                f"tensor in NZ from one to the next, not {gap}: load one column of "
                f"{nz_columns(tensor.dtype.bits)} elements at a time"
            )
            raise IRValueError(message, self._span)

    # ------------------------------------------------------------------- offsets

    def _blocked_offsets(self, tensor: TensorType, offsets: MakeTuple, window: MakeTuple) -> Dims:
        *leading, row, column = offsets.elements
        for axis, offset in enumerate(leading):
            self._check_offset(offset, 1, f"axis {axis}")
        down = self._quotient(row, NZ_ROWS, "the row axis")
        across = self._quotient(column, nz_columns(tensor.dtype.bits), "the column axis")
        sizes, extents = constant_dims(window.elements[:-2]), constant_dims(tensor.shape[:-2])
        assert sizes is not None, window
        assert extents is not None, tensor
        batch = self.visit_expr(folded_offset(leading, sizes, extents, self._ranges))
        return batch, across, down, index(0), index(0)

    def _quotient(self, offset: Expr, unit: int, axis: str) -> Expr:
        self._check_offset(offset, unit, axis)
        if isinstance(offset, ConstInt):
            return index(offset.value // unit, offset.span)
        return FloorDiv(self.visit_expr(offset), index(unit), Index, offset.span)

    def _check_offset(self, offset: Expr, unit: int, axis: str) -> None:
        where = f"The offset of a load from NZ on {axis} must be"
        span = _place(offset, self._span)
        if isinstance(offset, ConstInt):
            if offset.value < 0 or offset.value % unit:
                message = f"{where} a non-negative multiple of {unit}, not {offset.value}"
                raise IRValueError(message, span)
            return
        if unit > 1 and prove_boxes(self._facts, offset, unit) is None:
            message = f"{where} a multiple of {unit}, which cannot be proven here; provable are {PROVABLE}"
            raise IRValueError(message, span)
        if prove_within(self._facts, offset) is None:
            message = (
                f"{where} non-negative, which cannot be proven here; provable are {PROVABLE}, where "
                "none is negative and nothing is subtracted"
            )
            raise IRValueError(message, span)


def _place(node: Node, otherwise: Span) -> Span:
    return node.span if node.span.is_known else otherwise


def _holds_nz(arg: Expr) -> bool:
    if isinstance(arg, MakeTuple):
        return any(_holds_nz(e) for e in arg.elements if not isinstance(e, ConstInt))
    return is_nz(arg.type)


def _coordinates(op: Call, position: int, span: Span) -> MakeTuple:
    found = op.args[position] if position < len(op.args) else None
    if isinstance(found, MakeTuple):
        return found
    kind = "nothing" if found is None else type(found).__name__
    message = f"Argument {position} of {op.op.name} must be a tuple of coordinates, not {kind}"
    raise IRValueError(message, span)


def _check_rank(offsets: MakeTuple, tensor: TensorType, span: Span) -> None:
    if len(offsets.elements) != len(tensor.shape):
        message = (
            f"The offsets of a load from NZ must have {len(tensor.shape)} elements, one an axis of "
            f"the tensor, not {len(offsets.elements)}"
        )
        raise IRValueError(message, span)
